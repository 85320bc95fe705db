// The workbench: the state, what changes it, and what is drawn from it.

import * as address from "./address.js";
import { DAY, button, byId, day, debounced, duration, el, many, number, quoted, saveAs } from "./dom.js";
import { drawHits, drawLines, ranksOf } from "./hits.js";
import { bindKeys, helpSheet } from "./keys.js";
import { complain as tell, nextTheme, startTheme } from "./looks.js";
import { drawParameters, fillModels } from "./models.js";
import * as server from "./server.js";
import { Timeline } from "./timeline.js";
import { drawDocument, drawQuery } from "./why.js";

let indexes = [];
let state = address.read(location.search);
let answer = null; // of the model, `other` of the one beside it
let other = null;
let opened = null; // the document in the panel
let before = null; // ranks that moves are told from
let wasSliding = false;

const index = () => indexes.find((one) => one.name === state.index) ?? indexes[0];
const model = () => index().models.find((one) => one.name === state.model);
const act = { open, close, judge, drop, weigh, undoWords, redraw: () => draw() };
const timeline = new Timeline(byId("timeline"), { opened: open, ranged: (since, until) => change({ since, until }) });

// --- from state to answer ------------------------------------------------------------------------------------------

/** Change the state and ask again. A slide replaces the address instead of adding to the history. */
function change(changes, { slide = false } = {}) {
  Object.assign(state, changes);
  keep(slide);
  return ask(slide);
}

function keep(replaces) {
  history[replaces ? "replaceState" : "pushState"](null, "", address.write(state));
}

/** No settings, no time. */
const NO_DATES = { since: null, until: null, as_of: null };
const BARE = () => ({ ...NO_DATES, set: {}, time_prior: "none", time_weight: null, bandwidth: null });

/** What another query leaves behind: all that was learnt or chosen for this one. */
const FRESH = () => ({ relevant: [], nonrelevant: [], drop: [], weights: {}, doc: null });

async function ask(slide = false) {
  drawControls();
  if (!state.q) {
    answer = other = null;
    return draw();
  }
  const body = address.request(state);
  const isSame = answer?.query === state.q && answer?.index === state.index;
  const from = !isSame ? null : slide && wasSliding ? before : ranksOf(answer);
  byId("bench").setAttribute("aria-busy", "true");
  try {
    const [first, second] = await Promise.all([server.search("search", state.index, body), beside(body)]);
    [answer, other, before, wasSliding] = [first, second, from, slide];
    byId("alert").replaceChildren();
    draw();
    say();
    if (state.doc) show(state.doc);
  } catch (error) {
    if (server.isSuperseded(error)) return;
    complain(error);
  }
  byId("bench").removeAttribute("aria-busy");
}

/** The model beside it has its own defaults and no edits of words; query, time and judgments are the same. */
function beside({ set, drop, weights, ...body }) {
  if (state.compare) return server.search("beside", state.index, { ...body, model: state.compare });
  server.leave("beside");
  return null;
}

function say() {
  const ranks = before && answer.hits.filter((hit) => before.get(hit.docid) !== hit.rank).length;
  const moved = before ? (ranks ? `, ${ranks} moved` : ", none moved") : "";
  const of = Number.isFinite(answer.candidates) ? ` · ${many(answer.candidates, "document")} with a word of it` : "";
  const took = answer.milliseconds ? ` · ${Math.max(1, Math.round(answer.milliseconds))} ms` : "";
  byId("status").textContent = `${many(answer.hits.length, "hit")}${moved}${of}${took}`;
}

function complain(error) {
  const again = () => button(() => change({ ...BARE(), ...FRESH() }), { class: "plain small again" },
    "the query alone, without settings and edits");
  tell(error, start, error.status === 400 && state.q ? again() : "");
}

// --- what can be done ----------------------------------------------------------------------------------------------

async function open(docid) {
  state.doc = docid;
  keep(true);
  await show(docid);
  byId("doc-title")?.focus();
}

/** Text and explanation come as they come; neither waits for the other. */
async function show(docid) {
  opened = opened?.docid === docid ? { ...opened, why: null } : { docid };
  draw();
  const part = (promise, name) => promise.then((value) => ({ [name]: value }), (error) => {
    if (!server.isSuperseded(error)) return { refusal: error };
  }).then((got) => {
    if (opened?.docid !== docid || !got) return;
    Object.assign(opened, got);
    drawPanel();
  });
  await Promise.all([opened.found ?? part(server.documentOf(state.index, docid), "found"),
    state.q && part(server.explain(state.index, { ...address.request(state), docid }), "why")]);
}

