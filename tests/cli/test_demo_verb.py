"""``sdretrieval demo``: the whole way, and once more. In a process of its own: tests/house/test_wheel.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sdretrieval.cli.demo import RUNS
from sdretrieval.collection.trec import read_run


def tree(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def contents(folder: Path, pattern: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob(pattern)}


def test_end_to_end_twice(typed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder, index = tmp_path / "with a space" / "runs", tmp_path / "with a space" / "index"
    words = ["demo", "--documents", 1000, "--folder", folder, "--index", index]
    outcome = typed(*words)
    assert outcome.code == 0, outcome
    assert sorted(path.name for path in tmp_path.iterdir()) == ["with a space"]  # nothing elsewhere
    for name in RUNS:  # in the table with MAP and P@5
        row = re.search(rf"^{re.escape(name)} +50 +0\.(\d{{4}}) +0\.\d{{4}}", outcome.out, flags=re.MULTILINE)
        assert row, name
        assert int(row[1]) > 1000  # a MAP that means something was found
        run = read_run(folder / f"{name.lower()}.txt")
        assert (len(run), run.tag) == (50, name)
    assert re.search(r"^RM3 +AP .*<\.0001\*", outcome.out, flags=re.MULTILINE)  # significance
    page = (folder / "report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "The demo collection" in page
    assert f"report: {folder / 'report.html'}" in outcome.err

    # The manifest of a run tells how to make this run, not how to make the demo.
    told = json.loads((folder / "sd3.txt.manifest.json").read_text())
    assert told["command"][:2] == ["sdretrieval", "search"]
    before = contents(folder, "*.txt")
    (folder / "sd3.txt").unlink()
    assert typed(*told["command"][1:]).code == 0
    assert contents(folder, "*.txt") == before

    # Once more, with fewer models to save time: the index is used as it is, and the runs come out the same.
    monkeypatch.setattr("sdretrieval.cli.demo.RUNS", {name: RUNS[name] for name in ("QL", "SD3")})
    indexed = tree(index)
    outcome = typed(*words)
    assert outcome.code == 0
    assert f"# {index} holds it already" in outcome.err
    assert "$ sdretrieval index" not in outcome.err
    assert tree(index) == indexed
    assert contents(folder, "*.txt") == before


def test_too_few_documents(refused, tmp_path):
    places = ["--folder", tmp_path / "runs", "--index", tmp_path / "index"]
    told = refused("demo", "--documents", 10, *places)
    assert "1 topics need at least 20 documents" in told
    assert "--documents 20" in told
    told = refused("demo", "--documents", 500, "--topics", 50, *places)
    assert "(--documents 1000), or for fewer topics (--topics 25)" in told
    assert list(tmp_path.iterdir()) == []


def test_a_small_demo_has_as_many_topics_as_fit(typed, tmp_path, monkeypatch):
    monkeypatch.setattr("sdretrieval.cli.demo.RUNS", {"QL": RUNS["QL"], "BM25": RUNS["BM25"]})
    folder = tmp_path / "runs"
    outcome = typed("demo", "--documents", 100, "--folder", folder, "--index", tmp_path / "index")
    assert outcome.code == 0, outcome
    assert len((folder / "topics.tsv").read_text().splitlines()) == 5


def test_a_step_that_fails_ends_the_demo(typed, tmp_path, monkeypatch):
    from sdretrieval.core.errors import InputError

    def broken(args):
        raise InputError("nothing to see", file="docs.jsonl")

    monkeypatch.setattr("sdretrieval.cli.index.run", broken)
    words = ["--documents", 1000, "--folder", tmp_path / "runs", "--index", tmp_path / "index"]
    outcome = typed("demo", *words)
    assert outcome.code == 2
    assert "sdretrieval index: docs.jsonl: nothing to see" in outcome.err
    assert outcome.err.endswith("sdretrieval demo: the step above ended with code 2\n")

    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("sdretrieval.cli.index.run", interrupted)
    outcome = typed("demo", *words)
    assert outcome.code == 130
    assert outcome.err.endswith("sdretrieval demo: interrupted; nothing half-written was left behind\n")
