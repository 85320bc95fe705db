"""Bias and variance of the local model: exact forms against simulation, expansions against the exact forms."""

from __future__ import annotations

import numpy as np
import pytest
from bias_variance import (
    DriftPoint,
    asymptotic_bias,
    asymptotic_mise,
    asymptotic_mse,
    asymptotic_variance,
    exact_bias,
    exact_mise,
    exact_mse,
    exact_variance,
    integrated_squared_error,
    minimal_mse,
    optimal_bandwidth,
)
from scipy.optimize import minimize_scalar
from simulated_drift import SimulatedDrift, random_drift

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood

KERNELS = [Kernel("triangular"), Kernel("tricube"), Kernel("triangular", online=True)]


@pytest.fixture(scope="module")
def drift() -> SimulatedDrift:
    return random_drift(6, np.random.default_rng(1), density_slope=0.8)


def point(drift: SimulatedDrift, t: float, n: int = 2000, mean_length: float = 50.0) -> DriftPoint:
    return DriftPoint(
        theta=drift.theta(t)[0],
        velocity=drift.velocity(t)[0],
        acceleration=drift.acceleration(t)[0],
        density=float(drift.density(t)),
        density_slope=drift.density_derivative(),
        documents=n,
        mean_length=mean_length,
    )


# -- the drifts themselves -------------------------------------------------------------------------------------


def test_derivatives_of_the_simulated_drift(drift: SimulatedDrift) -> None:
    chirp = random_drift(5, np.random.default_rng(2), chirp=1.5, start=3.0, end=9.0)
    for known, t in ((drift, 0.4), (chirp, 5.0)):
        e = 1e-4 * known.span
        slope = (known.theta(t + e) - known.theta(t - e)) / (2 * e)
        bend = (known.velocity(t + e) - known.velocity(t - e)) / (2 * e)
        assert known.velocity(t) == pytest.approx(slope, rel=1e-4, abs=1e-8)
        assert known.acceleration(t) == pytest.approx(bend, rel=1e-3, abs=1e-8)
        assert known.theta(t).sum() == pytest.approx(1)


def test_simulated_times_follow_their_density(drift: SimulatedDrift) -> None:
    """P(t < 1/2) = ∫_0^½ (1 + .8 (2x - 1)) dx = .3; 20,000 draws, five standard errors are .016."""
    times = drift.sample_times(20_000, np.random.default_rng(0))
    assert np.mean(times < 0.5) == pytest.approx(0.3, abs=0.016)


# -- exact forms against simulation ----------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_exact_bias_and_variance_are_those_of_repeated_samples(drift: SimulatedDrift, kernel: Kernel) -> None:
    rng = np.random.default_rng(7)
    times = np.sort(rng.random(40))
    lengths = rng.integers(3, 15, 40)
    t, h, repeats = 0.55, 0.3, 20_000
    weights = kernel((t - times) / h)
    above = sum(
        w * rng.multinomial(size, theta, size=repeats)
        for w, size, theta in zip(weights, lengths, drift.theta(times), strict=True)
        if w > 0
    )
    estimates = above / (weights @ lengths)
    bias = exact_bias(drift.theta, times, lengths, t, h, kernel=kernel)
    covariance = exact_variance(drift.theta, times, lengths, t, h, kernel=kernel, covariance=True)
    variance = exact_variance(drift.theta, times, lengths, t, h, kernel=kernel)
    assert np.diag(covariance) == pytest.approx(variance)
    error = 5 * np.sqrt(variance / repeats)
    assert np.all(np.abs(estimates.mean(axis=0) - drift.theta(t)[0] - bias) < error)
    assert np.any(np.abs(bias) > error), "a bias that the simulation could not tell from none would prove nothing"
    assert np.cov(estimates.T) == pytest.approx(covariance, rel=0.1, abs=0.05 * variance.max())
    assert estimates.var(axis=0) == pytest.approx(variance, rel=0.06)


