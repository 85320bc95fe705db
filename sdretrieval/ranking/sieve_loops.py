"""The compiled loop that reads the rows of all documents once for many plans: see sieve.py.

lanes    a number for each plan, in single precision, that the processor adds several of at a time
place    which row of ``weights`` a term of the collection has; -1 where no plan has it
weights  a row of lanes for each word of any plan, and one of none
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.ranking.loops import LOG, evidence, ordered, select, untouched

CHUNK = 64  # words of a row
TOGETHER = 4  # words added to the lanes in one go
LOG_BITS = 11
LOG_STEPS = 1 << LOG_BITS
LOG_2 = np.float32(np.log(2.0) * (1.0 + 1e-6))
NEAR_ZERO = np.float32(1e-20)


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
    doc_ptr, doc_terms, doc_counts, group, first, stop, allowed, place, A, B, kind, weights, logs, static, share, g,
    mass, depth,
):  # fmt: skip
    """Of the documents first..stop the ``depth`` with the highest bounds, for each plan; and what bounds the others.

    Returns documents, how many there are for each lane, and the least bound kept where any was left out (-inf where
    none was).
    """
    lanes, none = weights.shape[1], len(weights) - 1
    room = 2 * depth + CHUNK
    keys, bounds = np.empty((lanes, room), np.int64), np.empty((lanes, room))
    filled, floors = np.zeros(lanes, np.int64), np.full(lanes, np.float32(-np.inf))
    sums, whole = np.empty(lanes, np.float32), np.empty(lanes, np.float32)
    rows, at = np.empty(CHUNK + TOGETHER, np.uint64), np.empty(CHUNK + TOGETHER, np.int64)
    phis = np.empty(CHUNK + TOGETHER, np.float32)
    for d in range(first, stop):
        if len(allowed) > 0 and not allowed[d]:
            continue
        b, met = B[group[d]], 0
        for q in range(lanes):
            sums[q] = np.float32(-0.0)
        for left in range(doc_ptr[d], doc_ptr[d + 1], CHUNK):
            n = 0
            for k in range(left, min(left + CHUNK, doc_ptr[d + 1])):  # without a branch that would have to be guessed
                row = place[np.uint32(doc_terms[k])]
                rows[n], at[n] = row, k
                n += row >= 0
            for m in range(n):
                if kind == LOG:
                    phis[m] = log_above(1.0 + doc_counts[at[m]] * A[rows[m]] * b, logs)
                else:
                    phis[m] = evidence(kind, doc_counts[at[m]], A[rows[m]], b)
                phis[m] = max(phis[m], NEAR_ZERO)  # the document was met
            for m in range(n, n + TOGETHER - 1):
                rows[m], phis[m] = none, 1.0
            for m in range(0, n, TOGETHER):
                i, j, k, l = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
                s, t, u, v = phis[m], phis[m + 1], phis[m + 2], phis[m + 3]
                for q in range(lanes):
                    two = s * weights[i, q] + t * weights[j, q]
                    sums[q] = (sums[q] + two) + (u * weights[k, q] + v * weights[l, q])
            met += n
        if met == 0:
            continue
        for q in range(lanes):
            whole[q] = sums[q]
        if len(static) > 0:
            for q in range(lanes):
                whole[q] += g[q] * static[d]
        if len(share) > 0:
            for q in range(lanes):
                whole[q] += mass[q] * share[group[d]]
        reaching = 0
        for q in range(lanes):
            reaching += whole[q] >= floors[q]
        if reaching == 0:
            continue
        for q in range(lanes):
            if whole[q] >= floors[q] and not untouched(sums[q]):
                n = filled[q]
                keys[q, n], bounds[q, n] = (ordered(np.float32(whole[q])) << 32) | d, whole[q]
                filled[q] = n + 1
                if n + 1 == room:
                    floors[q] = select(keys[q], bounds[q], depth)
                    filled[q] = depth
    docs = np.empty((lanes, depth), np.int64)
    for q in range(lanes):
        if filled[q] > depth:
            n = filled[q]
            floors[q] = select(keys[q, :n], bounds[q, :n], depth)
            filled[q] = depth
        for i in range(filled[q]):
            docs[q, i] = keys[q, i] & 0xFFFFFFFF
    return docs, filled, floors
