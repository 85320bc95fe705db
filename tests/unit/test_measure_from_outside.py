"""A measure that is not the package's: a function of the user's, or what ir_measures was taught."""

from __future__ import annotations

import ir_measures
import pytest

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate import compare, evaluate, evaluate_by_time, register_measure

QRELS = Qrels({"1": {"a": 2, "b": 0, "c": 1}, "2": {"a": 1}, "3": {"a": 1}})
RUN = Run({"1": Ranking(["d", "b", "a", "c"], [4.0, 3.0, 2.0, 1.0]), "2": Ranking(["a"], [1.0])}, "mine")


def judged_share(docids, grades):
    """How much of what was found was judged at all."""
    return sum(docid in grades for docid in docids) / len(docids)


@pytest.fixture(autouse=True)
def registered():
    register_measure("JudgedShare", judged_share)


def test_it_is_asked_for_by_name_beside_the_others():
    found = evaluate(RUN, QRELS, ["AP", "JudgedShare", "RR@2"])
    assert found.per_topic["JudgedShare"] == {"1": 0.75, "2": 1.0}
    assert found.mean["JudgedShare"] == 0.875
    assert found.mean["AP"] == evaluate(RUN, QRELS, ["AP"]).mean["AP"]
    found = evaluate(RUN, QRELS, ["JudgedShare@2"], complete=True)
    assert found.per_topic["JudgedShare@2"] == {"1": 0.5, "2": 1.0, "3": 0.0}


def test_it_sees_the_ranking_of_trec_eval():
    """Among equal scores the docid decides, in plain dictionaries too."""
    seen = []
    register_measure("Seen", lambda docids, grades: seen.append(list(docids)) or 0.0)
    evaluate({"1": {"a": 1.0, "b": 2.0, "c": 1.0}}, QRELS, ["Seen"])
    assert seen == [["b", "c", "a"]]


def test_it_is_compared_and_sliced_like_any_other():
    (row,) = compare([evaluate(RUN, QRELS, ["JudgedShare@2"])], evaluate(RUN, QRELS, ["JudgedShare@2"]))
    assert (row.measure, row.difference) == ("JudgedShare@2", 0.0)
    (only,) = evaluate_by_time(RUN, QRELS, {}, "year", ["JudgedShare"])
    assert only.evaluation.mean["JudgedShare"] == 0.875


def test_the_command_line_knows_it_too(tmp_path, capsys):
    from sdretrieval.cli.main import main

    (tmp_path / "qrels.txt").write_text("1 0 a 1\n")
    (tmp_path / "run.txt").write_text("1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0 t\n")
    assert main(["evaluate", str(tmp_path / "qrels.txt"), str(tmp_path / "run.txt"), "-m", "JudgedShare"]) == 0
    assert "0.5000" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["AP", "not a name", "P@5"])
def test_a_name_that_is_taken_or_none_is_refused(name):
    with pytest.raises(ParameterError, match="Choose another"):
        register_measure(name, judged_share)


def test_a_measure_that_ir_measures_was_taught():
    pytest.importorskip("pandas", reason="ir_measures hands its own functions data frames")
    if "Taught" not in ir_measures.measures.registry:
        ir_measures.measures.register(ir_measures.define_byquery(lambda qrels, run: len(run), name="Taught"))
    assert evaluate(RUN, QRELS, ["AP", "Taught"]).per_topic["Taught"] == {"1": 4, "2": 1}
