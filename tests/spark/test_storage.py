"""Collections at an address: Hadoop's viewfs:// over a local folder, through the same client as hdfs:// or s3a://."""

from __future__ import annotations

import fcntl
import os
import pickle
import shutil
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from needed import BRIEFLY, MARKS, Corpus, command, spark_for, wait_for
from sharding import InMemory, Sharding, assert_same, engine_of, one_index, ranker

from benchmarks.sharded import write_collection
from sdretrieval.collection.corpus import Document
from sdretrieval.core.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.core.timeline import DAY, WEEK
from sdretrieval.estimate.time.drift import analyse
from sdretrieval.index.snapshot_format import ARRAYS
from sdretrieval.plugins.spark import building, copies, storage
from sdretrieval.plugins.spark.copies import cache_folder, local_copy
from sdretrieval.plugins.spark.runners import OnSpark
from sdretrieval.plugins.spark.search import prepare
from sdretrieval.plugins.spark.session import spark_context
from sdretrieval.plugins.spark.shard_ranking import ShardOptions
from sdretrieval.plugins.spark.shards import Remote, open_collection
from sdretrieval.plugins.spark.storage import Hadoop, HadoopShell, StorageProblem, is_address, place_of

pyspark = spark_for(sys.modules[__name__])
pytestmark = MARKS

SECRET = "not-to-be-seen"


# -- addresses ---------------------------------------------------------------------------------------------------


def test_what_is_an_address():
    assert is_address("hdfs://head:8020/news") and is_address("s3a://bucket/news")
    assert not any(map(is_address, ("news", "/mnt/news", "C:/news", "file:///mnt/news", Path("hdfs:/news"), None)))
    assert place_of("file:///mnt/a b") == Path("/mnt/a b") and place_of("news") == Path("news")
    assert place_of("file:/mnt/x:y") == place_of("file://localhost/mnt/x:y") == Path("/mnt/x:y")
    assert place_of("hdfs://me@head:8020/a:b@c") == "hdfs://me@head:8020/a:b@c"
    assert place_of("hdfs://head//a/./b/") == "hdfs://head/a/b"
    assert place_of("abfss://container@account/a") == "abfss://container@account/a"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hdfs://head", "the root"),
        ("hdfs://head/", "the root"),
        ("hdfs://head/a/../b", "'..'"),
        ("hdfs://head/a\nb", "control character"),
        ("s3a://key:password@bucket/a", "a password in it"),
        ("s3a://key:pass/password@bucket/a", "a password in it"),
        ("s3a://key:\npassword@bucket/a", "a password in it"),
        ("file://key:password@other/a", "a password in it"),
        ("s3a:/key:password@bucket/a", "a password in it"),
        ("abfss://container:password@account/a", "a password in it"),
        ("file://other/a", "another machine"),
        ("file://", "names no file"),
        ("file://localhost", "names no file"),
        ("hdfs:/head/a", "two slashes"),
        ("HDFS:/head/a", "two slashes"),
    ],
)
def test_addresses_that_are_refused(text, told):
    with pytest.raises(ParameterError, match=told) as caught:
        place_of(text)
    assert "password@" not in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "missing", "remedy"),
    [
        ("File does not exist: /connect/refused", True, "Check the address."),
        ("AccessControlException: Permission denied: user=x, inode=/Connection refused/a", False, "Check the rights"),
        ("Permission denied: user=x, access=READ, path=/timeout/ConnectException/a", False, "Check the rights"),
        ("Call From h/1 to h:1 failed: java.net.ConnectException: Connection refused", False, "Does the service run"),
        ("IOException: /permission/denied is a folder", False, "docs/SPARK.md"),
        ("No space left on device", False, "Make room"),
    ],
)
def test_remedies_are_not_told_by_words_in_paths(reason, missing, remedy):
    assert storage.explained("hdfs://h/a", reason, missing=missing).remedy.startswith(remedy)


# -- copies ------------------------------------------------------------------------------------------------------


