"""A corpus to documents, in parallel: files listed on the driver, read by tasks of about the same size.

Small files share a task. A large uncompressed file of JSON lines is cut at line ends into pieces, which read as the
whole would: lines are counted first, a task for each file, so that documents and errors are told by the file's own line
numbers. Files at an address are fetched by the task that reads them, and removed after.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from sdretrieval.collection.corpus.reading import Reader
from sdretrieval.collection.corpus.record import Document, Problems
from sdretrieval.collection.corpus.sources import Source, archive_suffix, is_wanted, sources_in, walk
from sdretrieval.core.errors import InputError, SdretrievalError
from sdretrieval.plugins.spark.runners import WorkerProblem, plain_errors
from sdretrieval.plugins.spark.storage import Hadoop, HadoopShell, StorageProblem, last_name, scratch_folder

SPLIT = 64 << 20  # bytes that a task reads, at most where a file can be cut
SMALLEST = 1 << 20  # smaller pieces cost more to start than to read
FILES_AT_ONCE = 256  # that a task fetches and reads


# -- on the driver -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """A file of the corpus. ``relative``: its name below the input."""

    place: str
    relative: str
    size: int
    modified: int
    is_remote: bool = False


@dataclass(frozen=True)
class Piece:
    """A file, or the lines of it between two places."""

    file: File
    span: tuple[int, int] | None = None  # bytes, from the begin of a line to the end of one
    lines: int = 0  # before it

    @property
    def size(self) -> int:
        return self.file.size if self.span is None else self.span[1] - self.span[0]


def list_files(
    inputs: Sequence[Path | str], exclude: Path | str, storage: Hadoop | None = None, glob: str | None = None
) -> list[File]:
    """Every file below the inputs, in the order of names: what is read in parallel."""
    found: list[File] = []
    for given in inputs:
        if isinstance(given, str):
            assert storage is not None
            files = list(_remote_files(given, storage, exclude))
            found += [file for file in files if archive_suffix(file.relative) or is_wanted(file.relative, glob)]
        elif given.exists():
            left_out = (exclude,) if isinstance(exclude, Path) else ()
            paths = walk(given, left_out) if given.is_dir() else [given]
            files = [_local_file(file, given if given.is_dir() else given.parent) for file in paths]
            found += files
        else:
            raise InputError("no such file or folder", file=given, remedy="Check the path.")
        if not files:
            raise InputError("no file in it", file=given, remedy="Check the path.")
    return found


def _local_file(file: Path, root: Path) -> File:
    try:
        about = file.stat()
    except OSError as error:
        told = "a link to nothing" if file.is_symlink() else error.strerror
        raise InputError(f"cannot be read: {told}", file=file, remedy="Take it away, or bring it back.") from None
    return File(str(file.absolute()), file.relative_to(root).as_posix(), about.st_size, about.st_mtime_ns)


def _remote_files(address: str, storage: Hadoop, exclude: Path | str) -> Iterator[File]:
    about = storage.status(address)
    if about is None:
        raise InputError("no such file or folder", file=address, remedy="Check the address.")
    if not about.is_folder:
        yield File(address, about.name, about.size, about.modified, True)
        return
    waiting = [(address, "")]
    while waiting:
        folder, below = waiting.pop()
        entries = [entry for entry in storage.listing(folder) if not entry.name.startswith(".")]
        for entry in entries:
            if not entry.is_folder:
                yield File(f"{folder}/{entry.name}", below + entry.name, entry.size, entry.modified, True)
        inner = [entry.name for entry in entries if entry.is_folder and f"{folder}/{entry.name}" != exclude]
        waiting += [(f"{folder}/{name}", f"{below}{name}/") for name in reversed(inner)]


def plan(context: Any, files: Sequence[File], reading: dict[str, Any]) -> list[list[tuple[int, Piece]]]:
    """Numbered pieces for each task, in the corpus's order."""
    share = sum(file.size for file in files) // (4 * max(context.defaultParallelism, 1))
    goal = min(SPLIT, max(share, SMALLEST))
    large = {i: file for i, file in enumerate(files) if file.size > goal and is_splittable(file, reading)}
    pieces = {}
    if large:
        with plain_errors():
            found = context.parallelize(list(large.values()), len(large)).map(partial(cut, goal)).collect()
        pieces = dict(zip(large, found, strict=True))
    return _tasks([piece for i, file in enumerate(files) for piece in pieces.get(i, [Piece(file)])], goal)


def _tasks(pieces: list[Piece], goal: int) -> list[list[tuple[int, Piece]]]:
    tasks: list[list[tuple[int, Piece]]] = []
    size = 0
    for number, piece in enumerate(pieces):
        if not tasks or size + piece.size > goal or len(tasks[-1]) >= FILES_AT_ONCE:
            tasks.append([])
            size = 0
        tasks[-1].append((number, piece))
        size += piece.size
    return tasks


