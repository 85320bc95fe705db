"""Digamma and trigamma where Numba's compiled loops can call them; tested against scipy.special."""

from __future__ import annotations

from math import exp, log

from numba import njit

EULER = 0.5772156649015329


@njit(cache=True, nogil=True)
def digamma_pair(x):
    """ψ(x) and ψ'(x), x > 0: upward recurrence to x >= 8, then the asymptotic series."""
    value, slope = 0.0, 0.0
    while x < 8.0:
        r = 1.0 / x
        value -= r
        slope += r * r
        x += 1.0
    r = 1.0 / x
    s = r * r
    value += log(x) - 0.5 * r
    value -= s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * (691 / 32760))))))
    slope += r + 0.5 * s
    slope += r * s * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * (691 / 2730))))))
    return value, slope


@njit(cache=True, nogil=True)
def digamma(x):
    return digamma_pair(x)[0]


@njit(cache=True, nogil=True)
def inverse_digamma(y, start):
    """The x > 0 with ψ(x) = y, and ψ' there; ``start`` <= 0 asks for Minka's starting point (2000, appendix C).

    Newton's method on a concave rising function: from the left of the root it never overshoots; a step from the right
    that would leave x > 0 is halved instead.
    """
    x = start
    if x <= 0.0:
        x = exp(y) + 0.5 if y >= -2.22 else -1.0 / (y + EULER)
    for _ in range(50):
        value, slope = digamma_pair(x)
        step = (y - value) / slope
        if step <= -x:
            step = -0.5 * x
        x += step
        if abs(step) <= 1e-14 * x or (abs(step) <= 1e-8 * x and abs(step) > 0.0):
            break  # quadratic: a step of 1e-8 leaves an error of 1e-16
    return x, digamma_pair(x)[1]
