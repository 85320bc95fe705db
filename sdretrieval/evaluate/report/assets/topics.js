// Topic by topic: gains and losses against the baseline, and one topic's story in a drawer.

function rivals() {
  const others = data.runs.map((_, i) => i).filter((i) => i !== data.baseline);
  return others.length ? others : [data.baseline];
}

function topicValue(topic, run) {
  return topic.values[run] === null ? null : topic.values[run][state.measure];
}

function topicDifference(topic) {
  const a = topicValue(topic, state.rival), b = topicValue(topic, data.baseline);
  return a === null || b === null ? null : Math.round((a - b) * 1e12) / 1e12;
}

function differenceColour(d) {
  return { "--c": d > 0 ? "var(--gain)" : d < 0 ? "var(--loss)" : "var(--hair)" };
}

function topicsSection() {
  const alone = data.runs.length < 2;
  const pairs = rivals();
  return el("section", { id: "topics" }, el("h2", {}, alone ? "Topic by topic" : "Gains and losses, topic by topic"),
    el("p", { class: "lead" }, alone ? "Choose a topic to see its documents."
      : ["Each bar is a topic: up where the run gains on ", quoted(data.runs[data.baseline].name),
        ", down where it loses. Choose one to see which documents moved."]),
    el("div", { class: "controls" },
      pairs.length > 1 && select("Run", pairs.map((i) => data.runs[i].name), pairs.indexOf(state.rival), (k) => update({ rival: pairs[k] })),
      measurePicker(),
      el("label", {}, "Find", el("input", { type: "search", placeholder: "topic or word", value: state.find, autocomplete: "off",
        oninput: (event) => { state.find = event.target.value; redraw("topic-table"); } }))),
    !alone && skyline(),
    el("div", { id: "topic-table" }, topicTable()));
}

/** One bar per topic, best first. A single tab stop: arrows move, Enter or a click opens. */
function skyline() {
  const order = data.topics.map((topic, i) => ({ i, topic, d: topicDifference(topic) })).filter(({ d }) => d !== null)
    .sort((a, b) => b.d - a.d || a.i - b.i);
  if (!order.length) return null;
  const up = Math.max(0, order[0].d), down = Math.max(0, -order[order.length - 1].d);
  const all = up + down || 1;
  const zero = (100 * up) / all;
  const bars = order.map(({ topic, i, d }, k) => {
    const height = (100 * Math.abs(d)) / all;
    const label = `Topic ${topic.qid}: ${signed(d)}`;
    return el("button", { type: "button", tabindex: k ? -1 : 0, title: topic.text ? `${label} · ${topic.text}` : label, "aria-label": label,
      onclick: () => openTopic(i) }, el("i", { vars: { ...differenceColour(d), height: `${height}%`, top: `${d > 0 ? zero - height : zero}%` } }));
  });
  const row = el("div", { class: "skyline", role: "toolbar", "aria-label": "Differences by topic, best first",
    onkeydown: (event) => {
      const at = bars.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: bars.length - 1 }[event.key];
      if (at < 0 || to === undefined || !bars[to]) return;
      event.preventDefault();
      bars[at].tabIndex = -1;
      bars[to].tabIndex = 0;
      bars[to].focus();
    } }, bars);
  const c = data.comparisons[state.rival];
  return el("div", {},
    el("div", { class: "skyline-wrap" }, el("hr", { vars: { top: `${zero}%` } }), row),
    el("p", { class: "soft small figures" }, el("span", { class: "gain" }, `${order.filter(({ d }) => d > 0).length} better`), " · ",
      `${order.filter(({ d }) => d === 0).length} equal · `,
      el("span", { class: "loss" }, `${order.filter(({ d }) => d < 0).length} worse`),
      c && ` · mean ${signed(c[state.measure].difference)}`, ` · from ${signed(order[0].d, 3)} to ${signed(order[order.length - 1].d, 3)}`));
}

