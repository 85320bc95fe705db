"""Figures for papers, from the same data as the page: PNG, SVG or PDF by the file's ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.plotting import empty_plot, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinct in colour, in grey and without colour at all.
COLOURS = ("#4a5561", "#1f5fa8", "#c4570c", "#12805c", "#8b3f9b", "#a8821a", "#b0325c", "#2c8aa0")
MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*")
DASHES = ("-", "-", "--", "-.", ":", "--", "-.", ":")
GAIN, LOSS = "#14795c", "#b8431f"


def _draw_runs(axes: Axes, data: Mapping[str, Any], x: Sequence[float], rows: Sequence[Sequence[float | None]]) -> None:
    """One line for each run; gaps where there is no value."""
    styles = cycle(zip(COLOURS, MARKERS, DASHES, strict=True))
    for run, values, (colour, marker, dashes) in zip(data["runs"], rows, styles, strict=False):
        y = [float("nan") if value is None else value for value in values]
        style: Any = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4.5, "linewidth": 1.6}
        axes.plot(x, y, label=_literal(run["name"]), **style)
    axes.grid(color="0.9")
    axes.legend(frameon=False)


def precision_recall_figure(data: Mapping[str, Any], width: float = 5.0) -> Figure:
    """Interpolated precision at eleven recall levels, one line per run (Figures 5.2 to 5.6)."""
    figure, axes = empty_plot(width, 0.72 * width)
    _draw_runs(axes, data, data["curve"]["recall"], data["curve"]["precision"])
    axes.set(xlabel="Recall", ylabel="Precision", xlim=(-0.02, 1.02), ylim=(0, None))
    return figure


def gain_loss_figure(data: Mapping[str, Any], run: int, measure: int = 0, width: float = 6.0) -> Figure:
    """Each topic's difference between a run and the baseline, best first."""
    baseline = data["baseline"]
    if run == baseline:
        raise ParameterError("the baseline has no gains or losses against itself")
    differences = sorted(
        (
            topic["values"][run][measure] - topic["values"][baseline][measure]
            for topic in data["topics"]
            if topic["values"][run] is not None and topic["values"][baseline] is not None
        ),
        reverse=True,
    )
    figure, axes = empty_plot(width, 0.45 * width)
    colours = [GAIN if d > 0 else LOSS for d in differences]
    axes.bar(range(1, len(differences) + 1), differences, color=colours, width=0.85)
    axes.axhline(0, color="0.3", linewidth=0.8)
    names = [_literal(data["runs"][i]["name"]) for i in (run, baseline)]
    axes.set(xlabel="Topics, best first", ylabel=f"{data['measures'][measure]}: {names[0]} − {names[1]}")
    return figure


def time_figure(data: Mapping[str, Any], slices: Mapping[str, Any], measure: int = 0, width: float = 6.0) -> Figure:
    """A measure by period, one line per run, with 95 % intervals and the number of topics below each period."""
    figure, axes = empty_plot(width, 0.5 * width)
    positions = range(len(slices["labels"]))
    _draw_runs(axes, data, positions, [values[measure] for values in slices["values"]])
    highest = max((v for values in slices["values"] for v in values[measure] if v is not None), default=1.0)
    runs = len(slices["values"])
    for run, (colour, values, margins) in enumerate(zip(cycle(COLOURS), slices["values"], slices["margins"])):
        for place, value, margin in zip(positions, values[measure], margins[measure], strict=True):
            if margin is not None:
                beside = place + 0.03 * (run - (runs - 1) / 2)  # so that no run's hides another's
                axes.plot([beside] * 2, [max(0.0, value - margin), value + margin], color=colour, alpha=0.35)
    every = max(1, -(-len(slices["labels"]) // 8))
    counted = [f"{label}\n({n})" for label, n in zip(slices["labels"], slices["topics"], strict=True)]
    axes.set_xticks(list(positions)[::every], counted[::every])
    if max(map(len, slices["labels"]), default=0) > 4:  # days and weeks would run into each other
        axes.tick_params(axis="x", labelrotation=30)
    whose = {"query": "query", "relevant": "relevant documents"}[slices["by"]]
    axes.set(xlabel=f"{slices['period'].capitalize()} of the {whose} (topics)", ylim=(0, 1.4 * highest or None))
    axes.set_ylabel(data["measures"][measure])
    return figure


def save_figure(figure: Figure, path: str | PathLike[str], dpi: int = 200) -> None:
    """Write a figure; text stays text, also in SVG and PDF."""
    write_figure(figure, path, dpi=dpi, settings={"svg.fonttype": "none", "pdf.fonttype": 42})


def write_plots(
    data: Mapping[str, Any], folder: str | PathLike[str], formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Every figure the data of :func:`~sdretrieval.evaluate.report.gather.gather` allow, into a folder.

    Returns
    -------
    list of Path
        The files written.
    """
    folder = Path(folder)
    figures = {"precision-recall": precision_recall_figure(data)}
    for i in range(len(data["runs"])):
        if i != data["baseline"]:
            figures[f"gain-loss-{_file_name(data['runs'][i]['name'])}"] = gain_loss_figure(data, i)
    for slices in data["slices"]:
        figures[f"by-time-{slices['by']}"] = time_figure(data, slices)
    written = []
    for name, figure in figures.items():
        for kind in formats:
            path = folder / f"{name}.{kind}"
            save_figure(figure, path)
            written.append(path)
    return written


def _literal(text: str) -> str:
    """A run's name as it is: ``$`` would start a formula, a leading underscore hide it from the legend."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def _file_name(text: str) -> str:
    """A run's name as part of a file name: it must not climb out of the folder."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in text)[:80] or "run"
