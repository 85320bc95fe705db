"""Wrappers that know about time: a document prior, as-of retrieval, timed feedback, a drifting background.

>>> from sdretrieval.ranking.registry import make_ranker
>>> AsOf(ranker=TimePrior(ranker=make_ranker("sd3"), prior=Recency())).name
'sd3+recency+as-of'

Each goes around any model, and they go around each other (ranking/wrapper.py); :func:`time_aware` puts on those asked
for. ``search``, ``rerank`` and the engine take the wrapped model like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isinf
from typing import Any, ClassVar

import numpy as np

from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.density import mode, silverman
from sdretrieval.estimate.time.kernels import Floats
from sdretrieval.index.past_statistics import PastStatistics
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, Result
from sdretrieval.ranking.feedback import uniform
from sdretrieval.ranking.models.bm25 import BM25Ranker
from sdretrieval.ranking.notes import TimeNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.retrieval import candidates_of
from sdretrieval.ranking.time.auto import Auto, AutoPrior
from sdretrieval.ranking.time.base import ORDERED, TimeWrapper, described
from sdretrieval.ranking.time.drifting_background import Drifting, DriftingBackground
from sdretrieval.ranking.time.prior import AUTO, COMPARED, EVIDENCE, SPREAD_DEPTH, Density, Prior, Recency, weight_of
from sdretrieval.ranking.time.prior import Ranked as Evidence
from sdretrieval.ranking.time.prior_loops import survey, time_span
from sdretrieval.ranking.wrapper import Hooks, Others, Ranked, View, Wrapper, followed

TEMPERATURE = 2.0  # of the evidence's weights: exp(score / (2 spreads)), so that fifty documents are worth about twenty

# -- a document prior --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TimePrior(TimeWrapper):
    """The model's scores plus what the documents' times tell (prior.py).

    prior       :class:`~sdretrieval.ranking.time.prior.Recency` or ``Density``
    weight      w of the prior; None for what the evidence is worth
    evidence    how the first documents weigh as evidence of when relevance lies: by ``score``, by the feedback
                model's own ``posterior`` (query likelihood's for rm, SD's for sd), ``rank`` (1/rank) or ``uniform``.
                Judged feedback documents weigh alike, and are the evidence where there are any
    time_docs   how many first documents are the evidence
    """

    place: ClassVar[int] = 1

    prior: Prior
    weight: float | None = None
    evidence: str = "score"
    time_docs: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence not in EVIDENCE:
            raise ParameterError(f"no evidence {self.evidence!r}", remedy=f"One of: {', '.join(EVIDENCE)}.")
        if self.time_docs < 1:
            raise ParameterError(f"time_docs must be at least 1, got {self.time_docs}")
        if self.weight is not None and not (self.weight >= 0 and np.isfinite(self.weight)):
            raise ParameterError(f"the weight of a time prior must be zero or positive, got {self.weight}")

    @property
    def own_label(self) -> str:
        return self.prior.name

    @property
    def adds(self) -> bool:
        return True

    def time_settings(self) -> dict[str, Any]:
        own = {"weight": self.weight, "evidence": self.evidence, "time_docs": self.time_docs}
        return {"prior": described(self.prior), **own}

    def hooks(self, engine: Engine) -> Hooks:
        return PriorHooks(self, engine.snapshot)

    @property
    def reach(self) -> int:
        """How many first documents are ordered anew: all that the prior looks at, and not fewer than ``auto`` does."""
        return max(ORDERED, COMPARED * self.time_docs)

    def added(self, result: Result, scores: Floats, times: np.ndarray, times_of_docs: Any) -> Floats:
        """The scores of documents in rank order, of these times, with the prior. It is noted in the result.

        ``times_of_docs[docs]`` are the times of feedback documents.
        """
        n, feedback, query_time = self.time_docs, result.feedback, result.query.time
        low, high = time_span(times)
        by = {"rank": 1, "uniform": 2}.get(self.evidence, 0)
        unit, compared, first, weights = survey(scores, times, n, COMPARED * n, SPREAD_DEPTH, TEMPERATURE, by)
        if feedback is not None and (feedback.judged or self.evidence == "posterior"):
            first = _float_times(times_of_docs[feedback.docs])
            weights = uniform(len(feedback))
            if (feedback.unjudged or not feedback.judged) and result.expansion is not None:
                weights = np.asarray(result.expansion.weights, dtype=np.float64)
            kept = np.isfinite(first) & (weights > 0)
            first, weights = first[kept], weights[kept] / max(float(weights[kept].sum()), 1e-300)
        ratio = self.prior.ratio(
            Evidence(None if query_time is None else float(query_time), low, high, compared, first, weights)
        )
        weight = weight_of(self.prior, ratio, self.weight)
        about = (self.prior.name, weight, ratio.gain, ratio.size, ratio.bandwidth, ratio.has_time)
        result.notes.append(TimeNote(*about, ratio.pictured(low, high, weight)))
        return ratio.added(scores, times, weight * unit)


class PriorHooks(Hooks):
    adjusts = True

    def __init__(self, wrapper: TimePrior, snapshot: Snapshot) -> None:
        self.wrapper, self.times, self.reach = wrapper, np.asarray(snapshot.times), wrapper.reach

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        docs, scores = found
        return (docs, self.wrapper.added(result, scores, self.times[docs], self.times)) if len(docs) else None


# -- as-of retrieval ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class AsOf(TimeWrapper):
    """Rank and count only documents before the query's time; or at it, with ``inclusive``."""

    label: ClassVar[str] = "as-of"
    place: ClassVar[int] = 4

    inclusive: bool = False

    def check_inner(self, inner: Wrapper) -> None:
        super().check_inner(inner)
        if isinstance(inner, LocalBackground) and inner.drifting.at == "document":
            raise ParameterError(
                "a background at the document's time looks beyond the query's: it cannot be combined with as-of",
                remedy="Take the background at the query's time.",
            )

    def time_settings(self) -> dict[str, Any]:
        return {"as_of": True, "inclusive": self.inclusive}

    def hooks(self, engine: Engine) -> Hooks:
        return AsOfHooks(self, engine.snapshot)


