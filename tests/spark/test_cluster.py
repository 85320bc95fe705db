"""On a real Spark, a standalone cluster of two workers: exactness, trouble (lost executors, failures, stragglers), the
commands, and collections at an address: Hadoop's viewfs:// over a local folder, by the same client as hdfs:// or s3a://.

All in one file, so that one worker of pytest-xdist runs one cluster. Most collections are written as snapshots alone,
without Lucene: what workers rank from.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from needed import MARKS, Corpus, command, spark_for, standalone, wait_for
from sharding import Sharding, assert_same, one_index, ranker
from shown import as_shown

from sdretrieval.core.errors import IndexProblem, SdretrievalError
from sdretrieval.core.timeline import DAY, WEEK
from sdretrieval.estimate.time.drift import analyse
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.index.snapshot_format import ARRAYS
from sdretrieval.plugins.spark import building, copies, reading, requests
from sdretrieval.plugins.spark.runners import OnSpark
from sdretrieval.plugins.spark.search import prepare
from sdretrieval.plugins.spark.session import spark_context
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine, ShardOptions
from sdretrieval.plugins.spark.shards import Remote, open_collection, write_collection
from sdretrieval.plugins.spark.storage import Hadoop, StorageProblem

pyspark = spark_for(sys.modules[__name__])
pytestmark = MARKS

SECRET = "not-to-be-seen"
DOCS, ADDRESS = "viewfs://cluster/data/docs", "viewfs://cluster/data/news"
# A core on each machine; a copy as soon as half of the tasks are through and one takes clearly longer.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.hadoop.ipc.client.connect.max.retries": "0",
    "spark.hadoop.fs.some.secret.key": SECRET,
}


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Path:
    """The folder behind viewfs://cluster/data."""
    return tmp_path_factory.mktemp("there")


