"""Changing an index and searching it at once: no search fails, and each finds what one of the commits holds.

One process appends, replaces, deletes and overwrites in turns, and tells how far it is; others open the index and rank
all the while. What they find must be, to the last bit, what an index built anew gives: of the state that stood when the
search began, or of one that came before it ended. ``make faults`` does it for a minute (FAULTS=1000); the suite for two
rounds.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import worker
from test_kills import STOPS

from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker

IS_LONG = STOPS >= 1000
SECONDS, SEARCHERS = (60, 2) if IS_LONG else (0, 0)
MODELS = ("bm25", "ql", "rm3", "sd3")
told: dict[str, Any] = {}  # shared: commits begun, commits made, and whether the writer is done


def share(values: dict[str, Any]) -> None:
    told.update(values)


def write(index: Path) -> int:
    """Rounds of changes; how many commits."""
    end, steps = time.monotonic() + SECONDS, worker.changes(index)
    try:
        while told["made"].value < 2 * len(steps) or time.monotonic() < end:
            told["begun"].value += 1
            steps[told["begun"].value % len(steps)][2]()
            told["made"].value += 1
    finally:
        told["done"].set()
    return told["made"].value


def rankings(index: Path) -> list[tuple[list[str], list[float]]]:
    snapshot = open_snapshot(index)
    engine, query = Engine(snapshot), Query.from_words(snapshot, ["a", "b", "v0", "v2"], qid="1")
    results = [next(iter(engine.rank(make_ranker(name), [query]))) for name in MODELS]
    return [(snapshot.docids.take(result.docs), result.scores.tolist()) for result in results]


def search(index: Path, expected: list[Any]) -> Counter[int]:
    """Searches until the writer is done; how often each state was found."""
    found: Counter[int] = Counter()
    while not (told["done"].is_set() and found):
        found[one_of(expected, lambda: rankings(index))] += 1
    return found


def one_of(expected: list[Any], searched: Any) -> int:
    """The state that a search found, which stood at some time while it was under way."""
    first = told["made"].value
    result = searched()
    stood = {step % len(expected) for step in range(first, told["begun"].value + 1)}
    found = [state for state in stood if expected[state] == result]
    assert found, f"of none of the states {stood}, but of {[k for k, one in enumerate(expected) if one == result]}"
    return found[0]


def run_of(index: Path, folder: Path) -> str:
    """The run that a new process writes: ``sdretrieval search``."""
    (folder / "topics.tsv").write_text("1\ta b\n2\tc v0\n3\tv1\n")
    words = ["search", "--index", str(index), "--topics", str(folder / "topics.tsv"), "--model", "bm25"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    program = [sys.executable, "-m", "sdretrieval.cli.main", *words, "--output", str(folder / "run.txt")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return (folder / "run.txt").read_text()


def built_anew(held: worker.Held, index: Path) -> Path:
    build_index(worker.documents(held), index, analyzer=worker.PLAIN, threads=1)
    return index


@pytest.mark.java
def test_writing_and_searching_at_once(tmp_path):
    anew = [built_anew(held, tmp_path / f"anew-{k}") for k, held in enumerate(worker.states())]
    expected = [rankings(index) for index in anew]
    assert all(one not in expected[:k] for k, one in enumerate(expected))
    runs = [run_of(index, tmp_path) for index in anew] if IS_LONG else []
    index = built_anew(worker.states()[0], tmp_path / "index")
    context = multiprocessing.get_context("spawn")
    shared = {name: context.Value("q", 0) for name in ("begun", "made")} | {"done": context.Event()}
    share(shared)
    with ProcessPoolExecutor(1 + SEARCHERS, context, initializer=share, initargs=(shared,)) as pool:
        writer = pool.submit(write, index)
        searchers = [pool.submit(search, index, expected) for _ in range(SEARCHERS)]
        commands = 0
        while IS_LONG and not shared["done"].is_set():
            one_of(runs, lambda: run_of(index, tmp_path))
            commands += 1
        found = [search(index, expected), *(searcher.result() for searcher in searchers)]
    print(f"{writer.result()} commits, searches by state {found}, {commands} commands")  # pytest -rP shows it
    assert writer.result() >= 2 * len(anew)
