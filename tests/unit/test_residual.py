"""Residual rankings by hand, and as ``evaluate --residual`` measures them."""

from __future__ import annotations

import pytest

from sdretrieval.cli.main import main
from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.collection.trec import write_qrels, write_run
from sdretrieval.evaluate.residual import residual_qrels, residual_run

RUN = Run({"1": Ranking(["a", "b", "c", "d"], [4.0, 3.0, 2.0, 1.0]), "2": Ranking(["a"], [1.0])}, "mine")
QRELS = Qrels({"1": {"a": 1, "b": 0, "d": 2}, "2": {"a": 1}, "3": {"z": 1}})
SEEN = Qrels({"1": {"a": 1, "b": 0}, "3": {"z": 1}})


def test_what_was_seen_is_left_out_of_both():
    left = residual_run(RUN, SEEN)
    assert (left["1"].docids, left["1"].scores.tolist(), left.tag) == (["c", "d"], [2.0, 1.0], "mine")
    assert left["2"] == RUN["2"]
    assert residual_qrels(QRELS, SEEN).judgments == {"1": {"d": 2}, "2": {"a": 1}}


def test_the_flag(tmp_path, capsys):
    write_run(tmp_path / "run.txt", RUN)
    write_qrels(tmp_path / "qrels.txt", QRELS)
    write_qrels(tmp_path / "seen.txt", SEEN)
    given = ["evaluate", str(tmp_path / "qrels.txt"), str(tmp_path / "run.txt"), "-m", "AP", "--output", "csv"]
    assert main([*given, "--residual", str(tmp_path / "seen.txt")]) == 0
    assert float(capsys.readouterr().out.split(",")[-1]) == pytest.approx((0.5 + 1.0) / 2)
    assert main(given) == 0
    assert float(capsys.readouterr().out.split(",")[-1]) == pytest.approx(((1 + 0.5) / 2 + 1.0) / 2)