def test_exact_mise_is_the_mean_integrated_squared_error(drift: SimulatedDrift) -> None:
    rng = np.random.default_rng(3)
    times, lengths = drift.sample_times(150, rng), np.full(150, 20)
    grid = np.linspace(0.05, 0.95, 19)
    expected = exact_mise(drift.theta, times, lengths, grid, 0.15).sum()
    errors = []
    for _ in range(60):
        counts, _ = drift.sample(150, 20, rng, times=times, lengths=lengths)
        estimate = LocalLikelihood(counts, times, 0.15).over(grid)
        errors.append(integrated_squared_error(estimate, drift.theta(grid), grid).sum())
    standard_error = np.std(errors) / np.sqrt(len(errors))
    assert np.mean(errors) == pytest.approx(expected, abs=5 * standard_error)
    assert 5 * standard_error < 0.3 * expected


def test_no_document_within_reach_is_an_error(drift: SimulatedDrift) -> None:
    with pytest.raises(ParameterError, match=r"reach of time 0\.9"):
        exact_mse(drift.theta, [0.1], [5], 0.9, 0.1)


# -- expansions against the exact forms -------------------------------------------------------------------------


def dense_design(drift: SimulatedDrift, n: int = 100_000) -> np.ndarray:
    """The quantiles of g: a sample without sampling noise, so that only the order of the expansion is left."""
    u, s = (np.arange(n) + 0.5) / n, drift.density_slope
    return (-(1 - s) + np.sqrt((1 - s) ** 2 + 4 * s * u)) / (2 * s)


def relative_errors(drift: SimulatedDrift, kernel: Kernel, h: float, printed: bool = False) -> tuple[float, float]:
    """Of the asymptotic bias (beside the largest) and variance (the worst word), against (11) and (12)."""
    times, t = dense_design(drift), 0.45
    lengths = np.full(len(times), 50.0)
    at = point(drift, t, n=len(times))
    bias = exact_bias(drift.theta, times, lengths, t, h, kernel=kernel)
    variance = exact_variance(drift.theta, times, lengths, t, h, kernel=kernel)
    expansion = asymptotic_bias(at, h, kernel=kernel)
    spread = asymptotic_variance(at, h, kernel=kernel)
    if printed:  # (14) to the letter
        expansion = h * kernel.moment(1, 1) * at.velocity
        n_words, mu_12 = at.documents * at.mean_length, kernel.moment(1, 2)
        spread = (
            kernel.moment(0, 2) / (n_words * h * at.density) + mu_12 * at.density_slope / (n_words * at.density**2)
        ) * at.spread + mu_12 / (n_words * at.density) * at.velocity * (1 - 2 * at.theta)
    return np.abs(bias - expansion).max() / np.abs(bias).max(), (np.abs(variance - spread) / variance).max()


@pytest.mark.parametrize("name", ["triangular", "tricube", "uniform"])
def test_offline_expansions_13(drift: SimulatedDrift, name: str) -> None:
    """The next terms are h² smaller, for a symmetric kernel: halving h divides both errors by about four."""
    (bias, variance), (bias_half, variance_half) = (relative_errors(drift, Kernel(name), h) for h in (0.1, 0.05))
    assert bias < 0.1 and variance < 0.05
    assert bias / bias_half == pytest.approx(4, rel=0.15)
    assert variance / variance_half == pytest.approx(4, rel=0.15)


def test_online_expansions_14_with_the_signs_mended(drift: SimulatedDrift) -> None:
    kernel = Kernel("triangular", online=True)
    (bias, variance), (bias_half, variance_half) = (relative_errors(drift, kernel, h) for h in (0.02, 0.01))
    assert bias < 0.15
    assert bias / bias_half == pytest.approx(2, rel=0.1)  # the next term is h smaller
    assert variance / variance_half == pytest.approx(4, rel=0.15)  # both orders of the variance are there


