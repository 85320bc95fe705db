"""The (approximate) smoothed Dirichlet: a density over smoothed language models, with a closed-form fit.

    P_a(θ^D | α) = S^S / Π_j α_j^{α_j} · Π_j (θ^D_j)^{α_j - 1}                              (3.25)
    α̂ = S/Z · {Π_i θ^i}^{1/N}                                                               (3.28)
      = S/Z · {Π_i (1 + λ θ̂^i / ((1 - λ) θ^GE))}^{1/N} θ^GE                                 (3.33)

(3.33) is (3.28) with everything that unseen words share taken out: only words of the documents cost time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sdretrieval.distributions import loops
from sdretrieval.distributions.background import (
    as_counts,
    as_weights,
    check_background,
    check_smoothing,
    general_english,
    inverse,
    lengths,
    ratios,
)
from sdretrieval.errors import ParameterError


@dataclass(frozen=True, eq=False)
class SmoothedDirichlet:
    """α, and what documents are smoothed with: λ (``smoothing``) and θ^GE (``background``)."""

    alpha: np.ndarray
    smoothing: float
    background: np.ndarray
    log_likelihood: float = float("nan")
    n_iter: int = 0  # closed form
    converged: bool = True

    @property
    def scale(self) -> float:
        """S = Σ_j α_j."""
        return float(self.alpha.sum())

    @classmethod
    def fit(
        cls,
        counts: Any,
        weights: Any = None,
        *,
        smoothing: float = 0.9,
        scale: float = 1.0,
        background: Any = None,
        background_additive: float = 0.0,
    ) -> SmoothedDirichlet:
        """The geometric mean (3.33) of the documents' smoothed models.

        ``background`` is θ^GE, by default (4.10) of these documents with ``background_additive`` β. The scale S is a
        free parameter: it does not change α/S.
        """
        matrix = as_counts(counts)
        w = as_weights(weights, matrix.shape[0])
        check_smoothing(smoothing)
        check_scale(scale)
        ge = background_of(matrix, w, background, background_additive)
        log_sums = np.zeros((1, matrix.shape[1]))
        rows, bounds = np.arange(matrix.shape[0]), np.array([0, matrix.shape[0]])
        loops.sum_log_ratios(
            matrix.indptr, matrix.indices, matrix.data, rows, bounds, w, ratios(ge, smoothing),
            inverse(lengths(matrix)), log_sums,
        )  # fmt: skip
        alpha = np.empty((matrix.shape[1], 1))
        loops.geometric_means(log_sums, np.array([w.sum()]), ge, float(scale), alpha, np.empty(1))
        fitted = cls(alpha[:, 0], smoothing, ge)
        used = w > 0.0
        return cls(alpha[:, 0], smoothing, ge, float(w[used] @ fitted.log_density(matrix[used])))

    def log_density(self, counts: Any) -> np.ndarray:
        """log of (3.25) at each document's smoothed model."""
        from scipy.special import xlogy

        s = self.scale
        normaliser = s * np.log(s) - float(xlogy(self.alpha, self.alpha).sum())
        return normaliser + log_kernel(counts, self.alpha, self.smoothing, self.background)


def check_scale(scale: float | None) -> None:
    if scale is not None and not (scale > 0.0 and np.isfinite(scale)):
        raise ParameterError(f"the scale S must be positive, got {scale}")


def background_of(matrix, weights: np.ndarray, background: Any, additive: float) -> np.ndarray:
    """θ^GE, given or estimated; a word counted nowhere needs an additive count."""
    if background is not None:
        return check_background(background, matrix.shape[1])
    ge = general_english(matrix, additive, weights)
    if not (ge > 0.0).all():
        raise ParameterError(
            f"{int((ge == 0.0).sum())} of {len(ge)} terms occur nowhere and would have probability zero",
            remedy="Give them something with background_additive=0.1, or pass a background.",
        )
    return ge


def log_kernel(counts: Any, alpha: np.ndarray, smoothing: float, background: np.ndarray) -> np.ndarray:
    """Σ_j (α_j - 1) log θ^D_j over the whole vocabulary, by (4.29)."""
    matrix = as_counts(counts)
    n = lengths(matrix)
    scores = np.zeros((matrix.shape[0], 1))
    values = np.ascontiguousarray((alpha - 1.0)[:, None])
    loops.score_log_ratios(
        matrix.indptr, matrix.indices, matrix.data, ratios(background, smoothing), inverse(n), values, scores
    )
    at_rest = float((alpha - 1.0) @ np.log((1.0 - smoothing) * background))
    without_words = -float((alpha - 1.0).sum()) * np.log1p(-smoothing)  # its model is θ^GE, not (1 - λ) θ^GE
    return scores[:, 0] + at_rest + np.where(n > 0.0, 0.0, without_words)