class AsOfHooks(Hooks):
    per_query = True

    def __init__(self, wrapper: AsOf, snapshot: Snapshot) -> None:
        self.snapshot, self.inclusive = snapshot, wrapper.inclusive

    def start(self, queries: Sequence[Query]) -> None:
        check_times(queries, self.snapshot.is_dated)
        self.past = PastStatistics(self.snapshot, inclusive=self.inclusive)

    def view(self, query: Query, view: View) -> View:
        assert query.time is not None
        allowed = self.past.allowed(query.time)
        return View(self.past.at(query.time), allowed if view.allowed is None else allowed & view.allowed)


def check_times(queries: Sequence[Query], is_dated: bool) -> None:
    """As-of retrieval needs dates on both sides."""
    if not is_dated:
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


# -- timed feedback ----------------------------------------------------------------------------------------------


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
class TimedFeedback(TimeWrapper):
    """The model learns more from feedback documents that are near in time."""

    label: ClassVar[str] = "timed-feedback"
    place: ClassVar[int] = 3

    time: FeedbackTime

    def time_settings(self) -> dict[str, Any]:
        return {"feedback": described(self.time)}

    def hooks(self, engine: Engine) -> Hooks:
        return FeedbackHooks(self, np.asarray(engine.snapshot.times))


class FeedbackHooks(Hooks):
    def __init__(self, wrapper: TimedFeedback, times: Any) -> None:
        """``times[docs]`` are the times of documents."""
        self.time, self.times = wrapper.time, times

    def emphasis(self, query: Query, docs: np.ndarray) -> np.ndarray | None:
        return self.time.emphasis(_float_times(self.times[docs]), query.time)


# -- a drifting background ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LocalBackground(TimeWrapper):
    """Smoothing with the English of the query's days, or of each document's own (drifting_background.py)."""

    place: ClassVar[int] = 2

    drifting: Drifting

    def check_inner(self, inner: Wrapper) -> None:
        super().check_inner(inner)
        if isinstance(inner, AsOf):
            raise ParameterError(
                "as-of inside a drifting background would count its statistics anew",
                remedy="Wrap the other way round: as-of around the background.",
            )

    @property
    def own_label(self) -> str:
        return self.drifting.method

    @property
    def rescores(self) -> bool:  # type: ignore[override]
        return self.drifting.at == "document"

    def time_settings(self) -> dict[str, Any]:
        return {"background": described(self.drifting)}

    def hooks(self, engine: Engine) -> Hooks:
        return BackgroundHooks(self.drifting.of(engine.snapshot))


