"""The marginals of ``marginals.py`` for many words and lengths at once, compiled.

Each loop fills, for words x lengths,

    masses[w, f]      Σ_n P(n)·P(f | word w, length n) for f = 0 … the last column
    log_zero[w, n]    log P(0 | word w, length n)

and the lattice loop also log_total[w, n], the logarithm of what its densities sum to. Words may have any order;
lengths are distinct, with their probabilities beside them.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

import numpy as np

from sdretrieval.core.compiled import njit


@njit(cache=True, nogil=True)
def binomial_masses(theta, lengths, probabilities, masses, log_zero):
    """(3.43): from one count to the next, P(f+1)/P(f) = (n-f)/(f+1) · θ/(1-θ)."""
    top = masses.shape[1]
    masses[:] = 0.0
    logs = np.log(np.arange(1, top + 1).astype(np.float64))
    for w in range(len(theta)):
        odds = log(theta[w]) - log1p(-theta[w])
        for l in range(len(lengths)):
            n = lengths[l]
            value = n * log1p(-theta[w])
            log_zero[w, l] = value
            for f in range(min(top, n + 1)):
                masses[w, f] += probabilities[l] * exp(value)
                if f < n:
                    value += log(n - f) - logs[f] + odds


@njit(cache=True, nogil=True)
def beta_binomial_masses(alpha, scale, lengths, probabilities, masses, log_zero):
    """(3.44): P(f+1)/P(f) = (n-f)/(f+1) · (α+f)/(S-α+n-f-1)."""
    top = masses.shape[1]
    masses[:] = 0.0
    logs = np.log(np.arange(1, top + 1).astype(np.float64))
    for w in range(len(alpha)):
        a, rest = alpha[w], scale - alpha[w]
        for l in range(len(lengths)):
            n = lengths[l]
            value = lgamma(scale) - lgamma(scale + n) + lgamma(rest + n) - lgamma(rest)
            log_zero[w, l] = value
            for f in range(min(top, n + 1)):
                masses[w, f] += probabilities[l] * exp(value)
                if f < n:
                    value += log((n - f) * (a + f) / (rest + n - f - 1.0)) - logs[f]


@njit(cache=True, nogil=True)
def lattice_masses(alpha, scale, background, smoothing, lengths, probabilities, masses, log_zero, log_total):
    """(3.47), normalised over the counts of each document."""
    top = masses.shape[1]
    masses[:] = 0.0
    longest = 0
    for l in range(len(lengths)):
        longest = max(longest, lengths[l])
    values = np.empty(longest + 1)
    for w in range(len(alpha)):
        power, rest = alpha[w] - 1.0, scale - alpha[w] - 1.0
        floor = (1.0 - smoothing) * background[w]
        for l in range(len(lengths)):
            n = lengths[l]
            highest = -np.inf
            last = n
            for f in range(n + 1):
                theta = floor + smoothing * f / n if n > 0 else floor
                values[f] = power * log(theta) + rest * log1p(-theta)
                highest = max(highest, values[f])
                # With rest >= 0 the density falls or has one peak: what follows is below any float's notice.
                if rest >= 0.0 and values[f] < highest - 45.0:
                    last = f
                    break
            total = 0.0
            for f in range(last + 1):
                total += exp(values[f] - highest)
            log_total[w, l] = highest + log(total)
            log_zero[w, l] = values[0] - log_total[w, l]
            for f in range(min(top, last + 1)):
                masses[w, f] += probabilities[l] * exp(values[f] - log_total[w, l])


@njit(cache=True, nogil=True)
def density_masses(alpha, scale, background, smoothing, log_normaliser, lengths, probabilities, masses):
    """(3.50) as printed: densities averaged over lengths, not probabilities."""
    top = masses.shape[1]
    masses[:] = 0.0
    for w in range(len(alpha)):
        power, rest = alpha[w] - 1.0, scale - alpha[w] - 1.0
        floor = (1.0 - smoothing) * background[w]
        for l in range(len(lengths)):
            n = lengths[l]
            for f in range(min(top, n + 1)):
                theta = floor + smoothing * f / n
                value = power * log(theta) + rest * log1p(-theta) - log_normaliser[w]
                masses[w, f] += probabilities[l] * exp(value)
