"""The four tracking models of the thesis, chapter 6, in one form that one compiled loop can score.

    score(D) = Σ_{w in D} m_w e_w(D) + k b(D) + c

      e_w, b    evidence: depends on the document alone        m_w, k, c   estimate: depends on the story alone
      m_w       zero for words the story has never met, so that only shared words cost time: the form of (4.29)

Learning adds to a story's running sums, for each word, weight · contribution, and to its mass, weight · mass:

========  =================================  ==========  ============================  ===========================
model     contribution of D                  mass        weight (the E-step)           estimate
========  =================================  ==========  ============================  ===========================
tfidf     f_w                                1           1                             v = Σ f_w idf_w, cosine
rm        θ̂_w = f_w / |D|                    1           1                             λ_M mean θ̂ + (1-λ_M) p
nb        f_w                                |D|         P(R|D), (6.13)                λ Σ P f / Σ P |D| + (1-λ) p
sd        log(1 + λ_M θ̂_w / ((1-λ_M) p_w))   1           W(D), (5.26), times S         geometric mean, (6.21)
========  =================================  ==========  ============================  ===========================

      f_w counts of D, |D| its length, p_w = θ^GE general English, φ_w = log(1 + λ_E θ̂_w / ((1-λ_E) p_w))

Sums make the online update and re-estimation from all documents the same thing; for SD they are the running log-sums
of which (6.21)-(6.23) is the published recursion. The seed's weight W_0 max W (6.19)-(6.20) needs no Δ(t) when the
learnt sums are kept relative to the largest weight: the seed's own sum then enters with the factor W_0 alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log, log1p
from typing import Any, ClassVar

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import check, choice, domains, parameter, positive, read_settings, weight
from sdretrieval.learn.tracking.story import Floats, Story
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument


@dataclass(frozen=True, kw_only=True)
class TrackingModel:
    """What every model answers; see the module's table."""

    name: ClassVar[str] = ""
    relative_weights: ClassVar[bool] = False  # weights matter only beside each other, and may be any size
    contributes_p: ClassVar[bool] = False  # contributions depend on general English as it was when they were made

    def __post_init__(self) -> None:
        check(self)

    def evidence(self, document: StreamDocument, background: Background) -> tuple[Floats, float]:
        """e_w for the document's words, and b."""
        raise NotImplementedError

    def contribution(self, document: StreamDocument, background: Background) -> tuple[Floats, float]:
        """What the document adds to each of its words, and its mass."""
        raise NotImplementedError

    def log_weight(self, score: float, story: Story) -> float:
        """log of the weight of a document that was not labelled, from its score for the story."""
        return 0.0

    def estimate(self, story: Story, background: Background) -> tuple[Floats, float, float]:
        """m, k and c from the running sums."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        return asdict(self)


def _unit(v: Floats) -> Floats:
    norm = float(np.sqrt(v @ v))
    return v / norm if norm > 0 else v


def _phi(document: StreamDocument, p: Floats, lam: float) -> Floats:
    return np.log1p((lam / ((1.0 - lam) * max(document.length, 1e-300))) * document.counts / p)


def _phi_evidence(document: StreamDocument, background: Background, lam: float) -> tuple[Floats, float]:
    """φ_w, and Σ_w p_w φ_w: what cross entropies with the document's smoothed model need of it."""
    p = background.p(document.words)
    phi = _phi(document, p, lam)
    return phi, float(p @ phi)


def _score_parameter() -> Any:
    return choice("words", "the sum over the document's words, or with the story's constant as well", ("words", "full"))


@dataclass(frozen=True, kw_only=True)
class VectorSpace(TrackingModel):
    """TF-IDF vectors, cosine and Rocchio's mean, (6.2)-(6.4): no parameters."""

    name: ClassVar[str] = "tfidf"

    def evidence(self, document, background):
        return _unit(document.counts * background.idf(document.words)), 0.0  # (6.2)

    def contribution(self, document, background):
        return document.counts, 1.0

    def estimate(self, story, background):
        # (6.4) divides by t + 1; the cosine (6.3) does not see it.
        return _unit((story.seed + story.learnt) * background.idf(story.words)), 0.0, 0.0


@dataclass(frozen=True, kw_only=True)
class RelevanceTracking(TrackingModel):
    """Relevance model: the mean of language models (6.10)-(6.11), scored by T-cross entropy (6.12).

    ``score``: (6.12) is the sum over the document's words plus a constant of the story, Σ_w θ^R_w log((1-λ_E) p_w)
    (4.29). The constant never changes a story's own ranking, but it shifts stories against each other under one
    threshold; ``words`` leaves it out, ``full`` is (6.12) to the letter.
    """

    name: ClassVar[str] = "rm"

    lambda_score: float = weight(1e-3, "smoothing of documents scored", symbol="λ_E", grid=(1e-3, 0.01, 0.05, 0.2, 0.5))
    lambda_learn: float = weight(0.5, "smoothing of documents learnt", symbol="λ_M", grid=(0.3, 0.5, 0.7, 0.9, 0.99))
    score: str = _score_parameter()

    def evidence(self, document, background):
        return _phi_evidence(document, background, self.lambda_score)

    def contribution(self, document, background):
        return document.counts / document.length, 1.0

    def estimate(self, story, background):
        lam = self.lambda_learn
        m = (story.seed + story.learnt) * (lam / (story.seed_mass + story.learnt_mass))  # (6.10)
        constant = 0.0
        if self.score == "full":
            over = float(m @ np.log(background.p(story.words)))
            constant = over + (1 - lam) * background.entropy_sum + log1p(-self.lambda_score)
        return m, 1.0 - lam, constant


