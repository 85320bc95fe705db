"""A corpus to a sharded collection, in parallel: read where the files are, dealt by docid, indexed shard by shard.

    files ──read──▶ documents ──by hash of docid──▶ shards ──Anserini──▶ Lucene index ──▶ snapshot

A document's shard is told by its docid alone, so that the same docid twice, in whatever files, meets itself and is
found. Each shard is built in a folder of the attempt's own; the driver renames the attempts whose tasks were counted.
So a task that runs twice, or dies, leaves one whole shard or none. A build that was stopped goes on from shards that
are whole, in place or not (``resume``): that is told by the sizes in their own notes, for at an address renaming may be
no single step.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus.reading import Reader
from sdretrieval.collection.corpus.record import Document, Problems
from sdretrieval.core.errors import IndexProblem, InputError, ParameterError, SdretrievalError
from sdretrieval.index.commit import SEGMENTS, notes_in
from sdretrieval.index.index_notes import read_notes
from sdretrieval.index.lucene.indexing import build_index, nothing_to_index
from sdretrieval.index.positions import NAME, POSITIONS
from sdretrieval.plugins.spark.reading import Bad, Piece, Reading, list_files, plan
from sdretrieval.plugins.spark.runners import failure_of, plain_errors, unwrapped
from sdretrieval.plugins.spark.search import digest
from sdretrieval.plugins.spark.shards import MANIFEST, describe_shard, manifest_of, shard_entry, shard_name
from sdretrieval.plugins.spark.storage import (
    Hadoop,
    HadoopShell,
    Mounted,
    StorageProblem,
    is_address,
    place_of,
    scratch_folder,
)

MOST_SHARDS = 100_000
_LISTED = 20


@dataclass(frozen=True)
class Recipe:
    """How to read documents and to build shards; from ``mark`` on what only the workers are told."""

    place: str  # a folder or an address
    n_shards: int
    analyzer: AnalyzerSpec = field(default_factory=AnalyzerSpec)
    reading: dict[str, Any] = field(default_factory=dict)  # options of Reader
    building: dict[str, Any] = field(default_factory=dict)  # options of build_index
    skip_bad: bool = False
    mark: str = ""
    finished: frozenset[int] = frozenset()
    storage: HadoopShell | None = None  # for what lies at an address


@dataclass(frozen=True)
class BuildSummary:
    """What became of a corpus, or of the documents of a shard."""

    documents: int = 0
    tokens: int = 0
    undated: int = 0
    empty: int = 0
    skipped: int = 0
    skipped_list: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)  # files of no known format
    shards: list[dict[str, Any]] = field(default_factory=list)  # as the manifest has them
    reused: int = 0

    def plus(self, other: BuildSummary) -> BuildSummary:
        return BuildSummary(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @classmethod
    def of(cls, notes: dict[str, Any], shard: dict[str, Any], **more: Any) -> BuildSummary:
        """Of a shard, as the index's own notes tell."""
        names = ("documents", "tokens", "undated", "empty", "skipped", "skipped_list")
        return cls(**{name: notes["summary"][name] for name in names}, shards=[shard], **more)


