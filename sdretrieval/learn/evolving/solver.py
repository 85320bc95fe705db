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

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lu_factor, lu_solve
from scipy.sparse import block_diag, csr_matrix, issparse

from sdretrieval.core.errors import ParameterError, SdretrievalError

Floats = NDArray[np.float64]

SOLVERS = ("auto", "cg", "direct")
MOST_ROUNDS = 50  # of Newton's method; it takes about five
DIRECT_UP_TO = 3000  # documents for which a dense factorisation is no burden
_EPS = float(np.finfo(np.float64).eps)


class Gram(ABC):
    """The kernel matrix of some documents: positive semi-definite, n x n; it may exist only as its products."""

    n: int

    @abstractmethod
    def times(self, B: Floats) -> Floats: ...

    @abstractmethod
    def dense(self) -> Floats: ...

    @cached_property
    def eigenpairs(self) -> tuple[Floats, Floats]:
        """Eigenvalues and vectors, computed once for all functions that are projected."""
        return eigh(self.dense(), check_finite=False)


class DenseGram(Gram):
    """K as an array."""

    def __init__(self, K: Floats) -> None:
        self.K, self.n = K, K.shape[0]

    def times(self, B: Floats) -> Floats:
        return self.K @ B

    def dense(self) -> Floats:
        return self.K


class LinearGram(Gram):
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


class RandomWalkGram(Gram):
    """min(s, t) x·x' over sparse documents in order of their frames: the kernel of the offline problem."""

    def __init__(self, X: csr_matrix, sizes: list[int]) -> None:
        self.n, self.sizes = X.shape[0], sizes
        X, self.columns = without_empty_columns(X)
        self.spans = [slice(a, b) for a, b in pairwise(np.cumsum([0, *sizes]))]
        self.parts = [X[span] for span in self.spans]
        self._transposed = [part.T.tocsr() for part in self.parts]

    def weights(self, B: Floats) -> Floats:
        """w_t = Σ_s min(s, t) X_sᵀ β_s for each frame (frames x features x columns): a sum of tails, summed up."""
        tails = np.stack([part @ B[span] for part, span in zip(self._transposed, self.spans, strict=True)])
        return np.cumsum(np.cumsum(tails[::-1], axis=0)[::-1], axis=0)

    def times(self, B: Floats) -> Floats:
        return np.concatenate([part @ w for part, w in zip(self.parts, self.weights(B), strict=True)])

    def dense(self) -> Floats:
        X = np.concatenate([part.toarray() for part in self.parts]) if self.parts else np.zeros((0, 0))
        return random_walk(self.sizes) * (X @ X.T)


def random_walk(sizes: list[int]) -> Floats:
    """min(s, t) of the frames of each pair of documents."""
    frame = np.repeat(np.arange(len(sizes)), sizes) + 1.0
    return np.minimum.outer(frame, frame)


@dataclass(frozen=True, eq=False)
class Solution:
    """β of (*) and the values f = f_p + Kβ; ``error`` bounds the error of the function in the norm of the kernel."""

    beta: Floats
    values: Floats
    iterations: int
    error: float


