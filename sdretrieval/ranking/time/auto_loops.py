"""The inner loops of the automatic time prior, compiled; auto.py has the model and its symbols.

Times are milliseconds as floats, exact below 2^53; ``reach`` holds h_1 < h_2 < … in the same unit, each twice the one
before. A *level* is the number of the narrowest window that two times share, LEVELS where none does.
"""

from __future__ import annotations

from math import exp, inf, log

import numpy as np

from sdretrieval.core.compiled import ask_ahead, njit
from sdretrieval.core.times import UNDATED

LEVELS, NARROWEST = 24, 15 * 60_000  # windows, and the half-width of the narrowest, ms
BEYOND = np.full(2, np.iinfo(np.int64).max)  # times that no document has stand after the ordered ones
PER_MS = 1.0 / NARROWEST  # of exactly h_l this makes 2^l: a test says so
HIGHEST, BLOCK = 2.0**LEVELS, 256


@njit(inline="always")
def _cell(ordered, cells, shift, bound):
    return min(max((bound - ordered[0]) >> shift, 0), len(cells) - 2)


@njit(inline="always")
def _place(ordered, cells, cell, bound):
    """The place of the first time of ``bound`` or later, which is one of those in a cell, or the next cell's first.

    The last three are told apart without a branch, so that the processor need not guess; BEYOND stands at the end of
    ``ordered`` for this to look at.
    """
    low = np.int64(cells[np.uint64(cell)])
    left = cells[np.uint64(cell + 1)] - low
    while left > 3:
        half = (left + 1) >> 1
        if ordered[np.uint64(low + half - 1)] < bound:
            low += half
            left -= half
        else:
            left = half - 1
    low += 2 * (ordered[np.uint64(low + 1)] < bound)
    return low + (ordered[np.uint64(low)] < bound)


@njit(cache=True, nogil=True)
def windows(ordered, cells, shift, first, last, t, reach):
    """The places from ``first`` to ``last`` in the window t_j ± h_l, by j and l: where they begin, and where they end.

    ``cells`` are the places of steps of 2^shift ms along the range, from the first time to beyond the last. Nearly all
    the time goes into waiting for memory, so it is asked ahead.
    """
    out = np.empty((2, len(t), len(reach)), np.int64)
    begin, end = out
    for j in range(len(t)):
        centre = np.int64(t[j])
        for k in range(len(reach)):
            begin[j, k] = _cell(ordered, cells, shift, centre - reach[k])
            end[j, k] = _cell(ordered, cells, shift, centre + reach[k] + 1)
            ask_ahead(cells, begin[j, k])
            ask_ahead(cells, end[j, k])
    for j in range(len(t)):
        for k in range(len(reach)):
            ask_ahead(ordered, cells[begin[j, k]])
            ask_ahead(ordered, cells[end[j, k]])
    for j in range(len(t)):
        centre = np.int64(t[j])
        for k in range(len(reach)):
            begin[j, k] = max(_place(ordered, cells, begin[j, k], centre - reach[k]), first)
            end[j, k] = min(_place(ordered, cells, end[j, k], centre + reach[k] + 1), last)
    return out


@njit(cache=True, nogil=True)
def masses(seen, first, last, before):
    """Share of the documents there are in each window, at least that of one.

    They are those at the places from ``first`` to ``last`` of the ordered times; or as many as ``before`` says, see
    auto.There.
    """
    range_only = len(before) == 0
    total = max(last - first if range_only else before[len(before) - 1], 1)
    begin, end = seen
    out = np.ones(begin.shape)
    for j in range(len(begin)):
        for k in range(begin.shape[1]):
            b, e = begin[j, k], end[j, k]
            if b == first and e == last:  # and so for the wider ones
                break
            out[j, k] = max(e - b if range_only else before[e] - before[b], 1) / total
    return out


@njit(cache=True, nogil=True)
def crowds(seen, before, chosen, docs, most, known):
    """Documents in the widest window of at most ``most`` of those there are, around each chosen centre.

    ``docs`` are the documents at the places. Each once, without the known ones, which are ascending; documents that are
    not there may be among them.
    """
    begin, end = seen
    spans = np.zeros((len(begin), 2), np.int64)
    for j in range(len(begin)):
        for k in range(begin.shape[1] if chosen[j] else 0):
            b, e = begin[j, k], end[j, k]
            if (e - b if len(before) == 0 else before[e] - before[b]) > most:
                break
            spans[j] = b, max(b, e)
    spans = spans[np.argsort(spans[:, 0])]
    out, n, past = np.empty((spans[:, 1] - spans[:, 0]).sum(), np.int64), 0, 0
    for j in range(len(spans)):
        for p in range(max(spans[j, 0], past), spans[j, 1]):
            place = np.searchsorted(known, docs[p])
            if place == len(known) or known[place] != docs[p]:
                out[n] = docs[p]
                n += 1
        past = max(past, spans[j, 1])
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
    best, z, mean, squares = scores[:depth], np.zeros(min(n, len(scores))), 0.0, 0.0
    for score in best:
        mean += score
    mean /= max(len(best), 1)
    for score in best:
        squares += (score - mean) * (score - mean)
    spread = (squares / max(len(best), 1)) ** 0.5
    if not 0.0 < spread < inf:
        return 0.0, z
    return spread, (scores[: len(z)] - mean) / spread


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
def _step(t, centre):
    """A distance in windows of NARROWEST, of a range whose bits tell the level."""
    return min(max(abs(t - centre) * PER_MS, 1.0), HIGHEST)


