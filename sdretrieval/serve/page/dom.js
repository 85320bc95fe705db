// Small helpers of the page. What makes elements is the report's, too (elements.js).

import { el, quoted, svg } from "./elements.js";

export { el, quoted, svg };
export const DAY = 86_400_000;

export const byId = (id) => document.getElementById(id);

export const button = (click, attributes, ...children) =>
  el("button", { type: "button", onclick: click, ...attributes }, ...children);

/** Runs of text, the marked ones as <mark>. */
export const marked = (runs) => runs.map(([text, isMarked]) => (isMarked ? el("mark", {}, text) : text));

/** Draw anew, and give the focus back to what had it: focusable things that are redrawn carry a `data-key`. */
export function redrawn(container, draw) {
  const key = container.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  draw();
  if (key) container.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** One tab stop for many things; arrows, Home and End move within. */
export function roving(container, selector) {
  const all = () => [...container.querySelectorAll(selector)];
  container.addEventListener("keydown", (event) => {
    const things = all();
    const at = things.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0,
      End: things.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    things[Math.max(0, Math.min(things.length - 1, to))].focus();
  });
  container.addEventListener("focusin", (event) => {
    if (event.target.matches(selector)) for (const thing of all()) thing.tabIndex = thing === event.target ? 0 : -1;
  });
}

export function debounced(wait, act) {
  let timer;
  return (...values) => { clearTimeout(timer); timer = setTimeout(act, wait, ...values); };
}

export const number = (value, places = 3) => value.toFixed(places).replace("-", "−");
export const signed = (value, places = 3) => (value > 0 ? "+" : "") + number(value, places);
export const many = (count, one, several = one + "s") => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
export const day = (iso) => iso.slice(0, 10);
export const isoDay = (ms) => new Date(ms).toISOString().slice(0, 10);

/** A length of time as a person says it. */
export function duration(days) {
  if (days < 1) return many(Math.max(1, Math.round(days * 24)), "hour");
  const [unit, name] = days < 100 ? [1, "day"] : days < 1000 ? [30.4, "month"] : [365.25, "year"];
  return many(Number((days / unit).toPrecision(2)), name);
}

export function saveAs(name, blob) {
  const address = URL.createObjectURL(blob);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
