"""The compiled inner loops of tracking. Both add a topic's products in the order of the document's words, so that
they agree to the last bit."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def score_inverted(ptr, topics, weights, words, evidence, scores):
    """Word at a time over inverted topic models: add m_w e_w to the score of every topic that has the word."""
    n = len(ptr) - 1
    for i in range(len(words)):
        w, e = words[i], evidence[i]
        if w < n:
            for k in range(ptr[w], ptr[w + 1]):
                scores[topics[k]] += weights[k] * e


@njit(cache=True, nogil=True)
def score_one(topic_words, weights, words, evidence):
    """One topic: Σ_{w in D} m_w e_w, its ascending words searched by bisection."""
    total, low = 0.0, 0
    n = len(topic_words)
    for i in range(len(words)):
        w, high = words[i], n
        while low < high:
            middle = (low + high) // 2
            if topic_words[middle] < w:
                low = middle + 1
            else:
                high = middle
        if low < n and topic_words[low] == w:
            total += weights[low] * evidence[i]
    return total


@njit(cache=True, nogil=True)
def merge(old, new):
    """The union of two ascending lists of words, and where the words of each stand in it."""
    union = np.empty(len(old) + len(new), np.int64)
    old_places, new_places = np.empty(len(old), np.int64), np.empty(len(new), np.int64)
    i, j, n = 0, 0, 0
    while i < len(old) or j < len(new):
        if j == len(new) or (i < len(old) and old[i] < new[j]):
            union[n] = old[i]
            old_places[i] = n
            i += 1
        else:
            if i < len(old) and old[i] == new[j]:
                old_places[i] = n
                i += 1
            union[n] = new[j]
            new_places[j] = n
            j += 1
        n += 1
    return union[:n], old_places, new_places


@njit(cache=True, nogil=True)
def score_rows(ptr, words, evidence, background, start, stop, weights, k, c, scores):
    """Documents start..stop of a matrix against one topic whose weights are laid out densely."""
    for d in range(start, stop):
        total = 0.0
        for j in range(ptr[d], ptr[d + 1]):
            weight = weights[words[j]]
            if weight != 0.0:
                total += weight * evidence[j]
        scores[d] = total + (k * background[d] + c)