@njit(inline="always")
def _level(bits):
    """⌈log₂⌉ of a step, from the exponent of its bits; without a sign, so that the processor does several at once."""
    return ((bits - np.uint64(1)) >> np.uint64(52)) - np.uint64(1022)


@njit(cache=True, nogil=True)
def levels_to(t, centre):
    """The level of each time and a centre."""
    steps, out = np.empty(len(t)), np.empty(len(t), np.int64)
    for i in range(len(t)):
        steps[i] = _step(t[i], centre)
    bits = steps.view(np.uint64)
    for i in range(len(t)):
        out[i] = _level(bits[i])
    return out


@njit(cache=True, nogil=True)
def seen_from(ordered, cells, shift, first, last, before, centre, reach, t, others, worth):
    """From a centre the levels of times; and the masses of others, with the collection counted as ``worth`` of them."""
    mass = masses(windows(ordered, cells, shift, first, last, np.array([centre]), reach), first, last, before)[0]
    level, within, n = levels_to(others, centre), np.zeros(LEVELS + 1, np.int64), 0
    for i in range(len(others)):
        if others[i] != UNDATED:
            within[level[i]] += 1
            n += 1
    return levels_to(t, centre), (np.cumsum(within)[:-1] + worth * mass) / (n + worth)


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
def urn(ordered, cells, shift, first, last, before, t, reach, shares, ranks, w, kappa, alpha, chance):
    """Of first documents the windows, the towers, K_ij = k_j(t_i), w_j c_j, and Σ_i log(1 - π_i + π_i r_i).

    The last is what the urn of bursts knows of each document's time from those ranked before it.
    """
    seen = windows(ordered, cells, shift, first, last, t, reach)
    n, tower = len(ranks), towers(shares, masses(seen, first, last, before))
    kernel, steps = np.empty((n, n)), np.empty(n)
    bits = steps.view(np.uint64)
    for j in range(n):
        for i in range(j + 1):
            steps[i] = _step(t[i], t[j])
        for i in range(j + 1):  # the level is the same from either side
            kernel[i, j], kernel[j, i] = tower[j, _level(bits[i])], tower[i, _level(bits[i])]
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
    return seen, tower, kernel, burst_weights(kernel, w, chance), evidence


@njit(cache=True, nogil=True)
def add_bursts(rho, t, centres, tower, weights, places, kernel, w, factor, floor):
    """a_b log r_b, r_b = 1 + Σ_j v_j (k_j(t) - 1), added to rho where there is a date; v are the weights.

    At the places of the first documents r_b is that of the others alone, place -1 being none.
    """
    total = 0.0
    for weight in weights:
        total += weight
    ratios, steps = np.full(len(t), 1.0 - total), np.empty(BLOCK)
    lifted, bits = np.empty(tower.shape), steps.view(np.uint64)
    for j in range(len(centres)):
        lifted[j] = weights[j] * tower[j]
    for left in range(0, len(t), BLOCK):  # what is gone over for each centre stays in the nearest cache
        some, ratio = t[left : left + BLOCK], ratios[left : left + BLOCK]
        for j in range(len(centres)):
            centre, by_level = centres[j], lifted[j]
            for i in range(len(some)):
                steps[i] = _step(some[i], centre)
            for i in range(len(some)):
                ratio[i] += by_level[_level(bits[i])]
    for i in range(len(places)):
        if places[i] >= 0:
            lifted_by_others = 0.0
            for j in range(len(places)):
                if j != i:
                    lifted_by_others += weights[j] * (kernel[i, j] - 1.0)
            ratios[places[i]] = 1.0 + lifted_by_others / (1.0 - w[i])
    for i in range(len(t)):
        if t[i] != UNDATED:
            rho[i] += factor * log(max(ratios[i], floor))


@njit(cache=True, nogil=True)
def add_nearness(rho, t, centre, shares, mass, share, factor, floor, raised):
    """a_q log r_q by level, added to rho where there is a date; beyond the first ``raised`` only if negative."""
    level, told = levels_to(t, centre), towers(shares, mass.reshape(1, len(mass)))[0]
    for k in range(len(told)):
        told[k] = factor * log(max(1.0 - share + share * told[k], floor))
    for i in range(len(t)):
        if t[i] != UNDATED:
            rho[i] += told[level[i]] if i < raised else min(told[level[i]], 0.0)


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
