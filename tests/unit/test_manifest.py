"""The note beside a run."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sdretrieval import __version__
from sdretrieval.core.errors import InputError
from sdretrieval.evaluate.inputs import read_runs
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.manifest import file_digest, manifest, manifest_path, write_manifest
from sdretrieval.ranking.registry import make_ranker


@pytest.fixture
def snapshot() -> Snapshot:
    return Snapshot.from_counts(np.eye(3, dtype=int), ["a", "b", "c"], name="abc")


def test_it_lies_beside_the_run():
    assert manifest_path("runs/x.txt") == Path("runs/x.txt.manifest.json")
    assert manifest_path(Path("runs/x.txt.gz")) == Path("runs/x.txt.gz.manifest.json")


def test_a_digest_is_of_the_contents(tmp_path):
    (tmp_path / "a").write_bytes(b"content" * 100_000)
    (tmp_path / "b").write_bytes(b"content" * 100_000)
    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")
    assert file_digest(tmp_path / "a") == hashlib.sha256(b"content" * 100_000).hexdigest()[:32]
    (tmp_path / "b").write_bytes(b"content")
    assert file_digest(tmp_path / "a") != file_digest(tmp_path / "b")


def test_it_says_what_it_takes_to_make_the_run_again(snapshot, tmp_path):
    (tmp_path / "topics.tsv").write_text("1\ta b\n")
    ranker = make_ranker("sd", ["fb_docs=7"])
    began = datetime.now(UTC).replace(microsecond=0)
    told = manifest(
        verb="search",
        ranker=ranker,
        snapshot=snapshot,
        inputs={"topics": str(tmp_path / "topics.tsv"), "run": None},
        options={"hits": 10},
        command=["sdretrieval", "search"],
    )
    assert told["sdretrieval"] == __version__
    assert (told["verb"], told["model"]) == ("search", "sd")
    assert told["parameters"] == ranker.settings()
    assert make_ranker(told["model"], told["parameters"]) == ranker
    assert told["options"] == {"hits": 10}
    analyzer = {"language": "en", "stemmer": "porter", "stopwords": True}
    assert told["index"] == {"name": "abc", "fingerprint": "", "documents": 3, "analyzer": analyzer}
    assert told["inputs"] == {
        "topics": {"file": str(tmp_path / "topics.tsv"), "sha256": file_digest(tmp_path / "topics.tsv")}
    }
    assert told["command"] == ["sdretrieval", "search"]
    assert began <= datetime.fromisoformat(told["made"]) <= datetime.now(UTC)


def test_from_python_there_is_no_command(snapshot):
    """The words that started some other program would be a false lead."""
    told = manifest(verb="search", ranker=make_ranker("ql"), snapshot=snapshot, inputs={}, options={})
    assert told["command"] is None


def test_it_is_written_as_json(snapshot, tmp_path):
    options = {"tag": "größe", "folder": tmp_path}  # whatever it is, it must not fail after hours of ranking
    told = manifest(verb="rerank", ranker=make_ranker("bm25"), snapshot=snapshot, inputs={}, options=options)
    path = write_manifest(tmp_path / "run.txt", told)
    assert path == tmp_path / "run.txt.manifest.json"
    read = json.loads(path.read_text(encoding="utf-8"))
    assert read["options"] == {"tag": "größe", "folder": str(tmp_path)}
    assert {**read, "options": 0} == {**told, "options": 0}
    assert path.read_text(encoding="utf-8").endswith("}\n")


def test_a_run_and_its_manifest_belong_together(tmp_path):
    """A kill between the two leaves the new run beside the old manifest: whoever reads both is told."""
    run = tmp_path / "run.txt"
    run.write_text("1 Q0 a 1 2.0 x\n")
    path = write_manifest(run, {"model": "sd"})
    assert json.loads(path.read_text())["run"] == {"sha256": file_digest(run)}
    assert read_runs([str(run)], beside=True)[0].manifest["model"] == "sd"
    run.write_text("1 Q0 b 1 2.0 x\n")
    with pytest.raises(InputError, match=r"run.txt.manifest.json: this is the manifest of another run than .*run.txt"):
        read_runs([str(run)], beside=True)
    path.write_text('{"run": "elsewhere"}')  # another tool's own word
    assert read_runs([str(run)], beside=True)[0].manifest == {"run": "elsewhere"}
