"""How often two words stand together in documents, compiled."""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import njit


@njit(cache=True, nogil=True)
def together(first, first_ends, first_places, second, second_ends, second_places, gap, width, graded):
    """Documents of both words, how often the second follows the first, and how often they are near in any order.

    In order: for each place of the first the next one of the second counts, where at most ``gap`` places lie between.
    In any order: both lists of places are walked together, always on in the list that is behind, so that each place is
    met with the next one of the other word, and that counts where at most ``width`` places lie between. ``graded`` as
    Lucene does it: a match with g places between counts 1/(1+g) in order and 1/(3+g) in any order, and a word typed
    twice is near itself.
    """
    most = min(len(first), len(second))
    docs, ordered, near = np.empty(most, np.int64), np.empty(most), np.empty(most)
    n = a = b = 0
    while a < len(first) and b < len(second):
        if first[a] < second[b]:
            a += 1
        elif first[a] > second[b]:
            b += 1
        else:
            p = first_places[(first_ends[a - 1] if a else 0) : first_ends[a]]
            q = second_places[(second_ends[b - 1] if b else 0) : second_ends[b]]
            docs[n], ordered[n], near[n] = first[a], _in_order(p, q, gap, graded), _near(p, q, width, graded)
            n, a, b = n + 1, a + 1, b + 1
    return docs[:n], ordered[:n], near[:n]


@njit(cache=True, nogil=True)
def _in_order(p, q, gap, graded):
    found, j = 0.0, 0
    for i in range(len(p)):
        while j < len(q) and q[j] <= p[i]:
            j += 1
        if j == len(q):
            break
        between = q[j] - p[i] - 1
        if between <= gap:
            found += 1.0 / (1.0 + between) if graded else 1.0
    return found


@njit(cache=True, nogil=True)
def _near(p, q, width, graded):
    found, i, j, at_first = 0.0, 0, 0, True  # at_first: the first list is the one that is behind
    while i < len(p) and j < len(q):
        # Where both stand at one place, Lucene goes on with the list it moved last.
        if q[j] < p[i]:
            at_first = False
        elif p[i] < q[j]:
            at_first = True
        between = abs(q[j] - p[i]) - 1
        if between <= width and (graded or between >= 0):
            found += 1.0 / (3.0 + between) if graded else 1.0
        if at_first:
            i += 1
        else:
            j += 1
    return found
