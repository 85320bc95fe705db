"""Documents by their own likelihood: document cross-entropy, thesis (2.12)-(2.18), the counter-example of section 2.4.

Ranking is classification here: a document is as good as its words are likelier under the relevant class than under
the other, both multinomials, as for naïve Bayes.

    score(D) = log P(D|θ^R)/P(D|θ^N) = Σ_w f^D_w log(θ^R_w / θ^N_w)             (2.16)
             = |D| (H(θ̂^D, θ^N) - H(θ̂^D, θ^R))                                  (2.18), D-cross-entropy

    θ^N = θ^GE,   θ^R = λ θ̂^Q + (1-λ) θ^GE (dce), or the relevance model (rm-dce)

Query likelihood and the relevance model rank by T-cross-entropy instead, -H(θ^R, θ^D): the topic on the left, the
document smoothed. Counts stand in a logarithm there; here each further occurrence of a word counts as much as the
first, and a long document has more of everything. ``length=word`` leaves |D| out of (2.18).

With θ^R_w = s_w + g p_w (g the share of general English), log(θ^R_w/p_w) = log(1 + s_w/(g p_w)) + log g: words of θ^R
that are not general English's alone, and log g for every word of the document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import choice, weight
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback
from sdretrieval.ranking.models.relevance_model import RelevanceModel
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import DocumentWords


def length_parameter():
    return choice("document", "(2.18) with its factor |D|, or the mean over the document's words", ("document", "word"))


def likelihood_ratio(model: TermModel, g: float, statistics: Statistics, length: str) -> Plan:
    """The plan of (2.16) for θ^R = model, whose share of general English is g."""
    s, p = model.weights, statistics.p[model.terms]
    ratios = TermModel(model.terms, np.log1p(s / (g * p)))
    return Plan(ratios, DocumentWords(1.0 - g, length == "word"))


@register
@dataclass(frozen=True, kw_only=True)
class DocumentCrossEntropy(Ranker):
    """P(R|D) with the query as the only training document of the relevant class."""

    name: ClassVar[str] = "dce"
    description: ClassVar[str] = "the document's own likelihood (naïve Bayes): why others turn the cross-entropy round"

    lam: float = weight(0.9, "share of the query's own words in θ^R", symbol="λ", grid=(0.1, 0.5, 0.9, 0.99, 0.999))
    length: str = length_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        model = query.as_distribution().scaled(self.lam)
        return likelihood_ratio(model, 1.0 - self.lam, statistics, self.length)


@register
@dataclass(frozen=True, kw_only=True)
class DocumentRelevanceModel(RelevanceModel):
    """The relevance model θ^R of ``rm``, (5.4), ranked by the cross-entropy the other way round."""

    name: ClassVar[str] = "rm-dce"
    description: ClassVar[str] = "rm's relevance model, documents ranked by their own likelihood under it"

    lambda_ranking: float = weight(0.3, "not used: documents are not smoothed here", symbol="λ_CE", grid=())
    length: str = length_parameter()

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        model, weights = self.estimate(query, feedback, statistics)
        plan = likelihood_ratio(TermModel(model.terms, model.weights), model.background, statistics, self.length)
        return Expansion(plan, weights)
