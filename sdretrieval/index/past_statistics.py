"""The statistics of a collection as it was at any time.

A ranking at time t that uses df, cf, N or lengths of the whole collection has seen the future, even where it returns
none of it. :class:`PastStatistics` gives the statistics of the documents before t. It moves along time by adding (or
taking away) only the documents in between, so queries in the order of their times cost one pass over the collection
in all, plus a copy of the vocabulary's counts each.

*Before* is strict: a document of the query's own instant is not known yet (``inclusive`` counts it in, as TREC's
Microblog tracks do). Undated documents may be of any time, so they are left out.
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.times import UNDATED
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics


@njit(cache=True, nogil=True)
def _count_rows(ptr, terms, counts, docs, sign, df, cf):
    """Add (or with sign -1 take away) the rows of some documents."""
    for d in docs:
        for k in range(ptr[d], ptr[d + 1]):
            df[terms[k]] += sign
            cf[terms[k]] += sign * counts[k]


class PastStatistics:
    """N, df, cf and tokens of the documents before any time, by moving there from the last time asked for."""

    def __init__(self, snapshot: Snapshot, *, inclusive: bool = False) -> None:
        self.snapshot, self.inclusive = snapshot, inclusive
        times = np.asarray(snapshot.times)
        dated = np.flatnonzero(times != UNDATED)
        self._order = dated[np.argsort(times[dated], kind="stable")]
        self._times = times[self._order]
        self._tokens = np.concatenate([[0], np.cumsum(np.asarray(snapshot.doc_lengths)[self._order], dtype=np.int64)])
        self._seen = 0
        self._df = np.zeros(snapshot.n_terms, dtype=np.int64)
        self._cf = np.zeros(snapshot.n_terms, dtype=np.int64)

    def count(self, time: int) -> int:
        """How many documents lie before ``time``."""
        return int(np.searchsorted(self._times, time, side="right" if self.inclusive else "left"))

    def allowed(self, time: int) -> np.ndarray:
        """Which documents of the snapshot lie before ``time``: a boolean for each."""
        times = np.asarray(self.snapshot.times)
        past = times <= time if self.inclusive else times < time
        return past & (times != UNDATED)

    def at(self, time: int) -> Statistics:
        """The statistics of the documents before ``time``."""
        upto = self.count(time)
        if upto > self._seen:
            self._add(self._order[self._seen : upto], 1)
        elif upto < self._seen:
            # Whichever is nearer: back from here, or forward from nothing.
            if upto >= self._seen - upto:
                self._add(self._order[upto : self._seen], -1)
            else:
                self._df[:], self._cf[:] = 0, 0
                self._add(self._order[:upto], 1)
        self._seen = upto
        return Statistics(upto, int(self._tokens[upto]), self._df.copy(), self._cf.copy(), self.snapshot.vocabulary)

    def _add(self, docs: np.ndarray, sign: int) -> None:
        s = self.snapshot
        _count_rows(s.doc_ptr, s.doc_terms, s.doc_counts, docs, sign, self._df, self._cf)