@pytest.fixture(scope="module")
def spark(there, tmp_path_factory) -> Iterator[Any]:
    settings = {
        **SETTINGS,
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.hadoop.fs.viewfs.mounttable.cluster.link./data": there.as_uri(),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(copies.VARIABLE, str(tmp_path_factory.mktemp("ca che%20é")))  # workers inherit it
        with (
            standalone(tmp_path_factory.mktemp("cluster")) as cluster,
            spark_context(cluster, settings=settings) as context,
        ):
            assert context.master == cluster and context.getConf().get("spark.speculation") == "true"
            yield context


@pytest.fixture(scope="module")
def collections(tmp_path_factory) -> dict[int, tuple[Sharding, Path]]:
    made = {}
    for n in (1, 3, 8):
        sharding, folder = Sharding(n), tmp_path_factory.mktemp("collections") / f"of-{n}"
        write_collection(folder, sharding.shards(n))
        made[n] = sharding, folder
    return made


@pytest.fixture(scope="module")
def corpus(there, tmp_path_factory) -> Corpus:
    """In names that a shell or a URL would change."""
    return Corpus(tmp_path_factory.mktemp("corpus"), there / "docs", ("a*.jsonl", "sub dir/b{x}[1]%20é.jsonl"))


def build(source: object, target: object, *flags: object) -> int:
    return command(
        "spark", "index", "--input", source, "--index", target, "--shards", 3, "--date-field", "date", *flags
    )


@pytest.fixture(scope="module")
def built(spark, corpus, there) -> Path:
    """What lies at ADDRESS."""
    assert build(DOCS, ADDRESS) == 0
    return there / "news"


def engine_of(place: Path | str, context) -> ShardedEngine:
    collection = open_collection(place, context)
    runner = OnSpark(collection, context)
    prepare(collection, runner)
    return ShardedEngine(collection, runner)


def found_by(engine: ShardedEngine, model, sharding: Sharding) -> dict:
    results = engine.rank(model, sharding.queries(engine.collection), ShardOptions(hits=50))
    return {result.query.qid: result.ranking for result in results}


# One of each kind of request that travels to workers; test_exactness.py has every model and time setting.


# One of each kind of request that travels to workers; test_exactness.py has every model and time setting.
KINDS = [
    *((name, None) for name in ("bm25", "rm", "blend", "lucene-qljm")),
    ("ql", "recency"),
    ("sd", "density, auto"),
    ("sd", "feedback at the mode"),
    ("ql", "penalised background"),
    ("sd", "local background as of"),
    ("ql", "background at documents, recency"),
]


@pytest.mark.parametrize("n", [1, 3, 8])
def test_every_kind_of_request(spark, collections, n):
    sharding, folder = collections[n]
    engine = engine_of(folder, spark)
    cases = KINDS if n == 3 else [("sd3", None), ("sd", "as of, inclusive, recency")]
    with ThreadPoolExecutor(4) as pool:  # Spark runs jobs side by side
        found = list(pool.map(lambda case: found_by(engine, ranker(*case), sharding), cases))
    for case, rankings in zip(cases, found, strict=True):
        assert_same(rankings, one_index(sharding.whole, ranker(*case), sharding.queries(sharding.whole), hits=50), case)


def test_workers_start_no_java(spark, collections):
    """pyjnius is what would start it."""

    def loaded(shard, shared, own):
        requests.best(shard, ([], []))
        return [name for name in ("jnius", "pyserini") if name in sys.modules]

    runner = engine_of(collections[3][1], spark).runner
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


def failing(notes: Path, work: Work) -> Any:
    """The first attempt fails."""
    if begun(notes) == 0:
        raise OSError("the network was away")
    return work(lambda: None)


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


def check_built(corpus: Corpus, folder: Path) -> None:
    """Each document once, in whole shards, and nothing else in the folder."""
    collection, whole = open_collection(folder), corpus.whole
    names = [shard["name"] for shard in collection.shards]
    snapshots = [open_snapshot(folder / name) for name in names]
    assert sorted(docid for s in snapshots for docid in s.docids) == sorted(whole.docids)
    assert list(collection.vocabulary) == list(whole.vocabulary)
    wanted = {"collection.json", "statistics", *names, *(f"{name}.snapshot" for name in names)}
    assert {path.name for path in folder.iterdir() if not path.name.endswith(".crc")} == wanted


def assert_same_arrays(one: Path, other: Path) -> None:
    """Lucene's own files have random marks in them: what is compared is what models see."""
    for number in range(3):
        a, b = (open_collection(folder).path(number) for folder in (one, other))
        for name in ARRAYS:
            assert np.array_equal(np.fromfile(a / f"{name}.bin", "u1"), np.fromfile(b / f"{name}.bin", "u1")), name


@pytest.fixture(scope="module")
def mounted(spark, corpus, tmp_path_factory) -> Path:
    """Built in a folder, from pieces of 4000 bytes, while the first attempt at a shard hangs for ten minutes."""
    folder, tasks, plan = tmp_path_factory.mktemp("mounted"), [], building.plan
    with pytest.MonkeyPatch.context() as patch, unlucky_build(folder / "notes", hanging):
        patch.setattr(reading, "SPLIT", 4000)
        patch.setattr(building, "plan", lambda *given: tasks.extend(plan(*given)) or tasks)
        assert build(corpus.docs, folder / "news") == 0
    assert len(tasks) > 5
    return folder / "news"


def test_a_shard_whose_builder_hangs_is_built_elsewhere(mounted, built, corpus):
    """Pieces of files in a folder, or whole ones at an address: the same documents in the same order."""
    check_notes(mounted.with_name("notes"), "done-1")
    for folder in (mounted, built):
        check_built(corpus, folder)
    assert_same_arrays(built, mounted)


def test_a_stopped_build_goes_on_and_what_two_have_built_is_there_once(mounted, corpus, tmp_path, capsys):
    folder = tmp_path / "stopped"
    shutil.copytree(mounted, folder)
    (folder / "collection.json").unlink()
    shutil.rmtree(folder / "shard-00001")
    left = next((folder / "shard-00000").glob("segments_*")).stat().st_mtime_ns
    assert build(corpus.docs, folder) == 2
    assert "holds a build that was stopped" in capsys.readouterr().err
    with unlucky_build(tmp_path / "notes", meeting):
        assert build(corpus.docs, folder, "--resume") == 0
    check_notes(tmp_path / "notes", "done-0", "done-1")
    assert "2 shards were there already" in capsys.readouterr().err
    assert next((folder / "shard-00000").glob("segments_*")).stat().st_mtime_ns == left
    check_built(corpus, folder)


def test_a_stopped_build_at_an_address_goes_on_with_what_is_whole(built, there, capsys):
    """A shard in place, a whole attempt that no driver put there, and one that was cut short."""
    address, folder = "viewfs://cluster/data/stopped", there / "stopped"
    shutil.copytree(built, folder)
    (folder / "collection.json").unlink()
    for n in (1, 2):
        attempt = folder / f"shard-{n:05d}.attempt-0"
        attempt.mkdir()
        for end in ("", ".snapshot"):
            (folder / f"shard-{n:05d}{end}").rename(attempt / f"shard-{n:05d}{end}")
    next((folder / "shard-00002.attempt-0" / "shard-00002").glob("_*.tim")).unlink()
    kept = {
        n: next((folder / name).glob("segments_*")).stat().st_ino
        for n, name in ((0, "shard-00000"), (1, "shard-00001.attempt-0/shard-00001"))
    }
    assert build(DOCS, address, "--resume") == 0
    assert "2 shards were there already" in capsys.readouterr().err
    for n, inode in kept.items():
        assert next((folder / f"shard-{n:05d}").glob("segments_*")).stat().st_ino == inode
    assert open_collection(folder).manifest["documents"] == 200
    assert not list(folder.glob("*.attempt-*"))
    assert_same_arrays(built, folder)


@pytest.mark.parametrize(("way", "done"), [(hanging, ["done-1"]), (meeting, ["done-0", "done-1"])])
def test_a_straggler_is_overtaken_and_the_run_is_the_same(mounted, corpus, tmp_path, way, done):
    """Byte for byte the one index's run, whether the first attempt ever ends or answers as well."""
    with unlucky_search(tmp_path / "notes", way):
        found = corpus.run(tmp_path / "many.txt", "spark search", mounted)
    check_notes(tmp_path / "notes", *done)
    assert found == corpus.run(tmp_path / "one.txt", "search", corpus.index)


@pytest.mark.parametrize("way", [failing, killing])
def test_a_task_that_fails_and_an_executor_that_is_lost(spark, collections, tmp_path, way):
    """It is run again, and nothing is there twice: Ranking itself refuses a docid that is."""
    sharding, folder = collections[3]
    engine = engine_of(folder, spark)
    with unlucky_search(tmp_path / "notes", way):
        found = found_by(engine, ranker("sd"), sharding)
    assert (tmp_path / "notes" / "begun-1").exists()
    assert_same(found, one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50))


