"""The Dirichlet over smoothed language models, fitted by maximum likelihood.

    P(θ | α) = Γ(S) / Π_j Γ(α_j) · Π_j θ_j^{α_j - 1}                     (3.1)
    ℓ(α)/N = log Γ(S) - Σ_j log Γ(α_j) + Σ_j (α_j - 1) L_j,   L_j = mean_i log θ^i_j

With S fixed, ℓ is concave and its maximum has ψ(α_j) = L_j + x: the level x of
:mod:`~sdretrieval.estimate.distributions.fitting`. ψ⁻¹ is convex and rising, and Φ(x_0) >= S at
x_0 = ψ(S/V) - mean_j L_j (Jensen). With S free the maximum has x = ψ(S).

Words that a class has never seen and that are equally frequent elsewhere have the same L_j: they are solved once and
counted with their multiplicity.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from scipy.special import gammaln, psi

from sdretrieval.core.compiled import njit
from sdretrieval.estimate.distributions.fitting import (
    Convergence,
    OfSmoothedModels,
    digamma,
    inverse_digamma,
    solve_alpha,
)
from sdretrieval.estimate.distributions.general_english import checked_documents, lengths, log_powers, log_ratio_sums


@dataclass(frozen=True, eq=False)
class Dirichlet(OfSmoothedModels):
    """α, what documents are smoothed with, and how the fit ended."""

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
        matrix, w, ge = checked_documents(counts, weights, smoothing, scale, background, background_additive)
        total = float(w.sum())
        empty = float(w[lengths(matrix) == 0.0].sum())  # their model is θ^GE, not (1 - λ) θ^GE
        means = log_ratio_sums(matrix, w, ge, smoothing)[0] / total
        means = means + np.log((1.0 - smoothing) * ge) - empty / total * np.log1p(-smoothing)
        alpha, ended = fit_alpha(means, np.ones(len(means)), scale, method, tolerance, max_iter, weight=total)
        ended.warn("the Dirichlet's fit")
        return cls(alpha, smoothing, ge, **vars(ended))

    def log_density(self, counts: Any) -> np.ndarray:
        """log of (3.1) at each document's smoothed model."""
        normaliser = gammaln(self.scale) - float(gammaln(self.alpha).sum())
        return normaliser + log_powers(counts, self.alpha, self.smoothing, self.background)


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
    return solve_alpha(_MeanLogs(means, multiplicity, weight), scale, method, tolerance, max_iter, path=path)


@dataclass(frozen=True, eq=False)
class _MeanLogs:
    """L_j, the number of words each stands for, and what ℓ/N is multiplied with."""

    means: np.ndarray
    multiplicity: np.ndarray
    weight: float

    largest_scale = 1e9  # beyond it the documents differ less than a Dirichlet can say

    @property
    def n_alphas(self) -> int:
        return len(self.means)

    @property
    def usual_scale(self) -> float:
        return max(float(self.multiplicity.sum()), 1.0)

    def levels(self, x: float, step: float, alpha: np.ndarray, slope: np.ndarray) -> tuple[float, float]:
        return _levels(self.means, self.multiplicity, x, step, alpha, slope)

    def start(self, scale: float) -> float:
        words = self.multiplicity.sum()
        return digamma(scale / words) - float(self.multiplicity @ self.means) / words

    def least_step(self, x: float) -> float:
        return -inf

    def level_of(self, scale: float) -> float:
        return digamma(scale)

    def minka(self, alpha: np.ndarray | None, scale: float | None) -> np.ndarray:
        """His (9) with S free; with S fixed the same for the mean (his section 1.2)."""
        words = self.multiplicity.sum()
        if alpha is None:
            return np.full(len(self.means), float(words if scale is None else scale) / words)
        if scale is None:
            shift = psi(float(self.multiplicity @ alpha))
        else:
            shift = float((self.multiplicity * alpha) @ (psi(alpha) - self.means)) / scale
        found = alpha.copy()
        self.levels(shift, 0.0, found, np.zeros(len(found)))
        return found if scale is None else found * (scale / float(self.multiplicity @ found))

    def log_likelihood(self, alpha: np.ndarray) -> float:
        mean = gammaln(self.multiplicity @ alpha) + self.multiplicity @ ((alpha - 1.0) * self.means - gammaln(alpha))
        return self.weight * float(mean)


@njit(cache=True, nogil=True)
def _levels(means, multiplicity, x, step, alpha, slope):
    """ψ⁻¹(L_j + x) for every j into ``alpha``, its derivative into ``slope``; Σ and Σ of derivatives returned."""
    total, rise = 0.0, 0.0
    for j in range(len(means)):
        start = alpha[j] + step * slope[j]
        alpha[j], curvature = inverse_digamma(means[j] + x, start)
        slope[j] = 1.0 / curvature
        total += multiplicity[j] * alpha[j]
        rise += multiplicity[j] * slope[j]
    return total, rise
