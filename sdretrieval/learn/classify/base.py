"""What the generative classifiers share: the scikit-learn side of P(T|D) ∝ P(D|T) P(T).

A classifier knows its classes' parameters and adds, for every document, log P(D|T) up to what is the same for all
classes (4.12). Priors are uniform unless asked for, as in the thesis.

Fitted state is plain NumPy arrays. Those over classes x terms are stored with a term's values side by side (Fortran
order): that is how the scoring loops want them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_non_negative,
    validate_data,
)  # scikit-learn's own check has no public name

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import check, parameter
from sdretrieval.estimate.distributions.general_english import as_counts


@dataclass(kw_only=True, repr=False, eq=False)
class GenerativeClassifier(ClassifierMixin, BaseEstimator):
    """Base of the estimators; subclasses say how to estimate and how to score.

    Parameters
    ----------
    fit_prior : bool
        Class priors from the training set instead of uniform ones.
    class_prior : array of one number per class, optional
        Priors of one's own.
    """

    state: ClassVar[dict[str, str]] = {}  # fitted attributes that predicting needs, with their shapes

    fit_prior: bool = parameter(False, "class priors from the training set instead of uniform ones")
    class_prior: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None):
        """Estimate the classes.

        Parameters
        ----------
        X : matrix of counts, documents x terms, sparse or dense
        y : label of each document
        sample_weight : weight of each document, optional

        Returns
        -------
        self
        """
        check(self, type(self).__name__)
        X, y = self._counts(X, y)
        check_classification_targets(y)
        self.classes_, which = np.unique(y, return_inverse=True)
        self._begin(X.shape[1])
        return self._add(X, which, sample_weight)

    def _begin(self, terms: int) -> None:
        """Classes without documents."""
        self.class_count_ = np.zeros(len(self.classes_))

    def _add(self, X: Any, which: np.ndarray, sample_weight: Any):
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.class_count_ += np.bincount(which, weights, len(self.classes_))
        self._learn(as_counts(X), which, weights)
        self._set_prior()
        return self

    def _counts(self, X: Any, *y: Any, reset: bool = True) -> Any:
        """What scikit-learn checks of X (and y), and that counts are not negative."""
        checked = validate_data(self, X, *y, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_non_negative(checked[0] if y else checked, type(self).__name__)
        return checked

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each document."""
        scores = self.predict_joint_log_proba(X)
        return self.classes_[np.argmax(scores, axis=1)]

    def predict_joint_log_proba(self, X: Any) -> np.ndarray:
        """log P(D|T) + log P(T), documents x classes, up to a number of each document's own."""
        check_is_fitted(self)
        X = self._counts(X, reset=False)
        return self._log_density(as_counts(X)) + self.class_log_prior_

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of the classes; of two classes the difference, second less first.

        With classes (rest, relevant) and uniform priors the difference is the ranking function (4.13).
        """
        scores = self.predict_joint_log_proba(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """log P(T|D)."""
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
        """Add documents, as :meth:`fit` takes them.

        The first call needs ``classes``, all there will ever be.
        """
        first = not hasattr(self, "classes_")
        if first:
            check(self, type(self).__name__)
            if classes is None:
                raise ParameterError("the first call of partial_fit needs the classes", remedy="Pass classes=[...].")
        X, y = self._counts(X, y, reset=first)
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(classes)
            self._begin(X.shape[1])
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ParameterError(f"classes {classes} are not those of earlier calls, {self.classes_}")
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ParameterError(
                f"label {y[~known][0]!r} is not one of the classes {self.classes_.tolist()}",
                remedy="Name every class at the first call of partial_fit.",
            )
        return self._add(X, np.searchsorted(self.classes_, y), sample_weight)


def sharpness(logits: np.ndarray, truth: np.ndarray) -> float:
    """The factor of the logits under which the true classes are the most likely, between 1e-4 and 1e6."""
    rows = np.arange(len(truth))

    def loss(log_factor: float) -> float:
        scaled = np.exp(log_factor) * logits
        return float((logsumexp(scaled, axis=1) - scaled[rows, truth]).mean())

    best = minimize_scalar(loss, bounds=(np.log(1e-4), np.log(1e6)), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x))


def by_class(which: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents in the order of their classes, and where each class begins."""
    bounds = np.zeros(n_classes + 1, dtype=np.int64)
    np.cumsum(np.bincount(which, minlength=n_classes), out=bounds[1:])
    return np.argsort(which, kind="stable"), bounds


def term_major(values: np.ndarray) -> np.ndarray:
    """A terms x classes array without copying, where the array is stored so."""
    return np.ascontiguousarray(values.T)
