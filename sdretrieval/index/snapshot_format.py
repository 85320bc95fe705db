"""The format of a snapshot: the names and types of its arrays, and who writes which.

A snapshot is a folder named by its fingerprint (see core/array_folder.py). Who changes its arrays raises
:data:`FORMAT`; snapshots of an older one are then built again. lucene/export.py writes them from an index,
:func:`write_snapshot` from memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sdretrieval.core.array_folder import ArrayFolder

FORMAT = 1
EXPORTED = {  # by java/SnapshotExporter.java
    "term_text": "<u1",
    "term_text_ptr": "<i8",  # vocabulary, in byte order
    "term_ptr": "<i8",
    "term_docs": "<i4",
    "term_counts": "<i4",  # terms x documents
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
    "doc_counts": "<i4",  # documents x terms
}
ARRAYS = EXPORTED | DERIVED
SNAPSHOT = ArrayFolder(ARRAYS, "snapshot.json", FORMAT)


def snapshot_problem(folder: Path, fingerprint: str) -> str | None:
    """What is wrong with a snapshot on disk; None when it is whole."""
    stale = "made from another state of the index"
    return SNAPSHOT.problem(folder, lambda notes: stale if notes["fingerprint"] != fingerprint else None)


def write_snapshot(parent: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """A snapshot in ``parent``, in a folder named by the fingerprint of its content, which is returned."""
    content = hashlib.sha256()
    for name, dtype in ARRAYS.items():
        content.update(np.ascontiguousarray(arrays[name], dtype=dtype).tobytes())
    fingerprint = content.hexdigest()[:32]
    SNAPSHOT.write(parent / fingerprint, arrays, fingerprint=fingerprint)
    return fingerprint
