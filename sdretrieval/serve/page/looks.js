// Light, dark, or as the system has it; and how a problem is told.

import { byId, el } from "./dom.js";
import * as server from "./server.js";

const THEMES = { auto: "◐", light: "○", dark: "●" };

function setTheme(theme) {
  localStorage.setItem("theme", theme);
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = THEMES[theme];
  byId("theme").setAttribute("aria-label", `Colours: ${theme}`);
  byId("theme").title = `Colours: ${theme} (d)`;
}

export function nextTheme() {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
}

export function startTheme() {
  setTheme(THEMES[localStorage.getItem("theme")] ? localStorage.getItem("theme") : "auto");
  byId("theme").addEventListener("click", nextTheme);
}

/** A refusal of the server's, in words; `start` begins again where a token was missing, `more` is drawn below. */
export function complain(error, start, more = "") {
  if (!(error instanceof server.Refusal)) throw error;
  byId("alert").replaceChildren(el("p", {}, el("strong", {}, error.message), " ", error.remedy),
    error.status === 401 ? tokenForm(start) : more);
  byId("status").textContent = "";
}

function tokenForm(start) {
  const use = (event) => {
    event.preventDefault();
    server.setToken(event.target.token.value);
    start();
  };
  return el("form", { class: "token", onsubmit: use },
    el("label", {}, "Token ", el("input", { name: "token", type: "password", autocomplete: "off" })),
    el("button", {}, "Use"));
}
