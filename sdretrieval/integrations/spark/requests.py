"""What a worker answers about its shard: pure functions, so that a task may run twice, or anywhere, and change nothing.

Plans travel in the words of the whole collection, with what only the whole plan tells: its mass Σ_w a_w and its
constant Σ_w a_w log p_w. What is left is the same sum over a document's own words, in the same order (byte order of the
words) and of the same numbers as in one index: scores are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from sdretrieval.integrations.spark import packed
from sdretrieval.integrations.spark.shards import Shard
from sdretrieval.integrations.spark.totals import Along, Increments, Moments, Totals, past_increments
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import BATCH, NOTHING, SCORES_IN_MEMORY, Engine, Ranked
from sdretrieval.ranking.feedback import Rows
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, Weighting
from sdretrieval.snapshot import Snapshot
from sdretrieval.statistics import Statistics
from sdretrieval.strings import PackedStrings
from sdretrieval.temporal.background import DriftedStatistics, Drifting, DriftingBackground
from sdretrieval.temporal.prior import Ratio
from sdretrieval.temporal.prior_loops import time_span
from sdretrieval.temporal.ranking import best_places
from sdretrieval.temporal.timeline import middle_of_bin
from sdretrieval.times import UNDATED


@dataclass(frozen=True, eq=False)
class SentStatistics:
    """Statistics of one query, as of its time: at the plan's words, and general English whole where it is needed."""

    n_docs: int
    n_tokens: int
    df: np.ndarray
    cf: np.ndarray
    p: np.ndarray
    whole_p: np.ndarray | None


@dataclass(frozen=True, eq=False)
class SentPlan:
    """A plan in the words of the whole collection. ``before``: rank only documents before a time (or at it)."""

    terms: np.ndarray
    weights: np.ndarray
    background: float
    mass: float
    constant: float
    with_constant: bool
    weighting: Weighting
    statistics: SentStatistics | None = None
    before: tuple[int, bool] | None = None
    by_bin: np.ndarray | None = None  # constants by bin of the documents' times, undated last

    @property
    def shares_engine(self) -> bool:
        """Whether the shard's own engine scores it; else it brings statistics or a limit of its own."""
        return self.statistics is None and self.before is None


@dataclass(frozen=True)
class LocalModel(TermModel):
    """The part of a model that a shard has words for, with the mass of the whole."""

    whole_mass: float = 0.0

    @property
    def mass(self) -> float:
        return self.whole_mass


@dataclass(frozen=True, eq=False)
class LocalPlan(Plan):
    """The part of a plan that a shard has words for, with the constant of the whole."""

    whole_constant: float = 0.0
    by_bin: np.ndarray | None = None

    def constant(self, statistics: Statistics) -> float:
        return self.whole_constant


@dataclass(frozen=True, eq=False)
class Hits:
    """Documents of one shard with scores, docids and perhaps times, best first."""

    docs: np.ndarray
    scores: np.ndarray
    docids: PackedStrings
    times: np.ndarray | None = None


def _hits(shard: Shard, docs: np.ndarray, scores: np.ndarray, *, timed: bool = False) -> Hits:
    times = np.asarray(shard.snapshot.times)[docs] if timed else None
    return Hits(docs.astype(np.int32), scores, packed.taken(shard.snapshot.docids, docs), times)


@dataclass(frozen=True, eq=False)
class HitLists(Sequence[Hits]):
    """The hits of many plans in one piece: a few arrays travel, not a few for each plan."""

    ptr: np.ndarray
    together: Hits

    @classmethod
    def of(cls, shard: Shard, found: Sequence[Ranked]) -> HitLists:
        ptr = np.cumsum([0, *(len(docs) for docs, _ in found)])
        docs, scores = (np.concatenate([NOTHING[k], *(one[k] for one in found)]) for k in range(2))
        return cls(ptr, _hits(shard, docs, scores))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, i: int) -> Hits:  # type: ignore[override]
        a, b = int(self.ptr[i]), int(self.ptr[i + 1])
        hits = self.together
        return Hits(hits.docs[a:b], hits.scores[a:b], packed.span(hits.docids, a, b))


def _localised(shard: Shard, sent: SentPlan) -> tuple[Engine, LocalPlan]:
    known, terms = shard.local_terms(sent.terms)
    model = LocalModel(terms, sent.weights[known], sent.background, sent.mass)
    plan = LocalPlan(model, sent.weighting, sent.with_constant, sent.constant, sent.by_bin)
    if sent.shares_engine:
        return shard.engine, plan
    return shard.engine.view(_statistics(shard, sent, known, terms), _allowed(shard, sent)), plan


