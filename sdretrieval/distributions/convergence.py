"""What an iterative fit says about itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, eq=False)
class Convergence:
    """How a fit ended; ``log_likelihood`` is its path, the last value that of the result."""

    n_iter: int
    converged: bool
    log_likelihood: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def warn(self, what: str) -> None:
        if not self.converged:
            from sklearn.exceptions import ConvergenceWarning

            warnings.warn(
                f"{what} did not converge in {self.n_iter} iterations; raise max_iter or fix the scale S",
                ConvergenceWarning,
                stacklevel=3,
            )
