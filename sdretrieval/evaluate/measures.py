"""Measures of a run, to the last digit of trec_eval.

The names are those of ir_measures (``AP``, ``P@5``, ``nDCG@10``, ``AP(rel=2)``); trec_eval's own (``map``,
``P_5``, ``ndcg_cut_10``) are understood too. Every measure trec_eval has is computed by trec_eval's code
(pytrec_eval, through ir_measures); the others by the provider ir_measures picks. A measure from outside the package is
one that ir_measures has registered, or a function given to :func:`register_measure`.

Which topics count, as in trec_eval:

- topics of the run that nobody judged are left out;
- judged topics without results are left out too, or count as zero with ``complete=True`` (trec_eval ``-c``);
- judged topics without a single relevant document count, as zero.

``Evaluation`` lists all three, so that nothing is dropped in silence.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import compress, count
from typing import Any, TypeAlias

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.core.errors import ParameterError, few

RunLike: TypeAlias = Run | Mapping[str, Mapping[str, float]]
QrelsLike: TypeAlias = Qrels | Mapping[str, Mapping[str, int]]
MeasureFunction: TypeAlias = Callable[[Sequence[str], Mapping[str, int]], float]

DEFAULT_MEASURES = ("AP", "P@5")
_REGISTERED: dict[str, MeasureFunction] = {}  # by :func:`register_measure`
OWN_MEASURES = ("RBP", "RBPResidual")  # computed here, with their parameters


def natural_order(ids: Iterable[str]) -> list[str]:
    """Topic ids as people order them: by the numbers in them, then as text.

    >>> natural_order(["10", "9", "MB2", "MB11"])
    ['9', '10', 'MB2', 'MB11']
    """

    def key(text: str) -> tuple[list[tuple[int, int, str]], str]:
        parts = re.split(r"([0-9]+)", text)
        return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part], text

    return sorted(ids, key=key)


def as_run(run: RunLike) -> Run:
    """Plain dictionaries as a record, whose rankings are in trec_eval's order."""
    if isinstance(run, Run):
        return run
    rankings = {}
    for qid, scores in run.items():
        scores = dict(scores)
        try:
            rankings[qid] = Ranking(list(scores), list(scores.values()))
        except ParameterError as error:
            raise ParameterError(f"topic {qid!r}: {error.message}", remedy=error.remedy) from None
    return Run(rankings, tag="")


# -- names --------------------------------------------------------------------------------------------------------


def register_measure(name: str, function: MeasureFunction) -> None:
    """Make a measure of your own known by name, with or without a cutoff (``name@10``).

    Parameters
    ----------
    name
        A Python name that no measure of ir_measures has.
    function
        Takes one topic's docids from rank 1 down (to the cutoff) and its grades by docid, and gives the value. A
        document without a grade is not judged.

    Examples
    --------
    >>> register_measure("FirstGrade", lambda docids, grades: grades.get(docids[0], 0))
    >>> evaluate({"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 3}}, ["AP", "FirstGrade"]).mean["FirstGrade"]
    3.0
    """
    import ir_measures  # takes its time to load

    known = ir_measures.measures.registry
    if not name.isidentifier() or (name in known and name not in _REGISTERED):
        reason = "taken" if name in known else "not a Python name"
        raise ParameterError(f"measure {name!r}: the name is {reason}", remedy="Choose another.")
    if name not in known:
        cutoff = ir_measures.ParamInfo(dtype=int, required=False, desc="last rank that is looked at")
        members = {"NAME": name, "__name__": name, "SUPPORTED_PARAMS": {"cutoff": cutoff}}
        ir_measures.measures.register(type(name, (ir_measures.Measure,), members)(), name=name)
    _REGISTERED[name] = function


def rank_biased_precision(docids: Sequence[str], grades: Mapping[str, int], p: float = 0.8, rel: int = 1) -> float:
    """RBP = (1 - p) Σ_i p^(i-1) [document i is relevant] (Moffat and Zobel 2008), of a binary gain."""
    return (1 - p) * sum(p**i for i, docid in enumerate(docids) if grades.get(docid, 0) >= rel)


def rank_biased_residual(docids: Sequence[str], grades: Mapping[str, int], p: float = 0.8) -> float:
    """What RBP could gain at most, were all unjudged documents relevant: those ranked, and those after the last."""
    return (1 - p) * sum(p**i for i, docid in enumerate(docids) if docid not in grades) + p ** len(docids)


def _with_own_measures() -> Any:
    """ir_measures, with what it names but has no code for without another package (RBP), and with RBP's residual."""
    import ir_measures  # takes its time to load

    if "RBPResidual" not in ir_measures.measures.registry:
        persistence = ir_measures.ParamInfo(dtype=float, default=0.8, desc="persistence, as of RBP")
        members = {"NAME": "RBPResidual", "__name__": "RBPResidual", "SUPPORTED_PARAMS": {"p": persistence}}
        ir_measures.measures.register(type("RBPResidual", (ir_measures.Measure,), members)())
    return ir_measures


def is_measure(name: str) -> bool:
    """Whether a word is the name of a measure, as ir_measures or trec_eval writes it."""
    try:
        return bool(_parse(name))
    except ParameterError:
        return False


