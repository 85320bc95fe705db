"""A Lucene index to a folder of plain arrays: the bulk export, and the fingerprint that tells when it is stale."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sdretrieval.errors import IndexProblem, JavaError

JAVA_FOLDER = Path(__file__).parent / "java"
CONTENTS_FIELD = "contents"
TIME_FIELD = "sdr_time"  # written by sdretrieval/lucene/indexing.py


def fingerprint(index: Path, *extra: str) -> str:
    """A hash that changes with every commit to the index, computed without Java.

    Lucene's ``segments_N`` names every segment with a unique id and generation of deletes; the sizes of the files
    tell of truncation.
    """
    if not index.is_dir():
        raise IndexProblem(
            f"no index at {index}.", remedy="Check the path, or build one with `sdretrieval index --input … --index …`."
        )
    files = sorted(p for p in index.iterdir() if p.name.startswith(("_", "segments")))
    segments = [p for p in files if p.name.startswith("segments")]
    if not segments:
        raise IndexProblem(
            f"{index} is not a Lucene index (no segments file in it).",
            remedy="Point to the folder that holds segments_1 and friends.",
        )
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.name}:{path.stat().st_size}\n".encode())
    for path in segments:
        digest.update(path.read_bytes())
    for word in extra:
        digest.update(f"|{word}".encode())
    return digest.hexdigest()[:32]


def export_index(index: Path, folder: Path, *, date_field: str = "") -> dict[str, float]:
    """Write the arrays of SnapshotExporter.java into ``folder``; the seconds it took in Java. Starts the JVM."""
    from sdretrieval.lucene.jvm import run_java

    arguments = [str(index.resolve()), str(folder.resolve()), CONTENTS_FIELD, TIME_FIELD, date_field]
    try:
        told = run_java(JAVA_FOLDER, "SnapshotExporter", arguments)
    except JavaError as error:
        raise IndexProblem(
            f"the index {index} cannot be read: {error.message}",
            remedy="Run `sdretrieval doctor --index …`; an index of another Lucene version must be rebuilt.",
        ) from error
    return {name: float(seconds) for name, seconds in (line.split() for line in told.splitlines())}