function close() {
  const docid = state.doc;
  Object.assign(state, { doc: null });
  opened = null;
  keep(true);
  draw();
  (titleOf(docid) ?? byId("q")).focus();
}

const titleOf = (docid) => docid && document.querySelector(`.hit[data-docid="${CSS.escape(docid)}"] .title`);

function judge(docid, list) {
  const isOff = state[list].includes(docid);
  const without = (name) => state[name].filter((one) => one !== docid);
  const [relevant, nonrelevant] = [without("relevant"), without("nonrelevant")];
  if (!isOff) ({ relevant, nonrelevant })[list].push(docid);
  change({ relevant, nonrelevant });
}

function drop(term) {
  const weights = { ...state.weights };
  delete weights[term];
  const others = state.drop.filter((one) => one !== term);
  change({ weights, drop: state.drop.includes(term) ? others : [...others, term] });
}

function weigh(term, weight) {
  change({ weights: { ...state.weights, [term]: Number(weight.toPrecision(3)) } }, { slide: true });
}

function undoWords() {
  change({ drop: [], weights: {} });
}

// --- drawing -------------------------------------------------------------------------------------------------------

function draw() {
  document.title = state.q ? `${state.q} · sdretrieval` : "sdretrieval";
  document.body.classList.toggle("empty", !answer);
  byId("bench").classList.toggle("compared", Boolean(other));
  if (!answer) return welcome();
  drawHits(answer, other, { state, before, act });
  drawPanel();
  const hits = Math.max(0, ...answer.hits.map((hit) => hit.rank));
  byId("time").hidden = !index().dated;
  byId("time").classList.toggle("even", !answer.time?.prior?.length);
  if (index().dated) {
    const { first_date: first, last_date: last } = index();
    const marks = [new Set(state.relevant), new Set(state.nonrelevant)];
    timeline.show(answer, { first, last, since: state.since, until: state.until, hits, marks });
  }
  drawTimeTold();
}

function drawPanel() {
  if (state.doc && opened) drawDocument(opened, answer, state, act);
  else if (answer) drawQuery(answer, state, act);
  for (const item of document.querySelectorAll(".hit"))
    item.classList.toggle("current", item.dataset.docid === state.doc);
}

function welcome() {
  const { name, documents, dated, first_date: first, last_date: last } = index();
  byId("why").replaceChildren();
  byId("time").hidden = true;
  byId("hits").replaceChildren(el("div", { class: "welcome" },
    el("p", { class: "large" }, quoted(name), `: ${many(documents, "document")}`,
      dated && `, ${day(first)} to ${day(last)}`, "."),
    el("p", {}, "Type a query and press Enter. ", el("kbd", {}, "?"), " shows the keys.")));
}

// --- controls ------------------------------------------------------------------------------------------------------

/** The width's slider is logarithmic: from six hours to half the collection. */
const widest = () => Math.max(2, (Date.parse(index().last_date) - Date.parse(index().first_date)) / DAY / 2);
const daysAt = (slide) => 0.25 * (widest() / 0.25) ** (slide / 100);
const slideAt = (days) => (100 * Math.log(Math.max(0.25, days) / 0.25)) / Math.log(widest() / 0.25);

function drawControls() {
  if (byId("q") !== document.activeElement || byId("q").value === "") byId("q").value = state.q ?? "";
  byId("index").value = state.index;
  fillModels(index(), state);
  drawParameters(model(), state, (set) => change({ set }, { slide: true }));
  byId("hits-count").value = String(state.hits);
  for (const name of Object.keys(NO_DATES)) byId(name).value = state[name] ?? "";
  byId("prior").value = state.time_prior;
  byId("clear-time").hidden = !(state.since || state.until || state.as_of);
}

