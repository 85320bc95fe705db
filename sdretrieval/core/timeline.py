"""Counts laid out along time: documents of one instant (or one bin) merged, instants in order.

Merging documents of the same time is exact for everything built on weighted counts: the weight depends on the time
alone. A ``resolution`` goes further and moves each time to the middle of its bin, which turns 20,000 time stamps into
a few hundred days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

HOUR, DAY, WEEK = 3_600_000, 86_400_000, 7 * 86_400_000  # in milliseconds

_UNITS = {"ms": 1, "s": 1000, "min": 60_000, "h": HOUR, "d": DAY, "w": WEEK, "y": 365.25 * DAY}
_NAMED = {"hour": HOUR, "day": DAY, "week": WEEK, "month": 365.25 * DAY / 12, "year": 365.25 * DAY}


def parse_duration(text: str) -> float:
    """Milliseconds from a number of days, or one with a unit (ms, s, min, h, d, w, y), a unit's name, or ``inf``.

    >>> parse_duration("1.5") == parse_duration("36h") == 1.5 * DAY
    True
    >>> parse_duration("week") == 7 * DAY
    True
    """
    cleaned = text.strip().lower()
    if cleaned in _NAMED:
        return float(_NAMED[cleaned])
    if cleaned in ("inf", "infinity", "global"):
        return inf
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(?:e([+-]?\d+))?\s*([a-z]*)", cleaned)
    if match is None or (match[3] or "d") not in _UNITS:
        raise ParameterError(
            f"not a length of time: {text!r}",
            remedy="Give days, as in 7 or 0.5, or a number with a unit: 12h, 7d, 2w, 1y.",
        )
    return float(match[1]) * 10.0 ** int(match[2] or 0) * _UNITS[match[3] or "d"]


def format_duration(ms: float) -> str:
    """A length of time for people: the largest unit that keeps the number at 1 or more.

    >>> format_duration(36 * HOUR), format_duration(12 * HOUR), format_duration(inf)
    ('1.5 days', '12 hours', 'infinite (global)')
    """
    if ms == inf:
        return "infinite (global)"
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (60_000, "minute"), (1000, "second")):
        if ms >= unit:
            number = f"{ms / unit:.3g}"
            return f"{number} {name}" + ("" if number == "1" else "s")
    return f"{ms:.3g} ms"


def known_times(times: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Times as floats, and which of them are known: neither ``UNDATED`` nor NaN."""
    given = np.asarray(times)
    if given.ndim != 1:
        raise ParameterError(f"times must be one-dimensional, got shape {given.shape}")
    dated = given != UNDATED if given.dtype.kind == "i" else np.isfinite(given)
    return given.astype(np.float64), dated


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened when: one row of counts for each distinct time, in increasing order.

    times      the distinct times, or the middles of the non-empty bins
    counts     distinct times x terms; ``lengths`` are its row sums |x^(τ)|, in words
    documents  how many documents each row merges, N_τ
    row_of     the row of each document given, -1 for an undated one (it is left out)
    """

    times: NDArray[np.float64]
    counts: csr_matrix
    lengths: NDArray[np.float64]
    documents: NDArray[np.int64]
    row_of: NDArray[np.int64]
    resolution: float | None

    @property
    def undated(self) -> int:
        return int(np.count_nonzero(self.row_of < 0))

    def snap(self, t: ArrayLike) -> NDArray[np.float64]:
        """Where a time lies on this line: itself, or the middle of its bin.

        An online kernel then leaves out the whole bin of t, so that nothing later than t can leak in.
        """
        t = np.asarray(t, dtype=np.float64)
        return t if self.resolution is None else middle_of_bin(t, self.resolution)


def middle_of_bin(t: NDArray[np.float64], resolution: float) -> NDArray[np.float64]:
    """Bins are aligned with 1970-01-01 UTC, so that days are days."""
    return (np.floor(t / resolution) + 0.5) * resolution


def timeline(counts: csr_matrix, times: ArrayLike, *, resolution: float | None = None) -> Timeline:
    """Lay documents x terms counts out along time. Unsorted times are fine; undated documents are left out."""
    stamps, dated = known_times(times)
    if counts.shape[0] != len(stamps):
        raise ParameterError(f"{counts.shape[0]} documents but {len(stamps)} times")
    if resolution is not None:
        if not resolution > 0:
            raise ParameterError(f"a resolution must be positive, got {resolution}")
        stamps = middle_of_bin(stamps, resolution)
    distinct, row = np.unique(stamps[dated], return_inverse=True)
    row_of = np.full(len(stamps), -1, dtype=np.int64)
    row_of[dated] = row
    merged = merge_rows(counts, row_of, len(distinct))
    return Timeline(
        times=distinct,
        counts=merged,
        lengths=np.asarray(merged.sum(axis=1), dtype=np.float64).ravel(),
        documents=np.bincount(row, minlength=len(distinct)),
        row_of=row_of,
        resolution=None if resolution is None else float(resolution),
    )


def merge_rows(counts: csr_matrix, row_of: NDArray[np.int64], n_rows: int) -> csr_matrix:
    """Sum the rows that share a number in ``row_of``; rows numbered -1 are dropped."""
    from scipy.sparse import csr_matrix  # takes a fifth of a second; most who know times count nothing

    kept = np.flatnonzero(row_of >= 0)
    member = csr_matrix((np.ones(len(kept)), (row_of[kept], kept)), shape=(n_rows, counts.shape[0]), dtype=np.float64)
    merged = csr_matrix(member @ counts)
    merged.sort_indices()
    return merged


def coarse_resolution(times: ArrayLike, most: int = 512) -> float | None:
    """A bin width that leaves at most ``most`` bins, or None where the distinct times are few enough as they are."""
    stamps, dated = known_times(times)
    distinct = np.unique(stamps[dated])
    if len(distinct) <= most:
        return None
    return float(distinct[-1] - distinct[0]) / (most - 1)
