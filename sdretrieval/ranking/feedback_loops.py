"""Words of feedback documents, compiled."""

from __future__ import annotations

from sdretrieval.core.compiled import njit


@njit(cache=True, nogil=True)
def find_places(ptr, terms, found, place, first):
    """The place of each posting's term among those ``found``, which ascend, and the first row of each.

    ``first`` has a number beyond all rows before. Rows whose terms ascend are gone through once.
    """
    for i in range(len(ptr) - 1):
        at = 0
        for k in range(ptr[i], ptr[i + 1]):
            if found[at] > terms[k]:
                at = 0
            while found[at] < terms[k]:
                at += 1
            place[k] = at
            first[at] = min(first[at], i)
