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
from scipy.special import xlogy

from sdretrieval.estimate.distributions import density_loops as loops
from sdretrieval.estimate.distributions.fitting import OfSmoothedModels
from sdretrieval.estimate.distributions.general_english import checked_documents, log_powers, log_ratio_sums


@dataclass(frozen=True, eq=False)
class SmoothedDirichlet(OfSmoothedModels):
    """α, and what documents are smoothed with."""

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
        """The geometric mean (3.33) of the documents' smoothed models. S is free to choose: it does not change α/S."""
        matrix, w, ge = checked_documents(counts, weights, smoothing, scale, background, background_additive)
        alpha = np.empty((matrix.shape[1], 1))
        log_sums = log_ratio_sums(matrix, w, ge, smoothing)
        loops.geometric_means(log_sums, np.array([w.sum()]), ge, float(scale), alpha, np.empty(1))
        used = w > 0.0
        densities = cls(alpha[:, 0], smoothing, ge).log_density(matrix[used])
        return cls(alpha[:, 0], smoothing, ge, log_likelihood_path=np.array([w[used] @ densities]))

    def log_density(self, counts: Any) -> np.ndarray:
        """log of (3.25) at each document's smoothed model."""
        s = self.scale
        normaliser = s * np.log(s) - float(xlogy(self.alpha, self.alpha).sum())
        return normaliser + log_powers(counts, self.alpha, self.smoothing, self.background)
