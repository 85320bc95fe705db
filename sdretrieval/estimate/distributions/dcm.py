"""The Dirichlet compound multinomial (Polya): a multinomial drawn from a Dirichlet, then words from it.

    P(f | α) = |D|!/Π f_j! · Γ(S)/Γ(S + |D|) · Π_j Γ(α_j + f_j)/Γ(α_j)              (3.2)

For whole counts only c_j(r), the number of documents with more than r occurrences of word j, matters:

    ℓ(α) = Σ_j Σ_r c_j(r) log(α_j + r) - Σ_r C(r) log(S + r),   C(r) documents longer than r
    G_j(α_j) = ∂/∂α_j = Σ_r c_j(r) / (α_j + r)

With S fixed, ℓ is concave in α; at its maximum G_j(α_j) = 1/u for all words that occur: u is the level of
:mod:`~sdretrieval.estimate.distributions.fitting`. 1/G_j is concave and rising with 1/G_j(c_j(0) u) <= u, so
α_j(u) is reached from the left by Newton's method without overshooting, and Φ(S / Σ_j c_j(0)) >= S. With S free the
maximum has 1/u = Σ_r C(r) / (S + r).

Counts that are not whole are allowed: there, too, G_j(α) = Σ_i w_i (ψ(α + f_ij) - ψ(α)).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammaln, psi

from sdretrieval.core.compiled import njit
from sdretrieval.estimate.distributions import density_loops as loops
from sdretrieval.estimate.distributions.fitting import Convergence, FittedAlpha, digamma_pair, solve_alpha
from sdretrieval.estimate.distributions.general_english import (
    as_counts,
    as_weights,
    check_additive,
    check_scale,
    lengths,
)
from sdretrieval.estimate.distributions.multinomial import log_coefficient

MOST_TAILS = 1_000_000


@dataclass(frozen=True, eq=False)
class DCM(FittedAlpha):
    """α, and how the fit ended. Words that never occurred have α = 0 unless smoothed (4.11).

    The path of log-likelihoods is that before smoothing, without the multinomial coefficients.
    """

    @classmethod
    def fit(
        cls,
        counts: Any,
        weights: Any = None,
        *,
        scale: float | None = None,
        additive: float = 0.0,
        method: str = "newton",
        tolerance: float = 1e-8,
        max_iter: int = 1000,
    ) -> DCM:
        """Maximum likelihood with the ``scale`` S fixed, or estimated where it is None; then (4.11) with δ."""
        matrix = as_counts(counts)
        w = as_weights(weights, matrix.shape[0])
        check_scale(scale)
        check_additive(additive)
        data = Occurrences.of(matrix, lengths(matrix), np.arange(matrix.shape[0]), w, tails=method != "fixed-point")
        alpha, ended = fit_alpha(data, scale, method, tolerance, max_iter)
        ended.warn("the DCM's fit")
        return cls(smoothed(alpha, additive), **vars(ended))

    def log_density(self, counts: Any, *, coefficient: bool = True) -> np.ndarray:
        """log P(f | α, |D|); without the multinomial ``coefficient`` it is (3.2) as printed: one order of the words."""
        matrix = as_counts(counts)
        scores = np.zeros((matrix.shape[0], 1))
        loops.score_compound(
            matrix.indptr, matrix.indices, matrix.data, np.ascontiguousarray(self.alpha[:, None]), scores
        )
        s, n = self.scale, lengths(matrix)
        return np.asarray(
            scores[:, 0] + gammaln(s) - gammaln(s + n) + (log_coefficient(matrix) if coefficient else 0.0)
        )


def smoothed(alpha: np.ndarray, additive: float) -> np.ndarray:
    """(4.11): S (α̂_j + δ) / (Σ_j α̂_j + V δ)."""
    if additive == 0.0:
        return alpha
    total = alpha.sum()
    return total / (total + additive * len(alpha)) * (alpha + additive)


@dataclass(frozen=True, eq=False)
class Occurrences:
    """What the documents of one class say about the words that occur in them, each with an α.

    Whole counts: ``tails[ptr[i] + r]`` is c(r) of word ``words[i]``. Others: ``tails`` are the documents' weights and
    ``values`` their counts.
    """

    n_terms: int
    words: np.ndarray
    ptr: np.ndarray
    tails: np.ndarray
    values: np.ndarray  # empty for whole counts
    lengths: np.ndarray  # distinct |D| > 0
    length_weights: np.ndarray

    largest_scale = 1e7  # beyond it the documents are no burstier than a multinomial's

    @classmethod
    def of(
        cls, matrix: csr_matrix, sizes: np.ndarray, rows: np.ndarray, weights: np.ndarray, *, tails: bool = True
    ) -> Occurrences:
        """From some rows of a matrix whose documents have lengths ``sizes``; without ``tails`` counts stay counts."""
        rows = rows[weights[rows] > 0.0]
        n = sizes[rows]
        distinct, place = np.unique(n, return_inverse=True)
        length_weights = np.bincount(place, weights[rows], len(distinct)) if len(rows) else np.zeros(0)
        kept = distinct > 0.0
        n_terms = matrix.shape[1]
        parts = matrix.indptr, matrix.indices, matrix.data
        most, number, whole = _reach(*parts, rows, n_terms)
        # tails are as long as the largest counts: not worth it where a few are enormous
        whole = whole and tails and most.sum() <= MOST_TAILS + 50 * number.sum()
        words = np.flatnonzero(number)
        sizes = (most if whole else number)[words].astype(np.int64)
        ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        found = np.zeros(ptr[-1])
        values = np.zeros(0 if whole else ptr[-1])
        place_of = np.zeros(n_terms, np.int64)
        place_of[words] = np.arange(len(words))
        _gather(*parts, rows, weights, place_of, ptr, whole, found, values)
        return cls(n_terms, words, ptr, found, values, distinct[kept], length_weights[kept])

    def length_slope(self, scale: float) -> float:
        """Σ_i w_i (ψ(S + |D_i|) - ψ(S))."""
        return float(self.length_weights @ (psi(scale + self.lengths) - psi(scale)))

    @property
    def n_alphas(self) -> int:
        return len(self.words)

    @property
    def usual_scale(self) -> float:
        return float(np.average(self.lengths, weights=self.length_weights))

    def levels(self, x: float, step: float, alpha: np.ndarray, slope: np.ndarray) -> tuple[float, float]:
        return _levels(self.ptr, self.tails, self.values, x, step, alpha, slope)

    def start(self, scale: float) -> float:
        whole = not len(self.values)
        return scale / float((self.tails[self.ptr[:-1]] if whole else self.tails).sum())

    def least_step(self, x: float) -> float:
        return -0.9 * x

    def level_of(self, scale: float) -> float:
        return 1.0 / self.length_slope(scale)

    def minka(self, alpha: np.ndarray | None, scale: float | None) -> np.ndarray:
        """His (65) with S free; with S fixed the numerator alone, normalised."""
        if alpha is None:
            weights = np.add.reduceat(self.tails, self.ptr[:-1])
            return (self.usual_scale if scale is None else scale) * weights / weights.sum()
        products = _products(self.ptr, self.tails, self.values, alpha)
        return products * (1.0 / self.length_slope(float(alpha.sum())) if scale is None else scale / products.sum())

    def log_likelihood(self, alpha: np.ndarray) -> float:
        """ℓ(α), ``alpha`` of the words that occur."""
        scale = float(alpha.sum())
        return _word_likelihood(self.ptr, self.tails, self.values, alpha) - float(
            self.length_weights @ (gammaln(scale + self.lengths) - gammaln(scale))
        )


@njit(cache=True, nogil=True)
def _reach(ptr, terms, counts, rows, n_terms):
    """The largest count of each word, the number of documents it is in, and whether all counts are whole."""
    most, number, whole = np.zeros(n_terms), np.zeros(n_terms, np.int64), True
    for i in range(len(rows)):
        for p in range(ptr[rows[i]], ptr[rows[i] + 1]):
            f = counts[p]
            if f > 0.0:
                number[terms[p]] += 1
                if f > most[terms[p]]:
                    most[terms[p]] = f
                if f != np.floor(f):
                    whole = False
    return most, number, whole


@njit(cache=True, nogil=True)
def _gather(ptr, terms, counts, rows, weights, place_of, starts, whole, tails, values):
    cursor = starts[:-1].copy()
    for i in range(len(rows)):
        d = rows[i]
        for p in range(ptr[d], ptr[d + 1]):
            if counts[p] <= 0.0:
                continue
            j = place_of[terms[p]]
            if whole:
                tails[starts[j] + int(counts[p]) - 1] += weights[d]
            else:
                tails[cursor[j]] = weights[d]
                values[cursor[j]] = counts[p]
                cursor[j] += 1
    if whole:
        for j in range(len(starts) - 1):
            for p in range(starts[j + 1] - 2, starts[j] - 1, -1):
                tails[p] += tails[p + 1]


@njit(cache=True, nogil=True)
def _word_likelihood(ptr, tails, values, alpha):
    total = 0.0
    for j in range(len(alpha)):
        for p in range(ptr[j], ptr[j + 1]):
            if len(values):
                total += tails[p] * (lgamma(alpha[j] + values[p]) - lgamma(alpha[j]))
            else:
                total += tails[p] * log(alpha[j] + (p - ptr[j]))
    return total


@njit(cache=True, nogil=True)
def _slope(start, stop, tails, values, a):
    """G_j and its derivative (negative)."""
    g, h = 0.0, 0.0
    if len(values):
        base, base_slope = digamma_pair(a)
        for p in range(start, stop):
            value, slope = digamma_pair(a + values[p])
            g += tails[p] * (value - base)
            h += tails[p] * (slope - base_slope)
    else:
        for p in range(start, stop):
            r = 1.0 / (a + (p - start))
            g += tails[p] * r
            h -= tails[p] * r * r
    return g, h


@njit(cache=True, nogil=True)
def _levels(ptr, tails, values, u, step, alpha, rise):
    """α_j(u) of every word by Newton on 1/G_j = u, and dα_j/du; their sums are returned."""
    total, slope = 0.0, 0.0
    for j in range(len(alpha)):
        start, stop = ptr[j], ptr[j + 1]
        if stop == start + 1 and not len(values):  # never twice in a document: 1/G = α/c
            alpha[j], rise[j] = tails[start] * u, tails[start]
        else:
            a = alpha[j] + step * rise[j]  # the tangent of a convex function: from the left
            if a <= 0.0:
                a = tails[start] * u if not len(values) else 1e-8 + u
            for _ in range(100):
                g, h = _slope(start, stop, tails, values, a)
                move = (u * g - 1.0) * g / (-h)  # Newton on 1/G: (u - 1/G) / (-h/G²)
                if move <= -a:
                    move = -0.5 * a
                a += move
                rise[j] = g * g / (-h)
                if abs(move) <= 1e-9 * a:
                    break
            alpha[j] = a
        total += alpha[j]
        slope += rise[j]
    return total, slope


@njit(cache=True, nogil=True)
def _products(ptr, tails, values, alpha):
    """α_j G_j(α_j), the numerator of Minka's iteration."""
    out = np.empty(len(alpha))
    for j in range(len(alpha)):
        out[j] = alpha[j] * _slope(ptr[j], ptr[j + 1], tails, values, alpha[j])[0]
    return out


def fit_alpha(
    data: Occurrences,
    scale: float | None,
    method: str = "newton",
    tolerance: float = 1e-8,
    max_iter: int = 1000,
    *,
    path: bool = True,
) -> tuple[np.ndarray, Convergence]:
    """α̂ over the whole vocabulary, zero for words that do not occur (and S/V everywhere where nothing does)."""
    found, ended = solve_alpha(data, scale, method, tolerance, max_iter, path=path)
    if not len(found):
        return np.full(data.n_terms, (scale or 1.0) / data.n_terms), ended
    alpha = np.zeros(data.n_terms)
    alpha[data.words] = found
    return alpha, ended
