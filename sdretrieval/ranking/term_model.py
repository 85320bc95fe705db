"""A query as a model estimated it: weighted words, plus a multiple of general English.

Relevance models and smoothed-Dirichlet classes spread over the whole vocabulary, but outside the feedback documents
they are proportional to general English. So a dense vector over the vocabulary is kept as

    a_w = s_w + g · p_w          s sparse, g one number, p general English

and nothing is lost: the part g · p is one static score per document.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def strongest(terms: np.ndarray, sizes: np.ndarray, n: int) -> np.ndarray:
    """Ascending positions of the ``n`` largest sizes; ties go to the lower term."""
    if n >= len(terms):
        return np.arange(len(terms))
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    from sdretrieval.ranking import loops  # only here: whoever reads a model needs no compiler

    kept = np.empty(n, dtype=np.int64)
    loops.largest(sizes, kept)
    return kept


@dataclass(frozen=True)
class TermModel:
    """``terms`` ascending and unique, their ``weights`` s_w, and the ``background`` g."""

    terms: np.ndarray
    weights: np.ndarray
    background: float = 0.0

    @classmethod
    def of(cls, terms: np.ndarray, weights: np.ndarray, background: float = 0.0) -> TermModel:
        """From terms in any order; repeats are added up, zero weights dropped."""
        terms = np.asarray(terms, dtype=np.int64)
        weights = np.asarray(weights, dtype=np.float64)
        unique, where = np.unique(terms, return_inverse=True)
        if len(unique) != len(terms) or not np.array_equal(unique, terms):
            weights = np.bincount(where, weights=weights, minlength=len(unique))
        keep = weights != 0.0
        return cls(unique[keep], weights[keep], background)

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def mass(self) -> float:
        """Σ_w a_w: what the background's log share is multiplied by."""
        return float(self.weights.sum()) + self.background

    def scaled(self, factor: float) -> TermModel:
        return TermModel(self.terms, self.weights * factor, self.background * factor)

    def plus(self, other: TermModel) -> TermModel:
        """The sum; terms of zero weight are dropped."""
        from sdretrieval.ranking import loops  # only here: whoever reads a model needs no compiler

        terms = np.empty(len(self) + len(other), dtype=np.int64)
        weights = np.empty(len(terms))
        mine, theirs = (model.terms.astype(np.int64, copy=False) for model in (self, other))
        n = loops.merge(mine, self.weights, theirs, other.weights, terms, weights)
        return TermModel(terms[:n], weights[:n], self.background + other.background)

    def strongest(self, n: int) -> TermModel:
        """The ``n`` terms of largest weight (ties: the lower term number, i.e. alphabetical), no background."""
        if n >= len(self.terms):
            return TermModel(self.terms, self.weights)
        kept = strongest(self.terms, self.weights, n)
        return TermModel(self.terms[kept], self.weights[kept])

    def folded(self, p: np.ndarray) -> TermModel:
        """a_w on the model's own terms, general English included; the rest of the vocabulary is let go."""
        return TermModel(self.terms, self.weights + self.background * p[self.terms])

    def positive(self) -> TermModel:
        """Only the terms of positive weight, no background."""
        keep = self.weights > 0
        return TermModel(self.terms[keep], self.weights[keep])

    def normalised(self) -> TermModel:
        """Weights that sum to one; an empty model stays empty."""
        total = self.weights.sum()
        return TermModel(self.terms, self.weights / total) if total > 0 else self

    def mixed(self, other: TermModel, share: float) -> TermModel:
        """(1 - share) · self + share · other."""
        return self.scaled(1.0 - share).plus(other.scaled(share))

    def dense(self, p: np.ndarray) -> np.ndarray:
        """a_w over the whole vocabulary: for tests and small collections."""
        a = self.background * p
        a[self.terms] += self.weights
        return a
