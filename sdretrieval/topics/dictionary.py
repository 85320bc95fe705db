"""The dictionary D for given codes: projected gradient on the simplex, (8)-(10).

For the squared loss the contexts enter through two sums, A = Σ ββ' (topics x topics) and B = Σ φβ' (words x topics):

    ℓ(D) = tr(D A D') - 2 tr(D'B) + Σ ‖φ‖²,      ∇ℓ = 2 (D A - B)                                    (8), (9)
    D ← Π(D - η ∇ℓ), column by column, Π the projection onto the simplex                             (10)

- :func:`column_step` (the default) takes one column at a time. For one column ℓ is A_kk ‖D_k‖² plus a linear part:
  round level lines, so the line search of (10) has an exact answer, η_k = 1 / 2A_kk, after which the projection *is*
  the minimiser over that column. A sweep costs about as much as one gradient, and topics that are rarely used, which
  one common η would starve, move as far as the others.
- :func:`gradient_step` is (10) as printed: one η for all columns, by a backtracking line search.

Both never raise ℓ. A topic keeps to the words that occur in contexts using it (or that it has already): for others
B_vk is 0, so that the gradient never asks for them.

For the Hellinger distance :func:`hellinger_step` majorises: √(Σ_k x_k) >= Σ_k √(w_k x_k) for weights w that sum to one,
with equality at w_k ∝ x_k. Under the bound the best column has a closed form that needs neither step nor projection,
D_vk ∝ (√D_vk Σ_i β_k(i) √(φ_v(i) / s_v(i)))², s = Dβ, and the objective never rises.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags

from sdretrieval.simplex import project_in_place

LINE_SEARCH_STEPS = 60


class Sums:
    """A = Σ ββ' and B = Σ φβ', and Σ‖φ‖²: all of the contexts that the squared loss needs. They add up over batches."""

    def __init__(self, A: csc_matrix, B: csc_matrix, energy: float) -> None:
        self.A, self.B, self.energy = A, B, energy

    @classmethod
    def of(cls, contexts: csr_matrix, codes: csr_matrix) -> Sums:
        transposed = csr_matrix(codes.T)
        A, B = csc_matrix(transposed @ codes), csc_matrix((transposed @ contexts).T)
        return cls(A, B, float(contexts.data @ contexts.data))

    def faded(self, share: float) -> Sums:
        """The same with a weight: older batches, coded with older dictionaries, count less."""
        return Sums(self.A * share, self.B * share, self.energy * share)

    def __add__(self, other: Sums) -> Sums:
        return Sums(csc_matrix(self.A + other.A), csc_matrix(self.B + other.B), self.energy + other.energy)

    def loss(self, D: csc_matrix) -> float:
        """ℓ(D), (8)."""
        DA = csc_matrix(D @ self.A)
        return float(DA.multiply(D).sum() - 2.0 * self.B.multiply(D).sum() + self.energy)


def column_step(D: csc_matrix, sums: Sums, *, sweeps: int = 1, tol: float = 1e-4) -> csc_matrix:
    """Every column in turn to its minimiser, ``sweeps`` times or until no column moves by more than ``tol``."""
    pattern_ptr, pattern, b, d = _pattern(D, sums.B)
    A = sums.A
    _sweep(A.indptr, A.indices, A.data, pattern_ptr, pattern, b, d, D.shape[0], sweeps, tol)
    return _cleaned(d, pattern, pattern_ptr, D.shape)


def gradient_step(D: csc_matrix, sums: Sums, *, steps: int = 1, shrink: float = 0.5) -> csc_matrix:
    """(10) as printed: one step size for all columns, halved until ℓ falls enough (Armijo on the projected step)."""
    pattern_ptr, pattern, b, d = _pattern(D, sums.B)
    column = np.repeat(np.arange(D.shape[1]), np.diff(pattern_ptr))
    # ‖A‖∞ bounds its largest eigenvalue: with that step a fall is certain; the search starts well above it
    certain = 1.0 / max(2.0 * float(abs(sums.A).sum(axis=0).max()), 1e-300)
    for _ in range(steps):
        here = csc_matrix((d, pattern, pattern_ptr), shape=D.shape)
        DA = csc_matrix(here @ sums.A)
        gradient = 2.0 * (_at(DA, pattern, column) - b)
        before = float(d @ (gradient - 2.0 * b)) / 2.0  # tr(D A D') - 2 tr(D'B)
        eta = certain * 64.0
        for _ in range(LINE_SEARCH_STEPS):
            new = d - eta * gradient
            _project_columns(new, pattern_ptr)
            moved = new - d
            made = csc_matrix((new, pattern, pattern_ptr), shape=D.shape)
            after = float(csc_matrix(made @ sums.A).multiply(made).sum() - 2.0 * (b @ new))
            if after <= before + 1e-4 * float(gradient @ moved):
                d = new
                break
            eta *= shrink
    return _cleaned(d, pattern, pattern_ptr, D.shape)


def _pattern(D: csc_matrix, B: csc_matrix) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The words each topic may have, in CSC form, with B and D on them."""
    ones = csc_matrix((np.ones(B.nnz), B.indices, B.indptr), shape=B.shape)
    union = csc_matrix(ones + csc_matrix((np.ones(D.nnz), D.indices, D.indptr), shape=D.shape))
    union.sort_indices()
    column = np.repeat(np.arange(D.shape[1]), np.diff(union.indptr))
    return union.indptr, union.indices, _at(B, union.indices, column), _at(D, union.indices, column)