def build_shards(
    context: Any,
    inputs: Iterable[str | os.PathLike[str]],
    recipe: Recipe,
    *,
    overwrite: bool = False,
    resume: bool = False,
) -> BuildSummary:
    """Read, deal, index; the manifest is written when every shard is there."""
    n_shards = recipe.n_shards
    if not 1 <= n_shards <= MOST_SHARDS:
        raise ParameterError(f"the number of shards must be from 1 to {MOST_SHARDS}, got {n_shards}")
    sources, where = [place_of(path) for path in inputs], place_of(recipe.place)
    Reader(**recipe.reading)  # what is wrong with the options is said now, not by each worker
    storage = Hadoop(context) if any(isinstance(place, str) for place in (where, *sources)) else None
    if storage is not None:
        sources = [storage.qualified(source) if isinstance(source, str) else source for source in sources]
        where = storage.qualified(where) if isinstance(where, str) else where
    where = where if isinstance(where, str) else where.absolute()
    target = Target(str(where), storage if storage is not None and isinstance(where, str) else Mounted())
    check_apart(where, sources)
    files = list_files(sources, where, storage, recipe.reading.get("glob"))
    stamps = [(file.place, file.size, file.modified) for file in files]
    mark = digest(stamps, n_shards, recipe.analyzer.to_json(), recipe.reading, recipe.building, recipe.skip_bad)
    target.check(overwrite=overwrite, resume=resume)
    finished = target.finished(n_shards, mark) if resume else {}
    target.begin(finished)
    shell = None if storage is None else storage.for_workers()
    recipe = replace(recipe, place=target.place, mark=mark, finished=frozenset(finished), storage=shell)
    tasks = plan(context, files, recipe.reading)
    documents = context.parallelize(tasks, max(len(tasks), 1)).flatMap(partial(_dealt, recipe))
    dealt = documents.repartitionAndSortWithinPartitions(n_shards, _shard_of_key)
    with plain_errors():
        answers = dealt.mapPartitionsWithIndex(_Building(recipe)).collect()
    summary = BuildSummary()
    for number, answer in enumerate(answers):
        attempt, built = unwrapped(answer)
        if built.shards:
            target.put_in_place(attempt, number)
        summary = summary.plus(finished.get(number, built))
    summary = replace(summary, skipped_list=sorted(summary.skipped_list)[:_LISTED], ignored=sorted(summary.ignored))
    _check_found(summary, recipe.reading.get("date"))
    target.finish(summary, recipe.analyzer, mark)
    return summary


def _check_found(summary: BuildSummary, date_field: str | None) -> None:
    if summary.documents == 0:
        raise nothing_to_index(summary.empty, summary.skipped, summary.skipped_list)
    if date_field and summary.undated == summary.documents:
        raise InputError(
            f"none of {summary.documents:,} documents has a field {date_field!r} with a date in it",
            remedy="Check --date-field, or leave it out.",
        )


def check_apart(target: Path | str, sources: list[Path | str]) -> None:
    """What stands in the target is replaced: it must hold nothing that is to be read."""
    for source in sources:
        if isinstance(source, Path):
            is_inside = isinstance(target, Path) and source.resolve().is_relative_to(target.resolve())
        else:
            is_inside = isinstance(target, str) and f"{source}/".startswith(f"{target}/")
        if is_inside:
            raise ParameterError(
                f"the collection {target} would be built over its own input {source}",
                remedy="Choose another folder with --index.",
            )


_SHARD = re.compile(r"\.?(shard-\d{5})(\.snapshot|\.attempt-[\w.-]+)?")
# With an ending: on its way to be written, or the checksum that Hadoop keeps beside it on a local disk.
_MANIFEST = re.compile(rf"\.?{re.escape(MANIFEST)}(\.[\w.]+)?")


def _is_ours(name: str, is_folder: bool) -> bool:
    if is_folder:
        return name == "statistics" or _SHARD.fullmatch(name) is not None
    return _MANIFEST.fullmatch(name) is not None


