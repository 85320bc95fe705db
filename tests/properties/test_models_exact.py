"""Every model against tests/oracle.py on random small collections, and the laws that no implementation may break."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import HealthCheck, Phase, assume, given, reject, settings
from hypothesis import strategies as st
from strategies import SETTINGS, corpora, judgments, queries, settings_of, snapshot_of

from sdretrieval.core.parameters import domains
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking import walk as walk_module
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions, Result
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker, rankers

EXACT = 1e-9  # of the largest score
FEEDBACK_MODELS = [name for name, values in SETTINGS.items() if "fb_docs" in values]
ALL = 10**6


def examples(n: int):
    """Collections that must be rejected are common, so no health check on that. Exploring tries ten times as many."""
    return settings(
        max_examples=n if settings.default.derandomize else 10 * n,
        report_multiple_bugs=False,
        phases=[Phase.explicit, Phase.generate],  # add Phase.shrink for a smaller failing example, in minutes
        suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def one(
    snapshot: Snapshot,
    model: str,
    values: dict,
    words: list[str],
    *,
    judged=None,
    candidates=None,
    threads=1,
    prune=None,
) -> Result:
    query = Query.from_words(snapshot, words, qid="q")
    [result] = Engine(snapshot, threads=threads).rank(
        make_ranker(model, values),
        [query],
        RankOptions(
            hits=ALL,
            judged=None if judged is None else {"q": judged},
            candidates=None if candidates is None else {"q": np.array(candidates, dtype=np.int64)},
            prune=prune,
        ),
    )
    return result


def ask_oracle(corpus: oracle.Corpus, model: str, values: dict, words: list[str], judged=((), ())) -> oracle.Answer:
    try:
        return oracle.MODELS[model](corpus, corpus.query(words), values, *judged)
    except oracle.Undecided:
        reject()


def assert_scores(found: np.ndarray, expected: np.ndarray, exact: float = EXACT) -> None:
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 + exact * scale)


def assert_same_ranking(result: Result, answer: oracle.Answer, corpus: oracle.Corpus, exact: float = EXACT) -> None:
    """The same documents, scores, and order; documents whose scores differ by rounding alone may change places."""
    assert set(result.docs.tolist()) == set(np.flatnonzero(answer.listed).tolist())
    assert_scores(result.scores, answer.scores[result.docs], exact)
    assert_order(result.docs.tolist(), answer.scores, corpus, exact)


def assert_order(docs: list[int], scores: np.ndarray, corpus: oracle.Corpus, exact: float = EXACT) -> None:
    scale = np.abs(scores).max(initial=0.0)
    rounding = 1e-13 + max(exact, np.finfo(np.float32).eps) * scale  # trec_eval compares in single precision
    for before, after in pairwise(docs):
        assert scores[before] >= scores[after] - rounding
        if scores[before] == scores[after] and (corpus.counts[before] == corpus.counts[after]).all():
            assert corpus.docids[before] > corpus.docids[after]  # twins: docid down


def first_pass_order(corpus: oracle.Corpus, answer: oracle.Answer, words: list[str]) -> list[int]:
    """All documents as a run would list them: those of the first pass in rank order, then the others."""
    listed = corpus.has_any(corpus.query(words) > 0)
    return oracle.ranked(corpus, answer.first, listed) + np.flatnonzero(~listed).tolist()


# -- the equations -----------------------------------------------------------------------------------------------


def test_every_parameter_of_every_model_is_varied():
    """A new model or parameter must come with a strategy here."""
    assert set(SETTINGS) == set(oracle.MODELS)
    for name in SETTINGS:
        assert set(SETTINGS[name]) == set(domains(rankers()[name])), name


@pytest.mark.parametrize("model", SETTINGS)
@examples(20)
@given(data=st.data())
def test_search_is_the_equation(model: str, data: st.DataObject):
    corpus = data.draw(corpora())
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    answer = ask_oracle(corpus, model, values, words)
    result = one(snapshot_of(corpus), model, values, words)
    assert_same_ranking(result, answer, corpus)
    if result.expansion is not None:
        assert result.feedback is not None and answer.weights is not None
        found = dict(zip(result.feedback.docs.tolist(), result.expansion.weights.tolist(), strict=True))
        assert found == pytest.approx(dict(zip(answer.feedback, answer.weights, strict=True)), abs=EXACT)


@pytest.mark.parametrize("model", SETTINGS)
@examples(10)
@given(data=st.data())
def test_rerank_of_all_documents_is_the_equation(model: str, data: st.DataObject):
    """Also for documents that have none of the words, and for empty ones."""
    corpus = data.draw(corpora())
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    answer = ask_oracle(corpus, model, values, words)
    run = first_pass_order(corpus, answer, words)
    assume(len(answer.feedback) == min(values.get("fb_docs", 0), corpus.n_docs))  # else the run has other feedback
    result = one(snapshot_of(corpus), model, values, words, candidates=run)
    assert sorted(result.docs.tolist()) == list(range(corpus.n_docs))
    assert_scores(result.scores, answer.scores[result.docs])
    assert_order(result.docs.tolist(), answer.scores, corpus)


@pytest.mark.parametrize("model", FEEDBACK_MODELS)
@examples(12)
@given(data=st.data())
def test_judged_feedback_is_the_equation(model: str, data: st.DataObject):
    corpus = data.draw(corpora(min_docs=2))
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    relevant, nonrelevant = data.draw(judgments(corpus))
    assume(relevant or nonrelevant)
    answer = ask_oracle(corpus, model, values, words, (relevant, nonrelevant))
    known = Judgments(np.array(relevant, dtype=np.int64), np.array(nonrelevant, dtype=np.int64))
    result = one(snapshot_of(corpus), model, values, words, judged=known)
    # Words on which relevant and non-relevant documents agree to the last bit may not be listed.
    assert set(result.docs.tolist()) <= set(np.flatnonzero(answer.listed).tolist())
    assert_scores(result.scores, answer.scores[result.docs])
    if result.feedback is not None:
        assert sorted(result.feedback.docs.tolist()) == sorted(answer.feedback)
        assert result.feedback.judged == bool(relevant)
        # Every document's score, whatever a search lists.
        scores = Engine(snapshot_of(corpus)).score_docs(result.plan, np.arange(corpus.n_docs))
        assert_scores(scores, answer.scores)


@pytest.mark.parametrize("first_stage", ["bm25", "ql"])
@examples(10)
@given(data=st.data())
def test_anserini_mode_is_anserinis_rm3(first_stage: str, data: st.DataObject):
    """In single precision, as Anserini: equal to 1e-6."""
    corpus = data.draw(corpora(min_docs=10, max_docs=24))
    words = data.draw(queries(corpus))
    values = data.draw(settings_of("rm3", mode="anserini", first_stage=first_stage))
    unknown = sum(word not in corpus.words for word in words)
    try:
        answer = oracle.anserini_rm3(corpus, corpus.query(words), values, unknown=unknown)
    except oracle.Undecided:
        reject()
    result = one(snapshot_of(corpus), "rm3", values, words)
    assume(values["original_query_weight"] in (0.0, 1.0) or 1e-6 < values["original_query_weight"] < 1 - 1e-6)
    assert_same_ranking(result, answer, corpus, exact=1e-6)


@pytest.mark.parametrize("scoring", ["bm25", "ql"])
@examples(10)
@given(data=st.data())
def test_anserini_mode_is_anserinis_axiomatic_feedback(scoring: str, data: st.DataObject):
    """With a pool of the whole collection; in single precision, as Anserini."""
    corpus = data.draw(corpora(min_docs=10, max_docs=24))
    words = data.draw(queries(corpus))
    values = data.draw(settings_of("axiomatic", mode="anserini", scoring=scoring, pool=30.0))
    unknown = sum(word not in corpus.words for word in words)
    try:
        answer = oracle.anserini_axiomatic(corpus, corpus.query(words), values, unknown=unknown)
    except oracle.Undecided:
        reject()
    result = one(snapshot_of(corpus), "axiomatic", values, words)
    assert_same_ranking(result, answer, corpus, exact=2e-6)


@pytest.mark.parametrize("scoring", ["exact", "anserini"])
@examples(8)
@given(data=st.data())
def test_bm25prf_in_either_mode(scoring: str, data: st.DataObject):
    """Where no offers tie, Java's order of words decides nothing."""
    corpus = data.draw(corpora(min_docs=4, max_docs=16))
    words, values = data.draw(queries(corpus)), data.draw(settings_of("bm25prf", mode=scoring))
    answer = ask_oracle(corpus, "bm25prf", values, words)
    assert_same_ranking(one(snapshot_of(corpus), "bm25prf", values, words), answer, corpus)


