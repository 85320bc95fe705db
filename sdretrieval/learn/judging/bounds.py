"""The least and the most that a measure can come to, whatever unjudged documents of the pool turn out to be.

A ranking is its grades from rank 1 down: a number for a judged document, NaN for an unjudged one of the pool, 0 for one
outside the pool (which counts as not relevant, as trec_eval has it). ``outside`` unjudged documents of the pool, and
relevant ones of grades ``missed``, are not in the ranking.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from sdretrieval.core.errors import ParameterError

MEASURES = "AP, P@k, nDCG, nDCG@k"


def split(measure: str) -> tuple[str, int | None]:
    """A measure's name and cutoff."""
    found = re.fullmatch(r"(AP)|(P)@([1-9][0-9]{0,5})|(nDCG)(?:@([1-9][0-9]{0,5}))?", measure)
    if found is None:
        raise ParameterError(f"measure {measure!r} has no bounds here", remedy=f"One of: {MEASURES}.")
    name, cut = found[1] or found[2] or found[4], found[3] or found[5]
    return name, None if cut is None else int(cut)


def bounds(
    measure: str, grades: np.ndarray, missed: Sequence[int], outside: int, *, rel: int = 1, highest: int = 1
) -> tuple[float, float]:
    """The least and the most; exact for AP and P@k, and for nDCG where ``highest``, the highest grade, is 1."""
    name, cut = split(measure)
    if name == "P":
        top = grades[:cut]
        sure = float((top >= rel).sum())  # NaN is never
        return sure / (cut or 1), (sure + float(np.isnan(top).sum())) / (cut or 1)
    if name == "AP":
        return _average_precision(grades, sum(grade >= rel for grade in missed), outside, rel)
    return _ndcg(grades, np.asarray(missed, dtype=float), outside, highest, cut)


def _average_precision(grades: np.ndarray, missed: int, outside: int, rel: int) -> tuple[float, float]:
    """For each number m of unjudged ranks that are relevant the sum of precisions is least with the deepest m of them
    and greatest with the first m: Σ x_i x_j / max(i, j) falls with every step down."""
    sure, open_ = grades >= rel, np.flatnonzero(np.isnan(grades))
    known = int(sure.sum()) + missed
    lows: list[float] = []
    highs: list[float] = []
    for order, values, extra in ((open_[::-1], lows, outside), (open_, highs, 0)):
        x = sure.astype(float)
        for m in range(len(order) + 1):
            if m:
                x[order[m - 1]] = 1.0
            total = known + extra + m
            values.append(precision_sum(x) / total if total else 0.0)
    return min(lows), max(highs)


def precision_sum(x: np.ndarray) -> float:
    """Σ of the precisions at the relevant ranks, along the last axis."""
    ranks = np.arange(1, x.shape[-1] + 1)
    return (np.cumsum(x, axis=-1) / ranks * x).sum(axis=-1)


def _ndcg(grades: np.ndarray, missed: np.ndarray, outside: int, highest: int, cut: int | None) -> tuple[float, float]:
    """nDCG is quasiconcave in the unjudged grades: its least is at grades 0 and ``highest``. Its most is bounded by
    gains of ``highest`` and an ideal ranking with grades of 1."""
    depth = cut or len(grades) + len(missed) + outside
    discounts = 1.0 / np.log2(np.arange(2, max(depth, len(grades)) + 2))
    discounts[depth:] = 0.0
    sure, open_ = np.nan_to_num(grades), np.flatnonzero(np.isnan(grades))
    known = np.concatenate([sure[sure > 0], missed[missed > 0]])
    gain = float(sure @ discounts[: len(sure)])

    def ideal(extra: int, grade: float) -> float:
        best = np.sort(np.concatenate([known, np.full(extra, grade)]))[::-1][:depth]
        return float(best @ discounts[: len(best)])

    low, high = 1.0, 0.0
    deepest, first = (np.concatenate([[0.0], np.cumsum(discounts[o])]) for o in (open_[::-1], open_))
    for m in range(len(open_) + 1):
        below, above = ideal(m + outside, highest), ideal(m, 1.0)
        low = min(low, (gain + highest * deepest[m]) / below if below else 0.0)
        high = max(high, (gain + highest * first[m]) / above if above else 0.0)
    return low, min(high, 1.0)
