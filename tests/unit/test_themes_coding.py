"""Contexts, codes, documents and dictionaries against plain versions of the same, and against general solvers."""

from __future__ import annotations

import numpy as np
import pytest
import themes_oracle as oracle
from scipy.optimize import minimize
from scipy.sparse import csc_matrix, csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.lcsc.coding import code, gram_matrix, losses
from sdretrieval.learn.lcsc.contexts import kernel_weights, local_contexts
from sdretrieval.learn.lcsc.dictionary import (
    Sums,
    column_step,
    gradient_step,
    hellinger_step,
    hellinger_weights,
    project_in_place,
)
from sdretrieval.learn.lcsc.seeding import seed_dictionary
from sdretrieval.learn.lcsc.sequences import sequences

WEIGHTS = {
    "gaussian": lambda h: lambda d: np.exp(-0.5 * (d / h) ** 2) if d <= 3 * h else 0.0,
    "constant": lambda h: lambda d: 1.0 if d <= h else 0.0,
    "triangular": lambda h: lambda d: 1 - d / (h + 1) if d <= h else 0.0,
}


def made(seed: int, n_docs: int = 3, length: int = 9, n_words: int = 11, n_themes: int = 6):
    """Random documents (one of them empty) and a sparse dictionary."""
    rng = np.random.default_rng(seed)
    words = [f"w{i:02d}" for i in range(n_words)]
    texts = [[words[i] for i in rng.integers(0, n_words, length + d)] for d in range(n_docs)]
    documents = sequences([*texts, []], vocabulary=words)
    D = rng.dirichlet(np.full(n_words, 0.4), n_themes).T
    D[D < 0.02] = 0.0
    return documents, csc_matrix(D / D.sum(axis=0))


def as_lists(documents, contexts, codes):
    spans = [slice(a, b) for a, b in zip(documents.ptr[:-1], documents.ptr[1:], strict=True) if b > a]
    return [contexts.toarray()[s] for s in spans], [codes.toarray()[s] for s in spans]


# -- contexts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["gaussian", "constant", "triangular"])
@pytest.mark.parametrize("bandwidth", [0.7, 1.0, 2.0, 5.0])
def test_contexts_are_what_the_definition_says(kernel, bandwidth):
    documents, _ = made(0)
    found = local_contexts(documents, kernel=kernel, bandwidth=bandwidth).toarray()
    wanted = [
        oracle.contexts(documents.tokens[a:b], len(documents.vocabulary), WEIGHTS[kernel](bandwidth))
        for a, b in zip(documents.ptr[:-1], documents.ptr[1:], strict=True)
    ]
    np.testing.assert_allclose(found, np.concatenate(wanted), atol=1e-14)


def test_reach_of_the_kernels():
    """Section 5.3: h = 1 covers about 7 words; section 5.1: h = 0.7 about 5; section 3.1: the constant one 3."""
    assert 2 * len(kernel_weights("gaussian", 1.0)) - 1 == 7
    assert 2 * len(kernel_weights("gaussian", 0.7)) - 1 == 5
    assert 2 * len(kernel_weights("constant", 1.0)) - 1 == 3


@pytest.mark.parametrize(("kernel", "bandwidth"), [("square", 1.0), ("gaussian", 0.0), ("gaussian", float("nan"))])
def test_bad_kernels_are_refused(kernel, bandwidth):
    with pytest.raises(ParameterError):
        kernel_weights(kernel, bandwidth)


# -- codes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("lam", "rho"), [(1e-2, 1e-4), (0.1, 1.0), (0.0, 0.1), (0.3, 0.0), (1e-3, 0.5)])
def test_codes_reach_the_optimum_of_algorithm_1(lam, rho):
    """Codes and z are one convex problem: the paper's algorithm, run long, has the same value."""
    documents, D = made(1)
    contexts = local_contexts(documents)
    found = code(contexts, documents.ptr, D, sparsity=lam, coupling=rho, rounds=400, tol=1e-15)
    phis, betas = as_lists(documents, contexts, found.codes)
    value = sum(oracle.algorithm_1(phi, D.toarray(), lam, rho)[2][-1] for phi in phis)
    assert found.objective == pytest.approx(value, rel=1e-9)
    assert oracle.objective(phis, D.toarray(), betas, lam, rho) == pytest.approx(found.objective, rel=1e-12)
    np.testing.assert_allclose(found.documents.toarray()[:3], [b.mean(axis=0) for b in betas], atol=1e-14)
    assert found.documents[3].nnz == 0  # the empty document


