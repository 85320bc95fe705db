"""Plain and slow: local contexts, Algorithm 1 and the objective as the paper writes them, to test the fast ones by."""

from __future__ import annotations

import numpy as np


def contexts(tokens, n_words: int, weight) -> np.ndarray:
    """φ(i) by its definition; ``weight(distance)`` is the kernel."""
    length = len(tokens)
    phi = np.zeros((length, n_words))
    for i in range(length):
        for j in range(length):
            phi[i, tokens[j]] += weight(abs(i - j))
        phi[i] /= phi[i].sum()
    return phi


def objective(phis, D, betas, lam: float, rho: float, loss: str = "squared") -> float:
    """(5) over documents: lists of φ (positions x words) and β (positions x themes)."""
    total = 0.0
    for phi, beta in zip(phis, betas, strict=True):
        z = beta.mean(axis=0)
        fitted = beta @ D.T
        if loss == "hellinger":
            total += ((np.sqrt(phi) - np.sqrt(fitted)) ** 2).sum()
        else:
            total += ((phi - fitted) ** 2).sum()
        total += rho * ((beta - z) ** 2).sum() + lam * np.abs(beta).sum()
    return float(total)


def algorithm_1(phi, D, lam: float, rho: float, steps: int = 20_000, epsilon: float = 1e-13):
    """Greedy coordinate descent of one document: every position one coordinate, then z; b carries ρz, and max for min.

    z starts as the mean of β = 0 (the paper starts it from b, which is not a mean of codes).
    """
    gram = D.T @ D
    a = rho + np.diag(gram)
    dots = phi @ D
    beta = np.zeros_like(dots)
    z = np.zeros(dots.shape[1])
    values = []
    for _ in range(steps):
        b = rho * z + dots - beta @ gram + beta * np.diag(gram)
        new = np.maximum(0.0, b - lam / 2) / a
        j = np.abs(new - beta).argmax(axis=1)
        rows = np.arange(len(beta))
        moved = new[rows, j] - beta[rows, j]
        beta[rows, j] += moved
        z = beta.mean(axis=0)
        values.append(objective([phi], D, [beta], lam, rho))
        if np.abs(moved).sum() <= epsilon:
            break
    return beta, z, values
