"""Explanations: every score comes apart into its words, whatever the model."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from places import placed

from sdretrieval.cli.bar_tables import bar, column, significant
from sdretrieval.cli.explain_text import explanation_text
from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.index.lucene.contents import title_of
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.explain import explain
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.retrieval import Replay, rerank, search

VARIANTS = [
    *((name, []) for name in rankers()),
    ("ql", ["smoothing=jm"]),
    ("rm", ["smoothing=dirichlet"]),
    ("rm3", ["scoring=lm", "first_stage=ql"]),
    ("rm3", ["mode=anserini"]),
    ("rm3", ["mode=anserini", "first_stage=ql"]),
    ("sd", ["smoothing=dirichlet", "fb_docs=3"]),
    ("sd", ["iterations=0", "posterior=exact"]),
    ("sd3", ["scoring=lm", "first_stage=sd"]),
]
TOPIC = Topic("1", "w03 w17 w17 nowhere")


@pytest.fixture
def snapshot(monkeypatch) -> Snapshot:
    """Fifty documents; the last one is empty."""
    rng = np.random.default_rng(11)
    words = [f"w{i:02d}" for i in range(30)]
    counts = rng.poisson(0.1 + 1.5 / np.arange(1, 31), size=(50, 30))
    counts[49] = 0
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    return placed(Snapshot.from_counts(counts, words))


@pytest.fixture
def cats(monkeypatch) -> Snapshot:
    """d0 = cat cat dog, d1 = dog: p(cat) = p(dog) = 1/2."""
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    return Snapshot.from_counts([[2, 1], [0, 1]], ["cat", "dog"])


# -- a document's score ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "settings"), VARIANTS, ids=str)
def test_words_and_parts_sum_to_the_score_of_search(snapshot, model, settings):
    ranker = make_ranker(model, settings)
    ranking = search(snapshot, [TOPIC], ranker)["1"]
    assert len(ranking) > 5
    for rank, (docid, score) in enumerate(ranking, 1):
        document = explain(snapshot, TOPIC, ranker, docid).document
        assert document.rank == rank
        assert document.score == pytest.approx(score, abs=1e-12)
        assert document.total == pytest.approx(score, abs=1e-9)
        for word in document.words:
            assert word.contribution == pytest.approx(word.weight * word.evidence, abs=1e-15)


@pytest.mark.parametrize(("model", "settings"), VARIANTS, ids=str)
def test_the_same_for_rerank(snapshot, model, settings):
    ranker = make_ranker(model, settings)
    given = Ranking([f"d{i}" for i in range(1, 50, 3)], -np.arange(17.0))
    run = rerank(snapshot, Run({"1": given}), [TOPIC], ranker)["1"]
    for rank, (docid, score) in enumerate(run, 1):
        document = explain(snapshot, TOPIC, ranker, docid, run=given).document
        assert document.rank == rank
        assert document.total == pytest.approx(score, abs=1e-9)


def test_query_likelihood_by_hand(cats):
    """Dirichlet, μ = 4: θ(cat|d0) = (2 + 4/2) / (3 + 4) = 4/7 = 4/7 · 1/2 · (1 + 2/2); query: cat cat."""
    e = explain(cats, Topic("q", "cat cat"), make_ranker("ql", ["mu=4"]), "d0")
    document = e.document
    (cat,) = document.words
    assert (cat.word, cat.count, cat.weight, cat.in_query) == ("cat", 2, 2.0, True)
    assert cat.evidence == pytest.approx(math.log(2))
    assert document.parts == pytest.approx({"smoothing": 2 * math.log(4 / 7), "constant": 2 * math.log(1 / 2)})
    assert document.score == pytest.approx(2 * math.log(4 / 7))
    assert (document.rank, document.length) == (1, 3)


def test_background_counts_words_outside_the_model(cats):
    """rm learnt from d1 = dog alone: cat weighs as general English, g · p = .1 · .5, and no more."""
    judged = Qrels({"q": {"d1": 1}})
    e = explain(
        cats, Topic("q", "dog"), make_ranker("rm", ["lambda_model=.9", "lambda_ranking=.5"]), "d0", judged=judged
    )
    assert (e.background, e.judged) == (pytest.approx(0.1), True)
    (dog,) = e.document.words
    assert dog.weight == pytest.approx(0.9 + 0.1 * 0.5)
    assert dog.evidence == pytest.approx(math.log(1 + (1 / 3) / 0.5))
    assert e.document.parts["other_words"] == pytest.approx(0.05 * math.log(1 + (2 / 3) / 0.5))
    # ... and all of it is Σ_w θ^R_w log θ^D_w with θ^D = ½ (2/3, 1/3) + ½ (½, ½):
    assert e.document.score == pytest.approx(0.05 * math.log(7 / 12) + 0.95 * math.log(5 / 12))


def test_a_query_word_that_the_document_lacks_is_listed_with_nothing(cats):
    words = explain(cats, Topic("q", "cat dog"), "bm25", "d1").document.words
    assert [(w.word, w.count, w.contribution > 0) for w in words] == [("dog", 1, True), ("cat", 0, False)]


def test_a_document_without_any_word_has_no_rank(snapshot):
    document = explain(snapshot, TOPIC, "sd3", "d49").document
    assert (document.rank, document.score, document.words[0].count) == (None, 0.0, 0)
    text = explanation_text(explain(snapshot, TOPIC, "sd3", "d49"))
    assert "not ranked, for it has none of the model's words" in text


def test_a_document_outside_the_run_has_no_rank(snapshot):
    given = Ranking(["d1", "d2", "d3"], [3.0, 2.0, 1.0])
    e = explain(snapshot, TOPIC, "ql", "d7", run=given)
    assert e.document.rank is None
    assert "not among the documents of the run" in explanation_text(e)


def test_beyond_the_hits_is_said(snapshot):
    last = search(snapshot, [TOPIC], "bm25")["1"].docids[-1]
    text = explanation_text(explain(snapshot, TOPIC, "bm25", last, hits=3))
    assert "(beyond the first 3)" in text


# -- what the model learnt ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["tfidf", "rm", "rm3", "sd", "sd3"])
def test_feedback_documents_are_the_head_of_the_first_pass(snapshot, model):
    ranker = make_ranker(model, ["fb_docs=4"])
    e = explain(snapshot, TOPIC, ranker)
    assert [d.first_rank for d in e.feedback] == [1, 2, 3, 4]
    assert sum(d.weight for d in e.feedback) == pytest.approx(1)
    final = search(snapshot, [TOPIC], ranker)["1"].docids
    assert [final[d.rank - 1] for d in e.feedback] == [d.docid for d in e.feedback]


def test_feedback_scores_are_those_of_the_first_stage(snapshot):
    first = dict(search(snapshot, [TOPIC], "bm25")["1"])
    for d in explain(snapshot, TOPIC, "sd3").feedback:
        assert d.first_score == pytest.approx(first[d.docid], abs=1e-12)


@pytest.mark.parametrize("model", ["bm25", "rm", "sd", "sd3"])
def test_contributions_of_words_are_the_mean_over_feedback_documents(snapshot, model):
    """Checked against the documents' own explanations, weighted by hand."""
    ranker = make_ranker(model, ["fb_docs=5"] if model != "bm25" else [])
    e = explain(snapshot, TOPIC, ranker)
    learnt = {d.docid: d.weight for d in e.feedback} or {d.docid: 0.1 for d in e.first_documents[:10]}
    expected = dict.fromkeys((w.word for w in e.words), 0.0)
    for docid, weight in learnt.items():
        for word in explain(snapshot, TOPIC, ranker, docid).document.words:
            expected[word.word] += weight * word.contribution
    assert {w.word: w.contribution for w in e.words} == pytest.approx(expected, abs=1e-12)
    sizes = [abs(w.contribution) for w in e.words]
    assert sizes == sorted(sizes, reverse=True)


