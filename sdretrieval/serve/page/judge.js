// Judging: a document at a time, by one key each, and beside it what is known so far.

import { button, byId, day, el, many, marked, number, quoted, redrawn, saveAs, svg } from "./dom.js";
import { bindKeys, helpSheet } from "./keys.js";
import { complain, nextTheme, startTheme } from "./looks.js";
import * as server from "./server.js";

const GRADES = [["0", "not relevant", "no", "n"], ["1", "relevant", "yes", "y"], ["2", "highly", "", "2"],
  ["3", "perfectly", "", "3"]];
const NAMES = { index: null, project: "default", who: "me", topic: null, way: "learn", first: "", second: "",
  other: "" };

let indexes = [];
let state = {};
let facts = null; // the project
let view = null; // a topic, and the document offered
let isBusy = false;

// --- asking --------------------------------------------------------------------------------------------------------

function readAddress() {
  const given = new URLSearchParams(location.search);
  state = Object.fromEntries(Object.entries(NAMES).map(([name, usual]) => [name, given.get(name) || usual]));
  if (!given.get("who")) state.who = localStorage.getItem("assessor") || "me";
  state.index = indexes.some((one) => one.name === state.index) ? state.index : indexes[0].name;
}

function keepAddress() {
  const told = Object.entries(state).filter(([name, value]) => value && value !== NAMES[name]);
  history.replaceState(null, "", `?${new URLSearchParams(told)}`);
}

/** One act at a time: a key struck twice judges once. */
async function act(name, body = {}) {
  if (isBusy) return null;
  isBusy = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await server.judging(state.index, state.project, name,
      { who: state.who, ...(state.topic && { qid: state.topic }), way: state.way, ...body });
    byId("alert").replaceChildren();
    return answer;
  } catch (error) {
    if (!server.isSuperseded(error)) complain(error, start);
    return null;
  } finally {
    isBusy = false;
    document.body.removeAttribute("aria-busy");
  }
}

async function openProject() {
  keepAddress();
  facts = await act("overview");
  if (!facts) return;
  await drawProject();
}

async function drawProject() {
  const known = facts.topics.map((one) => one.qid);
  if (!known.includes(state.topic)) state.topic = known[0] ?? null;
  keepAddress();
  drawControls();
  drawFiles();
  if (!state.topic) {
    view = null;
    return draw();
  }
  await ask("next");
}

/** Ask for a document, draw it, then what is beside it. */
async function ask(name, body) {
  const answer = await act(name, body);
  if (!answer) return;
  view = answer;
  if (view.topic && view.topic.qid !== state.topic) state.topic = view.topic.qid;
  keepAddress();
  draw();
  byId("document").focus({ preventScroll: true });
  scrollTo(0, 0);
  say(name);
  await beside();
}

function say(name) {
  const { topic, undone, offer } = view;
  const counts = topic ? `${many(topic.judged, "judged", "judged")}, ${topic.relevant} relevant` : "";
  const told = { undo: undone ? "Taken back. " : "Nothing to take back. ", judge: "Kept. " }[name] ?? "";
  byId("status").textContent = `${told}${counts}${offer?.left ? ` · ${many(offer.left, "document")} left` : ""}`;
}

const judge = (grade) => view?.offer && ask("judge", { qid: view.topic.qid, docid: view.offer.docid, grade,
  note: byId("note").value, came: view.offer.way });
const undo = () => state.topic && ask("undo");
const open = (qid, docid) => ask("open", { qid, docid });

// --- the document --------------------------------------------------------------------------------------------------

function draw() {
  document.title = view?.topic ? `${view.topic.text} · judge` : "Judge · sdretrieval";
  drawDocument();
  drawGrades();
  drawProgress();
  drawLast();
  drawTopics();
}

