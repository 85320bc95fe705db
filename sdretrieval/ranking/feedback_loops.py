"""Words of feedback documents, compiled."""

from __future__ import annotations

from sdretrieval.core.compiled import njit


@njit(cache=True, nogil=True)
def find_places(keys, terms, place):
    """The terms among ``keys``, each once, and the place of each posting's term; returns how many there are.

    A key is a term in the upper 32 bits and the number of a posting in the lower; they ascend.
    """
    n = 0
    for key in keys:
        term = key >> 32
        if n == 0 or terms[n - 1] != term:
            terms[n] = term
            n += 1
        place[key & 0xFFFFFFFF] = n - 1
    return n
