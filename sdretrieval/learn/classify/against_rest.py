"""The ranking form: relevant against the rest, one label at a time (4.6), (4.13).

    score(D) = log P(D | β^R) - log P(D | β^N)

β^R from the documents of a label, β^N from all others. A document may have any number of labels, or none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions.general_english import as_counts, from_totals

REST = ("all", "labels")


@dataclass(repr=False, eq=False)
class RelevantAgainstRest(MetaEstimatorMixin, BaseEstimator):
    """One two-class estimator for each label.

    Parameters
    ----------
    estimator : any classifier with ``decision_function``
    rest : {"all", "labels"}
        ``"all"``: every document without the label; ``"labels"``: documents of the other labels, once for each of
        them, as (4.6) is printed: a document of label T that has a second label is then in both classes. General
        English is (4.10) of all training documents, each counted once, wherever the estimator takes a ``background``.

    Examples
    --------
    >>> from sdretrieval.learn.classify import SmoothedDirichletClassifier
    >>> X, Y = [[3, 0, 1], [1, 1, 2], [0, 4, 1]], [["a"], ["a", "b"], ["b"]]
    >>> model = RelevantAgainstRest(SmoothedDirichletClassifier()).fit(X, Y)
    >>> model.labels_.tolist(), model.decision_function(X).shape
    (['a', 'b'], (3, 2))
    """

    estimator: Any
    rest: str = field(default="all", kw_only=True)

    def fit(self, X: Any, Y: Any, labels: Iterable[Any] | None = None, sample_weight: Any = None):
        """Fit every label.

        Parameters
        ----------
        X : counts, documents x terms
        Y : a 0/1 matrix documents x labels, or a list of each document's labels
        labels : some of those in the list, or names of the matrix's columns
        sample_weight : weight of each document, optional

        Returns
        -------
        self
        """
        if self.rest not in REST:
            raise ParameterError(f"unknown rest {self.rest!r}", remedy=f"One of: {', '.join(REST)}.")
        X = as_counts(X)
        wanted, names = indicator(Y, labels)
        if wanted.shape[0] != X.shape[0]:
            raise ParameterError(f"{X.shape[0]} documents but {wanted.shape[0]} sets of labels")
        none = [str(name) for name, n in zip(names, wanted.sum(axis=0), strict=True) if not 0 < n < X.shape[0]]
        if none:
            raise ParameterError(f"these labels have no documents, or all of them: {', '.join(none)}")
        self.labels_ = names
        self.n_features_in_ = X.shape[1]
        self.estimators_ = []
        background = {} if self.rest == "all" else self._background(X, sample_weight)
        for t in range(len(names)):
            rows, relevant = self._classes(wanted, t)
            weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)[rows]}
            part = X if self.rest == "all" else X[rows]
            estimator = clone(self.estimator).set_params(**background)
            self.estimators_.append(estimator.fit(part, relevant, **weights))
        return self

    def _background(self, X: csr_matrix, sample_weight: Any) -> dict[str, np.ndarray]:
        """θ^GE of all training documents: the rows that one label's estimator sees are selected, and some twice."""
        given = self.estimator.get_params()
        if given.get("background", ()) is not None:
            return {}
        weights = np.ones(X.shape[0]) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return {"background": from_totals(X.T @ weights, float(given["background_additive"]))}

    def _classes(self, wanted: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        if self.rest == "all":
            return np.arange(len(wanted)), wanted[:, t]
        own = np.flatnonzero(wanted[:, t])
        others = [np.flatnonzero(wanted[:, s]) for s in range(wanted.shape[1]) if s != t]
        rows = np.concatenate([own, *others])
        return rows, np.arange(len(rows)) < len(own)

    def decision_function(self, X: Any) -> np.ndarray:
        """(4.13), documents x labels."""
        check_is_fitted(self, "estimators_")
        X = as_counts(X)
        return np.column_stack([estimator.decision_function(X) for estimator in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """0/1 matrix: the score is positive."""
        return (self.decision_function(X) > 0.0).astype(np.int64)


def indicator(Y: Any, labels: Iterable[Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A boolean matrix documents x labels and the labels' names, from such a matrix or from lists of labels."""
    if issparse(Y) or (isinstance(Y, np.ndarray) and Y.ndim == 2):
        matrix = np.asarray(Y.todense() if issparse(Y) else Y).astype(bool)
        names = np.asarray(list(labels)) if labels is not None else np.arange(matrix.shape[1])
        if len(names) != matrix.shape[1]:
            raise ParameterError(f"{len(names)} names for {matrix.shape[1]} labels")
        return matrix, names
    sets = [{own} if isinstance(own, str) or np.isscalar(own) else set(own) for own in Y]
    names = np.asarray(list(labels) if labels is not None else sorted(set().union(*sets)))
    return np.array([[name in own for name in names.tolist()] for own in sets], dtype=bool), names
