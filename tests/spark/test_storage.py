"""Addresses, copies on this machine, the clients of file systems: without Spark. test_cluster.py has them on Spark."""

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from needed import MARKS, spark_for, wait_for
from sharding import InMemory, Sharding

from sdretrieval.collection.corpus.record import Document
from sdretrieval.core.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.plugins.spark import building, copies, storage
from sdretrieval.plugins.spark.copies import cache_folder, local_copy
from sdretrieval.plugins.spark.shards import Remote, write_collection
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


def test_a_shard_built_for_an_address_leaves_nothing_on_the_worker(tmp_path, monkeypatch):
    class Putting:
        def put(self, local, folder):
            shutil.copytree(local, tmp_path / "there" / local.name)

    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path / "scratch"))
    build = building._Building(building.Recipe("x://h/news", 1, storage=Putting(), is_remote=True))
    [(attempt, built)] = build(0, iter([((0, 0, i), Document(f"d{i}", "a flood")) for i in range(3)]))
    assert built.documents == 3 and (tmp_path / "there" / attempt / "shard-00000.snapshot").is_dir()
    assert not list((tmp_path / "scratch").iterdir())