# -- the commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        ("--model", "sd3"),
        ("--model", "sd", "--prune", "30"),
        ("--time-prior", "recency", "--as-of", "query-time"),
        ("--model", "lucene-qld", "--time-prior", "density"),
        ("--model", "sd", "--feedback-qrels"),
    ],
)
def test_search_writes_the_run_of_one_index(built, corpus, tmp_path, flags):
    flags = (*flags, corpus.folder / "demo" / "qrels.txt") if "--feedback-qrels" in flags else flags
    # Laid out as a folder is: mounted, the same files are a collection too.
    many, place = tmp_path / "many.txt", built.as_uri() if "--time-prior" in flags else ADDRESS
    assert corpus.run(many, "spark search", place, "--batch", 4, *flags) == corpus.run(
        tmp_path / "one.txt", "search", corpus.index, *flags
    )
    assert not Path(f"{many}.parts").exists()
    note = json.loads(Path(f"{many}.manifest.json").read_text())
    assert note["verb"] == "spark search" and note["index"]["documents"] == 200


def test_rerank_writes_the_run_of_one_index(built, corpus, tmp_path):
    corpus.run(tmp_path / "first.txt", "search", corpus.index, "--model", "bm25")
    again = ("--run", tmp_path / "first.txt", "--model", "sd")
    wanted = corpus.run(tmp_path / "one.txt", "rerank", corpus.index, *again)
    assert corpus.run(tmp_path / "many.txt", "spark rerank", ADDRESS, *again) == wanted


def test_classify_labels_every_document(built, corpus, tmp_path):
    model, output = tmp_path / "halves.model", tmp_path / "labels.tsv"
    classifier, known = corpus.classifier(model)
    assert command("spark", "classify", "--index", ADDRESS, "--load", model, "--output", output) == 0
    rows = dict(line.split("\t")[:2] for line in output.read_text().splitlines())
    assert rows == dict(zip(known.docids, (labels[0] for labels in classifier.predict(known)), strict=True))


