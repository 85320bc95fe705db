"""N, df, cf over all shards: summed once, kept beside the shards, and memory-mapped by whoever ranks.

Each sum is of whole numbers, so it is the one index's own whatever the order of the shards. Kept are the vocabulary of
all shards in byte order (as one index would have it), df and cf. A worker needs only what concerns its shard's words.

Increments are the same between given times, for as-of statistics; Moments and Along are what a drifting background
needs. Each is made of one shard (``of`` is a request to a worker), and added up (``plus``).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_matrix, vstack

from sdretrieval.core import sorted_strings
from sdretrieval.core.array_folder import ArrayFolder
from sdretrieval.core.errors import IndexProblem
from sdretrieval.core.packed_strings import PackedStrings
from sdretrieval.core.timeline import Timeline, known_times, timeline
from sdretrieval.core.times import UNDATED
from sdretrieval.index.past_statistics import PastStatistics
from sdretrieval.index.statistics import Statistics
from sdretrieval.plugins.spark.copies import put_in_place

if TYPE_CHECKING:  # which has sums
    from sdretrieval.plugins.spark.shards import Shard

TOTALS = ArrayFolder({"term_text": "<u1", "term_text_ptr": "<i8", "df": "<i8", "cf": "<i8"}, "totals.json", 1)


@dataclass(frozen=True, eq=False)
class Totals:
    """Statistics of a set of documents over their own vocabulary: of a shard, of several, of all."""

    n_docs: int
    n_tokens: int
    n_dated: int
    vocabulary: PackedStrings
    df: np.ndarray
    cf: np.ndarray

    @classmethod
    def of(cls, shard: Shard, request: None = None) -> Totals:
        snapshot = shard.snapshot
        dated = int(np.count_nonzero(np.asarray(snapshot.times) != UNDATED))
        words = snapshot.vocabulary
        plain = PackedStrings(np.array(words.data), np.array(words.ptr))  # out of the map: it travels
        df, cf = np.array(snapshot.df, dtype=np.int64), np.array(snapshot.cf, dtype=np.int64)
        return cls(snapshot.n_docs, snapshot.n_tokens, dated, plain, df, cf)

    def plus(self, other: Totals) -> Totals:
        vocabulary, mine, theirs = sorted_strings.union(self.vocabulary, other.vocabulary)
        df, cf = (np.zeros(len(vocabulary), dtype=np.int64) for _ in range(2))
        for place, totals in ((mine, self), (theirs, other)):  # no word twice in one list, so += adds all
            df[place] += totals.df
            cf[place] += totals.cf
        return Totals(
            self.n_docs + other.n_docs, self.n_tokens + other.n_tokens, self.n_dated + other.n_dated, vocabulary, df, cf
        )

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics(self.n_docs, self.n_tokens, self.df, self.cf, self.vocabulary)

    # -- on disk -------------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        """Write aside, then rename: several drivers at once do no harm."""
        words = self.vocabulary
        arrays = {"term_text": words.data, "term_text_ptr": words.ptr, "df": self.df, "cf": self.cf}
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as aside:
            whole = Path(aside, folder.name)
            TOTALS.write(whole, arrays, documents=self.n_docs, tokens=self.n_tokens, dated=self.n_dated)
            put_in_place(whole, folder, TOTALS.problem)

    @classmethod
    def load(cls, folder: Path) -> Totals:
        problem = TOTALS.problem(folder)
        if problem is not None:
            raise IndexProblem(
                f"the statistics {folder} cannot be used: {problem}", remedy=f"Delete {folder}: they are summed again."
            )
        notes, arrays = json.loads((folder / TOTALS.notes).read_text()), TOTALS.map(folder)
        words = PackedStrings(arrays["term_text"], arrays["term_text_ptr"])
        return cls(notes["documents"], notes["tokens"], notes["dated"], words, arrays["df"], arrays["cf"])


# -- the past ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Increments:
    """What documents between consecutive times add: a sparse row for each time, over all shards' words."""

    n_docs: np.ndarray  # counted from the beginning
    n_tokens: np.ndarray
    df: csr_matrix
    cf: csr_matrix

    @classmethod
    def of(cls, shard: Shard, request: tuple[Sequence[int], bool]) -> Increments:
        """Of one shard, for ascending times; whether documents of these times themselves count."""
        (times, inclusive), term_map, n_terms = request, shard.term_map, len(shard.totals.vocabulary)
        past = PastStatistics(shard.snapshot, inclusive=inclusive)
        df, cf = (np.zeros(len(term_map), dtype=np.int64) for _ in range(2))
        sizes, rows = [], []
        for time in times:
            now = past.at(time)
            changed = np.flatnonzero(now.df != df)
            rows.append(
                [_row(term_map[changed], (new - old)[changed], n_terms) for new, old in ((now.df, df), (now.cf, cf))]
            )
            df, cf = now.df, now.cf
            sizes.append((now.n_docs, now.n_tokens))
        n_docs, n_tokens = np.array(sizes, dtype=np.int64).T
        return cls(n_docs, n_tokens, *(vstack(part, format="csr") for part in zip(*rows, strict=True)))

    def plus(self, other: Increments) -> Increments:
        return Increments(
            self.n_docs + other.n_docs, self.n_tokens + other.n_tokens, self.df + other.df, self.cf + other.cf
        )

    def statistics(self, vocabulary: PackedStrings) -> list[Statistics]:
        """Of the past at each of the times."""
        df, cf = (np.zeros(len(vocabulary), dtype=np.int64) for _ in range(2))
        result = []
        for k, (n_docs, n_tokens) in enumerate(zip(self.n_docs.tolist(), self.n_tokens.tolist(), strict=True)):
            df, cf = df + self.df[k].toarray()[0], cf + self.cf[k].toarray()[0]
            result.append(Statistics(n_docs, n_tokens, df, cf, vocabulary))
        return result


