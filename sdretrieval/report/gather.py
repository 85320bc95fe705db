"""Everything a report shows, as one plain dictionary that JSON can carry.

Kept apart from how it looks: the page, the plots and the tests read the same data. No number is computed
anywhere else. Lists indexed by run follow ``data["runs"]``; lists indexed by measure follow
``data["measures"]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sdretrieval import __version__
from sdretrieval.errors import ParameterError
from sdretrieval.evaluate import (
    DEFAULT_MEASURES,
    TESTS,
    Comparison,
    Evaluation,
    Evaluator,
    TimeSlice,
    choose_period,
    compare,
    evaluate_by_query_time,
    evaluate_by_relevant_time,
    natural_order,
    parse_measures,
)
from sdretrieval.evaluate.curves import CURVE_MEASURES, RECALL_LEVELS
from sdretrieval.evaluate.inputs import NamedRun
from sdretrieval.records import Topic
from sdretrieval.times import UNDATED

TOP = 10  # documents of each run shown per topic
MOST_DOCUMENTS = 40  # … and with the relevant ones, at most
MOST_TERMS = 25
TIMELINE_DEPTH = 100


def gather(
    runs: Sequence[NamedRun],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    measures: Iterable[Any] = DEFAULT_MEASURES,
    baseline: int = 0,
    complete: bool = False,
    rel: int | None = None,
    tests: Iterable[str] = tuple(TESTS),
    correction: str = "holm",
    seed: int = 0,
    topics: Iterable[Topic] = (),
    topic_times: Mapping[str, int] | None = None,
    document_times: Mapping[str, int] | None = None,
    titles: Mapping[str, str] | None = None,
    period: str | None = None,
    title: str = "Retrieval report",
    collection: str = "",
) -> dict[str, Any]:
    """Measure and compare the runs, and collect what explains the differences topic by topic.

    baseline        position of the run the others are compared with
    topics          query texts, and times where topic_times does not give them
    document_times  ms by docid: adds timelines and the measure by period
    titles          text shown beside a docid
    period          of the measure by time; by default the finest that gives at most 24 parts
    """
    if not runs:
        raise ParameterError("a report needs at least one run")
    if not 0 <= baseline < len(runs):
        raise ParameterError(f"baseline must be a position among {len(runs)} runs, got {baseline}")
    names = list(parse_measures(measures, rel))
    evaluator = Evaluator(qrels, [*names, *CURVE_MEASURES], complete=complete, rel=rel)
    evaluations = [evaluator.evaluate(named.run, named.name) for named in runs]
    others = [i for i in range(len(runs)) if i != baseline]
    comparisons = compare(
        [evaluations[i] for i in others], evaluations[baseline],
        measures=names, tests=tests, correction=correction, seed=seed,
    )  # fmt: skip
    by_name = {topic.qid: topic for topic in topics}
    times = {qid: topic.time for qid, topic in by_name.items() if topic.time is not None}
    times.update(topic_times or {})
    document_times = document_times or {}
    threshold = 1 if rel is None else rel
    qids = natural_order({qid for evaluation in evaluations for qid in evaluation.topics})
    return {
        "title": title,
        "collection": collection,
        "version": __version__,
        "measures": names,
        "threshold": threshold,
        "complete": complete,
        "tests": list(tests),
        "correction": correction,
        "baseline": baseline,
        "runs": [_run(named, e, names) for named, e in zip(runs, evaluations, strict=True)],
        "comparisons": _comparisons(comparisons, others, len(names)),
        "curve": {
            "recall": list(RECALL_LEVELS),
            "precision": [[_number(e.mean[m]) for m in CURVE_MEASURES] for e in evaluations],
        },
        "topics": [
            _topic(
                qid, by_name.get(qid), times.get(qid), runs, evaluations, qrels.get(qid, {}), names, threshold
            )
            | _explanations(qid, runs, qrels.get(qid, {}), threshold, document_times, titles or {})
            for qid in qids
        ],
        "slices": _slices(runs, qrels, names, period, times, document_times, complete=complete, rel=rel),
    }


def _run(named: NamedRun, evaluation: Evaluation, names: Sequence[str]) -> dict[str, Any]:
    return {
        "name": named.name,
        "tag": named.run.tag,
        "file": "" if named.path is None else named.path.name,
        "topics": len(evaluation.topics),
        "means": [_number(evaluation.mean[m]) for m in names],
        "notes": evaluation.notes(),
        "manifest": None if named.manifest is None else dict(named.manifest),
    }


def _comparisons(table: Sequence[Comparison], others: Sequence[int], measures: int) -> list[Any]:
    """[run][measure]; None for the baseline. ``compare`` lists measures first, runs within."""
    by_run: list[Any] = [None] * (len(others) + 1)
    for position, run in enumerate(others):
        rows = [table[m * len(others) + position] for m in range(measures)]
        by_run[run] = [
            {
                "topics": len(c.topics),
                "difference": _number(c.difference),
                "relative": _number(c.relative),
                "confidence": [_number(x) for x in c.confidence],
                "wins": c.wins,
                "ties": c.ties,
                "losses": c.losses,
                "cohens_d": _number(c.cohens_d),
                "superiority": _number(c.superiority),
                "p": {t: _number(r.p_value) for t, r in c.tests.items()},
                "p_corrected": {t: _number(p) for t, p in c.corrected.items()},
            }
            for c in rows
        ]
    return by_run


def _topic(
    qid: str,
    topic: Topic | None,
    time: int | None,
    runs: Sequence[NamedRun],
    evaluations: Sequence[Evaluation],
    grades: Mapping[str, int],
    names: Sequence[str],
    threshold: int,
) -> dict[str, Any]:
    relevant = [docid for docid, grade in grades.items() if grade >= threshold]
    return {
        "qid": qid,
        "text": "" if topic is None else topic.text,
        "time": time,
        "judged": len(grades),
        "relevant": len(relevant),
        "found": [
            len(set(named.run[qid].docids) & set(relevant)) if qid in named.run else 0 for named in runs
        ],
        "values": [
            [_number(e.per_topic[m][qid]) for m in names] if qid in e.topics else None for e in evaluations
        ],
    }


def _explanations(
    qid: str,
    runs: Sequence[NamedRun],
    grades: Mapping[str, int],
    threshold: int,
    document_times: Mapping[str, int],
    titles: Mapping[str, str],
) -> dict[str, Any]:
    """The documents whose ranks tell the story, the expansion terms, and the timeline of one topic."""
    ranks = [
        {docid: rank for rank, docid in enumerate(named.run[qid].docids, 1)} if qid in named.run else {}
        for named in runs
    ]
    shown = {docid for named in runs if qid in named.run for docid in named.run[qid].docids[:TOP]}
    relevant = [docid for docid, grade in grades.items() if grade >= threshold]
    nowhere = 1 << 60

    def best(docid: str) -> tuple[int, str]:
        return min((r.get(docid, nowhere) for r in ranks), default=nowhere), docid

    room = max(0, MOST_DOCUMENTS - len(shown))
    shown.update(sorted((d for d in relevant if d not in shown), key=best)[:room])
    documents = []
    for docid in sorted(shown, key=best):
        entry: dict[str, Any] = {"id": docid, "ranks": [r.get(docid) for r in ranks]}
        if docid in grades:
            entry["grade"] = grades[docid]
        if titles.get(docid):
            entry["title"] = titles[docid]
        if _dated(document_times.get(docid)):
            entry["time"] = document_times[docid]
        documents.append(entry)
    answer: dict[str, Any] = {"documents": documents, "hidden": sum(d not in shown for d in relevant)}
    if any(qid in named.expansions for named in runs):
        answer["terms"] = [_terms(named.expansions.get(qid)) for named in runs]
    timeline = _timeline(qid, runs, grades, threshold, document_times)
    if timeline is not None:
        answer["timeline"] = timeline
    return answer


def _terms(weights: Mapping[str, float] | None) -> list[list[Any]] | None:
    if weights is None:
        return None
    heaviest = sorted(weights.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    return [[term, _number(weight)] for term, weight in heaviest[:MOST_TERMS]]


def _timeline(
    qid: str,
    runs: Sequence[NamedRun],
    grades: Mapping[str, int],
    threshold: int,
    document_times: Mapping[str, int],
) -> dict[str, Any] | None:
    """[time, score, is relevant] of each run's first documents, and the times of all relevant documents."""
    if not document_times:
        return None
    points: list[list[list[Any]]] = []
    for named in runs:
        rows = []
        if qid in named.run:
            ranking = named.run[qid]
            for docid, score in zip(
                ranking.docids[:TIMELINE_DEPTH], ranking.scores[:TIMELINE_DEPTH], strict=True
            ):
                time = document_times.get(docid)
                if _dated(time) and math.isfinite(score):
                    rows.append([time, float(f"{score:.5g}"), int(grades.get(docid, 0) >= threshold)])
        points.append(rows)
    found = [document_times.get(docid) for docid, grade in grades.items() if grade >= threshold]
    relevant = sorted(time for time in found if time is not None and _dated(time))
    if not relevant and not any(points):
        return None
    return {"runs": points, "relevant": relevant}


