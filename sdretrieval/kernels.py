"""The inner loops, compiled by Numba: the only code here that is written for speed first.

Each one has a plain NumPy reading in the tests. Compiled code is cached on disk beside this file. All loops release
the GIL, none is parallel by itself, and none adds in an order that depends on threads.

    ptr, terms/docs, counts   a sparse matrix by rows (see snapshot.py)
    A, B, kind                evidence φ of a count (see ranking/weighting.py)
    group                     B depends on a document's length alone: B[group[d]], a group for each length
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


@njit(inline="always")
def _first_at(docs, low, high, wanted):
    """The first of the ascending docs[low:high] that is at least ``wanted``, by bisection."""
    while low < high:
        middle = (low + high) // 2
        if docs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def score_by_terms(ptr, docs, counts, terms, weights, A, B, group, kind, scores):
    """Term at a time: add a_w φ of every posting of the given terms to ``scores``."""
    once = np.empty(len(B))
    for i in range(len(terms)):
        start, stop, weight, a = ptr[terms[i]], ptr[terms[i] + 1], weights[i], A[i]
        if kind == SATURATING:  # spelled out: what is the same for all postings of a word is taken out of the loop
            factor = weight * a
            for k in range(start, stop):
                d = docs[k]
                scores[d] += factor * counts[k] / (counts[k] + B[group[d]])
        elif stop - start > 2 * len(B):  # a table of φ for count 1 is cheaper than a logarithm each
            for g in range(len(B)):
                once[g] = weight * _phi(kind, 1, a, B[g])
            for k in range(start, stop):
                d = docs[k]
                if counts[k] == 1:
                    scores[d] += once[group[d]]
                else:
                    scores[d] += weight * _phi(kind, counts[k], a, B[group[d]])
        else:
            for k in range(start, stop):
                d = docs[k]
                scores[d] += weight * _phi(kind, counts[k], a, B[group[d]])


@njit(cache=True, nogil=True)
def mark_documents(ptr, docs, terms, touched):
    """Mark the documents that have any of the given terms."""
    for i in range(len(terms)):
        for k in range(ptr[terms[i]], ptr[terms[i] + 1]):
            touched[docs[k]] = 1


@njit(cache=True, nogil=True)
def score_in_blocks(ptr, docs, counts, terms, w_ptr, w_query, w_value, A, B, group, kind, start, stop, size, scores):
    """Many queries at once over documents start..stop: one φ serves every query that has the word.

    The words' weights are a sparse matrix, a row per word: w_ptr, w_query, w_value. Documents go by blocks of
    ``size``, so that the block's scores[d, q] stay in the processor's cache while all the words pass over them.
    """
    n = scores.shape[1]
    cursor = np.empty(len(terms), np.int64)
    for i in range(len(terms)):
        cursor[i] = _first_at(docs, ptr[terms[i]], ptr[terms[i] + 1], start)
    row, once, phis = np.zeros(n), np.empty(len(B)), np.empty(size)
    for left in range(start, stop, size):
        right = min(left + size, stop)
        for i in range(len(terms)):
            k = cursor[i]
            end = _first_at(docs, k, min(k + right - left, ptr[terms[i] + 1]), right)
            if k == end:
                continue
            cursor[i] = end
            a, u, v = A[i], w_ptr[i], w_ptr[i + 1]
            if kind != SATURATING and end - k > 2 * len(B):  # as above
                for g in range(len(B)):
                    once[g] = _phi(kind, 1, a, B[g])
                for j in range(k, end):
                    g = group[docs[j]]
                    phis[j - k] = once[g] if counts[j] == 1 else _phi(kind, counts[j], a, B[g])
            else:
                for j in range(k, end):
                    phis[j - k] = _phi(kind, counts[j], a, B[group[docs[j]]])
            if (v - u) * 4 < n:  # few queries have the word
                for j in range(k, end):
                    for m in range(u, v):
                        scores[docs[j], w_query[m]] += phis[j - k] * w_value[m]
            else:  # most have it: a dense row lets the processor add several at a time
                row[:] = 0.0
                for m in range(u, v):
                    row[w_query[m]] = w_value[m]
                for j in range(k, end):
                    phi, d = phis[j - k], docs[j]
                    for q in range(n):
                        scores[d, q] += phi * row[q]


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
def best_ranks(docs, scores, tie, depth):
    """records.rank_order compiled, for documents whose places among the docids (``tie``) are known.

    A score in single precision and the docid's place make one whole number whose order is the ranking's: score down,
    then docid down. Returns the places of the best ``depth`` documents, best first; nothing where a score is NaN.
    """
    capacity = 2 * depth + 64
    kept = np.empty(capacity, np.int64)
    filled, least = 0, np.iinfo(np.int64).min
    single = scores.astype(np.float32)
    bits = single.view(np.int32)
    for i in range(len(docs)):
        if single[i] != single[i]:
            return kept[:0]
        high = np.int64(0) if single[i] == 0.0 else np.int64(bits[i])  # -0 is 0
        if high < 0:
            high ^= 0x7FFFFFFF  # negative numbers: the larger their bits, the smaller they are
        key = (high << 32) | tie[docs[i]]
        if key > least:
            kept[filled] = key
            filled += 1
            if filled == capacity:  # keep the best half
                split = np.partition(kept, capacity - depth)
                kept[:depth] = split[capacity - depth :]
                filled, least = depth, split[capacity - depth]
    order = np.sort(kept[:filled])[::-1][:depth]
    return order & 0xFFFFFFFF


@njit(cache=True, nogil=True)
def copy_rows(terms, counts, starts, ptr, out_terms, out_counts):
    """Gather rows that begin at ``starts`` into one block laid out by ``ptr``."""
    for i in range(len(starts)):
        for k in range(ptr[i + 1] - ptr[i]):
            out_terms[ptr[i] + k] = terms[starts[i] + k]
            out_counts[ptr[i] + k] = counts[starts[i] + k]


@njit(cache=True, nogil=True)
def sum_rows(ptr, terms, counts, row_weights, row_factors, A, use_log, total, order):
    """Σ_i r_i f_iw B_i (or Σ_i r_i log(1 + f_iw A_w B_i)) over sparse rows; returns how many words were met.

    ``total`` is a scratch vector over the vocabulary, all zero before and to be zeroed by the caller after; the
    words met are listed in ``order``, each once: the weights are not negative, so no sum returns to zero.
    """
    met = 0
    for i in range(len(ptr) - 1):
        r, b = row_weights[i], row_factors[i]
        if r == 0.0:
            continue
        for k in range(ptr[i], ptr[i + 1]):
            w = terms[k]
            value = r * log1p(counts[k] * A[w] * b) if use_log else r * counts[k] * b
            if value > 0.0:
                if total[w] == 0.0:
                    order[met] = w
                    met += 1
                total[w] += value
    return met
