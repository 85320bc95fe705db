"""Sparse matrices turned about and appended to, compiled: the snapshot keeps its counts in both directions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sdretrieval.core.array_folder import read_only
from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import IndexProblem
from sdretrieval.index.rows import Rows, terms_by_row


def postings_by_term(arrays: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Documents and counts of each term, from the arrays of a snapshot: kept there, or else made of the rows."""
    docs, counts, ptr = arrays["term_docs"], arrays["term_counts"], arrays["term_ptr"]
    if len(docs) == len(counts) == ptr[-1]:
        return docs, counts
    rows = Rows.of(arrays)
    found = np.empty_like(ptr), np.empty(len(rows.words), np.int32), np.empty(len(rows.words), np.int32)
    terms_by_row(rows, *found)
    if not np.array_equal(found[0], ptr):
        raise IndexProblem("a snapshot's counts by document are not those by word", remedy="Delete the snapshot.")
    return read_only(found[1]), read_only(found[2])


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
