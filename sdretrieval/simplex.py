"""Euclidean projection onto the probability simplex (Duchi, Shalev-Shwartz, Singer & Chandra 2008).

    Π(y) = argmin ‖x - y‖² with x >= 0 and Σ x = 1;   Π(y) = max(0, y - τ) for the one τ that makes it sum to one.

τ is found by Michelot's rounds instead of sorting: take the mean excess over the entries still above it until none
falls out. Each round drops at least one entry, a handful of rounds are enough in practice, and nothing is allocated.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray


@njit(cache=True, nogil=True)
def simplex_threshold(y: NDArray) -> float:
    """τ of Π(y), y not empty."""
    n = len(y)
    total = 0.0
    for i in range(n):
        total += y[i]
    tau = (total - 1.0) / n
    kept = n
    while True:
        count, total = 0, 0.0
        for i in range(n):
            if y[i] > tau:
                count += 1
                total += y[i]
        if count == kept or count == 0:  # none left above: rounding alone, with entries all alike
            return tau
        tau = (total - 1.0) / count
        kept = count


@njit(cache=True, nogil=True)
def project_in_place(y: NDArray) -> None:
    """y ← Π(y). Summed once more at the end, so that rounding leaves no trace in Σ y = 1."""
    tau = simplex_threshold(y)
    total = 0.0
    for i in range(len(y)):
        y[i] = max(0.0, y[i] - tau)
        total += y[i]
    for i in range(len(y)):
        y[i] = y[i] / total if total > 0.0 else 1.0 / len(y)


def project(y: ArrayLike) -> NDArray[np.float64]:
    """Π(y) of a vector.

    >>> project([2.0, 0.0, 1.5]).tolist()
    [0.75, 0.0, 0.25]
    """
    result = np.array(y, dtype=np.float64)
    if result.ndim != 1 or not len(result) or not np.isfinite(result).all():
        raise ValueError("a vector of finite numbers is needed")
    project_in_place(result)
    return result
