"""The blend: how far depths agree, when feedback holds back, and what is said of it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sdretrieval.cli.explain_text import explanation_text
from sdretrieval.collection.records import Topic
from sdretrieval.core.errors import ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions, Result
from sdretrieval.ranking.explain import explain
from sdretrieval.ranking.models.blend import agreement
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.term_model import TermModel

WORDS = ["cat", "fur", "paw", "the", "dog", "car"]


@pytest.fixture
def snapshot() -> Snapshot:
    """Cats have fur and paws in ten documents; in one the cat is alone with a car; dogs elsewhere."""
    cats = [[2, 1, 1, 3, 0, 0]] * 10
    return Snapshot.from_counts([*cats, [1, 0, 0, 1, 0, 5], *[[0, 0, 0, 3, 2, 0]] * 20], WORDS)


def ranked(snapshot: Snapshot, options: RankOptions | None = None, **settings) -> Result:
    query = Query.from_words(snapshot, ["cat"], qid="1")
    [result] = Engine(snapshot).rank(make_ranker("blend", settings), [query], options)
    return result


def words_of(snapshot: Snapshot, result: Result) -> set[str]:
    return {snapshot.term(term) for term in result.plan.model.terms.tolist()}


def model(**weights: float) -> TermModel:
    terms = [WORDS.index(word) for word in weights]
    return TermModel.of(np.array(terms), np.array(list(weights.values())))


def test_agreement_is_the_mean_over_pairs_of_what_both_have():
    one, two, three = model(cat=0.5, fur=0.5), model(cat=0.25, fur=0.75), model(dog=1.0)
    assert agreement([one]) == 1.0
    assert agreement([one, two]) == pytest.approx(0.75)
    assert agreement([one, two, three]) == pytest.approx((0.75 + 0.0 + 0.0) / 3)
    assert agreement([three, one, two]) == pytest.approx(0.25)


def test_words_that_come_with_the_query_are_learnt(snapshot: Snapshot):
    result = ranked(snapshot)
    words = words_of(snapshot, result)
    assert {"cat", "fur", "paw"} <= words and "dog" not in words
    assert result.plan.model.mass == pytest.approx(1.0)


def test_one_document_alone_is_no_agreement(snapshot: Snapshot):
    """Whatever the depth the words are its words: 1 - Σ W² is 0, and the query stays as typed."""
    result = ranked(snapshot, fb_docs=1)
    assert result.expansion is not None and result.expansion.notes["query_weight"] == 1.0
    assert words_of(snapshot, result) == {"cat"}


def test_a_document_judged_relevant_is_believed(snapshot: Snapshot):
    judged = {"1": Judgments(np.array([10]), np.array([], dtype=np.int64))}
    result = ranked(snapshot, RankOptions(judged=judged))
    assert result.expansion is not None
    assert result.expansion.notes["query_weight"] == pytest.approx(0.2)  # least_query_weight
    assert "car" in words_of(snapshot, result)


def test_the_query_keeps_its_least_weight(snapshot: Snapshot):
    assert words_of(snapshot, ranked(snapshot, least_query_weight=1.0)) == {"cat"}
    held = ranked(snapshot, least_query_weight=0.9).expansion
    assert held is not None and held.notes["query_weight"] == pytest.approx(0.9)


@pytest.mark.parametrize("parts", ["", "sd,sd", "sd,nonsense", ","])
def test_parts_that_are_none(parts: str):
    with pytest.raises(ParameterError, match="parts must be some of sd, rm, axiomatic"):
        make_ranker("blend", {"parts": parts})


def test_explain_tells_each_part_and_why_feedback_held_back(snapshot: Snapshot):
    found = explain(snapshot, Topic("1", "cat"), "blend")
    text = " ".join(explanation_text(found).split())
    assert (
        "held back the query as typed has" in text and "words learnt from 5, 10, 11 and 11 documents agree by" in text
    )
    for part in ("sd", "rm", "axiomatic"):
        assert f"part {part} (agrees by" in text
    notes = json.loads(json.dumps(found.to_json()))["notes"]
    assert set(notes["parts"]) == set(notes["agreement"]) == {"sd", "rm", "axiomatic"}
    assert "fur" in notes["parts"]["axiomatic"]
