"""Several feedback models at several depths: their mean, as far as the depths agree; the query as typed has the rest.

Each part (SD's excess, the relevance model, axiomatic association) is estimated from the first 5, 10, 20 and 50
documents. With e_n a part's words at depth n, a distribution, and W_i its weights of the documents at the deepest,

    e  = mean over parts and depths of e_n, cut to fb_terms words and normalised
    A  = mean over parts of the mean over pairs of depths of Σ_w min(e_n(w), e_m(w))     how far the depths agree
    D  = mean over parts of 1 - Σ_i W_i²                                                 two documents, not one twice
    a  = (1 - A D) θ̂^Q + A D e                                                          ranked with BM25 weights

So feedback holds back by itself: where the words change with every few documents more, or come from one document alone
(as where one known item is sought), A D is small and the query stays as typed. Estimates of unlike kinds err in unlike
ways; all are words of one BM25 query, so their mean is one plan, which ranks at the cost of one. Judged documents have
no depths: all of them are one estimate, and ``least_query_weight`` keeps the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import count, parameter, share
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback
from sdretrieval.ranking.models.axiomatic import Axiomatic
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.relevance_model import RM3
from sdretrieval.ranking.models.smoothed_dirichlet import SD3
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25

PARTS: dict[str, type[SD3 | RM3 | Axiomatic]] = {"sd": SD3, "rm": RM3, "axiomatic": Axiomatic}
DEPTHS = (0.1, 0.2, 0.4, 1.0)  # of fb_docs


@register
@dataclass(frozen=True, kw_only=True)
class Blend(Ranker):
    """What feedback models agree on at several depths, mixed with the query as typed."""

    name: ClassVar[str] = "blend"
    description: ClassVar[str] = "what three feedback models agree on at four depths: the one to start with"
    uses_feedback: ClassVar[bool] = True

    parts: str = parameter("sd,rm,axiomatic", f"what is blended, of {', '.join(PARTS)}", kind="text")
    fb_docs: int = count(50, "feedback documents at the deepest; less deep: a tenth, a fifth, two fifths", symbol="N")
    fb_terms: int = count(40, "words kept of each estimate and of the blend", grid=(20, 40, 60, 80))
    least_query_weight: float = share(0.2, "of the query as typed, however well feedback agrees", grid=(0.1, 0.2, 0.4))
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
        return {name: PARTS[name](fb_terms=self.fb_terms, k1=self.k1, b=self.b) for name in self._names}

    def depths(self, feedback: Feedback) -> list[int]:
        """How many of the feedback documents each estimate is made from; judged ones are taken together."""
        if feedback.judged:
            return [len(feedback)]
        return [min(max(1, round(share * self.fb_docs)), len(feedback)) for share in DEPTHS]

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), BM25(self.k1, self.b))

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        samples = [feedback.first(n) for n in self.depths(feedback)]
        learnt = {
            name: [model.learnt(query, sample, statistics) for sample in samples] for name, model in self.models.items()
        }
        parts, held, weights = {}, {}, np.zeros(len(feedback))
        for name, estimates in learnt.items():
            words = [words for words, _ in estimates]
            parts[name] = mean_of(words)
            held[name] = agreement(words), distinct(estimates[-1][1], feedback)
            for _, given in estimates:
                weights[: len(given)] += given / (len(samples) * len(learnt))
        A, D = np.mean(list(held.values()), axis=0).tolist()
        mean, typed = mean_of(list(parts.values())).strongest(self.fb_terms).normalised(), query.as_distribution()
        kept = min(A * D, 1.0 - self.least_query_weight) if len(mean) else 0.0
        notes = {
            "query_weight": 1.0 - kept,
            "agreement": {name: {"depths": float(a), "distinct": float(d)} for name, (a, d) in held.items()},
            "depths": self.depths(feedback),
            "parts": parts,
        }
        if kept > 0:
            typed = typed.scaled(1.0 - kept).plus(mean.scaled(kept))
        return Expansion(Plan(typed, BM25(self.k1, self.b)), weights, notes)


def mean_of(models: Sequence[TermModel]) -> TermModel:
    total = models[0]
    for model in models[1:]:
        total = total.plus(model)
    return total.scaled(1.0 / len(models))


def agreement(estimates: Sequence[TermModel]) -> float:
    """The mean over pairs of estimates of Σ_w min(e_n(w), e_m(w)); an estimate alone agrees with itself.

    Of the weights of a word in descending order, the first is the smaller one of no pair, the second of one, and so on.
    """
    n = len(estimates)
    if n == 1:
        return estimates[0].mass
    terms = np.unique(np.concatenate([words.terms for words in estimates]))
    weights = np.zeros((n, len(terms)))
    for row, words in zip(weights, estimates, strict=True):
        row[np.searchsorted(terms, words.terms)] = words.weights
    return float(np.arange(n) @ np.sort(weights, axis=0)[::-1].sum(axis=1) / (n * (n - 1) / 2))


def distinct(weights: np.ndarray, feedback: Feedback) -> float:
    """1 - Σ_i W_i²: how likely two documents, drawn by their weights, are two. Judged ones are taken as they are."""
    return 1.0 if feedback.judged else 1.0 - float(weights @ weights)
