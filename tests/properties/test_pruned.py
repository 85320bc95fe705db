"""The best documents by bounds are those of exhaustive scoring: the same documents, order and scores, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from strategies import SETTINGS, corpora, queries, settings_of, snapshot_of
from test_models_exact import ALL, examples

from sdretrieval.core.compiled import plain_loops
from sdretrieval.index import compact, rows
from sdretrieval.index.compact import BITS, Compact
from sdretrieval.index.rows import packed_rows
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.snapshot_format import SNAPSHOT
from sdretrieval.ranking import engine as engine_module
from sdretrieval.ranking import pruned_loops
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.time.prior import Recency
from sdretrieval.ranking.time.wrappers import AsOf, TimePrior
from sdretrieval.ranking.weighting import BM25, DPH, Dirichlet, JelinekMercer, LuceneDirichlet

N_DOCS, N_TERMS = 150_000, 60
FEEDBACK = {"fb_docs": 20, "fb_terms": 30}
MODELS = ["bm25", "ql", "tfidf", "rm3", "sd3", "blend", "axiomatic", "bo1", "rm", "sd", "dph", "lucene-qld"]


@pytest.fixture(scope="module")
def many() -> Snapshot:
    """Three blocks of short documents of few words, so that scores tie; two words are in one block alone."""
    random = np.random.default_rng(7)
    chances = 1.0 / np.arange(1, N_TERMS + 1)
    words = random.choice(N_TERMS, (N_DOCS, 6), p=chances / chances.sum())
    rare = np.where(words >= N_TERMS - 2, np.arange(N_DOCS)[:, None] >> BITS, 1)
    words = np.where(rare == 1, words, 0)
    counts = csr_matrix((np.ones(words.size, int), (np.repeat(np.arange(N_DOCS), 6), words.ravel())))
    times = random.integers(0, 10**12, N_DOCS)
    return Snapshot.from_counts(counts, [f"w{i:02d}" for i in range(N_TERMS)], times=times)


@pytest.fixture(autouse=True)
def collections_are_large_enough(monkeypatch):
    monkeypatch.setattr(engine_module, "BOUNDS_FROM", N_DOCS)
    monkeypatch.setattr(engine_module, "SHARED_FACTOR", 1)
    monkeypatch.setattr(engine_module, "WORTH", 0)


def ranked(snapshot: Snapshot, ranker, query: Query, options: RankOptions, bounds: bool, threads: int = 1) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "BOUNDS_FROM", 0 if bounds else ALL)
        [result] = Engine(snapshot, threads=threads).rank(ranker, [query], options)
        return result


def assert_same(snapshot: Snapshot, ranker, query: Query, hits: int, threads: int = 1) -> None:
    options = RankOptions(hits=hits)
    expected = ranked(snapshot, ranker, query, options, bounds=False)
    found = ranked(snapshot, ranker, query, options, bounds=True, threads=threads)
    assert found.docs.tolist() == expected.docs.tolist()
    assert found.scores.tobytes() == expected.scores.tobytes()


def assert_best(engine: Engine, plan: Plan, depth: int) -> None:
    [(docs, scores)], [(expected, exact)] = engine.best([plan], depth), engine.best_of_all([plan], depth)
    assert docs.tolist() == expected.tolist()
    assert scores.tobytes() == exact.tobytes()


@pytest.mark.parametrize("model", SETTINGS)
@examples(8)
@given(data=st.data())
def test_every_model_on_small_collections(model: str, data: st.DataObject):
    corpus = data.draw(corpora(max_docs=12, most=40))
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    snapshot = snapshot_of(corpus)
    query = Query.from_words(snapshot, words, qid="q")
    assert_same(snapshot, make_ranker(model, values), query, data.draw(st.sampled_from([1, 2, 5, ALL])))


@pytest.mark.parametrize("model", SETTINGS)
@examples(8)
@given(data=st.data())
def test_loops_run_by_python_give_the_same_bits(model: str, data: st.DataObject):
    corpus = data.draw(corpora(max_docs=12, most=40))
    words, values = data.draw(queries(corpus)), data.draw(settings_of(model))
    found = []
    for is_plain in (False, True):
        snapshot = snapshot_of(corpus)
        query = Query.from_words(snapshot, words, qid="q")
        with plain_loops(is_plain):
            found.append(ranked(snapshot, make_ranker(model, values), query, RankOptions(hits=5), bounds=False))
    assert found[0].docs.tolist() == found[1].docs.tolist()
    assert found[0].scores.tobytes() == found[1].scores.tobytes()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("hits", "threads"), [(10, 1), (1000, 2)])
def test_models_on_several_blocks(many: Snapshot, model: str, hits: int, threads: int):
    ranker = make_ranker(model, FEEDBACK if model in ("rm3", "sd3", "blend", "axiomatic", "bo1") else {})
    query = Query.from_words(many, ["w03", "w21", "w40", "w40"], qid="q")
    assert_same(many, ranker, query, hits, threads)


def test_counts_that_are_not_in_the_rows(many: Snapshot, monkeypatch):
    """As where the terms leave one bit to a count: all above 1 are in the list of the large ones."""
    monkeypatch.setattr(rows, "LEAST_BITS", 31)
    listed = Snapshot({**many.arrays, **SNAPSHOT.fitted(packed_rows(many.doc_terms, many.doc_counts, N_TERMS))})
    assert len(listed.rows.large_at) == (many.doc_counts > 1).sum() > N_DOCS // 10
    query = Query.from_words(many, ["w03", "w21", "w40", "w40"], qid="q")
    for model in MODELS:
        expected, found = (ranked(s, make_ranker(model), query, RankOptions(hits=100), True) for s in (many, listed))
        assert found.docs.tolist() == expected.docs.tolist()
        assert found.scores.tobytes() == expected.scores.tobytes()


@pytest.mark.parametrize("wrap", [lambda r: AsOf(ranker=r), lambda r: TimePrior(ranker=r, prior=Recency())])
def test_wrappers_on_several_blocks(many: Snapshot, wrap):
    query = Query.from_words(many, ["w05", "w33"], qid="q", time=6 * 10**11)
    assert_same(many, wrap(make_ranker("rm3", FEEDBACK)), query, 50)


@pytest.mark.parametrize("depth", [1, 7, 1000, ALL])
@pytest.mark.parametrize("weighting", [BM25(), BM25(2.5, 1.0), JelinekMercer(), Dirichlet(), LuceneDirichlet()])
def test_plans_with_negative_weights(many: Snapshot, weighting, depth: int):
    """Also such as no document can be found for with positive ones alone; and with a multiple of general English."""
    engine = Engine(many)
    for weights in ([0.5, 0.3, -0.4, 0.1], [-1.0, -0.2, -0.1, -3.0], [1.0, 0.0, -0.5, 1e-9]):
        model = TermModel(np.array([2, 30, 44, 59]), np.array(weights))
        assert_best(engine, Plan(model, weighting, with_constant=True), depth)
        for background in (-0.3, 0.5) if weighting.is_language_model else ():
            spread = TermModel(model.terms, model.weights, background)
            assert_best(engine, Plan(spread, weighting, with_constant=True), depth)


def test_many_plans_in_one_call(many: Snapshot, monkeypatch):
    """Of several weightings, with general English and without, some of no words, some that bounds are no use for."""
    monkeypatch.setattr(engine_module, "MOST_WORDS", 8)
    random, plans = np.random.default_rng(3), []
    for n in (1, 2, 0, 5, 12, 3, 8):
        terms = np.sort(random.choice(N_TERMS, n, replace=False))
        for weighting, background in ((BM25(), 0.0), (JelinekMercer(), 0.0), (JelinekMercer(), -0.4), (DPH(), 0.0)):
            plans.append(Plan(TermModel(terms, random.random(n) + 0.1, background), weighting))
    engine = Engine(many)
    for plan, (docs, scores) in zip(plans, engine.best(plans, 30), strict=True):
        [(expected, exact)] = engine.best_of_all([plan], 30)
        assert docs.tolist() == expected.tolist()
        assert scores.tobytes() == exact.tobytes()


def test_a_guess_that_was_too_high_is_made_good(many: Snapshot, monkeypatch):
    """The word's documents are all in the block that is walked first; of the other blocks they are the worse ones."""
    rows = np.arange(N_DOCS)
    words = np.where(rows < 40_000, 0, np.where(rows % 3 == 0, 1, 2))
    data = csr_matrix((np.ones(2 * N_DOCS, int), (np.tile(rows, 2), np.concatenate([words, words * 0 + 3]))))
    snapshot = Snapshot.from_counts(data, ["best", "good", "none", "all"])
    plan = Plan(TermModel(np.array([1, 2]), np.array([1.0, 0.5])), BM25())
    guesses, promising = [], pruned_loops.promising
    monkeypatch.setattr(pruned_loops, "promising", lambda *way: guesses.append(way[-1]) or promising(*way))
    assert_best(Engine(snapshot), plan, 50_000)
    assert_best(Engine(snapshot, threads=2), plan, 50_000)
    assert guesses == [True, True, False, False]  # of two threads: one asks for all in one call


