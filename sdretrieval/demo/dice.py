"""Random choices that come out the same on every machine and with every version of Python and numpy.

Only the raw 64-bit output of PCG64 is used, which numpy guarantees; the distributions that numpy builds on it
may change between versions. From there on, the demo uses nothing but + - * / and square roots on doubles,
which IEEE 754 defines to the last bit (logarithms and powers may differ between mathematical libraries).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def _uniforms(seed: int) -> Iterator[float]:
    bits = np.random.PCG64(seed)
    while True:
        block = bits.random_raw(1 << 15) >> np.uint64(11)
        yield from (block * 2.0**-53).tolist()


class Dice:
    """A seeded stream of choices."""

    def __init__(self, seed: int) -> None:
        self.uniform = _uniforms(seed).__next__  # in [0, 1)

    def below(self, n: int) -> int:
        """An integer in 0 … n-1, each as likely."""
        return int(self.uniform() * n)

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.uniform()

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.uniform() * len(items))]

    def skewed(self, items: Sequence[T]) -> T:
        """Zipf-like: the item of rank k is drawn with probability about proportional to 1 / sqrt(k)."""
        u = self.uniform()
        return items[int(u * u * len(items))]

    def some(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different items in random order (all of them where there are fewer)."""
        pool = list(items)
        count = min(count, len(pool))
        for i in range(count):
            j = i + int(self.uniform() * (len(pool) - i))
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    def spread(self, factors: int) -> float:
        """A factor with mean one: a product of independent factors, and so about log-normal."""
        product = 1.0
        for _ in range(factors):
            product *= 0.6 + 0.8 * self.uniform()
        return product
