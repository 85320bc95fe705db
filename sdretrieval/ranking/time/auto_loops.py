"""The inner loops of the automatic time prior, compiled; auto.py has the model and its symbols.

Times are milliseconds as floats, exact below 2^53; ``reach`` holds h_1 < h_2 < … in the same unit, each twice the one
before. A *level* is the number of the narrowest window that two times share, LEVELS where none does.
"""

from __future__ import annotations

from math import exp, inf, log

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.times import UNDATED

LEVELS, NARROWEST = 24, 15 * 60_000.0  # windows, and the half-width of the narrowest, ms
PAST, END = 15, 2.0**63  # so many times of ms that no document has stand after the ordered ones


@njit(cache=True, nogil=True)
def _windows(ordered, cells, per_ms, first, last, t, reach):
    """The places from ``first`` to ``last`` in the window t_j ± h_l, for each j and l: where they begin, and end.

    ``cells`` are the places of equal steps along the range: a search in all the times would wait for memory. Its last
    four steps are made for all bounds together and without a branch, so that the processor neither waits nor guesses;
    PAST times beyond all others stand at the end of ``ordered`` for them to look at. Times are whole numbers.
    """
    bounds = np.empty((2, len(t), len(reach)))
    for j in range(len(t)):
        bounds[0, j] = t[j] - reach
        bounds[1, j] = t[j] + reach + 0.5
    flat, start, end = bounds.reshape(-1), ordered[0], len(cells) - 3.0
    places = np.empty(len(flat), np.int64)
    for i in range(len(flat)):
        cell = int(min(max((flat[i] - start) * per_ms, 1.0), end))
        low, high = np.int64(cells[cell - 1]), np.int64(cells[cell + 2])
        while high - low > PAST:
            middle = (low + high) // 2
            if ordered[middle] < flat[i]:
                low = middle + 1
            else:
                high = middle
        places[i] = low
    for half in (8, 4, 2, 1):
        for i in range(len(flat)):
            places[i] += half * (ordered[np.uint64(places[i] + half - 1)] < flat[i])
    begin, after = places.reshape(bounds.shape)
    return np.maximum(begin, first), np.minimum(after, last)


@njit(cache=True, nogil=True)
def masses(ordered, cells, per_ms, first, last, before, t, reach):
    """Share of the documents there are in the window t_j ± h_l, for each j and l; at least that of one.

    They are those at the places from ``first`` to ``last`` of the ordered times; or as many as ``before`` says, see
    auto.There.
    """
    n, levels, range_only = len(t), len(reach), len(before) == 0
    total = max(last - first if range_only else before[len(before) - 1], 1)
    out, (low, high) = np.ones((n, levels)), _windows(ordered, cells, per_ms, first, last, t, reach)
    for j in range(n):
        for k in range(levels):
            begin, end = low[j, k], high[j, k]
            if begin == first and end == last:  # all of them are in this window, and in the wider ones
                break
            out[j, k] = max(end - begin if range_only else before[end] - before[begin], 1) / total
    return out


@njit(cache=True, nogil=True)
def crowds(ordered, cells, per_ms, first, last, before, t, reach, most):
    """The places in the widest window of at most ``most`` of the documents there are around each time.

    Ascending, none twice; documents that are not there may be among them.
    """
    spans, (low, high) = np.zeros((len(t), 2), np.int64), _windows(ordered, cells, per_ms, first, last, t, reach)
    for j in range(len(t)):
        for k in range(len(reach)):
            begin, end = low[j, k], high[j, k]
            if (end - begin if len(before) == 0 else before[end] - before[begin]) > most:
                break
            spans[j] = begin, max(begin, end)
    spans, n = spans[np.argsort(spans[:, 0])], 0
    out = np.empty((spans[:, 1] - spans[:, 0]).sum(), np.int64)
    end = 0
    for j in range(len(t)):
        for p in range(max(spans[j, 0], end), spans[j, 1]):
            out[n] = p
            n += 1
        end = max(end, spans[j, 1])
    return out[:n]


@njit(cache=True, nogil=True)
def others(docs, known):
    """Those of some documents that are not among the known ones, which are ascending."""
    out, n = np.empty(len(docs), np.int64), 0
    for d in docs:
        place = np.searchsorted(known, d)
        if place == len(known) or known[place] != d:
            out[n] = d
            n += 1
    return out[:n]


@njit(cache=True, nogil=True)
def outermost(allowed, docs):
    """The place of the first allowed one of some documents, and the place after the last; (0, 0) where none is."""
    first, last = 0, len(docs)
    while last > 0 and not allowed[docs[last - 1]]:
        last -= 1
    while first < last and not allowed[docs[first]]:
        first += 1
    return (first, last) if last > 0 else (0, 0)


@njit(cache=True, nogil=True)
def standardised(scores, depth, n):
    """The spread of the ``depth`` best scores, and z of the ``n`` best; 0 and zeros where there is none."""
    best = scores[:depth]
    spread = np.std(best) if len(best) else 0.0
    z = np.zeros(min(n, len(scores)))
    if not 0.0 < spread < inf:
        return 0.0, z
    return spread, (scores[: len(z)] - best.mean()) / spread


