"""``sdretrieval fuse`` as it is typed, and ``tune --fuse``."""

from __future__ import annotations

import json
import re

import pytest

from sdretrieval import fuse, read_run
from sdretrieval.ranking.manifest import file_digest


@pytest.fixture
def runs(typed, collection, tmp_path) -> list:
    paths = []
    for model in ("bm25", "sd"):
        paths.append(tmp_path / f"{model}.txt")
        given = ["--index", collection.index, "--topics", collection.topics, "--model", model]
        assert typed("search", *given, "--output", paths[-1]).code == 0
    return paths


def test_the_run_is_that_of_the_function_and_its_note_tells_all(typed, runs, tmp_path):
    out = tmp_path / "sum.txt.gz"
    outcome = typed(
        "fuse", *runs, "--normalise", "z", "--weights", 2, 0.5, "--hits", 7, "--tag", "mine", "--output", out
    )
    assert outcome.code == 0, outcome
    found = read_run(out)
    assert found.tag == "mine"
    assert found.rankings == fuse([read_run(p) for p in runs], normalise="z", weights=[2, 0.5], hits=7).rankings
    assert re.search(r"sum\.txt\.gz: 6 topics, \d+ documents, [0-9.]+ s", outcome.err)
    note = json.loads((tmp_path / "sum.txt.gz.manifest.json").read_text())
    assert note["verb"] == "fuse"
    weights = {"weight.bm25": 2.0, "weight.sd": 0.5}
    assert note["parameters"] == {"method": "combsum", "normalise": "z", "k": 60.0, **weights}
    assert note["inputs"]["run sd"] == {"file": str(runs[1]), "sha256": file_digest(runs[1])}
    assert note["options"] == {"hits": 7, "depth": None, "tag": "mine"}


def test_tuned_weights_are_taken_back(typed, runs, collection, tmp_path):
    weights, out = tmp_path / "weights.json", tmp_path / "fused.txt"
    outcome = typed("tune", "--fuse", *runs, "--qrels", collection.qrels, "--folds", 3, "--output", weights)
    assert outcome.code == 0, outcome
    assert "tuned, cross-validated" in outcome.out and "weight.bm25 = " in outcome.out
    settings = json.loads(weights.read_text())["fuse"]
    assert typed("fuse", *runs, "--profile", weights, "--output", out).code == 0
    chosen = [settings["weight.bm25"], settings["weight.sd"]]
    assert read_run(out).rankings == fuse([read_run(p) for p in runs], weights=chosen).rankings
    parameters = json.loads((tmp_path / "fused.txt.manifest.json").read_text())["parameters"]
    assert parameters == settings


def test_topics_that_a_run_lacks_are_told(typed, runs, tmp_path):
    lines = runs[1].read_text().splitlines(keepends=True)
    runs[1].write_text("".join(line for line in lines if not line.startswith(("1 ", "2 "))))
    outcome = typed("fuse", *runs, "--method", "rrf", "--output", tmp_path / "rrf.txt")
    assert outcome.code == 0
    assert "sd has nothing for 2 of 6 topics (1, 2)" in outcome.err


def test_what_is_refused(refused, runs, collection, tmp_path):
    out = tmp_path / "no.txt"
    assert "fusing takes two runs" in refused("fuse", runs[0], "--output", out)
    assert "3 weights for 2 runs" in refused("fuse", *runs, "--weights", 1, 2, 3, "--output", out)
    assert "nothing to normalise" in refused("fuse", *runs, "--method", "rrf", "--normalise", "z", "--output", out)
    assert "combsum has no k" in refused("fuse", *runs, "--k", 3, "--output", out)
    assert "Name them: NAME=PATH" in refused("fuse", runs[0], runs[0], "--output", out)
    runs[1].write_text("1 Q0 doc01 1 many tag\n")
    assert "sd.txt:1: score 'many' is not a number" in refused("fuse", *runs, "--output", out)
    assert not list(tmp_path.glob("*no.txt*"))
    qrels = ["--qrels", collection.qrels, "--output", out]
    assert "--topics is needed to tune a model" in refused("tune", "--index", collection.index, *qrels)
    assert "--index is for tuning a model" in refused("tune", "--fuse", *runs, "--index", collection.index, *qrels)
