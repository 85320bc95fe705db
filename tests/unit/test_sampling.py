"""Samples against the moments and densities of the distributions they claim to come from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import beta, betainc

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions.marginals import beta_binomial_log_mass
from sdretrieval.estimate.distributions.sampling import (
    sample_dcm,
    sample_dirichlet,
    sample_log_dirichlet,
    sample_multinomial,
    sample_smoothed_dirichlet,
    to_counts,
)

# Seeds are fixed: a p-value here is the same on every run.


def test_multinomial_counts():
    p = np.array([0.5, 0.0, 0.3, 0.2])
    lengths = np.array([0, 7, 10_000])
    counts = sample_multinomial(p, lengths, seed=1).toarray()
    assert counts.sum(axis=1).tolist() == lengths.tolist()
    assert counts[:, 1].sum() == 0
    used = p > 0
    assert stats.chisquare(counts[2, used], 10_000 * p[used]).pvalue > 0.001


def test_dcm_marginal_is_the_beta_binomial():
    alpha, n, size = np.array([0.2, 0.5, 1.3]), 6, 4_000
    counts = sample_dcm(alpha, [n] * size, seed=2).toarray()
    assert (counts.sum(axis=1) == n).all()
    for word in range(3):
        expected = size * np.exp(beta_binomial_log_mass(np.arange(n + 1), n, alpha[word], alpha.sum()))
        seen = np.bincount(counts[:, word].astype(int), minlength=n + 1)
        assert stats.chisquare(seen, expected).pvalue > 0.001


def test_dcm_is_burstier_than_the_multinomial_of_its_mean():
    alpha = np.full(50, 0.02)
    bursty = sample_dcm(alpha, [40] * 300, seed=3).toarray()
    even = sample_multinomial(alpha / alpha.sum(), [40] * 300, seed=3).toarray()
    assert bursty[bursty > 0].mean() > 3 * even[even > 0].mean()
    assert (sample_dcm(alpha, [40] * 300, seed=3).toarray() == bursty).all()  # the same seed, the same sample


def test_dirichlet_marginals_are_beta():
    alpha = np.array([0.3, 2.0, 1.0])
    draws = sample_dirichlet(alpha, 3_000, seed=4)
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    assert (draws == sample_dirichlet(alpha, 3_000, seed=4)).all()
    for word in range(3):
        assert stats.kstest(draws[:, word], stats.beta(alpha[word], alpha.sum() - alpha[word]).cdf).pvalue > 0.001


def test_tiny_parameters_stay_finite_in_logarithms():
    logs = sample_log_dirichlet(np.array([1e-5, 1e-5, 1e-5]), 200, seed=5)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)
    assert {int(row.argmax()) for row in logs} == {0, 1, 2}  # all the mass on one word, any of them


def test_smoothed_dirichlet_of_two_words_is_a_cut_off_beta():
    alpha, background, smoothing = np.array([0.6, 1.4]), np.array([0.3, 0.7]), 0.5
    draws = sample_smoothed_dirichlet(alpha, background, smoothing, 1_500, seed=6, sweeps=5, thin=1)[:, 0]
    low, high = 0.15, 0.65
    assert draws.min() >= low
    assert draws.max() <= high

    def cumulative(x):
        part = betainc(0.6, 1.4, np.clip(x, low, high)) - betainc(0.6, 1.4, low)
        return part / (betainc(0.6, 1.4, high) - betainc(0.6, 1.4, low))

    assert beta(0.6, 1.4) > 0
    assert stats.kstest(draws, cumulative).pvalue > 0.001


def test_smoothed_dirichlet_equals_rejection():
    """Three words: a Dirichlet, and only what falls inside Δ^s."""
    alpha, background, smoothing = np.array([0.8, 1.5, 1.2]), np.array([0.2, 0.3, 0.5]), 0.6
    everywhere = sample_dirichlet(alpha, 30_000, seed=7)
    kept = everywhere[(everywhere >= (1 - smoothing) * background).all(axis=1)]
    draws = sample_smoothed_dirichlet(alpha, background, smoothing, 1_500, seed=8, sweeps=50, thin=8)
    for word in range(3):
        assert stats.ks_2samp(kept[:, word], draws[:, word]).pvalue > 0.001


def test_smoothed_dirichlet_with_many_words_stays_inside():
    rng = np.random.default_rng(9)
    background = rng.dirichlet(np.full(500, 0.5))
    background = (background + 1e-6) / (background + 1e-6).sum()
    draws = sample_smoothed_dirichlet(300 * background, background, 0.9, 3, seed=10, sweeps=20, thin=5)
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    assert (draws >= 0.1 * background * (1 - 1e-9)).all()
    assert sample_smoothed_dirichlet(np.ones(1), np.ones(1), 0.5, 2).tolist() == [[1.0], [1.0]]


def test_back_to_counts():
    """(3.19) undoes smoothing: counts to θ and back are the same counts."""
    rng = np.random.default_rng(11)
    counts = rng.integers(0, 5, (4, 6))
    counts[:, 0] += 1
    lengths, background = counts.sum(axis=1), np.full(6, 1 / 6)
    theta = 0.8 * counts / lengths[:, None] + 0.2 * background
    np.testing.assert_array_equal(to_counts(theta, lengths, background, 0.8).toarray(), counts)
    rounded = to_counts(theta, [7, 7, 7, 7], background, 0.8).toarray()
    assert rounded.sum(axis=1).tolist() == [7] * 4
    with pytest.raises(ParameterError, match="lengths"):
        to_counts(theta, [1], background, 0.8)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: sample_multinomial(np.array([0.5, 0.6]), [1]), "sum to one"),
        (lambda: sample_multinomial(np.array([1.5, -0.5]), [1]), "non-negative"),
        (lambda: sample_dirichlet(np.array([0.0, 1.0]), 2), "positive, got 0"),
        (lambda: sample_dcm(np.ones(2), [1.5]), "whole numbers"),
    ],
)
def test_bad_values_are_refused(call, told):
    with pytest.raises(ParameterError, match=told):
        call()
