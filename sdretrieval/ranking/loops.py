"""The inner loops, compiled by Numba: the only code here that is written for speed first.

Each one has a plain NumPy reading in the tests. Compiled code is cached on disk beside this file. All loops release
the GIL, none is parallel by itself, and none adds in an order that depends on threads.

    ptr, terms/docs, counts   a sparse matrix by rows (see snapshot.py)
    rows                      the documents' (see index/rows.py)
    A, B, kind                evidence φ of a count (see ranking/weighting.py)
    group                     B depends on a document's length alone: B[group[d]], a group for each length

Sums over postings begin as -0.0: x added to it is x, and no sum that evidence was added to is -0.0 (x - x is 0.0, and
where the evidence itself might be -0.0 the loops add 0.0). So a document that has none of the words is told from one
whose evidence comes to nothing. Both ways of walking the postings add the same products in the same order, and so give
the same bits. Evidence φ is finite and never -0.0.
"""

from __future__ import annotations

from math import copysign, log, log1p, log2, pi

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.index.rows import count_of, term_of

LOG, SATURATING, FLOORED, DIVERGING = 0, 1, 2, 3


@njit(inline="always")
def evidence(kind, count, a, b):
    if kind == LOG:
        return log(1.0 + count * a * b)
    if kind == SATURATING:
        return a * count / (count + b)
    if kind == FLOORED:
        return max(0.0, log(1.0 + count * a) + b)
    rest = 1.0 - count * b
    if rest <= 0.0:  # the document has no other word
        return 0.0
    return rest * rest / (count + 1) * (count * log2(count * a * b) + 0.5 * log2(2.0 * pi * count * rest)) + 0.0


