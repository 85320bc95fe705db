"""Any ranking model, aware of time: one object that wraps a Ranker and is used in its place.

>>> from sdretrieval.ranking.base import make_ranker
>>> TimeAware(ranker=make_ranker("sd3"), prior=Recency()).name
'sd3+recency'

Everything is optional and composes: a document prior, a drifting background, as-of statistics, feedback weighted by
time. ``search``, ``rerank`` and the engine take the wrapped model like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isinf
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.ranking.base import Expansion, Plan, Ranker
from sdretrieval.ranking.feedback import Feedback, uniform
from sdretrieval.ranking.query import Query
from sdretrieval.records import Ranking, Run, Topic
from sdretrieval.snapshot import Snapshot
from sdretrieval.statistics import Statistics
from sdretrieval.temporal.as_of import PastStatistics
from sdretrieval.temporal.background import Drifting, DriftingBackground
from sdretrieval.temporal.density import mode, silverman
from sdretrieval.temporal.kernels import Floats
from sdretrieval.temporal.prior import (
    AUTO,
    COMPARED,
    EVIDENCE,
    SPREAD_DEPTH,
    Density,
    Ranked,
    Ratio,
    Recency,
    TimePrior,
    weight_of,
)
from sdretrieval.temporal.prior_loops import survey, time_span
from sdretrieval.temporal.timeline import format_duration
from sdretrieval.times import UNDATED

if TYPE_CHECKING:
    from sdretrieval.ranking.engine import Engine, Judgments, Result

TEMPERATURE = 2.0  # of the evidence's weights: exp(score / (2 spreads)), so that fifty documents are worth about twenty
CHUNK = 4  # queries of as-of retrieval whose statistics are held at a time, per thread


@dataclass(frozen=True)
class FeedbackTime:
    """Feedback documents weighted by K_h of their distance in time, to the query's time or to the densest time.

    ``near="query"`` is an online kernel backwards from the query; ``near="mode"`` a symmetric one around the mode of
    the feedback documents' own density, for events that have passed. ``bandwidth`` in ms or "auto" (twice Silverman's
    rule for the feedback documents). ``weight`` is the exponent of the kernel: 0 leaves the weights alone.
    """

    near: str = "query"
    kernel: str = "exponential"
    bandwidth: float | str = AUTO
    weight: float = 1.0
    floor: float = 0.05

    def __post_init__(self) -> None:
        if self.near not in ("query", "mode"):
            raise ParameterError(f"feedback time must be query or mode, got {self.near!r}")
        if not self.weight >= 0:
            raise ParameterError(f"the weight of feedback time must be zero or positive, got {self.weight}")
        Recency(self.kernel, self.bandwidth, self.floor)  # checks them

    def emphasis(self, times: Floats, query_time: float | None) -> Floats | None:
        """A factor for each feedback document, or None where time says nothing: no query time, one instant."""
        dated = np.isfinite(times)
        known = times[dated]
        if len(known) == 0 or np.ptp(known) == 0 or (self.near == "query" and query_time is None):
            return None
        h = 2.0 * silverman(known) if isinstance(self.bandwidth, str) else self.bandwidth
        if self.near == "query":
            assert query_time is not None
            ages = query_time - times
        else:
            ages = np.abs(times - mode(known, None, bandwidth_ms=h if not isinf(h) else np.ptp(known)))
        factors = Recency(self.kernel, h, self.floor).faded(np.where(dated, ages, 0.0), h)
        factors[~dated] = factors[dated].mean()  # undated: as the others on average
        return factors**self.weight


@dataclass(frozen=True, kw_only=True)
class TimeAware(Ranker):
    """A model with time in it.

    prior       :class:`~sdretrieval.temporal.prior.Recency`, ``Density`` or None
    weight      w of the prior; None for what the evidence is worth
    evidence    how the first documents weigh as evidence of when relevance lies: by ``score``, by the feedback
                model's own ``posterior`` (query likelihood's for rm, SD's for sd), ``rank`` (1/rank) or ``uniform``.
                Judged feedback documents weigh alike, and are the evidence where there are any
    time_docs   how many first documents are the evidence
    background  :class:`~sdretrieval.temporal.background.Drifting` or None
    as_of       rank and count only documents before the query's time
    inclusive   … or at it
    feedback    :class:`FeedbackTime` or None
    """

    ranker: Ranker
    prior: TimePrior | None = None
    weight: float | None = None
    evidence: str = "score"
    time_docs: int = 50
    background: Drifting | None = None
    as_of: bool = False
    inclusive: bool = False
    feedback: FeedbackTime | None = None

    def __post_init__(self) -> None:
        if isinstance(self.ranker, TimeAware):
            raise ParameterError("the model is aware of time already", remedy="Wrap the plain model.")
        if self.evidence not in EVIDENCE:
            raise ParameterError(
                f"no evidence {self.evidence!r}", remedy=f"One of: {', '.join(EVIDENCE)}."
            )
        if self.time_docs < 1:
            raise ParameterError(f"time_docs must be at least 1, got {self.time_docs}")
        if self.as_of and self.background is not None and self.background.at == "document":
            raise ParameterError(
                "a background at the document's time looks beyond the query's: it cannot be combined with as-of",
                remedy="Take the background at the query's time.",
            )
        if self.weight is not None and not (self.weight >= 0 and np.isfinite(self.weight)):
            raise ParameterError(f"the weight of a time prior must be zero or positive, got {self.weight}")

    # -- as a Ranker ---------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:  # type: ignore[override]
        return "+".join([self.ranker.name, *self._parts()])

    def _parts(self) -> Iterator[str]:
        if self.prior is not None:
            yield self.prior.name
        if self.background is not None:
            yield self.background.method
        if self.feedback is not None:
            yield "timed-feedback"
        if self.as_of:
            yield "as-of"

    @property
    def uses_feedback(self) -> bool:  # type: ignore[override]
        return self.ranker.uses_feedback

    @property
    def feedback_depth(self) -> int:
        return self.ranker.feedback_depth

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return self.ranker.first(query, statistics)

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        return self.ranker.expand(query, feedback, statistics)

    def settings(self) -> dict[str, Any]:
        return {**self.ranker.settings(), "time": self.time_settings()}

    def time_settings(self) -> dict[str, Any]:
        """What is said about time, for manifests."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ranker"}
        return {name: value if isinstance(value, str | int | float | None) else _described(value)
                for name, value in own.items()}  # fmt: skip

    def with_(self, **changes: Any) -> TimeAware:
        """A changed copy; what is not about time goes to the wrapped model."""
        own = {f.name for f in fields(self)}
        inner = {name: value for name, value in changes.items() if name not in own}
        mine = {name: value for name, value in changes.items() if name in own}
        if inner:
            mine["ranker"] = mine.get("ranker", self.ranker).with_(**inner)
        return replace(self, **mine)

    # -- ranking -------------------------------------------------------------------------------------------------
    def rank_with(
        self,
        engine: Engine,
        queries: Sequence[Query],
        *,
        hits: int,
        candidates: Mapping[str, np.ndarray] | None,
        judged: Mapping[str, Judgments] | None,
        prune: int | None,
    ) -> Iterator[Result]:
        """What :meth:`Engine.rank` does for a model that is aware of time."""
        session = _Session(self, engine)
        options: dict[str, Any] = {"hits": hits, "prune": prune, "adjust": session.adjust}
        if not session.per_query:
            yield from engine.rank(session.model, queries, candidates=candidates, judged=judged, **options)
            return
        yield from session.one_by_one(queries, candidates, judged or {}, options)


