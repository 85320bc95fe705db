"""How often two words stand together in documents, compiled."""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import ask_ahead, njit
from sdretrieval.index.rows import count_of, first_word, term_of

_BITS = 16  # of the lower part of a place
_AHEAD, _LINE = 32, 16  # documents, and numbers in a line of the cache


@njit(cache=True, nogil=True)
def places_by_document(ptr, docs, counts, places, starts, low, high):
    """Places by term to places by document; ``high`` may be empty. False where the counts do not fit."""
    cursor, k = starts[:-1].copy(), 0
    for t in range(len(ptr) - 1):
        for p in range(ptr[t], ptr[t + 1]):
            d, n = docs[p], counts[p]
            if n < 0 or k + n > len(places) or cursor[d] + n > starts[d + 1]:
                return False
            for i in range(n):
                low[cursor[d] + i] = places[k + i] & ((1 << _BITS) - 1)
                if len(high) > 0:
                    high[cursor[d] + i] = places[k + i] >> _BITS
            cursor[d] += n
            k += n
    return k == len(places)


@njit(cache=True, nogil=True)
def count_windows(docs, rows, starts, low, high, terms, pairs, gap, width, graded, ordered, near):
    """How often the second word of a pair follows the first, and how often they are near in any order.

    ``terms`` ascend, ``pairs`` are places among them. In order: for each place of the first word the next one of the
    second counts, where at most ``gap`` places lie between. In any order: both lists of places are walked together,
    always on in the list that is behind, so that each place is met with the next one of the other word, and that counts
    where at most ``width`` places lie between. ``graded`` as Lucene does it: a match with g places between counts
    1/(1+g) in order and 1/(3+g) in any order, and a word typed twice is near itself. False where a row has more words
    than places.
    """
    doc_ptr, words = rows.ptr, rows.words
    begin, end = np.empty(len(terms), np.int64), np.empty(len(terms), np.int64)
    places = np.empty(1024, np.int64)
    for i in range(len(docs)):
        if i % _AHEAD == 0:  # rows that are read next are asked for together
            for j in range(i, min(i + _AHEAD, len(docs))):
                ask_ahead(doc_ptr, docs[j])
                ask_ahead(starts, docs[j])
            for j in range(i, min(i + _AHEAD, len(docs))):
                for k in range(doc_ptr[docs[j]], doc_ptr[docs[j] + 1], _LINE):
                    ask_ahead(words, k)
                for k in range(starts[docs[j]], starts[docs[j] + 1], 2 * _LINE):
                    ask_ahead(low, k)
        d = docs[i]
        at, filled, k = starts[d], 0, doc_ptr[d]
        for t in range(len(terms)):
            first = first_word(rows, k, doc_ptr[d + 1], terms[t])  # terms ascend in a row, too
            passed = 0
            for j in range(k, first):
                passed += count_of(words[j], j, rows)
            at, k = at + passed, first
            begin[t] = end[t] = filled
            if k < doc_ptr[d + 1] and term_of(words[k], rows) == terms[t]:
                n = count_of(words[k], k, rows)
                if n < 0 or at < starts[d] or at + n > starts[d + 1]:
                    return False
                if filled + n > len(places):
                    more = np.empty(2 * (filled + n), np.int64)
                    more[:filled] = places[:filled]
                    places = more
                for j in range(n):
                    places[filled + j] = low[at + j]
                    if len(high) > 0:
                        places[filled + j] += np.int64(high[at + j]) << _BITS
                filled += n
                end[t] = filled
        for j in range(len(pairs)):
            a, b = pairs[j, 0], pairs[j, 1]
            if begin[a] < end[a] and begin[b] < end[b]:
                p, q = places[begin[a] : end[a]], places[begin[b] : end[b]]
                ordered[i, j], near[i, j] = _in_order(p, q, gap, graded), _near(p, q, width, graded)
    return True


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
