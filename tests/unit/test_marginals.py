"""Marginals (3.43)-(3.50) against SciPy's distributions, against brute force and against the compiled loops."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gamma

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions.marginal_loops import beta_binomial_masses, binomial_masses, lattice_masses
from sdretrieval.estimate.distributions.marginals import (
    approximate_beta_log_density,
    beta_binomial_log_mass,
    beta_log_density,
    binomial_log_mass,
    lattice_log_mass,
    smoothed_proportion,
)

parameters = st.tuples(st.floats(0.01, 20), st.floats(0.01, 20), st.integers(0, 40))


@settings(max_examples=50, deadline=None)
@given(parameters)
def test_equal_scipys_distributions(drawn):
    alpha, rest, n = drawn
    f = np.arange(n + 1)
    theta = alpha / (alpha + rest)
    np.testing.assert_allclose(binomial_log_mass(f, n, theta), stats.binom.logpmf(f, n, theta), rtol=1e-8, atol=1e-8)
    ours = beta_binomial_log_mass(f, n, alpha, alpha + rest)
    np.testing.assert_allclose(ours, stats.betabinom.logpmf(f, n, alpha, rest), rtol=1e-7, atol=1e-7)
    assert np.exp(ours).sum() == pytest.approx(1)
    x = np.linspace(0.01, 0.99, 7)
    density = stats.beta.logpdf(x, alpha, rest)
    np.testing.assert_allclose(beta_log_density(x, alpha, alpha + rest), density, rtol=1e-8, atol=1e-8)


def test_beta_binomial_is_the_marginal_of_the_dcm():
    """Sum (3.2), times the multinomial coefficient, over all documents of three words with the wanted count."""
    alpha, n = np.array([0.3, 1.1, 0.6]), 5
    total = alpha.sum()
    expected = np.zeros(n + 1)
    for counts in product(range(n + 1), repeat=3):
        if sum(counts) == n:
            ways = factorial(n) / np.prod([factorial(c) for c in counts])
            ratio = np.prod([gamma(a + c) / gamma(a) for a, c in zip(alpha, counts, strict=True)])
            expected[counts[1]] += ways * ratio * gamma(total) / gamma(total + n)
    np.testing.assert_allclose(np.exp(beta_binomial_log_mass(np.arange(n + 1), n, alpha[1], total)), expected)


def test_the_printed_form_is_not_a_distribution():
    """(3.44) as printed, for the record: why it is not used."""
    a, s, n = 0.3, 2.0, 5
    f = np.arange(n + 1)
    printed = gamma(s) / (gamma(a) * gamma(s - a)) * gamma(a + f) * gamma(s + n - f) / gamma(s + n)
    assert printed.sum() != pytest.approx(1, rel=0.1)


def test_approximate_density_reads_as_printed():
    x, a, s = 0.2, 0.7, 3.0
    printed = s**s / (a**a * (s - a) ** (s - a)) * x ** (a - 1) * (1 - x) ** (s - a - 1)
    assert np.exp(approximate_beta_log_density(x, a, s)) == pytest.approx(printed)


def test_counts_beyond_the_length_are_impossible_and_parameters_are_checked():
    for alpha, scale in ((3.0, 3.0), (0.0, 1.0)):
        with pytest.raises(ParameterError, match="between 0 and the scale"):
            beta_binomial_log_mass(1, 2, alpha, scale)
    assert binomial_log_mass(4, 3, 0.5) == -np.inf
    assert beta_binomial_log_mass([4, -1], 3, 0.5, 2.0).tolist() == [-np.inf, -np.inf]
    assert lattice_log_mass(np.array([4, 0]), 3, 0.5, 2.0, 0.1, 0.9)[0] == -np.inf


def test_lattice_is_the_density_normalised_over_counts():
    n, a, s, g, lam = 7, 0.4, 9.0, 0.02, 0.9
    points = smoothed_proportion(np.arange(n + 1), n, g, lam)
    assert points[0] == pytest.approx(0.1 * 0.02)
    for density in (beta_log_density, approximate_beta_log_density):  # the same either way
        values = np.exp(density(points, a, s))
        np.testing.assert_allclose(np.exp(lattice_log_mass(np.arange(n + 1), n, a, s, g, lam)), values / values.sum())


def over_lengths(log_mass: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Averaged over document lengths, the last axis: (3.45), (3.46) and (3.50)."""
    return np.exp(log_mass) @ probabilities


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_compiled_loops_equal_the_plain_functions(seed):
    rng = np.random.default_rng(seed)
    words, top = 3, int(rng.integers(1, 9))
    lengths = 1 + rng.choice(30, 4, replace=False).astype(np.int64)
    p = rng.dirichlet(np.ones(4))
    scale = float(rng.uniform(0.5, 200))
    alpha = scale * rng.uniform(1e-6, 0.6, words)
    theta, background = alpha / scale, rng.uniform(1e-5, 0.2, words)
    masses, zero, total = np.empty((words, top)), np.empty((words, 4)), np.empty((words, 4))
    f = np.arange(top)[:, None]

    binomial_masses(theta, lengths, p, masses, zero)
    for w in range(words):
        np.testing.assert_allclose(masses[w], over_lengths(binomial_log_mass(f, lengths, theta[w]), p), atol=1e-14)
        np.testing.assert_allclose(zero[w], binomial_log_mass(0, lengths, theta[w]), atol=1e-12)

    beta_binomial_masses(alpha, scale, lengths, p, masses, zero)
    for w in range(words):
        plain = beta_binomial_log_mass(f, lengths, alpha[w], scale)
        np.testing.assert_allclose(masses[w], over_lengths(plain, p), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(zero[w], beta_binomial_log_mass(0, lengths, alpha[w], scale), atol=1e-9)

    lattice_masses(alpha, scale, background, 0.9, lengths, p, masses, zero, total)
    for w in range(words):
        values = (alpha[w], scale, background[w], 0.9)
        plain = np.array([lattice_log_mass(np.arange(top), n, *values) for n in lengths])
        np.testing.assert_allclose(masses[w], over_lengths(plain.T, p), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(zero[w], plain[:, 0], atol=1e-9)
