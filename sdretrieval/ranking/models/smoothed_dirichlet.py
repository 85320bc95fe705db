"""SD-EM: pseudo-feedback as a two-class mixture of smoothed-Dirichlet distributions, thesis section 5.2.

    α^N = S θ^GE                                        (5.10)
    α^R = S (λ_M1 θ̂^Q + (1-λ_M1) θ^GE)                  (5.11)  from the query alone
    W_i ∝ exp Σ_{w in D_i} (α^R_w - α^N_w) φ_w          (5.26)  E-step, documents smoothed with λ_E1
    α^R = S/Z · Π_i (θ^i)^{W_i}                         (5.13)  M-step, documents smoothed with λ_M2
    score(D) = Σ_{w in D} (α^R_w - α^N_w) φ_w           (4.31)  documents smoothed with λ_E2
    S = K |Q|                                           (5.28), section 5.3.4

Documents judged relevant weigh alike; beside them, the query and unjudged documents may weigh too (below (5.14), and
(6.19): see Feedback.labelled). α^N may be learnt from documents judged not relevant.

**Later E-steps.** The exponent of (5.26) has S λ (θ̂ - θ^GE), where λ = λ_M1 as long as α^R is the query's. After an
M-step it has about S λ_M2 (Σ_i W_i θ̂^i - θ^GE): with λ_M2 = 1e-4 and the same S, all weights would be alike. Condition
(5.28), S λ = |Q|, asks for another S from then on, S = K |Q| / λ_M2, the documents smoothed with λ_E1 as before
(``later_e_steps=rescaled``). That is Table 5.1 gone through again, with a smoothing of its own for every step, and
nothing says that it climbs. EM proper (``likelihood``) has the same S and one smoothing, λ_M2, in both of its steps:
the likelihood of the mixture never falls, and the weights become alike.

    φ_w = log(1 + λ θ̂^D_w / ((1-λ) θ^GE_w))

Inside, classes are kept as a = α/S, which sums to one: the geometric mean (5.13) is, by (3.33),

    a_w = c p_w exp(g_w),   g_w = Σ_i W_i φ_iw,   1/c = 1 + Σ_w p_w (exp(g_w) - 1)

so that a_w - p_w = c p_w (exp(g_w) - 1) + (c - 1) p_w: words of the feedback documents, and a multiple of general
English.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sdretrieval.core.parameters import choice, count, parameter, share, weight
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, Rows, Samples, softmax, uniform
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.query_likelihood import SMOOTHINGS, mu_parameter, smoother
from sdretrieval.ranking.models.relevance_model import query_weight_parameter, unjudged_weight_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, Dirichlet, JelinekMercer, Weighting

MOST_ITERATIONS = 100  # of EM, where it is to run until nothing changes


def precision_parameter(default: float, grid: tuple[float, ...]):
    help = "S = K |Q| sharpens the document weights"
    return parameter(default, help, symbol="K", low=0.0, high=1e6, open=True, grid=grid)


@dataclass(frozen=True, eq=False)
class SDClass:
    """One class of the mixture, a = α/S = c p exp(g): ``terms`` with their g, zero elsewhere."""

    terms: np.ndarray
    g: np.ndarray
    c: float

    @classmethod
    def general_english(cls) -> SDClass:
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), 1.0)

    @classmethod
    def fit(cls, rows: Rows, weights: np.ndarray, smoothing, statistics: Statistics) -> SDClass:
        """The weighted geometric mean (5.13) in its sparse form (3.33); of several lists of weights, one for each."""
        terms, g = rows.mean_log_ratios(weights, smoothing, statistics)
        return cls(terms, g, 1.0 / (1.0 + (np.expm1(g) * statistics.p[terms]).sum(axis=-1)))  # the same on any machine

    def over(self, statistics: Statistics) -> np.ndarray:
        """c p_w (exp(g_w) - 1): a - c p, on the class's own words."""
        return np.expand_dims(self.c, -1) * statistics.p[self.terms] * np.expm1(self.g)

    def excess(self, statistics: Statistics) -> TermModel:
        """a - p, without subtracting numbers that are nearly equal: c - 1 = -c Σ_w p_w (exp(g_w) - 1)."""
        over = self.over(statistics)
        return TermModel(self.terms, over, -float(over.sum()))

    def negative_entropy(self, statistics: Statistics) -> float:
        """Σ_w a_w log a_w"""
        p, log_p = statistics.p[self.terms], statistics.log_p[self.terms]
        over = p * np.expm1(self.g)  # (a/c - p) on the class's own words
        sum_a_log_p = self.c * (statistics.entropy_sum + float(over @ log_p))
        sum_a_g = self.c * float((p * np.exp(self.g)) @ self.g)
        return np.log(self.c) + sum_a_log_p + sum_a_g


