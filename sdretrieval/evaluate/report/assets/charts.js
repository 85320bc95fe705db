// Charts as inline SVG, drawn from data. Colours come from CSS variables, so that light and dark both work.

const MARKERS = ["circle", "square", "diamond", "triangle"];

function runColour(i) {
  return { "--c": `var(--run-${i % 8})` };
}

/** A marker per run, so that colour is never the only sign. */
function marker(i, x, y, size = 4.2) {
  const kind = MARKERS[i % MARKERS.length];
  if (kind === "circle") return svg("circle", { cx: x, cy: y, r: size, class: "dot" });
  const s = size * (kind === "square" ? 0.9 : 1.25);
  const points = {
    square: [[-s, -s], [s, -s], [s, s], [-s, s]],
    diamond: [[0, -s], [s, 0], [0, s], [-s, 0]],
    triangle: [[0, -s], [s, 0.85 * s], [-s, 0.85 * s]],
  }[kind];
  return svg("polygon", { points: points.map(([dx, dy]) => `${x + dx},${y + dy}`).join(" "), class: "dot" });
}

function ticks(low, high, about) {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); (k - 1) * step < high - step * 1e-6; k += 1) found.push(k * step);
  return { found, places: Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9) + (step / power === 2.5 ? 1 : 0))) };
}

/** Charts are drawn for the room there is, so that their text stays readable on a phone. */
const narrow = window.matchMedia("(max-width: 46rem)");

/** Lines over labelled positions: recall levels or periods. series: [{run, values, margins}]
 *  counts: topics behind each position; drawn as bars, and as the size of markers, so that one topic does not look like thirty. */
