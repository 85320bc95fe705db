"""What the generative classifiers share: the scikit-learn side of P(T|D) ∝ P(D|T) P(T).

A classifier knows its classes' parameters and adds, for every document, log P(D|T) up to what is the same for all
classes (4.12). Priors are uniform unless asked for, as in the thesis.

Fitted state is plain NumPy arrays. Those over classes x terms are stored with a term's values side by side (Fortran
order): that is how the scoring loops want them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_non_negative, validate_data

from sdretrieval.distributions.background import as_counts
from sdretrieval.errors import ParameterError


class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """Base of the estimators; subclasses say how to estimate and how to score."""

    # set by __init__ of the subclasses
    fit_prior: bool
    class_prior: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None):
        """Estimate the classes from counts ``X`` (documents x terms, sparse or dense) and labels ``y``."""
        self._check_parameters()
        X, y = _counts(self, X, y)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        weights = _weights(sample_weight, X)
        self._forget()
        self._learn(as_counts(X), which, weights)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each document."""
        scores = self.predict_joint_log_proba(X)
        return self.classes_[np.argmax(scores, axis=1)]

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """log P(D|T) + log P(T), documents x classes, up to a number of each document's own."""
        check_is_fitted(self)
        X = _counts(self, X, reset=False)
        return self._log_density(as_counts(X)) + self.class_log_prior_

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of the classes; of two classes the difference, second less first.

        With classes (rest, relevant) and uniform priors the difference is the ranking function (4.13).
        """
        scores = self.predict_joint_log_proba(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(T|D)."""
        from scipy.special import logsumexp

        scores = self.predict_joint_log_proba(X)
        return scores - logsumexp(scores, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(T|D)."""
        return np.exp(self.predict_log_proba(X))

    def _set_prior(self) -> None:
        n = len(self.classes_)
        if self.class_prior is not None:
            prior = np.asarray(self.class_prior, dtype=np.float64)
            if prior.shape != (n,) or not (prior > 0.0).all() or not np.isclose(prior.sum(), 1.0):
                raise ParameterError(
                    f"class_prior must be {n} positive numbers that sum to one, got {self.class_prior}"
                )
            self.class_log_prior_ = np.log(prior)
        elif self.fit_prior:
            with np.errstate(divide="ignore"):
                self.class_log_prior_ = np.log(self.class_count_) - np.log(self.class_count_.sum())
        else:
            self.class_log_prior_ = np.full(n, -np.log(n))

    def _forget(self) -> None:
        """Drop what an earlier fit has left."""

    @abstractmethod
    def _check_parameters(self) -> None: ...

    @abstractmethod
    def _learn(self, X: csr_matrix, which: np.ndarray, weights: np.ndarray) -> None: ...

    @abstractmethod
    def _log_density(self, X: csr_matrix) -> np.ndarray: ...

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on scikit-learn's test blobs, which are not counts (as MultinomialNB)
        return tags


class IncrementalClassifier(GenerativeClassifier):
    """A generative classifier whose classes are sums over documents."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None):
        """Add documents. The first call needs ``classes``, all there will ever be."""
        first = not hasattr(self, "classes_")
        if first:
            self._check_parameters()
            if classes is None:
                raise ParameterError("the first call of partial_fit needs the classes", remedy="Pass classes=[...].")
        X, y = _counts(self, X, y, reset=first)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(classes)
            self._forget()
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ParameterError(f"classes {classes} are not those of earlier calls, {self.classes_}")
        which = np.searchsorted(self.classes_, y)
        known = which < len(self.classes_)
        known[known] = self.classes_[which[known]] == y[known]
        if not known.all():
            raise ParameterError(
                f"label {y[~known][0]!r} is not one of the classes {self.classes_.tolist()}",
                remedy="Name every class at the first call of partial_fit.",
            )
        self._learn(as_counts(X), which, _weights(sample_weight, X))
        return self


def _counts(estimator: Any, X: Any, *y: Any, reset: bool = True) -> Any:
    """What scikit-learn checks of X (and y), and that counts are not negative."""
    checked = validate_data(estimator, X, *y, reset=reset, accept_sparse="csr", dtype=np.float64)
    check_non_negative(checked[0] if y else checked, type(estimator).__name__)
    return checked


def _weights(sample_weight: Any, X: Any) -> np.ndarray:
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


def by_class(which: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents in the order of their classes, and where each class begins."""
    bounds = np.zeros(n_classes + 1, dtype=np.int64)
    np.cumsum(np.bincount(which, minlength=n_classes), out=bounds[1:])
    return np.argsort(which, kind="stable"), bounds


def term_major(values: np.ndarray) -> np.ndarray:
    """A terms x classes array without copying, where the array is stored so."""
    return np.ascontiguousarray(values.T)


def check_between(name: str, value: float, low: float, high: float, *, closed: bool = False) -> None:
    good = low <= value <= high if closed else low < value < high
    if not good or not np.isfinite(value):
        bounds = f"[{low:g}, {high:g}]" if closed else f"({low:g}, {high:g})"
        raise ParameterError(f"{name} must be in {bounds}, got {value}")