def test_drift_writes_the_curves_of_one_index(built, corpus, tmp_path):
    whole, output = corpus.whole, tmp_path / "drift.csv"
    frequent = (whole.term(i) for i in np.argsort(-whole.cf).tolist())
    word = next(term for term in frequent if whole.analyze(term) == [term])
    words = ("--words", word, "--bandwidth", "10d", "--resolution", "week")
    assert command("spark", "drift", "--index", ADDRESS, "--output", output, *words) == 0
    how = {"bandwidth": 10.0 * DAY, "resolution": float(WEEK)}
    wanted = analyse(whole.by_doc, whole.times, words=[whole.term_id(word)], **how)
    header, *rows = [line.split(",") for line in output.read_text().splitlines()]
    assert header == ["time", "documents", "words", "word", "frequency", "lower", "upper"]
    assert [int(row[1]) for row in rows] == wanted.documents.tolist()
    curve = [float(row[4]) if row[4] else np.nan for row in rows]
    assert curve == pytest.approx(wanted.curves[0].frequency.tolist(), rel=1e-5, nan_ok=True)


def test_saved_queries_are_replayed(mounted, corpus, tmp_path, capsys):
    """--expansion over shards, and its errors."""
    lines, odd = tmp_path / "one.jsonl", tmp_path / "odd.jsonl"
    wanted = corpus.run(tmp_path / "one.txt", "search", corpus.index, "--model", "sd", "--save-expansion", lines)
    flags = ("--model", "sd", "--expansion")
    assert corpus.run(tmp_path / "many.txt", "spark search", mounted, *flags, lines) == wanted
    capsys.readouterr()
    for text, told in (
        ('{"qid": "1", "terms": {"xyzzyx": 1}}', "topic '1': word 'xyzzyx' is not in index 'news'"),
        ("nonsense", "not JSON"),
    ):
        odd.write_text(f"{text}\n")
        words = ("--index", mounted, *corpus.topics, "--output", tmp_path / "x.txt")
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


def test_flags_that_do_not_go_together(spark, collections, corpus, tmp_path, capsys):
    shared = ("--index", collections[3][1], *corpus.topics, "--output", tmp_path / "x")
    for words, told in (
        (("search", *shared, "--conf", "nonsense"), "--conf takes KEY=VALUE"),
        (("search", *shared, "--leak-check"), "--leak-check is for one index"),
        (("rerank", *shared, "--run", "r", "--run-weight", "0.5"), "--run-weight is for one index"),
        (("search", *shared, "--background", "local"), "needs a bandwidth"),
        (("index", "--dataset", "vaswani", "--index", tmp_path / "y", "--shards", 2), "--dataset is for"),
        (("index", "--input", "x", "--format", "ciff", "--index", tmp_path / "y", "--shards", 2), "ciff is for"),
        (("index", "--input", corpus.docs, "--index", corpus.docs, "--shards", 3), "over its own input"),
    ):
        assert command("spark", *words) == 2
        assert told in capsys.readouterr().err


# -- at an address -------------------------------------------------------------------------------------------------


def n_docs(shard, request, own) -> int:
    return shard.snapshot.n_docs


def test_workers_copy_snapshots_alone_and_once(spark, built, there):
    """Not the Lucene index; and what was copied is used again when what is there is out of reach."""
    address = "viewfs://cluster/data/once"
    shutil.copytree(built, there / "once")
    collection = open_collection(address, spark)
    assert isinstance(collection, Remote) and collection.address == address
    runner = OnSpark(collection, spark)
    prepare(collection, runner)
    counts = [n for _, n in runner.ask(n_docs, None, dict.fromkeys(range(3)))]
    assert sum(counts) == 200
    shards = [f"shard-0000{n}" for n in range(3)]
    assert sorted(path.name for path in collection.folder.iterdir()) == [*shards, "statistics"]
    assert not list(collection.folder.glob("**/segments*"))
    for path in (there / "once").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    again = open_collection(address, spark)
    assert again.has_totals
    assert [again.for_workers().snapshot(n).n_docs for n in range(3)] == counts


