"""The compiled inner loops of the distributions and their classifiers.

ptr, terms, counts   documents x terms by rows
rows, bounds         documents of class k are rows[bounds[k] : bounds[k + 1]]; one may be in several classes
weights              one for each document
A, inverse_length    log ratios are log(1 + f A_j / |D|), see background.py
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

import numpy as np

from sdretrieval.core.compiled import njit

BLOCK = 256  # words whose class values are turned round together


@njit(cache=True, nogil=True)
def sum_counts(ptr, terms, counts, rows, bounds, weights, total):
    """Σ_i w_i f_ij by class, added to ``total`` (classes x terms)."""
    for k in range(len(bounds) - 1):
        row = total[k]
        for i in range(bounds[k], bounds[k + 1]):
            d = rows[i]
            weight = weights[d]
            if weight == 0.0:
                continue
            for p in range(ptr[d], ptr[d + 1]):
                row[terms[p]] += weight * counts[p]


@njit(cache=True, nogil=True)
def sum_log_ratios(ptr, terms, counts, rows, bounds, weights, A, inverse_length, total):
    """Σ_i w_i log(1 + f_ij A_j / |D_i|) by class, added to ``total``: the logarithm of the product in (3.33).

    Documents of weight one are multiplied up, as (3.33) reads, and one logarithm is taken for each word of a class (or
    more, before the product overflows): logarithms are what this loop would otherwise spend its time on.
    """
    n_terms = total.shape[1]
    product = np.ones(n_terms)
    for k in range(len(bounds) - 1):
        row = total[k]
        for i in range(bounds[k], bounds[k + 1]):
            d = rows[i]
            weight, b = weights[d], inverse_length[d]
            if weight == 1.0:
                for p in range(ptr[d], ptr[d + 1]):
                    j = terms[p]
                    value = product[j] * (1.0 + counts[p] * A[j] * b)
                    if value > 1e250:
                        row[j] += log(value)
                        value = 1.0
                    product[j] = value
            elif weight != 0.0:
                for p in range(ptr[d], ptr[d + 1]):
                    j = terms[p]
                    row[j] += weight * log1p(counts[p] * A[j] * b)
        for j in range(n_terms):
            if product[j] != 1.0:
                row[j] += log(product[j])
                product[j] = 1.0


@njit(cache=True, nogil=True)
def geometric_means(log_sums, class_weights, background, scale, out, divergence):
    """α_j = S θ^GE_j exp(g_j) / Z (3.33) into ``out`` (terms x classes), and KL(α/S, θ^GE) by class.

    g = log_sums / class_weights. With Z = Σ_j θ^GE_j exp(g_j): KL = Σ_j (α_j / S) g_j - log Z. Words never seen in the
    class have g = 0 and need no exponential.
    """
    n_classes, n_terms = log_sums.shape
    normaliser = np.zeros(n_classes)
    inner = np.zeros(n_classes)
    for start in range(0, n_terms, BLOCK):
        stop = min(start + BLOCK, n_terms)
        for k in range(n_classes):
            each = 1.0 / class_weights[k] if class_weights[k] > 0.0 else 0.0
            total, weighted = 0.0, 0.0
            for j in range(start, stop):
                value = background[j]
                if log_sums[k, j] != 0.0:
                    g = log_sums[k, j] * each
                    value *= exp(g)
                    weighted += value * g
                total += value
                out[j, k] = value
            normaliser[k] += total
            inner[k] += weighted
    factor = scale / normaliser
    for j in range(n_terms):
        for k in range(n_classes):
            out[j, k] *= factor[k]
    for k in range(n_classes):
        divergence[k] = inner[k] / normaliser[k] - log(normaliser[k])


@njit(cache=True, nogil=True)
def laplace_logs(totals, additive, out):
    """log of (4.8) into ``out`` (terms x classes); one logarithm for all words unseen in a class."""
    n_classes, n_terms = totals.shape
    log_whole, log_unseen = np.empty(n_classes), np.empty(n_classes)
    for k in range(n_classes):
        whole = totals[k].sum() + additive * n_terms
        log_whole[k] = log(whole) if whole > 0.0 else 0.0
        log_unseen[k] = log(additive) - log_whole[k] if additive > 0.0 else -np.inf
    for start in range(0, n_terms, BLOCK):
        stop = min(start + BLOCK, n_terms)
        for k in range(n_classes):
            for j in range(start, stop):
                value = totals[k, j]
                out[j, k] = log(value + additive) - log_whole[k] if value > 0.0 else log_unseen[k]


@njit(cache=True, nogil=True)
def mixture_logs(totals, background, smoothing, out):
    """log of (4.9) into ``out`` (terms x classes)."""
    n_classes, n_terms = totals.shape
    own = np.zeros(n_classes)
    for k in range(n_classes):
        whole = totals[k].sum()
        own[k] = smoothing / whole if whole > 0.0 else 0.0
    log_background = np.empty(n_terms)
    for j in range(n_terms):
        log_background[j] = log((1.0 - smoothing) * background[j])
    for start in range(0, n_terms, BLOCK):
        stop = min(start + BLOCK, n_terms)
        for k in range(n_classes):
            for j in range(start, stop):
                if totals[k, j] > 0.0:
                    out[j, k] = log(own[k] * totals[k, j] + (1.0 - smoothing) * background[j])
                else:
                    out[j, k] = log_background[j]


@njit(cache=True, nogil=True)
def score_counts(ptr, terms, counts, values, scores):
    """Σ_j f_dj v_jk added to ``scores`` (documents x classes); ``values`` terms x classes."""
    n_classes = values.shape[1]
    for d in range(len(ptr) - 1):
        for p in range(ptr[d], ptr[d + 1]):
            f, row = counts[p], values[terms[p]]
            for k in range(n_classes):
                scores[d, k] += f * row[k]


@njit(cache=True, nogil=True)
def score_log_ratios(ptr, terms, counts, A, inverse_length, values, scores):
    """Σ_j log(1 + f_dj A_j / |D|) v_jk added to ``scores``: the first term of (4.29), one logarithm for all classes."""
    n_classes = values.shape[1]
    for d in range(len(ptr) - 1):
        b = inverse_length[d]
        for p in range(ptr[d], ptr[d + 1]):
            j = terms[p]
            f, row = log1p(counts[p] * A[j] * b), values[j]
            for k in range(n_classes):
                scores[d, k] += f * row[k]


@njit(cache=True, nogil=True)
def score_compound(ptr, terms, counts, alpha, scores):
    """Σ_j log Γ(α_jk + f_dj) - log Γ(α_jk) (4.17) added to ``scores``; ``alpha`` terms x classes.

    For whole counts it is the logarithm of α (α + 1) ... (α + f - 1): factors are multiplied up and a logarithm is
    taken only when the product would leave the range of a double.
    """
    n_classes = alpha.shape[1]
    product = np.empty(n_classes)
    for d in range(len(ptr) - 1):
        product[:] = 1.0
        for p in range(ptr[d], ptr[d + 1]):
            f, row = counts[p], alpha[terms[p]]
            if f == 0.0:
                continue
            if f <= 32.0 and f == np.floor(f):
                for r in range(int(f)):
                    for k in range(n_classes):
                        product[k] *= row[k] + r
                        if not 1e-200 < product[k] < 1e200:
                            scores[d, k] += log(product[k]) if product[k] > 0.0 else -np.inf
                            product[k] = 1.0
            else:
                for k in range(n_classes):
                    scores[d, k] += lgamma(row[k] + f) - lgamma(row[k]) if row[k] > 0.0 else -np.inf
        for k in range(n_classes):
            scores[d, k] += log(product[k])