def test_lift_compares_with_the_collection(cats):
    """Query cat: all of the model's weight, and half of the collection."""
    (cat,) = explain(cats, Topic("q", "cat"), "bm25").words
    assert (cat.share, cat.collection, cat.lift) == (1.0, 0.5, 2.0)


def test_a_replayed_plan_is_explained_as_it_stands(snapshot):
    plan = make_ranker("bm25").first
    from sdretrieval.ranking.query import Query

    plans = {"1": plan(Query.from_words(snapshot, ["w05"]), snapshot.statistics)}
    e = explain(snapshot, TOPIC, Replay(plans=plans, base=make_ranker("sd3")))
    assert [w.word for w in e.words] == ["w05"]
    assert (e.model, e.feedback, dict(e.settings)) == ("sd3", (), {})
    assert "replayed from a saved expansion" in explanation_text(e)


# -- two documents -----------------------------------------------------------------------------------------


def test_differences_sum_to_the_difference_of_scores(snapshot):
    e = explain(snapshot, TOPIC, "rm", "d1", compare="d2")
    a, b = e.documents
    assert (a.docid, b.docid) == ("d1", "d2")
    words = sum(c.difference for c in e.differences())
    parts = sum(a.parts.values()) - sum(b.parts.values())
    assert words + parts == pytest.approx(a.score - b.score, abs=1e-9)
    assert "A = d1 against B = d2" in explanation_text(e)


