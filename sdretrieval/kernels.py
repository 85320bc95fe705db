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
                d = np.uint32(docs[k])
                scores[d] += factor * counts[k] / (counts[k] + B[np.uint32(group[d])])
        elif stop - start > 2 * len(B):  # a table of φ for count 1 is cheaper than a logarithm each
            for length in range(len(B)):
                once[length] = weight * _phi(kind, 1, a, B[length])
            for k in range(start, stop):
                d = np.uint32(docs[k])
                g = np.uint32(group[d])
                if counts[k] == 1:
                    scores[d] += once[g]
                else:
                    scores[d] += weight * _phi(kind, counts[k], a, B[g])
        else:
            for k in range(start, stop):
                d = np.uint32(docs[k])
                scores[d] += weight * _phi(kind, counts[k], a, B[np.uint32(group[d])])


@njit(cache=True, nogil=True)
def mark_documents(ptr, docs, terms, touched):
    """Mark the documents that have any of the given terms."""
    for i in range(len(terms)):
        for k in range(ptr[terms[i]], ptr[terms[i] + 1]):
            touched[docs[k]] = 1


@njit(cache=True, nogil=True)
def first_postings(ptr, docs, terms, start):
    """Where each term's postings reach the document ``start``."""
    cursor = np.empty(len(terms), np.int64)
    for i in range(len(terms)):
        cursor[i] = _first_at(docs, ptr[terms[i]], ptr[terms[i] + 1], start)
    return cursor


@njit(cache=True, nogil=True)
def score_block(ptr, docs, counts, terms, w_ptr, w_query, w_value, A, B, group, kind, cursor, left, right, scores):
    """Many queries at once over documents left..right: one φ serves every query that has the word.

    The words' weights are a sparse matrix, a row per word: w_ptr, w_query, w_value. ``cursor`` says where each word's
    postings reach ``left``, and is moved on to ``right``. ``scores`` has a row for each document of the block, few
    enough to stay in the processor's cache while all the words pass over them.
    """
    n = scores.shape[1]
    row, once, phis = np.zeros(n), np.empty(len(B)), np.empty(right - left)
    for i in range(len(terms)):
        k = cursor[i]
        end = _first_at(docs, k, min(k + right - left, ptr[terms[i] + 1]), right)
        if k == end:
            continue
        cursor[i] = end
        a, u, v = A[i], w_ptr[i], w_ptr[i + 1]
        if kind != SATURATING and end - k > 2 * len(B):  # as above
            for length in range(len(B)):
                once[length] = _phi(kind, 1, a, B[length])
            for j in range(k, end):
                g = np.uint32(group[np.uint32(docs[j])])
                phis[j - k] = once[g] if counts[j] == 1 else _phi(kind, counts[j], a, B[g])
        else:
            for j in range(k, end):
                phis[j - k] = _phi(kind, counts[j], a, B[np.uint32(group[np.uint32(docs[j])])])
        if (v - u) * 4 < n:  # few queries have the word
            for j in range(k, end):
                phi, d = phis[j - k], np.uint32(docs[j] - left)
                for m in range(u, v):
                    scores[d, np.uint32(w_query[m])] += phi * w_value[m]
        else:  # most have it: a dense row lets the processor add several at a time
            row[:] = 0.0
            for m in range(u, v):
                row[w_query[m]] = w_value[m]
            for j in range(k, end):
                phi, d = phis[j - k], np.uint32(docs[j] - left)
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
def keep_best(
    scores, left, met, allowed, static, g, share, group, mass, constant, tie, depth, keys, values, filled, floors
):
    """Complete the scores of documents left.. and keep the best ``depth`` of each query (a column each).

    What needs no postings is added here: g · static (general English), mass · share (its weight by document length),
    the constant. A document counts where its score is not 0, or where ``met`` says so, and where it is ``allowed``;
    arrays of length 0 say nothing. In ``keys`` a score in single precision and the docid's place (``tie``) make one
    whole number whose order is the ranking's, as records.rank_order has it: score down, then docid down. ``floors``
    are the scores that a document must reach. False where a score is not a number.
    """
    by_mark, limited, n = len(met) > 0, len(allowed) > 0, scores.shape[1]
    for i in range(scores.shape[0]):
        d = left + i
        if n == 1 and not by_mark and scores[i, 0] == 0.0:  # the commonest case, quickly
            continue
        if (limited and not allowed[d]) or (by_mark and met[d] == 0):
            continue
        for q in range(n):
            value = scores[i, q]
            if value == 0.0 and not by_mark:
                continue
            if len(static):
                value += g[q] * static[d]
            if len(share):
                value += mass[q] * share[group[d]]
            value += constant[q]
            if np.float32(value) < floors[q]:
                continue
            if value != value:
                return False
            place = filled[q]
            keys[q, place] = (_ordered(np.float32(value)) << 32) | tie[d]
            values[q, place] = value
            filled[q] = place + 1
            if place + 1 == keys.shape[1]:
                floors[q] = _select(keys[q], values[q], depth)
                filled[q] = depth
    return True


