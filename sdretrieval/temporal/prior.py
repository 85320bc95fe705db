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

from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isfinite, isinf

import numpy as np
from numpy.typing import NDArray

from sdretrieval.errors import ParameterError
from sdretrieval.temporal.density import effective_size, likelihood_bandwidth, silverman
from sdretrieval.temporal.kernels import Floats, Kernel, as_kernel

BINS = 1024  # along the times of one query's documents
COMPARED = 10  # documents to compare with, for each one of the evidence
SPREAD_DEPTH = 100  # the best scores whose spread is the unit of the prior's weight
AUTO = "auto"
EVIDENCE = ("score", "posterior", "rank", "uniform")


@dataclass(frozen=True, eq=False)
class Ranked:
    """What a prior may look at: one query's documents, and the best of them as evidence of when relevance lies.

    times       of the documents being ranked, ms; NaN where undated
    compared    of the best of them, with which the evidence is compared: g
    first       times of the evidence (dated), and ``weights`` summing to one
    """

    query_time: float | None
    times: Floats
    compared: Floats
    first: Floats
    weights: Floats


@dataclass(frozen=True, eq=False)
class Ratio:
    """ρ of each document, and what it rests on: ``gain`` nats per document over ``size`` effective documents."""

    values: Floats
    bandwidth: float = inf
    gain: float = 0.0
    size: float = 0.0
    price: float = 1.0
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def trust(self) -> float:
        """1 - c/(n · gain), at least 0: how far the evidence is from what chance would give."""
        total = self.size * self.gain
        return 1.0 - self.price / total if total > self.price else 0.0


class TimeGrid:
    """The documents' times in equal bins: densities over them cost bins, not documents.

    ``shares`` of ``compared`` documents in each bin are g before smoothing.
    """

    def __init__(self, times: Floats, compared: Floats, bins: int = BINS) -> None:
        dated = np.isfinite(times)
        self.any = bool(dated.any())
        self.low = float(np.min(times, initial=inf, where=dated)) if self.any else 0.0
        high = float(np.max(times, initial=-inf, where=dated)) if self.any else 0.0
        self.span = high - self.low
        self.bins = bins
        self.step = self.span / bins if self.span > 0 else 1.0
        self.bin_of = self._bins(np.where(dated, times, self.low))
        self.undated = np.flatnonzero(~dated)
        counts = np.bincount(self.bins_at(compared[np.isfinite(compared)]), minlength=bins).astype(np.float64)
        self.shares = counts / max(counts.sum(), 1.0)
        self.centres: Floats = np.asarray(self.low + (np.arange(bins) + 0.5) * self.step, dtype=np.float64)

    def _bins(self, times: Floats) -> NDArray[np.int64]:
        return np.minimum(((times - self.low) / self.step).astype(np.int64), self.bins - 1)

    def bins_at(self, times: Floats) -> NDArray[np.int64]:
        """The bins of any times; those outside are taken to the nearest end."""
        return self._bins(np.clip(times, self.low, self.low + self.span))

    def histogram(self, times: Floats, weights: Floats) -> Floats:
        return np.bincount(self.bins_at(times), weights=weights, minlength=self.bins).astype(np.float64)

    def smoothed(self, masses: Floats, kernel: Kernel, bandwidth: float) -> Floats:
        """Mass in each bin after smoothing; what a kernel puts beyond an end is reflected back in.

        Reflection at both ends is what a cosine transform takes for granted, so smoothing is one product there.
        """
        from scipy.fft import dct, idct

        # dct and idct of the usual scaling undo each other; the kernel's own transform has eigenvalue 1 for a constant.
        return np.maximum(idct(dct(masses) * _eigenvalues(kernel, bandwidth / self.step, self.bins)), 0.0)


@lru_cache(maxsize=64)
def _eigenvalues(kernel: Kernel, width: float, bins: int) -> Floats:
    """Of the matrix that smooths by a kernel of ``width`` bins with reflection at both ends."""
    reach = min(int(kernel.width * width) + 1, 64 * bins)
    offsets = np.arange(-reach, reach + 1)
    values = kernel(offsets / width)
    folded = np.bincount(offsets % (2 * bins), weights=values / values.sum(), minlength=2 * bins)
    return np.fft.rfft(folded).real[:bins]


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
            return Ratio(np.zeros(len(ranked.times)), notes={"recency": "the topic has no time"})
        grid = TimeGrid(ranked.times, ranked.compared)
        if grid.span <= 0:
            return Ratio(np.zeros(len(ranked.times)))
        t_q = ranked.query_time
        best = Ratio(np.zeros(len(ranked.times)))
        size = effective_size(ranked.weights)
        for h in self._candidates(t_q, grid):
            log_mean = self._log_mean(t_q, grid, h)
            gain = float(ranked.weights @ self._log_kernel(t_q - ranked.first, h)) - log_mean if size else 0.0
            if gain > best.gain or not isinstance(self.bandwidth, str):
                best = Ratio(best.values, h, gain, size)
        if isinf(best.bandwidth):
            return best
        values = self._log_kernel(t_q - ranked.times, best.bandwidth) - self._log_mean(t_q, grid, best.bandwidth)
        values[grid.undated] = 0.0
        return Ratio(values, best.bandwidth, best.gain, best.size)

    def _candidates(self, t_q: float, grid: TimeGrid) -> list[float]:
        if not isinstance(self.bandwidth, str):
            return [self.bandwidth]
        longest = max(t_q - grid.low, 0.0)
        return np.geomspace(longest / 64, 4 * longest, self.tried).tolist() if longest > 0 else []

    def _log_mean(self, t_q: float, grid: TimeGrid, h: float) -> float:
        return float(np.log(grid.shares @ np.exp(self._log_kernel(t_q - grid.centres, h))))

    def _log_kernel(self, age: Floats, h: float) -> Floats:
        """log((1-ε) K(age/h)/K(0+) + ε); NaN stays NaN."""
        if isinf(h):
            return np.zeros(len(age))
        kernel = Kernel(self.kernel)
        with np.errstate(over="ignore"):
            relative = kernel(np.abs(age) / h) / _peak(self.kernel)
        relative[age < 0] = 0.0  # the future; at the query's own instant a document is as recent as can be
        return np.log((1.0 - self.floor) * relative + self.floor)


