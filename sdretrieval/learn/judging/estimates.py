"""Measures of runs while their pools are being judged: bounds, estimates with intervals, and where to judge next.

    contest = Contest(runs, pools)                     # {name: Run}, {qid: {docid: best rank}}
    contest.measures({"1": {"d3": 1}})                 # judged so far
    contest.better("sd", "bm25", judged)
    contest.next_anywhere(judged, seen)                # the click that tells most about which run is better

**Bounds** hold whatever the unjudged documents of the pool are (bounds.py). **Estimates** take each of them to be
relevant with a probability fitted to the judgments: a logistic regression on where the runs rank a document and on how
much of its topic's pool was relevant so far. Intervals are the middle 95 % of what comes of drawing all of them many
times, the regression's own uncertainty included. **Sampled** estimates (``Contest.sampled``) need no such model, but
judgments made in random order.

    x_d            1 where document d is relevant        r_d   its rank in a run
    R · AP = Σ_d≤e x_d x_e / max(r_d, r_e)               so one more relevant document d adds about
    a_d = 1/r_d + Σ_e≠d P(x_e) / max(r_d, r_e)           (Carterette et al. 2006)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit

from sdretrieval.collection.records import Run
from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.judging.bounds import bounds, precision_sum, split

DRAWS = 400
DEPTH = 1000  # ranks of a run that are looked at
STRATA = (10, 30, 100)  # best ranks up to which documents are drawn together
MISSING = np.inf
REFIT = 150  # judgments after which probabilities of relevance are fitted again, for choosing documents
Judged = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Measured:
    """A run's mean by one measure over the pooled topics.

    ``low`` and ``high`` are certain for relevant documents within the pool; ``estimate`` lies in ``interval`` with 95 %
    probability if the model of relevance is right; ``judged`` is the share of the pool that is judged."""

    run: str
    measure: str
    low: float
    high: float
    estimate: float
    interval: tuple[float, float]
    topics: int
    judged: float


@dataclass(frozen=True)
class Better:
    """How much better ``first`` is than ``second``: the mean difference, its interval, and the probability that it is
    above zero on these topics were everything judged. ``certain``: the bounds alone decide it."""

    first: str
    second: str
    measure: str
    difference: float
    interval: tuple[float, float]
    probability: float
    certain: bool

    def __str__(self) -> str:
        ahead, behind = (self.first, self.second) if self.difference >= 0 else (self.second, self.first)
        sure = max(self.probability, 1 - self.probability)
        told = "for certain" if self.certain else f"with probability {sure:.2f}"
        span = "{:+.4f}, {:+.4f} to {:+.4f}".format(self.difference, *self.interval)
        return f"{ahead} is better than {behind} by {self.measure} {told} ({span})"


class _Pool:
    """One topic: its pooled documents, and the rank each run gives them (infinity where it has not got them)."""

    def __init__(self, qid: str, pool: Mapping[str, int], runs: Sequence[Run]) -> None:
        self.qid, self.docids = qid, list(pool)
        self.place = {docid: i for i, docid in enumerate(self.docids)}
        self.ranks = np.full((len(runs), len(pool)), MISSING)
        self.lengths = np.zeros(len(runs), dtype=np.int64)
        for i, run in enumerate(runs):
            ranked = run[qid].docids[:DEPTH] if qid in run else []
            self.lengths[i] = len(ranked)
            for rank, docid in enumerate(ranked, 1):
                if docid in self.place:
                    self.ranks[i, self.place[docid]] = rank
        inverse = 1.0 / self.ranks
        fused = (1.0 / (60.0 + self.ranks)).sum(axis=0)
        best = self.ranks.min(axis=0, initial=1e6)
        share = np.isfinite(self.ranks).sum(axis=0) / max(len(runs), 1)  # a pool may have come without its runs
        self.evidence = np.column_stack([np.log(fused + 1e-6), np.log(best), share])
        self.inverse = inverse

    def grades(self, judged: Mapping[str, int]) -> np.ndarray:
        """The grade of each pooled document, NaN where it is not judged."""
        return np.array([judged.get(docid, np.nan) for docid in self.docids], dtype=float)

    def ranked(self, i: int, values: np.ndarray) -> np.ndarray:
        """Values of the pooled documents (along the last axis), by the ranks of run i; 0 elsewhere."""
        found = np.isfinite(self.ranks[i])
        out = np.zeros((*values.shape[:-1], int(self.lengths[i])))
        out[..., self.ranks[i, found].astype(np.int64) - 1] = values[..., found]
        return out

    def worth(self, p: np.ndarray) -> np.ndarray:
        """a_d by run and document: what one more relevant document adds to R · AP."""
        order = np.argsort(self.ranks, axis=1, kind="stable")
        inverse = np.take_along_axis(self.inverse, order, axis=1)
        ps = np.broadcast_to(p, self.ranks.shape)
        ps = np.take_along_axis(ps, order, axis=1)
        above = np.cumsum(ps, axis=1) - ps
        below = np.cumsum((ps * inverse)[:, ::-1], axis=1)[:, ::-1] - ps * inverse
        worth = np.empty_like(inverse)
        np.put_along_axis(worth, order, inverse * (1.0 + above) + below, axis=1)
        return worth


class Contest:
    """Runs that are compared over pools. ``rel`` is the least grade that counts as relevant."""

    def __init__(self, runs: Mapping[str, Run], pools: Mapping[str, Mapping[str, int]], *, rel: int = 1) -> None:
        self.names, self.rel = list(runs), rel
        self._pools = {qid: _Pool(qid, pool, list(runs.values())) for qid, pool in pools.items()}
        self._chosen: dict[str, tuple[tuple[int, int], tuple[float, str | None]]] = {}
        self._guess: tuple[int, dict[str, np.ndarray]] | None = None

    # -- probabilities of relevance ------------------------------------------------------------------------------
    def probabilities(self, judged: Judged, draws: int = 0) -> dict[str, np.ndarray]:
        """For each topic the probability of relevance of each pooled document, judged or not; with ``draws`` as many
        rows, each from other plausible coefficients of the regression."""
        x = {qid: self._design(pool, judged.get(qid, {})) for qid, pool in self._pools.items()}
        grades = {qid: pool.grades(judged.get(qid, {})) for qid, pool in self._pools.items()}
        known = {qid: ~np.isnan(grades[qid]) for qid in x}
        rows = np.concatenate([x[qid][known[qid]] for qid in x]) if x else np.zeros((0, 5))
        labels = np.concatenate([grades[qid][known[qid]] >= self.rel for qid in x]) if x else np.zeros(0)
        mean, covariance = _logistic(rows, labels.astype(float))
        if not draws:
            return {qid: expit(x[qid] @ mean) for qid in x}
        rng = np.random.default_rng(0)
        beta = rng.multivariate_normal(mean, covariance, size=draws, method="cholesky")
        return {qid: expit(beta @ x[qid].T) for qid in x}

    def _design(self, pool: _Pool, judged: Mapping[str, int]) -> np.ndarray:
        """Evidence of relevance: ranks, and of the topic the share of relevant documents among those judged."""
        n = len(judged)
        share = (sum(grade >= self.rel for grade in judged.values()) + 1.0) / (n + 4.0)
        topic = np.full(len(pool.docids), np.log(share / (1 - share)))
        return np.column_stack([np.ones(len(pool.docids)), pool.evidence, topic])

    def draw(self, judged: Judged, draws: int = DRAWS) -> dict[str, np.ndarray]:
        """Relevance of all pooled documents, ``draws`` times: as judged, else by chance."""
        rng = np.random.default_rng(1)
        drawn = {}
        for qid, p in self.probabilities(judged, draws).items():
            grades = self._pools[qid].grades(judged.get(qid, {}))
            x = (rng.random(p.shape) < p).astype(float)
            known = ~np.isnan(grades)
            x[:, known] = grades[known]  # grades as they are: nDCG wants them
            drawn[qid] = x
        return drawn

    # -- measures ------------------------------------------------------------------------------------------------
    def measures(self, judged: Judged, names: Sequence[str] = ("AP", "P@5")) -> list[Measured]:
        """Each run by each measure."""
        for name in names:
            split(name)
        drawn = self.draw(judged)
        n_pooled = sum(len(pool.docids) for pool in self._pools.values())
        n_judged = sum(docid in pool.place for qid, pool in self._pools.items() for docid in judged.get(qid, {}))
        found = []
        for name in names:
            for i, run in enumerate(self.names):
                low, high = self._bounds(i, name, judged)
                values = self._values(i, name, drawn, judged)
                interval = tuple(np.quantile(values, (0.025, 0.975)).tolist()) if len(values) else (0.0, 0.0)
                estimate = float(values.mean()) if len(values) else 0.0
                share = n_judged / n_pooled if n_pooled else 0.0
                found.append(Measured(run, name, low, high, estimate, interval, len(self._pools), share))
        return found

    def _bounds(self, i: int, measure: str, judged: Judged) -> tuple[float, float]:
        pairs = [self._topic_bounds(pool, i, measure, judged.get(qid, {})) for qid, pool in self._pools.items()]
        low, high = np.mean(pairs, axis=0) if pairs else (0.0, 1.0)
        return float(low), float(high)

    def _topic_bounds(self, pool: _Pool, i: int, measure: str, judged: Mapping[str, int]) -> tuple[float, float]:
        grades = pool.grades(judged)
        inside = np.isfinite(pool.ranks[i])
        missed = grades[~inside & ~np.isnan(grades)].astype(int).tolist()
        missed += [grade for docid, grade in judged.items() if docid not in pool.place]
        outside = int(np.isnan(grades[~inside]).sum())
        highest = max([self.rel, *judged.values()])
        return bounds(measure, pool.ranked(i, grades), missed, outside, rel=self.rel, highest=highest)

    def _values(self, i: int, measure: str, drawn: Mapping[str, np.ndarray], judged: Judged) -> np.ndarray:
        """The mean over topics of a measure of run i, for each draw."""
        name, cut = split(measure)
        sums = []
        for qid, x in drawn.items():
            pool = self._pools[qid]
            beyond = [grade for docid, grade in judged.get(qid, {}).items() if docid not in pool.place]
            sums.append(_measured(name, cut, pool.ranked(i, x), x, beyond, self.rel))
        return np.mean(sums, axis=0) if sums else np.zeros(0)

    def better(self, first: str, second: str, judged: Judged, measure: str = "AP") -> Better:
        """Which of two runs is better on these topics."""
        a, b = (self._number(name) for name in (first, second))
        drawn = self.draw(judged)
        gain = self._values(a, measure, drawn, judged) - self._values(b, measure, drawn, judged)
        if not len(gain):
            raise ParameterError("no topic has a pool", remedy="Make pools from the runs first.")
        (a_low, a_high), (b_low, b_high) = self._bounds(a, measure, judged), self._bounds(b, measure, judged)
        low, high = np.quantile(gain, (0.025, 0.975)).tolist()
        probability = float((gain > 0).mean() + 0.5 * (gain == 0).mean())
        certain = a_low > b_high or b_low > a_high
        return Better(first, second, measure, float(gain.mean()), (low, high), probability, certain)

    def _number(self, name: str) -> int:
        if name not in self.names:
            there = ", ".join(self.names) or "none"
            raise ParameterError(f"no run {name!r} in this project; there is: {there}")
        return self.names.index(name)

    # -- what to judge next --------------------------------------------------------------------------------------
    def next_document(self, qid: str, judged: Judged, seen: set[str]) -> str | None:
        """The document of a topic that tells most about the difference between the runs."""
        return self._best(qid, judged, seen)[1] if qid in self._pools else None

    def next_anywhere(self, judged: Judged, seen: Mapping[str, set[str]]) -> tuple[str, str] | None:
        """The same over all topics."""
        best = {qid: self._best(qid, judged, seen.get(qid, set())) for qid in self._pools}
        found = [(value, qid, docid) for qid, (value, docid) in best.items() if docid is not None]
        return max(found)[1:] if found else None

    def _best(self, qid: str, judged: Judged, seen: set[str]) -> tuple[float, str | None]:
        """What the most telling unseen document of a topic is worth, and its id."""
        state = len(judged.get(qid, {})), len(seen)
        kept = self._chosen.get(qid)
        if kept is None or kept[0] != state:
            value, docids = self._value(qid, judged), self._pools[qid].docids
            order = np.argsort(-value, kind="stable").tolist()
            found = next((i for i in order if docids[i] not in seen), None)
            kept = state, (0.0, None) if found is None else (float(value[found]), docids[found])
            self._chosen[qid] = kept
        return kept[1]

    def _value(self, qid: str, judged: Judged) -> np.ndarray:
        """How far each document can be expected to move the runs apart: P(x_d) times the spread of a_d / R. The spread
        is the median distance from the median: one run that is unlike all others does not decide what is judged."""
        pool, mine = self._pools[qid], judged.get(qid, {})
        p = self._guessed(judged)[qid].copy()
        grades = pool.grades(mine)
        known = ~np.isnan(grades)
        p[known] = grades[known] >= self.rel
        worth = pool.worth(p)
        spread = (
            np.median(np.abs(worth - np.median(worth, axis=0)), axis=0) if len(worth) > 2 else np.ptp(worth, axis=0)
        )
        return np.where(known, 0.0, p * (spread + 1e-9)) / (1.0 + p.sum())

    def _guessed(self, judged: Judged) -> dict[str, np.ndarray]:
        """Probabilities of relevance, fitted again now and then."""
        age = sum(map(len, judged.values())) // REFIT
        if self._guess is None or self._guess[0] != age:
            self._guess = age, self.probabilities(judged)
            self._chosen.clear()
        return self._guess[1]

    # -- by random samples ---------------------------------------------------------------------------------------
    def random_order(self, qid: str, pool: Mapping[str, int]) -> list[str]:
        """A topic's pool in an order that is random within strata of best rank, a document of each stratum in turn."""
        turns = [shuffled(part, qid) for part in _strata(pool)]
        places = [((i + 0.5) / len(part), docid) for part in turns for i, docid in enumerate(part)]
        return [docid for _, docid in sorted(places)]

    def sampled(self, run: str, judged: Judged, pools: Mapping[str, Mapping[str, int]]) -> tuple[float, float]:
        """AP of a run from judgments in :meth:`random_order`, and its standard error, without a model of relevance:
        inferred from strata by inverse probabilities of being drawn (Aslam and Pavlu 2008)."""
        i = self._number(run)
        values = [_sampled_ap(self._pools[qid], i, _strata(pools[qid]), judged.get(qid, {}), self.rel) for qid in pools]
        mean = float(np.mean([value for value, _ in values]))
        return mean, float(np.sqrt(sum(variance for _, variance in values))) / max(len(values), 1)


