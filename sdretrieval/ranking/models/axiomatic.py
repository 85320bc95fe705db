"""Axiomatic feedback: words by how much their presence tells of the presence of a query word.

H. Fang and C. Zhai, Semantic term matching in axiomatic approaches to information retrieval (SIGIR 2006); P. Yang and
J. Lin, Reproducing and generalizing semantic term matching in axiomatic information retrieval (ECIR 2019).

A pool of documents holds the R feedback documents and, for contrast, (N-1) R others drawn at random. In it

    I(q, t) = Σ P(X_q, X_t) log P(X_q, X_t) / (P(X_q) P(X_t))     X_q, X_t: whether a document has the word, 4 cases
    s(q, t) = β I(q, t) / I(q, q),   s(q, q) = 1
    a_t     = Σ_q f^Q_q idf_q^γ s(q, t),   idf_q = log((N_docs + 1) / df_q)

and documents are ranked by the query's words and the ``fb_terms`` others of largest a_t. The paper draws the other
documents by dice, and results hang on the seed. Here no dice are thrown: counts are those expected of a random draw,

    n_t   = r_t + (N-1) R u_t            u_t = (df_t - r'_t) / (N_docs - R'), the share of documents outside with t
    n_qt  = r_qt + (N-1) R u_q u_t       where nothing is known to bring two words together

with r' the R' feedback documents counted plainly, and r these weighted, R in all. A word that stands apart from a
query word (n_qt n < n_q n_t) tells of its absence: s = 0.

``mode=anserini`` throws Anserini's dice instead (see anserini_axiomatic.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import rel_entr

from sdretrieval.core.parameters import choice, count, parameter, share
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, uniform
from sdretrieval.ranking.models import anserini_axiomatic
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.query_likelihood import mu_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, Dirichlet, Weighting

NEGLIGIBLE = 1e-8  # weights not above it are no weights, as in Anserini
ROUNDING = 1e-12


def mutual_information(n_q: float, n_t: np.ndarray, n_qt: np.ndarray, n: float) -> np.ndarray:
    """I(q, t) where n_q, n_t and n_qt of ``n`` documents have the one word, the other, and both."""
    total = np.zeros(len(n_t))
    for n_x, with_t in ((n_q, n_qt), (n - n_q, n_t - n_qt)):
        for n_xy, n_y in ((with_t, n_t), (n_x - with_t, n - n_t)):
            # What rounding leaves of a case that does not occur is no case.
            total += rel_entr(np.where(n_xy > ROUNDING * n, n_xy, 0.0) / n, n_x * n_y / n**2)
    return total


@dataclass(frozen=True, eq=False)
class Pool:
    """The feedback documents and the others: how many of ``n`` have each of the feedback documents' words."""

    feedback: Feedback
    weights: np.ndarray  # of the feedback documents, summing to one
    terms: np.ndarray
    place: np.ndarray  # of each entry of the rows among the terms
    u: np.ndarray
    others: float  # (N-1) R

    @classmethod
    def around(cls, feedback: Feedback, weights: np.ndarray, size: float, statistics: Statistics) -> Pool:
        terms, place = np.unique(feedback.rows.terms, return_inverse=True)
        outside = statistics.n_docs - len(feedback)
        # Documents judged relevant may be from after an as-of view: then the view's df does not count them.
        df_outside = np.maximum(statistics.df[terms] - np.bincount(place, minlength=len(terms)), 0)
        u = np.minimum(df_outside / outside, 1.0) if outside > 0 else np.zeros(len(terms))
        others = (size - 1.0) * len(feedback) if outside > 0 else 0.0
        return cls(feedback, weights, terms, place, u, others)

    @property
    def n(self) -> float:
        return len(self.feedback) + self.others

    @cached_property
    def row(self) -> np.ndarray:
        """The feedback document of each entry of the rows."""
        return np.repeat(np.arange(len(self.feedback)), np.diff(self.feedback.rows.ptr))

    @cached_property
    def n_t(self) -> np.ndarray:
        return self._having(np.ones(len(self.feedback)), 1.0)

    def n_qt(self, place: int) -> np.ndarray:
        """For the word q at a place."""
        has = np.zeros(len(self.feedback))
        has[self.row[self.place == place]] = 1.0
        return self._having(has, float(self.u[place]))

    def _having(self, chosen: np.ndarray, share: float) -> np.ndarray:
        """How many of the chosen feedback documents, and of a share of the others, have each word."""
        weights = len(self.feedback) * self.weights * chosen
        return np.bincount(self.place, weights[self.row], len(self.terms)) + self.others * share * self.u

    def association(self, place: int) -> np.ndarray:
        """I(q, t) / I(q, q) for the word q at a place; 0 for words that stand apart from it, and for q itself."""
        n, n_t, n_q, n_qt = self.n, self.n_t, self.n_t[place], self.n_qt(place)
        itself = float(mutual_information(n_q, n_t[[place]], n_t[[place]], n)[0])
        if itself <= ROUNDING:  # every document of the pool has it: it goes with nothing in particular
            return np.zeros(len(n_t))
        found = np.where(n_qt * n > n_q * n_t, mutual_information(n_q, n_t, n_qt, n) / itself, 0.0)
        found[place] = 0.0
        return found


