"""Collections at an address: Hadoop's viewfs:// over a local folder, through the same client as hdfs:// or s3a://."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from needed import spark_for
from sharding import Sharding, assert_same, one_index, ranker

from sdretrieval.cli.main import main
from sdretrieval.demo import write_demo
from sdretrieval.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.integrations.spark import building, copies, reading, search, storage
from sdretrieval.integrations.spark.copies import cache_folder, local_copy
from sdretrieval.integrations.spark.ranking import ShardedEngine
from sdretrieval.integrations.spark.runners import Here, OnSpark
from sdretrieval.integrations.spark.shards import Remote, _checked_manifest, open_collection
from sdretrieval.integrations.spark.storage import Hadoop, HadoopShell, StorageProblem, is_address, place_of
from sdretrieval.integrations.spark.totals import Totals
from sdretrieval.integrations.spark.writing import write_collection
from sdretrieval.snapshot import ARRAYS

pyspark = spark_for(sys.modules[__name__])
pytestmark = pytest.mark.java

SECRET = "not-to-be-seen"


# -- without Spark -----------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["../../etc", "/etc", "", ".hidden", "a/b", "a\\b", 7])
def test_names_in_a_manifest_stay_below_it(name):
    for shard in ({"name": name, "snapshot": "f", "documents": 1}, {"name": "s", "snapshot": name, "documents": 1}):
        with pytest.raises(IndexProblem, match=r"collection\.json cannot be read"):
            _checked_manifest(json.dumps({"format": 1, "shards": [shard]}).encode(), "collection.json")


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


@contextmanager
def no_locks(target: Path) -> Iterator[bool]:
    yield False


@pytest.mark.parametrize("locks", [True, False])
def test_two_workers_at_once(elsewhere, tmp_path, monkeypatch, locks):
    """With locks it is fetched once; without, the first that is whole stays. Never is a half one seen."""
    if not locks:
        monkeypatch.setattr(copies, "_alone", no_locks)
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
    assert [path.name for path in target.parent.iterdir() if not path.name.endswith(".lock")] == ["mark"]


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


def test_a_cache_that_others_may_write_to_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.delenv(copies.VARIABLE, raising=False)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/blockmgr-1,/other")
    folder = cache_folder("hdfs://head/news")
    root = tmp_path / f"sdretrieval-shards-{os.getuid()}"
    assert folder.parent == root and stat.S_IMODE(root.stat().st_mode) == 0o700
    root.chmod(0o777)
    with pytest.raises(SdretrievalError, match="cannot be trusted") as caught:
        cache_folder("hdfs://head/news")
    assert copies.VARIABLE in str(caught.value)
    shutil.rmtree(root)
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SdretrievalError, match="cannot be trusted"):
        cache_folder("hdfs://head/news")


def test_so_is_a_cache_that_was_named(tmp_path, monkeypatch):
    named = tmp_path / "new" / "named"
    monkeypatch.setenv(copies.VARIABLE, str(named))
    folder = cache_folder("hdfs://head/news")
    assert folder.parent == named and [stat.S_IMODE(path.stat().st_mode) for path in (named, folder)] == [0o700] * 2
    named.chmod(0o755)  # others may look
    assert cache_folder("hdfs://head/news") == folder
    for place in (named, folder):
        place.chmod(0o775)
        with pytest.raises(SdretrievalError, match=f"{place} is not a folder of this user's alone"):
            cache_folder("hdfs://head/news")
        place.chmod(0o700)
    (tmp_path / "planted").mkdir()
    for place in (folder, named):
        shutil.rmtree(place)
        place.symlink_to(tmp_path / "planted")
        with pytest.raises(SdretrievalError, match="cannot be trusted"):
            cache_folder("hdfs://head/news")
        place.unlink()


def test_a_file_system_without_locks_is_gone_on_with(elsewhere, tmp_path, monkeypatch):
    import fcntl

    def flock(file, operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    target = local_copy(elsewhere, "x://h/mark", tmp_path / "cache" / "mark", sizes_differ)
    assert sizes_differ(target) is None
    with storage.scratch_folder() as first, storage.scratch_folder() as second:
        assert first.is_dir() and second.is_dir()
    assert not list(tmp_path.glob("*sdretrieval*"))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a child that ends with its parent")
def test_a_killed_worker_leaves_no_java_and_its_settings_go(tmp_path, monkeypatch):
    """Its Java ends with it; the folder with its settings goes when the next worker needs one."""
    bin_folder = tmp_path / "java" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "java").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid.tmp\nmv {tmp_path}/pid.tmp {tmp_path}/pid\n"
                                     "exec sleep 600\n")  # fmt: skip
    (bin_folder / "java").chmod(0o755)
    local = tmp_path / "local"
    local.mkdir()
    monkeypatch.setenv("SPARK_JAVA_HOME", str(bin_folder.parent))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(local))
    code = (
        "import zlib; from pathlib import Path; from sdretrieval.integrations.spark.storage import HadoopShell\n"
        f"HadoopShell(zlib.compress({SECRET.encode()!r})).get(['hdfs://h/x'], Path('.'))"
    )
    worker = subprocess.Popen([sys.executable, "-c", code])
    try:
        wait_for(lambda: (tmp_path / "pid").exists())
        (abandoned,) = local.iterdir()
        with storage.scratch_folder():
            assert (abandoned / "core-site.xml").read_text() == SECRET  # in use
    finally:
        worker.kill()
        worker.wait()
    wait_for(lambda: has_ended((tmp_path / "pid").read_text().strip()))
    assert abandoned.exists()
    with storage.scratch_folder() as own:
        assert list(local.iterdir()) == [own] and stat.S_IMODE(own.stat().st_mode) == 0o700
    assert not list(local.iterdir())


def has_ended(pid: str) -> bool:
    """Gone, or still to be collected by whoever inherited it."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # also where it goes while it is looked at
        return True


