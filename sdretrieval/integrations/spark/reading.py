"""A corpus to documents, in parallel: files listed on the driver, read by tasks of about the same size.

Small files share a task. A large uncompressed file of JSON lines is cut at line ends into pieces, which read as the
whole would: lines are counted first, in parallel too, so that documents and errors are told by the file's own line
numbers. Files at an address are fetched by the task that reads them, and removed after.
"""

from __future__ import annotations

import codecs
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.reading import Reader
from sdretrieval.corpus.record import Document
from sdretrieval.corpus.sources import Source, _file_or_members, _walk, _wanted, archive_suffix
from sdretrieval.errors import InputError, SdretrievalError
from sdretrieval.integrations.spark.runners import Passing, told_plainly
from sdretrieval.integrations.spark.storage import Hadoop, HadoopShell, StorageProblem, last_name, scratch_folder

SPLIT = 64 << 20  # bytes that a task reads, at most where a file can be cut
SMALLEST = 1 << 20  # smaller pieces cost more to start than to read
FILES_AT_ONCE = 256  # that a task fetches and reads
_BLOCK = 1 << 20


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
            found += [file for file in files if archive_suffix(file.relative) or _wanted(file.relative, glob)]
        elif given.is_dir():
            left_out = (exclude,) if isinstance(exclude, Path) else ()
            files = [_local_file(file, file.relative_to(given).as_posix()) for file in _walk(given, left_out)]
            found += files
        elif given.exists():
            files = [_local_file(given, given.name)]
            found += files
        else:
            raise InputError("no such file or folder", file=given, remedy="Check the path given with --input.")
        if not files:
            raise InputError("no file in it", file=given, remedy="Check the path.")
    return found


def _local_file(file: Path, relative: str) -> File:
    try:
        about = file.stat()
    except OSError as error:
        told = "a link to nothing" if file.is_symlink() else error.strerror
        raise InputError(f"cannot be read: {told}", file=file, remedy="Take it away, or bring it back.") from None
    return File(str(file.absolute()), relative, about.st_size, about.st_mtime_ns)


def _remote_files(address: str, storage: Hadoop, exclude: Path | str) -> Iterator[File]:
    about = storage.status(address)
    if about is None:
        raise InputError("no such file or folder", file=address, remedy="Check the address given with --input.")
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
    large = {i: file.place for i, file in enumerate(files) if file.size > goal and is_splittable(file, reading)}
    spans = [(i, start, end) for i in large for start, end in _cuts(files[i].size, goal)]
    by_file: dict[int, list[tuple[int, int, int]]] = {}
    if spans:  # collect keeps their order
        with told_plainly():
            measured = context.parallelize(spans, len(spans)).map(_Measuring(large)).collect()
        for i, start, end, lines in measured:
            by_file.setdefault(i, []).append((start, end, lines))
    pieces: list[Piece] = []
    for i, file in enumerate(files):
        if i not in by_file:
            pieces.append(Piece(file))
            continue
        before = 0
        for start, end, lines in by_file[i]:
            if start < end:
                pieces.append(Piece(file, (start, end), before))
            before += lines
    return _tasks(pieces, goal)


