"""Document priors in time: how much more likely a document is to be relevant for having been written when it was.

A prior gives each document the logarithm of a ratio,

    ρ(D) = log( f(t_D) / g(t_D) )       f   density over time of relevant documents
                                        g   density over time of the documents they compete with

so that it is 0 on average whatever the collection's own volume over time: a quiet month is not a bad month. g is
estimated from the few hundred best-scored documents, not from the collection: where long abstracts became the custom
in later years, say, all high scores lie late, and that says nothing about relevance. Two models of f:

:class:`Recency`   f ∝ g · K_h(t_q - t), an online kernel: documents fade from the time of the query backwards
:class:`Density`   f is the kernel density of the best-scored (or judged) documents, by their weights

**Bandwidth.** Recency: the h of the highest likelihood Σ_i r_i log(K_h(t_q - t_i) / E_g K_h) of the best-scored
documents, with h = ∞, no recency at all, among those tried. Density: Silverman's rule, or cross-validation (``"cv"``).

**Weight.** score'(D) = score(D) + w · s · ρ(D), where s is the spread (standard deviation) of the hundred best scores:
models differ in the scale of their scores by orders of magnitude. Without a given w it is

    w = W · max(0, 1 - c/(n · gain))       gain   nats per document by which f tells the best-scored documents better
                                                  than g does; leave-one-out for the density
                                           n      their effective number (Kish)
                                           c      1 nat for recency, the price of its one parameter by Akaike's
                                                  count; 2 for the density, which bends more easily

so where time says nothing about them the prior vanishes.

Conventions: an undated document has ρ = 0, the average. A document after the query's time has the floor of the
recency kernel, as if infinitely old; one *at* the query's time is as recent as can be. Topics without a time have no
recency (ρ = 0) but may have a density. Where all documents are of one instant every ρ is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, isinf, log

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import HOUR
from sdretrieval.estimate.time.density import likelihood_bandwidth
from sdretrieval.estimate.time.kernels import Floats, Kernel, LoopShape, as_kernel
from sdretrieval.ranking.time import prior_loops as loops

BINS = 512  # along the times of one query's documents; ρ is interpolated between them
FINEST_BINS = 1 << 16  # where a density's bandwidth is narrow beside the range: eight bins a bandwidth, up to so many
SHARP = 8  # bins: a recency narrower than that is computed document by document
PICTURED = 129  # times at which notes tell what a prior adds
COMPARED = 10  # documents to compare with, for each one of the evidence
SPREAD_DEPTH = 100  # the best scores whose spread is the unit of the prior's weight
AUTO = "auto"
EVIDENCE = ("score", "posterior", "rank", "uniform")


@dataclass(frozen=True, eq=False)
class Ranked:
    """What a prior may look at: one query's documents, and the best of them as evidence of when relevance lies.

    low, high   first and last time of the dated documents being ranked, ms; low > high where none is dated
    compared    times of the best documents (dated), with which the evidence is compared: g
    first       times of the evidence (dated), and ``weights`` summing to one
    """

    query_time: float | None
    low: float
    high: float
    compared: Floats
    first: Floats
    weights: Floats

    @property
    def tells_nothing(self) -> bool:
        """No dates, or all of one instant, or nothing to go by."""
        return not self.high > self.low or len(self.compared) == 0


@dataclass(frozen=True, eq=False)
class Ratio:
    """ρ over time, and what it rests on: ``gain`` nats per document over ``size`` effective documents.

    ``table``: ρ at the middles of equal bins from ``low`` on, up to ``now``, and ``future`` after it; None where ρ is 0
    throughout. ``exact``: the arguments of :func:`prior_loops.add_recency` where a table would be too coarse.
    """

    table: Floats | None = None
    low: float = 0.0
    step: float = 1.0
    bandwidth: float = inf
    gain: float = 0.0
    size: float = 0.0
    price: float = 1.0
    now: float = inf
    future: float = 0.0
    exact: tuple | None = None
    has_time: bool = True  # whether the query has the time that the prior wants

    @property
    def trust(self) -> float:
        """1 - c/(n · gain), at least 0: how far the evidence is from what chance would give."""
        total = self.size * self.gain
        return 1.0 - self.price / total if total > self.price else 0.0

    def added(self, scores: Floats, times: np.ndarray, factor: float) -> Floats:
        """score + factor · ρ(t) of documents of these times."""
        if factor == 0.0 or (self.table is None and self.exact is None):
            return scores
        if self.exact is not None:
            return loops.add_recency(scores, times, *(*self.exact, factor))
        return loops.add_table(scores, times, self.table, self.low, self.step, self.now, self.future, factor)

    def pictured(self, low: float, high: float, weight: float) -> tuple[tuple[int, float], ...]:
        """w·ρ at equal distances from the first time to the last; nothing where it is 0 throughout."""
        if weight == 0.0 or not high > low or (self.table is None and self.exact is None):
            return ()
        times = np.linspace(low, high, PICTURED).astype(np.int64)
        added = self.added(np.zeros(PICTURED), times, weight)
        return tuple(zip(times.tolist(), added.tolist(), strict=True))


def _check_floor(value: float) -> None:
    if not 0 < value < 1:
        raise ParameterError(f"the floor of a time prior must be in (0, 1), got {value}")


def _check_time_bandwidth(value: float | str, words: tuple[str, ...]) -> None:
    if isinstance(value, str):
        if value not in words:
            raise ParameterError(f"a bandwidth is a length of time, or {' or '.join(words)}; got {value!r}")
    elif not value > 0:
        raise ParameterError(f"a bandwidth must be positive, got {value}", remedy="It is in milliseconds.")


@dataclass(frozen=True)
class Recency:
    """ρ = log((1-ε) K_h(t_q - t_D)/K_h(0+) + ε) - log E_g[the same]: recency with a bounded or exponential memory.

    ``bandwidth`` in ms, or "auto": chosen for each query, no recency among the choices. ``floor`` ε keeps documents
    beyond a bounded kernel's reach, and those of the future, in the ranking.
    """

    kernel: str = "exponential"
    bandwidth: float | str = AUTO
    floor: float = 0.02
    tried: int = 12

    name = "recency"

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        _check_time_bandwidth(self.bandwidth, (AUTO,))
        _check_floor(self.floor)

    def ratio(self, ranked: Ranked) -> Ratio:
        if ranked.query_time is None:
            return Ratio(has_time=False)
        if ranked.tells_nothing:
            return Ratio()
        t_q, shape = ranked.query_time, (self._shape, self.floor)
        if isinstance(self.bandwidth, str):
            oldest = t_q - ranked.low
            if oldest <= 0:  # everything lies in the future
                return Ratio()
            grid = (oldest / 64, 4 * oldest, self.tried)
        elif isinf(self.bandwidth):
            return Ratio()
        else:
            grid = (float(self.bandwidth), float(self.bandwidth), 1)
        h, log_mean, gain, size = loops.choose_recency(
            *shape, t_q, ranked.compared, ranked.first, ranked.weights, *grid
        )
        if isinstance(self.bandwidth, str) and not gain > 0:
            return Ratio()
        step = (min(ranked.high, t_q) - ranked.low) / BINS
        # A kernel sharper than the bins, or with an edge of its own, does not fit a table.
        if h < SHARP * step or step <= 0 or Kernel(self.kernel).has_edge:
            return Ratio(exact=(*shape, t_q, h, log_mean), bandwidth=h, gain=gain, size=size)
        low = ranked.low - 0.5 * step  # so that the first and the last time are middles: ρ is exact there
        table = loops.recency_table(*shape, t_q, h, log_mean, low, step, BINS + 1)
        return Ratio(table, low, step, h, gain, size, now=t_q, future=log(self.floor) - log_mean)

    @cached_property
    def _shape(self) -> LoopShape:
        return Kernel(self.kernel).form.shape

    def faded(self, ages: Floats, h: float) -> Floats:
        """(1-ε) K_h(age)/K_h(0+) + ε"""
        return np.exp(loops.log_faded(self._shape, self.floor, ages, float(h)))


@dataclass(frozen=True)
class Density:
    """ρ = log((1-ε) f̂(t_D)/ĝ(t_D) + ε): where in time the evidence lies, against where its competitors lie.

    Both densities are smoothed alike, so a relevance that follows the volume has ρ = 0, and reflected at the ends.
    ``bandwidth`` in ms, "auto" (Silverman's rule for the weights, times ``narrower``) or "cv".
    """

    kernel: str = "gaussian"
    bandwidth: float | str = AUTO
    floor: float = 0.05
    narrower: float = 0.7

    name = "density"

    def __post_init__(self) -> None:
        as_kernel(self.kernel)
        _check_time_bandwidth(self.bandwidth, (AUTO, "cv"))
        _check_floor(self.floor)

    def ratio(self, ranked: Ranked) -> Ratio:
        if ranked.tells_nothing or len(ranked.first) == 0:
            return Ratio()
        span, kernel = ranked.high - ranked.low, Kernel(self.kernel)
        h, size = self._choose(ranked, kernel, span / FINEST_BINS)
        if isinf(h):
            return Ratio()
        bins = min(max(BINS, ceil(8 * span / h)), FINEST_BINS)
        table, gain = loops.density_ratio(
            ranked.first,
            ranked.weights,
            ranked.compared,
            ranked.low,
            ranked.high,
            bins,
            kernel.form.shape,
            h,
            float(kernel(0.0)),
            self.floor,
        )
        return Ratio(table, ranked.low, span / bins, h, gain, size, price=2.0)

    def _choose(self, ranked: Ranked, kernel: Kernel, step: float) -> tuple[float, float]:
        """h in ms, never narrower than a bin and a half: below that the bins would show; and the effective size."""
        spread_ms, size = loops.spread_in_time(ranked.first, ranked.weights)
        if self.bandwidth == "cv":
            h = likelihood_bandwidth(
                ranked.first,
                ranked.weights,
                self.kernel,
                bounds=(ranked.low, ranked.high),
                candidates=np.geomspace(ranked.high - ranked.low, (ranked.high - ranked.low) / 128, 8),
            )
        elif isinstance(self.bandwidth, str):
            rule = 0.9 * spread_ms * size**-0.2 * kernel.canonical / Kernel("gaussian").canonical
            h = self.narrower * max(rule, HOUR)
        else:
            h = self.bandwidth
        return max(h, 1.5 * step), size


Prior = Recency | Density
# W, the weight where the evidence is beyond doubt; see docs/TIME.theory.md for how it was chosen.
FULL_WEIGHT = {"recency": 0.5, "density": 0.3}


def make_prior(name: str, *, kernel: str | None = None, bandwidth: float | str = AUTO) -> Prior | None:
    """A prior by name (``none``, ``recency``, ``density``) with its own kernel unless another is given."""
    known: dict[str, type[Recency] | type[Density]] = {"recency": Recency, "density": Density}
    if name == "none":
        return None
    if name not in known:
        raise ParameterError(f"no time prior {name!r}", remedy="One of: none, recency, density.")
    made = known[name]
    return made(bandwidth=bandwidth) if kernel is None else made(kernel=kernel, bandwidth=bandwidth)


def weight_of(prior: Prior, ratio: Ratio, weight: float | None) -> float:
    """w: as given, or what the evidence is worth."""
    return weight if weight is not None else FULL_WEIGHT[prior.name] * ratio.trust