function drawDocument() {
  const { offer, topic } = view ?? {};
  const holder = byId("document");
  if (!topic) return holder.replaceChildren(empty());
  const asked = el("p", { class: "asked" }, "Topic ", quoted(topic.qid), ": ", el("b", {}, quoted(topic.text)));
  if (!offer) {
    return holder.replaceChildren(asked, el("p", { class: "nothing" }, "Nothing is left this way. ",
      topic.pool ? "Choose another way above, or another topic." : "There is no pool yet: make one under “Topics, pools, files”."));
  }
  const { title, date, text } = offer.document;
  const [speaks, against] = [offer.words.filter(([, w]) => w > 0), offer.words.filter(([, w]) => w < 0)];
  const list = (words, name, label) => words.length > 0 && el("span", { class: name }, `${label} `,
    quoted(words.map(([word]) => word).join(", ")));
  holder.replaceChildren(asked, el("h2", {}, quoted(title || offer.docid)),
    el("div", { class: "facts" }, date && el("time", { datetime: date }, day(date)), quoted(offer.docid, "docid")),
    el("p", { class: "because" }, list(speaks, "for", "speaks for it:"), list(against, "against", "against:")),
    text.length ? el("div", { class: "text" }, el("bdi", {}, marked(text)))
      : el("p", { class: "nothing" }, "The index has no text of this document."));
}

function empty() {
  const add = (event) => {
    event.preventDefault();
    addTopics(event.target.topic.value);
  };
  return el("div", { class: "welcome" },
    el("p", { class: "large" }, "What is to be judged?"),
    el("form", { class: "row", onsubmit: add, vars: { "justify-content": "center" } },
      el("input", { name: "topic", id: "first-topic", size: 40, maxlength: 4000, placeholder: "a topic, as one would say it",
        "aria-label": "A topic" }), el("button", { class: "main" }, "Begin")),
    el("p", {}, "Topics from a file, pools and runs: under “Topics, pools, files”."));
}

function drawGrades() {
  const holder = byId("grades");
  holder.hidden = !view?.offer;
  if (holder.hidden) return holder.replaceChildren();
  const before = view.before ?? view.undone;
  const grade = ([value, label, name, key]) => button(() => judge(Number(value)), { class: `grade ${name}`,
    "data-grade": value, "aria-keyshortcuts": key, "aria-pressed": String(String(before?.grade) === value) },
    label, el("kbd", {}, key));
  holder.replaceChildren(...GRADES.map(grade),
    button(() => judge(null), { class: "grade", "data-grade": "skip", "aria-keyshortcuts": "s" }, "skip", el("kbd", {}, "s")),
    button(undo, { class: "grade", id: "undo", "aria-keyshortcuts": "u" }, "undo", el("kbd", {}, "u")),
    el("input", { id: "note", maxlength: 4000, placeholder: "note (e)", "aria-label": "Note on this document",
      autocomplete: "off" }));
  byId("note").value = before?.note ?? "";
}

// --- what is known so far ------------------------------------------------------------------------------------------

/** One after the other: each is a request, and the next click may come first. */
let asking = 0;

async function beside() {
  const mine = ++asking;
  byId("told").setAttribute("aria-busy", "true");
  await tellAll();
  if (mine === asking) byId("told").removeAttribute("aria-busy");
}

async function tellAll() {
  const parts = { stopping: drawStopping, words: drawLearnt, measures: drawMeasured, agreement: drawAgreement };
  const { who, topic: qid, first, second, other } = state;
  for (const [name, drawn] of Object.entries(parts)) {
    if (name === "agreement" && !other) {
      drawn(null);
      continue;
    }
    const pair = name === "agreement" ? { first: who, second: other } : { first, second };
    try {
      const answer = await server.judging(state.index, state.project, name, { who, qid, ...pair });
      redrawn(byId("told"), () => drawn(answer));
    } catch (error) {
      if (!server.isSuperseded(error)) complain(error, start);
      return;
    }
  }
}

const heading = (text, small) => el("h2", {}, text, small && el("small", {}, ` ${small}`));

