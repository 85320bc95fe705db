"""The linear systems of SSL-E against the paper's formulas and against a generic convex solver."""

from __future__ import annotations

import evolving_oracle as oracle
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.sparse import random as sparse_random

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.evolving.graph import laplacian, neighbour_graph
from sdretrieval.learn.evolving.solver import DenseGram, LinearGram, RandomWalkGram, joined, project, solve, solve_hinge

SOLVERS = ("cg", "direct", "auto")


def frame(seed: int, n: int = 12, d: int = 30, labels: int = 4) -> tuple:
    """(X, L, labelled, y): unit rows, more features than documents, so that K is regular."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4)
    X[:, 0] += 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    L = oracle.laplacian(X, 3, 0.7)
    C = np.zeros(n, dtype=bool)
    C[rng.choice(n, labels, replace=False)] = True
    return X, L, C, np.where(rng.random(n) < 0.5, 1.0, -1.0) * C


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("gamma_A", "gamma_I"), [(0.1, 10.0), (1e-3, 1e3), (5.0, 0.0), (0.02, 1e5)])
def test_cheap_form_equals_18(solver: str, gamma_A: float, gamma_I: float) -> None:
    """β + K⁺f_p, found without K being inverted or even made, is α of (18); so is the function everywhere."""
    (X0, *_), (X, L, C, y) = frame(0), frame(1)
    rng = np.random.default_rng(2)
    w_p = X0.T @ rng.normal(size=len(X0))
    K, f_p = X @ X.T, X @ w_p
    wanted = oracle.alpha_18(K, L, C, y, f_p, gamma_A, gamma_I)
    gram = LinearGram(csr_matrix(X))
    smooth = csr_matrix(L * gamma_I / len(X) ** 2)
    answer = solve(gram, smooth, C, y[:, None], f_p[:, None], gamma_A=gamma_A, solver=solver, tol=1e-12)
    alpha = answer.beta + project(gram, f_p[:, None], solver=solver)
    np.testing.assert_allclose(answer.values[:, 0], K @ wanted, rtol=0, atol=1e-9)
    np.testing.assert_allclose(X.T @ alpha[:, 0], X.T @ wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_closed_form_equals_a_generic_convex_solver(seed: int) -> None:
    """(12) handed to BFGS as a function of w, knowing nothing of its form."""
    (X, L, C, y), gamma_A, gamma_I = frame(seed), 0.3, 40.0
    w_p = np.random.default_rng(9).normal(size=X.shape[1])
    found = minimize(
        oracle.objective_12, w_p, args=(X, L, C, y, w_p, gamma_A, gamma_I), method="BFGS", options={"gtol": 1e-9}
    )
    gram = LinearGram(csr_matrix(X))
    answer = solve(gram, csr_matrix(L * gamma_I / len(X) ** 2), C, y[:, None], (X @ w_p)[:, None], gamma_A=gamma_A)
    w = w_p + X.T @ answer.beta[:, 0]
    np.testing.assert_allclose(w, found.x, atol=2e-5)
    assert oracle.objective_12(w, X, L, C, y, w_p, gamma_A, gamma_I) <= found.fun + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_the_hinge_loss_equals_a_generic_convex_solver(seed: int) -> None:
    """(1) with max(0, 1 - y f)², for two columns with labels of their own; it is not the squared loss's answer."""
    X, L, C, y = frame(seed, labels=8)
    flipped = np.where(np.arange(len(y)) % 2, y, -y)
    gamma_A, smooth = 0.5, csr_matrix(L * 4.0 / len(X) ** 2)
    w_p = 4.0 * np.random.default_rng(9).normal(size=X.shape[1])  # some documents beyond the margin

    def objective(w: np.ndarray, y: np.ndarray) -> float:
        f, moved = X @ w, w - w_p
        return float((np.maximum(1 - y * f, 0)[C] ** 2).sum() + f @ (smooth @ f) + gamma_A * moved @ moved)

    gram, columns, prior = LinearGram(csr_matrix(X)), np.column_stack([y, flipped]), np.column_stack([X @ w_p] * 2)
    answer = solve_hinge(gram, smooth, C, columns, prior, gamma_A=gamma_A)
    squared = solve(gram, smooth, C, columns, prior, gamma_A=gamma_A)
    for column, labels in enumerate((y, flipped)):
        found = minimize(objective, w_p, args=(labels,), method="BFGS", options={"gtol": 1e-9})
        w = w_p + X.T @ answer.beta[:, column]
        np.testing.assert_allclose(w, found.x, atol=5e-5)
        assert objective(w, labels) <= found.fun + 1e-10
    assert np.abs(answer.values - squared.values).max() > 1e-3


