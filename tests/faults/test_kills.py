"""Killed at any moment: nothing is lost, nothing half taken, and the next command leaves no rubbish.

A process that stands still has left on the disk what a kill at that moment leaves: the worker is stopped again and
again, its folder copied each time, and each copy opened as the next command would. At the end it is killed indeed.
``make faults`` does it a thousand times (FAULTS=1000); the suite a few.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
import worker

from sdretrieval.cli.main import main as command
from sdretrieval.collection.trec import read_run
from sdretrieval.core import files
from sdretrieval.core.errors import IndexProblem, InputError
from sdretrieval.evaluate.inputs import read_manifest
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.learn.tracking.state import CHECKPOINT, load_tracker, save_tracker
from sdretrieval.ranking.manifest import check_belongs, manifest_path

STOPS = int(os.environ.get("FAULTS", "20"))
pytestmark = [pytest.mark.java, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")]


class Stopped:
    """The worker, and what it said last."""

    def __init__(self, folder: Path, seed: int, what: str) -> None:
        self.folder, self.said, self.rest = folder, "to 0 index", b""
        self.saved: dict[str, int] = {}  # the version of each model that was last told to be saved
        worker.write_inputs(folder)
        words = [sys.executable, str(Path(worker.__file__)), str(folder), str(seed), what]
        repository = Path(__file__).resolve().parents[2]
        environment = {**os.environ, "PYTHONPATH": str(repository)}
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def state(self) -> str:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0]

    def wait(self) -> None:
        """Until it stands still."""
        deadline = time.monotonic() + 300
        while self.state() not in "Tt":
            assert self.process.poll() is None, self.process.stderr and self.process.stderr.read().decode()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert self.process.stdout is not None
        lines = (self.rest + (self.process.stdout.read() or b"")).split(b"\n")
        self.rest = lines.pop()
        told = [line.decode() for line in lines if line.startswith((b"to ", b"at "))]
        self.said = told[-1] if told else self.said
        self.saved.update(model_of(line) for line in told if line.startswith("at ") and "model-" in line)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)


def model_of(said: str) -> tuple[str, int]:
    """The kind and the version of the model that a line tells of."""
    _, kind, version = said.split()[-1].split("-")
    return kind, int(version)


def allowed(said: str, ever: bool) -> list[dict]:
    """Contents that the index may have: of the step being made, or of the one before it."""
    word, number, _ = said.split()
    now, before = worker.states()[int(number)], worker.states()[int(number) - 1]
    return [now, before] if word == "to" else [now]


def contents(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    rows = {}
    for d, docid in enumerate(snapshot.docids):
        span = slice(int(snapshot.doc_ptr[d]), int(snapshot.doc_ptr[d + 1]))
        terms = snapshot.vocabulary.take(snapshot.doc_terms[span])
        rows[docid] = dict(zip(terms, snapshot.doc_counts[span].tolist(), strict=True))
    return rows


def check(folder: Path, said: str, *, ever: bool, models: dict[str, int]) -> str:
    """Open what was left; what was found. ``models`` are those that were saved before."""
    index = folder / "index"
    try:
        found = contents(open_snapshot(index))
        assert found in [worker.counts(held) for held in allowed(said, ever)], said
    except IndexProblem as error:
        assert "no index at" in error.message, error
        assert not ever, f"the index is lost, {said}"
        build_index(worker.documents(worker.states()[0]), index, analyzer=worker.PLAIN, threads=1)
        open_snapshot(index)
    left = [path.name for path in (*folder.iterdir(), *index.iterdir(), *folder.glob("index.snapshot/*"))]
    rubbish = [name for name in left if name.startswith((".index", ".building", "pending"))]
    assert not rubbish, (said, rubbish)
    assert len(list(folder.glob("index.snapshot/*"))) == 1
    found_run = check_run(folder)
    check_models(folder, said, models)
    check_track(folder)
    return found_run


def check_run(folder: Path) -> str:
    """A run is whole, and its manifest is its own or is known not to be."""
    run, place = folder / "run.txt", manifest_path(folder / "run.txt")
    if not run.exists():
        return "no run"
    tags = {line.split()[-1] for line in run.read_text().splitlines()}
    assert len(tags) == 1 and len(read_run(run)) == 3
    if not place.exists():
        return "no manifest"
    about = read_manifest(place)
    try:
        check_belongs(about, run, place)
    except InputError:
        return "of another run"
    assert {about["model"]} == tags
    for file in folder.glob("profile.json*"):
        lines = file.read_text().splitlines()
        [json.loads(line) for line in lines[:-1]] if file.suffix == ".jsonl" else json.loads(file.read_text())
    return "whole"


def check_models(folder: Path, said: str, models: dict[str, int]) -> None:
    """Each saved model is the last one, or the one being saved, and whole."""
    for kind in worker.KINDS:
        expected = [uninterrupted()[1][kind][models[kind]] if kind in models else None]
        if "model-" in said and model_of(said)[0] == kind:
            expected.append(uninterrupted()[1][kind][model_of(said)[1]])
        assert saved(folder / f"{kind}.sdm") in expected, said


def saved(model: Path) -> dict[str, bytes] | None:
    """The arrays of a model; its header names the folder."""
    if not model.exists():
        return None
    with zipfile.ZipFile(model) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".npy")}


def check_track(folder: Path) -> None:
    """Tracking that goes on from what was left writes what it writes undisturbed; and no temporary file is left."""
    worker.write_inputs(folder)  # a power cut may have taken them
    place = folder / "state" / CHECKPOINT
    if place.exists():
        tracker, notes = load_tracker(place)
        names = [Path(name).name for name in notes["outputs"]]
        moved = [str(folder / "decisions.jsonl"), str(folder / "state" / "run.part")]
        assert names == [Path(name).name for name in moved]
        save_tracker(place, tracker, {**notes, "outputs": moved})  # the folder was copied
    files._cleaned.clear()  # as in a new process
    assert command(worker.tracking(folder)) == 0
    assert tracked(folder) == uninterrupted()[0]
    left = [path for path in (*folder.iterdir(), *place.parent.iterdir()) if path.name.startswith(".")]
    assert not left


def tracked(folder: Path) -> tuple[bytes, bytes]:
    return (folder / "decisions.jsonl").read_bytes(), (folder / "track.run").read_bytes()


@functools.cache
def uninterrupted() -> tuple[object, dict[str, list[object]]]:
    """What tracking writes, and both versions of each model, when nothing happens."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        worker.write_inputs(folder)
        assert command(worker.tracking(folder)) == 0
        models: dict[str, list[object]] = {kind: [] for kind in worker.KINDS}
        for kind, version in product(worker.KINDS, worker.VERSIONS):
            assert command(worker.learning(folder, kind, version)) == 0
            models[kind].append(saved(folder / f"{kind}.sdm"))
        assert all(one != other for one, other in models.values())
        return tracked(folder), models