def parse_measures(names: Iterable[Any], rel: int | None = None) -> dict[str, Any]:
    """Measure names to ir_measures' measures, keyed by their full name, in the order given.

    ``rel`` is the least grade that counts as relevant, for every measure that has such a threshold and does
    not state its own.

    >>> list(parse_measures(["AP", "P_5", "nDCG@10"], rel=2))
    ['AP(rel=2)', 'P(rel=2)@5', 'nDCG@10']
    """
    return {str(measure): measure for _, _, measure in _parsed(names, rel)}


def _parsed(names: Iterable[Any], rel: int | None) -> list[tuple[str, str, Any]]:
    """The name asked for, the measure's name without ``rel``, and the measure with it."""
    if isinstance(names, str):  # "AP P@5" in one string is what ir_measures' own command line takes
        names = names.split()
    parsed = []
    for name in names:
        for plain in _parse(name):
            if plain.NAME == "RBP" and "rel" not in plain.params:
                plain = plain(rel=1 if rel is None else rel)
            takes_rel = rel is not None and "rel" in plain.SUPPORTED_PARAMS and "rel" not in plain.params
            measure = plain(rel=rel) if takes_rel else plain
            try:
                measure.validate_params()
            except AssertionError as error:
                raise ParameterError(
                    f"measure {str(name)!r}: {error}", remedy="Write for example P@5, nDCG@10 or AP(rel=2)."
                ) from None
            parsed.append((str(name), str(plain), measure))
    if not parsed:
        raise ParameterError("no measure given", remedy="Name at least one, e.g. AP.")
    return parsed


def _parse(name: Any) -> list[Any]:
    ir_measures = _with_own_measures()
    if not isinstance(name, str):
        return [name]
    try:
        return [ir_measures.parse_measure(name)]
    except NameError:
        reason = "unknown"
    except Exception as error:  # of the syntax, or a measure's own about its parameters
        reason = str(error)
    try:
        return list(ir_measures.parse_trec_measure(name))
    except ValueError:
        pass
    stem = re.split(r"[@(]", name)[0]
    spelled = next((str(one) for one in ir_measures.measures.registry if one.lower() == stem.lower()), stem)
    if spelled != stem:  # ndcg@10
        return _parse(spelled + name[len(stem) :])
    known = sorted(ir_measures.measures.registry)
    near = difflib.get_close_matches(stem, known, n=3, cutoff=0.5)
    remedy = f"Did you mean {' or '.join(near)}?" if near else f"Known are {', '.join(known)}."
    raise ParameterError(f"measure {name!r}: {reason}", remedy=remedy)


# -- values -------------------------------------------------------------------------------------------------------


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


def _topics(qids: Sequence[str]) -> str:
    return f"{len(qids)} topic{'s' if len(qids) > 1 else ''} [{few(qids)}]"


class Evaluator:
    """Judgments and measures made ready once, for any number of runs. Parameters as of :func:`evaluate`.

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
        import ir_measures  # takes its time to load

        self.measures: dict[str, Any] = {}
        self._aliases: dict[str, str] = {}
        for asked, plain, measure in _parsed(measures, rel):
            full = str(measure)
            self.measures.setdefault(full, measure)
            self._aliases.setdefault(plain, full)
            self._aliases.setdefault(asked, full)
        self.complete = complete
        self.threshold = 1 if rel is None else rel
        # A topic with an empty set of judgments is a topic without judgments.
        self._judgments = {qid: {d: int(grade) for d, grade in qrels[qid].items()} for qid in qrels if len(qrels[qid])}
        self._relevant = {qid for qid, grades in self._judgments.items() if max(grades.values()) >= self.threshold}
        self._names = {id(measure): full for full, measure in self.measures.items()}  # str(measure) takes its time
        self._registered = {full: _own_function(m) for full, m in self.measures.items() if _is_own(m)}
        trec_eval: Any = ir_measures.pytrec_eval
        mine = [m for m in self.measures.values() if trec_eval.supports(m)]
        rest = [m for full, m in self.measures.items() if m not in mine and full not in self._registered]
        try:
            # Its invokers one by one: its own iter_calc adds a zero for every other topic, each time it is called.
            self._trec_eval = trec_eval.evaluator(mine, _safe(self._judgments)).invokers if mine else []
            self._other = ir_measures.evaluator(rest, self._judgments) if rest else None
        except (ValueError, TypeError) as error:  # trec_eval's, of a threshold below 1
            remedy = "Use other parameters, or drop the measure. The least relevant grade is 1 or more."
            if "pip install" in str(error):  # ir_measures names the packages that would do
                remedy = "Install one of them, or drop the measure."
            raise ParameterError(str(error), remedy=remedy) from None

    def evaluate(self, run: RunLike, name: str | None = None) -> Evaluation:
        """The measures of one run. Any number of runs may follow each other; nothing is kept of them."""
        run = as_run(run)
        judged = natural_order(qid for qid in run if qid in self._judgments)
        missing = natural_order(qid for qid in self._judgments if qid not in run)
        counted = natural_order([*judged, *missing]) if self.complete else judged
        table: dict[str, dict[str, float]] = {full: {} for full in self.measures}
        for full, qid, value in self._values(run, judged):
            table[full][qid] = value
        per_topic, mean = {}, {}
        for full, measure in self.measures.items():
            per_topic[full] = {qid: table[full].get(qid, measure.DEFAULT) for qid in counted}
            # trec_eval adds plain doubles over topics in byte order; the order decides the last digit.
            total = measure.aggregator()
            for qid in sorted(counted, key=_bytes):
                total.add(per_topic[full][qid])
            mean[full] = float(total.result())
        return Evaluation(
            name=run.tag if name is None else name,
            mean=ByMeasure(mean, self._aliases),
            per_topic=ByMeasure(per_topic, self._aliases),
            topics=tuple(counted),
            unjudged_topics=tuple(natural_order(qid for qid in run if qid not in self._judgments)),
            missing_topics=tuple(missing),
            irrelevant_topics=tuple(qid for qid in counted if qid not in self._relevant),
            complete=self.complete,
        )

    def _values(self, run: Run, judged: list[str]) -> Iterator[tuple[str, str, float]]:
        """(measure, topic, value), topic by topic: what was just made ready is still in the processor's cache."""
        for qid in judged:
            docids, grades = run[qid].docids, self._judgments[qid]
            scored = {qid: _as_scored(docids, grades)} if self._trec_eval else {}
            for invoker in self._trec_eval:
                for metric in invoker.iter_calc(scored):
                    yield self._names[id(metric.measure)], qid, metric.value
            for full, function in self._registered.items():
                yield full, qid, float(function(docids, grades))
        if self._other is not None and judged:
            # The other providers break ties each in their own way; ranks have none.
            for metric in self._other.iter_calc({qid: _ranks(run[qid].docids) for qid in judged}):
                if metric.query_id in run:
                    yield str(metric.measure), metric.query_id, metric.value


