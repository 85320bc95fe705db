"""On a real standalone cluster: commands as users type them, and stragglers, of which a second copy is started.

All in one file, so that one worker of pytest-xdist runs one cluster.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from needed import spark_for
from sharding import write_corpus
from standalone import standalone

from sdretrieval.cli.main import main
from sdretrieval.integrations.spark.runners import OnSpark
from sdretrieval.integrations.spark.shards import open_collection

pyspark = spark_for(sys.modules[__name__])
pytestmark = pytest.mark.java

SHARDS = 3
SETTINGS = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "512m",
}  # fmt: skip
# A core on each machine; a copy as soon as half of the tasks are through and one takes clearly longer.
HASTY = {
    **SETTINGS, "spark.cores.max": "2", "spark.speculation.interval": "100ms", "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5", "spark.speculation.minTaskRuntime": "200ms",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="module")
def spark(cluster, tmp_path_factory) -> Iterator[Any]:
    from sdretrieval.integrations.spark.session import spark_context

    settings = {**HASTY, "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    with spark_context(cluster, settings=settings) as context:
        assert context.master == cluster and context.getConf().get("spark.speculation") == "true"
        yield context


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> SimpleNamespace:
    """The demo's documents in two files, and one index of them."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    words = ("--input", folder / "docs", "--index", folder / "one", "--date-field", "date")
    assert main(["index", *map(str, words)]) == 0
    return SimpleNamespace(folder=folder, docs=folder / "docs", index=folder / "one", topics=folder / "demo/topics.tsv")


def of_one_index(corpus, tmp_path: Path, *flags: object) -> bytes:
    output = tmp_path / "one.txt"
    words = ("--index", corpus.index, "--topics", corpus.topics, "--output", output, *flags)
    assert main(["search", *map(str, words)]) == 0
    return output.read_bytes()


# -- two attempts at one task --------------------------------------------------------------------------------------


HANGS = 600.0  # seconds; then the task fails, and so does the test


def begun(notes: Path) -> int:
    """Which attempt this is: 0 for the first of all processes that asks. Notes the executor it runs on."""
    with open(f"/proc/{os.getppid()}/stat") as stream:  # the worker's parent is the daemon, whose is the executor
        executor = stream.read().rpartition(")")[2].split()[1]
    number = 0
    while True:
        try:
            with (notes / f"begun-{number}").open("x") as out:
                out.write(executor)
            return number
        except FileExistsError:
            number += 1


def wait_for(note: Path, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not note.exists():
        if time.monotonic() > end:
            note.with_name("in-vain").touch()
            raise TimeoutError(f"{note.name} was waited for in vain")
        time.sleep(0.02)


Work = Callable[[Callable[[], None]], Any]  # calls what it is given when it is in the midst of it


def hanging(notes: Path, work: Work) -> Any:
    """The first attempt hangs, for ten minutes; any other does its work."""
    number = begun(notes)
    answer = work(lambda: None if number else wait_for(notes / "never", HANGS))
    (notes / f"done-{number}").touch()
    return answer


def meeting(notes: Path, work: Work) -> Any:
    """The first attempt goes on when there is a second; none answers before both have done all their work."""
    number = begun(notes)
    answer = work(lambda: wait_for(notes / "begun-1"))
    (notes / f"done-{number}").touch()
    wait_for(notes / f"done-{1 - number}")
    return answer


def check_notes(notes: Path, *done: str) -> None:
    """Two attempts, on two executors; which of them came to their end."""
    attempts = [path.read_text() for path in sorted(notes.glob("begun-*"))]
    assert not (notes / "in-vain").exists(), "no second copy was started while the first one hung"
    assert len(attempts) == 2 and attempts[0] != attempts[1]
    assert {path.name for path in notes.glob("done-*")} == set(done)


@contextlib.contextmanager
def unlucky_search(notes: Path, way: Callable) -> Iterator[None]:
    """The first request for best documents has trouble at shard 1."""
    ask, left = OnSpark.ask, ["once"]

    def asking(runner: OnSpark, request: Callable, *more: Any) -> Any:
        if request.__name__ != "best" or not left:
            return ask(runner, request, *more)
        left.clear()

        def unlucky(shard: Any, *rest: Any) -> Any:
            def work(pause: Callable[[], None]) -> Any:
                pause()
                return request(shard, *rest)

            return way(notes, work) if shard.number == 1 else request(shard, *rest)

        return ask(runner, unlucky, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnSpark, "ask", asking)
        yield
    assert not left


def midway(pairs: Iterator, pause: Callable[[], None]) -> Iterator:
    for i, pair in enumerate(pairs):
        if i == 10:
            pause()
        yield pair


@contextlib.contextmanager
def unlucky_build(notes: Path, way: Callable) -> Iterator[None]:
    """Building shard 1 has trouble, when some of its documents are read."""
    plain = pyspark.RDD.mapPartitionsWithIndex

    def with_trouble(rdd: Any, build: Callable, preservesPartitioning: bool = False) -> Any:
        if type(build).__name__ != "_Building":
            return plain(rdd, build, preservesPartitioning)

        def unlucky(number: int, pairs: Iterator) -> Any:
            def work(pause: Callable[[], None]) -> list:
                return list(build(number, midway(pairs, pause)))

            return iter(way(notes, work)) if number == 1 else build(number, pairs)

        return plain(rdd, unlucky, preservesPartitioning)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pyspark.RDD, "mapPartitionsWithIndex", with_trouble)
        yield