class Target:
    """Where a collection is built: workers leave attempts at shards there, the driver puts them in place."""

    def __init__(self, place: str, storage: Hadoop | Mounted) -> None:
        self.place, self.storage = place, storage

    def _found(self) -> dict[str, bool]:
        """The names there, and whether they are folders."""
        return {entry.name: entry.is_folder for entry in self.storage.listing(self.place)}

    def check(self, *, overwrite: bool, resume: bool) -> None:
        about = self.storage.status(self.place)
        found = self._found() if about is not None and about.is_folder else {}
        if about is not None and not (about.is_folder and all(_is_ours(*entry) for entry in found.items())):
            raise IndexProblem(
                f"{self.place} exists and is not a sharded collection.",
                remedy="Choose another name with --index; only a sharded collection is ever overwritten.",
            )
        if not found or overwrite or resume:
            return
        if MANIFEST not in found:
            told, remedy = "holds a build that was stopped.", "Pass --resume to go on, or --overwrite."
            raise IndexProblem(f"{self.place} {told}", remedy=remedy)
        remedy = "Pass --overwrite to replace it, or choose another name."
        raise IndexProblem(f"the collection {self.place} exists.", remedy=remedy)

    def finished(self, n_shards: int, mark: str) -> dict[int, BuildSummary]:
        """Shards in place that are whole, and whole attempts that no driver was left to put there."""
        names, whole = self._found(), {}
        for number in range(n_shards):
            name = shard_name(number)
            attempts = [other for other in names if other.startswith(f"{name}.attempt-")]
            for folder in [*([""] if name in names else []), *attempts]:
                found = self._whole(f"{self.place}/{folder}".rstrip("/"), number, mark)
                if found is not None:
                    whole[number] = found
                    if folder:
                        self.put_in_place(folder, number)
                    break
        return whole

    def _whole(self, folder: str, number: int, mark: str) -> BuildSummary | None:
        """What became of a shard's documents, where all of its files have the sizes that its notes say."""
        index = f"{folder}/{shard_name(number)}"
        try:
            sizes = {file.name: file.size for file in self.storage.listing(index)}
            [commit] = filter(SEGMENTS.fullmatch, sizes)
            notes = notes_in(self.storage.read(f"{index}/{commit}"), commit)
            size = sum(size for name, size in sizes.items() if name.startswith("_"))
            if notes["build"] != mark or size != notes["summary"]["bytes"]:
                return None
            for snapshot in self.storage.listing(f"{index}.snapshot"):
                inside = f"{index}.snapshot/{snapshot.name}"
                if self._sizes_are_told(inside, "snapshot.json") is not None:
                    about, places = notes["summary"], self._sizes_are_told(f"{inside}/{NAME}", POSITIONS.notes)
                    if places is None:
                        return None
                    has_positions = places["starts"] == 8 * (about["documents"] + 1)
                    shard = shard_entry(number, about["documents"], about["tokens"], snapshot.name, has_positions)
                    return BuildSummary.of(notes, shard, reused=1)
        except (StorageProblem, IndexProblem, ValueError, KeyError, TypeError, AttributeError):
            pass
        return None

    def _sizes_are_told(self, folder: str, notes: str) -> dict[str, int] | None:
        """The sizes of the arrays in a folder, where they are those in its notes."""
        told = json.loads(self.storage.read(f"{folder}/{notes}"))["sizes"]
        there = {file.name: file.size for file in self.storage.listing(folder)}
        return told if all(there.get(f"{name}.bin") == size for name, size in told.items()) else None

    def begin(self, keep: Iterable[int]) -> None:
        self.storage.make(self.place)
        self.storage.delete(f"{self.place}/{MANIFEST}")
        self.clear({shard_name(number) for number in keep})

    def put_in_place(self, attempt: str, number: int) -> None:
        for part in (shard_name(number), f"{shard_name(number)}.snapshot"):
            self.storage.delete(f"{self.place}/{part}")
            self.storage.rename(f"{self.place}/{attempt}/{part}", f"{self.place}/{part}")

    def finish(self, summary: BuildSummary, analyzer: AnalyzerSpec, mark: str) -> None:
        shards = {shard["name"] for shard in summary.shards}
        self.clear(shards)
        self.storage.write(f"{self.place}/{MANIFEST}", manifest_of(summary.shards, analyzer, build=mark))
        self.clear(shards)  # of attempts that came too late; those that come later still see the manifest and go

    def clear(self, keep: set[str]) -> None:
        """Of what is ours: what killed attempts left, shards of other builds, and sums, which are of them."""
        for name, is_folder in self._found().items():
            shard = _SHARD.fullmatch(name)
            is_kept = name == MANIFEST or (shard and shard[1] in keep and name in (shard[1], f"{shard[1]}.snapshot"))
            if _is_ours(name, is_folder) and not is_kept:
                self.storage.delete(f"{self.place}/{name}")


