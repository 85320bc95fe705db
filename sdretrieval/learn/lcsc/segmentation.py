"""Where a document changes its subject, told by the codes along it.

A document is cut where that lowers the squared distance of its positions' theme shares to the mean of their segment
most: dynamic programming over units of a few words gives the best cut for every number of segments. How many segments
there are is given, or chosen by a penalty per segment (the BIC of Gaussian segments with one common variance).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import ParameterError

MOST_UNITS = 600  # the best cut costs units² x segments


def theme_shares(codes: csr_matrix) -> NDArray[np.float64]:
    """β(i) / Σβ(i) of each position; a position without a code has no theme (all zeros)."""
    dense = np.asarray(codes.todense(), dtype=np.float64)
    totals = dense.sum(axis=1, keepdims=True)
    return np.divide(dense, totals, out=np.zeros_like(dense), where=totals > 0)


def segment(shares: NDArray, *, n_segments: int | None = None, unit: int | None = None) -> list[int]:
    """Positions at which a new segment begins (without 0), for the best cut into ``n_segments``.

    ``unit``: words that are never parted (by default so many that there are at most 600 units).
    """
    n = len(shares)
    if n_segments is not None and n_segments < 1:
        raise ParameterError(f"n_segments must be at least 1; got {n_segments}")
    if unit is not None and unit < 1:
        raise ParameterError(f"unit must be at least 1 word; got {unit}")
    unit = unit or max(1, -(-n // MOST_UNITS))
    edges = np.append(np.arange(0, n, unit), n)
    n_units = len(edges) - 1
    if n_units < 2:
        return []
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])[edges]
    squares = np.concatenate([[0.0], np.cumsum((shares**2).sum(axis=1))])[edges]
    most = min(n_units, n_segments or min(n_units, 60))
    costs, back = _best_cuts(sums, squares, edges.astype(np.float64), most)
    if n_segments is None:
        # Neighbouring codes overlap, so positions are no independent data: units are counted instead.
        dimensions = shares.shape[1]
        size = n_units * max(dimensions - 1, 1)
        spread = np.maximum(costs[1:], 1e-12) / n
        segments = np.arange(1, most + 1)
        chosen = int(segments[np.argmin(size * np.log(spread) + segments * dimensions * np.log(n_units))])
    else:
        chosen = most
    cuts, end = [], n_units
    for s in range(chosen, 1, -1):
        end = int(back[s, end])
        cuts.append(int(edges[end]))
    return cuts[::-1]


@njit(cache=True, nogil=True)
def _best_cuts(sums, squares, edges, most):
    """costs[s]: of the best cut into s segments; back[s, e]: where the last of s segments that end at e begins."""
    n = len(edges) - 1
    inside = np.empty((n + 1, n + 1))
    for a in range(n):
        for b in range(a + 1, n + 1):
            norm = 0.0
            for k in range(sums.shape[1]):
                norm += (sums[b, k] - sums[a, k]) ** 2
            inside[a, b] = squares[b] - squares[a] - norm / (edges[b] - edges[a])
    best = np.full((most + 1, n + 1), np.inf)
    back = np.zeros((most + 1, n + 1), dtype=np.int64)
    best[0, 0] = 0.0
    for s in range(1, most + 1):
        for e in range(s, n + 1):
            for a in range(s - 1, e):
                cost = best[s - 1, a] + inside[a, e]
                if cost < best[s, e]:
                    best[s, e] = cost
                    back[s, e] = a
    return best[:, n], back


def p_k(reference: Sequence[int], found: Sequence[int], length: int) -> float:
    """P_k of Beeferman, Berger & Lafferty: how often two positions k apart are wrongly told to be in one segment or in
    two; k is half the mean length of a true segment. 0 is perfect, a coin gets about 0.5."""
    truth, guess = _boundaries_in_windows(reference, found, length)
    return float(np.mean((truth == 0) != (guess == 0))) if len(truth) else 0.0


def window_diff(reference: Sequence[int], found: Sequence[int], length: int) -> float:
    """WindowDiff of Pevzner & Hearst: how often a window of k words holds another number of boundaries."""
    truth, guess = _boundaries_in_windows(reference, found, length)
    return float(np.mean(truth != guess)) if len(truth) else 0.0


def _boundaries_in_windows(reference: Sequence[int], found: Sequence[int], length: int) -> list[NDArray]:
    """True and found boundaries between each position and the one k further on."""
    k = max(1, round(length / (2 * (len(reference) + 1))))
    counts = []
    for boundaries in (reference, found):
        marks = np.zeros(length, dtype=np.int64)
        marks[[b for b in boundaries if 0 < b < length]] = 1
        segment_numbers = np.cumsum(marks)
        counts.append(segment_numbers[k:] - segment_numbers[:-k])
    return counts


def spans(boundaries: Sequence[int], length: int) -> list[tuple[int, int]]:
    """Segments as (first, last + 1)."""
    return list(pairwise([0, *boundaries, length]))
