"""How far θ̂_t is from θ_t: bias and variance, exact and asymptotic, mse and mise. Paper 2009, sections 3.2-3.4.

Legend: θ_t the true drift, θ̇ and θ̈ its derivatives, g the density of document times, n documents of mean length λ,
h the bandwidth, μ_kl = ∫ r^k K^l (:meth:`Kernel.moment`), V_t = diag(θ_t) - θ_t θ_tᵀ.

Three places where the printed formulas are not what the expansion gives; the forms here agree with (11)-(12) and with
simulation, and the tests show both:

* **(14), online bias**: with r = t - τ > 0 the data lie *behind* t, hence -h μ_11 θ̇; the print has +. (The proof sets
  t = 0 and writes K_h(τ) for K_h(t - τ), which only the symmetric kernel forgives.)
* **(14), online variance**: for the same reason both μ_12 terms change sign, and expanding the denominator to the same
  order adds 2 μ_11 μ_02 g'/g² V / (nλ), of the order of the terms that are printed.
* **(21)**: as printed it is the mse at h = n^(-1/5), not at the minimiser. inf_h (A h⁴ + B/(nh)) is
  (5/4) (4A)^(1/5) B^(4/5) n^(-4/5). The rate stands.

And as read from the definition of μ_02, the first bracket of Corollary 3 is squared; the first bracket of Corollary 1
holds θ̇, not θ̂.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel

# -- exact: given the times and lengths ------------------------------------------------------------------------------


def _window(t: float, times: Floats, kernel: Kernel, bandwidth: float, lengths: Floats) -> tuple[Floats, float]:
    weights = kernel.weights(t - times, bandwidth)
    total = float(weights @ lengths)
    if total <= 0:
        raise ParameterError(f"no document lies within the kernel's reach of time {t}", remedy="Widen the bandwidth.")
    return weights, total


def exact_bias(theta, times, lengths, t, bandwidth, *, kernel="tricube") -> Floats:
    """E θ̂_t - θ_t, a vector (11). ``theta`` maps times to a times x words array."""
    times, lengths = np.asarray(times, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    weights, total = _window(t, times, as_kernel(kernel), bandwidth, lengths)
    inside = weights > 0
    return (weights * lengths)[inside] @ (theta(times[inside]) - theta(np.array([t]))) / total


def exact_variance(theta, times, lengths, t, bandwidth, *, kernel="tricube", covariance=False) -> Floats:
    """Var θ̂_t (12): its diagonal, or with ``covariance`` the words x words matrix."""
    times, lengths = np.asarray(times, dtype=np.float64), np.asarray(lengths, dtype=np.float64)
    weights, total = _window(t, times, as_kernel(kernel), bandwidth, lengths)
    inside = weights > 0
    around = theta(times[inside])
    squares = (weights**2 * lengths)[inside]
    if not covariance:
        return np.asarray(squares @ (around * (1 - around)) / total**2)
    return (np.diag(squares @ around) - (around * squares[:, None]).T @ around) / total**2


def exact_mse(theta, times, lengths, t, bandwidth, *, kernel="tricube") -> Floats:
    """Squared bias plus variance, by word."""
    bias = exact_bias(theta, times, lengths, t, bandwidth, kernel=kernel)
    return bias**2 + exact_variance(theta, times, lengths, t, bandwidth, kernel=kernel)


def exact_mise(theta, times, lengths, grid, bandwidth, *, kernel="tricube") -> Floats:
    """∫ mse dt over the grid by the trapezoid rule, by word (16)."""
    grid = np.asarray(grid, dtype=np.float64)
    values = [exact_mse(theta, times, lengths, float(t), bandwidth, kernel=kernel) for t in grid]
    return np.trapezoid(np.array(values), grid, axis=0)


def integrated_squared_error(estimate: Floats, truth: Floats, grid: ArrayLike) -> Floats:
    """∫ (θ̂_t - θ_t)² dt by word (15); both are times x words on the grid."""
    return np.asarray(np.trapezoid((estimate - truth) ** 2, np.asarray(grid, dtype=np.float64), axis=0))


# -- asymptotic: as h → 0 and nh → ∞ -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DriftPoint:
    """What the expansions need to know of one instant."""

    theta: Floats  # θ_t
    velocity: Floats  # θ̇_t
    acceleration: Floats  # θ̈_t
    density: float  # g(t)
    density_slope: float  # g'(t)
    documents: int  # n
    mean_length: float  # λ

    @property
    def curvature(self) -> Floats:
        """θ̇ g'/g + θ̈/2, what the offline bias is made of."""
        return self.velocity * self.density_slope / self.density + self.acceleration / 2

    @property
    def spread(self) -> Floats:
        """θ_i (1 - θ_i), the diagonal of V."""
        return self.theta * (1 - self.theta)


