"""The inner loops of time priors, compiled: a prior must cost little beside the ranking it is added to.

shape   a kernel relative to its peak: a :class:`~sdretrieval.estimate.time.kernels.LoopShape`
floor   ε, what is left of a document beyond the kernel's reach
"""

from __future__ import annotations

from math import exp, inf, log, sqrt

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.kernels import EXPONENTIAL, GAUSSIAN, POLYNOMIAL


@njit(inline="always")
def _relative(kind, p, q, radius, table, r):
    """K(r)/K(0) for r >= 0. Loops unpack the shape first: a tuple with an array costs time at each use."""
    if kind == EXPONENTIAL:
        return exp(-r)
    if kind == GAUSSIAN:
        return exp(-0.5 * r * r)
    if r >= radius:
        return 0.0
    if kind == POLYNOMIAL:
        return (1.0 - r**p) ** q
    last = len(table) - 1
    place = r / radius * last
    k = min(int(place), last - 1)
    return table[k] + (place - k) * (table[k + 1] - table[k])


@njit(inline="always")
def _log_faded(kind, p, q, radius, table, floor, age, h):
    """log((1-ε) K(age/h)/K(0) + ε); the future has the floor."""
    if age < 0.0:
        return log(floor)
    return log((1.0 - floor) * _relative(kind, p, q, radius, table, age / h) + floor)


@njit(cache=True, nogil=True)
def time_span(times):
    """First and last time of the dated ones; inf and -inf where none is."""
    low, high = inf, -inf
    for t in times:
        if t != UNDATED:
            low = min(low, float(t))
            high = max(high, float(t))
    return low, high


@njit(cache=True, nogil=True)
def survey(scores, times, n_first, n_compared, spread_depth, temperature, by):
    """What a prior goes by, from the scores and times of the best documents in rank order.

    (spread of the best scores, times to compare with, times of the evidence, its weights). ``by``: 0 score, 1 rank,
    2 uniform.
    """
    places = len(scores)
    depth = min(spread_depth, places)
    unit = np.std(scores[:depth]) if depth else 0.0
    if not (unit > 0.0 and unit < inf):
        unit = 1.0
    compared = np.empty(min(n_compared, places))
    first, weights = np.empty(min(n_first, places)), np.empty(min(n_first, places))
    n, m, total = 0, 0, 0.0
    for k in range(len(compared)):
        t = times[k]
        if t == UNDATED:
            continue
        compared[n] = t
        n += 1
        if k < len(first):
            first[m] = t
            if by == 0:
                weights[m] = exp((scores[k] - scores[0]) / (temperature * unit))
            elif by == 1:
                weights[m] = 1.0 / (k + 1)
            else:
                weights[m] = 1.0
            total += weights[m]
            m += 1
    return unit, compared[:n], first[:m], weights[:m] / max(total, 1e-300)


@njit(cache=True, nogil=True)
def log_faded(shape, floor, ages, h):
    """log((1-ε) K(age/h)/K(0) + ε) of each age."""
    kind, p, q, radius, table, _ = shape
    out = np.empty(len(ages))
    for i in range(len(ages)):
        out[i] = _log_faded(kind, p, q, radius, table, floor, ages[i], h)
    return out


@njit(cache=True, nogil=True)
def choose_recency(shape, floor, t_q, compared, first, weights, shortest, longest, number):
    """(h, log E_g K_h, gain, effective size) of the highest gain Σ_i r_i log K_h(t_q - t_i) - log E_g K_h.

    h from a geometric grid of ``number`` bandwidths.
    """
    kind, p, q, radius, table, _ = shape
    best_h, best_mean, best_gain = shortest, 0.0, -inf
    for j in range(number):
        h = shortest * (longest / shortest) ** (j / (number - 1)) if number > 1 else shortest
        total = 0.0
        for i in range(len(compared)):
            age = t_q - compared[i]
            total += floor if age < 0.0 else (1.0 - floor) * _relative(kind, p, q, radius, table, age / h) + floor
        log_mean = log(total / len(compared))
        gain = -log_mean
        for i in range(len(first)):
            gain += weights[i] * _log_faded(kind, p, q, radius, table, floor, t_q - first[i], h)
        if gain > best_gain:
            best_h, best_mean, best_gain = h, log_mean, gain
    squares = 0.0
    for w in weights:
        squares += w * w
    return best_h, best_mean, best_gain, 1.0 / squares if squares > 0.0 else 0.0


@njit(cache=True, nogil=True)
def recency_table(shape, floor, t_q, h, log_mean, low, step, bins):
    """ρ at the middles of the bins."""
    kind, p, q, radius, table, _ = shape
    out = np.empty(bins)
    for k in range(bins):
        out[k] = _log_faded(kind, p, q, radius, table, floor, t_q - (low + (k + 0.5) * step), h) - log_mean
    return out


@njit(cache=True, nogil=True)
def add_table(scores, times, table, low, step, now, future, factor):
    """scores + factor · ρ(t_D), ρ interpolated between the middles of the bins, and ``future`` after ``now``.

    Undated documents have ρ = 0.
    """
    out = np.empty(len(times))
    last, per_ms = len(table) - 1, 1.0 / step
    for i in range(len(times)):
        t = times[i]
        if t == UNDATED:
            out[i] = scores[i]
            continue
        place = (t - low) * per_ms - 0.5
        if t > now:
            value = future
        elif place <= 0.0:
            value = table[0]
        elif place >= last:
            value = table[last]
        else:
            k = int(place)
            value = table[k] + (place - k) * (table[k + 1] - table[k])
        out[i] = scores[i] + factor * value
    return out


