"""Tables 4.1 and 4.2's builders: splits, features, climbs, and that test documents choose nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.results_classification import (
    Model,
    Row,
    Split,
    Task,
    ThesisTfIdf,
    against,
    beaten,
    climb,
    experiment,
    instances_task,
    random_split,
)

GRID = Model("made up", lambda **p: p, {"a": (1, 2, 3, 4, 5), "b": (1, 2, 3)}, {"a": 1, "b": 1}, "a, b")


def test_a_split_has_its_share_of_every_class_and_no_document_twice():
    labels = np.repeat(["x", "y"], [50, 10])
    split = random_split(60, np.random.default_rng(0), labels)
    assert sorted([*split.train, *split.test]) == list(range(60))
    assert [(labels[split.test] == one).sum() for one in "xy"] == [10, 2]
    part = random_split(np.array([3, 5, 7, 9]), np.random.default_rng(0), share=0.5)
    assert sorted([*part.train, *part.test]) == [3, 5, 7, 9] and len(part.test) == 2


def test_tf_idf_by_hand():
    made = ThesisTfIdf().fit(csr_matrix([[2.0, 1.0], [1.0, 0.0], [3.0, 0.0]]))
    idf = np.log([4 / 3.5, 4 / 1.5])  # in three documents, and in one
    row = np.array([2.0, 1.0]) * idf
    assert made.transform(csr_matrix([[2.0, 1.0]])).toarray()[0] == pytest.approx(row / np.linalg.norm(row))


def test_a_climb_goes_to_the_peak():
    chosen, value, tried = climb(GRID, lambda p: -((p["a"] - 4) ** 2) - (p["b"] - 2) ** 2)
    assert (chosen, value) == ({"a": 4, "b": 2}, 0) and 5 < tried <= 15


def test_only_the_validation_split_chooses():
    """The other splits would choose another point, and are measured at the chosen one alone."""
    validation, *splits = (Split(np.array([i]), np.array([i])) for i in range(3))
    measured = []

    def measure(made: dict, split: Split) -> float:
        measured.append((made["a"], split))
        return float(made["a"] == 2 if split is validation else made["a"] == 1)

    (row,) = experiment(Task(csr_matrix((4, 1)), measure, validation, splits), [GRID])
    assert row.chosen["a"] == 2 and row.validation == 1.0
    assert row.values == [0.0, 0.0]
    assert [split for _, split in measured if split is not validation] == splits


def test_a_document_of_two_topics_becomes_two():
    wanted = np.array([[True, True], [True, False], [False, True], [False, False]])
    task = Task(csr_matrix(np.diag([1.0, 2.0, 3.0, 4.0])), lambda *_: 0.0, Split(np.array([0]), np.array([1])), [])
    made = instances_task(task, wanted, 1)
    assert made.counts.toarray().sum(axis=1).tolist() == [1.0, 1.0, 2.0, 3.0]


def test_models_that_are_clearly_worse_are_numbered():
    values = np.linspace(0, 1, 12)
    rows = [Row(GRID, {}, 0.0, 0, values=(values + gain).tolist()) for gain in (0.0, 0.3, 0.3)]
    rows[1].values[0] += 0.5
    assert beaten(rows, rows[0]) == ""
    assert beaten(rows, rows[1]) == "1"


def test_errors_of_the_standard_split_are_over_topics():
    values = [np.array([0.8, 0.6]), np.array([0.9, 0.9])]
    assert against(values, 0, 1) == "70.00 (10.00)"
    assert against(values, 1, 1) == "90.00"
