"""The inner loops of the automatic time prior, compiled; auto.py has the model and its symbols.

Times are milliseconds as floats, exact below 2^53; ``reach`` holds h_1 < h_2 < … in the same unit. A *level* is the
number of the narrowest window that two times share, len(reach) where none does.
"""

from __future__ import annotations

from math import exp, log

import numpy as np

from sdretrieval.core.compiled import njit


@njit(inline="always")
def _place(ordered, cells, per_ms, bound, after):
    """The first place of a time not below ``bound``; or with ``after`` of one above it.

    ``cells`` are the places of equal steps along the range: a search in all the times would wait for memory.
    """
    last = len(cells) - 1
    cell = (bound - ordered[0]) * per_ms
    if cell < -1.0:
        return 0
    if cell > last + 1.0:
        return len(ordered)
    low, high = cells[min(max(int(cell) - 1, 0), last)], cells[min(max(int(cell) + 2, 0), last)]
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < bound or (after and ordered[middle] == bound):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def windows(ordered, cells, per_ms, before, t, reach):
    """(first place, place after the last, mass) of the window t_j ± h_l among the ordered times, for each j and l.

    ``before[p]`` of the background's documents lie at places before p, all of them where it is empty; a window has at
    least the mass of one.
    """
    n, levels, everything = len(t), len(reach), len(before) == 0
    total = max(len(ordered) if everything else before[len(ordered)], 1)
    first, after = np.empty((n, levels), np.int64), np.empty((n, levels), np.int64)
    mass = np.empty((n, levels))
    for j in range(n):
        for k in range(levels):
            low = _place(ordered, cells, per_ms, t[j] - reach[k], False)
            high = _place(ordered, cells, per_ms, t[j] + reach[k], True)
            first[j, k], after[j, k] = low, high
            mass[j, k] = max(high - low if everything else before[high] - before[low], 1) / total
    return first, after, mass


@njit(cache=True, nogil=True)
def levels_to(t, centre, reach):
    """The level of each time and a centre."""
    out = np.empty(len(t), np.int64)
    for i in range(len(t)):
        out[i] = np.searchsorted(reach, abs(t[i] - centre), side="left")
    return out


@njit(cache=True, nogil=True)
def towers(shares, mass):
    """k_j by level: Σ_{l ≥ level} share_l / mass_jl, and 0 beyond the widest window."""
    n, levels = mass.shape
    out = np.zeros((n, levels + 1))
    for j in range(n):
        for k in range(levels - 1, -1, -1):
            out[j, k] = out[j, k + 1] + shares[k] / mass[j, k]
    return out


@njit(cache=True, nogil=True)
def kernel_matrix(t, tower, reach):
    """K_ij = k_j(t_i)"""
    n = len(t)
    out = np.empty((n, n))
    for j in range(n):
        for i in range(n):
            out[i, j] = tower[j, np.searchsorted(reach, abs(t[i] - t[j]), side="left")]
    return out


@njit(cache=True, nogil=True)
def urn_evidence(kernel, ranks, kappa, alpha):
    """Σ_i log(1 - π_i + π_i r_i): what the urn of bursts knows of each document's time from those ranked before it."""
    n = len(ranks)
    omega, total, evidence = np.zeros(n), 0.0, 0.0
    for i in range(n):
        pi, drawn = kappa / (kappa + ranks[i]), alpha
        for j in range(i):
            drawn += omega[j] * kernel[i, j]
        ratio = drawn / (alpha + total)
        like = 1.0 - pi + pi * ratio
        evidence += log(like)
        omega[i] = pi * ratio / like
        total += omega[i]
    return evidence


@njit(cache=True, nogil=True)
def burst_weights(kernel, w, chance):
    """w_j c_j: each document's weight, times the probability that others share its burst."""
    n = len(w)
    out = np.zeros(n)
    for i in range(n):
        near, rest = 0.0, 0.0
        for j in range(n):
            if j != i:
                near += w[j] * kernel[i, j]
                rest += w[j]
        ratio = near / rest if rest > 0.0 else 0.0
        out[i] = w[i] * chance * ratio / (1.0 - chance + chance * ratio)
    return out


@njit(inline="always")
def _probability(log_odds):
    return 1.0 / (1.0 + exp(-log_odds))


@njit(cache=True, nogil=True)
def recency_evidence(ratios, log_odds, share):
    """(evidence, share at the end) of documents near the query's time; ``share`` counts as one document so far."""
    near, far, evidence = share, 1.0 - share, 0.0
    for i in range(len(ratios)):
        pi = _probability(log_odds[i])
        mixed = far + near * ratios[i]
        ratio = mixed / (near + far)
        like = 1.0 - pi + pi * ratio
        evidence += log(like)
        omega, belongs = pi * ratio / like, near * ratios[i] / mixed
        near += omega * belongs
        far += omega * (1.0 - belongs)
    return evidence, near / (near + far)


@njit(cache=True, nogil=True)
def learn_shares(level, mass, log_odds, ptr, start, rounds):
    """EM for the shares of the levels around the query's time, over the documents of several topics: (shares, L).

    Topic m has the documents ptr[m] to ptr[m+1] and the masses mass[m]. ``start`` are the shares to begin with, which
    count as one relevant document.
    """
    levels = len(start)
    shares, likelihood = start.copy(), 0.0
    pi = np.array([_probability(x) for x in log_odds])
    for step in range(rounds + 1):
        counts, relevant, likelihood = start.copy(), 1.0, 0.0
        for m in range(len(ptr) - 1):
            around = np.zeros(levels + 1)  # Σ_{l ≥ level} share_l / mass_l
            for k in range(levels - 1, -1, -1):
                around[k] = around[k + 1] + shares[k] / mass[m, k]
            far = 1.0 - shares.sum()
            scale = np.zeros(levels)  # Σ of π/like over the documents within each window
            for i in range(ptr[m], ptr[m + 1]):
                mixed = far + around[level[i]]
                like = 1.0 - pi[i] + pi[i] * mixed
                relevant += pi[i] * mixed / like
                if level[i] < levels:
                    scale[level[i]] += pi[i] / like
                if step == rounds:
                    likelihood += log(like)
            inside = 0.0
            for k in range(levels):
                inside += scale[k]
                counts[k] += inside * shares[k] / mass[m, k]
        if step < rounds:
            shares = counts / relevant
    return shares, likelihood


@njit(cache=True, nogil=True)
def log_ratios(n, first, after, height, base, floor, factor):
    """factor · log max(base + Σ of the heights of the windows around each place, floor), at places 0 … n-1."""
    change = np.zeros(n + 1)
    for j in range(first.shape[0]):
        for k in range(first.shape[1]):
            change[first[j, k]] += height[j, k]
            change[after[j, k]] -= height[j, k]
    inside, value = 0.0, factor * log(max(base, floor))
    for p in range(n):
        if change[p] != 0.0:
            inside += change[p]
            value = factor * log(max(base + inside, floor))
        change[p] = value
    return change[:n]


@njit(cache=True, nogil=True)
def added(scores, docs, place, bursts, near, bar, unit):
    """scores + unit · ρ at the place of each document in time; place -1, undated, keeps its score.

    ρ is the sum of both parts, of which either may be missing; nearness raises no score below the bar.
    """
    out = np.empty(len(docs))
    for i in range(len(docs)):
        p, rho = place[docs[i]], 0.0
        if p >= 0:
            if len(bursts):
                rho = bursts[p]
            if len(near):
                rho += near[p] if scores[i] >= bar else min(near[p], 0.0)
        out[i] = scores[i] + unit * rho
    return out
