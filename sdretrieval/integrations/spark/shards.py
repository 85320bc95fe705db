"""A sharded collection: a folder of Lucene indexes with their snapshots, and a manifest that names them.

    news/
      collection.json                     the manifest: written last, so a folder without one is not finished
      shard-00000/                        a Lucene index
      shard-00000.snapshot/<fingerprint>/ its snapshot: all that ranking reads
      shard-00001/ …
      statistics/<fingerprint>/           sums over all shards

A folder is mounted at the same place on the driver and on every worker (NFS, Lustre, CephFS), and mapped into memory
where it lies (:class:`OnDisk`). A collection may also lie at an address, laid out alike: ``hdfs://…``, ``s3a://…``,
whatever Spark sees (:class:`Remote`); workers then map copies of the snapshots on their own disks. They open snapshots
alone, and rank without Java.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.errors import IndexProblem, ParameterError, SdretrievalError
from sdretrieval.files import atomic_writer
from sdretrieval.integrations.spark import packed
from sdretrieval.integrations.spark.copies import cache_folder, local_copy
from sdretrieval.integrations.spark.storage import Hadoop, HadoopShell, StorageProblem, last_name, place_of
from sdretrieval.integrations.spark.totals import Totals, totals_problem
from sdretrieval.lucene.analysis import AnalyzerSpec
from sdretrieval.ranking.engine import Engine
from sdretrieval.snapshot import Snapshot, load_snapshot, open_snapshot, snapshot_folder
from sdretrieval.snapshot import _problem as snapshot_problem
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
        self._describe(str(self.folder), self.folder.name, _read_manifest(self.folder))

    def _describe(self, address: str, name: str, manifest: dict[str, Any]) -> None:
        self.address, self.name, self.manifest = address, name, manifest
        self.shards = self.manifest["shards"]
        self.n_shards = len(self.shards)
        self.analyzer = AnalyzerSpec.from_json(self.manifest.get("analyzer", {}))
        marks = "\n".join(f"{shard['name']} {shard['snapshot']}" for shard in self.shards)
        self.fingerprint = hashlib.sha256(marks.encode()).hexdigest()[:32]

    def path(self, number: int) -> Path:
        """Of the shard's snapshot, on this machine."""
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
            raise IndexProblem(
                told, remedy=f"Bring the file back, or run `sdretrieval spark index … --index {self.address} --resume`."
            ) from None

    @property
    def totals_folder(self) -> Path:
        """Of the sums over all shards, on this machine."""
        return self.folder / "statistics" / self.fingerprint

    def keep_totals(self, totals: Totals) -> None:
        totals.save(self.totals_folder)

    @property
    def has_totals(self) -> bool:
        return totals_problem(self.totals_folder) is None

    @cached_property
    def totals(self) -> Totals:  # type: ignore[override]
        return Totals.load(self.totals_folder)


class Remote(OnDisk):
    """An address with a manifest. Snapshots and sums are mapped from copies on this machine, made when first needed."""

    def __init__(self, address: str, manifest: dict[str, Any], storage: Hadoop | HadoopShell, local: str | None = None):
        self.storage, self.local = storage, local
        self._describe(address, last_name(address), manifest)

    @classmethod
    def open(cls, address: str, context: Any) -> Remote:
        storage = Hadoop(context)
        address = storage.qualified(address)
        try:
            text = storage.read(f"{address}/{MANIFEST}")
        except StorageProblem as error:
            if not error.missing:
                raise
            is_index = any(entry.name.startswith("segments") for entry in storage.listing(address))
            raise _no_collection(address, is_index) from None
        manifest = _checked_manifest(text, f"{address}/{MANIFEST}")
        return cls(address, manifest, storage, context.getConf().get("spark.local.dir"))

    def for_workers(self, *, with_totals: bool = True) -> Remote:
        """As it travels: with the manifest, so that no worker reads it, and a client that needs no JVM of Spark's.

        With the sums themselves, too, where nobody could put them beside the shards.
        """
        assert isinstance(self.storage, Hadoop)  # only the driver sends
        sent = Remote(self.address, self.manifest, self.storage.for_workers())
        if with_totals and self.storage.status(self._totals_address) is None:
            sent.totals = self.totals
        return sent

    @cached_property
    def folder(self) -> Path:  # type: ignore[override]
        """Of the copies on this machine."""
        return cache_folder(self.address, self.local)

    def path(self, number: int) -> Path:
        name, mark = self.shards[number]["name"], self.shards[number]["snapshot"]
        return local_copy(
            self.storage, f"{self.address}/{name}.snapshot/{mark}", self.folder / name / mark,
            lambda folder: snapshot_problem(folder, mark),
        )  # fmt: skip

    @property
    def _totals_address(self) -> str:
        return f"{self.address}/statistics/{self.fingerprint}"

    @property
    def has_totals(self) -> bool:
        try:
            local_copy(self.storage, self._totals_address, self.totals_folder, totals_problem)
        except (StorageProblem, IndexProblem) as error:
            if isinstance(error, StorageProblem) and not error.missing:
                raise
            return False
        return True

    @cached_property
    def totals(self) -> Totals:  # type: ignore[override]
        return Totals.load(local_copy(self.storage, self._totals_address, self.totals_folder, totals_problem))

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