@njit(cache=True, nogil=True)
def add_recency(scores, times, shape, floor, t_q, h, log_mean, factor):
    """The same with ρ of each document computed as it is: for kernels too sharp for a table."""
    kind, p, q, radius, table, _ = shape
    out = np.empty(len(times))
    for i in range(len(times)):
        t = times[i]
        if t == UNDATED:
            out[i] = scores[i]
        else:
            out[i] = scores[i] + factor * (_log_faded(kind, p, q, radius, table, floor, t_q - t, h) - log_mean)
    return out


@njit(cache=True, nogil=True)
def spread_in_time(t, w):
    """min(σ, IQR/1.34) of weighted times (whichever is positive, else 0), and Kish's effective size.

    As :func:`~sdretrieval.estimate.time.density.silverman` has it; Σ w = 1.
    """
    centre = squares = 0.0
    for i in range(len(t)):
        centre += w[i] * t[i]
        squares += w[i] * w[i]
    variance = 0.0
    for i in range(len(t)):
        variance += w[i] * (t[i] - centre) ** 2
    order = np.argsort(t, kind="mergesort")
    middle = np.empty(len(t))
    below = 0.0
    for k in range(len(t)):
        middle[k] = below + w[order[k]] / 2
        below += w[order[k]]
    quartiles = np.interp(np.array([0.25, 0.75]), middle, t[order])
    sigma, other = sqrt(variance), (quartiles[1] - quartiles[0]) / 1.34
    if sigma > 0 and other > 0:
        sigma = min(sigma, other)
    return max(sigma, 0.0), 1.0 / squares


@njit(cache=True, nogil=True)
def smooth(places, masses, shape, width, bins):
    """Mass in each bin of the given masses at the given bins, smoothed by a kernel of ``width`` bins.

    What leaves at an end is reflected back in. A kernel reaches no farther than all the bins: wider ones are cut and
    rescaled, the outcome being flat by then anyway.
    """
    kind, p, q, radius, table, _ = shape
    reach = min(int(shape.reach * width) + 1, bins)
    kernel = np.empty(2 * reach + 1)
    for m in range(reach + 1):
        kernel[reach + m] = kernel[reach - m] = _relative(kind, p, q, radius, table, m / width)
    kernel /= kernel.sum()
    wide = np.zeros(3 * bins)  # the bins, with room to overflow at both ends
    for i in range(len(places)):
        start = bins + places[i] - reach
        for m in range(2 * reach + 1):
            wide[start + m] += masses[i] * kernel[m]
    out = wide[bins : 2 * bins].copy()
    for k in range(bins):
        out[k] += wide[bins - 1 - k] + wide[3 * bins - 1 - k]
    return out


@njit(cache=True, nogil=True)
def density_ratio(first, weights, compared, low, high, bins, shape, h, peak, floor):
    """(table of ρ, gain): log((1-ε) f̂/ĝ + ε) by bin, and its leave-one-out mean over the evidence.

    All documents of an instant are left out together; one instant alone gains nothing.
    """
    step = (high - low) / bins
    at = np.empty(len(first), np.int64)
    for i in range(len(first)):
        at[i] = min(max(int((first[i] - low) / step), 0), bins - 1)
    counts = np.zeros(bins)
    for i in range(len(compared)):
        counts[min(int((compared[i] - low) / step), bins - 1)] += 1.0
    used = np.flatnonzero(counts)
    f = smooth(at, weights, shape, h / step, bins)
    g = smooth(used, counts[used] / len(compared), shape, h / step, bins)
    table = np.empty(bins)
    for k in range(bins):
        table[k] = log((1.0 - floor) * (f[k] / g[k] if g[k] > 1e-300 else 0.0) + floor)
    left_out = left_out_density(first, weights, low, high, shape, h)
    gain, told = 0.0, False
    for i in range(len(first)):
        told = told or left_out[i] > 0.0
        ratio = left_out[i] * peak * step / h / max(g[at[i]], 1e-300)
        gain += weights[i] * log((1.0 - floor) * ratio + floor)
    return table, gain if told else 0.0


@njit(cache=True, nogil=True)
def left_out_density(t, w, low, high, shape, h):
    """Σ_{j not of i's instant} w_j K(·/h)/K(0), reflected once at both ends, over Σ of those w_j: for each i."""
    kind, p, q, radius, table, _ = shape
    n = len(t)
    out, near = np.zeros(n), shape.reach * h
    for i in range(n):
        total = rest = 0.0
        from_low, from_high = t[i] - low, high - t[i]
        for j in range(n):
            if t[j] == t[i]:
                continue
            rest += w[j]
            apart = abs(t[i] - t[j])
            if apart < near:
                total += w[j] * _relative(kind, p, q, radius, table, apart / h)
            apart = abs(from_low + t[j] - low)
            if apart < near:
                total += w[j] * _relative(kind, p, q, radius, table, apart / h)
            apart = abs(from_high + high - t[j])
            if apart < near:
                total += w[j] * _relative(kind, p, q, radius, table, apart / h)
        out[i] = total / rest if rest > 0.0 else 0.0
    return out
