"""The blend: which words are learnt, how much they count, and what is said of it."""

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
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.models.blend import PARTS, agreed
from sdretrieval.ranking.notes import NoPositionsNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25

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


def best_score(snapshot: Snapshot, words: TermModel) -> float:
    rows = Rows.of(snapshot, np.arange(11))
    return float((rows.phi(words.terms, BM25(b=0.5), snapshot.statistics) @ words.weights).max())


def test_evidence_of_rows_is_the_score_of_documents(snapshot: Snapshot):
    plan, docs = ranked(snapshot).plan, np.array([12, 10, 0])
    words = plan.model
    found = Rows.of(snapshot, docs).phi(words.terms, plan.weighting, snapshot.statistics) @ words.weights
    assert found == pytest.approx(Engine(snapshot).score_docs(plan, docs))
    nothing = np.zeros(0, dtype=np.int64)
    assert Rows.of(snapshot, docs).phi(nothing, plan.weighting, snapshot.statistics).shape == (3, 0)


def test_words_that_come_with_the_query_are_learnt(snapshot: Snapshot):
    result = ranked(snapshot)
    words = words_of(snapshot, result)
    assert {"cat", "fur", "paw"} <= words and "dog" not in words
    assert result.plan.model.mass == pytest.approx(1.0)


@pytest.mark.parametrize("r", [0.5, 2.0, 8.0])
def test_where_estimates_agree_feedback_counts_at_its_best_r_times_as_much_as_the_query(snapshot: Snapshot, r: float):
    result, query = ranked(snapshot, feedback_weight=r, caution=0.0), Query.from_words(snapshot, ["cat"])
    kept = result.expansion.notes["query_weight"]
    learnt = result.plan.model.plus(query.as_distribution().scaled(-kept))
    assert best_score(snapshot, learnt) == pytest.approx(r * kept * best_score(snapshot, query.as_distribution()))


def test_where_estimates_differ_in_the_best_document_feedback_holds_back():
    """The first five documents have one more word, the others another: at three depths, three unlike estimates."""
    snapshot = Snapshot.from_counts([*[[3, 4, 0]] * 5, *[[2, 0, 4]] * 15, *[[0, 0, 0]] * 20], ["cat", "fur", "paw"])
    best = ranked(snapshot, feedback_weight=2.0, caution=0.0).expansion.notes["best"]
    assert best["feedback"] < 1.95 * best["query"]


def test_rare_words_of_the_query_are_ahead(snapshot: Snapshot):
    query = Query.from_words(snapshot, ["cat", "the"], qid="1")
    [result] = Engine(snapshot).rank(make_ranker("blend", {"feedback_weight": 0.0}), [query])
    the, cat = (result.plan.model.weights[result.plan.model.terms == snapshot.term_id(w)][0] for w in ("the", "cat"))
    assert cat / the == pytest.approx(np.sqrt(np.log1p(20.5 / 11.5) / np.log1p(0.5 / 31.5)))


def test_words_are_cut_by_what_they_add_to_scores(snapshot: Snapshot):
    """ "the" is the most frequent word of the feedback documents, and in nearly all others."""
    assert words_of(snapshot, ranked(snapshot, fb_terms=3, parts="rm")) == {"cat", "fur", "paw"}


def test_without_weight_or_without_words_the_query_stays_as_typed(snapshot: Snapshot):
    assert words_of(snapshot, ranked(snapshot, feedback_weight=0.0)) == {"cat"}
    alone = Snapshot.from_counts([[1], [0]], ["cat"])
    result = ranked(alone, parts="axiomatic")  # it never learns the query's own words
    assert result.expansion.notes["query_weight"] == 1.0 and words_of(alone, result) == {"cat"}


def test_a_document_judged_relevant_is_believed(snapshot: Snapshot):
    """Even one without any of the query's words."""
    for doc, word in ((10, "car"), (30, "dog")):
        judged = {"1": Judgments(np.array([doc]), np.array([], dtype=np.int64))}
        result = ranked(snapshot, RankOptions(judged=judged), feedback_weight=3.0)
        assert result.expansion.notes["query_weight"] == pytest.approx(0.25)
        assert word in words_of(snapshot, result)


@pytest.mark.parametrize("parts", ["", "sd,sd", "sd,nonsense", ","])
def test_parts_that_are_none(parts: str):
    with pytest.raises(ParameterError, match="parts must be some of sd, rm, axiomatic"):
        make_ranker("blend", {"parts": parts})


