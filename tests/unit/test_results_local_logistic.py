"""How the benchmark of local logistic regression deals out its posts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.results_local_logistic import FIRST, Dated


@pytest.fixture
def data() -> Dated:
    rng = np.random.default_rng(0)
    threads = rng.integers(60, size=400).astype(str)
    return Dated(csr_matrix(np.eye(400)), rng.integers(2, size=400), rng.integers(24, size=400), threads)


@pytest.mark.parametrize("whole_threads", [False, True])
def test_halves_are_disjoint_and_test_months_have_a_past(data: Dated, whole_threads: bool) -> None:
    train, test = data.split(whole_threads)
    assert not set(train) & set(test) and abs(len(train) - 200) <= 15
    assert data.times[test].min() >= FIRST


def test_threads_are_kept_together(data: Dated) -> None:
    train, test = data.split(True)
    assert not set(data.threads[train]) & set(data.threads[test])
    train, test = data.split(False)
    assert set(data.threads[train]) & set(data.threads[test])


def test_fewer_training_posts_leave_the_test_as_it_is(data: Dated) -> None:
    train, test = data.split(True)
    fewer, again = data.split(True, 50)
    assert len(fewer) == 50 and set(fewer) <= set(train)
    np.testing.assert_array_equal(again, test)
