"""What a report gathers, and the forms it takes. How the page behaves: tests/browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import scipy.stats

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate import compare, evaluate, evaluate_by_time, recall_precision
from sdretrieval.evaluate.inputs import NamedRun
from sdretrieval.evaluate.report import Block, gather, latex_table, render_html, write_html
from sdretrieval.evaluate.report.gather import MOST_DOCUMENTS, TIMELINE_DEPTH
from sdretrieval.evaluate.report.html import embed
from sdretrieval.evaluate.report.latex import escape
from sdretrieval.evaluate.report.plots import gain_loss_figure, save_figure, write_plots

MEASURES = ["AP", "P@5"]
DAY = 86_400_000


@pytest.fixture(scope="module")
def collection():
    """Twelve topics over a year, sixty dated documents, a weak and a better run."""
    rng = np.random.default_rng(4)
    documents = [f"d{i:02d}" for i in range(60)]
    times = {d: i * 6 * DAY for i, d in enumerate(documents)}
    qrels = Qrels({str(q): {d: int(rng.random() < 0.2) for d in documents[:40]} for q in range(1, 13)})

    def run(strength: float, tag: str) -> Run:
        return Run(
            {
                q: Ranking(documents, [strength * grades.get(d, 0) + rng.random() for d in documents])
                for q, grades in qrels.items()
            },
            tag,
        )

    runs = [
        NamedRun("ql", run(0.2, "ql")),
        NamedRun("sd", run(0.6, "sd"), manifest={"k": 0.8}, expansions={"1": {"wing": 0.5, "flow": -0.7}}),
    ]
    topics = [Topic(q, f"query {q}", time=int(q) * 30 * DAY) for q in qrels]
    return runs, qrels, topics, times


@pytest.fixture(scope="module")
def data(collection):
    runs, qrels, topics, times = collection
    return gather(runs, qrels, measures=MEASURES, topics=topics, document_times=times, titles={"d00": "A title"})


def test_the_numbers_are_those_of_evaluate(collection, data):
    runs, qrels, _, _ = collection
    for i, named in enumerate(runs):
        expected = evaluate(named.run, qrels, MEASURES)
        assert data["runs"][i]["means"] == [expected.mean[m] for m in MEASURES]
        for topic in data["topics"]:
            assert topic["values"][i] == [expected.per_topic[m][topic["qid"]] for m in MEASURES]
        assert data["curve"]["precision"][i] == list(recall_precision(named.run, qrels).precision)


def test_the_comparisons_are_those_of_compare(collection, data):
    runs, qrels, _, _ = collection
    base, other = (evaluate(r.run, qrels, MEASURES, name=r.name) for r in runs)
    assert data["comparisons"][0] is None
    for m, row in enumerate(compare([other], base)):
        shown = data["comparisons"][1][m]
        assert shown["difference"] == row.difference
        assert shown["p_corrected"] == dict(row.corrected)
        assert (shown["wins"], shown["ties"], shown["losses"]) == (row.wins, row.ties, row.losses)


def test_three_runs_find_their_own_comparisons(collection):
    """compare lists measures first and runs within; the report wants it the other way round."""
    runs, qrels, _, _ = collection
    three = [runs[1], runs[0], NamedRun("again", runs[1].run)]
    data = gather(three, qrels, measures=MEASURES, baseline=1)
    assert data["comparisons"][1] is None
    assert data["comparisons"][0] == data["comparisons"][2]
    for m in range(2):
        mean = data["runs"][0]["means"][m] - data["runs"][1]["means"][m]
        assert data["comparisons"][0][m]["difference"] == pytest.approx(mean)


def test_documents_carry_ranks_grades_titles_and_times(collection, data):
    runs, qrels, _, times = collection
    topic = data["topics"][0]
    assert topic["qid"] == "1"
    assert topic["text"] == "query 1"
    assert len(topic["documents"]) <= MOST_DOCUMENTS
    first = {d["id"] for d in topic["documents"] if 1 in d["ranks"]}
    assert first == {named.run["1"].docids[0] for named in runs}
    for document in topic["documents"]:
        for named, rank in zip(runs, document["ranks"], strict=True):
            assert named.run["1"].docids[rank - 1] == document["id"]
        assert document.get("grade") == qrels["1"].get(document["id"])
        assert document["time"] == times[document["id"]]
    relevant = {d for d, grade in qrels["1"].items() if grade > 0}
    assert relevant <= {d["id"] for d in topic["documents"]}


def test_titles_and_terms_where_there_are_some(data):
    titles = {d["id"]: d.get("title") for topic in data["topics"] for d in topic["documents"]}
    assert titles.pop("d00") == "A title"
    assert set(titles.values()) == {None}
    assert data["topics"][0]["terms"] == [None, [["flow", -0.7], ["wing", 0.5]]]  # heaviest first
    assert "terms" not in data["topics"][1]


def test_timelines_hold_times_scores_and_relevance(collection, data):
    runs, qrels, _, times = collection
    timeline = data["topics"][0]["timeline"]
    ranking = runs[0].run["1"]
    assert len(timeline["runs"][0]) == min(TIMELINE_DEPTH, len(ranking))
    time, score, relevant = timeline["runs"][0][0]
    assert time == times[ranking.docids[0]]
    assert score == pytest.approx(ranking.scores[0], rel=1e-4)
    assert relevant == qrels["1"].get(ranking.docids[0], 0)
    assert timeline["relevant"] == sorted(times[d] for d, g in qrels["1"].items() if g > 0)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"1": [[20, 0.5], [10, -1]]}, [[10, -1.0], [20, 0.5]]),
        ({"1": [[20, 0.5], [10, float("nan")], [10**18, 1]]}, [[20, 0.5]]),
        ({"2": [[20, 0.5]]}, None),
        *((bad, None) for bad in (None, 7, "x", [], {"1": 7}, {"1": ["ab", "cd"]}, {"1": [[1]]}, {"1": {"a": 1}})),
    ],
)
def test_what_time_added_is_drawn_and_not_listed(collection, told, shown):
    """A manifest may hold any JSON."""
    runs, qrels, _, times = collection
    timed = NamedRun("timed", runs[1].run, manifest={"k": 1, "time prior along time": told})
    data = gather([runs[0], timed], qrels, measures=MEASURES, document_times=times)
    assert data["runs"][1]["manifest"] == {"k": 1}
    assert data["topics"][0]["timeline"].get("priors") == (None if shown is None else [[], shown])


def test_slices_are_those_of_the_evaluation_by_time(collection, data):
    runs, qrels, topics, _ = collection
    by_query = next(s for s in data["slices"] if s["by"] == "query")
    times = {t.qid: t.time for t in topics}
    expected = evaluate_by_time(runs[1].run, qrels, times, by_query["period"], MEASURES)
    assert by_query["labels"] == [s.period for s in expected]
    assert by_query["values"][1][0] == [s.evaluation.mean["AP"] for s in expected]
    assert by_query["topics"] == [s.topics for s in expected]
    for part, margin in zip(expected, by_query["margins"][1][0], strict=True):
        values = list(part.evaluation.per_topic["AP"].values())
        if len(values) == 1:
            assert margin is None  # one topic tells nothing about the spread
        else:
            interval = scipy.stats.t.interval(0.95, len(values) - 1, np.mean(values), scipy.stats.sem(values))
            assert 2 * margin == pytest.approx(interval[1] - interval[0])


def test_what_is_not_there_leaves_gaps(collection):
    runs, qrels, _, _ = collection
    short = NamedRun("short", Run({"1": runs[0].run["1"]}, "s"))
    data = gather([runs[0], short], qrels, measures=MEASURES)
    assert data["slices"] == []
    assert "timeline" not in data["topics"][0]
    assert [t["values"][1] is None for t in data["topics"]] == [False] + [True] * 11
    json.dumps(data, allow_nan=False)
    alone = gather(runs[:1], qrels, measures=MEASURES)
    assert alone["comparisons"] == [None]
    assert "<table>" in render_html(alone)
    with pytest.raises(ParameterError, match="at least one run"):
        gather([], qrels)
    with pytest.raises(ParameterError, match="got 2"):
        gather(runs, qrels, baseline=2)


# --- the page --------------------------------------------------------------------------------------------------


def test_embedded_data_cannot_leave_its_element():
    hostile = {"</script><script>x": "<!-- <script> & \u2028 \ud800"}
    text = embed(hostile)
    assert not re.search(r"[<>&\u2028\ud800]", text)
    assert json.loads(text) == {"</script><script>x": "<!-- <script> & \u2028 \ufffd"}


def test_the_page_is_whole_and_names_no_other(data):
    page = render_html(data)
    assert json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])["measures"] == MEASURES
    assert "default-src 'none'" in page
    assert not re.search(r'(?:src|href)="(?!data:,)', page)
    parsing = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")
    assert [word for word in ("unsafe", *parsing) if word in page] == []
    # The one address is a name, not a place: SVG's.
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}


def test_text_outside_the_data_is_escaped(collection):
    runs, qrels, _, _ = collection
    bad = "<img src=x onerror=alert(1)>"
    page = render_html(gather([NamedRun(bad, runs[0].run)], qrels, title=bad))
    assert bad not in page
    assert "&lt;img src=x" in page


def test_the_same_data_make_the_same_page(collection, data, tmp_path):
    runs, qrels, topics, times = collection
    again = gather(runs, qrels, measures=MEASURES, topics=topics, document_times=times, titles={"d00": "A title"})
    write_html(tmp_path / "a.html", data)
    write_html(tmp_path / "b.html", again)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


# --- for papers ------------------------------------------------------------------------------------------------


def test_plots_are_written_and_repeat_themselves(data, tmp_path):
    files = write_plots(data, tmp_path / "a", ["png", "svg"])
    names = {"precision-recall", "gain-loss-sd", "by-time-query", "by-time-relevant"}
    assert {f.stem for f in files if f.suffix == ".png"} == names
    save_figure(gain_loss_figure(data, 1), tmp_path / "a" / "one.pdf")
    files.append(tmp_path / "a" / "one.pdf")
    signatures = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for file in files:
        assert file.read_bytes().startswith(signatures[file.suffix])
    again = write_plots(data, tmp_path / "b", ["png", "svg"])
    for file in again:
        assert file.read_bytes() == (tmp_path / "a" / file.name).read_bytes(), file.name


def test_gains_and_losses_are_drawn_best_first(data, tmp_path):
    with pytest.raises(ParameterError, match="baseline"):
        gain_loss_figure(data, 0)
    with pytest.raises(ParameterError, match=r"\.png, \.svg or \.pdf"):
        save_figure(gain_loss_figure(data, 1), tmp_path / "x.gif")
    axes = gain_loss_figure(data, 1).axes[0]
    drawn = [bar.get_height() for bar in axes.patches]
    expected = [t["values"][1][0] - t["values"][0][0] for t in data["topics"]]
    assert drawn == pytest.approx(sorted(expected, reverse=True))


def test_a_runs_name_cannot_lead_a_plot_elsewhere(collection, tmp_path):
    runs, qrels, _, _ = collection
    data = gather([runs[0], NamedRun("../../evil$x", runs[1].run)], qrels)
    files = write_plots(data, tmp_path / "plots", ["svg"])
    assert {f.parent for f in files} == {tmp_path / "plots"}
    assert [p.name for p in tmp_path.iterdir()] == ["plots"]


def test_latex_table_in_the_manner_of_the_thesis(collection):
    runs, qrels, _, _ = collection
    base, other = (evaluate(r.run, qrels, MEASURES, name=r.name) for r in runs)
    rows = compare([other], base)
    assert all(rows[0].corrected[t] < 0.05 for t in ("t", "wilcoxon")), "the better run is much better here"
    table = latex_table([Block("AP & WSJ", [base, other], rows)])
    assert r"\begin{tabular}{llrr}" in table
    means = f"{100 * base.mean['AP']:.2f} & \\textbf{{{100 * other.mean['AP']:.2f}}}$^{{+}}$"
    assert rf"AP \& WSJ & MAP & {means} \\" in table
    assert " & Pr(5) & " in table
    worse = latex_table([Block("c", [other, base], compare([base], other))])  # the loser is marked, and not bold
    assert f"\\textbf{{{100 * other.mean['AP']:.2f}}} & {100 * base.mean['AP']:.2f}$^{{-}}$" in worse
    assert "textbf" not in latex_table([Block("c", [base]), Block("d", [base])])  # there is no choice
    with pytest.raises(ParameterError, match="same runs"):
        latex_table([Block("x", [base]), Block("y", [other])])


def test_latex_is_escaped():
    assert escape("\\x{}$&#_%~^<>\n") == (
        r"\textbackslash{}x\{\}\$\&\#\_\%\textasciitilde{}\textasciicircum{}\textless{}\textgreater{} "
    )
