// Keys: one letter each while nothing is being typed, and the sheet that tells them.

import { el } from "./dom.js";

const SWITCH = "letter-keys";

/** Letters can be switched off for those whose speech or fingers would strike them by chance. */
const areOn = () => localStorage.getItem(SWITCH) !== "off";

const isTyping = (target) => target.matches("input:not([type=range]), select, textarea");

/** `keys`: what is told of each, and what it does. */
export function bindKeys(keys) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const [, act] = keys[event.key] ?? [];
    const isLetter = event.key.length === 1;
    if (!act || (isLetter && (isTyping(event.target) || !areOn()))) return;
    if (isLetter) event.preventDefault();
    act();
  });
}

export function helpSheet(dialog, keys, told) {
  const keep = (event) => localStorage.setItem(SWITCH, event.target.checked ? "on" : "off");
  dialog.replaceChildren(
    el("form", { method: "dialog" }, el("h2", { id: "help-heading" }, "Keys"),
      el("button", { class: "plain small" }, "close", el("kbd", {}, "Esc"))),
    el("dl", {}, Object.entries(keys).map(([key, [told]]) =>
      el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, told)))),
    el("p", {}, el("label", {}, el("input", { type: "checkbox", checked: areOn(), onchange: keep }),
      " single letters are keys")),
    el("p", {}, told));
}
