"""Axiomatic feedback: one case by hand, and what the pool, emphasis and shards do to it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker


@pytest.fixture
def snapshot() -> Snapshot:
    """'cat' and 'fur' come together in the two feedback documents, 'the' is everywhere, 'dog' elsewhere."""
    counts = [[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    return Snapshot.from_counts(counts, ["cat", "fur", "the", "dog"])


def expanded(snapshot: Snapshot, **settings) -> dict[str, float]:
    query = Query.from_words(snapshot, ["cat"])
    [result] = Engine(snapshot).rank(make_ranker("axiomatic", settings), [query])
    model = result.plan.model
    return dict(zip(map(snapshot.term, model.terms.tolist()), model.weights.tolist(), strict=True))


def test_by_hand(snapshot: Snapshot):
    """'cat' is in 2 of 4 documents: idf = ln(5/2). 'fur' stands where it stands: s = β. 'the' tells nothing."""
    idf = math.log(5 / 2)
    assert expanded(snapshot, pool=2.0, beta=0.4, idf_power=1.0) == pytest.approx({"cat": idf, "fur": 0.4 * idf})
    assert expanded(snapshot, pool=2.0, beta=0.4, idf_power=0.0) == pytest.approx({"cat": 1.0, "fur": 0.4})


def test_words_that_stand_apart_are_not_taken():
    """'dog' tells of the absence of 'cat' as surely as 'fur' of its presence."""
    snapshot = Snapshot.from_counts([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 1]], ["cat", "fur", "dog"])
    query = Query.from_words(snapshot, ["cat", "dog"])
    [result] = Engine(snapshot).rank(make_ranker("axiomatic", {"fb_docs": 4, "idf_power": 0.0, "beta": 0.5}), [query])
    words = map(snapshot.term, result.plan.model.terms.tolist())
    weights = dict(zip(words, result.plan.model.weights.tolist(), strict=True))
    assert weights == pytest.approx({"cat": 1.0, "dog": 1.0, "fur": 0.5})


def test_emphasis_counts_a_document_for_more_or_less():
    snapshot = Snapshot.from_counts([[1, 1, 0], [1, 0, 1], [1, 1, 0], [0, 0, 0], [0, 0, 0]], ["cat", "fur", "dog"])
    ranker = make_ranker("axiomatic", {"beta": 1.0})
    query = Query.from_words(snapshot, ["cat"])
    [result] = Engine(snapshot).rank(ranker, [query])
    assert result.feedback is not None
    docs = result.feedback.docs.tolist()
    strong = {}
    for chosen in (0, 1):
        emphasis = np.array([10.0 if d % 2 == chosen else 0.1 for d in docs])
        expansion = ranker.expand(query, replace(result.feedback, emphasis=emphasis), snapshot.statistics)
        model = expansion.plan.model
        weights = dict(zip(map(snapshot.term, model.terms.tolist()), model.weights.tolist(), strict=True))
        strong[chosen] = weights.get("fur", 0.0) > weights.get("dog", 0.0)
    assert strong == {0: True, 1: False}


def test_anserinis_dice_need_one_index(snapshot: Snapshot):
    ranker, query = make_ranker("axiomatic", profile="anserini"), Query.from_words(snapshot, ["cat"])
    [result] = Engine(snapshot).rank(ranker, [query])
    assert result.feedback is not None and result.feedback.contrast is not None
    assert len(result.feedback.contrast) == 2  # the collection has no more
    with pytest.raises(ParameterError, match="over shards there are none"):
        ranker.expand(query, replace(result.feedback, contrast=None), snapshot.statistics)
