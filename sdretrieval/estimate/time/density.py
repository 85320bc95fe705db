"""Weighted kernel density over time, with its edges mended, and rules for its bandwidth.

    f̂(t) = Σ_i w_i K_h(t - t_i) / Σ_i w_i

**Edges.** Given ``bounds``, mass that a kernel puts outside is folded back in: the data are reflected at both ends, as
often as the kernel reaches. The density then integrates to one over the bounds, has no dip at the ends (dividing by
the mass inside instead would lose up to 31 % there), and goes to the uniform density as h → ∞.

**Bandwidth.** :func:`silverman` is the rule of thumb with the effective sample size of the weights;
:func:`likelihood_bandwidth` maximises the weighted leave-one-out likelihood. Documents of the *same instant* are left
out together: otherwise ties, which day-level dates are full of, drive h to zero.

Undated data are left out, as are weights of zero and data outside the bounds. With no data left the density is uniform
over the bounds (and NaN without bounds): nothing is known of time then.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import HOUR, known_times
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel, check_bandwidth

ENTRIES_AT_ONCE = 2_000_000

Bounds = tuple[float, float]


def weighted_kde(
    times_ms: ArrayLike,
    weights: ArrayLike | None,
    at_ms: ArrayLike,
    kernel: str | Kernel = "epanechnikov",
    bandwidth_ms: float = inf,
    bounds: Bounds | None = None,
) -> Floats:
    """f̂ at each of ``at_ms``, per millisecond; zero outside the bounds, NaN where ``at_ms`` is undated.

    >>> weighted_kde([0.0, 10.0], None, [0.0, 5.0], "uniform", 2.0).tolist()
    [0.125, 0.0]
    """
    kernel = as_kernel(kernel)
    if kernel.online:
        raise ParameterError("a density over time takes a symmetric kernel", remedy="Pass its name alone.")
    h = check_bandwidth(bandwidth_ms, positive=True)
    t, w = _clean(times_ms, weights, bounds)
    at, dated = known_times(np.atleast_1d(np.asarray(at_ms)))
    out = np.full(len(at), np.nan)
    where = np.flatnonzero(dated)
    if bounds is None:
        if len(t) and h < inf:
            out[where] = _sum_of_kernels(t, w, at[where], kernel, h)
        elif len(t):
            raise ParameterError("an infinite bandwidth needs bounds", remedy="Pass bounds=(first, last).")
        return out
    low, high = bounds
    inside = (at[where] >= low) & (at[where] <= high)
    out[where[~inside]] = 0.0
    where = where[inside]
    span = float(high) - float(low)
    if len(t) == 0 or _is_flat(kernel, h, span):
        out[where] = 1.0 / span
        return out
    values = np.zeros(len(where))
    for image in _images(t, bounds, h * kernel.form.width):
        values += _sum_of_kernels(image, w, at[where], kernel, h)
    out[where] = values
    return out


def _is_flat(kernel: Kernel, h: float, span: float) -> bool:
    return h > kernel.form.flat_from * span


def _images(t: Floats, bounds: Bounds, reach: float) -> Iterator[Floats]:
    """The data and their reflections at both ends, as far out as a kernel of that reach can see from inside.

    Reflecting at two ends for ever repeats the data and their mirror image with period 2 (high - low).
    """
    low, high = float(bounds[0]), float(bounds[1])
    span = high - low
    copies = ceil((reach + span) / (2 * span))
    for copy in range(-copies, copies + 1):
        for image in (t + 2 * span * copy, 2 * low - t + 2 * span * copy):
            if image.max() >= low - reach and image.min() <= high + reach:
                yield image


def _sum_of_kernels(t: Floats, w: Floats, at: Floats, kernel: Kernel, h: float) -> Floats:
    """Σ_i w_i K_h(at - t_i), Σ w = 1, touching only the data within reach of each stretch of ``at``."""
    order = np.argsort(t, kind="stable")
    t, w = t[order], w[order]
    where = np.argsort(at, kind="stable")
    out = np.zeros(len(at))
    reach = h * kernel.form.width * (1 + 1e-9)
    step = max(1, ENTRIES_AT_ONCE // max(len(t), 1))
    for first in range(0, len(at), step):
        chunk = where[first : first + step]
        lo = np.searchsorted(t, at[chunk[0]] - reach, side="left")
        hi = np.searchsorted(t, at[chunk[-1]] + reach, side="right")
        if hi > lo:
            out[chunk] = kernel.scaled(at[chunk][:, None] - t[None, lo:hi], h) @ w[lo:hi]
    return out


def _clean(times: ArrayLike, weights: ArrayLike | None, bounds: Bounds | None = None) -> tuple[Floats, Floats]:
    """Dated data of positive weight within the bounds, weights summing to one."""
    t, dated = known_times(times)
    w = np.ones(len(t)) if weights is None else np.asarray(weights, dtype=np.float64)
    if w.shape != t.shape:
        raise ParameterError(f"{len(t)} times but {w.size} weights")
    if not (np.isfinite(w).all() and (w >= 0).all()):
        raise ParameterError("weights must be finite and not negative")
    kept = dated & (w > 0)
    if bounds is not None:
        low, high = bounds
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise ParameterError(f"bounds must be two finite times, the first before the second, got {bounds}")
        kept &= (t >= low) & (t <= high)
    t, w = t[kept], w[kept]
    return t, w / w.sum() if len(w) else w


def mode(
    times_ms: ArrayLike,
    weights: ArrayLike | None,
    kernel: str | Kernel = "epanechnikov",
    bandwidth_ms: float = inf,
    bounds: Bounds | None = None,
    *,
    grid: int = 512,
) -> float:
    """The time of highest density, among the data and a grid over them; NaN without data."""
    t, w = _clean(times_ms, weights, bounds)
    if len(t) == 0:
        return float("nan")
    at = np.union1d(t, np.linspace(t.min(), t.max(), grid))
    return float(at[int(np.argmax(weighted_kde(t, w, at, kernel, bandwidth_ms, bounds)))])


def effective_size(weights: ArrayLike) -> float:
    """(Σ w)² / Σ w²: how many equally weighted data the weights are worth (Kish)."""
    w = np.asarray(weights, dtype=np.float64)
    squares = float(w @ w)
    return float(w.sum()) ** 2 / squares if squares > 0 else 0.0


def silverman(
    times_ms: ArrayLike,
    weights: ArrayLike | None = None,
    kernel: str | Kernel = "epanechnikov",
    *,
    minimum_ms: float = HOUR,
) -> float:
    """0.9 min(σ, IQR/1.34) n^(-1/5), weighted, n the effective size, carried over to the kernel at hand.

    Never below ``minimum_ms``: data of one instant, or a single datum, have no spread to go by.
    """
    t, w = _clean(times_ms, weights)
    if len(t) == 0:
        return float(minimum_ms)
    centre = float(w @ t)
    sigma = float(np.sqrt(w @ (t - centre) ** 2))
    order = np.argsort(t, kind="stable")
    cumulative = np.cumsum(w[order]) - w[order] / 2
    low, high = np.interp([0.25, 0.75], cumulative, t[order])
    spreads = [s for s in (sigma, float(high - low) / 1.34) if s > 0]
    if not spreads:
        return float(minimum_ms)
    gaussian = 0.9 * min(spreads) * effective_size(w) ** -0.2
    return max(gaussian * as_kernel(kernel).canonical / Kernel("gaussian").canonical, float(minimum_ms))


def likelihood_bandwidth(
    times_ms: ArrayLike,
    weights: ArrayLike | None = None,
    kernel: str | Kernel = "epanechnikov",
    *,
    bounds: Bounds | None = None,
    candidates: ArrayLike | None = None,
    minimum_ms: float = HOUR,
    uniform: float = 0.05,
) -> float:
    """h of the highest weighted leave-one-out log-likelihood Σ_i w_i log f̂_(-i)(t_i).

    f̂ is mixed with ``uniform`` parts of the uniform density over the bounds (or the range of the data), or a single
    outlier beyond a bounded kernel's reach would veto every h but the widest. Infinite where no h beats the uniform
    density by more than one nat over all (effective) data, the price of a parameter by Akaike's count: time tells
    nothing then. One instant alone gives ``minimum_ms``. The cost is quadratic in the number of distinct instants.
    """
    kernel = as_kernel(kernel)
    if not 0 < uniform < 1:
        raise ParameterError(f"uniform must be in (0, 1), got {uniform}")
    t, w = _clean(times_ms, weights, bounds)
    instants, which = np.unique(t, return_inverse=True)
    if len(instants) == 0:
        return inf
    if len(instants) == 1:
        return float(minimum_ms)
    mass = np.bincount(which, weights=w)
    low, high = (instants[0], instants[-1]) if bounds is None else bounds
    span = float(high) - float(low)
    if candidates is None:
        grid = np.geomspace(min(minimum_ms, span), max(2 * span, minimum_ms), 24)
    else:
        grid = np.sort(np.asarray(candidates, dtype=np.float64))
    apart = 1.0 - np.eye(len(instants))  # an instant does not count for itself, nor do its reflections
    rest = apart @ mass
    best, best_score = inf, -np.log(span) + 1.0 / effective_size(w)
    for h in grid:
        if bounds is not None and _is_flat(kernel, float(h), span):
            continue
        images = [instants] if bounds is None else _images(instants, bounds, h * kernel.form.width)
        total = np.zeros(len(instants))
        for image in images:
            total += (kernel.scaled(instants[:, None] - image[None, :], h) * apart) @ mass
        score = float(mass @ np.log((1 - uniform) * total / rest + uniform / span))
        if score > best_score:
            best, best_score = float(h), score
    return best
