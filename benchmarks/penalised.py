"""Speed of the penalised estimator (Figure 13): 35,000 words, against sorting them and against a general solver.

Must hold: 35,000 words in under 0.1 s at every penalty; the general solver (SciPy's SLSQP, on the smooth form of the
problem) needs longer for 60 words than ours for 35,000; and both agree.

    python -m benchmarks.penalised
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from sdretrieval.estimate.time.penalised import choose_strength, penalties, solve

WORDS, SMALL, TOKENS = 35_000, 60, 200_000


def problem(k: int, tokens: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A day's counts from a distribution that shares 65 % of its words with the global one."""
    rng = np.random.default_rng(seed)
    q = 1 / np.arange(1, k + 1)
    q /= q.sum()
    moved = rng.random(k) > 0.65
    theta = q.copy()
    theta[moved] *= np.exp(rng.normal(0, 1, moved.sum()))
    theta /= theta.sum()
    return rng.multinomial(tokens, theta).astype(float), q


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return float(best)


def general_solver(c: np.ndarray, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """θ = q exp(a - b), a and b not negative: linear objective, one convex constraint."""
    k = len(c)

    def theta(x: np.ndarray) -> np.ndarray:
        return q * np.exp(x[:k] - x[k:])

    constraint = {
        "type": "ineq",
        "fun": lambda x: 1 - theta(x).sum(),
        "jac": lambda x: np.concatenate([-theta(x), theta(x)]),
    }
    gradient = np.concatenate([lam - c, lam + c]) / c.sum()
    result = minimize(
        lambda x: float(gradient @ x),
        np.full(2 * k, 0.05),
        jac=lambda x: gradient,
        bounds=[(0, 30)] * (2 * k),
        constraints=[constraint],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    found = theta(result.x)
    return found / found.sum()


def main() -> int:
    c, q = problem(WORDS, TOKENS)
    sorting = seconds(lambda: np.argsort(c / q))
    print(f"{WORDS} words, {TOKENS} tokens; sorting them (argsort): {1e3 * sorting:.2f} ms")
    worst = 0.0
    for strength in (1.0, 30.0, 100.0, 300.0, 1000.0):
        lam = penalties(q, strength)
        took = seconds(lambda lam=lam: solve(c, q, lam))  # type: ignore[misc]
        worst = max(worst, took)
        print(
            f"  λ = {strength:6g} √q   {1e3 * took:7.2f} ms   {took / sorting:5.1f} x sorting   "
            f"{solve(c, q, lam).moved:6d} words leave the global model"
        )
    choosing = seconds(lambda: choose_strength(c, q), 1)
    print(f"  choosing λ by leave-one-out: {choosing:.2f} s")
    small, small_q = problem(SMALL, 2000)
    lam = penalties(small_q, 10.0)
    began = time.perf_counter()
    reference = general_solver(small, small_q, lam)
    general = time.perf_counter() - began
    ours = seconds(lambda: solve(small, small_q, lam))
    apart = float(np.abs(reference - solve(small, small_q, lam).theta).max())
    print(
        f"  {SMALL} words: general solver {general:.2f} s, ours {1e6 * ours:.0f} µs ({general / ours:,.0f} x); "
        f"largest difference {apart:.1e}"
    )
    good = worst < 0.1 and general > worst and apart < 1e-3
    print("holds" if good else "DOES NOT HOLD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
