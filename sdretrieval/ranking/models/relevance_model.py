"""Lavrenko's relevance model, thesis (5.1)-(5.9), and RM3: the same cut to its strongest words, mixed with the query.

θ^R = Σ_i W_i θ^i        (5.4)     W_i = P(Q|θ^i) / Σ_k P(Q|θ^k)   (5.8)
score(D) = Σ_w θ^R_w log θ^D_w     (5.9)

λ_Q   smoothing in the first ranking and in W
λ_M   smoothing of the feedback documents inside θ^R
λ_CE  smoothing of documents in the final ranking

Documents judged relevant weigh alike. Beside them, the query and unjudged documents may weigh too, as section 5.2 has
it for SD: see Feedback.labelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import choice, count, parameter, share, weight
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, Samples, softmax, uniform
from sdretrieval.ranking.models import anserini
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.query_likelihood import SMOOTHINGS, mu_parameter, smoother
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, Weighting


def relevance_model(feedback: Feedback, weights: np.ndarray, smoothing, statistics: Statistics) -> TermModel:
    """θ^R = Σ_i W_i (λ_i θ̂^i + (1-λ_i) θ^GE): the documents' words, and one multiple of general English."""
    terms, values, background = _means(feedback, weights, smoothing)
    return TermModel(terms, values, float(background))


def _means(feedback: Feedback, weights: np.ndarray, smoothing) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Words, their values and that multiple; of several lists of weights, for each."""
    shares = smoothing.document_shares(feedback.rows.lengths)
    return *feedback.rows.mean_counts(weights * shares), weights @ (1.0 - shares)


def query_weight_parameter():
    help = "weight of the query as one more feedback document; one judged relevant, or the best of others, has 1"
    return parameter(0.0, help, symbol="W_Q", low=0.0, high=1e6)


def unjudged_weight_parameter():
    help = "where documents are judged: weight of the best of the first pass, a judged one having 1; 0 leaves them out"
    return parameter(0.0, help, symbol="1/W_0", low=0.0, high=1e6)


@register
@dataclass(frozen=True, kw_only=True)
class RelevanceModel(Ranker):
    """RM1 over the full vocabulary, every stage with a smoothing of its own."""

    name: ClassVar[str] = "rm"
    description: ClassVar[str] = "Lavrenko's relevance model, exact over the whole vocabulary"
    uses_feedback: ClassVar[bool] = True
    is_wide: ClassVar[bool] = True

    fb_docs: int = count(50, "feedback documents", symbol="N")
    smoothing: str = choice("jm", "how documents are smoothed, in every stage", SMOOTHINGS)
    lambda_query: float = weight(0.2, "smoothing of the first ranking and of W", symbol="λ_Q")
    lambda_model: float = weight(0.7, "smoothing of feedback documents", symbol="λ_M")
    lambda_ranking: float = weight(0.3, "smoothing in the final ranking", symbol="λ_CE")
    mu: float = mu_parameter("Dirichlet prior of every stage")
    query_weight: float = query_weight_parameter()
    unjudged_weight: float = unjudged_weight_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), smoother(self.smoothing, self.lambda_query, self.mu), with_constant=True)

    @property
    def learns_beside_judged(self) -> bool:
        return self.unjudged_weight > 0

    def document_weights(self, query: Query, feedback: Feedback, statistics: Statistics) -> np.ndarray:
        """W, (5.8): query-likelihood posteriors, computed from the documents themselves; judged ones weigh alike."""
        if feedback.judged and not feedback.unjudged:
            return uniform(len(feedback))
        return softmax(self.log_chances(query, feedback, statistics))

    def log_chances(self, query: Query, feedback: Feedback, statistics: Statistics) -> np.ndarray:
        """log P(Q|θ^i), but for what is the same for all."""
        smoothing = smoother(self.smoothing, self.lambda_query, self.mu)
        log_likelihood = feedback.rows.query_scores(query, smoothing, statistics)
        return log_likelihood + query.length * smoothing.log_background_share(feedback.rows.lengths)

    def estimate(self, query: Query, feedback: Feedback, statistics: Statistics) -> tuple[TermModel, np.ndarray]:
        """θ^R, (5.4), and the documents' weights; with ``query_weight``, θ̂^Q is one of the averaged models."""
        weights, query_share = self.document_weights(query, feedback, statistics), 0.0
        if self.query_weight or (feedback.judged and feedback.unjudged):
            weights, query_share = feedback.labelled(weights, self.unjudged_weight, self.query_weight)
        else:
            weights = feedback.emphasised(weights)
        smoothing = smoother(self.smoothing, self.lambda_model, self.mu)
        model = relevance_model(feedback, weights, smoothing, statistics)
        if query_share:
            model = model.mixed(query.as_distribution(), query_share)
        return model, weights

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        model, weights = self.estimate(query, feedback, statistics)
        return Expansion(Plan(model, self.final_weighting, with_constant=True), weights)

    @property
    def final_weighting(self) -> Weighting:
        return smoother(self.smoothing, self.lambda_ranking, self.mu)


