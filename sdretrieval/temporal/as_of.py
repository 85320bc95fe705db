"""As-of retrieval: what the collection was at the time of a query, statistics included.

A ranking at time t that uses df, cf, N or lengths of the whole collection has seen the future, even where it returns
none of it. :class:`PastStatistics` gives the statistics of the documents before t. It moves along time by adding (or
taking away) only the documents in between, so queries in the order of their times cost one pass over the collection
in all, plus a copy of the vocabulary's counts each.

*Before* is strict: a document of the query's own instant is not known yet (``inclusive`` counts it in, as TREC's
Microblog tracks do). Undated documents may be of any time, so they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numba import njit

from sdretrieval.records import Run, Topic
from sdretrieval.snapshot import Snapshot
from sdretrieval.statistics import Statistics
from sdretrieval.times import UNDATED


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
        return Statistics(
            upto, int(self._tokens[upto]), self._df.copy(), self._cf.copy(), self.snapshot.vocabulary
        )

    def _add(self, docs: np.ndarray, sign: int) -> None:
        s = self.snapshot
        _count_rows(s.doc_ptr, s.doc_terms, s.doc_counts, docs, sign, self._df, self._cf)


@dataclass(frozen=True)
class LeakReport:
    """How much looking at the future changes a run, averaged over topics.

    future       share of the first ``depth`` documents that did not exist yet
    lost         share of the first ``depth`` of the run of the past that the other run, rid of the future, has not
    moved        mean number of places by which the documents common to both have moved
    topics       how many topics were compared, ``changed`` how many differ at all in their first ``depth``
    """

    depth: int
    topics: int
    changed: int
    future: float
    lost: float
    moved: float

    def __str__(self) -> str:
        return (
            f"leak check, first {self.depth} documents of {self.topics} topics: without --as-of "
            f"{100 * self.future:.1f} % of them come from after the query; beside that, counting later documents in "
            f"the statistics changes {self.changed} topics: {100 * self.lost:.1f} % of documents replaced, "
            f"{self.moved:.2f} places moved on average"
        )


def leaks(
    past: Run,
    unrestricted: Run,
    topics: Iterable[Topic],
    snapshot: Snapshot,
    *,
    inclusive: bool = False,
    depth: int = 10,
) -> LeakReport:
    """:func:`leak_report` with the documents' times looked up in the snapshot."""
    statistics = PastStatistics(snapshot, inclusive=inclusive)
    allowed = {}
    for topic in topics:
        if topic.qid in unrestricted and topic.time is not None:
            docids = unrestricted[topic.qid].docids
            is_past = statistics.allowed(topic.time)[snapshot.docids.find_many(docids)]
            allowed[topic.qid] = {d for d, yes in zip(docids, is_past.tolist(), strict=True) if yes}
    return leak_report(past, unrestricted, allowed, depth)


def leak_report(past: Run, unrestricted: Run, allowed: dict[str, set[str]], depth: int = 10) -> LeakReport:
    """Compare the run of the past with the one that knows everything.

    ``allowed`` tells which of the unrestricted run's documents lay before each topic's time.
    """
    future: list[float] = []
    lost: list[float] = []
    moved: list[int] = []
    changed = 0
    topics = [qid for qid in past if qid in unrestricted and qid in allowed]
    for qid in topics:
        before, everything = list(past[qid].docids), list(unrestricted[qid].docids)
        top = everything[:depth]
        future.append(sum(d not in allowed[qid] for d in top) / len(top) if top else 0.0)
        kept = [d for d in everything if d in allowed[qid]]
        place = {d: i for i, d in enumerate(kept)}
        first = before[:depth]
        lost.append(sum(d not in kept[:depth] for d in first) / len(first) if first else 0.0)
        moved.extend(abs(place[d] - i) for i, d in enumerate(first) if d in place)
        changed += first != kept[:depth]
    mean = lambda values: float(np.mean(values)) if values else 0.0  # noqa: E731
    return LeakReport(depth, len(topics), changed, mean(future), mean(lost), mean(moved))