@lru_cache(maxsize=8)
def _peak(kernel: str) -> float:
    return float(Kernel(kernel)(0.0))


@dataclass(frozen=True)
class Density:
    """ρ = log((1-ε) f̂(t_D)/ĝ(t_D) + ε): where in time the evidence lies, against where all documents lie.

    Both densities are smoothed alike, so a relevance that follows the collection's volume has ρ = 0, and reflected at
    the ends. ``bandwidth`` in ms, "auto" (Silverman's rule for the weights, times ``narrower``) or "cv".
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
        nothing = Ratio(np.zeros(len(ranked.times)))
        grid = TimeGrid(ranked.times, ranked.compared)
        if grid.span <= 0 or len(ranked.first) == 0:
            return nothing
        h = self._choose(ranked, grid)
        if isinf(h):
            return nothing
        kernel = Kernel(self.kernel)
        f = grid.smoothed(grid.histogram(ranked.first, ranked.weights), kernel, h)
        g = grid.smoothed(grid.shares, kernel, h)
        ratio = np.divide(f, g, out=np.zeros(grid.bins), where=g > 1e-300)
        log_ratio = np.log((1.0 - self.floor) * ratio + self.floor)
        values = log_ratio[grid.bin_of]
        values[grid.undated] = 0.0
        gain = self._gain(ranked, grid, kernel, h, g)
        return Ratio(values, h, gain, effective_size(ranked.weights), price=2.0)

    def _choose(self, ranked: Ranked, grid: TimeGrid) -> float:
        """h in ms, never narrower than a bin and a half: below that the grid would show."""
        if self.bandwidth == "cv":
            h = likelihood_bandwidth(
                ranked.first, ranked.weights, self.kernel, bounds=(grid.low, grid.low + grid.span),
                candidates=np.geomspace(grid.span / 128, grid.span, 8),
            )  # fmt: skip
        elif isinstance(self.bandwidth, str):
            h = self.narrower * silverman(ranked.first, ranked.weights, self.kernel)
        else:
            h = self.bandwidth
        return max(h, 1.5 * grid.step)

    def _gain(self, ranked: Ranked, grid: TimeGrid, kernel: Kernel, h: float, g: Floats) -> float:
        """Σ_i r_i log((1-ε) f̂_(-i)(t_i)/ĝ(t_i) + ε), leaving out with a document all others of its instant."""
        t, r = ranked.first, ranked.weights
        apart = t[:, None] - t[None, :]
        pairs = kernel(apart / h)
        mirrored = kernel((t[:, None] + t[None, :] - 2 * grid.low) / h)
        mirrored += kernel((t[:, None] + t[None, :] - 2 * (grid.low + grid.span)) / h)
        others = apart != 0.0
        rest = others @ r
        if not (rest > 0).any():
            return 0.0  # one instant: nothing to leave out and still tell
        f = (others * (pairs + mirrored)) @ r / np.maximum(rest, 1e-300) * (grid.step / h)
        ratio = f / np.maximum(g[grid.bins_at(t)], 1e-300)
        return float(r @ np.log((1.0 - self.floor) * ratio + self.floor))


TimePrior = Recency | Density
# W, the weight where the evidence is beyond doubt; see docs/TIME.md for how it was chosen.
FULL_WEIGHT = {"recency": 0.5, "density": 0.3}


def make_prior(name: str, *, kernel: str | None = None, bandwidth: float | str = AUTO) -> TimePrior | None:
    """A prior by name (``none``, ``recency``, ``density``) with its own kernel unless another is given."""
    known: dict[str, type[Recency] | type[Density]] = {"recency": Recency, "density": Density}
    if name == "none":
        return None
    if name not in known:
        raise ParameterError(f"no time prior {name!r}", remedy="One of: none, recency, density.")
    made = known[name]
    return made(bandwidth=bandwidth) if kernel is None else made(kernel=kernel, bandwidth=bandwidth)


def spread(scores: Floats) -> float:
    """Standard deviation of the best scores (given in any order); 1 where they are all alike."""
    value = float(np.std(scores)) if len(scores) else 0.0
    return value if value > 0 and isfinite(value) else 1.0


def weight_of(prior: TimePrior, ratio: Ratio, weight: float | None) -> float:
    """w: as given, or what the evidence is worth."""
    return weight if weight is not None else FULL_WEIGHT[prior.name] * ratio.trust
