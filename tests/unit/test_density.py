"""Weighted densities over time: against peers, at the edges, and with chosen bandwidths."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.stats import gaussian_kde
from sklearn.neighbors import KernelDensity

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import HOUR
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.density import effective_size, likelihood_bandwidth, mode, silverman, weighted_kde
from sdretrieval.estimate.time.kernels import Kernel, kernel_names


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.beta(2, 5, 80) * 100, rng.random(80)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("gaussian", "gaussian"),
        ("epanechnikov", "epanechnikov"),
        ("uniform", "tophat"),
        ("triangular", "linear"),
        ("exponential", "exponential"),
    ],
)
def test_equals_scikit_learn(data, ours: str, theirs: str) -> None:
    times, weights = data
    at = np.linspace(-5, 105, 60)
    peer = KernelDensity(kernel=theirs, bandwidth=7.0, rtol=1e-10).fit(times[:, None], sample_weight=weights)
    assert weighted_kde(times, weights, at, ours, 7.0) == pytest.approx(
        np.exp(peer.score_samples(at[:, None])), rel=1e-6, abs=1e-12
    )


def test_equals_scipy_with_weights(data) -> None:
    times, weights = data
    peer = gaussian_kde(times, bw_method=0.4, weights=weights)
    h = float(np.sqrt(peer.covariance[0, 0]))
    at = np.linspace(0, 100, 30)
    assert weighted_kde(times, weights, at, "gaussian", h) == pytest.approx(peer(at), rel=1e-9)


def test_by_hand() -> None:
    """Triangular, h = 2: weights 3/4 at 0 and 1/4 at 1; at t = 1: 3/4 · 1/4 + 1/4 · 1/2."""
    assert weighted_kde([0.0, 1.0], [3.0, 1.0], [1.0], "triangular", 2.0).tolist() == [0.75 * 0.25 + 0.25 * 0.5]


@pytest.mark.parametrize("h", [0.5, 20.0, 90.0, 400.0, 1e5])
@pytest.mark.parametrize("name", kernel_names())
def test_bounded_density_integrates_to_one(data, name: str, h: float) -> None:
    times, weights = data
    at = np.linspace(0, 100, 8001 if h < 1 else 801)
    middles = (at[1:] + at[:-1]) / 2
    values = weighted_kde(times, weights, middles, name, h, bounds=(0, 100))
    assert values.mean() * 100 == pytest.approx(1, abs=2e-3)


def test_reflection_by_hand() -> None:
    """One datum at 1 in [0, 10], triangular h = 3: at 0 its kernel 2/9 and that of its mirror image at -1, 2/9."""
    assert weighted_kde([1.0], None, [0.0, 5.0], "triangular", 3.0, (0.0, 10.0)) == pytest.approx([4 / 9, 0])


def test_the_edge_of_a_flat_density_is_flat() -> None:
    """Without bounds half of the mass at an edge is lost; with them none is."""
    times = (np.arange(1000) + 0.5) / 10
    at = [0.0, 50.0, 100.0]
    assert weighted_kde(times, None, at, "epanechnikov", 10.0, (0.0, 100.0)) == pytest.approx([0.01] * 3, rel=1e-3)
    assert weighted_kde(times, None, at, "epanechnikov", 10.0)[0] == pytest.approx(0.005, rel=0.02)


@pytest.mark.parametrize("name", kernel_names())
def test_wide_kernels_become_uniform_within_bounds(data, name: str) -> None:
    times, weights = data
    for h in (1100.0, 1e6, inf):
        values = weighted_kde(times, weights, np.linspace(0, 100, 11), name, h, (0.0, 100.0))
        assert values == pytest.approx(np.full(11, 0.01), rel=0.01)


@pytest.mark.parametrize("name", kernel_names())
def test_taking_a_wide_kernel_for_uniform_is_a_small_step(name: str) -> None:
    """Just below the bandwidth from which the density is taken as uniform, it is so to about a percent."""
    limit = Kernel(name).form.flat_from
    values = weighted_kde([0.0, 0.1], None, np.linspace(0, 1, 9), name, 0.99 * limit, (0.0, 1.0))
    assert values == pytest.approx(np.ones(9), rel=0.015)
    assert not (values == 1.0).all()


def test_large_inputs_are_taken_in_pieces(monkeypatch, data) -> None:
    times, weights = data
    at = np.random.default_rng(1).uniform(-10, 110, 500)
    whole = weighted_kde(times, weights, at, "tricube", 6.0)
    monkeypatch.setattr("sdretrieval.estimate.time.density.ENTRIES_AT_ONCE", 200)
    assert weighted_kde(times, weights, at, "tricube", 6.0) == pytest.approx(whole, rel=1e-12)


def test_undated_weightless_and_outside() -> None:
    times = np.array([10, UNDATED, 20, 900], dtype=np.int64)
    values = weighted_kde(times, [1, 5, 0, 7], np.array([10, UNDATED, 200]), "uniform", 5.0, (0, 100))
    assert values[0] == pytest.approx(1 / 10)
    assert np.isnan(values[1])
    assert values[2] == 0


def test_no_data_is_uniform_within_bounds_and_nan_without() -> None:
    nothing = np.array([UNDATED])
    assert weighted_kde(nothing, None, [5.0], "uniform", 1.0, (0, 50)).tolist() == [0.02]
    assert np.isnan(weighted_kde(nothing, None, [5.0], "uniform", 1.0)).all()
    assert np.isnan(mode(nothing, None, "uniform", 1.0))


def test_mode() -> None:
    assert mode([1.0, 5.0, 5.2, 9.0], None, "triangular", 1.0) == pytest.approx(5.1, abs=0.11)
    assert mode([1.0, 5.0, 5.2, 9.0], [9, 1, 1, 1], "triangular", 1.0) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: weighted_kde([1.0], None, [1.0], Kernel("uniform", online=True), 1.0), "symmetric"),
        (lambda: weighted_kde([1.0], None, [1.0], "uniform", 0.0), "0.0"),
        (lambda: weighted_kde([1.0], None, [1.0], "uniform", inf), "needs bounds"),
        (lambda: weighted_kde([1.0], [-1.0], [1.0], "uniform", 1.0), "negative"),
        (lambda: weighted_kde([1.0], [1.0, 2.0], [1.0], "uniform", 1.0), "1 times but 2 weights"),
        (lambda: weighted_kde([1.0], None, [1.0], "uniform", 1.0, (5.0, 5.0)), "bounds"),
        (lambda: likelihood_bandwidth([1.0, 2.0], uniform=0.0), "uniform"),
    ],
)
def test_bad_arguments_are_named(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()


# -- bandwidths ------------------------------------------------------------------------------------------------


def test_silverman_by_hand() -> None:
    """Of 0, 1, …, 9 with equal weights: σ = √8.25 = 2.872; the quartiles lie at 2 and 7, 5/1.34 = 3.731."""
    assert silverman(np.arange(10.0), kernel="gaussian", minimum_ms=0) == pytest.approx(0.9 * 8.25**0.5 * 10**-0.2)


def test_silverman_takes_weights_as_copies_and_their_effective_size() -> None:
    times = np.array([1.0, 4.0, 6.0, 30.0])
    assert effective_size([3, 3, 3, 3]) == pytest.approx(4)
    even = silverman(times, [2, 2, 2, 2], "gaussian", minimum_ms=0)
    assert even == pytest.approx(silverman(times, None, "gaussian", minimum_ms=0))
    assert silverman(times, [5, 5, 5, 0.001], "gaussian", minimum_ms=0) < 0.5 * even


def test_silverman_carries_over_to_other_kernels() -> None:
    """An Epanechnikov kernel needs 2.214 times the width of a Gaussian (Marron & Nolan 1988)."""
    times = np.arange(30.0)
    ratio = silverman(times, kernel="epanechnikov", minimum_ms=0) / silverman(times, kernel="gaussian", minimum_ms=0)
    assert ratio == pytest.approx(2.214, abs=0.001)


def test_one_instant_falls_back_to_the_least_bandwidth() -> None:
    for rule in (silverman, likelihood_bandwidth):
        assert rule([5.0, 5.0, 5.0]) == HOUR
        assert rule([5.0], minimum_ms=7.0) == 7.0


def test_no_data_to_choose_by() -> None:
    assert silverman([]) == HOUR
    assert likelihood_bandwidth([]) == inf


def plain_leave_one_out(times, weights, h: float, kernel: Kernel, bounds, uniform: float) -> float:
    """Σ w log f of each datum by the density of all data of other instants."""
    score = 0.0
    for i in range(len(times)):
        others = times != times[i]
        density = weighted_kde(times[others], weights[others], [times[i]], kernel, h, bounds)[0]
        span = bounds[1] - bounds[0]
        score += weights[i] * np.log((1 - uniform) * density + uniform / span)
    return score / weights.sum()


@pytest.mark.parametrize("name", ["epanechnikov", "gaussian"])
def test_likelihood_bandwidth_maximises_the_plain_leave_one_out_score(name: str) -> None:
    rng = np.random.default_rng(3)
    times = np.round(np.concatenate([rng.normal(30, 4, 40), rng.uniform(0, 100, 20)]).clip(0, 100))
    weights = rng.random(60)
    grid = np.geomspace(1, 200, 15)
    scores = [plain_leave_one_out(times, weights, h, Kernel(name), (0.0, 100.0), 0.05) for h in grid]
    chosen = likelihood_bandwidth(times, weights, name, bounds=(0.0, 100.0), candidates=grid)
    assert chosen == grid[int(np.argmax(scores))]
    assert 1 < chosen < 200


def test_ties_do_not_drive_the_bandwidth_to_zero() -> None:
    """Day-level dates: every datum has twins; leaving out one of them alone would make h → 0 the best."""
    rng = np.random.default_rng(4)
    times = np.repeat(np.round(rng.normal(50, 10, 40)), 3)
    assert likelihood_bandwidth(times, minimum_ms=0.01, bounds=(0.0, 100.0)) > 3


def test_no_preferred_time_gives_the_infinite_bandwidth() -> None:
    """Uniform times: in most samples of 100 no bandwidth earns its one parameter."""
    rng = np.random.default_rng(5)
    chosen = [likelihood_bandwidth(rng.uniform(0, 100, 100), bounds=(0.0, 100.0), minimum_ms=1.0) for _ in range(20)]
    flat = sum(h > 30 for h in chosen)
    assert flat >= 15
    peaked = [likelihood_bandwidth(rng.normal(50, 5, 100), bounds=(0.0, 100.0), minimum_ms=1.0) for _ in range(20)]
    assert max(peaked) < 20


def test_an_outlier_does_not_veto_narrow_bandwidths() -> None:
    times = np.append(np.random.default_rng(6).normal(50, 2, 60), 99.0)
    assert likelihood_bandwidth(times, bounds=(0.0, 100.0), minimum_ms=0.1) < 15
