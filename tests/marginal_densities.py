"""The marginals of Dirichlet and SD one word and one length at a time: (3.47) to (3.49)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaln, logsumexp, xlogy

from sdretrieval.estimate.distributions.marginals import beta_log_shape, smoothed_proportion


def beta_log_density(theta: Any, alpha: Any, scale: Any) -> np.ndarray:
    """(3.48), the marginal of the Dirichlet."""
    theta, alpha, scale = np.broadcast_arrays(theta, alpha, scale)
    return beta_log_shape(theta, alpha, scale) - betaln(alpha, scale - alpha)


def approximate_beta_log_density(theta: Any, alpha: Any, scale: Any) -> np.ndarray:
    """(3.49), the marginal the thesis assumes for the approximate SD. It does not integrate to one."""
    theta, alpha, scale = np.broadcast_arrays(theta, alpha, scale)
    rest = scale - alpha
    return beta_log_shape(theta, alpha, scale) + xlogy(scale, scale) - xlogy(alpha, alpha) - xlogy(rest, rest)


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
