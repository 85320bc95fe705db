"""Topics along a document (Figure 3) for the terminal, as HTML and as PNG; and the simplex picture (Figure 2)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdretrieval.files import atomic_writer

# Twenty colours that stay apart in print, light and dark of ten hues (matplotlib's tab20).
COLOURS = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
    "#aec7e8", "#ffbb78", "#98df8a", "#ff9896", "#c5b0d5", "#c49c94", "#f7b6d2", "#c7c7c7", "#dbdb8d", "#9edae5",
)  # fmt: skip
REST = "#eeeeee"  # topics that are not shown one by one
_BARS = " ▁▂▃▄▅▆▇█"


def binned(shares: NDArray, width: int) -> NDArray[np.float64]:
    """Mean shares in ``width`` equal stretches of the document."""
    width = max(1, min(width, len(shares)))
    edges = np.linspace(0, len(shares), width + 1).round().astype(int)
    sums = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    return (sums[edges[1:]] - sums[edges[:-1]]) / np.diff(edges)[:, None]


def by_appearance(shares: NDArray, most: int) -> list[int]:
    """The ``most`` topics with the largest share of the document, in the order of where they are at home."""
    totals = shares.sum(axis=0)
    chosen = [int(k) for k in np.argsort(-totals, kind="stable")[:most] if totals[k] > 0]
    places = np.arange(len(shares))
    return sorted(chosen, key=lambda k: float(shares[:, k] @ places) / float(totals[k]))


def terminal_strip(
    shares: NDArray, labels: Sequence[str], *, width: int = 80, most: int = 15, boundaries: Sequence[int] = ()
) -> str:
    """One line per topic, a bar's height its share there; the document runs from left to right."""
    if not len(shares):
        return "(an empty document)"
    topics = by_appearance(shares, most)
    cells = binned(shares[:, topics], width) if topics else np.zeros((1, 0))
    lines = []
    for column, topic in enumerate(topics):
        levels = np.ceil(np.clip(cells[:, column], 0, 1) * (len(_BARS) - 1) - 1e-9).astype(int)
        lines.append(f"{topic:>5} {''.join(_BARS[level] for level in levels)}  {labels[topic]}")
    if boundaries:
        marks = [" "] * len(cells)
        for b in boundaries:
            marks[min(int(b * len(cells) / len(shares)), len(cells) - 1)] = "|"
        lines.append(f"{'cuts':>5} {''.join(marks)}")
    return "\n".join(lines)


