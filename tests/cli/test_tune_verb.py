"""``sdretrieval tune`` as it is typed: its numbers, its files, and what a kill does to it."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from sdretrieval.collection.trec import read_run
from sdretrieval.evaluate import tune
from sdretrieval.ranking.registry import make_ranker


@pytest.fixture
def flags(collection, tmp_path) -> list:
    files = ["--index", collection.index, "--topics", collection.topics, "--qrels", collection.qrels]
    return [*files, "--model", "sd3", "--output", tmp_path / "best.json", "--folds", 3]


GRID = ["--method", "grid", "--params", "fb_docs=1,3,10", "original_query_weight=0.1,0.9"]


def read_trace(path: Path) -> tuple[dict, list[dict]]:
    first, *lines = [json.loads(line) for line in path.read_text().splitlines()]
    return first["tuning"], lines


def numbers(out: str) -> tuple[float, float]:
    """As started, and cross-validated."""
    return tuple(float(re.search(rf"{name} +([0-9.]+)", out)[1]) for name in ("as started", "cross-validated"))  # type: ignore[index, return-value]


def test_the_printed_number_is_what_the_trace_says(typed, flags, tmp_path):
    outcome = typed("tune", *flags, *GRID, "--seed", 4)
    assert outcome.code == 0, outcome
    identity, lines = read_trace(tmp_path / "best.json.trace.jsonl")
    assert (identity["model"], identity["measure"]) == ("sd3", "AP")
    assert len(lines) == 7  # the grid, and the setting started from
    table = {json.dumps(line["settings"]): line["values"] for line in lines}
    assert len(table) == 7
    qids = list(lines[0]["values"])
    # Cross-validation once more, by hand: best on the others, scored on its own.
    scored = {}
    for held_out in tune.folds_of(qids, 3, 4):
        others = [qid for qid in qids if qid not in held_out]
        best = max(table.values(), key=lambda values: np.mean([values[qid] for qid in others]))
        scored.update({qid: best[qid] for qid in held_out})
    default = lines[0]["values"]
    assert lines[0]["settings"] == {name: make_ranker("sd3").settings()[name] for name in lines[0]["settings"]}
    started, validated = numbers(outcome.out)
    assert started == pytest.approx(np.mean(list(default.values())), abs=5e-5)
    assert validated == pytest.approx(np.mean(list(scored.values())), abs=5e-5)
    # The profile is the setting best on all topics.
    best = max(lines, key=lambda line: np.mean(list(line["values"].values())))
    profile = json.loads((tmp_path / "best.json").read_text())["sd3"]
    assert {name: profile[name] for name in best["settings"]} == best["settings"]
    for name, value in best["settings"].items():
        assert f"  {name} = {value}\n" in outcome.out
    assert f"{tmp_path / 'best.json'}: 7 settings, " in outcome.err


def test_search_and_rerank_take_the_profile(typed, flags, collection, tmp_path):
    typed("tune", *flags, *GRID)
    profile = json.loads((tmp_path / "best.json").read_text())
    words = ["--index", collection.index, "--topics", collection.topics, "--output", tmp_path / "run.txt"]
    for verb, more in (("search", []), ("rerank", ["--run", tmp_path / "run.txt"])):
        outcome = typed(verb, *words, *more, "--model", "sd3", "--profile", tmp_path / "best.json")
        assert outcome.code == 0, outcome
        told = json.loads((tmp_path / "run.txt.manifest.json").read_text())
        assert told["parameters"] == profile["sd3"]
    outcome = typed("search", *words, "--model", "sd", "--profile", tmp_path / "best.json")
    assert outcome.code == 2
    assert "nothing about 'sd' in this profile" in outcome.err


@pytest.mark.parametrize("method", ["hill", "random"])
def test_other_methods_go_on_from_the_same_trace(typed, flags, tmp_path, method):
    trace = tmp_path / "trace.jsonl"
    words = ["--params", "fb_docs=1,3,10", "original_query_weight=0.1,0.5,0.9", "--method", method, "--budget", 4]
    first = typed("tune", *flags, *words, "--trace", trace)
    assert first.code == 0, first
    _, lines = read_trace(trace)
    if method == "random":
        assert len(lines) == 5
    assert len({json.dumps(line["settings"], sort_keys=True) for line in lines}) == len(lines)
    again = typed("tune", *flags, *words, "--trace", trace)
    assert again.out == first.out
    assert f"{len(lines)} settings, {len(lines)} of them from the trace" in again.err
    assert len(read_trace(trace)[1]) == len(lines)


def test_reranking_is_tuned_on_the_documents_of_the_run(typed, flags, collection, tmp_path):
    words = ["--index", collection.index, "--topics", collection.topics, "--output", tmp_path / "first.txt"]
    typed("search", *words, "--model", "bm25", "--hits", 2)
    run = tmp_path / "first.txt"
    outcome = typed("tune", *flags, *GRID, "--run", run, "--measure", "R@10")
    assert outcome.code == 0, outcome
    _, lines = read_trace(tmp_path / "best.json.trace.jsonl")
    # Two documents come in, so recall cannot change whatever the setting.
    assert len({json.dumps(line["values"]) for line in lines}) == 1
    assert sum(map(len, read_run(run).values())) == 12
    with run.open("a") as stream:
        stream.write("6 Q0 doc99 3 0.1 bm25\n")
    words = ["tune", *flags, *GRID, "--run", run, "--trace", tmp_path / "other.jsonl"]
    outcome = typed(*words)
    assert (outcome.code, "doc99" in outcome.err) == (2, True)
    assert typed(*words, "--missing", "drop").code == 0


# -- killed ------------------------------------------------------------------------------------------------------

# Stays in its last setting, so that the kill comes in the middle however late it is.
ENDLESS = """
import itertools, time
from sdretrieval.evaluate import tune
values, calls = tune.Problem.values, itertools.count(1)
def endless(self, ranker):
    if next(calls) == {last}:
        time.sleep(600)
    return values(self, ranker)
