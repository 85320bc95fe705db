"""Feedback: the documents a model learns from, with everything it may know about them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking import loops
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import Dirichlet, JelinekMercer, Weighting


@dataclass(frozen=True, eq=False)
class Rows:
    """The term counts of a few documents, one sparse row each."""

    ptr: np.ndarray
    terms: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, snapshot: Snapshot, docs: np.ndarray) -> Rows:
        starts, stops = snapshot.doc_ptr[docs], snapshot.doc_ptr[docs + 1]
        ptr = np.zeros(len(docs) + 1, dtype=np.int64)
        np.cumsum(stops - starts, out=ptr[1:])
        terms = np.empty(ptr[-1], dtype=np.int32)
        counts = np.empty(ptr[-1], dtype=np.int32)
        loops.copy_rows(snapshot.doc_terms, snapshot.doc_counts, starts, ptr, terms, counts)
        return cls(ptr, terms, counts, snapshot.doc_lengths[docs].astype(np.float64))

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

    def first(self, n: int) -> Rows:
        """The first ``n`` rows."""
        stop = self.ptr[n]
        return Rows(self.ptr[: n + 1], self.terms[:stop], self.counts[:stop], self.lengths[:n])

    def mean_counts(self, weights: np.ndarray, n_terms: int) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i r_i f_i / |D_i|: an arithmetic mean of the documents' own distributions, as (terms, values)."""
        factors = 1.0 / np.maximum(self.lengths, 1.0)
        return self._sum(weights, factors, np.zeros(1), False, n_terms)

    def mean_log_ratios(
        self, weights: np.ndarray, smoothing: JelinekMercer | Dirichlet, statistics: Statistics
    ) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i r_i log(θ^i_w / ((1-λ_i) p_w)): the exponent of (3.33), nonzero only for words of the documents."""
        return self._sum(weights, self._factors(smoothing, statistics), statistics.p, True, len(statistics.cf))

    def scores(
        self, dense_weights: np.ndarray, smoothing: JelinekMercer | Dirichlet, statistics: Statistics
    ) -> np.ndarray:
        """Σ_{w in D} a_w φ for each row, with a_w over the whole vocabulary."""
        out = np.zeros(len(self))
        factors = self._factors(smoothing, statistics)
        loops.score_rows(self.ptr, self.terms, self.counts, dense_weights, factors, statistics.p, out)
        return out

    def evidence(self, words: TermModel, weighting: Weighting, statistics: Statistics) -> np.ndarray:
        """Σ_w a_w φ for each row, of a model with few words and without background."""
        if not len(words):
            return np.zeros(len(self))
        place = np.minimum(np.searchsorted(words.terms, self.terms), len(words) - 1)
        met = np.flatnonzero(words.terms[place] == self.terms)
        place, row = place[met], np.searchsorted(self.ptr, met, side="right") - 1
        A = weighting.term_factors(statistics, words.terms)
        B = weighting.doc_factors(statistics, self.lengths)
        phi = weighting.phi(self.counts[met], A[place], B[row])
        return np.bincount(row, weights=words.weights[place] * phi, minlength=len(self))

    def query_scores(self, query: Query, smoothing: JelinekMercer | Dirichlet, statistics: Statistics) -> np.ndarray:
        """The same with a = f^Q, which has few words: no vector over the vocabulary is made for it."""
        weights = _scratch(len(statistics.cf), np.float64)
        weights[query.terms] = query.counts
        try:
            return self.scores(weights, smoothing, statistics)
        finally:
            weights[query.terms] = 0.0

    def _factors(self, smoothing: JelinekMercer | Dirichlet, statistics: Statistics) -> np.ndarray:
        """What f_iw / p_w is multiplied by: A_w B_i without 1/p_w."""
        return smoothing.odds * smoothing.doc_factors(statistics, self.lengths)

    def sum_cut(self, weights: np.ndarray, most: int, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_i r_i f_i / |f_i| of the rows cut to their ``most`` most frequent usable words, in single precision."""
        return self._collect(
            lambda scratch, order: loops.sum_cut_rows(
                self.ptr, self.terms, self.counts, usable, most, weights.astype(np.float32), scratch, order
            ),
            len(usable),
            np.float32,
        )

    def _sum(self, weights, factors, p, use_log: bool, n_terms: int) -> tuple[np.ndarray, np.ndarray]:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        return self._collect(
            lambda scratch, order: loops.sum_rows(
                self.ptr, self.terms, self.counts, weights, factors, p, use_log, scratch, order
            ),
            n_terms,
        )

    def _collect(
        self, add: Callable[[np.ndarray, np.ndarray], int], n_terms: int, dtype: type = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """What a compiled loop adds up over the vocabulary: the words it met, ascending, and their sums."""
        scratch = _scratch(n_terms, dtype)
        order = np.empty(len(self.terms), dtype=np.int64)
        try:
            met = add(scratch, order)
            terms = np.sort(order[:met])
            values = scratch[terms]
            scratch[terms] = 0.0
        except BaseException:  # Ctrl-C in a notebook must not leave numbers behind for the next query
            _local.vectors = {}
            raise
        return terms, values


_local = threading.local()


def _scratch(size: int, dtype: type) -> np.ndarray:
    """A vector of zeros over the vocabulary, one per thread and type, given back as zeros."""
    if not hasattr(_local, "vectors"):
        _local.vectors = {}
    vector = _local.vectors.get(dtype)
    if vector is None or len(vector) < size:
        vector = _local.vectors[dtype] = np.zeros(size, dtype)
    return vector


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

    def first(self, n: int) -> Feedback:
        """The same with the first ``n`` documents alone."""
        if n >= len(self):
            return self
        emphasis = None if self.emphasis is None else self.emphasis[:n]
        return replace(self, docs=self.docs[:n], scores=self.scores[:n], rows=self.rows.first(n), emphasis=emphasis)

    def emphasised(self, weights: np.ndarray) -> np.ndarray:
        """A model's weights times the emphasis, summing to one again."""
        if self.emphasis is None:
            return weights
        changed = weights * self.emphasis
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


def softmax(exponents: np.ndarray) -> np.ndarray:
    """exp(x_i) / Σ_k exp(x_k), without overflow."""
    if len(exponents) == 0:
        return exponents
    e = np.exp(exponents - exponents.max())
    return e / e.sum()


def uniform(n: int) -> np.ndarray:
    return np.full(n, 1.0 / n) if n else np.zeros(0)