def _described(value: Any) -> dict[str, Any]:
    return {"kind": type(value).__name__.lower(), **{f.name: getattr(value, f.name) for f in fields(value)}}


@dataclass(frozen=True, kw_only=True)
class _Timed(Ranker):
    """The wrapped model with its feedback weighted by time."""

    ranker: Ranker
    time: FeedbackTime
    times: np.ndarray

    def __post_init__(self) -> None:
        pass

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.ranker.name

    @property
    def uses_feedback(self) -> bool:  # type: ignore[override]
        return self.ranker.uses_feedback

    @property
    def feedback_depth(self) -> int:
        return self.ranker.feedback_depth

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return self.ranker.first(query, statistics)

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        factors = self.time.emphasis(_float_times(self.times[feedback.docs]), query.time)
        return self.ranker.expand(query, replace(feedback, emphasis=factors), statistics)


class _Session:
    """One call of :meth:`TimeAware.rank_with`: what is worked out once for all its queries."""

    def __init__(self, settings: TimeAware, engine: Engine) -> None:
        self.settings, self.engine = settings, engine
        self.times = np.asarray(engine.snapshot.times)
        self.model: Ranker = settings.ranker
        if settings.feedback is not None:
            self.model = _Timed(ranker=settings.ranker, time=settings.feedback, times=self.times)
        self.background: DriftingBackground | None = None
        if settings.background is not None:
            self.background = settings.background.of(engine.snapshot)

    @property
    def per_query(self) -> bool:
        """Whether each query has statistics of its own."""
        return self.settings.as_of or (self.background is not None and self.background.settings.at == "query")

    def one_by_one(
        self,
        queries: Sequence[Query],
        candidates: Mapping[str, np.ndarray] | None,
        judged: Mapping[str, Judgments],
        options: Mapping[str, Any],
    ) -> Iterator[Result]:
        """Queries in the order of their times, so that the past only grows; results in the order of the queries."""
        past = None
        if self.settings.as_of:
            self._check_times(queries)
            past = PastStatistics(self.engine.snapshot, inclusive=self.settings.inclusive)
        if self.background is not None and any(query.time is not None for query in queries):
            _ = self.background.local  # made before threads ask for it
        order = sorted(range(len(queries)), key=lambda i: (queries[i].time is not None, queries[i].time or 0))
        done: dict[int, Result] = {}
        following = 0
        size = CHUNK * self.engine.threads
        for start in range(0, len(order), size):
            chunk = order[start : start + size]
            views = [self._view(queries[i], past) for i in chunk]

            def work(item: tuple[int, Engine], wanted: Sequence[Query] = queries) -> Result:
                number, view = item
                return self._rank_one(view, wanted[number], candidates, judged, options)

            results = self.engine._each(work, list(zip(chunk, views, strict=True)))
            done.update(zip(chunk, results, strict=True))
            while following in done:
                yield done.pop(following)
                following += 1

    def _check_times(self, queries: Sequence[Query]) -> None:
        if not self.engine.snapshot.is_dated:
            raise InputError(
                "as-of retrieval needs dated documents; the index has none",
                remedy="Index again with the field that holds the date (--date-field), or leave out --as-of.",
            )
        timeless = [query.qid for query in queries if query.time is None]
        if timeless:
            raise InputError(
                f"as-of retrieval needs the time of every topic; {timeless[0]!r} has none "
                f"({len(timeless)} of {len(queries)} topics)",
                remedy="Give the times with --topic-times FILE (qid, tab, ISO time).",
            )

    def _view(self, query: Query, past: PastStatistics | None) -> Engine:
        statistics, allowed = self.engine.statistics, None
        if past is not None:
            assert query.time is not None
            statistics, allowed = past.at(query.time), past.allowed(query.time)
        if self.background is not None and self.background.settings.at == "query":
            statistics = self.background.statistics_at(query.time, statistics)
        return self.engine.view(statistics, allowed)

    def _rank_one(
        self,
        view: Engine,
        query: Query,
        candidates: Mapping[str, np.ndarray] | None,
        judged: Mapping[str, Judgments],
        options: Mapping[str, Any],
    ) -> Result:
        allowed = view.allowed
        if allowed is not None:
            query = _known_then(query, view.statistics)
            if candidates is not None:
                given = candidates[query.qid]
                candidates = {query.qid: given[allowed[given]]}
            if query.qid in judged:
                j = judged[query.qid]
                judged = {query.qid: type(j)(j.relevant[allowed[j.relevant]], j.nonrelevant[allowed[j.nonrelevant]])}
        return next(view.rank(self.model, [query], candidates=candidates, judged=judged, **options))

    # -- the prior -----------------------------------------------------------------------------------------------
    def adjust(self, result: Result, docs: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Final scores: smoothed at the documents' own times where asked for, and with the prior."""
        drifting = self.background
        if drifting is not None and drifting.settings.at == "document" and result.plan.weighting.is_language_model:
            scores = drifting.score_docs(self.engine, result.plan, docs)
        prior = self.settings.prior
        if prior is None or len(docs) == 0:
            return scores
        places = best_places(scores, evidence_depth(self.settings), _Ties(self.engine.snapshot.docid_rank, docs))
        best = docs[places]
        low, high = time_span(self.times, docs)
        ratio, factor = verdict(self.settings, result, scores[places], self.times[best], low, high, self.times)
        return ratio.added(scores, self.times, docs, factor)


def evidence_depth(settings: TimeAware) -> int:
    """How many of the best documents a prior looks at."""
    return max(SPREAD_DEPTH, COMPARED * settings.time_docs)


def verdict(
    settings: TimeAware, result: Result, scores: Floats, times: np.ndarray, low: float, high: float, times_of_docs: Any
) -> tuple[Ratio, float]:
    """ρ, and the factor it is added with: w times the spread of the best scores. Noted in the result.

    ``scores`` and ``times`` are those of the best documents in rank order, ``low`` and ``high`` the first and last
    time of all that are ranked; ``times_of_docs[docs]`` are the times of feedback documents.
    """
    prior, n, feedback, kind = settings.prior, settings.time_docs, result.feedback, settings.evidence
    assert prior is not None
    by = {"rank": 1, "uniform": 2}.get(kind, 0)
    unit, compared, first, weights = survey(scores, times, n, COMPARED * n, SPREAD_DEPTH, TEMPERATURE, by)
    if feedback is not None and (feedback.judged or kind == "posterior"):
        first = _float_times(times_of_docs[feedback.docs])
        weights = uniform(len(feedback))
        if not feedback.judged and result.expansion is not None:
            weights = np.asarray(result.expansion.weights, dtype=np.float64)
        kept = np.isfinite(first) & (weights > 0)
        first, weights = first[kept], weights[kept] / max(float(weights[kept].sum()), 1e-300)
    query_time = None if result.query.time is None else float(result.query.time)
    ratio = prior.ratio(Ranked(query_time, low, high, compared, first, weights))
    weight = weight_of(prior, ratio, settings.weight)
    result.notes["time"] = {
        "prior": prior.name, "weight": weight, "gain": ratio.gain, "evidence": ratio.size,
        "bandwidth_ms": ratio.bandwidth, "bandwidth": format_duration(ratio.bandwidth), **ratio.notes,
    }  # fmt: skip
    return ratio, weight * unit


def prior_on_run(
    snapshot: Snapshot,
    run: Run,
    topics: Iterable[Topic],
    prior: TimePrior,
    *,
    weight: float | None = None,
    evidence: str = "score",
    time_docs: int = 50,
    missing: str = "error",
) -> Run:
    """Any run with a time prior added to its own scores, whatever made them; the same documents come out."""
    from sdretrieval.ranking.bm25 import BM25Ranker
    from sdretrieval.ranking.engine import Engine, Result
    from sdretrieval.retrieval import candidates_of

    chosen, candidates = candidates_of(snapshot, run, topics, missing)
    model = TimeAware(ranker=BM25Ranker(), prior=prior, weight=weight, evidence=evidence, time_docs=time_docs)
    engine = Engine(snapshot)
    session, rankings = _Session(model, engine), {}
    for topic in chosen:
        docs = candidates[topic.qid]
        own = dict(zip(run[topic.qid].docids, run[topic.qid].scores.tolist(), strict=True))
        scores = np.array([own[docid] for docid in snapshot.docids.take(docs)])
        query = Query.from_words(snapshot, [], qid=topic.qid, text=topic.text, time=topic.time)
        result = Result(query, docs, scores, model.first(query, engine.statistics))
        ranked_docs, ranked_scores = engine.top(docs, session.adjust(result, docs, scores), len(docs))
        rankings[topic.qid] = Ranking(snapshot.docids.take(ranked_docs), ranked_scores)
    return Run(rankings, f"{run.tag}+{prior.name}")


class _Ties:
    """``ranks[docs]``, looked up only where asked: a few of many documents."""

    def __init__(self, ranks: np.ndarray, docs: np.ndarray) -> None:
        self.ranks, self.docs = ranks, docs

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        return self.ranks[self.docs[places]]


def best_places(scores: np.ndarray, depth: int, ties: np.ndarray | _Ties | None = None) -> np.ndarray:
    """Places of the ``depth`` best scores: in any order, or with ``ties`` from the best down.

    Equal scores are then ordered by their values in ``ties``, the larger first.
    """
    places = _best_places(scores, depth)
    if ties is None or len(places) == 0:
        return places
    if len(places) < len(scores):  # which of those at the bar were taken is chance so far
        bar = scores[places].min()
        above, level = places[scores[places] > bar], np.flatnonzero(scores == bar)
        wanted = len(places) - len(above)
        if len(level) > wanted:
            level = level[np.argsort(ties[level])[-wanted:]]
        places = np.concatenate([above, level])
    return places[np.lexsort((ties[places], scores[places]))[::-1]]


def _best_places(scores: np.ndarray, depth: int) -> np.ndarray:
    """A sixteenth of the scores guesses a bar that a few more than ``depth`` pass; only those are then partitioned."""
    n = len(scores)
    if n <= depth:
        return np.arange(n)
    places = None
    if n > 8 * depth:
        sample = scores[::16]
        above = 2 * depth * len(sample) // n
        bar = np.partition(sample, len(sample) - above)[len(sample) - above]
        places = np.flatnonzero(scores >= bar)
    if places is None or len(places) < depth:
        return np.argpartition(scores, n - depth)[n - depth :]
    return places[np.argpartition(scores[places], len(places) - depth)[len(places) - depth :]]


def _known_then(query: Query, statistics: Statistics) -> Query:
    """The query without the words that no document had yet: they are unknown words then."""
    seen = statistics.cf[query.terms] > 0
    if seen.all():
        return query
    words = statistics.vocabulary
    later = [str(t) if words is None else words[t] for t in query.terms[~seen].tolist()]
    return replace(query, terms=query.terms[seen], counts=query.counts[seen], unknown=(*query.unknown, *later))


def _float_times(times: np.ndarray) -> Floats:
    """Milliseconds as floats, NaN where undated."""
    result = times.astype(np.float64)
    result[times == UNDATED] = np.nan
    return result


__all__ = ["Density", "Drifting", "FeedbackTime", "Recency", "TimeAware", "prior_on_run"]
