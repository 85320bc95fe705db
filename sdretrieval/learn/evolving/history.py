"""What is recorded of each frame: sizes, costs, and how well the unlabelled documents were classified."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FrameRecord:
    """One frame, as the classifier saw it.

    spatial_cost   ‖f_t‖²_I = f_tᵀ L f_t / n², (2): how much neighbours disagree; for more than two classes the sum
    temporal_cost  ‖f_t - f_{t-1}‖²_K, (17): how far the classifier moved (‖f_1‖²_K in the first frame)
    """

    name: str
    documents: int
    labelled: int
    classes: int  # that have a label in this frame
    spatial_cost: float
    temporal_cost: float
    iterations: int
    note: str = ""


def temporal_cost(records: list[FrameRecord]) -> float:
    """(5): the mean over t = 2 … T of ‖f_t - f_{t-1}‖²_K."""
    later = [record.temporal_cost for record in records[1:]]
    return float(np.mean(later)) if later else nan


def auc(truth: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve, ties half; nan where one class is missing.

    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    truth, scores = np.asarray(truth, dtype=bool), np.asarray(scores, dtype=np.float64)
    positive = int(truth.sum())
    negative = len(truth) - positive
    if positive == 0 or negative == 0:
        return nan
    ranks = rankdata(scores)
    return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def best_classes(classes: NDArray, scores: Floats) -> NDArray:
    """From decision values: n of them for two classes, otherwise n x classes."""
    return classes[(scores > 0).astype(int)] if scores.ndim == 1 else classes[scores.argmax(axis=1)]


def quality(truth: NDArray, scores: Floats, classes: NDArray) -> tuple[float, float]:
    """(AUC, accuracy) of decision values; for more than two classes the mean AUC of each class against the rest."""
    if len(truth) == 0:
        return nan, nan
    if scores.ndim == 1:
        area = auc(truth == classes[-1], scores)
    else:
        areas = np.array([auc(truth == c, scores[:, i]) for i, c in enumerate(classes)])
        area = float(np.nanmean(areas)) if np.isfinite(areas).any() else nan
    return area, float(np.mean(best_classes(classes, scores) == truth))