def _is_own(measure: Any) -> bool:
    return measure.NAME in _REGISTERED or measure.NAME in OWN_MEASURES


def _own_function(measure: Any) -> MeasureFunction:
    """The function of a measure that no provider of ir_measures computes, with its parameters."""
    params, cutoff = dict(measure.params), measure.params.get("cutoff")
    params.pop("cutoff", None)
    own: Any = {"RBP": rank_biased_precision, "RBPResidual": rank_biased_residual}.get(measure.NAME)
    function = _REGISTERED[measure.NAME] if own is None else partial(own, **params)
    return lambda docids, grades: function(docids[:cutoff], grades)


def _as_scored(docids: Sequence[str], grades: Mapping[str, int]) -> dict[str, float]:
    """One topic for trec_eval. A Ranking is in trec_eval's order already, so ranks stand for scores and stand-ins
    for unjudged documents: the same list to every measure, from strings that are made once."""
    names, ranks, scores = _stand_ins(len(docids))
    scores = scores.copy()
    for i in compress(count(), map(grades.__contains__, docids)):
        del scores[names[i]]
        scores[docids[i]] = ranks[i]
    return scores


def _ranks(docids: Sequence[str]) -> dict[str, float]:
    return {docid: float(len(docids) - rank) for rank, docid in enumerate(docids)}


@lru_cache(maxsize=64)
def _stand_ins(n: int) -> tuple[list[str], list[float], dict[str, float]]:
    """n names no document can have (ids hold no line ends), n falling scores, and both as one ranked list."""
    names, ranks = [f"\n{i}" for i in range(n)], [-float(i) for i in range(n)]
    return names, ranks, dict(zip(names, ranks, strict=True))


def _safe(judgments: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """trec_eval reads memory it never reserved where all of a topic's grades are negative (it sizes an array by the
    highest grade): wrong numbers or a crash. One more non-relevant document, which no run has, keeps it sound and
    changes no measure, since such a topic has nothing relevant to find."""
    nobody = {"\njudged by nobody": 0}
    return {qid: grades if max(grades.values()) >= 0 else grades | nobody for qid, grades in judgments.items()}


def _bytes(qid: str) -> bytes:
    return qid.encode("utf-8", "surrogateescape")


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

    Parameters
    ----------
    run
        A Run, or ``{qid: {docid: score}}``.
    qrels
        A Qrels, or ``{qid: {docid: grade}}``.
    measures
        Names as ir_measures or trec_eval writes them, and those given to :func:`register_measure`.
    complete
        Judged topics without results count as zero (trec_eval -c).
    rel
        The least grade that counts as relevant (trec_eval -l), for measures that do not state their own.
    name
        What tables call the run; by default its tag.

    Returns
    -------
    Evaluation
        Means, values by topic, and which topics counted.

    Examples
    --------
    >>> result = evaluate({"1": {"b": 2.0, "a": 1.0}}, {"1": {"a": 1}, "2": {"c": 1}}, ["AP", "P@5"])
    >>> result.mean["AP"], result.per_topic["P@5"]["1"], result.missing_topics
    (0.5, 0.2, ('2',))
    """
    return Evaluator(qrels, measures, complete=complete, rel=rel).evaluate(run, name)
