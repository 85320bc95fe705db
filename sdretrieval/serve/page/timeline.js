// Hits on a line of time: height is rank, behind them where they crowd and what the prior makes of it.
// A range is drawn with the pointer, or moved by its two ends, which are sliders for the keyboard.

import { DAY, byId, isoDay, many, svg } from "./dom.js";

const HEIGHT = 132;
const PAD = { left: 10, right: 10, top: 10, bottom: 22 };
const DEEPEST = 200; // ranks that the server tells dates of
// What a saved drawing holds of its looks.
const WRITTEN = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size",
  "font-family"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export class Timeline {
  /** `ranged(since, until)` is told days or nulls; `opened(docid)` a dot that was clicked. */
  constructor(holder, { ranged, opened }) {
    Object.assign(this, { holder, ranged, opened, range: [null, null], answer: null });
    new ResizeObserver(() => this.draw()).observe(holder);
    holder.addEventListener("pointerdown", (event) => this.#press(event));
    holder.addEventListener("dblclick", () => this.ranged(null, null));
    holder.addEventListener("keydown", (event) => this.#key(event));
  }

  show(answer, { first, last, since, until, hits, marks }) {
    Object.assign(this, { answer, hits, marks,
      first: Math.floor(Date.parse(first) / DAY) * DAY, last: Math.ceil((Date.parse(last) + 1) / DAY) * DAY - 1 });
    // A day ends at its last moment: a range is of whole days.
    this.range = [since ? Date.parse(since) : null, until ? Date.parse(until) + DAY - 1 : null];
    this.draw();
  }

  get #room() { return this.width - PAD.left - PAD.right; }

  x = (ms) => PAD.left + ((ms - this.first) / Math.max(1, this.last - this.first)) * this.#room;

  #ms(x) {
    const share = (x - PAD.left) / this.#room;
    return this.first + Math.max(0, Math.min(1, share)) * (this.last - this.first);
  }

  /** The first ranks get most of the height. */
  #y = (rank) => PAD.top + (Math.log(rank) / Math.log(DEEPEST)) * (HEIGHT - PAD.top - PAD.bottom - 8);

  draw() {
    this.width = this.holder.clientWidth;
    if (!this.answer || this.width < 40) return;
    const focused = this.holder.contains(document.activeElement) ? document.activeElement.dataset.end : null;
    const floor = HEIGHT - PAD.bottom;
    const size = { width: this.width, height: HEIGHT, viewBox: `0 0 ${this.width} ${HEIGHT}` };
    const drawing = svg("svg", { ...size, class: "timeline" },
      svg("g", { "aria-hidden": "true" }, this.#axis(floor), this.#curves(floor)),
      this.#brush(floor),
      svg("g", { role: "img", "aria-label": this.#told() }, this.#dots()));
    this.holder.replaceChildren(drawing);
    if (focused) this.holder.querySelector(`[data-end=${focused}]`).focus();
  }

  #told() {
    const { timeline } = this.answer;
    if (!timeline.length) return "No dated hits";
    const dates = timeline.map((hit) => hit.date.slice(0, 10)).sort();
    const half = dates[dates.length >> 1];
    return `${many(timeline.length, "hit")} from ${dates[0]} to ${dates.at(-1)}, half of them by ${half}`;
  }

  #axis(floor) {
    const marks = ticks(this.first, this.last, this.width / 80).map(({ at, name }) => svg("g", {},
      svg("line", { class: "grid", x1: this.x(at), x2: this.x(at), y1: PAD.top, y2: floor }),
      svg("text", { x: this.x(at) + 4, y: HEIGHT - 6 }, name)));
    const line = (name, x1, x2, y1) => svg("line", { class: name, x1, x2, y1, y2: floor });
    const now = this.x(Date.parse(this.answer.time?.query_time));
    return [marks, line("axis", PAD.left, this.width - PAD.right, floor),
      now <= this.width - PAD.right + 1 && line("now", now, now, 2)];
  }

  #curves(floor) {
    const { density, prior } = this.answer.time ?? {};
    const path = (name, curve, end) => svg("path", { class: name, d: `M${this.#points(curve, floor)}${end}` });
    const ground = `L${this.x(this.last)},${floor}L${this.x(this.first)},${floor}Z`;
    return [density?.length > 1 && path("density", density, ground),
      prior?.some(([, value]) => value !== prior[0][1]) && path("prior", prior, "")];
  }

  #points(curve, floor) {
    const within = curve.map(([date, value]) => [Date.parse(date), value])
      .filter(([at]) => at >= this.first && at <= this.last);
    // A density stands on zero; a prior may take away as well as add.
    const low = Math.min(0, ...within.map(([, value]) => value));
    const room = Math.max(...within.map(([, value]) => value - low), 1e-300);
    const y = (value) => floor - ((value - low) / room) * (floor - PAD.top);
    return within.map(([at, value]) => `${this.x(at).toFixed(1)},${y(value).toFixed(1)}`).join("L");
  }

  #dots() {
    const [relevant, nonrelevant] = this.marks;
    const hits = this.answer.timeline.filter((hit) => hit.date && hit.rank <= DEEPEST).toReversed();
    return hits.map((hit) => {
      const judged = relevant.has(hit.docid) ? " relevant" : nonrelevant.has(hit.docid) ? " nonrelevant" : "";
      const shown = hit.rank <= this.hits;
      return svg("circle", { class: `dot${shown ? " shown" : ""}${judged}`, cx: this.x(Date.parse(hit.date)).toFixed(1),
        cy: this.#y(hit.rank).toFixed(1), r: shown ? 4 : 2.2, "data-docid": hit.docid },
        svg("title", {}, `${hit.rank}. ${hit.title ?? hit.docid}, ${hit.date.slice(0, 10)}`));
    });
  }

  #brush(floor) {
    const [since, until] = this.range;
    const from = since ?? this.first, to = until ?? this.last;
    const shade = (a, b) => b > a && svg("rect", { class: "outside", x: a, y: 0, width: b - a, height: floor });
    const isOpen = since === null && until === null;
    return svg("g", {},
      shade(PAD.left, this.x(from)), shade(this.x(to), this.width - PAD.right),
      [["since", "Hits from", from], ["until", "Hits until", to]].map(([end, label, at]) => svg("g", {
        class: `handle${isOpen ? " open" : ""}`, tabindex: 0, role: "slider", "data-end": end, "aria-label": label,
        "aria-valuemin": Math.floor(this.first / DAY), "aria-valuemax": Math.floor(this.last / DAY),
        "aria-valuenow": Math.floor(at / DAY), "aria-valuetext": isoDay(at), "aria-orientation": "horizontal" },
        svg("rect", { class: "grip", x: this.x(at) - 9, y: 0, width: 18, height: floor }),
        svg("line", { x1: this.x(at), x2: this.x(at), y1: 0, y2: floor }),
        svg("rect", { class: "knob", x: this.x(at) - 4, y: floor / 2 - 12, width: 8, height: 24, rx: 4 }))));
  }

  #press(event) {
    const docid = event.target.dataset?.docid ?? null;
    const end = event.target.closest("[data-end]")?.dataset.end;
    const box = this.holder.getBoundingClientRect();
    const began = this.#ms(event.clientX - box.left);
    const [from, to] = [this.range[0] ?? this.first, this.range[1] ?? this.last];
    const fixed = end === "since" ? to : end === "until" ? from : began;
    let moved = false;
    const move = (now) => {
      if (Math.abs(now.clientX - event.clientX) > 4) moved = true;
      if (!moved) return;
      this.range = [fixed, this.#ms(now.clientX - box.left)].sort((a, b) => a - b);
      this.draw();
      byId("range-told").textContent = this.range.map(isoDay).join(" to ");
    };
    const release = () => {
      removeEventListener("pointermove", move);
      byId("range-told").textContent = "";
      if (moved) this.#chosen();
      else if (docid) this.opened(docid);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", release, { once: true });
    if (!end) event.preventDefault(); // no text is selected by dragging
  }

  #key(event) {
    const end = event.target.dataset?.end;
    const span = (this.last - this.first) / 12;
    const step = { ArrowLeft: -DAY, ArrowRight: DAY, ArrowDown: -DAY, ArrowUp: DAY, PageDown: -span,
      PageUp: span }[event.key];
    const jump = { Home: this.first, End: this.last }[event.key];
    if (!end || (step === undefined && jump === undefined)) return;
    event.preventDefault();
    const [from, to] = [this.range[0] ?? this.first, this.range[1] ?? this.last];
    const at = jump ?? (end === "since" ? from : to) + step * (event.shiftKey ? 7 : 1);
    this.range = end === "since" ? [Math.max(this.first, Math.min(at, to)), to]
      : [from, Math.min(this.last, Math.max(at, from))];
    this.draw();
    this.#chosen();
  }

  /** An end at the edge of the collection bounds nothing. */
  #chosen() {
    const [from, to] = this.range;
    this.ranged(from <= this.first ? null : isoDay(from), to >= this.last ? null : isoDay(to));
  }

  /** The drawing as it is seen, with its colours written into it. */
  figure() {
    const seen = this.holder.querySelector("svg");
    const copy = seen.cloneNode(true);
    const [nodes, twins] = [seen, copy].map((root) => [root, ...root.querySelectorAll("*")]);
    nodes.forEach((node, i) => {
      const style = getComputedStyle(node);
      for (const name of WRITTEN) twins[i].setAttribute(name, style.getPropertyValue(name));
      for (const name of ["class", "tabindex", "role"]) twins[i].removeAttribute(name);
    });
    const { backgroundColor } = getComputedStyle(this.holder.closest("section"));
    const paper = svg("rect", { width: "100%", height: "100%", fill: backgroundColor });
    copy.prepend(svg("title", {}, `${this.answer.query}: ${this.#told()}`), paper);
    return new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  }
}

/** Round moments, as many as there is room for: years, months or days. */
function ticks(first, last, room) {
  const months = (last - first) / (30.4 * DAY);
  const start = new Date(first);
  const found = [];
  if (months < 2) {
    const step = Math.max(1, Math.ceil((last - first) / DAY / room)) * DAY;
    for (let at = Math.ceil(first / DAY) * DAY; at <= last; at += step) found.push({ at, name: isoDay(at).slice(5) });
    return found;
  }
  const steps = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600];
  const step = steps.find((s) => months / s <= room) ?? 1200;
  const from = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / step) * step;
  for (let month = from; ; month += step) {
    const at = Date.UTC(Math.floor(month / 12), month % 12);
    if (at > last) return found;
    const isYear = month % 12 === 0;
    if (at >= first) found.push({ at, name: isYear ? String(month / 12) : MONTHS[month % 12] });
  }
}
