"""Expansion by divergence from randomness: Bo1 and KL.

G. Amati, Probability models for information retrieval based on divergence from randomness (thesis, Glasgow 2003),
chapter 8. A word is worth the more the less likely its count in the feedback documents is by chance alone:

    Bo1    w_t = F_t log₂((1 + P_t) / P_t) + log₂(1 + P_t)     P_t = cf_t / N_docs: Bose-Einstein statistics
    KL     w_t = F_t/L log₂((F_t/L) / p_t)                     p_t = cf_t / |C|

    F_t    count of the word in the feedback documents together
    L      their length together

    a_t = f^Q_t / max f^Q + β w_t / max w                      over the fb_terms words of largest w
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import choice, count, parameter
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, uniform
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, DPH, Weighting


@dataclass(frozen=True, kw_only=True)
class DivergenceExpansion(Ranker):
    """Base of the two: they differ in what a word is worth."""

    uses_feedback: ClassVar[bool] = True

    fb_docs: int = count(10, "feedback documents", symbol="N")
    fb_terms: int = count(40, "words taken from the feedback documents", grid=(10, 20, 40, 80))
    beta: float = parameter(
        1.0, "weight of the words taken", symbol="β", low=0.0, high=100.0, grid=(0.2, 0.4, 0.6, 1.0, 1.5)
    )
    scoring: str = choice("bm25", "both rankings", ("bm25", "dph"))
    k1: float = k1_parameter()
    b: float = b_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), self.weighting)

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        weights = feedback.emphasised(uniform(len(feedback)))
        rows = feedback.rows
        per_document = len(rows) * weights  # 1 each, where nothing is emphasised
        F = TermModel.of(rows.terms, rows.counts * np.repeat(per_document, np.diff(rows.ptr)))
        worth = self.worth(F, float(per_document @ rows.lengths), statistics)
        taken = TermModel(F.terms, worth).positive().strongest(self.fb_terms)
        typed = query.as_counts().scaled(1.0 / float(query.counts.max()))
        if len(taken):
            typed = typed.plus(taken.scaled(self.beta / float(taken.weights.max())))
        return Expansion(Plan(typed, self.weighting), weights)

    def worth(self, F: TermModel, L: float, statistics: Statistics) -> np.ndarray:
        """w of the words of the feedback documents, from their counts there."""
        raise NotImplementedError

    @property
    def weighting(self) -> Weighting:
        return DPH() if self.scoring == "dph" else BM25(self.k1, self.b)


@register
@dataclass(frozen=True, kw_only=True)
class Bo1(DivergenceExpansion):
    """By Bose-Einstein statistics."""

    name: ClassVar[str] = "bo1"
    description: ClassVar[str] = "Bo1: words whose counts in feedback documents diverge from chance"

    def worth(self, F: TermModel, L: float, statistics: Statistics) -> np.ndarray:
        P = statistics.cf[F.terms] / statistics.n_docs
        return F.weights * np.log2((1.0 + P) / P) + np.log2(1.0 + P)


@register
@dataclass(frozen=True, kw_only=True)
class KL(DivergenceExpansion):
    """By the Kullback-Leibler divergence of the feedback documents from the collection, word by word."""

    name: ClassVar[str] = "kl"
    description: ClassVar[str] = "KL: words by the divergence of feedback documents from the collection"

    def worth(self, F: TermModel, L: float, statistics: Statistics) -> np.ndarray:
        share = F.weights / L if L > 0 else F.weights
        return share * np.log2(share / statistics.p[F.terms])
