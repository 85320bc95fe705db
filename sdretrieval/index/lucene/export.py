"""A Lucene index to the arrays of a snapshot, and the fingerprint that tells when they are stale."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from sdretrieval.core.array_folder import array_file, map_array, map_arrays
from sdretrieval.core.errors import IndexProblem, JavaError
from sdretrieval.core.jvm import run_java
from sdretrieval.core.packed_strings import PackedStrings, byte_order
from sdretrieval.core.times import parse_time
from sdretrieval.index.snapshot_format import EXPORTED, SNAPSHOT, derived_for_ranking

JAVA_FOLDER = Path(__file__).parent / "java"
CONTENTS_FIELD = "contents"
TIME_FIELD = "sdr_time"  # written by sdretrieval/index/lucene/indexing.py


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


def export_index(index: Path, folder: Path, *, date_field: str = "") -> int:
    """The arrays of a snapshot of an index in ``folder``; how many dates could not be read. Starts the JVM."""
    run_exporter(index, folder, date_field)
    unparsed = _parse_dates(folder) if date_field else 0
    _add_by_document(folder)
    return unparsed


def run_exporter(index: Path, folder: Path, date_field: str) -> dict[str, float]:
    """What SnapshotExporter.java writes, into ``folder``; the seconds each part took in Java."""
    arguments = [str(index.resolve()), str(folder.resolve()), CONTENTS_FIELD, TIME_FIELD, date_field]
    try:
        told = run_java(JAVA_FOLDER, "SnapshotExporter", arguments)
    except JavaError as error:
        raise IndexProblem(
            f"the index {index} cannot be read: {error.message}",
            remedy="Run `sdretrieval doctor --index …`; an index of another Lucene version must be rebuilt.",
        ) from error
    return {name: float(seconds) for name, seconds in (line.split() for line in told.splitlines())}


def _parse_dates(folder: Path) -> int:
    """Dates as text, from an index of another tool, to times; how many could not be read."""
    times = np.array(map_array(folder, "times", EXPORTED["times"]))
    text = PackedStrings(map_array(folder, "date_text", "<u1"), map_array(folder, "date_text_ptr", "<i8"))
    unparsed = 0
    for i, value in enumerate(text):
        try:
            times[i] = parse_time(value) if value else times[i]
        except ValueError:
            unparsed += 1
    times.tofile(array_file(folder, "times"))
    for name in ("date_text", "date_text_ptr"):
        array_file(folder, name).unlink()
    return unparsed


def _add_by_document(folder: Path) -> None:
    """What the exporter leaves to us: the documents x terms direction, the order of the docids, what ranking walks."""
    from sdretrieval.index.sparse import transpose  # compiled, and only a build needs it

    given = map_arrays(folder, EXPORTED)
    n_docs, n_postings = len(given["doc_lengths"]), len(given["term_docs"])
    made = [SNAPSHOT.create(folder, "doc_ptr", n_docs + 1)]
    made += [SNAPSHOT.create(folder, name, n_postings) for name in ("doc_terms", "doc_counts")]
    transpose(given["term_ptr"], given["term_docs"], given["term_counts"], *made)
    order = byte_order(given["docid_text"], given["docid_text_ptr"]).astype("<i4")
    order.tofile(array_file(folder, "docid_order"))
    for name, array in derived_for_ranking({**given, "docid_order": order}).items():
        array.astype(SNAPSHOT.types[name], copy=False).tofile(array_file(folder, name))
