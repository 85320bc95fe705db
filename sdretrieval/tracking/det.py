"""The DET curve as NIST draws it: both axes in normal deviates, so that normally distributed scores give a line."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.errors import ParameterError
from sdretrieval.files import atomic_writer
from sdretrieval.tracking.tdt import TdtEvaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKS = (0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
MOST_POINTS = 2000


def det_figure(evaluations: Mapping[str, TdtEvaluation], width: float = 5.0) -> Figure:
    """One curve for each system, its MinCost point marked."""
    from scipy.special import ndtri

    from sdretrieval.report.plots import COLOURS, DASHES, MARKERS, _figure

    if not evaluations:
        raise ParameterError("there is nothing to draw")
    figure, axes = _figure(width, width)
    low, high = TICKS[0], TICKS[-1]
    for i, (name, evaluation) in enumerate(evaluations.items()):
        fa, miss = _thinned(evaluation.curve.p_fa, evaluation.curve.p_miss)
        style: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)]}
        x, y = (ndtri(np.clip(values, low / 4, 1 - 1e-4)) for values in (fa, miss))
        label = f"{name} (MinCost {evaluation.min_cost:.3f})".replace("$", r"\$")
        axes.plot(x, y, drawstyle="steps-post", linewidth=1.4, linestyle=DASHES[i % len(DASHES)], label=label, **style)
        best = (ndtri(np.clip(value, low / 4, 1 - 1e-4)) for value in (evaluation.p_fa, evaluation.p_miss))
        axes.plot(*best, marker=MARKERS[i % len(MARKERS)], markersize=6, linestyle="none", **style)
    places = ndtri(TICKS)
    labels = [f"{100 * tick:g}" for tick in TICKS]
    axes.set_xticks(places, labels)
    axes.set_yticks(places, labels)
    axes.set(xlim=(ndtri(low), ndtri(high)), ylim=(ndtri(0.01), ndtri(high)))
    axes.set(xlabel="False alarms (%)", ylabel="Misses (%)")
    axes.tick_params(labelsize=8)
    axes.grid(color="0.9")
    axes.legend(frameon=False, fontsize=8)
    return figure


def write_det(path: str | PathLike[str], evaluations: Mapping[str, TdtEvaluation]) -> None:
    """PNG, SVG or PDF by the ending."""
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in ("png", "svg", "pdf"):
        raise ParameterError(f"{path}: a figure is .png, .svg or .pdf")
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "sdretrieval"}):
        figure = det_figure(evaluations)
        with atomic_writer(path, binary=True) as out:
            about = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[ending]
            figure.savefig(out, format=ending, dpi=110, metadata=about)


def _thinned(fa: np.ndarray, miss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners alone, and not more than can be seen."""
    turns = np.ones(len(fa), bool)
    turns[1:-1] = (np.diff(fa)[1:] != 0) != (np.diff(fa)[:-1] != 0)
    turns[1:-1] |= np.diff(miss)[:-1] != 0
    places = np.flatnonzero(turns)
    if len(places) > MOST_POINTS:
        places = np.unique(places[np.linspace(0, len(places) - 1, MOST_POINTS).astype(int)])
    return fa[places], miss[places]
