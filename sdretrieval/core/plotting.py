"""How pictures look, and how they are written, wherever they are drawn: without a display, without pyplot's global
state, and the same picture as the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.files import atomic_writer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GREY = "#6b6b6b"
FIGURE_ENDINGS = (".png", ".svg", ".pdf")
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.hashsalt": "sdretrieval",  # the same picture, the same bytes
}


def empty_figure(width: float, height: float) -> Figure:
    """A figure of so many inches."""
    # matplotlib takes half a second to load
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def empty_plot(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with one plot in it, open above and to the right."""
    figure = empty_figure(width, height)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def check_figure_name(path: str | PathLike[str]) -> str:
    """The format that a file's ending asks for."""
    ending = Path(path).suffix.lower()
    if ending not in FIGURE_ENDINGS:
        raise ParameterError(f"{path}: a figure is .png, .svg or .pdf", remedy="Change the file's ending.")
    return ending.removeprefix(".")


def write_figure(
    figure: Figure, path: str | PathLike[str], *, dpi: int, settings: Mapping[str, Any] | None = None
) -> None:
    """PNG, SVG or PDF by the ending; neither dates nor random ids are written. ``settings``: of matplotlib."""
    import matplotlib  # takes half a second to load

    kind = check_figure_name(path)
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
    context: Any = {"svg.hashsalt": STYLE["svg.hashsalt"], **(settings or {})}
    with matplotlib.rc_context(context), atomic_writer(path, binary=True) as out:
        figure.savefig(out, format=kind, dpi=dpi, metadata=metadata)
