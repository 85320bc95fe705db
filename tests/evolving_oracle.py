"""SSL and SSL-E as the paper prints them: plain, dense and slow, for tests to compare with."""

from __future__ import annotations

import numpy as np


def laplacian(X: np.ndarray, k: int, sigma: float) -> np.ndarray:
    """(19), (3), (2) one pair at a time; for distinct documents with a positive cosine and no ties."""
    n = len(X)
    d = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(n):
            if i != j:
                cosine = X[i] @ X[j] / np.sqrt(X[i] @ X[i]) / np.sqrt(X[j] @ X[j])
                if cosine > 0:
                    d[i, j] = np.arccos(min(cosine, 1.0))
    W = np.zeros((n, n))
    for i in range(n):
        for j in np.argsort(d[i])[:k]:
            if np.isfinite(d[i, j]):
                W[i, j] = W[j, i] = np.exp(-(d[i, j] ** 2) / (2 * sigma**2))
    return np.diag(W.sum(axis=1)) - W


def alpha_18(
    K: np.ndarray, L: np.ndarray, C: np.ndarray, y: np.ndarray, f_p: np.ndarray, gamma_A: float, gamma_I: float
) -> np.ndarray:
    """(18) as printed, with f_p = K_{t,t-1} α_{t-1} and an inverse."""
    n = len(K)
    C = np.diag(C.astype(float))
    return np.linalg.inv(K.T @ (C + gamma_I / n**2 * L) @ K + gamma_A * K) @ (K @ C @ y + gamma_A * f_p)


def objective_12(
    w: np.ndarray,
    X: np.ndarray,
    L: np.ndarray,
    C: np.ndarray,
    y: np.ndarray,
    w_p: np.ndarray,
    gamma_A: float,
    gamma_I: float,
) -> float:
    """(12) for the linear kernel, as a function of the weights."""
    f = X @ w
    return float(np.sum(C * (y - f) ** 2) + gamma_I / len(X) ** 2 * f @ L @ f + gamma_A * np.sum((w - w_p) ** 2))


def objective_6(ws: np.ndarray, frames: list, gamma_A: float, gamma_I: float) -> float:
    """(6) for the linear kernel; ``frames`` are (X, L, C, y), ``ws`` frames x features."""
    total = 0.0
    before = np.zeros(ws.shape[1])
    for w, (X, L, C, y) in zip(ws, frames, strict=True):
        total += objective_12(w, X, L, C, y, before, gamma_A, gamma_I)
        before = w
    return total
