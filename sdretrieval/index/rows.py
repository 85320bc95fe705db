"""The documents' rows: of each word of a document its number and its count, together in four bytes.

The lower bits are the number of the term, as many as the vocabulary needs; those above are the count. A count too large
for these is 0 there, and in a list of its own. So whoever reads a row reads one array.

    ptr            where the rows begin, and where the last one ends
    words          terms ascend in a row
    bits, mask     how many bits a term has, and these bits
    large_at       which words have a count that is too large, ascending
    large_counts   these counts
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sdretrieval.core.compiled import njit

LEAST_BITS = 16  # of a term, however small the vocabulary
AT_ONCE = 1 << 18  # words that are looked over in one go: they stay in the processor's cache


class Rows(NamedTuple):
    """The rows of all documents, as compiled loops take them."""

    ptr: np.ndarray
    words: np.ndarray
    bits: int
    mask: int
    large_at: np.ndarray
    large_counts: np.ndarray

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Rows:
        """From the arrays of a snapshot."""
        bits = bits_of_terms(len(arrays["cf"]))
        large = arrays["large_at"], arrays["large_counts"]
        return cls(arrays["doc_ptr"], arrays["doc_words"], bits, (1 << bits) - 1, *large)

    def taken(self, start: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Terms and counts of the words ``start`` to ``stop``, of all rows together."""
        words = self.words[start:stop]
        terms, counts = (words & self.mask).astype(np.int32), (words >> self.bits).astype(np.int32)
        first, last = np.searchsorted(self.large_at, [start, start + len(words)])
        counts[self.large_at[first:last] - start] = self.large_counts[first:last]
        return terms, counts


def bits_of_terms(n_terms: int) -> int:
    return max(LEAST_BITS, (n_terms - 1).bit_length())


def packed_rows(terms: np.ndarray, counts: np.ndarray, n_terms: int) -> dict[str, np.ndarray]:
    """The arrays of a snapshot that hold the words of rows."""
    bits = bits_of_terms(n_terms)
    at = np.flatnonzero(counts >> (32 - bits))
    words = terms.astype(np.uint32) | (counts.astype(np.uint32) << np.uint32(bits))
    words[at] = terms[at]
    return {"doc_words": words, "large_at": at, "large_counts": counts[at]}


def packing_problem(words: np.ndarray, arrays: Mapping[str, np.ndarray]) -> str | None:
    """What is wrong with the words of rows; None when compiled loops may rely on them."""
    n_terms = len(arrays["cf"])
    mask = (1 << bits_of_terms(n_terms)) - 1
    at: list[np.ndarray] = [np.zeros(0, np.int64)]
    for first in range(0, len(words), AT_ONCE):
        part = words[first : first + AT_ONCE]
        if (part & mask).max() >= n_terms:
            return "points outside of cf"
        at.append(first + np.flatnonzero(part <= mask))
    return None if np.array_equal(np.concatenate(at), arrays["large_at"]) else "has no counts where large_at has none"


@njit(inline="always")
def term_of(word, rows):
    return np.uint32(word & rows.mask)


@njit(inline="always")
def count_of(word, k, rows):
    """The count of the word ``rows.words[k]``."""
    count = np.int64(word >> rows.bits)
    return count if count > 0 else _large_count(k, rows)


@njit(cache=True, nogil=True)
def _large_count(k, rows):
    return np.int64(rows.large_counts[np.searchsorted(rows.large_at, k)])


@njit(cache=True, nogil=True)
def rows_by_term(ptr, docs, counts, bits, out_ptr, out_words, large_at, large_counts):
    """Counts by term to the rows of documents (counting sort); the counts too large for a word to the last two."""
    out_ptr[:] = 0
    for k in range(len(docs)):
        out_ptr[docs[k] + 1] += 1
    for d in range(len(out_ptr) - 1):
        out_ptr[d + 1] += out_ptr[d]
    cursor, n = out_ptr[:-1].copy(), 0
    for t in range(len(ptr) - 1):
        for k in range(ptr[t], ptr[t + 1]):
            place = cursor[docs[k]]
            cursor[docs[k]] = place + 1
            if counts[k] >> (32 - bits):
                out_words[place] = t
                large_at[n], large_counts[n] = place, counts[k]
                n += 1
            else:
                out_words[place] = t | np.int64(counts[k]) << bits


@njit(cache=True, nogil=True)
def terms_by_row(rows, out_ptr, out_docs, out_counts):
    """And back: documents come out ascending for each term."""
    ptr, words = rows.ptr, rows.words
    out_ptr[:] = 0
    for k in range(len(words)):
        out_ptr[term_of(words[k], rows) + 1] += 1
    for t in range(len(out_ptr) - 1):
        out_ptr[t + 1] += out_ptr[t]
    cursor = out_ptr[:-1].copy()
    for d in range(len(ptr) - 1):
        for k in range(ptr[d], ptr[d + 1]):
            t = term_of(words[k], rows)
            out_docs[cursor[t]], out_counts[cursor[t]] = d, count_of(words[k], k, rows)
            cursor[t] += 1


@njit(cache=True, nogil=True)
def row_values(rows, wanted_ptr, wanted_terms, docs):
    """The counts of each wanted term in some documents; 0 where there is none."""
    words, found = rows.words, np.zeros(len(docs), np.int32)
    for i in range(len(wanted_terms)):
        for j in range(wanted_ptr[i], wanted_ptr[i + 1]):
            low = first_word(rows, rows.ptr[docs[j]], rows.ptr[docs[j] + 1], wanted_terms[i])
            if low < rows.ptr[docs[j] + 1] and term_of(words[low], rows) == wanted_terms[i]:
                found[j] = count_of(words[low], low, rows)
    return found


@njit(inline="always")
def first_word(rows, low, high, term):
    """The first of the words low..high of a row whose term is at least ``term``, by bisection."""
    while low < high:
        middle = (low + high) // 2
        if term_of(rows.words[middle], rows) < term:
            low = middle + 1
        else:
            high = middle
    return low
