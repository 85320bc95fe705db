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
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import choice, count, parameter, share
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking import loops
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, Samples, uniform
from sdretrieval.ranking.models import anserini, anserini_axiomatic
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.query_likelihood import mu_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel, strongest
from sdretrieval.ranking.weighting import BM25, Dirichlet, Weighting

NEGLIGIBLE = 1e-8  # weights not above it are no weights, as in Anserini


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
            return Plan(query.as_counts(), anserini.lucene_weighting(self.scoring, self))
        return Plan(query.as_counts(), self.weighting, with_constant=True)

    def contrast(self, docs: np.ndarray, snapshot: Snapshot, allowed: np.ndarray | None) -> np.ndarray | None:
        return anserini_axiomatic.drawn(self, docs, snapshot, allowed) if self.mode == "anserini" else None

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        if self.mode == "anserini":
            return anserini_axiomatic.expand(self, query, feedback, statistics)
        weights = feedback.emphasised(uniform(len(feedback)))
        typed = self.query_vector(query, statistics)
        [total], places = self._associated(typed, Samples(feedback, [len(feedback)], weights[np.newaxis]), statistics)
        terms = feedback.rows.vocabulary.terms
        own = TermModel(terms[places], total[places])
        total[places] = 0.0
        kept = strongest(terms, total, self.fb_terms)
        found = typed.plus(own).plus(TermModel(terms[kept], total[kept]))
        return Expansion(Plan(found, self.weighting, with_constant=True), weights)

    def log_chances(self, query: Query, feedback: Feedback, statistics: Statistics) -> np.ndarray:
        """All documents weigh alike."""
        return np.zeros(len(feedback))

    def learnt(self, query: Query, samples: Samples, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
        """Words of the documents, and what is added to the query by each of the samples."""
        totals, places = self._associated(self.query_vector(query, statistics), samples, statistics)
        totals[:, places] = 0.0
        return samples.feedback.rows.vocabulary.terms, totals

    def _associated(self, typed: TermModel, samples: Samples, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
        """For each sample Σ_q f^Q_q idf_q^γ s(q, t) of each word, without s(q, q); and the query's places."""
        rows = samples.feedback.rows
        terms, place = rows.vocabulary
        places, known = rows.vocabulary.find(typed.terms)
        query = places[known], self.beta * typed.weights[known]
        totals, df = np.zeros((len(samples.depths), len(terms))), statistics.df[terms]
        for R, weights, total in zip(samples.depths, samples.weights, totals, strict=True):
            outside = statistics.n_docs - R
            others = (self.pool - 1.0) * R if outside > 0 else 0.0
            loops.associations(rows.ptr[: R + 1], place, R * weights, df, outside, others, *query, total)
        totals[totals <= NEGLIGIBLE] = 0.0
        return totals, places[known]

    def query_vector(self, query: Query, statistics: Statistics) -> TermModel:
        """f^Q_q idf_q^γ"""
        idf = np.log((statistics.n_docs + 1.0) / np.minimum(statistics.df[query.terms], statistics.n_docs))
        return TermModel(query.terms, query.counts * idf**self.idf_power)

    @property
    def weighting(self) -> Weighting:
        return BM25(self.k1, self.b) if self.scoring == "bm25" else Dirichlet(self.mu)
