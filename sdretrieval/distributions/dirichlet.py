"""The Dirichlet over smoothed language models, fitted by maximum likelihood.

    P(θ | α) = Γ(S) / Π_j Γ(α_j) · Π_j θ_j^{α_j - 1}                     (3.1)
    ℓ(α)/N = log Γ(S) - Σ_j log Γ(α_j) + Σ_j (α_j - 1) L_j,   L_j = mean_i log θ^i_j

With S fixed, ℓ is concave and its maximum has ψ(α_j) = L_j + x for one x, the multiplier of Σ_j α_j = S:

    Φ(x) = Σ_j ψ⁻¹(L_j + x) = S                                          one equation in one unknown

ψ⁻¹ is convex and rising, so Newton's method comes down on the root without overshooting from
x_0 = ψ(S/V) - mean_j L_j (Jensen: Φ(x_0) >= S). With S free the maximum has x = ψ(S): again one equation, in S.
``method="fixed-point"`` is Minka's iteration (Estimating a Dirichlet distribution, 2000), as in the thesis: the same
maximum, slowly.

Words that a class has never seen and that are equally frequent elsewhere have the same L_j: they are solved once and
counted with their multiplicity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from sdretrieval.distributions import loops
from sdretrieval.distributions.background import as_counts, as_weights, check_smoothing, inverse, lengths, ratios
from sdretrieval.distributions.convergence import Convergence
from sdretrieval.distributions.smoothed_dirichlet import background_of, check_scale, log_kernel
from sdretrieval.distributions.special import digamma, inverse_digamma
from sdretrieval.errors import ParameterError

METHODS = ("newton", "fixed-point")
LARGEST_SCALE = 1e9  # beyond it the documents differ less than a Dirichlet can say


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """α, what documents are smoothed with, and how the fit ended."""

    alpha: np.ndarray
    smoothing: float
    background: np.ndarray
    n_iter: int = 0
    converged: bool = True
    log_likelihood_path: np.ndarray | None = None

    @property
    def scale(self) -> float:
        """S = Σ_j α_j."""
        return float(self.alpha.sum())

    @property
    def log_likelihood(self) -> float:
        path = self.log_likelihood_path
        return float("nan") if path is None or not len(path) else float(path[-1])

    @classmethod
    def fit(
        cls,
        counts: Any,
        weights: Any = None,
        *,
        smoothing: float = 0.9,
        scale: float | None = None,
        background: Any = None,
        background_additive: float = 0.0,
        method: str = "newton",
        tolerance: float = 1e-8,
        max_iter: int = 1000,
    ) -> Dirichlet:
        """Maximum likelihood with the ``scale`` S fixed, or estimated where it is None."""
        matrix = as_counts(counts)
        w = as_weights(weights, matrix.shape[0])
        check_smoothing(smoothing)
        check_scale(scale)
        ge = background_of(matrix, w, background, background_additive)
        log_sums = np.zeros((1, matrix.shape[1]))
        n = lengths(matrix)
        rows, bounds = np.arange(matrix.shape[0]), np.array([0, matrix.shape[0]])
        loops.sum_log_ratios(
            matrix.indptr, matrix.indices, matrix.data, rows, bounds, w, ratios(ge, smoothing), inverse(n), log_sums
        )
        total = float(w.sum())
        empty = float(w[n == 0.0].sum())  # their model is θ^GE, not (1 - λ) θ^GE
        means = log_sums[0] / total + np.log((1.0 - smoothing) * ge) - empty / total * np.log1p(-smoothing)
        alpha, ended = fit_alpha(means, np.ones(len(means)), scale, method, tolerance, max_iter, weight=total)
        ended.warn("the Dirichlet's fit")
        return cls(alpha, smoothing, ge, ended.n_iter, ended.converged, ended.log_likelihood)

    def log_density(self, counts: Any) -> np.ndarray:
        """log of (3.1) at each document's smoothed model."""
        from scipy.special import gammaln

        normaliser = gammaln(self.scale) - float(gammaln(self.alpha).sum())
        return normaliser + log_kernel(counts, self.alpha, self.smoothing, self.background)


