"""What counts, what it is called, and what is said about the rest. The numbers: tests/parity/test_trec_eval.py."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate import Evaluator, evaluate, natural_order, parse_measures, recall_precision

QRELS = Qrels({"1": {"a": 2, "b": 0, "c": 1}, "2": {"a": 1}, "9": {"x": 0}, "10": {"z": 1}})
RUN = Run(
    {
        "1": Ranking(["b", "a", "d", "c"], [4.0, 3.0, 2.0, 1.0]),
        "2": Ranking(["a"], [1.0]),
        "9": Ranking(["x"], [1.0]),
        "77": Ranking(["a"], [1.0]),
    },
    "tag",
)


def test_values_by_hand():
    """Relevant at ranks 2 and 4 of 2 relevant: (1/2 + 2/4) / 2, thesis (5.31) divided by the number of relevant. P@5
    (5.30): two relevant among five places, three of them empty. Counts are added, not averaged, as in trec_eval."""
    found = evaluate(RUN, QRELS, ["AP", "P@5", "NumRet"])
    assert (found.per_topic["AP"]["1"], found.per_topic["P@5"]["1"], found.mean["NumRet"]) == (0.5, 0.4, 6)


def test_topics_are_counted_as_trec_eval_counts_them():
    """Judged and retrieved are 1, 2 and 9; 9 has nothing relevant and counts as zero; complete, 10 does too."""
    result = evaluate(RUN, QRELS, ["AP"])
    assert result.topics == ("1", "2", "9")
    assert result.mean["AP"] == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    assert result.unjudged_topics == ("77",)
    assert result.missing_topics == ("10",)
    assert result.irrelevant_topics == ("9",)
    said = " ".join(result.notes())
    assert "[77] without judgments: not counted" in said
    assert "[10] without results: not counted (--complete counts them as zero)" in said
    assert "[9] judged without any relevant document: counted as zero" in said
    result = evaluate(RUN, QRELS, ["AP"], complete=True)
    assert result.topics == ("1", "2", "9", "10")
    assert result.per_topic["AP"]["10"] == 0.0
    assert result.mean["AP"] == pytest.approx(1.5 / 4)
    assert "[10] without results: counted as zero" in " ".join(result.notes())
    assert evaluate({"1": {"a": 1.0}}, {"1": {"a": 1}}).notes() == []


def test_threshold_changes_what_is_relevant():
    """From grade 2 on only a is relevant for topic 1, at rank 2."""
    result = evaluate(RUN, QRELS, ["AP"], rel=2)
    assert result.per_topic["AP"] == {"1": 0.5, "2": 0.0, "9": 0.0}
    assert result.measures == ("AP(rel=2)",)
    assert "2" in result.irrelevant_topics


def test_a_measure_answers_to_the_name_it_was_asked_by():
    result = evaluate(RUN, QRELS, ["map", "P_5", "nDCG@10"], rel=2)
    assert result.mean["map"] == result.mean["AP"] == result.mean["AP(rel=2)"]
    assert result.mean["P_5"] == result.mean["P@5"]
    with pytest.raises(KeyError):
        result.mean["RR"]


@pytest.mark.parametrize(
    ("asked", "rel", "parsed"),
    [
        (["AP(rel=1)", "P@5"], 2, ["AP", "P(rel=2)@5"]),  # a measure's own threshold wins
        (["P@5", "AP", "map", "P_5"], None, ["P@5", "AP"]),  # in order, none twice
        ("AP P@5", None, ["AP", "P@5"]),
    ],
)
def test_names_of_measures(asked, rel, parsed):
    assert list(parse_measures(asked, rel)) == list(evaluate(RUN, QRELS, asked, rel=rel).measures) == parsed


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nDGC@10", "nDCG"),
        ("P", "P@5"),
        ("AP@x", "AP"),
        ("AP(rel='high')", "AP"),
        ("__import__('os')", "Known are"),
        ("AP; print(1)", "AP"),
    ],
)
def test_an_unknown_measure_is_refused_with_a_way_out(name, expected):
    with pytest.raises(ParameterError) as error:
        parse_measures([name])
    assert name in str(error.value)
    assert expected in str(error.value)


@pytest.mark.parametrize(("measure", "rel"), [("AP", 0), ("AP(rel=0)", None)])
def test_grade_zero_cannot_be_relevant(measure, rel):
    with pytest.raises(ParameterError, match="1 or more"):
        evaluate(RUN, QRELS, [measure], rel=rel)


@pytest.mark.parametrize(
    ("run", "qrels", "mean", "unjudged"),
    [
        ({"5": {"a": 1.0}}, QRELS, math.nan, ("5",)),  # no common topic has no mean
        ({"1": {"a": 1.0}, "2": {"a": 1.0}}, {"1": {}, "2": {"a": 1}}, 1.0, ("1",)),  # no judgments: unjudged
        ({"1": {}, "2": {"a": 1.0}}, {"1": {"a": 1}, "2": {"a": 1}}, 0.5, ()),  # an empty list of results counts
        ({"1": {"a": math.inf, "b": -math.inf}}, {"1": {"b": 1}}, 0.5, ()),  # their sum is nan, they are not
        ({"1": {"a": np.float32(2), "b": np.float32(1)}}, {"1": {"b": 1}}, 0.5, ()),
        ({"1": {"a": 2, "b": 1}}, {"1": {"b": 1}}, 0.5, ()),
    ],
)
def test_unusual_runs_and_judgments(run, qrels, mean, unjudged):
    result = evaluate(run, qrels)
    assert result.mean["AP"] == pytest.approx(mean, nan_ok=True)
    assert result.unjudged_topics == unjudged


def test_what_is_no_score_and_no_measure_is_refused():
    with pytest.raises(ParameterError, match="'b' is not a number"):
        evaluate({"1": {"a": 1.0, "b": math.nan}}, QRELS)
    with pytest.raises(ParameterError, match="no measure"):
        evaluate(RUN, QRELS, [])


def test_the_runs_dictionaries_are_not_changed():
    run = {"1": {"a": 1, "b": 2.5}}
    evaluate(run, {"1": {"a": -1}}, ["AP", "RR@3"])
    assert run == {"1": {"a": 1, "b": 2.5}}


def test_evaluator_takes_its_name_from_the_run_or_the_caller():
    evaluator = Evaluator(QRELS)
    assert (evaluator.evaluate(RUN).name, evaluator.evaluate(RUN, "mine").name) == ("tag", "mine")
    assert natural_order(["10", "9", "1", "b2", "b10", "a"]) == ["1", "9", "10", "a", "b2", "b10"]


def test_eleven_points_by_hand():
    """Relevant at ranks 2 and 4 of 2: recall .5 at precision 1/2, recall 1 at 2/4; interpolation takes the best later
    precision, here .5 everywhere (5.30, 5.32)."""
    points = recall_precision(RUN, {"1": {"a": 1, "c": 1}})
    assert points.recall == tuple(i / 10 for i in range(11))
    assert points.precision == (0.5,) * 11
    assert points.per_topic == {"1": (0.5,) * 11}
    # One of two relevant documents found, at rank 1: nothing beyond recall .5.
    points = recall_precision({"1": {"a": 1.0}}, {"1": {"a": 1, "b": 1}})
    assert points.precision == (1.0,) * 6 + (0.0,) * 5
