"""The normaliser of the Smoothed Dirichlet: exact in low dimension, and the two closed forms it is compared with.

A smoothed document θ = λ·θ̂ + (1-λ)·θ^GE never leaves the compressed simplex Δ^s (3.13), so its density must integrate
to one there and not over the whole simplex:

    Z^SD = ∫_{Δ^s} Π_j θ_j^(α_j - 1) dθ = λ^(V-1) ∫_Δ Π_j (λ·u_j + (1-λ)·g_j)^(α_j - 1) du           (3.14), (3.15)

The change of variables is one of V-1 coordinates, hence λ^(V-1); the thesis prints λ, which is right for the two words
of its Figure 3.4 only.

    α    parameters                      V   number of words
    λ    smoothing: weight of the document's own words
    g    θ^GE, the background            u   a point of the simplex, the document before smoothing

All values are natural logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, roots_jacobi, xlogy

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions.sampling import check_smoothed_dirichlet, sample_log_dirichlet

MOST_NODES = 4_000_000  # of the quadrature: more would take minutes


def log_dirichlet_normaliser(alpha: np.ndarray) -> np.ndarray | float:
    """log Z^Dir = Σ log Γ(α_j) - log Γ(S) (3.12), over the last axis."""
    alpha = np.asarray(alpha, dtype=float)
    return gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1))


def log_approximate_normaliser(alpha: np.ndarray) -> np.ndarray | float:
    """log Z_a = Σ α_j log α_j - S log S (3.24): bounded as α_j → 0, and independent of λ and of the background."""
    alpha = np.asarray(alpha, dtype=float)
    total = alpha.sum(axis=-1)
    return xlogy(alpha, alpha).sum(axis=-1) - xlogy(total, total)


def log_exact_normaliser(
    alpha: np.ndarray, background: np.ndarray, smoothing: float, *, tolerance: float = 1e-8
) -> float:
    """log Z^SD (3.14) by Gauss-Jacobi quadrature; for few words (V up to about 6).

    The simplex is cut into sticks, u_1 = t_1, u_2 = (1-t_1)·t_2, …, whose Jacobian Π (1-t_k)^(V-1-k) is the weight
    that each Gauss-Jacobi rule integrates exactly. The number of nodes doubles until the logarithm moves by less
    than ``tolerance``; ParameterError where that does not happen in time.
    """
    alpha, background = check_smoothed_dirichlet(alpha, background, smoothing)
    if smoothing == 1.0:
        return float(log_dirichlet_normaliser(alpha))
    words = len(alpha)
    if words == 1:
        return 0.0
    before, nodes = np.inf, 16
    while nodes ** (words - 1) <= MOST_NODES:
        now = _quadrature(alpha, background, smoothing, nodes)
        if abs(now - before) < tolerance:
            return now
        before, nodes = now, 2 * nodes
    raise ParameterError(
        f"the normaliser of {words} words at smoothing {smoothing} does not settle with {nodes // 2} nodes a dimension",
        remedy="Use Monte Carlo (`estimate_normaliser`), fewer words, or a larger tolerance.",
    )


def _quadrature(alpha: np.ndarray, background: np.ndarray, smoothing: float, nodes: int) -> float:
    """The integral with ``nodes`` points in each of the V-1 dimensions."""
    words = len(alpha)
    exponents = np.zeros(1)  # of the product so far, one for each point of the grid
    left = np.ones(1)  # of the stick
    log_weights = np.zeros(1)
    for k in range(words - 1):
        t, weights = _stick_rule(nodes, words - 2 - k)
        piece = left[:, None] * t
        exponents = (exponents[:, None] + _log_factor(piece, k, alpha, background, smoothing)).ravel()
        log_weights = (log_weights[:, None] + np.log(weights)).ravel()
        left = (left[:, None] * (1.0 - t)).ravel()
    exponents = exponents + _log_factor(left, words - 1, alpha, background, smoothing) + log_weights
    return float((words - 1) * np.log(smoothing) + logsumexp(exponents))


def _stick_rule(nodes: int, power: int) -> tuple[np.ndarray, np.ndarray]:
    """∫_0^1 f(t)·(1-t)^power dt, from SciPy's rule on (-1, 1)."""
    x, weights = roots_jacobi(nodes, power, 0)
    return (1.0 + x) / 2.0, weights / 2.0 ** (power + 1)


def _log_factor(u: np.ndarray, j: int, alpha: np.ndarray, background: np.ndarray, smoothing: float) -> np.ndarray:
    return (alpha[j] - 1.0) * np.log(smoothing * u + (1.0 - smoothing) * background[j])


class Estimate(NamedTuple):
    """A logarithm estimated by Monte Carlo, with the standard error of that logarithm."""

    log: float
    standard_error: float


def estimate_normaliser(
    alpha: np.ndarray,
    background: np.ndarray,
    smoothing: float,
    *,
    samples: int = 100_000,
    seed: int | np.random.Generator | None = None,
) -> Estimate:
    """log Z^SD (3.14) by importance sampling, in any dimension where the error it reports is small enough.

    Half of the points come from the uniform distribution on the simplex and half from Dirichlet(α); each is weighted
    by the mixture's density. The uniform half keeps the weights bounded where smoothing lifts the density at the
    border, the other follows it where α is concentrated.
    """
    alpha, background = check_smoothed_dirichlet(alpha, background, smoothing)
    if samples < 2:
        raise ParameterError(f"samples must be at least 2, got {samples}")
    words = len(alpha)
    if words == 1:
        return Estimate(0.0, 0.0)
    rng = np.random.default_rng(seed)
    half = samples // 2
    log_u = np.concatenate(
        [sample_log_dirichlet(np.ones(words), half, rng), sample_log_dirichlet(alpha, samples - half, rng)]
    )
    uniform = np.full(samples, gammaln(words))  # the density of Dirichlet(1)
    peaked = log_u @ (alpha - 1.0) - log_dirichlet_normaliser(alpha)
    proposal = np.logaddexp(np.log(half / samples) + uniform, np.log(1.0 - half / samples) + peaked)
    target = np.log(smoothing * np.exp(log_u) + (1.0 - smoothing) * background) @ (alpha - 1.0)
    if smoothing == 1.0:
        target = log_u @ (alpha - 1.0)
    log_weights = target - proposal
    highest = log_weights.max()
    weights = np.exp(log_weights - highest)
    mean = weights.mean()
    # Each half is a sample of its own: their variances add.
    variance = sum(part.var(ddof=1) * len(part) for part in (weights[:half], weights[half:]) if len(part) > 1)
    error = np.sqrt(variance) / samples / mean
    return Estimate(float((words - 1) * np.log(smoothing) + highest + np.log(mean)), float(error))


def log_exact_density(
    theta: np.ndarray, alpha: np.ndarray, background: np.ndarray, smoothing: float, *, log_normaliser: float
) -> np.ndarray | float:
    """The exact Smoothed Dirichlet (3.16): -inf outside the compressed simplex (3.20)."""
    alpha, background = check_smoothed_dirichlet(alpha, background, smoothing)
    theta = np.asarray(theta, dtype=float)
    floor = (1.0 - smoothing) * background
    inside = (theta >= floor - 1e-12).all(axis=-1) & np.isclose(theta.sum(axis=-1), 1.0, rtol=0, atol=1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(theta) @ (alpha - 1.0) - log_normaliser
    return np.where(inside, value, -np.inf)[()]
