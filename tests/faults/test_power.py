"""A power cut at any moment, a full disk, and damaged snapshots.

The power: an ext4 file system on a loop device is copied, block by block, while the worker stands still. What has not
been synced is not in its blocks. The copy is mounted and opened as the next command would. Where mounting is not
allowed, the reason is said and the test skipped. ``make faults`` does it fifty times (FAULTS=1000).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from test_kills import STOPS, Stopped, check

from sdretrieval.collection.corpus import Document
from sdretrieval.core.errors import IndexProblem, SdretrievalError
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, load_snapshot, open_snapshot, snapshot_folder
from sdretrieval.index.snapshot_format import ARRAYS, write_snapshot
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker

CUTS = STOPS // 20
DAMAGED = 10 * STOPS


def run(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{words[0]} is not allowed here: {done.stderr.strip()[:200]}")


@contextmanager
def mounted(*words: object, at: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mkfs.ext4") is None:
        pytest.skip("file systems are mounted by root, on Linux with mkfs.ext4")
    at.mkdir(exist_ok=True)
    run("mount", *words, at)
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", str(at)], check=False)


@pytest.mark.java
@pytest.mark.parametrize("what", ["all", "track", "model"])
def test_the_power_goes(tmp_path, what):
    chance = random.Random(1)
    with mounted("-o", "size=200m", "-t", "tmpfs", "tmpfs", at=tmp_path / "memory") as memory:
        image, copy = memory / "disk", memory / "copy"
        image.touch()
        os.truncate(image, 48 << 20)
        run("mkfs.ext4", "-q", "-J", "size=4", image)
        with mounted("-o", "loop,commit=1", image, at=tmp_path / "real") as real:
            stopped, ever = Stopped(real, 7, what), False
            try:
                for _ in range(max(1, -(-CUTS // 3))):
                    time.sleep(chance.expovariate(2))
                    while stopped.process.poll() is None and stopped.state() not in "Tt":
                        stopped.process.send_signal(signal.SIGSTOP)
                        time.sleep(0.001)
                    stopped.wait()
                    ever = ever or stopped.said.startswith("at ")
                    said, models = stopped.said, dict(stopped.saved)
                    shutil.copyfile(image, copy)
                    stopped.go_on()
                    with mounted("-o", "loop", copy, at=tmp_path / "after") as after:
                        os.environ.pop("SDRETRIEVAL_CHECKED", None)  # nothing is remembered over a power cut
                        check(after, said, ever=ever, models=models)
                    wait_for_umount(copy)
            finally:
                stopped.process.kill()
                stopped.process.communicate()


def wait_for_umount(image: Path) -> None:
    while str(image) in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout:
        time.sleep(0.01)


@pytest.mark.java
@pytest.mark.parametrize("size", ["300k", "600k", "800k"])
def test_a_full_disk_names_itself(tmp_path, size):
    """Wherever it gets full, while documents, segments or the snapshot are written: an error, and an index stays."""
    chance = random.Random(1)
    words = [f"w{k}" for k in range(3000)]
    documents = [Document(f"d{k}", " ".join(chance.choices(words, k=60))) for k in range(500)]
    with mounted("-o", f"size={size}", "-t", "tmpfs", "tmpfs", at=tmp_path / "small") as small:
        build_index(documents[:3], small / "index", threads=1)
        before = open_snapshot(small / "index").n_docs
        try:
            build_index(documents, small / "index", threads=1, overwrite=True)
            open_snapshot(small / "index")
        except SdretrievalError as error:
            assert "no room left" in str(error), error
        else:
            pytest.fail("it was not full")
        # Either still the old one, or the new one, whose snapshot there was no room for.
        left = list(small.glob(".*")) + list(small.glob("index.snapshot/.*"))
        assert left == []
        try:
            assert open_snapshot(small / "index").n_docs == before
        except IndexProblem as error:
            assert "no room left while writing the snapshot" in str(error)


# -- damaged snapshots -------------------------------------------------------------------------------------------


def small_snapshot() -> Snapshot:
    chance = random.Random(3)
    counts = [[chance.choice([0, 0, 1, 2]) for _ in range(25)] for _ in range(30)]
    return Snapshot.from_counts(counts, [f"w{chr(97 + k)}" for k in range(25)], times=range(30))


def rankings(snapshot: Snapshot) -> list:
    engine = Engine(snapshot)
    query = Query.from_words(snapshot, ["wa", "wb", "wf"], qid="1")
    results = [next(iter(engine.rank(make_ranker(name), [query]))) for name in ("bm25", "rm3")]
    return [(snapshot.docids.take(result.docs), result.scores.tolist()) for result in results]


def test_damaged_snapshots_are_refused(tmp_path):
    """Bits, bytes, runs of zeros, cut and swapped files, notes and arrays alike: refused, or the very same run."""
    made = small_snapshot()
    folder = tmp_path / write_snapshot(tmp_path, made.arrays)
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    expected = rankings(load_snapshot(folder))
    chance, refused = random.Random(5), 0
    for _ in range(DAMAGED):
        name = chance.choice(sorted(whole))
        data = damage(whole[name], whole, chance)
        (folder / name).write_bytes(data)
        try:
            assert rankings(load_snapshot(folder)) == expected
        except IndexProblem:
            refused += 1
        (folder / name).write_bytes(whole[name])
    assert refused > DAMAGED // 2
    assert len(ARRAYS) + 1 == len(whole)


def damage(data: bytes, others: dict[str, bytes], chance: random.Random) -> bytes:
    changed, place = bytearray(data), chance.randrange(len(data) or 1)
    match chance.randrange(5) if data else 4:
        case 0:
            changed[place] ^= 1 << chance.randrange(8)
        case 1:
            changed[place] = chance.randrange(256)
        case 2:
            changed[place : place + 64] = bytes(len(changed[place : place + 64]))
        case 3:
            del changed[place:]
        case 4:
            changed = bytearray(others[chance.choice(sorted(others))])
    return bytes(changed)


@pytest.mark.java
def test_lucenes_own_damage_is_named(tmp_path):
    """A bit flipped in a file of Lucene's: the snapshot is not made from it."""
    build_index([Document(f"d{k}", f"tea milk w{k}") for k in range(50)], tmp_path / "index", threads=1)
    postings = next((tmp_path / "index").glob("_*.doc"))
    data = bytearray(postings.read_bytes())
    data[len(data) // 2] ^= 1
    postings.write_bytes(data)
    with pytest.raises(IndexProblem, match="checksum failed"):
        open_snapshot(tmp_path / "index")
    assert not any(snapshot_folder(tmp_path / "index").iterdir())
