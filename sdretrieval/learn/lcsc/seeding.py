"""Themes to start from: contexts far apart (k-means++), then widened to the mean of the contexts nearest to each.

The objective has many local minima; contexts that differ make better first themes than random ones, and a theme that
has met only one context knows too few words to be found by others.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix, vstack

from sdretrieval.core.compiled import njit
from sdretrieval.learn.lcsc.contexts import arrays_of

POOL = 5  # contexts per theme that k-means++ chooses from
WIDENING = 40  # contexts per theme that themes are widened by
LEAST = 4000  # contexts looked at in any case, where there are so many


def seed_dictionary(contexts: csr_matrix, n_themes: int, rng: np.random.Generator, *, rounds: int = 2) -> csc_matrix:
    """A dictionary of ``n_themes`` columns in the simplex."""
    n = contexts.shape[0]
    pool = contexts[np.sort(rng.permutation(n)[: max(LEAST, POOL * n_themes)])]
    chosen = _far_apart(arrays_of(pool), pool.shape[1], min(n_themes, pool.shape[0]), rng.random(n_themes))
    D = csr_matrix(pool[chosen])
    if D.shape[0] < n_themes:  # fewer contexts than themes: the rest repeats them, and may differ later
        D = csr_matrix(vstack([D] * -(-n_themes // D.shape[0])))[:n_themes]
    sample = contexts[np.sort(rng.permutation(n)[: max(LEAST, WIDENING * n_themes)])]
    for _ in range(rounds):
        D = _widened(sample, D)
    return csc_matrix(D.T)


def _widened(contexts: csr_matrix, D: csr_matrix) -> csr_matrix:
    """Each theme (a row) becomes the mean of itself and the contexts nearest to it."""
    by_word = csr_matrix(D.T)
    norms = np.asarray(D.multiply(D).sum(axis=1)).ravel()
    nearest = _nearest(arrays_of(contexts), arrays_of(by_word), norms)
    n, k = contexts.shape[0], D.shape[0]
    kept = nearest >= 0
    belongs = csr_matrix((np.ones(int(kept.sum())), (nearest[kept], np.flatnonzero(kept))), shape=(k, n))
    sums = csr_matrix(belongs @ contexts + D)
    sizes = np.asarray(sums.sum(axis=1)).ravel()
    sums.data /= np.repeat(sizes, np.diff(sums.indptr))
    return sums


@njit(cache=True, nogil=True)
def _far_apart(contexts, n_words, n_chosen, dice):
    """k-means++: each next one with a chance that grows with the squared distance to the nearest chosen so far."""
    ptr, words, values = contexts
    n = len(ptr) - 1
    squares = np.zeros(n)
    for i in range(n):
        for t in range(ptr[i], ptr[i + 1]):
            squares[i] += values[t] * values[t]
    distance = np.full(n, np.inf)
    chosen = np.empty(n_chosen, dtype=np.int64)
    dense = np.zeros(n_words)
    current = min(int(dice[0] * n), n - 1)
    for c in range(n_chosen):
        chosen[c] = current
        for t in range(ptr[current], ptr[current + 1]):
            dense[words[t]] += values[t]
        total = 0.0
        for i in range(n):
            dot = 0.0
            for t in range(ptr[i], ptr[i + 1]):
                dot += values[t] * dense[words[t]]
            distance[i] = max(0.0, min(distance[i], squares[i] + squares[current] - 2.0 * dot))
            if i == current:
                distance[i] = 0.0
            total += distance[i]
        for t in range(ptr[current], ptr[current + 1]):
            dense[words[t]] = 0.0
        if c + 1 < n_chosen:
            left = dice[c + 1] * total
            current = n - 1
            for i in range(n):
                left -= distance[i]
                if left <= 0.0 and distance[i] > 0.0:
                    current = i
                    break
    return chosen


@njit(cache=True, nogil=True)
def _nearest(contexts, by_word, norms):
    """The theme nearest to each context, of those that share a word with it; -1 where none does."""
    ptr, words, values = contexts
    w_ptr, w_themes, w_values = by_word
    n_themes = len(norms)
    dots = np.zeros(n_themes)
    met = np.empty(n_themes, dtype=np.int64)
    seen = np.zeros(n_themes, dtype=np.bool_)
    result = np.full(len(ptr) - 1, -1, dtype=np.int64)
    for i in range(len(ptr) - 1):
        n = 0
        for t in range(ptr[i], ptr[i + 1]):
            w = words[t]
            for u in range(w_ptr[w], w_ptr[w + 1]):
                k = w_themes[u]
                if not seen[k]:
                    seen[k] = True
                    met[n] = k
                    n += 1
                dots[k] += values[t] * w_values[u]
        best = np.inf
        for c in range(n):
            k = met[c]
            far = norms[k] - 2.0 * dots[k]
            if far < best:
                best, result[i] = far, k
            dots[k] = 0.0
            seen[k] = False
    return result
