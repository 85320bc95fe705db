"""The format of a snapshot: the names and types of its arrays, and who writes which.

A snapshot is a folder named by its fingerprint (see core/array_folder.py). Who changes its arrays raises
:data:`FORMAT`; snapshots of an older one are then built again. lucene/export.py writes them from an index,
:func:`write_snapshot` from memory. :data:`RULES` says what must hold of an array before any loop runs; what
:func:`derived_for_ranking` makes must be what it makes of the others: the whole of it where a snapshot is checked on
demand, and where it is first opened what is soon made. The loops need no more of the compact postings than their sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sdretrieval.core.array_folder import ArrayFolder, Rule

FORMAT = 4
LARGEST_SHORT = 65_534  # of counts in two bytes: 1 more still has room
FEW_POSTINGS = 1 << 24  # of a collection that is scored exhaustively at times: its postings are kept by term, too
EXPORTED = {  # by java/SnapshotExporter.java
    "term_text": "<u1",
    "term_text_ptr": "<i8",  # vocabulary, in byte order
    "term_ptr": "<i8",
    "term_docs": "<i4",
    "term_counts": "<i4",  # terms x documents; both empty with more than FEW_POSTINGS: sparse.py makes them of the rows
    "cf": "<i8",
    "doc_lengths": "<i8",
    "times": "<i8",
    "docid_text": "<u1",
    "docid_text_ptr": "<i8",
}
DERIVED = {  # from those, by lucene/export.py
    "docid_order": "<i4",  # docids in byte order, for look-ups
    "doc_ptr": "<i8",
    "doc_terms": "<i4",
    "doc_counts": "<u2",  # documents x terms; empty where a count is above LARGEST_SHORT
    "large_counts": "<i4",  # and these are there instead
    "docid_rank": "<i4",  # the place of each document in docid_order
    "block_docs": "<u2",  # the postings once more, for ranking: see compact.py
    "block_cells": "<u1",
    "blocks": "<i4",
    "blocks_ptr": "<i8",
    "cells": "<i8",
    "length_values": "<i8",
    "length_group": "<i4",
}
ARRAYS = EXPORTED | DERIVED
_PER_TERM, _PER_DOC, _PER_POSTING = "cf", "doc_lengths", "doc_terms"
RULES = {  # what compiled loops rely on; an array without a rule has its checksum alone
    "term_text_ptr": Rule(length_of=_PER_TERM, extra=1, points_into="term_text", is_text=True),
    "term_ptr": Rule(length_of=_PER_TERM, extra=1, points_into=_PER_POSTING),
    "term_docs": Rule(length_of=_PER_POSTING, instead=_PER_POSTING, below=_PER_DOC),
    "term_counts": Rule(length_of=_PER_POSTING, instead=_PER_POSTING, at_least=1),
    "cf": Rule(at_least=1),
    "doc_lengths": Rule(at_least=0),
    "times": Rule(length_of=_PER_DOC),
    "docid_text_ptr": Rule(length_of=_PER_DOC, extra=1, points_into="docid_text", is_text=True),
    "docid_order": Rule(length_of=_PER_DOC, below=_PER_DOC),
    "doc_ptr": Rule(length_of=_PER_DOC, extra=1, points_into="doc_terms"),
    "doc_terms": Rule(below=_PER_TERM),
    "doc_counts": Rule(length_of=_PER_POSTING, instead="large_counts", at_least=1),
    "large_counts": Rule(length_of=_PER_POSTING, instead="doc_counts", at_least=1),
    "block_docs": Rule(length_of=_PER_POSTING),
    "block_cells": Rule(length_of=_PER_POSTING),
    "blocks_ptr": Rule(length_of=_PER_TERM, extra=1, points_into="blocks"),
}


def snapshot_problem(folder: Path, fingerprint: str, *, again: bool = False) -> str | None:
    """What is wrong with a snapshot on disk; None when it is whole. ``again``: read it all, seen before or not."""
    stale = "made from another state of the index"
    return SNAPSHOT.problem(folder, lambda notes: stale if notes["fingerprint"] != fingerprint else None, again=again)


def counts_by_document(counts: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays that hold them: in two bytes each where these are enough."""
    are_short = counts.max(initial=0) <= LARGEST_SHORT
    names = ("doc_counts", "large_counts") if are_short else ("large_counts", "doc_counts")
    return {name: values.astype(DERIVED[name]) for name, values in zip(names, (counts, counts[:0]), strict=True)}


def write_snapshot(parent: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """A snapshot in ``parent``, in a folder named by the fingerprint of its content, which is returned."""
    arrays = {**arrays, **derived_for_ranking(arrays)}
    content = hashlib.sha256()
    for name, dtype in ARRAYS.items():
        content.update(np.ascontiguousarray(arrays[name], dtype=dtype).tobytes())
    fingerprint = content.hexdigest()[:32]
    SNAPSHOT.write(parent / fingerprint, arrays, fingerprint=fingerprint)
    return fingerprint


def derived_for_ranking(arrays: Mapping[str, np.ndarray], all_of_them: bool = True) -> dict[str, np.ndarray]:
    """What ranking would otherwise compute at every start; or of it what is soon made."""
    from sdretrieval.index.compact import compact_arrays, compact_outline  # compiled, where all is made

    order = arrays["docid_order"]
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return {"docid_rank": rank, **(compact_arrays if all_of_them else compact_outline)(arrays)}


SNAPSHOT = ArrayFolder(ARRAYS, "snapshot.json", FORMAT, RULES, derived_for_ranking)
