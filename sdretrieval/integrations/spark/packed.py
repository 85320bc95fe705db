"""Sorted strings in plain arrays (see sdretrieval/strings.py): merged, matched, looked up, and never made text."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit

from sdretrieval.strings import PackedStrings


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
    """Places of the strings of two sorted lists in their union; its number of strings and of bytes."""
    i = j = n = size = 0
    while i < len(a_place) or j < len(b_place):
        if i == len(a_place):
            order = 1
        elif j == len(b_place):
            order = -1
        else:
            order = _compare(a, a_ptr[i], a_ptr[i + 1], b, b_ptr[j], b_ptr[j + 1])
        size += a_ptr[i + 1] - a_ptr[i] if order <= 0 else b_ptr[j + 1] - b_ptr[j]
        if order <= 0:
            a_place[i] = n
            i += 1
        if order >= 0:
            b_place[j] = n
            j += 1
        n += 1
    return n, size


@njit(cache=True, nogil=True)
def _copy(data, ptr, starts, out):
    """The strings at ``starts``, of the lengths that ``ptr`` says, one after the other."""
    for i in range(len(starts)):
        for k in range(ptr[i + 1] - ptr[i]):
            out[ptr[i] + k] = data[starts[i] + k]


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
    n, size = _places(a._data, a._ptr, b._data, b._ptr, a_place, b_place)
    lengths = np.zeros(n + 1, dtype=np.int64)
    lengths[b_place + 1] = np.diff(b._ptr)
    lengths[a_place + 1] = np.diff(a._ptr)
    ptr = np.cumsum(lengths)
    text = np.empty(size, dtype=np.uint8)
    for strings, place in ((a, a_place), (b, b_place)):  # strings of both are written twice, and are the same
        _scatter(strings._data, strings._ptr, ptr[place], text)
    return PackedStrings(text, ptr), a_place, b_place


@njit(cache=True, nogil=True)
def _scatter(data, ptr, starts, out):
    for i in range(len(starts)):
        for k in range(ptr[i + 1] - ptr[i]):
            out[starts[i] + k] = data[ptr[i] + k]


def places_in(part: PackedStrings, whole: PackedStrings) -> np.ndarray:
    """Where the strings of a sorted list stand in a larger sorted one that has them all."""
    place, other = np.empty(len(part), dtype=np.int64), np.empty(len(whole), dtype=np.int64)
    n, _ = _places(part._data, part._ptr, whole._data, whole._ptr, place, other)
    if n != len(whole):
        raise ValueError("a word of the shard is not in the vocabulary of all shards")
    return place


def taken(strings: PackedStrings, positions: np.ndarray) -> PackedStrings:
    """Some of the strings, in the order given: for look-ups by position only."""
    starts = strings._ptr[positions]
    ptr = np.zeros(len(positions) + 1, dtype=np.int64)
    np.cumsum(strings._ptr[np.asarray(positions) + 1] - starts, out=ptr[1:])
    text = np.empty(int(ptr[-1]), dtype=np.uint8)
    _copy(strings._data, ptr, starts, text)
    return PackedStrings(text, ptr)


def pack(strings: Iterable[str]) -> PackedStrings:
    """Strings in the order given, for look-ups by position."""
    return PackedStrings.pack(strings, is_sorted=True)


def find(strings: PackedStrings, wanted: PackedStrings) -> np.ndarray:
    """Positions of the wanted strings, -1 where absent: bisection in compiled code, no table."""
    found = np.empty(len(wanted), dtype=np.int64)
    _find(strings._data, strings._ptr, np.asarray(strings.order), wanted._data, wanted._ptr, found)
    return found


def span(strings: PackedStrings, start: int, stop: int) -> PackedStrings:
    """Some that stand together, without a copy: for look-ups by position only."""
    return PackedStrings(strings._data, strings._ptr[start : stop + 1])


def joined(lists: list[PackedStrings]) -> PackedStrings:
    """Lists one after the other."""
    texts = [strings._data[strings._ptr[0] : strings._ptr[-1]] for strings in lists]
    text = np.concatenate(texts) if lists else np.zeros(0, dtype=np.uint8)
    lengths = [np.diff(strings._ptr) for strings in lists]
    ptr = np.zeros(1 + sum(map(len, lengths)), dtype=np.int64)
    if lengths:
        np.cumsum(np.concatenate(lengths), out=ptr[1:])
    return PackedStrings(text, ptr)
