"""Feedback: the documents a model learns from, with everything it may know about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking import feedback_loops, loops
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import Dirichlet, JelinekMercer, Weighting


@dataclass(frozen=True, eq=False)
class Rows:
    """The term counts of a few documents, one sparse row each.

    What is summed over words is summed over those of the rows alone, by their places in the ``vocabulary``. Weights
    r_i are one number for each row, or several such lists at once, which give as many lists of sums.
    """

    ptr: np.ndarray
    terms: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, snapshot: Snapshot, docs: np.ndarray) -> Rows:
        ptr = np.zeros(len(docs) + 1, dtype=np.int64)
        np.cumsum(snapshot.doc_ptr[docs + 1] - snapshot.doc_ptr[docs], out=ptr[1:])
        terms = np.empty(ptr[-1], dtype=np.int32)
        counts = np.empty(ptr[-1], dtype=np.int32)
        loops.copy_rows(snapshot.rows, docs, ptr, terms, counts)
        return cls(ptr, terms, counts, snapshot.lengths_of(docs).astype(np.float64))

    def __len__(self) -> int:
        return len(self.lengths)

    def with_query(self, query: Query) -> Rows:
        """One row more: the query as a document."""
        return Rows(
            np.append(self.ptr, self.ptr[-1] + len(query.terms)),
            np.concatenate([self.terms, query.terms.astype(np.int32)]),
            np.concatenate([self.counts, query.counts.astype(np.int32)]),
            np.append(self.lengths, query.length),
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        keys = np.sort(self.terms.astype(np.int64) << 32 | np.arange(len(self.terms)))
        terms, place = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
        n = feedback_loops.find_places(keys, terms, place)
        return Vocabulary(terms[:n], place)

    def mean_counts(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i r_i f_i / |D_i|: an arithmetic mean of the documents' own distributions, as (terms, values)."""
        factors = 1.0 / np.maximum(self.lengths, 1.0)
        return self._sum(weights, factors, np.zeros(1), False)

    def mean_log_ratios(
        self, weights: np.ndarray, smoothing: JelinekMercer | Dirichlet, statistics: Statistics
    ) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i r_i log(θ^i_w / ((1-λ_i) p_w)): the exponent of (3.33), nonzero only for words of the documents."""
        return self._sum(weights, self._factors(smoothing, statistics), statistics.p[self.vocabulary.terms], True)

    def scores(
        self, dense_weights: np.ndarray, smoothing: JelinekMercer | Dirichlet, statistics: Statistics
    ) -> np.ndarray:
        """Σ_{w in D} a_w φ for each row, with a_w over the whole vocabulary."""
        return self._scores(dense_weights[self.vocabulary.terms], smoothing, statistics)

    def query_scores(self, query: Query, smoothing: JelinekMercer | Dirichlet, statistics: Statistics) -> np.ndarray:
        """The same with a = f^Q."""
        places, known = self.vocabulary.find(query.terms)
        weights = np.zeros(len(self.vocabulary.terms))
        weights[places[known]] = query.counts[known]
        return self._scores(weights, smoothing, statistics)

    def _scores(self, weights: np.ndarray, smoothing: JelinekMercer | Dirichlet, statistics: Statistics) -> np.ndarray:
        out, (terms, place) = np.zeros(len(self)), self.vocabulary
        factors = self._factors(smoothing, statistics)
        loops.score_rows(self.ptr, place, self.counts, weights, factors, statistics.p[terms], out)
        return out

    def phi(self, terms: np.ndarray, weighting: Weighting, statistics: Statistics) -> np.ndarray:
        """φ of a few words (columns) in each row: what a word of weight 1 adds to the document's score."""
        places, known = self.vocabulary.find(terms)
        word = np.full(len(self.vocabulary.terms), -1)
        word[places[known]] = np.flatnonzero(known)
        of_posting = word[self.vocabulary.place]
        met = np.flatnonzero(of_posting >= 0)
        word, row = of_posting[met], np.searchsorted(self.ptr, met, side="right") - 1
        A = weighting.term_factors(statistics, terms)
        B = weighting.doc_factors(statistics, self.lengths)
        phi = np.zeros((len(self), len(terms)))
        phi[row, word] = weighting.phi(self.counts[met], A[word], B[row])
        return phi

    def _factors(self, smoothing: JelinekMercer | Dirichlet, statistics: Statistics) -> np.ndarray:
        """What f_iw / p_w is multiplied by: A_w B_i without 1/p_w."""
        return smoothing.odds * smoothing.doc_factors(statistics, self.lengths)

    def sum_cut(self, weights: np.ndarray, most: int, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i r_i f_i / |f_i| of the rows cut to their ``most`` most frequent usable words, in single precision."""
        terms, place = self.vocabulary
        total, order = np.zeros(len(terms), dtype=np.float32), np.empty(len(terms), dtype=np.int64)
        given = usable[terms], most, weights.astype(np.float32)
        loops.sum_cut_rows(self.ptr, place, self.counts, *given, total, order)
        return terms[total > 0], total[total > 0]

    def _sum(self, weights, factors, p, use_log: bool) -> tuple[np.ndarray, np.ndarray]:
        """Words that rows of some weight have, and what they add up to."""
        lists = np.ascontiguousarray(np.atleast_2d(weights), dtype=np.float64)
        terms, place = self.vocabulary
        totals = np.zeros((len(lists), len(terms)))
        loops.sum_rows(self.ptr, place, self.counts, lists, factors, p, use_log, totals)
        met = (totals > 0).any(axis=0)
        totals = totals[:, met]
        return terms[met], totals if np.ndim(weights) > 1 else totals[0]


class Vocabulary(NamedTuple):
    """The words that some rows have, ascending, and the place of each posting's word among them."""

    terms: np.ndarray
    place: np.ndarray

    def find(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where some terms are, and which of them there are."""
        if not len(self.terms):
            return np.zeros(len(terms), dtype=np.int64), np.zeros(len(terms), dtype=bool)
        places = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return places, self.terms[places] == terms


@dataclass(frozen=True, eq=False)
class Feedback:
    """Documents in rank order with their first-stage scores; ``judged``: there are some known to be relevant.

    Those come first, and the last ``unjudged`` documents are of the first pass. ``nonrelevant`` holds documents judged
    not relevant; only the smoothed-Dirichlet model learns from them.
    """

    docs: np.ndarray
    scores: np.ndarray
    rows: Rows
    judged: bool = False
    nonrelevant: Rows | None = None
    contrast: Rows | None = None  # documents that are no feedback, where the model asked for some
    emphasis: np.ndarray | None = None  # factors on the weights that a model gives its documents, as by their time
    unjudged: int = 0  # of the first pass; all of them where nothing is judged

    def __len__(self) -> int:
        return len(self.docs)

    def samples(self, depths: Sequence[int], log_chances: np.ndarray) -> Samples:
        """The first documents, at several depths, weighed by their chances of relevance and the emphasis."""
        weights = np.zeros((len(depths), len(self)))
        for row, n in zip(weights, depths, strict=True):
            row[:n] = self.emphasised(softmax(log_chances[:n]))
        return Samples(self, depths, weights)

    def emphasised(self, weights: np.ndarray) -> np.ndarray:
        """A model's weights of the first documents times the emphasis, summing to one again."""
        if self.emphasis is None:
            return weights
        changed = weights * self.emphasis[: len(weights)]
        total = changed.sum()
        return changed / total if total > 0 else weights

    def labelled(self, chances: np.ndarray, unjudged_weight: float, query_weight: float) -> tuple[np.ndarray, float]:
        """Weights of the documents, summing to one, and the share that the query, a labelled document too, has beside.

        A document that is judged relevant weighs 1: its P(R|θ) is plugged in as unity, below (5.14). Of the others,
        which have P(R|θ^i) = ``chances`` or something proportional to it, the best one weighs ``unjudged_weight``, as
        in (6.19) with W_0 = 1/unjudged_weight; where nothing is judged, it weighs 1.
        """
        known = len(self) - self.unjudged if self.judged else 0
        weights = np.ones(len(self))
        best = chances[known:].max(initial=0.0)
        if best > 0:
            weights[known:] = chances[known:] * ((unjudged_weight if known else 1.0) / best)
        documents = weights.sum()
        query_share = query_weight / (documents + query_weight)
        return self.emphasised(weights / documents), query_share


class Samples(NamedTuple):
    """The first documents at several depths: for each ``weights`` over all of the feedback, summing to one."""

    feedback: Feedback
    depths: Sequence[int]
    weights: np.ndarray


def softmax(exponents: np.ndarray) -> np.ndarray:
    """exp(x_i) / Σ_k exp(x_k), without overflow."""
    if len(exponents) == 0:
        return exponents
    e = np.exp(exponents - exponents.max())
    return e / e.sum()


def uniform(n: int) -> np.ndarray:
    return np.full(n, 1.0 / n) if n else np.zeros(0)
