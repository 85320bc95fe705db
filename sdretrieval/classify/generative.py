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

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.classify.base import (
    GenerativeClassifier,
    IncrementalClassifier,
    by_class,
    check_between,
    term_major,
)
from sdretrieval.distributions import dcm, dirichlet, loops
from sdretrieval.distributions.background import check_background, from_totals, inverse, lengths, ratios
from sdretrieval.distributions.convergence import Convergence
from sdretrieval.errors import ParameterError


class MultinomialClassifier(IncrementalClassifier):
    """Naive Bayes on word counts.

    method               "laplace" (4.8) or "jelinek-mercer" (4.9)
    additive             δ of (4.8)
    smoothing            λ of (4.9), the share of a class's own estimate
    background_additive  β of (4.10), general English from all training documents
    fit_prior            class priors from the training set instead of uniform ones
    class_prior          priors of one's own
    """

    def __init__(
        self,
        *,
        method: str = "laplace",
        additive: float = 0.01,
        smoothing: float = 0.7,
        background_additive: float = 1e-3,
        fit_prior: bool = False,
        class_prior: Any = None,
    ) -> None:
        self.method = method
        self.additive = additive
        self.smoothing = smoothing
        self.background_additive = background_additive
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _check_parameters(self) -> None:
        if self.method not in ("laplace", "jelinek-mercer"):
            raise ParameterError(f"unknown method {self.method!r}", remedy="One of: laplace, jelinek-mercer.")
        check_between("additive", self.additive, 0.0, np.inf)
        check_between("smoothing", self.smoothing, 0.0, 1.0)
        check_between("background_additive", self.background_additive, 0.0, np.inf)

    def _forget(self) -> None:
        for name in ("feature_count_", "class_count_"):
            self.__dict__.pop(name, None)

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        n = len(self.classes_)
        if not hasattr(self, "feature_count_"):
            self.feature_count_ = np.zeros((n, X.shape[1]))
            self.class_count_ = np.zeros(n)
        rows, bounds = by_class(which, n)
        loops.sum_counts(X.indptr, X.indices, X.data, rows, bounds, weights, self.feature_count_)
        self.class_count_ += np.bincount(which, weights, n)
        out = np.empty((X.shape[1], n))
        if self.method == "laplace":
            loops.laplace_logs(self.feature_count_, float(self.additive), out)
        else:
            background = from_totals(self.feature_count_.sum(axis=0), float(self.background_additive))
            loops.mixture_logs(self.feature_count_, background, float(self.smoothing), out)
        self.feature_log_prob_ = out.T
        self._set_prior()

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        scores = np.zeros((X.shape[0], len(self.classes_)))
        loops.score_counts(X.indptr, X.indices, X.data, term_major(self.feature_log_prob_), scores)
        return scores


