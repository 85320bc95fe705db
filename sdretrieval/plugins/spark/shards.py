"""A sharded collection: a folder of Lucene indexes with their snapshots, and a manifest that names them.

docs/SPARK.md draws it. A folder that is mounted everywhere is mapped into memory where it lies (:class:`Collection`);
of one at an address, whatever Spark sees, workers map copies on their own disks (:class:`Remote`). They open snapshots
alone, and rank without Java.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval import __version__
from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core import sorted_strings
from sdretrieval.core.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.core.packed_strings import PackedStrings
from sdretrieval.core.safe_json import parse_json
from sdretrieval.index.positions import has_positions
from sdretrieval.index.snapshot import Snapshot, load_snapshot, open_snapshot, snapshot_folder
from sdretrieval.index.snapshot_format import snapshot_problem
from sdretrieval.index.statistics import Statistics
from sdretrieval.plugins.spark.copies import cache_folder, local_copy
from sdretrieval.plugins.spark.storage import Hadoop, HadoopShell, Mounted, StorageProblem, last_name, place_of
from sdretrieval.plugins.spark.totals import TOTALS, Totals
from sdretrieval.ranking.engine import Engine

MANIFEST = "collection.json"
FORMAT = 1
OPEN_SHARDS = 64  # that a worker process keeps open: files are mapped, vectors over the documents are its own


class Collection:
    """All shards, in a mounted folder. Get one from :func:`open_collection`."""

    def __init__(self, address: str, manifest: dict[str, Any]) -> None:
        self.address, self.name, self.manifest = address, last_name(address), manifest
        self.shards = self.manifest["shards"]
        self.n_shards = len(self.shards)
        self.has_positions = all(shard.get("positions") is True for shard in self.shards)
        self.analyzer = AnalyzerSpec.from_json(self.manifest.get("analyzer", {}))
        marks = "\n".join(f"{shard['name']} {shard['snapshot']}" for shard in self.shards)
        self.fingerprint = hashlib.sha256(marks.encode()).hexdigest()[:32]

    @cached_property
    def folder(self) -> Path:
        """Of the snapshots, on this machine."""
        return Path(self.address)

    def path(self, number: int) -> Path:
        """Of a shard's snapshot, on this machine."""
        shard = self.shards[number]
        return self.folder / f"{shard['name']}.snapshot" / shard["snapshot"]

    def snapshot(self, number: int) -> Snapshot:
        name = self.shards[number]["name"]
        try:
            return load_snapshot(self.path(number), analyzer=self.analyzer, name=f"{self.name}/{name}")
        except (IndexProblem, StorageProblem) as error:
            told = f"shard {name} ({number + 1} of {self.n_shards}) of {self.address}: {error.message}"
            if isinstance(error, StorageProblem) and not error.missing:
                raise StorageProblem(told, remedy=error.remedy) from None
            build = f"sdretrieval spark index … --index {self.address} --resume"
            remedy = f"Was it built anew meanwhile? Run the command again. Else bring the file back, or run `{build}`."
            raise IndexProblem(told, remedy=remedy) from None

    def for_workers(self) -> Collection:
        """As it travels: without what was mapped here."""
        return Collection(self.address, self.manifest)

    def check(self) -> None:
        """On a worker: is what the driver has opened here, too? Another machine may have it."""
        if not Path(self.address, MANIFEST).is_file():
            raise SdretrievalError(
                f"on a worker: no {MANIFEST} in {self.address}",
                remedy="It must be mounted at the same place on all machines.",
            )

    # -- sums over all shards ------------------------------------------------------------------------------------
    @property
    def totals_folder(self) -> Path:
        """On this machine."""
        return self.folder / "statistics" / self.fingerprint

    @property
    def has_totals(self) -> bool:
        return TOTALS.problem(self.totals_folder) is None

    @cached_property
    def totals(self) -> Totals:
        return Totals.load(self.totals_folder)

    def keep_totals(self, totals: Totals) -> None:
        totals.save(self.totals_folder)

    # -- what queries and commands ask of a snapshot, asked of all shards ----------------------------------------
    @property
    def n_docs(self) -> int:
        return self.totals.n_docs

    @property
    def is_dated(self) -> bool:
        return self.totals.n_dated > 0

    @property
    def vocabulary(self) -> PackedStrings:
        return self.totals.vocabulary

    def term_id(self, term: str) -> int:
        return self.vocabulary.find(term)

    def analyze(self, text: str) -> list[str]:
        """The terms of a text, analysed as the documents were. Starts a JVM in this process where that takes Java."""
        from sdretrieval.index.lucene.analysis import analyze  # may start Java

        return analyze(text, self.analyzer)


