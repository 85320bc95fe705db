"""The evaluation of tracking: by hand, by brute force, and from files."""

from __future__ import annotations

import json
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.learn.tracking.decisions import Decisions, read_decisions
from sdretrieval.learn.tracking.det import TICKS, det_figure, write_det
from sdretrieval.learn.tracking.tdt import Costs, Trials, compare_trackers, det_curve, evaluate_trials, trials_of

# Story a: targets at .9, .4; others at .8, .3, .2, .1. Story b: targets at .7; others at .6, .5.
HAND = {
    "a": Trials(np.array([0.9, 0.8, 0.4, 0.3, 0.2, 0.1]), np.array([1, 0, 1, 0, 0, 0], bool)),
    "b": Trials(np.array([0.7, 0.6, 0.5]), np.array([1, 0, 0], bool)),
}


def test_costs_by_hand() -> None:
    """(6.1): .02 · .5 · 1 + .98 · .25 · .1 = .0345; over min(.02, .098) = .02 that is 1.725."""
    assert float(Costs().cost(0.5, 0.25)) == pytest.approx(0.0345)
    assert float(Costs().normalised(0.5, 0.25)) == pytest.approx(1.725)
    assert float(Costs().normalised(1.0, 0.0)) == 1.0  # always no
    assert float(Costs(p_target=0.5).normalised(0.0, 1.0)) == 1.0  # always yes, where that is cheaper


def test_topic_weighted_by_hand() -> None:
    """At .7: a misses 1 of 2 and has 1 of 4 alarms, b is perfect: means .25 and .125, cost .25 + 4.9 · .125 = .8625.
    At .9: a misses half, b all: .75. So MinCost is .75 at .9."""
    found = evaluate_trials(HAND)
    assert (found.min_cost, found.threshold, found.p_miss, found.p_fa) == (pytest.approx(0.75), 0.9, 0.75, 0.0)
    curve = det_curve(HAND)
    at = curve.thresholds.tolist().index(0.7)
    assert (curve.p_miss[at], curve.p_fa[at]) == (pytest.approx(0.25), pytest.approx(0.125))
    assert found.per_story["a"].cost == 0.5
    assert found.per_story["b"].cost == 1.0
    assert found.per_story["a"].own_min_cost == 0.5
    assert found.per_story["b"].own_min_cost == 0.0
    assert found.per_story["b"].own_threshold == 0.7
    assert np.mean(list(found.story_costs().values())) == pytest.approx(found.min_cost)


def test_story_weighted_by_hand() -> None:
    """Three targets, six others, pooled. At .9: 2/3 missed. At .7: 1/3 missed, 1/6 alarms: 1/3 + 4.9/6 = 1.15."""
    found = evaluate_trials(HAND, weighting="story")
    assert found.min_cost == pytest.approx(2 / 3)
    curve = det_curve(HAND, "story")
    at = curve.thresholds.tolist().index(0.7)
    assert (curve.p_miss[at], curve.p_fa[at]) == (pytest.approx(1 / 3), pytest.approx(1 / 6))


def test_actual_cost_is_of_the_decisions_made() -> None:
    """a: yes to .9 and .8: misses 1/2, alarms 1/4; b: yes to nothing: (.5 + 1)/2 + 4.9 · (.25 + 0)/2."""
    trials = {
        "a": Trials(HAND["a"].scores, HAND["a"].targets, HAND["a"].scores > 0.75),
        "b": Trials(HAND["b"].scores, HAND["b"].targets, np.zeros(3, bool)),
    }
    found = evaluate_trials(trials)
    assert found.actual_cost == pytest.approx(0.75 + 4.9 * 0.125)
    assert found.per_story["a"].decided_cost == pytest.approx(0.5 + 4.9 * 0.25)
    assert isnan(evaluate_trials(HAND).actual_cost)


def test_unlisted_documents_are_below_every_threshold() -> None:
    trials = {"a": Trials(np.array([0.9, 0.8]), np.array([True, False]), None, unlisted_targets=3, unlisted_others=99)}
    found = evaluate_trials(trials)
    assert found.p_miss == 0.75
    assert found.per_story["a"].others == 100
    curve = det_curve(trials)
    assert curve.p_miss.tolist() == pytest.approx([1, 0.75, 0.75])
    assert curve.p_fa.tolist() == pytest.approx([0, 0, 0.01])


def test_equal_scores_are_one_threshold() -> None:
    trials = {"a": Trials(np.array([1.0, 1.0, 0.0]), np.array([True, False, False]))}
    assert det_curve(trials).thresholds.tolist() == [inf, 1.0, 0.0]
    assert det_curve(trials).p_fa.tolist() == [0.0, 0.5, 1.0]


def test_stories_without_targets_are_named_and_left_out() -> None:
    trials = {**HAND, "none": Trials(np.array([5.0]), np.array([False]))}
    found = evaluate_trials(trials)
    assert found.skipped == ("none",)
    assert found.min_cost == evaluate_trials(HAND).min_cost


def brute_force(trials: dict[str, Trials], weighting: str) -> float:
    costs = Costs()
    best = inf
    for threshold in [inf, *np.concatenate([t.scores for t in trials.values()])]:
        rows = [(t.rates(threshold), t.n_targets, t.n_others) for t in trials.values()]
        if weighting == "topic":
            miss = np.mean([r[0][0] for r in rows])
            fa = np.mean([r[0][1] for r in rows if r[2]]) if any(r[2] for r in rows) else 0.0
        else:
            miss = sum(r[0][0] * r[1] for r in rows) / sum(r[1] for r in rows)
            fa = sum(r[0][1] * r[2] for r in rows) / max(1, sum(r[2] for r in rows))
        best = min(best, float(costs.normalised(miss, fa)))
    return best


