"""Generative classifiers of text (thesis chapter 4), as scikit-learn estimators on counts.

MultinomialClassifier         (4.7)-(4.9)   naive Bayes, Laplace or Jelinek-Mercer smoothing
DCMClassifier                 (4.11), (4.14)-(4.17)
DirichletClassifier           (3.11), (4.23)
SmoothedDirichletClassifier   (3.33), (4.36); SD-CE with ``cross_entropy=True``

>>> import numpy as np
>>> X, y = np.array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]]), ["a", "a", "b", "b"]
>>> SmoothedDirichletClassifier().fit(X, y).predict([[5, 1, 0], [0, 2, 0]]).tolist()
['a', 'b']
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import gammaln, logsumexp
from sklearn.base import clone

from sdretrieval.core.parameters import choice, parameter, positive, weight
from sdretrieval.estimate.distributions import dcm, dirichlet, fitting
from sdretrieval.estimate.distributions import density_loops as loops
from sdretrieval.estimate.distributions.fitting import Convergence
from sdretrieval.estimate.distributions.general_english import check_background, from_totals, inverse, lengths, ratios
from sdretrieval.learn.classify.base import GenerativeClassifier, IncrementalClassifier, by_class, sharpness, term_major

_BETA = "β of (4.10), added to every word's count in general English"
_TERMS = {"alpha_": "classes x terms", "class_log_prior_": "classes"}


def _general_english(model: MultinomialClassifier | _SmoothedDocuments, totals: np.ndarray) -> np.ndarray:
    """θ^GE: the model's own where one is given, else (4.10) of the totals."""
    if model.background is not None:
        return check_background(model.background, len(totals))
    return from_totals(totals, float(model.background_additive))


@dataclass(kw_only=True, repr=False, eq=False)
class MultinomialClassifier(IncrementalClassifier):
    """Naive Bayes on word counts, smoothed by (4.8) or (4.9). The parameters are the fields below.

    ``background`` is θ^GE of one's own instead of (4.10) from all training documents; ``fit_prior`` and ``class_prior``
    are as of :class:`GenerativeClassifier`.
    """

    state: ClassVar = {"feature_log_prob_": "classes x terms", "class_log_prior_": "classes"}

    method: str = choice("laplace", "smoothing of the classes", ("laplace", "jelinek-mercer"))
    additive: float = positive(0.01, "δ, added to every count", grid=(1.0, 0.1, 0.01, 1e-3, 1e-4))
    smoothing: float = weight(0.7, "λ, the share of a class's own estimate", grid=(0.1, 0.3, 0.5, 0.7, 0.9, 0.99))
    background_additive: float = positive(1e-3, _BETA)
    background: Any = None

    def _begin(self, terms: int) -> None:
        super()._begin(terms)
        self.feature_count_ = np.zeros((len(self.classes_), terms))

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        n = len(self.classes_)
        rows, bounds = by_class(which, n)
        loops.sum_counts(X.indptr, X.indices, X.data, rows, bounds, weights, self.feature_count_)
        out = np.empty((X.shape[1], n))
        if self.method == "laplace":
            loops.laplace_logs(self.feature_count_, float(self.additive), out)
        else:
            background = _general_english(self, self.feature_count_.sum(axis=0))
            loops.mixture_logs(self.feature_count_, background, float(self.smoothing), out)
        self.feature_log_prob_ = out.T

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        scores = np.zeros((X.shape[0], len(self.classes_)))
        loops.score_counts(X.indptr, X.indices, X.data, term_major(self.feature_log_prob_), scores)
        return scores