@register
@dataclass(frozen=True, kw_only=True)
class SmoothedDirichlet(Ranker):
    """The SD-EM classifier exactly as in the thesis; one EM iteration is the paper's."""

    name: ClassVar[str] = "sd"
    description: ClassVar[str] = "smoothed-Dirichlet feedback (SD-EM), exact over the whole vocabulary"
    uses_feedback: ClassVar[bool] = True
    is_wide: ClassVar[bool] = True

    fb_docs: int = count(20, "feedback documents", symbol="N")
    first_stage: str = choice("sd", "first ranking: (5.12), or BM25", ("sd", "bm25"))
    smoothing: str = choice("jm", "how documents are smoothed, in every stage", SMOOTHINGS)
    lambda_query: float = weight(0.99, "smoothing of the query", symbol="λ_M1", grid=(0.9, 0.99))
    lambda_first: float = weight(0.3, "smoothing of documents in the first ranking and E-step", symbol="λ_E1")
    lambda_feedback: float = weight(
        1e-4, "smoothing of feedback documents in the M-step", symbol="λ_M2", grid=(1e-5, 1e-4, 1e-3, 1e-2)
    )
    lambda_ranking: float = weight(0.5, "smoothing of documents in the final ranking", symbol="λ_E2")
    precision: float = precision_parameter(0.3, (0.1, 0.2, 0.3, 0.5, 0.8))
    iterations: int = parameter(1, "EM iterations; 0 runs to convergence (at most 100)", low=0, high=1000)
    later_e_steps: str = choice(
        "rescaled",
        "from the second iteration on: S λ = |Q| kept up, or EM on one likelihood",
        ("rescaled", "likelihood"),
    )
    posterior: str = choice("approximate", "document weights: (5.26), or the exact (5.16)", ("approximate", "exact"))
    prior: float = weight(0.01, "prior probability of relevance, for the exact posterior", symbol="π_R")
    query_weight: float = query_weight_parameter()
    unjudged_weight: float = unjudged_weight_parameter()
    nonrelevant_weight: float = share(
        1.0, "share of documents judged not relevant in α^N; the rest is general English", symbol="ν", grid=()
    )
    mu: float = mu_parameter("Dirichlet prior in rankings")
    mu_feedback: float = parameter(1e5, "Dirichlet prior in the M-step", low=0.0, high=1e12, open=True)
    k1: float = k1_parameter()
    b: float = b_parameter()

    # -- first pass ----------------------------------------------------------------------------------------------
    def first(self, query: Query, statistics: Statistics) -> Plan:
        if self.first_stage == "bm25":
            return Plan(query.as_counts(), BM25(self.k1, self.b))
        S = self.precision * query.length
        return Plan(self._query_excess(query).scaled(S), self._smoothing_first)  # (5.12)

    def _query_excess(self, query: Query) -> TermModel:
        """a^R - a^N from the query alone, (5.10)-(5.11): λ_M1 (θ̂^Q - θ^GE)."""
        lam = self.lambda_query
        return TermModel(query.terms, lam * query.as_distribution().weights, -lam)

    # -- EM ------------------------------------------------------------------------------------------------------
    @property
    def learns_beside_judged(self) -> bool:
        return self.unjudged_weight > 0

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        excess, weights, notes = self.estimate(query, feedback, statistics)
        return Expansion(self._final_plan(query, excess, notes["S"], statistics), weights, notes)

    def estimate(
        self, query: Query, feedback: Feedback, statistics: Statistics
    ) -> tuple[TermModel, np.ndarray, dict[str, Any]]:
        """a^R - a^N, the documents' weights, and how EM went."""
        S = self.precision * query.length
        nonrelevant = self._nonrelevant(feedback, statistics)
        chances = self._first_e_step(query, feedback, nonrelevant, statistics, S)
        weights, relevant = self._m_step(query, feedback, chances, statistics)
        em: dict[str, Any] = {"iterations": 1, "bounds": [], "converged": True}
        given = feedback.judged and not feedback.unjudged  # nothing is left to be found out
        if self.iterations != 1 and not given:
            weights, relevant, em = self._later_iterations(query, feedback, weights, relevant, nonrelevant, statistics)
        excess = relevant.excess(statistics).plus(nonrelevant.excess(statistics).scaled(-1.0))
        return excess, weights, {"S": S, **em, "c": relevant.c}

    def _later_iterations(
        self,
        query: Query,
        feedback: Feedback,
        weights: np.ndarray,
        relevant: SDClass,
        nonrelevant: SDClass,
        statistics: Statistics,
    ) -> tuple[np.ndarray, SDClass, dict[str, Any]]:
        """From the first M-step on: until nothing changes, or as often as asked for."""
        S, climbing = self.precision * query.length, self.later_e_steps == "likelihood"
        smoothing = self._smoothing_feedback if climbing else self._smoothing_first
        if not climbing:
            S /= self._later_share(feedback)  # (5.28)
        bounds: list[float] = []
        done, converged = 1, False
        ratios = self._log_ratios(feedback, relevant, nonrelevant, statistics, S, smoothing)
        bounds.append(self._bound(ratios))
        while done < (self.iterations or MOST_ITERATIONS):
            before = weights
            weights, relevant = self._m_step(query, feedback, self._posterior(ratios), statistics)
            ratios = self._log_ratios(feedback, relevant, nonrelevant, statistics, S, smoothing)
            bounds.append(self._bound(ratios))
            done += 1
            if climbing:
                converged = bounds[-1] - bounds[-2] <= 1e-10 * max(1.0, abs(bounds[-1]))
            else:
                converged = float(np.abs(weights - before).max()) <= 1e-6
            if converged and not self.iterations:
                break
        return weights, relevant, {"iterations": done, "bounds": bounds if climbing else [], "converged": converged}

    def _m_step(
        self, query: Query, feedback: Feedback, chances: np.ndarray, statistics: Statistics
    ) -> tuple[np.ndarray, SDClass]:
        """The documents' weights, and a^R = 1/Z Π_i (θ^i)^{W_i}, (5.13), with the query among the θ's if it weighs."""
        if not (self.query_weight or (feedback.judged and feedback.unjudged)):
            weights = feedback.emphasised(chances)
            return weights, SDClass.fit(feedback.rows, weights, self._smoothing_feedback, statistics)
        weights, query_share = feedback.labelled(chances, self.unjudged_weight, self.query_weight)
        rows, weighed = feedback.rows, weights
        if query_share:
            rows, weighed = rows.with_query(query), np.append(weights * (1.0 - query_share), query_share)
        return weights, SDClass.fit(rows, weighed, self._smoothing_feedback, statistics)

    def _later_share(self, feedback: Feedback) -> float:
        """λ_M2, or the feedback documents' mean share of their own words where that depends on their lengths."""
        return max(float(self._smoothing_feedback.document_shares(feedback.rows.lengths).mean()), 1e-12)

    def _final_plan(self, query: Query, excess: TermModel, S: float, statistics: Statistics) -> Plan:
        return Plan(excess.scaled(S), self._smoothing_ranking)  # (4.31)

    def _nonrelevant(self, feedback: Feedback, statistics: Statistics) -> SDClass:
        """a^N: general English (5.10), or learnt from documents judged not relevant."""
        if feedback.nonrelevant is None or len(feedback.nonrelevant) == 0:
            return SDClass.general_english()
        rows = feedback.nonrelevant
        # What a weight lacks of one is general English's: a ∝ p exp(Σ_i W_i φ_i).
        return SDClass.fit(rows, self.nonrelevant_weight * uniform(len(rows)), self._smoothing_feedback, statistics)

    def log_chances(self, query: Query, feedback: Feedback, statistics: Statistics) -> np.ndarray:
        """Log weights of feedback documents after a BM25 first pass."""
        return self.precision * feedback.scores

    def _first_e_step(
        self, query: Query, feedback: Feedback, nonrelevant: SDClass, statistics: Statistics, S: float
    ) -> np.ndarray:
        """Weights of the feedback documents under the query's own class; judged ones weigh alike.

        After a BM25 first pass its score stands for the log ratio |Q| Σ_w (θ̂^Q_w - θ^GE_w) φ_w: K sharpens either.
        """
        if feedback.judged and not feedback.unjudged:
            return uniform(len(feedback))
        if self.first_stage == "bm25" and self.posterior == "approximate":
            return softmax(self.log_chances(query, feedback, statistics))
        smoothing = self._smoothing_first
        from_query = self._query_excess(query)
        excess = from_query.plus(nonrelevant.excess(statistics).scaled(-1.0)).dense(statistics.p)
        ratios = S * feedback.rows.scores(excess, smoothing, statistics)  # (5.26)
        if self.posterior == "approximate":
            return softmax(ratios)
        a = from_query.dense(statistics.p) + statistics.p
        used = a > 0
        entropies = nonrelevant.negative_entropy(statistics) - float(a[used] @ np.log(a[used]))
        return self._posterior(ratios + S * (entropies + float(excess[used] @ statistics.log_p[used])))  # (5.18)

    def _log_ratios(
        self,
        feedback: Feedback,
        relevant: SDClass,
        nonrelevant: SDClass,
        statistics: Statistics,
        S: float,
        smoothing: JelinekMercer | Dirichlet,
    ) -> np.ndarray:
        """log P(θ^i|α^R) / P(θ^i|α^N), (5.18)."""
        excess = relevant.excess(statistics).plus(nonrelevant.excess(statistics).scaled(-1.0))
        document = feedback.rows.scores(excess.dense(statistics.p), smoothing, statistics)
        constant = float(excess.weights @ statistics.log_p[excess.terms]) + excess.background * statistics.entropy_sum
        entropies = nonrelevant.negative_entropy(statistics) - relevant.negative_entropy(statistics)
        return S * (document + constant + entropies)

    def _posterior(self, ratios: np.ndarray) -> np.ndarray:
        if self.posterior == "approximate":
            return softmax(ratios)  # (5.25)-(5.26)
        from scipy.special import expit  # takes a fifth of a second, and the default has no use for it

        exact = expit(ratios + np.log(self.prior) - np.log1p(-self.prior))  # (5.16)
        total = exact.sum()
        return exact / total if total > 0 else softmax(ratios)  # all posteriors vanish: their ratios are left

    def _bound(self, ratios: np.ndarray) -> float:
        """What EM climbs: the mixture's log likelihood against α^N alone, or its limit for π_R → 0."""
        if self.posterior == "approximate":
            from scipy.special import logsumexp  # as above

            return float(logsumexp(ratios))
        return float(np.sum(np.logaddexp(np.log(self.prior) + ratios, np.log1p(-self.prior))))

    # -- smoothing of each stage ---------------------------------------------------------------------------------
    @property
    def _smoothing_first(self):
        return smoother(self.smoothing, self.lambda_first, self.mu)

    @property
    def _smoothing_feedback(self):
        return smoother(self.smoothing, self.lambda_feedback, self.mu_feedback)

    @property
    def _smoothing_ranking(self) -> Weighting:
        return smoother(self.smoothing, self.lambda_ranking, self.mu)


