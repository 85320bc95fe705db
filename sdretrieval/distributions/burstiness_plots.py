"""Pictures of chapter 3: Figure 3.5 (counts, empirical and predicted) and Figure 3.4 (normalisers)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.distributions.burstiness import Burstiness
from sdretrieval.files import atomic_writer
from sdretrieval.plotting import GREY, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {"multinomial": "#c2570c", "dcm": "#2166ac", "dirichlet": "#5aae61", "sd": "#762a83"}
LINES = {"multinomial": "-", "dcm": "-", "dirichlet": "--", "sd": "-"}
LABELS = {"multinomial": "multinomial", "dcm": "DCM", "dirichlet": "Dirichlet", "sd": "SD"}
FURTHEST = 50  # counts shown at most


def write_plot(found: Burstiness, path: str | os.PathLike[str], title: str = "") -> None:
    """Figure 3.5 as PNG, or SVG or PDF where the name says so."""
    _write(lambda: counts_figure(found, title), path)


def write_normalisers(path: str | os.PathLike[str]) -> None:
    """Figure 3.4."""
    _write(normaliser_figure, path)


def _write(make: Any, path: str | os.PathLike[str]) -> None:
    import matplotlib

    kind = os.fspath(path).rpartition(".")[2].lower()
    kind = kind if kind in ("png", "svg", "pdf") else "png"
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with matplotlib.rc_context(STYLE), atomic_writer(path, binary=True) as out:
        make().savefig(out, format=kind, dpi=95, metadata=metadata)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)  # no window system, no global state
    return figure


def counts_figure(found: Burstiness, title: str = "") -> Figure:
    """One panel for each class of words: the share of documents with f occurrences of a word, on a log scale."""
    figure = _figure(10.5, 3.8)
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
                np.arange(len(masses)), np.where(masses > 0, masses, np.nan), LINES[name], color=COLOURS[name],
                linewidth=1.4, label=LABELS[name],
            )  # fmt: skip
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


def normaliser_curves(smoothing: float, points: int = 99) -> dict[str, np.ndarray]:
    """Figure 3.4(a): two words, α1 + α2 = 1, an even background."""
    from sdretrieval.distributions.normaliser import (
        log_approximate_normaliser,
        log_dirichlet_normaliser,
        log_exact_normaliser,
    )

    first = np.linspace(0.0, 1.0, points + 2)[1:-1]
    alphas = np.column_stack([first, 1.0 - first])
    even = np.array([0.5, 0.5])
    return {
        "alpha": first,
        "dirichlet": np.exp(log_dirichlet_normaliser(alphas)),
        "exact": np.exp([log_exact_normaliser(alpha, even, smoothing) for alpha in alphas]),
        "approximate": np.exp(log_approximate_normaliser(alphas)),
    }


def normaliser_figure() -> Figure:
    """Figure 3.4: (a) the normalisers of two words, at the thesis's λ and at a large one; (b) Γ and its stand-ins."""
    from scipy.special import gamma, xlogy

    figure = _figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    curves = normaliser_curves(0.2)
    alpha = curves["alpha"]
    left.plot(alpha, curves["dirichlet"], color=COLOURS["dirichlet"], label="Dirichlet, Z")
    left.plot(alpha, curves["exact"], color=COLOURS["sd"], label="SD exact, λ = 0.2")
    left.plot(alpha, normaliser_curves(0.8)["exact"], "--", color=COLOURS["sd"], label="SD exact, λ = 0.8")
    left.plot(alpha, curves["approximate"], color="black", label="SD approximate, Z_a")
    left.set_ylim(0, 8)
    left.set_xlabel("α₁ = 1 - α₂")
    left.set_title("(a) normalisers of two words", loc="left")
    left.legend(frameon=False, fontsize=8, loc="upper center")
    x = np.linspace(0.01, 4, 400)
    stirling = np.exp(-x) * x ** (x - 0.5) * np.sqrt(2 * np.pi) * (1 + 1 / (12 * x))
    right.plot(x, gamma(x), color=COLOURS["dirichlet"], label="Γ")
    right.plot(x, stirling, ":", color=GREY, label="Stirling (3.22)")
    right.plot(x, np.exp(xlogy(x, x) - x), color="black", label="Γ_a = e^-α α^α (3.23)")
    right.set_ylim(0, 6)
    right.set_xlabel("α")
    right.set_title("(b) Γ and its approximations", loc="left")
    right.legend(frameon=False, fontsize=8)
    return figure