class Refused:
    """A request that fails for a number of times."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = folder, times

    def __call__(self, shard, request, own=None) -> list[int]:
        for k in range(self.times):
            self.folder.mkdir(exist_ok=True)
            mark = self.folder / f"{shard.number}-{k}"
            if not mark.exists():
                mark.touch()
                raise StorageProblem("hdfs://h/x: Connection refused (é)", remedy="Does it run?")
        return [shard.number]


def test_what_passes_is_tried_again_and_what_stays_is_said_plainly(spark, built, tmp_path, capfd):
    collection = open_collection(ADDRESS, spark)
    runner, everywhere = OnSpark(collection, spark), dict.fromkeys(range(3))
    prepare(collection, runner)
    assert [n for n, _ in runner.ask(Refused(tmp_path / "passing", 2), None, everywhere)] == [0, 1, 2]
    ways = {
        "asked": lambda request: runner.ask(request, None, everywhere),
        "streamed": lambda request: list(runner.stream(request, None)),
        "reduced": lambda request: runner.reduce(request, None),
    }
    for way, ask in ways.items():
        notes = tmp_path / way  # of its own: a task of the job that failed may be a while in ending
        with pytest.raises(SdretrievalError, match=r"^hdfs://h/x: Connection refused \(é\)\n  Does it run\?$"):
            ask(Refused(notes, 100))
        assert max(int(path.name[-1]) for path in notes.iterdir()) >= 3  # four attempts, and copies of slow ones
    assert "Traceback" not in capfd.readouterr().err


def test_a_lost_file_is_named(spark, built, there):
    address, folder = "viewfs://cluster/data/broken", there / "broken"
    shutil.copytree(built, folder)
    lost = next(folder.glob("shard-00001.snapshot/*/doc_terms.bin"))
    lost.unlink()
    cut = next(folder.glob("shard-00002.snapshot/*/times.bin"))
    cut.write_bytes(cut.read_bytes()[:-8])
    cut.with_name(".times.bin.crc").unlink()
    shutil.rmtree(folder / "shard-00000.snapshot")
    collection = open_collection(address, spark)
    with pytest.raises(IndexProblem) as caught:
        OnSpark(collection, spark).ask(n_docs, None, {1: None})
    inside = f"{address}/shard-00001.snapshot/{lost.parent.name}"
    assert f"shard shard-00001 (2 of 3) of {address}: {inside}: doc_terms.bin" in str(caught.value)
    assert "--resume" in str(caught.value)
    with pytest.raises(IndexProblem, match=r"shard-00002 \(3 of 3\).*times.bin has \d+ bytes instead of"):
        collection.snapshot(2)
    for client in (collection, collection.for_workers()):
        with pytest.raises(IndexProblem, match=rf"shard-00000 \(1 of 3\).*{address}/shard-00000.sna"):
            client.snapshot(0)


def test_a_collection_without_sums_is_summed_there(spark, there):
    """Written by other means, as snapshots alone; every part of a ranking goes through the copies."""
    sharding, address = Sharding(3), "viewfs://cluster/data/plain"
    write_collection(there / "plain", sharding.shards(3))
    assert not open_collection(address, spark).has_totals
    engine = engine_of(address, spark)
    assert (there / "plain" / "statistics" / engine.collection.fingerprint / "totals.json").is_file()
    assert open_collection(there / "plain").totals.n_docs == engine.collection.totals.n_docs == 400
    wanted = one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50)
    assert_same(found_by(engine, ranker("sd"), sharding), wanted)


def test_a_file_that_goes_away_while_building_is_named(spark, tmp_path, monkeypatch, capfd):
    """Not skipped as bad: nobody asked for a part of the corpus."""
    docs, plan = tmp_path / "docs", building.plan
    docs.mkdir()
    for name in "ab":
        (docs / f"{name}.jsonl").write_text(f'{{"id": "{name}", "contents": "x"}}\n')

    def losing(*given):
        (docs / "b.jsonl").unlink()
        return plan(*given)

    monkeypatch.setattr(building, "plan", losing)
    words = ("--input", docs, "--index", tmp_path / "index", "--shards", 2, "--skip-bad")
    assert command("spark", "index", *words) == 2
    err = capfd.readouterr().err
    assert f"{docs}/b.jsonl: No such file" in err and "on all workers" in err and "Traceback" not in err


def test_a_collection_there_is_not_overwritten_unasked(built, corpus, capsys):
    assert build(DOCS, ADDRESS) == 2
    assert f"the collection {ADDRESS} exists" in capsys.readouterr().err
    for place, told in (("docs", "over its own input"), ("docs/sub dir", "is not a sharded collection")):
        assert build(DOCS, f"viewfs://cluster/data/{place}", "--overwrite") == 2
        assert told in capsys.readouterr().err
    assert (corpus.docs / "a*.jsonl").exists() and list((corpus.docs / "sub dir").iterdir())


def test_what_cannot_be_reached_is_said_with_a_way_out(spark, corpus, tmp_path, capsys):
    shared, there = (*corpus.topics, "--output", tmp_path / "x"), ("--index", tmp_path / "y", "--shards", 2)
    for address, told, remedy in (
        ("nosuch://host/news", 'No FileSystem for scheme "nosuch"', "no client for nosuch://"),
        ("s3a://bucket/news", "S3AFileSystem not found", "spark.jars.packages"),
        ("hdfs://127.0.0.1:1/news", "Connection refused", "Does the service run"),
        ("hdfs://no-such-host.invalid/news", "UnknownHost", "Check the host"),
        ("viewfs://cluster/data/nowhere", "is no sharded collection", "spark index"),
        ("hdfs://head/../news", "'..'", "full path"),
    ):
        assert command("spark", "search", "--index", address, *shared) == 2
        err = capsys.readouterr().err
        assert told in err and remedy in err and address.partition("://")[0] in err, err
    for words, told in (
        (("rerank", "--index", ADDRESS, "--run", "s3a://b/r", *shared), "--run s3a://b/r: only"),
        (("index", "--input", DOCS, *there, "--threads", 2), "--threads is for `sdretrieval index`"),
        (("index", "--input", DOCS, *there, "--encoding", "klingon"), "unknown encoding"),
        (("index", "--input", f"{DOCS}/nope", *there), "no such file"),
    ):
        assert command("spark", *words) == 2
        assert told in capsys.readouterr().err


def test_settings_travel_and_are_not_shown(spark):
    shell = Hadoop(spark).for_workers()
    assert SECRET.encode() in zlib.decompress(shell.settings) and SECRET not in repr(shell)
    assert shell.user == spark.sparkUser()


# -- as users type them ------------------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from sdretrieval.cli.main import main
from sdretrieval.plugins.spark import requests
from sdretrieval.plugins.spark.totals import Totals

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this process has inherited
signal.signal(signal.SIGTERM, signal.SIG_DFL)
kind, begun = sys.argv.pop(1), Path(os.environ.get("BEGUN", ""))

def slow(*given):
    begun.touch()
    time.sleep(600)

if kind == "ranking":
    requests.best = slow
if kind == "summing":
    Totals.of = slow
sys.exit(main())
"""


