"""Wide plans sifted together give the documents, order and scores of exhaustive scoring, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from test_models_exact import examples

from sdretrieval.core.compiled import at_most_full, njit, upper_half
from sdretrieval.index import rows
from sdretrieval.index.rows import packed_rows
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.snapshot_format import SNAPSHOT
from sdretrieval.ranking import engine as engine_module
from sdretrieval.ranking import sieve, sieve_loops, walk
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, DPH, Dirichlet, JelinekMercer, LuceneDirichlet, Weighting

N_DOCS, N_TERMS = 3000, 300


@pytest.fixture(scope="module")
def collection() -> Snapshot:
    """Documents of very different lengths, some of them twice, with counts above 1."""
    random = np.random.default_rng(3)
    chances = 1.0 / np.arange(1, N_TERMS + 1)
    texts = [random.choice(N_TERMS, n, p=chances / chances.sum()) for n in random.geometric(0.03, N_DOCS - 50)]
    texts += texts[:50]
    rows = np.repeat(np.arange(N_DOCS), [len(text) for text in texts])
    counts = csr_matrix((np.ones(len(rows), int), (rows, np.concatenate(texts))), shape=(N_DOCS, N_TERMS))
    return Snapshot.from_counts(counts, [f"w{i:03d}" for i in range(N_TERMS)])


@pytest.fixture(autouse=True)
def everything_is_sifted(monkeypatch):
    monkeypatch.setattr(engine_module, "BOUNDS_FROM", 0)
    monkeypatch.setattr(engine_module, "WORTH", 0)
    monkeypatch.setattr(walk, "WIDE", 5)
    monkeypatch.setattr(sieve, "READING", -1000.0)  # it always pays


def test_counts_that_are_not_in_the_rows(collection: Snapshot, monkeypatch):
    monkeypatch.setattr(rows, "LEAST_BITS", 31)
    words = packed_rows(collection.doc_terms, collection.doc_counts, N_TERMS)
    listed = Snapshot({**collection.arrays, **SNAPSHOT.fitted(words)})
    for weighting in (JelinekMercer(0.3), BM25()):
        plans = plans_of(collection, weighting, 3, 40)
        assert_same(sifted(Engine(listed), plans, 20), Engine(collection).best_of_all(plans, 20))


def plans_of(
    snapshot: Snapshot, weighting: Weighting, n: int, words: int, background: float = 0.0, seed: int = 0
) -> list[Plan]:
    random = np.random.default_rng(seed)
    chosen = [np.sort(random.choice(snapshot.n_terms, words, replace=False)) for _ in range(n)]
    return [Plan(TermModel(terms, random.random(words) ** 4 + 1e-9, background), weighting) for terms in chosen]


def sifted(engine: Engine, plans: list[Plan], depth: int) -> list:
    return sieve.sifted(engine._pruned(plans), depth, engine._spans(), engine.each)


def assert_same(found: list, expected: list) -> None:
    assert any(one is not None for one in found)
    for one, (docs, scores) in zip(found, expected, strict=True):
        if one is not None:
            assert one[0].tolist() == docs.tolist()
            assert one[1].tobytes() == scores.tobytes()


@examples(40)
@given(
    st.sampled_from([JelinekMercer(0.3), JelinekMercer(1e-4), Dirichlet(500.0), BM25(), LuceneDirichlet(200.0)]),
    st.integers(1, 20),
    st.sampled_from([6, 40, 300]),
    st.sampled_from([0.0, -0.01, 0.3]),
    st.sampled_from([1, 10, 100, 5000]),
    st.integers(1, 3),
)
def test_the_best_are_those_of_all(collection, weighting, n, words, background, depth, threads):
    plans = plans_of(collection, weighting, n, words, background if weighting.is_language_model else 0.0)
    engine = Engine(collection, threads=threads)
    assert_same(sifted(engine, plans, depth), engine.best_of_all(plans, depth))


@pytest.mark.parametrize("model", ["rm", "sd", "bm25"])
def test_models(collection, model):
    queries = [Query.from_words(collection, [f"w{i:03d}", f"w{i + 7:03d}"], qid=str(i)) for i in range(30, 50)]
    ranker, options = make_ranker(model), RankOptions(hits=50)
    found = list(Engine(collection).rank(ranker, queries, options))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "BOUNDS_FROM", 8 * N_DOCS + 8)
        expected = list(Engine(collection).rank(ranker, queries, options))
    for one, other in zip(found, expected, strict=True):
        assert one.docs.tolist() == other.docs.tolist()
        assert one.scores.tobytes() == other.scores.tobytes()


def test_only_allowed_documents(collection):
    allowed = np.arange(N_DOCS) % 3 == 0
    engine = Engine(collection).view(collection.statistics, allowed)
    plans = plans_of(collection, JelinekMercer(0.5), 9, 50)
    found = sifted(engine, plans, 20)
    assert_same(found, engine.best_of_all(plans, 20))
    assert all(allowed[one[0]].all() for one in found if one is not None)


def test_equal_scores_at_the_end_prove_nothing():
    """All documents score alike: which of them are the best is told by their names, and no bound tells them apart."""
    same = Snapshot.from_counts(np.ones((500, 8), int), [f"w{i}" for i in range(8)])
    engine, plans = Engine(same), plans_of(same, BM25(), 3, 8)
    assert sifted(engine, plans, 10) == [None] * 3
    for (docs, _), (expected, _) in zip(engine.best(plans, 10), engine.best_of_all(plans, 10), strict=True):
        assert docs.tolist() == expected.tolist()


def test_what_sums_do_not_bound_is_left_alone(collection):
    engine = Engine(collection)
    below, endless = plans_of(collection, BM25(), 2, 50)
    below.model.weights[3] = -0.1
    endless.model.weights[3] = np.inf
    good = plans_of(collection, BM25(), 1, 50, seed=5)
    [light] = plans_of(collection, JelinekMercer(0.5), 1, 50, background=1.0)
    light.model.weights[:] *= 1e-300
    assert sifted(engine, [light], 10) == [None]
    found = sifted(engine, [below, endless, *good], 10)
    assert [one is None for one in found] == [True, True, False]
    [(docs, _)] = engine.best([below], 10)
    assert docs.tolist() == engine.best_of_all([below], 10)[0][0].tolist()
    assert engine._best_by_bounds(plans_of(collection, DPH(), 2, 50), 10) == [None, None]


@pytest.mark.parametrize("factor", [np.nan, np.inf, -1.0, 1e300])
def test_factors_that_bound_nothing_are_left_alone(collection, factor):
    engine = Engine(collection)
    search = engine._pruned(plans_of(collection, JelinekMercer(0.5), 2, 50))
    search.A[7] = factor
    first, second = sieve.sifted(search, 10, engine._spans(), engine.each)
    assert first is None
    assert second is not None


@pytest.mark.parametrize("weighting", [JelinekMercer(0.01), BM25(), LuceneDirichlet(2.0)])
@pytest.mark.parametrize(("name", "value"), [("ROOM", 0.5), ("ROOM", 0.01), ("ROOM", 50.0), ("MANY", 0.01)])
def test_sums_and_evidence_too_large_for_their_bits_bound_nothing(collection, monkeypatch, weighting, name, value):
    monkeypatch.setattr(sieve, name, value)
    engine, plans = Engine(collection), plans_of(collection, weighting, 9, 100)
    found, expected = sifted(engine, plans, 10), engine.best_of_all(plans, 10)
    for one, (docs, scores) in zip(found, expected, strict=True):
        assert one is None or (one[0].tolist() == docs.tolist() and one[1].tobytes() == scores.tobytes())


def test_documents_without_a_word_are_not_found():
    """Some plans have words that few documents have; general English speaks for all of them."""
    counts = np.ones((400, 12), int)
    counts[10:, :6] = 0
    snapshot = Snapshot.from_counts(counts, [f"w{i:02d}" for i in range(12)])
    few = Plan(TermModel(np.arange(6), np.full(6, 1e-9), 5.0), JelinekMercer(0.5))
    engine, plans = Engine(snapshot), [few, *plans_of(snapshot, JelinekMercer(0.5), 3, 10, 0.1)]
    for depth in (5, 50):
        found, expected = engine.best(plans, depth), engine.best_of_all(plans, depth)
        assert [docs.tolist() for docs, _ in found] == [docs.tolist() for docs, _ in expected]
        assert len(found[0][0]) == min(depth, 10)


def test_it_is_used_where_it_pays(collection, monkeypatch):
    monkeypatch.setattr(sieve, "READING", 2.0)
    engine = Engine(collection)
    assert sifted(engine, plans_of(collection, BM25(), 1, 300), 10) == [None]  # a plan alone is walked
    assert None not in sifted(engine, plans_of(collection, BM25(), 16, 300), 10)


@njit()
def compiled(a, b):
    return upper_half(a, b), at_most_full(a, b)


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_instructions_do_what_python_does(a, b):
    a, b = np.uint16(a), np.uint16(b)
    wanted = int(a) * int(b) >> 16, min(int(a) + int(b), 0xFFFF)
    assert compiled(a, b) == wanted == (upper_half(a, b), at_most_full(a, b))


@given(st.floats(1.0, 1e30))
def test_logarithms_are_bounded(value):
    bound = float(sieve_loops.log_above(np.float64(value), sieve_loops.log_table()))
    assert np.log(value) <= bound <= np.log(value) + 2.0 / sieve_loops.LOG_STEPS + 1e-4
