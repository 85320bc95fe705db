"""The edges of the tests, and how comparisons are put together. Equality: tests/parity/test_significance.py."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate import TESTS, compare, compare_values, correct, evaluate
from sdretrieval.evaluate.significance import differences, randomisation


def test_differences():
    """0.1 + 0.2 is not 0.3 to a computer; to a measure it is."""
    assert differences([0.1 + 0.2], [0.3]).tolist() == [0.0]
    with pytest.raises(ParameterError, match="equally long"):
        differences([0.1, 0.2], [0.3])


# Equal runs; no variance, where Student's t divides by zero; a single topic; three gains of equal size, where of 8
# sign patterns 2 are as extreme; topics without a difference, which change nothing; many, where none is certain.
@pytest.mark.parametrize(
    ("test", "d", "p"),
    [
        *((name, np.zeros(10), 1.0) for name in TESTS),
        ("t", np.full(5, -0.1), 0.0),
        ("t", np.array([0.2]), math.nan),
        ("randomisation", np.array([0.1, 0.1, 0.1]), 0.25),
        (
            "randomisation",
            np.array([0.1, 0.3, -0.05, *np.zeros(5)]),
            randomisation(np.array([0.1, 0.3, -0.05])).p_value,
        ),
        ("randomisation", np.ones(60), 1 / 100_001),
    ],
)
def test_edges(test, d, p):
    found = TESTS[test](d)
    assert found.p_value == pytest.approx(p, nan_ok=True)
    assert p != 0.0 or found.statistic == -math.inf


def test_sampling_repeats_itself_and_minds_the_seed():
    d = np.random.default_rng(1).normal(0.05, 0.3, 40)
    assert randomisation(d, seed=1).p_value == randomisation(d, seed=1).p_value
    assert randomisation(d, seed=1).p_value != randomisation(d, seed=2).p_value


def test_corrections_by_hand():
    """Sorted .01 .02 .04 times 3 2 1 is .03 .04 .04, in the order given; what was not asked is not in the family."""
    assert correct([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert correct([0.02, math.nan, 0.03]) == pytest.approx([0.04, math.nan, 0.04], nan_ok=True)
    assert correct([0.02, 0.5], "none") == [0.02, 0.5]


def test_unknown_names_are_refused():
    with pytest.raises(ParameterError, match="holm"):
        correct([0.1], "scheffe")
    with pytest.raises(ParameterError, match="wilcoxon"):
        compare_values({"1": 0.1}, {"1": 0.2}, tests=["u"])


def test_only_common_topics_are_compared():
    c = compare_values({"1": 0.5, "2": 0.5}, {"2": 0.25, "3": 0.9})
    assert c.topics == ("2",)
    assert (c.mean, c.baseline_mean, c.difference) == (0.5, 0.25, 0.25)
    assert c.relative == 1.0
    nothing = compare_values({"1": 0.5}, {"2": 0.5})
    assert math.isnan(nothing.difference)
    assert nothing.tests["sign"].p_value == 1.0


def test_effect_sizes_by_hand():
    """d = (.1, .3, 0, 0): mean .1, deviation sqrt(.02); wins 2, ties 2 of 4."""
    c = compare_values({"1": 0.5, "2": 0.5, "3": 0.5, "4": 0.5}, {"1": 0.4, "2": 0.2, "3": 0.5, "4": 0.5})
    assert c.cohens_d == pytest.approx(0.1 / math.sqrt(0.02))
    assert c.superiority == 0.75
    assert (c.wins, c.ties, c.losses) == (2, 2, 0)
    assert math.isnan(compare_values({"1": 0.5}, {"1": 0.0}).relative)  # of a zero baseline


@pytest.fixture
def evaluations():
    rng = np.random.default_rng(0)
    qrels = {str(q): {f"d{i}": int(rng.random() < 0.3) for i in range(40)} for q in range(30)}
    return [
        evaluate(
            {q: {d: shift * grade + rng.normal() for d, grade in grades.items()} for q, grades in qrels.items()},
            qrels,
            ["AP", "P@5"],
            name=f"shift {shift}",
        )
        for shift in (0.0, 0.6, 1.2)
    ]


def test_compare_corrects_over_runs_for_each_measure_and_test(evaluations):
    base, *others = evaluations
    table = compare(others, base)
    assert [(c.measure, c.run) for c in table] == [(m, f"shift {s}") for m in ("AP", "P@5") for s in (0.6, 1.2)]
    for measure in ("AP", "P@5"):
        rows = [c for c in table if c.measure == measure]
        for test in TESTS:
            plain = [c.tests[test].p_value for c in rows]
            assert [c.corrected[test] for c in rows] == pytest.approx(correct(plain))


def test_significance_goes_by_the_corrected_value(evaluations):
    base, weak, strong = evaluations
    row = compare([weak, strong], base, measures=["AP"])[1]
    assert row.significant("t")
    assert not row.significant("t", alpha=row.corrected["t"])
    assert row.difference == pytest.approx(strong.mean["AP"] - base.mean["AP"])
    assert row.confidence[0] < row.difference < row.confidence[1]
