"""Scores on one scale: worked out by hand."""

import numpy as np
import pytest

from sdretrieval.ranking.normalise import minmax, rank_shares, reciprocal_rank, zscores


def test_minmax_by_hand():
    np.testing.assert_allclose(minmax(np.array([3.0, 1.0, 2.0])), [1.0, 0.0, 0.5])
    np.testing.assert_array_equal(minmax(np.array([2.0, 2.0])), [1.0, 1.0])
    assert len(minmax(np.zeros(0))) == 0


def test_zscores_by_hand():
    np.testing.assert_allclose(zscores(np.array([1.0, 3.0])), [-1.0, 1.0])
    np.testing.assert_allclose(
        zscores(np.array([10.0, 20.0, 60.0])), np.array([-20.0, -10.0, 30.0]) / np.sqrt(1400 / 3)
    )
    np.testing.assert_array_equal(zscores(np.full(3, 0.1)), np.zeros(3))
    assert len(zscores(np.zeros(0))) == 0


@pytest.mark.parametrize("scale", [minmax, zscores])
def test_scale_and_shift_do_not_matter(scale):
    scores = np.array([-4.0, 0.25, 7.5, 7.5, 1.0])
    np.testing.assert_allclose(scale(scores), scale(scores * 1e-3 - 12.0), rtol=1e-9)


@pytest.mark.parametrize("scale", [minmax, zscores])
def test_the_largest_numbers_do_not_overflow(scale):
    assert np.isfinite(scale(np.array([-1.7e308, 0.0, 1.7e308]))).all()


def test_ranks():
    np.testing.assert_allclose(reciprocal_rank(2), [1 / 61, 1 / 62])
    np.testing.assert_allclose(reciprocal_rank(2, k=0), [1.0, 0.5])
    np.testing.assert_allclose(rank_shares(4), [1.0, 0.75, 0.5, 0.25])
    assert len(reciprocal_rank(0)) == len(rank_shares(0)) == 0
