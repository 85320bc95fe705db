"""The neighbour graph of (19) and (3): against a plain reading, and where the paper is silent."""

from __future__ import annotations

import evolving_oracle as oracle
import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.evolving import graph
from sdretrieval.learn.evolving.graph import laplacian, neighbour_graph, row_digests


def documents(n: int = 30, d: int = 12, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.random((n, d)) * (rng.random((n, d)) < 0.5) + np.eye(n, d) * 0.01


@pytest.mark.parametrize("k", [1, 4, 10, 50])
def test_equals_the_plain_reading(k: int) -> None:
    X = documents()
    L = laplacian(neighbour_graph(csr_matrix(X), neighbours=k, sigma=0.8))
    np.testing.assert_allclose(L.toarray(), oracle.laplacian(X, k, 0.8), atol=1e-12)


def test_by_hand() -> None:
    """Angles 0, 45° and 90° from the first: with k = 1 the middle one is everybody's neighbour."""
    X = csr_matrix(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
    weight = np.exp(-((np.pi / 4) ** 2) / 2)
    W = neighbour_graph(X, neighbours=2, sigma=1.0).toarray()
    np.testing.assert_allclose(W, [[0, weight, 0], [weight, 0, weight], [0, weight, 0]], atol=1e-12)


def test_median_width() -> None:
    """Every neighbour at the median distance has the weight exp(-1/2)."""
    X = csr_matrix(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]))
    W = neighbour_graph(X, neighbours=2)
    np.testing.assert_allclose(W.data, np.exp(-0.5), atol=1e-12)


def test_blocks_change_nothing(monkeypatch) -> None:
    X = csr_matrix(documents(60, 20))
    whole = neighbour_graph(X)
    monkeypatch.setattr(graph, "_BLOCK_BYTES", 8 * 60 * 7)
    np.testing.assert_array_equal(neighbour_graph(X).toarray(), whole.toarray())


def test_precomputed_kernel_gives_the_same_graph() -> None:
    X = documents()
    np.testing.assert_allclose(
        neighbour_graph(X @ X.T, precomputed=True).toarray(), neighbour_graph(csr_matrix(X)).toarray(), atol=1e-7
    )


def test_copies_are_one_node_and_crowd_nobody_out() -> None:
    X = documents(20)
    many = csr_matrix(np.concatenate([X, np.repeat(X[:1], 15, axis=0)]))
    W = neighbour_graph(many, neighbours=3).toarray()
    np.testing.assert_allclose(W[:20, :20], neighbour_graph(csr_matrix(X), neighbours=3).toarray(), atol=1e-12)
    assert not W[20:].any()


def test_nothing_in_common_is_no_neighbour() -> None:
    X = csr_matrix(np.array([[1.0, 0, 0], [1.0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]]))
    W = neighbour_graph(X, neighbours=3).toarray()
    assert W[0, 1] > 0
    assert not W[2:].any()


def test_ties_are_told_apart_by_content_not_by_position() -> None:
    """Ten documents, each one own word and one common: all cosines equal."""
    X = np.concatenate([np.eye(10), np.ones((10, 1))], axis=1)
    W = neighbour_graph(csr_matrix(X), neighbours=2).toarray()
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(10)
        np.testing.assert_allclose(
            neighbour_graph(csr_matrix(X[order]), neighbours=2).toarray(), W[np.ix_(order, order)]
        )


def test_laplacian_is_a_penalty_on_differences() -> None:
    X = csr_matrix(documents())
    W, f = neighbour_graph(X).toarray(), np.random.default_rng(3).normal(size=30)
    expected = 0.5 * np.sum(W * (f[:, None] - f[None, :]) ** 2)
    assert f @ (laplacian(csr_matrix(W)) @ f) == pytest.approx(expected, rel=1e-12)


def test_explicit_zeros_and_order_of_columns_do_not_matter_to_digests() -> None:
    plain = csr_matrix(np.array([[0.0, 2.0, 3.0]]))
    odd = csr_matrix((np.array([3.0, 0.0, 2.0]), np.array([2, 0, 1]), np.array([0, 3])), shape=(1, 3))
    assert row_digests(plain)[0] == row_digests(odd)[0]
    assert odd.nnz == 3  # and what was given is left alone


@pytest.mark.parametrize("bad", [{"neighbours": 0}, {"sigma": 0.0}, {"sigma": "mean"}])
def test_bad_parameters(bad: dict) -> None:
    with pytest.raises(ParameterError):
        neighbour_graph(csr_matrix(documents()), **bad)


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_document(n: int) -> None:
    assert neighbour_graph(csr_matrix((n, 5))).shape == (n, n)