def open_collection(place: str | os.PathLike[str], context: Any = None) -> OnDisk:
    """A mounted folder, or an address of any file system that Spark sees: for that the SparkContext is needed."""
    where = place_of(place)
    if isinstance(where, Path):
        return OnDisk(where)
    if context is None:
        raise ParameterError(
            f"{place} is an address: only Spark can reach it", remedy="Pass the SparkContext, or mount it."
        )
    return Remote.open(where, context)


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        is_index = folder.is_dir() and any(p.name.startswith("segments") for p in folder.iterdir())
        raise _no_collection(str(folder), is_index) from None
    except OSError as error:
        raise IndexProblem(f"{path} cannot be read ({error}).", remedy="Build the collection again.") from None
    return _checked_manifest(content, str(path))


def _no_collection(place: str, is_index: bool) -> IndexProblem:
    return IndexProblem(
        f"{place} is {'one index' if is_index else 'no sharded collection'} (no {MANIFEST} in it).",
        remedy="Use `sdretrieval search` for one index." if is_index
        else "Make one with `sdretrieval spark index --input … --index …`; a build that was stopped "
        "goes on with --resume.",
    )  # fmt: skip


_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def _checked_manifest(content: bytes, shown: str) -> dict[str, Any]:
    try:
        manifest = json.loads(content.decode("utf-8"))
        if manifest["format"] > FORMAT:
            raise IndexProblem(
                f"{shown} is of format {manifest['format']}; this is a program for up to {FORMAT}.",
                remedy="Install a newer sdretrieval.",
            )
        if not manifest["shards"] or not all({"name", "snapshot", "documents"} <= set(s) for s in manifest["shards"]):
            raise ValueError("it names no shards")
        for shard in manifest["shards"]:  # they become paths
            for name in (shard["name"], shard["snapshot"]):
                if not _SAFE.fullmatch(name):
                    raise ValueError(f"{name!r} cannot be the name of a shard or snapshot")
    except (ValueError, KeyError, TypeError) as error:
        raise IndexProblem(f"{shown} cannot be read ({error}).", remedy="Build the collection again.") from None
    return manifest


def shard_name(number: int) -> str:
    return f"shard-{number:05d}"


def manifest_text(shards: list[dict[str, Any]], analyzer: AnalyzerSpec, **notes: Any) -> str:
    from sdretrieval import __version__

    content = {
        "format": FORMAT, "created_by": f"sdretrieval {__version__}", "analyzer": analyzer.to_json(), **notes,
        "documents": sum(shard["documents"] for shard in shards), "shards": shards,
    }  # fmt: skip
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def write_manifest(folder: Path, shards: list[dict[str, Any]], analyzer: AnalyzerSpec, **notes: Any) -> None:
    with atomic_writer(folder / MANIFEST) as out:
        out.write(manifest_text(shards, analyzer, **notes))


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


class Shard:
    """A snapshot, where its words stand among those of all shards, and an engine with the statistics of all."""

    def __init__(self, snapshot: Snapshot, totals: Totals, number: int) -> None:
        self.snapshot, self.totals, self.number = snapshot, totals, number

    @cached_property
    def term_map(self) -> np.ndarray:
        """The number of each local term in the vocabulary of all shards."""
        return packed.places_in(self.snapshot.vocabulary, self.totals.vocabulary)

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


class Opened:
    """Shards that this process has open, the least used given up first."""

    def __init__(self, most: int = OPEN_SHARDS) -> None:
        self.most = most
        self._shards: OrderedDict[tuple[str, str, int], Shard] = OrderedDict()
        self._collections: dict[tuple[str, str, bool], OnDisk] = {}

    def get(
        self,
        place: str,
        fingerprint: str,
        number: int,
        *,
        with_totals: bool = True,
        opener: Callable[[], OnDisk] | None = None,
    ) -> Shard:
        """``opener`` brings the collection where ``place`` is no folder that could be opened here."""
        key = (place, fingerprint, number)
        if key not in self._shards:
            collection = self._collection(place, fingerprint, with_totals, opener)
            totals = collection.totals if with_totals else None
            shard = Shard(collection.snapshot(number), totals, number)  # type: ignore[arg-type]
            if not with_totals:
                return shard
            self._shards[key] = shard
            while len(self._shards) > self.most:
                self._shards.popitem(last=False)
        self._shards.move_to_end(key)
        return self._shards[key]

    def _collection(
        self, place: str, fingerprint: str, with_totals: bool, opener: Callable[[], OnDisk] | None
    ) -> OnDisk:
        key = (place, fingerprint, with_totals)  # what was sent to be summed brings no sums
        if key not in self._collections:
            try:
                collection = opener() if opener is not None else OnDisk(place)
            except IndexProblem as error:  # the driver has opened it
                raise SdretrievalError(
                    f"on a worker: {error.message}", remedy="It must be mounted at the same place on all machines."
                ) from None
            if collection.fingerprint != fingerprint:
                raise IndexProblem(
                    f"{place} was built anew while this command ran, or differs between machines",
                    remedy="Run the command again; the folder must be the same everywhere.",
                )
            self._collections[key] = collection
        return self._collections[key]


OPENED = Opened()
