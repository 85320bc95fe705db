// The panel beside the hits: the words learnt and who taught them, or one document's score and text.

import { button, byId, day, el, many, marked, number, quoted, redrawn, roving, signed } from "./dom.js";
import { judging } from "./hits.js";

const FIRST_WORDS = 24;
const FIRST_SCORES = 12;
const TEACHERS = 8;
const STEP = 1.25; // of a weight, up or down
let showsAll = false;

const bar = (share, part) => el("i", { class: `bar ${part}${share < 0 ? " minus" : ""}`,
  vars: { "--share": Math.min(1, Math.abs(share)) } });
const terms = (all) => el("span", { class: "taught-terms" }, all.map((term) => [quoted(term), " "]));
const titled = (key, { docid, title }, act, name = "") => button(() => act.open(docid),
  { class: `title ${name}`, "data-key": `${key}:${docid}` }, quoted(title || docid));

// --- the query -----------------------------------------------------------------------------------------------------

export function drawQuery(answer, state, act) {
  const panel = byId("why");
  panel.classList.remove("opened");
  redrawn(panel, () => panel.replaceChildren(...[
    answer.note && el("p", { class: "note" }, answer.note.replaceAll(" %", "\u00a0%")),
    words(answer, state, act), teachers(answer, state, act), certificate(answer.certificate),
  ].flat().filter(Boolean)));
}

function words(answer, state, act) {
  const all = answer.words;
  const isEdited = (word) => word.term in state.weights;
  const shown = showsAll ? all : all.filter((word, i) => i < FIRST_WORDS || word.dropped || isEdited(word));
  const top = Math.max(...all.map((word) => word.weight), 1e-300);
  const list = el("ul", { class: "chips", "aria-label": "Words; arrows move, Enter drops, plus and minus weigh" },
    shown.map((word) => chip(word, isEdited(word), top, act)));
  roving(list, ".word");
  const first = list.querySelector(".word");
  if (first) first.tabIndex = 0;
  const edits = state.drop.length + Object.keys(state.weights).length;
  const small = { class: "plain small" };
  return [el("h2", {}, "Words ", el("small", {}, quoted(answer.model))), list, el("div", { class: "under" },
    adding(top, act),
    all.length > FIRST_WORDS && button(() => unfold(act), { ...small, "data-key": "all" },
      showsAll ? "fewer" : `all ${all.length}`),
    edits > 0 && button(act.undoWords, { ...small, "data-key": "undo-words" }, `undo ${many(edits, "edit")}`),
    el("span", {}, el("i", { class: "key query" }), "of the query"),
    el("span", {}, el("i", { class: "key" }), "learnt"))];
}

function unfold(act) {
  showsAll = !showsAll;
  act.redraw();
}

