"""What drifts in a dated collection: curves of words with confidence bands, volume, likelihood, the fastest words.

The analysis behind ``sdretrieval drift``; takes counts and times, knows nothing of indexes or plots.

**Confidence bands.** (12) takes words as independent draws, but words come in bursts: a document that says
"earthquake" once says it again. Bands therefore allow for the design effect of the word around t,

    deff = (Σ_j k_j² (c_j - |x_j| θ̂)² + d) / (Σ_j k_j² |x_j| θ̂ (1 - θ̂) + 1),     at least 1,

      k_j   K_h(t - t_j), scaled to 1 on average;  c_j, |x_j| the word's count in document j and its length
      d     mean count in the documents that have the word: what is expected of one more occurrence

and are Wilson's score interval for a sample of n / deff words, n = (Σ K|x|)² / Σ K²|x|. They stay inside [0, 1] and
have a width where the word was not seen at all. They speak of the variance alone: the bias (13) of a sharp peak, which
the kernel rounds off, is not in them.

**Fastest words** are those whose held-out occurrences are told best by the local model beyond the global one: the
gain in bits, over ten folds, so that a burst within a single document earns nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from scipy.special import ndtri

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import DAY, known_times, middle_of_bin
from sdretrieval.estimate.time.bandwidth import LikelihoodChoice, candidate_bandwidths, choose_by_likelihood
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood

MOST_BINS = 100_000


@dataclass(frozen=True, eq=False)
class WordCurve:
    """θ̂_t of one word over the grid, with its band; NaN where no document is within reach."""

    term: int
    frequency: Floats
    lower: Floats
    upper: Floats
    design_effect: Floats


@dataclass(frozen=True)
class FastWord:
    """A word that drifts: how much the local model gains on it, and where it peaks."""

    term: int
    occurrences: int
    gain_bits: float
    mean: float
    peak: float
    peak_time: float

    @property
    def ratio(self) -> float:
        return self.peak / self.mean


@dataclass(frozen=True, eq=False)
class DriftAnalysis:
    """All that ``sdretrieval drift`` shows."""

    kernel: Kernel
    bandwidth: float
    chosen: bool  # by cross-validation, rather than given
    resolution: float
    level: float
    dated: int
    undated: int
    first: float
    last: float
    likelihood_words: int  # size of the vocabulary the likelihood is over
    grid: Floats  # middles of all bins between the first document and the last, empty ones too
    documents: NDArray[np.int64]
    words: NDArray[np.int64]
    curves: list[WordCurve]
    offline: LikelihoodChoice
    online: LikelihoodChoice
    extreme_local: float  # held-out log-likelihood of h → 0
    fastest: list[FastWord]

    @property
    def global_score(self) -> float:
        return float(self.offline.scores[np.isinf(self.offline.bandwidths)][0])


def analyse(
    counts: csr_matrix,
    times: ArrayLike,
    *,
    words: Sequence[int] | None = None,
    kernel: str | Kernel = "tricube",
    bandwidth: float | None = None,
    resolution: float = DAY,
    level: float = 0.95,
    fastest: int = 20,
    most_words: int = 10_000,
    least_count: int = 5,
    background: float = 0.1,
    seed: int = 0,
) -> DriftAnalysis:
    """The drift of documents x terms counts. Without ``words``, curves are drawn for the six fastest.

    ``bandwidth=None`` chooses it by ten-fold likelihood. The likelihood, and the choice of the fastest words, look at
    the ``most_words`` most frequent words that occur ``least_count`` times or more; the curves use all words.
    """
    kernel = as_kernel(kernel, online=False)
    counts = csr_matrix(counts)
    stamps, dated = known_times(times)
    n_dated = int(np.count_nonzero(dated))
    if n_dated == 0:
        raise ParameterError("none of the documents has a time", remedy="Index them with their dates.")
    stamps = stamps[dated]
    counts = csr_matrix(counts[np.flatnonzero(dated)])
    first, last = float(stamps.min()), float(stamps.max())
    grid = bins_between(first, last, resolution)

    cf = np.asarray(counts.sum(axis=0), dtype=np.int64).ravel()
    frequent = np.argsort(-cf, kind="stable")[:most_words]
    frequent = np.sort(frequent[cf[frequent] >= least_count])
    if len(frequent) == 0:
        frequent = np.flatnonzero(cf > 0)
    folds = min(10, max(2, n_dated))
    folded = FoldedTimeline(
        counts[:, frequent], stamps, folds=folds, seed=seed, resolution=resolution, background=background
    )
    candidates = candidate_bandwidths(folded.line.times)
    offline = choose_by_likelihood(folded, kernel=kernel, bandwidths=candidates)
    online = choose_by_likelihood(folded, kernel=as_kernel(kernel, online=True), bandwidths=candidates)
    h = offline.bandwidth if bandwidth is None else float(bandwidth)

    model = LocalLikelihood(counts, stamps, h, kernel=kernel, resolution=resolution)
    local = h if np.isfinite(h) else offline.finite_bandwidth
    drifting = [] if local is None else _fastest(folded, frequent, cf, model, local, grid, fastest)
    shown = [word.term for word in drifting[:6]] if words is None else [int(w) for w in words]
    return DriftAnalysis(
        kernel=kernel,
        bandwidth=h,
        chosen=bandwidth is None,
        resolution=resolution,
        level=level,
        dated=n_dated,
        undated=len(dated) - n_dated,
        first=first,
        last=last,
        likelihood_words=len(frequent),
        grid=grid,
        documents=_per_bin(stamps, np.ones(n_dated), grid, resolution),
        words=_per_bin(stamps, np.asarray(counts.sum(axis=1)).ravel(), grid, resolution),
        curves=word_curves(model, counts, shown, grid, level=level),
        offline=offline,
        online=online,
        extreme_local=folded.score(0.0, kernel).per_word,
        fastest=drifting,
    )


def bins_between(first: float, last: float, resolution: float) -> Floats:
    """The middle of every bin from that of ``first`` to that of ``last``."""
    low, high = (float(middle_of_bin(np.array([t]), resolution)[0]) for t in (first, last))
    number = round((high - low) / resolution) + 1
    if number > MOST_BINS:
        raise ParameterError(
            f"{number} bins of {resolution:.0f} ms between the first document and the last",
            remedy="Choose a coarser resolution, such as week or month.",
        )
    return low + resolution * np.arange(number, dtype=np.float64)


def _per_bin(stamps: Floats, weights: Floats, grid: Floats, resolution: float) -> NDArray[np.int64]:
    position = np.rint((middle_of_bin(stamps, resolution) - grid[0]) / resolution).astype(np.int64)
    return np.rint(np.bincount(position, weights=weights, minlength=len(grid))).astype(np.int64)


def word_curves(
    model: LocalLikelihood, counts: csr_matrix, words: Sequence[int], grid: ArrayLike, *, level: float = 0.95
) -> list[WordCurve]:
    """θ̂_t over the grid for each word, with confidence bands (see above); ``counts`` are those of the model."""
    if len(words) == 0:
        return []
    sums = word_sums(counts, model.line.row_of, len(model.line.times), words)
    return curves_from_sums(model, model.over(grid, words), words, sums, grid, level=level)


@dataclass(frozen=True, eq=False)
class WordSums:
    """What bands need of single documents, as sums: over the documents of each time, and over all.

    per_row      Σ |x_j|², then Σ c_j² of each word, then Σ c_j |x_j| of each word: one column for each time
    occurrences  of each word, and in how many ``documents``
    """

    per_row: Floats
    occurrences: Floats
    documents: NDArray[np.int64]


def word_sums(counts: csr_matrix, row_of: NDArray[np.int64], rows: int, words: Sequence[int]) -> WordSums:
    """Of documents x terms counts; ``row_of`` gives each document's time, -1 leaves it out."""
    kept = np.flatnonzero(row_of >= 0)
    columns = csr_matrix(counts[:, np.asarray(words)])[kept].toarray().astype(np.float64)
    lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()[kept]

    def merged(values: Floats) -> Floats:
        return np.bincount(row_of[kept], weights=values, minlength=rows).astype(np.float64)

    per_row = np.stack(
        [merged(lengths**2), *(merged(c**2) for c in columns.T), *(merged(c * lengths) for c in columns.T)]
    )
    return WordSums(per_row, columns.sum(axis=0), np.count_nonzero(columns, axis=0))


