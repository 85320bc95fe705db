"""Lines of a run, compiled: scores in the fewest digits that read back the same number, as Python's ``repr`` has them.

Most of the time that a large run takes to be written goes into digits. After Raffaello Giulietti's Schubfach (2020): of
the decimals between the bounds within which all numbers round to a double, the shortest, and of these the nearest.
Scores are not tiny or huge, so that the powers of five that it takes have room in 64 bits: nothing is approximate.
"""

from __future__ import annotations

import numpy as np

from sdretrieval.core.compiled import njit

PLACES = 65  # after the binary point, of 53 bits: numbers from 2^-13 on
LEAST, BOUND = 2.0 ** (52 - PLACES), 2.0**52  # between these a score must be, or else 0
LONGEST = 40  # characters of a rank, a score and the spaces around them: 10, 24 and 2
_DECIMALS = np.array([len(str(2**n)) for n in range(PLACES + 1)])  # places that tell apart as many binary ones
_FIVES = np.array([5**n for n in range(_DECIMALS[-1] + 1)], dtype=np.uint64)
_TENS = np.array([min(10**n, 2**63 - 1) for n in range(len(_FIVES))])  # so small a number has none before the point
_FIRST = 1 << 52  # the bit that doubles leave out
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_SPACE, _POINT, _MINUS, _ZERO = b" .-0"


@njit(cache=True, nogil=True)
def add_lines(out, docids, bits, start, end):
    """A line for each score, of which the bits are given, and docid, parted by spaces; returns where they end.

    In ``out`` there is room for all ``docids`` and, as often as there are scores, for start, end and LONGEST.
    """
    size = place = 0
    for i in range(len(bits)):
        size = _copy(out, size, start)
        while place < len(docids) and docids[place] != _SPACE:
            out[size] = docids[place]
            size, place = size + 1, place + 1
        out[size] = _SPACE
        size, place = _add_whole(out, size + 1, i + 1), place + 1
        out[size] = _SPACE
        size = _copy(out, _add_score(out, size + 1, bits[i]), end)
    return size


@njit(cache=True, nogil=True)
def _copy(out, size, text):
    for i in range(len(text)):
        out[size + i] = text[i]
    return size + len(text)


@njit(cache=True, nogil=True)
def _add_digits(out, size, number, n):
    for i in range(n):
        out[size + n - 1 - i] = _ZERO + number % 10
        number //= 10
    return size + n


@njit(cache=True, nogil=True)
def _add_whole(out, size, number):
    n, rest = 1, number // 10
    while rest:
        n, rest = n + 1, rest // 10
    return _add_digits(out, size, number, n)


@njit(cache=True, nogil=True)
def _add_score(out, size, bits):
    if bits < 0:
        out[size] = _MINUS
        size += 1
    exponent, fraction = bits >> 52 & 0x7FF, bits & (_FIRST - 1)
    number, n = (0, 1) if exponent == 0 else _shortest(_FIRST | fraction, 1075 - exponent)
    whole, rest = number // _TENS[n], number % _TENS[n]
    size = _add_whole(out, size, whole)
    while n > 1 and rest % 10 == 0:
        n, rest = n - 1, rest // 10
    out[size] = _POINT
    return _add_digits(out, size + 1, rest, n)


@njit(cache=True, nogil=True)
def _shortest(number, places):
    """Digits, and how many are after the point, of a number of 53 bits of which so many are after the binary point.

    Four times the double and its bounds, in units of the last decimal: cut, and odd where anything was cut off, they
    compare with multiples of four as if they were whole. A bound is no decimal of so few places. That the lower one of
    a power of two is nearer makes no difference to any of the 65 there are.
    """
    n = _DECIMALS[places]
    five, shift = _FIVES[n], np.uint64(places - n)
    exact = _product(np.uint64(4 * number), five, shift)
    below = exact >> 2
    ten = below // 10 * 10
    if _product(np.uint64(4 * number - 2), five, shift) <= 4 * ten:
        return ten, n
    if _product(np.uint64(4 * number + 2), five, shift) >= 4 * ten + 40:
        return ten + 10, n
    over = exact - 4 * below - 2
    return below if over < 0 or (over == 0 and below % 2 == 0) else below + 1, n


@njit(cache=True, nogil=True)
def _product(a, b, shift):
    """The product of two numbers without a sign, cut by ``shift`` bits; odd where one of these was set."""
    last = (a & _LOW) * (b & _LOW)
    middle = (a >> _HALF) * (b & _LOW) + (last >> _HALF)
    cross = (a & _LOW) * (b >> _HALF) + (middle & _LOW)
    first = (a >> _HALF) * (b >> _HALF) + (middle >> _HALF) + (cross >> _HALF)
    last = (cross & _LOW) << _HALF | (last & _LOW)
    if shift == 0:
        return np.int64(last)
    cut = last & ((np.uint64(1) << shift) - np.uint64(1))
    return np.int64(first << (np.uint64(64) - shift) | last >> shift | np.uint64(cut != 0))