def _strata(pool: Mapping[str, int]) -> list[list[str]]:
    edges = [0, *STRATA, 10**9]
    parts = [[d for d, rank in pool.items() if low < rank <= high] for low, high in pairwise(edges)]
    return [part for part in parts if part]


def shuffled(docids: Iterable[str], salt: str) -> list[str]:
    """In an order that is random, and the same for whoever asks."""
    return sorted(docids, key=lambda docid: hashlib.sha256(f"{salt}\n{docid}".encode()).digest())


def _measured(name: str, cut: int | None, ranked: np.ndarray, x: np.ndarray, beyond: list[int], rel: int) -> np.ndarray:
    """One topic's measure, for each draw: ``ranked`` by rank, ``x`` of all pooled documents."""
    if name == "P":
        return (ranked[:, :cut] >= rel).sum(axis=1) / float(cut or 1)
    if name == "AP":
        total = (x >= rel).sum(axis=1) + sum(grade >= rel for grade in beyond)
        return precision_sum((ranked >= rel).astype(float)) / np.maximum(total, 1)
    everything = np.sort(np.column_stack([x, np.tile(beyond, (len(x), 1))]) if beyond else x, axis=1)[:, ::-1][:, :cut]
    discounts = 1.0 / np.log2(np.arange(2, max(ranked.shape[1], everything.shape[1]) + 2))
    gain = ranked[:, :cut] @ discounts[: ranked[:, :cut].shape[1]]
    ideal = everything @ discounts[: everything.shape[1]]
    return np.divide(gain, ideal, out=np.zeros_like(gain), where=ideal > 0)


