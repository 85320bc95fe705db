"""Kernels over positions: local contexts, the distribution of words around a position (section 3), and passages.

    φ_v(i) = Σ_j k(i, j) [w_j = v],   Σ_v φ_v(i) = 1

      k(i, j) = g(|i - j|)   a kernel over positions of the document, made to sum to one at each position i, so that
                             contexts at the ends of a document are distributions too

=========== ================================= =======================================
kernel      g(d), bandwidth h                 reach
=========== ================================= =======================================
gaussian    exp(-d² / 2h²)                    d <= 3h: h = 1 covers 7 words, as printed
constant    1                                 d <= h:  h = 1 covers 3 words
triangular  1 - d / (h + 1)                   d <= h
=========== ================================= =======================================

A context never crosses the border of its document. The rows are sparse: at most 2 · reach + 1 words each.
"""

from __future__ import annotations

from math import floor

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.lcsc.sequences import Sequences

KERNELS = ("gaussian", "constant", "triangular")
MOST_BANDWIDTH = 1e6  # words
_ROUNDING = 1e-9  # 3 · 0.7 is a hair under 2.1, and floor(3 · (1/3)) should be 1


def kernel_weights(kernel: str, bandwidth: float) -> NDArray[np.float64]:
    """g(0), g(1), … up to the kernel's reach; not normalised.

    >>> kernel_weights("constant", 1.0).tolist()
    [1.0, 1.0]
    """
    if kernel not in KERNELS:
        raise ParameterError(f"no kernel {kernel!r}", remedy=f"One of: {', '.join(KERNELS)}.")
    if not 0 < bandwidth < MOST_BANDWIDTH:
        raise ParameterError(f"the bandwidth must be positive (and under a million words); got {bandwidth!r}")
    reach = floor((3 * bandwidth if kernel == "gaussian" else bandwidth) + _ROUNDING)
    d = np.arange(reach + 1, dtype=np.float64)
    if kernel == "gaussian":
        return np.exp(-0.5 * (d / bandwidth) ** 2)
    return np.ones(reach + 1) if kernel == "constant" else 1.0 - d / (bandwidth + 1.0)


def arrays_of(matrix: csr_matrix) -> tuple[NDArray, NDArray, NDArray]:
    """A sparse matrix as the compiled loops take it."""
    return matrix.indptr, matrix.indices, matrix.data


def local_contexts(documents: Sequences, *, kernel: str = "gaussian", bandwidth: float = 1.0) -> csr_matrix:
    """φ(i) for every position of every document, one after the other: positions x words."""
    g = kernel_weights(kernel, bandwidth)
    ptr, words, values = _contexts(documents.tokens, documents.ptr, g, len(documents.vocabulary))
    matrix = csr_matrix((values, words, ptr), shape=(documents.n_tokens, len(documents.vocabulary)))
    matrix.has_canonical_format = False  # words of a row stand in the order they were met
    return matrix


@njit(cache=True, nogil=True)
def _contexts(tokens: NDArray, doc_ptr: NDArray, g: NDArray, n_words: int):
    reach = len(g) - 1
    total = 0
    for d in range(len(doc_ptr) - 1):  # an upper bound: every word of every window a different one
        length = doc_ptr[d + 1] - doc_ptr[d]
        width = min(length, 2 * reach + 1)
        total += length * width
    words = np.empty(total, dtype=np.int32)
    values = np.empty(total)
    ptr = np.zeros(len(tokens) + 1, dtype=np.int64)
    slot = np.full(n_words, -1, dtype=np.int64)  # where in the row a word stands
    end = 0
    for d in range(len(doc_ptr) - 1):
        first, last = doc_ptr[d], doc_ptr[d + 1]
        for i in range(first, last):
            begin = end
            mass = 0.0
            for j in range(max(first, i - reach), min(last, i + reach + 1)):
                k = g[abs(i - j)]
                mass += k
                w = tokens[j]
                if slot[w] < 0:
                    slot[w] = end
                    words[end] = w
                    values[end] = k
                    end += 1
                else:
                    values[slot[w]] += k
            for t in range(begin, end):
                values[t] /= mass
                slot[words[t]] = -1
            ptr[i + 1] = end
    return ptr, words[:end].copy(), values[:end].copy()


def best_passages(
    where: NDArray,
    which: NDArray,
    doc_ptr: NDArray,
    docs: NDArray,
    theta: NDArray,
    query_counts: NDArray,
    whole: NDArray,
    bandwidth: float,
    mu: float,
) -> NDArray[np.float64]:
    """max_i Σ_w f^Q_w log π^i_w of each document; its ``whole`` score where it has no query word.

    ``where``, ``which``: all occurrences of query words in order, and the word's column in ``theta``.
    """
    g = kernel_weights("gaussian", bandwidth)
    return _best(where, which, doc_ptr, docs, theta, query_counts, whole, g, np.cumsum(g), mu)


@njit(cache=True, nogil=True)
def _best(where, which, doc_ptr, docs, theta, query_counts, whole, g, mass, mu):
    reach = len(g) - 1
    n_terms = theta.shape[1]
    counts = np.empty(n_terms)
    result = whole.copy()
    for row in range(len(docs)):
        first, stop = doc_ptr[docs[row]], doc_ptr[docs[row] + 1]
        begin = np.searchsorted(where, first)
        end = np.searchsorted(where, stop)
        best = -np.inf
        for o in range(begin, end):
            i = where[o]
            counts[:] = 0.0
            for other in range(o, begin - 1, -1):
                if i - where[other] > reach:
                    break
                counts[which[other]] += g[i - where[other]]
            for other in range(o + 1, end):
                if where[other] - i > reach:
                    break
                counts[which[other]] += g[where[other] - i]
            # Σ_j g(|i-j|) over the document's own positions
            size = mass[min(reach, i - first)] + mass[min(reach, stop - 1 - i)] - g[0]
            score = 0.0
            for w in range(n_terms):
                score += query_counts[w] * np.log((counts[w] + mu * theta[row, w]) / (size + mu))
            best = max(best, score)
        if end > begin:
            result[row] = best
    return result
