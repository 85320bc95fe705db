"""What must hold of local models, penalised estimates and densities whatever the data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sdretrieval.estimate.time.density import silverman, weighted_kde
from sdretrieval.estimate.time.kernels import Kernel, kernel_names
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.estimate.time.penalised import POWERS, estimate, penalties, solve

SETTINGS = settings(max_examples=25, deadline=None)
kernels = st.builds(Kernel, st.sampled_from(kernel_names()), st.booleans())
whole_times = st.integers(-50, 50)  # whole numbers, so that shifts and scales by powers of two are exact


@st.composite
def collections(draw, min_docs: int = 1):
    n = draw(st.integers(min_docs, 12))
    words = draw(st.integers(1, 5))
    counts = draw(st.lists(st.lists(st.integers(0, 4), min_size=words, max_size=words), min_size=n, max_size=n))
    times = draw(st.lists(whole_times, min_size=n, max_size=n))
    return np.array(counts), np.array(times, dtype=float)


@SETTINGS
@given(collections(), kernels, st.sampled_from([0.0, 1.5, 16.0, np.inf]), whole_times)
def test_a_local_model_is_a_distribution_or_nothing(data, kernel: Kernel, h: float, t: float) -> None:
    counts, times = data
    theta = LocalLikelihood(csr_matrix(counts), times, h, kernel=kernel).at(t)
    within = kernel.weights(t - times, h) * counts.sum(axis=1)
    if within.sum() > 0:
        assert theta.sum() == pytest.approx(1)
        assert theta.min() >= 0
    else:
        assert np.isnan(theta).all()


@SETTINGS
@given(collections(), kernels, whole_times, st.randoms())
def test_order_shift_and_scale_of_time_do_not_matter(data, kernel: Kernel, t: float, random) -> None:
    counts, times = data
    model = LocalLikelihood(csr_matrix(counts), times, 16.0, kernel=kernel).at(t)
    order = list(range(len(times)))
    random.shuffle(order)
    shuffled = LocalLikelihood(csr_matrix(counts[order]), times[order], 16.0, kernel=kernel).at(t)
    shifted = LocalLikelihood(csr_matrix(counts), times + 1024, 16.0, kernel=kernel).at(t + 1024)
    scaled = LocalLikelihood(csr_matrix(counts), times * 64, 1024.0, kernel=kernel).at(t * 64)
    for other in (shuffled, shifted, scaled):
        assert other == pytest.approx(model, rel=1e-9, abs=1e-12, nan_ok=True)


@SETTINGS
@given(collections(min_docs=2), kernels, whole_times)
def test_splitting_a_document_changes_nothing(data, kernel: Kernel, t: float) -> None:
    """Two halves of the same time count as the whole."""
    counts, times = data
    half = counts[0] // 2
    parts = np.vstack([counts, half])
    parts[0] = counts[0] - half
    whole = LocalLikelihood(csr_matrix(counts), times, 16.0, kernel=kernel).at(t)
    split = LocalLikelihood(csr_matrix(parts), np.append(times, times[0]), 16.0, kernel=kernel).at(t)
    assert split == pytest.approx(whole, nan_ok=True)


@SETTINGS
@given(collections(), st.sampled_from(["uniform", "triangular", "epanechnikov", "tricube"]), st.booleans(), whole_times)
def test_documents_out_of_reach_do_not_matter(data, name: str, online: bool, t: float) -> None:
    counts, times = data
    kernel = Kernel(name, online)
    here = LocalLikelihood(csr_matrix(counts), times, 16.0, kernel=kernel).at(t)
    far = np.array([t - 16.0, t + 16.0, t + 1000.0])
    more = np.vstack([counts, np.full((3, counts.shape[1]), 1000)])
    assert LocalLikelihood(csr_matrix(more), np.append(times, far), 16.0, kernel=kernel).at(t) == pytest.approx(
        here, nan_ok=True
    )


@SETTINGS
@given(collections(), whole_times)
def test_an_online_model_is_blind_to_the_present_and_future(data, t: float) -> None:
    counts, times = data
    kernel = Kernel("gaussian", online=True)
    model = LocalLikelihood(csr_matrix(counts), times, 16.0, kernel=kernel).at(t)
    changed = np.where((times >= t)[:, None], counts * 7 + 3, counts)
    assert LocalLikelihood(csr_matrix(changed), times, 16.0, kernel=kernel).at(t) == pytest.approx(model, nan_ok=True)


# -- penalised ---------------------------------------------------------------------------------------------------


@st.composite
def problems(draw):
    k = draw(st.integers(2, 8))
    counts = np.array(draw(st.lists(st.integers(0, 20), min_size=k, max_size=k)), dtype=float)
    parts = np.array(draw(st.lists(st.integers(1, 30), min_size=k, max_size=k)), dtype=float)
    return counts, parts / parts.sum()


strengths = st.floats(0.01, 50)


@SETTINGS
@given(problems(), strengths, st.sampled_from(sorted(POWERS)))
def test_penalised_lies_between_the_data_and_the_global_model(problem, strength: float, method: str) -> None:
    """A distribution; words seen more often than q expects (by the solution's own β) are never put below it."""
    c, q = problem
    lam = penalties(q, strength, method)
    solution = solve(c, q, lam)
    assert solution.theta.sum() == pytest.approx(1)
    free = c / solution.beta if solution.beta > 0 else np.zeros_like(c)
    low, high = np.minimum(q, free), np.maximum(q, free)
    assert (solution.theta >= low - 1e-9).all()
    assert (solution.theta <= high + 1e-9).all()


@SETTINGS
@given(problems(), strengths, st.floats(0.1, 10))
def test_penalised_depends_on_the_ratio_of_counts_to_penalties(problem, strength: float, factor: float) -> None:
    c, q = problem
    lam = penalties(q, strength)
    assert solve(factor * c, q, factor * lam).theta == pytest.approx(solve(c, q, lam).theta, abs=1e-9)


@SETTINGS
@given(problems(), strengths, st.randoms())
def test_penalised_does_not_depend_on_the_order_of_words(problem, strength: float, random) -> None:
    c, q = problem
    order = list(range(len(c)))
    random.shuffle(order)
    assert estimate(c[order], q[order], strength) == pytest.approx(estimate(c, q, strength)[order], abs=1e-12)


# -- densities ---------------------------------------------------------------------------------------------------

weights = st.lists(st.integers(1, 4), min_size=1, max_size=8)


@SETTINGS
@given(weights, st.sampled_from(kernel_names()), st.data())
def test_weights_are_copies(copies: list[int], name: str, data) -> None:
    times = np.array(data.draw(st.lists(whole_times, min_size=len(copies), max_size=len(copies))), dtype=float)
    at = np.linspace(-60, 60, 13)
    weighted = weighted_kde(times, copies, at, name, 9.0, (-70.0, 70.0))
    repeated = weighted_kde(np.repeat(times, copies), None, at, name, 9.0, (-70.0, 70.0))
    assert weighted == pytest.approx(repeated, rel=1e-9, abs=1e-12)


@SETTINGS
@given(st.lists(whole_times, min_size=2, max_size=20), st.sampled_from([2.0, 0.25, 1024.0]))
def test_silverman_scales_with_time(times: list[int], factor: float) -> None:
    t = np.array(times, dtype=float)
    once, scaled = silverman(t, minimum_ms=0), silverman(t * factor, minimum_ms=0)
    assert scaled == pytest.approx(factor * once)