class Elsewhere:
    """A client that takes its time, and counts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls, self.lock = folder, 0, threading.Lock()

    def get(self, addresses, local):
        with self.lock:
            self.calls += 1
        for address in addresses:
            target = local / address.rpartition("/")[2]
            target.mkdir()
            for file in sorted((self.folder / target.name).iterdir()):
                time.sleep(0.02)
                shutil.copy(file, target)


def sizes_differ(folder: Path) -> str | None:
    try:
        found = {name: (folder / name).read_text() for name in ("a", "b")}
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    return None if found == {"a": "one", "b": "two"} else "damaged"


@pytest.fixture
def elsewhere(tmp_path) -> Elsewhere:
    (tmp_path / "there" / "mark").mkdir(parents=True)
    for name, text in (("a", "one"), ("b", "two")):
        (tmp_path / "there" / "mark" / name).write_text(text)
    return Elsewhere(tmp_path / "there")


@pytest.mark.parametrize("locks", [True, False])
def test_two_workers_at_once(elsewhere, tmp_path, monkeypatch, locks):
    """With locks it is fetched once; on a file system without, the first that is whole stays. No half one is seen."""

    def flock(file, operation):
        raise OSError(37, "No locks available")

    if not locks:
        monkeypatch.setattr(fcntl, "flock", flock)
    target = tmp_path / "cache" / "shard" / "mark"

    def copied() -> str | None:
        return sizes_differ(local_copy(elsewhere, "x://h/mark", target, sizes_differ))

    with ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(copied) for _ in range(4)]
        while not all(worker.done() for worker in workers):
            if target.exists():
                assert sizes_differ(target) is None
            time.sleep(0.005)
    assert [worker.result() for worker in workers] == [None] * 4
    assert elsewhere.calls == 1 if locks else elsewhere.calls >= 1
    assert sorted(path.name for path in target.parent.iterdir()) == [".lock", "mark"]


def test_a_damaged_copy_is_fetched_again_and_old_ones_go(elsewhere, tmp_path):
    target = tmp_path / "cache" / "mark"
    for left in ("older", ".mark.123.part", ".older.123.part"):
        (target.parent / left).mkdir(parents=True)
    for _ in range(2):
        local_copy(elsewhere, "x://h/mark", target, sizes_differ)
        assert elsewhere.calls == 1
    assert sorted(path.name for path in target.parent.iterdir()) == [".lock", "mark"]
    (target / "b").write_text("tw")
    local_copy(elsewhere, "x://h/mark", target, sizes_differ)
    assert elsewhere.calls == 2 and sizes_differ(target) is None
    (elsewhere.folder / "mark" / "b").unlink()
    (target / "a").unlink()
    with pytest.raises(IndexProblem, match="x://h/mark: b is missing"):
        local_copy(elsewhere, "x://h/mark", target, sizes_differ)
    assert elsewhere.calls == 3 and not list(target.parent.glob("*.part"))


@pytest.mark.parametrize("is_named", [True, False])
def test_a_cache_that_others_may_write_to_is_not_trusted(tmp_path, monkeypatch, is_named):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/blockmgr-1,/other")
    (tmp_path / "blockmgr-1").mkdir()
    root = tmp_path / "new" / "named" if is_named else tmp_path / f"sdretrieval-shards-{os.getuid()}"
    monkeypatch.setenv(copies.VARIABLE, str(root)) if is_named else monkeypatch.delenv(copies.VARIABLE, raising=False)
    folder = cache_folder("hdfs://head/news")
    assert folder.parent == root and [stat.S_IMODE(path.stat().st_mode) for path in (root, folder)] == [0o700] * 2
    root.chmod(0o755)  # others may look
    assert cache_folder("hdfs://head/news") == folder
    for place in (root, folder):
        place.chmod(0o775)
        with pytest.raises(SdretrievalError, match=f"{place} is not a folder of this user's alone") as caught:
            cache_folder("hdfs://head/news")
        assert copies.VARIABLE in str(caught.value)
        place.chmod(0o700)
    (tmp_path / "planted").mkdir(mode=0o700)
    for place in (folder, root):
        shutil.rmtree(place)
        place.symlink_to(tmp_path / "planted")
        with pytest.raises(SdretrievalError, match="cannot be trusted"):
            cache_folder("hdfs://head/news")
        place.unlink()


# -- the clients -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a child that ends with its parent")
def test_a_killed_worker_leaves_no_java(tmp_path, monkeypatch):
    java, local = tmp_path / "java" / "bin" / "java", tmp_path / "local"
    for folder in (java.parent, local):
        folder.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid.tmp\nmv {tmp_path}/pid.tmp {tmp_path}/pid\nexec sleep 600\n")
    java.chmod(0o755)
    monkeypatch.setenv("SPARK_JAVA_HOME", str(java.parent.parent))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(local))
    code = (
        "import zlib; from pathlib import Path; from sdretrieval.plugins.spark.storage import HadoopShell\n"
        f"HadoopShell(zlib.compress({SECRET.encode()!r})).get(['hdfs://h/x'], Path('.'))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for((tmp_path / "pid").exists)
    finally:
        worker.kill()
        worker.wait()
    wait_for(lambda: has_ended((tmp_path / "pid").read_text().strip()))


def has_ended(pid: str) -> bool:
    """Gone, or still to be collected by whoever inherited it."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # also where it goes while it is looked at
        return True