def fit_alpha(
    means: np.ndarray,
    multiplicity: np.ndarray,
    scale: float | None,
    method: str = "newton",
    tolerance: float = 1e-8,
    max_iter: int = 1000,
    *,
    weight: float = 1.0,
    path: bool = True,
) -> tuple[np.ndarray, Convergence]:
    """α from L_j (``means``), each standing for ``multiplicity`` words; the path is ``weight`` · ℓ/N."""
    if method not in METHODS:
        raise ParameterError(f"unknown method {method!r}", remedy=f"One of: {', '.join(METHODS)}.")
    steps: list[float] = []

    def note(alpha: np.ndarray) -> None:
        if path:
            steps.append(weight * _mean_log_likelihood(alpha, means, multiplicity))

    if method == "newton":
        solve = _newton_fixed if scale is not None else _newton_free
        alpha, n_iter, converged = solve(means, multiplicity, scale, tolerance, max_iter, note)
    else:
        alpha, n_iter, converged = _fixed_point(means, multiplicity, scale, tolerance, max_iter, note)
    return alpha, Convergence(n_iter, converged, np.array(steps))


def _mean_log_likelihood(alpha: np.ndarray, means: np.ndarray, multiplicity: np.ndarray) -> float:
    from scipy.special import gammaln

    return float(gammaln(multiplicity @ alpha) + multiplicity @ ((alpha - 1.0) * means - gammaln(alpha)))


@njit(cache=True, nogil=True)
def _levels(means, multiplicity, x, step, alpha, slope):
    """ψ⁻¹(L_j + x) for every j into ``alpha``, its derivative into ``slope``; Σ and Σ of derivatives returned.

    ``step`` is how far x moved since the last call: the tangent there is a starting point from the left.
    """
    total, rise = 0.0, 0.0
    for j in range(len(means)):
        start = alpha[j] + step * slope[j]
        alpha[j], curvature = inverse_digamma(means[j] + x, start)
        slope[j] = 1.0 / curvature
        total += multiplicity[j] * alpha[j]
        rise += multiplicity[j] * slope[j]
    return total, rise


def _newton_fixed(means, multiplicity, scale, tolerance, max_iter, note):
    alpha, slope = np.zeros(len(means)), np.zeros(len(means))
    words = multiplicity.sum()
    x, step = digamma(scale / words) - float(multiplicity @ means) / words, 0.0
    converged, iteration, total = False, 0, scale
    while iteration < max_iter and not converged:
        iteration += 1
        total, rise = _levels(means, multiplicity, x, step, alpha, slope)
        note(alpha * (scale / total))
        converged = abs(total - scale) <= tolerance * scale
        step = (scale - total) / rise
        x += step
    return alpha * (scale / total), iteration, converged


def _newton_free(means, multiplicity, scale, tolerance, max_iter, note):
    from scipy.optimize import brentq

    alpha, slope = np.zeros(len(means)), np.zeros(len(means))
    calls = 0

    def excess(log_scale: float) -> float:
        """log Φ(ψ(S)) - log S: positive where a larger S is more likely."""
        nonlocal calls
        calls += 1
        alpha[:] = 0.0  # from Minka's starting points: the bracket jumps too far for tangents
        total, _ = _levels(means, multiplicity, digamma(np.exp(log_scale)), 0.0, alpha, slope)
        note(alpha)
        return float(np.log(total) - log_scale)

    low = high = np.log(max(multiplicity.sum(), 1.0))
    while excess(low) < 0.0 and low > -20.0:
        low -= 1.5
    while excess(high) > 0.0 and high < np.log(LARGEST_SCALE):
        high += 1.5
    if excess(low) < 0.0 or excess(high) > 0.0:
        return alpha.copy(), calls, False
    root = brentq(excess, low, high, xtol=tolerance, rtol=max(tolerance, 1e-14), maxiter=max_iter)
    excess(root)
    return alpha.copy(), calls, True


def _fixed_point(means, multiplicity, scale, tolerance, max_iter, note):
    """Minka's (9) with S free; with S fixed the same for the mean (his section 1.2)."""
    from scipy.special import psi

    words = multiplicity.sum()
    total = float(scale if scale is not None else words)
    alpha = np.full(len(means), total / words)
    slope = np.zeros(len(means))
    for iteration in range(1, max_iter + 1):
        previous = alpha.copy()
        shift = psi(total) if scale is None else float((multiplicity * alpha) @ (psi(alpha) - means)) / total
        alpha = previous.copy()
        _levels(means, multiplicity, shift, 0.0, alpha, slope)
        if scale is None:
            total = float(multiplicity @ alpha)
        else:
            alpha *= scale / float(multiplicity @ alpha)
        note(alpha)
        if (np.abs(alpha - previous) <= tolerance * previous).all():
            return alpha, iteration, True
    return alpha, max_iter, False
