"""What looking at the future would change: the run of an as-of ranking against one that knows everything."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sdretrieval.collection.records import Run, Topic
from sdretrieval.index.past_statistics import PastStatistics
from sdretrieval.index.snapshot import Snapshot


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
