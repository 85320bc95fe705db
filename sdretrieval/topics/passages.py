"""The compiled loop of ranking.py: the best passage of each document."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sdretrieval.topics.contexts import kernel_weights


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
