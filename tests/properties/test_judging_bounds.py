"""Bounds of measures contain the true value, and are reached; sampled estimates are right on average."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.evaluate import evaluate
from sdretrieval.learn.judging.bounds import bounds
from sdretrieval.learn.judging.estimates import Contest

MEASURES = ("AP", "P@3", "nDCG", "nDCG@3")
cell = st.sampled_from([0, 1, None])


@given(st.lists(cell, min_size=1, max_size=6), st.lists(cell, max_size=3), st.sampled_from(MEASURES))
@settings(max_examples=120)
def test_binary_bounds_are_the_extremes(ranked: list, beyond: list, measure: str) -> None:
    grades = np.array([np.nan if g is None else g for g in ranked], dtype=float)
    low, high = bounds(measure, grades, [g for g in beyond if g is not None], beyond.count(None))
    values = [_true(measure, full, len(ranked)) for full in _completions([*ranked, *beyond], (0, 1))]
    assert low == pytest.approx(min(values), abs=1e-9)
    assert high == pytest.approx(max(values), abs=1e-9)


@given(st.lists(st.sampled_from([0, 1, 2, None]), min_size=1, max_size=4), st.lists(cell, max_size=2))
@settings(max_examples=60)
def test_graded_bounds_contain_everything(ranked: list, beyond: list) -> None:
    grades = np.array([np.nan if g is None else g for g in ranked], dtype=float)
    for measure in ("nDCG", "nDCG@3"):
        known = [g for g in beyond if g is not None]
        low, high = bounds(measure, grades, known, beyond.count(None), highest=2)
        for full in _completions([*ranked, *beyond], (0, 1, 2)):
            assert low - 1e-9 <= _true(measure, full, len(ranked)) <= high + 1e-9


def _completions(grades: list, values: tuple[int, ...]):
    open_ = [i for i, grade in enumerate(grades) if grade is None]
    for chosen in itertools.product(values, repeat=len(open_)):
        full = list(grades)
        for i, grade in zip(open_, chosen, strict=True):
            full[i] = grade
        yield full


def _true(measure: str, grades: list[int], ranked: int) -> float:
    """By trec_eval."""
    qrels = {"1": {f"d{i}": grade for i, grade in enumerate(grades)}}
    run = {"1": {f"d{i}": -float(i) for i in range(ranked)}}
    return evaluate(run, qrels, [measure]).mean[measure]


def test_estimates_from_samples_are_right_on_average() -> None:
    rng = np.random.default_rng(0)
    pool = {f"d{i}": i + 1 for i in range(60)}
    truth = {d: int(rng.random() < 0.6 / (1 + i / 10)) for i, d in enumerate(pool)}
    values, covered = [], 0
    for seed in range(120):
        names = {d: f"{d}-{seed}" for d in pool}  # other names, another random order
        here = {names[d]: rank for d, rank in pool.items()}
        run = Run({"1": Ranking(list(here), -np.arange(60.0))})
        contest = Contest({"run": run}, {"1": here})
        order = contest.random_order("1", here)[:24]
        back = {name: d for d, name in names.items()}
        judged = {"1": {name: truth[back[name]] for name in order}}
        value, error = contest.sampled("run", judged, {"1": here})
        values.append(value)
        exact = evaluate(run, {"1": {names[d]: g for d, g in truth.items()}}, ["AP"]).mean["AP"]
        covered += abs(value - exact) <= 1.96 * error
    assert abs(np.mean(values) - exact) < 3 * np.std(values) / np.sqrt(len(values)) + 0.02
    assert covered / len(values) > 0.85


@given(st.data())
@settings(max_examples=15)
def test_estimates_lie_within_the_bounds(data: st.DataObject) -> None:
    pool = {f"d{i}": i + 1 for i in range(8)}
    runs = {name: Run({"1": Ranking(data.draw(st.permutations(list(pool)))[:6], -np.arange(6.0))}) for name in "ab"}
    judged = {"1": data.draw(st.dictionaries(st.sampled_from(list(pool)), st.integers(0, 1)))}
    for one in Contest(runs, {"1": pool}).measures(judged, MEASURES):
        assert one.low - 1e-9 <= one.interval[0] <= one.estimate + 1e-9
        assert one.estimate <= one.interval[1] + 1e-9 or one.interval[1] <= one.high + 1e-9
        assert one.estimate <= one.high + 1e-9
