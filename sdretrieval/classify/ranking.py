"""The ranking form: relevant against the rest, one topic at a time (4.6), (4.13).

    score(D) = log P(D | β^R) - log P(D | β^N)

β^R from the documents of a topic, β^N from all others. A document may have any number of topics, or none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted

from sdretrieval.distributions.background import as_counts
from sdretrieval.errors import ParameterError

REST = ("all", "topics")


class RelevantAgainstRest(MetaEstimatorMixin, BaseEstimator):
    """One two-class estimator for each topic.

    estimator  any classifier with ``decision_function``
    rest       "all": every document without the topic; "topics": documents of the other topics, once for each of
               them, as (4.6) is printed: a document of topic T that has a second topic is then in both classes

    ``fit(X, Y)`` takes a 0/1 matrix documents x topics, or a list of each document's topics.

    >>> from sdretrieval.classify import SmoothedDirichletClassifier
    >>> X, Y = [[3, 0, 1], [1, 1, 2], [0, 4, 1]], [["a"], ["a", "b"], ["b"]]
    >>> model = RelevantAgainstRest(SmoothedDirichletClassifier()).fit(X, Y)
    >>> model.topics_.tolist(), model.decision_function(X).shape
    (['a', 'b'], (3, 2))
    """

    def __init__(self, estimator: Any, *, rest: str = "all") -> None:
        self.estimator = estimator
        self.rest = rest

    def fit(self, X: Any, Y: Any, topics: Iterable[Any] | None = None, sample_weight: Any = None):
        """Fit every topic; ``topics`` chooses among those of a list of labels, or names the columns of a matrix."""
        if self.rest not in REST:
            raise ParameterError(f"unknown rest {self.rest!r}", remedy=f"One of: {', '.join(REST)}.")
        X = as_counts(X)
        wanted, names = indicator(Y, topics)
        if wanted.shape[0] != X.shape[0]:
            raise ParameterError(f"{X.shape[0]} documents but {wanted.shape[0]} sets of topics")
        none = [str(name) for name, n in zip(names, wanted.sum(axis=0), strict=True) if not 0 < n < X.shape[0]]
        if none:
            raise ParameterError(f"these topics have no documents, or all of them: {', '.join(none)}")
        self.topics_ = names
        self.n_features_in_ = X.shape[1]
        self.estimators_ = []
        for t in range(len(names)):
            rows, relevant = self._classes(wanted, t)
            weights = {} if sample_weight is None else {"sample_weight": np.asarray(sample_weight)[rows]}
            part = X if self.rest == "all" else X[rows]
            self.estimators_.append(clone(self.estimator).fit(part, relevant, **weights))
        return self

    def _classes(self, wanted: np.ndarray, t: int) -> tuple[np.ndarray, np.ndarray]:
        if self.rest == "all":
            return np.arange(len(wanted)), wanted[:, t]
        own = np.flatnonzero(wanted[:, t])
        others = [np.flatnonzero(wanted[:, s]) for s in range(wanted.shape[1]) if s != t]
        rows = np.concatenate([own, *others])
        return rows, np.arange(len(rows)) < len(own)

    def decision_function(self, X: Any) -> np.ndarray:
        """(4.13), documents x topics."""
        check_is_fitted(self, "estimators_")
        X = as_counts(X)
        return np.column_stack([estimator.decision_function(X) for estimator in self.estimators_])

    def predict(self, X: Any) -> np.ndarray:
        """0/1 matrix: the score is positive."""
        return (self.decision_function(X) > 0.0).astype(np.int64)

    def get_metadata_routing(self):
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )


def indicator(Y: Any, topics: Iterable[Any] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """A boolean matrix documents x topics and the topics' names, from such a matrix or from lists of labels."""
    from scipy.sparse import issparse

    if issparse(Y) or (isinstance(Y, np.ndarray) and Y.ndim == 2):
        matrix = np.asarray(Y.todense() if issparse(Y) else Y).astype(bool)
        names = np.asarray(list(topics)) if topics is not None else np.arange(matrix.shape[1])
        if len(names) != matrix.shape[1]:
            raise ParameterError(f"{len(names)} names for {matrix.shape[1]} topics")
        return matrix, names
    sets = [{labels} if isinstance(labels, str) or np.isscalar(labels) else set(labels) for labels in Y]
    names = np.asarray(list(topics) if topics is not None else sorted(set().union(*sets)))
    return np.array([[name in labels for name in names.tolist()] for labels in sets], dtype=bool), names
