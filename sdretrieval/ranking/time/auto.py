"""A time prior that finds by itself how much time matters.

    score'(D) = score(D) + u · (a_b log r_b(t_D) + a_q log r_q(t_D))

u is the spread of the hundred best scores. On every collection we have measured one spread is worth about one nat of
log odds of relevance, and log r = log p(t | relevant)/p(t) is in nats too, so the two add up without a weight of their
own; a_b and a_q only say how far r is to be believed.

**Scale.** The density of documents around a centre c, relative to the collection's own, is a tower of windows:

    k_c(t) = Σ_l s_l · 1[|t - c| ≤ h_l] / m_l(c)        h_l   15 minutes · 2^l, l = 0 … 23: up to 239 years
                                                        m_l   share of the collection's documents in c ± h_l
                                                        s_l   1/24: no bandwidth is better than another beforehand

There is nothing to smooth and no bandwidth to choose: a burst of two hours and one of two years are both seen, relative
to what the collection has at that time, so that a busy week is no burst. Dates of a day's or a year's resolution come
out as such: all documents of a date are inside every window around it, and m_l is never less than their share.

**Bursts.** Relevant documents come in bursts, as from an urn. The document of rank i is relevant with probability
π_i = κ/(κ + i); then its time is new, from the collection's density, or near that of an earlier relevant one:

    r_i = (α + Σ_{j<i} ω_j k_j(t_i)) / (α + Σ_{j<i} ω_j)         ω_j = π_j r_j / (1 - π_j + π_j r_j)
    E   = Σ_i log(1 - π_i + π_i r_i)

Each factor is a likelihood ratio given the documents ranked above, one on average where dates tell nothing; so e^E is
above 20 for at most one such topic in 20 (Markov's inequality), and only what is beyond counts:

    a_b = E'/(E' + doubt),  E' = max(0, E - log 20)         r_b(t) = 1 + Σ_j w_j c_j (k_j(t) - 1)

with w_j ∝ 1/j over the first documents and c_j the probability that others share the burst of j, ``chance`` before any
are seen. Several bursts, or none, need no decision of their own. A document is no evidence for itself.

**Nearness to the query's time**, where the topic has one, is one more centre: r_q(t) = 1 - S + S k_q(t), with S the
share of this topic's relevant documents that lie near. Whatever is written about a subject lies nearer to the time of
asking than the collection at large, relevant or not: so m_l is here that of the documents ranked 51 to 1000, with the
collection's worth 200 of them beside; and no document below these is raised for its nearness.

How relevant documents spread around the time of asking is a habit of the task rather than of a topic, and the one
relevant document of a topic cannot show it. So some of the call's topics are ranked beforehand and the habit is learnt
from them; with as-of, for each topic from earlier ones alone. A document is relevant with probability

    π_i = 1/(1 + e^-(a + z_i))          z_i   its score, in spreads above the mean of the hundred best
    L   = Σ_topics Σ_i log(1 - π_i + π_i r_q(t_i))

and the shares s_l (their sum is S) and a maximise L, by EM on a grid of a. So scores and times are put on one scale:
where few documents are relevant, a is low, times of the first ones stand out from those just below them, and the ratio
that this takes is steep; where many are, the same crowd of recent documents is a slight one. In a topic the habit's S
counts as one relevant document, and those found there as themselves:

    S_i = (S + Σ_{j<i} ω_j q_j)/(1 + Σ_{j<i} ω_j)        q_j = S_j k_q(t_j) / (1 - S_j + S_j k_q(t_j))

a_q is the belief in E as above, E the log likelihood of either half of the topics by the habit of the other; or of the
topic itself, by a habit that is spread evenly over the windows, where none could be learnt or the halves disagree.

The collection is what the query sees: as-of counts no later document. Undated documents keep their scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log
from threading import Lock
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.kernels import Floats
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Result
from sdretrieval.ranking.notes import AutoTimeNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.time import auto_loops as loops
from sdretrieval.ranking.time.base import TimeWrapper, described
from sdretrieval.ranking.time.best import Ties, best_places
from sdretrieval.ranking.wrapper import Adjustment, Hooks, Wrapper

NO_COUNTS, NOTHING = np.zeros(0, dtype=np.int64), np.zeros(0)
REACH = 15 * 60_000.0 * 2.0 ** np.arange(24)  # h_l, ms
SPREAD_DEPTH = 100  # the best scores whose spread is worth a nat
COMPETITORS = 1000  # the best documents that nearness to the query's time is compared with, the first ones left out
BACKGROUND_WORTH = 200.0  # competitors that the collection's own density counts as, beside them
KAPPA, ALPHA = 2.0, 1.0
PRICE = log(20.0)  # nats: what chance gives to at most one topic in 20
FLOOR = 0.02  # of a ratio
INTERCEPTS = np.arange(-7.0, 3.0)  # a, to choose from
ROUNDS = 40  # of EM
LEAST = 4  # topics that a habit is learnt from
CELLS = 1 << 16  # steps along the range, by which places in time are found
FEWEST, ONE_IN, MOST = 40, 8, 200  # topics of a call to rehearse with; of how many one; how many at most


@dataclass(frozen=True)
class Auto:
    """Settings of the automatic prior; see the module.

    docs      how many first documents are the evidence
    doubt     nats of evidence that are believed by half
    chance    probability that a relevant document belongs to a burst, before others are seen in it
    nearness  weight of nearness to the query's time where the evidence is beyond doubt
    """

    docs: int = 50
    doubt: float = 4.0
    chance: float = 0.05
    nearness: float = 1.0

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        if self.docs < 2:
            raise ParameterError(f"the automatic time prior needs at least 2 documents to go by, got {self.docs}")
        if not 0 < self.chance < 1:
            raise ParameterError(f"the chance of a burst must be in (0, 1), got {self.chance}")
        if not (self.doubt > 0 and self.nearness >= 0):
            raise ParameterError(
                f"doubt must be positive and nearness not negative, got {self.doubt} and {self.nearness}"
            )

    def belief(self, evidence: float) -> float:
        """E'/(E' + doubt)"""
        beyond = max(0.0, evidence - PRICE)
        return beyond / (beyond + self.doubt)


@dataclass(frozen=True, kw_only=True)
class AutoPrior(TimeWrapper):
    """The model's scores plus what the documents' times tell, as far as the evidence goes."""

    place: ClassVar[int] = 1
    label: ClassVar[str] = "time-auto"

    prior: Auto = field(default_factory=Auto)

    def check_inner(self, inner: Wrapper) -> None:
        super().check_inner(inner)
        if inner.place == self.place:
            raise ParameterError("there is a time prior already", remedy="Wrap the model in one of them.")

    @property
    def adds(self) -> bool:
        return True

    def time_settings(self) -> dict[str, Any]:
        return {"prior": described(self.prior), "weight": None, "evidence": "rank", "time_docs": self.prior.docs}

    def hooks(self, engine: Engine) -> Hooks:
        return AutoHooks(self.prior, engine.snapshot)


# -- the collection in time ----------------------------------------------------------------------------------------


class Calendar:
    """Documents of a snapshot in the order of their times.

    ordered   times of the dated documents, ascending
    docs      the documents of these times
    place     of each document in that order; -1 undated
    """

    def __init__(self, snapshot: Snapshot) -> None:
        times = np.asarray(snapshot.times)
        dated = np.flatnonzero(times != UNDATED)
        self.docs = dated[np.argsort(times[dated], kind="stable")]
        self.ordered = times[self.docs].astype(np.float64)
        self.place = np.full(len(times), -1, dtype=np.int64)
        self.place[self.docs] = np.arange(len(self.docs))
        span = float(self.ordered[-1] - self.ordered[0]) if len(dated) else 0.0
        n_cells = CELLS if span > 0 else 1
        steps = np.linspace(0.0, span, n_cells + 1) + (self.ordered[0] if len(dated) else 0.0)
        self._cells = np.searchsorted(self.ordered, steps).astype(np.int32)
        self._cells[-1] = len(dated)
        self._per_ms = n_cells / span if span > 0 else 0.0

    def windows(self, before: np.ndarray, t: Floats) -> tuple[np.ndarray, np.ndarray, Floats]:
        """First place, place after the last and mass of each window around each time."""
        return loops.windows(self.ordered, self._cells, self._per_ms, before, t, REACH)

    def before(self, allowed: np.ndarray | None) -> np.ndarray:
        """How many of the documents there are lie before each place; nothing where all are there."""
        if allowed is None:
            return NO_COUNTS
        return np.concatenate([[0], np.cumsum(allowed[self.docs])])


_calendars: WeakKeyDictionary[Snapshot, Calendar] = WeakKeyDictionary()
_calendars_lock = Lock()


def calendar_of(snapshot: Snapshot) -> Calendar:
    with _calendars_lock:
        if snapshot not in _calendars:
            _calendars[snapshot] = Calendar(snapshot)
        return _calendars[snapshot]


# -- what is learnt from the topics of a call ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Around:
    """The first documents of one topic, seen from the time of asking."""

    time: float
    level: np.ndarray
    mass: Floats  # of the windows around the time
    z: Floats
    starts: np.ndarray  # the windows' first places in the calendar, and
    ends: np.ndarray  # those after their last


@dataclass(frozen=True, eq=False)
class Habit:
    """How relevant documents lie around the time of asking: shares of the levels, and a of their probability.

    ``evidence`` is None where nothing was learnt.
    """

    shares: Floats
    intercept: float
    topics: int = 0
    evidence: float | None = None

    @cached_property
    def share(self) -> float:
        return float(self.shares.sum())

    def ratios(self, around: Around) -> Floats:
        """k_q of the documents."""
        return loops.towers(self.shares / self.share, around.mass[None])[0][around.level]

    def evidence_of(self, around: Around) -> tuple[float, float]:
        """Evidence for nearness in one topic, and its share."""
        return loops.recency_evidence(self.ratios(around), around.z + self.intercept, self.share)


UNLEARNT = Habit(np.full(len(REACH), 0.5 / len(REACH)), -2.0)  # near or not is alike; one in eight is relevant
EVEN = np.full(len(REACH), 1.0 / (len(REACH) + 1))  # where learning begins: the windows and no window are alike


def habit_of(topics: Sequence[Around]) -> Habit:
    """Learnt from some topics."""
    if len(topics) < LEAST:
        return UNLEARNT
    halves = topics[::2], topics[1::2]
    crossed = zip(map(fitted, halves), reversed(halves), strict=True)
    evidence = sum(habit.evidence_of(topic)[0] for habit, half in crossed for topic in half)
    return replace(fitted(topics), evidence=evidence) if evidence > PRICE else UNLEARNT


def fitted(topics: Sequence[Around]) -> Habit:
    """The likeliest habit of some topics."""
    ptr = np.concatenate([[0], np.cumsum([len(topic.z) for topic in topics])])
    level, z = (np.concatenate([getattr(topic, name) for topic in topics]) for name in ("level", "z"))
    mass = np.stack([topic.mass for topic in topics])
    learnt = [loops.learn_shares(level, mass, z + a, ptr, EVEN, ROUNDS) for a in INTERCEPTS]
    best = int(np.argmax([likelihood for _, likelihood in learnt]))
    return Habit(learnt[best][0], float(INTERCEPTS[best]), len(topics))


class Rehearsed:
    """The topics that were ranked beforehand, in the order of their times."""

    def __init__(self, topics: Sequence[Around] = ()) -> None:
        self.topics = sorted(topics, key=lambda topic: topic.time)
        self.times = np.array([topic.time for topic in self.topics])
        self._habits: dict[int, Habit] = {}

    def habit(self, time: float, past_only: bool) -> Habit:
        """Of all topics, or only of those asked before a time."""
        n = len(self.topics)
        if past_only:  # of so many that only four habits are learnt between one power of two and the next
            n = int(np.searchsorted(self.times, time, side="left"))
            n -= n % (1 << max(0, n.bit_length() - 3))
        if n not in self._habits:  # threads may compute one twice, to the same bits
            self._habits[n] = habit_of(self.topics[:n])
        return self._habits[n]


# -- one query -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class First:
    """The dated ones among the first documents: numbers, times, ranks from 1, z, weights summing to one."""

    docs: np.ndarray
    times: Floats
    ranks: Floats
    z: Floats
    w: Floats


class AutoHooks(Hooks):
    adjusts = True

    def __init__(self, prior: Auto, snapshot: Snapshot) -> None:
        self.prior, self.snapshot = prior, snapshot
        self.times, self.calendar = np.asarray(snapshot.times), calendar_of(snapshot)
        self.rehearsed_topics: dict[str, Around] | None = None  # while a rehearsal goes on
        self.learnt = Rehearsed()

    def rehearsal(self, queries: Sequence[Query]) -> Sequence[Query]:
        timed = [query for query in queries if query.time is not None]
        if len(timed) < FEWEST or len(self.calendar.ordered) == 0:
            return ()
        wanted = min(max(len(timed) // ONE_IN, FEWEST // 4), MOST)
        self.rehearsed_topics = {}
        return [timed[i] for i in np.linspace(0, len(timed) - 1, wanted).astype(int)]

    def rehearsed(self) -> None:
        topics, self.rehearsed_topics = self.rehearsed_topics or {}, None
        self.learnt = Rehearsed([topics[qid] for qid in sorted(topics)])

    def decide(self, engine: Engine, result: Result, docs: np.ndarray, scores: np.ndarray) -> Adjustment | None:
        timed = result.query.time is not None
        depth = max(COMPETITORS if timed else SPREAD_DEPTH, self.prior.docs)
        places = best_places(scores, depth, Ties(self.snapshot.docid_rank, docs))
        best = scores[places[:SPREAD_DEPTH]]
        unit = float(np.std(best)) if len(best) else 0.0
        usable = 0.0 < unit < np.inf
        z = scores[places[: self.prior.docs]]
        z = (z - best.mean()) / unit if usable else np.zeros(len(z))
        first = self._first(result, docs[places], z)
        before = self.calendar.before(engine.allowed)
        around = self._around(result.query, first, docs[places[self.prior.docs :]], before) if timed else None
        if self.rehearsed_topics is not None:
            if around is not None:
                self.rehearsed_topics[result.query.qid] = around
            return None
        told = self._told(first, around, before, engine.allowed is not None)
        result.notes.append(told.note)
        if not told.is_on or not usable:
            return None
        bursts, near, own = told.bursts_over_time(), told.nearness_over_time(), told.own
        bar = float(scores[places[-1]])

        def apply(docs: np.ndarray, scores: np.ndarray) -> np.ndarray:
            adjusted = loops.added(scores, docs, self.calendar.place, bursts, near, bar, unit)
            there, where = found_in(docs, first.docs)  # none is evidence for itself
            adjusted[where] = scores[where] + unit * own[there]
            return adjusted

        most = max(0.0, sum(float(part.max()) for part in (bursts, near) if len(part)), float(own.max()))
        return Adjustment(apply, unit * most)

    def _first(self, result: Result, best: np.ndarray, z: Floats) -> First:
        """The first documents, or the judged ones, which all rank first."""
        judged = result.feedback is not None and result.feedback.judged
        docs = result.feedback.docs if judged else best[: self.prior.docs]  # type: ignore[union-attr]
        ranks = np.ones(len(docs)) if judged else np.arange(1.0, len(docs) + 1.0)
        z = np.full(len(docs), np.inf) if judged else z  # relevant without doubt
        dated = self.times[docs] != UNDATED
        docs, ranks, z = docs[dated], ranks[dated], z[dated]
        w = 1.0 / ranks
        return First(docs, self.times[docs].astype(np.float64), ranks, z, w / max(w.sum(), 1e-300))

    def _around(self, query: Query, first: First, others: np.ndarray, before: np.ndarray) -> Around | None:
        """The first documents seen from the time of asking, and the others in the windows around it."""
        if query.time is None or len(first.docs) == 0:
            return None
        time = float(query.time)
        starts, ends, mass = self.calendar.windows(before, np.array([time]))
        times = self.times[others]
        levels = loops.levels_to(times[times != UNDATED].astype(np.float64), time, REACH)
        within = np.cumsum(np.bincount(levels, minlength=len(REACH) + 1)[:-1])
        mass = (within + BACKGROUND_WORTH * mass[0]) / (len(levels) + BACKGROUND_WORTH)
        return Around(time, loops.levels_to(first.times, time, REACH), mass, first.z, starts, ends)

    def _told(self, first: First, around: Around | None, before: np.ndarray, past_only: bool) -> Told:
        told = Told(self.prior, first, self.calendar, before)
        if around is not None:
            told.ask(around, self.learnt.habit(around.time, past_only))
        return told


def found_in(docs: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which of the wanted documents are among some, and their places there."""
    where = np.minimum(np.searchsorted(docs, wanted), len(docs) - 1)
    if (docs[where] == wanted).all():  # all documents, ascending
        return np.arange(len(wanted)), where
    order = np.argsort(docs)
    where = order[np.minimum(np.searchsorted(docs, wanted, sorter=order), len(docs) - 1)]
    there = np.flatnonzero(docs[where] == wanted)
    return there, where[there]