def _logistic(x: np.ndarray, y: np.ndarray, prior: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of a logistic regression and their covariance (Laplace), by Newton's method. A normal prior around
    what ranks usually tell holds where there is little to learn from."""
    centre = np.array([0.0, 0.5, -0.3, 0.5, 0.5])
    beta, precision = centre.copy(), np.eye(len(centre)) / prior
    for _ in range(25):
        p = expit(x @ beta)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + precision
        step = np.linalg.solve(hessian, x.T @ (y - p) - precision @ (beta - centre))
        beta = beta + np.clip(step, -2.0, 2.0)
        if np.abs(step).max() < 1e-8:
            break
    return beta, np.linalg.inv(hessian)


def _sampled_ap(
    pool: _Pool, i: int, strata: Sequence[Sequence[str]], judged: Mapping[str, int], rel: int
) -> tuple[float, float]:
    """AP by inverse probabilities, and its variance by leaving out one judged document at a time."""
    drawn = [[docid for docid in part if docid in judged] for part in strata]

    def estimate(left_out: str | None) -> float:
        terms: list[tuple[float, int, float, int, int]] = []  # rank, stratum, weight, drawn, size
        total = 0.0
        for h, (part, taken) in enumerate(zip(strata, drawn, strict=True)):
            kept = [docid for docid in taken if docid != left_out]
            for docid in kept:
                if judged[docid] >= rel:
                    weight = len(part) / len(kept)
                    total += weight
                    rank = pool.ranks[i, pool.place[docid]]
                    if np.isfinite(rank):
                        terms.append((float(rank), h, weight, len(kept), len(part)))
        terms.sort()
        sums = 0.0
        for k, (rank, h, weight, n, size) in enumerate(terms):
            inner = 1.0
            for _, other, w, _, _ in terms[:k]:
                # Two of one stratum are drawn together less often than independently.
                inner += w if other != h else (size - 1) / (n - 1)
            sums += weight / rank * inner
        return sums / total if total else 0.0

    value = estimate(None)
    variance = 0.0
    for part, taken in zip(strata, drawn, strict=True):
        n = len(taken)
        if n > 1 and n < len(part):
            values = np.array([estimate(docid) for docid in taken])
            variance += (1 - n / len(part)) * (n - 1) / n * float(((values - values.mean()) ** 2).sum())
    return value, variance
