"""On a real standalone cluster: exactness, what clusters do (lost executors, failures, stragglers), the commands.

All in one file, so that one worker of pytest-xdist runs one cluster. Most collections are written as snapshots alone,
without Lucene: what workers rank from.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from needed import BRIEFLY, MARKS, Corpus, command, spark_for, standalone, wait_for
from sharding import Sharding, assert_same, one_index, ranker
from shown import as_shown

from benchmarks.sharded import write_collection
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.plugins.spark import reading, requests
from sdretrieval.plugins.spark.runners import OnSpark
from sdretrieval.plugins.spark.search import prepare
from sdretrieval.plugins.spark.session import spark_context
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine, ShardOptions
from sdretrieval.plugins.spark.shards import open_collection

pyspark = spark_for(sys.modules[__name__])
pytestmark = MARKS

SETTINGS = {
    **BRIEFLY,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
}
# A core on each machine; a copy as soon as half of the tasks are through and one takes clearly longer.
HASTY = {
    **SETTINGS,
    "spark.cores.max": "2",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "200ms",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[str]:
    with standalone(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture(scope="module")
def spark(cluster, tmp_path_factory) -> Iterator[Any]:
    settings = {**HASTY, "spark.local.dir": str(tmp_path_factory.mktemp("spark"))}
    with spark_context(cluster, settings=settings) as context:
        assert context.master == cluster and context.getConf().get("spark.speculation") == "true"
        yield context


@pytest.fixture(scope="module")
def collection(tmp_path_factory) -> tuple[Sharding, Path]:
    sharding, folder = Sharding(3), tmp_path_factory.mktemp("collections") / "of-3"
    write_collection(folder, sharding.shards(3))
    return sharding, folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    return Corpus(folder, folder / "docs")


def engine_of(folder: Path, context) -> ShardedEngine:
    collection = open_collection(folder)
    runner = OnSpark(collection, context)
    prepare(collection, runner)
    return ShardedEngine(collection, runner)


def found_by(engine: ShardedEngine, model, sharding: Sharding) -> dict:
    results = engine.rank(model, sharding.queries(engine.collection), ShardOptions(hits=50))
    return {result.query.qid: result.ranking for result in results}


# One of each kind of request that travels to workers; test_exactness.py has every model and time setting.
KINDS = [
    *((name, None) for name in ("bm25", "rm", "blend", "lucene-qljm")),
    ("ql", "recency"),
    ("sd", "density, auto"),
    ("sd", "feedback at the mode"),
    ("ql", "penalised background"),
    ("sd", "local background as of"),
    ("ql", "background at documents, recency"),
    ("sd", "as of, inclusive, recency"),
]


def test_every_kind_of_request(spark, collection):
    sharding, folder = collection
    engine = engine_of(folder, spark)
    with ThreadPoolExecutor(4) as pool:  # Spark runs jobs side by side
        found = list(pool.map(lambda case: found_by(engine, ranker(*case), sharding), KINDS))
    for case, rankings in zip(KINDS, found, strict=True):
        assert_same(rankings, one_index(sharding.whole, ranker(*case), sharding.queries(sharding.whole), hits=50), case)


def test_workers_start_no_java(spark, collection):
    """pyjnius is what would start it."""

    def loaded(shard, shared, own):
        requests.best(shard, ([], []))
        return [name for name in ("jnius", "pyserini") if name in sys.modules]

    runner = engine_of(collection[1], spark).runner
    assert [answer for _, answer in runner.ask(loaded, None, dict.fromkeys(range(3)))] == [[], [], []]


# -- trouble -----------------------------------------------------------------------------------------------------

Work = Callable[[Callable[[], None]], Any]  # calls what it is given when it is in the midst of it
HANGS = 600.0  # seconds; then the task fails, and so does the test


def executor() -> int:
    with open(f"/proc/{os.getppid()}/stat") as stream:  # the worker's parent is the daemon, whose is the executor
        return int(stream.read().rpartition(")")[2].split()[1])


def begun(notes: Path) -> int:
    """Which attempt this is: 0 for the first of all processes that asks. Notes the executor it runs on."""
    number = 0
    while True:
        try:
            with (notes / f"begun-{number}").open("x") as out:
                out.write(str(executor()))
            return number
        except FileExistsError:
            number += 1


def killing(notes: Path, work: Work) -> Any:
    """The first attempt ends its executor, with the Python workers below it."""
    if begun(notes) == 0:
        os.kill(executor(), signal.SIGKILL)
        wait_for(lambda: False, 30)
    return work(lambda: None)


def hanging(notes: Path, work: Work) -> Any:
    """The first attempt hangs, for ten minutes; any other does its work."""
    number = begun(notes)
    answer = work(lambda: None if number else wait_for((notes / "never").exists, HANGS))
    (notes / f"done-{number}").touch()
    return answer


def meeting(notes: Path, work: Work) -> Any:
    """The first attempt goes on when there is a second; none answers before both have done all their work."""
    number = begun(notes)
    answer = work(lambda: wait_for((notes / "begun-1").exists))
    (notes / f"done-{number}").touch()
    wait_for((notes / f"done-{1 - number}").exists)
    return answer


def check_notes(notes: Path, *done: str) -> None:
    """Two attempts, on two executors; which of them came to their end."""
    attempts = [path.read_text() for path in sorted(notes.glob("begun-*"))]
    assert len(attempts) == 2 and attempts[0] != attempts[1]
    assert {path.name for path in notes.glob("done-*")} == set(done)


@contextlib.contextmanager
def unlucky_search(notes: Path, way: Callable) -> Iterator[None]:
    """The first request for best documents has trouble at shard 1."""
    notes.mkdir()
    reduce, left = OnSpark.reduce, ["once"]

    def reducing(runner: OnSpark, request: Callable, *more: Any, **options: Any) -> Any:
        if request.__name__ != "best" or not left:
            return reduce(runner, request, *more, **options)
        left.clear()

        def unlucky(shard: Any, shared: Any) -> Any:
            def work(pause: Callable[[], None]) -> Any:
                pause()
                return request(shard, shared)

            return way(notes, work) if shard.number == 1 else request(shard, shared)

        return reduce(runner, unlucky, *more, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnSpark, "reduce", reducing)
        yield
    assert not left


@contextlib.contextmanager
def unlucky_build(notes: Path, way: Callable) -> Iterator[None]:
    """Building shard 1 has trouble, when some of its documents are read."""
    notes.mkdir()
    plain = pyspark.RDD.mapPartitionsWithIndex

    def midway(pairs: Iterator, pause: Callable[[], None]) -> Iterator:
        for i, pair in enumerate(pairs):
            if i == 10:
                pause()
            yield pair

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


def build(corpus: Corpus, folder: Path, *flags: object) -> int:
    words = ("--input", corpus.docs, "--index", folder, "--shards", 3, "--date-field", "date")
    return command("spark", "index", *words, *flags)


def check_built(corpus: Corpus, folder: Path) -> None:
    """Each document once, in whole shards, and nothing else in the folder."""
    collection, whole = open_collection(folder), corpus.whole
    names = [shard["name"] for shard in collection.shards]
    snapshots = [open_snapshot(folder / name) for name in names]
    assert sorted(docid for s in snapshots for docid in s.docids) == sorted(whole.docids)
    assert list(collection.vocabulary) == list(whole.vocabulary)
    wanted = {"collection.json", "statistics", *names, *(f"{name}.snapshot" for name in names)}
    assert {path.name for path in folder.iterdir()} == wanted


@pytest.fixture(scope="module")
def built(spark, corpus) -> Path:
    """Of files cut into pieces, while the first attempt at a shard hangs: it would end after ten minutes."""
    with unlucky_build(corpus.folder / "notes", hanging), pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "SPLIT", 4000)
        assert build(corpus, corpus.folder / "sharded") == 0
    return corpus.folder / "sharded"


def test_a_shard_whose_builder_hangs_is_built_elsewhere(built, corpus):
    check_notes(corpus.folder / "notes", "done-1")
    check_built(corpus, built)


def test_a_shard_that_two_have_built_is_there_once(spark, corpus, tmp_path):
    with unlucky_build(tmp_path / "notes", meeting):
        assert build(corpus, tmp_path / "sharded") == 0
    check_notes(tmp_path / "notes", "done-0", "done-1")
    check_built(corpus, tmp_path / "sharded")


def test_a_straggler_is_overtaken_and_the_run_is_the_same(built, corpus, tmp_path):
    """Byte for byte the one index's run, where the first attempt answers as well."""
    with unlucky_search(tmp_path / "notes", meeting):
        found = corpus.run(tmp_path / "many.txt", "spark search", built)
    check_notes(tmp_path / "notes", "done-0", "done-1")
    assert found == corpus.run(tmp_path / "one.txt", "search", corpus.index)


