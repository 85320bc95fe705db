"""TF-IDF vectors with Rocchio feedback: the thesis's baseline (section 5.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import count, parameter
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, uniform
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import TfIdf


@register
@dataclass(frozen=True, kw_only=True)
class TfIdfRocchio(Ranker):
    """q' = q + β · (mean of the feedback documents' vectors, cut to its strongest words); score = q' · d.

    A word weighs idf · f/(f + k1 (1 - b + b |D|/avg)) in a document and idf · f in the query.
    """

    name: ClassVar[str] = "tfidf"
    description: ClassVar[str] = "TF-IDF vectors with Rocchio pseudo-feedback, the thesis's baseline"
    uses_feedback: ClassVar[bool] = True

    fb_docs: int = count(100, "feedback documents", symbol="N")
    fb_terms: int = count(50, "words taken from the feedback documents", grid=(10, 20, 50, 100))
    beta: float = parameter(
        0.5, "weight of the feedback vector", symbol="β", low=0.0, high=100.0, grid=(0.25, 0.5, 1.0, 2.0, 4.0)
    )
    k1: float = parameter(1.0, "saturation of counts", symbol="k1", low=0.0, high=100.0, open=True)
    b: float = parameter(0.3, "length normalisation", symbol="b", low=0.0, high=1.0)

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(self._query_vector(query, statistics), TfIdf(self.k1, self.b))

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        weighting = TfIdf(self.k1, self.b)
        weights = feedback.emphasised(uniform(len(feedback)))
        rows = feedback.rows
        per_row = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))
        B = weighting.doc_factors(statistics, rows.lengths)[per_row]
        vectors = weighting.phi(rows.counts, weighting.term_factors(statistics, rows.terms), B)
        centroid = TermModel.of(rows.terms, vectors * weights[per_row]).strongest(self.fb_terms)
        moved = self._query_vector(query, statistics).plus(centroid.scaled(self.beta))
        return Expansion(Plan(moved, weighting), weights)

    def _query_vector(self, query: Query, statistics: Statistics) -> TermModel:
        idf = TfIdf(self.k1, self.b).term_factors(statistics, query.terms)
        return TermModel(query.terms, query.counts * idf)
