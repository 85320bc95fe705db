"""Burstiness in docs/RESULTS.md: Figures 3.4 and 3.5 of the thesis with numbers.

python -m benchmarks.results_burstiness
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from scipy.special import gamma, xlogy

from benchmarks.collections import INDEXES, ROOT, Collection
from benchmarks.kept import BESIDE
from benchmarks.tables import table
from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Reader
from sdretrieval.core.plotting import GREY, STYLE, empty_figure, write_figure
from sdretrieval.estimate.distributions.burstiness import Burstiness, analyse
from sdretrieval.estimate.distributions.burstiness_plots import COLOURS, LABELS, write_plot
from sdretrieval.estimate.distributions.normaliser import (
    estimate_normaliser,
    log_approximate_normaliser,
    log_dirichlet_normaliser,
    log_exact_normaliser,
)
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import open_snapshot

COLLECTIONS = ("reuters21578", "rlists")
WORDS = 200  # of each class
DOCS = ROOT / "docs"


# Ways of setting λ and S. Multinomial and DCM do not depend on λ.
WAYS: dict[str, dict] = {
    "λ = .9, S by likelihood": {"smoothing": 0.9},
    "λ and S by likelihood": {"smoothing": None, "names": ("dirichlet", "sd")},
    "λ = .9, S by the tail": {"smoothing": 0.9, "choose_by": "tail", "names": ("dcm", "dirichlet", "sd")},
    "as printed, λ = .9, S by the tail": {"smoothing": 0.9, "as_printed": True},
}


def section() -> str:
    normalisers, first, *others = _normalisers(), *(_counts(name) for name in COLLECTIONS)
    return "\n\n".join([by_likelihood(first), BESIDE, first, normalisers, *others])


def by_likelihood(table: str) -> str:
    """The table without its pictures, and without the rows whose S is chosen by the tail of the curve."""
    lines = table.partition("\n\n![")[0].splitlines()
    return "\n".join(line for line in lines if "S by the tail" not in line)


def normaliser_curves(smoothing: float, points: int = 99) -> dict[str, np.ndarray]:
    """Figure 3.4(a): two words, α1 + α2 = 1, an even background."""
    first = np.linspace(0.0, 1.0, points + 2)[1:-1]
    alphas = np.column_stack([first, 1.0 - first])
    even = np.array([0.5, 0.5])
    return {
        "alpha": first,
        "dirichlet": np.exp(log_dirichlet_normaliser(alphas)),
        "exact": np.exp([log_exact_normaliser(alpha, even, smoothing) for alpha in alphas]),
        "approximate": np.exp(log_approximate_normaliser(alphas)),
    }


def normaliser_figure():
    """Figure 3.4: (a) the normalisers of two words, at the thesis's λ and at a large one; (b) Γ and its stand-ins."""
    figure = empty_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2)
    curves = normaliser_curves(0.2)
    alpha, exact = curves["alpha"], {"color": COLOURS["sd"]}
    left.plot(alpha, curves["dirichlet"], color=COLOURS["dirichlet"], label="Dirichlet, Z")
    left.plot(alpha, curves["exact"], label="SD exact, λ = 0.2", **exact)
    left.plot(alpha, normaliser_curves(0.8)["exact"], "--", label="SD exact, λ = 0.8", **exact)
    left.plot(alpha, curves["approximate"], color="black", label="SD approximate, Z_a")
    x = np.linspace(0.01, 4, 400)
    stirling = np.exp(-x) * x ** (x - 0.5) * np.sqrt(2 * np.pi) * (1 + 1 / (12 * x))
    right.plot(x, gamma(x), color=COLOURS["dirichlet"], label="Γ")
    right.plot(x, stirling, ":", color=GREY, label="Stirling (3.22)")
    right.plot(x, np.exp(xlogy(x, x) - x), color="black", label="Γ_a = e^-α α^α (3.23)")
    for axes, top, name, title, place in (
        (left, 8, "α₁ = 1 - α₂", "(a) normalisers of two words", "upper center"),
        (right, 6, "α", "(b) Γ and its approximations", "best"),
    ):
        axes.set(ylim=(0, top), xlabel=name)
        axes.set_title(title, loc="left")
        axes.legend(frameon=False, fontsize=8, loc=place)
    return figure


