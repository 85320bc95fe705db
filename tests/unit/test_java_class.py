"""The class file that is shipped is the source that is shipped."""

from __future__ import annotations

import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from sdretrieval.index.lucene.java import build

SHIPPED = build.FOLDER


def test_every_shipped_class_is_of_the_stated_release():
    """Bytes 6 and 7 of a class file: 61 is Java 17."""
    classes = sorted(SHIPPED.glob("*.class"))
    assert [path.name for path in classes] == [
        "IndexCommitter.class",
        "PositionExporter.class",
        "SnapshotExporter$Block.class",
        "SnapshotExporter$Output.class",
        "SnapshotExporter.class",
    ]
    for path in classes:
        assert path.read_bytes()[:4] == b"\xca\xfe\xba\xbe"
        assert int.from_bytes(path.read_bytes()[6:8], "big") == int(build.RELEASE) + 44


@pytest.mark.java
@pytest.mark.skipif(shutil.which("javac") is None, reason="no javac on this machine")
def test_the_shipped_class_is_the_compiled_source(tmp_path: Path):
    """Byte for byte, with the compiler it was built with; a newer one may order constants otherwise."""
    if version("pyserini") >= "2":
        pytest.skip("the class is compiled against Lucene 9 (Pyserini 1.6), whose classes every javac from 17 on reads")
    build.compile_to(tmp_path)
    made = {path.name: path.read_bytes() for path in tmp_path.glob("*.class")}
    shipped = {path.name: path.read_bytes() for path in SHIPPED.glob("*.class")}
    assert set(made) == set(shipped)
    if made != shipped and not _version().startswith("javac 17."):
        pytest.skip(f"other bytes, but by another compiler: {_version()}")
    assert made == shipped, "run `make java`"


def _version() -> str:
    return subprocess.run(["javac", "-version"], capture_output=True, text=True, check=True).stdout.strip()
