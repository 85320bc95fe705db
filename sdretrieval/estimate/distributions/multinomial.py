"""The multinomial: words drawn one by one, each from the same θ.

P(f | θ) = |D|! / Π_j f_j! · Π_j θ_j^{f_j}
θ̂_j = Σ_i f^i_j / Σ_i |D_i|                                  (4.7)
θ_j = (Σ_i f^i_j + δ) / (Σ_i |D_i| + V δ)                     (4.8)  Laplace
θ_j = λ θ̂_j + (1 - λ) θ^GE_j                                  (4.9)  Jelinek-Mercer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions.fitting import Distribution
from sdretrieval.estimate.distributions.general_english import (
    as_counts,
    as_weights,
    check_additive,
    check_background,
    check_smoothing,
    from_totals,
    lengths,
)


@dataclass(frozen=True, eq=False)
class Multinomial(Distribution):
    """θ, one probability for each term.

    >>> Multinomial.fit([[2, 1, 1], [2, 1, 1]]).theta.tolist()
    [0.5, 0.25, 0.25]
    """

    theta: np.ndarray

    @classmethod
    def fit(
        cls,
        counts: Any,
        weights: Any = None,
        *,
        additive: float = 0.0,
        smoothing: float | None = None,
        background: Any = None,
    ) -> Multinomial:
        """Maximum likelihood (4.7), with ``additive`` δ (4.8), mixed with a ``background`` by ``smoothing`` λ (4.9)."""
        matrix = as_counts(counts)
        w = as_weights(weights, matrix.shape[0])
        check_additive(additive)
        theta = from_totals(np.asarray(matrix.T @ w), additive)
        if smoothing is not None:
            check_smoothing(smoothing)
            if background is None:
                raise ParameterError("smoothing needs a background", remedy="Pass background=general_english(counts).")
            theta = smoothing * theta + (1.0 - smoothing) * check_background(background, matrix.shape[1])
        used = w > 0.0
        return cls(theta, log_likelihood_path=np.array([w[used] @ cls(theta).log_density(matrix[used])]))

    def log_density(self, counts: Any, *, coefficient: bool = True) -> np.ndarray:
        """log P(f | θ, |D|); without the multinomial ``coefficient`` that of one order of the words."""
        matrix = as_counts(counts)
        with np.errstate(divide="ignore"):
            log_theta = np.log(self.theta)
        found = matrix.copy()
        found.eliminate_zeros()  # 0 · log 0 = 0
        found.data = found.data * log_theta[found.indices]
        return np.asarray(found.sum(axis=1)).ravel() + (log_coefficient(matrix) if coefficient else 0.0)


def log_coefficient(matrix) -> np.ndarray:
    """log |D|! / Π f_j!"""
    orders = matrix.copy()
    orders.data = gammaln(orders.data + 1.0)
    return np.asarray(gammaln(lengths(matrix) + 1.0) - np.asarray(orders.sum(axis=1)).ravel())