def wait_for(happened) -> None:
    end = time.monotonic() + 300
    while not happened():
        assert time.monotonic() < end, "it did not happen within five minutes"
        time.sleep(0.05)


def test_a_folder_that_is_not_made_is_an_error(monkeypatch):
    @contextmanager
    def at(self, address):
        yield SimpleNamespace(mkdirs=lambda path: False), address

    monkeypatch.setattr(Hadoop, "_at", at)
    with pytest.raises(StorageProblem, match="hdfs://h/news: the folder cannot be made"):
        Hadoop.make(object.__new__(Hadoop), "hdfs://h/news")


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


class Failing(ReadOnly):
    def make(self, address):
        pass

    def put(self, local, address):
        raise StorageProblem(f"{address}: Connection reset")


@pytest.mark.parametrize("kind", [ReadOnly, Failing])
def test_sums_that_cannot_be_put_there_travel(tmp_path, monkeypatch, capsys, kind):
    monkeypatch.setenv(copies.VARIABLE, str(tmp_path / "driver"))
    manifest = write_collection(tmp_path / "c", Sharding(3).shards(2)).manifest
    totals = Totals.of(Sharding(3).whole)
    collection = Remote("x://h/c", manifest, kind())
    collection.keep_totals(totals)
    assert "kept on this machine alone" in capsys.readouterr().err
    assert [".building-" in address for address in collection.storage.deleted] == [True]
    sent = pickle.dumps(collection.for_workers())
    monkeypatch.setenv(copies.VARIABLE, str(tmp_path / "worker"))  # where no copy is
    assert pickle.loads(sent).totals.n_docs == totals.n_docs
    there = Remote("x://h/c", manifest, kind(found="something"))
    assert len(pickle.dumps(there.for_workers())) < len(sent) / 4