@st.composite
def many_trials(draw) -> dict[str, Trials]:
    found = {}
    for i in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 12))
        scores = draw(st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0]), min_size=n, max_size=n))
        targets = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        extra = draw(st.integers(0, 3)), draw(st.integers(0, 20))
        if sum(targets) + extra[0]:
            found[f"t{i}"] = Trials(np.array(scores), np.array(targets), None, *extra)
    return found or {"t": Trials(np.array([1.0]), np.array([True]))}


@settings(max_examples=150, deadline=None)
@given(trials=many_trials(), weighting=st.sampled_from(["topic", "story"]))
def test_min_cost_is_the_least_over_all_thresholds(trials: dict[str, Trials], weighting: str) -> None:
    found = evaluate_trials(trials, weighting=weighting)
    assert found.min_cost == pytest.approx(brute_force(trials, weighting), abs=1e-12)
    assert found.min_cost <= 1.0 + 1e-12  # saying no to everything is always possible
    assert (np.diff(found.curve.p_fa) >= -1e-15).all() and (np.diff(found.curve.p_miss) <= 1e-15).all()


def test_comparison_counts_lower_cost_as_better() -> None:
    """Against a system that is perfect on both stories, HAND costs more on both: wins are stories that cost more."""
    perfect = {name: Trials(t.targets.astype(float), t.targets) for name, t in HAND.items()}
    c = compare_trackers(evaluate_trials(HAND, name="hand"), evaluate_trials(perfect, name="perfect"))
    assert (c.wins, c.losses, c.difference) == (2, 0, pytest.approx(0.75))
    assert set(c.tests) == {"t", "sign"}


def test_bad_trials() -> None:
    for call, told in (
        (lambda: Costs(p_target=0), "p_target"),
        (lambda: Costs(c_fa=-1), "c_fa must be positive"),
        (lambda: Trials(np.array([np.nan]), np.array([True])), "not a number"),
        (lambda: Trials(np.array([1.0]), np.array([True, False])), "targets"),
        (lambda: det_curve(HAND, "document"), "weighting"),
        (lambda: det_curve({}), "no story"),
        (lambda: evaluate_trials({"a": Trials(np.array([1.0]), np.array([False]))}), "nothing can be missed"),
    ):
        with pytest.raises(ParameterError, match=told):
            call()


# -- from files ------------------------------------------------------------------------------------------------------


def write(path: Path, records: list[dict]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_decisions_are_read(tmp_path: Path) -> None:
    path = write(
        tmp_path / "d.jsonl",
        [
            {"topic": "a", "docid": "1", "score": 0.5, "on_topic": True},
            {"topic": "a", "docid": "2", "score": -1e-5, "on_topic": False},
        ],
    )
    found = read_decisions(path)
    assert found.scores == {"a": {"1": 0.5, "2": -1e-5}}
    assert not found.only_yes and not found.from_run


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"topic": "a", "docid": "1"}', "d.jsonl:2: expected"),
        ('{"topic": "a", "docid": "1", "score": "high"}', "d.jsonl:2: expected"),
        ('{"topic": "a", "docid": "1", "score": 1, "on_topic": "yes"}', "on_topic must be"),
        ('{"topic": "a", "docid": "0", "score": 1}', "second decision"),
        ("{", "d.jsonl:2: expected"),
    ],
)
def test_bad_decisions(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "d.jsonl").write_text('{"topic": "a", "docid": "0", "score": 1}\n' + line + "\n")
    with pytest.raises(InputError, match=told):
        read_decisions(tmp_path / "d.jsonl")


def test_trials_of_complete_and_of_cut_lists() -> None:
    qrels = {"a": {"r1": 1, "r2": 2, "r3": 1, "n1": 0}, "empty": {"x": 1}}
    decisions = Decisions(scores={"a": {"r1": 0.9, "r2": 0.5, "n1": 0.4, "n2": 0.3}, "other": {"r1": 1.0}})
    listed, unjudged = trials_of(decisions, qrels, seeds={"a": ["r3"]})
    assert unjudged == ["other"]
    assert list(listed) == ["a"]
    assert (listed["a"].n_targets, listed["a"].n_others) == (2, 2)
    counted, _ = trials_of(decisions, qrels, documents=100)
    assert (counted["a"].n_targets, counted["a"].n_others) == (3, 97)
    assert (counted["empty"].n_targets, counted["empty"].n_others) == (1, 99)  # its documents are all missed
    judged, _ = trials_of(decisions, qrels, judged_only=True, level=2)
    assert (judged["a"].n_targets, judged["a"].n_others) == (1, 2)
    with pytest.raises(ParameterError, match="4 documents cannot hold"):
        trials_of(decisions, qrels, documents=4)


# -- the curve drawn -------------------------------------------------------------------------------------------------


def test_axes_are_normal_deviates() -> None:
    from scipy.stats import norm

    axes = det_figure({"hand": evaluate_trials(HAND)}).axes[0]
    assert axes.get_xticks().tolist() == pytest.approx(norm.ppf(TICKS).tolist())
    assert [tick.get_text() for tick in axes.get_xticklabels()][:4] == ["0.01", "0.1", "0.5", "1"]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_are_written_and_repeatable(tmp_path: Path, ending: str) -> None:
    found = {"a $x$ name": evaluate_trials(HAND)}
    for name in ("one", "two"):
        write_det(tmp_path / f"{name}.{ending}", found)
    one, two = ((tmp_path / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
    assert one == two and len(one) > 1000
    with pytest.raises(ParameterError, match="a figure is"):
        write_det(tmp_path / "x.gif", found)
