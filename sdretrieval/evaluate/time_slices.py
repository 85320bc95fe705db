"""A measure by period: when does a run do well?

Two questions that look alike, and their answers:

*By query time* (:func:`evaluate_by_query_time`). The topics are dealt into periods by the time of the
query; each period's measure is over its own topics, everything else untouched. It answers "were the queries
of March harder?".

*By the time of the relevant documents* (:func:`evaluate_by_relevant_time`). For each period only its
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
from os import PathLike
from typing import Any

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.evaluate.measures import (
    DEFAULT_MEASURES,
    Evaluation,
    Evaluator,
    QrelsLike,
    RunLike,
    _scores,
)
from sdretrieval.files import numbered_lines
from sdretrieval.times import UNDATED, parse_time

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=int(ms))


def _quarter(t: datetime) -> str:
    return f"{t.year:04d}-Q{(t.month + 2) // 3}"


def _week(t: datetime) -> str:
    year, week, _ = t.isocalendar()
    return f"{year:04d}-W{week:02d}"


# Labels sort as text in the order of time.
PERIODS: dict[str, Callable[[datetime], str]] = {
    "year": lambda t: f"{t.year:04d}",
    "quarter": _quarter,
    "month": lambda t: f"{t.year:04d}-{t.month:02d}",
    "week": _week,
    "day": lambda t: f"{t.year:04d}-{t.month:02d}-{t.day:02d}",
    "hour": lambda t: f"{t.year:04d}-{t.month:02d}-{t.day:02d}T{t.hour:02d}",
}
NO_TIME = "undated"


def period_of(ms: int | None, period: str) -> str:
    """The label of the period a time falls into.

    >>> period_of(1_300_000_000_000, "month"), period_of(1_300_000_000_000, "week"), period_of(None, "year")
    ('2011-03', '2011-W10', 'undated')
    """
    if period not in PERIODS:
        raise ParameterError(f"unknown period {period!r}", remedy=f"Known are {', '.join(PERIODS)}.")
    return NO_TIME if ms is None or ms == UNDATED else PERIODS[period](_moment(ms))


@dataclass(frozen=True)
class TimeSlice:
    """One period's share of an evaluation."""

    period: str
    evaluation: Evaluation
    relevant: int  # relevant documents of its counted topics

    @property
    def topics(self) -> int:
        return len(self.evaluation.topics)


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


def _in_order(labels: Iterable[str]) -> list[str]:
    return sorted(labels, key=lambda label: (label == NO_TIME, label))


def evaluate_by_query_time(
    run: RunLike,
    qrels: QrelsLike,
    topic_times: Mapping[str, int],
    period: str = "month",
    measures: Iterable[Any] = DEFAULT_MEASURES,
    *,
    complete: bool = False,
    rel: int | None = None,
    name: str | None = None,
) -> list[TimeSlice]:
    """Topics dealt into periods by the time of the query."""
    measures = list(measures)
    threshold = 1 if rel is None else rel
    groups: dict[str, list[str]] = {}
    for qid in qrels:
        groups.setdefault(period_of(topic_times.get(qid), period), []).append(qid)
    slices = []
    for label in _in_order(groups):
        members = set(groups[label])
        part = {qid: {d: int(r) for d, r in qrels[qid].items()} for qid in members}
        results = {qid: _scores(run, qid) for qid in run if qid in members}
        evaluator = Evaluator(part, measures, complete=complete, rel=rel)
        evaluation = evaluator.evaluate(results, _name(run, name))
        if evaluation.topics:
            relevant = sum(r >= threshold for qid in evaluation.topics for r in part[qid].values())
            slices.append(TimeSlice(label, evaluation, relevant))
    return slices


def evaluate_by_relevant_time(
    run: RunLike,
    qrels: QrelsLike,
    document_times: Mapping[str, int],
    period: str = "month",
    measures: Iterable[Any] = DEFAULT_MEASURES,
    *,
    complete: bool = False,
    rel: int | None = None,
    name: str | None = None,
) -> list[TimeSlice]:
    """Only the relevant documents of the period count; those of other periods are as if they did not exist.

    A document is relevant here from grade ``rel`` on (1 by default).
    """
    measures = list(measures)
    threshold = 1 if rel is None else rel
    when: dict[str, dict[str, str]] = {}  # topic -> relevant document -> period
    for qid in qrels:
        for docid, grade in qrels[qid].items():
            if grade >= threshold:
                when.setdefault(qid, {})[docid] = period_of(document_times.get(docid), period)
    scores = {qid: _scores(run, qid) for qid in run if qid in when}
    slices = []
    for label in _in_order({label for labels in when.values() for label in labels.values()}):
        judgments: dict[str, dict[str, int]] = {}
        results: dict[str, dict[str, float]] = {}
        relevant = 0
        for qid, labels in when.items():
            here = sum(found == label for found in labels.values())
            if not here:
                continue
            away = {docid for docid, found in labels.items() if found != label}
            judgments[qid] = {d: int(r) for d, r in qrels[qid].items() if d not in away}
            if qid in scores:
                results[qid] = {d: s for d, s in scores[qid].items() if d not in away}
            if qid in scores or complete:
                relevant += here
        evaluator = Evaluator(judgments, measures, complete=complete, rel=rel)
        evaluation = evaluator.evaluate(results, _name(run, name))
        if evaluation.topics:
            slices.append(TimeSlice(label, evaluation, relevant))
    return slices


def _name(run: RunLike, name: str | None) -> str:
    return name if name is not None else getattr(run, "tag", "")


def read_document_times(path: str | PathLike[str]) -> dict[str, int]:
    """``docid<TAB>time`` lines to milliseconds; any form of time that ``parse_time`` knows."""
    times: dict[str, int] = {}
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        fields = line.split("\t") if "\t" in line else line.split(None, 1)
        if len(fields) != 2 or not fields[0].strip():
            raise InputError(
                f"expected a docid, a tab and a time, got {line!r}",
                file=path,
                line=number,
                remedy="Write for example `FT911-3\t1990-03-01T12:00:00Z`.",
            )
        key = fields[0].strip()
        if key in times:
            raise InputError(f"docid {key!r} appears twice", file=path, line=number, remedy="Keep one of them.")
        try:
            times[key] = parse_time(fields[1].strip())
        except ValueError as error:
            raise InputError(
                str(error), file=path, line=number, remedy="Use ISO 8601, e.g. 1990-03-01T12:00:00Z."
            ) from None
    return times
