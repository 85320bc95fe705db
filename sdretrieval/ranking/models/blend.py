"""Several feedback models at several depths: their mean, weighed so that at its best it counts so much for the query.

Each part (SD's excess, the relevance model, axiomatic association) is estimated from the first 5, 10 and 20 documents.
With e_n a part's words at depth n, a distribution, and s(D; a) = Σ_w a_w φ_w the BM25 score of D by the words a,

    e   = mean over parts and depths of e_n, cut to the fb_terms words of largest e(w) idf_w and normalised
    s_Q = max_i s(D_i; θ̂^Q),  s_e = max_i s(D_i; e)               over the feedback documents D_i
    a   ∝ θ̂^Q / s_Q + r e / s_e                                    ranked with BM25 weights

Both scores are brought to the same height at the top, then feedback counts r times as much as the query. So it holds
back by itself: where one document stands out by its words (as where one known item is sought), s_e is its score, and
all others gain little. Estimates of unlike kinds err in unlike ways; all are words of one BM25 query, so their mean is
one plan, which ranks at the cost of one. Judged documents have no depths, all of them are one estimate, and they need
not share words with the query: a = (θ̂^Q + r e) / (1 + r).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import count, parameter
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback
from sdretrieval.ranking.models.axiomatic import Axiomatic
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.relevance_model import RM3
from sdretrieval.ranking.models.smoothed_dirichlet import SD3
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel, strongest
from sdretrieval.ranking.weighting import BM25

PARTS: dict[str, type[SD3 | RM3 | Axiomatic]] = {"sd": SD3, "rm": RM3, "axiomatic": Axiomatic}
PART_TERMS = 100  # words of each estimate that are averaged
DEPTHS = (0.25, 0.5, 1.0)  # of fb_docs


@register
@dataclass(frozen=True, kw_only=True)
class Blend(Ranker):
    """What feedback models learn at several depths, mixed with the query as typed."""

    name: ClassVar[str] = "blend"
    description: ClassVar[str] = "what three feedback models learn at three depths: the one to start with"
    uses_feedback: ClassVar[bool] = True

    parts: str = parameter("sd,rm,axiomatic", f"what is blended, of {', '.join(PARTS)}", kind="text")
    fb_docs: int = count(20, "feedback documents at the deepest; less deep: a quarter, half of them", symbol="N")
    fb_terms: int = count(40, "words kept of the blend", grid=(30, 40, 60))
    feedback_weight: float = parameter(
        2.0, "how much feedback counts, the query 1", symbol="r", low=0.0, high=1e6, grid=(1.0, 1.4, 2.0, 2.8)
    )
    k1: float = k1_parameter()
    b: float = b_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self._names if name not in PARTS]
        if unknown or not self._names or len(set(self._names)) < len(self._names):
            raise ParameterError(
                f"blend: parts must be some of {', '.join(PARTS)}, once each; got {self.parts!r}",
                remedy="Pass --set parts=sd,rm,axiomatic.",
            )

    @property
    def _names(self) -> list[str]:
        return [name.strip() for name in self.parts.split(",") if name.strip()]

    @cached_property
    def models(self) -> dict[str, SD3 | RM3 | Axiomatic]:
        """The parts, which only say what they learnt: the query is mixed in here."""
        return {name: PARTS[name](fb_terms=PART_TERMS, k1=self.k1, b=self.b) for name in self._names}

    @property
    def weighting(self) -> BM25:
        return BM25(self.k1, self.b)

    def depths(self, feedback: Feedback) -> list[int]:
        """How many of the feedback documents each estimate is made from; judged ones are taken together."""
        if feedback.judged:
            return [len(feedback)]
        return [min(max(1, round(share * self.fb_docs)), len(feedback)) for share in DEPTHS]

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), self.weighting)

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        samples = [feedback.first(n) for n in self.depths(feedback)]
        parts, weights = {}, np.zeros(len(feedback))
        for name, model in self.models.items():
            estimates = [model.learnt(query, sample, statistics) for sample in samples]
            parts[name] = mean_of([words for words, _ in estimates])
            for _, given in estimates:
                weights[: len(given)] += given / (len(samples) * len(self.models))
        learnt = self._cut(mean_of(list(parts.values())), statistics)
        typed = query.as_distribution()
        s_Q, s_e = (feedback.rows.evidence(words, self.weighting, statistics).max() for words in (typed, learnt))
        query_weight = self._query_weight(s_Q, s_e, feedback.judged)
        notes = {
            "query_weight": query_weight,
            "feedback_weight": self.feedback_weight,
            "best": {"query": float(s_Q), "feedback": float(s_e)},
            "depths": self.depths(feedback),
            "parts": parts,
        }
        if query_weight < 1:
            typed = learnt.mixed(typed, query_weight)
        return Expansion(Plan(typed, self.weighting), weights, notes)

    def _cut(self, words: TermModel, statistics: Statistics) -> TermModel:
        """The words that add most to scores."""
        adds = words.weights * self.weighting.term_factors(statistics, words.terms)
        kept = strongest(words.terms, adds, self.fb_terms)
        return TermModel(words.terms[kept], words.weights[kept]).normalised()

    def _query_weight(self, s_Q: float, s_e: float, judged: bool) -> float:
        """The share of θ̂^Q in a; all of it where nothing was learnt."""
        if s_e <= 0:
            return 1.0
        return 1.0 / (1.0 + self.feedback_weight) if judged else s_e / (s_e + self.feedback_weight * s_Q)


def mean_of(models: Sequence[TermModel]) -> TermModel:
    total = models[0]
    for model in models[1:]:
        total = total.plus(model)
    return total.scaled(1.0 / len(models))
