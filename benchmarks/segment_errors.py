"""How far found boundaries of segments are from true ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


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