# -- on the workers ----------------------------------------------------------------------------------------------

Key = tuple[int, int, int]  # shard, piece of the corpus, place in it: documents of a shard come in the corpus's order


def shard_of(docid: str, n_shards: int) -> int:
    """The same on every machine and in every version of Python."""
    return zlib.crc32(docid.encode("utf-8", "surrogatepass")) % n_shards


def _shard_of_key(key: Key) -> int:
    return key[0]


def _dealt(recipe: Recipe, pieces: list[tuple[int, Piece]]) -> Iterator[tuple[Key, Document | Bad]]:
    """The pieces of a task to documents with the keys that bring them to their shards."""
    n, finished = recipe.n_shards, recipe.finished
    read = Reading(recipe.reading, recipe.skip_bad, recipe.storage)
    for place, (number, found) in enumerate(read(pieces)):
        shard = shard_of(found.docid if isinstance(found, Document) else found.error.message, n)
        if isinstance(found, Bad) and found.is_fatal:  # some shard that is to be built must hear of it
            shard = next((k for k in range(n) if k not in finished), shard)
        if shard not in finished:
            yield (shard, number, place), found


class _Building:
    """The documents of one shard to an index with its snapshot. Starts a JVM in the worker's process."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def __call__(self, number: int, pairs: Iterator[tuple[Key, Document | Bad]]) -> Iterator[Any]:
        """The attempt's name, and what became of the documents."""
        attempt = f"{shard_name(number)}.attempt-{os.urandom(8).hex()}"
        try:
            if number in self.recipe.finished:
                yield attempt, BuildSummary()  # the driver knows it
            else:
                yield attempt, self._build(attempt, number, (found for _, found in pairs))
        except (SdretrievalError, OSError) as error:
            yield failure_of(error)

    def _build(self, attempt: str, number: int, found: Iterator[Document | Bad]) -> BuildSummary:
        recipe = self.recipe
        if not is_address(recipe.place):
            return self._build_in(Path(recipe.place, attempt), number, found)
        with scratch_folder() as scratch:
            folder = Path(scratch, attempt)
            built = self._build_in(folder, number, found)
            if built.shards:
                assert recipe.storage is not None
                recipe.storage.put(folder, recipe.place)
                if recipe.storage.exists(f"{recipe.place}/{MANIFEST}"):  # another attempt at this shard was counted
                    recipe.storage.delete(f"{recipe.place}/{attempt}")
            return built

    def _build_in(self, folder: Path, number: int, found: Iterator[Document | Bad]) -> BuildSummary:
        recipe, problems, seen, ignored = self.recipe, Problems(skip=self.recipe.skip_bad), [0], []
        index = folder / shard_name(number)

        def documents() -> Iterator[Document]:
            """What is bad goes to the problems, which stop the build or count it."""
            for one in found:
                if isinstance(one, Document):
                    seen[0] += 1
                    yield one
                elif one.file:
                    ignored.append(one.file)
                elif isinstance(one.error, InputError) and not one.is_fatal:
                    problems.report(one.error)
                else:
                    raise one.error

        folder.mkdir()
        try:
            build_index(
                documents(),
                index,
                analyzer=recipe.analyzer,
                threads=1,
                problems=problems,
                notes={"build": recipe.mark},
                **recipe.building,
            )
            notes = read_notes(index)
            return BuildSummary.of(notes, describe_shard(folder, number), ignored=ignored)
        except (SdretrievalError, OSError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, InputError) and "no document to index" in error.message:
                skipped, listed = problems.count, problems.listed
                return BuildSummary(empty=seen[0], skipped=skipped, skipped_list=listed, ignored=ignored)
            raise
