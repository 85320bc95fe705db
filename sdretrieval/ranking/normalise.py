"""Scores of unlike rankers on one scale, so that they can be added: plain functions of one ranking's scores.

A ranking without spread says nothing about its order: every document is then at the top of the [0, 1] scale
(``minmax``, ``rank_shares``), or at the mean (``zscores``).
"""

from __future__ import annotations

import numpy as np


def minmax(scores: np.ndarray) -> np.ndarray:
    """(s - min) / (max - min): the best is 1, the last 0; all are 1 where all are equal."""
    scores = np.asarray(scores, dtype=np.float64)
    if len(scores) == 0:
        return scores
    low, high = scores.min(), scores.max()
    if high == low:
        return np.ones(len(scores))
    # Halves first: the distance of two finite scores may be beyond the largest number.
    return (scores / 2 - low / 2) / (high / 2 - low / 2)


def zscores(scores: np.ndarray) -> np.ndarray:
    """(s - mean) / standard deviation (of the whole list, not of a sample); all are 0 where all are equal."""
    scores = np.asarray(scores, dtype=np.float64)
    if len(scores) == 0 or scores.max() == scores.min():  # a mean may be off by rounding: equal is decided by ends
        return np.zeros(len(scores))
    scores = minmax(scores)  # the same z for any scale, and no overflow in squares
    return (scores - scores.mean()) / scores.std()


def reciprocal_rank(n: int, k: float = 60.0) -> np.ndarray:
    """1 / (k + rank) for ranks 1..n: what reciprocal rank fusion adds (Cormack, Clarke, Büttcher 2009)."""
    return 1.0 / (k + np.arange(1, n + 1, dtype=np.float64))


def rank_shares(n: int) -> np.ndarray:
    """(n - rank + 1) / n for ranks 1..n: the first is 1, the last 1/n (Borda's count, by the length of the list)."""
    return np.arange(n, 0, -1, dtype=np.float64) / max(n, 1)
