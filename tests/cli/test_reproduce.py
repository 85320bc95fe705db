"""A run made again from its manifest."""

from __future__ import annotations

import json
import shutil

import pytest

pytestmark = pytest.mark.java


@pytest.fixture
def made(typed, collection, tmp_path):
    index = shutil.copytree(collection.index, tmp_path / "tiny")
    run = tmp_path / "run.txt"
    words = ("--index", index, "--topics", collection.topics, "--model", "rm3", "--set", "fb_docs=3", "--output", run)
    assert typed("search", *words).code == 0
    return run, index


def test_the_same_byte_for_byte(typed, made, tmp_path):
    before = sorted(path.name for path in tmp_path.iterdir())
    outcome = typed("reproduce", made[0])
    assert (outcome.code, outcome.out) == (0, "the same, byte for byte\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == before  # nothing else was written


def test_what_differs_is_said(typed, made, tmp_path):
    run, index = made
    extra = tmp_path / "more.jsonl"
    extra.write_text(json.dumps({"id": "new", "contents": "flood at the harbour", "date": "2024-01-01"}) + "\n")
    assert typed("index", "--input", extra, "--index", index, "--append", "--date-field", "date").code == 0
    outcome = typed("reproduce", run, "--output", tmp_path / "again.txt")
    assert outcome.code == 1
    assert "index, documents: was 30, is 31" in outcome.out and "index, fingerprint: was " in outcome.out
    assert "scores differ by up to " in outcome.out
    assert (tmp_path / "again.txt").exists()


def test_ties_are_told_apart(typed, made, capsys):
    from sdretrieval.cli.reproduce import run_differences
    from sdretrieval.collection.records import Ranking, Run

    one, other = (Run({"1": Ranking(docids, [2.0, 1.0])}, "x") for docids in (["a", "b"], ["b", "a"]))
    assert list(run_differences(one, one))[-1].startswith("only the text differs")
    assert list(run_differences(one, other))[1] == "scores differ by up to 1"


def test_what_cannot_be_made_again(refused, made, tmp_path):
    run, _ = made
    manifest = run.with_name("run.txt.manifest.json")
    content = json.loads(manifest.read_text())
    for command in (None, [], ["sdretrieval", "index"], "search", ["sdretrieval", 7]):
        manifest.write_text(json.dumps({**content, "command": command}))
        assert "its command is not one of search, rerank, fuse" in refused("reproduce", run)
    manifest.write_text(json.dumps({**content, "run": {"sha256": "0"}}))
    assert "the manifest of another run" in refused("reproduce", run)
    manifest.unlink()
    assert "no manifest beside this run" in refused("reproduce", run)