class Told:
    """What the times of one query's first documents tell: evidence, beliefs, and ρ along time."""

    def __init__(self, prior: Auto, first: First, calendar: Calendar, before: np.ndarray) -> None:
        self.prior, self.first, self.calendar = prior, first, calendar
        self.bursts = self.nearness = 0.0  # nats of evidence
        self.around: Around | None = None
        self.habit, self.share = UNLEARNT, 0.0
        if len(first.docs) > 1:
            self.windows = calendar.windows(before, first.times)
            self.shares = np.full(len(REACH), 1.0 / len(REACH))
            self.kernel = loops.kernel_matrix(first.times, loops.towers(self.shares, self.windows[2]), REACH)
            self.bursts = loops.urn_evidence(self.kernel, first.ranks, KAPPA, ALPHA)

    def ask(self, around: Around, habit: Habit) -> None:
        """Take in the time of asking."""
        self.around, self.habit = around, habit
        self.nearness, self.share = habit.evidence_of(around)
        if habit.evidence is not None:  # of all topics: its own is in its share
            self.nearness = habit.evidence

    @cached_property
    def a_b(self) -> float:
        return self.prior.belief(self.bursts)

    @cached_property
    def a_q(self) -> float:
        if self.around is None:
            return 0.0
        return self.prior.nearness * self.prior.belief(self.nearness)

    @property
    def is_on(self) -> bool:
        return self.a_b > 0.0 or self.a_q > 0.0

    @cached_property
    def weights(self) -> Floats:
        """w_j c_j"""
        return loops.burst_weights(self.kernel, self.first.w, self.prior.chance)

    def bursts_over_time(self) -> Floats:
        """a_b log r_b at every place of the calendar; nothing where bursts are not believed in."""
        if self.a_b == 0.0:
            return NOTHING
        first, after, mass = self.windows
        height = self.weights[:, None] * self.shares / mass
        n, base = len(self.calendar.ordered), 1.0 - float(self.weights.sum())
        return loops.log_ratios(n, first, after, height, base, FLOOR, self.a_b)

    def nearness_over_time(self) -> Floats:
        """a_q log r_q likewise."""
        if self.a_q == 0.0:
            return NOTHING
        assert self.around is not None
        height = (self.share * self.habit.shares / self.habit.share / self.around.mass)[None]
        n, starts, ends = len(self.calendar.ordered), self.around.starts, self.around.ends
        return loops.log_ratios(n, starts, ends, height, 1.0 - self.share, FLOOR, self.a_q)

    @cached_property
    def own(self) -> Floats:
        """ρ of the first documents, none of them evidence for itself."""
        out = np.zeros(len(self.first.docs))
        if self.a_b > 0.0:
            v, w = self.weights, self.first.w
            lifted = (self.kernel - 1.0) @ v - (np.diag(self.kernel) - 1.0) * v
            out += self.a_b * np.log(np.maximum(1.0 + lifted / (1.0 - w), FLOOR))
        if self.a_q > 0.0:
            assert self.around is not None
            ratios = 1.0 - self.share + self.share * self.habit.ratios(self.around)
            out += self.a_q * np.log(np.maximum(ratios, FLOOR))
        return out

    @property
    def note(self) -> AutoTimeNote:
        return AutoTimeNote(
            prior=Auto.name,
            bursts=self.bursts,
            bursts_believed=self.a_b,
            nearness=self.nearness,
            nearness_believed=self.a_q,
            near_share=self.share,
            learnt_from=self.habit.topics,
            asked_at=None if self.around is None else self.around.time,
            densest=self._densest,
        )

    @property
    def _densest(self) -> float | None:
        if self.a_b == 0.0:
            return None
        return float(self.first.times[int(np.argmax(self.kernel @ self.weights))])