function topicTable() {
  const word = state.find.trim().toLowerCase();
  const rows = data.topics.map((topic, i) => ({ topic, i }))
    .filter(({ topic }) => !word || topic.qid.toLowerCase() === word || `${topic.qid} ${topic.text}`.toLowerCase().includes(word));
  const extent = Math.max(1e-9, ...data.topics.map((topic) => Math.abs(topicDifference(topic) ?? 0)));
  const alone = data.runs.length < 2;
  const columns = [
    { title: "Topic", header: true, value: ({ topic }) => topic.qid, cell: ({ topic, i }) =>
      el("button", { class: "open", type: "button", "data-topic": i, "aria-label": `Topic ${topic.qid}, show details`,
        onclick: () => openTopic(i) }, quoted(topic.qid)) },
    data.topics.some((topic) => topic.text) &&
      { title: "Query", className: "query", value: ({ topic }) => topic.text, cell: ({ topic }) => quoted(topic.text) },
    !alone && { title: "Difference", wide: true, first: "descending", value: ({ topic }) => topicDifference(topic), cell: ({ topic }) => {
      const d = topicDifference(topic);
      const share = d === null ? 0 : (50 * Math.abs(d)) / extent;
      return el("div", { class: "delta", "aria-hidden": "true" },
        d ? el("i", { vars: { ...differenceColour(d), width: `${share}%`, left: `${d > 0 ? 50 : 50 - share}%` } }) : null);
    } },
    !alone && { title: "±", num: true, first: "descending", hint: "difference", value: ({ topic }) => topicDifference(topic),
      cell: ({ topic }) => el("span", { class: topicDifference(topic) > 0 ? "gain" : topicDifference(topic) < 0 ? "loss" : "soft" },
        signed(topicDifference(topic), 3)) },
    !alone && { title: data.runs[state.rival].name, num: true, first: "descending", value: ({ topic }) => topicValue(topic, state.rival),
      cell: ({ topic }) => fixed(topicValue(topic, state.rival), 3) },
    { title: data.runs[data.baseline].name, num: true, first: "descending", value: ({ topic }) => topicValue(topic, data.baseline),
      cell: ({ topic }) => fixed(topicValue(topic, data.baseline), 3) },
    { title: "Relevant", num: true, wide: true, first: "descending", value: ({ topic }) => topic.relevant, cell: ({ topic }) => topic.relevant },
  ].filter(Boolean);
  const by = columns.findIndex((column) => column.title === "±");
  const table = sortable(columns, rows, { sort: alone ? 0 : by, className: "topics", caption: "Topics",
    ordered: (shown) => { state.order = shown.map(({ i }) => i); } });
  return rows.length ? table : el("p", { class: "soft" }, "No topic matches.");
}

// --- the drawer ------------------------------------------------------------------------------------------------

let cameFrom = null;

function openTopic(i) {
  const dialog = document.getElementById("topic");
  if (!dialog.open) cameFrom = document.activeElement;
  dialog.replaceChildren(...topicStory(i));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  document.getElementById("topic-heading").focus();
}

function topicStory(i) {
  const topic = data.topics[i];
  const shown = data.runs.length < 2 ? [data.baseline] : [data.baseline, state.rival];
  const names = data.runs.map((run) => run.name);
  const dialog = document.getElementById("topic");
  const at = state.order.indexOf(i); // previous and next follow the table as it stands
  const step = (by, text, label) => el("button", { class: "button", type: "button", "aria-label": label,
    disabled: at < 0 || state.order[at + by] === undefined, onclick: () => openTopic(state.order[at + by]) }, text);
  return [
    el("div", { class: "bar-top" }, step(-1, "←", "Previous topic"), step(1, "→", "Next topic"),
      el("span", { class: "soft small figures" }, at >= 0 && `${at + 1} of ${state.order.length}`), el("span", { class: "space" }),
      el("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Close")),
    el("div", { class: "body" },
      el("h2", { id: "topic-heading", tabindex: -1 }, el("span", { class: "soft" }, quoted(topic.qid), " "), quoted(topic.text)),
      el("div", { class: "facts" }, el("span", {}, `${topic.relevant} relevant of ${topic.judged} judged`),
        topic.time !== null && el("span", {}, `asked ${moment(topic.time)} UTC`)),
      valuesTable(topic),
      el("h3", {}, data.runs.length < 2 ? "Documents" : "Which documents moved"),
      documentTable(topic),
      topic.terms && termColumns(topic, shown),
      topic.timeline && [el("h3", {}, "Over time"),
        el("p", { class: "soft small" }, "The first documents of each run by time and score; filled where relevant.",
          topic.timeline.priors && " Shaded: what its time added to a document's score, in spreads of the scores, zero in the middle."),
        timelineChart({ timeline: topic.timeline, shown, names, queryTime: topic.time })]),
  ];
}

