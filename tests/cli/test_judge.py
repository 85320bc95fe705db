"""``sdretrieval judge`` as a new user has it: topics, documents, judgments, measures, qrels."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest

from sdretrieval.collection.trec import read_qrels


@pytest.fixture
def index(collection, tmp_path: Path) -> Path:
    """An index of one's own, so that nobody else's judgments are beside it."""
    shutil.copytree(collection.index, tmp_path / "mine")
    return tmp_path / "mine"


def test_from_nothing_to_measured_runs(collection, index, typed, tmp_path, monkeypatch) -> None:
    truth = read_qrels(collection.qrels)
    told = typed("judge", "topics", "--index", index, "--topics", collection.topics)
    assert told.code == 0 and "6 topics new" in told.out
    assert "documents new" in typed("judge", "pool", "--index", index, "--models", "bm25", "sd", "--depth", 5).out

    first = json.loads(typed("judge", "next", "--index", index, "--topic", "2").out)
    assert first["text"] and first["left"] == 30
    answers = '{"grade": 1}\n{"grade": 0, "note": "not this"}\n{"undo": true}\n{"skip": true}\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
    lines = typed("judge", "start", "--index", index, "--topic", "2", "--as", "ann").out.splitlines()
    assert len(lines) == 5
    assert json.loads(lines[1])["docid"] == json.loads(lines[3])["docid"]  # taken back, so offered again

    offered = json.loads(typed("judge", "next", "--index", index, "--way", "runs").out)
    while offered:
        qid, docid = offered["qid"], offered["docid"]
        grade = truth[qid].get(docid, 0)
        assert typed("judge", "say", "--index", index, "--topic", qid, "--docid", docid, "--grade", grade).code == 0
        offered = json.loads(typed("judge", "next", "--index", index, "--way", "runs").out)
    status = json.loads(typed("judge", "status", "--index", index, "--json").out)
    assert sum(row["pool_left"] for row in status["topics"]) == 0
    assert {pair["first"] for pair in status["agreement"]} == {"ann"}

    measured = json.loads(typed("judge", "measures", "--index", index, "--json").out)
    assert {one["run"] for one in measured["measures"]} == {"bm25", "sd"}
    assert all(one["low"] <= one["estimate"] <= one["high"] + 1e-9 for one in measured["measures"])
    assert "is better than" in typed("judge", "measures", "--index", index).out

    qrels, folder = tmp_path / "qrels.txt", Path(f"{index}.judging") / "default"
    assert typed("judge", "export", "--index", index, "--output", qrels).code == 0
    run = folder / "runs" / "sd.run.gz"
    assert typed("evaluate", qrels, run).out == typed("evaluate", folder, run).out
    assert typed("judge", "export", "--index", index, "--output", tmp_path / "pool.txt", "--pools").code == 0
    other = ("--index", index, "--project", "other")
    typed("judge", "topics", *other, "--topics", collection.topics)
    assert "judgments taken in" in typed("judge", "import", *other, "--qrels", qrels).out
    typed("judge", "export", *other, "--output", tmp_path / "again.txt")
    assert read_qrels(tmp_path / "again.txt") == read_qrels(qrels)
    assert json.loads(typed("judge", "undo", *other, "--as", "imported").out)["who"] == "imported"
    assert "price: " in typed("judge", "certify", *other, "--topic", "1", "--recall", 0.5).out


def test_simulate_with_curves(collection, typed, tmp_path) -> None:
    words = ("--index", collection.index, "--topics", collection.topics, "--qrels", collection.qrels)
    rows = [json.loads(line) for line in typed("judge", "simulate", *words, "--json").out.splitlines()]
    assert len(rows) == 6 and all(row["documents"] == 30 for row in rows)
    assert sum(row["wss_95"] for row in rows) / 6 > 0.3
    told = typed("judge", "simulate", *words, "--plot", tmp_path / "curves.svg")
    assert "wss_95" in told.out and (tmp_path / "curves.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("words, told", [
    (["topics"], "which topics"),
    (["pool"], "what to pool"),
    (["pool", "--models", "bm25"], "has no topics"),
    (["start"], "which topic"),
    (["measures"], "has no runs"),
    (["export", "--output", "x"], "no judgments"),
    (["undo", "--project", "a/b"], "cannot be the name"),
    (["say", "--topic", "1", "--docid", "d", "--grade", "1"], "no topic '1'"),
])  # fmt: skip
def test_what_cannot_be_done_says_why(index, refused, words: list[str], told: str) -> None:
    assert told in refused("judge", words[0], "--index", index, *words[1:])


@pytest.mark.parametrize(
    "line", ["nonsense", "[1]", "{}", '{"skip": false}', '{"grade": 1, "note": 3}', '{"grade": "high"}']
)
def test_answers_that_are_none(index, typed, monkeypatch, line: str) -> None:
    typed("judge", "topics", "--index", index, "--query", "storm ferry")
    monkeypatch.setattr(sys, "stdin", io.StringIO(line + "\n"))
    told = typed("judge", "start", "--index", index)
    assert told.code == 2 and "Traceback" not in told.err
    assert json.loads(typed("judge", "status", "--index", index, "--json").out)["topics"][0]["judged"] == 0
