"""Figure 2 of the paper: quality, spatial cost and temporal cost of each frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sdretrieval.core.plotting import STYLE, empty_figure, write_figure

COLOURS = ("#6b6b6b", "#c2570c", "#2166ac", "#4d8b31")
MARKS = ("o", "s", "^", "D")


def write_costs(
    path: Path, frames: Sequence[str], curves: Mapping[str, Mapping[str, ArrayLike]], *, dpi: int = 120
) -> None:
    """One panel for each measure, one line for each method: ``curves[method][measure]`` has a value per frame.

    PNG, SVG or PDF, by the name's ending.
    """
    import matplotlib  # slow to import

    style: Any = {**STYLE, "svg.fonttype": "none"}
    measures = list(dict.fromkeys(measure for of in curves.values() for measure in of))
    with matplotlib.rc_context(style):
        figure = empty_figure(8.0, 1.9 * len(measures) + 0.6)
        panels = np.atleast_1d(figure.subplots(len(measures), 1, sharex=True))
        x = np.arange(len(frames))
        for panel, measure in zip(panels, measures, strict=True):
            for number, (method, of) in enumerate(curves.items()):
                look = {"color": COLOURS[number % 4], "marker": MARKS[number % 4], "label": method.replace("$", r"\$")}
                panel.plot(x, np.asarray(of.get(measure, np.full(len(x), np.nan))), markersize=3, linewidth=1.2, **look)
            panel.set_ylabel(measure)
            if measure.endswith("cost"):
                panel.set_ylim(bottom=0)
        step = max(1, -(-len(frames) // 9))
        panels[-1].set_xticks(x[::step], [str(name) for name in frames][::step])
        panels[-1].set_xlabel("frame")
        if len(curves) > 1:
            place: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
            panels[0].legend(frameon=False, ncols=len(curves), fontsize=8, **place)
        write_figure(figure, path, dpi=dpi, settings=style)