function drawProgress() {
  const { topic, curve } = view ?? {};
  if (!topic) return byId("progress").replaceChildren();
  const [judged, found] = curve.at(-1);
  const x = (n) => 30 + 265 * (n / Math.max(judged, 1));
  const y = (n) => 74 - 64 * (n / Math.max(found, 1));
  const label = `${found} relevant after ${judged} judged`;
  byId("progress").replaceChildren(heading("Found", label),
    svg("svg", { class: "curve", viewBox: "0 0 300 92", role: "img", "aria-label": label },
      svg("path", { class: "axis", d: "M30,8V74H296", fill: "none" }),
      svg("path", { class: "found", d: `M${curve.map(([n, r]) => `${x(n)},${y(r)}`).join("L")}` }),
      svg("text", { x: 24, y: 14, "text-anchor": "end" }, found), svg("text", { x: 24, y: 77, "text-anchor": "end" }, 0),
      svg("text", { x: 296, y: 90, "text-anchor": "end" }, `${judged} judged`)),
    topic.pool > 0 ? el("p", { class: "sentence" }, `Pool: ${many(topic.pool, "document")}, ${topic.pool_left} left.`) : "");
}

function drawStopping({ recall, told, price, certificate }) {
  const draws = () => act("certify").then((answer) => {
    if (!answer) return;
    state.way = "certificate";
    drawControls();
    return ask("next");
  });
  const cost = el("p", { class: "sentence" }, el("b", {}, "A certificate"), ` costs ${price.told}.`);
  const drawn = certificate && el("p", { class: "sentence" }, certificate.left
    ? `A sample is drawn: ${many(certificate.left, "document")} of it left to judge.` : `Certified: ${certificate.told}.`);
  byId("stopping").replaceChildren(heading("When to stop", `recall at least ${Math.round(100 * recall)} %`),
    el("p", { class: "sentence" }, `${told}.`), drawn ?? "", cost,
    price.sample > 0 ? button(draws, { class: "plain small", "data-key": "certify" }, `draw ${price.sample} documents`) : "");
}

function drawLearnt({ about, learner }) {
  const top = Math.max(...about.map(([, weight]) => weight), 1e-300);
  byId("learnt").replaceChildren(heading("What it is about", "words of the SD model"),
    el("ul", { class: "chips" }, about.map(([word, weight]) => el("li", { class: "chip", title: number(weight),
      vars: { "--share": Math.sqrt(Math.max(0, weight / top)) } }, el("span", { class: "word" }, quoted(word))))),
    el("p", { class: "sentence" }, learner.length > 0 && "The learner goes by: ",
      learner.map(([word, weight], i) => [i ? ", " : "", el("span", { class: weight > 0 ? "up" : "down" },
        weight > 0 ? "" : "not ", quoted(word))])));
}