/** What the sliders stand at: as the user says, else as the server found. */
function drawTimeTold() {
  const { weight, bandwidth_days: found } = answer?.time ?? {};
  const isShaped = address.isShaped(state);
  const days = (isShaped && state.bandwidth && parseFloat(state.bandwidth)) || found;
  const shown = (isShaped && state.time_weight !== null ? state.time_weight : weight) ?? 0;
  if (byId("width") !== document.activeElement || !state.bandwidth) byId("width").value = days ? slideAt(days) : 50;
  if (byId("weight") !== document.activeElement || state.time_weight === null) byId("weight").value = shown;
  tellSlide("width", days ? duration(days) : "", isShaped && state.bandwidth);
  tellSlide("weight", state.time_prior === "none" ? "off" : number(shown, 2), isShaped && state.time_weight !== null);
}

function tellSlide(id, text, isGiven) {
  byId(`${id}-told`).textContent = text;
  byId(id).setAttribute("aria-valuetext", `${text}${isGiven ? "" : ", automatic"}`);
  byId(`${id}-auto`).setAttribute("aria-pressed", String(!isGiven));
}

/** A slider says something only beside a prior that has it. */
const shaped = () => (address.isShaped(state) ? {} : { time_prior: "density" });
const slid = debounced(140, (changes) => change({ ...changes, ...shaped() }, { slide: true }));

function bindControls() {
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const q = byId("q").value.trim();
    change(q === state.q ? {} : { q, ...FRESH() });
    if (q) byId("q").blur();
  });
  const choose = (id, changes) => byId(id).addEventListener("change", (event) => change(changes(event.target.value)));
  choose("index", (name) => ({ ...FRESH(), ...NO_DATES, index: name, set: {} }));
  choose("model", (name) => ({ model: name, set: {}, drop: [], weights: {} }));
  choose("compare", (name) => ({ compare: name || null }));
  choose("hits-count", (hits) => ({ hits: Number(hits) }));
  choose("prior", (kind) => ({ time_prior: kind }));
  for (const name of Object.keys(NO_DATES)) choose(name, (value) => ({ [name]: value || null }));
  byId("clear-time").addEventListener("click", () => change({ ...NO_DATES }));
  byId("width").addEventListener("input", (event) => {
    const days = daysAt(Number(event.target.value));
    tellSlide("width", duration(days), true);
    slid({ bandwidth: `${days.toPrecision(3)}d` });
  });
  byId("weight").addEventListener("input", (event) => {
    tellSlide("weight", number(Number(event.target.value), 2), true);
    slid({ time_weight: Number(event.target.value) });
  });
  byId("width-auto").addEventListener("click", () => change({ bandwidth: null }));
  byId("weight-auto").addEventListener("click", () => change({ time_weight: null }));
  for (const choice of document.querySelectorAll("[data-save]"))
    choice.addEventListener("click", () => save(choice.dataset.save));
  document.addEventListener("click", (event) => {
    for (const pop of document.querySelectorAll("details.pop[open]")) if (!pop.contains(event.target)) pop.open = false;
  });
  byId("hits").addEventListener("pointerover", (event) => {
    const docid = event.target.closest(".hit")?.dataset.docid;
    for (const thing of document.querySelectorAll("#timeline .dot, .lines .line, .hit"))
      thing.classList.toggle("pointed", thing.dataset.docid === docid);
  });
  addEventListener("resize", drawLines);
  addEventListener("popstate", () => {
    state = known(address.read(location.search));
    opened = state.doc ? { docid: state.doc } : null;
    byId("q").value = state.q ?? "";
    ask();
  });
}

async function save(what) {
  byId("save").open = false;
  byId("save").querySelector("summary").focus();
  const name = (state.q ?? "").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40) || "query";
  try {
    if (what === "link") {
      await navigator.clipboard.writeText(location.href);
      byId("status").textContent = "The link is copied.";
    } else if (!answer) return;
    else if (what === "figure") saveAs(`${name}.svg`, timeline.figure());
    else {
      const text = await server.saved(state.index, { ...address.request(state), format: what });
      saveAs(what === "run" ? `${name}.txt` : `${name}.expansion.jsonl`, text);
    }
  } catch (error) {
    const denied = new server.Refusal("The browser does not allow it.", "Copy it from the address bar.");
    complain(error instanceof server.Refusal ? error : denied);
  }
}

// --- beginning -----------------------------------------------------------------------------------------------------

