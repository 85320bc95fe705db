"""What is behind the pictures of benchmarks/thesis_figures.py: (5.29), the domain (3.13), the appendix's volumes."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest

from benchmarks.thesis_figures import covered, smoothed_documents, variance, volume, volume_bound
from sdretrieval.estimate.distributions.sampling import sample_log_dirichlet


def test_variance_of_a_dirichlet() -> None:
    alpha = np.array([0.5, 2.0, 4.0])
    drawn = np.exp(sample_log_dirichlet(alpha, 200_000, np.random.default_rng(0)))
    np.testing.assert_allclose(variance(alpha), drawn.var(axis=0), rtol=0.02)


@pytest.mark.parametrize("smoothing", [1.0, 0.5, 0.2])
def test_smoothed_documents_stay_in_the_compressed_simplex(smoothing: float) -> None:
    theta, whole = smoothed_documents(smoothing), smoothed_documents(1.0)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.ptp(theta, axis=0), smoothing * np.ptp(whole, axis=0))


def test_two_words_reach_the_bound() -> None:
    """(7.10), (7.11): 1/|D| inside, half of that at the ends."""
    assert isclose(volume_bound(np.array([5, 5])), 1 / 10) and isclose(volume_bound(np.array([0, 10])), 1 / 20)
    for counts in ([5, 5], [0, 10], [10, 0], [1, 9]):
        assert isclose(volume(np.array(counts)), volume_bound(np.array(counts)), rel_tol=0.02)


@pytest.mark.parametrize(("counts", "share"), [([3, 4, 3], 3 / 4), ([2, 2, 2, 2], 2 / 3)])
def test_with_more_words_the_bound_is_loose(counts: list[int], share: float) -> None:
    """The last count must round right too: a hexagon instead of a square has 3/4 of it."""
    assert isclose(volume(np.array(counts)) / volume_bound(np.array(counts)), share, rel_tol=0.02)


def test_the_bound_holds_at_every_edge() -> None:
    for counts in ([0, 0, 6], [0, 2, 4], [6, 0, 0], [1, 0, 5], [0, 3, 0, 3]):
        told = np.array(counts)
        assert volume(told) <= volume_bound(told) * 1.02


def test_documents_of_one_length_leave_gaps_in_the_simplex() -> None:
    """What (7.4) adds up over all documents of a length is less than one."""
    assert covered(2, 200) == 1.0  # but for ties
    assert isclose(covered(3, 300), 3 / 4, abs_tol=0.02)
    assert covered(30, 3000) < 0.3