function drawMeasured({ rows, better }) {
  if (!rows.length) return byId("measured").replaceChildren(heading("Runs"),
    el("p", { class: "sentence" }, "None yet. Pool what models find, or import runs, under “Topics, pools, files”."));
  const runs = [...new Set(rows.map((row) => row.run))];
  const names = [...new Set(rows.map((row) => row.measure))];
  const cell = (run, name) => {
    const row = rows.find((one) => one.run === run && one.measure === name);
    const told = `at least ${number(row.low)}, at most ${number(row.high)}, estimated ${number(row.estimate)} `
      + `(${number(row.interval[0])} to ${number(row.interval[1])})`;
    return el("td", { title: told, "data-low": row.low, "data-high": row.high }, number(row.estimate),
      el("div", { class: "range", "aria-hidden": "true",
        vars: { "--low": row.low, "--high": row.high, "--at": row.estimate } }, el("i"), el("b")),
      el("span", { class: "hidden" }, told));
  };
  const choose = (name) => el("select", { "data-key": name, "aria-label": `${name} run`, onchange: (event) => {
    state[name] = event.target.value;
    keepAddress();
    beside();
  } }, el("option", { value: "" }, "…"), runs.map((run) => el("option", { value: run, selected: run === state[name] }, run)));
  byId("measured").replaceChildren(heading("Runs", `${Math.round(100 * rows[0].judged)} % of the pools judged`),
    el("table", { class: "runs" }, el("thead", {}, el("tr", {}, el("th", {}), names.map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, runs.map((run) => el("tr", {}, el("th", { scope: "row" }, quoted(run)), names.map((name) => cell(run, name)))))),
    el("p", { class: "sentence" }, "Bars: what each can still be; line: estimate."),
    runs.length > 1 ? el("div", { class: "row" }, "Is ", choose("first"), " better than ", choose("second"), "?") : "",
    better ? el("p", { class: "sentence better" }, `${better}.`) : "");
}

function drawAgreement(answer) {
  const others = (facts?.assessors ?? []).filter((name) => name !== state.who);
  const choose = el("select", { "data-key": "other", id: "other", "aria-label": "Another assessor", onchange: (event) => {
    state.other = event.target.value;
    keepAddress();
    beside();
  } }, el("option", { value: "" }, "…"), others.map((name) => el("option", { value: name, selected: name === state.other }, name)));
  const told = answer && (answer.both ? `${many(answer.both, "document")} judged by both, ${Math.round(100 * answer.share)} % alike, `
    + (answer.kappa === null ? "κ not defined" : `κ ${number(answer.kappa, 2)} (s.e. ${number(answer.error, 2)})`)
    : "Nothing judged by both: choose “what others judged” above.");
  byId("agreement").replaceChildren(heading("Assessors"),
    others.length ? el("div", { class: "row" }, quoted(state.who), " and ", choose)
      : el("p", { class: "sentence" }, "Only one so far."),
    told ? el("p", { class: "sentence", id: "kappa" }, `${told}.`) : "",
    ...(answer?.parting?.length ? [el("h3", {}, "Where they part"), el("ul", { class: "listed", id: "parting" },
      answer.parting.map((one) => el("li", {}, listed(one), ...one.grades.map(given))))] : []));
}

const listed = (one) => button(() => open(one.qid, one.docid), { class: "title", "data-key": `open:${one.qid}:${one.docid}`,
  title: "open, to judge it again" }, quoted(one.title || one.docid));
const given = (grade) => el("span", { class: `given ${grade > 0 ? "yes" : "no"}` }, grade === null ? "skipped" : grade);

function drawLast() {
  const all = view?.last ?? [];
  byId("last").replaceChildren(...(all.length ? [heading("Last judgments", "of yours, on this topic"),
    el("ul", { class: "listed" }, all.map((one) => el("li", {}, listed(one), given(one.grade),
      one.note ? el("span", { title: one.note }, "✎") : "")))] : []));
}

// --- topics, pools, files ------------------------------------------------------------------------------------------

/** Lines of a topic each, with an id and a tab before it or not. */
async function addTopics(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const topics = lines.map((line) => (line.includes("\t") ? { qid: line.split("\t")[0].trim(), text: line.slice(line.indexOf("\t") + 1).trim() }
    : { text: line }));
  await changed(act("topics", { topics }), `${many(topics.length, "topic")} added.`);
}

async function changed(promise, told) {
  const answer = await promise;
  if (!answer) return;
  facts = answer;
  byId("files").open = false;
  await drawProject();
  byId("status").textContent = answer.taken === undefined ? told : `${many(answer.taken, "entry", "entries")} taken in.`;
}

function drawFiles() {
  const form = (title, submit, ...parts) => el("form", { onsubmit: (event) => {
    event.preventDefault();
    submit(event.target);
  } }, el("h3", {}, title), ...parts);
  const sheet = document.querySelector("#files .sheet");
  const usual = ["blend", "bm25", "sd"].filter((name) => facts.models.includes(name));
  const save = (what, who) => button(async () => {
    try {
      saveAs(what === "qrels" ? `${state.project}.qrels.txt` : `${state.project}.pool.txt`,
        await server.judged(state.index, state.project, what, who));
    } catch (error) {
      complain(error, start);
    }
  }, { class: "plain small", "data-save": who ? "mine" : what }, who ? "my qrels" : what);
  sheet.replaceChildren(
    form("Add topics", (given) => addTopics(given.topics.value),
      el("textarea", { name: "topics", maxlength: 50_000, "aria-label": "Topics, one a line",
        placeholder: "one a line; an id and a tab may stand before" }), el("button", { class: "plain small" }, "add")),
    form("Pool what models find", (given) => changed(act("pool", { models: [...given.models.selectedOptions].map((one) => one.value),
      depth: Number(given.depth.value) }), "Pools are made."),
      el("div", { class: "row" }, el("select", { name: "models", multiple: true, size: 5, "aria-label": "Models" },
        facts.models.map((name) => el("option", { selected: usual.includes(name) }, name))),
        el("label", {}, "depth ", el("input", { name: "depth", type: "number", min: 1, max: 1000, value: 50 })),
        el("button", { class: "plain small" }, "pool"))),
    form("Take in a file", importFile, el("div", { class: "row" },
      el("select", { name: "kind", "aria-label": "What it is" }, ["run", "qrels", "topics", "pool"].map((name) => el("option", {}, name))),
      el("input", { name: "file", type: "file", "aria-label": "File" }), el("button", { class: "plain small" }, "take in"))),
    el("form", {}, el("h3", {}, "Save"), el("div", { class: "row" }, save("qrels"), save("qrels", state.who), save("pool"))));
}

async function importFile(given) {
  const [file] = given.file.files;
  if (!file) return;
  const name = file.name.replace(/\.(txt|run|trec|qrels)$/i, "").replace(/[^\w.-]+/g, "-").slice(0, 60);
  const body = { kind: given.kind.value, name: given.kind.value === "qrels" ? "" : name, text: await file.text() };
  try {
    await changed(server.judging(state.index, state.project, "import", body));
  } catch (error) {
    complain(error, start);
  }
}

// --- controls ------------------------------------------------------------------------------------------------------

function drawControls() {
  byId("index").value = state.index;
  byId("project").value = state.project;
  byId("who").value = state.who;
  byId("way").value = state.way;
  drawTopics();
}

function drawTopics() {
  const all = facts?.topics ?? [];
  const now = view?.topic;
  const told = (one) => `${one.qid}: ${one.text} (${one.judged} judged, ${one.relevant} relevant)`;
  byId("topic").replaceChildren(...all.map((one) => el("option", { value: one.qid },
    told(one.qid === now?.qid ? now : one))));
  byId("topic").value = state.topic ?? "";
}

function bindControls() {
  const choose = (id, then) => byId(id).addEventListener("change", (event) => {
    state[id] = event.target.value.trim() || NAMES[id];
    event.target.blur();
    then();
  });
  choose("index", () => { state.project = NAMES.project; beginIndex(); });
  choose("project", openProject);
  choose("who", () => {
    localStorage.setItem("assessor", state.who);
    state.other = "";
    openProject();
  });
  choose("topic", () => ask("next"));
  choose("way", () => state.topic && ask("next", state.way === "runs" ? { qid: null } : {}));
  document.addEventListener("click", (event) => {
    if (!byId("files").contains(event.target)) byId("files").open = false;
  });
}

const KEYS = {
  y: ["relevant", () => judge(1)],
  n: ["not relevant", () => judge(0)],
  0: ["not relevant", () => judge(0)],
  1: ["relevant", () => judge(1)],
  2: ["highly relevant", () => judge(2)],
  3: ["perfectly relevant", () => judge(3)],
  s: ["skip", () => judge(null)],
  u: ["undo: take back your last judgment", undo],
  e: ["a note; Enter or Escape leaves it", () => byId("note")?.focus()],
  t: ["the topic", () => byId("topic").focus()],
  w: ["which document comes next", () => byId("way").focus()],
  f: ["topics, pools, files", () => { byId("files").open = true; document.querySelector("#files textarea").focus(); }],
  d: ["light, dark, or as the system has it", nextTheme],
  "?": ["these keys", help],
};

function help() {
  helpSheet(byId("help"), KEYS, "Every judgment is on disk when the next document appears; nothing needs saving. The address "
    + "bar holds project, topic, assessor and way.");
  byId("help").showModal();
}

async function beginIndex() {
  const { projects } = await server.projects(state.index);
  byId("projects").replaceChildren(...projects.map((name) => el("option", { value: name })));
  await openProject();
}

async function start() {
  try {
    indexes = await server.indexes();
    byId("alert").replaceChildren();
    byId("index").replaceChildren(...indexes.map((one) => el("option", { value: one.name }, one.name)));
    byId("index-label").hidden = indexes.length < 2;
    readAddress();
    await beginIndex();
  } catch (error) {
    complain(error, start);
  }
  byId("first-topic")?.focus();
}

server.takeToken();
startTheme();
byId("help-button").addEventListener("click", help);
document.addEventListener("keydown", (event) => {
  if (event.target.id === "note" && (event.key === "Enter" || event.key === "Escape")) event.target.blur();
});
bindControls();
bindKeys(KEYS);
start();