# -- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", list(rankers()))
def test_an_empty_query_is_refused_by_every_model(snapshot, model):
    with pytest.raises(InputError, match="nothing is left of '' after analysis"):
        explain(snapshot, Topic("1", ""), model)


def test_some_unknown_words_are_only_mentioned(snapshot):
    e = explain(snapshot, TOPIC, "sd3")
    assert e.unknown_words == ("nowhere",)
    assert "not in the index" in explanation_text(e)


def test_a_run_of_another_index(snapshot):
    with pytest.raises(InputError, match="topic '1': docid 'xx' of the run is not in index"):
        explain(snapshot, TOPIC, "sd3", run=Ranking(["d1", "xx"], [2.0, 1.0]))


def test_hits_below_one(snapshot):
    with pytest.raises(ParameterError, match="hits"):
        explain(snapshot, TOPIC, "sd3", hits=0)


# -- output ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "settings"), VARIANTS[::3], ids=str)
def test_json_sums_up_too(snapshot, model, settings):
    e = explain(snapshot, TOPIC, make_ranker(model, settings), "d3", compare="d4")
    data = json.loads(json.dumps(e.to_json(top=2), allow_nan=False))
    assert len(data["words"]) <= 2
    for document in data["documents"]:
        total = sum(w["contribution"] for w in document["words"]) + sum(document["parts"].values())
        assert total == pytest.approx(document["score"], abs=1e-9)


@pytest.mark.parametrize("width", [60, 120])
@pytest.mark.parametrize(("model", "settings"), VARIANTS[::2], ids=str)
def test_tables_are_tidy(snapshot, model, settings, width):
    """Numbers end in the same column, and no bar goes beyond the terminal."""
    e = explain(snapshot, TOPIC, make_ranker(model, settings), "d3", compare="d4")
    text = explanation_text(e, width, top=5)
    assert "nan" not in text
    for line in text.splitlines():
        assert line == line.rstrip()
        if "█" in line or "░" in line:
            assert len(line) <= width
    for block in text.split("\n\n"):
        if block.startswith("Document"):
            lines = block.splitlines()
            start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["word", "count"])
            stop = next(i for i, line in enumerate(lines) if line.startswith("    score "))
            edge = len(lines[start])
            assert {len(line.split("   █")[0]) for line in lines[start:stop] if "█" in line} <= {edge}
            assert len(lines[stop]) == len(lines[stop - 1]) == edge


def test_what_is_left_out_is_counted(snapshot):
    e = explain(snapshot, TOPIC, "rm", "d3")
    text = explanation_text(e, top=3)
    assert f"… {len(e.words) - 3} more words" in text
    present = sum(1 for w in e.document.words if w.count)
    assert f"… {present - 3} more words" in text


def test_changed_settings_are_shown(snapshot):
    e = explain(snapshot, TOPIC, make_ranker("sd", ["fb_docs=7"]))
    assert e.changed_settings == ("fb_docs",)
    assert "sd  fb_docs=7  (else its defaults)" in explanation_text(e)
    assert "sd3  with its defaults" in explanation_text(explain(snapshot, TOPIC, "sd3"))


def test_bars():
    assert bar(4.0, 4.0, 10) == "█" * 10
    assert bar(1.0, 4.0, 2) == "▌"
    assert bar(-4.0, 4.0, 3) == "░░░"
    assert bar(1.0, 0.0, 10) == ""


def test_columns_have_one_number_of_decimals():
    assert column("x", [12.5, -0.001]) == ("x", ["12.500", "-0.001"])
    assert column("x", [2e-7, -1e-8]) == ("x (×1e-9)", ["200.00", "-10.00"])
    assert column("x", [0.0, 0.0]) == ("x", ["0", "0"])
    assert column("x", []) == ("x", [])
    assert column("x", [5e-324])[1] == ["4.9407"]
    assert significant(-5.50761) == "-5.508"


def test_titles():
    assert title_of({"TITLE": " A\ntitle ", "contents": "x"}) == "A title"
    assert title_of({"title": "", "contents": "word " * 40}) == "word " * 15 + "word…"
    assert title_of({"contents": "a\x1b[31mred"}) == "a [31mred"  # nothing that a terminal obeys
    assert title_of({"id": "7", "contents": 3}) == ""