@dataclass(frozen=True, kw_only=True)
class NaiveBayesTracking(TrackingModel):
    """Naïve Bayes with online EM, (6.13)-(6.18). The score is the log odds of relevance, (6.14)."""

    name: ClassVar[str] = "nb"

    lambda_learn: float = weight(0.05, "smoothing of the relevant class", symbol="λ", grid=(0.05, 0.1, 0.3, 0.5, 0.7))
    prior_odds: float = positive(
        1e-6, "prior odds of relevance", symbol="π_R/(1-π_R)", high=1e300, grid=(1e-8, 1e-6, 1e-3, 1.0)
    )

    def evidence(self, document, background):
        return document.counts, document.length * log1p(-self.lambda_learn)

    def contribution(self, document, background):
        return document.counts, document.length

    def log_weight(self, score, story):
        return -np.logaddexp(0.0, -score)  # log P(R|D), (6.13)

    def estimate(self, story, background):
        lam = self.lambda_learn
        theta = (story.seed + story.learnt) / (story.seed_mass + story.learnt_mass)  # (6.15)
        m = np.log1p(lam * theta / ((1.0 - lam) * background.p(story.words)))  # (6.16) over θ^N, but for log(1-λ)
        return m, 1.0, log(self.prior_odds)


@dataclass(frozen=True, kw_only=True)
class SmoothedDirichletTracking(TrackingModel):
    """Smoothed Dirichlet with online EM, (6.19)-(6.23). The score is (5.12), H(α^N, θ^D) - H(α^R, θ^D), over S λ_M:
    from one seed alone that is Σ_w (θ̂_w - p_w) φ_w, on the same scale whatever the parameters.

    S is the precision: the log weight of a learnt document is S λ_M times its score over words, (5.26)-(5.27). It does
    not change the score itself. ``score`` is as in the relevance model; weights come from the sum over words alone.
    """

    name: ClassVar[str] = "sd"
    relative_weights: ClassVar[bool] = True
    contributes_p: ClassVar[bool] = True

    lambda_score: float = weight(
        1e-3, "smoothing of documents scored (E-step)", symbol="λ_E", grid=(1e-5, 1e-3, 0.05, 0.3, 0.6)
    )
    lambda_learn: float = weight(
        1e-3, "smoothing of documents learnt (M-step)", symbol="λ_M", grid=(1e-4, 1e-3, 0.01, 0.1, 0.5)
    )
    precision: float = parameter(
        3000.0, "sharpens the weights of learnt documents", symbol="S", low=0.0, high=1e9, grid=(0.0, 1e3, 3e3, 3e4)
    )
    seed_weight: float = positive(
        5.0, "weight of the seed beside the heaviest learnt document", "W_0", high=1e9, grid=(1.0, 2.0, 5.0, 20.0)
    )
    score: str = _score_parameter()

    def evidence(self, document, background):
        return _phi_evidence(document, background, self.lambda_score)

    def contribution(self, document, background):
        return _phi(document, background.p(document.words), self.lambda_learn), 1.0

    def log_weight(self, score, story):
        return self.precision * self.lambda_learn * (score - story.c)  # (5.26); its normaliser cancels in (6.21)

    def estimate(self, story, background):
        w0 = self.seed_weight
        g = (w0 * story.seed + story.learnt) / (w0 * story.seed_mass + story.learnt_mass)
        p = background.p(story.words)
        over = p * np.expm1(g)
        m = over / (1.0 + float(over.sum()))  # α/S - p on the story's words, but for k p: see ranking's SDClass
        k = -float(m.sum())
        constant = 0.0
        if self.score == "full":
            constant = float(m @ np.log(p)) + k * background.entropy_sum
        return m / self.lambda_learn, k / self.lambda_learn, constant / self.lambda_learn


MODELS: dict[str, type[TrackingModel]] = {
    model.name: model for model in (VectorSpace, RelevanceTracking, NaiveBayesTracking, SmoothedDirichletTracking)
}


def make_model(name: str, settings: Sequence[str] | Mapping[str, Any] = ()) -> TrackingModel:
    """A tracking model by name.

    Parameters
    ----------
    name : str
        ``tfidf``, ``rm``, ``nb`` or ``sd``.
    settings : sequence of str, or mapping
        Parameters that are not at their default: ``["lambda_score=0.1"]`` or ``{"lambda_score": 0.1}``.

    Returns
    -------
    TrackingModel

    Examples
    --------
    >>> make_model("sd", ["precision=20"]).precision
    20.0
    """
    if name not in MODELS:
        raise ParameterError(f"no tracking model {name!r}", remedy=f"One of: {', '.join(MODELS)}.")
    known = {setting: domain for setting, (_, domain) in domains(MODELS[name]).items()}
    return MODELS[name](**read_settings(f"the tracking model {name}", known, settings, see="docs/TRACKING.md"))