@register
@dataclass(frozen=True, kw_only=True)
class Axiomatic(Ranker):
    """The query, and the words that come and go with its words, each weighed by how much so."""

    name: ClassVar[str] = "axiomatic"
    description: ClassVar[str] = "axiomatic feedback: words by their mutual information with the query's; no dice"
    uses_feedback: ClassVar[bool] = True

    mode: str = choice("expected", "the equations, or Anserini's variant", ("expected", "anserini"))
    fb_docs: int = count(20, "feedback documents", symbol="R")
    pool: float = parameter(
        10.0,
        "documents for contrast: the pool's size by that of the feedback",
        symbol="N",
        low=1.0,
        high=1e6,
        open=True,
        grid=(5.0, 10.0, 30.0),
    )
    fb_terms: int = count(20, "words added to the query", symbol="M", grid=(10, 20, 40, 80))
    beta: float = parameter(
        0.6, "weight of words that are not the query's", symbol="β", low=0.0, high=100.0, grid=(0.2, 0.4, 0.6, 1.0)
    )
    idf_power: float = share(0.5, "how far rare words of the query weigh more", symbol="γ", grid=(0.0, 0.5, 1.0))
    scoring: str = choice("bm25", "both rankings", ("bm25", "ql"))
    k1: float = k1_parameter()
    b: float = b_parameter()
    mu: float = mu_parameter()
    seed: int = parameter(42, "of Anserini's dice", low=0, high=2**31 - 1)

    def first(self, query: Query, statistics: Statistics) -> Plan:
        if self.mode == "anserini":
            return Plan(query.as_counts(), anserini_axiomatic.lucene_weighting(self))
        return Plan(query.as_counts(), self.weighting, with_constant=True)

    def contrast(self, docs: np.ndarray, snapshot: Snapshot, allowed: np.ndarray | None) -> np.ndarray | None:
        return anserini_axiomatic.drawn(self, docs, snapshot, allowed) if self.mode == "anserini" else None

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        if self.mode == "anserini":
            return anserini_axiomatic.expand(self, query, feedback, statistics)
        weights = feedback.emphasised(uniform(len(feedback)))
        pool = Pool.around(feedback, weights, self.pool, statistics)
        typed = self.query_vector(query, statistics)
        total = np.zeros(len(pool.terms))
        for term, value in zip(typed.terms, typed.weights, strict=True):
            at = int(np.searchsorted(pool.terms, term))
            if at < len(pool.terms) and pool.terms[at] == term:
                total += value * self.beta * pool.association(at)
        found = TermModel(pool.terms, np.where(total > NEGLIGIBLE, total, 0.0)).positive()
        return Expansion(Plan(self._cut(typed, found), self.weighting, with_constant=True), weights)

    def _cut(self, typed: TermModel, found: TermModel) -> TermModel:
        """The query's words, and the strongest of the others."""
        own = np.isin(found.terms, typed.terms)
        others = TermModel(found.terms[~own], found.weights[~own]).strongest(self.fb_terms)
        return typed.plus(TermModel(found.terms[own], found.weights[own])).plus(others)

    def query_vector(self, query: Query, statistics: Statistics) -> TermModel:
        """f^Q_q idf_q^γ"""
        idf = np.log((statistics.n_docs + 1.0) / np.minimum(statistics.df[query.terms], statistics.n_docs))
        return TermModel(query.terms, query.counts * idf**self.idf_power)

    @property
    def weighting(self) -> Weighting:
        return BM25(self.k1, self.b) if self.scoring == "bm25" else Dirichlet(self.mu)
