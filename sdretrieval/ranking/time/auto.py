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
collection's worth 200 of them beside.

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

**Feedback.** A model that learns from first documents does so in time. By ρ, the sum above as the first pass tells it,
the first 200 documents are ordered by score + u·ρ, and the weight that the model gives to one of them is multiplied by
e^(ρ/2): the p(D) of a relevance model at half its strength (``learning``), since ρ has a part in the choice of the
documents already. A run that is reranked has an order of its own; it is given its documents' scores in descending
order.

The collection is what the query sees: as-of counts no later document. Undated documents keep their scores. The first
thousand documents are ordered anew, together with those within the bursts: for each first document with c_j > 1/2 the
widest window of at most 64 documents, which nearness does not raise. All others stay below, in the order of the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import log
from threading import Lock
from typing import Any, ClassVar, NamedTuple
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
from sdretrieval.ranking.time.base import ORDERED, TimeWrapper, described
from sdretrieval.ranking.wrapper import Hooks, Others, Ranked, Wrapper

NO_COUNTS = np.zeros(0, dtype=np.int64)
REACH = loops.NARROWEST * 2 ** np.arange(loops.LEVELS)  # h_l, ms
SHARES = np.full(loops.LEVELS, 1.0 / loops.LEVELS)  # s_l of bursts
SPREAD_DEPTH = 100  # the best scores whose spread is worth a nat
BACKGROUND_WORTH = 200.0  # competitors that the collection's own density counts as, beside them
KAPPA, ALPHA = 2.0, 1.0
PRICE = log(20.0)  # nats: what chance gives to at most one topic in 20
FLOOR = 0.02  # of a ratio
FIRST_ORDERED = 200  # documents of the first pass to order anew, to learn from
INTERCEPTS = np.arange(-7.0, 3.0)  # a, to choose from
ROUNDS = 40  # of EM
LEAST = 4  # topics that a habit is learnt from
CELLS = 1 << 16, 1 << 21  # steps along the range, by which places in time are found: at least, and at most
PICTURED = np.concatenate([np.arange(24), np.arange(24, ORDERED, 40)])  # documents at whose times a prior is pictured
CROWD = 64  # documents in a window whose documents all take part, whatever the words say of them
FEWEST, ONE_IN, MOST = 40, 8, 200  # topics of a call to rehearse with; of how many one; how many at most


