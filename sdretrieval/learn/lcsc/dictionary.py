"""The dictionary D for given codes: projected gradient on the simplex, (8)-(10).

For the squared loss the contexts enter through two sums, A = Σ ββ' (themes x themes) and B = Σ φβ' (words x themes):

    ℓ(D) = tr(D A D') - 2 tr(D'B) + Σ ‖φ‖²,      ∇ℓ = 2 (D A - B)                                    (8), (9)
    D ← Π(D - η ∇ℓ), column by column, Π the projection onto the simplex                             (10)
    Π(y) = argmin ‖x - y‖² with x >= 0 and Σ x = 1;   Π(y) = max(0, y - τ) for the one τ that makes it sum to one

- :func:`column_step` (the default) takes one column at a time. For one column ℓ is A_kk ‖D_k‖² plus a linear part:
  round level lines, so the line search of (10) has an exact answer, η_k = 1 / 2A_kk, after which the projection *is*
  the minimiser over that column. A sweep costs about as much as one gradient, and themes that are rarely used, which
  one common η would starve, move as far as the others.
- :func:`gradient_step` is (10) as printed: one η for all columns, by a backtracking line search.

Both never raise ℓ. A theme keeps to the words that occur in contexts using it (or that it has already): for others
B_vk is 0, so that the gradient never asks for them.

For the Hellinger distance :func:`hellinger_step` majorises: √(Σ_k x_k) >= Σ_k √(w_k x_k) for weights w that sum to one,
with equality at w_k ∝ x_k. Under the bound the best column has a closed form that needs neither step nor projection,
D_vk ∝ (√D_vk Σ_i β_k(i) √(φ_v(i) / s_v(i)))², s = Dβ, and the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, csr_matrix, diags

from sdretrieval.core.compiled import njit
from sdretrieval.learn.lcsc.contexts import arrays_of

LINE_SEARCH_STEPS = 60


@dataclass(frozen=True, eq=False)
class Sums:
    """A = Σ ββ' and B = Σ φβ': all of the contexts that the squared loss needs. They add up over batches; times a
    share of one, older batches count less."""

    A: csc_matrix
    B: csc_matrix

    @classmethod
    def of(cls, contexts: csr_matrix, codes: csr_matrix) -> Sums:
        transposed = csr_matrix(codes.T)
        return cls(csc_matrix(transposed @ codes), csc_matrix((transposed @ contexts).T))

    def __mul__(self, share: float) -> Sums:
        return Sums(self.A * share, self.B * share)

    def __add__(self, other: Sums) -> Sums:
        return Sums(csc_matrix(self.A + other.A), csc_matrix(self.B + other.B))


def column_step(D: csc_matrix, sums: Sums, *, sweeps: int = 1, tol: float = 1e-4) -> csc_matrix:
    """Every column in turn to its minimiser, ``sweeps`` times or until no column moves by more than ``tol``."""
    ptr, words, b, d = _pattern(D, sums.B)
    _sweep(arrays_of(sums.A), ptr, words, b, d, D.shape[0], sweeps, tol)
    return _cleaned(csc_matrix((d, words, ptr), shape=D.shape))


def gradient_step(D: csc_matrix, sums: Sums, *, steps: int = 1, shrink: float = 0.5) -> csc_matrix:
    """(10) as printed: one step size for all columns, halved until ℓ falls enough (Armijo on the projected step)."""
    ptr, words, b, d = _pattern(D, sums.B)
    column = np.repeat(np.arange(D.shape[1]), np.diff(ptr))
    # ‖A‖∞ bounds its largest eigenvalue: with that step a fall is certain; the search starts well above it
    certain = 1.0 / max(2.0 * float(abs(sums.A).sum(axis=0).max()), 1e-300)
    for _ in range(steps):
        here = csc_matrix((d, words, ptr), shape=D.shape)
        gradient = 2.0 * (_at(csc_matrix(here @ sums.A), words, column) - b)
        before = float(d @ (gradient - 2.0 * b)) / 2.0  # tr(D A D') - 2 tr(D'B)
        eta = certain * 64.0
        for _ in range(LINE_SEARCH_STEPS):
            new = d - eta * gradient
            _project_columns(new, ptr)
            made = csc_matrix((new, words, ptr), shape=D.shape)
            after = float(csc_matrix(made @ sums.A).multiply(made).sum() - 2.0 * (b @ new))
            if after <= before + 1e-4 * float(gradient @ (new - d)):
                d = new
                break
            eta *= shrink
    return _cleaned(csc_matrix((d, words, ptr), shape=D.shape))


def _pattern(D: csc_matrix, B: csc_matrix) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The words each theme may have, in CSC form, with B and D on them."""
    ones = csc_matrix((np.ones(B.nnz), B.indices, B.indptr), shape=B.shape)
    union = csc_matrix(ones + csc_matrix((np.ones(D.nnz), D.indices, D.indptr), shape=D.shape))
    union.sort_indices()
    column = np.repeat(np.arange(D.shape[1]), np.diff(union.indptr))
    return union.indptr, union.indices, _at(B, union.indices, column), _at(D, union.indices, column)