def html_strip(
    shares: NDArray, labels: Sequence[str], *, title: str, most: int = 15, boundaries: Sequence[int] = ()
) -> str:
    """A page of its own: stacked shares as SVG, and the words of each topic. Nothing is fetched, no script runs."""
    topics = by_appearance(shares, most) if len(shares) else []
    width, height = 1000, 220
    cells = binned(shares[:, topics], 500) if topics else np.zeros((1, 0))
    tops = np.cumsum(cells, axis=1)
    xs = (np.arange(len(cells)) + 0.5) * width / len(cells)
    areas = []
    for column, topic in enumerate(topics):
        lower = tops[:, column - 1] if column else np.zeros(len(cells))
        up = [f"{x:.1f},{height * (1 - y):.1f}" for x, y in zip(xs, tops[:, column], strict=True)]
        down = [f"{x:.1f},{height * (1 - y):.1f}" for x, y in zip(xs[::-1], lower[::-1], strict=True)]
        hint = escape(f"topic {topic}: {labels[topic]}")
        areas.append(
            f'<polygon fill="{COLOURS[column % 20]}" points="{" ".join(up + down)}"><title>{hint}</title></polygon>'
        )
    cuts = [b * width / max(len(shares), 1) for b in boundaries]
    line = f'y1="0" y2="{height}" stroke="#000" stroke-dasharray="3"'
    areas += [f'<line x1="{x:.1f}" x2="{x:.1f}" {line}/>' for x in cuts]
    rows = [
        f'<tr><td><span style="background:{COLOURS[i % 20]}"></span></td><td>{topic}</td>'
        f"<td>{100 * shares[:, topic].mean():.1f} %</td><td>{escape(labels[topic])}</td></tr>"
        for i, topic in enumerate(topics)
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


def _figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def png_strips(
    path: str | os.PathLike[str],
    strips: Sequence[tuple[str, NDArray]],
    *,
    labels: Sequence[str] | None = None,
    boundaries: Sequence[int] = (),
    most: int = 15,
) -> None:
    """Several documents, or one under several models, as stacked strips one below the other.

    ``labels``: words of the topics of the *last* strip, listed below it.
    """
    listed = by_appearance(strips[-1][1], most) if labels is not None else []
    figure = _figure(9.0, 1.35 * len(strips) + 0.19 * len(listed) + 0.3)
    heights = [1.2] * len(strips) + ([0.19 * len(listed)] if listed else [])
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    for row, (title, shares) in enumerate(strips):
        axes = figure.add_subplot(grid[row])
        topics = by_appearance(shares, most)
        cells = binned(shares[:, topics], 300)
        places = (np.arange(len(cells)) + 0.5) * len(shares) / len(cells)
        axes.stackplot(places, cells.T, colors=[COLOURS[i % 20] for i in range(len(topics))], linewidth=0)
        for b in boundaries:
            axes.axvline(b, color="black", linewidth=0.6, linestyle=":")
        axes.set(xlim=(0, len(shares)), ylim=(0, 1), yticks=[])
        axes.set_title(title, fontsize=9, loc="left")
        axes.tick_params(labelsize=7)
    if listed:
        assert labels is not None
        axes = figure.add_subplot(grid[len(strips)])
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(len(listed), 0))
        for i, topic in enumerate(listed):
            axes.add_patch(_rectangle(0.0, i + 0.15, 0.015, 0.7, COLOURS[i % 20]))
            axes.text(0.022, i + 0.5, labels[topic], fontsize=7, va="center")
    with atomic_writer(path, binary=True) as out:
        figure.savefig(out, format="png", dpi=68)


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x, y), width, height, color=colour)


def png_simplex(
    path: str | os.PathLike[str],
    words: Sequence[str],
    *,
    contexts: Sequence[NDArray],
    documents: NDArray,
    topics: NDArray,
) -> None:
    """Figure 2: three words as corners; contexts hollow, documents (Dz) filled, topics as squares."""
    corners = np.array([[0.5, np.sqrt(3) / 2], [0.0, 0.0], [1.0, 0.0]])

    def place(points: NDArray) -> NDArray:
        points = np.asarray(points, dtype=float)
        return (points / points.sum(axis=1, keepdims=True)) @ corners

    figure = _figure(4.2, 3.8)
    axes = figure.add_subplot()
    axes.plot(*np.vstack([corners, corners[:1]]).T, color="black", linewidth=1)
    for corner, word, align in zip(corners, words, ("bottom", "top", "top"), strict=True):
        axes.text(*corner, word, ha="center", va=align, fontsize=12)
    for d, own in enumerate(contexts):
        marker = "o^vD<>"[d % 6]
        axes.scatter(
            *place(own).T, marker=marker, facecolors="none", edgecolors=COLOURS[d % 10], s=28, linewidths=0.9
        )
        own_place, label = place(documents[d : d + 1]).T, f"$Dz_{d + 1}$"
        axes.scatter(*own_place, marker=marker, color=COLOURS[d % 10], s=70, zorder=3, label=label)
    axes.scatter(*place(topics).T, marker="s", color="black", s=60, zorder=4, label="topics")
    axes.legend(fontsize=7, loc="upper right", frameon=False)
    axes.set(aspect="equal")
    axes.axis("off")
    with atomic_writer(path, binary=True) as out:
        figure.savefig(out, format="png", dpi=90)