@dataclass(frozen=True)
class Auto:
    """Settings of the automatic prior; see the module.

    docs      how many first documents are the evidence
    doubt     nats of evidence that are believed by half
    chance    probability that a relevant document belongs to a burst, before others are seen in it
    nearness  weight of nearness to the query's time where the evidence is beyond doubt
    learning  share of ρ that counts in the weight of a feedback document
    """

    docs: int = 50
    doubt: float = 4.0
    chance: float = 0.05
    nearness: float = 1.0
    learning: float = 0.5

    name: ClassVar[str] = "auto"

    def __post_init__(self) -> None:
        if self.docs < 2:
            raise ParameterError(f"the automatic time prior needs at least 2 documents to go by, got {self.docs}")
        if not 0 < self.chance < 1:
            raise ParameterError(f"the chance of a burst must be in (0, 1), got {self.chance}")
        if not (self.doubt > 0 and self.nearness >= 0 and self.learning >= 0):
            raise ParameterError(
                "doubt must be positive, nearness and learning not negative, "
                f"got {self.doubt}, {self.nearness} and {self.learning}"
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


class There(NamedTuple):
    """Which documents there are: those at the places from ``first`` to ``last`` of the calendar.

    Where they are not all that lie between, ``before[p]`` of them lie before the place p.
    """

    first: int
    last: int
    before: np.ndarray = NO_COUNTS


class Calendar:
    """Documents of a snapshot in the order of their times.

    ordered   times of the dated documents, ascending
    docs      the documents of these times
    """

    def __init__(self, snapshot: Snapshot) -> None:
        times = np.asarray(snapshot.times)
        dated = np.flatnonzero(times != UNDATED)
        self.docs = dated[np.argsort(times[dated], kind="stable")]
        self.ordered = times[self.docs].astype(np.int64)
        span = int(np.ptp(self.ordered)) if len(dated) else 0
        most = min(max(CELLS[0], 1 << len(dated).bit_length()), CELLS[1])
        shift = max(0, span.bit_length() - most.bit_length() + 1)
        steps = np.arange((span >> shift) + 2) << shift
        cells = np.searchsorted(self.ordered, (self.ordered[0] if len(dated) else 0) + steps)
        cells = np.append(cells, len(dated)).astype(np.int32)
        self._finding = np.append(self.ordered, loops.BEYOND), cells, shift

    def masses(self, there: There, t: Floats) -> Floats:
        """m_l of the windows around each time."""
        return loops.masses(loops.windows(*self._finding, there.first, there.last, t, REACH), *there)

    def seen_from(self, time: float, there: There, t: Floats, others: Floats) -> tuple[np.ndarray, Floats]:
        """The levels of times around a query's; m_l there, of competing documents and of the collection beside them."""
        return loops.seen_from(*self._finding, *there, time, REACH, t, others, BACKGROUND_WORTH)

    def urn(self, there: There, first: First, chance: float) -> tuple[np.ndarray, Floats, Floats, Floats, float]:
        """See loops.urn."""
        given = first.times, REACH, SHARES, first.ranks, first.w, KAPPA, ALPHA, chance
        return loops.urn(*self._finding, *there, *given)

    def crowds(self, there: There, windows: np.ndarray, chosen: np.ndarray, without: np.ndarray) -> np.ndarray:
        """The documents nearest to chosen times, without given ones: of the widest windows of at most CROWD of them."""
        return loops.crowds(windows, there.before, chosen, self.docs, CROWD, np.sort(without))

    def there(self, allowed: np.ndarray | None) -> There:
        """The places of the documents marked in ``allowed``; of all for None."""
        if allowed is None:
            return There(0, len(self.docs))
        first, last = loops.outermost(allowed, self.docs)
        if last - first == np.count_nonzero(allowed):  # a period, or the past
            return There(first, last)
        return There(0, len(self.docs), np.concatenate([[0], np.cumsum(allowed[self.docs])]))


_calendars: WeakKeyDictionary[Snapshot, Calendar] = WeakKeyDictionary()
_calendars_lock = Lock()


def calendar_of(snapshot: Snapshot) -> Calendar:
    with _calendars_lock:
        if snapshot not in _calendars:
            _calendars[snapshot] = Calendar(snapshot)
        return _calendars[snapshot]


# -- what is learnt from the topics of a call ----------------------------------------------------------------------


class Around(NamedTuple):
    """The first documents of one topic, seen from the time of asking."""

    time: float
    level: np.ndarray
    mass: Floats  # of the windows around the time
    z: Floats


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

    @cached_property
    def relative(self) -> Floats:
        return self.shares / self.share

    def evidence_of(self, around: Around) -> tuple[float, float]:
        """Evidence for nearness in one topic, and its share."""
        given = self.relative, around.mass, around.level, around.z, self.intercept, self.share
        return loops.recency_evidence(*given)


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


NOTHING_LEARNT = Rehearsed()


# -- one query -----------------------------------------------------------------------------------------------------


class First(NamedTuple):
    """The dated ones among the first documents: their places in the ranking, times, ranks from 1, z, weights.

    The weights sum to one. A document that is not in the ranking has no place there, -1.
    """

    places: np.ndarray
    times: Floats
    ranks: Floats
    z: Floats
    w: Floats


class AutoHooks(Hooks):
    adjusts = True
    reach = ORDERED
    first_reach = FIRST_ORDERED

    def __init__(self, prior: Auto, snapshot: Snapshot) -> None:
        self.prior, self.times, self.calendar = prior, np.asarray(snapshot.times), calendar_of(snapshot)
        self.rehearsed_topics: dict[str, Around] | None = None  # while a rehearsal goes on
        self.learnt = NOTHING_LEARNT
        self._there: tuple[np.ndarray | None, There] = None, self.calendar.there(None)

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

    def ordered(self, engine: Engine, result: Result, found: Ranked) -> Ranked | None:
        told, unit = self._told(engine, result, found)
        if self.rehearsed_topics is not None or not told.is_on or unit == 0.0:
            return None
        docs, scores = found
        _, rho = told.along(self.times[docs], len(docs))
        return np.argsort(-(scores + unit * rho), kind="stable"), np.exp(self.prior.learning * rho)

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        told, unit = self._told(engine, result, found)
        if self.rehearsed_topics is not None:
            if told.around is not None:
                self.rehearsed_topics[result.query.qid] = told.around
            return None
        in_time = result.feedback is not None and result.feedback.emphasis is not None
        if not told.is_on or unit == 0.0:
            result.notes.append(told.note(None, in_time))
            return None
        docs, scores = found
        if others is not None and told.a_b > 0.0:
            more, theirs = others(self.calendar.crowds(told.there, told.windows, told.sure, docs))
            docs, scores = np.concatenate([docs, more]), np.concatenate([scores, theirs])
        times, rho = told.along(self.times[docs], len(found[0]))
        shown = PICTURED[: np.searchsorted(PICTURED, len(docs))]
        result.notes.append(told.note((times[shown], rho[shown]), in_time))
        return docs, scores + unit * rho

    def _told(self, engine: Engine, result: Result, found: Ranked) -> tuple[Told, float]:
        """What the first documents' times tell, and u."""
        docs, scores = found
        unit, z, times, are_dated = loops.survey(docs, scores, self.times, SPREAD_DEPTH, self.prior.docs)
        allowed, there = self._there
        if allowed is not engine.allowed:  # of both passes of a query it is the same; threads may each look
            there = self.calendar.there(engine.allowed)
            self._there = engine.allowed, there
        first = self._first(result, docs, times, z, are_dated)
        told = Told(self.prior, first, self.calendar, there)
        around = self._around(result.query, first, times[self.prior.docs :], there)
        if around is not None:
            told.ask(around, self.learnt.habit(around.time, engine.allowed is not None))
        return told, unit

    def _first(self, result: Result, docs: np.ndarray, times: Floats, z: Floats, are_dated: bool) -> First:
        """The first documents, or the judged ones, which all rank first."""
        if result.feedback is None or not result.feedback.judged:
            times = times[: self.prior.docs]
            if are_dated:
                places, ranks, w = _by_rank(len(times))
                return First(places, times, ranks, z, w)
            places = np.flatnonzero(times != UNDATED)
            times, ranks, z = times[places], places.astype(np.float64) + 1.0, z[places]
        else:
            judged = result.feedback.docs
            judged = judged[self.times[judged] != UNDATED]
            where = {doc: place for place, doc in enumerate(docs.tolist())}
            places = np.array([where.get(doc, -1) for doc in judged.tolist()], dtype=np.int64)
            times, ranks = self.times[judged].astype(np.float64), np.ones(len(judged))
            z = np.full(len(judged), np.inf)  # relevant without doubt
        return First(places, times, ranks, z, _weights(ranks))

    def _around(self, query: Query, first: First, others: Floats, there: There) -> Around | None:
        """The first documents seen from the time of asking, and the others in the windows around it."""
        if query.time is None or len(first.times) == 0:
            return None
        time = float(query.time)
        return Around(time, *self.calendar.seen_from(time, there, first.times, others), first.z)


def _weights(ranks: Floats) -> Floats:
    w = 1.0 / ranks
    return w / max(w.sum(), 1e-300)


@lru_cache(maxsize=64)
def _by_rank(n: int) -> tuple[np.ndarray, Floats, Floats]:
    """Places, ranks and weights of so many first documents, all dated."""
    ranks = np.arange(1.0, n + 1.0)
    return np.arange(n), ranks, _weights(ranks)


class Told:
    """What the times of one query's first documents tell: evidence, beliefs, and ρ along time."""

    def __init__(self, prior: Auto, first: First, calendar: Calendar, there: There) -> None:
        self.prior, self.first, self.there = prior, first, there
        self.bursts = self.nearness = 0.0  # nats of evidence
        self.around: Around | None = None
        self.habit, self.share = UNLEARNT, 0.0
        if len(first.times) > 1:
            self.windows, self.towers, self.kernel, self.weights, self.bursts = calendar.urn(there, first, prior.chance)
        self.a_b, self.a_q = prior.belief(self.bursts), 0.0

    def ask(self, around: Around, habit: Habit) -> None:
        """Take in the time of asking."""
        self.around, self.habit = around, habit
        self.nearness, self.share = habit.evidence_of(around)
        if habit.evidence is not None:  # of all topics: its own is in its share
            self.nearness = habit.evidence
        self.a_q = self.prior.nearness * self.prior.belief(self.nearness)

    @property
    def is_on(self) -> bool:
        return self.a_b > 0.0 or self.a_q > 0.0

    @property
    def sure(self) -> np.ndarray:
        """Which of the first documents rather have a burst around them than not: c_j > 1/2."""
        return self.weights > 0.5 * self.first.w

    def along(self, times: np.ndarray, n_ranked: int) -> tuple[Floats, Floats]:
        """Times of documents as numbers, and ρ at them, the first ones being no evidence for themselves; undated 0.

        Only those that the words rank, the first ``n_ranked``, are raised for their nearness to the query's time.
        """
        t, rho = times.astype(np.float64), np.zeros(len(times))
        if self.a_b > 0.0:
            first = self.first
            bursts = first.times, self.towers, self.weights, first.places, self.kernel, first.w
            loops.add_bursts(rho, t, *bursts, self.a_b, FLOOR)
        if self.a_q > 0.0:
            assert self.around is not None
            near = self.habit.relative, self.around.mass, self.share
            loops.add_nearness(rho, t, self.around.time, *near, self.a_q, FLOOR, n_ranked)
        return t, rho

    def note(self, pictured: tuple[Floats, Floats] | None, learnt_in_time: bool) -> AutoTimeNote:
        return AutoTimeNote(
            prior=Auto.name,
            bursts=self.bursts,
            bursts_believed=self.a_b,
            nearness=self.nearness,
            nearness_believed=self.a_q,
            near_share=self.share,
            learnt_from=self.habit.topics,
            pictured=pictured,
            learnt_in_time=learnt_in_time,
        )
