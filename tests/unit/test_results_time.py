"""Constants of the named time priors, chosen on other topics than those they are measured on."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.results_time_auto import chosen_on_others


def test_what_is_best_everywhere_loses_nothing():
    assert chosen_on_others(np.array([[0.1] * 30, [0.4] * 30])) == pytest.approx(0.4)


def test_the_best_by_luck_loses():
    grid = np.random.default_rng(2).normal(0.3, 0.1, (40, 60))
    assert chosen_on_others(grid) < grid.mean(axis=1).max() - 0.005


def test_no_topic_chooses_for_itself():
    """Each constant is best for one topic, and bad for it alone where the topic is left out."""
    grid = np.eye(40)
    assert chosen_on_others(grid) == 0.0
