"""Words over time in a sharded collection: sums over each shard's documents, added up, and the curves drawn from them.

Every sum is of whole numbers, so the curves are those of `sdretrieval drift` on one index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.integrations.spark.shards import Shard
from sdretrieval.integrations.spark.totals import plus
from sdretrieval.temporal.drift import WordCurve, WordSums, bins_between, curves_from_sums, word_sums
from sdretrieval.temporal.local_likelihood import LocalLikelihood
from sdretrieval.temporal.timeline import Timeline, known_times, middle_of_bin


@dataclass(frozen=True, eq=False)
class ByTime:
    """What a shard, or several, know of some words: a row for each bin of time that has documents."""

    times: np.ndarray
    documents: np.ndarray
    lengths: np.ndarray
    counts: np.ndarray  # times x words
    sums: WordSums
    first: float
    last: float

    def plus(self, other: ByTime) -> ByTime:
        times = np.union1d(self.times, other.times)
        mine, theirs = (np.searchsorted(times, part.times) for part in (self, other))

        def added(a: np.ndarray, b: np.ndarray, axis: int = 0) -> np.ndarray:
            a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
            total = np.zeros((len(times), *a.shape[1:]), dtype=a.dtype)
            total[mine] += a
            total[theirs] += b
            return np.moveaxis(total, 0, axis)

        sums = WordSums(
            added(self.sums.per_row, other.sums.per_row, axis=1),
            self.sums.occurrences + other.sums.occurrences,
            self.sums.documents + other.sums.documents,
        )
        return ByTime(
            times, added(self.documents, other.documents), added(self.lengths, other.lengths),
            added(self.counts, other.counts), sums, min(self.first, other.first), max(self.last, other.last),
        )  # fmt: skip


def by_time(shard: Shard, request: tuple[Sequence[int], float]) -> ByTime:
    """A request: some words (numbers over all shards) along this shard's times."""
    terms, resolution = request
    snapshot = shard.snapshot
    stamps, dated = known_times(snapshot.times)
    times, row = np.unique(middle_of_bin(stamps[dated], resolution), return_inverse=True)
    row_of = np.full(len(stamps), -1, dtype=np.int64)
    row_of[dated] = row
    # The words, and one column with the rest of each document, so that lengths are whole.
    local = np.searchsorted(shard.term_map, terms)
    wide = np.zeros((snapshot.n_docs, len(terms) + 1), dtype=np.int64)
    for column, (term, place) in enumerate(zip(terms, local.tolist(), strict=True)):
        if place < len(shard.term_map) and shard.term_map[place] == term:
            span = slice(snapshot.term_ptr[place], snapshot.term_ptr[place + 1])
            wide[snapshot.term_docs[span], column] = snapshot.term_counts[span]
    lengths = np.asarray(snapshot.doc_lengths)
    wide[:, -1] = lengths - wide[:, :-1].sum(axis=1)
    counts = np.zeros((len(times), len(terms)))
    np.add.at(counts, row, wide[dated, :-1])
    return ByTime(
        times, np.bincount(row, minlength=len(times)),
        np.bincount(row, weights=lengths[dated], minlength=len(times)), counts,
        word_sums(csr_matrix(wide), row_of, len(times), range(len(terms))),
        float(stamps[dated].min(initial=np.inf)), float(stamps[dated].max(initial=-np.inf)),
    )  # fmt: skip


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
    order = np.argsort(terms, kind="stable")  # shards look words up in ascending order
    found: ByTime = runner.reduce(by_time, ([terms[i] for i in order], resolution), plus)
    line = Timeline(
        found.times, csr_matrix(found.counts), found.lengths.astype(np.float64), found.documents,
        np.zeros(0, dtype=np.int64), float(resolution),
    )  # fmt: skip
    model = LocalLikelihood(line, None, bandwidth, kernel=kernel)
    grid = bins_between(found.first, found.last, resolution)
    curves = curves_from_sums(model, model.over(grid), range(len(terms)), found.sums, grid, level=level)
    place = np.searchsorted(grid, found.times - 0.5 * resolution)
    documents, words = (np.zeros(len(grid), dtype=np.int64) for _ in range(2))
    documents[place], words[place] = found.documents, found.lengths
    back = np.argsort(order)
    return ShardedDrift(grid, documents, words, [curves[i] for i in back])
