"""A Lucene index to the arrays of a snapshot, whole or what has come to an earlier one."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sdretrieval.core.array_folder import array_file, map_array, map_arrays
from sdretrieval.core.disk import is_full_disk
from sdretrieval.core.errors import IndexProblem, JavaError
from sdretrieval.core.jvm import run_java
from sdretrieval.core.packed_strings import PackedStrings, byte_order
from sdretrieval.core.times import parse_time
from sdretrieval.index.rows import bits_of_terms, rows_by_term
from sdretrieval.index.snapshot_format import EXPORTED, FEW_POSTINGS, SNAPSHOT, derived_for_ranking, grouped, inverse

JAVA_FOLDER = Path(__file__).parent / "java"
CONTENTS_FIELD = "contents"
NARROWED = "term_text_ptr", "term_ptr", "cf", "docid_text_ptr"  # of what was exported
TIME_FIELD = "sdr_time"  # written by sdretrieval/index/lucene/indexing.py


@dataclass(frozen=True)
class Exported:
    """What became of an export: the ``segments_N`` it is of, its segments, how many dates could not be read, and the
    types of its arrays."""

    commit: str
    segments: list[str]
    unparsed_dates: int
    types: dict[str, str]


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
    return Exported(told["commit"], told["segments"].split(), unparsed, _add_derived(folder))


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
    old["doc_lengths"] = old["length_values"][old["length_group"]]
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


def _add_derived(folder: Path) -> dict[str, str]:
    """What the exporter leaves to us: the rows of documents, the order of the docids, what ranking walks; the types
    of all arrays."""
    given = map_arrays(folder, EXPORTED)
    made = {"docid_rank": inverse(byte_order(given["docid_text"], given["docid_text_ptr"]))}
    made |= SNAPSHOT.fitted(grouped(given["doc_lengths"])) | _rows(folder, given)
    made |= derived_for_ranking({**given, **made})
    types = {name: SNAPSHOT.put(folder, name, array) for name, array in made.items()}
    types |= {name: SNAPSHOT.put(folder, name, np.array(given[name])) for name in NARROWED}
    if len(given["term_docs"]) > FEW_POSTINGS:  # what is in the rows
        types |= {name: SNAPSHOT.put(folder, name, given[name][:0]) for name in ("term_docs", "term_counts")}
    array_file(folder, "doc_lengths").unlink()
    return types


def _rows(folder: Path, given: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The rows of documents, but for their words, which are on disk."""
    bits, counts = bits_of_terms(len(given["cf"])), given["term_counts"]
    n_large = np.count_nonzero(counts >= 1 << (32 - bits))
    ptr, words = np.empty(len(given["times"]) + 1, np.int64), SNAPSHOT.create(folder, "doc_words", len(counts))
    at, large = np.empty(n_large, np.int64), np.empty(n_large, np.int32)
    rows_by_term(given["term_ptr"], given["term_docs"], counts, bits, ptr, words, at, large)
    order = np.argsort(at)
    return SNAPSHOT.fitted({"doc_ptr": ptr, "large_at": at[order], "large_counts": large[order]})
