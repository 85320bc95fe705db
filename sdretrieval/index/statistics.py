"""Collection statistics apart from the collection: what smoothing and idf need to know.

A Snapshot gives the statistics of everything in it; an as-of view, those of the past; a set of shards, their sum.
Models see only this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sdretrieval.index.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Statistics:
    """N, df, cf and the number of tokens. Compared by identity, so that it can key a cache."""

    n_docs: int
    n_tokens: int
    df: np.ndarray
    cf: np.ndarray
    vocabulary: Sequence[str] | None = None

    @classmethod
    def of(cls, snapshot: Snapshot) -> Statistics:
        return cls(snapshot.n_docs, snapshot.n_tokens, snapshot.df, np.asarray(snapshot.cf), snapshot.vocabulary)

    @property
    def average_length(self) -> float:
        return self.n_tokens / self.n_docs if self.n_docs else 0.0

    @cached_property
    def p(self) -> np.ndarray:
        """General English θ^GE: p(w) over the whole collection."""
        return self.cf / max(self.n_tokens, 1)

    @cached_property
    def log_p(self) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.p)

    @cached_property
    def entropy_sum(self) -> float:
        """Σ_w p_w log p_w."""
        used = self.cf > 0
        return float(np.sum(self.p[used] * self.log_p[used]))