def test_a_word_that_one_estimate_alone_has_is_not_believed():
    terms, ends = np.array([1, 2, 3, 4]), np.array([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0], [0.5, 0, 0.5, 0]])
    kept = agreed(terms, ends, 1.0)
    assert kept.terms.tolist() == [1, 3]
    # 1 has .5 in all; 3 a mean of 1/3, and deviations of 1/3, 1/6 and 1/6: a standard error of 1/6
    assert kept.weights == pytest.approx([0.5, 1 / 6])
    assert agreed(terms, ends, 0.0).weights == pytest.approx([0.5, 1 / 6, 1 / 3])
    assert agreed(terms, ends[:1], 1.0).weights == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("part", ["sd", "rm", "axiomatic"])
def test_what_is_learnt_at_a_depth_is_learnt_from_those_documents_alone(part: str):
    counts = np.random.default_rng(5).integers(-2, 3, (12, 20)).clip(0)
    counts[:, 0], counts[8:, 18:] = 1, 2  # the last documents have words of their own
    snapshot = Snapshot.from_counts(counts.tolist(), [f"w{i:02}" for i in range(20)])
    query, model = Query.from_words(snapshot, ["w00", "w03", "w19"]), PARTS[part]()
    whole, depths = feedback(np.arange(12), snapshot), [3, 6, 12]
    log_chances = model.log_chances(query, whole, snapshot.statistics)
    terms, found = model.learnt(query, whole.samples(depths, log_chances), snapshot.statistics)
    for n, values in zip(depths, found, strict=True):
        alone = feedback(np.arange(n), snapshot)
        assert model.log_chances(query, alone, snapshot.statistics) == pytest.approx(log_chances[:n])
        words, wanted = model.learnt(query, alone.samples([n], log_chances[:n]), snapshot.statistics)
        assert values[np.searchsorted(terms, words)] == pytest.approx(wanted[0], abs=1e-15)
        assert (np.delete(values, np.searchsorted(terms, words)) <= 0).all()


@pytest.mark.parametrize("part", ["sd", "rm"])
def test_a_part_learns_what_the_model_of_its_name_ranks_by(snapshot: Snapshot, part: str):
    query, model = Query.from_words(snapshot, ["cat"]), PARTS[part](fb_terms=3, original_query_weight=0.0)
    given = feedback(np.arange(8), snapshot)
    samples = given.samples([8], model.log_chances(query, given, snapshot.statistics))
    terms, [values] = model.learnt(query, samples, snapshot.statistics)
    best = TermModel(terms, values).positive().strongest(3).normalised()
    plan = model.expand(query, given, snapshot.statistics).plan
    assert plan.model.terms.tolist() == best.terms.tolist() and plan.model.weights == pytest.approx(best.weights)


def feedback(docs: np.ndarray, snapshot: Snapshot) -> Feedback:
    return Feedback(docs, np.linspace(5.0, 2.0, 40)[docs], Rows.of(snapshot, docs))


def test_without_positions_words_rank_alone_and_it_is_said(snapshot: Snapshot):
    query = Query.from_words(snapshot, ["cat", "fur"], qid="1")
    [result] = Engine(snapshot).rank(make_ranker("blend"), [query])
    alone = make_ranker("blend", {"ordered_weight": 0.0, "near_weight": 0.0})
    [words] = Engine(snapshot).rank(alone, [query])
    assert result.scores.tolist() == words.scores.tolist() and result.plan.pairs is None
    assert [type(note) for note in result.notes] == [NoPositionsNote] and not words.notes


def test_explain_tells_what_neighbours_bring():
    texts = [["cat", "fur", "x"], ["fur", "x", "cat"], ["cat", "y"], ["z"], ["z", "y"]]
    told = explain(Snapshot.from_words(texts, list("abcde")), Topic("1", "cat fur"), "blend", "a")
    assert "neighbours 'cat fur': count besides" in " ".join(explanation_text(told).split())
    found = told.document
    assert found is not None and found.total == pytest.approx(found.score)
    assert {"'cat fur' in order", "'cat fur' near each other"} <= set(found.parts)


def test_explain_tells_each_part_and_how_much_feedback_counts(snapshot: Snapshot):
    found = explain(snapshot, Topic("1", "cat"), "blend")
    text = " ".join(explanation_text(found).split())
    assert "held back the query as typed has" in text and "words learnt from 5, 10 and 11 documents" in text
    assert (
        "at its best a feedback document scores" in text
        and "may count as much, and do where all estimates agree" in text
    )
    notes = json.loads(json.dumps(found.to_json()))["notes"]
    assert set(notes["parts"]) == {"sd", "rm", "axiomatic"}
    for part, words in notes["parts"].items():
        assert f"part {part} {next(iter(words))}" in text
    assert "fur" in notes["parts"]["axiomatic"]
