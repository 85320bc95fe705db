"""A corpus to a sharded collection, in parallel: read where the files are, dealt by docid, indexed shard by shard.

    files ──read──▶ documents ──by hash of docid──▶ shards ──Anserini──▶ Lucene index ──▶ snapshot

A document's shard is told by its docid alone, so that the same docid twice, in whatever files, meets itself and is
found. Each shard is built in a folder of the attempt's own and renamed when complete: a task that runs twice, or dies,
leaves one whole shard or none. Shards carry a mark of what they were built from, and a build that was stopped goes on
from those that are there (``resume``).
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.reading import Reader
from sdretrieval.corpus.record import Document
from sdretrieval.corpus.sources import _file_or_members, _walk
from sdretrieval.errors import IndexProblem, InputError, ParameterError, SdretrievalError
from sdretrieval.integrations.spark.batches import digest
from sdretrieval.integrations.spark.runners import Failure, _unwrapped
from sdretrieval.integrations.spark.shards import MANIFEST, describe_shard, shard_name, write_manifest
from sdretrieval.lucene.analysis import AnalyzerSpec, read_notes
from sdretrieval.lucene.indexing import build_index

MOST_SHARDS = 100_000
_LISTED = 20


@dataclass(frozen=True)
class Recipe:
    """Everything that the workers need to know to read documents and to build shards."""

    folder: str
    n_shards: int
    analyzer: AnalyzerSpec = field(default_factory=AnalyzerSpec)
    reading: dict[str, Any] = field(default_factory=dict)  # options of Reader
    building: dict[str, Any] = field(default_factory=dict)  # options of build_index
    skip_bad: bool = False
    mark: str = ""
    finished: frozenset[int] = frozenset()


@dataclass
class BuildSummary:
    """What became of a corpus."""

    documents: int = 0
    tokens: int = 0
    undated: int = 0
    empty: int = 0
    skipped: int = 0
    skipped_list: list[str] = field(default_factory=list)
    shards: int = 0
    reused: int = 0
    ignored: list[str] = field(default_factory=list)


def build_shards(
    context: Any,
    inputs: Iterable[str | os.PathLike[str]],
    folder: str | os.PathLike[str],
    n_shards: int,
    *,
    analyzer: AnalyzerSpec | None = None,
    reading: dict[str, Any] | None = None,
    building: dict[str, Any] | None = None,
    skip_bad: bool = False,
    overwrite: bool = False,
    resume: bool = False,
) -> BuildSummary:
    """Read, deal, index; the manifest is written when every shard is there."""
    if not 1 <= n_shards <= MOST_SHARDS:
        raise ParameterError(f"the number of shards must be from 1 to {MOST_SHARDS}, got {n_shards}")
    target = Path(folder).absolute()
    files = list_files([Path(path) for path in inputs], exclude=target)
    analyzer = analyzer or AnalyzerSpec()
    stamps = [(name, Path(name).stat().st_size, Path(name).stat().st_mtime_ns) for name, _ in files]
    mark = digest(stamps, n_shards, analyzer.to_json(), reading or {}, building or {}, skip_bad)
    finished = _finished(target, n_shards, mark) if resume else set()
    _check_folder(target, overwrite=overwrite, resume=resume)
    target.mkdir(parents=True, exist_ok=True)
    (target / MANIFEST).unlink(missing_ok=True)
    for stale in _leftovers(target, keep={shard_name(n) for n in finished}):
        shutil.rmtree(stale, ignore_errors=True)
    recipe = Recipe(str(target), n_shards, analyzer, reading or {}, building or {}, skip_bad, mark, frozenset(finished))
    documents = context.parallelize(list(enumerate(files)), max(len(files), 1)).flatMap(_Reading(recipe))
    dealt = documents.repartitionAndSortWithinPartitions(n_shards, _shard_of_key)
    answers = dealt.mapPartitionsWithIndex(_Building(recipe)).collect()
    entries = [_unwrapped(answer) for answer in answers]
    summary = _summary(entries, finished)
    if summary.documents == 0:
        first = f"; the first: {summary.skipped_list[0]}" if summary.skipped_list else ""
        raise InputError(
            f"the corpus has no document to index ({summary.empty} empty, {summary.skipped} skipped as bad{first}).",
            remedy="Check the input and --format.",
        )
    if recipe.reading.get("date") and summary.undated == summary.documents:
        raise InputError(
            f"none of {summary.documents:,} documents has a field {recipe.reading['date']!r} with a date in it",
            remedy="Check --date-field, or leave it out.",
        )
    shards = [entry["shard"] for entry in entries if entry["shard"] is not None]
    write_manifest(target, shards, analyzer, build=mark)
    for stale in _leftovers(target, keep={shard["name"] for shard in shards}):
        shutil.rmtree(stale, ignore_errors=True)
    return summary


def list_files(inputs: list[Path], exclude: Path) -> list[tuple[str, str]]:
    """Every file below the inputs, and its name relative to the input: what is read in parallel."""
    found: list[tuple[str, str]] = []
    for path in inputs:
        if path.is_dir():
            files = [(str(file.absolute()), file.relative_to(path).as_posix()) for file in _walk(path, (exclude,))]
            if not files:
                raise InputError("no file in it", file=path, remedy="Check the path.")
            found += files
        elif path.exists():
            found.append((str(path.absolute()), path.name))
        else:
            raise InputError("no such file or folder", file=path, remedy="Check the path given with --input.")
    return found


def _check_folder(target: Path, *, overwrite: bool, resume: bool) -> None:
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    ours = target.is_dir() and all(
        path.name in (MANIFEST, "statistics") or path.name.lstrip(".").startswith("shard-") for path in target.iterdir()
    )
    if not ours:
        raise IndexProblem(
            f"{target} exists and is not a sharded collection.",
            remedy="Choose another name with --index; only a sharded collection is ever overwritten.",
        )
    if not overwrite and not resume:
        remedy = "Pass --overwrite to replace it, or choose another name."
        told = f"the collection {target} exists."
        if not (target / MANIFEST).exists():
            told, remedy = f"{target} holds a build that was stopped.", "Pass --resume to go on, or --overwrite."
        raise IndexProblem(told, remedy=remedy)


def _finished(target: Path, n_shards: int, mark: str) -> set[int]:
    """Shards that an earlier, stopped build of the same corpus has finished."""
    done = set()
    for number in range(n_shards):
        try:
            if read_notes(target / shard_name(number)).get("build") == mark:
                done.add(number)
        except SdretrievalError:
            continue
    return done


def _leftovers(target: Path, keep: set[str]) -> Iterator[Path]:
    """What attempts left that were killed, and shards of other builds."""
    for path in list(target.iterdir()):
        name = path.name
        if (
            name.startswith(".")
            or ".attempt-" in name
            or (name.startswith("shard-") and name.removesuffix(".snapshot") not in keep)
        ):
            yield path


def _summary(entries: list[dict[str, Any]], finished: set[int]) -> BuildSummary:
    total = BuildSummary(reused=len(finished))
    for entry in entries:
        for name in ("documents", "tokens", "undated", "empty", "skipped"):
            setattr(total, name, getattr(total, name) + entry[name])
        total.skipped_list += entry["skipped_list"]
        total.ignored += entry["ignored"]
        total.shards += entry["shard"] is not None
    total.skipped_list = sorted(total.skipped_list)[:_LISTED]
    total.ignored = sorted(total.ignored)
    return total


# -- on the workers ----------------------------------------------------------------------------------------------

Key = tuple[int, int, int]  # shard, file, place in the file: documents of a shard come in the corpus's order


def shard_of(docid: str, n_shards: int) -> int:
    """The same on every machine and in every version of Python."""
    return zlib.crc32(docid.encode("utf-8", "surrogatepass")) % n_shards


def _shard_of_key(key: Key) -> int:
    return key[0]


@dataclass(frozen=True)
class _Bad:
    """Something that could not be read: it travels with the documents, so that it is counted once."""

    error: InputError
    ignored: bool = False  # a file of no known format


class _Noting(Problems):
    """Problems set aside, to be sent on."""

    def __init__(self, skip: bool) -> None:
        super().__init__(skip=skip)
        self.waiting: list[InputError] = []

    def report(self, error: InputError) -> None:
        if not self.skip:
            raise error
        self.waiting.append(error)


class _Reading:
    """A file to documents with the keys that bring them to their shards."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def __call__(self, item: tuple[int, tuple[str, str]]) -> Iterator[tuple[Key, Document | _Bad]]:
        number, (file, relative) = item
        n = self.recipe.n_shards
        for place, found in enumerate(self._documents(file, relative)):
            text = found.docid if isinstance(found, Document) else found.error.message
            shard = shard_of(text, n)
            if shard not in self.recipe.finished:
                yield (shard, number, place), found

    def _documents(self, file: str, relative: str) -> Iterator[Document | _Bad]:
        problems = _Noting(self.recipe.skip_bad)
        reader = Reader(**self.recipe.reading, problems=problems)
        sources = _file_or_members(Path(file), relative, problems, reader.glob, reader.max_member_bytes)
        try:
            for source in sources:
                try:
                    kind = reader._format_of(source)
                    if kind is None:
                        yield _Bad(InputError("is of no known format", file=source.name), ignored=True)
                        continue
                    for document in reader._documents(source, kind):
                        yield from map(_Bad, problems.waiting)
                        problems.waiting.clear()
                        yield document
                except UnicodeError as error:
                    told = f"not {reader.encoding} text ({error})"
                    problems.report(InputError(told, file=source.name, remedy="Name it with --encoding."))
                finally:
                    source.close()
                yield from map(_Bad, problems.waiting)
                problems.waiting.clear()
        except InputError as error:
            yield _Bad(error)