tune.Problem.values = endless
"""
CLIMB = ["--params", "fb_docs=1,3,10,20", "original_query_weight=0.1,0.3,0.5,0.9", "fb_terms=2,5,20"]


def test_a_kill_loses_nothing(typed, started, flags, tmp_path, monkeypatch):
    """kill -9 in the middle, a torn last line on top: started again, it ends where an undisturbed one does."""
    undisturbed = typed("tune", *flags, *CLIMB, "--trace", tmp_path / "whole.jsonl")
    whole = (tmp_path / "whole.jsonl").read_text()
    profile = (tmp_path / "best.json").read_text()
    (tmp_path / "best.json").unlink()

    trace = tmp_path / "killed.jsonl"
    last = len(whole.splitlines()) - 1  # the first line is about the tuning
    process = started("tune", *flags, *CLIMB, "--trace", trace, code=ENDLESS.format(last=last))
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline:
        if trace.exists() and len(trace.read_text().splitlines()) >= 5:
            break
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "best.json").exists()
    kept = trace.read_text()
    kept = kept[: kept.rindex("\n") + 1]
    assert 5 <= len(kept.splitlines()) < len(whole.splitlines())
    assert whole.startswith(kept)  # what was written is what an undisturbed tuning writes
    with trace.open("a") as stream:
        stream.write('{"settings": {"fb_docs": 3, "origi')

    evaluated = []
    values = tune.Problem.values
    monkeypatch.setattr(tune.Problem, "values", lambda self, r: evaluated.append(r.settings()) or values(self, r))
    resumed = typed("tune", *flags, *CLIMB, "--trace", trace)
    assert resumed.code == 0, resumed
    assert trace.read_text() == whole
    assert resumed.out == undisturbed.out
    assert (tmp_path / "best.json").read_text() == profile
    # Nothing that was in the trace was run again, and nothing twice.
    in_trace = [make_ranker("sd3", line["settings"]).settings() for line in read_trace(trace)[1]]
    done = len(kept.splitlines()) - 1
    assert evaluated == in_trace[done:]
    assert f"{len(in_trace)} settings, {done} of them from the trace" in resumed.err


def test_a_trace_of_another_tuning_is_refused(typed, refused, flags, collection, tmp_path):
    trace = tmp_path / "trace.jsonl"
    assert typed("tune", *flags, *GRID, "--trace", trace).code == 0
    before = trace.read_bytes()
    (tmp_path / "qrels.txt").write_text(collection.qrels.read_text().replace("1 0 doc03 1", "1 0 doc03 0"))
    (tmp_path / "topics.tsv").write_text(collection.topics.read_text().replace("harbour", "port"))
    for other in (
        ["--measure", "P@5"],
        ["--hits", 5],
        ["--model", "sd"],
        ["--set", "k1=2"],
        ["--qrels", tmp_path / "qrels.txt"],
        ["--topics", tmp_path / "topics.tsv"],
    ):
        words = ["--params", "fb_docs=1,3"]
        told = refused("tune", *flags, "--method", "grid", *words, "--trace", trace, *other)
        assert f"{trace}:1: this trace is of another tuning" in told
    assert trace.read_bytes() == before


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--model", "bm52"], "unknown model 'bm52'"),
        (["--params", "depth"], "sd3 has no parameter 'depth'\n  It has: fb_docs, "),
        (["--params", "iterations"], "iterations declares no values to try\n  Give them: iterations=1,2,3."),
        (["--params", "fb_docs=1,two"], "fb_docs must be a whole number; got 'two'"),
        (["--params", "fb_docs=5,0"], "sd3: fb_docs (N) must be "),
        (["--method", "grid"], "more than the budget of 500\n  Choose fewer --params, pass --budget "),
        (
            ["--method", "grid", "--budget", "3", "--params", "fb_docs=1,2,3,4"],
            "has 4 settings, more than the budget of 3",
        ),
        (["--folds", "1"], "folds must be between 2 and the number of topics (6); got 1"),
        (["--folds", "7"], "folds must be between 2 and the number of topics (6); got 7"),
        (["--measure", "MAPP"], "measure 'MAPP'"),
        (["--qrels", "/no/such.txt"], "/no/such.txt: no such file"),
        (["--trace", "/dev"], "/dev: is a folder"),
        (["--output", "/dev"], "/dev: is a folder"),
    ],
)
def test_one_clear_error_before_any_work(refused, flags, tmp_path, words, told):
    assert told in refused("tune", *flags, *words)
    assert not list(tmp_path.glob("*.json*"))


def test_qrels_of_other_topics(refused, flags, tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 doc01 1\n2 0 doc06 0\n99 0 doc01 1\n")
    told = refused("tune", *flags, "--qrels", tmp_path / "qrels.txt")
    assert "1 of the topics have relevant documents in the qrels: tuning needs at least 2" in told
