"""Measures of a run, to the last digit of trec_eval.

The names are those of ir_measures (``AP``, ``P@5``, ``nDCG@10``, ``AP(rel=2)``); trec_eval's own (``map``,
``P_5``, ``ndcg_cut_10``) are understood too. Every measure trec_eval has is computed by trec_eval's code
(pytrec_eval, through ir_measures); the others by the provider ir_measures picks.

Which topics count, as in trec_eval:

- topics of the run that nobody judged are left out;
- judged topics without results are left out too, or count as zero with ``complete=True`` (trec_eval ``-c``);
- judged topics without a single relevant document count, as zero.

``Evaluation`` lists all three, so that nothing is dropped in silence.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress, count
from typing import TYPE_CHECKING, Any, TypeAlias

from sdretrieval.errors import ParameterError
from sdretrieval.records import Run, rank_order

if TYPE_CHECKING:
    from sdretrieval.records import Qrels

RunLike: TypeAlias = "Run | Mapping[str, Mapping[str, float]]"
QrelsLike: TypeAlias = "Qrels | Mapping[str, Mapping[str, int]]"

DEFAULT_MEASURES = ("AP", "P@5")


def natural_order(ids: Iterable[str]) -> list[str]:
    """Topic ids as people order them: by the numbers in them, then as text.

    >>> natural_order(["10", "9", "MB2", "MB11"])
    ['9', '10', 'MB2', 'MB11']
    """

    def key(text: str) -> tuple[list[tuple[int, int, str]], str]:
        parts = re.split(r"([0-9]+)", text)
        return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part], text

    return sorted(ids, key=key)


def parse_measures(names: Iterable[Any], rel: int | None = None) -> dict[str, Any]:
    """Measure names to ir_measures' measures, keyed by their full name, in the order given.

    ``rel`` is the least grade that counts as relevant, for every measure that has such a threshold and does
    not state its own.

    >>> list(parse_measures(["AP", "P_5", "nDCG@10"], rel=2))
    ['AP(rel=2)', 'P(rel=2)@5', 'nDCG@10']
    """
    if isinstance(names, str):  # "AP P@5" in one string is what ir_measures' own command line takes
        names = names.split()
    measures: dict[str, Any] = {}
    for name in names:
        for measure in _parse(name):
            if rel is not None and "rel" in measure.SUPPORTED_PARAMS and "rel" not in measure.params:
                measure = measure(rel=rel)
            try:
                measure.validate_params()
            except AssertionError as error:
                raise ParameterError(
                    f"measure {str(name)!r}: {error}", remedy="Write for example P@5, nDCG@10 or AP(rel=2)."
                ) from None
            measures.setdefault(str(measure), measure)
    if not measures:
        raise ParameterError("no measure given", remedy="Name at least one, e.g. AP.")
    return measures


def _parse(name: Any) -> list[Any]:
    import ir_measures

    if not isinstance(name, str):
        return [name]
    try:
        return [ir_measures.parse_measure(name)]
    except ValueError as error:
        reason = str(error)
    except NameError:
        reason = "unknown"
    except Exception as error:  # a measure's own complaint about its parameters
        reason = str(error)
    try:
        return list(ir_measures.parse_trec_measure(name))
    except ValueError:
        pass
    known = sorted(ir_measures.measures.registry)
    near = difflib.get_close_matches(re.split(r"[@(]", name)[0], known, n=3, cutoff=0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(known)}."
    raise ParameterError(f"measure {name!r}: {reason}", remedy=remedy)


class ByMeasure(dict[str, Any]):
    """Keyed by measure; also answers to the name the caller used (``AP`` for ``AP(rel=2)``)."""

    def __init__(self, values: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
        super().__init__(values)
        self._aliases = aliases

    def __missing__(self, key: Any) -> Any:
        name = self._aliases.get(str(key))
        if name is None:
            raise KeyError(key)
        return self[name]


@dataclass(frozen=True)
class Evaluation:
    """One run's measures.

    ``mean[measure]`` is trec_eval's summary line (a sum for counts such as NumRet),
    ``per_topic[measure][qid]`` one topic's value. ``topics`` were averaged over.
    """

    name: str
    mean: Mapping[str, float]
    per_topic: Mapping[str, Mapping[str, float]]
    topics: tuple[str, ...]
    unjudged_topics: tuple[str, ...]  # in the run, not in the qrels: not counted
    missing_topics: tuple[str, ...]  # in the qrels, not in the run: zero if complete, else not counted
    irrelevant_topics: tuple[str, ...]  # counted topics without any relevant document: zero
    complete: bool

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(self.mean)

    def notes(self) -> list[str]:
        """What a reader must know about the topics, in sentences; empty where run and qrels match."""
        notes = []
        if self.unjudged_topics:
            notes.append(f"{_topics(self.unjudged_topics)} without judgments: not counted")
        if self.missing_topics:
            how = "counted as zero" if self.complete else "not counted (--complete counts them as zero)"
            notes.append(f"judged {_topics(self.missing_topics)} without results: {how}")
        if self.irrelevant_topics:
            notes.append(f"{_topics(self.irrelevant_topics)} judged without any relevant document: counted as zero")
        return notes


def _topics(qids: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(qids[:most]) + (f", … ({len(qids) - most} more)" if len(qids) > most else "")
    return f"{len(qids)} topic{'s' if len(qids) > 1 else ''} [{shown}]"


class Evaluator:
    """Judgments and measures made ready once, for any number of runs.

    >>> evaluator = Evaluator({"1": {"a": 1, "b": 0}}, ["AP", "P@5"])
    >>> evaluator.evaluate({"1": {"b": 2.0, "a": 1.0}}).mean["AP"]
    0.5
    """

    def __init__(
        self,
        qrels: QrelsLike,
        measures: Iterable[Any] = DEFAULT_MEASURES,
        *,
        complete: bool = False,
        rel: int | None = None,
    ) -> None:
        import ir_measures

        asked = measures.split() if isinstance(measures, str) else list(measures)
        self.measures = parse_measures(asked, rel)
        self.complete = complete
        self.threshold = 1 if rel is None else rel
        # A topic with an empty set of judgments is a topic without judgments.
        self._judgments = {qid: _plain(qrels[qid]) for qid in qrels if len(qrels[qid])}
        self._relevant = {qid for qid, grades in self._judgments.items() if max(grades.values()) >= self.threshold}
        self._aliases: dict[str, str] = {}
        for name in asked:
            for plain, full in zip(parse_measures([name]), parse_measures([name], rel), strict=True):
                self._aliases.setdefault(plain, full)
                self._aliases.setdefault(str(name), full)
        self._names = {id(measure): full for full, measure in self.measures.items()}  # str(measure) takes its time
        trec_eval = ir_measures.providers.registry["pytrec_eval"]
        mine = [m for m in self.measures.values() if trec_eval.supports(m)]
        rest = [m for m in self.measures.values() if m not in mine]
        try:
            self._trec_eval = trec_eval.evaluator(mine, _safe(self._judgments)) if mine else None
            self._other = ir_measures.evaluator(rest, self._judgments) if rest else None
        except ValueError as error:
            raise ParameterError(str(error), remedy="Install the package named, or drop the measure.") from None

    def evaluate(self, run: RunLike, name: str | None = None) -> Evaluation:
        """The measures of one run. Any number of runs may follow each other; nothing is kept of them."""
        judged = natural_order(qid for qid in run if qid in self._judgments)
        missing = natural_order(qid for qid in self._judgments if qid not in run)
        counted = natural_order([*judged, *missing]) if self.complete else judged
        table: dict[str, dict[str, float]] = {}
        for measure, qid, value in self._values(run, judged):
            table.setdefault(measure, {})[qid] = value
        per_topic, mean = {}, {}
        for full, measure in self.measures.items():
            row = table.get(full, {})
            per_topic[full] = {qid: row.get(qid, measure.DEFAULT) for qid in counted}
            # trec_eval adds plain doubles over topics in byte order; the order decides the last digit.
            total = measure.aggregator()
            for qid in sorted(counted, key=_bytes):
                total.add(per_topic[full][qid])
            mean[full] = float(total.result())
        return Evaluation(
            name=name if name is not None else getattr(run, "tag", ""),
            mean=ByMeasure(mean, self._aliases),
            per_topic=ByMeasure(per_topic, self._aliases),
            topics=tuple(counted),
            unjudged_topics=tuple(natural_order(qid for qid in run if qid not in self._judgments)),
            missing_topics=tuple(missing),
            irrelevant_topics=tuple(qid for qid in counted if qid not in self._relevant),
            complete=self.complete,
        )

    def _values(self, run: RunLike, judged: list[str]) -> Iterator[tuple[str, str, float]]:
        """(measure, topic, value), topic by topic: what was just made ready is still in the processor's cache."""
        for qid in judged:
            if self._trec_eval is not None:
                # _iter_calc: the public method adds a zero for every other topic, each time it is called.
                for metric in self._trec_eval._iter_calc({qid: self._as_scored(run, qid)}):
                    yield self._names.get(id(metric.measure)) or str(metric.measure), qid, metric.value
        if self._other is not None and judged:
            # The other providers break ties each in their own way; ranks have none.
            for metric in self._other.iter_calc({qid: _ranks(run, qid) for qid in judged}):
                if metric.query_id in run:
                    yield str(metric.measure), metric.query_id, metric.value

    def _as_scored(self, run: RunLike, qid: str) -> dict[str, float]:
        """One topic for trec_eval. A Ranking is in trec_eval's order already, so ranks stand for scores and stand-ins
        for unjudged documents: the same list to every measure, from strings that are made once."""
        if not isinstance(run, Run):
            return _scores(run, qid)
        docids = run[qid].docids
        names, ranks, scores = _stand_ins(len(docids))
        scores = scores.copy()
        for i in compress(count(), map(self._judgments[qid].__contains__, docids)):
            del scores[names[i]]
            scores[docids[i]] = ranks[i]
        return scores


