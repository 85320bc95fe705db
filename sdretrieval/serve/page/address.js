// The state of the workbench and its form in the address bar: a view can be shared, bookmarked, reloaded.

import { DAY, isoDay } from "./dom.js";

const TEXTS = ["index", "q", "model", "compare", "since", "until", "as_of", "time_prior", "bandwidth", "doc"];
const NUMBERS = ["hits", "time_weight"];
const LISTS = ["relevant", "nonrelevant", "drop"];
const MAPS = ["set", "weights"];
const DEFAULTS = { time_prior: "none", hits: 20 };

export function read(search) {
  const given = new URLSearchParams(search);
  const state = {};
  for (const name of TEXTS) state[name] = given.get(name) || DEFAULTS[name] || null;
  for (const name of NUMBERS) {
    const value = parseFloat(given.get(name));
    state[name] = Number.isFinite(value) ? value : DEFAULTS[name] ?? null;
  }
  for (const name of LISTS) state[name] = given.getAll(name);
  for (const name of MAPS) {
    state[name] = Object.fromEntries(given.getAll(name).map((pair) => {
      const cut = pair.lastIndexOf("=");
      return [pair.slice(0, cut), name === "weights" ? Number(pair.slice(cut + 1)) : pair.slice(cut + 1)];
    }));
  }
  return state;
}

export function write(state) {
  const told = new URLSearchParams();
  for (const name of [...TEXTS, ...NUMBERS]) {
    const value = state[name];
    if (value !== null && value !== "" && value !== DEFAULTS[name]) told.set(name, value);
  }
  for (const name of LISTS) for (const value of state[name]) told.append(name, value);
  for (const name of MAPS) for (const [key, value] of Object.entries(state[name])) told.append(name, `${key}=${value}`);
  const text = told.toString();
  return text ? `?${text}` : location.pathname;
}

/** Whether the kernel's width and weight are the user's to say: `none` and `auto` take neither. */
export const isShaped = (state) => !["none", "auto"].includes(state.time_prior);

/** The state as a request; what is empty is left out. */
export function request(state) {
  const { index, compare, doc, time_weight, bandwidth, ...asked } = state;
  const body = { ...asked, until: state.until && dayAfter(state.until), set: settings(state.set),
    ...(isShaped(state) && { time_weight, bandwidth }) };
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null && value !== undefined
    && (typeof value !== "object" || Object.keys(value).length > 0)));
}

/** For the server a range ends before `until`, for people with that day. */
function dayAfter(text) {
  const at = Date.parse(text);
  return Number.isNaN(at) ? text : isoDay(at + DAY);
}

/** Numbers as numbers, true and false as such: the address holds text only. */
function settings(set) {
  const given = Object.entries(set).filter(([, text]) => text !== "");
  const plain = (text) => (Number.isFinite(Number(text)) ? Number(text) : text);
  return Object.fromEntries(given.map(([name, text]) => [name, { true: true, false: false }[text] ?? plain(text)]));
}