def test_credentials_are_on_no_command_line(monkeypatch, tmp_path):
    """They are in a file that is its owner's alone, and gone afterwards; a failure is tried again, a loss is not."""
    import zlib

    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    pauses: list[float] = []
    monkeypatch.setattr(storage.time, "sleep", pauses.append)
    shell = HadoopShell(zlib.compress(SECRET.encode()), "somebody")
    commands: list[list[str]] = []
    answers = iter(
        [
            (1, b"get: Connection reset\nUsage: hadoop fs\n"),
            (0, b""),
            (1, b"get: `x://h/lost': No such file or directory\n"),
        ]
    )

    def run(command, env, **options):
        commands.append(command)
        folder = Path(command[command.index("-cp") + 1].split(os.pathsep)[0])
        assert (folder / "core-site.xml").read_text() == SECRET
        assert stat.S_IMODE((folder / "core-site.xml").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert env["HADOOP_USER_NAME"] == "somebody"
        code, told = next(answers)
        return subprocess.CompletedProcess(command, code, b"", told)

    monkeypatch.setattr(storage.subprocess, "run", run)
    shell.get(["x://h/a*{b}"], tmp_path)
    assert len(commands) == 2 and commands[0][-2:] == [r"x://h/a\*\{b\}", tmp_path.as_uri() + "/"]
    with pytest.raises(StorageProblem, match="x://h/lost: No such file or directory") as caught:
        shell.get(["x://h/lost"], tmp_path)
    assert caught.value.missing and len(commands) == 3 and pauses == [storage.PAUSE]
    assert SECRET not in repr(shell) and not any(SECRET in word for command in commands for word in command)
    assert not list(tmp_path.iterdir())


# -- on Spark ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Path:
    """The folder behind viewfs://cluster/data."""
    return tmp_path_factory.mktemp("there")


@pytest.fixture(scope="module")
def spark(there, tmp_path_factory) -> Iterator:
    from sdretrieval.integrations.spark.session import spark_context

    settings = {
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.hadoop.fs.viewfs.mounttable.cluster.link./data": there.as_uri(),
        "spark.hadoop.ipc.client.connect.max.retries": "0",
        "spark.hadoop.fs.some.secret.key": SECRET,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(copies.VARIABLE, str(tmp_path_factory.mktemp("ca che%20é")))  # local workers inherit it
        with spark_context("local[2,3]", settings=settings) as context:  # 3: attempts of a task
            yield context


def spark_command(*words: object) -> int:
    return main(["spark", *map(str, words)])


@pytest.fixture(scope="module")
def corpus(there, tmp_path_factory) -> SimpleNamespace:
    """The demo's documents, in names that a shell or a URL would change; one index of them."""
    folder = tmp_path_factory.mktemp("corpus")
    write_demo(folder / "demo", n_docs=160, n_topics=8, mean_words=60)
    lines = (folder / "demo" / "docs.jsonl").read_text().splitlines(keepends=True)
    docs = there / "docs"
    (docs / "sub dir").mkdir(parents=True)
    (docs / "a*.jsonl").write_text("".join(lines[:60]))
    (docs / "sub dir" / "b{x}[1]%20é.jsonl").write_text("".join(lines[60:]))
    (docs / "notes.xyz").write_text("not a document")
    (docs / ".hidden.jsonl").write_text("not a document either")
    index = folder / "one"
    assert main(["index", "--input", str(docs), "--index", str(index), "--date-field", "date"]) == 0
    demo = folder / "demo"
    return SimpleNamespace(
        docs=docs, index=index, topics=demo / "topics.tsv", times=demo / "topics.times.tsv", folder=folder
    )


ADDRESS = "viewfs://cluster/data/news"
BUILD = ("--input", "viewfs://cluster/data/docs", "--shards", 3, "--date-field", "date")


@pytest.fixture(scope="module")
def built(spark, corpus, there) -> Path:
    assert spark_command("index", *BUILD, "--index", ADDRESS) == 0
    return there / "news"


def run_of(tmp_path: Path, corpus, verb: tuple, index: object, flags: tuple) -> bytes:
    output = tmp_path / "run.txt"
    words = ("--index", index, "--topics", corpus.topics, "--topic-times", corpus.times, "--hits", 40, *flags)
    assert main([*verb, *map(str, words), "--output", str(output)]) == 0
    return output.read_bytes()


@pytest.mark.parametrize("flags", [("--model", "sd3"), ("--time-prior", "recency", "--as-of", "query-time")])
def test_search_at_an_address_writes_the_run_of_one_index(built, corpus, tmp_path, flags):
    wanted = run_of(tmp_path, corpus, ("search",), corpus.index, flags)
    assert run_of(tmp_path, corpus, ("spark", "search"), ADDRESS, flags) == wanted
    # Laid out as a folder is: mounted, the same files are a collection too.
    assert run_of(tmp_path, corpus, ("spark", "search"), built.as_uri(), flags) == wanted


def test_the_other_commands_at_an_address(built, corpus, tmp_path):
    """rerank as one index does it; classify and drift as over the same files in a mounted folder."""
    from sdretrieval.classify.saved_models import save_classifier
    from sdretrieval.classify.text_classifier import train
    from sdretrieval.labelled import LabelledCorpus
    from sdretrieval.snapshot import open_snapshot

    whole = open_snapshot(corpus.index)
    first = tmp_path / "first.txt"
    first.write_bytes(run_of(tmp_path, corpus, ("search",), corpus.index, ("--model", "bm25")))
    again = ("--run", first, "--model", "sd")
    wanted = run_of(tmp_path, corpus, ("rerank",), corpus.index, again)
    assert run_of(tmp_path, corpus, ("spark", "rerank"), ADDRESS, again) == wanted
    assert json.loads((tmp_path / "run.txt.manifest.json").read_text())["verb"] == "spark rerank"
    halves = tuple(("early",) if t < np.median(whole.times) else ("late",) for t in whole.times)
    known = LabelledCorpus(
        list(whole.docids), whole.by_doc.astype(float), whole.vocabulary, halves, np.asarray(whole.times),
        analyzer=whole.analyzer,
    )  # fmt: skip
    save_classifier(train(known, "sd"), tmp_path / "halves.model")
    frequent = (whole.term(i) for i in np.argsort(-whole.cf).tolist())
    word = next(term for term in frequent if whole.analyze(term) == [term])
    for verb in (("classify", "--load", tmp_path / "halves.model"), ("drift", "--words", word, "--bandwidth", "10d")):
        outputs = []
        for i, index in enumerate((ADDRESS, built)):
            outputs.append(tmp_path / f"{verb[0]}-{i}")
            assert spark_command(*verb, "--index", index, "--output", outputs[-1]) == 0
        assert outputs[0].read_bytes() == outputs[1].read_bytes() and outputs[0].stat().st_size > 1000


def test_nothing_is_left_over(built, spark):
    names = {path.name for path in built.iterdir() if not path.name.endswith(".crc")}
    shards = {f"shard-{n:05d}{end}" for n in range(3) for end in ("", ".snapshot")}
    assert names == {"collection.json", "statistics", *shards}
    local = Path(spark.getConf().get("spark.local.dir"))
    assert not list(local.glob("**/sdretrieval-*/core-site.xml")) and not list(local.glob("**/*.attempt-*"))


def test_workers_copy_snapshots_alone_and_once(spark, built, there):
    """Not the Lucene index; and what was copied is used again when what is there is out of reach."""
    address = "viewfs://cluster/data/once"
    shutil.copytree(built, there / "once")
    collection = open_collection(address, spark)
    assert isinstance(collection, Remote) and collection.address == address
    runner = OnSpark(collection, spark)
    search.prepare(collection, runner)
    counts = [n for _, n in runner.ask(n_docs, None)]
    assert sum(counts) == 160
    assert sorted(path.name for path in collection.folder.iterdir()) == [
        "shard-00000", "shard-00001", "shard-00002", "statistics",
    ]  # fmt: skip
    assert not list(collection.folder.glob("**/segments*"))
    for path in (there / "once").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    again = open_collection(address, spark)
    assert again.has_totals
    assert [again.for_workers().snapshot(n).n_docs for n in range(3)] == counts


def n_docs(shard, request) -> int:
    return shard.snapshot.n_docs


def test_what_passes_is_tried_again_and_what_stays_is_said_plainly(spark, built, tmp_path, capfd):
    collection = open_collection(ADDRESS, spark)
    search.prepare(collection, OnSpark(collection, spark))
    runner = OnSpark(collection, spark)
    assert [n for n, _ in runner.ask(Refused(tmp_path / "passing", 2), None)] == [0, 1, 2]
    for way, ask in (("asked", runner.ask), ("streamed", lambda *given: list(runner.stream(*given)))):
        notes = tmp_path / way  # of its own: a task of the job that failed may be a while in ending
        with pytest.raises(SdretrievalError, match=r"^hdfs://h/x: Connection refused \(é\)\n  Does it run\?$"):
            ask(Refused(notes, 100), None)
        assert max(int(path.name[-1]) for path in notes.iterdir()) == 2  # three attempts
    assert "Traceback" not in capfd.readouterr().err


class Refused:
    """A request that fails for a number of times."""

    def __init__(self, folder: Path, times: int) -> None:
        self.folder, self.times = folder, times

    def __call__(self, shard, request) -> list[int]:
        for k in range(self.times):
            self.folder.mkdir(exist_ok=True)
            mark = self.folder / f"{shard.number}-{k}"
            if not mark.exists():
                mark.touch()
                raise StorageProblem("hdfs://h/x: Connection refused (é)", remedy="Does it run?")
        return [shard.number]


def test_a_lost_file_is_named(spark, built, there):
    shutil.copytree(built, there / "broken")
    lost = next((there / "broken").glob("shard-00001.snapshot/*/doc_terms.bin"))
    lost.unlink()
    cut = next((there / "broken").glob("shard-00002.snapshot/*/times.bin"))
    cut.write_bytes(cut.read_bytes()[:-8])
    cut.with_name(".times.bin.crc").unlink()
    shutil.rmtree(next((there / "broken").glob("shard-00000.snapshot")))
    collection = open_collection("viewfs://cluster/data/broken", spark)
    remote = f"viewfs://cluster/data/broken/shard-00001.snapshot/{lost.parent.name}"
    with pytest.raises(IndexProblem) as caught:
        OnSpark(collection, spark).ask(n_docs, None, {1: None})
    assert f"shard shard-00001 (2 of 3) of viewfs://cluster/data/broken: {remote}: doc_terms.bin" in str(caught.value)
    assert "--resume" in str(caught.value)
    with pytest.raises(IndexProblem, match=r"shard-00002 \(3 of 3\).*times.bin has \d+ bytes instead of"):
        collection.snapshot(2)
    for storage_there in (collection, collection.for_workers()):
        with pytest.raises(IndexProblem, match=r"shard-00000 \(1 of 3\).*viewfs://cluster/data/broken/shard-00000.sna"):
            storage_there.snapshot(0)


def test_a_collection_without_sums_is_summed_there(spark, there, tmp_path):
    """Written by other means, as snapshots alone; every part of a ranking goes through the copies."""
    sharding = Sharding(3)
    write_collection(there / "plain", sharding.shards(3))
    collection = open_collection("viewfs://cluster/data/plain", spark)
    assert not collection.has_totals
    search.prepare(collection, OnSpark(collection, spark))
    assert (there / "plain" / "statistics" / collection.fingerprint / "totals.json").is_file()
    assert open_collection(there / "plain").totals.n_docs == collection.totals.n_docs == 400
    found = ShardedEngine(collection, Here(collection)).rank(ranker("sd"), sharding.queries(collection), hits=50)
    wanted = one_index(sharding.whole, ranker("sd"), sharding.queries(sharding.whole), hits=50)
    assert_same({result.query.qid: result.ranking for result in found}, wanted)


def test_a_stopped_build_goes_on_with_what_is_whole(built, there, spark, capsys):
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
    kept = {n: (folder / name / "sdretrieval.json").stat().st_ino
            for n, name in ((0, "shard-00000"), (1, "shard-00001.attempt-0/shard-00001"))}  # fmt: skip
    assert spark_command("index", *BUILD, "--index", address) == 2
    assert "holds a build that was stopped" in capsys.readouterr().err
    assert spark_command("index", *BUILD, "--index", address, "--resume") == 0
    assert "2 shards were there already" in capsys.readouterr().err
    for n, inode in kept.items():
        assert (folder / f"shard-{n:05d}" / "sdretrieval.json").stat().st_ino == inode
    assert open_collection(folder).manifest["documents"] == 160
    assert not list(folder.glob("*.attempt-*"))
    for n in range(3):
        assert_same_arrays(built, folder, n)


def assert_same_arrays(one: Path, other: Path, number: int) -> None:
    """Lucene's own files have random marks in them: what is compared is what models see."""
    a, b = (open_collection(folder).path(number) for folder in (one, other))
    for name in ARRAYS:
        assert np.array_equal(np.fromfile(a / f"{name}.bin", "u1"), np.fromfile(b / f"{name}.bin", "u1")), name


def test_shards_of_pieces_are_the_same(built, corpus, spark, tmp_path, monkeypatch):
    """A mounted folder, files cut into pieces of 4000 bytes: the same documents in the same order."""
    monkeypatch.setattr(reading, "SPLIT", 4000)
    tasks: list = []
    plan = building.plan

    def noting(*given):
        tasks.extend(plan(*given))
        return tasks

    monkeypatch.setattr(building, "plan", noting)
    words = ("--input", corpus.docs, "--index", tmp_path / "pieces", "--shards", 3, "--date-field", "date")
    assert spark_command("index", *words) == 0
    assert len(tasks) > 5
    for n in range(3):
        assert_same_arrays(built, tmp_path / "pieces", n)


def test_a_file_that_goes_away_while_building_is_named(spark, tmp_path, monkeypatch, capfd):
    """Not skipped as bad: nobody asked for a part of the corpus."""
    (tmp_path / "docs").mkdir()
    for name in "ab":
        (tmp_path / "docs" / f"{name}.jsonl").write_text(f'{{"id": "{name}", "contents": "x"}}\n')
    plan = building.plan

    def losing(*given):
        (tmp_path / "docs" / "b.jsonl").unlink()
        return plan(*given)

    monkeypatch.setattr(building, "plan", losing)
    words = ("--input", tmp_path / "docs", "--index", tmp_path / "index", "--shards", 2, "--skip-bad")
    assert spark_command("index", *words) == 2
    err = capfd.readouterr().err
    assert f"{tmp_path}/docs/b.jsonl: No such file" in err and "on all workers" in err and "Traceback" not in err


def test_a_collection_there_is_not_overwritten_unasked(built, corpus, there, capsys):
    assert spark_command("index", *BUILD, "--index", ADDRESS) == 2
    assert f"the collection {ADDRESS} exists" in capsys.readouterr().err
    for place, told in (("docs", "over its own input"), ("docs/sub dir", "is not a sharded collection")):
        assert spark_command("index", *BUILD, "--index", f"viewfs://cluster/data/{place}", "--overwrite") == 2
        assert told in capsys.readouterr().err
    assert (corpus.docs / "a*.jsonl").exists() and list((corpus.docs / "sub dir").iterdir())


def test_what_cannot_be_reached_is_said_with_a_way_out(spark, corpus, tmp_path, capsys):
    shared = ("--topics", corpus.topics, "--output", tmp_path / "x")
    for address, told, remedy in (
        ("nosuch://host/news", 'No FileSystem for scheme "nosuch"', "no client for nosuch://"),
        ("s3a://bucket/news", "S3AFileSystem not found", "spark.jars.packages"),
        ("hdfs://127.0.0.1:1/news", "Connection refused", "Does the service run"),
        ("hdfs://no-such-host.invalid/news", "UnknownHost", "Check the host"),
        ("viewfs://cluster/data/nowhere", "is no sharded collection", "spark index"),
        ("hdfs://head/../news", "'..'", "full path"),
    ):
        assert spark_command("search", "--index", address, *shared) == 2
        err = capsys.readouterr().err
        assert told in err and remedy in err and address.partition("://")[0] in err, err
    for words, told in (
        (("search", "--index", ADDRESS, "--topics", "hdfs://head/t", "--output", "x"), "--topics hdfs://head/t: only"),
        (("rerank", "--index", ADDRESS, "--run", "s3a://b/r", *shared), "--run s3a://b/r: only"),
        (("index", *BUILD, "--index", tmp_path / "y", "--threads", 2), "--threads is for `sdretrieval index`"),
        (("index", *BUILD, "--index", tmp_path / "y", "--encoding", "klingon"), "unknown encoding"),
        (("index", "--input", "viewfs://cluster/data/nope", "--index", tmp_path / "y", "--shards", 2), "no such file"),
    ):
        assert spark_command(*words) == 2
        assert told in capsys.readouterr().err


def test_settings_travel_and_are_not_shown(spark):
    import zlib

    shell = Hadoop(spark).for_workers()
    assert SECRET.encode() in zlib.decompress(shell.settings) and SECRET not in repr(shell)
    assert shell.user == spark.sparkUser()
