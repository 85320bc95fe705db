"""The DET curve as NIST draws it: both axes in normal deviates, so that normally distributed scores give a line."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.plotting import empty_plot, write_figure
from sdretrieval.evaluate.report.plots import COLOURS, DASHES, MARKERS
from sdretrieval.learn.tracking.tdt import TdtEvaluation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKS = (0.0001, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)
MOST_POINTS = 2000


def det_figure(evaluations: Mapping[str, TdtEvaluation], width: float = 5.0) -> Figure:
    """One curve for each system, its MinCost point marked."""
    if not evaluations:
        raise ParameterError("there is nothing to draw")
    figure, axes = empty_plot(width, width)
    for i, (name, evaluation) in enumerate(evaluations.items()):
        colour, name = COLOURS[i % len(COLOURS)], name.replace("$", r"\$")
        dashes, label = DASHES[i % len(DASHES)], f"{name} (MinCost {evaluation.min_cost:.3f})"
        x, y = map(_deviates, _thinned(evaluation.curve.p_fa, evaluation.curve.p_miss))
        axes.plot(x, y, color=colour, linestyle=dashes, label=label, drawstyle="steps-post", linewidth=1.4)
        x, y = _deviates(evaluation.p_fa), _deviates(evaluation.p_miss)
        axes.plot(x, y, color=colour, linestyle="none", marker=MARKERS[i % len(MARKERS)], markersize=6)
    places, labels = _deviates(TICKS), [f"{100 * tick:g}" for tick in TICKS]
    axes.set_xticks(places, labels)
    axes.set_yticks(places, labels)
    low, lowest_miss, high = _deviates([TICKS[0], 0.01, TICKS[-1]])
    axes.set(xlim=(low, high), ylim=(lowest_miss, high), xlabel="False alarms (%)", ylabel="Misses (%)")
    axes.tick_params(labelsize=8)
    axes.grid(color="0.9")
    axes.legend(frameon=False, fontsize=8)
    return figure


def write_det(path: str | PathLike[str], evaluations: Mapping[str, TdtEvaluation]) -> None:
    """PNG, SVG or PDF by the ending."""
    write_figure(det_figure(evaluations), path, dpi=110)


def _deviates(rates: Any) -> Any:
    return ndtri(np.clip(rates, TICKS[0] / 4, 1 - 1e-4))


def _thinned(fa: np.ndarray, miss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners alone, and not more than can be seen."""
    turns = np.ones(len(fa), bool)
    turns[1:-1] = (np.diff(fa)[1:] != 0) != (np.diff(fa)[:-1] != 0)
    turns[1:-1] |= np.diff(miss)[:-1] != 0
    places = np.flatnonzero(turns)
    if len(places) > MOST_POINTS:
        places = np.unique(places[np.linspace(0, len(places) - 1, MOST_POINTS).astype(int)])
    return fa[places], miss[places]