@njit(inline="always")
def first_at(docs, low, high, wanted):
    """The first of the ascending docs[low:high] that is at least ``wanted``, by bisection."""
    while low < high:
        middle = (low + high) // 2
        if docs[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def first_postings(ptr, docs, terms, start):
    """Where each term's postings reach the document ``start``."""
    cursor = np.empty(len(terms), np.int64)
    for i in range(len(terms)):
        cursor[i] = first_at(docs, ptr[terms[i]], ptr[terms[i] + 1], start)
    return cursor


@njit(cache=True, nogil=True)
def evidence_tables(ptr, terms, A, B, kind, most):
    """φ of count 1 by document length, for the words whose postings are so many that a table saves logarithms.

    A row for each such word and the number of its row by word (-1: no table); no more than ``most`` numbers in all.
    """
    row_of, n = np.full(len(terms), -1, np.int32), 0
    for i in range(len(terms)):
        if ptr[terms[i] + 1] - ptr[terms[i]] > 2 * len(B) and (n + 1) * len(B) <= most and kind != SATURATING:
            row_of[i] = n
            n += 1
    tables = np.empty((n, len(B)))
    for i in range(len(terms)):
        if row_of[i] >= 0:
            for length in range(len(B)):
                tables[row_of[i], length] = evidence(kind, 1, A[i], B[length])
    return tables, row_of


@njit(inline="always")
def _evidence(docs, counts, k, end, a, B, group, kind, tables, table, phis):
    """φ of the postings k..end of one word."""
    if kind == SATURATING:  # spelled out: what is the same for all postings of a word is taken out of the loop
        for j in range(k, end):
            phis[j - k] = a * counts[j] / (counts[j] + B[np.uint32(group[np.uint32(docs[j])])])
    elif table >= 0:
        once = tables[table]
        for j in range(k, end):
            g = np.uint32(group[np.uint32(docs[j])])
            phis[j - k] = once[g] if counts[j] == 1 else evidence(kind, counts[j], a, B[g])
    else:
        for j in range(k, end):
            phis[j - k] = evidence(kind, counts[j], a, B[np.uint32(group[np.uint32(docs[j])])])


@njit(inline="always")
def _add_spread(row, spread, n, weights, places):
    """Add up to four words, spread over the documents, to a plan's row: one after the other, in one go over the row."""
    a, b, c, d = spread[places[0]], spread[places[1]], spread[places[2]], spread[places[3]]
    u, v, w, x = weights[0], weights[1], weights[2], weights[3]
    if n == 1:
        for i in range(len(row)):
            row[i] += u * a[i]
    elif n == 2:
        for i in range(len(row)):
            row[i] = row[i] + u * a[i] + v * b[i]
    elif n == 3:
        for i in range(len(row)):
            row[i] = row[i] + u * a[i] + v * b[i] + w * c[i]
    elif n == 4:
        for i in range(len(row)):
            row[i] = row[i] + u * a[i] + v * b[i] + w * c[i] + x * d[i]


@njit(cache=True, nogil=True)
def score_narrow(
    ptr,
    docs,
    counts,
    terms,
    w_ptr,
    w_plan,
    w_value,
    A,
    B,
    group,
    kind,
    tables,
    table_of,
    cursor,
    left,
    right,
    at,
    scores,
):
    """Plans of few words over documents left..right: one φ serves every plan that has the word.

    The words' weights are a sparse matrix, a row per word: w_ptr, w_plan, w_value. ``cursor`` says where each word's
    postings reach ``left``, and is moved on to ``right``. ``tables`` and ``table_of`` are those of evidence_tables.
    ``scores`` has a row for each plan, the document ``left`` in column ``at``.

    A word of several plans that many of the documents have is spread out over these, so that the processor adds
    several documents at a time; and such words wait until a plan has four of them, or another word comes between: the
    order of adding is kept.
    """
    n, plans = right - left, len(scores)
    phis, spread, taken = np.empty(n), np.empty((8, n)), 0
    waiting, weights, places = np.zeros(plans, np.int64), np.empty((plans, 4)), np.zeros((plans, 4), np.int64)
    for i in range(len(terms)):
        k = cursor[i]
        end = first_at(docs, k, min(k + n, ptr[terms[i] + 1]), right)
        if k == end:
            continue
        cursor[i] = end
        _evidence(docs, counts, k, end, A[i], B, group, kind, tables, table_of[i], phis)
        is_common = (end - k) * 4 > n and w_ptr[i + 1] - w_ptr[i] > 2  # for fewer plans it is not worth it
        if is_common:
            if taken == len(spread):
                for q in range(plans):
                    _add_spread(scores[q, at : at + n], spread, waiting[q], weights[q], places[q])
                    waiting[q] = 0
                taken = 0
            over = spread[taken]
            over[:] = -0.0  # what leaves an untouched sum as it is
            for j in range(k, end):
                over[np.uint32(docs[j] - left)] = phis[j - k]
        for m in range(w_ptr[i], w_ptr[i + 1]):
            q, weight = w_plan[m], w_value[m]
            if is_common and weight > 0.0:
                weights[q, waiting[q]], places[q, waiting[q]] = weight, taken
                waiting[q] += 1
                if waiting[q] == 4:
                    _add_spread(scores[q, at : at + n], spread, 4, weights[q], places[q])
                    waiting[q] = 0
                continue
            row = scores[q, at : at + n]
            _add_spread(row, spread, waiting[q], weights[q], places[q])
            waiting[q] = 0
            for j in range(k, end):
                place = np.uint32(docs[j] - left)
                row[place] = row[place] + weight * phis[j - k] + 0.0  # never -0.0: the document was met
        taken += is_common
    for q in range(plans):
        _add_spread(scores[q, at : at + n], spread, waiting[q], weights[q], places[q])


@njit(cache=True, nogil=True)
def score_wide(
    ptr, docs, counts, terms, w_ptr, w_plan, w_value, A, B, group, kind, tables, table_of, cursor, left, right, scores
):
    """The same for plans of many words; ``scores`` has a row for each document, a column for each plan.

    Of the many words most are rare, and in many of the plans: so the processor adds several plans at a time.
    """
    n = scores.shape[1]
    row, phis = np.empty(n), np.empty(right - left)
    for i in range(len(terms)):
        k = cursor[i]
        end = first_at(docs, k, min(k + right - left, ptr[terms[i] + 1]), right)
        if k == end:
            continue
        cursor[i] = end
        u, v = w_ptr[i], w_ptr[i + 1]
        _evidence(docs, counts, k, end, A[i], B, group, kind, tables, table_of[i], phis)
        if (v - u) * 4 < n:  # few plans have the word
            for j in range(k, end):
                phi, d = phis[j - k], np.uint32(docs[j] - left)
                for m in range(u, v):
                    plan = np.uint32(w_plan[m])
                    scores[d, plan] = scores[d, plan] + phi * w_value[m] + 0.0  # as above
        else:
            row[:] = -0.0
            for m in range(u, v):
                row[w_plan[m]] = w_value[m] + 0.0
            for j in range(k, end):
                phi, d = phis[j - k], np.uint32(docs[j] - left)
                if phi == 0.0:  # times a negative weight it would be -0.0
                    for m in range(u, v):
                        scores[d, w_plan[m]] += 0.0
                    continue
                for q in range(n):
                    scores[d, q] += phi * row[q]


@njit(cache=True, nogil=True)
def score_candidates(rows, candidates, weights, A, B, kind, scores):
    """Document at a time for one query and a list of documents; ``weights`` and ``A`` dense, B by candidate."""
    for i in range(len(candidates)):
        d = candidates[i]
        total = 0.0
        for k in range(rows.ptr[d], rows.ptr[d + 1]):
            w = term_of(rows.words[k], rows)
            if weights[w] != 0.0:
                total += weights[w] * evidence(kind, count_of(rows.words[k], k, rows), A[w], B[i])
        scores[i] = total


@njit(cache=True, nogil=True)
def background_scores(rows, p, A, B, kind, start, stop, scores):
    """The static score of each document: Σ_{w in D} p_w φ."""
    for d in range(start, stop):
        total = 0.0
        for k in range(rows.ptr[d], rows.ptr[d + 1]):
            w = term_of(rows.words[k], rows)
            total += p[w] * evidence(kind, count_of(rows.words[k], k, rows), A[w], B[d])
        scores[d] = total


@njit(inline="always")
def untouched(total):
    """Whether nothing was ever added to a sum that began as -0.0."""
    return total == 0.0 and copysign(1.0, total) < 0.0


@njit(cache=True, nogil=True)
def keep_best(
    scores, width, left, allowed, static, g, share, group, mass, constant, tie, depth, keys, values, filled, floors
):
    """Complete the scores of ``width`` documents from ``left`` on, and keep the best ``depth`` of each plan (row).

    What needs no postings is added here: g · static (general English), mass · share (its weight by document length),
    the constant. A document counts where something was added to its sum, and where it is ``allowed``; arrays of length
    0 say nothing. In ``keys`` a score in single precision and the docid's place (``tie``) make one whole number whose
    order is the ranking's, as records.rank_order has it: score down, then docid down. ``floors`` are the scores that a
    document must reach. False where a score is not a number.
    """
    limited, with_static, with_share = len(allowed) > 0, len(static) > 0, len(share) > 0
    for q in range(scores.shape[0]):
        floor, place = floors[q], filled[q]
        for i in range(width):
            value = scores[q, i]
            if untouched(value) or (limited and not allowed[left + i]):
                continue
            if with_static:
                value += g[q] * static[left + i]
            if with_share:
                value += mass[q] * share[np.uint32(group[left + i])]
            value += constant[q]
            if np.float32(value) < floor:
                continue
            if value != value:
                return False
            keys[q, place] = (ordered(np.float32(value)) << 32) | tie[left + i]
            values[q, place] = value
            place += 1
            if place == keys.shape[1]:
                floor = select(keys[q], values[q], depth)
                place = depth
        floors[q], filled[q] = floor, place
    return True


@njit(cache=True, nogil=True)
def touched(scores, out):
    """Positions of the sums that something was added to; how many there are."""
    n = 0
    for i in range(len(scores)):
        if not untouched(scores[i]):
            out[n] = i
            n += 1
    return n


@njit(inline="always")
def ordered(single):
    """A number whose order is that of scores in single precision."""
    bits = np.int64(single.view(np.int32))
    if single == 0.0:  # -0 is 0
        return np.int64(0)
    return bits if bits >= 0 else bits ^ 0x7FFFFFFF  # negative: the larger the bits, the smaller the score


@njit(cache=True, nogil=True)
def order_keys(scores, tie):
    """The keys of :func:`keep_best` of some scores; and False where one is not a number."""
    keys = np.empty(len(scores), np.int64)
    for i in range(len(scores)):
        if scores[i] != scores[i]:
            return keys, False
        keys[i] = (ordered(np.float32(scores[i])) << 32) | tie[i]
    return keys, True


@njit(cache=True, nogil=True)
def select(keys, values, depth):
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
def copy_rows(rows, docs, ptr, out_terms, out_counts):
    """Gather the rows of some documents into one block laid out by ``ptr``."""
    for i in range(len(docs)):
        start = rows.ptr[docs[i]]
        for k in range(start, rows.ptr[docs[i] + 1]):
            out_terms[ptr[i] + k - start] = term_of(rows.words[k], rows)
            out_counts[ptr[i] + k - start] = count_of(rows.words[k], k, rows)


@njit(cache=True, nogil=True)
def sum_rows(ptr, terms, counts, row_weights, row_factors, p, use_log, totals):
    """Add Σ_i r_i f_iw B_i (or Σ_i r_i log(1 + f_iw B_i / p_w)) over sparse rows, for each list of weights r."""
    for i in range(len(ptr) - 1):
        b = row_factors[i]
        if not row_weights[:, i].any():
            continue
        for k in range(ptr[i], ptr[i + 1]):
            w = terms[k]
            ratio = log1p(counts[k] * b / p[w]) if use_log else 0.0
            for j in range(len(row_weights)):
                r = row_weights[j, i]
                totals[j, w] += r * ratio if use_log else r * counts[k] * b


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
    The words met are listed in ``order``, each once; returns how many.
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
    select(sizes, values.copy(), n)
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


@njit(cache=True, nogil=True)
def keep_largest(lists, n):
    """Of each list its ``n`` largest numbers above zero, summing to one, and zeros; ties go to the lower position."""
    width = lists.shape[1]
    places, sizes, kept = np.empty(width, np.int64), np.empty(width), np.empty(n, np.int64)
    for j in range(len(lists)):  # number by number: whole arrays taken by places numba compiles for seconds
        positive, total = 0, 0.0
        for k in range(width):
            if lists[j, k] > 0.0:
                places[positive], sizes[positive] = k, lists[j, k]
                positive += 1
            lists[j, k] = 0.0
        if positive > n:
            largest(sizes[:positive], kept)
            for k in range(n):  # they ascend
                places[k], sizes[k] = places[kept[k]], sizes[kept[k]]
            positive = n
        for k in range(positive):
            total += sizes[k]
        for k in range(positive):
            lists[j, places[k]] = sizes[k] / total


@njit(inline="always")
def _case(n_xy, n_x, n_y, n):
    """P(x, y) log P(x, y) / (P(x) P(y)); what rounding leaves of a case that does not occur is no case."""
    return n_xy / n * log(n_xy * n / (n_x * n_y)) if n_xy > 1e-12 * n else 0.0


@njit(inline="always")
def _information(n_q, n_t, n_qt, n):
    """The mutual information of two words that n_q, n_t and (both) n_qt of n documents have."""
    with_q = _case(n_qt, n_q, n_t, n) + _case(n_q - n_qt, n_q, n - n_t, n)
    return with_q + _case(n_t - n_qt, n - n_q, n_t, n) + _case(n - n_q - n_t + n_qt, n - n_q, n - n_t, n)


@njit(cache=True, nogil=True)
def associations(ptr, place, row_weights, df, outside, others, wanted, values, total):
    """Add Σ_q v_q I(q, t) / I(q, q) to the ``total`` of each word t of the rows, for the words q at ``wanted``.

    The rows have words by ``place``, of which ``df`` documents have each. A word t is in a share u_t of ``others``
    more documents, independently: that of the documents ``outside`` of the rows. Nothing is added to q itself, nor to
    words that come with q less often than by chance.
    """
    n, n_words = others, len(df)
    n_t, n_qt, has = np.zeros(n_words), np.empty(n_words), np.empty(len(ptr) - 1, np.bool_)
    seen, u = np.zeros(n_words, np.int64), np.zeros(n_words)
    for k in range(ptr[0], ptr[-1]):
        seen[place[k]] += 1
    if outside > 0:
        for t in range(n_words):  # documents judged relevant may be from after an as-of view, whose df lacks them
            u[t] = min(max(df[t] - seen[t], 0) / outside, 1.0)
            n_t[t] = others * u[t]
    for i in range(len(ptr) - 1):
        n += row_weights[i]
        for k in range(ptr[i], ptr[i + 1]):
            n_t[place[k]] += row_weights[i]
    for j in range(len(wanted)):
        q = wanted[j]
        if seen[q] == 0:
            continue
        itself = _information(n_t[q], n_t[q], n_t[q], n)
        if itself <= 1e-12:  # every document has it: it goes with nothing in particular
            continue
        n_qt[:] = 0.0
        for i in range(len(ptr) - 1):
            has[i] = False
            for k in range(ptr[i], ptr[i + 1]):
                has[i] |= place[k] == q
            if has[i]:
                for k in range(ptr[i], ptr[i + 1]):
                    n_qt[place[k]] += row_weights[i]
        for t in range(n_words):
            both = n_qt[t] + others * u[q] * u[t]
            if t != q and seen[t] > 0 and both * n > n_t[q] * n_t[t]:
                total[t] += values[j] * _information(n_t[q], n_t[t], both, n) / itself
