// How the runs were made, and how the numbers were.

function flatten(value, path, into) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const [key, inner] of Object.entries(value)) flatten(inner, path ? `${path}.${key}` : key, into);
  } else if (Array.isArray(value) && value.every((item) => typeof item === "string")) {
    into.set(path, value.join(" ")); // a command line, for one
  } else {
    into.set(path, typeof value === "string" ? value : JSON.stringify(value));
  }
  return into;
}

/** All parameters of all runs, those of one family together, in the order they first appear in. */
function parameterNames(made) {
  const names = [...new Set(made.flatMap((one) => [...one.keys()]))];
  const family = (name) => name.split(".")[0];
  const families = [...new Set(names.map(family))];
  return families.flatMap((f) => names.filter((name) => family(name) === f));
}

/** As many runs side by side as there is room for; the others below, so that paper has them too. */
function parameterTable(names, known, made) {
  const most = narrow.matches ? 2 : 5;
  const parts = known.map((_, i) => i).filter((i) => i % most === 0).map((i) => known.slice(i, i + most));
  return parts.map((runs) => el("div", { class: "scroll" }, el("table", { class: "small parameters" },
    el("caption", { class: "visually-hidden" }, "Parameters by run"),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Parameter"), runs.map((i) => el("th", { scope: "col" }, runName(i))))),
    el("tbody", {}, names.filter((name) => runs.some((i) => made[i].has(name))).map((name) => el("tr", {},
      el("th", { scope: "row" }, quoted(name, "mono")),
      runs.map((i) => el("td", {}, made[i].has(name) ? quoted(made[i].get(name)) : DASH))))))));
}

function appendixSection() {
  const made = data.runs.map((run) => (run.manifest ? flatten(run.manifest, "", new Map()) : null));
  const known = made.map((_, i) => i).filter((i) => made[i]);
  const names = parameterNames(known.map((i) => made[i]));
  const differs = (name) => known.length < 2 || new Set(known.map((i) => made[i].get(name))).size > 1;
  const shared = names.filter((name) => !differs(name));
  return el("section", { id: "appendix" }, el("h2", {}, "Appendix"),
    el("h3", {}, "How the runs were made"),
    known.length === 0 && el("p", { class: "soft" }, "No manifest lay beside the runs."),
    known.length > 0 && [
      known.length > 1 && el("p", { class: "soft small" }, "What the runs differ in; ", DASH, " where a run has no such parameter."),
      parameterTable(names.filter(differs), known, made),
      shared.length > 0 && el("details", {}, el("summary", {}, `What all of them share (${shared.length})`),
        parameterTable(shared, known.slice(0, 1), made)),
      known.map((i) => el("details", {}, el("summary", {}, "Manifest of ", quoted(data.runs[i].name)),
        el("pre", { tabindex: 0 }, JSON.stringify(data.runs[i].manifest, null, 2))))],
    el("h3", {}, "The runs"),
    el("div", { class: "scroll" }, el("table", { class: "small" },
      el("thead", {}, el("tr", {}, ["Run", "File", "Tag", "Topics counted"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, data.runs.map((run, i) => el("tr", {}, el("th", { scope: "row" }, runName(i)),
        el("td", {}, quoted(run.file || DASH)), el("td", {}, quoted(run.tag || DASH)), el("td", {}, run.topics)))))),
    el("h3", {}, "How the numbers were made"),
    el("p", {}, "Measures are trec_eval’s, computed by its own code through ir_measures. ",
      data.complete ? "Judged topics without results count as zero." : "Topics without judgments or without results are not counted, as in trec_eval."),
    data.runs.length > 1 && el("p", {}, "Tests are paired over the topics both runs have, two-sided: Student’s t, Wilcoxon’s signed ranks and the sign test ",
      "(both without ties), and randomisation of signs (exact up to 16 differing topics, 100 000 seeded samples beyond). ",
      data.correction === "none" ? "p-values are not corrected." : `p-values are ${CORRECTED[data.correction]} over the runs, separately for each measure and test. `,
      "Intervals are Student’s at 95 %; d is the mean difference over its standard deviation."));
}
