"""Words over time in a sharded collection: sums over each shard's documents, added up, and the curves drawn from them.

Every sum is of whole numbers, so the curves are those of `sdretrieval drift` on one index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.core.timeline import Timeline, known_times, timeline
from sdretrieval.estimate.time.drift import WordCurve, WordSums, bins_between, curves_from_sums, word_sums
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.plugins.spark.shards import Shard
from sdretrieval.plugins.spark.totals import Along


@dataclass(frozen=True, eq=False)
class ByTime:
    """What a shard, or several, know of some words.

    along   for each bin that has documents: how many, their lengths, counts of the words, WordSums.per_row
    words   occurrences of each word, and in how many documents
    """

    along: Along
    words: np.ndarray
    first: float
    last: float

    def plus(self, other: ByTime) -> ByTime:
        first, last = min(self.first, other.first), max(self.last, other.last)
        return ByTime(self.along.plus(other.along), self.words + other.words, first, last)


def by_time(shard: Shard, request: tuple[Sequence[int], float]) -> ByTime:
    """A request: some words (numbers over all shards, ascending) along this shard's times."""
    terms, resolution = request
    snapshot = shard.snapshot
    # The words, and one column with the rest of each document, so that lengths are whole.
    wide = np.zeros((snapshot.n_docs, len(terms) + 1), dtype=np.int64)
    known, local = shard.local_terms(np.asarray(terms))
    ptr, docs, found, places = snapshot.postings_of(local)
    for column, place in zip(np.flatnonzero(known).tolist(), places.tolist(), strict=True):
        span = slice(ptr[place], ptr[place + 1])
        wide[docs[span], column] = found[span]
    wide[:, -1] = np.asarray(snapshot.doc_lengths) - wide.sum(axis=1)
    counts = csr_matrix(wide)
    line = timeline(counts, snapshot.times, resolution=resolution)
    sums = word_sums(counts, line.row_of, len(line.times), range(len(terms)))
    rows = np.column_stack([line.documents, line.lengths, line.counts.toarray()[:, :-1], sums.per_row.T])
    stamps, dated = known_times(snapshot.times)
    first, last = (float(one) for one in (stamps[dated].min(initial=np.inf), stamps[dated].max(initial=-np.inf)))
    return ByTime(Along(line.times, csr_matrix(rows)), np.stack([sums.occurrences, sums.documents]), first, last)


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
    times = found.along.times
    documents, lengths, counts, per_row = np.split(found.along.counts.toarray(), [1, 2, 2 + n], axis=1)
    line = Timeline(
        times,
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
    place = np.searchsorted(grid, times - 0.5 * resolution)
    documents, words = np.zeros((2, len(grid)), dtype=np.int64)
    documents[place], words[place] = line.documents, line.lengths
    return ShardedDrift(grid, documents, words, [curves[i] for i in np.argsort(order)])
