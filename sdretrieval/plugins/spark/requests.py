"""What a worker answers about its shard: pure functions, so that a task may run twice, or anywhere, and change nothing.

Plans travel in the words of the whole collection, with what only the whole plan tells: its mass Σ_w a_w and its
constant Σ_w a_w log p_w. What is left is the same sum over a document's own words, in the same order (byte order of the
words) and of the same numbers as in one index: scores are the same to the last bit.

Lists of the best documents are merged pair by pair, on the workers. Each is in rank order and no longer than what is
wanted of all shards together, so what is cut off can be in no merged list: the result is the same in whatever order
shards answer, and however documents are spread over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sdretrieval.collection.records import Ranking, rank_order
from sdretrieval.core import sorted_strings
from sdretrieval.core.packed_strings import PackedStrings
from sdretrieval.core.timeline import known_times, middle_of_bin
from sdretrieval.core.times import UNDATED
from sdretrieval.index.statistics import Statistics
from sdretrieval.plugins.spark.shards import Shard
from sdretrieval.ranking.base import Pairs, Plan
from sdretrieval.ranking.engine import Engine, Ranked
from sdretrieval.ranking.feedback import Rows
from sdretrieval.ranking.pairs import pair_scores
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.time.drifting_background import DriftedStatistics, Drifting, DriftingBackground

# -- the best documents -----------------------------------------------------------------------------------------

_BITS = 40  # of a document's number on the driver: its number in its shard; above them the shard's


def numbered(shard: int, docs: np.ndarray) -> np.ndarray:
    """Numbers of a shard's documents, as the driver has them."""
    return (shard << _BITS) | docs.astype(np.int64)


def split(numbers: np.ndarray) -> dict[int, np.ndarray]:
    """Where the documents of each shard stand among numbers."""
    shards = numbers >> _BITS
    return {shard: np.flatnonzero(shards == shard) for shard in np.unique(shards).tolist()}


def in_shard(numbers: np.ndarray) -> np.ndarray:
    """The documents' own numbers in their shards."""
    return numbers & ((1 << _BITS) - 1)


@dataclass(frozen=True, eq=False)
class Hits:
    """At most ``depth`` documents, best first."""

    numbers: np.ndarray
    scores: np.ndarray
    times: np.ndarray
    docids: PackedStrings
    depth: int

    def plus(self, other: Hits) -> Hits:
        """The best of both."""
        docids, scores = sorted_strings.joined(self.docids, other.docids), np.append(self.scores, other.scores)
        best = rank_order(docids, scores, self.depth)
        numbers, times = np.append(self.numbers, other.numbers)[best], np.append(self.times, other.times)[best]
        return Hits(numbers, scores[best], times, sorted_strings.taken(docids, best), self.depth)

    @property
    def ranking(self) -> Ranking:
        docids = list(self.docids)
        if len(set(docids)) != len(docids):
            return Ranking(docids, self.scores)  # which says that a docid is there twice
        return Ranking.in_order(docids, self.scores)


# -- plans -------------------------------------------------------------------------------------------------------


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

    plan: Plan
    constant: float
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


def _hits(shard: Shard, found: Ranked, depth: int) -> Hits:
    docs, scores = found
    docids = sorted_strings.taken(shard.snapshot.docids, docs)
    return Hits(numbered(shard.number, docs), scores, np.asarray(shard.snapshot.times)[docs], docids, depth)


def _localised(shard: Shard, sent: SentPlan) -> tuple[Engine, LocalPlan]:
    whole = sent.plan.model
    known, terms = shard.local_terms(whole.terms)
    model = LocalModel(terms, whole.weights[known], whole.background, whole.mass)
    pairs = None if sent.plan.pairs is None else _local_pairs(shard, sent.plan.pairs)
    plan = LocalPlan(model, sent.plan.weighting, sent.plan.with_constant, pairs, sent.constant, sent.by_bin)
    if sent.shares_engine:
        return shard.engine, plan
    return shard.engine.view(_statistics(shard, sent, known, terms), _allowed(shard, sent)), plan