class BackgroundHooks(Hooks):
    def __init__(self, background: DriftingBackground) -> None:
        self.background = background
        self.per_query = background.settings.at == "query"
        self.adjusts = background.settings.at == "document"

    def start(self, queries: Sequence[Query]) -> None:
        if self.per_query and any(query.time is not None for query in queries):
            _ = self.background.local  # made before threads ask for it

    def view(self, query: Query, view: View) -> View:
        if not self.per_query:
            return view
        return replace(view, statistics=self.background.statistics_at(query.time, view.statistics))

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        is_smoothed = result.plan.weighting.is_language_model
        return (found[0], self.background.score_docs(engine, result.plan, found[0])) if is_smoothed else None


# -- all of them -------------------------------------------------------------------------------------------------


def time_aware(
    ranker: Ranker,
    *,
    prior: Prior | Auto | None = None,
    weight: float | None = None,
    evidence: str = "score",
    time_docs: int = 50,
    background: Drifting | None = None,
    as_of: bool = False,
    inclusive: bool = False,
    feedback: FeedbackTime | None = None,
) -> Ranker:
    """A model in the wrappers asked for.

    Parameters
    ----------
    ranker : Ranker
        Any model.
    prior, weight, evidence, time_docs
        As in :class:`TimePrior`; ``Auto()`` for an :class:`~sdretrieval.ranking.time.auto.AutoPrior`, which needs none
        of the others.
    background : Drifting, optional
        See :class:`LocalBackground`.
    as_of, inclusive : bool
        See :class:`AsOf`.
    feedback : FeedbackTime, optional
        See :class:`TimedFeedback`.

    Returns
    -------
    Ranker
        The model itself where nothing is asked for.
    """
    if background is not None:
        ranker = LocalBackground(ranker=ranker, drifting=background)
    if prior is not None:
        ranker = _with_prior(ranker, prior, weight, evidence, time_docs)
    if feedback is not None:
        ranker = TimedFeedback(ranker=ranker, time=feedback)
    return AsOf(ranker=ranker, inclusive=inclusive) if as_of else ranker


def _with_prior(
    ranker: Ranker, prior: Prior | Auto, weight: float | None, evidence: str, time_docs: int
) -> AutoPrior | TimePrior:
    if isinstance(prior, Auto):
        return AutoPrior(ranker=ranker, prior=prior)
    return TimePrior(ranker=ranker, prior=prior, weight=weight, evidence=evidence, time_docs=time_docs)


def prior_on_run(
    snapshot: Snapshot,
    run: Run,
    topics: Iterable[Topic],
    prior: Prior | Auto,
    *,
    weight: float | None = None,
    evidence: str = "score",
    time_docs: int = 50,
    missing: str = "error",
) -> Run:
    """Any run with a time prior added to its own scores, whatever made them; the same documents come out."""
    chosen, candidates = candidates_of(snapshot, run, topics, missing)
    model = _with_prior(BM25Ranker(), prior, weight, evidence, time_docs)
    engine = Engine(snapshot)
    hooks = model.hooks(engine)
    queries = {t.qid: Query.from_words(snapshot, [], qid=t.qid, text=t.text, time=t.time) for t in chosen}

    def adjusted(query: Query) -> tuple[np.ndarray, np.ndarray]:
        docs = candidates[query.qid]
        own = dict(zip(run[query.qid].docids, run[query.qid].scores.tolist(), strict=True))
        docs, scores = engine.top(docs, np.array([own[docid] for docid in snapshot.docids.take(docs)]), len(docs))
        result, n = Result(query, docs, scores, model.first(query, engine.statistics)), hooks.reach or len(docs)
        changed = hooks.adjusted(engine, result, (docs[:n], scores[:n]), None)
        return (docs, scores) if changed is None else followed(changed, (docs[n:], scores[n:]))

    for query in hooks.rehearsal(list(queries.values())):
        adjusted(query)
    hooks.rehearsed()
    rankings = {}
    for qid, query in queries.items():
        docs, scores = engine.top(*adjusted(query), len(candidates[qid]))
        rankings[qid] = Ranking(snapshot.docids.take(docs), scores)
    return Run(rankings, f"{run.tag}+{prior.name}")


def _float_times(times: np.ndarray) -> Floats:
    """Milliseconds as floats, NaN where undated."""
    result = times.astype(np.float64)
    result[times == UNDATED] = np.nan
    return result


__all__ = [
    "AsOf",
    "Auto",
    "AutoPrior",
    "Density",
    "Drifting",
    "FeedbackTime",
    "LocalBackground",
    "Recency",
    "TimeNote",
    "TimePrior",
    "TimedFeedback",
    "prior_on_run",
    "time_aware",
]
