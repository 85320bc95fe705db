"""A document as trackers see it: word numbers and counts, a docid, perhaps a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.errors import ParameterError


@dataclass(frozen=True, eq=False, slots=True)
class StreamDocument:
    """``words`` ascending, each once; ``time`` in ms since 1970 UTC, None where unknown."""

    docid: str
    words: NDArray[np.int64]
    counts: NDArray[np.float64]
    time: int | None
    length: float  # |D|, the sum of the counts

    @classmethod
    def make(cls, docid: str, words: ArrayLike, counts: ArrayLike, time: int | None = None) -> StreamDocument:
        """From word numbers in any order."""
        words, counts = np.asarray(words, np.int64), np.asarray(counts, np.float64)
        if len(words) != len(counts):
            raise ParameterError(f"document {docid!r}: {len(words)} words, but {len(counts)} counts")
        if len(words) > 1 and not (words[1:] > words[:-1]).all():
            order = np.argsort(words, kind="stable")
            words, counts = words[order], counts[order]
            if (words[1:] == words[:-1]).any():
                raise ParameterError(f"document {docid!r}: a word is listed twice")
        if len(counts) and not (counts > 0).all():
            raise ParameterError(f"document {docid!r}: counts must be positive, got {counts.min()}")
        return cls(str(docid), words, counts, time, float(counts.sum()))