def test_credentials_are_on_no_command_line(monkeypatch, tmp_path):
    """They are in a file that is its owner's alone, and gone afterwards."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    shell = HadoopShell(zlib.compress(SECRET.encode()), "somebody")
    commands: list[list[str]] = []
    answers = iter([(0, b""), (1, b"get: `x://h/lost': No such file or directory\n"), (1, b"get: Connection reset\n")])

    def run(command, env, **options):
        commands.append(command)
        settings = Path(command[command.index("-conf") + 1])
        assert settings.read_text() == SECRET and stat.S_IMODE(settings.stat().st_mode) == 0o600
        assert env["HADOOP_USER_NAME"] == "somebody"
        code, told = next(answers)
        return subprocess.CompletedProcess(command, code, b"", told)

    monkeypatch.setattr(storage.subprocess, "run", run)
    shell.get(["x://h/a*{b}"], tmp_path)
    assert commands[0][-2:] == [r"x://h/a\*\{b\}", tmp_path.as_uri() + "/"]
    for told, is_lost in (("x://h/lost: No such file or directory", True), ("x://h/y: Connection reset", False)):
        with pytest.raises(StorageProblem, match=told) as caught:
            shell.get(["x://h/y"], tmp_path)
        assert caught.value.missing == is_lost
    assert SECRET not in repr(shell) and not any(SECRET in word for command in commands for word in command)
    assert not list(tmp_path.iterdir())


class ReadOnly(Hadoop):
    """A driver's client, of a place where nothing may be written."""

    def __init__(self, found: object = None) -> None:
        self.found, self.deleted = found, []

    def status(self, address):
        return self.found

    def make(self, address):
        raise StorageProblem(f"{address}: AccessControlException: Permission denied")

    def delete(self, address):
        self.deleted.append(address)

    def for_workers(self):
        return HadoopShell(b"")


