"""Rank order and the small records."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic, rank_order
from sdretrieval.core.errors import ParameterError


def ordered(docids, scores, depth=None):
    return [docids[i] for i in rank_order(docids, scores, depth)]


@pytest.mark.parametrize(
    ("docids", "scores", "wanted"),
    [
        ("a b c", [1.0, 3.0, 2.0], "b c a"),
        ("a c b z", [1.0, 1.0, 1.0, 2.0], "z c b a"),  # ties by docid, down
        ("10 9 100", [0, 0, 0], "9 100 10"),  # docids are text, not numbers
        ("b a", [2.0**24, 2.0**24 + 1], "b a"),  # float32 has 24 bits: the same number there
        ("b a", [2.0**24, 2.0**24 + 2], "a b"),
        ("a b c d", [1e300, np.inf, -np.inf, -1e300], "b a d c"),  # beyond float32 is infinite, and infinities tie
        ("a b c", [0.0, -0.0, 1e-60], "c b a"),  # zero has no sign
        ("a b c d e f", [1, 2, 1, 2, 3, 1], "e d b f c a"),  # several tied groups keep apart
        ("", [], ""),
    ],
)
def test_rank_order(docids, scores, wanted):
    assert ordered(docids.split(), scores) == wanted.split()


def test_code_points_order_as_their_utf8_bytes():
    docids = ["z", "é", "\uffee", "\U0001f600", "a"]
    assert ordered(docids, np.zeros(5)) == sorted(docids, key=str.encode, reverse=True)


def test_random_cuts_are_the_beginning_of_the_whole():
    rng = np.random.default_rng(1)
    for _ in range(200):
        n = int(rng.integers(1, 40))
        docids = [str(i) for i in rng.permutation(100)[:n]]
        scores = rng.integers(0, 6, n)
        depth = int(rng.integers(0, n + 3))
        assert ordered(docids, scores, depth) == ordered(docids, scores)[:depth]


@pytest.mark.parametrize(
    ("docids", "scores", "depth", "message"),
    [
        (["a"], [1.0, 2.0], None, "1 docids"),
        (["a", "b"], [[1.0, 2.0]], None, "shape"),
        (["a", "b"], [1.0, np.nan], None, "score of 'b' is not a number"),
        (["a"], [1.0], -1, "depth must be at least 0, got -1"),
    ],
)
def test_refused(docids, scores, depth, message):
    with pytest.raises(ParameterError, match=message):
        rank_order(docids, scores, depth)


def test_ranking_sorts_itself():
    ranking = Ranking(["a", "b", "c"], [1.0, 2.0, 1.0])
    assert ranking.docids == ["b", "c", "a"]
    assert ranking.scores.tolist() == [2.0, 1.0, 1.0]
    assert list(ranking) == [("b", 2.0), ("c", 1.0), ("a", 1.0)]
    # In order of single precision, but with the scores it was given.
    assert list(Ranking(["a", "b"], [1.0 + 1e-12, 1.0])) == [("b", 1.0), ("a", 1.0 + 1e-12)]
    assert repr(Ranking(["a", "b", "c", "d"], [1, 2, 3, 4])) == "Ranking(4 documents: d 4, c 3, b 2, …)"
    assert repr(Ranking([], [])) == "Ranking(0 documents: )"


def test_ranking_does_not_share_or_give_away_its_scores():
    scores = np.array([1.0, 2.0])
    ranking = Ranking(["a", "b"], scores)
    scores[:] = 0
    assert ranking.scores.tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 5
    with pytest.raises(ParameterError, match="'a' is ranked twice"):
        Ranking(["a", "b", "a"], [1.0, 2.0, 3.0])


def test_ranking_top_and_equality():
    ranking = Ranking(["a", "b", "c"], [1.0, 3.0, 2.0])
    assert ranking.top(2) == Ranking(["c", "b"], [2.0, 3.0])
    assert ranking.top(2) != ranking
    assert ranking != "bca"
    assert len(ranking.top(0)) == 0


def test_run_is_a_mapping_in_the_given_order():
    run = Run({"9": Ranking(["a"], [1.0]), "1": Ranking(["b", "c"], [1.0, 2.0])}, "mine")
    assert list(run) == ["9", "1"]
    assert len(run) == 2
    assert "1" in run
    assert run["1"].docids == ["c", "b"]
    assert run.get("2") is None
    assert run.to_dict() == {"9": {"a": 1.0}, "1": {"c": 2.0, "b": 1.0}}


def test_qrels_are_a_mapping():
    qrels = Qrels({"1": {"a": 2, "b": 0, "c": 1, "d": -1}})
    assert qrels["1"]["a"] == 2
    assert list(qrels) == ["1"]
    assert qrels.relevant("1") == {"a", "c"}
    assert qrels.relevant("1", level=2) == {"a"}
    assert qrels.relevant("7") == set()


def test_topics_compare_by_value_and_cannot_be_changed():
    topic = Topic("1", "words")
    assert topic == Topic("1", "words", None, {})
    assert hash(topic) == hash(Topic("1", "words", None, {"desc": "x"}))
    with pytest.raises(AttributeError):
        topic.text = "others"  # type: ignore[misc]
