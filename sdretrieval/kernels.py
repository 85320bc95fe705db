"""The inner loops, compiled by Numba: the only code here that is written for speed first.

Each one has a plain NumPy reading in the tests. Compiled code is cached on disk beside this file. All loops release
the GIL, none is parallel by itself, and none adds in an order that depends on threads.

    ptr, terms/docs, counts   a sparse matrix by rows (see snapshot.py)
    A, B, kind                evidence φ of a count (see ranking/weighting.py)
"""

from __future__ import annotations

from math import log, log1p

import numpy as np
from numba import njit

LOG, SATURATING, FLOORED = 0, 1, 2


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


@njit(inline="always")
def _phi(kind, count, a, b):
    if kind == LOG:
        return log(1.0 + count * a * b)
    if kind == SATURATING:
        return a * count / (count + b)
    return max(0.0, log(1.0 + count * a) + b)


@njit(cache=True, nogil=True)
def score_by_terms(ptr, docs, counts, terms, weights, A, B, kind, scores, touched):
    """Term at a time: add a_w φ of every posting of the given terms to ``scores``; mark the documents met."""
    for i in range(len(terms)):
        weight, a = weights[i], A[i]
        for k in range(ptr[terms[i]], ptr[terms[i] + 1]):
            d = docs[k]
            scores[d] += weight * _phi(kind, counts[k], a, B[d])
            touched[d] = 1


@njit(cache=True, nogil=True)
def score_by_docs(ptr, terms, counts, weights, active, A, B, kind, start, stop, scores, touched):
    """Document at a time, many queries at once: one φ serves every query that has the word.

    weights[w, q] and scores[d, q]; ``active`` marks the words that any query has.
    """
    n = weights.shape[1]
    row = np.zeros(n)
    for d in range(start, stop):
        row[:] = 0.0
        met = 0
        for k in range(ptr[d], ptr[d + 1]):
            w = terms[k]
            if active[w]:
                met = 1
                phi = _phi(kind, counts[k], A[w], B[d])
                for q in range(n):
                    row[q] += phi * weights[w, q]
        for q in range(n):
            scores[d, q] = row[q]
        touched[d] = met


@njit(cache=True, nogil=True)
def score_candidates(ptr, terms, counts, candidates, weights, A, B, kind, scores):
    """Document at a time for one query and a list of documents; ``weights`` and ``A`` dense, B by candidate."""
    for i in range(len(candidates)):
        d = candidates[i]
        total = 0.0
        for k in range(ptr[d], ptr[d + 1]):
            weight = weights[terms[k]]
            if weight != 0.0:
                total += weight * _phi(kind, counts[k], A[terms[k]], B[i])
        scores[i] = total


@njit(cache=True, nogil=True)
def background_scores(ptr, terms, counts, p, A, B, kind, start, stop, scores):
    """The static score of each document: Σ_{w in D} p_w φ."""
    for d in range(start, stop):
        total = 0.0
        for k in range(ptr[d], ptr[d + 1]):
            w = terms[k]
            total += p[w] * _phi(kind, counts[k], A[w], B[d])
        scores[d] = total


@njit(cache=True, nogil=True)
def sum_rows(ptr, terms, counts, row_weights, row_factors, A, use_log, total, order):
    """Σ_i r_i f_iw B_i (or Σ_i r_i log(1 + f_iw A_w B_i)) over sparse rows; returns how many words were met.

    ``total`` is a scratch vector over the vocabulary, all zero before and to be zeroed by the caller after; the
    words met are listed in ``order``.
    """
    met = 0
    for i in range(len(ptr) - 1):
        r, b = row_weights[i], row_factors[i]
        if r == 0.0:
            continue
        for k in range(ptr[i], ptr[i + 1]):
            w = terms[k]
            if total[w] == 0.0:
                order[met] = w
                met += 1
            total[w] += r * log1p(counts[k] * A[w] * b) if use_log else r * counts[k] * b
    return met