@pytest.mark.parametrize("posterior", ["approximate", "exact"])
@examples(10)
@given(data=st.data())
def test_the_bound_is_the_mixtures_and_never_falls(posterior: str, data: st.DataObject):
    corpus = data.draw(corpora(min_docs=2))
    words = data.draw(queries(corpus))
    values = data.draw(
        settings_of("sd", posterior=posterior, iterations=0, later_e_steps="likelihood", query_weight=0.0)
    )
    result = one(snapshot_of(corpus), "sd", values, words)
    assert result.expansion is not None
    bounds = result.expansion.notes["bounds"]
    assert result.expansion.notes["converged"] or len(bounds) == 100
    rounding = 1e-9 * max(1.0, np.abs(bounds).max())
    assert (np.diff(bounds) >= -rounding).all()
    answer = ask_oracle(corpus, "sd", {**values, "iterations": len(bounds)}, words)
    np.testing.assert_allclose(bounds, answer.bounds, rtol=0, atol=rounding)
    assert_same_ranking(result, answer, corpus)


@examples(10)
@given(data=st.data())
def test_dense_model_is_kept_whole(data: st.DataObject):
    """What the sparse form says about the whole vocabulary is the dense model, word by word."""
    corpus = data.draw(corpora())
    words = data.draw(queries(corpus))
    model = data.draw(st.sampled_from(["rm", "sd"]))
    values = data.draw(settings_of(model))
    answer = ask_oracle(corpus, model, values, words)
    assume(answer.feedback)
    snapshot = snapshot_of(corpus)
    dense = one(snapshot, model, values, words).plan.model.dense(snapshot.p_collection)
    assert answer.a is not None
    by_word = dict(zip(corpus.words, answer.a, strict=True))
    assert_scores(dense, np.array([by_word[word] for word in snapshot.vocabulary]))


