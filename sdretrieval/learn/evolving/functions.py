"""What a classifier is between frames: f_t as a vector of weights (linear kernel), or as an expansion (15).

Columns are classes. Both kinds answer the same three questions: values on documents, ‖f‖²_K, ‖f - g‖²_K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from sdretrieval.core.errors import ParameterError

Floats = NDArray[np.float64]
KERNELS = ("linear", "rbf", "precomputed")


@dataclass(frozen=True)
class FeatureKernel:
    """A kernel of documents (not of times) by name; of two sets of them K(A, B), rbf being exp(-gamma ‖a - b‖²).

    The linear one is never asked for its values: its functions are weights of features.
    """

    name: str = "linear"
    gamma: float = 1.0

    def between(self, A: Any, B: Any) -> Floats:
        if self.name == "precomputed":
            raise ParameterError("with a precomputed kernel the values between frames must be given")
        product = A @ B.T
        product = product.toarray() if issparse(product) else np.asarray(product)
        a, b = _squares(A), _squares(B)
        return np.exp(-self.gamma * np.maximum(a[:, None] + b[None, :] - 2.0 * product, 0.0))


def _squares(A: Any) -> Floats:
    return np.asarray(A.multiply(A).sum(axis=1)).ravel() if issparse(A) else np.einsum("ij,ij->i", A, A)


@dataclass(frozen=True, eq=False)
class LinearFunction:
    """f(x) = w·x: the linear kernel keeps features x classes weights, whatever the number of documents."""

    coef: Floats

    def values(self, X: Any) -> Floats:
        return np.asarray(X @ self.coef)

    def norms(self) -> Floats:
        return np.einsum("ij,ij->j", self.coef, self.coef)

    def distances(self, other: Any, cross: Floats | None = None) -> Floats:
        """‖f - g‖²_K of each column, (17)."""
        return LinearFunction(self.coef - other.coef).norms()

    def with_columns(self, columns: list[int]) -> LinearFunction:
        return LinearFunction(self.coef[:, columns])

    def widened(self, n_features: int) -> LinearFunction:
        """Over more features, which have weight zero."""
        return LinearFunction(np.pad(self.coef, ((0, n_features - self.coef.shape[0]), (0, 0))))


@dataclass(frozen=True, eq=False)
class Expansion:
    """f = Σ_i α_i K(·, x_i) over blocks of documents: one block with the representer constraint (14), else (13)."""

    kernel: FeatureKernel
    blocks: tuple[tuple[Any, Floats], ...]

    def values(self, X: Any) -> Floats:
        if self.kernel.name == "precomputed":  # X holds K(new documents, the frame's documents)
            return np.asarray(X @ self.blocks[-1][1])
        total = np.zeros((X.shape[0], self.blocks[-1][1].shape[1]))
        for Z, alpha in self.blocks:
            total += self.kernel.between(X, Z) @ alpha
        return total

    def norms(self) -> Floats:
        return self._products(self)

    def _products(self, other: Expansion) -> Floats:
        total: Any = 0.0
        for A, alpha in self.blocks:
            for B, beta in other.blocks:
                K = A if self.kernel.name == "precomputed" else self.kernel.between(A, B)
                total = total + np.einsum("ij,ij->j", alpha, K @ beta)
        return np.atleast_1d(total)

    def distances(self, other: Any, cross: Floats | None = None) -> Floats:
        """(17). ``cross`` is K_{t,t-1}: without it a precomputed kernel cannot tell, and the answer is nan."""
        (A, alpha), (B, beta) = self.blocks[-1], other.blocks[-1]
        if cross is not None:
            mixed = np.einsum("ij,ij->j", alpha, cross @ beta)
        elif self.kernel.name == "precomputed" and A is not B:
            return np.full(alpha.shape[1], np.nan)
        else:
            mixed = self._products(other)
        return np.maximum(self.norms() + other.norms() - 2.0 * mixed, 0.0)

    def with_columns(self, columns: list[int]) -> Expansion:
        return Expansion(self.kernel, tuple((Z, alpha[:, columns]) for Z, alpha in self.blocks))

    def widened(self, n_features: int) -> Expansion:
        if self.kernel.name == "precomputed":
            return self
        return Expansion(self.kernel, tuple((widen(Z, n_features), alpha) for Z, alpha in self.blocks))


Function = LinearFunction | Expansion


def widen(X: Any, n_features: int) -> Any:
    """The same documents over more features."""
    if issparse(X):
        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    return np.pad(X, ((0, 0), (0, n_features - X.shape[1])))
