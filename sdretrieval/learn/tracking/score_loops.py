"""The compiled inner loops of tracking. Both add a story's products in the order of the document's words, so that
they agree to the last bit."""

from __future__ import annotations

from sdretrieval.core.compiled import njit


@njit(cache=True, nogil=True)
def score_inverted(ptr, stories, weights, words, evidence, scores):
    """Word at a time over inverted story models: add m_w e_w to the score of every story that has the word."""
    n = len(ptr) - 1
    for i in range(len(words)):
        w, e = words[i], evidence[i]
        if w < n:
            for k in range(ptr[w], ptr[w + 1]):
                scores[stories[k]] += weights[k] * e


@njit(cache=True, nogil=True)
def score_one(story_words, weights, words, evidence):
    """One story: Σ_{w in D} m_w e_w, its ascending words searched by bisection."""
    total, low = 0.0, 0
    n = len(story_words)
    for i in range(len(words)):
        w, high = words[i], n
        while low < high:
            middle = (low + high) // 2
            if story_words[middle] < w:
                low = middle + 1
            else:
                high = middle
        if low < n and story_words[low] == w:
            total += weights[low] * evidence[i]
    return total


@njit(cache=True, nogil=True)
def score_rows(ptr, words, evidence, background, start, stop, weights, k, c, scores):
    """Documents start..stop of a matrix against one story whose weights are laid out densely."""
    for d in range(start, stop):
        total = 0.0
        for j in range(ptr[d], ptr[d + 1]):
            weight = weights[words[j]]
            if weight != 0.0:
                total += weight * evidence[j]
        scores[d] = total + (k * background[d] + c)
