"""A sharded collection: a folder of Lucene indexes with their snapshots, and a manifest that names them.

    news/
      collection.json                     the manifest: written last, so a folder without one is not finished
      shard-00000/                        a Lucene index
      shard-00000.snapshot/<fingerprint>/ its snapshot: all that ranking reads
      shard-00001/ …
      statistics/<fingerprint>/           sums over all shards

The folder must be mounted at the same place on the driver and on every worker (NFS, Lustre, CephFS, a FUSE mount of
HDFS or an object store): workers map the files into memory. They open snapshots alone, and never start Java.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.files import atomic_writer
from sdretrieval.integrations.spark import packed
from sdretrieval.integrations.spark.totals import Totals, totals_problem
from sdretrieval.lucene.analysis import AnalyzerSpec
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import Engine
from sdretrieval.snapshot import Snapshot, load_snapshot, open_snapshot, snapshot_folder
from sdretrieval.statistics import Statistics

MANIFEST = "collection.json"
FORMAT = 1
OPEN_SHARDS = 64  # that a worker process keeps open: files are mapped, vectors over the documents are its own


class Collection:
    """What the driver knows of all shards. Get one from :func:`open_collection`; :class:`InMemory` is for tests."""

    name: str
    fingerprint: str
    analyzer: AnalyzerSpec
    n_shards: int
    totals: Totals

    def snapshot(self, number: int) -> Snapshot:
        raise NotImplementedError

    # What queries and commands ask of a snapshot, asked of all shards.
    @property
    def n_docs(self) -> int:
        return self.totals.n_docs

    @property
    def is_dated(self) -> bool:
        return self.totals.n_dated > 0

    def term_id(self, term: str) -> int:
        return self.totals.vocabulary.find(term)

    def analyze(self, text: str) -> list[str]:
        """The terms of a text, analysed as the documents were. Starts a JVM in this process at first use."""
        from sdretrieval.lucene.analysis import analyze

        return analyze(text, self.analyzer)


class InMemory(Collection):
    """Snapshots as shards."""

    def __init__(self, snapshots: Sequence[Snapshot], name: str = "in memory") -> None:
        self.snapshots, self.name, self.fingerprint = list(snapshots), name, ""
        self.n_shards, self.analyzer = len(self.snapshots), self.snapshots[0].analyzer

    def snapshot(self, number: int) -> Snapshot:
        return self.snapshots[number]

    @cached_property
    def totals(self) -> Totals:  # type: ignore[override]
        first, *others = [Totals.of(snapshot) for snapshot in self.snapshots]
        for other in others:
            first = first.plus(other)
        return first


class OnDisk(Collection):
    """A folder with a manifest."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()  # the same on every machine, wherever the worker runs
        self.name = self.folder.name
        self.manifest = _read_manifest(self.folder)
        self.shards = self.manifest["shards"]
        self.n_shards = len(self.shards)
        self.analyzer = AnalyzerSpec.from_json(self.manifest.get("analyzer", {}))
        marks = "\n".join(f"{shard['name']} {shard['snapshot']}" for shard in self.shards)
        self.fingerprint = hashlib.sha256(marks.encode()).hexdigest()[:32]

    def path(self, number: int) -> Path:
        """Of the shard's snapshot."""
        shard = self.shards[number]
        return self.folder / f"{shard['name']}.snapshot" / shard["snapshot"]

    def snapshot(self, number: int) -> Snapshot:
        name = self.shards[number]["name"]
        try:
            return load_snapshot(self.path(number), analyzer=self.analyzer, name=f"{self.name}/{name}")
        except IndexProblem as error:
            raise IndexProblem(
                f"shard {name} ({number + 1} of {self.n_shards}) of {self.folder}: {error.message}",
                remedy=f"Bring the file back, or run `sdretrieval spark index … --index {self.folder} --resume`.",
            ) from None

    @property
    def totals_folder(self) -> Path:
        return self.folder / "statistics" / self.fingerprint

    @property
    def has_totals(self) -> bool:
        return totals_problem(self.totals_folder) is None

    @cached_property
    def totals(self) -> Totals:  # type: ignore[override]
        return Totals.load(self.totals_folder)


