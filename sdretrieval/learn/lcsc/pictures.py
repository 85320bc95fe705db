"""Themes along a document (Figure 3) for the terminal, as HTML and as PNG. What is printed calls them topics."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from sdretrieval.core.files import atomic_writer
from sdretrieval.core.plotting import empty_figure

# Twenty colours that stay apart in print, light and dark of ten hues (matplotlib's tab20).
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
    "#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5", "#c49c94", "#f7b6d2", "#c7c7c7", "#dbdb8d", "#9edae5",
)  # fmt: skip
REST = "#eeeeee"  # themes that are not shown one by one
_BARS = " ▁▂▃▄▅▆▇█"


def binned(shares: NDArray, width: int) -> NDArray[np.float64]:
    """Mean shares in ``width`` equal stretches of the document."""
    width = max(1, min(width, len(shares)))
    edges = np.linspace(0, len(shares), width + 1).round().astype(int)
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    return (sums[edges[1:]] - sums[edges[:-1]]) / np.diff(edges)[:, None]


def by_appearance(shares: NDArray, most: int) -> list[int]:
    """The ``most`` themes with the largest share of the document, in the order of where they are at home."""
    totals = shares.sum(axis=0)
    chosen = [int(k) for k in np.argsort(-totals, kind="stable")[:most] if totals[k] > 0]
    places = np.arange(len(shares))
    return sorted(chosen, key=lambda k: float(shares[:, k] @ places) / float(totals[k]))


def terminal_strip(
    shares: NDArray, labels: Sequence[str], *, width: int = 80, most: int = 15, boundaries: Sequence[int] = ()
) -> str:
    """One line per theme, a bar's height its share there; the document runs from left to right."""
    if not len(shares):
        return "(an empty document)"
    themes = by_appearance(shares, most)
    cells = binned(shares[:, themes], width) if themes else np.zeros((1, 0))
    lines = []
    for column, theme in enumerate(themes):
        levels = np.ceil(np.clip(cells[:, column], 0, 1) * (len(_BARS) - 1) - 1e-9).astype(int)
        lines.append(f"{theme:>5} {''.join(_BARS[level] for level in levels)}  {labels[theme]}")
    if boundaries:
        marks = [" "] * len(cells)
        for b in boundaries:
            marks[min(int(b * len(cells) / len(shares)), len(cells) - 1)] = "|"
        lines.append(f"{'cuts':>5} {''.join(marks)}")
    return "\n".join(lines)


def html_strip(
    shares: NDArray, labels: Sequence[str], *, title: str, most: int = 15, boundaries: Sequence[int] = ()
) -> str:
    """A page of its own: stacked shares as SVG, and the words of each theme. Nothing is fetched, no script runs."""
    themes = by_appearance(shares, most) if len(shares) else []
    width, height = 1000, 220
    cells = binned(shares[:, themes], 500) if themes else np.zeros((1, 0))
    tops = np.cumsum(cells, axis=1)
    xs = (np.arange(len(cells)) + 0.5) * width / len(cells)
    areas = []
    for column, theme in enumerate(themes):
        lower = tops[:, column - 1] if column else np.zeros(len(cells))
        up = [f"{x:.1f},{height * (1 - y):.1f}" for x, y in zip(xs, tops[:, column], strict=True)]
        down = [f"{x:.1f},{height * (1 - y):.1f}" for x, y in zip(xs[::-1], lower[::-1], strict=True)]
        hint = escape(f"topic {theme}: {labels[theme]}")
        areas.append(
            f'<polygon fill="{COLOURS[column % 20]}" points="{" ".join(up + down)}"><title>{hint}</title></polygon>'
        )
    cuts = [b * width / max(len(shares), 1) for b in boundaries]
    line = f'y1="0" y2="{height}" stroke="#000" stroke-dasharray="3"'
    areas += [f'<line x1="{x:.1f}" x2="{x:.1f}" {line}/>' for x in cuts]
    rows = [
        f'<tr><td><span style="background:{COLOURS[i % 20]}"></span></td><td>{theme}</td>'
        f"<td>{100 * shares[:, theme].mean():.1f} %</td><td>{escape(labels[theme])}</td></tr>"
        for i, theme in enumerate(themes)
    ]
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>
<style>
body {{ font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; }}
svg {{ width: 100%; height: auto; background: {REST}; }}
td {{ padding: .1em .6em; vertical-align: top; }} td span {{ display: inline-block; width: 1em; height: 1em; }}
</style>
<h1>{escape(title)}</h1>
<p>Topics along the document, from its first word (left) to its last ({len(shares):,} words); grey: other topics.
{"Dashed: where it was cut." if boundaries else ""}</p>
<svg viewBox="0 0 {width} {height}" role="img" aria-label="shares of topics along the document">{"".join(areas)}</svg>
<table><tr><th></th><th>topic</th><th>share</th><th>words</th></tr>
{chr(10).join(rows)}
</table></html>
"""


def png_strips(
    path: str | os.PathLike[str],
    strips: Sequence[tuple[str, NDArray]],
    *,
    labels: Sequence[str] | None = None,
    boundaries: Sequence[int] = (),
    most: int = 15,
) -> None:
    """Several documents, or one under several models, as stacked strips one below the other.

    ``labels``: words of the themes of the *last* strip, listed below it.
    """
    listed = by_appearance(strips[-1][1], most) if labels is not None else []
    figure = empty_figure(9.0, 1.35 * len(strips) + 0.19 * len(listed) + 0.3)
    heights = [1.2] * len(strips) + ([0.19 * len(listed)] if listed else [])
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    for row, (title, shares) in enumerate(strips):
        axes = figure.add_subplot(grid[row])
        themes = by_appearance(shares, most)
        cells = binned(shares[:, themes], 300)
        places = (np.arange(len(cells)) + 0.5) * len(shares) / len(cells)
        axes.stackplot(places, cells.T, colors=[COLOURS[i % 20] for i in range(len(themes))], linewidth=0)
        for b in boundaries:
            axes.axvline(b, color="black", linewidth=0.6, linestyle=":")
        axes.set(xlim=(0, len(shares)), ylim=(0, 1), yticks=[])
        axes.set_title(title, fontsize=9, loc="left")
        axes.tick_params(labelsize=7)
    if labels is not None and listed:
        from matplotlib.patches import Rectangle  # matplotlib takes half a second to load

        axes = figure.add_subplot(grid[len(strips)])
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(len(listed), 0))
        for i, theme in enumerate(listed):
            axes.add_patch(Rectangle((0.0, i + 0.15), 0.015, 0.7, color=COLOURS[i % 20]))
            axes.text(0.022, i + 0.5, labels[theme], fontsize=7, va="center")
    with atomic_writer(path, binary=True) as out:
        figure.savefig(out, format="png", dpi=68)