def test_sums_that_cannot_be_put_there_travel(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(copies.VARIABLE, str(tmp_path / "driver"))
    manifest = write_collection(tmp_path / "c", Sharding(3).shards(2)).manifest
    totals = InMemory([Sharding(3).whole]).totals
    collection = Remote("x://h/c", manifest, ReadOnly())
    collection.keep_totals(totals)
    assert "kept on this machine alone" in capsys.readouterr().err
    assert [".building-" in address for address in collection.storage.deleted] == [True]
    sent = pickle.dumps(collection.for_workers())
    monkeypatch.setenv(copies.VARIABLE, str(tmp_path / "worker"))  # where no copy is
    assert pickle.loads(sent).totals.n_docs == totals.n_docs
    there = Remote("x://h/c", manifest, ReadOnly(found="something"))
    assert len(pickle.dumps(there.for_workers())) < len(sent) / 4


# -- on Spark ----------------------------------------------------------------------------------------------------

ADDRESS = "viewfs://cluster/data/news"
BUILD = ("spark", "index", "--input", "viewfs://cluster/data/docs", "--shards", 3, "--date-field", "date", "--index")


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Path:
    """The folder behind viewfs://cluster/data."""
    return tmp_path_factory.mktemp("there")


@pytest.fixture(scope="module")
def spark(there, tmp_path_factory) -> Iterator:
    cache = str(tmp_path_factory.mktemp("ca che%20é"))
    settings = {
        **BRIEFLY,
        f"spark.executorEnv.{copies.VARIABLE}": cache,
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.hadoop.fs.viewfs.mounttable.cluster.link./data": there.as_uri(),
        "spark.hadoop.ipc.client.connect.max.retries": "0",
        "spark.hadoop.fs.some.secret.key": SECRET,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(copies.VARIABLE, cache)
        with spark_context("local[2,3]", settings=settings) as context:  # 3: attempts of a task
            yield context


@pytest.fixture(scope="module")
def corpus(there, tmp_path_factory) -> Corpus:
    """In names that a shell or a URL would change."""
    return Corpus(tmp_path_factory.mktemp("corpus"), there / "docs", ("a*.jsonl", "sub dir/b{x}[1]%20é.jsonl"))


@pytest.fixture(scope="module")
def built(spark, corpus, there) -> Path:
    assert command(*BUILD, ADDRESS) == 0
    return there / "news"


def test_search_at_an_address_writes_the_run_of_one_index(built, corpus, tmp_path):
    """Laid out as a folder is: mounted, the same files are a collection too."""
    flags = ("--time-prior", "recency", "--as-of", "query-time")
    wanted = corpus.run(tmp_path / "one.txt", "search", corpus.index, *flags)
    for place in (ADDRESS, built.as_uri()):
        assert corpus.run(tmp_path / "many.txt", "spark search", place, *flags) == wanted


def test_rerank_at_an_address_writes_the_run_of_one_index(built, corpus, tmp_path):
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


def test_nothing_is_left_over(built, spark):
    names = {path.name for path in built.iterdir() if not path.name.endswith(".crc")}
    shards = {f"shard-{n:05d}{end}" for n in range(3) for end in ("", ".snapshot")}
    assert names == {"collection.json", "statistics", *shards}
    local = Path(spark.getConf().get("spark.local.dir"))
    assert not list(local.glob(f"**/{storage.SCRATCH}*")) and not list(local.glob("**/*.attempt-*"))


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
        assert max(int(path.name[-1]) for path in notes.iterdir()) == 2  # three attempts
    assert "Traceback" not in capfd.readouterr().err


def test_a_lost_file_is_named(spark, built, there):
    address, folder = "viewfs://cluster/data/broken", there / "broken"
    shutil.copytree(built, folder)
    lost = next(folder.glob("shard-00001.snapshot/*/doc_words.bin"))
    lost.unlink()
    shutil.rmtree(folder / "shard-00000.snapshot")
    collection = open_collection(address, spark)
    with pytest.raises(IndexProblem) as caught:
        OnSpark(collection, spark).ask(n_docs, None, {1: None})
    inside = f"{address}/shard-00001.snapshot/{lost.parent.name}"
    assert f"shard shard-00001 (2 of 3) of {address}: {inside}: doc_words.bin" in str(caught.value)
    assert "--resume" in str(caught.value)
    for client in (collection, collection.for_workers()):
        with pytest.raises(IndexProblem, match=rf"shard-00000 \(1 of 3\).*{address}/shard-00000.sna"):
            client.snapshot(0)


def test_a_collection_without_sums_is_summed_there(spark, there):
    """Written by other means, as snapshots alone; every part of a ranking goes through the copies."""
    sharding = Sharding(3)
    write_collection(there / "plain", sharding.shards(3))
    collection = open_collection("viewfs://cluster/data/plain", spark)
    assert not collection.has_totals
    prepare(collection, OnSpark(collection, spark))
    assert (there / "plain" / "statistics" / collection.fingerprint / "totals.json").is_file()
    assert open_collection(there / "plain").totals.n_docs == collection.totals.n_docs == 400
    found = engine_of(collection).rank(ranker("sd"), sharding.queries(collection), ShardOptions(hits=50))
    wanted = one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50)
    assert_same({result.query.qid: result.ranking for result in found}, wanted)


@pytest.mark.parametrize("is_mounted", [False, True])
def test_a_stopped_build_goes_on_with_what_is_whole(built, there, spark, capsys, is_mounted):
    """A shard in place, a whole attempt that no driver put there, and one that was cut short."""
    folder = there / f"stopped-{is_mounted}"
    address = folder if is_mounted else f"viewfs://cluster/data/{folder.name}"
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
    assert command(*BUILD, address) == 2
    assert "holds a build that was stopped" in capsys.readouterr().err
    assert command(*BUILD, address, "--resume") == 0
    assert "2 shards were there already" in capsys.readouterr().err
    for n, inode in kept.items():
        assert next((folder / f"shard-{n:05d}").glob("segments_*")).stat().st_ino == inode
    assert open_collection(folder).manifest["documents"] == 200
    assert not list(folder.glob("*.attempt-*"))
    for n in range(3):
        assert_same_arrays(built, folder, n)


def test_an_attempt_that_comes_after_the_build_has_ended_leaves_nothing(built, there, spark):
    """A shard is built twice where Spark speculates: the driver may have cleared up before the slower one is there."""
    for name, left in (("unfinished", 1), ("ended", 0)):
        folder = there / name
        folder.mkdir()
        if name == "ended":
            shutil.copy(built / "collection.json", folder)
        recipe = building.Recipe(f"viewfs://cluster/data/{name}", 1, storage=Hadoop(spark).for_workers())
        [(attempt, summary)] = building._Building(recipe)(0, iter([((0, 0, 0), Document("a", "oil spill"))]))
        assert summary.documents == 1 and len(list(folder.glob("*.attempt-*"))) == left
        assert (folder / attempt).is_dir() == bool(left)


def assert_same_arrays(one: Path, other: Path, number: int) -> None:
    """Lucene's own files have random marks in them: what is compared is what models see."""
    a, b = (open_collection(folder).path(number) for folder in (one, other))
    for name in ARRAYS:
        assert np.array_equal(np.fromfile(a / f"{name}.bin", "u1"), np.fromfile(b / f"{name}.bin", "u1")), name


def test_a_collection_there_is_not_overwritten_unasked(built, corpus, capsys):
    assert command(*BUILD, ADDRESS) == 2
    assert f"the collection {ADDRESS} exists" in capsys.readouterr().err
    assert command(*BUILD, "viewfs://cluster/data/docs/sub dir", "--overwrite") == 2
    assert "is not a sharded collection" in capsys.readouterr().err and list((corpus.docs / "sub dir").iterdir())


def test_what_cannot_be_reached_is_said_with_a_way_out(spark, corpus, tmp_path, capsys):
    shared = (*corpus.topics, "--output", tmp_path / "x")
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
        (("search", "--index", ADDRESS, *shared, "--ir-metadata"), "--ir-metadata is for one index"),
        ((*BUILD[1:], tmp_path / "y", "--threads", 2), "--threads is for `sdretrieval index`"),
        ((*BUILD[1:], tmp_path / "y", "--encoding", "klingon"), "unknown encoding"),
        (("index", "--input", "viewfs://cluster/data/nope", "--index", tmp_path / "y", "--shards", 2), "no such file"),
    ):
        assert command("spark", *words) == 2
        assert told in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command("spark", "search", "--index", ADDRESS, *corpus.topics)
    assert "required: --output" in capsys.readouterr().err


def test_settings_travel_and_are_not_shown(spark):
    shell = Hadoop(spark).for_workers()
    assert SECRET.encode() in zlib.decompress(shell.settings) and SECRET not in repr(shell)
    assert shell.user == spark.sparkUser()