def test_an_executor_that_is_lost(spark, collection, tmp_path):
    """Its task is run again, and nothing is there twice: Ranking itself refuses a docid that is."""
    sharding, folder = collection
    engine = engine_of(folder, spark)
    with unlucky_search(tmp_path / "notes", killing):
        found = found_by(engine, ranker("sd"), sharding)
    assert (tmp_path / "notes" / "begun-1").exists()
    assert_same(found, one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50))


# -- the commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        ("--time-prior", "recency", "--as-of", "query-time"),
        ("--model", "sd", "--prune", "30", "--hits", 50, "--feedback-qrels"),
    ],
)
def test_search_writes_the_run_of_one_index(built, corpus, tmp_path, flags):
    flags = (*flags, corpus.folder / "demo" / "qrels.txt") if "--feedback-qrels" in flags else flags
    many = tmp_path / "many.txt"
    assert corpus.run(many, "spark search", built, "--batch", 4, *flags) == corpus.run(
        tmp_path / "one.txt", "search", corpus.index, *flags
    )
    assert not Path(f"{many}.parts").exists()
    note = json.loads(Path(f"{many}.manifest.json").read_text())
    assert note["verb"] == "spark search" and note["index"]["documents"] == 200


def test_saved_queries_are_replayed(built, corpus, tmp_path, capsys):
    """--expansion over shards, and its errors."""
    lines, odd = tmp_path / "one.jsonl", tmp_path / "odd.jsonl"
    wanted = corpus.run(tmp_path / "one.txt", "search", corpus.index, "--model", "sd", "--save-expansion", lines)
    flags = ("--model", "sd", "--expansion")
    assert corpus.run(tmp_path / "many.txt", "spark search", built, *flags, lines) == wanted
    capsys.readouterr()
    for text, told in (
        ('{"qid": "1", "terms": {"xyzzyx": 1}}', "topic '1': word 'xyzzyx' is not in index 'sharded'"),
        ("nonsense", "not JSON"),
    ):
        odd.write_text(f"{text}\n")
        words = ("--index", built, *corpus.topics, "--output", tmp_path / "x.txt")
        assert command("spark", "search", *words, *flags, odd) == 2
        assert f"odd.jsonl:1: {told}" in capsys.readouterr().err and not (tmp_path / "x.txt").exists()