def solve(
    gram: Gram,
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
    if solver not in SOLVERS:
        raise ParameterError(f"solver must be 'auto', 'cg' or 'direct', got {solver!r}")
    f_p = np.zeros_like(targets) if prior is None else prior
    b = C * targets - (C * f_p + smoothness @ f_p)
    if gram.n == 0 or not b.any():
        return Solution(np.zeros_like(b), f_p.copy(), 0, 0.0)
    if solver == "direct":
        return _direct(gram, smoothness, C, b, f_p, gamma_A)
    answer = _by_gradients(gram, smoothness, C, b, f_p, gamma_A, tol, max_iter)
    if solver == "auto" and answer.error > 1e3 * tol * max(1.0, float(np.abs(answer.values).max())):
        if gram.n > DIRECT_UP_TO:
            raise SdretrievalError(
                f"no solution after {answer.iterations} steps (error up to {answer.error:.1e}) "
                f"for gamma_A = {gamma_A:g} and {gram.n} documents",
                remedy="Raise gamma_A, lower gamma_I, or ask for solver='direct'.",
            )
        return _direct(gram, smoothness, C, b, f_p, gamma_A)
    return answer


def solve_hinge(
    gram: Gram,
    smoothness: csr_matrix,
    labelled: NDArray[np.bool_],
    targets: Floats,
    prior: Floats | None = None,
    **how: Any,
) -> Solution:
    """The same with the squared hinge loss max(0, 1 - y f)² in the place of (y - f)².

    Newton's method: the squared loss over the documents that are not on their side of the margin yet, until these are
    the same again. The minimum is the only one, so it does not matter how it was come by.
    """
    mask = np.broadcast_to(labelled if labelled.ndim == 2 else labelled[:, None], targets.shape)
    short = mask
    for _ in range(MOST_ROUNDS):
        answer = solve(gram, smoothness, short, targets, prior, **how)
        now = mask & (targets * answer.values < 1.0)
        if np.array_equal(now, short):
            return answer
        short = now
    raise SdretrievalError(
        f"the documents within the margin still change after {MOST_ROUNDS} rounds", remedy="Use loss='squared'."
    )


def _by_gradients(
    gram: Gram,
    smoothness: csr_matrix,
    C: Floats,
    b: Floats,
    f_p: Floats,
    gamma_A: float,
    tol: float,
    max_iter: int | None,
) -> Solution:
    def system(p: Floats, Kp: Floats) -> Floats:
        return gamma_A * p + C * Kp + smoothness @ Kp

    def goal(rho: Floats) -> Floats:
        return np.maximum(tol * gamma_A, 16 * _EPS * np.sqrt(np.maximum(rho, 0.0))) ** 2

    limit = max(200, 4 * gram.n) if max_iter is None else max_iter
    beta, f, rho, steps = _conjugate_gradients(system, gram.times, b, f_p, goal, limit)
    return Solution(beta, f, steps, float(np.sqrt(np.maximum(rho, 0.0)).max()) / gamma_A)


def _conjugate_gradients(
    system: Callable[[Floats, Floats], Floats],
    metric: Callable[[Floats], Floats],
    b: Floats,
    start: Floats,
    goal: Callable[[Floats], Floats],
    limit: int,
) -> tuple[Floats, Floats, Floats, int]:
    """Hestenes & Stiefel in ⟨a, b⟩ = aᵀMb; a column that has converged stands still.

    ``system(p, Mp)`` is A p and ``metric(r)`` M r. Returns x with A x = b, ``start`` + M x, ⟨r, r⟩ and the steps taken.
    """
    x, f, r = np.zeros_like(b), start.copy(), b.copy()
    Mr = metric(r)
    p, Mp = r.copy(), Mr.copy()
    rho = _dots(r, Mr)
    enough = goal(rho)
    steps = 0
    while steps < limit and np.any(rho > enough):
        Ap = system(p, Mp)
        curvature = _dots(Mp, Ap)
        active = (rho > enough) & (curvature > 0)
        if not active.any():
            break
        step = np.where(active, rho / np.where(active, curvature, 1.0), 0.0)
        x += step * p
        f += step * Mp
        r -= step * Ap
        Mr = metric(r)
        new = np.maximum(_dots(r, Mr), 0.0)
        ratio = np.where(active, new / np.where(rho > 0, rho, 1.0), 0.0)
        p, Mp = r + ratio * p, Mr + ratio * Mp
        rho = np.where(active, new, rho)
        steps += 1
    return x, f, rho, steps


def _dots(a: Floats, b: Floats) -> Floats:
    return np.einsum("ij,ij->j", a, b)


def _direct(gram: Gram, smoothness: csr_matrix, C: Floats, b: Floats, f_p: Floats, gamma_A: float) -> Solution:
    """By factorisation, one for each set of labelled documents."""
    K = gram.dense()
    system = smoothness @ K
    system[np.diag_indices_from(system)] += gamma_A
    beta = np.empty_like(b)
    masks, which = np.unique(np.broadcast_to(C, b.shape), axis=1, return_inverse=True)
    for number in range(masks.shape[1]):
        mine = np.flatnonzero(np.ravel(which) == number)
        factors = lu_factor(system + masks[:, [number]] * K, overwrite_a=True, check_finite=False)
        beta[:, mine] = lu_solve(factors, b[:, mine], check_finite=False)
    return Solution(beta, f_p + K @ beta, 1, 0.0)


def project(gram: Gram, values: Floats, *, solver: str = "auto", tol: float = 1e-12) -> Floats:
    """a with K a = ``values``: the coefficients, in the span of the frame, of a function known on its documents (14).

    The solution of least ‖a‖_K where K is singular. ``values`` must be those of a function of the kernel's space.
    """
    if not values.any():
        return np.zeros_like(values)
    if solver == "direct" or (solver == "auto" and isinstance(gram, DenseGram)):
        eigenvalues, vectors = gram.eigenpairs
        cut = gram.n * _EPS * max(float(eigenvalues[-1]), 0.0)
        inverse = np.where(eigenvalues > cut, 1.0 / np.where(eigenvalues > cut, eigenvalues, 1.0), 0.0)
        return vectors @ (inverse[:, None] * (vectors.T @ values))
    limit = max(500, 4 * gram.n)
    return _conjugate_gradients(
        lambda p, _: gram.times(p), lambda r: r, values, np.zeros_like(values), lambda rho: tol**2 * rho, limit
    )[0]


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