# -- laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SETTINGS)
@examples(5)
@given(data=st.data())
def test_order_of_documents_and_words_does_not_matter(model: str, data: st.DataObject):
    """Rows and columns shuffled: the same list to the last bit. Only the docid may decide ties."""
    corpus = data.draw(corpora(min_docs=2))
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    rows = data.draw(st.permutations(range(corpus.n_docs)))
    columns = data.draw(st.permutations(range(len(corpus.words))))
    shuffled = oracle.Corpus(
        corpus.counts[np.ix_(rows, columns)], [corpus.words[i] for i in columns], [corpus.docids[i] for i in rows]
    )
    there, here = snapshot_of(corpus), snapshot_of(shuffled)
    first, second = one(there, model, values, words), one(here, model, values, words[::-1])
    assert there.docids.take(first.docs) == here.docids.take(second.docs)
    assert np.array_equal(first.scores, second.scores)


@pytest.mark.parametrize("model", [m for m in SETTINGS if m != "tfidf"])
@examples(5)
@given(data=st.data())
def test_spelling_does_not_matter(model: str, data: st.DataObject):
    """Words renamed so that the vocabulary sorts otherwise: the same scores, up to the order of additions."""
    corpus = data.draw(corpora(min_docs=2))
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    if "fb_terms" in values:
        values["fb_terms"] = 40  # where words are cut, the alphabet decides ties
    names = data.draw(st.permutations([f"{i:02d}x" for i in range(len(corpus.words))]))
    rename = dict(zip(corpus.words, names, strict=True))
    renamed = oracle.Corpus(corpus.counts, names, corpus.docids)
    ask_oracle(corpus, model, values, words)  # rejects feedback that hangs on rounding
    first = one(snapshot_of(corpus), model, values, words)
    second = one(snapshot_of(renamed), model, values, [rename.get(word, word) for word in words])
    assert set(first.docs.tolist()) == set(second.docs.tolist())
    scores = dict(zip(second.docs.tolist(), second.scores, strict=True))
    assert_scores(first.scores, np.array([scores[d] for d in first.docs.tolist()]))