def _slices(
    runs: Sequence[NamedRun],
    qrels: Mapping[str, Mapping[str, int]],
    names: Sequence[str],
    period: str | None,
    topic_times: Mapping[str, int],
    document_times: Mapping[str, int],
    *,
    complete: bool,
    rel: int | None,
) -> list[dict[str, Any]]:
    """The measures by period, once for each kind of time that is known and falls into several periods."""
    threshold = 1 if rel is None else rel
    relevant = {d for grades in qrels.values() for d, grade in grades.items() if grade >= threshold}
    kinds = [
        ("query", evaluate_by_query_time, {q: t for q, t in topic_times.items() if q in qrels}),
        ("relevant", evaluate_by_relevant_time, {d: t for d, t in document_times.items() if d in relevant}),
    ]
    answer = []
    for kind, evaluate_by, times in kinds:
        chosen = period or choose_period(times.values())
        if chosen is None or not times:
            continue
        parts = [
            evaluate_by(named.run, qrels, times, chosen, names, complete=complete, rel=rel, name=named.name)
            for named in runs
        ]
        answer.append({"by": kind, "period": chosen, **_by_period(parts, names)})
    return answer


def _by_period(parts: Sequence[Sequence[TimeSlice]], names: Sequence[str]) -> dict[str, Any]:
    labels = sorted({s.period for slices in parts for s in slices}, key=lambda x: (x == "undated", x))
    table = [{s.period: s for s in slices} for slices in parts]
    return {
        "labels": labels,
        "topics": [max(t[label].topics for t in table if label in t) for label in labels],
        "relevant": [max(t[label].relevant for t in table if label in t) for label in labels],
        "values": [
            [
                [_number(t[label].evaluation.mean[m]) if label in t else None for label in labels]
                for m in names
            ]
            for t in table
        ],
    }


def _dated(time: int | None) -> bool:
    return time is not None and time != UNDATED


def _number(value: float) -> float | None:
    """JSON has no nan and no infinity; the page shows a dash."""
    return float(value) if math.isfinite(value) else None
