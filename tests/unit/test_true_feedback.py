"""Judged documents beside unjudged ones and the query: who is learnt from, with which weight, and how it is told."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.cli.explain_text import explanation_text
from sdretrieval.collection.records import Qrels, Topic
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions
from sdretrieval.ranking.explain import explain
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker

WORDS = [f"w{i:02d}" for i in range(15)]


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return Snapshot.from_counts(
        np.random.default_rng(4).poisson(0.6, (40, 15)), WORDS, [f"d{i:02d}" for i in range(40)]
    )


def rank(snapshot: Snapshot, model: str, judged: Judgments | None, candidates=None, **settings):
    query = Query.from_words(snapshot, ["w03", "w07"], qid="1")
    options = RankOptions(judged=None if judged is None else {"1": judged}, candidates=candidates)
    return next(Engine(snapshot).rank(make_ranker(model).with_(**settings), [query], options))


@pytest.mark.parametrize("model", ["rm", "rm3", "sd", "sd3"])
def test_judged_documents_come_first_then_the_best_others(snapshot, model):
    plain = rank(snapshot, model, None, fb_docs=8).feedback.docs.tolist()
    judged = Judgments(np.array([plain[2], 39]), np.array([plain[0]]))
    mixed = rank(snapshot, model, judged, fb_docs=5, unjudged_weight=0.5).feedback
    others = [doc for doc in plain if doc not in (plain[0], plain[2], 39)][:5]
    assert mixed.docs.tolist() == [plain[2], 39, *others]
    assert (mixed.judged, mixed.unjudged) == (True, 5)
    run = {"1": np.array([plain[0], 38, plain[2], 37, 36])}
    found = rank(snapshot, model, judged, run, fb_docs=2, unjudged_weight=0.5)
    assert found.feedback.docs.tolist() == [plain[2], 39, 38, 37]
    alone = rank(snapshot, model, judged, fb_docs=5).feedback
    assert (alone.docs.tolist(), alone.unjudged) == ([plain[2], 39], 0)


def test_anserinis_rm3_learns_from_judged_documents_alone(snapshot):
    judged = Judgments(np.array([3, 4]), np.zeros(0, dtype=np.int64))
    assert rank(snapshot, "rm3", judged, mode="anserini", unjudged_weight=1.0).feedback.docs.tolist() == [3, 4]


def test_weights_by_hand():
    rows = Rows(np.zeros(5, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32), np.ones(4))
    mixed = Feedback(np.arange(4), np.zeros(4), rows, judged=True, unjudged=2)
    weights, query_share = mixed.labelled(np.array([0.0, 0.9, 0.2, 0.1]), 0.5, 1.25)
    # judged 1 and 1, unjudged .5 and .25; the query 1.25 of 4
    np.testing.assert_allclose(weights, np.array([1.0, 1.0, 0.5, 0.25]) / 2.75)
    assert query_share == pytest.approx(1.25 / 4)
    guessed = Feedback(np.arange(4), np.zeros(4), rows, unjudged=4)
    weights, query_share = guessed.labelled(np.array([0.4, 0.4, 0.2, 0.0]), 0.5, 0.5)
    np.testing.assert_allclose(weights, [0.4, 0.4, 0.2, 0.0])
    assert query_share == pytest.approx(0.5 / (2.5 + 0.5))


def test_a_heavy_query_is_all_that_is_left(snapshot):
    """rm with the query alone is query likelihood, but for the factor |Q|."""
    judged = Judgments(np.array([3, 4]), np.zeros(0, dtype=np.int64))
    heavy = rank(snapshot, "rm", judged, query_weight=1e6, lambda_ranking=0.4)
    plain = rank(snapshot, "ql", None, smoothing="jm", lam=0.4)
    scores = dict(zip(plain.docs.tolist(), plain.scores, strict=True))
    found = dict(zip(heavy.docs.tolist(), heavy.scores, strict=True))
    for doc, score in scores.items():
        assert found[doc] == pytest.approx(score / 2, abs=1e-4)


def test_later_e_steps_tell_documents_apart(snapshot):
    apart, alike = (
        rank(snapshot, "sd", None, iterations=3, later_e_steps=how).expansion for how in ("rescaled", "likelihood")
    )
    assert np.ptp(apart.weights) > 100 * np.ptp(alike.weights)
    assert (apart.notes["bounds"], len(alike.notes["bounds"])) == ([], 3)


def test_explained(snapshot, monkeypatch):
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())
    judged = Qrels({"1": {"d03": 1, "d04": 1, "d05": 0}})
    topic = Topic("1", "w03 w07")
    for settings, told in (
        ({}, "2 documents judged relevant"),
        ({"unjudged_weight": 0.1, "fb_docs": 5}, "2 documents judged relevant, 5 documents of the first pass"),
        ({"query_weight": 1.0}, "2 documents judged relevant, the query as one more"),
    ):
        e = explain(snapshot, topic, make_ranker("sd").with_(**settings), judged=judged)
        assert f"{told}\n" in explanation_text(e), explanation_text(e)
        assert sum(document.weight for document in e.feedback) == pytest.approx(1.0)