def asymptotic_bias(point: DriftPoint, bandwidth: float, *, kernel: str | Kernel = "tricube") -> Floats:
    """Offline h² μ_21 (θ̇ g'/g + θ̈/2) (13); online -h μ_11 θ̇ (14, sign mended)."""
    kernel = as_kernel(kernel)
    if kernel.online:
        return -bandwidth * kernel.moment(1, 1) * point.velocity
    return bandwidth**2 * kernel.moment(2, 1) * point.curvature


def asymptotic_variance(point: DriftPoint, bandwidth: float, *, kernel: str | Kernel = "tricube") -> Floats:
    """The diagonal of Var θ̂_t: (13) offline; online (14) with the signs and the missing term mended."""
    kernel = as_kernel(kernel)
    n, lam, g, slope = point.documents, point.mean_length, point.density, point.density_slope
    leading = kernel.moment(0, 2) / (n * bandwidth * g * lam) * point.spread
    if not kernel.online:
        return leading
    moving = point.velocity * (1 - 2 * point.theta)  # the diagonal of V̇
    mu_12, mu_11, mu_02 = kernel.moment(1, 2), kernel.moment(1, 1), kernel.moment(0, 2)
    return (
        leading + (2 * mu_11 * mu_02 - mu_12) * slope / (n * lam * g**2) * point.spread - mu_12 / (n * lam * g) * moving
    )


def asymptotic_mse(point: DriftPoint, bandwidth: float, *, kernel: str | Kernel = "tricube") -> Floats:
    """Corollary 1, by word."""
    bias = asymptotic_bias(point, bandwidth, kernel=kernel)
    return bias**2 + asymptotic_variance(point, bandwidth, kernel=kernel)


def asymptotic_mise(
    points: list[DriftPoint], grid: ArrayLike, bandwidth: float, *, kernel: str | Kernel = "tricube"
) -> Floats:
    """Corollary 3 (and its online counterpart) by the trapezoid rule over the grid, by word."""
    values = np.array([asymptotic_mse(point, bandwidth, kernel=kernel) for point in points])
    return np.trapezoid(values, np.asarray(grid, dtype=np.float64), axis=0)


def optimal_bandwidth(point: DriftPoint, *, kernel: str | Kernel = "tricube") -> float:
    """The h that minimises the leading terms of Σ_i mse([θ̂_t]_i): (20) offline.

    Online, from Corollary 1: h³ = μ_02 tr V / (2 n λ g μ_11² Σ θ̇²). Infinite where nothing drifts.
    """
    kernel = as_kernel(kernel)
    variance = kernel.moment(0, 2) * point.spread.sum() / (point.documents * point.mean_length * point.density)
    if kernel.online:
        squared = kernel.moment(1, 1) ** 2 * float((point.velocity**2).sum())
        return float((variance / (2 * squared)) ** (1 / 3)) if squared > 0 else inf
    squared = kernel.moment(2, 1) ** 2 * float((point.curvature**2).sum())
    return float((variance / (4 * squared)) ** 0.2) if squared > 0 else inf


def minimal_mse(point: DriftPoint, *, kernel: str | Kernel = "tricube") -> float:
    """inf_h of the leading terms of Σ_i mse: Proposition 3 offline, with the constant (21) ought to have."""
    kernel = as_kernel(kernel, online=False)
    a = kernel.moment(2, 1) ** 2 * float((point.curvature**2).sum())
    b = kernel.moment(0, 2) * float(point.spread.sum()) / (point.mean_length * point.density)
    return 1.25 * (4 * a) ** 0.2 * b**0.8 * point.documents**-0.8