def test_offline_equals_a_generic_convex_solver() -> None:
    """(6) over three frames: the functions of one solve with the kernel min(s, t) K."""
    frames, gamma_A, gamma_I = [frame(seed, n=7, d=6, labels=3) for seed in range(3)], 0.2, 30.0
    found = minimize(
        lambda flat: oracle.objective_6(flat.reshape(3, 6), frames, gamma_A, gamma_I),
        np.zeros(18),
        method="BFGS",
        options={"gtol": 1e-9},
    )
    X = csr_matrix(np.concatenate([f[0] for f in frames]))
    gram = RandomWalkGram(X, [7, 7, 7])
    smooth = joined([csr_matrix(f[1] * gamma_I / 49) for f in frames])
    C, y = np.concatenate([f[2] for f in frames]), np.concatenate([f[3] for f in frames])
    answer = solve(gram, smooth, C, y[:, None], gamma_A=gamma_A, tol=1e-12)
    ws = np.zeros((3, 6))
    ws[:, gram.columns] = gram.weights(answer.beta)[:, :, 0]
    np.testing.assert_allclose(ws, found.x.reshape(3, 6), atol=2e-5)
    assert oracle.objective_6(ws, frames, gamma_A, gamma_I) <= found.fun + 1e-12


def test_random_walk_kernel_is_min_of_the_frames() -> None:
    X = sparse_random(9, 20, density=0.4, random_state=0, format="csr")
    gram = RandomWalkGram(X, [2, 4, 3])
    t = np.repeat([1, 2, 3], [2, 4, 3])
    expected = np.minimum.outer(t, t) * (X @ X.T).toarray()
    np.testing.assert_allclose(gram.dense(), expected, atol=1e-15)
    np.testing.assert_allclose(gram.times(np.eye(9)), expected, atol=1e-14)


def test_columns_with_labels_of_their_own_are_solved_side_by_side() -> None:
    X, L, _, _ = frame(4, n=20)
    rng = np.random.default_rng(1)
    C = rng.random((20, 5)) < 0.3
    Y = np.where(rng.random((20, 5)) < 0.5, 1.0, -1.0) * C
    prior = X @ rng.normal(size=(30, 5))
    smooth, gram = csr_matrix(L * 0.05), LinearGram(csr_matrix(X))
    together = {s: solve(gram, smooth, C, Y, prior, gamma_A=0.1, solver=s, tol=1e-12).values for s in SOLVERS}
    for j in range(5):
        alone = solve(
            DenseGram(X @ X.T), smooth, C[:, j], Y[:, [j]], prior[:, [j]], gamma_A=0.1, solver="direct"
        ).values[:, 0]
        for values in together.values():
            np.testing.assert_allclose(values[:, j], alone, atol=1e-9)


def test_copies_and_empty_documents_make_18_singular_but_not_the_cheap_form() -> None:
    X, _, _, _ = frame(5)
    X = np.concatenate([X, X[:3], np.zeros((1, X.shape[1]))])
    C = np.arange(16) % 4 == 0
    y = np.where(np.arange(16) % 8 == 0, 1.0, -1.0) * C
    assert np.linalg.matrix_rank(X @ X.T) < 16
    L = laplacian(neighbour_graph(csr_matrix(X), neighbours=3))
    answers = [
        solve(LinearGram(csr_matrix(X)), L * 0.1, C, y[:, None], gamma_A=0.1, solver=s, tol=1e-12).values[:, 0]
        for s in SOLVERS
    ]
    for values in answers:
        np.testing.assert_allclose(values, answers[0], atol=1e-9)
        np.testing.assert_allclose(values[12:15], values[:3], atol=1e-12)
        assert values[15] == 0


def test_the_reported_error_bounds_the_true_one() -> None:
    """‖f - f*‖_K <= ‖residual‖_K / γ_A, also when stopped early."""
    X, L, C, y = frame(6, n=40, d=60, labels=15)
    gram, smooth = LinearGram(csr_matrix(X)), csr_matrix(L * 0.4)
    exact = solve(gram, smooth, C, y[:, None], gamma_A=0.05, solver="direct").beta[:, 0]
    for steps in (1, 3, 6, 10):
        rough = solve(gram, smooth, C, y[:, None], gamma_A=0.05, solver="cg", max_iter=steps)
        difference = rough.beta[:, 0] - exact
        assert 0 < np.sqrt(difference @ (X @ X.T) @ difference) <= rough.error * (1 + 1e-9)


def test_sparse_and_dense_products_agree() -> None:
    """The kernel matrix is kept only where it is the smaller of the two."""
    wide = sparse_random(400, 3000, density=0.004, random_state=1, format="csr")
    narrow = sparse_random(20, 100, density=0.4, random_state=1, format="csr")
    B = np.random.default_rng(0).normal(size=(400, 2))
    gram = LinearGram(wide)
    assert gram._K is None
    np.testing.assert_allclose(gram.times(B), gram.dense() @ B, atol=1e-12)
    assert LinearGram(narrow)._K is not None


@pytest.mark.parametrize("bad", [{"gamma_A": value} for value in (0.0, -1.0, np.nan, np.inf)] + [{"solver": "lucky"}])
def test_bad_parameters(bad: dict) -> None:
    X, L, C, y = frame(7)
    told = "'auto', 'cg' or 'direct', got 'lucky'" if "solver" in bad else "gamma_A must be positive"
    with pytest.raises(ParameterError, match=told):
        solve(LinearGram(csr_matrix(X)), csr_matrix(L), C, y[:, None], **{"gamma_A": 1.0, **bad})
