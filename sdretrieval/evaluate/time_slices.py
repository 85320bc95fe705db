"""A measure by period: when does a run do well?

Two questions that look alike, and their answers:

*By query time* (``time_of="query"``). The topics are dealt into periods by the time of the
query; each period's measure is over its own topics, everything else untouched. It answers "were the queries
of March harder?".

*By the time of the relevant documents* (``time_of="relevant"``). For each period only its
relevant documents are to be found: relevant documents of other periods are taken out of both judgments and
run, as if they did not exist (a residual collection), so that a run is neither paid nor fined for them.
Non-relevant and unjudged documents of all times stay, since they are what a user would have to wade
through. Topics without a relevant document in the period are left out of it. It answers "does the run find
the old documents as well as the fresh ones?". Numbers of different periods rest on different topics and
numbers of relevant documents, so compare runs within a period rather than periods within a run.

Periods are UTC calendar periods; weeks begin on Monday (ISO 8601). What has no time falls into "undated".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from sdretrieval.collection.records import Run
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.evaluate.measures import DEFAULT_MEASURES, Evaluation, Evaluator, QrelsLike, RunLike, as_run
from sdretrieval.evaluate.residual import residual_run


def _week(t: datetime) -> str:
    year, week, _ = t.isocalendar()
    return f"{year:04d}-W{week:02d}"


# Labels sort as text in the order of time.
PERIODS: dict[str, Callable[[datetime], str]] = {
    "year": lambda t: t.isoformat()[:4],
    "quarter": lambda t: f"{t.year:04d}-Q{(t.month + 2) // 3}",
    "month": lambda t: t.isoformat()[:7],
    "week": _week,
    "day": lambda t: t.isoformat()[:10],
    "hour": lambda t: t.isoformat()[:13],
}
NO_TIME = "undated"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=int(ms))


def period_of(ms: int | None, period: str) -> str:
    """The label of the period a time falls into.

    >>> period_of(1_300_000_000_000, "month"), period_of(1_300_000_000_000, "week"), period_of(None, "year")
    ('2011-03', '2011-W10', 'undated')
    """
    if period not in PERIODS:
        raise ParameterError(f"unknown period {period!r}", remedy=f"Known are {', '.join(PERIODS)}.")
    return NO_TIME if ms is None or ms == UNDATED else PERIODS[period](_moment(ms))


def in_order(labels: Iterable[str]) -> list[str]:
    """Labels of periods in the order of time, "undated" last."""
    return sorted(labels, key=lambda label: (label == NO_TIME, label))


def choose_period(times: Iterable[int], most: int = 24) -> str | None:
    """The finest period that makes 2 to ``most`` parts of at least three on average, or None.

    >>> choose_period(range(0, 90 * 86_400_000, 10 * 86_400_000))
    'month'
    """
    known = [_moment(ms) for ms in times if ms != UNDATED]
    for name in reversed(PERIODS):
        parts = len({PERIODS[name](t) for t in known})
        if 2 <= parts <= min(most, len(known) // 3):
            return name
    return None


@dataclass(frozen=True)
class TimeSlice:
    """One period's share of an evaluation."""

    period: str
    evaluation: Evaluation
    relevant: int  # relevant documents of its counted topics

    @property
    def topics(self) -> int:
        return len(self.evaluation.topics)


def evaluate_by_time(
    run: RunLike,
    qrels: QrelsLike,
    times: Mapping[str, int],
    period: str = "month",
    measures: Iterable[Any] = DEFAULT_MEASURES,
    *,
    time_of: str = "query",
    complete: bool = False,
    rel: int | None = None,
    name: str | None = None,
) -> list[TimeSlice]:
    """The measures of each period that has a counted topic, in the order of time.

    Parameters
    ----------
    times
        Milliseconds since 1970, by topic or by docid as ``time_of`` says.
    period
        One of :data:`PERIODS`.
    time_of
        ``query``: topics are dealt into periods. ``relevant``: documents of grade ``rel`` (1 by default) or more are.
    run, qrels, measures, complete, rel, name
        As of :func:`~sdretrieval.evaluate.measures.evaluate`.
    """
    if time_of not in ("query", "relevant"):
        raise ParameterError(f"time_of is query or relevant, got {time_of!r}")
    run, measures, threshold = as_run(run), list(measures), 1 if rel is None else rel
    parts = _by_query(qrels, times, period) if time_of == "query" else _by_relevant(qrels, times, period, threshold)
    slices = []
    for label in in_order(parts):
        grades, away = parts[label]
        evaluator = Evaluator(grades, measures, complete=complete, rel=rel)
        asked = Run({qid: run[qid] for qid in grades if qid in run}, run.tag)
        evaluation = evaluator.evaluate(residual_run(asked, away), name)
        if evaluation.topics:
            counted = (grade for qid in evaluation.topics for grade in grades[qid].values())
            slices.append(TimeSlice(label, evaluation, sum(grade >= threshold for grade in counted)))
    return slices


# The judgments of a period, and the documents of each topic that are not there.
Part: TypeAlias = tuple[dict[str, Mapping[str, int]], dict[str, set[str]]]


def _by_query(qrels: QrelsLike, times: Mapping[str, int], period: str) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for qid in qrels:
        parts.setdefault(period_of(times.get(qid), period), ({}, {}))[0][qid] = qrels[qid]
    return parts


def _by_relevant(qrels: QrelsLike, times: Mapping[str, int], period: str, threshold: int) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for qid, grades in qrels.items():
        when = {d: period_of(times.get(d), period) for d, grade in grades.items() if grade >= threshold}
        for label in set(when.values()):
            kept, away = parts.setdefault(label, ({}, {}))
            away[qid] = {docid for docid, found in when.items() if found != label}
            kept[qid] = {docid: grade for docid, grade in grades.items() if docid not in away[qid]}
    return parts