class SmoothedDirichletClassifier(IncrementalClassifier):
    """The (approximate) smoothed Dirichlet: classes are geometric means of smoothed documents.

    smoothing            λ of (2.1), the share of a document's own words
    background_additive  β of (4.10), general English from all training documents
    cross_entropy        SD-CE: only the document-dependent sum of (4.29), without the normaliser's part
    scale                S; it sharpens the probabilities but does not change which class is the best
    background           θ^GE of one's own instead of (4.10), e.g. of a whole collection
    fit_prior, class_prior  as in MultinomialClassifier; note that they count for more the smaller S is

    ``partial_fit`` smooths each batch with (4.10) of all documents so far, that batch included. With a given
    ``background`` any batches make the same classifier as ``fit``.
    """

    def __init__(
        self,
        *,
        smoothing: float = 1e-3,
        background_additive: float = 0.1,
        cross_entropy: bool = False,
        scale: float = 1.0,
        background: Any = None,
        fit_prior: bool = False,
        class_prior: Any = None,
    ) -> None:
        self.smoothing = smoothing
        self.background_additive = background_additive
        self.cross_entropy = cross_entropy
        self.scale = scale
        self.background = background
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _check_parameters(self) -> None:
        check_between("smoothing", self.smoothing, 0.0, 1.0)
        check_between("background_additive", self.background_additive, 0.0, np.inf)
        check_between("scale", self.scale, 0.0, np.inf)

    def _forget(self) -> None:
        for name in ("log_sums_", "class_count_", "background_count_"):
            self.__dict__.pop(name, None)

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        n = len(self.classes_)
        if not hasattr(self, "log_sums_"):
            self.log_sums_ = np.zeros((n, X.shape[1]))  # Σ_i log(1 + λ θ̂^i / ((1 - λ) θ^GE)) by class
            self.class_count_ = np.zeros(n)
            self.background_count_ = np.zeros(X.shape[1])
        self.background_count_ += X.T @ weights
        if self.background is None:
            self.background_ = from_totals(self.background_count_, float(self.background_additive))
        else:
            self.background_ = check_background(self.background, X.shape[1])
        rows, bounds = by_class(which, n)
        loops.sum_log_ratios(
            X.indptr, X.indices, X.data, rows, bounds, weights, ratios(self.background_, self.smoothing),
            inverse(lengths(X)), self.log_sums_,
        )  # fmt: skip
        self.class_count_ += np.bincount(which, weights, n)
        out, self.divergence_ = np.empty((X.shape[1], n)), np.empty(n)  # KL(α^T/S, θ^GE) of (4.36)
        loops.geometric_means(
            self.log_sums_, self.class_count_, self.background_, float(self.scale), out, self.divergence_
        )
        self.alpha_ = out.T
        self._set_prior()

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        start = np.zeros(len(self.classes_)) if self.cross_entropy else -float(self.scale) * self.divergence_
        scores = np.tile(start, (X.shape[0], 1))
        loops.score_log_ratios(
            X.indptr, X.indices, X.data, ratios(self.background_, self.smoothing), inverse(lengths(X)),
            term_major(self.alpha_), scores,
        )  # fmt: skip
        return scores


class _IterativeClassifier(GenerativeClassifier):
    """Classes fitted by iteration: ``n_iter_`` is the largest number, ``converged_`` by class."""

    def _ended(self, ends: list[Convergence], what: str) -> None:
        self.n_iter_ = max(1, *(end.n_iter for end in ends))
        self.converged_ = np.array([end.converged for end in ends])
        for label, end in zip(self.classes_, ends, strict=True):
            end.warn(f"{what} of class {label}")


class DCMClassifier(_IterativeClassifier):
    """The Dirichlet compound multinomial.

    scale      S, the same for all classes; None estimates one for each
    additive   δ of (4.11)
    method     "newton" or "fixed-point" (Minka's iteration, as in the thesis): the same estimate
    tolerance, max_iter   when to stop
    """

    def __init__(
        self,
        *,
        scale: float | None = 1000.0,
        additive: float = 0.01,
        method: str = "newton",
        tolerance: float = 1e-6,
        max_iter: int = 1000,
        fit_prior: bool = False,
        class_prior: Any = None,
    ) -> None:
        self.scale = scale
        self.additive = additive
        self.method = method
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _check_parameters(self) -> None:
        if self.scale is not None:
            check_between("scale", self.scale, 0.0, np.inf)
        check_between("additive", self.additive, 0.0, np.inf)

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        n = len(self.classes_)
        self.class_count_ = np.bincount(which, weights, n)
        rows, bounds = by_class(which, n)
        out, ends, size = np.empty((X.shape[1], n)), [], lengths(X)
        for k in range(n):
            data = dcm.Occurrences.of(
                X, size, rows[bounds[k] : bounds[k + 1]], weights, tails=self.method != "fixed-point"
            )
            alpha, end = dcm.fit_alpha(data, self.scale, self.method, self.tolerance, self.max_iter, path=False)
            out[:, k] = dcm.smoothed(alpha, float(self.additive))
            ends.append(end)
        self.alpha_ = out.T
        self.scale_ = out.sum(axis=0)
        self._ended(ends, "the DCM")
        self._set_prior()

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        from scipy.special import gammaln

        scores = np.zeros((X.shape[0], len(self.classes_)))
        loops.score_compound(X.indptr, X.indices, X.data, term_major(self.alpha_), scores)
        if self.scale is None:  # otherwise the same for all classes (4.15)
            n = lengths(X)[:, None]
            scores += gammaln(self.scale_) - gammaln(self.scale_ + n)
        return scores


