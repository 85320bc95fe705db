"""Mixtures of documents (thesis section 7.1): EM against the printed densities, over the whole vocabulary."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import logsumexp
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.estimator_checks import check_estimator

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.classify.mixture import MultinomialMixture, SmoothedDirichletMixture
from tests import classify_oracle as oracle

MIXTURES = [MultinomialMixture, SmoothedDirichletMixture]


def documents(n: int = 90, terms: int = 30, clusters: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(terms, 0.2), clusters)
    labels = rng.integers(clusters, size=n)
    return np.stack([rng.multinomial(rng.integers(20, 60), topics[k]) for k in labels]).astype(float), labels


@pytest.mark.parametrize("mixture", MIXTURES)
def test_scikit_learns_own_checks(mixture) -> None:
    no_classifier = "takes whatever has predict_proba for a classifier, and asks for its tags"
    failed = {"check_estimator_sparse_array": no_classifier, "check_estimator_sparse_matrix": no_classifier}
    failed["check_clustering"] = "feeds negative numbers, which are no counts"
    check_estimator(mixture(n_components=2), on_skip=None, expected_failed_checks=failed)


@pytest.mark.parametrize("S", [None, 50.0])
@pytest.mark.parametrize("lam", [0.01, 0.5])
def test_one_step_of_the_sd_mixture_equals_the_equations(lam: float, S: float | None) -> None:
    """From the same responsibilities: α_k (3.28) over repeated documents, then P(T_k|D) from the density (3.25)."""
    X, _ = documents()
    model = SmoothedDirichletMixture(
        n_components=3, smoothing=lam, scale=S, random_state=1, max_iter=4, n_init=1, tol=1e-12
    ).fit(X)
    before = SmoothedDirichletMixture(
        n_components=3, smoothing=lam, scale=S, random_state=1, max_iter=3, n_init=1, tol=1e-12
    )
    shares = before.fit(X).predict_proba(X)
    ge = oracle.general_english(X, 0.1)
    theta = oracle.smoothed(X, lam, ge)
    scale = 30 * X.sum() / len(X) / lam if S is None else S
    alpha = np.exp(shares.T @ np.log(theta) / shares.sum(axis=0)[:, None])
    alpha *= scale / alpha.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.alpha_, alpha, rtol=1e-8)
    joint = np.stack([oracle.log_sd(theta, a) for a in alpha], axis=1) + np.log(shares.mean(axis=0))
    expected = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_one_step_of_the_multinomial_mixture_equals_the_equations() -> None:
    X, _ = documents()
    model = MultinomialMixture(n_components=3, random_state=1, max_iter=4, n_init=1, tol=1e-12).fit(X)
    shares = MultinomialMixture(n_components=3, random_state=1, max_iter=3, n_init=1, tol=1e-12).fit(X).predict_proba(X)
    theta = shares.T @ X + 0.01
    theta /= theta.sum(axis=1, keepdims=True)
    joint = X @ np.log(theta).T + np.log(shares.mean(axis=0))
    np.testing.assert_allclose(
        model.predict_proba(X), np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-8
    )


@pytest.mark.parametrize("mixture", MIXTURES)
def test_no_step_lowers_the_likelihood(mixture) -> None:
    for seed in range(5):
        X, _ = documents(60, seed=seed)
        exact = {"additive": 1e-9} if mixture is MultinomialMixture else {}  # Laplace's δ is a prior, not likelihood
        path = mixture(n_components=4, n_init=1, tol=1e-9, random_state=seed, **exact).fit(X).log_likelihood_path_
        assert np.diff(path).min() > -1e-9 * abs(path[-1])


@pytest.mark.parametrize("mixture", MIXTURES)
def test_clusters_are_found_from_dense_and_sparse_counts_alike(mixture) -> None:
    X, labels = documents(200)
    dense = mixture(n_components=3, random_state=0).fit(X)
    assert normalized_mutual_info_score(labels, dense.labels_) > 0.9
    sparse = mixture(n_components=3, random_state=0).fit(csr_matrix(X))
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_array_equal(sparse.predict(X), dense.labels_)


def test_documents_without_words_are_general_english() -> None:
    X, _ = documents(40)
    X[3] = 0.0
    model = SmoothedDirichletMixture(n_components=2, random_state=0).fit(X)
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": 50}, "50 clusters of 40 documents"),
        ({"smoothing": 1.5}, "smoothing must"),
        ({"scale": -1.0}, "scale must be positive"),
        ({"tol": 0.0}, "tol must be"),
    ],
)
def test_bad_parameters(settings: dict, told: str) -> None:
    X, _ = documents(40)
    with pytest.raises(ParameterError, match=told):
        SmoothedDirichletMixture(**settings).fit(X)
