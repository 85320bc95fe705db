"""Everything a report shows, as one plain dictionary that JSON can carry.

Kept apart from how it looks: the page, the plots and the tests read the same data. No number is computed
anywhere else. Lists indexed by run follow ``data["runs"]``; lists indexed by measure follow
``data["measures"]``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from sdretrieval import __version__
from sdretrieval.collection.records import Ranking, Topic
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.tables import json_number
from sdretrieval.core.times import UNDATED
from sdretrieval.evaluate.curves import CURVE_MEASURES, RECALL_LEVELS
from sdretrieval.evaluate.inputs import NamedRun
from sdretrieval.evaluate.measures import DEFAULT_MEASURES, Evaluation, Evaluator, natural_order, parse_measures
from sdretrieval.evaluate.significance import TESTS, Comparison, compare
from sdretrieval.evaluate.time_slices import TimeSlice, choose_period, evaluate_by_time, in_order
from sdretrieval.ranking.manifest import ALONG_TIME

TOP = 10  # documents of each run shown per topic
MOST_DOCUMENTS = 40  # … and with the relevant ones, at most
MOST_TERMS = 25
TIMELINE_DEPTH = 100
MOST_POINTS = 1000  # of a curve
LATEST = 8.64e15  # ms: what a page's dates reach
NOTHING = Ranking([], [])


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

    Parameters
    ----------
    runs, qrels
        What is reported on.
    measures, complete, rel, tests, correction, seed
        As of :func:`~sdretrieval.evaluate.measures.evaluate` and :func:`~sdretrieval.evaluate.significance.compare`.
    baseline
        Position of the run the others are compared with.
    topics, topic_times
        Query texts, and times (ms) where they are not the topics' own.
    document_times, titles
        By docid: add timelines and the measures by period, and text beside the docid.
    period
        Of the measures by time; by default the finest that gives at most 24 parts.
    title, collection
        Headings.

    Returns
    -------
    dict
        For :func:`~.html.write_html` and :func:`~.plots.write_plots`.
    """
    if not runs:
        raise ParameterError("a report needs at least one run")
    if not 0 <= baseline < len(runs):
        raise ParameterError(f"baseline must be a position among {len(runs)} runs, got {baseline}")
    names = list(parse_measures(measures, rel))
    tests = list(tests)
    evaluator = Evaluator(qrels, [*names, *CURVE_MEASURES], complete=complete, rel=rel)
    evaluations = [evaluator.evaluate(named.run, named.name) for named in runs]
    others = [i for i in range(len(runs)) if i != baseline]
    comparisons = compare(
        [evaluations[i] for i in others],
        evaluations[baseline],
        measures=names,
        tests=tests,
        correction=correction,
        seed=seed,
    )
    by_qid = {topic.qid: topic for topic in topics}
    times = {qid: topic.time for qid, topic in by_qid.items() if topic.time is not None} | dict(topic_times or {})
    dated = {docid: time for docid, time in (document_times or {}).items() if time != UNDATED}
    material = _Material(runs, qrels, names, evaluator.threshold, dated, titles or {})
    return {
        "title": title,
        "collection": collection,
        "version": __version__,
        "measures": names,
        "threshold": evaluator.threshold,
        "complete": complete,
        "tests": tests,
        "correction": correction,
        "baseline": baseline,
        "runs": [_run(named, e, names) for named, e in zip(runs, evaluations, strict=True)],
        "comparisons": _comparisons(comparisons, others),
        "curve": {
            "recall": list(RECALL_LEVELS),
            "precision": [[_number(e.mean[m]) for m in CURVE_MEASURES] for e in evaluations],
        },
        "topics": [
            material.topic(qid, by_qid.get(qid), times.get(qid), evaluations)
            for qid in natural_order({qid for evaluation in evaluations for qid in evaluation.topics})
        ],
        "slices": material.slices(times, period, complete=complete, rel=rel),
    }


def _run(named: NamedRun, evaluation: Evaluation, names: Sequence[str]) -> dict[str, Any]:
    return {
        "name": named.name,
        "tag": named.run.tag,
        "file": "" if named.path is None else named.path.name,
        "topics": len(evaluation.topics),
        "means": [_number(evaluation.mean[m]) for m in names],
        "notes": evaluation.notes(),
        # What stands for each topic is drawn there.
        "manifest": None if named.manifest is None else {k: v for k, v in named.manifest.items() if k != ALONG_TIME},
    }


def _comparisons(table: Sequence[Comparison], others: Sequence[int]) -> list[Any]:
    """[run][measure]; None for the baseline. ``compare`` lists measures first, runs within."""
    by_run: list[Any] = [None] * (len(others) + 1)
    for position, run in enumerate(others):
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
            for c in table[position :: len(others)]
        ]
    return by_run


