// The choice of models and their parameters.

import { byId, el, many } from "./dom.js";

export function fillModels(index, state) {
  const options = (chosen) => index.models.map((one) => el("option", { value: one.name, title: one.description, selected: one.name === chosen }, one.name));
  byId("model").replaceChildren(...options(state.model));
  byId("model").title = index.models.find((one) => one.name === state.model).description;
  byId("compare").replaceChildren(el("option", { value: "" }, "nothing"), ...options(state.compare));
}

/** One field for each parameter, empty where its default holds; `changed` is told all that differ. */
export function drawParameters(model, state, changed) {
  const sheet = byId("parameters").querySelector(".sheet");
  const count = Object.keys(state.set).length;
  byId("changed").textContent = count ? `: ${count} changed` : "";
  if (sheet.contains(document.activeElement)) return;
  const given = (name) => state.set[name];
  const set = (name, value) => {
    const next = { ...state.set };
    if (value === "") delete next[name];
    else next[name] = value;
    changed(next);
  };
  const field = ({ name, default: usual, low, high, choices, help }) => {
    const values = choices?.length ? choices : typeof usual === "boolean" ? ["true", "false"] : null;
    const common = { id: `set-${name}`, onchange: (event) => set(name, event.target.value), "aria-describedby": `help-${name}` };
    const input = values
      ? el("select", common, el("option", { value: "" }, `${usual} (default)`), values.filter((value) => String(value) !== String(usual)).map((value) =>
        el("option", { value, selected: given(name) === String(value) }, value)))
      : el("input", { ...common, type: typeof usual === "number" ? "number" : "text", step: "any", min: low, max: high, placeholder: usual, value: given(name) });
    return el("div", { class: "field" }, el("label", { for: `set-${name}` }, name), input, el("small", { id: `help-${name}` }, help));
  };
  sheet.replaceChildren(el("p", { class: "about" }, model.description, "."),
    ...(model.parameters.length ? model.parameters.map(field) : [el("p", {}, "It has no parameters.")]),
    count ? el("button", { class: "plain small", type: "button", onclick: () => changed({}) }, `back to defaults (${many(count, "change")})`) : "");
}
