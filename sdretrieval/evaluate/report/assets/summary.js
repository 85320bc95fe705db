// The head of the page, the table of means, the significance table, the curves and the measure by time.

const CORRECTED = { holm: "Holm-corrected", bonferroni: "Bonferroni-corrected", none: "uncorrected" };

function correctionWords() {
  const others = data.runs.length - 1;
  return others > 1 && data.correction !== "none" ? `, ${CORRECTED[data.correction]} over ${others} runs` : "";
}

function significant(comparison) {
  const p = comparison.p_corrected[data.tests[state.test]];
  return p !== null && p < 0.05;
}

function header() {
  const topics = data.topics.length;
  const sections = [["summary", "Means"], ["luck", "Significance"], ["curves", "Recall and precision"],
    ["topics", "Topics"], ["time", "Over time"], ["appendix", "Appendix"]];
  return el("header", {},
    el("h1", {}, quoted(data.title)),
    el("p", { class: "soft" }, data.collection && [quoted(data.collection), " · "],
      `${data.runs.length} run${data.runs.length === 1 ? "" : "s"} · ${topics} judged topic${topics === 1 ? "" : "s"}`,
      data.threshold !== 1 && ` · relevant from grade ${data.threshold}`),
    finding(),
    el("nav", { "aria-label": "Sections" }, sections
      .filter(([id]) => (id !== "luck" || data.runs.length > 1) && (id !== "time" || data.slices.length))
      .map(([id, text]) => el("a", { href: `#${id}` }, text))));
}

/** The main result in a sentence: the best run on the first measure against the baseline. */
function finding() {
  if (data.runs.length < 2) return null;
  const measure = data.measures[0];
  const order = data.runs.map((_, i) => i).filter((i) => data.runs[i].means[0] !== null)
    .sort((a, b) => data.runs[b].means[0] - data.runs[a].means[0]);
  const best = order[0];
  const base = data.baseline;
  const strong = (i) => el("strong", {}, quoted(data.runs[i].name));
  if (best === base) {
    return el("p", { class: "finding" }, "No run beats the baseline ", strong(base), ` on ${measure} (${fixed(data.runs[base].means[0])}).`);
  }
  const c = data.comparisons[best][0];
  const test = data.tests[state.test];
  return el("p", { class: "finding" }, strong(best), ` has the best ${measure}, ${fixed(data.runs[best].means[0])}: `,
    `${signed(c.difference)} (${percent(c.relative)}) on `, strong(base),
    `, better on ${c.wins} topics, worse on ${c.losses}. `,
    c.p_corrected[test] === null ? "" : significant(c)
      ? `The difference is more than chance would give (${test} test, p ${relation(c.p_corrected[test])}${correctionWords()}).`
      : `Chance alone could give such a difference (${test} test, p ${relation(c.p_corrected[test])}${correctionWords()}).`);
}

function relation(p) {
  const text = probability(p);
  return text.startsWith("<") ? `< ${text.slice(1)}` : `= ${text}`;
}

function runName(i) {
  return el("span", { class: "run" }, el("span", { class: "key", vars: runColour(i) }), quoted(data.runs[i].name),
    i === data.baseline && data.runs.length > 1 && el("span", { class: "tag" }, "baseline"));
}

const SHORT = { t: "p t", wilcoxon: "p Wilc.", sign: "p sign", randomisation: "p rand." };

function testPicker() {
  return data.tests.length > 1 && select("Test", data.tests, state.test, (i) => update({ test: i }));
}

function summarySection() {
  const best = data.measures.map((_, m) => Math.max(...data.runs.map((run) => run.means[m] ?? -Infinity)));
  const columns = [
    { title: "Run", header: true, value: (i) => data.runs[i].name, cell: runName },
    ...data.measures.map((measure, m) => ({
      title: measure, num: true, first: "descending", value: (i) => data.runs[i].means[m],
      cell: (i) => {
        const mean = data.runs[i].means[m];
        const c = data.comparisons[i] && data.comparisons[i][m];
        const clear = c && significant(c) ? (c.difference > 0 ? "gain" : "loss") : null;
        return [el("span", { class: mean === best[m] && data.runs.length > 1 ? "best" : null }, fixed(mean)),
          el("span", { class: `mark ${clear || ""}` }, clear === "gain" ? "▲" : clear === "loss" ? "▼" : ""),
          clear && el("span", { class: "visually-hidden" }, clear === "gain" ? " significantly better" : " significantly worse"),
          c && el("span", { class: "under" }, percent(c.relative))];
      } })),
    { title: "Topics", num: true, wide: true, first: "descending", value: (i) => data.runs[i].topics, cell: (i) => data.runs[i].topics },
  ];
  return el("section", { id: "summary" }, el("h2", {}, "Means over topics"),
    data.runs.length > 1 && el("p", { class: "lead" }, "▲ and ▼ mark runs significantly better or worse than the baseline ",
      `at the 5 % level (two-sided${correctionWords()}); the best of each column is bold.`),
    data.runs.length > 1 && el("div", { class: "controls" }, testPicker()),
    sortable(columns, data.runs.map((_, i) => i), { sort: 1, caption: "Mean of each measure by run" }),
    data.runs.flatMap((run) => run.notes.map((note) => el("p", { class: "soft small" }, quoted(run.name), ": ", quoted(note)))));
}