def test_a_docid_in_two_files_is_found(spark, corpus, tmp_path, capsys):
    files = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    for file in files:
        file.write_text("".join(corpus.lines[:5]))
    words = ("spark", "index", "--input", *files, "--index", tmp_path / "twice", "--shards", 2)
    assert command(*words) == 2
    told = capsys.readouterr().err
    assert "b.jsonl:" in told and "was already used at" in told and "a.jsonl:" in told
    assert not (tmp_path / "twice" / "collection.json").exists()
    assert command(*words, "--skip-bad", "--overwrite") == 0
    told = capsys.readouterr()
    assert "skipped 5 bad documents" in told.err and "documents    5" in told.out


def test_flags_that_do_not_go_together(spark, collection, corpus, tmp_path, capsys):
    shared = ("--index", collection[1], *corpus.topics, "--output", tmp_path / "x")
    for words, told in (
        (("search", *shared, "--conf", "nonsense"), "--conf takes KEY=VALUE"),
        (("search", *shared, "--leak-check"), "--leak-check is for one index"),
        (("rerank", *shared, "--run", "r", "--run-weight", "0.5"), "--run-weight is for one index"),
        (("search", *shared, "--background", "local"), "needs a bandwidth"),
        (("index", "--dataset", "vaswani", "--index", tmp_path / "y", "--shards", 2), "--dataset is for"),
        (("index", "--input", "x", "--format", "ciff", "--index", tmp_path / "y", "--shards", 2), "ciff is for"),
    ):
        assert command("spark", *words) == 2
        assert told in capsys.readouterr().err


