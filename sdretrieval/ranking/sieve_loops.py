"""The compiled loop that reads the rows of all documents once for many plans: see sieve.py.

lanes    a number for each plan, that the processor adds many of at once
used     a bit for each term of the collection: whether any plan has it
place    which row of ``weights`` such a term has
weights  a row of lanes for each word of any plan, and one of none: whole numbers of 16 bits, rounded up
steps    of evidence, so many are 1: evidence too is a whole number of 16 bits, rounded up
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import ask_ahead, at_most_full, njit, upper_half
from sdretrieval.index.rows import count_of, term_of
from sdretrieval.ranking.loops import LOG, evidence, ordered, select

FULL = 0xFFFF  # a sum that may be more: it bounds nothing
LINE = 32  # lanes that the processor fetches at once
CHUNK = 64  # words of a row
TOGETHER = 4  # words added to the lanes in one go
LOG_BITS = 11
LOG_STEPS = 1 << LOG_BITS
LOG_2 = np.float32(np.log(2.0) * (1.0 + 1e-6))


def log_table() -> np.ndarray:
    """Logarithms that no number of a step of mantissas has a larger one than."""
    return (np.log1p(np.arange(1, LOG_STEPS + 1) / LOG_STEPS) + 1e-5).astype(np.float32)


@njit(inline="always")
def log_above(value, table):
    """A number not below log(value), for value >= 1, and above it by little more than 1 / LOG_STEPS."""
    bits = np.float32(value).view(np.int32)
    return np.float32((bits >> 23) - 127) * LOG_2 + table[(bits >> (23 - LOG_BITS)) & (LOG_STEPS - 1)]


@njit(cache=True, nogil=True)
def sift(
    docs, group, first, stop, allowed, used, place, A, B, kind, weights, steps, logs, static, share, g, mass, plans,
    depth,
):  # fmt: skip
    """Of the documents first..stop, whose rows are in ``docs``, the ``depth`` with the highest bounds, for each plan;
    and what bounds the others.

    Returns documents, how many there are for each of the ``plans``, which have the first lanes, and the least bound
    kept where any was left out (-inf where none was).
    """
    doc_ptr, words = docs.ptr, docs.words
    lanes, none, flat = weights.shape[1], len(weights) - 1, weights.reshape(-1)
    room = 2 * depth + CHUNK
    keys, bounds = np.empty((plans, room), np.int64), np.empty((plans, room))
    filled, floors = np.zeros(plans, np.int64), np.full(plans, np.float32(-np.inf))
    sums, whole = np.empty(lanes, np.uint16), np.empty(lanes, np.float32)
    rows, at = np.empty(CHUNK + TOGETHER, np.uint64), np.empty(CHUNK + TOGETHER, np.int64)
    phis = np.empty(CHUNK + TOGETHER, np.uint16)
    for d in range(first, stop):
        if len(allowed) > 0 and not allowed[d]:
            continue
        b, met, is_full = B[group[d]], 0, False
        for q in range(lanes):
            sums[q] = 0
        for left in range(doc_ptr[d], doc_ptr[d + 1], CHUNK):
            n = 0
            for k in range(left, min(left + CHUNK, doc_ptr[d + 1])):  # without a branch that would have to be guessed
                term = term_of(words[k], docs)
                at[n] = k
                n += (used[term >> np.uint32(3)] >> np.uint8(term & np.uint32(7))) & np.uint8(1)
            for m in range(n):
                ask_ahead(place, term_of(words[at[m]], docs))
            for m in range(n):
                rows[m] = place[term_of(words[at[m]], docs)]
                for lane in range(0, lanes, LINE):
                    ask_ahead(flat, rows[m] * lanes + lane)
            for m in range(n):
                count = np.float32(count_of(words[at[m]], at[m], docs))
                if kind == LOG:
                    odds = count * A[rows[m]] * np.float32(b)
                    phi = log_above(np.float32(1.0) + odds, logs) * steps
                else:
                    phi = np.float32(evidence(kind, count, A[rows[m]], b)) * steps
                is_full |= not phi < FULL - 1
                phis[m] = np.uint16(min(phi, np.float32(FULL - 1))) + 1
            for m in range(n, n + TOGETHER - 1):
                rows[m], phis[m] = none, 0
            for m in range(0, n, TOGETHER):
                i, j, k, l = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
                s, t, u, v = phis[m], phis[m + 1], phis[m + 2], phis[m + 3]
                for q in range(lanes):
                    two = at_most_full(upper_half(weights[i, q], s), upper_half(weights[j, q], t))
                    others = at_most_full(upper_half(weights[k, q], u), upper_half(weights[l, q], v))
                    sums[q] = at_most_full(sums[q], at_most_full(two, others))
            met += n
        if met == 0:
            continue
        for q in range(lanes):  # each product has lost less than 1
            whole[q] = np.float32(np.inf) if is_full or sums[q] == FULL else np.float32(sums[q]) + np.float32(met)
        if len(static) > 0:
            for q in range(lanes):
                whole[q] += g[q] * static[d]
        if len(share) > 0:
            for q in range(lanes):
                whole[q] += mass[q] * share[group[d]]
        reaching = 0
        for q in range(plans):
            reaching += whole[q] >= floors[q]
        if reaching == 0:
            continue
        for q in range(plans):
            if whole[q] >= floors[q]:
                n = filled[q]
                keys[q, n], bounds[q, n] = (ordered(np.float32(whole[q])) << 32) | d, whole[q]
                filled[q] = n + 1
                if n + 1 == room:
                    floors[q] = select(keys[q], bounds[q], depth)
                    filled[q] = depth
    docs = np.empty((plans, depth), np.int64)
    for q in range(plans):
        if filled[q] > depth:
            n = filled[q]
            floors[q] = select(keys[q, :n], bounds[q, :n], depth)
            filled[q] = depth
        for i in range(filled[q]):
            docs[q, i] = keys[q, i] & 0xFFFFFFFF
    return docs, filled, floors