function valuesTable(topic) {
  return el("div", { class: "scroll" }, el("table", {},
    el("caption", { class: "visually-hidden" }, "Measures of this topic"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"),
      data.measures.map((name) => el("th", { scope: "col", class: "num" }, name)),
      el("th", { scope: "col", class: "num" }, "Relevant found"))),
    el("tbody", {}, data.runs.map((_, run) => el("tr", {}, el("th", { scope: "row" }, runName(run)),
      data.measures.map((_, m) => el("td", { class: "num" }, fixed(topic.values[run] && topic.values[run][m], 3))),
      el("td", { class: "num" }, topic.found[run]))))));
}

function documentTable(topic) {
  const last = 1e9;
  const grade = (d) => d.grade === undefined ? el("span", { class: "grade" }, "?")
    : el("span", { class: d.grade >= data.threshold ? "grade yes" : "grade" }, d.grade);
  const rank = (run) => ({ title: data.runs[run].name, num: true, value: (d) => d.ranks[run], cell: (d) => d.ranks[run] ?? DASH });
  const move = (d) => {
    const from = d.ranks[data.baseline], to = d.ranks[state.rival];
    return from === null && to === null ? null : (from ?? last) - (to ?? last);
  };
  const moveText = (d) => {
    const by = move(d);
    if (by === null) return DASH;
    if (Math.abs(by) > last / 2) return by > 0 ? "new" : "gone";
    return by > 0 ? `↑ ${by}` : by < 0 ? `↓ ${-by}` : "=";
  };
  const columns = [
    { title: "Document", header: true, className: "document", value: (d) => d.id,
      cell: (d) => [quoted(d.id, "mono"), d.title && el("span", { class: "under" }, quoted(d.title)),
        d.time !== undefined && el("span", { class: "under figures" }, moment(d.time))] },
    { title: "Grade", num: true, first: "descending", hint: "judgment; ? is not judged", value: (d) => d.grade ?? null, cell: grade },
    rank(data.baseline),
    data.runs.length > 1 && rank(state.rival),
    data.runs.length > 1 && { title: "Move", num: true, first: "descending", value: move,
      cell: (d) => el("span", { class: (move(d) ?? 0) > 0 ? "gain" : (move(d) ?? 0) < 0 ? "loss" : "soft" }, moveText(d)) },
  ].filter(Boolean);
  return [sortable(columns, topic.documents, { sort: data.runs.length > 1 ? 3 : 2, caption: "Documents and their ranks" }),
    topic.hidden > 0 && el("p", { class: "soft small" }, `${topic.hidden} more relevant documents are not shown.`)];
}

function termColumns(topic, shown) {
  const lists = shown.map((run) => ({ run, terms: topic.terms[run] })).filter(({ terms }) => terms);
  if (!lists.length) return null;
  const heaviest = (terms) => Math.max(1e-12, ...terms.map(([, weight]) => Math.abs(weight ?? 0)));
  return [el("h3", {}, "Expansion terms"),
    lists.length > 1 && el("p", { class: "soft small" }, "Terms only one of the runs has are bold."),
    el("div", { class: "columns" }, lists.map(({ run, terms }) => {
      const most = heaviest(terms);
      const elsewhere = new Set(lists.filter((other) => other.run !== run).flatMap((other) => other.terms.map(([term]) => term)));
      return el("div", {}, el("p", {}, runName(run)), el("ul", { class: "terms" }, terms.map(([term, weight]) =>
        el("li", {}, el("span", { class: lists.length > 1 && !elsewhere.has(term) ? "only" : null }, quoted(term)),
          el("span", { class: "weight", vars: { "--c": weight < 0 ? "var(--loss)" : `var(--run-${run % 8})`, width: `${(100 * Math.abs(weight ?? 0)) / most}%` } }),
          el("span", { class: "num soft" }, compact(weight ?? 0))))));
    }))];
}
