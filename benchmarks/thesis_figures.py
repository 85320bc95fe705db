"""Figures 3.3, 5.1 and 7.1 of the thesis, and the appendix's volumes (7.2)-(7.13), as docs/thesis-figures.png.

python -m benchmarks.thesis_figures

S_MLE = {θ̂ in Δ: int(θ̂ |D|) = f}                    the points of the simplex that round to a document's counts (7.2)
V_MLE <= |D|^-(V-1) 2^-n_e                          its volume in V - 1 coordinates, n_e counts being 0 (7.12), (7.13)
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
from scipy.stats import beta

from benchmarks.collections import ROOT
from sdretrieval.core.plotting import GREY, STYLE, empty_figure, write_figure

PICTURE = ROOT / "docs" / "thesis-figures.png"
SMOOTHINGS = (1.0, 0.8, 0.5, 0.2)
PRECISIONS = (2.5, 5.0, 20.0, 100.0)
LENGTH = 10


def smoothed_documents(smoothing: float, documents: int = 1000, seed: int = 0) -> np.ndarray:
    """Figure 3.3: documents of three words and of 1 to 50 tokens, uniformly at random, smoothed with their own θ^GE."""
    rng = np.random.default_rng(seed)
    counts = np.stack([rng.multinomial(rng.integers(1, 51), rng.dirichlet(np.ones(3))) for _ in range(documents)])
    general = counts.sum(axis=0) / counts.sum()
    return smoothing * counts / counts.sum(axis=1, keepdims=True) + (1 - smoothing) * general


def variance(alpha: np.ndarray) -> np.ndarray:
    """(5.29), of each word under a Dirichlet."""
    scale = alpha.sum()
    return alpha * (scale - alpha) / (scale**2 * (scale + 1))


def volume_bound(counts: np.ndarray) -> float:
    """(7.13): of the points that round to the counts."""
    length = counts.sum()
    return float(length ** -(len(counts) - 1.0) / 2.0 ** (counts == 0).sum())


def volume(counts: np.ndarray, points: int = 200_000, seed: int = 0) -> float:
    """The same by Monte Carlo: points of the box that (7.13) is the volume of, and the share that rounds to them."""
    length = counts.sum()
    low = np.maximum(counts[:-1] - 0.5, 0.0)
    width = counts[:-1] + 0.5 - low
    first = (low + width * np.random.default_rng(seed).random((points, len(counts) - 1))) / length
    last = 1.0 - first.sum(axis=1)
    inside = (last >= 0.0) & (np.abs(last * length - counts[-1]) < 0.5)
    return float(np.prod(width / length) * inside.mean())


def covered(words: int, length: int, points: int = 20_000, seed: int = 0) -> float:
    """The share of the simplex whose points round to counts that sum to the length: to a document of that length."""
    theta = np.random.default_rng(seed).dirichlet(np.ones(words), points)
    return float((np.rint(theta * length).sum(axis=1) == length).mean())


def draw() -> None:
    import matplotlib

    with matplotlib.rc_context(STYLE):
        figure = empty_figure(12.0, 5.6)
        rows = figure.subfigures(2, 1)
        for axes, smoothing in zip(rows[0].subplots(1, len(SMOOTHINGS)), SMOOTHINGS, strict=True):
            theta = smoothed_documents(smoothing)
            axes.plot([0, 1, 0.5, 0], [0, 0, np.sqrt(0.75), 0], color=GREY)
            axes.plot(theta[:, 1] + theta[:, 2] / 2, theta[:, 2] * np.sqrt(0.75), ".", markersize=1.5)
            axes.set_title(f"Figure 3.3: λ = {smoothing:g}", loc="left")
            axes.set_aspect("equal")
            axes.axis("off")
        left, right = rows[1].subplots(1, 2)
        x = np.linspace(0.001, 0.999, 500)
        for scale in PRECISIONS:
            spread = variance(np.array([scale / 2, scale / 2]))[0]
            left.plot(x, beta(scale / 2, scale / 2).pdf(x), label=f"S = {scale:g}, variance {spread:.4f}")
        left.set_title("Figure 5.1: two words, α = (S/2, S/2), and (5.29)", loc="left")
        left.set(xlabel="θ₁")
        left.legend(frameon=False)
        right.plot([0, 1], [1, 0], color=GREY)
        for count in range(LENGTH + 1):
            edges = np.clip(np.array([count - 0.5, count + 0.5]) / LENGTH, 0, 1)
            right.plot(edges, 1 - edges, linewidth=4, solid_capstyle="butt")
            right.plot(count / LENGTH, 1 - count / LENGTH, "k.", markersize=4)
        right.set_title(f"Figure 7.1: what rounds to each document of {LENGTH} words, V = 2", loc="left")
        right.set(xlabel="θ₁", ylabel="θ₂")
        write_figure(figure, PICTURE, dpi=95)


def main() -> None:
    draw()
    for counts in product(range(4), repeat=3):
        if sum(counts) == 3:
            told = np.array(counts)
            print(f"f = {counts}: volume {volume(told):.4f}, bound (7.13) {volume_bound(told):.4f}")
    for words in (2, 3, 5, 10, 30, 100):
        print(f"V = {words}: documents of length {100 * words} hold {covered(words, 100 * words):.3f} of the simplex")
    print(PICTURE, file=sys.stderr)


if __name__ == "__main__":
    main()