function lineChart({ labels, series, xTitle, yTitle, every = 1, wide = false, describe, counts = null, hidden = new Set() }) {
  const [W, H] = narrow.matches ? [350, 280] : wide ? [1020, 360] : [640, 380];
  const left = 48, right = wide ? 30 : 14, top = 10, bottom = 46;
  const present = series.flatMap((s) => s.values).filter((v) => v !== null);
  const highest = Math.max(0.05, ...present);
  const most = counts ? Math.max(1, ...counts) : 1;
  const beside = (run) => 3 * (run - (series.length - 1) / 2); // whiskers of several runs do not hide each other
  const size = (i) => (counts ? 2.2 + 3 * Math.sqrt(counts[i] / most) : 4.2);
  const scale = ticks(0, highest, 5);
  const limit = scale.found[scale.found.length - 1];
  const x = (i) => left + (W - left - right) * (labels.length < 2 ? 0.5 : i / (labels.length - 1));
  const y = (v) => H - bottom - (H - top - bottom) * (v / limit);
  const guide = svg("line", { class: "guide", y1: top, y2: H - bottom, visibility: "hidden" });
  const root = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": describe },
    scale.found.map((v) => [
      svg("line", { class: "grid", x1: left, x2: W - right, y1: y(v), y2: y(v) }),
      svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, v.toFixed(scale.places)),
    ]),
    svg("line", { class: "axis", x1: left, x2: W - right, y1: H - bottom, y2: H - bottom }),
    labels.map((label, i) => i % (every * (narrow.matches ? 2 : 1)) === 0 &&
      svg("text", { x: x(i), y: H - bottom + 18, "text-anchor": "middle" }, label)),
    svg("text", { x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, xTitle),
    svg("text", { transform: `translate(13 ${(top + H - bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, yTitle),
    counts && counts.map((n, i) => svg("line", { class: "count", x1: x(i), x2: x(i), y1: H - bottom,
      y2: H - bottom - (36 * n) / most })),
    guide,
    series.filter((s) => !hidden.has(s.run)).map(({ run, values, margins }) => {
      const known = values.map((v, i) => [i, v]).filter(([, v]) => v !== null);
      return svg("g", { vars: runColour(run) },
        svg("polyline", { class: "line", points: known.map(([i, v]) => `${x(i)},${y(v)}`).join(" ") }),
        known.map(([i, v]) => margins && margins[i] !== null && svg("line", { class: "margin", x1: x(i) + beside(run), x2: x(i) + beside(run),
          y1: y(Math.max(0, v - margins[i])), y2: y(Math.min(limit, v + margins[i])) })),
        known.map(([i, v]) => marker(run, x(i), y(v), size(i))));
    }));
  return { root, guide, x, W, left, right };
}

/** The line chart with a legend that hides lines, and a readout that follows pointer and arrow keys. */
function lineFigure(options) {
  const { labels, series, names, readLabel } = options;
  const hidden = new Set();
  const holder = el("div", { class: "chart", tabindex: 0, role: "group",
    "aria-label": `${options.describe}. Use the left and right arrow keys to read values.` });
  const readout = el("div", { class: "readout figures", "aria-live": "polite" });
  let chart = null;
  let at = null;

  function read(i) {
    at = Math.max(0, Math.min(labels.length - 1, i));
    chart.guide.setAttribute("x1", chart.x(at));
    chart.guide.setAttribute("x2", chart.x(at));
    chart.guide.setAttribute("visibility", "visible");
    readout.replaceChildren(el("span", { class: "soft" }, readLabel(at)),
      ...series.filter((s) => !hidden.has(s.run)).map((s) => el("span", {},
        el("span", { class: "key", vars: runColour(s.run) }), quoted(names[s.run]), " ", fixed(s.values[at], 3),
        s.margins && s.margins[at] !== null && ` ± ${fixed(s.margins[at], 3)}`)));
  }

  function draw() {
    chart = lineChart({ ...options, hidden });
    holder.replaceChildren(chart.root);
    if (at !== null) read(at);
  }

  holder.addEventListener("pointermove", (event) => {
    const box = chart.root.getBoundingClientRect();
    const u = ((event.clientX - box.left) / box.width) * chart.W;
    read(Math.round(((u - chart.left) / (chart.W - chart.left - chart.right)) * (labels.length - 1)));
  });
  holder.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    read(at === null ? 0 : at + step);
  });
  const legend = el("ul", { class: "legend" }, series.map(({ run }) => el("li", {}, el("button", {
    class: "button", type: "button", "aria-pressed": "true",
    onclick: (event) => {
      if (hidden.has(run)) hidden.delete(run); else hidden.add(run);
      event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(run)));
      draw();
    } }, el("span", { class: "key", vars: runColour(run) }), quoted(names[run])))));
  draw();
  return el("div", {}, series.length > 1 && legend, holder, readout);
}

/** A difference with its confidence interval on a shared scale, zero marked. */
function whisker(difference, [low, high], extent, colour) {
  const W = 150, H = 18;
  const x = (v) => W / 2 + (W / 2 - 6) * Math.max(-1, Math.min(1, v / extent));
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, width: W, height: H, vars: { "--c": colour, width: "150px" }, "aria-hidden": "true" },
    svg("line", { class: "zero", x1: W / 2, x2: W / 2, y1: 0, y2: H }),
    low !== null && svg("line", { class: "whisker", x1: x(low), x2: x(high), y1: H / 2, y2: H / 2 }),
    difference !== null && svg("circle", { class: "dot", cx: x(difference), cy: H / 2, r: 4.5 }));
}

function timeTicks(low, high, about) {
  const day = 86400000;
  const steps = [3600000, 3 * 3600000, 6 * 3600000, 12 * 3600000, day, 2 * day, 4 * day, 7 * day, 14 * day];
  const step = steps.find((s) => (high - low) / s <= about);
  const found = [];
  if (step) {
    for (let t = Math.ceil(low / step) * step; t <= high; t += step) found.push(t);
    const hours = step < day;
    return found.map((t) => {
      const date = new Date(t);
      const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
      return [t, hours ? `${day} ${String(date.getUTCHours()).padStart(2, "0")}:00` : day];
    });
  }
  const months = Math.max(1, Math.ceil((high - low) / (30.4 * day) / about));
  const by = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600].find((m) => m >= months) || 1200;
  const date = new Date(low);
  for (let m = Math.ceil((date.getUTCFullYear() * 12 + date.getUTCMonth()) / by) * by; ; m += by) {
    const t = Date.UTC(Math.floor(m / 12), m % 12, 1);
    if (t > high) break;
    if (t >= low) found.push([t, by >= 12 ? String(Math.floor(m / 12)) : new Date(t).toISOString().slice(0, 7)]);
  }
  return found;
}

/** Scores over time, one strip per run, above the times of all relevant documents; the query time is dashed.
 *  Behind the scores, where a time prior played a part: what a document's time added, zero in the middle. */
function timelineChart({ timeline, shown, names, queryTime }) {
  const points = shown.map((run) => timeline.runs[run]);
  const times = [...points.flat().map((p) => p[0]), ...timeline.relevant, ...(queryTime === null ? [] : [queryTime])];
  let low = Math.min(...times), high = Math.max(...times);
  const margin = Math.max((high - low) * 0.02, 1800000);
  low -= margin;
  high += margin;
  const W = narrow.matches ? 360 : 720, left = 52, right = 10, strip = 120, gap = 26, tail = 54;
  const H = shown.length * (strip + gap) + tail + 26;
  const x = (t) => left + (W - left - right) * ((t - low) / (high - low));
  const bins = new Array(48).fill(0);
  for (const t of timeline.relevant) bins[Math.min(47, Math.floor(((t - low) / (high - low)) * 48))] += 1;
  const most = Math.max(1, ...bins);
  const base = shown.length * (strip + gap) + tail;
  const wide = (W - left - right) / 48;
  return svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img",
    "aria-label": "Scores of the first documents over time, and when the relevant documents were written" },
  timeTicks(low, high, narrow.matches ? 4 : 8).map(([t, label]) => [
    svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 16, y2: base }),
    svg("text", { x: x(t), y: base + 18, "text-anchor": "middle" }, label)]),
  queryTime !== null && svg("line", { class: "guide", x1: x(queryTime), x2: x(queryTime), y1: 16, y2: base }),
  queryTime !== null && svg("text", { x: x(queryTime), y: 10, "text-anchor": x(queryTime) > W / 2 ? "end" : "start" }, "query"),
  shown.map((run, k) => {
    const offset = k * (strip + gap) + gap;
    const scores = timeline.runs[run].map((p) => p[1]);
    const least = Math.min(...scores), span = Math.max(...scores) - least || 1;
    const y = (s) => offset + strip - 8 - (strip - 16) * ((s - least) / span);
    return svg("g", { vars: runColour(run) },
      priorArea((timeline.priors || [])[run] || [], { x, low, high, W, right, middle: offset + strip / 2, half: strip / 2 - 8 }),
      svg("line", { class: "axis", x1: left, x2: W - right, y1: offset + strip, y2: offset + strip }),
      svg("text", { x: left, y: offset - 6 }, names[run]),
      scores.length > 0 && [svg("text", { x: left - 6, y: y(least) + 4, "text-anchor": "end" }, compact(least)),
        svg("text", { x: left - 6, y: y(least + span) + 4, "text-anchor": "end" }, compact(least + span))],
      [...timeline.runs[run]].sort((a, b) => a[2] - b[2]).map(([t, s, relevant]) => svg("circle",
        { class: relevant ? "dot" : "ring", cx: x(t), cy: y(s), r: relevant ? 4.6 : 3 })));
  }),
  svg("g", { vars: { "--c": "var(--gain)" } },
    svg("line", { class: "axis", x1: left, x2: W - right, y1: base, y2: base }),
    svg("text", { x: left - 6, y: base - 2, "text-anchor": "end" }, "0"),
    svg("text", { x: left - 6, y: base - tail + 26, "text-anchor": "end" }, most),
    svg("text", { x: left, y: base - tail + 14 }, "relevant documents"),
    bins.map((n, i) => n > 0 && svg("rect", { class: "bar", rx: 1.5, x: left + i * wide + 0.5, width: wide - 1,
      y: base - ((tail - 26) * n) / most, height: ((tail - 26) * n) / most }))));
}

function priorArea(curve, { x, low, high, W, right, middle, half }) {
  const inside = curve.filter(([t]) => t >= low && t <= high);
  if (inside.length < 2) return null;
  const most = Math.max(...inside.map(([, nats]) => Math.abs(nats))) || 1;
  const line = inside.map(([t, nats]) => `${x(t).toFixed(1)},${(middle - (half * nats) / most).toFixed(1)}`);
  const ends = [x(inside[0][0]), x(inside[inside.length - 1][0])].map((at) => `${at.toFixed(1)},${middle}`);
  return [svg("polygon", { class: "prior", points: [ends[0], ...line, ends[1]].join(" ") }),
    svg("text", { x: W - right, y: middle - half - 14, "text-anchor": "end" }, `time adds up to ±${compact(most)}`)];
}

function compact(value) {
  return (Math.abs(value) >= 1000 || (value !== 0 && Math.abs(value) < 0.01) ? value.toExponential(1)
    : String(Number(value.toPrecision(3)))).replace("-", MINUS);
}
