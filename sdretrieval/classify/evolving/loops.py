"""The compiled inner loop of the neighbour graph."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def products(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, lists: np.ndarray, rows: np.ndarray, values: np.ndarray,
    start: int, out: np.ndarray,
) -> None:  # fmt: skip
    """out[i] = (X Xᵀ)[start + i], dense, for sparse X by rows and by columns (``lists``, ``rows``, ``values``).

    Each sum runs over the features in order, so that equal rows get equal bits whatever their positions.
    """
    out[:] = 0.0
    for i in range(out.shape[0]):
        for k in range(indptr[start + i], indptr[start + i + 1]):
            feature, value = indices[k], data[k]
            for m in range(lists[feature], lists[feature + 1]):
                out[i, rows[m]] += value * values[m]
