"""Break-even precision, the thesis's measure of a ranked list: precision where it equals recall (4.2)-(4.4).

That is precision at R = N_rel, also known as R-precision. Documents tied at the cut count with the chance that a
random order of them would let them in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sdretrieval.core.errors import ParameterError


def break_even_precision(relevant: Any, scores: Any) -> float:
    """BEP of one ranked list; nan where nothing is relevant.

    >>> break_even_precision([True, False, True, False], [4.0, 3.0, 2.0, 1.0])
    0.5
    """
    wanted, values = np.asarray(relevant, dtype=bool), np.asarray(scores, dtype=np.float64)
    if wanted.shape != values.shape or wanted.ndim != 1:
        raise ParameterError(f"judgments and scores must pair up, got shapes {wanted.shape} and {values.shape}")
    if np.isnan(values).any():
        raise ParameterError("a score is not a number")
    n = int(wanted.sum())
    if n == 0:
        return float("nan")
    cut = -np.partition(-values, n - 1)[n - 1]
    above, tied = values > cut, values == cut
    places = n - int(above.sum())
    inside = int((wanted & above).sum()) + places * int((wanted & tied).sum()) / int(tied.sum())
    return float(inside / n)


def break_even_precisions(relevant: Any, scores: Any) -> np.ndarray:
    """BEP of every label: both arguments documents x labels."""
    wanted, values = np.asarray(relevant, dtype=bool), np.asarray(scores, dtype=np.float64)
    return np.array([break_even_precision(wanted[:, t], values[:, t]) for t in range(wanted.shape[1])])


def macro_bep(relevant: Any, scores: Any) -> float:
    """(4.3), over labels that have a relevant document."""
    return float(np.nanmean(break_even_precisions(relevant, scores)))


def micro_bep(relevant: Any, scores: Any) -> float:
    """(4.4)."""
    sizes = np.asarray(relevant, dtype=bool).sum(axis=0)
    values = break_even_precisions(relevant, scores)
    return float(sizes[sizes > 0] @ values[sizes > 0] / sizes.sum())
