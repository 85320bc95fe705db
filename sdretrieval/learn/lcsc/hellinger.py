"""One code under the Hellinger distance, by greedy coordinate descent. It is convex in β, for
-√ of a linear function is.

    F(β) = ρ ‖β - z‖² + (1 + λ) Σ_k β_k - 2 Σ_v √(φ_v s_v) + Σ_v φ_v,    s = D β, Σ_v D_vk = 1

Only words of the context matter: a few rows of D. One coordinate is minimised exactly: F' is concave and increasing in
β_k, so Newton's method started left of the root never steps over it.
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import njit

NEWTON_STEPS = 40
BARE = 1e-3  # of φ_v: a word fitted with less counts as not covered, where a step is only estimated
LEAST_SLOPE = 0.05


@njit(cache=True, nogil=True)
def _slope(x, k, D, r, root_phi, rho, z, lam):
    """F'(β_k = x) and F''; r = s without the k-th theme."""
    g = 1.0 + lam + 2.0 * rho * (x - z)
    h = 2.0 * rho
    for v in range(len(r)):
        d = D[k, v]
        if d > 0.0:
            s = r[v] + d * x
            if s <= 0.0:
                return -np.inf, np.inf
            t = root_phi[v] * d / np.sqrt(s)
            g -= t
            h += 0.5 * t * d / s
    return g, h


@njit(cache=True, nogil=True)
def _best_coordinate(old, k, D, r, root_phi, rho, z, lam):
    """The minimiser of F over β_k >= 0, the others fixed."""
    at_zero, _ = _slope(0.0, k, D, r, root_phi, rho, z, lam)
    if at_zero >= 0.0:
        return 0.0
    if at_zero == -np.inf:  # a word that no other theme covers: β_k is positive; a point left of the root
        # F'(x) <= 1 + λ + 2ρ(x - z) - c/√x over those words alone, c = Σ √(φ_v D_vk)
        c = 0.0
        for v in range(len(r)):
            if D[k, v] > 0.0 and r[v] <= 0.0:
                c += root_phi[v] * np.sqrt(D[k, v])
        x = (c / (1.0 + lam + 2.0 * rho)) ** 2  # its root where ρ = 0, at most 1
        x = min(x, 1.0)
        g, _ = _slope(x, k, D, r, root_phi, rho, z, lam)
        while g > 0.0 and x > 1e-300:
            x *= 0.25
            g, _ = _slope(x, k, D, r, root_phi, rho, z, lam)
    else:
        x = 0.0
    if old > x:
        g, _ = _slope(old, k, D, r, root_phi, rho, z, lam)
        if g <= 0.0:
            x = old
    for _ in range(NEWTON_STEPS):
        g, h = _slope(x, k, D, r, root_phi, rho, z, lam)
        if g >= 0.0:
            break
        step = -g / h
        x += step
        if step <= 1e-13 * x:
            break
    return x


@njit(cache=True, nogil=True)
def code_hellinger(themes, words, phi, by_word, z, beta, lam, rho, tol, place, sums):
    """One code, in place; adds to ``sums`` its part of the objective but for z, its square, and the steps.

    ``themes``: all those of the context's words, and perhaps others; ``place`` is -1 for every theme.
    """
    n, m = len(themes), len(words)
    ptr, w_themes, w_values = by_word
    D = np.zeros((n, m))
    for c in range(n):
        place[themes[c]] = c
    for v in range(m):
        for u in range(ptr[words[v]], ptr[words[v] + 1]):
            D[place[w_themes[u]], v] = w_values[u]
    for c in range(n):
        place[themes[c]] = -1
    root_phi = np.sqrt(phi)
    sums[2] += _solve(D, phi, root_phi, z[themes], beta, rho, lam, tol, 20 * n + 100)
    for v in range(m):
        fit = 0.0
        for c in range(n):
            fit += D[c, v] * beta[c]
        sums[0] += phi[v] - 2.0 * root_phi[v] * np.sqrt(fit)
    for c in range(n):
        sums[0] += (1.0 + lam) * beta[c]
        sums[1] += beta[c] * beta[c]


@njit(cache=True, nogil=True)
def _solve(D, phi, root_phi, z, beta, rho, lam, tol, max_steps):
    """Greedy coordinate descent from ``beta`` (D[candidate, word of the context]). Returns the steps.

    A step is judged by an estimate: F'²/2F'' over the words that are covered, and for bare words, whose slope is minus
    infinity at s = 0, the gain c²/F' of minimising F' x - 2c√x, c = Σ √(φ_v D_vk). The chosen coordinate is then solved
    exactly; one whose exact step lowers F by less than ``tol`` is done until another one moves.
    """
    n, m = D.shape
    s, r, done = np.zeros(m), np.empty(m), np.zeros(n, dtype=np.bool_)
    for k in range(n):
        if beta[k] > 0.0:
            for v in range(m):
                s[v] += D[k, v] * beta[k]
    steps = 0
    while steps < max_steps:
        best, chosen = tol, -1
        for v in range(m):
            r[v] = root_phi[v] / np.sqrt(s[v]) if s[v] > BARE * phi[v] else -1.0  # √(φ/s)
        for k in range(n):
            if done[k]:
                continue
            g = 1.0 + lam + 2.0 * rho * (beta[k] - z[k])
            h = 2.0 * rho + 1e-12
            c = 0.0
            for v in range(m):
                d = D[k, v]
                if d > 0.0:
                    if r[v] >= 0.0:
                        t = r[v] * d
                        g -= t
                        h += 0.5 * t * d / s[v]
                    else:
                        c += root_phi[v] * np.sqrt(d)
            gain = c * c / max(g, LEAST_SLOPE)
            if g < 0.0:
                gain += 0.5 * g * g / h
            elif beta[k] > 0.0 and c == 0.0:
                step = min(g / h, beta[k])
                gain += step * (g - 0.5 * h * step)
            if gain > best:
                best, chosen = gain, k
        if chosen < 0:
            break
        k, old = chosen, beta[chosen]
        before, after = 0.0, 0.0
        for v in range(m):
            if D[k, v] > 0.0:
                before -= 2.0 * root_phi[v] * np.sqrt(max(s[v], 0.0))
                r[v] = max(0.0, s[v] - D[k, v] * old)
                if r[v] < 1e-14 * s[v]:  # what subtraction leaves of a word that only this theme covers
                    r[v] = 0.0
            else:
                r[v] = s[v]
        new = _best_coordinate(old, k, D, r, root_phi, rho, z[k], lam)
        for v in range(m):
            if D[k, v] > 0.0:
                after -= 2.0 * root_phi[v] * np.sqrt(r[v] + D[k, v] * new)
        before += (1.0 + lam) * old + rho * (old - z[k]) ** 2
        after += (1.0 + lam) * new + rho * (new - z[k]) ** 2
        steps += 1
        if before - after <= tol:
            done[k] = True
        else:
            for other in range(n):
                done[other] = False
        if after < before:
            beta[k] = new
            for v in range(m):
                if D[k, v] > 0.0:
                    s[v] = r[v] + D[k, v] * new
    return steps
