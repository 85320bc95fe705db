"""How often one word occurs in one document, as each distribution of chapter 3 predicts it: (3.43)-(3.50).

    f   count of the word in the document           α   the word's parameter, S their sum over all words
    n   length |D| of the document                  θ   the word's probability (multinomial)
    λ   smoothing, g the word's background probability θ^GE_j

Readings that differ from the print, and why:

- (3.44) as printed is not the beta-binomial it is meant to be: it lacks the binomial coefficient, and has Γ(S+|D|-f)
  where Γ(S-α_j+|D|-f) belongs. Only the form here sums to one over f.
- (3.45) and (3.46) weigh each length by |D|, which would be the distribution seen from a random *token*; (3.50) does
  not. The probability in a random document, which the empirical distribution estimates, has no such factor.
- Dirichlet and SD are densities over θ, and (3.47) takes the density at the smoothed θ of a count for the probability
  of the count. :func:`lattice_log_mass` makes that a probability: normalised over the counts 0 … n of the document,
  it can be compared with the others. The factor that tells (3.48) from (3.49) cancels then: Dirichlet and SD differ
  in their estimates of α alone.

Everything is elementwise over arrays, in natural logarithms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, gammaln, logsumexp, xlog1py, xlogy

from sdretrieval.core.errors import ParameterError


def binomial_log_mass(count: Any, length: Any, theta: Any) -> np.ndarray:
    """(3.43), the marginal of the multinomial; -inf where the count exceeds the length."""
    count, length, theta = np.broadcast_arrays(*map(_float, (count, length, theta)))
    possible = (count >= 0) & (count <= length)
    f = np.where(possible, count, 0.0)
    value = _log_choose(length, f) + xlogy(f, theta) + xlog1py(length - f, -theta)
    return np.where(possible, value, -np.inf)


def beta_binomial_log_mass(count: Any, length: Any, alpha: Any, scale: Any) -> np.ndarray:
    """(3.44), corrected: the marginal of the DCM, C(n,f)·B(α+f, S-α+n-f) / B(α, S-α)."""
    count, length, alpha, scale = np.broadcast_arrays(*map(_float, (count, length, alpha, scale)))
    _check_parameters(alpha, scale)
    possible = (count >= 0) & (count <= length)
    f = np.where(possible, count, 0.0)
    rest = scale - alpha
    value = _log_choose(length, f) + betaln(alpha + f, rest + length - f) - betaln(alpha, rest)
    return np.where(possible, value, -np.inf)


def beta_log_density(theta: Any, alpha: Any, scale: Any) -> np.ndarray:
    """(3.48), the marginal of the Dirichlet."""
    theta, alpha, scale = np.broadcast_arrays(*map(_float, (theta, alpha, scale)))
    _check_parameters(alpha, scale)
    return beta_log_shape(theta, alpha, scale) - betaln(alpha, scale - alpha)


def approximate_beta_log_density(theta: Any, alpha: Any, scale: Any) -> np.ndarray:
    """(3.49), the marginal the thesis assumes for the approximate SD. It does not integrate to one."""
    theta, alpha, scale = np.broadcast_arrays(*map(_float, (theta, alpha, scale)))
    _check_parameters(alpha, scale)
    rest = scale - alpha
    return beta_log_shape(theta, alpha, scale) + xlogy(scale, scale) - xlogy(alpha, alpha) - xlogy(rest, rest)


def smoothed_proportion(count: Any, length: Any, background: Any, smoothing: float) -> np.ndarray:
    """θ = λ·f/n + (1-λ)·g, what (3.47) puts in the place of a count."""
    return smoothing * _float(count) / _float(length) + (1.0 - smoothing) * _float(background)


def lattice_log_mass(
    count: int | np.ndarray, length: int, alpha: float, scale: float, background: float, smoothing: float
) -> np.ndarray:
    """(3.47) as a probability: the density at each count's θ, normalised over the counts 0 … ``length``.

    For one word and one length; see ``marginal_loops`` for many. It serves Dirichlet and SD alike.
    """
    points = smoothed_proportion(np.arange(length + 1), length, background, smoothing)
    shape = beta_log_shape(points, np.asarray(alpha), np.asarray(scale))
    logs = shape - logsumexp(shape)
    count = np.asarray(count)
    possible = (count >= 0) & (count <= length)
    return np.where(possible, logs[np.where(possible, count, 0)], -np.inf)


def beta_log_shape(theta: np.ndarray, alpha: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """log of θ^(α-1)·(1-θ)^(S-α-1), the part of (3.48) and (3.49) that depends on θ."""
    return xlogy(alpha - 1.0, theta) + xlog1py(scale - alpha - 1.0, -theta)


def _log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def _check_parameters(alpha: np.ndarray, scale: np.ndarray) -> None:
    if not ((alpha > 0) & (alpha < scale)).all():
        raise ParameterError("alpha must lie between 0 and the scale S, both excluded")


def _float(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float)
