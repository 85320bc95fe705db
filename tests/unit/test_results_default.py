"""Standard errors beside the means of the default's tables."""

from __future__ import annotations

import pytest

from benchmarks import results_default


def test_errors_are_of_the_difference_to_bm25(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"bm25": {"a": 0.1, "b": 0.2, "c": 0.3}, "sd3": {"c": 0.3, "a": 0.3, "b": 0.3}}
    monkeypatch.setattr(results_default, "values", lambda name, model: {"AP": measured[model]})
    table = results_default._table({model: {"cacm": {"AP": measured[model]}} for model in measured}, ["cacm"], "AP")
    assert "| bm25 | 0.2000 |" in table
    assert "| sd3 | 0.3000 (0.0577) |" in table  # gains .2, .1, 0
