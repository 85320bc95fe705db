"""A collection as it was before a time: a snapshot with nothing later in it.

Whatever is computed on :func:`past_snapshot` cannot depend on anything later, because nothing later is there: no
document, no word first used later, no count, no length. Documents stand in the order of their docids, so that it is
the same, byte for byte, whatever was indexed with them and however Lucene numbered it; :func:`digest` names it.
"""

from __future__ import annotations

import hashlib

import numpy as np

from sdretrieval.core.times import UNDATED
from sdretrieval.index.positions import has_positions, positions_of
from sdretrieval.index.snapshot import Snapshot


def past_snapshot(snapshot: Snapshot, before: int) -> tuple[Snapshot, np.ndarray]:
    """The documents before ``before`` (ms), strictly; and the number that each has in ``snapshot``.

    Undated documents may be of any time, so they are left out.
    """
    times = np.asarray(snapshot.times)
    docs = np.flatnonzero((times < before) & (times != UNDATED))
    docs = docs[np.argsort(snapshot.docid_rank[docs])]
    past = Snapshot.from_counts(
        snapshot.by_doc[docs],
        snapshot.vocabulary.take(np.arange(snapshot.n_terms)),
        snapshot.docids.take(docs),
        times[docs],
        analyzer=snapshot.analyzer,
        name=snapshot.name,
    )
    if has_positions(snapshot):
        past.places = positions_of(snapshot).of_documents(docs)
    return past, docs


def digest(snapshot: Snapshot) -> str:
    """SHA-256 of everything that ranking sees: words, counts, places, docids, lengths and times."""
    sha, arrays = hashlib.sha256(repr(snapshot.analyzer).encode()), {**snapshot.arrays, **(snapshot.places or {})}
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape}".encode())
        sha.update(array.data)
    return sha.hexdigest()
