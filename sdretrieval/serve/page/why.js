// The panel beside the hits: the words learnt and who taught them, or one document's score and text.

import { byId, day, el, many, marked, number, quoted, redrawn, roving, signed } from "./dom.js";
import { judging } from "./hits.js";

const FIRST_WORDS = 24;
const FIRST_SCORES = 12;
const STEP = 1.25;
let showsAll = false;

function chip({ term, weight, part, dropped }, edited, top, act) {
  const told = dropped ? "dropped" : `weight ${number(weight)}${edited ? ", yours" : ""}`;
  const keys = { Delete: () => act.drop(term), Backspace: () => act.drop(term), "+": () => act.weigh(term, weight * STEP),
    "=": () => act.weigh(term, weight * STEP), "-": () => act.weigh(term, weight / STEP) };
  const press = (event) => {
    if (!keys[event.key] || (dropped && event.key.length === 1)) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };
  const small = (label, sign, click) => el("button", { class: "nudge", type: "button", tabindex: -1, "aria-label": `${label}: ${term}`,
    title: label, onclick: click }, sign);
  return el("li", { class: `chip ${part}${dropped ? " dropped" : ""}${edited ? " edited" : ""}`, "data-term": term,
    vars: { "--share": dropped ? 0 : Math.sqrt(Math.max(0, weight / top)) } },
    el("button", { class: "word", type: "button", tabindex: -1, "data-key": `word:${term}`, "aria-pressed": String(!dropped), title: told,
      "aria-label": `${term}, ${told}, ${part === "query" ? "of the query" : "learnt"}`, onclick: () => act.drop(term), onkeydown: press }, quoted(term)),
    !dropped && small("weigh less", "−", () => act.weigh(term, weight / STEP)),
    !dropped && small("weigh more", "+", () => act.weigh(term, weight * STEP)));
}

function words(answer, state, act) {
  const all = answer.words;
  const isEdited = (word) => word.term in state.weights;
  const shown = showsAll ? all : all.filter((word, i) => i < FIRST_WORDS || word.dropped || isEdited(word));
  const top = Math.max(...all.map((word) => word.weight), 1e-300);
  const list = el("ul", { class: "chips", "aria-label": "Words; arrows move, Enter drops, plus and minus weigh" }, shown.map((word) => chip(word, isEdited(word), top, act)));
  roving(list, ".word");
  const first = list.querySelector(".word");
  if (first) first.tabIndex = 0;
  const edits = state.drop.length + Object.keys(state.weights).length;
  const add = el("form", { class: "add", onsubmit: (event) => {
    event.preventDefault();
    const term = event.target.term.value.trim().toLowerCase();
    if (term) act.weigh(term, top / 4);
  } }, el("input", { name: "term", "data-key": "add-word", "aria-label": "Add a word, as the index has it", placeholder: "add a word",
    autocomplete: "off", maxlength: 100 }));
  return [el("h2", {}, "Words ", el("small", {}, quoted(answer.model))), list,
    el("div", { class: "under" }, add,
      all.length > FIRST_WORDS && el("button", { class: "plain small", type: "button", "data-key": "all-words", onclick: () => { showsAll = !showsAll; act.redraw(); } },
        showsAll ? "fewer" : `all ${all.length}`),
      edits > 0 && el("button", { class: "plain small", type: "button", "data-key": "undo-words", onclick: act.undoWords }, `undo ${many(edits, "edit")}`),
      el("span", {}, el("i", { class: "key query" }), "of the query"), el("span", {}, el("i", { class: "key feedback" }), "learnt"))];
}

function teachers(answer, state, act) {
  if (!answer.feedback?.length) return null;
  const top = Math.max(...answer.feedback.map((one) => one.weight), 1e-300);
  const point = (terms) => { for (const item of byId("why").querySelectorAll(".chip")) item.classList.toggle("taught", terms.includes(item.dataset.term)); };
  const row = (one) => el("li", { onpointerenter: () => point(one.terms ?? []), onpointerleave: () => point([]) },
    el("button", { class: "title", type: "button", "data-key": `teacher:${one.docid}`, onclick: () => act.open(one.docid),
      onfocus: () => point(one.terms ?? []), onblur: () => point([]) },
      state.relevant.includes(one.docid) && el("span", { class: "judged" }, "✓ "), quoted(one.title || one.docid)),
    bar(one.weight / top, "feedback"), el("span", { class: "figures" }, number(one.weight)),
    one.terms?.length ? el("span", { class: "taught-terms" }, one.terms.slice(0, 6).map((term) => [quoted(term), " "])) : null);
  const rest = answer.feedback.slice(8);
  return [el("h2", {}, "Learnt from ", el("small", {}, many(answer.feedback.length, "document"))),
    el("ol", { class: "teachers" }, answer.feedback.slice(0, 8).map(row)),
    rest.length ? el("details", {}, el("summary", {}, `${rest.length} more`), el("ol", { class: "teachers" }, rest.map(row))) : null];
}

