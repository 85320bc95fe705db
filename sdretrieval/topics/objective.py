"""The objective (5), written as the paper writes it: what everything else must lower.

    Σ_n Σ_i  ρ ‖β(i) - z‖²  +  loss(φ(i), D β(i))  +  λ ‖β(i)‖₁

      φ(i)  local context at position i        β(i) >= 0  its code        z  the document: the mean of its codes, (7)
      D     words x topics, columns in the simplex

loss is ‖φ - Dβ‖² or the Hellinger distance ‖√φ - √(Dβ)‖². The Hellinger distance is convex in β: it equals
Σφ + Σβ - 2 Σ_v √(φ_v (Dβ)_v), and -√ of a linear function is convex.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, diags

LOSSES = ("squared", "hellinger")


def document_means(codes: csr_matrix, doc_ptr: np.ndarray) -> csr_matrix:
    """z = (1/L) Σ_i β(i) for each document, (7); an empty document has none."""
    n_docs, n_positions = len(doc_ptr) - 1, codes.shape[0]
    lengths = np.diff(doc_ptr)
    share = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
    mean = csr_matrix((share, np.arange(n_positions), doc_ptr), shape=(n_docs, n_positions))
    return csr_matrix(mean @ codes)


def losses(
    contexts: csr_matrix, dictionary: csc_matrix, codes: csr_matrix, loss: str = "squared"
) -> np.ndarray:
    """loss(φ(i), Dβ(i)) of each position."""
    fitted = csr_matrix(codes @ csr_matrix(dictionary.T))
    if loss == "hellinger":
        common = contexts.sqrt().multiply(fitted.sqrt())
        both = _sums(contexts) + _sums(fitted)
        return both - 2 * _sums(csr_matrix(common))
    difference = csr_matrix(contexts - fitted)
    return _sums(csr_matrix(difference.multiply(difference)))


def objective(
    contexts: csr_matrix,
    doc_ptr: np.ndarray,
    dictionary: csc_matrix,
    codes: csr_matrix,
    *,
    sparsity: float,
    coupling: float,
    loss: str = "squared",
) -> float:
    """(5), with z of (7); λ is ``sparsity``, ρ is ``coupling``."""
    z = document_means(codes, doc_ptr)
    # Σ_i ‖β(i) - z‖² = Σ_i ‖β(i)‖² - L ‖z‖², as z is the mean
    lengths = diags(np.diff(doc_ptr).astype(float))
    spread = codes.multiply(codes).sum() - (lengths @ z.multiply(z)).sum()
    return float(
        coupling * spread
        + losses(contexts, dictionary, codes, loss).sum()
        + sparsity * np.abs(codes.data).sum()
    )


def _sums(matrix: csr_matrix) -> np.ndarray:
    return np.asarray(matrix.sum(axis=1)).ravel()
