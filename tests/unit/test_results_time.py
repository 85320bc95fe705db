"""Constants of the named time priors, chosen on other topics than those they are measured on."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import results_time_auto
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


def test_the_page_tells_where_shuffled_dates_changed_most(monkeypatch: pytest.MonkeyPatch):
    changes = {"cacm": (0.0, 0.0), "cf": (0.02, -0.06)}
    monkeypatch.setattr(results_time_auto, "SEARCHED", changes)
    monkeypatch.setattr(
        results_time_auto,
        "_controlled",
        lambda name, model: (np.full(2, 0.3), 0.3 + np.array(changes[name]), {"cacm": 1.0, "cf": 0.5}[name]),
    )
    told = results_time_auto._control_line(["bm25"])
    assert "50 % of the topics or more" in told and "on cf with bm25, by -0.0200 ± 0.0400" in told
    assert "| cf | bm25 | 0.3000 | 0.2800 | -0.0200 ± 0.0400 | 50 % |" in results_time_auto.control(["bm25"])