def _local_pairs(shard: Shard, pairs: Pairs) -> Pairs:
    """All of them, in their places, so that sums have the same order; one that the shard cannot have weighs nothing."""
    terms, place = np.unique(pairs.terms, return_inverse=True)
    known, local = shard.local_terms(terms)
    numbers = np.zeros(len(terms), dtype=np.int64)
    numbers[known] = local
    place = place.reshape(-1, 2)
    there = known[place].all(axis=1)
    return Pairs(numbers[place], there * pairs.in_order, there * pairs.near)


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


# -- the passes --------------------------------------------------------------------------------------------------


def best(shard: Shard, request: tuple[Sequence[SentPlan], Sequence[int]]) -> list[Hits]:
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
    return [_hits(shard, found[i], depth) for i, depth in enumerate(depths)]


def best_drifting(shard: Shard, request: tuple[Sequence[SentPlan], int, SentBackground]) -> list[Hits]:
    """The same, each document smoothed at its own time, to one depth."""
    plans, depth, background = request
    drifting, found = ShardBackground(shard, background), []
    for engine, plan in (_localised(shard, sent) for sent in plans):
        [(docs, scores)] = engine.score_all([plan])
        if plan.weighting.is_language_model:
            scores = drifting.score_docs(engine, plan, docs)
        found.append(_hits(shard, engine.top_of_all(docs, scores, depth), depth))
    return found


def score(
    shard: Shard, request: tuple[Sequence[SentPlan], SentBackground | None], wanted: Sequence[tuple[int, np.ndarray]]
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


def pairs(
    shard: Shard, plans: Sequence[SentPlan], wanted: Sequence[tuple[int, np.ndarray]]
) -> list[tuple[int, np.ndarray]]:
    """What the pairs of plans add to the scores of given documents."""
    return [(i, pair_scores(*_localised(shard, plans[i]), docs)) for i, docs in wanted]


def rows(shard: Shard, request: None, docs: np.ndarray) -> Rows:
    """The term counts of a few documents, in the words of the whole collection."""
    local = Rows.of(shard.snapshot, docs)
    terms = shard.term_map[local.terms].astype(np.int32) if len(local.terms) else local.terms
    return Rows(local.ptr, terms, local.counts, local.lengths)


@dataclass(frozen=True, eq=False)
class Located:
    """Numbers of wanted documents, -1 where no shard has one, and their times."""

    numbers: np.ndarray
    times: np.ndarray

    def plus(self, other: Located) -> Located:
        return Located(np.maximum(self.numbers, other.numbers), np.maximum(self.times, other.times))


def locate(shard: Shard, wanted: PackedStrings) -> Located:
    found = sorted_strings.find(shard.snapshot.docids, wanted)
    here = found >= 0
    numbers, times = np.full(len(wanted), -1, dtype=np.int64), np.full(len(wanted), UNDATED, dtype=np.int64)
    numbers[here], times[here] = numbered(shard.number, found[here]), np.asarray(shard.snapshot.times)[found[here]]
    return Located(numbers, times)


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
        stamps, dated = known_times(self.snapshot.times)
        bins, resolution = np.full(len(stamps), -1, dtype=np.int64), self.sent.resolution
        times = stamps[dated] if resolution is None else middle_of_bin(stamps[dated], resolution)
        bins[dated] = np.searchsorted(self.sent.times, times)
        return bins, self.sent.times

    def statistics_at(self, time: float | None, statistics: Statistics) -> Statistics:
        model = self.sent.models[int(np.searchsorted(self.sent.times, time))]  # type: ignore[arg-type]
        return statistics if model is None else DriftedStatistics.around(statistics, model[self.shard.term_map])

    def constant(self, number: int, plan: Plan, statistics: Statistics) -> float:
        return float(plan.by_bin[number])  # type: ignore[attr-defined]