def _normalisers() -> str:
    """Figure 3.4(a) in numbers, and the exact normaliser in three dimensions."""
    with matplotlib.rc_context(STYLE):
        write_figure(normaliser_figure(), DOCS / "burstiness-normalisers.png", dpi=95)
    lines = [
        "Figure 3.4: normalisers of two words, α₁ + α₂ = 1, θ^GE = (½, ½). Z is the Dirichlet's (3.12), Z_a the "
        "approximation (3.24), Z^SD the exact one (3.14) by quadrature.",
        "",
    ]
    rows = {}
    narrow, wide = normaliser_curves(0.2, 999), normaliser_curves(0.8, 999)
    for first in (0.001, 0.01, 0.1, 0.3, 0.5):
        i = int(np.abs(narrow["alpha"] - first).argmin())
        values = (narrow["dirichlet"][i], narrow["exact"][i], wide["exact"][i], narrow["approximate"][i])
        rows[f"{first:g}"] = [f"{value:.4f}" for value in values]
    ratio = narrow["approximate"] / narrow["exact"]
    wide_ratio = narrow["approximate"] / wide["exact"]
    lines += [
        table(["α₁", "Z", "Z^SD, λ = .2", "Z^SD, λ = .8", "Z_a"], rows),
        "",
        f"Over 0 < α₁ < 1, Z^SD at the thesis's λ = .2 stays within {narrow['exact'].min():.3f} and "
        f"{narrow['exact'].max():.3f}: bounded like Z_a, but flat, where Z_a doubles from the middle to the ends "
        f"(Z_a / Z^SD from {ratio.min():.2f} to {ratio.max():.2f}; at λ = .8 from {wide_ratio.min():.2f} to "
        f"{wide_ratio.max():.2f}).",
        "",
        "More words (α_j = S/V, even background, λ = .5), quadrature and Monte Carlo (200,000 points), as logarithms:",
        "",
    ]
    more = []
    for words, scale in ((2, 1.0), (3, 1.0), (4, 1.0), (4, 8.0), (5, 20.0), (10, 1.0), (30, 30.0)):
        alpha, even = np.full(words, scale / words), np.full(words, 1 / words)
        exact = f"{log_exact_normaliser(alpha, even, 0.5):.4f}" if words <= 5 else "-"
        estimate = estimate_normaliser(alpha, even, 0.5, samples=200_000, seed=0)
        drawn = f"{estimate.log:.4f} ± {estimate.standard_error:.4f}"
        dirichlet, approximate = (f(alpha) for f in (log_dirichlet_normaliser, log_approximate_normaliser))
        more.append([str(words), f"{scale:g}", f"{dirichlet:.4f}", exact, drawn, f"{approximate:.4f}"])
    head = ["V", "S", "log Z", "log Z^SD, quadrature", "log Z^SD, Monte Carlo", "log Z_a"]
    return "\n".join([*lines, table(head, more), "", "![normalisers](burstiness-normalisers.png)"])


def with_stopwords(name: str) -> Path:
    """The index of a collection with its stop words, as the thesis had it for this figure."""
    path = INDEXES / f"results-{name}-stopwords"
    if not path.is_dir():
        documents = Reader(date="date").read([Collection(name).folder / "docs.jsonl.gz"])
        build_index(documents, path, analyzer=AnalyzerSpec(stopwords=False), store_positions=False, threads=1)
    return path


def _counts(name: str) -> str:
    """Figure 3.5 of one collection."""
    counts = open_snapshot(with_stopwords(name)).by_doc
    text, rows = "", []
    for number, (way, options) in enumerate(WAYS.items()):
        found = analyse(counts, words=WORDS, **options)
        print(f"{name}: {way}", file=sys.stderr)
        if number == 0:
            text = _heading(name, found)
            base = found.per_document["multinomial"]
            write_plot(found, DOCS / f"burstiness-{name}.png", name)
        if found.as_printed:
            write_plot(found, DOCS / f"burstiness-{name}-as-printed.png", name)
        rows += [_row(found, way, distribution, base) for distribution in found.fits]
    head = ["distribution", "how", "S", "λ", "KL high", "KL medium", "KL low", "perplexity", "gain"]
    pictures = f"![counts](burstiness-{name}.png)\n\n![counts, as printed](burstiness-{name}-as-printed.png)"
    return f"{text}\n\n{table(head, rows)}\n\n{pictures}"


def _heading(name: str, found: Burstiness) -> str:
    train, chosen, test = found.sizes
    shares = ", ".join(
        f"{one.name} {len(one.words):,} words with {100 * one.share_of_occurrences:.0f} % of occurrences"
        for one in found.classes
    )
    return (
        f"Figure 3.5 on {name}, stemmed, with stop words "
        f"(`sdretrieval burstiness --index indexes/results-{name}-stopwords --words {WORDS}`): fitted to {train:,} "
        f"documents, S chosen on {chosen:,}, measured on {test:,} others; {shares}. KL is the divergence of the "
        "predicted from the empirical distribution of counts, in brackets among documents that have the word; "
        "perplexity is (3.42); gain is in nats per word over the multinomial (standard error over documents)."
    )


def _row(found: Burstiness, way: str, name: str, base: np.ndarray) -> list[str]:
    scale, smoothing = found.scales[name], found.smoothings[name]
    cells = [LABELS[name], "-" if name == "multinomial" and not found.as_printed else way]
    cells += ["-" if scale is None else f"{scale:.3g}", "-" if smoothing is None else f"{smoothing:g}"]
    for one in found.classes:
        fit = found.fits[name][one.name]
        cells.append(f"{fit.kl:.1e} ({fit.kl_present:.3f})")
    if found.as_printed:
        cells += ["-", "-"]
    else:
        values = found.per_document[name]
        more = values - base
        error = float(more.std(ddof=1) * np.sqrt(len(more)) / found.occurrences)
        told = f"{more.sum() / found.occurrences:+.4f} ({error:.4f})" if name != "multinomial" else "-"
        cells += [f"{found.perplexity[name]:.2f}", told]
    return cells


if __name__ == "__main__":
    print(section())