def is_splittable(file: File, reading: dict[str, Any]) -> bool:
    """Whether a line of the file is a document, and a byte 10 the end of a line."""
    suffix = Path(file.relative.lower()).suffix
    if file.is_remote or reading.get("format", "auto") not in ("auto", "jsonl") or suffix not in (".jsonl", ".ndjson"):
        return False
    encoding = codecs.lookup(reading.get("encoding") or "utf-8").name
    if not re.fullmatch(r"utf-8|ascii|iso8859-\d+|cp125\d", encoding):
        return False
    try:
        with open(file.place, "rb") as stream:
            head = stream.read(6)
    except OSError:  # the task that reads it says what is wrong
        return False
    return not head.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x1f\x9d"))


# -- on the workers ----------------------------------------------------------------------------------------------


@contextmanager
def _mounted() -> Iterator[None]:
    """Around the reading of files: what this machine does not see may be mounted on another."""
    try:
        yield
    except (SdretrievalError, OSError) as error:
        raise WorkerProblem(error) from None


def cut(goal: int, file: File) -> list[Piece]:
    """A file to pieces of about ``goal`` bytes that end where lines end, and how many lines come before each."""
    pieces, start, lines = [], 0, 0
    with _mounted(), open(file.place, "rb") as stream:
        while block := stream.read(goal) + stream.readline():
            pieces.append(Piece(file, (start, start + len(block)), lines))
            start, lines = start + len(block), lines + block.count(b"\n")
    return pieces


@dataclass(frozen=True)
class Bad:
    """Something that could not be read: it travels with the documents, so that it is counted once."""

    error: SdretrievalError
    file: str = ""  # of no known format, and so ignored
    is_fatal: bool = False  # nothing that --skip-bad is about


class _Noting(Problems):
    """Problems set aside, to be sent on."""

    def __init__(self, skip: bool) -> None:
        super().__init__(skip=skip)
        self.waiting: list[Bad] = []

    def report(self, error: InputError) -> None:
        if not self.skip:
            raise error
        self.waiting.append(Bad(error))

    def taken(self) -> Iterator[Bad]:
        while self.waiting:
            yield self.waiting.pop(0)


class Reading:
    """The pieces of a task to documents."""

    def __init__(self, reading: dict[str, Any], skip_bad: bool, storage: HadoopShell | None = None) -> None:
        self.reading, self.skip_bad, self.storage = reading, skip_bad, storage

    def __call__(self, pieces: Sequence[tuple[int, Piece]]) -> Iterator[tuple[int, Document | Bad]]:
        """With the number of the piece that each comes from. What another machine might read leaves the task."""
        with _mounted(), scratch_folder() as scratch:
            remote = [piece.file.place for _, piece in pieces if piece.file.is_remote]
            try:
                fetched = self._fetch(remote, Path(scratch))
            except StorageProblem as error:
                if not error.missing:
                    raise
                yield pieces[0][0], Bad(error, is_fatal=True)
                return
            for number, piece in pieces:
                local = fetched.get(piece.file.place, Path(piece.file.place))
                for found in self.documents(piece, local):
                    yield number, found

    def _fetch(self, addresses: list[str], scratch: Path) -> dict[str, Path]:
        """In as few calls of the client as there are files of one name: a call is a start of Java."""
        calls: dict[int, list[str]] = {}
        seen: Counter[str] = Counter()
        for address in dict.fromkeys(addresses):
            calls.setdefault(seen[last_name(address)], []).append(address)
            seen[last_name(address)] += 1
        for k, together in calls.items():
            (scratch / str(k)).mkdir()
            self.storage.get(together, scratch / str(k))  # type: ignore[union-attr]
        return {address: scratch / str(k) / last_name(address) for k, some in calls.items() for address in some}

    def documents(self, piece: Piece, local: Path) -> Iterator[Document | Bad]:
        problems = _Noting(self.skip_bad)
        reader = Reader(**self.reading, problems=problems)
        try:
            for source in _sources(piece, local, reader):
                for document in reader.documents_in(source):
                    yield from problems.taken()
                    yield document
                yield from problems.taken()
            yield from problems.taken()  # of the archive itself
        except InputError as error:
            yield Bad(error)
        for name in reader.ignored:
            yield Bad(InputError("is of no known format", file=name), file=name)


def _sources(piece: Piece, local: Path, reader: Reader) -> Iterator[Source]:
    """Names and line numbers are as the user knows them: of the file, not of a piece of it or of a copy."""
    file, span = piece.file, piece.span
    if span is None:
        yield from sources_in(local, file.relative, reader.problems, reader.glob, reader.max_member_bytes, file.place)
    elif is_wanted(file.relative, reader.glob):
        before = piece.lines - 1 if span[0] > 0 else 0  # it begins with the end of the line before: see _lines
        yield Source(file.place, file.relative, lambda: _lines(local, span), lines_before=before)


def _lines(file: Path, span: tuple[int, int]) -> IO[bytes]:
    """The bytes of a piece, from the end of the line before it on.

    So a piece never begins with what has a meaning at the begin of a file: a byte order mark, marks of compression.
    """
    start = max(span[0] - 1, 0)
    with open(file, "rb") as stream:
        stream.seek(start)
        return io.BytesIO(stream.read(span[1] - start))
