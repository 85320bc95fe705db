"""The format of a snapshot: the names and types of its arrays, and who writes which.

A snapshot is a folder named by its fingerprint (see core/array_folder.py). Who changes its arrays raises
:data:`FORMAT`; snapshots of an older one are then built again. lucene/export.py writes them from an index,
:func:`write_snapshot` from memory. :data:`RULES` says what must hold of an array before any loop runs; what
:func:`derived_for_ranking` makes must be what it makes of the others: the whole of it where a snapshot is checked on
demand, and where it is first opened what is soon made. The loops need no more of the compact postings than their sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from sdretrieval.core.array_folder import ArrayFolder, Rule, read_only
from sdretrieval.index.rows import packing_problem

FORMAT = 5
FEW_POSTINGS = 1 << 24  # of a collection that is scored exhaustively at times: its postings are kept by term, too
_POINTERS = "<i4 <i8"  # the first that has room
EXPORTED = {  # what java/SnapshotExporter.java writes
    "term_text": "<u1",
    "term_text_ptr": "<i8",
    "term_ptr": "<i8",
    "term_docs": "<i4",
    "term_counts": "<i4",
    "cf": "<i8",
    "doc_lengths": "<i8",
    "times": "<i8",
    "docid_text": "<u1",
    "docid_text_ptr": "<i8",
}
ARRAYS = {
    "term_text": "<u1",
    "term_text_ptr": _POINTERS,  # vocabulary, in byte order
    "term_ptr": _POINTERS,
    "term_docs": "<i4",
    "term_counts": "<i4",  # terms x documents; both empty with more than FEW_POSTINGS: sparse.py makes them of the rows
    "cf": "<i4 <i8",
    "times": "<i8",
    "docid_text": "<u1",
    "docid_text_ptr": _POINTERS,
    "docid_rank": "<i4",  # the place of each docid in byte order
    "length_values": "<i8",  # the lengths that occur, ascending
    "length_group": "<u2 <i4",  # which of them each document has
    "doc_ptr": _POINTERS,
    "doc_words": "<u4",  # documents x terms: see rows.py
    "large_at": _POINTERS,
    "large_counts": "<i4",
    "block_docs": "<u2",  # the postings once more, for ranking: see compact.py
    "block_cells": "<u1",
    "blocks": "<u1 <u2",
    "block_starts": "<i4",
    "blocks_ptr": _POINTERS,
    "cells": "<i8",
}
LONGEST = 1 << 24  # words of a document: more are looked for by sorting
_PER_TERM, _PER_DOC, _PER_POSTING = "cf", "times", "doc_words"


def _size_problem(name: str) -> Callable[[np.ndarray, Mapping[str, np.ndarray]], str | None]:
    """A check that an array of compact.py is as long as df and the number of documents say."""

    def check(values: np.ndarray, arrays: Mapping[str, np.ndarray]) -> str | None:
        from sdretrieval.index.compact import block_sizes  # as in derived_for_ranking

        wanted = block_sizes(arrays)[name]
        return None if len(values) == wanted else f"has {len(values)} entries instead of {wanted}"

    return check


RULES = {  # what compiled loops rely on; an array without a rule has its checksum alone
    "term_text_ptr": Rule(length_of=_PER_TERM, extra=1, points_into="term_text", is_text=True),
    "term_ptr": Rule(length_of=_PER_TERM, extra=1, points_into=_PER_POSTING),
    "term_docs": Rule(length_of=_PER_POSTING, instead=_PER_POSTING, below=_PER_DOC),
    "term_counts": Rule(length_of=_PER_POSTING, instead=_PER_POSTING, at_least=1),
    "cf": Rule(at_least=1),
    "docid_text_ptr": Rule(length_of=_PER_DOC, extra=1, points_into="docid_text", is_text=True),
    "docid_rank": Rule(length_of=_PER_DOC, below=_PER_DOC),
    "length_values": Rule(at_least=0),
    "length_group": Rule(length_of=_PER_DOC, below="length_values"),
    "doc_ptr": Rule(length_of=_PER_DOC, extra=1, points_into=_PER_POSTING),
    "doc_words": Rule(check=packing_problem),
    "large_counts": Rule(length_of="large_at", at_least=1),
    "block_docs": Rule(length_of=_PER_POSTING),
    "block_cells": Rule(length_of=_PER_POSTING),
    "blocks": Rule(check=_size_problem("blocks")),
    "block_starts": Rule(check=_size_problem("block_starts")),
}


def snapshot_problem(folder: Path, fingerprint: str, *, again: bool = False) -> str | None:
    """What is wrong with a snapshot on disk; None when it is whole. ``again``: read it all, seen before or not."""
    stale = "made from another state of the index"
    return SNAPSHOT.problem(folder, lambda notes: stale if notes["fingerprint"] != fingerprint else None, again=again)


def grouped(doc_lengths: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays that hold the lengths of documents."""
    if len(doc_lengths) and doc_lengths.max() <= LONGEST:
        occurs = np.bincount(doc_lengths) > 0
        lengths, group = np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[doc_lengths]
    else:
        lengths, group = np.unique(doc_lengths, return_inverse=True)
    return {"length_values": lengths, "length_group": group}


def inverse(order: np.ndarray) -> np.ndarray:
    """The place of each number in an order of them; and of such places the order."""
    places = np.zeros(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return read_only(places)


def write_snapshot(parent: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """A snapshot in ``parent``, in a folder named by the fingerprint of its content, which is returned."""
    arrays = SNAPSHOT.fitted({**arrays, **derived_for_ranking(arrays)})
    content = hashlib.sha256()
    for name in ARRAYS:
        content.update(np.ascontiguousarray(arrays[name]).data)
    fingerprint = content.hexdigest()[:32]
    SNAPSHOT.write(parent / fingerprint, arrays, fingerprint=fingerprint)
    return fingerprint


def derived_for_ranking(arrays: Mapping[str, np.ndarray], all_of_them: bool = True) -> dict[str, np.ndarray]:
    """What ranking would otherwise compute at every start; or of it what is soon made."""
    from sdretrieval.index.compact import compact_arrays, compact_outline  # compiled, where all is made

    return (compact_arrays if all_of_them else compact_outline)(arrays)


SNAPSHOT = ArrayFolder(ARRAYS, "snapshot.json", FORMAT, RULES, derived_for_ranking)
