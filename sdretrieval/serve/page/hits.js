// The list of hits, its moves, and two lists side by side with lines between them.

import { button, byId, day, el, marked, number, quoted, redrawn, signed, svg } from "./dom.js";

/** Rank by docid, as deep as the answer tells. */
export function ranksOf(answer) {
  return new Map([...(answer.timeline ?? []), ...answer.hits].map((hit) => [hit.docid, hit.rank]));
}

export function judging(docid, state, judge) {
  const choice = (list, label, title) => button(() => judge(docid, list), { class: `judge ${list}`, title,
    "data-key": `${list}:${docid}`, "aria-pressed": String(state[list].includes(docid)) }, label);
  return el("span", { class: "judging", role: "group", "aria-label": "Judge" },
    choice("relevant", "relevant", "Learn from it (r)"), choice("nonrelevant", "not", "Not relevant (n)"));
}

function move(before, now) {
  if (before === now) return null;
  const by = Math.abs(before - now);
  const [name, text, said] = before === undefined ? ["new", "new", "new here"]
    : before > now ? ["up", `↑ ${by}`, `up ${by}`] : ["down", `↓ ${by}`, `down ${by}`];
  return el("span", { class: `move ${name}` }, el("span", { "aria-hidden": "true" }, text),
    el("span", { class: "hidden" }, said));
}

function hitItem(hit, { state, before, act, side }) {
  const isCurrent = state.doc === hit.docid;
  const added = hit.time_adjustment;
  return el("li", { class: `hit${isCurrent ? " current" : ""}`, "data-docid": hit.docid },
    el("div", { class: "place" }, el("span", { class: "rank" }, hit.rank),
      before && move(before.get(hit.docid), hit.rank)),
    el("div", { class: "told" },
      el("h3", {}, button(() => act.open(hit.docid), { class: "title", "data-key": `open:${side}:${hit.docid}`,
        "aria-expanded": String(isCurrent) }, quoted(hit.title || hit.docid))),
      hit.snippet?.length ? el("p", { class: "snippet" }, el("bdi", {}, marked(hit.snippet))) : null,
      el("div", { class: "facts" }, hit.date && el("time", { datetime: hit.date }, day(hit.date)),
        quoted(hit.docid, "docid"), el("span", { class: "score", title: "score" }, number(hit.score)),
        added ? el("span", { class: "adjusted", title: "what time adds to the score" }, `time ${signed(added)}`) : null,
        judging(hit.docid, state, act.judge))));
}

function column(answer, context, side) {
  const { since, until } = context.state;
  if (!answer.hits.length)
    return el("p", { class: "nothing" }, "Nothing has these words", since || until ? " in this range of time." : ".");
  return el("ol", { class: "list", "data-side": side, "aria-label": `Hits of ${answer.model}` },
    answer.hits.map((hit) => hitItem(hit, { ...context, side })));
}

/** Draw one answer, or two beside each other. `before` are ranks to tell moves from. */
export function drawHits(answer, other, context) {
  const holder = byId("hits");
  const top = (item) => item.getBoundingClientRect().top;
  const tops = new Map([...holder.querySelectorAll("[data-side=a] .hit")].map((hit) => [hit.dataset.docid, top(hit)]));
  redrawn(holder, () => holder.replaceChildren(other ? pair(answer, other, context) : column(answer, context, "a")));
  if (other) drawLines();
  else if (context.before) slide(holder, tops);
}

function pair(answer, other, context) {
  const named = (shown, side, before, told) => el("div", {},
    el("h2", { class: "which" }, quoted(shown.model), told && el("small", {}, told)),
    column(shown, { ...context, before }, side));
  const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
  return el("div", { class: "pair" }, named(answer, "a", context.before), lines,
    named(other, "b", ranksOf(answer), "at its defaults; moves from the left"));
}

/** Hits go from where they were to where they are. */
function slide(holder, tops) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const item of holder.querySelectorAll(".hit")) {
    const by = tops.get(item.dataset.docid) - item.getBoundingClientRect().top;
    if (by) item.animate({ transform: [`translateY(${by}px)`, "none"] }, { duration: 260, easing: "ease-out" });
    else if (Number.isNaN(by)) item.animate({ opacity: [0, 1] }, 260);
  }
}

/** From each document on the left to itself on the right. */
export function drawLines() {
  const drawing = document.querySelector("#hits .lines");
  if (!drawing) return;
  const box = drawing.getBoundingClientRect();
  const heights = (side) => new Map([...document.querySelectorAll(`[data-side=${side}] .hit`)].map((item) => {
    const place = item.querySelector(".rank").getBoundingClientRect();
    return [item.dataset.docid, place.top + place.height / 2 - box.top];
  }));
  const right = heights("b");
  const bend = box.width / 2;
  drawing.replaceChildren(...[...heights("a")].filter(([docid]) => right.has(docid)).map(([docid, from]) => {
    const to = right.get(docid);
    const way = to < from - 1 ? "up" : to > from + 1 ? "down" : "level";
    const curve = `M0,${from}C${bend},${from} ${bend},${to} ${box.width},${to}`;
    return svg("path", { class: `line ${way}`, "data-docid": docid, d: curve });
  }));
}