@pytest.mark.parametrize(("lam", "rho"), [(1e-2, 1e-4), (0.1, 1.0), (0.3, 0.0)])
def test_hellinger_codes_reach_the_optimum_of_a_general_solver(lam, rho):
    documents, D = made(2, n_docs=1, length=5, n_words=7, n_themes=4)
    contexts, dense = local_contexts(documents), D.toarray()
    found = code(contexts, documents.ptr, D, sparsity=lam, coupling=rho, loss="hellinger", rounds=300, tol=1e-15)
    phi = contexts.toarray()

    def value(x):
        beta = x.reshape(len(phi), -1)
        fitted = np.maximum(beta @ dense.T, 1e-18)
        root = np.sqrt(phi / fitted)
        gradient = 2 * rho * (beta - beta.mean(axis=0)) + lam + (1 - root) @ dense
        return oracle.objective([phi], dense, [beta], lam, rho, "hellinger"), gradient.ravel()

    start = np.full(phi.shape[0] * D.shape[1], 0.2)
    options = {"maxiter": 5000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-10}
    best = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(1e-12, None)] * len(start), options=options)
    assert found.objective == pytest.approx(best.fun, rel=1e-6)
    assert found.objective <= best.fun * (1 + 1e-9)
    again = oracle.objective([phi], dense, [found.codes.toarray()], lam, rho, "hellinger")
    assert again == pytest.approx(found.objective, rel=1e-12)


def test_leaving_out_themes_that_cannot_take_part_changes_nothing(monkeypatch):
    """With the list of heads, and walking every theme of every word."""
    documents, D = made(3, n_themes=40)
    contexts = local_contexts(documents)
    options = {"sparsity": 0.05, "coupling": 1e-3, "rounds": 50, "tol": 1e-15}
    short = code(contexts, documents.ptr, D, **options)
    monkeypatch.setattr("sdretrieval.learn.lcsc.coding.MOST_DENSE", 0)
    full = code(contexts, documents.ptr, D, **options)
    assert short.objective == pytest.approx(full.objective, rel=1e-12)
    np.testing.assert_allclose(short.codes.toarray(), full.codes.toarray(), atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "hellinger"])
def test_more_rounds_and_warm_starts_never_raise_the_objective(loss):
    documents, D = made(4)
    contexts = local_contexts(documents)
    options = {"sparsity": 1e-2, "coupling": 0.3, "loss": loss, "rounds": 1, "tol": 1e-4}
    coded = code(contexts, documents.ptr, D, **options)
    for _ in range(6):
        again = code(contexts, documents.ptr, D, start=coded.codes, **options)
        assert again.objective <= coded.objective * (1 + 1e-12)
        coded = again


@pytest.mark.parametrize("loss", ["squared", "hellinger"])
def test_threads_change_nothing(loss):
    documents, D = made(5, n_docs=20)
    contexts = local_contexts(documents)
    options = {"sparsity": 1e-2, "coupling": 1e-2, "loss": loss, "rounds": 2}
    one = code(contexts, documents.ptr, D, n_threads=1, **options)
    four = code(contexts, documents.ptr, D, n_threads=4, **options)
    assert (one.codes != four.codes).nnz == 0 and (one.documents != four.documents).nnz == 0
    assert four.objective == pytest.approx(one.objective, rel=1e-13)


def test_codes_agree_with_scikit_learn():
    """Without coupling a code is a non-negative lasso: scikit-learn's sparse_encode has the same objective.

    It halves the squares: λ here is 2α there.
    """
    from sklearn.decomposition import sparse_encode

    documents, D = made(6, n_docs=4, n_themes=9)
    contexts = local_contexts(documents)
    found = code(contexts, documents.ptr, D, sparsity=0.02, coupling=0.0, tol=1e-16)
    theirs = sparse_encode(
        contexts.toarray(), D.toarray().T, algorithm="lasso_cd", alpha=0.01, positive=True, max_iter=20_000
    )
    phis, betas = as_lists(documents, contexts, csr_matrix(theirs))
    value = oracle.objective(phis, D.toarray(), betas, 0.02, 0.0)
    assert found.objective == pytest.approx(value, rel=1e-4)
    assert found.objective <= value * (1 + 1e-9)


