"""Many strings in two memory-mapped arrays: their UTF-8 bytes in a row, and where each one ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np


class PackedStrings(Sequence[str]):
    """An immutable list of strings that costs nothing to open and decodes only what is asked for.

    ``order`` lists the positions in byte order, for look-ups by bisection, or makes this list when it is first asked
    for; None when the strings lie sorted.
    """

    def __init__(
        self, data: np.ndarray, ptr: np.ndarray, order: np.ndarray | Callable[[], np.ndarray] | None = None
    ) -> None:
        self.data, self.ptr, self._given = data, ptr, order
        self._positions: dict[str, int] | None = None

    @classmethod
    def pack(cls, strings: Iterable[str], *, is_sorted: bool = False) -> PackedStrings:
        parts: list[str] | list[bytes] = strings if isinstance(strings, list) else list(strings)
        together = "".join(parts)  # type: ignore[arg-type]
        if together.isascii():  # then characters are bytes
            text = together.encode()
        else:
            parts = [s.encode() for s in parts]  # type: ignore[union-attr]
            text = b"".join(parts)
        ptr = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=ptr[1:])
        data = np.frombuffer(text, dtype=np.uint8)
        order = None if is_sorted else byte_order(data, ptr)
        return cls(data, ptr, order)

    @cached_property
    def given_order(self) -> np.ndarray | None:
        return self._given() if callable(self._given) else self._given

    @property
    def order(self) -> np.ndarray:
        """Positions in the order of the strings' bytes."""
        return np.arange(len(self)) if self.given_order is None else self.given_order

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __reduce__(self) -> tuple:
        # Lengths are small numbers, positions are not: half the bytes where docids travel between processes.
        lengths = np.diff(self.ptr)
        small = lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))))
        start, stop = int(self.ptr[0]), int(self.ptr[-1])
        return _from_lengths, (np.array(self.data[start:stop]), small, self.given_order)

    def encoded(self, i: int) -> bytes:
        return self.data[self.ptr[i] : self.ptr[i + 1]].tobytes()

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> list[str]: ...
    def __getitem__(self, i):
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        return self.encoded(i + len(self) if i < 0 else i).decode()

    def __iter__(self) -> Iterator[str]:
        # One read of the bytes instead of one per string.
        data, ends = self.data.tobytes(), self.ptr.tolist()
        return (data[a:b].decode() for a, b in pairwise(ends))

    def take(self, positions: Iterable[int]) -> list[str]:
        """The strings at these positions."""
        positions = np.asarray(positions, dtype=np.int64)
        starts, stops = self.ptr[positions], self.ptr[positions + 1]
        ends = np.cumsum(stops - starts)
        if len(ends) == 0:
            return []
        # All their bytes in one piece, decoded once: what is ASCII can then be cut as text.
        places = np.repeat(starts - np.concatenate([[0], ends[:-1]]), stops - starts) + np.arange(ends[-1])
        together = self.data[places].tobytes()
        cuts = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
        if not together.isascii():
            return [together[a:b].decode() for a, b in cuts]
        text = together.decode("ascii")
        return [text[a:b] for a, b in cuts]

    def find(self, string: str) -> int:
        """The position of a string, or -1: by bisection, so that one look-up opens no large table."""
        if self._positions is not None:
            return self._positions.get(string, -1)
        wanted = string.encode("utf-8", "surrogatepass")
        data, ptr, order = self._views
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            i = middle if order is None else order[middle]
            if data[ptr[i] : ptr[i + 1]].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        if low == len(self):
            return -1
        i = low if order is None else order[low]
        return i if data[ptr[i] : ptr[i + 1]] == wanted else -1

    @cached_property
    def _views(self) -> tuple[memoryview, memoryview, memoryview | None]:
        """The arrays as Python reads single numbers of them soonest."""
        order = self.given_order
        return self.data.data, self.ptr.data, None if order is None else order.data

    def find_many(self, strings: Sequence[str]) -> np.ndarray:
        """Positions of many strings, -1 where absent; builds a table once when that is the cheaper way."""
        if self._positions is None and len(strings) * 32 > len(self):
            self._positions = {}
            for i, string in enumerate(self):
                self._positions.setdefault(string, i)  # the first of equal ones, as bisection finds it
        return np.fromiter((self.find(s) for s in strings), dtype=np.int64, count=len(strings))


def byte_order(data: np.ndarray, ptr: np.ndarray) -> np.ndarray:
    """Positions of packed strings in the order of their bytes."""
    raw, ends = data.tobytes(), ptr.tolist()
    encoded = [raw[a:b] for a, b in pairwise(ends)]
    return np.array(sorted(range(len(encoded)), key=encoded.__getitem__), dtype=np.int32)


def _from_lengths(data: np.ndarray, lengths: np.ndarray, order: np.ndarray | None) -> PackedStrings:
    ptr = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=ptr[1:])
    return PackedStrings(data, ptr, order)
