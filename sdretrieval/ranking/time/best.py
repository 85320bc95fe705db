"""The best of many scores, without sorting them all."""

from __future__ import annotations

import numpy as np


class Ties:
    """``ranks[docs]``, looked up only where asked: a few of many documents."""

    def __init__(self, ranks: np.ndarray, docs: np.ndarray) -> None:
        self.ranks, self.docs = ranks, docs

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        return self.ranks[self.docs[places]]


def best_places(scores: np.ndarray, depth: int, ties: np.ndarray | Ties | None = None) -> np.ndarray:
    """Places of the ``depth`` best scores: in any order, or with ``ties`` from the best down.

    Equal scores are then ordered by their values in ``ties``, the larger first.
    """
    places = _best_places(scores, depth)
    if ties is None or len(places) == 0:
        return places
    if len(places) < len(scores):  # which of those at the bar were taken is chance so far
        bar = scores[places].min()
        above, level = places[scores[places] > bar], np.flatnonzero(scores == bar)
        wanted = len(places) - len(above)
        if len(level) > wanted:
            level = level[np.argsort(ties[level])[-wanted:]]
        places = np.concatenate([above, level])
    return places[np.lexsort((ties[places], scores[places]))[::-1]]


def _best_places(scores: np.ndarray, depth: int) -> np.ndarray:
    """A sixteenth of the scores guesses a bar that a few more than ``depth`` pass; only those are then partitioned."""
    n = len(scores)
    if n <= depth:
        return np.arange(n)
    places = None
    if n > 8 * depth:
        sample = scores[::16]
        above = 2 * depth * len(sample) // n
        bar = np.partition(sample, len(sample) - above)[len(sample) - above]
        places = np.flatnonzero(scores >= bar)
    if places is None or len(places) < depth:
        return np.argpartition(scores, n - depth)[n - depth :]
    return places[np.argpartition(scores[places], len(places) - depth)[len(places) - depth :]]