def test_online_expansions_as_printed_do_not_hold(drift: SimulatedDrift) -> None:
    """(14) has the data ahead of t: a bias of the wrong sign is off by twice itself, at any h."""
    kernel = Kernel("triangular", online=True)
    bias, variance = relative_errors(drift, kernel, 0.01, printed=True)
    bias_half, variance_half = relative_errors(drift, kernel, 0.005, printed=True)
    assert bias == pytest.approx(2, rel=0.1)
    assert bias_half == pytest.approx(2, rel=0.05)
    assert variance / variance_half == pytest.approx(2, rel=0.1)  # an error of first order remains
    assert variance > 10 * relative_errors(drift, kernel, 0.01)[1]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_corollary_1_is_squared_bias_plus_variance(drift: SimulatedDrift, kernel: Kernel) -> None:
    """Spelled out from the corollary, with the signs of r = t - τ."""
    at, h = point(drift, 0.6), 0.07
    n, lam, g = at.documents, at.mean_length, at.density
    mu = kernel.moment
    if kernel.online:
        squared = h**2 * mu(1, 1) ** 2 * at.velocity**2
        first = mu(0, 2) / (n * h * g * lam)
        first += (2 * mu(1, 1) * mu(0, 2) - mu(1, 2)) * at.density_slope / (n * g**2 * lam)
        rest = first * at.theta * (1 - at.theta) - mu(1, 2) / (n * lam * g) * at.velocity * (1 - 2 * at.theta)
    else:
        squared = h**4 * mu(2, 1) ** 2 * (at.velocity * at.density_slope / g + at.acceleration / 2) ** 2
        rest = mu(0, 2) / (n * h * g * lam) * at.theta * (1 - at.theta)
    assert asymptotic_mse(at, h, kernel=kernel) == pytest.approx(squared + rest)


def test_corollary_3_approaches_the_exact_mise(drift: SimulatedDrift) -> None:
    times = dense_design(drift, 20_000)
    grid = np.linspace(0.1, 0.9, 17)
    points = [point(drift, float(t), n=len(times)) for t in grid]
    exact = exact_mise(drift.theta, times, np.full(len(times), 50.0), grid, 0.04).sum()
    assert asymptotic_mise(points, grid, 0.04).sum() == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_optimal_bandwidth_minimises_the_leading_terms(drift: SimulatedDrift, kernel: Kernel) -> None:
    """(20), and its online counterpart, against a numerical minimum of squared bias plus μ_02 tr V / (nhgλ)."""
    at = point(drift, 0.6)

    def leading(h: float) -> float:
        noise = kernel.moment(0, 2) * at.spread.sum() / (at.documents * h * at.density * at.mean_length)
        return float((asymptotic_bias(at, h, kernel=kernel) ** 2).sum() + noise)

    best = minimize_scalar(lambda x: leading(np.exp(x)), bounds=(-8, 2), method="bounded", options={"xatol": 1e-9})
    assert optimal_bandwidth(at, kernel=kernel) == pytest.approx(np.exp(best.x), rel=1e-4)
    if not kernel.online:
        assert minimal_mse(at, kernel=kernel) == pytest.approx(best.fun, rel=1e-6)
        printed = at.documents**-0.8 * (  # (21) to the letter: the mse at h = n^(-1/5), not the infimum
            kernel.moment(2, 1) ** 2 * (at.curvature**2).sum()
            + kernel.moment(0, 2) / (at.density * at.mean_length) * at.spread.sum()
        )
        assert printed == pytest.approx(leading(at.documents**-0.2))
        assert printed > 1.1 * best.fun


def test_optimal_bandwidth_without_drift_is_infinite() -> None:
    still = DriftPoint(np.array([0.5, 0.5]), np.zeros(2), np.zeros(2), 1.0, 0.0, 100, 10.0)
    assert optimal_bandwidth(still) == np.inf
    assert optimal_bandwidth(still, kernel=Kernel("tricube", online=True)) == np.inf