class Remote(Collection):
    """An address with a manifest. Snapshots and sums are mapped from copies on this machine, made when first needed."""

    def __init__(self, address: str, manifest: dict[str, Any], storage: Hadoop | HadoopShell, local: str | None = None):
        super().__init__(address, manifest)
        self.storage, self.local = storage, local

    def for_workers(self) -> Remote:
        """With the manifest, so that no worker reads it, and a client that needs no JVM of Spark's.

        With the sums themselves, too, where nobody could put them beside the shards.
        """
        assert isinstance(self.storage, Hadoop)  # only the driver sends
        sent = Remote(self.address, self.manifest, self.storage.for_workers())
        if self.storage.status(self._totals_address) is None and self.has_totals:
            sent.totals = self.totals
        return sent

    def check(self) -> None:
        """Copies are named by their fingerprints."""

    @cached_property
    def folder(self) -> Path:
        """Of the copies on this machine."""
        return cache_folder(self.address, self.local)

    def path(self, number: int) -> Path:
        name, mark = self.shards[number]["name"], self.shards[number]["snapshot"]
        return local_copy(
            self.storage,
            f"{self.address}/{name}.snapshot/{mark}",
            self.folder / name / mark,
            lambda folder: snapshot_problem(folder, mark),
        )

    @property
    def _totals_address(self) -> str:
        return f"{self.address}/statistics/{self.fingerprint}"

    def _copy_totals(self) -> Path:
        return local_copy(self.storage, self._totals_address, self.totals_folder, TOTALS.problem)

    @property
    def has_totals(self) -> bool:
        try:
            self._copy_totals()
        except (StorageProblem, IndexProblem) as error:
            if isinstance(error, StorageProblem) and not error.missing:
                raise
            return False
        return True

    @cached_property
    def totals(self) -> Totals:
        return Totals.load(self._copy_totals())

    def keep_totals(self, totals: Totals) -> None:
        """Here, and there where that is allowed."""
        assert isinstance(self.storage, Hadoop)  # only the driver sums
        totals.save(self.totals_folder)
        aside = f"{self.address}/statistics/.building-{os.urandom(4).hex()}"
        try:
            self.storage.make(f"{self.address}/statistics")
            self.storage.put(self.totals_folder, aside)
            self.storage.delete(self._totals_address)
            self.storage.rename(aside, self._totals_address)
        except StorageProblem as error:
            print(f"the sums over all shards are kept on this machine alone ({error.message})", file=sys.stderr)
        finally:
            with suppress(StorageProblem):
                self.storage.delete(aside)


def open_collection(place: str | os.PathLike[str], context: Any = None) -> Collection:
    """A mounted folder, or an address of any file system that Spark sees: for that the SparkContext is needed."""
    where = place_of(place)
    if isinstance(where, Path):
        address = str(where.absolute())  # the same on every machine, wherever the worker runs
        return Collection(address, _read_manifest(address, Mounted()))
    if context is None:
        raise ParameterError(
            f"{place} is an address: only Spark can reach it", remedy="Pass the SparkContext, or mount it."
        )
    storage = Hadoop(context)
    address = storage.qualified(where)
    return Remote(address, _read_manifest(address, storage), storage, context.getConf().get("spark.local.dir"))


# -- the manifest ------------------------------------------------------------------------------------------------

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _read_manifest(place: str, storage: Hadoop | Mounted) -> dict[str, Any]:
    try:
        content = storage.read(f"{place}/{MANIFEST}")
    except StorageProblem as error:
        if not error.missing:
            raise
        is_index = any(entry.name.startswith("segments") for entry in storage.listing(place))
        raise IndexProblem(
            f"{place} is {'one index' if is_index else 'no sharded collection'} (no {MANIFEST} in it).",
            remedy="Use `sdretrieval search` for one index."
            if is_index
            else "Make one with `sdretrieval spark index --input … --index …`; a build that was stopped "
            "goes on with --resume.",
        ) from None
    return checked_manifest(content, f"{place}/{MANIFEST}")


