// Small helpers. Text enters the page through text nodes only: nothing here, or anywhere, parses HTML.

const SVG = "http://www.w3.org/2000/svg";
export const DAY = 86_400_000;

export const byId = (id) => document.getElementById(id);

/** An element: attributes by name, `on…` functions as listeners, `vars` as CSS variables, children last. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "vars") for (const [name, set] of Object.entries(value)) node.style.setProperty(name, set);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

export const button = (click, attributes, ...children) =>
  el("button", { type: "button", onclick: click, ...attributes }, ...children);

/** Words of others, kept from reordering the text around them. */
export const quoted = (text, className) => el("bdi", { class: className }, text);

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
