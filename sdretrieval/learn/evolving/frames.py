"""Documents to frames by their dates, which documents an experiment labels, and what is recorded of each frame."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import known_times, parse_duration
from sdretrieval.core.times import format_time

Floats = NDArray[np.float64]
_CALENDAR = {"year": "Y", "month": "M", "day": "D", "hour": "h"}


def frame_names(times: ArrayLike, frame: str = "month") -> NDArray:
    """The frame of each time (ms since 1970 UTC) by a name that sorts in the order of time; '' for undated ones.

    ``frame``: year, month, week (from Monday), day, hour, or a length of time such as 14d, in bins from 1970-01-01.

    >>> from sdretrieval.core.times import parse_time
    >>> frame_names([parse_time("2011-02-28"), parse_time("2011-03-01T12:00Z")]).tolist()
    ['2011-02', '2011-03']
    """
    stamps, dated = known_times(times)
    names = np.full(len(stamps), "", dtype="U32")
    whole = np.floor(stamps[dated]).astype(np.int64)
    if frame in _CALENDAR:
        names[dated] = whole.astype("datetime64[ms]").astype(f"datetime64[{_CALENDAR[frame]}]").astype("U32")
    elif frame == "week":  # 1970-01-01 was a Thursday
        days = whole // 86_400_000
        names[dated] = (days - (days + 3) % 7).astype("datetime64[D]").astype("U32")
    else:
        width = parse_duration(frame)
        if not isfinite(width) or not width >= 1:
            raise ParameterError(f"a frame must be a finite length of time, got {frame!r}")
        starts = np.floor(whole / width) * width
        distinct, which = np.unique(starts, return_inverse=True)
        names[dated] = np.array([format_time(int(s)) for s in distinct], dtype="U32")[which] if len(distinct) else ""
    return names


def in_order(frames: NDArray) -> list[tuple[Any, NDArray[np.intp]]]:
    """(name, rows) of each frame, in order; rows with the name '' belong to none."""
    distinct, which = np.unique(frames, return_inverse=True)
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    return [(name, order[bounds[i] : bounds[i + 1]]) for i, name in enumerate(distinct) if name != ""]


def choose_labelled(
    y: ArrayLike,
    frames: ArrayLike,
    *,
    per_frame: int | None = None,
    fraction: float | None = None,
    seed: int | np.random.Generator = 0,
) -> NDArray[np.bool_]:
    """Which documents an experiment labels: so many, or this share, of each frame's, at random.

    As in the paper at least one of every class that the frame has (where that many may be labelled at all).
    """
    y, frames = np.asarray(y), np.asarray(frames)
    if (per_frame is None) == (fraction is None):
        raise ParameterError("give either a number or a fraction of documents to label per frame")
    if per_frame is not None and per_frame < 1:
        raise ParameterError(f"at least one document per frame must be labelled, got {per_frame}")
    if fraction is not None and not 0 < fraction <= 1:
        raise ParameterError(f"the labelled fraction must be in (0, 1], got {fraction}")
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(y), dtype=bool)
    for _, rows in in_order(frames):
        wanted = per_frame if per_frame is not None else max(1, round(float(fraction or 0) * len(rows)))
        wanted = min(wanted, len(rows))
        order = rng.permutation(rows)
        _, first = np.unique(y[order], return_index=True)  # the first of each class in the random order
        picked = order[np.sort(first)][:wanted]
        rest = order[~np.isin(order, picked)]
        # A random sample, given that it holds every class: classes it lacks displace its last members.
        sample = order[:wanted]
        missing = picked[~np.isin(y[picked], y[sample])]
        if len(missing):
            sample = np.concatenate([picked, rest])[:wanted]
        chosen[sample] = True
    return chosen


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