@register
@dataclass(frozen=True, kw_only=True)
class SD3(SmoothedDirichlet):
    """The SD excess, cut to its strongest words and normalised, mixed with the query as typed: RM3's idea for SD.

    What ranks in SD is the small excess a^R - a^N, so it is the *normalised excess* that is mixed. With BM25 in both
    passes this is the shipped default (see docs/RESULTS.md for how it was chosen).
    """

    name: ClassVar[str] = "sd3"
    description: ClassVar[str] = "smoothed-Dirichlet feedback mixed with the query as typed"
    is_wide: ClassVar[bool] = False

    first_stage: str = choice("bm25", "first ranking: (5.12), or BM25", ("bm25", "sd"))
    scoring: str = choice("bm25", "final ranking: BM25 weights, or (4.31)", ("bm25", "lm"))
    fb_docs: int = count(20, "feedback documents", symbol="N")
    fb_terms: int = count(40, "words kept of the excess", grid=(20, 40, 80))
    original_query_weight: float = share(0.4, "weight of the query as typed", symbol="1-β", grid=(0.2, 0.3, 0.4, 0.5))
    precision: float = precision_parameter(0.25, (0.05, 0.15, 0.25, 0.5))

    def _final_plan(self, query: Query, excess: TermModel, S: float, statistics: Statistics) -> Plan:
        words = excess.folded(statistics.p).positive().strongest(self.fb_terms).normalised()
        if not len(words):
            return Plan(query.as_distribution(), self._smoothing_ranking)
        return Plan(words.mixed(query.as_distribution(), self.original_query_weight), self._smoothing_ranking)

    def learnt(self, query: Query, samples: Samples, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
        """Words of the documents, and their excess a^R - a^N by each of the samples after one M-step."""
        feedback = samples.feedback
        relevant = SDClass.fit(feedback.rows, samples.weights, self._smoothing_feedback, statistics)
        over, p = relevant.over(statistics), statistics.p[relevant.terms]
        found = over - over.sum(axis=1, keepdims=True) * p
        if feedback.nonrelevant is not None and len(feedback.nonrelevant):
            found -= self._nonrelevant(feedback, statistics).excess(statistics).dense(statistics.p)[relevant.terms]
        return relevant.terms, found

    @property
    def _smoothing_ranking(self) -> Weighting:
        return BM25(self.k1, self.b) if self.scoring == "bm25" else super()._smoothing_ranking