@register
@dataclass(frozen=True, kw_only=True)
class RM3(RelevanceModel):
    """(1-λ) · (θ^R cut to fb_terms, normalised) + λ · θ̂^Q, ranked by (5.9) or with BM25 weights.

    Only words of the feedback documents are candidates, however common another may be in general English.

    ``mode=anserini`` reproduces Anserini's Rm3Reranker term by term instead (see anserini.py): it knows neither
    ``query_weight`` nor ``unjudged_weight``.
    """

    name: ClassVar[str] = "rm3"
    description: ClassVar[str] = "relevance model cut to fb_terms and mixed with the query; or Anserini's RM3"
    is_wide: ClassVar[bool] = False

    mode: str = choice("lavrenko", "the equations, or Anserini's variant", ("lavrenko", "anserini"))
    first_stage: str = choice("bm25", "first ranking", ("bm25", "ql"))
    scoring: str = choice("bm25", "final ranking", ("bm25", "lm"))
    fb_docs: int = count(10, "feedback documents", symbol="N")
    fb_terms: int = count(40, "words kept of the relevance model", grid=(10, 20, 40, 80))
    original_query_weight: float = share(0.5, "weight of the query as typed", symbol="λ")
    k1: float = k1_parameter()
    b: float = b_parameter()

    @property
    def learns_beside_judged(self) -> bool:
        return self.mode != "anserini" and super().learns_beside_judged

    def first(self, query: Query, statistics: Statistics) -> Plan:
        if self.mode == "anserini":
            return anserini.first_plan(self, query)
        if self.first_stage == "bm25":
            return Plan(query.as_counts(), BM25(self.k1, self.b))
        return super().first(query, statistics)

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        if self.mode == "anserini":
            return anserini.expand(self, query, feedback, statistics)
        model, weights = self.estimate(query, feedback, statistics)
        cut = model.folded(statistics.p).strongest(self.fb_terms).normalised()
        # Documents judged relevant may be empty: then there is nothing to mix the query with.
        typed = query.as_distribution()
        mixed = cut.mixed(typed, self.original_query_weight) if len(cut) else typed
        return Expansion(Plan(mixed, self.final_weighting, with_constant=True), weights)

    def learnt(self, query: Query, samples: Samples, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
        """Words of the documents, and θ^R by each of the samples; none of general English but on these."""
        smoothing = smoother(self.smoothing, self.lambda_model, self.mu)
        terms, values, background = _means(samples.feedback, samples.weights, smoothing)
        return terms, np.where(values > 0, values + background[:, np.newaxis] * statistics.p[terms], 0.0)

    @property
    def final_weighting(self) -> Weighting:
        return BM25(self.k1, self.b) if self.scoring == "bm25" else super().final_weighting