/** A word that can be dropped or weighed; the line under it is as long as the root of its weight. */
function chip({ term, weight, part, dropped }, isEdited, top, act) {
  const told = dropped ? "dropped" : `weight ${number(weight)}${isEdited ? ", yours" : ""}`;
  const drop = () => act.drop(term);
  const [more, less] = [STEP, 1 / STEP].map((by) => () => act.weigh(term, weight * by));
  const keys = { Delete: drop, Backspace: drop, ...(dropped ? {} : { "+": more, "=": more, "-": less }) };
  const press = (event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  const nudge = (click, label, sign) => button(click, { class: "nudge", tabindex: -1, title: label,
    "aria-label": `${label}: ${term}` }, sign);
  return el("li", { class: `chip ${part}${dropped ? " dropped" : ""}${isEdited ? " edited" : ""}`, "data-term": term,
    vars: { "--share": dropped ? 0 : Math.sqrt(Math.max(0, weight / top)) } },
    button(drop, { class: "word", tabindex: -1, "data-key": `word:${term}`, title: told, onkeydown: press,
      "aria-label": `${term}, ${told}, ${part === "query" ? "of the query" : "learnt"}`,
      "aria-pressed": String(!dropped) }, quoted(term)),
    !dropped && [nudge(less, "weigh less", "−"), nudge(more, "weigh more", "+")]);
}

function adding(top, act) {
  const add = (event) => {
    event.preventDefault();
    const term = event.target.term.value.trim().toLowerCase();
    if (term) act.weigh(term, top / 4);
  };
  return el("form", { class: "add", onsubmit: add }, el("input", { name: "term", placeholder: "add a word",
    "data-key": "add-word", "aria-label": "Add a word, as the index has it", autocomplete: "off", maxlength: 100 }));
}

function teachers(answer, state, act) {
  const all = answer.feedback ?? [];
  if (!all.length) return [];
  const top = Math.max(...all.map((one) => one.weight), 1e-300);
  const point = (taught) => {
    for (const item of byId("why").querySelectorAll(".chip"))
      item.classList.toggle("taught", taught.includes(item.dataset.term));
  };
  const row = (one) => {
    const [show, hide] = [() => point(one.terms ?? []), () => point([])];
    return el("li", { onpointerenter: show, onpointerleave: hide, onfocusin: show, onfocusout: hide },
      titled("teacher", one, act, state.relevant.includes(one.docid) ? "judged" : ""),
      bar(one.weight / top, "feedback"), el("span", { class: "figures" }, number(one.weight)));
  };
  const list = (some) => el("ol", { class: "teachers" }, some.map(row));
  const rest = all.slice(TEACHERS);
  return [el("h2", {}, "Learnt from ", el("small", {}, "the most weight first")), list(all.slice(0, TEACHERS)),
    rest.length && el("details", {}, el("summary", {}, "more"), list(rest))];
}

function certificate(given) {
  return given && el("p", { class: "under certificate" },
    `Nothing from ${day(given.ceiling)} on was read: statistics of ${many(given.documents, "document")}, `,
    el("code", { title: given.statistics_sha256 }, given.statistics_sha256.slice(0, 16)));
}

// --- a document ----------------------------------------------------------------------------------------------------

/** `found` is its text, `why` its score word by word; either may still be on its way. */
export function drawDocument({ docid, found, why, refusal }, answer, state, act) {
  const panel = byId("why");
  const hit = answer?.hits.find((one) => one.docid === docid);
  const { title, date } = found ?? hit ?? {};
  panel.classList.add("opened");
  redrawn(panel, () => panel.replaceChildren(...[
    el("div", { class: "doc-head" }, judging(docid, state, act.judge),
      button(act.close, { class: "plain small", "data-key": "close" }, "close", el("kbd", {}, "Esc"))),
    el("h2", { id: "doc-title", tabindex: -1, "data-key": "doc-title" }, quoted(title || docid)),
    el("p", { class: "facts" }, date && el("time", { datetime: date }, day(date)), quoted(docid, "docid"),
      why?.rank && el("span", {}, `rank ${why.rank}`), why && el("span", {}, `score ${number(why.score)}`)),
    refusal && el("p", { class: "refusal" }, refusal.message, " ", refusal.remedy),
    why && [scores(why, act), taught(why, answer, act)],
    el("h3", {}, "Text"),
    el("div", { class: "text", dir: "auto" },
      why?.text?.length ? marked(why.text) : found ? found.text || "This index keeps no text." : "…"),
  ].flat(2).filter(Boolean)));
}

function scores(why, act) {
  const all = [...why.words].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const shown = showsAll ? all : all.slice(0, FIRST_SCORES);
  const rest = all.slice(shown.length);
  const sum = rest.reduce((total, word) => total + word.contribution, 0);
  const top = Math.max(...[...all.map((word) => word.contribution), why.static, why.time].map(Math.abs), 1e-300);
  const row = (name, value, part, title) => el("tr", { title }, el("th", { scope: "row" }, name),
    el("td", {}, part && bar(value / top, part)), el("td", { class: "figures" }, signed(value)));
  const more = button(() => unfold(act), { class: "plain small", "data-key": "all" }, `${rest.length} more`);
  return [el("h3", {}, "Its score, word by word"), el("table", { class: "scores" },
    el("caption", { class: "hidden" }, "What each word adds to the score"),
    el("tbody", {},
      shown.map(({ term, contribution, part, count, weight }) =>
        row(quoted(term), contribution, part, `${many(count, "time")} in the text, weight ${number(weight, 4)}`)),
      rest.length > 0 && row(more, sum, null), why.static ? row("general English", why.static, "other") : null,
      why.time ? row("time", why.time, "time") : null))];
}

/** The documents that taught words which this one has. */
function taught(why, answer, act) {
  const own = new Set(why.words.map((word) => word.term));
  const titles = new Map((answer?.feedback ?? []).map(({ docid, title }) => [docid, title]));
  const all = (why.taught ?? []).map((one) => ({ title: titles.get(one.docid), ...one,
    terms: one.terms.filter((term) => own.has(term)) })).filter((one) => one.terms.length);
  return all.length ? [el("h3", {}, "Who taught its words"), el("ul", { class: "taught" },
    all.slice(0, TEACHERS).map((one) => el("li", {}, titled("taught", one, act), " ", terms(one.terms))))] : [];
}