def _row(terms: np.ndarray, values: np.ndarray, n_terms: int) -> csr_matrix:
    return csr_matrix((values, terms, [0, len(terms)]), shape=(1, n_terms))


# -- along time --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """The distinct times of some documents where they are at most ``most``; else None, with first and last."""

    most: int
    distinct: np.ndarray | None
    first: float
    last: float

    @classmethod
    def of(cls, shard: Shard, most: int) -> Moments:
        stamps, dated = known_times(shard.snapshot.times)
        distinct = np.unique(stamps[dated])
        if len(distinct) == 0:
            return cls(most, distinct, np.inf, -np.inf)
        return cls(most, distinct if len(distinct) <= most else None, float(distinct[0]), float(distinct[-1]))

    def plus(self, other: Moments) -> Moments:
        first, last = min(self.first, other.first), max(self.last, other.last)
        both = None
        if self.distinct is not None and other.distinct is not None:
            both = np.union1d(self.distinct, other.distinct)
            both = both if len(both) <= self.most else None
        return Moments(self.most, both, first, last)

    def resolution(self, most: int) -> float | None:
        """What timeline.coarse_resolution gives for all of them."""
        if self.distinct is not None and len(self.distinct) <= most:
            return None
        return (self.last - self.first) / (most - 1)

    def bins(self, most: int) -> np.ndarray:
        """The times that documents are put down to: their own, or the middles of bins, of which some may be empty."""
        resolution = self.resolution(most)
        if resolution is None:
            assert self.distinct is not None
            return self.distinct
        return (np.arange(np.floor(self.first / resolution), np.floor(self.last / resolution) + 1) + 0.5) * resolution


@dataclass(frozen=True, eq=False)
class Along:
    """Counts of some documents along time: distinct times, and a sparse row of counts for each."""

    times: np.ndarray
    counts: csr_matrix

    @classmethod
    def of(cls, shard: Shard, resolution: float | None) -> Along:
        line = timeline(shard.snapshot.by_doc, shard.snapshot.times, resolution=resolution)
        counts, shape = line.counts, (len(line.times), len(shard.totals.vocabulary))
        wide = csr_matrix((counts.data, shard.term_map[counts.indices], counts.indptr), shape=shape)
        return cls(line.times, wide)

    def plus(self, other: Along) -> Along:
        both = timeline(vstack([self.counts, other.counts], format="csr"), np.append(self.times, other.times))
        return Along(both.times, both.counts)

    def timeline(self, resolution: float | None) -> Timeline:
        """As :func:`~sdretrieval.core.timeline.timeline` lays out the documents of one index."""
        self.counts.sort_indices()
        return Timeline(
            times=self.times,
            counts=self.counts,
            lengths=np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel(),
            documents=np.zeros(len(self.times), dtype=np.int64),
            row_of=np.zeros(0, dtype=np.int64),
            resolution=None if resolution is None else float(resolution),
        )