/** An address may name what is not here. */
function known(read) {
  const here = indexes.find((one) => one.name === read.index) ?? indexes[0];
  const names = here.models.map((one) => one.name);
  const first = names.includes("blend") ? "blend" : names[0];
  const hits = [10, 20, 50, 100].includes(read.hits) ? read.hits : 20;
  return { ...read, index: here.name, hits, model: names.includes(read.model) ? read.model : first,
    compare: names.includes(read.compare) ? read.compare : null,
    time_prior: here.time_priors.includes(read.time_prior) ? read.time_prior : "none" };
}

async function start() {
  try {
    indexes = await server.indexes();
  } catch (error) {
    return complain(error);
  }
  byId("alert").replaceChildren();
  state = known(state);
  byId("index").replaceChildren(...indexes.map((one) => el("option", { value: one.name }, one.name)));
  byId("index-label").hidden = indexes.length < 2;
  byId("prior").replaceChildren(...index().time_priors.map((name) => el("option", { value: name }, name)));
  const { ceiling } = index();
  byId("ceiling").hidden = !ceiling;
  if (ceiling) byId("ceiling").textContent = `Only what was there before ${day(ceiling)}`;
  for (const name of Object.keys(NO_DATES)) if (ceiling) byId(name).max = day(ceiling);
  if (!state.q) byId("q").focus();
  await ask();
}

const KEYS = {
  "/": ["the query", () => byId("q").select()],
  j: ["next hit", () => step(1)],
  k: ["previous hit", () => step(-1)],
  Enter: ["open the hit: its score and text", null],
  Escape: ["close; from the query: to the hits", escape],
  r: ["judge the hit relevant, or take it back", () => judgeCurrent("relevant")],
  n: ["judge it not relevant", () => judgeCurrent("nonrelevant")],
  w: ["the words: arrows move, Enter drops, + and − weigh", () => focusOn(".word[tabindex='0']")],
  t: ["the time prior", () => byId("prior").focus()],
  "[": ["narrower kernel", () => nudge("width", -4)],
  "]": ["wider kernel", () => nudge("width", 4)],
  "{": ["less weight on time", () => nudge("weight", -0.1)],
  "}": ["more weight on time", () => nudge("weight", 0.1)],
  g: ["the range on the timeline: arrows move an end by a day, with Shift a week", () => focusOn("[data-end]")],
  m: ["the model", () => byId("model").focus()],
  p: ["its parameters", () => unfold("parameters", "input, select")],
  c: ["the model beside it", () => byId("compare").focus()],
  s: ["save", () => unfold("save", "button")],
  d: ["light, dark, or as the system has it", nextTheme],
  "?": ["these keys", () => help()],
};

const focusOn = (selector) => document.querySelector(selector)?.focus();

function unfold(id, selector) {
  byId(id).open = true;
  focusOn(`#${id} :is(${selector})`);
}

function current() {
  return document.activeElement.closest?.(".hit")?.dataset.docid ?? state.doc;
}

function step(by) {
  const titles = [...document.querySelectorAll("[data-side=a] .title")];
  if (!titles.length) return;
  const at = titles.findIndex((title) => title.closest(".hit").dataset.docid === current());
  const next = titles[at < 0 ? 0 : Math.max(0, Math.min(titles.length - 1, at + by))];
  next.focus();
  next.closest(".hit").scrollIntoView({ block: "nearest" });
  const { docid } = next.closest(".hit").dataset;
  if (state.doc && docid !== state.doc) open(docid).then(() => titleOf(docid)?.focus());
}

function judgeCurrent(list) {
  const docid = current();
  if (docid) judge(docid, list);
}

function nudge(id, by) {
  byId(id).value = Number(byId(id).value) + by;
  byId(id).dispatchEvent(new Event("input"));
}

function escape() {
  const pop = document.querySelector("details.pop[open]");
  if (pop) {
    pop.open = false;
    pop.querySelector("summary").focus();
  } else if (document.activeElement === byId("q")) {
    byId("q").blur();
    step(1);
  } else if (state.doc) close();
}

function help() {
  helpSheet(byId("help"), KEYS, "On the timeline: drag to choose a range, double-click to let it go, click a dot to open "
    + "its document. The address bar holds all that is seen: a link to it, a bookmark or a reload gives the same view.");
  byId("help").showModal();
}

server.takeToken();
startTheme();
byId("help-button").addEventListener("click", help);
bindControls();
bindKeys(KEYS);
start();
