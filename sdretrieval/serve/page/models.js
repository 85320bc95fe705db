// The choice of models and their parameters.

import { button, byId, el, many } from "./dom.js";

export function fillModels(index, state) {
  const options = (chosen) => index.models.map(({ name, description }) =>
    el("option", { value: name, title: description, selected: name === chosen }, name));
  byId("model").replaceChildren(...options(state.model));
  byId("model").title = index.models.find((one) => one.name === state.model).description;
  byId("compare").replaceChildren(el("option", { value: "" }, "nothing"), ...options(state.compare));
}

/** One field for each parameter, empty where its default holds; `changed` is told all that differ. */
export function drawParameters(model, state, changed) {
  const sheet = byId("parameters").querySelector(".sheet");
  const count = Object.keys(state.set).length;
  byId("changed").textContent = count ? `: ${count} changed` : "";
  if (sheet.contains(document.activeElement) && sheet.dataset.model === model.name) return;
  sheet.dataset.model = model.name;
  const change = (name, value) => {
    const { [name]: _, ...others } = state.set;
    changed(value === "" ? others : { ...others, [name]: value });
  };
  sheet.replaceChildren(el("p", { class: "about" }, model.description, "."),
    ...model.parameters.map((one) => field(one, state.set[one.name], change)),
    model.parameters.length ? "" : el("p", {}, "It has no parameters."),
    count ? button(() => changed({}), { class: "plain small" }, `back to defaults (${many(count, "change")})`) : "");
}

function field({ name, default: usual, low, high, choices, help }, given, change) {
  const values = choices?.length ? choices : typeof usual === "boolean" ? ["true", "false"] : null;
  const common = { id: `set-${name}`, "aria-describedby": `help-${name}`,
    onchange: (event) => change(name, event.target.value) };
  const option = (value) => el("option", { value, selected: given === String(value) }, value);
  const input = values
    ? el("select", common, el("option", { value: "" }, `${usual} (default)`),
      values.filter((value) => String(value) !== String(usual)).map(option))
    : el("input", { ...common, type: typeof usual === "number" ? "number" : "text", step: "any", min: low, max: high,
      placeholder: usual, value: given });
  return el("div", { class: "field" }, el("label", { for: common.id }, name), input,
    el("small", { id: `help-${name}` }, help));
}