def _at(matrix: csc_matrix, rows: NDArray, columns: NDArray) -> NDArray[np.float64]:
    """Values at places that ascend within each column."""
    matrix = csc_matrix(matrix)
    matrix.sum_duplicates()
    return _lookup(matrix.indptr, matrix.indices, matrix.data, rows, columns)


@njit(cache=True, nogil=True)
def _lookup(ptr, indices, data, rows, columns):
    result = np.zeros(len(rows))
    column, t = -1, 0
    for i in range(len(rows)):
        if columns[i] != column:
            column = columns[i]
            t = ptr[column]
        end = ptr[column + 1]
        while t < end and indices[t] < rows[i]:
            t += 1
        if t < end and indices[t] == rows[i]:
            result[i] = data[t]
    return result


def _cleaned(d: NDArray, pattern: NDArray, ptr: NDArray, shape: tuple[int, int]) -> csc_matrix:
    matrix = csc_matrix((d, pattern, ptr), shape=shape)
    matrix.eliminate_zeros()
    return matrix


@njit(cache=True, nogil=True)
def _project_columns(values, ptr):
    for k in range(len(ptr) - 1):
        if ptr[k + 1] > ptr[k]:
            project_in_place(values[ptr[k] : ptr[k + 1]])


@njit(cache=True, nogil=True)
def _sweep(a_ptr, a_topics, a_values, ptr, words, b, d, n_words, sweeps, tol):
    n_topics = len(ptr) - 1
    # the non-zero words of each column, gathered at the front of its span
    filled = np.zeros(n_topics, dtype=np.int64)
    places = np.empty(len(words), dtype=np.int64)
    for k in range(n_topics):
        for t in range(ptr[k], ptr[k + 1]):
            if d[t] > 0.0:
                places[ptr[k] + filled[k]] = t
                filled[k] += 1
    others = np.zeros(n_words)  # Σ_{l≠k} A_lk D_l
    for _ in range(sweeps):
        largest = 0.0
        for k in range(n_topics):
            own = 0.0
            for u in range(a_ptr[k], a_ptr[k + 1]):
                l = a_topics[u]
                if l == k:
                    own = a_values[u]
                    continue
                for p in range(ptr[l], ptr[l] + filled[l]):
                    others[words[places[p]]] += a_values[u] * d[places[p]]
            if own > 0.0:
                target = np.empty(ptr[k + 1] - ptr[k])
                for t in range(len(target)):
                    target[t] = (b[ptr[k] + t] - others[words[ptr[k] + t]]) / own
                project_in_place(target)
                n = 0
                for t in range(len(target)):
                    largest = max(largest, abs(target[t] - d[ptr[k] + t]))
                    d[ptr[k] + t] = target[t]
                    if target[t] > 0.0:
                        places[ptr[k] + n] = ptr[k] + t
                        n += 1
                filled[k] = n
            others[:] = 0.0
        if largest <= tol:
            break


# -- Hellinger -----------------------------------------------------------------------------------------------------


def hellinger_weights(contexts: csr_matrix, codes: csr_matrix, D: csc_matrix) -> csc_matrix:
    """√D_vk Σ_i β_k(i) √(φ_v(i) / s_v(i)) where D_vk > 0: adds up over batches, each with the D it was coded by."""
    ratios = _ratios(
        contexts.indptr, contexts.indices, contexts.data, codes.indptr, codes.indices, codes.data,
        *_by_word(D), D.shape[1],
    )  # fmt: skip
    weighted = csr_matrix((ratios, contexts.indices, contexts.indptr), shape=contexts.shape)
    W = csc_matrix((csr_matrix(codes.T) @ weighted).T)
    return csc_matrix(D.sqrt().multiply(W))


def hellinger_step(D: csc_matrix, weights: csc_matrix) -> csc_matrix:
    """D_vk ∝ weights²; a topic that no context uses stays as it is."""
    squared = csc_matrix(weights.multiply(weights))
    totals = np.asarray(squared.sum(axis=0)).ravel()
    used = totals > 0
    scale = np.zeros(len(totals))
    scale[used] = 1.0 / totals[used]
    made = csc_matrix(squared @ diags(scale)) + csc_matrix(D @ diags((~used).astype(float)))
    made = csc_matrix(made)
    made.data[made.data < 1e-14] = (
        0.0  # a word that is on its way out: too little of it to show in the objective
    )
    made.eliminate_zeros()
    totals = np.asarray(made.sum(axis=0)).ravel()
    return csc_matrix(made @ diags(1.0 / totals))


def _by_word(D: csc_matrix) -> tuple[NDArray, NDArray, NDArray]:
    rows = csr_matrix(D)
    return rows.indptr, rows.indices, rows.data


@njit(cache=True, nogil=True)
def _ratios(c_ptr, c_words, c_values, s_ptr, s_topics, s_values, w_ptr, w_topics, w_values, n_topics):
    """√(φ_v / s_v) for every word of every context, 0 where no topic covers it."""
    result = np.zeros(len(c_values))
    beta = np.zeros(n_topics)
    for i in range(len(c_ptr) - 1):
        for t in range(s_ptr[i], s_ptr[i + 1]):
            beta[s_topics[t]] = s_values[t]
        for t in range(c_ptr[i], c_ptr[i + 1]):
            w = c_words[t]
            fit = 0.0
            for u in range(w_ptr[w], w_ptr[w + 1]):
                fit += w_values[u] * beta[w_topics[u]]
            if fit > 0.0:
                result[t] = np.sqrt(c_values[t] / fit)
        for t in range(s_ptr[i], s_ptr[i + 1]):
            beta[s_topics[t]] = 0.0
    return result