def typed(kind: str, *words: object) -> subprocess.Popen:
    """On Spark's local[2]. Not as text, in which the line ends of a progress bar would be others."""
    given = [sys.executable, "-c", PROGRAM, kind, "spark", "search", "--master", "local[2]", *map(str, words)]
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_program_writes_the_same_says_no_more_and_leaves_nothing(mounted, corpus, tmp_path):
    """Its expanded queries too are the one index's."""
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    one, many = tmp_path / "one" / "run.txt", tmp_path / "many" / "run.txt"
    wanted = corpus.run(one, "search", corpus.index, "--save-expansion", one.with_name("lines.jsonl"))
    flags = ("--index", mounted, *corpus.topics, "--output", many, "--save-expansion", many.with_name("lines.jsonl"))
    process = typed("whole", *flags, "--batch", 4)
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
@pytest.mark.parametrize(("kind", "number"), [("ranking", signal.SIGTERM), ("summing", signal.SIGINT)])
def test_a_program_that_is_terminated_cleans_up(mounted, corpus, tmp_path, monkeypatch, kind, number):
    """A batch system's limit comes as SIGTERM: while the run is being written, or while Spark is waited for."""
    collection, begun, out = tmp_path / "news", tmp_path / "begun", tmp_path / "out"
    out.mkdir()
    monkeypatch.setenv("BEGUN", str(begun))
    shutil.copytree(mounted, collection, ignore=shutil.ignore_patterns("statistics" if kind == "summing" else ""))
    process = typed(kind, "--index", collection, *corpus.topics, "--output", out / "run.txt")
    wait_for(lambda: begun.exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()
    assert len(list(out.glob(".run.txt.*.tmp"))) == (kind == "ranking")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.send_signal(number)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 128 + number, err
    assert b"nothing half-written was left behind" in err and b"Traceback" not in err
    assert list(out.iterdir()) == []
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