def _statistics(shard: Shard, sent: SentPlan, known: np.ndarray, terms: np.ndarray) -> Statistics:
    given = sent.statistics
    if given is None:
        return shard.engine.statistics

    def spread(values: np.ndarray) -> np.ndarray:
        vector = np.zeros(shard.snapshot.n_terms, dtype=values.dtype)  # pages that nobody touches cost nothing
        vector[terms] = values[known]
        return vector

    p = spread(given.p) if given.whole_p is None else given.whole_p[shard.term_map]
    return DriftedStatistics(given.n_docs, given.n_tokens, spread(given.df), spread(given.cf), None, p)


def _allowed(shard: Shard, sent: SentPlan) -> np.ndarray | None:
    if sent.before is None:
        return None
    time, inclusive = sent.before
    times = np.asarray(shard.snapshot.times)
    return (times <= time if inclusive else times < time) & (times != UNDATED)


def load_loops(folder: Path) -> None:
    """Run the compiled loops of a pass once, for workers that are forked from this process.

    On next to nothing, but mapped from files: the loops are compiled for that kind of array.
    """
    from sdretrieval.integrations.spark.writing import write_collection

    collection = write_collection(folder, [Snapshot.from_counts(np.eye(2, dtype=np.int32), ["a", "b"])])
    collection.keep_totals(Totals.of(collection.snapshot(0)))
    shard = Shard(collection.snapshot(0), collection.totals, 0)
    plan = SentPlan(np.array([1]), np.ones(1), 0.0, 1.0, 0.0, False, BM25())
    best(shard, ([plan], [1]))
    rows(shard, None, np.array([0]))


# -- the passes --------------------------------------------------------------------------------------------------