@examples(10)
@given(data=st.data())
def test_rm3_with_all_weight_on_the_query_ranks_as_ql(data: st.DataObject):
    corpus = data.draw(corpora())
    words, lam = data.draw(queries(corpus)), data.draw(settings_of("ql"))["lam"]
    values = data.draw(settings_of("rm3", original_query_weight=1.0, scoring="lm", smoothing="jm", lambda_ranking=lam))
    snapshot = snapshot_of(corpus)
    feedback = one(snapshot, "rm3", values, words)
    plain = one(snapshot, "ql", {"smoothing": "jm", "lam": lam}, words)
    assert set(feedback.docs.tolist()) == set(plain.docs.tolist())
    length = sum(word in corpus.words for word in words)
    scores = np.zeros(corpus.n_docs)
    scores[plain.docs] = plain.scores
    assert_scores(feedback.scores * length, scores[feedback.docs])
    assert_order(feedback.docs.tolist(), scores, corpus)


@pytest.mark.parametrize("model", SETTINGS)
@examples(5)
@given(data=st.data())
def test_threads_and_company_do_not_matter(model: str, data: st.DataObject):
    """Bit by bit: alone or among other queries, with one thread or with three."""
    corpus = data.draw(corpora())
    snapshot, values = snapshot_of(corpus), data.draw(settings_of(model))
    texts = [data.draw(queries(corpus)) for _ in range(3)]
    asked = [Query.from_words(snapshot, words, qid=str(i)) for i, words in enumerate(texts)]
    ranker = make_ranker(model, values)
    alone = [next(Engine(snapshot).rank(ranker, [query], RankOptions(hits=ALL))) for query in asked]
    for threads in (1, 3):
        together = list(Engine(snapshot, threads=threads).rank(ranker, asked, RankOptions(hits=ALL)))
        for a, b in zip(alone, together, strict=True):
            assert a.docs.tolist() == b.docs.tolist()
            assert np.array_equal(a.scores, b.scores)


@pytest.mark.parametrize("model", ["bm25", "ql", "rm", "rm3", "sd", "sd3", "tfidf"])
@examples(5)
@given(data=st.data())
def test_narrow_and_wide_walks_agree(model: str, data: st.DataObject):
    """Bit by bit, so that it does not matter which is taken."""
    corpus = data.draw(corpora())
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    snapshot, found = snapshot_of(corpus), []
    for threshold in (10**9, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(walk_module, "WIDE", threshold)
            found.append(one(snapshot, model, values, words, threads=2))
    narrow, wide = found
    assert narrow.docs.tolist() == wide.docs.tolist()
    assert np.array_equal(narrow.scores, wide.scores)


@pytest.mark.parametrize("sums", [1, 7, 1 << 16])
def test_the_size_of_blocks_does_not_matter(sums: int, monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(3)
    snapshot = Snapshot.from_counts(rng.poisson(0.4, (60, 20)), [f"w{i:02d}" for i in range(20)])
    expected = [one(snapshot, model, {}, ["w03", "w07"]) for model in ("sd", "rm3", "bm25")]
    monkeypatch.setattr(walk_module, "NARROW_SUMS", sums)
    monkeypatch.setattr(walk_module, "POSTINGS", 0)
    for wanted, model in zip(expected, ("sd", "rm3", "bm25"), strict=True):
        found = one(snapshot, model, {}, ["w03", "w07"])
        assert found.docs.tolist() == wanted.docs.tolist()
        assert np.array_equal(found.scores, wanted.scores)


@pytest.mark.parametrize("model", ["rm", "sd", "rm3", "sd3", "tfidf"])
@examples(8)
@given(data=st.data())
def test_pruning_to_every_word_changes_nothing_and_to_fewer_says_so(model: str, data: st.DataObject):
    corpus = data.draw(corpora())
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    snapshot = snapshot_of(corpus)
    whole = one(snapshot, model, values, words)
    same = one(snapshot, model, values, words, prune=max(1, len(whole.plan.model)))
    assert [note.lost for note in same.notes] == [0.0]
    assert same.docs.tolist() == whole.docs.tolist() and np.array_equal(same.scores, whole.scores)
    few = one(snapshot, model, values, words, prune=1)
    assert len(few.plan.model) <= 1
    sizes = np.sort(np.abs(whole.plan.model.weights))
    lost = 1 - sizes[-1] / sizes.sum() if sizes.sum() else 0.0
    assert [note.lost for note in few.notes] == [pytest.approx(lost, abs=1e-12)]
