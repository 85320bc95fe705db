"""Figure 2 of the paper: quality, spatial cost and temporal cost of each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.plotting import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#6b6b6b", "#c2570c", "#2166ac", "#4d8b31")
MARKS = ("o", "s", "^", "D")


def cost_figure(frames: Sequence[str], curves: Mapping[str, Mapping[str, ArrayLike]]) -> Figure:
    """One panel for each measure, one line for each method: ``curves[method][measure]`` has a value per frame."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # matplotlib is slow to import
    from matplotlib.figure import Figure

    measures = list(dict.fromkeys(measure for of in curves.values() for measure in of))
    figure = Figure(figsize=(8.0, 1.9 * len(measures) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(len(measures), 1, sharex=True))
    x = np.arange(len(frames))
    for panel, measure in zip(panels, measures, strict=True):
        for number, (method, of) in enumerate(curves.items()):
            if measure not in of:
                continue
            y = np.asarray(of[measure], dtype=np.float64)
            style = {"color": COLOURS[number % 4], "marker": MARKS[number % 4]}
            panel.plot(x, y, markersize=3, linewidth=1.2, label=method.replace("$", r"\$"), **style)
        panel.set_ylabel(measure)
        if measure.endswith("cost"):
            panel.set_ylim(bottom=0)
    step = max(1, -(-len(frames) // 9))
    panels[-1].set_xticks(x[::step], [str(name) for name in frames][::step])
    panels[-1].set_xlabel("frame")
    if len(curves) > 1:
        panels[0].legend(frameon=False, ncols=len(curves), loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def picture_kind(path: Path) -> str:
    """png, svg or pdf, by the name's ending; ParameterError for any other."""
    kind = path.suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise ParameterError(f"{path}: a plot is written as .png, .svg or .pdf", remedy="Change the file's ending.")
    return kind


def write_figure(path: Path, frames: Sequence[str], curves: Mapping[str, Mapping[str, ArrayLike]]) -> None:
    """As PNG, SVG or PDF, by the name's ending."""
    import matplotlib  # slow to import

    kind = picture_kind(path)
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "none"}):
        figure = cost_figure(frames, curves)
        with atomic_writer(path, binary=True) as stream:
            metadata = {"Date": None} if kind == "svg" else {"CreationDate": None} if kind == "pdf" else None
            figure.savefig(stream, format=kind, dpi=120, metadata=metadata)
