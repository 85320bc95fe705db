"""Sorted strings in plain arrays (packed_strings.py): merged, matched, looked up, and never made text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.packed_strings import PackedStrings


@njit(inline="always")
def _compare(a, a_start, a_stop, b, b_start, b_stop):
    """-1, 0 or 1, by bytes; a prefix comes first."""
    i, j = a_start, b_start
    while i < a_stop and j < b_stop:
        if a[i] != b[j]:
            return -1 if a[i] < b[j] else 1
        i += 1
        j += 1
    if i < a_stop:
        return 1
    return -1 if j < b_stop else 0


@njit(cache=True, nogil=True)
def _places(a, a_ptr, b, b_ptr, a_place, b_place):
    """Places of the strings of two sorted lists in their union; how many strings it has."""
    i = j = n = 0
    while i < len(a_place) or j < len(b_place):
        if i == len(a_place):
            order = 1
        elif j == len(b_place):
            order = -1
        else:
            order = _compare(a, a_ptr[i], a_ptr[i + 1], b, b_ptr[j], b_ptr[j + 1])
        if order <= 0:
            a_place[i] = n
            i += 1
        if order >= 0:
            b_place[j] = n
            j += 1
        n += 1
    return n


@njit(cache=True, nogil=True)
def _find(data, ptr, order, wanted, wanted_ptr, found):
    """The position of each wanted string among ``data``, whose byte order is ``order``; -1 where absent."""
    for q in range(len(found)):
        low, high, found[q] = 0, len(order), -1
        while low < high:
            middle = (low + high) // 2
            i = order[middle]
            side = _compare(data, ptr[i], ptr[i + 1], wanted, wanted_ptr[q], wanted_ptr[q + 1])
            if side == 0:
                found[q] = i
                break
            if side < 0:
                low = middle + 1
            else:
                high = middle


def union(a: PackedStrings, b: PackedStrings) -> tuple[PackedStrings, np.ndarray, np.ndarray]:
    """Two sorted lists as one, each string once; and where each list's strings went."""
    a_place, b_place = np.empty(len(a), dtype=np.int64), np.empty(len(b), dtype=np.int64)
    lengths = np.zeros(_places(a.data, a.ptr, b.data, b.ptr, a_place, b_place), dtype=np.int64)
    for strings, place in ((a, a_place), (b, b_place)):
        lengths[place] = np.diff(strings.ptr)
    ptr = _ends(lengths)
    text = np.empty(int(ptr[-1]), dtype=np.uint8)
    for strings, place in ((a, a_place), (b, b_place)):  # strings of both are written twice, and are the same
        text[_bytes(ptr[place], np.diff(strings.ptr))] = strings.data
    return PackedStrings(text, ptr), a_place, b_place


def places_in(part: PackedStrings, whole: PackedStrings) -> np.ndarray:
    """Where the strings of a sorted list stand in a larger sorted one that has them all."""
    place, other = np.empty(len(part), dtype=np.int64), np.empty(len(whole), dtype=np.int64)
    if _places(part.data, part.ptr, whole.data, whole.ptr, place, other) != len(whole):
        raise ValueError("a word of the shard is not in the vocabulary of all shards")
    return place


def find(strings: PackedStrings, wanted: PackedStrings) -> np.ndarray:
    """Positions of the wanted strings, -1 where absent: bisection in compiled code, no table."""
    found = np.empty(len(wanted), dtype=np.int64)
    _find(strings.data, strings.ptr, np.asarray(strings.order), wanted.data, wanted.ptr, found)
    return found


# -- lists in the order given, for look-ups by position only -----------------------------------------------------


def pack(strings: Iterable[str]) -> PackedStrings:
    return PackedStrings.pack(strings, is_sorted=True)


def taken(strings: PackedStrings, positions: np.ndarray) -> PackedStrings:
    """Some of the strings: their bytes are cut out, so that they travel alone."""
    starts = strings.ptr[positions]
    lengths = strings.ptr[np.asarray(positions) + 1] - starts
    return PackedStrings(strings.data[_bytes(starts, lengths)], _ends(lengths))


def joined(a: PackedStrings, b: PackedStrings) -> PackedStrings:
    """Two lists one after the other."""
    return PackedStrings(np.concatenate([a.data, b.data]), np.concatenate([a.ptr, a.ptr[-1] + b.ptr[1:]]))


def _ends(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)])


def _bytes(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The places of all bytes of strings, one string after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