class DirichletClassifier(_IterativeClassifier):
    """The Dirichlet over smoothed documents.

    scale                S, the same for all classes; None estimates one for each
    smoothing            λ of (2.1), the share of a document's own words
    background_additive  β of (4.10)
    background           θ^GE of one's own instead of (4.10)
    method               "newton" or "fixed-point" (Minka's iteration, as in the thesis): the same estimate
    tolerance, max_iter  when to stop
    """

    def __init__(
        self,
        *,
        scale: float | None = 1000.0,
        smoothing: float = 0.1,
        background_additive: float = 0.01,
        background: Any = None,
        method: str = "newton",
        tolerance: float = 1e-6,
        max_iter: int = 1000,
        fit_prior: bool = False,
        class_prior: Any = None,
    ) -> None:
        self.scale = scale
        self.smoothing = smoothing
        self.background_additive = background_additive
        self.background = background
        self.method = method
        self.tolerance = tolerance
        self.max_iter = max_iter
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _check_parameters(self) -> None:
        if self.scale is not None:
            check_between("scale", self.scale, 0.0, np.inf)
        check_between("smoothing", self.smoothing, 0.0, 1.0)
        check_between("background_additive", self.background_additive, 0.0, np.inf)

    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None:
        n = len(self.classes_)
        self.class_count_ = np.bincount(which, weights, n)
        if self.background is None:
            self.background_ = from_totals(X.T @ weights, float(self.background_additive))
        else:
            self.background_ = check_background(self.background, X.shape[1])
        rows, bounds = by_class(which, n)
        log_sums = np.zeros((n, X.shape[1]))
        size = lengths(X)
        loops.sum_log_ratios(
            X.indptr, X.indices, X.data, rows, bounds, weights, ratios(self.background_, self.smoothing),
            inverse(size), log_sums,
        )  # fmt: skip
        empty = np.bincount(which, weights * (size == 0.0), n)
        levels, level_of = np.unique(self.background_, return_inverse=True)
        words_at = np.bincount(level_of, minlength=len(levels)).astype(np.float64)
        out, ends = np.empty((X.shape[1], n)), []
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
            out[:, k] = at_level[level_of]
            out[seen, k] = alpha[: len(seen)]
            ends.append(end)
        self.alpha_ = out.T
        self.scale_ = out.sum(axis=0)
        self.class_offset_ = self._offsets(out)
        self._ended(ends, "the Dirichlet")
        self._set_prior()

    def _offsets(self, alpha: np.ndarray) -> np.ndarray:
        """log Γ(S) - Σ_j log Γ(α_j) + Σ_j α_j log((1 - λ) θ^GE_j) by class, less the same of the classes' mean.

        Classes may differ by 1e-8 in sums of a million: differences are taken word by word, before they are added up.
        """
        from scipy.special import gammaln

        mean = alpha.mean(axis=1)
        at_rest = np.log((1.0 - self.smoothing) * self.background_)
        own = gammaln(mean)
        words = [(column - mean) @ at_rest - (gammaln(column) - own).sum() for column in alpha.T]
        return np.array(words) + gammaln(self.scale_) - gammaln(mean.sum())

    def _log_density(self, X: csr_matrix) -> np.ndarray:
        size = lengths(X)
        scores = np.tile(self.class_offset_, (X.shape[0], 1))
        scores[size == 0.0] -= self.scale_ * np.log1p(-self.smoothing)
        loops.score_log_ratios(
            X.indptr, X.indices, X.data, ratios(self.background_, self.smoothing), inverse(size),
            term_major(self.alpha_), scores,
        )  # fmt: skip
        return scores
