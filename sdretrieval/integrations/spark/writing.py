"""Snapshots to a sharded collection on disk, without Lucene: for counts from elsewhere, for tests and benchmarks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from sdretrieval.integrations.spark.shards import OnDisk, shard_name, write_manifest
from sdretrieval.snapshot import ARRAYS, FORMAT, Snapshot


def write_collection(folder: Path, snapshots: Iterable[Snapshot]) -> OnDisk:
    """Each snapshot as a shard. They must be of one analyzer, and no docid may be in two of them."""
    shards, analyzer = [], None
    for number, snapshot in enumerate(snapshots):
        analyzer = analyzer or snapshot.analyzer
        arrays = _arrays(snapshot)
        content = hashlib.sha256()
        for name in ARRAYS:
            content.update(arrays[name].tobytes())
        mark = content.hexdigest()[:32]
        target = folder / f"{shard_name(number)}.snapshot" / mark
        target.mkdir(parents=True, exist_ok=True)
        for name in ARRAYS:
            arrays[name].tofile(target / f"{name}.bin")
        sizes = {name: (target / f"{name}.bin").stat().st_size for name in ARRAYS}
        (target / "snapshot.json").write_text(json.dumps({"format": FORMAT, "fingerprint": mark, "sizes": sizes}))
        shards.append(
            {"name": shard_name(number), "documents": snapshot.n_docs, "tokens": snapshot.n_tokens, "snapshot": mark}
        )
    assert analyzer is not None
    write_manifest(folder, shards, analyzer)
    return OnDisk(folder)


def _arrays(snapshot: Snapshot) -> dict[str, np.ndarray]:
    named = {
        "term_text": snapshot.vocabulary._data, "term_text_ptr": snapshot.vocabulary._ptr,
        "docid_text": snapshot.docids._data, "docid_text_ptr": snapshot.docids._ptr,
        "docid_order": snapshot.docids.order,
    }  # fmt: skip
    return {
        name: np.ascontiguousarray(named[name] if name in named else getattr(snapshot, name), dtype=dtype)
        for name, dtype in ARRAYS.items()
    }
