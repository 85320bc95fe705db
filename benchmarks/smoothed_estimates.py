"""The two classics that penalised estimates are compared with: linear interpolation (37) and discounting (40)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time import penalised
from sdretrieval.estimate.time.kernels import Floats
from sdretrieval.estimate.time.penalised import POWERS

METHODS = (*POWERS, "interpolation", "discounting")


def _check(what: str, value: float) -> None:
    if not value >= 0:
        raise ParameterError(f"{what} must be zero or positive, got {value}")


def interpolate(counts: ArrayLike, background: ArrayLike, strength: float) -> Floats:
    """Linear interpolation (37) with η = s/(N + s): (c_w + s q_w)/(N + s), that is, Dirichlet smoothing."""
    _check("the strength of an interpolation", strength)
    c, q = (np.asarray(x, dtype=np.float64) for x in (counts, background))
    total = c.sum() + strength
    return (c + strength * q) / total if total > 0 else q.copy()


def discount(counts: ArrayLike, background: ArrayLike, amount: float) -> Floats:
    """Absolute discounting (40): max(c_w - d, 0)/N + r q_w, r making it sum to one."""
    _check("a discount", amount)
    c, q = (np.asarray(x, dtype=np.float64) for x in (counts, background))
    total = c.sum()
    if total <= 0:
        return q.copy()
    kept = np.maximum(c - amount, 0.0) / total
    return kept + (1.0 - kept.sum()) * q


def estimate(counts: ArrayLike, background: ArrayLike, strength: float, method: str = "sparse.5") -> Floats:
    """θ by any of the five methods, at the given strength (s, or the discount d)."""
    if method == "interpolation":
        return interpolate(counts, background, strength)
    if method == "discounting":
        return discount(counts, background, strength)
    if method not in POWERS:
        raise ParameterError(f"no method {method!r}", remedy=f"Choose one of: {', '.join(METHODS)}.")
    return penalised.estimate(counts, background, strength, method)
