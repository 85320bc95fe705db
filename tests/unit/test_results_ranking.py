"""Table 5.3's builders: where climbs begin, and that no topic chose what it is scored by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks.results_ranking import SPACES, _values_of_folds, started
from benchmarks.tables import error_of
from sdretrieval.evaluate.tune import space_of, tune
from sdretrieval.ranking.registry import make_ranker

MUS = (50.0, 100.0, 200.0, 500.0, 1000.0)


@dataclass
class MadeUp:
    """Ten topics, each with a value of its own for each μ; in another measure ten times as much."""

    measure: str = "AP"

    @property
    def qids(self) -> list[str]:
        return [str(i) for i in range(10)]

    def values(self, ranker) -> dict[str, float]:
        found = np.random.default_rng(MUS.index(ranker.mu)).random(10) * (10 if self.measure == "P@5" else 1)
        return dict(zip(self.qids, found.tolist(), strict=True))

    def identity(self, ranker) -> dict:
        return {}


def test_a_second_measure_is_of_the_same_held_out_settings():
    found = tune(MadeUp(), make_ranker("ql"), {"mu": MUS}, method="grid")
    assert len({one["mu"] for one in found.fold_settings}) > 1
    second = _values_of_folds(MadeUp(), make_ranker("ql"), found, "P@5")
    assert second == pytest.approx({qid: 10 * value for qid, value in found.values.items()})


@pytest.mark.parametrize("name", SPACES)
def test_climbs_begin_at_the_paper_or_at_random(name):
    space = space_of(make_ranker(name), SPACES[name])
    begin = started(name, space)
    if name in ("ql", "rm", "sd"):
        assert begin == make_ranker(name, profile="paper")
    else:
        assert begin != make_ranker(name)
        assert all(begin.settings()[key] in values for key, values in space.items())


def test_errors_are_of_paired_differences():
    assert error_of({"1": 0.5, "2": 0.3}, {"1": 0.1, "2": 0.3}) == " (0.2000)"
    assert error_of({"1": 0.5}, {"1": 0.5}) == ""
