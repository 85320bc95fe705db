"""The linear systems of SSL and SSL-E, in a form that needs neither an inverse nor, for the linear kernel, K itself.

    f     the values of f_t on the frame's documents          f_p   those of f_{t-1} on the same documents
    C     diagonal, 1 where a document is labelled            y     ±1, 0 where it is not
    L     the Laplacian of the frame's graph                  M  =  C + γ_I/n² L
    K     the kernel matrix of the frame

Setting the gradient of (12) to zero says that f_t = f_{t-1} + Σ_i β_i K(·, x_i) with

    (γ_A I + M K) β = C y - M f_p                             (*)

which is (18) without its redundant factor K: multiply by K, and put α = β + K⁺ f_p for the part of f_{t-1} that lies
in the span of the frame (14). (*) is never singular for γ_A > 0, copies and empty documents included, where the matrix
of (18) is. Its matrix is self-adjoint in the inner product ⟨a, b⟩ = aᵀKb, with no eigenvalue below γ_A, so conjugate
gradients in that inner product apply, one product with K a step; and ‖f - f_t‖_K <= ‖residual‖_K / γ_A bounds the
error of the *function*, everywhere: that is what stops the iteration. For the linear kernel a product with K = X Xᵀ
is two products with the sparse X: no n x n matrix appears at all.

Offline (6) is the same system again. With D the backward differences over frames (f_0 = 0), its temporal terms are
γ_A Σ ‖(D f)_t‖²_K, and (DᵀD)⁻¹ has the entries min(s, t). So the T functions of (6) are *one* function of (x, t) in the
space of the kernel min(s, t) K(x, x'), fitted by SSL with a Laplacian of one block per frame: a random walk through
the space of classifiers.

Columns are problems solved side by side: classes, or random labelings; each may have its own labelled documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_matrix, issparse

from sdretrieval.errors import ParameterError, SdretrievalError

Floats = NDArray[np.float64]

DIRECT_UP_TO = 3000  # documents for which a dense factorisation is no burden
_EPS = float(np.finfo(np.float64).eps)


class KernelMatrix(Protocol):
    """A positive semi-definite n x n matrix that may exist only as its products."""

    n: int

    def times(self, B: Floats) -> Floats: ...

    def dense(self) -> Floats: ...


class DenseKernel:
    """K as an array."""

    def __init__(self, K: Floats) -> None:
        self.K, self.n = K, K.shape[0]

    def times(self, B: Floats) -> Floats:
        return self.K @ B

    def dense(self) -> Floats:
        return self.K


class LinearKernel:
    """K = X Xᵀ for sparse X, without K unless that is the smaller of the two."""

    def __init__(self, X: csr_matrix) -> None:
        self.n = X.shape[0]
        self.X, self.columns = without_empty_columns(X)
        self._transposed = self.X.T.tocsr()
        # A step costs 2 nnz with X, n² with K; dense products run about five times as many operations a second.
        self._K = self._product() if self.n**2 <= 10 * self.X.nnz else None

    def _product(self) -> Floats:
        return (self.X @ self._transposed).toarray()

    def times(self, B: Floats) -> Floats:
        return self.X @ (self._transposed @ B) if self._K is None else self._K @ B

    def dense(self) -> Floats:
        return self._product() if self._K is None else self._K


class RandomWalkKernel:
    """min(s, t) K(x, x') over documents in order of their frames: the kernel of the offline problem."""

    def __init__(self, X: Any, sizes: list[int], *, precomputed: bool = False) -> None:
        """``X``: sparse documents x features for the linear kernel, or with ``precomputed`` the kernel matrix."""
        self.n, self.sizes = X.shape[0], sizes
        self.frame = np.repeat(np.arange(len(sizes)), sizes)
        self.bounds = np.concatenate([[0], np.cumsum(sizes)])
        self._K = None
        if precomputed:
            self._K = np.minimum.outer(self.frame + 1.0, self.frame + 1.0) * X
            return
        X, self.columns = without_empty_columns(X)
        self.parts = [X[a:b] for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]
        self._transposed = [part.T.tocsr() for part in self.parts]

    def weights(self, B: Floats) -> Floats:
        """w_t = Σ_s min(s, t) X_sᵀ β_s for each frame (frames x features x columns): a sum of tails, summed up."""
        tails = np.stack(
            [part @ B[a:b] for part, a, b in zip(self._transposed, self.bounds[:-1], self.bounds[1:], strict=True)]
        )
        tails = np.cumsum(tails[::-1], axis=0)[::-1]
        return np.cumsum(tails, axis=0, out=tails if tails.flags.writeable else None)

    def times(self, B: Floats) -> Floats:
        if self._K is not None:
            return self._K @ B
        return np.concatenate([part @ w for part, w in zip(self.parts, self.weights(B), strict=True)])

    def dense(self) -> Floats:
        if self._K is None:
            X = np.concatenate([part.toarray() for part in self.parts]) if self.parts else np.zeros((0, 0))
            return np.minimum.outer(self.frame + 1.0, self.frame + 1.0) * (X @ X.T)
        return self._K


@dataclass(frozen=True, eq=False)
class Solution:
    """β of (*) and the values f = f_p + Kβ; ``error`` bounds the error of the function in the norm of the kernel."""

    beta: Floats
    values: Floats
    iterations: int
    error: float


def solve(
    kernel: KernelMatrix,
    smoothness: csr_matrix,
    labelled: NDArray[np.bool_],
    targets: Floats,
    prior: Floats | None = None,
    *,
    gamma_A: float,
    solver: str = "auto",
    tol: float = 1e-10,
    max_iter: int | None = None,
) -> Solution:
    """β of (*). ``smoothness`` is γ_I/n² L; ``labelled`` n or n x columns; ``targets`` and ``prior`` n x columns."""
    C = np.asarray(labelled, dtype=np.float64)
    C = C[:, None] if C.ndim == 1 else C
    if not gamma_A > 0 or not np.isfinite(gamma_A):
        raise ParameterError(f"gamma_A must be positive and finite, got {gamma_A}")
    if solver not in ("auto", "cg", "direct"):
        raise ParameterError(f"solver must be 'auto', 'cg' or 'direct', got {solver!r}")
    f_p = np.zeros_like(targets) if prior is None else prior
    b = C * targets - (C * f_p + smoothness @ f_p)
    if kernel.n == 0 or not b.any():
        return Solution(np.zeros_like(b), f_p.copy(), 0, 0.0)
    if solver == "direct":
        return _direct(kernel, smoothness, C, b, f_p, gamma_A)
    answer = _conjugate_gradients(kernel, smoothness, C, b, f_p, gamma_A, tol, max_iter)
    if answer.error > 1e3 * tol * max(1.0, float(np.abs(answer.values).max())):
        if solver == "auto" and kernel.n <= DIRECT_UP_TO:
            return _direct(kernel, smoothness, C, b, f_p, gamma_A)
        if solver == "auto":
            raise SdretrievalError(
                f"no solution after {answer.iterations} steps (error up to {answer.error:.1e}) "
                f"for gamma_A = {gamma_A:g} and {kernel.n} documents",
                remedy="Raise gamma_A, lower gamma_I, or ask for solver='direct'.",
            )
    return answer


def _conjugate_gradients(
    kernel: KernelMatrix, smoothness: csr_matrix, C: Floats, b: Floats, f_p: Floats, gamma_A: float, tol: float,
    max_iter: int | None,
) -> Solution:  # fmt: skip
    """Hestenes & Stiefel in ⟨a, b⟩ = aᵀKb; a column that has converged stands still."""
    beta, r = np.zeros_like(b), b.copy()
    Kr = kernel.times(r)
    p, Kp = r.copy(), Kr.copy()
    rho = _dots(r, Kr)
    goal = np.maximum(tol * gamma_A, 16 * _EPS * np.sqrt(np.maximum(rho, 0.0))) ** 2
    f = f_p.copy()
    steps = 0
    limit = max(200, 4 * kernel.n) if max_iter is None else max_iter
    while steps < limit and np.any(rho > goal):
        Ap = gamma_A * p + C * Kp + smoothness @ Kp
        curvature = _dots(Kp, Ap)
        active = (rho > goal) & (curvature > 0)
        if not active.any():
            break
        step = np.where(active, rho / np.where(active, curvature, 1.0), 0.0)
        beta += step * p
        f += step * Kp
        r -= step * Ap
        Kr = kernel.times(r)
        new = np.maximum(_dots(r, Kr), 0.0)
        ratio = np.where(active, new / np.where(rho > 0, rho, 1.0), 0.0)
        p, Kp = r + ratio * p, Kr + ratio * Kp
        rho = np.where(active, new, rho)
        steps += 1
    return Solution(beta, f, steps, float(np.sqrt(np.maximum(rho, 0.0)).max()) / gamma_A)


def _dots(a: Floats, b: Floats) -> Floats:
    return np.einsum("ij,ij->j", a, b)


def _direct(
    kernel: KernelMatrix, smoothness: csr_matrix, C: Floats, b: Floats, f_p: Floats, gamma_A: float
) -> Solution:
    """By factorisation. What is common to all columns is factorised once; their labels are a change of low rank."""
    from scipy.linalg import lu_factor, lu_solve

    K = kernel.dense()
    system = smoothness @ K
    system[np.diag_indices_from(system)] += gamma_A
    if C.shape[1] == 1:
        factors = lu_factor(system + C * K, overwrite_a=True, check_finite=False)
        beta = lu_solve(factors, b, check_finite=False)
        return Solution(beta, f_p + K @ beta, 1, 0.0)
    factors = lu_factor(system, overwrite_a=True, check_finite=False)
    beta = lu_solve(factors, b, check_finite=False)
    masks, which = np.unique(C, axis=1, return_inverse=True)
    for number in range(masks.shape[1]):  # (S + E Eᵀ K)⁻¹ by Woodbury, E the unit vectors of the labelled
        mine, rows = np.flatnonzero(np.ravel(which) == number), np.flatnonzero(masks[:, number])
        if len(rows) == 0:
            continue
        E = np.zeros((kernel.n, len(rows)))
        E[rows, np.arange(len(rows))] = 1.0
        moved = lu_solve(factors, E, check_finite=False)
        small = np.eye(len(rows)) + K[rows] @ moved
        beta[:, mine] -= moved @ np.linalg.solve(small, K[rows] @ beta[:, mine])
    return Solution(beta, f_p + K @ beta, 1, 0.0)


def project(kernel: KernelMatrix, values: Floats, *, solver: str = "auto", tol: float = 1e-12) -> Floats:
    """a with K a = ``values``: the coefficients, in the span of the frame, of a function known on its documents (14).

    The solution of least ‖a‖_K where K is singular. ``values`` must be those of a function of the kernel's space.
    """
    if not values.any():
        return np.zeros_like(values)
    if solver == "direct" or (solver == "auto" and isinstance(kernel, DenseKernel)):
        eigenvalues, vectors = _eigen(kernel)
        cut = kernel.n * _EPS * max(float(eigenvalues[-1]), 0.0)
        inverse = np.where(eigenvalues > cut, 1.0 / np.where(eigenvalues > cut, eigenvalues, 1.0), 0.0)
        return vectors @ (inverse[:, None] * (vectors.T @ values))
    a, r = np.zeros_like(values), values.copy()
    p = r.copy()
    rho = _dots(r, r)
    goal = tol**2 * rho
    for _ in range(max(500, 4 * kernel.n)):
        Kp = kernel.times(p)
        curvature = _dots(p, Kp)
        active = (rho > goal) & (curvature > 0)
        if not active.any():
            break
        step = np.where(active, rho / np.where(active, curvature, 1.0), 0.0)
        a += step * p
        r -= step * Kp
        new = _dots(r, r)
        p = r + np.where(active, new / np.where(rho > 0, rho, 1.0), 0.0) * p
        rho = np.where(active, new, rho)
    return a


def _eigen(kernel: KernelMatrix) -> tuple[Floats, Floats]:
    """Eigenvalues and vectors of K, computed once for all functions that are projected."""
    if not hasattr(kernel, "_eigenpairs"):
        from scipy.linalg import eigh

        kernel._eigenpairs = eigh(kernel.dense(), check_finite=False)  # type: ignore[attr-defined]
    return kernel._eigenpairs  # type: ignore[attr-defined]


def joined(blocks: list[csr_matrix]) -> csr_matrix:
    """One matrix of the frames' blocks."""
    return csr_matrix(block_diag(blocks, format="csr")) if blocks else csr_matrix((0, 0))


def without_empty_columns(X: csr_matrix) -> tuple[csr_matrix, NDArray[np.intp]]:
    """X over the features that occur in it, and which they are."""
    if not issparse(X):
        X = csr_matrix(X)
    columns = np.unique(X.indices)
    number = np.zeros(X.shape[1], dtype=np.int64)
    number[columns] = np.arange(len(columns))
    return csr_matrix((X.data, number[X.indices], X.indptr), shape=(X.shape[0], len(columns))), columns