def curves_from_sums(
    model: LocalLikelihood, theta: Floats, words: Sequence[int], sums: WordSums, grid: ArrayLike, *, level: float = 0.95
) -> list[WordCurve]:
    """:func:`word_curves` from θ̂ (times x words) and sums that may come from many machines."""
    if not 0 < level < 1:
        raise ParameterError(f"a confidence level must be between 0 and 1, got {level}")
    z = float(ndtri(0.5 + level / 2))
    line, per_row = model.line, sums.per_row
    n_words = np.zeros(len(theta))
    around = np.zeros((len(theta), len(per_row)))  # Σ K² of each of these, at each time
    for at, lo, hi, weights in model.windows(np.asarray(grid, dtype=np.float64)):
        total, squares = weights @ line.lengths[lo:hi], weights**2 @ line.lengths[lo:hi]
        unit = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
        n_words[at] = unit * total
        around[at] = (unit[:, None] * weights) ** 2 @ per_row[:, lo:hi].T
    curves = []
    for i, word in enumerate(words):
        p = theta[:, i]
        spread = around[:, 1 + i] - 2 * p * around[:, 1 + len(words) + i] + p**2 * around[:, 0]
        typical = float(sums.occurrences[i]) / max(int(sums.documents[i]), 1)
        effect = np.maximum(1.0, (np.maximum(spread, 0.0) + typical) / (n_words * p * (1 - p) + 1.0))
        lower, upper = wilson(p, n_words / effect, z)
        curves.append(WordCurve(int(word), p, lower, upper, effect))
    return curves


def wilson(p: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Wilson's score interval for a proportion p of n draws."""
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    missing = ~(n > 0)
    lower, upper = np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
    lower[p == 0.0], upper[p == 1.0] = 0.0, 1.0
    lower[missing], upper[missing] = np.nan, np.nan
    return lower, upper


def _fastest(
    folded: FoldedTimeline,
    frequent: NDArray[np.int64],
    cf: NDArray[np.int64],
    model: LocalLikelihood,
    h: float,
    grid: Floats,
    number: int,
) -> list[FastWord]:
    """Words by held-out gain of the local model over the global one; none where nothing gains."""
    gain = (folded.score(h, model.kernel).by_word - folded.score(inf, model.kernel).by_word) / log(2)
    order = np.argsort(-gain, kind="stable")[:number]
    order = order[gain[order] > 0]
    if len(order) == 0:
        return []
    terms = frequent[order]
    theta = LocalLikelihood(model.line, None, h, kernel=model.kernel).over(grid, terms)
    tops = np.nanargmax(theta, axis=0)
    return [
        FastWord(
            term=int(term),
            occurrences=int(cf[term]),
            gain_bits=float(gain[row]),
            mean=float(cf[term]) / float(cf.sum()),
            peak=float(theta[top, i]),
            peak_time=float(grid[top]),
        )
        for i, (row, term, top) in enumerate(zip(order, terms, tops, strict=True))
    ]
