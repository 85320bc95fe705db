"""Clusters of documents as mixtures of the classifiers' distributions, by EM (thesis section 7.1).

    P(D) = Σ_k π_k P(D | T_k)

    E-step   r_ik = P(T_k | D_i), from log P(D|T_k) = F_i · W_k + b_k, up to what all clusters share
    M-step   π_k = Σ_i r_ik / N, and W_k, b_k from the weighted sums Σ_i r_ik F_i, Σ_i r_ik

===========  ================================================  ==============================================
mixture      F of a document                                   W_k, b_k
===========  ================================================  ==============================================
multinomial  f, its counts                                     log θ_k (4.8), 0
SD           φ = log(1 + λ θ̂ / ((1 - λ) θ^GE)), (4.28)         S a_k, -S KL(a_k, θ^GE), (4.36)
===========  ================================================  ==============================================

with a_k = α_k/S the geometric mean (3.33) of the smoothed documents, each counted r_ik times: the M-step in closed
form, so that no step lowers the likelihood. Under (3.25) the likelihood grows with S without end, so S is not
estimated; it says how sure a document's words make the E-step.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.special import logsumexp, rel_entr
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import check, count, positive, weight
from sdretrieval.estimate.distributions.general_english import as_counts, from_totals, inverse, lengths, ratios


@dataclass(kw_only=True, repr=False, eq=False)
class _Mixture(ClusterMixin, BaseEstimator):
    """EM from ``n_init`` starts, of which the likeliest is kept.

    A start is k-means++'s choice of documents, every document with the one most like it.
    """

    state: ClassVar[tuple[str, ...]] = ()

    n_components: int = count(8, "number of clusters")
    n_init: int = count(5, "starts, of which the likeliest is kept")
    max_iter: int = count(100, "steps of EM")
    tol: float = positive(1e-4, "EM ends when the mean log-likelihood of a document gains less")
    random_state: Any = None

    def fit(self, X: Any, y: Any = None):
        """Find the clusters.

        Parameters
        ----------
        X : matrix of counts, documents x terms, sparse or dense
        y : ignored

        Returns
        -------
        self
        """
        check(self, type(self).__name__)
        X = self._counts(X)
        if X.shape[0] < self.n_components:
            raise ParameterError(
                f"{self.n_components} clusters of {X.shape[0]} documents", remedy="Ask for fewer: n_components."
            )
        self._prepare(X)
        F, rng = self._features(X), check_random_state(self.random_state)
        unit = csr_matrix(diags(inverse(np.sqrt(np.asarray(F.multiply(F).sum(axis=1)).ravel()))) @ F)
        best: dict[str, Any] = {}
        for _ in range(self.n_init):
            seeds, _ = kmeans_plusplus(unit, self.n_components, random_state=rng)
            self._em(F, np.asarray((unit @ seeds.T).argmax(axis=1)).ravel())
            if not best or self.log_likelihood_path_[-1] > best["log_likelihood_path_"][-1]:
                names = ("weights_", "log_likelihood_path_", "labels_", "n_iter_", "converged_", *self.state)
                best = {name: getattr(self, name) for name in names}
        for name, value in best.items():
            setattr(self, name, value)
        return self

    def _em(self, F: csr_matrix, labels: np.ndarray) -> None:
        n, path = F.shape[0], []
        shares = np.eye(self.n_components)[labels]
        self.converged_ = False
        for _ in range(self.max_iter):
            masses = shares.sum(axis=0)
            self.weights_ = masses / n
            self._maximise(np.asarray((F.T @ shares).T), masses)
            joint = self._joint(F)
            each = logsumexp(joint, axis=1, keepdims=True)
            shares = np.exp(joint - each)
            path.append(float(each.mean()))
            if len(path) > 1 and path[-1] - path[-2] < self.tol:
                self.converged_ = True
                break
        self.log_likelihood_path_, self.n_iter_ = np.array(path), len(path)
        self.labels_ = joint.argmax(axis=1)

    def _joint(self, F: csr_matrix) -> np.ndarray:
        """log π_k + log P(D|T_k), up to a number of each document's own."""
        W, b = self._linear()
        with np.errstate(divide="ignore"):  # a cluster that lost all its documents
            return np.asarray(F @ W.T) + (b + np.log(self.weights_))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(cluster | document)."""
        check_is_fitted(self)
        joint = self._joint(self._features(self._counts(X, reset=False)))
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(cluster | document)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable cluster of each document."""
        return self.predict_log_proba(X).argmax(axis=1)

    def _counts(self, X: Any, *, reset: bool = True) -> csr_matrix:
        checked = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_non_negative(checked, type(self).__name__)
        return as_counts(checked)

    def _prepare(self, X: csr_matrix) -> None:
        """What features need to know of all documents."""

    @abstractmethod
    def _features(self, X: csr_matrix) -> csr_matrix: ...

    @abstractmethod
    def _maximise(self, sums: np.ndarray, masses: np.ndarray) -> None: ...

    @abstractmethod
    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """W and b."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags


@dataclass(kw_only=True, repr=False, eq=False)
class MultinomialMixture(_Mixture):
    """Clusters are multinomials, Laplace smoothed. The parameters are the fields below, and those of EM."""

    state: ClassVar = ("feature_log_prob_",)

    additive: float = positive(0.01, "δ, added to every count")

    def _features(self, X: csr_matrix) -> csr_matrix:
        return X

    def _maximise(self, sums: np.ndarray, masses: np.ndarray) -> None:
        counts = sums + self.additive
        self.feature_log_prob_ = np.log(counts) - np.log(counts.sum(axis=1, keepdims=True))

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        return self.feature_log_prob_, np.zeros(len(self.feature_log_prob_))


@dataclass(kw_only=True, repr=False, eq=False)
class SmoothedDirichletMixture(_Mixture):
    """Clusters are smoothed Dirichlets: geometric means of their documents. The parameters are the fields below.

    ``scale`` is S, by default such that S λ is thirty times the mean length of the documents; with much less the
    E-step is so unsure that clusters run together.

    >>> X = [[3, 1, 0, 0], [2, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 2]]
    >>> labels = SmoothedDirichletMixture(n_components=2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    state: ClassVar = ("alpha_", "divergence_")

    smoothing: float = weight(0.1, "λ, the share of a document's own words")
    scale: float | None = None
    background_additive: float = positive(0.1, "β of (4.10), added to every word's count in general English")

    def _prepare(self, X: csr_matrix) -> None:
        if self.scale is not None and not self.scale > 0:
            raise ParameterError(f"scale must be positive or None, got {self.scale!r}")
        self.background_ = from_totals(np.asarray(X.sum(axis=0)).ravel(), float(self.background_additive))
        sharpness = 30.0 * max(float(X.sum()) / X.shape[0], 1.0)  # S λ
        self.scale_ = sharpness / self.smoothing if self.scale is None else float(self.scale)

    def _features(self, X: csr_matrix) -> csr_matrix:
        F = csr_matrix(diags(inverse(lengths(X))) @ X @ diags(ratios(self.background_, self.smoothing)))
        F.data = np.log1p(F.data)
        return F

    def _maximise(self, sums: np.ndarray, masses: np.ndarray) -> None:
        means = sums * inverse(masses)[:, None]
        a = self.background_ * np.exp(means)
        a /= a.sum(axis=1, keepdims=True)  # (3.33)
        self.alpha_ = self.scale_ * a
        self.divergence_ = rel_entr(a, self.background_).sum(axis=1)

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        return self.alpha_, -self.scale_ * self.divergence_