@dataclass(kw_only=True, repr=False, eq=False)
class _SmoothedDocuments(GenerativeClassifier):
    """Classes of documents that are smoothed with general English (2.1) before they are looked at."""

    smoothing: float
    background_additive: float
    background: Any = None  # θ^GE of one's own instead of (4.10)

    def _ratios(self, X: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        """λ / ((1 - λ) θ^GE) by word, and 1 / |D| by document."""
        return ratios(self.background_, self.smoothing), inverse(lengths(X))

    def _add_log_ratios(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray, sums: np.ndarray) -> None:
        """Add Σ_i log(1 + λ θ̂^i / ((1 - λ) θ^GE)) of each class's documents."""
        rows, bounds = by_class(which, len(self.classes_))
        loops.sum_log_ratios(X.indptr, X.indices, X.data, rows, bounds, weights, *self._ratios(X), sums)

    def _add_scores(self, X: csr_matrix, scores: np.ndarray) -> np.ndarray:
        """Add Σ_w α_w log(1 + λ θ̂_w / ((1 - λ) θ^GE_w))."""
        loops.score_log_ratios(X.indptr, X.indices, X.data, *self._ratios(X), term_major(self.alpha_), scores)
        return scores


@dataclass(kw_only=True, repr=False, eq=False)
class SmoothedDirichletClassifier(_SmoothedDocuments, IncrementalClassifier):
    """The (approximate) smoothed Dirichlet: classes are geometric means of smoothed documents.

    ``partial_fit`` smooths each batch with (4.10) of all documents so far, that batch included. With a given
    ``background``, θ^GE of one's own instead of (4.10), any batches make the same classifier as ``fit``.

    With ``calibrate``, ``fit`` chooses how sure ``predict_proba`` is, ``sharpness_``: scores are multiplied by what
    makes every fifth document of each class likeliest under a classifier of the others. S alone, at the thesis's 1,
    leaves probabilities all but uniform. ``partial_fit`` keeps what there is, at first 1. The parameters are the fields
    below; ``fit_prior`` and ``class_prior`` (:class:`GenerativeClassifier`) count for more the smaller S is.
    """

    state: ClassVar = {**_TERMS, "background_": "terms", "divergence_": "classes"}

    smoothing: float = weight(
        1e-3, "λ, the share of a document's own words", grid=(1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5, 0.7, 0.9)
    )
    background_additive: float = positive(0.1, _BETA)
    cross_entropy: bool = parameter(False, "the document-dependent sum of (4.29) alone")
    scale: float = positive(1.0, "S: sharpens probabilities, changes no decision between equal priors")
    calibrate: bool = parameter(True, "how sure probabilities are is learnt from documents held out")
    sharpness_ = 1.0

    def fit(self, X: Any, y: Any, sample_weight: Any = None):
        super().fit(X, y, sample_weight)
        self.sharpness_ = self._chosen_sharpness(X, y, sample_weight) if self.calibrate else 1.0
        return self

    def _chosen_sharpness(self, X: Any, y: Any, sample_weight: Any) -> float:
        X, y = self._counts(X, y, reset=False)
        order, begin = by_class(np.searchsorted(self.classes_, y), len(self.classes_))
        held = np.zeros(len(y), dtype=bool)
        for start, stop in pairwise(begin):
            held[order[start + 4 : stop : 5]] = True
        if not held.any() or len(self.classes_) < 2:
            return 1.0
        weights = None if sample_weight is None else np.asarray(sample_weight)[~held]
        other = clone(self).set_params(calibrate=False).fit(X[~held], y[~held], weights)
        return sharpness(other.predict_joint_log_proba(X[held]), np.searchsorted(self.classes_, y[held]))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        scores = self.sharpness_ * self.predict_joint_log_proba(X)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def _begin(self, terms: int) -> None:
        super()._begin(terms)
        self.log_sums_ = np.zeros((len(self.classes_), terms))  # Σ_i log(1 + λ θ̂^i / ((1 - λ) θ^GE)) by class
        self.background_count_ = np.zeros(terms)

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        n = len(self.classes_)
        self.background_count_ += X.T @ weights
        self.background_ = _general_english(self, self.background_count_)
        self._add_log_ratios(X, which, weights, self.log_sums_)
        out, self.divergence_ = np.empty((X.shape[1], n)), np.empty(n)  # KL(α^T/S, θ^GE) of (4.36)
        loops.geometric_means(
            self.log_sums_, self.class_count_, self.background_, float(self.scale), out, self.divergence_
        )
        self.alpha_ = out.T

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        start = np.zeros(len(self.classes_)) if self.cross_entropy else -float(self.scale) * self.divergence_
        return self._add_scores(X, np.tile(start, (X.shape[0], 1)))


@dataclass(kw_only=True, repr=False, eq=False)
class _IterativeClassifier(GenerativeClassifier):
    """Classes fitted by iteration, one after the other: ``n_iter_`` is the largest number, ``converged_`` by class."""

    scale: float | None = positive(
        1000.0, "S, the same for all classes; none: estimated", words=("none",), grid=(10.0, 100.0, 1000.0, 10_000.0)
    )
    method: str = choice("newton", "of the iteration", fitting.METHODS)
    tolerance: float = 1e-6
    max_iter: int = 1000

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        out, ends = np.empty((X.shape[1], len(self.classes_))), []
        for k, (alpha, end) in enumerate(self._fits(X, which, weights)):
            out[:, k] = alpha
            ends.append(end)
        self.alpha_, self.scale_ = out.T, out.sum(axis=0)
        self.n_iter_ = max(1, *(end.n_iter for end in ends))
        self.converged_ = np.array([end.converged for end in ends])
        for label, end in zip(self.classes_, ends, strict=True):
            end.warn(f"{type(self).__name__} of class {label}")

    @abstractmethod
    def _fits(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> Iterator[tuple[np.ndarray, Convergence]]:
        """α of each class, and how its iteration ended."""


@dataclass(kw_only=True, repr=False, eq=False)
class DCMClassifier(_IterativeClassifier):
    """The Dirichlet compound multinomial. The parameters are the fields below, and those of its bases.

    ``method`` is Newton's, or Minka's iteration as in the thesis ("fixed-point"): the same estimate.
    """

    state: ClassVar = {**_TERMS, "scale_": "classes"}

    additive: float = positive(0.01, "δ of (4.11)", grid=(0.1, 0.01, 1e-3, 1e-4))

    def _fits(self, X, which, weights):
        rows, bounds = by_class(which, len(self.classes_))
        size, tails = lengths(X), self.method != "fixed-point"
        for first, last in pairwise(bounds):
            data = dcm.Occurrences.of(X, size, rows[first:last], weights, tails=tails)
            alpha, end = dcm.fit_alpha(data, self.scale, self.method, self.tolerance, self.max_iter, path=False)
            yield dcm.smoothed(alpha, float(self.additive)), end

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        scores = np.zeros((X.shape[0], len(self.classes_)))
        loops.score_compound(X.indptr, X.indices, X.data, term_major(self.alpha_), scores)
        if self.scale is None:  # otherwise the same for all classes (4.15)
            n = lengths(X)[:, None]
            scores += gammaln(self.scale_) - gammaln(self.scale_ + n)
        return scores


@dataclass(kw_only=True, repr=False, eq=False)
class DirichletClassifier(_SmoothedDocuments, _IterativeClassifier):
    """The Dirichlet over smoothed documents. The parameters are the fields below, and those of its bases.

    ``background`` is θ^GE of one's own instead of (4.10); ``method`` is as of :class:`DCMClassifier`.
    """

    state: ClassVar = {**_TERMS, "background_": "terms", "class_offset_": "classes", "scale_": "classes"}

    smoothing: float = weight(0.1, "λ, the share of a document's own words", grid=(1e-3, 1e-2, 0.1, 0.5, 0.9))
    background_additive: float = positive(0.01, _BETA)

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        self.background_ = _general_english(self, X.T @ weights)
        super()._learn(X, which, weights)
        self.class_offset_ = self._offsets(self.alpha_.T)

    def _fits(self, X, which, weights):
        n = len(self.classes_)
        log_sums = np.zeros((n, X.shape[1]))
        self._add_log_ratios(X, which, weights, log_sums)
        empty = np.bincount(which, weights * (lengths(X) == 0.0), n)
        levels, level_of = np.unique(self.background_, return_inverse=True)
        words_at = np.bincount(level_of, minlength=len(levels)).astype(np.float64)
        for k in range(n):
            each = 1.0 / self.class_count_[k] if self.class_count_[k] > 0.0 else 0.0
            # Minka's iteration as it is printed goes over the whole vocabulary
            seen = np.flatnonzero(log_sums[k]) if self.method == "newton" else np.arange(X.shape[1])
            unseen = words_at - np.bincount(level_of[seen], minlength=len(levels))
            left = np.flatnonzero(unseen)
            rest = np.log1p(-self.smoothing) * (1.0 - empty[k] * each)
            means = np.concatenate([log_sums[k, seen] * each + np.log(self.background_[seen]), np.log(levels[left])])
            times = np.concatenate([np.ones(len(seen)), unseen[left]])
            alpha, end = dirichlet.fit_alpha(
                means + rest, times, self.scale, self.method, self.tolerance, self.max_iter, path=False
            )
            at_level = np.zeros(len(levels))
            at_level[left] = alpha[len(seen) :]
            whole = at_level[level_of]
            whole[seen] = alpha[: len(seen)]
            yield whole, end

    def _offsets(self, alpha: np.ndarray) -> np.ndarray:
        """log Γ(S) - Σ_j log Γ(α_j) + Σ_j α_j log((1 - λ) θ^GE_j) by class, less the same of the classes' mean.

        Classes may differ by 1e-8 in sums of a million: differences are taken word by word, before they are added up.
        """
        mean = alpha.mean(axis=1)
        at_rest = np.log((1.0 - self.smoothing) * self.background_)
        own = gammaln(mean)
        words = [(column - mean) @ at_rest - (gammaln(column) - own).sum() for column in alpha.T]
        return np.array(words) + gammaln(self.scale_) - gammaln(mean.sum())

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        scores = np.tile(self.class_offset_, (X.shape[0], 1))
        scores[lengths(X) == 0.0] -= self.scale_ * np.log1p(-self.smoothing)
        return self._add_scores(X, scores)