@pytest.mark.parametrize("what", ["all", "files"])
@pytest.mark.parametrize("part", range(max(1, STOPS // 500)))
def test_stopped_anywhere(tmp_path, part, what):
    chance = random.Random(part)
    real, copy = tmp_path / "real", tmp_path / "copy"
    real.mkdir()
    stopped = Stopped(real, part, what)
    ever, found, where = False, Counter[str](), Counter[str]()
    try:
        for _ in range(min(STOPS // 2, 250)):
            if chance.random() < 0.4:  # otherwise it stops itself
                time.sleep(chance.expovariate(20))
                stopped.process.send_signal(signal.SIGSTOP)
            stopped.wait()
            ever = ever or stopped.said.startswith("at ")
            shutil.copytree(real, copy)
            said, models = stopped.said, dict(stopped.saved)
            stopped.go_on()
            found[check(copy, said, ever=ever, models=models)] += 1
            where[said.split()[-1].partition("-")[0] if said.startswith("to ") else "between"] += 1
            shutil.rmtree(copy)
        stopped.process.send_signal(signal.SIGSTOP)
        stopped.wait()
    finally:
        stopped.process.kill()
        stopped.process.communicate()
    ever = ever or stopped.said.startswith("at ")
    check(real, stopped.said, ever=ever, models=stopped.saved)
    print(dict(where), dict(found))  # pytest -rP shows it
