"""N, df, cf over all shards: summed once, kept beside the shards, and memory-mapped by whoever ranks.

Each sum is of whole numbers, so it is the one index's own whatever the order of the shards. Kept are the vocabulary of
all shards in byte order (as one index would have it), df and cf. A worker needs only what concerns its shard's words.

    Totals             of everything
    past_increments    df and cf added between given times by one shard, for as-of statistics
    Moments            what a shard knows about time: whether its distinct times are few, first, last
    merged_timeline    counts along time of all shards, for drifting backgrounds
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.errors import IndexProblem
from sdretrieval.integrations.spark import packed
from sdretrieval.snapshot import Snapshot
from sdretrieval.statistics import Statistics
from sdretrieval.strings import PackedStrings
from sdretrieval.temporal.as_of import PastStatistics
from sdretrieval.temporal.timeline import Timeline, known_times, timeline

ARRAYS = {"term_text": "<u1", "term_text_ptr": "<i8", "df": "<i8", "cf": "<i8"}
FORMAT = 1


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
    def of(cls, snapshot: Snapshot) -> Totals:
        from sdretrieval.times import UNDATED

        dated = int(np.count_nonzero(np.asarray(snapshot.times) != UNDATED))
        words = snapshot.vocabulary
        plain = PackedStrings(np.array(words._data), np.array(words._ptr))  # out of the map: it travels
        df, cf = np.array(snapshot.df, dtype=np.int64), np.array(snapshot.cf, dtype=np.int64)
        return cls(snapshot.n_docs, snapshot.n_tokens, dated, plain, df, cf)

    def plus(self, other: Totals) -> Totals:
        vocabulary, mine, theirs = packed.union(self.vocabulary, other.vocabulary)
        df, cf = (np.zeros(len(vocabulary), dtype=np.int64) for _ in range(2))
        for place, totals in ((mine, self), (theirs, other)):  # no word twice in one list, so += adds all
            df[place] += totals.df
            cf[place] += totals.cf
        return Totals(
            self.n_docs + other.n_docs, self.n_tokens + other.n_tokens, self.n_dated + other.n_dated,
            vocabulary, df, cf,
        )  # fmt: skip

    @cached_property
    def n_postings(self) -> int:
        return int(self.df.sum())

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics(self.n_docs, self.n_tokens, self.df, self.cf, self.vocabulary)

    # -- on disk -------------------------------------------------------------------------------------------------
    def save(self, folder: Path) -> None:
        """Write aside, then rename: several drivers at once do no harm."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
        try:
            arrays = {
                "term_text": self.vocabulary._data, "term_text_ptr": self.vocabulary._ptr, "df": self.df, "cf": self.cf,
            }  # fmt: skip
            sizes = {}
            for name, dtype in ARRAYS.items():
                np.ascontiguousarray(arrays[name], dtype=dtype).tofile(aside / f"{name}.bin")
                sizes[name] = (aside / f"{name}.bin").stat().st_size
            notes = {
                "format": FORMAT, "documents": self.n_docs, "tokens": self.n_tokens, "dated": self.n_dated,
                "sizes": sizes,
            }  # fmt: skip
            (aside / "totals.json").write_text(json.dumps(notes, indent=1) + "\n")
            shutil.copymode(folder.parent, aside)
            try:
                aside.rename(folder)
            except OSError:
                if totals_problem(folder) is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    aside.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    @classmethod
    def load(cls, folder: Path) -> Totals:
        problem = totals_problem(folder)
        if problem is not None:
            raise IndexProblem(
                f"the statistics {folder} cannot be used: {problem}", remedy=f"Delete {folder}: they are summed again."
            )
        notes = json.loads((folder / "totals.json").read_text())
        arrays = {}
        for name, dtype in ARRAYS.items():
            size = notes["sizes"][name]
            path = folder / f"{name}.bin"
            arrays[name] = np.memmap(path, dtype=dtype, mode="r").view(np.ndarray) if size else np.zeros(0, dtype=dtype)
        words = PackedStrings(arrays["term_text"], arrays["term_text_ptr"])
        return cls(notes["documents"], notes["tokens"], notes["dated"], words, arrays["df"], arrays["cf"])


def totals_problem(folder: Path) -> str | None:
    """What is wrong with totals on disk; None where they are whole."""
    try:
        notes = json.loads((folder / "totals.json").read_text())
        if notes["format"] != FORMAT:
            return f"format {notes['format']}"
        for name in ARRAYS:
            size = (folder / f"{name}.bin").stat().st_size
            if size != notes["sizes"][name]:
                return f"{name}.bin has {size} bytes instead of {notes['sizes'][name]}"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"totals.json is damaged ({error})"
    return None


# -- the past ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Increments:
    """What documents between consecutive times add: a sparse row for each time, over all shards' words."""

    n_docs: np.ndarray  # counted from the beginning
    n_tokens: np.ndarray
    ptr: np.ndarray
    terms: np.ndarray
    df: np.ndarray
    cf: np.ndarray