def test_gram_matrix_sparse_and_dense():
    rng = np.random.default_rng(0)
    D = rng.random((70, 130)) * (rng.random((70, 130)) < 0.06)
    np.testing.assert_allclose(gram_matrix(csc_matrix(D), 2), D.T @ D, atol=1e-14)
    full = rng.random((20, 5))
    np.testing.assert_allclose(gram_matrix(csc_matrix(full)), full.T @ full, atol=1e-14)


# -- dictionaries --------------------------------------------------------------------------------------------------


def coded_example(seed: int, loss: str = "squared"):
    documents, D = made(seed, n_docs=8, length=20)
    contexts = local_contexts(documents)
    return contexts, documents, D, code(contexts, documents.ptr, D, sparsity=1e-3, coupling=1e-4, loss=loss)


def on_simplex(D) -> bool:
    return bool(D.data.min() >= 0 and np.allclose(np.asarray(D.sum(axis=0)), 1.0, atol=1e-12))


def loss(sums: Sums, contexts, D) -> float:
    """ℓ(D), (8)."""
    DA = csc_matrix(D @ sums.A)
    return float(DA.multiply(D).sum() - 2.0 * sums.B.multiply(D).sum() + contexts.data @ contexts.data)


def test_sums_give_the_loss():
    """(8) through A and B is the sum of squared distances."""
    contexts, _, D, coded = coded_example(0)
    wanted = losses(contexts, D, coded.codes).sum()
    assert loss(Sums.of(contexts, coded.codes), contexts, D) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("step", [column_step, gradient_step])
def test_dictionary_steps_stay_on_the_simplex_and_never_raise_the_loss(step):
    contexts, _, D, coded = coded_example(1)
    sums = Sums.of(contexts, coded.codes)
    for _ in range(10):
        new = step(D, sums)
        assert on_simplex(new)
        assert loss(sums, contexts, new) <= loss(sums, contexts, D) * (1 + 1e-12)
        D = new


def test_columns_and_gradient_find_the_same_minimum():
    """For given codes (8) is convex: both steps, repeated, end at one value."""
    contexts, _, D, coded = coded_example(2)
    sums = Sums.of(contexts, coded.codes)
    by_columns = loss(sums, contexts, column_step(D, sums, sweeps=300, tol=1e-12))
    by_gradient = loss(sums, contexts, gradient_step(D, sums, steps=120))
    assert by_columns < 0.9 * loss(sums, contexts, D)
    assert by_gradient == pytest.approx(by_columns, rel=1e-3)


def test_hellinger_step_never_raises_the_objective():
    contexts, documents, D, coded = coded_example(3, "hellinger")
    before = losses(contexts, D, coded.codes, "hellinger").sum()
    for _ in range(10):
        D = hellinger_step(D, hellinger_weights(contexts, coded.codes, D))
        after = losses(contexts, D, coded.codes, "hellinger").sum()
        assert on_simplex(D)
        assert after <= before * (1 + 1e-12)
        before = after
    assert documents.n_tokens


def test_themes_nobody_uses_stay_as_they_are():
    contexts, _, D, coded = coded_example(4)
    codes = coded.codes.tolil()
    codes[:, 2] = 0
    codes = csr_matrix(codes)
    for new in (column_step(D, Sums.of(contexts, codes)), hellinger_step(D, hellinger_weights(contexts, codes, D))):
        np.testing.assert_allclose(new[:, 2].toarray(), D[:, 2].toarray(), atol=1e-12)


def test_first_themes_are_distributions_even_where_contexts_are_few():
    documents, _ = made(7, n_docs=1, length=4)
    contexts = local_contexts(documents)
    for n_themes in (1, 3, 50):
        D = seed_dictionary(contexts, n_themes, np.random.default_rng(0))
        assert D.shape == (11, n_themes) and on_simplex(D)


# -- the simplex ---------------------------------------------------------------------------------------------------


def project(y) -> np.ndarray:
    """Π(y) of a vector."""
    result = np.array(y, dtype=np.float64)
    project_in_place(result)
    return result


def test_projection_by_hand():
    """Duchi et al.: (2, 0, 1.5) loses τ = 1.25 where it is above it."""
    np.testing.assert_allclose(project([2.0, 0.0, 1.5]), [0.75, 0.0, 0.25])
    np.testing.assert_allclose(project([0.2, 0.3, 0.5]), [0.2, 0.3, 0.5], atol=1e-15)
    np.testing.assert_allclose(project([-5.0]), [1.0])