@njit(inline="always")
def _ordered(single):
    """A number whose order is that of scores in single precision."""
    bits = np.int64(single.view(np.int32))
    if single == 0.0:  # -0 is 0
        return np.int64(0)
    return bits if bits >= 0 else bits ^ 0x7FFFFFFF  # negative: the larger the bits, the smaller the score


@njit(cache=True, nogil=True)
def _select(keys, values, depth):
    """Hoare's selection: move the ``depth`` largest keys to the front, their values with them; the least of these."""
    low, high = 0, len(keys) - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] > pivot:
                i += 1
            while keys[j] < pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if depth - 1 <= j:
            high = j
        elif depth - 1 >= i:
            low = i
        else:
            break
    least = 0
    for i in range(depth):
        if keys[i] < keys[least]:
            least = i
    return np.float32(values[least])


@njit(cache=True, nogil=True)
def copy_rows(terms, counts, starts, ptr, out_terms, out_counts):
    """Gather rows that begin at ``starts`` into one block laid out by ``ptr``."""
    for i in range(len(starts)):
        for k in range(ptr[i + 1] - ptr[i]):
            out_terms[ptr[i] + k] = terms[starts[i] + k]
            out_counts[ptr[i] + k] = counts[starts[i] + k]


@njit(cache=True, nogil=True)
def sum_rows(ptr, terms, counts, row_weights, row_factors, p, use_log, total, order):
    """Σ_i r_i f_iw B_i (or Σ_i r_i log(1 + f_iw B_i / p_w)) over sparse rows; returns how many words were met.

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
            value = r * log1p(counts[k] * b / p[w]) if use_log else r * counts[k] * b
            if value > 0.0:
                if total[w] == 0.0:
                    order[met] = w
                    met += 1
                total[w] += value
    return met


@njit(cache=True, nogil=True)
def score_rows(ptr, terms, counts, weights, row_factors, p, scores):
    """Σ_w a_w log(1 + f_iw B_i / p_w) for each sparse row; ``weights`` a_w over the whole vocabulary."""
    for i in range(len(ptr) - 1):
        total, b = 0.0, row_factors[i]
        for k in range(ptr[i], ptr[i + 1]):
            weight = weights[terms[k]]
            if weight != 0.0:
                total += weight * log(1.0 + counts[k] * b / p[terms[k]])
        scores[i] = total


@njit(cache=True, nogil=True)
def sum_cut_rows(ptr, terms, counts, usable, most, row_weights, total, order):
    """Anserini's sum of document vectors, in single precision and in the order of the rows.

    Each row is cut to its ``most`` most frequent usable words (ties: the lower word), normalised, and weighted.
    ``total`` and ``order`` as in sum_rows.
    """
    met = 0
    for i in range(len(ptr) - 1):
        start, stop = ptr[i], ptr[i + 1]
        highest, candidates = 0, 0
        for k in range(start, stop):
            if usable[terms[k]]:
                candidates += 1
                highest = max(highest, counts[k])
        least, of_least = 0, candidates  # words this frequent are kept, of the least frequent so many
        if candidates > most:
            words_with = np.zeros(highest + 1, np.int64)
            for k in range(start, stop):
                if usable[terms[k]]:
                    words_with[counts[k]] += 1
            least, above = highest, 0
            while above + words_with[least] < most:
                above += words_with[least]
                least -= 1
            of_least = most - above
        for final in range(2):  # first the length of what is kept, then its sum
            if final == 0:
                length, left = 0.0, of_least
            else:
                single, left = np.float32(length), of_least
            for k in range(start, stop):
                if not usable[terms[k]] or counts[k] < least:
                    continue
                if counts[k] == least:
                    if left == 0:
                        continue
                    left -= 1
                if final == 0:
                    length += counts[k]
                else:
                    w = terms[k]
                    value = np.float32(np.float32(counts[k]) / single) * row_weights[i]
                    if value > 0.0:
                        if total[w] == 0.0:
                            order[met] = w
                            met += 1
                        total[w] = total[w] + value
    return met


@njit(cache=True, nogil=True)
def merge(terms, weights, other_terms, other_weights, out_terms, out_weights):
    """The sum of two sparse vectors with ascending terms, zeros left out; how many terms it has."""
    i = j = n = 0
    while i < len(terms) or j < len(other_terms):
        if j == len(other_terms) or (i < len(terms) and terms[i] < other_terms[j]):
            term, weight = terms[i], weights[i]
            i += 1
        elif i == len(terms) or other_terms[j] < terms[i]:
            term, weight = other_terms[j], other_weights[j]
            j += 1
        else:
            term, weight = terms[i], weights[i] + other_weights[j]
            i += 1
            j += 1
        if weight != 0.0:
            out_terms[n], out_weights[n] = term, weight
            n += 1
    return n


@njit(cache=True, nogil=True)
def largest(values, kept):
    """Ascending positions of as many of the largest values as ``kept`` has room for; ties go to the lower position."""
    n = len(kept)
    sizes = values.copy()
    _select(sizes, values.copy(), n)
    least = sizes[:n].min()
    tied = n
    for k in range(len(values)):
        if values[k] > least:
            tied -= 1
    filled = 0
    for k in range(len(values)):
        if values[k] > least or (values[k] == least and tied > 0):
            if values[k] == least:
                tied -= 1
            kept[filled] = k
            filled += 1