def past_increments(snapshot: Snapshot, term_map: np.ndarray, times: Sequence[int], inclusive: bool) -> Increments:
    """Of one shard, for ascending times."""
    past = PastStatistics(snapshot, inclusive=inclusive)
    df, cf = (np.zeros(snapshot.n_terms, dtype=np.int64) for _ in range(2))
    n_docs, n_tokens, rows = [], [], []
    for time in times:
        now = past.at(time)
        changed = np.flatnonzero(now.df != df)
        rows.append((term_map[changed], (now.df - df)[changed], (now.cf - cf)[changed]))
        df, cf = now.df, now.cf
        n_docs.append(now.n_docs)
        n_tokens.append(now.n_tokens)
    return _increments(n_docs, n_tokens, rows)


def _increments(n_docs, n_tokens, rows) -> Increments:
    ptr = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(terms) for terms, _, _ in rows], out=ptr[1:])
    parts = [np.concatenate([row[i] for row in rows]) if rows else np.zeros(0, dtype=np.int64) for i in range(3)]
    return Increments(np.array(n_docs, dtype=np.int64), np.array(n_tokens, dtype=np.int64), ptr, *parts)


def summed(parts: Sequence[Increments], n_terms: int) -> Increments:
    """Over shards."""
    df, cf = (np.zeros(n_terms, dtype=np.int64) for _ in range(2))
    rows = []
    for k in range(len(parts[0].n_docs)):
        for part in parts:
            span = slice(part.ptr[k], part.ptr[k + 1])
            df[part.terms[span]] += part.df[span]  # no term twice in one row
            cf[part.terms[span]] += part.cf[span]
        terms = np.flatnonzero(df)
        rows.append((terms, df[terms].copy(), cf[terms].copy()))
        df[terms], cf[terms] = 0, 0
    return _increments(sum(part.n_docs for part in parts), sum(part.n_tokens for part in parts), rows)


def past_statistics(increments: Increments, vocabulary: PackedStrings) -> list[Statistics]:
    """Statistics of the past at each of the times."""
    df, cf = (np.zeros(len(vocabulary), dtype=np.int64) for _ in range(2))
    result = []
    for k in range(len(increments.n_docs)):
        span = slice(increments.ptr[k], increments.ptr[k + 1])
        df[increments.terms[span]] += increments.df[span]
        cf[increments.terms[span]] += increments.cf[span]
        n_docs, n_tokens = int(increments.n_docs[k]), int(increments.n_tokens[k])
        result.append(Statistics(n_docs, n_tokens, df.copy(), cf.copy(), vocabulary))
    return result


# -- along time --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Moments:
    """The distinct times of some documents where they are at most ``most``; else None, with first and last."""

    most: int
    distinct: np.ndarray | None
    first: float
    last: float

    @classmethod
    def of(cls, times: np.ndarray, most: int) -> Moments:
        stamps, dated = known_times(times)
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


@dataclass(frozen=True, eq=False)
class Along:
    """Counts of some documents along time: distinct times, and a sparse row of counts for each."""

    times: np.ndarray
    counts: csr_matrix

    @classmethod
    def of(cls, snapshot: Snapshot, term_map: np.ndarray, resolution: float | None, n_terms: int) -> Along:
        line = timeline(snapshot.by_doc, snapshot.times, resolution=resolution)
        counts = line.counts
        wide = csr_matrix((counts.data, term_map[counts.indices], counts.indptr), shape=(len(line.times), n_terms))
        return cls(line.times, wide)

    def plus(self, other: Along) -> Along:
        times = np.union1d(self.times, other.times)
        total = sum(_spread(part.counts, np.searchsorted(times, part.times), len(times)) for part in (self, other))
        return Along(times, csr_matrix(total))


def _spread(counts: csr_matrix, rows: np.ndarray, n: int) -> csr_matrix:
    """The rows of a matrix moved apart: row i becomes row rows[i] (ascending) of n."""
    lengths = np.zeros(n + 1, dtype=np.int64)
    lengths[rows + 1] = np.diff(counts.indptr)
    return csr_matrix((counts.data, counts.indices, np.cumsum(lengths)), shape=(n, counts.shape[1]))


def merged_timeline(along: Along, resolution: float | None) -> Timeline:
    """As :func:`~sdretrieval.temporal.timeline.timeline` lays out the documents of one index."""
    counts = along.counts
    counts.sort_indices()
    return Timeline(
        times=along.times, counts=counts, lengths=np.asarray(counts.sum(axis=1), dtype=np.float64).ravel(),
        documents=np.zeros(len(along.times), dtype=np.int64), row_of=np.zeros(0, dtype=np.int64),
        resolution=None if resolution is None else float(resolution),
    )  # fmt: skip


def plus(a: Any, b: Any) -> Any:
    """Of anything that shards count, for sums over them: a function that can travel."""
    return a.plus(b)
