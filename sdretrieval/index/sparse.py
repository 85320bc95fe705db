"""Sparse matrices turned about, compiled: the snapshot keeps its counts in both directions."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def transpose(ptr, columns, counts, out_ptr, out_columns, out_counts):
    """A sparse matrix by rows to the same by columns (counting sort): rows come out ascending in each column."""
    n = len(out_ptr) - 1
    out_ptr[:] = 0
    for k in range(len(columns)):
        out_ptr[columns[k] + 1] += 1
    for j in range(n):
        out_ptr[j + 1] += out_ptr[j]
    cursor = out_ptr[:-1].copy()
    for i in range(len(ptr) - 1):
        for k in range(ptr[i], ptr[i + 1]):
            place = cursor[columns[k]]
            out_columns[place] = i
            out_counts[place] = counts[k]
            cursor[columns[k]] = place + 1
