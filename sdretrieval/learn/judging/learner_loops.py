"""Compiled loops of the learner: a linear support vector machine on tf-idf, straight from a snapshot's arrays.

x_dt = lut[count] · idf_t / |x_d|       the features; ``inverse`` is 1 / |x_d|
v_t  = idf_t Σ_i y_i a_i x_it           the weights, times idf: a score is inverse_d Σ_t v_t lut[count]
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from sdretrieval.core.compiled import njit


@njit(cache=True, nogil=True)
def inverse_norms(ptr, terms, counts, idf, lut, inverse):
    for d in range(len(ptr) - 1):
        total = 0.0
        for p in range(ptr[d], ptr[d + 1]):
            x = lut[counts[p]] * idf[terms[p]]
            total += x * x
        inverse[d] = 1.0 / sqrt(total) if total > 0.0 else 0.0


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def score_some(docs, ptr, terms, counts, v, lut, inverse, out):
    """All that a click waits for in a large collection: single precision and counts of a byte, to read less."""
    for i in range(len(docs)):
        d = docs[i]
        total = np.float32(0.0)
        for p in range(ptr[d], ptr[d + 1]):
            total += v[terms[p]] * lut[counts[p]]
        out[i] = total * inverse[d]


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