const bar = (share, part) => el("i", { class: `bar ${part}${share < 0 ? " minus" : ""}`, vars: { "--share": Math.min(1, Math.abs(share)) } });

export function drawQuery(answer, state, act) {
  const panel = byId("why");
  panel.classList.remove("opened");
  redrawn(panel, () => panel.replaceChildren(...[
    answer.note ? el("p", { class: "note" }, answer.note.replaceAll(" %", "\u00a0%")) : null, ...words(answer, state, act), ...(teachers(answer, state, act) ?? []),
    answer.certificate ? el("p", { class: "under certificate" }, `Nothing from ${day(answer.certificate.ceiling)} on was read: statistics of ${many(answer.certificate.documents, "document")}, `,
      el("code", {}, answer.certificate.statistics_sha256.slice(0, 16))) : null,
  ].filter(Boolean)));
}

/** A document: `found` is its text, `why` its score word by word; either may still be on its way. */
export function drawDocument({ docid, found, why, refusal }, answer, state, act) {
  const panel = byId("why");
  const hit = answer?.hits.find((one) => one.docid === docid);
  const title = found?.title ?? hit?.title ?? docid;
  const date = found?.date ?? hit?.date;
  panel.classList.add("opened");
  redrawn(panel, () => panel.replaceChildren(...[
    el("div", { class: "doc-head" }, judging(docid, state, act.judge),
      el("button", { class: "plain small", type: "button", "data-key": "close", onclick: act.close }, "close", el("kbd", {}, "Esc"))),
    el("h2", { id: "doc-title", tabindex: -1, "data-key": "doc-title" }, quoted(title)),
    el("p", { class: "facts" }, date && el("time", { datetime: date }, day(date)), quoted(docid, "docid"),
      why?.rank && el("span", {}, `rank ${why.rank}`), why && el("span", {}, `score ${number(why.score)}`)),
    refusal && el("p", { class: "refusal" }, refusal.message, " ", refusal.remedy),
    ...(why ? scored(why, act) : []),
    el("h3", {}, "Text"),
    el("div", { class: "text", dir: "auto" }, why?.text?.length ? marked(why.text) : found ? found.text ?? "This index keeps no text." : "…"),
  ].filter(Boolean)));
}

function scored(why, act) {
  const all = [...why.words].sort((a, b) => Math.abs(b.contribution) - Math.abs(a.contribution));
  const shown = showsAll ? all : all.slice(0, FIRST_SCORES);
  const rest = all.slice(shown.length);
  const sum = rest.reduce((total, word) => total + word.contribution, 0);
  const more = el("button", { class: "plain small", type: "button", "data-key": "all-scores", onclick: () => { showsAll = true; act.redraw(); } }, `${rest.length} more`);
  const rows = [...shown.map((word) => [quoted(word.term), word.contribution, word.part, `${many(word.count, "time")} in the text, weight ${number(word.weight, 4)}`]),
    rest.length && [more, sum, null], why.static && ["general English", why.static, "other"], why.time && ["time", why.time, "time"]].filter(Boolean);
  const top = Math.max(...rows.map(([, value, part]) => (part ? Math.abs(value) : 0)), 1e-300);
  return [el("h3", {}, "Its score, word by word"),
    el("table", { class: "scores" }, el("caption", { class: "hidden" }, "What each word adds to the score"), el("tbody", {}, rows.map(([name, value, part, title]) =>
      el("tr", { title: title ?? null }, el("th", { scope: "row" }, name), el("td", {}, part && bar(value / top, part)), el("td", { class: "figures" }, signed(value)))))),
    why.taught?.length ? [el("h3", {}, "Who taught its words"), el("ul", { class: "taught" }, why.taught.slice(0, 8).map((one) =>
      el("li", {}, el("button", { class: "title", type: "button", "data-key": `taught:${one.docid}`, onclick: () => act.open(one.docid) }, quoted(one.title || one.docid)), " ",
        el("span", { class: "taught-terms" }, one.terms.map((term) => [quoted(term.term ?? term), " "])))))] : []].flat();
}
