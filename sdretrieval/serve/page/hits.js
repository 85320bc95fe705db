// The list of hits, its moves, and two lists side by side with lines between them.

import { byId, day, el, marked, number, quoted, redrawn, signed, svg } from "./dom.js";

/** Rank by docid, as deep as the answer tells. */
export function ranksOf(answer) {
  return new Map([...(answer.timeline ?? []), ...answer.hits].map((hit) => [hit.docid, hit.rank]));
}

export function judging(docid, state, judge) {
  const button = (list, label, title) => el("button", { class: `judge ${list}`, "data-key": `${list}:${docid}`, type: "button", title,
    "aria-pressed": String(state[list].includes(docid)), onclick: () => judge(docid, list) }, label);
  return el("span", { class: "judging", role: "group", "aria-label": "Judge" },
    button("relevant", "relevant", "Learn from it (r)"), button("nonrelevant", "not", "Not relevant (n)"));
}

function move(before, now) {
  if (before === now) return null;
  const [name, text, said] = before === undefined ? ["new", "new", "new here"]
    : before > now ? ["up", `↑ ${before - now}`, `up ${before - now}`] : ["down", `↓ ${now - before}`, `down ${now - before}`];
  return el("span", { class: `move ${name}` }, el("span", { "aria-hidden": "true" }, text), el("span", { class: "hidden" }, said));
}

function hitItem(hit, { state, before, act, side }) {
  const key = `open:${side}:${hit.docid}`;
  const facts = [hit.date && el("time", { datetime: hit.date }, day(hit.date)), quoted(hit.docid, "docid"),
    el("span", { class: "score", title: "score" }, number(hit.score)),
    hit.time_adjustment ? el("span", { class: "adjusted", title: "what time adds to the score" }, `time ${signed(hit.time_adjustment)}`) : null];
  return el("li", { class: `hit${state.doc === hit.docid ? " current" : ""}`, "data-docid": hit.docid },
    el("div", { class: "place" }, el("span", { class: "rank" }, hit.rank), before && move(before.get(hit.docid), hit.rank)),
    el("div", { class: "told" },
      el("h3", {}, el("button", { class: "title", type: "button", "data-key": key, "aria-expanded": String(state.doc === hit.docid),
        onclick: () => act.open(hit.docid) }, quoted(hit.title || hit.docid))),
      hit.snippet?.length ? el("p", { class: "snippet" }, el("bdi", {}, marked(hit.snippet))) : null,
      el("p", { class: "facts" }, facts, judging(hit.docid, state, act.judge))));
}

function column(answer, context, side) {
  const list = el("ol", { class: "list", "data-side": side, "aria-label": `Hits of ${answer.model}` },
    answer.hits.map((hit) => hitItem(hit, { ...context, side })));
  return answer.hits.length ? list : el("p", { class: "nothing" }, "Nothing has these words", context.state.since || context.state.until ? " in this range of time." : ".");
}

/** Draw one answer, or two beside each other. `before` are ranks to tell moves from. */
export function drawHits(answer, other, context) {
  const holder = byId("hits");
  const tops = new Map([...holder.querySelectorAll("[data-side=a] .hit")].map((item) => [item.dataset.docid, item.getBoundingClientRect().top]));
  redrawn(holder, () => {
    if (!other) return holder.replaceChildren(column(answer, context, "a"));
    const titled = (shown, side, before) => el("div", {}, el("h2", { class: "which" }, quoted(shown.model),
      side === "b" && el("small", {}, "at its defaults; moves from the left")), column(shown, { ...context, before }, side));
    holder.replaceChildren(el("div", { class: "pair" }, titled(answer, "a", context.before), svg("svg", { class: "lines", "aria-hidden": "true" }),
      titled(other, "b", ranksOf(answer))));
    drawLines();
  });
  if (!other && context.before) slide(holder, tops);
}

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
  const rows = (side) => new Map([...document.querySelectorAll(`[data-side=${side}] .hit`)].map((item) => {
    const place = item.querySelector(".rank").getBoundingClientRect();
    return [item.dataset.docid, place.top + place.height / 2 - box.top];
  }));
  const [left, right] = [rows("a"), rows("b")];
  const bend = box.width / 2;
  drawing.replaceChildren(...[...left].filter(([docid]) => right.has(docid)).map(([docid, from]) => {
    const to = right.get(docid);
    const way = to < from - 1 ? "up" : to > from + 1 ? "down" : "level";
    return svg("path", { class: `line ${way}`, "data-docid": docid, d: `M0,${from}C${bend},${from} ${bend},${to} ${box.width},${to}` });
  }));
}
