"""A Lucene index to the arrays of a snapshot, whole or what has come to an earlier one."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sdretrieval.core.array_folder import array_file, map_array, map_arrays
from sdretrieval.core.disk import is_full_disk
from sdretrieval.core.errors import IndexProblem, JavaError
from sdretrieval.core.jvm import run_java
from sdretrieval.core.packed_strings import PackedStrings, byte_order
from sdretrieval.core.times import parse_time
from sdretrieval.index.snapshot_format import EXPORTED, FEW_POSTINGS, LARGEST_SHORT, SNAPSHOT, derived_for_ranking

JAVA_FOLDER = Path(__file__).parent / "java"
CONTENTS_FIELD = "contents"
TIME_FIELD = "sdr_time"  # written by sdretrieval/index/lucene/indexing.py


@dataclass(frozen=True)
class Exported:
    """What became of an export: the ``segments_N`` it is of, its segments, and how many dates could not be read."""

    commit: str
    segments: list[str]
    unparsed_dates: int


def export_index(
    index: Path, folder: Path, *, date_field: str = "", earlier: Path | None = None, known: Sequence[str] = ()
) -> Exported:
    """The arrays of a snapshot of an index in ``folder``. Starts the JVM.

    What an ``earlier`` snapshot has of the segments ``known`` is taken from it where it is the larger part.
    """
    told = run_exporter(index, folder, date_field, known)
    if earlier is not None and int(told["kept"]):
        append_to(earlier, int(told["kept"]), folder)
    unparsed = _parse_dates(folder) if date_field else 0
    _add_by_document(folder)
    return Exported(told["commit"], told["segments"].split(), unparsed)


def run_exporter(index: Path, folder: Path, date_field: str, known: Sequence[str] = ()) -> dict[str, str]:
    """What SnapshotExporter.java writes, into ``folder``; what it says of it, by name."""
    arguments = [str(folder.resolve()), CONTENTS_FIELD, TIME_FIELD, date_field, " ".join(known)]
    told = _run_on("SnapshotExporter", index, arguments)
    return {name: value for name, _, value in (line.partition(" ") for line in told.splitlines())}


def export_positions(index: Path, file: Path) -> list[str] | None:
    """Where words stand, into ``file``; the segments that were read, or None where it has none. Starts the JVM."""
    told = _run_on("PositionExporter", index, [str(file.resolve()), CONTENTS_FIELD])
    return None if told == "no positions" else told.split()


def _run_on(exporter: str, index: Path, arguments: list[str]) -> str:
    """What one of the exporters says; the first of its arguments is the index, the second what it writes."""
    try:
        return run_java(JAVA_FOLDER, exporter, [str(index.resolve()), *arguments])
    except JavaError as error:
        if is_full_disk(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0]) from error
        raise IndexProblem(
            f"the index {index} cannot be read: {error.message}",
            remedy="Run `sdretrieval doctor --index …`; an index of another Lucene version must be rebuilt.",
        ) from error


def append_to(earlier: Path, n_docs: int, folder: Path) -> None:
    """The first ``n_docs`` documents of an earlier snapshot before those exported to ``folder``, in its arrays."""
    from sdretrieval.core import sorted_strings  # compiled, as the next, and only a build needs them
    from sdretrieval.index.sparse import counts_below, interleave, postings_by_term

    # Copies: the files are written anew.
    new = {name: np.array(values) for name, values in map_arrays(folder, EXPORTED).items()}
    old = SNAPSHOT.map(earlier)
    old_postings = postings_by_term(old)
    df, cf = counts_below(old["term_ptr"], *old_postings, n_docs)
    vocabulary = PackedStrings(old["term_text"], old["term_text_ptr"])
    if not df.all():  # words that only later documents had
        vocabulary = sorted_strings.taken(vocabulary, np.flatnonzero(df))
    words, place, place_new = sorted_strings.union(vocabulary, PackedStrings(new["term_text"], new["term_text_ptr"]))
    starts, lengths = np.zeros((2, len(words)), dtype=np.int64), np.zeros((2, len(words)), dtype=np.int64)
    starts[0, place], lengths[0, place] = old["term_ptr"][:-1][df > 0], df[df > 0]
    starts[1, place_new], lengths[1, place_new] = new["term_ptr"][:-1], np.diff(new["term_ptr"])
    total = np.zeros(len(words), dtype=np.int64)
    total[place] += cf[df > 0]
    total[place_new] += new["cf"]
    ptr = np.concatenate([[0], np.cumsum(lengths.sum(axis=0))])
    docs, counts = (SNAPSHOT.create(folder, name, int(ptr[-1])) for name in ("term_docs", "term_counts"))
    interleave(starts, lengths, ptr, *old_postings, new["term_docs"], new["term_counts"], n_docs, docs, counts)
    first = PackedStrings(old["docid_text"][: old["docid_text_ptr"][n_docs]], old["docid_text_ptr"][: n_docs + 1])
    docids = sorted_strings.joined(first, PackedStrings(new["docid_text"], new["docid_text_ptr"]))
    made = {"term_text": words.data, "term_text_ptr": words.ptr, "term_ptr": ptr, "cf": total}
    made |= {"docid_text": docids.data, "docid_text_ptr": docids.ptr}
    made |= {name: np.concatenate([old[name][:n_docs], new[name]]) for name in ("doc_lengths", "times")}
    for name, values in made.items():
        values.astype(EXPORTED[name]).tofile(array_file(folder, name))


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
    names = ["doc_counts", "large_counts"]
    if given["term_counts"].max(initial=0) > LARGEST_SHORT:
        names.reverse()
    made += [SNAPSHOT.create(folder, name, n_postings) for name in ("doc_terms", names[0])]
    SNAPSHOT.create(folder, names[1], 0)
    transpose(given["term_ptr"], given["term_docs"], given["term_counts"], *made)
    order = byte_order(given["docid_text"], given["docid_text_ptr"]).astype("<i4")
    order.tofile(array_file(folder, "docid_order"))
    for name, array in derived_for_ranking({**given, "docid_order": order}).items():
        array.astype(SNAPSHOT.types[name], copy=False).tofile(array_file(folder, name))
    if n_postings > FEW_POSTINGS:  # what is in the rows
        for name in ("term_docs", "term_counts"):
            os.truncate(array_file(folder, name), 0)