class _Building:
    """The documents of one shard to an index with its snapshot. Starts a JVM in the worker's process."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def __call__(self, number: int, pairs: Iterator[tuple[Key, Document | _Bad]]) -> Iterator[Any]:
        try:
            yield self._build(number, (found for _, found in pairs))
        except SdretrievalError as error:
            yield Failure(error)

    def _build(self, number: int, found: Iterator[Document | _Bad]) -> dict[str, Any]:
        recipe, folder = self.recipe, Path(self.recipe.folder)
        target = folder / shard_name(number)
        entry: dict[str, Any] = {
            "shard": None, "documents": 0, "tokens": 0, "undated": 0, "empty": 0, "skipped": 0, "skipped_list": [],
            "ignored": [],
        }  # fmt: skip
        if read_notes(target).get("build") != recipe.mark:
            problems = Problems(skip=recipe.skip_bad)
            documents = _Sorting(found, problems, entry["ignored"])
            if not documents.any():
                entry.update(skipped=problems.count, skipped_list=problems.listed)
                return entry
            attempt = target.with_name(f"{target.name}.attempt-{os.getpid()}-{os.urandom(4).hex()}")
            try:
                try:
                    summary = build_index(
                        iter(documents), attempt, analyzer=recipe.analyzer, threads=1, problems=problems,
                        notes={"build": recipe.mark}, **recipe.building,
                    )  # fmt: skip
                except InputError as error:
                    if "no document to index" not in error.message:
                        raise
                    entry.update(skipped=problems.count, skipped_list=problems.listed, empty=documents.seen)
                    return entry
                _rename(attempt, target, recipe.mark)
            finally:
                shutil.rmtree(attempt, ignore_errors=True)
            del summary
        entry["shard"] = describe_shard(folder, number)
        notes = json.loads((target / "sdretrieval.json").read_text(encoding="utf-8"))["summary"]
        entry.update({name: notes[name] for name in ("documents", "tokens", "undated", "empty", "skipped")})
        entry["skipped_list"] = notes["skipped_list"]
        return entry


class _Sorting:
    """Documents of a shard; what is bad goes to the problems, which stop the build or count it."""

    def __init__(self, found: Iterator[Document | _Bad], problems: Problems, ignored: list[str]) -> None:
        self.found, self.problems, self.ignored, self.seen = found, problems, ignored, 0
        self.first: Document | None = None

    def any(self) -> bool:
        self.first = next(self._documents(), None)
        return self.first is not None

    def __iter__(self) -> Iterator[Document]:
        if self.first is not None:
            self.seen += 1
            yield self.first
        for document in self._documents():
            self.seen += 1
            yield document

    def _documents(self) -> Iterator[Document]:
        for found in self.found:
            if isinstance(found, Document):
                yield found
            elif found.ignored:
                self.ignored.append(str(found.error.file))
            else:
                self.problems.report(found.error)


def _rename(attempt: Path, target: Path, mark: str) -> None:
    """Whoever comes second finds a whole shard of the same build there, and discards their own."""
    try:
        attempt.rename(target)
    except OSError:
        if read_notes(target).get("build") == mark:
            return
        shutil.rmtree(target, ignore_errors=True)  # of another build
        attempt.rename(target)
