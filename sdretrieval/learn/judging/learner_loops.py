"""Compiled loops of the learner: a linear support vector machine on tf-idf, straight from a snapshot's arrays.

x_dt = lut[count] · idf_t / |x_d|       the features; ``inverse`` is 1 / |x_d|
v_t  = idf_t Σ_i y_i a_i x_it           the weights, times idf: a score is inverse_d Σ_t v_t lut[count]
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.index.rows import count_of, term_of


@njit(cache=True, nogil=True)
def inverse_norms(rows, counts, idf, lut, inverse):
    for d in range(len(rows.ptr) - 1):
        total = 0.0
        for p in range(rows.ptr[d], rows.ptr[d + 1]):
            x = lut[counts[p]] * idf[term_of(rows.words[p], rows)]
            total += x * x
        inverse[d] = 1.0 / sqrt(total) if total > 0.0 else 0.0


@njit(cache=True, nogil=True)
def raise_first(rows, starts, low, high, first, more, ptr, docs, by_doc, by_term):
    """Words among the ``first`` places of a document count ``more`` times more. False where arrays do not fit."""
    at = ptr[:-1].copy()  # the documents of a word come in the order of their numbers
    for d in range(len(rows.ptr) - 1):
        place = starts[d]
        for k in range(rows.ptr[d], rows.ptr[d + 1]):
            t, count = term_of(rows.words[k], rows), count_of(rows.words[k], k, rows)
            if place + count > starts[d + 1] or at[t] >= ptr[t + 1] or docs[at[t]] != d:
                return False
            early = 0
            for q in range(place, place + count):
                early += low[q] < first and (len(high) == 0 or high[q] == 0)
            place += count
            by_doc[k] = min(count + more * early, 255)
            by_term[at[t]] = by_doc[k]
            at[t] += 1
    return True


@njit(cache=True, nogil=True)
def score_all(weighted, ptr, docs, counts, v, lut, inverse, out):
    """All that a click waits for in a large collection: only the words with weights are read, word by word."""
    adds = np.empty(len(lut), np.float32)
    for t in weighted:
        for c in range(len(lut)):
            adds[c] = v[t] * lut[c]
        for p in range(ptr[t], ptr[t + 1]):
            out[docs[p]] += adds[counts[p]]
    for d in range(len(out)):
        out[d] *= inverse[d]


@njit(cache=True, nogil=True)
def add_rows(ptr, docs, counts, lut, inverse, total):
    """The sum of all documents' features, divided by idf."""
    for t in range(len(ptr) - 1):
        total[t] = 0.0
        for p in range(ptr[t], ptr[t + 1]):
            total[t] += lut[counts[p]] * inverse[docs[p]]


@njit(cache=True, nogil=True)
def coordinate_descent(ptr, terms, down, up, y, cost, a, v, bias, tolerance, most):
    """Dual coordinate descent for the squared hinge (Hsieh et al. 2008), going on from ``a`` and ``v``.

    Rows are examples, each of norm 1 with a bias of 1 beside it; ``bias[0]`` is its weight. ``down`` are their features
    divided by idf, ``up`` those times idf. Returns the rounds."""
    for round in range(most):
        worst = 0.0
        for i in range(len(y)):
            s = bias[0]
            for p in range(ptr[i], ptr[i + 1]):
                s += v[terms[p]] * down[p]
            diagonal = 0.5 / cost[i]
            gradient = y[i] * s - 1.0 + a[i] * diagonal
            projected = min(gradient, 0.0) if a[i] == 0.0 else gradient
            worst = max(worst, abs(projected))
            if projected != 0.0:
                new = max(a[i] - gradient / (2.0 + diagonal), 0.0)
                step = (new - a[i]) * y[i]
                a[i] = new
                bias[0] += step
                for p in range(ptr[i], ptr[i + 1]):
                    v[terms[p]] += step * up[p]
        if worst < tolerance:
            return round + 1
    return most