def best(shard: Shard, request: tuple[Sequence[SentPlan], Sequence[int]]) -> HitLists:
    """The best documents of each plan, to a depth of its own."""
    plans, depths = request
    found: dict[int, Ranked] = {}
    together: dict[tuple[int, int], list[int]] = {}
    for i, sent in enumerate(plans):  # a plan with an engine of its own is walked by itself
        together.setdefault((depths[i], -1 if sent.shares_engine else i), []).append(i)
    for (depth, _), numbers in together.items():
        local = [_localised(shard, plans[i]) for i in numbers]
        engine = local[0][0]
        found.update(zip(numbers, engine.best([plan for _, plan in local], depth), strict=True))
    return HitLists.of(shard, [found[i] for i in range(len(plans))])


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What a time prior must know of a shard: first and last time of the documents met, and the best of them.

    ``ranked``: the best by the scores as they are, for where the prior turns out to say nothing.
    """

    low: float
    high: float
    best: Hits
    ranked: Hits


def survey(shard: Shard, request: tuple[Sequence[SentPlan], int, int, SentBackground | None]) -> list[Surveyed]:
    """The evidence for a time prior: the ``depth`` best documents by score, ties by docid."""
    plans, depth, hits, background = request
    ranks, times, result = shard.snapshot.docid_rank, np.asarray(shard.snapshot.times), []
    for engine, docs, scores in _scored(shard, plans, background):
        places = best_places(scores, depth, ranks[docs])
        low, high = time_span(times, docs)
        ranked = _hits(shard, *engine.top_of_all(docs, scores, hits))
        result.append(Surveyed(low, high, _hits(shard, docs[places], scores[places], timed=True), ranked))
    return result


def adjusted(
    shard: Shard,
    request: tuple[Sequence[SentPlan], Sequence[tuple[Ratio, float]], Sequence[int], SentBackground | None],
) -> HitLists:
    """The best documents after the prior was added, of each plan to a depth of its own."""
    plans, priors, depths, background = request
    times, result = np.asarray(shard.snapshot.times), []
    scored = _scored(shard, plans, background)
    for (engine, docs, scores), (ratio, factor), depth in zip(scored, priors, depths, strict=True):
        scores = ratio.added(scores, times, docs, factor)
        result.append(engine.top_of_all(docs, scores, depth))
    return HitLists.of(shard, result)


def _scored(shard: Shard, plans: Sequence[SentPlan], background: SentBackground | None):
    """Engine, documents met and scores of each plan; those of the shard's own engine a few at a time."""
    drifting = None if background is None else ShardBackground(shard, background)
    room = max(1, min(BATCH, SCORES_IN_MEMORY // max(3 * shard.snapshot.n_docs, 1)))
    for start in range(0, len(plans), room):
        local = [_localised(shard, sent) for sent in plans[start : start + room]]
        shared = [plan for engine, plan in local if engine is shard.engine]
        scored = iter(shard.engine.score_all(shared))
        for engine, plan in local:
            docs, scores = next(scored) if engine is shard.engine else engine.score_all([plan])[0]
            if drifting is not None and plan.weighting.is_language_model:
                scores = drifting.score_docs(engine, plan, docs)
            yield engine, docs, scores


def score(
    shard: Shard,
    request: tuple[Sequence[SentPlan], SentBackground | None],
    wanted: Sequence[tuple[int, np.ndarray]],
) -> list[tuple[int, np.ndarray]]:
    """Scores of given documents: ``wanted`` names plans and local documents."""
    plans, background = request
    drifting = None if background is None else ShardBackground(shard, background)
    result = []
    for i, docs in wanted:
        engine, plan = _localised(shard, plans[i])
        if drifting is not None and plan.weighting.is_language_model:
            result.append((i, drifting.score_docs(engine, plan, docs)))
        else:
            result.append((i, engine.score_docs(plan, docs)))
    return result


def rows(shard: Shard, request: None, docs: np.ndarray) -> tuple[Rows, np.ndarray]:
    """The term counts of a few documents, in the words of the whole collection, and their times."""
    local = Rows.of(shard.snapshot, docs)
    terms = shard.term_map[local.terms].astype(np.int32) if len(local.terms) else local.terms
    return Rows(local.ptr, terms, local.counts, local.lengths), np.asarray(shard.snapshot.times)[docs]


def locate(shard: Shard, wanted: PackedStrings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which of the wanted docids this shard has (positions among them), its documents, and their times."""
    found = packed.find(shard.snapshot.docids, wanted)
    here = np.flatnonzero(found >= 0)
    docs = found[here]
    return here, docs, np.asarray(shard.snapshot.times)[docs]


# -- statistics --------------------------------------------------------------------------------------------------


def totals(shard: Shard, request: None) -> Totals:
    return Totals.of(shard.snapshot)


def increments(shard: Shard, request: tuple[Sequence[int], bool]) -> Increments:
    times, inclusive = request
    return past_increments(shard.snapshot, shard.term_map, times, inclusive)


def moments(shard: Shard, most: int) -> Moments:
    return Moments.of(np.asarray(shard.snapshot.times), most)


def along(shard: Shard, resolution: float | None) -> Along:
    return Along.of(shard.snapshot, shard.term_map, resolution, len(shard.totals.vocabulary))


def document_bins(shard: Shard, resolution: float | None) -> np.ndarray:
    """The bins of time that this shard's documents lie in."""
    return np.unique(_bin_times(np.asarray(shard.snapshot.times), resolution))


def _bin_times(times: np.ndarray, resolution: float | None) -> np.ndarray:
    at = times[times != UNDATED].astype(np.float64)
    return at if resolution is None else middle_of_bin(at, resolution)


# -- smoothing at the document's time ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SentBackground:
    """General English of each bin of the documents' times; None where it is the global one."""

    settings: Drifting
    resolution: float | None
    times: np.ndarray
    models: Sequence[np.ndarray | None]


class ShardBackground(DriftingBackground):
    """The background at documents' times, with what the driver worked out."""

    def __init__(self, shard: Shard, sent: SentBackground) -> None:
        super().__init__(shard.snapshot, sent.settings)
        self.shard, self.sent = shard, sent

    @cached_property
    def _document_bins(self) -> tuple[np.ndarray, np.ndarray]:
        times = np.asarray(self.snapshot.times)
        bins = np.full(len(times), -1, dtype=np.int64)
        bins[times != UNDATED] = np.searchsorted(self.sent.times, _bin_times(times, self.sent.resolution))
        return bins, self.sent.times

    def statistics_at(self, time: float | None, statistics: Statistics) -> Statistics:
        model = self.sent.models[int(np.searchsorted(self.sent.times, time))]  # type: ignore[arg-type]
        return statistics if model is None else DriftedStatistics.around(statistics, model[self.shard.term_map])

    def constant(self, number: int, plan: Plan, statistics: Statistics) -> float:
        return float(plan.by_bin[number])  # type: ignore[attr-defined]
