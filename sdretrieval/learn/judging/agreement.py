"""How far two assessors agree: Cohen's κ over the documents that both judged, and where they do not agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

Key = tuple[str, str]  # topic and document


@dataclass(frozen=True)
class Agreement:
    """Of two assessors: on ``both`` documents, ``share`` judged alike, κ with its standard error.

    ``kappa`` is None where chance alone makes all judgments alike. ``disagreements`` are (topic, docid, grade of the
    first, grade of the second)."""

    first: str
    second: str
    both: int
    share: float
    kappa: float | None
    error: float
    disagreements: tuple[tuple[str, str, int, int], ...]


def agreement(first: str, second: str, one: Mapping[Key, int], other: Mapping[Key, int], rel: int = 1) -> Agreement:
    """κ of "relevant or not" (a grade of ``rel`` or more) between two assessors' judgments.

    >>> a = {("1", d): grade for d, grade in zip("abcd", (1, 1, 0, 0))}
    >>> agreement("ann", "bob", a, {**a, ("1", "b"): 0}).kappa
    0.5
    """
    both = sorted(one.keys() & other.keys())
    differ = tuple((*key, one[key], other[key]) for key in both if (one[key] >= rel) != (other[key] >= rel))
    n = len(both)
    if not n:
        return Agreement(first, second, 0, 0.0, None, 0.0, ())
    pairs = Counter((one[key] >= rel, other[key] >= rel) for key in both)
    alike = (pairs[True, True] + pairs[False, False]) / n
    yes = [(pairs[True, True] + pairs[pair]) / n for pair in ((True, False), (False, True))]
    chance = yes[0] * yes[1] + (1 - yes[0]) * (1 - yes[1])
    if chance == 1:
        return Agreement(first, second, n, alike, None, 0.0, differ)
    error = sqrt(alike * (1 - alike) / n) / (1 - chance)
    return Agreement(first, second, n, alike, (alike - chance) / (1 - chance), error, differ)