def _cuts(size: int, goal: int) -> list[tuple[int, int]]:
    n = -(-size // goal)
    edges = [size * k // n for k in range(n + 1)]
    return list(pairwise(edges))


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
        raise Passing(error) from None


class _Measuring:
    """The lines that begin between two places of a file: their first and last byte, and how many they are."""

    def __init__(self, places: dict[int, str]) -> None:
        self.places = places

    def __call__(self, span: tuple[int, int, int]) -> tuple[int, int, int, int]:
        number, start, end = span
        with _mounted(), open(self.places[number], "rb") as stream:
            first, last = _line_begin(stream, start), _line_begin(stream, end)
            stream.seek(first)
            left, lines = last - first, 0
            while left > 0 and (block := stream.read(min(left, _BLOCK))):
                lines += block.count(b"\n")
                left -= len(block)
        return number, first, last, lines


def _line_begin(stream: IO[bytes], place: int) -> int:
    """The first line that begins at a place or after it; the end of the file where none does."""
    if place == 0:
        return 0
    stream.seek(place - 1)
    while block := stream.readline(_BLOCK):
        if block.endswith(b"\n"):
            break
    return stream.tell()


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
        self.waiting: list[InputError] = []

    def report(self, error: InputError) -> None:
        if not self.skip:
            raise error
        self.waiting.append(error)

    def taken(self) -> list[InputError]:
        waiting, self.waiting = self.waiting, []
        return waiting


class Reading:
    """The pieces of a task to documents."""

    def __init__(self, reading: dict[str, Any], skip_bad: bool, storage: HadoopShell | None = None) -> None:
        self.reading, self.skip_bad, self.storage = reading, skip_bad, storage

    def __call__(self, pieces: Sequence[tuple[int, Piece]]) -> Iterator[tuple[int, Document | Bad]]:
        """With the number of the piece that each comes from. What another machine might read leaves the task."""
        with ExitStack() as cleanup:
            fetched: dict[str, Path] = {}
            remote = [piece.file.place for _, piece in pieces if piece.file.is_remote]
            left = Counter(remote)
            cleanup.enter_context(_mounted())
            if remote:
                try:
                    fetched = self._fetch(remote, cleanup.enter_context(scratch_folder()))
                except StorageProblem as error:
                    if not error.missing:
                        raise
                    yield pieces[0][0], Bad(error, is_fatal=True)
                    return
            for number, piece in pieces:
                local = fetched.get(piece.file.place, Path(piece.file.place))
                for found in self.documents(piece, local):
                    yield number, found
                left[piece.file.place] -= 1
                if left[piece.file.place] == 0:
                    local.unlink(missing_ok=True)

    def _fetch(self, addresses: list[str], scratch: Path) -> dict[str, Path]:
        """In as few calls of the client as there are files of one name: a call is a start of Java."""
        assert self.storage is not None
        calls: list[list[str]] = []
        seen: Counter[str] = Counter()
        for address in dict.fromkeys(addresses):
            k = seen[last_name(address)]
            seen[last_name(address)] += 1
            if k == len(calls):
                calls.append([])
            calls[k].append(address)
        found: dict[str, Path] = {}
        for k, together in enumerate(calls):
            folder = scratch / str(k)
            folder.mkdir()
            self.storage.get(together, folder)
            found.update({address: folder / last_name(address) for address in together})
        return found

    def documents(self, piece: Piece, local: Path) -> Iterator[Document | Bad]:
        problems = _Noting(self.skip_bad)
        reader = Reader(**self.reading, problems=problems)
        told = _Telling(piece, local)
        try:
            for source in self._sources(piece, local, reader, problems):
                source.name = told.name(source.name)
                try:
                    kind = reader._format_of(source)
                    if kind is None:
                        yield Bad(InputError("is of no known format", file=source.name), file=source.name)
                        continue
                    for document in reader._documents(source, kind):
                        yield from map(told.bad, problems.taken())
                        yield told.document(document)
                except UnicodeError as error:
                    text = f"not {reader.encoding} text ({error})"
                    problems.report(InputError(text, file=source.name, remedy="Name it with --encoding."))
                except InputError as error:  # of this member of an archive; others may be sound
                    problems.report(error)
                finally:
                    source.close()
                yield from map(told.bad, problems.taken())
            yield from map(told.bad, problems.taken())  # of the archive itself
        except InputError as error:
            yield told.bad(error)

    def _sources(self, piece: Piece, local: Path, reader: Reader, problems: Problems) -> Iterator[Source]:
        if piece.span is None:
            return _file_or_members(local, piece.file.relative, problems, reader.glob, reader.max_member_bytes)
        wanted = _wanted(piece.file.relative, reader.glob)
        return iter([Source(str(local), piece.file.relative, lambda: _lines(local, piece.span))] if wanted else [])  # type: ignore[arg-type]


class _Telling:
    """Names and line numbers as the user knows them: of the file, not of a piece of it or of a copy."""

    def __init__(self, piece: Piece, local: Path) -> None:
        self.place, self.local = piece.file.place, str(local)
        # A piece that does not begin the file begins with the end of the line before: see _lines.
        self.before = piece.lines - 1 if piece.span is not None and piece.span[0] > 0 else 0
        self.changes = self.before != 0 or self.place != self.local

    def name(self, name: str) -> str:
        return self.place + name.removeprefix(self.local) if name.startswith(self.local) else name

    def document(self, document: Document) -> Document:
        if self.before and document.line is not None:
            return replace(document, line=document.line + self.before)
        return document

    def bad(self, error: InputError) -> Bad:
        if not self.changes or error.file is None:
            return Bad(error)
        old = f"{error.file}:" + ("" if error.line is None else f"{error.line}:") + " "
        line = None if error.line is None else error.line + self.before
        told = InputError(error.message.removeprefix(old), file=self.name(error.file), line=line, remedy=error.remedy)
        return Bad(told)


def _lines(file: Path, span: tuple[int, int]) -> IO[bytes]:
    """The bytes of a piece, from the end of the line before it on.

    So a piece never begins with what has a meaning at the begin of a file: a byte order mark, marks of compression.
    """
    start, end = span
    return io.BufferedReader(_Window(file, max(start - 1, 0), end), _BLOCK)


class _Window(io.RawIOBase):
    """A file between two places."""

    def __init__(self, file: Path, start: int, end: int) -> None:
        self.stream = open(file, "rb", buffering=0)  # noqa: SIM115 - closed with the window
        self.stream.seek(start)
        self.left = end - start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        got = self.stream.readinto(memoryview(buffer)[: self.left]) or 0
        self.left -= got
        return got

    def close(self) -> None:
        self.stream.close()
        super().close()
