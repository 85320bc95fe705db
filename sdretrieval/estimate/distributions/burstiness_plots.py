"""Figure 3.5 of the thesis: how often words occur in documents, and what each distribution says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.core.plotting import GREY, STYLE, empty_figure, write_figure
from sdretrieval.estimate.distributions.burstiness import Burstiness

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"multinomial": "#c2570c", "dcm": "#2166ac", "dirichlet": "#5aae61", "sd": "#762a83"}
LINES = {"multinomial": "-", "dcm": "-", "dirichlet": "--", "sd": "-"}
LABELS = {"multinomial": "multinomial", "dcm": "DCM", "dirichlet": "Dirichlet", "sd": "SD"}
FURTHEST = 50  # counts shown at most


def write_plot(found: Burstiness, path: str | os.PathLike[str], title: str = "") -> None:
    """Figure 3.5 as PNG, or SVG or PDF where the name says so."""
    import matplotlib  # slow to import

    with matplotlib.rc_context(STYLE):
        write_figure(counts_figure(found, title), path, dpi=95)


def counts_figure(found: Burstiness, title: str = "") -> Figure:
    """One panel for each class of words: the share of documents with f occurrences of a word, on a log scale."""
    figure = empty_figure(10.5, 3.8)
    for axes, one in zip(figure.subplots(1, 3), found.classes, strict=True):
        truth = found.empirical[one.name]
        seen = np.flatnonzero(truth > 0)
        last = int(min(seen.max(), FURTHEST))
        seen = seen[seen <= last]
        axes.plot(seen, truth[seen], "o", color="black", markersize=3.5, label="documents", zorder=3)
        lowest = truth[seen].min()
        for name, fits in found.fits.items():
            masses = fits[one.name].masses[: last + 1]
            axes.plot(
                np.arange(len(masses)),
                np.where(masses > 0, masses, np.nan),
                LINES[name],
                color=COLOURS[name],
                linewidth=1.4,
                label=LABELS[name],
            )
        axes.set_yscale("log")
        axes.set_ylim(lowest / 8, 2)
        axes.set_xlim(-0.5, last + 0.5)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_title(f"{one.name}-frequency words ({len(one.words):,})", loc="left")
        axes.set_xlabel("occurrences f in a document")
    figure.axes[0].set_ylabel("P(f)")
    figure.axes[0].legend(frameon=False, fontsize=8)
    how = "as printed" if found.as_printed else f"S by {found.choose_by}"
    figure.suptitle(
        f"{title}{': ' if title else ''}counts of a word in a document, {found.sizes[2]:,} unseen documents ({how})",
        fontsize=9,
        color=GREY,
    )
    return figure