function luckSection() {
  if (data.runs.length < 2) return null;
  const m = state.measure;
  const others = data.runs.map((_, i) => i).filter((i) => i !== data.baseline);
  const of = (i) => data.comparisons[i][m];
  const extent = Math.max(1e-6, ...others.flatMap((i) => [of(i).difference, ...of(i).confidence].map((v) => Math.abs(v ?? 0))));
  const columns = [
    { title: "Run", header: true, value: (i) => data.runs[i].name, cell: runName },
    { title: "Difference", num: true, first: "descending", value: (i) => of(i).difference, cell: (i) => signed(of(i).difference) },
    { title: "95 % interval", value: (i) => of(i).confidence[0], cell: (i) => [
      whisker(of(i).difference, of(i).confidence, extent, significant(of(i)) ? (of(i).difference > 0 ? "var(--gain)" : "var(--loss)") : "var(--soft)"),
      el("span", { class: "under figures" }, `${signed(of(i).confidence[0], 3)} to ${signed(of(i).confidence[1], 3)}`)] },
    { title: "Win / tie / loss", first: "descending", value: (i) => of(i).wins - of(i).losses, cell: (i) => [
      el("span", { class: "share", "aria-hidden": "true" },
        el("i", { class: "w", vars: { width: `${(100 * of(i).wins) / of(i).topics}%` } }),
        el("i", { vars: { width: `${(100 * of(i).ties) / of(i).topics}%` } }),
        el("i", { class: "l", vars: { width: `${(100 * of(i).losses) / of(i).topics}%` } })),
      el("span", { class: "under figures" }, `${of(i).wins} / ${of(i).ties} / ${of(i).losses}`)] },
    { title: "d", hint: "Cohen's d of the paired differences: mean / standard deviation", num: true, first: "descending",
      value: (i) => of(i).cohens_d, cell: (i) => signed(of(i).cohens_d, 2) },
    { title: "P(sup)", hint: "Probability of superiority: share of topics won, ties counting half", num: true, first: "descending",
      value: (i) => of(i).superiority, cell: (i) => fixed(of(i).superiority, 2) },
    ...data.tests.map((test) => ({ title: SHORT[test] || `p ${test}`, hint: `p-value of the ${test} test`, num: true, value: (i) => of(i).p_corrected[test],
      cell: (i) => el("span", { class: of(i).p_corrected[test] !== null && of(i).p_corrected[test] < 0.05 ? "best" : "soft",
        title: `uncorrected: ${probability(of(i).p[test])}` }, probability(of(i).p_corrected[test])) })),
  ];
  return el("section", { id: "luck" }, el("h2", {}, "More than luck?"),
    el("p", { class: "lead" }, "Paired over topics, against ", quoted(data.runs[data.baseline].name),
      `. p-values are two-sided${correctionWords()}; bold is below .05.`),
    el("div", { class: "controls" }, measurePicker()),
    sortable(columns, others, { sort: 1, className: "middle", caption: "Differences from the baseline" }));
}

function measurePicker() {
  return data.measures.length > 1 && select("Measure", data.measures, state.measure, (i) => update({ measure: i }));
}

function curveSection() {
  const { recall, precision } = data.curve;
  const names = data.runs.map((run) => run.name);
  const series = precision.map((values, run) => ({ run, values }));
  const many = names.length > 3; // the table of points needs the whole width then
  const figure = lineFigure({ labels: recall.map((r) => r.toFixed(1)), series, names, wide: many, xTitle: "recall", yTitle: "precision",
    describe: "Precision at eleven recall levels", readLabel: (i) => `recall ${recall[i].toFixed(1)}` });
  const points = el("div", { class: "scroll" }, el("table", { class: "small" },
    el("caption", { class: "visually-hidden" }, "Interpolated precision by recall"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Recall"),
      names.map((name, i) => el("th", { scope: "col", class: "num" }, el("span", { class: "key", vars: runColour(i) }), quoted(name))))),
    el("tbody", {}, recall.map((r, level) => el("tr", {}, el("th", { scope: "row", class: "num" }, r.toFixed(1)),
      precision.map((values) => el("td", { class: "num" }, fixed(values[level], 3))))))));
  return el("section", { id: "curves" }, el("h2", {}, "Recall and precision"),
    el("p", { class: "lead" }, "Interpolated precision at eleven levels of recall, averaged over topics. Farther from the origin is better."),
    many ? [figure, el("details", {}, el("summary", {}, "The points as a table"), points)] : el("div", { class: "pair" }, figure, points));
}

const BY = {
  query: ["By the time of the query", "Each period's mean is over the topics asked in it."],
  relevant: ["By the time of the relevant documents",
    "Only the period's relevant documents are to be found; those of other periods are left out of runs and judgments. " +
    "Compare runs within a period: the periods differ in topics and in the number of relevant documents."],
};

function timeSection() {
  if (!data.slices.length) return null;
  const names = data.runs.map((run) => run.name);
  return el("section", { id: "time" }, el("h2", {}, "Over time"),
    el("div", { class: "controls" }, measurePicker()),
    data.slices.map((slice) => [
      el("h3", {}, BY[slice.by][0]), el("p", { class: "soft small" }, BY[slice.by][1],
        " Whiskers are 95 % confidence intervals of the mean (none for a single topic); grey bars and the size of " +
        "markers tell how many topics a period has."),
      lineFigure({ labels: slice.labels, names, wide: true, xTitle: slice.period, yTitle: data.measures[state.measure],
        every: Math.max(1, Math.ceil(slice.labels.length / 8)), describe: `${data.measures[state.measure]} by ${slice.period}`,
        counts: slice.topics,
        series: slice.values.map((values, run) => ({ run, values: values[state.measure], margins: slice.margins[run][state.measure] })),
        readLabel: (i) => `${slice.labels[i]} (${slice.topics[i]} topics, ${slice.relevant[i]} relevant)` })]));
}
