// Reads the data, draws the page, and redraws the parts that depend on a choice.

const data = JSON.parse(document.getElementById("data").textContent);
const state = {
  measure: 0,
  test: Math.max(0, data.tests.indexOf("randomisation")),
  rival: rivals().reduce((a, b) => ((data.runs[b].means[0] ?? -1) > (data.runs[a].means[0] ?? -1) ? b : a)),
  find: "",
  order: [], // topics as the table shows them
};
const PARTS = { summary: summarySection, luck: luckSection, curves: curveSection, topics: topicsSection, time: timeSection,
  appendix: appendixSection, "topic-table": () => el("div", { id: "topic-table" }, topicTable()) };
const REDRAW = { measure: ["luck", "topics", "time"], test: ["summary", "luck"], rival: ["topics"] };

function redraw(id) {
  const old = document.getElementById(id);
  if (old) old.replaceWith(PARTS[id]());
}

/** Change a choice; the control that made it is drawn anew, so give it back the focus. */
function update(change) {
  const active = document.activeElement;
  const place = active && active.closest("section");
  const label = active && active.closest("label");
  const words = label && label.firstChild.textContent;
  Object.assign(state, change);
  for (const key of Object.keys(change)) for (const id of REDRAW[key]) redraw(id);
  if (!place || !words) return;
  const again = [...document.getElementById(place.id).querySelectorAll("label")].find((l) => l.firstChild.textContent === words);
  if (again) again.lastChild.focus();
}

narrow.addEventListener("change", () => ["curves", "time"].forEach(redraw));
document.getElementById("topic").addEventListener("close", () => {
  const topic = cameFrom && cameFrom.getAttribute("data-topic");
  const back = cameFrom && cameFrom.isConnected ? cameFrom : topic !== null && document.querySelector(`[data-topic="${topic}"]`);
  if (back) back.focus();
});
document.getElementById("topic").addEventListener("click", (event) => {
  if (event.target === event.currentTarget) event.currentTarget.close(); // the backdrop
});

document.getElementById("report").append(...[header(), summarySection(), luckSection(), curveSection(), topicsSection(), timeSection(),
  appendixSection(), el("footer", {}, `Made by sdretrieval ${data.version}. This file is complete: it fetches nothing.`)].filter(Boolean));
