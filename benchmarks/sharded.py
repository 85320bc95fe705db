"""Snapshots made a sharded collection, without Lucene indexes: for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.index.positions import NAME, POSITIONS
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.snapshot_format import write_snapshot
from sdretrieval.plugins.spark.shards import MANIFEST, Collection, manifest_of, open_collection, shard_entry, shard_name
from sdretrieval.plugins.spark.storage import Mounted


def write_collection(folder: Path, snapshots: Iterable[Snapshot]) -> Collection:
    """They must be of one analyzer, and no docid may be in two of them."""
    shards, analyzer = [], AnalyzerSpec()
    for number, snapshot in enumerate(snapshots):
        analyzer = snapshot.analyzer
        place = folder / f"{shard_name(number)}.snapshot"
        mark = write_snapshot(place, snapshot.arrays)
        if snapshot.places is not None:
            POSITIONS.write(place / mark / NAME, snapshot.places)
        shards.append(shard_entry(number, snapshot.n_docs, snapshot.n_tokens, mark, snapshot.places is not None))
    Mounted().write(str(folder / MANIFEST), manifest_of(shards, analyzer))
    return open_collection(folder)
