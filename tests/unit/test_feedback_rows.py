"""Rows of feedback documents: sums over their own words, at any depth, against the same in plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.feedback import Rows
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import BM25, JelinekMercer

WORDS = list("abcdefghijkl")


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """Nine documents, one of them empty; the last ones have words that no other has."""
    counts = np.random.default_rng(3).integers(-4, 4, (9, len(WORDS))).clip(0)
    counts[4], counts[:7, 10:], counts[7:, 10:] = 0, 0, 2
    return Snapshot.from_counts(counts.tolist(), WORDS)


def rows_of(snapshot: Snapshot, n: int = 9, shuffled: bool = False) -> Rows:
    """Of the first documents; shards of a cluster number words otherwise, so that they need not ascend in a row."""
    rows = Rows.of(snapshot, np.arange(n))
    if shuffled and n:
        order = np.concatenate([np.arange(a, b)[::-1] for a, b in zip(rows.ptr[:-1], rows.ptr[1:], strict=True)])
        rows = Rows(rows.ptr, rows.terms[order], rows.counts[order], rows.lengths)
    return rows


def dense(rows: Rows) -> np.ndarray:
    out = np.zeros((len(rows), len(WORDS)))
    row = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))
    out[row, rows.terms] = rows.counts
    return out


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("n", [0, 1, 5, 7, 9])
def test_vocabulary(snapshot: Snapshot, n: int, shuffled: bool):
    rows = rows_of(snapshot, n, shuffled)
    terms, place = rows.vocabulary
    assert terms.tolist() == np.flatnonzero(dense(rows).any(axis=0)).tolist()
    assert terms[place].tolist() == rows.terms.tolist()


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("n", [1, 5, 8])
def test_sums_and_scores(snapshot: Snapshot, n: int, shuffled: bool):
    """A word of rows that weigh nothing is not met."""
    rows, statistics, smoothing = rows_of(snapshot, n, shuffled), snapshot.statistics, JelinekMercer(0.3)
    weights = np.linspace(0.0, 1.0, n)
    counts, lengths = dense(rows), np.maximum(rows.lengths, 1.0)[:, np.newaxis]
    met = np.flatnonzero(weights @ counts)
    ratios = np.log1p(smoothing.odds * counts / lengths / statistics.p)
    for found, wanted in (
        (rows.mean_counts(weights), weights @ (counts / lengths)),
        (rows.mean_log_ratios(weights, smoothing, statistics), weights @ ratios),
    ):
        assert found[0].tolist() == met.tolist()
        np.testing.assert_allclose(found[1], wanted[met], atol=1e-14)
    query = Query.from_words(snapshot, ["b", "l", "b", "e"])  # l is in the last documents alone
    typed = np.bincount([1, 11, 1, 4], minlength=len(WORDS))
    np.testing.assert_allclose(rows.query_scores(query, smoothing, statistics), ratios @ typed, atol=1e-13)
    np.testing.assert_allclose(rows.scores(typed - 0.5, smoothing, statistics), ratios @ (typed - 0.5), atol=1e-13)
    terms, bm25 = np.array([0, 4, 11]), BM25()
    A, B = bm25.term_factors(statistics, terms), bm25.doc_factors(statistics, rows.lengths)
    wanted = bm25.phi(counts[:, terms], A, B[:, np.newaxis])
    np.testing.assert_allclose(rows.phi(terms, bm25, statistics), wanted, atol=1e-14)


def test_sums_of_several_lists_of_weights_are_those_of_each(snapshot: Snapshot):
    """Words that the first documents lack have none of the weight of a list for these."""
    rows, statistics = rows_of(snapshot), snapshot.statistics
    lists = np.where(np.arange(9) < np.array([[2], [5], [9]]), np.linspace(0.3, 1.0, 9), 0.0)
    for give in (rows.mean_counts, lambda weights: rows.mean_log_ratios(weights, JelinekMercer(1e-4), statistics)):
        terms, values = give(lists)
        for weights, of_list in zip(lists, values, strict=True):
            met, wanted = give(weights)
            assert terms[of_list > 0].tolist() == met.tolist() and of_list[of_list > 0].tobytes() == wanted.tobytes()


def test_no_rows_and_empty_ones(snapshot: Snapshot):
    nothing, statistics = Rows.of(snapshot, np.array([4])), snapshot.statistics
    assert [len(found) for found in nothing.mean_counts(np.ones(1))] == [0, 0]
    assert nothing.query_scores(Query.from_words(snapshot, ["b"]), JelinekMercer(0.5), statistics).tolist() == [0.0]
    assert nothing.phi(np.array([1]), BM25(), statistics).tolist() == [[0.0]]
