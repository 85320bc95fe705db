// How text enters the report and the served page: through text nodes only. Nothing here, or anywhere, parses HTML.

const SVG = "http://www.w3.org/2000/svg";

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

/** Words of others, kept from reordering the text around them. */
export function quoted(text, className) {
  return el("bdi", { class: className }, text);
}
