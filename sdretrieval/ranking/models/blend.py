"""Several feedback models at several depths: what they agree on, weighed so that at its best it counts so much.

Each part (SD's excess, the relevance model, axiomatic association) is estimated from the first 5, 10 and 20 documents.
With e_k the words of one estimate, a distribution, s(D; a) = Σ_w a_w φ_w the BM25 score of D by the words a, and

    m(e)  = max(0, mean of the e_k - c standard errors of it)         word by word
    s_k   = max_i s(D_i; e_k),   s_Q = max_i s(D_i; q)                over the feedback documents D_i
    e     = m(e_k / s_k)      with the e_k cut to the fb_terms words of largest m(e)(w) idf_w
    a     ∝ q / s_Q + r e,    q_w ∝ f^Q_w idf_w^γ                     ranked with BM25 weights
    + a_Q / |Q| · Σ_i (λ_O φ(o_i) + λ_U φ(u_i)) / (1-λ_O-λ_U)         over neighbours in the query (ranking/pairs.py)

The query and each estimate are brought to the same height at the top, then an estimate counts r times as much as the
query. So feedback holds back by itself: where one document stands out by its words (as where one known item is sought),
s_k is its score, and all others gain little; and where the estimates differ in which document is the best one, or in
its words, none comes near r. Estimates of unlike kinds err in unlike ways: the fewer of them have a word, the more it
is doubted (with c = 1, one that a single estimate has counts for nothing). Learnt words make a long query, which long
documents have more of by chance: the second ranking has a b of its own. All are words of one BM25 query, one plan,
which ranks at the cost of one. The query as typed is that of the sequential dependence model, in the first documents.
Judged documents have no depths, all of them are one estimate, and they need not share words with the query:
a = (q + r e / Σ_w e_w) / (1 + r).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import count, parameter, share
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking import loops
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.models.axiomatic import Axiomatic
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.relevance_model import RM3
from sdretrieval.ranking.models.sequential_dependence import check_windows, near_parameter, ordered_parameter
from sdretrieval.ranking.models.smoothed_dirichlet import SD3
from sdretrieval.ranking.pairs import PairHooks, neighbours
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel, strongest
from sdretrieval.ranking.weighting import BM25
from sdretrieval.ranking.wrapper import Hooks

if TYPE_CHECKING:
    from sdretrieval.ranking.engine import Engine

PARTS: dict[str, type[SD3 | RM3 | Axiomatic]] = {"sd": SD3, "rm": RM3, "axiomatic": Axiomatic}
PART_TERMS = 100  # words of each estimate that are averaged
DEPTHS = (0.25, 0.5, 1.0)  # of fb_docs
ROUNDING = 1e-9  # of its mean: a word that one estimate alone has is at zero with c = 1, but for rounding


class _Best:
    """The highest score of a feedback document by some of these words; by several lists of weights, for each."""

    def __init__(self, rows: Rows, terms: np.ndarray, weighting: BM25, statistics: Statistics) -> None:
        self.terms, self.phi = terms, rows.phi(terms, weighting, statistics)

    def __call__(self, terms: np.ndarray, weights: np.ndarray) -> np.ndarray:
        phi = self.phi[:, np.searchsorted(self.terms, terms)]
        return (np.expand_dims(weights, -2) * phi).sum(axis=-1).max(axis=-1)


@register
@dataclass(frozen=True, kw_only=True)
class Blend(Ranker):
    """What feedback models learn at several depths, mixed with the query as typed."""

    name: ClassVar[str] = "blend"
    description: ClassVar[str] = "what three feedback models learn at three depths: the one to start with"
    uses_feedback: ClassVar[bool] = True
    reads_positions: ClassVar[bool] = True

    parts: str = parameter("sd,rm,axiomatic", f"what is blended, of {', '.join(PARTS)}", kind="text")
    fb_docs: int = count(20, "feedback documents at the deepest; less deep: a quarter, half of them", symbol="N")
    fb_terms: int = count(40, "words kept of the blend", grid=(30, 40, 60))
    feedback_weight: float = parameter(
        1.0, "how much feedback counts, the query 1", symbol="r", low=0.0, high=1e6, grid=(1.0, 1.2, 1.4, 2.0)
    )
    caution: float = parameter(
        0.5, "standard errors taken off a word's mean", symbol="c", low=0.0, high=10.0, grid=(0.0, 0.5, 1.0)
    )
    idf_power: float = share(0.5, "how far rare words of the query weigh more", symbol="γ", grid=(0.0, 0.5, 1.0))
    ordered_weight: float = ordered_parameter(0.15)
    near_weight: float = near_parameter(0.075)
    k1: float = k1_parameter()
    b: float = b_parameter()
    final_b: float = share(0.5, "b of the ranking with learnt words", grid=(0.4, 0.5, 0.6))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_windows(self)
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
        return {name: PARTS[name](k1=self.k1, b=self.b) for name in self._names}

    @property
    def final_weighting(self) -> BM25:
        return BM25(self.k1, self.final_b)

    def depths(self, feedback: Feedback) -> list[int]:
        """How many of the feedback documents each estimate is made from; judged ones are taken together."""
        if feedback.judged:
            return [len(feedback)]
        return [min(max(1, round(share * self.fb_docs)), len(feedback)) for share in DEPTHS]

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), BM25(self.k1, self.b))

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        depths, terms = self.depths(feedback), feedback.rows.vocabulary.terms
        estimates, weights = np.zeros((len(self.models), len(depths), len(terms))), np.zeros(len(feedback))
        for model, part in zip(self.models.values(), estimates, strict=True):
            alike = np.zeros(len(feedback))
            log_chances = alike if feedback.judged else model.log_chances(query, feedback, statistics)
            samples = feedback.samples(depths, log_chances)
            words, values = model.learnt(query, samples, statistics)
            part[:, np.searchsorted(terms, words)] = values
            loops.keep_largest(part, PART_TERMS)
            weights += samples.weights.mean(axis=0) / len(self.models)
        every = np.concatenate(estimates)
        typed, kept = self._typed(query, statistics), self._kept(terms, every, statistics)
        best = _Best(feedback.rows, np.union1d(kept, typed.terms), self.final_weighting, statistics)
        s_Q = float(best(typed.terms, typed.weights))
        learnt = self._learnt(kept, every[:, np.searchsorted(terms, kept)], best)
        query_weight = self._query_weight(s_Q, learnt.mass, feedback.judged)
        learnt = learnt.normalised().scaled(1.0 - query_weight)
        s_e = float(best(learnt.terms, learnt.weights))
        notes = {
            "query_weight": query_weight,
            "feedback_weight": self.feedback_weight,
            "best": {"query": query_weight * s_Q, "feedback": s_e},
            "depths": depths,
            "parts": {
                name: TermModel(terms, mean).positive()
                for name, mean in zip(self.models, estimates.mean(axis=1), strict=True)
            },
        }
        unit = query_weight / query.length / (1.0 - self.ordered_weight - self.near_weight)
        pairs = neighbours(query, unit * self.ordered_weight, unit * self.near_weight)
        mixed = learnt.plus(typed.scaled(query_weight))
        return Expansion(Plan(mixed, self.final_weighting, pairs=pairs), weights, notes)

    def hooks(self, engine: Engine) -> Hooks:
        return PairHooks(engine)

    def _typed(self, query: Query, statistics: Statistics) -> TermModel:
        """The query's words, rare ones ahead."""
        rarity = self.final_weighting.term_factors(statistics, query.terms) ** self.idf_power
        return TermModel(query.terms, query.counts * rarity).normalised()

    def _kept(self, terms: np.ndarray, estimates: np.ndarray, statistics: Statistics) -> np.ndarray:
        """The words that add most to scores."""
        words = agreed(terms, estimates, self.caution)
        adds = words.weights * self.final_weighting.term_factors(statistics, words.terms)
        return words.terms[strongest(words.terms, adds, self.fb_terms)]

    def _learnt(self, kept: np.ndarray, estimates: np.ndarray, best: _Best) -> TermModel:
        """What estimates agree on, where each is as high at its best."""
        highest = best(kept, estimates)[:, np.newaxis]
        return agreed(kept, estimates / np.where(highest > 0, highest, 1.0), self.caution)

    def _query_weight(self, s_Q: float, mass: float, judged: bool) -> float:
        """The share of q in a; all of it where nothing was learnt."""
        if mass <= 0:
            return 1.0
        return 1.0 / (1.0 + self.feedback_weight * (1.0 if judged else s_Q * mass))


def agreed(terms: np.ndarray, estimates: np.ndarray, caution: float) -> TermModel:
    """The mean of each word's weights less ``caution`` standard errors of it, where that is above zero."""
    n, mean = len(estimates), estimates.mean(axis=0)
    kept = np.flatnonzero(mean)
    mean, lower = mean[kept], mean[kept]
    if n > 1 and caution:
        squares = ((estimates[:, kept] - mean) ** 2).sum(axis=0)
        lower = mean - caution * np.sqrt(squares / (n * (n - 1)))
    above = lower > ROUNDING * mean
    return TermModel(terms[kept[above]], lower[above])
