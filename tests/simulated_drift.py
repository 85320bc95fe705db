"""Drifts that are known exactly, to try estimators on.

    θ_t = softmax(η(t)),   η_w(t) = a_w + b_w sin(2π f_w x (1 + κ x) + φ_w),   x = (t - start) / (end - start)

Always inside the simplex, smooth, with derivatives in closed form. κ (``chirp``) makes the drift speed up over time.
Document times are drawn from g(t), uniform or linearly rising; lengths are Poisson, independent of t, as the paper
assumes. ``concentration`` makes documents bursty: each draws its own distribution from a Dirichlet around θ_t, which
real text resembles more than the multinomial does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import pi

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, vstack

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Floats


@dataclass(frozen=True, eq=False)
class SimulatedDrift:
    """θ_t, its derivatives, the density of times g, and samples from all of it."""

    log_base: Floats  # a
    amplitude: Floats  # b
    cycles: Floats  # f, over the whole span
    phase: Floats  # φ
    start: float = 0.0
    end: float = 1.0
    chirp: float = 0.0  # κ
    density_slope: float = field(default=0.0)  # g(t) = (1 + s (2x - 1)) / (end - start), -1 < s < 1

    def __post_init__(self) -> None:
        if not self.end > self.start:
            raise ParameterError(f"a drift needs start < end, got {self.start} and {self.end}")
        if not -1 < self.density_slope < 1:
            raise ParameterError(f"density_slope must be in (-1, 1), got {self.density_slope}")

    @property
    def span(self) -> float:
        return self.end - self.start

    @property
    def n_words(self) -> int:
        return len(self.log_base)

    def _eta(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """η, η̇, η̈ as times x words."""
        x = ((np.atleast_1d(np.asarray(t, dtype=np.float64)) - self.start) / self.span)[:, None]
        angle = 2 * pi * self.cycles * x * (1 + self.chirp * x) + self.phase
        first = 2 * pi * self.cycles * (1 + 2 * self.chirp * x) / self.span
        second = 4 * pi * self.cycles * self.chirp / self.span**2
        sin, cos = self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)
        return self.log_base + sin, cos * first, cos * second - sin * first**2

    def theta(self, t: ArrayLike) -> Floats:
        """θ_t, times x words."""
        eta = self._eta(t)[0]
        weight = np.exp(eta - eta.max(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def velocity(self, t: ArrayLike) -> Floats:
        """θ̇_t = θ (η̇ - E η̇)."""
        theta, (_, d1, _) = self.theta(t), self._eta(t)
        return theta * (d1 - (theta * d1).sum(axis=1, keepdims=True))

    def acceleration(self, t: ArrayLike) -> Floats:
        """θ̈_t = θ ((η̇ - E η̇)² - Var η̇ + η̈ - E η̈)."""
        theta, (_, d1, d2) = self.theta(t), self._eta(t)
        centred = d1 - (theta * d1).sum(axis=1, keepdims=True)
        spread = (theta * centred**2).sum(axis=1, keepdims=True)
        return theta * (centred**2 - spread + d2 - (theta * d2).sum(axis=1, keepdims=True))

    def density(self, t: ArrayLike) -> Floats:
        """g(t)."""
        x = (np.asarray(t, dtype=np.float64) - self.start) / self.span
        inside = (x >= 0) & (x <= 1)
        return np.where(inside, (1 + self.density_slope * (2 * x - 1)) / self.span, 0.0)

    def density_derivative(self) -> float:
        """g'(t), the same everywhere inside."""
        return 2 * self.density_slope / self.span**2

    def sample_times(self, n: int, rng: np.random.Generator) -> Floats:
        u, s = rng.random(n), self.density_slope
        if s == 0:
            x = u
        else:  # invert F(x) = (1 - s) x + s x²
            x = (-(1 - s) + np.sqrt((1 - s) ** 2 + 4 * s * u)) / (2 * s)
        return np.sort(self.start + self.span * x)

    def sample(
        self,
        n: int,
        mean_length: float,
        rng: np.random.Generator,
        *,
        times: ArrayLike | None = None,
        lengths: NDArray[np.int64] | None = None,
        concentration: float | None = None,
    ) -> tuple[csr_matrix, Floats]:
        """(documents x words counts, times) of n documents; times and lengths may be given instead of drawn."""
        stamps = self.sample_times(n, rng) if times is None else np.asarray(times, dtype=np.float64)
        if lengths is None:
            lengths = rng.poisson(mean_length, len(stamps))
        parts = []
        for first in range(0, len(stamps), 1000):
            chunk = slice(first, first + 1000)
            theta = self.theta(stamps[chunk])
            if concentration is not None:
                gammas = rng.standard_gamma(concentration * theta) + 1e-300
                theta = gammas / gammas.sum(axis=1, keepdims=True)
            parts.append(csr_matrix(rng.multinomial(lengths[chunk], theta)))
        return csr_matrix(vstack(parts)) if parts else csr_matrix((0, self.n_words), dtype=np.int64), stamps


def random_drift(
    n_words: int,
    rng: np.random.Generator,
    *,
    amplitude: float = 1.0,
    cycles: float = 1.0,
    zipf: float = 1.0,
    start: float = 0.0,
    end: float = 1.0,
    chirp: float = 0.0,
    density_slope: float = 0.0,
) -> SimulatedDrift:
    """A Zipfian vocabulary whose words come and go, each in its own phase and strength."""
    return SimulatedDrift(
        log_base=-zipf * np.log(np.arange(1, n_words + 1)),
        amplitude=amplitude * rng.uniform(0.2, 1.0, n_words),
        cycles=cycles * rng.uniform(0.5, 1.5, n_words),
        phase=rng.uniform(0, 2 * pi, n_words),
        start=start,
        end=end,
        chirp=chirp,
        density_slope=density_slope,
    )
