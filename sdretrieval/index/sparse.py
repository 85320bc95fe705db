"""Sparse matrices turned about and appended to, compiled: the snapshot keeps its counts in both directions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sdretrieval.core.array_folder import read_only
from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import IndexProblem


def postings_by_term(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Documents and counts of each term, from the arrays of a snapshot: kept there, or else made of the rows."""
    docs, counts, ptr = arrays["term_docs"], arrays["term_counts"], arrays["term_ptr"]
    if len(docs) == len(counts) == ptr[-1]:
        return docs, counts
    rows = arrays["doc_ptr"], arrays["doc_terms"], row_counts(arrays)
    found = np.empty_like(ptr), np.empty(len(rows[1]), np.int32), np.empty(len(rows[1]), np.int32)
    transpose(*rows, *found)
    if not np.array_equal(found[0], ptr):
        raise IndexProblem("a snapshot's counts by document are not those by word", remedy="Delete the snapshot.")
    return read_only(found[1]), read_only(found[2])


def row_counts(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The counts of the documents' rows, in two bytes each or in four."""
    return arrays["doc_counts"] if len(arrays["doc_counts"]) else arrays["large_counts"]


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


@njit(cache=True, nogil=True)
def row_values(ptr, columns, values, wanted_ptr, wanted_columns, rows):
    """The values at some rows of each wanted column; 0 where there is none. Columns ascend in a row."""
    found = np.zeros(len(rows), np.int32)
    for i in range(len(wanted_columns)):
        for j in range(wanted_ptr[i], wanted_ptr[i + 1]):
            low, high = ptr[rows[j]], ptr[rows[j] + 1]
            while low < high:
                middle = (low + high) // 2
                if columns[middle] < wanted_columns[i]:
                    low = middle + 1
                else:
                    high = middle
            if low < ptr[rows[j] + 1] and columns[low] == wanted_columns[i]:
                found[j] = values[low]
    return found


@njit(cache=True, nogil=True)
def counts_below(ptr, columns, counts, limit):
    """How many entries of each row stand in columns below ``limit``, and their sums. Columns ascend in a row."""
    n = np.zeros(len(ptr) - 1, dtype=np.int64)
    total = np.zeros(len(ptr) - 1, dtype=np.int64)
    for i in range(len(ptr) - 1):
        for k in range(ptr[i], ptr[i + 1]):
            if columns[k] >= limit:
                break
            n[i] += 1
            total[i] += counts[k]
    return n, total


@njit(cache=True, nogil=True)
def interleave(starts, lengths, ptr, columns, counts, more_columns, more_counts, shift, out_columns, out_counts):
    """Rows of two matrices side by side: row i is a piece of the first, then one of the second, ``shift`` further."""
    for i in range(len(ptr) - 1):
        place, n = ptr[i], lengths[0, i]
        out_columns[place : place + n] = columns[starts[0, i] : starts[0, i] + n]
        out_counts[place : place + n] = counts[starts[0, i] : starts[0, i] + n]
        for k in range(lengths[1, i]):
            out_columns[place + n + k] = more_columns[starts[1, i] + k] + shift
            out_counts[place + n + k] = more_counts[starts[1, i] + k]