@njit(cache=True, nogil=True)
def survey(docs, scores, times, depth, n):
    """Of ranked documents what :func:`standardised` gives, their times, and whether the ``n`` best all have one."""
    spread, z = standardised(scores, depth, n)
    own, are_dated = np.empty(len(docs)), True
    for i in range(len(docs)):
        own[i] = times[docs[i]]
        are_dated &= i >= n or own[i] != UNDATED
    return spread, z, own, are_dated


@njit(inline="always")
def _level(steps):
    """The level of a distance of so many NARROWEST windows, from the exponents of the bits: ⌈log₂⌉, at least 0."""
    out = np.empty(len(steps), np.int64)
    bits = steps.view(np.int64)
    for i in range(len(steps)):
        out[i] = min(max(((bits[i] - 1) >> 52) - 1022, 0), LEVELS)
    return out


@njit(cache=True, nogil=True)
def levels_to(t, centre):
    """The level of each time and a centre."""
    return _level(np.abs(t - centre) / NARROWEST)


@njit(cache=True, nogil=True)
def seen_from(ordered, cells, per_ms, first, last, before, centre, reach, others, worth):
    """The masses around a centre of some documents, and of the collection, which counts as ``worth`` of them."""
    mass = masses(ordered, cells, per_ms, first, last, before, np.array([centre]), reach)[0]
    level, within, n = levels_to(others, centre), np.zeros(LEVELS + 1, np.int64), 0
    for i in range(len(others)):
        if others[i] != UNDATED:
            within[level[i]] += 1
            n += 1
    return (np.cumsum(within)[:-1] + worth * mass) / (n + worth)


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
def urn(shares, mass, t, ranks, kappa, alpha):
    """The towers, K_ij = k_j(t_i), and Σ_i log(1 - π_i + π_i r_i).

    The last is what the urn of bursts knows of each document's time from those ranked before it.
    """
    n, tower = len(ranks), towers(shares, mass)
    kernel = np.empty((n, n))
    for j in range(n):
        level = levels_to(t, t[j])
        for i in range(n):
            kernel[i, j] = tower[j, level[i]]
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
    return tower, kernel, evidence


@njit(cache=True, nogil=True)
def burst_ratios(t, centres, tower, weights):
    """r_b at some times: 1 + Σ_j v_j (k_j(t) - 1), v the weights."""
    out = np.full(len(t), 1.0 - weights.sum())
    for j in range(len(centres)):
        level = levels_to(t, centres[j])
        lifted = weights[j] * tower[j]
        for i in range(len(t)):
            out[i] += lifted[level[i]]
    return out


@njit(cache=True, nogil=True)
def add_log(rho, ratios, t, factor, floor, raised):
    """factor · log max(ratio, floor), added where there is a date; beyond the first ``raised`` only if negative."""
    for i in range(len(rho)):
        if t[i] != UNDATED:
            value = factor * log(max(ratios[i], floor))
            rho[i] += value if i < raised else min(value, 0.0)


@njit(cache=True, nogil=True)
def add_bursts(rho, t, centres, tower, weights, places, kernel, w, factor, floor):
    """a_b log r_b, added to rho; at the places of the first documents of the others alone, place -1 being none."""
    ratios = burst_ratios(t, centres, tower, weights)
    for i in range(len(places)):
        if places[i] >= 0:
            lifted = 0.0
            for j in range(len(places)):
                if j != i:
                    lifted += weights[j] * (kernel[i, j] - 1.0)
            ratios[places[i]] = 1.0 + lifted / (1.0 - w[i])
    add_log(rho, ratios, t, factor, floor, len(t))


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


@njit(cache=True, nogil=True)
def pictured(times, rho, places):
    """Times and ρ at those of some ascending places that there are and that have a date, in the order of time."""
    kept = places[: np.searchsorted(places, len(times))]
    kept = kept[times[kept] != UNDATED]
    kept = kept[np.argsort(times[kept], kind="mergesort")]
    return times[kept].astype(np.int64), rho[kept]


@njit(inline="always")
def _probability(log_odds):
    return 1.0 / (1.0 + exp(-log_odds))


@njit(cache=True, nogil=True)
def recency_evidence(shares, mass, level, z, intercept, share):
    """(evidence, share at the end) of documents near the query's time; ``share`` counts as one document so far."""
    tower = towers(shares, mass.reshape(1, len(mass)))[0]
    near, far, evidence = share, 1.0 - share, 0.0
    for i in range(len(level)):
        pi, around = _probability(z[i] + intercept), tower[level[i]]
        mixed = far + near * around
        ratio = mixed / (near + far)
        like = 1.0 - pi + pi * ratio
        evidence += log(like)
        omega, belongs = pi * ratio / like, near * around / mixed
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