def build(corpus, folder: Path) -> None:
    words = ("--input", corpus.docs, "--index", folder, "--shards", SHARDS, "--date-field", "date")
    assert main(["spark", "index", *map(str, words)]) == 0


def check_built(corpus, folder: Path) -> None:
    """Each document once, in whole shards, and nothing else in the folder."""
    from sdretrieval.snapshot import open_snapshot

    collection, whole = open_collection(folder), open_snapshot(corpus.index)
    names = [shard["name"] for shard in collection.shards]
    snapshots = [open_snapshot(folder / name) for name in names]
    assert sorted(docid for s in snapshots for docid in s.docids) == sorted(whole.docids)
    wanted = {"collection.json", "statistics", *names, *(f"{name}.snapshot" for name in names)}
    assert {path.name for path in folder.iterdir()} == wanted


@pytest.fixture(scope="module")
def built(spark, corpus) -> SimpleNamespace:
    """Built while the first attempt at a shard hangs: it would end after ten minutes."""
    folder, notes = corpus.folder / "sharded", corpus.folder / "notes"
    notes.mkdir()
    with unlucky_build(notes, hanging):
        build(corpus, folder)
    return SimpleNamespace(folder=folder, notes=notes)


def test_a_shard_whose_builder_hangs_is_built_elsewhere(built, corpus):
    check_notes(built.notes, "done-1")
    check_built(corpus, built.folder)


def test_a_shard_that_two_have_built_is_there_once(spark, corpus, tmp_path):
    notes, folder = tmp_path / "notes", tmp_path / "sharded"
    notes.mkdir()
    with unlucky_build(notes, meeting):
        build(corpus, folder)
    check_notes(notes, "done-0", "done-1")
    check_built(corpus, folder)


@pytest.mark.parametrize(("way", "done"), [(hanging, ["done-1"]), (meeting, ["done-0", "done-1"])])
def test_a_straggler_is_overtaken_and_the_run_is_the_same(built, corpus, tmp_path, way, done):
    """Byte for byte the one index's run, whether the first attempt ever ends or answers as well."""
    notes, output = tmp_path / "notes", tmp_path / "many.txt"
    notes.mkdir()
    with unlucky_search(notes, way):
        words = ("--index", built.folder, "--topics", corpus.topics, "--output", output, "--hits", 50)
        assert main(["spark", "search", *map(str, words)]) == 0
    check_notes(notes, *done)
    assert output.read_bytes() == of_one_index(corpus, tmp_path, "--hits", 50)


# -- as users type it ----------------------------------------------------------------------------------------------


def typed(*words: object) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "sdretrieval.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_the_command_on_a_standalone_cluster(built, cluster, corpus, tmp_path):
    """Another program beside the one above, as on any cluster; its expanded queries too are the one index's."""
    saved, output = tmp_path / "many.jsonl", tmp_path / "many.txt"
    wanted = of_one_index(corpus, tmp_path, "--hits", 50, "--save-expansion", tmp_path / "one.jsonl")
    outcome = typed(
        "spark", "search", "--master", cluster, "--index", built.folder, "--topics", corpus.topics, "--hits", 50,
        "--output", output, "--batch", 5, "--save-expansion", saved, *setting_words(),
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr
    assert output.read_bytes() == wanted and "12 topics" in outcome.stderr
    assert saved.read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    assert not Path(f"{output}.parts").exists()


def setting_words() -> list[str]:
    return [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]


def test_saved_queries_are_replayed(built, corpus, tmp_path, capsys):
    """--expansion over shards, and its errors."""
    lines = tmp_path / "one.jsonl"
    wanted = of_one_index(corpus, tmp_path, "--model", "sd", "--hits", 50, "--save-expansion", lines)
    shared = ("--index", built.folder, "--topics", corpus.topics, "--hits", 50, "--model", "sd")

    def search(*words: object) -> int:
        return main(["spark", "search", *map(str, (*shared, *words))])

    assert search("--output", tmp_path / "many.txt", "--expansion", lines) == 0
    assert (tmp_path / "many.txt").read_bytes() == wanted
    capsys.readouterr()
    (tmp_path / "odd.jsonl").write_text('{"qid": "1", "terms": {"xyzzyx": 1}}\n')
    assert search("--output", tmp_path / "x.txt", "--expansion", tmp_path / "odd.jsonl") == 2
    assert "odd.jsonl:1: topic '1': word 'xyzzyx' is not in index 'sharded'" in capsys.readouterr().err
    (tmp_path / "odd.jsonl").write_text("nonsense\n")
    assert search("--output", tmp_path / "x.txt", "--expansion", tmp_path / "odd.jsonl") == 2
    assert "odd.jsonl:1: not JSON" in capsys.readouterr().err and not (tmp_path / "x.txt").exists()
