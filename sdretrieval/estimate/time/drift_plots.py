"""Pictures of a drift analysis: words over time, volume over time, likelihood against bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.core import plotting
from sdretrieval.core.plotting import GREY, empty_figure, write_figure
from sdretrieval.core.timeline import DAY, HOUR, format_duration
from sdretrieval.estimate.time.drift import DriftAnalysis
from sdretrieval.estimate.time.kernels import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE = "#2166ac", "#c2570c"
STYLE: Any = {**plotting.STYLE, "svg.fonttype": "none"}


def write_plots(analysis: DriftAnalysis, term: Callable[[int], str], folder: Path) -> list[Path]:
    """PNG and SVG of each picture; the files written."""
    import matplotlib  # slow to import

    written = []
    with matplotlib.rc_context(STYLE):
        pictures = [("volume", volume(analysis))]
        if analysis.curves:
            pictures.append(("words", words(analysis, term)))
        if np.isfinite(analysis.offline.bandwidths).any():  # not where all documents are of one instant
            pictures.append(("likelihood", likelihood(analysis)))
        for name, figure in pictures:
            for kind in ("png", "svg"):
                written.append(folder / f"{name}.{kind}")
                write_figure(figure, written[-1], dpi=144)
    return written


def _dates(grid: Floats) -> np.ndarray:
    return grid.astype(np.int64).astype("datetime64[ms]")


def _date_axis(axes: Axes) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # slow to import

    locator = AutoDateLocator(minticks=3, maxticks=7)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _per(analysis: DriftAnalysis) -> str:
    names = {HOUR: "hour", DAY: "day", 7 * DAY: "week"}
    return names.get(int(analysis.resolution), format_duration(analysis.resolution))


def words(analysis: DriftAnalysis, term: Callable[[int], str]) -> Figure:
    """Figure 1 of the paper, with bands: one panel for each word."""
    curves = analysis.curves
    columns = min(3, len(curves))
    rows = ceil(len(curves) / columns)
    figure = empty_figure(3.6 * columns + 0.4, 2.3 * rows + 0.5)
    dates = _dates(analysis.grid)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for i, axes in enumerate(panels.flat):
        if i >= len(curves):
            axes.set_visible(False)
            continue
        curve = curves[i]
        axes.fill_between(dates, 1000 * curve.lower, 1000 * curve.upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(dates, 1000 * curve.frequency, color=BLUE, linewidth=1.4)
        # A lone bin between gaps has no line to be part of.
        alone = np.isfinite(curve.frequency) & ~_beside(np.isfinite(curve.frequency))
        axes.plot(dates[alone], 1000 * curve.frequency[alone], ".", color=BLUE, markersize=4)
        axes.set_title(term(curve.term), parse_math=False, loc="left", fontweight="bold")
        # The curve decides the scale: a single wide band would flatten everything else.
        highest = 1000 * min(np.nanmax(curve.upper), 1.8 * np.nanmax(curve.frequency) or np.inf)
        axes.set_ylim(0, 1.05 * highest)
        axes.margins(x=0.01)
        _date_axis(axes)
        if i + columns >= len(curves):
            axes.xaxis.set_tick_params(labelbottom=True)
        if i % columns == 0:
            axes.set_ylabel("per 1000 words")
    how = "chosen by ten-fold likelihood" if analysis.chosen else "given"
    figure.suptitle(
        f"Relative frequency over time, {round(100 * analysis.level)} % bands — {analysis.kernel.name} kernel, "
        f"bandwidth {format_duration(analysis.bandwidth)} ({how})",
        fontsize=9,
        color=GREY,
    )
    return figure


def _beside(present: np.ndarray) -> np.ndarray:
    """Whether the bin before or after is there too."""
    padded = np.concatenate([[False], present, [False]])
    return padded[:-2] | padded[2:]


def volume(analysis: DriftAnalysis) -> Figure:
    """Figure 2 of the paper: how much was written when."""
    figure = empty_figure(7.6, 3.9)
    dates = _dates(analysis.grid)
    width = np.timedelta64(int(analysis.resolution), "ms")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for axes, values, label in (
        (top, analysis.documents, f"documents per {_per(analysis)}"),
        (bottom, analysis.words, f"words per {_per(analysis)}"),
    ):
        if len(dates) <= 400:
            axes.bar(dates, values, width=width, color=BLUE, alpha=0.8, linewidth=0)
        else:  # bars thinner than a pixel only blur
            axes.fill_between(dates, values, step="mid", color=BLUE, alpha=0.8, linewidth=0)
        axes.set_title(label, loc="left")
        axes.set_ylim(bottom=0)
        axes.margins(x=0.01)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        _date_axis(axes)
    return figure


def likelihood(analysis: DriftAnalysis) -> Figure:
    """Figure 5 of the paper: held-out log-likelihood against the bandwidth, with both extremes."""
    from matplotlib.ticker import LogLocator, NullLocator  # slow to import

    figure = empty_figure(7.6, 4.2)
    axes = figure.subplots()
    best = max(float(analysis.offline.scores.max()), float(analysis.online.scores.max()))
    lowest = min(analysis.global_score, analysis.extreme_local, float(analysis.online.scores.max()))
    for choice, colour, label in (
        (analysis.offline, BLUE, "offline (past and future)"),
        (analysis.online, ORANGE, "online (past alone)"),
    ):
        finite = np.isfinite(choice.bandwidths) & (choice.bandwidths > 0)
        days = choice.bandwidths[finite] / DAY
        axes.plot(days, choice.scores[finite], "-o", color=colour, markersize=3, linewidth=1.3, label=label)
        if np.isfinite(choice.bandwidth) and choice.bandwidth > 0:
            axes.plot(
                choice.bandwidth / DAY,
                choice.scores.max(),
                "o",
                color=colour,
                markersize=8,
                markerfacecolor="none",
                label=f"best: {format_duration(choice.bandwidth)}",
            )
        limit = float(choice.scores[np.isinf(choice.bandwidths)][0])
        axes.axhline(limit, color=colour, linewidth=1, linestyle="--", label="… global, h = ∞")
    axes.axhline(
        analysis.extreme_local, color=GREY, linewidth=1, linestyle=":", label=f"same {_per(analysis)} alone, h → 0"
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("bandwidth h, in days")
    axes.set_ylabel("log-likelihood of a held-out word (nats)")
    # Narrow online windows can be arbitrarily bad: keep the part that decides in view.
    room = max(best - lowest, 1e-3)
    axes.set_ylim(lowest - 0.35 * room, best + 0.12 * room)
    axes.legend(frameon=False, fontsize=8, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