def checked_manifest(content: bytes, shown: str) -> dict[str, Any]:
    """A manifest whose names of shards and snapshots may become paths."""
    try:
        manifest = parse_json(content.decode("utf-8"))
        if manifest["format"] > FORMAT:
            raise IndexProblem(
                f"{shown} is of format {manifest['format']}; this is a program for up to {FORMAT}.",
                remedy="Install a newer sdretrieval.",
            )
        if not manifest["shards"] or not all({"name", "snapshot", "documents"} <= set(s) for s in manifest["shards"]):
            raise ValueError("it names no shards")
        for shard in manifest["shards"]:
            for name in (shard["name"], shard["snapshot"]):
                if not _SAFE.fullmatch(name):
                    raise ValueError(f"{name!r} cannot be the name of a shard or snapshot")
    except (ValueError, KeyError, TypeError) as error:
        raise IndexProblem(f"{shown} cannot be read ({error}).", remedy="Build the collection again.") from None
    return manifest


def manifest_of(shards: list[dict[str, Any]], analyzer: AnalyzerSpec, **notes: Any) -> bytes:
    content = {
        "format": FORMAT,
        "created_by": f"sdretrieval {__version__}",
        "analyzer": analyzer.to_json(),
        **notes,
        "documents": sum(shard["documents"] for shard in shards),
        "shards": shards,
    }
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def shard_name(number: int) -> str:
    return f"shard-{number:05d}"


def shard_entry(number: int, documents: int, tokens: int, snapshot: str, positions: bool) -> dict[str, Any]:
    """What the manifest says of a shard."""
    sizes = {"documents": documents, "tokens": tokens}
    return {"name": shard_name(number), **sizes, "snapshot": snapshot, "positions": positions}


def describe_shard(folder: Path, number: int) -> dict[str, Any]:
    """The entry of a finished shard; builds its snapshot and positions where there are none (that starts Java)."""
    index = folder / shard_name(number)
    if snapshot_folder(index).parent != folder.resolve():
        raise ParameterError(
            "SDRETRIEVAL_SNAPSHOTS is set: the snapshots of a sharded collection lie beside its shards",
            remedy="Unset it.",
        )
    snapshot = open_snapshot(index)
    return shard_entry(number, snapshot.n_docs, snapshot.n_tokens, snapshot.fingerprint, has_positions(snapshot))


# -- one shard as a worker sees it -------------------------------------------------------------------------------


class Shard:
    """A snapshot, where its words stand among those of all shards, and an engine with the statistics of all."""

    def __init__(self, collection: Collection, number: int) -> None:
        self.collection, self.number, self.snapshot = collection, number, collection.snapshot(number)

    @property
    def totals(self) -> Totals:
        return self.collection.totals

    @cached_property
    def term_map(self) -> np.ndarray:
        """The number of each local term in the vocabulary of all shards."""
        return sorted_strings.places_in(self.snapshot.vocabulary, self.totals.vocabulary)

    @cached_property
    def engine(self) -> Engine:
        whole = self.totals
        df, cf = whole.df[self.term_map], whole.cf[self.term_map]
        own = Statistics(whole.n_docs, whole.n_tokens, df, cf, self.snapshot.vocabulary)
        return Engine(self.snapshot, statistics=own)

    def local_terms(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of ascending terms of the collection this shard has, and their local numbers."""
        if len(self.term_map) == 0 or len(terms) == 0:
            return np.zeros(len(terms), dtype=bool), np.zeros(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self.term_map, terms), len(self.term_map) - 1)
        known = self.term_map[places] == terms
        return known, places[known]


@lru_cache(maxsize=OPEN_SHARDS)
def open_shard(collection: Collection, number: int) -> Shard:
    """In a worker's process, where it stays open for the next request. Before there are sums it can only be counted."""
    collection.check()
    return Shard(collection, number)