def test_only_allowed_documents_are_found(many: Snapshot):
    allowed = np.arange(N_DOCS) % 7 == 3
    engine = Engine(many).view(many.statistics, allowed)
    plan = Plan(TermModel(np.array([1, 20, 33]), np.array([0.2, 1.0, 0.7])), BM25())
    assert_best(engine, plan, 300)
    assert allowed[engine.best([plan], 300)[0][0]].all()


def test_few_postings_are_encoded_alike(many: Snapshot, monkeypatch):
    """By NumPy and by the compiled loop: common words and rare ones, in one block and in several."""
    one_block = Snapshot.from_counts([[1, 0, 3, 0], [1, 2, 0, 0], [1, 1, 9, 30]], list("abcd"))
    for arrays in (many.arrays, one_block.arrays, Snapshot.from_counts(np.zeros((2, 0), int), []).arrays):
        found = []
        for few in (0, len(arrays["term_docs"])):
            monkeypatch.setattr(compact, "FEW", few)
            found.append(compact.compact_arrays(arrays))
        for name, values in found[0].items():
            assert found[1][name].dtype == values.dtype and np.array_equal(found[1][name], values), name


def test_compact_postings_say_what_the_snapshot_says(many: Snapshot):
    """Every posting once, in its block, in a cell of its count and length; those of count 1 last in their block."""
    found: Compact = many.compact
    for term in range(N_TERMS):
        span, at = slice(*many.term_ptr[term : term + 2]), found.ptr[term]
        edges = found.starts[at : at + 2 * found.n_blocks + 1]
        assert edges[0] == 0 and edges[-1] == many.df[term]
        block = np.repeat(np.arange(2 * found.n_blocks) // 2, np.diff(edges))
        docs, cells = found.block_docs[span] + (block << BITS), found.cells[found.block_cells[span]]
        order = np.argsort(docs)
        assert docs[order].tolist() == many.term_docs[span].tolist()
        counts = many.term_counts[span]
        assert (cells[order, 0] <= counts).all() and (counts <= cells[order, 1]).all()
        group = found.group[docs[order]]
        assert (cells[order, 2] <= group).all() and (group <= cells[order, 3]).all()
        single = np.repeat(np.arange(2 * found.n_blocks) % 2, np.diff(edges))[order]
        assert ((counts == 1) == single).all()
