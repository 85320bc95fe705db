"""The distributions and classifiers of thesis chapters 3 and 4 as they are printed: dense, in float64, one line an
equation, over the whole vocabulary. Slow on purpose."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, psi


def general_english(F: np.ndarray, beta: float) -> np.ndarray:
    """(4.10)"""
    return (F.sum(axis=0) + beta) / (F.sum() + F.shape[1] * beta)


def smoothed(F: np.ndarray, lam: float, ge: np.ndarray) -> np.ndarray:
    """(2.1); a document without words is general English."""
    n = F.sum(axis=1, keepdims=True)
    return np.where(n > 0, lam * F / np.maximum(n, 1e-300) + (1 - lam) * ge, ge)


def laplace(F: np.ndarray, delta: float) -> np.ndarray:
    """(4.8)"""
    return (F.sum(axis=0) + delta) / (F.sum() + F.shape[1] * delta)


def jelinek_mercer(F: np.ndarray, lam: float, ge: np.ndarray) -> np.ndarray:
    """(4.9)"""
    return lam * F.sum(axis=0) / F.sum() + (1 - lam) * ge


def geometric_mean(theta: np.ndarray, S: float = 1.0) -> np.ndarray:
    """(3.28), dense"""
    product = np.prod(theta, axis=0) ** (1 / len(theta))
    return S * product / product.sum()


def log_sd(theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """log of (3.25)"""
    S = alpha.sum()
    return S * np.log(S) - (alpha * np.log(alpha)).sum() + ((alpha - 1) * np.log(theta)).sum(axis=1)


def log_dirichlet(theta: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """log of (3.1)"""
    return gammaln(alpha.sum()) - gammaln(alpha).sum() + ((alpha - 1) * np.log(theta)).sum(axis=1)


def log_dcm(F: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """log of (3.2)"""
    S, n = alpha.sum(), F.sum(axis=1)
    return gammaln(S) - gammaln(S + n) + (gammaln(alpha + F) - gammaln(alpha)).sum(axis=1)


def kl(p: np.ndarray, q: np.ndarray) -> float:
    return float((p * np.log(p / q)).sum())


def cross_entropy(p: np.ndarray, q: np.ndarray) -> float:
    """H(p, q)"""
    return float(-(p * np.log(q)).sum())


def maximise(log_likelihood, V: int, S: float | None) -> np.ndarray:
    """α > 0, Σ α = S where S is given, by a general optimiser on α = S softmax(x) (and log S)."""

    def alpha(x: np.ndarray) -> np.ndarray:
        m = np.exp(x[:V] - x[:V].max())
        return (np.exp(x[V]) if S is None else S) * m / m.sum()

    start = np.zeros(V + (S is None))
    if S is None:
        start[V] = np.log(V)
    best = minimize(
        lambda x: -log_likelihood(alpha(x)),
        start,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 200000, "ftol": 1e-15, "gtol": 1e-9},
    )
    return alpha(best.x)


def minka_dcm(F: np.ndarray, S: float | None, iterations: int = 5000) -> np.ndarray:
    """Minka's fixed point over documents, as printed."""
    alpha = np.full(F.shape[1], (S or F.sum(axis=1).mean()) / F.shape[1])
    for _ in range(iterations):
        up = alpha * (psi(F + alpha) - psi(alpha)).sum(axis=0)
        total = alpha.sum()
        alpha = S * up / up.sum() if S else up / (psi(F.sum(axis=1) + total) - psi(total)).sum()
    return alpha
