"""Words over time in a sharded collection: sums over each shard's documents, added up, and the curves drawn from them.

Every sum is of whole numbers, so the curves are those of `sdretrieval drift` on one index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.core.timeline import Timeline, known_times, middle_of_bin
from sdretrieval.estimate.time.drift import WordCurve, WordSums, bins_between, curves_from_sums, word_sums
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.plugins.spark.shards import Shard


@dataclass(frozen=True, eq=False)
class ByTime:
    """What a shard, or several, know of some words.

    rows    for each bin of ``times`` that has documents: how many, their lengths, counts of the words, WordSums.per_row
    words   occurrences of each word, and in how many documents
    """

    times: np.ndarray
    rows: np.ndarray
    words: np.ndarray
    first: float
    last: float

    def plus(self, other: ByTime) -> ByTime:
        times = np.union1d(self.times, other.times)
        rows = np.zeros((len(times), self.rows.shape[1]))
        for part in (self, other):
            rows[np.searchsorted(times, part.times)] += part.rows
        first, last = min(self.first, other.first), max(self.last, other.last)
        return ByTime(times, rows, self.words + other.words, first, last)


def by_time(shard: Shard, request: tuple[Sequence[int], float]) -> ByTime:
    """A request: some words (numbers over all shards, ascending) along this shard's times."""
    terms, resolution = request
    snapshot = shard.snapshot
    stamps, dated = known_times(snapshot.times)
    times, row = np.unique(middle_of_bin(stamps[dated], resolution), return_inverse=True)
    row_of = np.full(len(stamps), -1, dtype=np.int64)
    row_of[dated] = row
    # The words, and one column with the rest of each document, so that lengths are whole.
    wide = np.zeros((snapshot.n_docs, len(terms) + 1), dtype=np.int64)
    known, local = shard.local_terms(np.asarray(terms))
    for column, place in zip(np.flatnonzero(known).tolist(), local.tolist(), strict=True):
        span = slice(snapshot.term_ptr[place], snapshot.term_ptr[place + 1])
        wide[snapshot.term_docs[span], column] = snapshot.term_counts[span]
    lengths = np.asarray(snapshot.doc_lengths)
    wide[:, -1] = lengths - wide[:, :-1].sum(axis=1)
    sums = word_sums(csr_matrix(wide), row_of, len(times), range(len(terms)))
    rows = np.zeros((len(times), 2 + len(terms)))
    np.add.at(rows, row, np.column_stack([np.ones(len(row)), lengths[dated], wide[dated, :-1]]))
    return ByTime(
        times,
        np.hstack([rows, sums.per_row.T]),
        np.stack([sums.occurrences, sums.documents]),
        float(stamps[dated].min(initial=np.inf)),
        float(stamps[dated].max(initial=-np.inf)),
    )


@dataclass(frozen=True, eq=False)
class ShardedDrift:
    """Curves over the middles of all bins between the first document and the last."""

    grid: np.ndarray
    documents: np.ndarray
    words: np.ndarray
    curves: list[WordCurve]


def drift(
    runner: Any,
    terms: Sequence[int],
    *,
    bandwidth: float,
    resolution: float,
    kernel: str = "tricube",
    level: float = 0.95,
) -> ShardedDrift:
    """The curves of some words, summed over all shards."""
    order, n = np.argsort(terms, kind="stable"), len(terms)  # shards look words up in ascending order
    found: ByTime = runner.reduce(by_time, ([terms[i] for i in order], resolution))
    documents, lengths, counts, per_row = np.split(found.rows, [1, 2, 2 + n], axis=1)
    line = Timeline(
        found.times,
        csr_matrix(counts),
        lengths[:, 0],
        documents[:, 0].astype(np.int64),
        np.zeros(0, dtype=np.int64),
        float(resolution),
    )
    sums = WordSums(per_row.T, found.words[0], found.words[1].astype(np.int64))
    model = LocalLikelihood(line, None, bandwidth, kernel=kernel)
    grid = bins_between(found.first, found.last, resolution)
    curves = curves_from_sums(model, model.over(grid), range(n), sums, grid, level=level)
    place = np.searchsorted(grid, found.times - 0.5 * resolution)
    documents, words = np.zeros((2, len(grid)), dtype=np.int64)
    documents[place], words[place] = line.documents, line.lengths
    return ShardedDrift(grid, documents, words, [curves[i] for i in np.argsort(order)])