@dataclass(frozen=True)
class _Material:
    """What the topics and the periods of a report are made from."""

    runs: Sequence[NamedRun]
    qrels: Mapping[str, Mapping[str, int]]
    measures: Sequence[str]
    threshold: int
    document_times: Mapping[str, int]
    titles: Mapping[str, str]

    def topic(
        self, qid: str, topic: Topic | None, time: int | None, evaluations: Sequence[Evaluation]
    ) -> dict[str, Any]:
        """One topic's values; the documents, expansion terms and times that tell their story."""
        grades = self.qrels[qid]
        relevant = [docid for docid, grade in grades.items() if grade >= self.threshold]
        rankings = [named.run.get(qid, NOTHING) for named in self.runs]
        values = [
            [_number(e.per_topic[m][qid]) for m in self.measures] if qid in e.topics else None for e in evaluations
        ]
        told = {
            "qid": qid,
            "text": "" if topic is None else topic.text,
            "time": time,
            "judged": len(grades),
            "relevant": len(relevant),
            "found": [len(set(ranking.docids) & set(relevant)) for ranking in rankings],
            "values": values,
            **self.documents(rankings, grades, relevant),
        }
        if any(qid in named.expansions for named in self.runs):
            told["terms"] = [_terms(named.expansions.get(qid)) for named in self.runs]
        timeline = self.timeline(rankings, grades, relevant)
        if timeline["relevant"] or any(timeline["runs"]):
            told["timeline"] = timeline
            priors = [_prior(named.manifest, qid) for named in self.runs]
            if any(priors):
                timeline["priors"] = priors
        return told

    def documents(
        self, rankings: Sequence[Ranking], grades: Mapping[str, int], relevant: Sequence[str]
    ) -> dict[str, Any]:
        """The first documents of each run, and as many of the relevant ones as there is room for."""
        ranks = [{docid: rank for rank, docid in enumerate(ranking.docids, 1)} for ranking in rankings]

        def best(docid: str) -> tuple[float, str]:
            return min(r.get(docid, math.inf) for r in ranks), docid

        shown = {docid for ranking in rankings for docid in ranking.docids[:TOP]}
        room = max(0, MOST_DOCUMENTS - len(shown))
        shown.update(sorted((d for d in relevant if d not in shown), key=best)[:room])
        documents = []
        for docid in sorted(shown, key=best):
            entry: dict[str, Any] = {"id": docid, "ranks": [r.get(docid) for r in ranks]}
            if docid in grades:
                entry["grade"] = grades[docid]
            if self.titles.get(docid):
                entry["title"] = self.titles[docid]
            if docid in self.document_times:
                entry["time"] = self.document_times[docid]
            documents.append(entry)
        return {"documents": documents, "hidden": sum(d not in shown for d in relevant)}

    def timeline(
        self, rankings: Sequence[Ranking], grades: Mapping[str, int], relevant: Sequence[str]
    ) -> dict[str, list[Any]]:
        """[time, score, is relevant] of each run's first documents, and the times of all relevant documents."""
        times = self.document_times
        points = [
            [
                [times[docid], float(f"{score:.5g}"), int(grades.get(docid, 0) >= self.threshold)]
                for docid, score in islice(ranking, TIMELINE_DEPTH)
                if docid in times and math.isfinite(score)
            ]
            for ranking in rankings
        ]
        return {"runs": points, "relevant": sorted(times[docid] for docid in relevant if docid in times)}

    def slices(
        self, topic_times: Mapping[str, int], period: str | None, *, complete: bool, rel: int | None
    ) -> list[dict[str, Any]]:
        """The measures by period, once for each kind of time that is known and falls into several periods."""
        relevant = {d for grades in self.qrels.values() for d, grade in grades.items() if grade >= self.threshold}
        known = {
            "query": {qid: time for qid, time in topic_times.items() if qid in self.qrels},
            "relevant": {docid: time for docid, time in self.document_times.items() if docid in relevant},
        }
        choices: dict[str, Any] = {"complete": complete, "rel": rel}
        answer = []
        for kind, times in known.items():
            chosen = period or choose_period(times.values())
            if chosen is not None and times:
                parts = [
                    evaluate_by_time(named.run, self.qrels, times, chosen, self.measures, time_of=kind, **choices)
                    for named in self.runs
                ]
                answer.append({"by": kind, "period": chosen, **_by_period(parts, self.measures)})
        return answer


def _prior(manifest: Mapping[str, Any] | None, qid: str) -> list[list[float]]:
    """What a document's time added to a run's scores, in the order of time; nothing where the manifest tells none."""
    try:
        pairs = ((manifest or {}).get(ALONG_TIME) or {}).get(qid) or ()
        curve = sorted((int(time), float(nats)) for time, nats in islice(pairs, MOST_POINTS))
    except (AttributeError, TypeError, ValueError, OverflowError):  # any JSON may stand in a manifest
        return []
    return [[time, nats] for time, nats in curve if math.isfinite(nats) and abs(time) < LATEST]


def _terms(weights: Mapping[str, float] | None) -> list[list[Any]] | None:
    if weights is None:
        return None
    heaviest = sorted(weights.items(), key=lambda pair: (-abs(pair[1]), pair[0]))
    return [[term, _number(weight)] for term, weight in heaviest[:MOST_TERMS]]


def _by_period(parts: Sequence[Sequence[TimeSlice]], names: Sequence[str]) -> dict[str, Any]:
    labels = in_order({s.period for slices in parts for s in slices})
    table = [{s.period: s for s in slices} for slices in parts]
    return {
        "labels": labels,
        "topics": [max(t[label].topics for t in table if label in t) for label in labels],
        "relevant": [max(t[label].relevant for t in table if label in t) for label in labels],
        "values": [
            [[_number(t[label].evaluation.mean[m]) if label in t else None for label in labels] for m in names]
            for t in table
        ],
        "margins": [[[_margin(t.get(label), m) for label in labels] for m in names] for t in table],
    }


def _margin(part: TimeSlice | None, measure: str) -> float | None:
    """Half of the 95 % confidence interval of a period's mean (Student); None where one topic has no variance."""
    values = np.fromiter(part.evaluation.per_topic[measure].values(), np.float64) if part else np.zeros(0)
    if len(values) < 2:
        return None
    from scipy import stats  # takes its time to load

    return _number(float(stats.t.ppf(0.975, len(values) - 1)) * float(values.std(ddof=1)) / math.sqrt(len(values)))


def _number(value: float) -> float | None:
    return json_number(float(value))
