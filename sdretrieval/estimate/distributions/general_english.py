"""General English (4.10), and documents as smoothed language models.

    θ^GE_j = (Σ_i f^i_j + β) / (Σ_i Σ_j f^i_j + V β)                 (4.10)
    θ^D_j  = λ f^D_j / |D| + (1 - λ) θ^GE_j                           (2.1)
    log θ^D_j = log(1 + f^D_j A_j / |D|) + log((1 - λ) θ^GE_j)        (4.28),  A_j = λ / ((1 - λ) θ^GE_j)

The first term of (4.28) is zero for words that are not in the document: that is what keeps everything sparse. A
document without words has no θ̂^D; its smoothed model is general English itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions import density_loops as loops


def as_counts(counts: Any) -> csr_matrix:
    """Documents x terms as a CSR matrix of float64, checked: finite, not negative, each term once in a document."""
    matrix = counts.tocsr() if issparse(counts) else csr_matrix(np.asarray(counts, dtype=np.float64))
    matrix = matrix.astype(np.float64, copy=False)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.nnz and not (matrix.data.min() >= 0.0 and np.isfinite(matrix.data).all()):
        bad = matrix.data[~((matrix.data >= 0.0) & np.isfinite(matrix.data))][0]
        raise ParameterError(f"counts must be finite and not negative, got {bad}")
    return matrix


def as_weights(weights: Any, n_docs: int) -> np.ndarray:
    """Document weights, ones where there are none."""
    if weights is None:
        return np.ones(n_docs)
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n_docs,) or not (values >= 0.0).all() or not np.isfinite(values).all():
        raise ParameterError(f"weights must be {n_docs} numbers, finite and not negative, got shape {values.shape}")
    return values


def lengths(counts: csr_matrix) -> np.ndarray:
    """|D| of every document."""
    return np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()


def general_english(counts: csr_matrix, additive: float = 0.0, weights: np.ndarray | None = None) -> np.ndarray:
    """(4.10) from documents."""
    totals = counts.T @ weights if weights is not None else np.asarray(counts.sum(axis=0)).ravel()
    return from_totals(np.asarray(totals, dtype=np.float64), additive)


def from_totals(totals: np.ndarray, additive: float) -> np.ndarray:
    """(4.10) from the words' totals; uniform where nothing was counted at all."""
    whole = float(totals.sum()) + additive * len(totals)
    if whole <= 0.0:
        return np.full(len(totals), 1.0 / max(len(totals), 1))
    return (totals + additive) / whole


def check_background(background: Any, n_terms: int) -> np.ndarray:
    """A given θ^GE: one positive probability for each term, summing to one."""
    values = np.asarray(background, dtype=np.float64)
    if values.shape != (n_terms,):
        raise ParameterError(
            f"the background must have one probability for each of {n_terms} terms, got shape {values.shape}"
        )
    if not (values > 0.0).all() or not np.isclose(values.sum(), 1.0, rtol=1e-6):
        raise ParameterError(
            "the background must be positive everywhere and sum to one: smoothing with a zero leaves a zero",
            remedy="Estimate it with an additive count, general_english(counts, additive=0.1).",
        )
    return values


def check_smoothing(smoothing: float) -> None:
    if not 0.0 < smoothing < 1.0:
        raise ParameterError(f"smoothing must be between 0 and 1, got {smoothing}")


def check_scale(scale: float | None) -> None:
    if scale is not None and not (scale > 0.0 and np.isfinite(scale)):
        raise ParameterError(f"the scale S must be positive, got {scale}")


def check_additive(additive: float) -> None:
    if additive < 0.0:
        raise ParameterError(f"the additive count must not be negative, got {additive}")


def background_of(matrix: csr_matrix, weights: np.ndarray, background: Any, additive: float) -> np.ndarray:
    """θ^GE, given or estimated; a word counted nowhere needs an additive count."""
    if background is not None:
        return check_background(background, matrix.shape[1])
    ge = general_english(matrix, additive, weights)
    if not (ge > 0.0).all():
        raise ParameterError(
            f"{int((ge == 0.0).sum())} of {len(ge)} terms occur nowhere and would have probability zero",
            remedy="Give them something with background_additive=0.1, or pass a background.",
        )
    return ge


def checked_documents(
    counts: Any, weights: Any, smoothing: float, scale: float | None, background: Any, additive: float
) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    """Counts, weights and θ^GE of documents that are to be smoothed."""
    matrix = as_counts(counts)
    w = as_weights(weights, matrix.shape[0])
    check_smoothing(smoothing)
    check_scale(scale)
    return matrix, w, background_of(matrix, w, background, additive)


def ratios(background: np.ndarray, smoothing: float) -> np.ndarray:
    """A_j = λ / ((1 - λ) θ^GE_j)."""
    return smoothing / ((1.0 - smoothing) * background)


def inverse(values: np.ndarray) -> np.ndarray:
    """1/x, and 0 for 0: a document without words has no log ratios."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0.0)


def log_ratio_sums(matrix: csr_matrix, weights: np.ndarray, background: np.ndarray, smoothing: float) -> np.ndarray:
    """Σ_i w_i log(1 + f^i_j A_j / |D_i|) of every word, 1 x terms."""
    total = np.zeros((1, matrix.shape[1]))
    rows, bounds = np.arange(matrix.shape[0]), np.array([0, matrix.shape[0]])
    a, b = ratios(background, smoothing), inverse(lengths(matrix))
    loops.sum_log_ratios(matrix.indptr, matrix.indices, matrix.data, rows, bounds, weights, a, b, total)
    return total


def log_powers(counts: Any, alpha: np.ndarray, smoothing: float, background: np.ndarray) -> np.ndarray:
    """Σ_j (α_j - 1) log θ^D_j over the whole vocabulary, by (4.29)."""
    matrix = as_counts(counts)
    n = lengths(matrix)
    scores = np.zeros((matrix.shape[0], 1))
    values = np.ascontiguousarray((alpha - 1.0)[:, None])
    loops.score_log_ratios(
        matrix.indptr, matrix.indices, matrix.data, ratios(background, smoothing), inverse(n), values, scores
    )
    at_rest = float((alpha - 1.0) @ np.log((1.0 - smoothing) * background))
    without_words = -float((alpha - 1.0).sum()) * np.log1p(-smoothing)  # its model is θ^GE, not (1 - λ) θ^GE
    return scores[:, 0] + at_rest + np.where(n > 0.0, 0.0, without_words)
