"""The statistics of a collection as it was at any time.

A ranking at time t that uses df, cf, N or lengths of the whole collection has seen the future, even where it returns
none of it. :class:`PastStatistics` gives the statistics of the documents before t. It moves along time by adding (or
taking away) only the documents in between, so queries in the order of their times cost one pass over the collection
in all, plus a copy of the vocabulary's counts each. Counts of spans of time, of one step and of 2, 4, 8, …, are kept
for all who ask of the same snapshot: once they have been passed over, any time is reached by adding up a few of them.

*Before* is strict: a document of the query's own instant is not known yet (``inclusive`` counts it in, as TREC's
Microblog tracks do). Undated documents may be of any time, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.times import UNDATED
from sdretrieval.index.rows import count_of, term_of
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics


@njit(cache=True, nogil=True)
def _count_rows(rows, docs, sign, df, cf):
    """Add (or with sign -1 take away) the rows of some documents."""
    for d in docs:
        for k in range(rows.ptr[d], rows.ptr[d + 1]):
            term = term_of(rows.words[k], rows)
            df[term] += sign
            cf[term] += sign * count_of(rows.words[k], k, rows)


@njit(cache=True, nogil=True)
def _add_counts(terms, some_df, some_cf, sign, df, cf):
    """The same for counts that are added up already."""
    for i in range(len(terms)):
        df[terms[i]] += sign * some_df[i]
        cf[terms[i]] += sign * some_cf[i]


STEPS, SHORTEST = 128, 4096  # of all dated documents at the most; documents of a step at the least
Counts = tuple[np.ndarray, np.ndarray, np.ndarray]  # terms, and the df and cf of each


class _Timeline:
    """The dated documents of a snapshot in the order of time, and the counts of spans of them."""

    def __init__(self, snapshot: Snapshot) -> None:
        times = np.asarray(snapshot.times)
        dated = np.flatnonzero(times != UNDATED)
        self.order = dated[np.argsort(times[dated], kind="stable")]
        self.times = times[self.order]
        self.tokens = np.concatenate([[0], np.cumsum(np.asarray(snapshot.doc_lengths)[self.order], dtype=np.int64)])
        self.step = max(SHORTEST, -(-len(dated) // STEPS))
        self.dated = None if len(dated) == len(times) else times != UNDATED
        self._rows = snapshot.rows  # not the snapshot: it keys a weak cache
        self._n_terms = snapshot.n_terms
        self._spans: dict[tuple[int, int], Counts] = {}

    def add(self, left: int, right: int, sign: int, df: np.ndarray, cf: np.ndarray) -> None:
        """Add (or with sign -1 take away) the documents from ``left`` to ``right`` in the order of time."""
        for start, stop, part in self._pieces(left, right):
            if stop - start < self.step:
                _count_rows(self._rows, self.order[start:stop], sign * part, df, cf)
            else:
                _add_counts(*self._span(start, stop), sign * part, df, cf)

    def _pieces(self, left: int, right: int) -> Iterator[tuple[int, int, int]]:
        """The longest spans of 2^k steps, each from a multiple of its length, and what is left over at either end.

        Of a step that is left over by more than half, the whole and what is too much: 1 or -1 is the sign of a piece.
        """
        while left < right:
            size = self.step
            while left % (2 * size) == 0 and left + 2 * size <= right:
                size *= 2
            end = (left // size + 1) * size
            if left % size == 0 and size // 2 < right - left < size and end <= len(self.order):
                yield left, end, 1
                yield right, end, -1
            else:
                yield left, min(right, end), 1
            left = end

    def _span(self, start: int, stop: int) -> Counts:
        if (start, stop) not in self._spans:
            df, cf = np.zeros((2, self._n_terms), dtype=np.int64)
            _count_rows(self._rows, self.order[start:stop], 1, df, cf)
            terms = np.flatnonzero(df)
            narrow = np.int32 if self.tokens[stop] - self.tokens[start] < 1 << 31 else np.int64
            self._spans[start, stop] = terms.astype(np.int32), df[terms].astype(np.int32), cf[terms].astype(narrow)
        return self._spans[start, stop]


timelines: WeakKeyDictionary[Snapshot, _Timeline] = WeakKeyDictionary()


class PastStatistics:
    """N, df, cf and tokens of the documents before any time, by moving there from the last time asked for."""

    def __init__(self, snapshot: Snapshot, *, inclusive: bool = False) -> None:
        self.snapshot, self.inclusive = snapshot, inclusive
        if snapshot not in timelines:
            timelines[snapshot] = _Timeline(snapshot)
        self._timeline = timelines[snapshot]
        self._seen, self._is_lent = 0, False
        self._df, self._cf = np.zeros((2, snapshot.n_terms), dtype=np.int64)

    def count(self, time: int) -> int:
        """How many documents lie before ``time``."""
        return int(np.searchsorted(self._timeline.times, time, side="right" if self.inclusive else "left"))

    def allowed(self, time: int) -> np.ndarray:
        """Which documents of the snapshot lie before ``time``: a boolean for each."""
        times, dated = np.asarray(self.snapshot.times), self._timeline.dated
        past = times <= time if self.inclusive else times < time
        return past if dated is None else np.logical_and(past, dated, out=past)

    def at(self, time: int) -> Statistics:
        """The statistics of the documents before ``time``."""
        upto = self.count(time)
        if upto != self._seen:
            self._move_to(upto)
        self._is_lent, tokens = True, int(self._timeline.tokens[upto])
        return Statistics(upto, tokens, self._df, self._cf, self.snapshot.vocabulary)

    def _move_to(self, upto: int) -> None:
        """By whichever is nearer: from here, or forward from nothing. What has been given away is left as it is."""
        add, is_far = self._timeline.add, upto < self._seen - upto
        if is_far:
            self._seen = 0
            self._df, self._cf = np.zeros((2, self.snapshot.n_terms), dtype=np.int64)
        elif self._is_lent:
            self._df, self._cf = self._df.copy(), self._cf.copy()
        if upto >= self._seen:
            add(self._seen, upto, 1, self._df, self._cf)
        else:
            add(upto, self._seen, -1, self._df, self._cf)
        self._seen, self._is_lent = upto, False