def open_collection(folder: str | os.PathLike[str]) -> OnDisk:
    return OnDisk(folder)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if "://" in os.fspath(folder) or str(folder).split(":/")[0].split("/")[-1] in ("hdfs", "s3a", "s3", "gs", "abfss"):
        raise ParameterError(
            f"{folder} is an address, not a folder: workers map the shards into memory",
            remedy="Mount it (NFS, FUSE) at the same place on all machines, and name that folder.",
        )
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] > FORMAT:
            raise IndexProblem(
                f"{path} is of format {manifest['format']}; this is a program for up to {FORMAT}.",
                remedy="Install a newer sdretrieval.",
            )
        if not manifest["shards"] or not all({"name", "snapshot", "documents"} <= set(s) for s in manifest["shards"]):
            raise ValueError("it names no shards")
    except FileNotFoundError:
        is_index = folder.is_dir() and any(p.name.startswith("segments") for p in folder.iterdir())
        raise IndexProblem(
            f"{folder} is {'one index' if is_index else 'no sharded collection'} (no {MANIFEST} in it).",
            remedy="Use `sdretrieval search` for one index." if is_index
            else "Make one with `sdretrieval spark index --input … --index …`; a build that was stopped "
            "goes on with --resume.",
        ) from None  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexProblem(f"{path} cannot be read ({error}).", remedy="Build the collection again.") from None
    return manifest


def shard_name(number: int) -> str:
    return f"shard-{number:05d}"


def write_manifest(folder: Path, shards: list[dict[str, Any]], analyzer: AnalyzerSpec, **notes: Any) -> None:
    from sdretrieval import __version__

    content = {
        "format": FORMAT, "created_by": f"sdretrieval {__version__}", "analyzer": analyzer.to_json(), **notes,
        "documents": sum(shard["documents"] for shard in shards), "shards": shards,
    }  # fmt: skip
    with atomic_writer(folder / MANIFEST) as out:
        json.dump(content, out, indent=1, ensure_ascii=False)
        out.write("\n")


def describe_shard(folder: Path, number: int) -> dict[str, Any]:
    """The manifest's entry of a finished shard; builds its snapshot where there is none (that starts Java)."""
    index = folder / shard_name(number)
    if snapshot_folder(index).parent != folder.resolve():
        raise ParameterError(
            "SDRETRIEVAL_SNAPSHOTS is set: the snapshots of a sharded collection lie beside its shards",
            remedy="Unset it.",
        )
    snapshot = open_snapshot(index)
    return {
        "name": index.name, "documents": snapshot.n_docs, "tokens": snapshot.n_tokens, "snapshot": snapshot.fingerprint,
    }  # fmt: skip


# -- one shard as a worker sees it -------------------------------------------------------------------------------


class ShardEngine(Engine):
    """An engine that leaves to the driver what only the whole plan tells."""

    def _is_dense(self, plan: Plan) -> bool:
        return plan.dense  # type: ignore[attr-defined]

    def _needs_marks(self, plan: Plan) -> bool:
        return plan.marks  # type: ignore[attr-defined]


class Shard:
    """A snapshot, where its words stand among those of all shards, and an engine with the statistics of all."""

    def __init__(self, snapshot: Snapshot, totals: Totals, number: int) -> None:
        self.snapshot, self.totals, self.number = snapshot, totals, number

    @cached_property
    def term_map(self) -> np.ndarray:
        """The number of each local term in the vocabulary of all shards."""
        return packed.places_in(self.snapshot.vocabulary, self.totals.vocabulary)

    @cached_property
    def engine(self) -> ShardEngine:
        whole = self.totals
        df, cf = whole.df[self.term_map], whole.cf[self.term_map]
        own = Statistics(whole.n_docs, whole.n_tokens, df, cf, self.snapshot.vocabulary)
        return ShardEngine(self.snapshot, statistics=own)

    def local_terms(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of ascending terms of the collection this shard has, and their local numbers."""
        if len(self.term_map) == 0 or len(terms) == 0:
            return np.zeros(len(terms), dtype=bool), np.zeros(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.term_map, terms), len(self.term_map) - 1)
        known = self.term_map[places] == terms
        return known, places[known]


class Opened:
    """Shards that this process has open, the least used given up first."""

    def __init__(self, most: int = OPEN_SHARDS) -> None:
        self.most = most
        self._shards: OrderedDict[tuple[str, str, int], Shard] = OrderedDict()
        self._collections: dict[tuple[str, str], OnDisk] = {}

    def get(self, folder: str, fingerprint: str, number: int, *, with_totals: bool = True) -> Shard:
        key = (folder, fingerprint, number)
        if key not in self._shards:
            collection = self._collection(folder, fingerprint)
            totals = collection.totals if with_totals else None
            shard = Shard(collection.snapshot(number), totals, number)  # type: ignore[arg-type]
            if not with_totals:
                return shard
            self._shards[key] = shard
            while len(self._shards) > self.most:
                self._shards.popitem(last=False)
        self._shards.move_to_end(key)
        return self._shards[key]

    def _collection(self, folder: str, fingerprint: str) -> OnDisk:
        key = (folder, fingerprint)
        if key not in self._collections:
            collection = OnDisk(folder)
            if collection.fingerprint != fingerprint:
                raise SdretrievalError(
                    f"{folder} was built anew while this command ran, or differs between machines",
                    remedy="Run the command again; the folder must be the same everywhere.",
                )
            self._collections[key] = collection
        return self._collections[key]


OPENED = Opened()