@lru_cache(maxsize=64)
def _stand_ins(n: int) -> tuple[list[str], list[float], dict[str, float]]:
    """n names no document can have (ids hold no spaces), n falling scores, and both as one ranked list."""
    names, ranks = [f" {i}" for i in range(n)], [-float(i) for i in range(n)]
    return names, ranks, dict(zip(names, ranks, strict=True))


def _plain(grades: Mapping[str, int]) -> dict[str, int]:
    return grades if type(grades) is dict else dict(grades)


NOBODY = " judged by nobody"  # no document can be called so: ids hold no spaces


def _safe(judgments: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """trec_eval reads memory it never reserved where all of a topic's grades are negative (it sizes an array by the
    highest grade): wrong numbers or a crash. One more non-relevant document, which no run has, keeps it sound and
    changes no measure, since such a topic has nothing relevant to find."""
    return {qid: grades if max(grades.values()) >= 0 else {**grades, NOBODY: 0} for qid, grades in judgments.items()}


def _bytes(qid: str) -> bytes:
    return qid.encode("utf-8", "surrogateescape")


def _scores(run: RunLike, qid: str) -> dict[str, float]:
    if isinstance(run, Run):
        ranking = run[qid]
        return dict(zip(ranking.docids, ranking.scores.tolist(), strict=True))
    scores = run[qid]
    # pytrec_eval takes Python's own numbers only; but copying them all would cost as much as evaluating.
    if type(scores) is not dict or not {*map(type, scores.values())} <= {float, int}:
        scores = {docid: float(score) for docid, score in scores.items()}
    if math.isnan(sum(scores.values())):
        for docid, score in scores.items():
            if math.isnan(score):
                raise ParameterError(f"topic {qid!r}: the score of {docid!r} is not a number")
    return scores


def _ranks(run: RunLike, qid: str) -> dict[str, float]:
    if isinstance(run, Run):
        docids = list(run[qid].docids)
    else:
        names = list(run[qid])
        docids = [names[i] for i in rank_order(names, list(run[qid].values()))]
    return {docid: float(len(docids) - rank) for rank, docid in enumerate(docids)}


def evaluate(
    run: RunLike,
    qrels: QrelsLike,
    measures: Iterable[Any] = DEFAULT_MEASURES,
    *,
    complete: bool = False,
    rel: int | None = None,
    name: str | None = None,
) -> Evaluation:
    """Measure one run; for many runs over the same qrels, :class:`Evaluator` prepares the judgments once.

    run       a Run, or ``{qid: {docid: score}}``
    qrels     a Qrels, or ``{qid: {docid: grade}}``
    measures  names as ir_measures writes them
    complete  judged topics without results count as zero (trec_eval -c)
    rel       the least grade that counts as relevant (trec_eval -l), for measures that do not state their own

    >>> result = evaluate({"1": {"b": 2.0, "a": 1.0}}, {"1": {"a": 1}, "2": {"c": 1}}, ["AP", "P@5"])
    >>> result.mean["AP"], result.per_topic["P@5"]["1"], result.missing_topics
    (0.5, 0.2, ('2',))
    """
    return Evaluator(qrels, measures, complete=complete, rel=rel).evaluate(run, name)
