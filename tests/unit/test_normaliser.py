"""The exact normaliser of the Smoothed Dirichlet against independent integrals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from scipy.special import beta, betainc, gammaln

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions.normaliser import (
    estimate_normaliser,
    log_approximate_normaliser,
    log_dirichlet_normaliser,
    log_exact_density,
    log_exact_normaliser,
)
from sdretrieval.estimate.distributions.sampling import sample_smoothed_dirichlet


def incomplete_beta(a1: float, a2: float, g1: float, smoothing: float) -> float:
    """Two words: (3.14) is a piece of the Beta integral, as the thesis computed it."""
    low, high = (1 - smoothing) * g1, smoothing + (1 - smoothing) * g1
    return beta(a1, a2) * (betainc(a1, a2, high) - betainc(a1, a2, low))


def three_words(alpha, background, smoothing) -> float:
    """(3.14) itself, over θ in Δ^s and not over u: the Jacobian must come out by itself."""
    floor = (1 - smoothing) * np.asarray(background)

    def density(y: float, x: float) -> float:
        return float(x ** (alpha[0] - 1) * y ** (alpha[1] - 1) * (1 - x - y) ** (alpha[2] - 1))

    return integrate.dblquad(
        density, floor[0], floor[0] + smoothing, floor[1], lambda x: 1 - floor[2] - x, epsabs=1e-12, epsrel=1e-10
    )[0]


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 5), st.floats(0.01, 5), st.floats(0.1, 0.9), st.floats(0.05, 0.9))
def test_two_words_are_an_incomplete_beta_function(a1, a2, g1, smoothing):
    exact = log_exact_normaliser(np.array([a1, a2]), np.array([g1, 1 - g1]), smoothing)
    assert np.exp(exact) == pytest.approx(incomplete_beta(a1, a2, g1, smoothing), rel=1e-6)


@pytest.mark.parametrize(
    ("alpha", "background", "smoothing"),
    [
        ((0.5, 1.5, 1.0), (0.2, 0.3, 0.5), 0.7),
        ((0.1, 0.2, 0.7), (1 / 3, 1 / 3, 1 / 3), 0.2),
        ((3, 2, 4), (0.6, 0.3, 0.1), 0.9),
    ],
)
def test_three_words_with_the_jacobian(alpha, background, smoothing):
    exact = np.exp(log_exact_normaliser(np.array(alpha), np.array(background), smoothing))
    assert exact == pytest.approx(three_words(alpha, background, smoothing), rel=1e-6)
    # The printed (3.15), with λ in the place of λ^(V-1), is not it.
    assert exact / smoothing != pytest.approx(three_words(alpha, background, smoothing), rel=0.05)


def test_flat_parameters_give_the_volume():
    """α = 1: the volume of Δ^s, λ^(V-1) / (V-1)!, in every dimension."""
    for words in (2, 3, 4, 5):
        exact = log_exact_normaliser(np.ones(words), np.full(words, 1 / words), 0.3)
        assert exact == pytest.approx((words - 1) * np.log(0.3) - gammaln(words), abs=1e-10)


def test_without_smoothing_it_is_the_dirichlet():
    alpha = np.array([0.3, 2.0, 1.1])
    assert log_exact_normaliser(alpha, np.full(3, 1 / 3), 1.0) == pytest.approx(log_dirichlet_normaliser(alpha))
    nearly = log_exact_normaliser(np.array([1.3, 2.0, 1.1]), np.full(3, 1 / 3), 1 - 1e-9, tolerance=1e-5)
    assert nearly == pytest.approx(log_dirichlet_normaliser([1.3, 2.0, 1.1]), abs=1e-5)


def test_bounded_where_the_dirichlet_is_not():
    """Figure 3.4(a): two words, α1 + α2 = 1, λ = 0.2, an even background. At α1 → 0 the integral is log(.6/.4)."""
    tiny = np.array([1e-9, 1 - 1e-9])
    assert np.exp(log_exact_normaliser(tiny, np.array([0.5, 0.5]), 0.2)) == pytest.approx(np.log(1.5), rel=1e-6)
    assert log_dirichlet_normaliser(tiny) > 20
    assert log_approximate_normaliser(tiny) == pytest.approx(0, abs=1e-7)
    half = np.array([0.5, 0.5])
    angles = 2 * (np.arcsin(np.sqrt(0.6)) - np.arcsin(np.sqrt(0.4)))
    assert np.exp(log_exact_normaliser(half, half, 0.2)) == pytest.approx(angles, rel=1e-9)
    assert np.exp(log_approximate_normaliser(half)) == pytest.approx(0.5)


def test_approximate_normaliser_reads_as_printed():
    alpha = np.array([[0.5, 1.5, 2.0], [3.0, 1.0, 0.2]])
    plain = [np.prod([a**a for a in row]) / sum(row) ** sum(row) for row in alpha]
    np.testing.assert_allclose(np.exp(log_approximate_normaliser(alpha)), plain)
    assert log_approximate_normaliser(np.array([0.0, 2.0])) == 0  # 0·log 0 = 0


@pytest.mark.parametrize("words", [2, 3, 5])
@pytest.mark.parametrize("smoothing", [0.2, 0.9, 1.0])
def test_monte_carlo_agrees_with_quadrature(words, smoothing):
    rng = np.random.default_rng(words)
    alpha, background = rng.uniform(0.3, 4, words), rng.dirichlet(np.full(words, 5.0))
    exact = log_exact_normaliser(alpha, background, smoothing, tolerance=1e-5)
    estimate = estimate_normaliser(alpha, background, smoothing, samples=40_000, seed=1)
    assert 0 < estimate.standard_error < 0.05 or smoothing == 1.0
    assert estimate.log == pytest.approx(exact, abs=max(5 * estimate.standard_error, 1e-9))


def test_the_reported_error_is_honest():
    """Over repetitions, estimates miss the truth by about the standard error they report."""
    alpha, background = np.array([0.4, 1.5, 2.5]), np.array([0.2, 0.5, 0.3])
    exact = log_exact_normaliser(alpha, background, 0.6)
    runs = [estimate_normaliser(alpha, background, 0.6, samples=2_000, seed=seed) for seed in range(100)]
    misses = np.array([(run.log - exact) / run.standard_error for run in runs])
    assert abs(misses.mean()) < 0.4
    assert 0.75 < misses.std() < 1.3


def test_density_integrates_to_one_and_is_zero_outside():
    alpha, background, smoothing = np.array([0.5, 1.7]), np.array([0.3, 0.7]), 0.4
    log_z = log_exact_normaliser(alpha, background, smoothing)

    def density(x: float) -> float:
        return float(
            np.exp(log_exact_density(np.array([x, 1 - x]), alpha, background, smoothing, log_normaliser=log_z))
        )

    low = (1 - smoothing) * background[0]
    assert integrate.quad(density, low, low + smoothing)[0] == pytest.approx(1, abs=1e-6)
    assert density(low / 2) == 0
    assert density(low + smoothing + 0.01) == 0
    draws = sample_smoothed_dirichlet(alpha, background, smoothing, 20, seed=0)
    assert np.isfinite(log_exact_density(draws, alpha, background, smoothing, log_normaliser=log_z)).all()


def test_bad_values_are_refused():
    even = np.array([0.5, 0.5])
    with pytest.raises(ParameterError, match="positive"):
        log_exact_normaliser(np.array([0.0, 1.0]), even, 0.5)
    with pytest.raises(ParameterError, match="one length"):
        log_exact_normaliser(np.ones(3), even, 0.5)
    with pytest.raises(ParameterError, match="sums to"):
        log_exact_normaliser(np.ones(2), np.array([0.5, 0.6]), 0.5)
    with pytest.raises(ParameterError, match=r"\(0, 1\]"):
        log_exact_normaliser(np.ones(2), even, 0.0)
    with pytest.raises(ParameterError, match="at least 2"):
        estimate_normaliser(np.ones(2), even, 0.5, samples=1)
    with pytest.raises(ParameterError, match="Monte Carlo"):  # a border this steep is beyond any fixed rule
        log_exact_normaliser(np.full(5, 0.01), np.full(5, 0.2), 1 - 1e-9)