def _at(matrix: csc_matrix, rows: NDArray, columns: NDArray) -> NDArray[np.float64]:
    """Values at places."""
    matrix = csc_matrix(matrix)
    matrix.sum_duplicates()  # sorted, which makes it fast
    return np.asarray(matrix[rows, columns]).ravel()


def _cleaned(matrix: csc_matrix) -> csc_matrix:
    matrix.eliminate_zeros()
    return matrix


@njit(cache=True, nogil=True)
def _simplex_threshold(y):
    """τ of Π(y), y not empty, by Michelot's rounds: the mean excess over the entries still above it until none falls
    out. Each round drops at least one entry, a handful are enough in practice, and nothing is sorted or allocated."""
    n = len(y)
    total = 0.0
    for i in range(n):
        total += y[i]
    tau = (total - 1.0) / n
    kept = n
    while True:
        count, total = 0, 0.0
        for i in range(n):
            if y[i] > tau:
                count += 1
                total += y[i]
        if count == kept or count == 0:  # none left above: rounding alone, with entries all alike
            return tau
        tau = (total - 1.0) / count
        kept = count


@njit(cache=True, nogil=True)
def project_in_place(y):
    """y ← Π(y). Summed once more at the end, so that rounding leaves no trace in Σ y = 1."""
    tau = _simplex_threshold(y)
    total = 0.0
    for i in range(len(y)):
        y[i] = max(0.0, y[i] - tau)
        total += y[i]
    for i in range(len(y)):
        y[i] = y[i] / total if total > 0.0 else 1.0 / len(y)


@njit(cache=True, nogil=True)
def _project_columns(values, ptr):
    for k in range(len(ptr) - 1):
        if ptr[k + 1] > ptr[k]:
            project_in_place(values[ptr[k] : ptr[k + 1]])


@njit(cache=True, nogil=True)
def _sweep(A, ptr, words, b, d, n_words, sweeps, tol):
    a_ptr, a_themes, a_values = A
    n_themes = len(ptr) - 1
    # the non-zero words of each column, gathered at the front of its span
    filled = np.zeros(n_themes, dtype=np.int64)
    places = np.empty(len(words), dtype=np.int64)
    for k in range(n_themes):
        for t in range(ptr[k], ptr[k + 1]):
            if d[t] > 0.0:
                places[ptr[k] + filled[k]] = t
                filled[k] += 1
    others = np.zeros(n_words)  # Σ_{l≠k} A_lk D_l
    for _ in range(sweeps):
        largest = 0.0
        for k in range(n_themes):
            own = 0.0
            for u in range(a_ptr[k], a_ptr[k + 1]):
                l = a_themes[u]
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
    ratios = _ratios(arrays_of(contexts), arrays_of(codes), arrays_of(csr_matrix(D)), D.shape[1])
    weighted = csr_matrix((ratios, contexts.indices, contexts.indptr), shape=contexts.shape)
    return csc_matrix(D.sqrt().multiply(csc_matrix((csr_matrix(codes.T) @ weighted).T)))


def hellinger_step(D: csc_matrix, weights: csc_matrix) -> csc_matrix:
    """D_vk ∝ weights²; a theme that no context uses stays as it is."""
    squared = csc_matrix(weights.multiply(weights))
    totals = np.asarray(squared.sum(axis=0)).ravel()
    used = totals > 0
    scale = np.zeros(len(totals))
    scale[used] = 1.0 / totals[used]
    made = csc_matrix(squared @ diags(scale)) + csc_matrix(D @ diags((~used).astype(float)))
    made = csc_matrix(made)
    made.data[made.data < 1e-14] = 0.0  # a word that is on its way out: too little of it to show in the objective
    made.eliminate_zeros()
    totals = np.asarray(made.sum(axis=0)).ravel()
    return csc_matrix(made @ diags(1.0 / totals))


@njit(cache=True, nogil=True)
def _ratios(contexts, codes, by_word, n_themes):
    """√(φ_v / s_v) for every word of every context, 0 where no theme covers it."""
    c_ptr, c_words, c_values = contexts
    s_ptr, s_themes, s_values = codes
    w_ptr, w_themes, w_values = by_word
    result = np.zeros(len(c_values))
    beta = np.zeros(n_themes)
    for i in range(len(c_ptr) - 1):
        for t in range(s_ptr[i], s_ptr[i + 1]):
            beta[s_themes[t]] = s_values[t]
        for t in range(c_ptr[i], c_ptr[i + 1]):
            w = c_words[t]
            fit = 0.0
            for u in range(w_ptr[w], w_ptr[w + 1]):
                fit += w_values[u] * beta[w_themes[u]]
            if fit > 0.0:
                result[t] = np.sqrt(c_values[t] / fit)
        for t in range(s_ptr[i], s_ptr[i + 1]):
            beta[s_themes[t]] = 0.0
    return result