# -- as users type them ------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from sdretrieval.cli.main import main
from sdretrieval.plugins.spark import requests

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this process has inherited
signal.signal(signal.SIGTERM, signal.SIG_DFL)
kind, begun = sys.argv.pop(1), Path(os.environ.get("BEGUN", ""))

def slow(*given):
    begun.touch()
    time.sleep(600)

if kind == "slow":
    requests.best = slow
sys.exit(main())
"""


def typed(kind: str, master: str, *words: object) -> subprocess.Popen:
    """Not as text, in which the line ends of a progress bar would be others."""
    settings = [word for key, value in SETTINGS.items() for word in ("--conf", f"{key}={value}")]
    given = [sys.executable, "-c", PROGRAM, kind, "spark", "search", "--master", master, *settings, *map(str, words)]
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_program_writes_the_same_says_no_more_and_leaves_nothing(built, cluster, corpus, tmp_path):
    """Another program beside the one above, as on any cluster; its expanded queries too are the one index's."""
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    one, many = tmp_path / "one" / "run.txt", tmp_path / "many" / "run.txt"
    wanted = corpus.run(one, "search", corpus.index, "--save-expansion", one.with_name("lines.jsonl"))
    flags = ("--index", built, *corpus.topics, "--output", many, "--save-expansion", many.with_name("lines.jsonl"))
    process = typed("whole", cluster, *flags, "--batch", 4)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    told = rf"{re.escape(str(many))}: 10 topics, \d+ documents, [\d.]+ s\n"
    # On a busy machine Scala tells of a callback that came after Spark's threads had ended.
    late = r"(?m)^java\.util\.concurrent\.RejectedExecutionException.*\n(\s+at .*\n)*"
    assert out == b"" and re.fullmatch(told, as_shown(re.sub(late, "", err.decode())))
    assert many.read_bytes() == wanted
    assert many.with_name("lines.jsonl").read_bytes() == one.with_name("lines.jsonl").read_bytes()
    assert {path.name for path in many.parent.iterdir()} == {path.name for path in one.parent.iterdir()}


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_program_that_is_terminated_cleans_up(built, corpus, tmp_path, monkeypatch):
    """A batch system's limit comes as SIGTERM, here while the run is being written and Spark is waited for."""
    begun, out = tmp_path / "begun", tmp_path / "out"
    out.mkdir()
    monkeypatch.setenv("BEGUN", str(begun))
    process = typed("slow", "local[2]", "--index", built, *corpus.topics, "--output", out / "run.txt")
    wait_for(lambda: begun.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert len(list(out.glob(".run.txt.*.tmp"))) == 1
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert b"nothing half-written was left behind" in err and b"Traceback" not in err
    assert list(out.iterdir()) == []
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
