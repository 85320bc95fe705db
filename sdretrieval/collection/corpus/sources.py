"""Files to read: single files, folders, and members of archives, compressed or not, as streams.

Nothing is ever extracted to disk, so no archive member can land outside its folder. Members that claim to
(absolute or ``..`` names) are refused all the same, links and devices are passed over, and a member that
grows beyond ``max_member_bytes`` on decompression is an error.

Archives are read to their end: every member of a compressed stream, its checksums, and tars one after the other. What
Python's own tar reader takes for the end (a damaged header, a cut) is an error here.
"""

from __future__ import annotations

import errno
import io
import lzma
import os
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from sdretrieval.collection.corpus.record import Problems
from sdretrieval.core.compressed import HARMLESS, MOST_TIMES, DamagedData, decompressed
from sdretrieval.core.errors import InputError

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".zip")
COMPRESSED = (".gz", ".bz2", ".xz")
MAX_MEMBER_BYTES = 4 << 30
# A JSON line holds a document with its escapes and other fields; beyond this it is no line but a mistake.
LONGEST_LINE = 128 << 20
LARGEST_TAR_NOTE = 1 << 20  # a member's long name, or its other attributes
# What reading damaged data raises. zipfile has no end of these: RuntimeError also where it does not know a compression.
_DAMAGED = (DamagedData, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError, OverflowError)
_DAMAGED_ARCHIVE = (*_DAMAGED, ValueError, RuntimeError, struct.error, IndexError, KeyError)


ENCODING_REMEDY = "Name the encoding the file is in, e.g. --encoding latin-1, or pass --skip-bad."
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")


@dataclass
class Source:
    """One file's worth of text. ``name`` is for people (``docs.tar.gz!a/b.html``), ``relative`` for ids."""

    name: str
    relative: str
    opener: Callable[[], IO[bytes]]
    encoding: str = "utf-8"
    problems: Problems = field(default_factory=Problems)
    lines_before: int = 0  # of a piece of a file: lines of the file that come before it
    _peeked: IO[bytes] | None = None  # a member of a streamed archive can be opened only once
    _raw: IO[bytes] | None = None  # what decompression reads from, and does not close

    def error(self, message: str, line: int | None = None, remedy: str | None = None) -> InputError:
        return InputError(message, file=self.name, line=line, remedy=remedy)

    def report(self, message: str, line: int | None = None, remedy: str | None = None) -> None:
        """Say what is wrong with the file: an error, or noted where bad documents are skipped."""
        self.problems.report(self.error(message, line, remedy))

    @property
    def suffix(self) -> str:
        """The extension that tells the format: that of ``a.jsonl.gz`` is ``.jsonl``."""
        path = PurePosixPath(self.relative.lower())
        return PurePosixPath(path.stem).suffix if path.suffix in COMPRESSED else path.suffix

    @property
    def stem(self) -> str:
        """The file's name without folder, compression and extension."""
        name = PurePosixPath(self.relative).name
        for ending in (*COMPRESSED, self.suffix):
            if ending and name.lower().endswith(ending):
                name = name[: -len(ending)]
        return name

    @contextmanager
    def binary(self) -> Iterator[IO[bytes]]:
        """The decompressed bytes; damage inside the ``with`` becomes an InputError."""
        with self._errors_named():
            stream, self._peeked = self._peeked or self._open(), None
            try:
                yield stream
            finally:
                stream.close()

    def head(self, size: int = 4096) -> bytes:
        """The first decompressed bytes; reading still starts at the beginning."""
        with self._errors_named():
            if self._peeked is None:
                self._peeked = self._open()
            return self._peeked.peek(size)[:size]  # type: ignore[attr-defined]

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except PermissionError:
            raise self.error("may not be read (permission denied)") from None
        except (*_DAMAGED, RuntimeError, OSError) as error:
            if not _is_damage(error):
                raise
            told = str(error) if isinstance(error, DamagedData) else f"damaged compressed data ({error})"
            raise self.error(told, remedy="Fetch the file again.") from None

    def _open(self) -> IO[bytes]:
        self._raw = self.opener()
        return _known_compression(decompressed(self._raw, self.name), self.name)

    def close(self) -> None:
        """Whoever read the source, or only looked at it, closes it."""
        for stream in (self._peeked, self._raw):
            if stream is not None:
                stream.close()
        self._peeked = self._raw = None

    @contextmanager
    def text(self) -> Iterator[io.TextIOWrapper]:
        """The text, undecodable bytes kept as surrogates for :meth:`undecodable` to find."""
        is_utf8 = self.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
        encoding = "utf-8-sig" if is_utf8 else self.encoding
        with self.binary() as stream:
            wrapped = io.TextIOWrapper(stream, encoding=encoding, errors="surrogateescape", newline="\n")
            try:
                yield wrapped
            except UnicodeError as error:  # from an encoding that cannot hold undecodable bytes
                raise self.error(f"not {encoding} text ({error})", remedy=ENCODING_REMEDY) from None

    def undecodable(self, text: str) -> str | None:
        """What to say about text with bytes that the encoding could not decode; None where all is well."""
        bad = None if text.isascii() else _ESCAPED_BYTE.search(text)
        return None if bad is None else f"not {self.encoding} text: byte 0x{ord(bad[0]) - 0xDC00:02x}"

    def whole_text(self, most: int, message: str, remedy: str) -> str:
        """The file as one string of at most so many characters; otherwise the error of this message."""
        with self.text() as stream:
            text = stream.read(most + 1)
        if len(text) > most:
            raise self.error(message, remedy=remedy)
        if trouble := self.undecodable(text):
            line = 1 + next(i for i, part in enumerate(text.split("\n")) if self.undecodable(part))
            raise self.error(trouble, line, ENCODING_REMEDY)
        return text

    def lines(self) -> Iterator[tuple[int, str]]:
        """Numbered lines without their ends; a line that cannot be decoded is reported."""
        number = self.lines_before
        try:
            with self.text() as stream:
                readline = stream.readline
                while line := readline(LONGEST_LINE):
                    number += 1
                    if len(line) == LONGEST_LINE and not line.endswith("\n"):
                        while (rest := readline(LONGEST_LINE)) and not rest.endswith("\n"):
                            pass
                        self.report(f"line longer than {LONGEST_LINE:,} characters", number)
                    elif trouble := self.undecodable(line):
                        self.report(trouble, number, ENCODING_REMEDY)
                    else:
                        yield number, line.rstrip("\r\n")
        except InputError as error:  # damage that ends this file: name the last good line
            if error.line is None and error.file == self.name:
                message = error.message.removeprefix(f"{self.name}: ")
                error = self.error(f"{message} after line {number}", number + 1, error.remedy)
            self.problems.report(error)


def archive_suffix(name: str) -> str | None:
    return next((ending for ending in ARCHIVES if name.lower().endswith(ending)), None)


def discover(
    path: str | os.PathLike[str],
    problems: Problems,
    *,
    exclude: tuple[Path, ...] = (),
    glob: str | None = None,
    max_member_bytes: int = MAX_MEMBER_BYTES,
) -> Iterator[Source]:
    """The sources below a path, in a fixed order: folders sorted, archives as they stand.

    Hidden files are passed over. Sources of an archive must be read before the next one is asked for.
    """
    path = Path(path)
    if path.is_dir():
        for file in walk(path, exclude):
            yield from sources_in(file, file.relative_to(path).as_posix(), problems, glob, max_member_bytes)
    elif path.exists():
        yield from sources_in(path, path.name, problems, glob, max_member_bytes)
    else:
        raise InputError("no such file or folder", file=path, remedy="Check the path.")


def walk(folder: Path, exclude: tuple[Path, ...]) -> Iterator[Path]:
    """The files below a folder, sorted, without hidden ones and the folders left out."""
    left_out = {os.path.realpath(p) for p in exclude}
    for parent, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(
            f for f in folders if not f.startswith(".") and os.path.realpath(Path(parent, f)) not in left_out
        )
        yield from (Path(parent, name) for name in sorted(files) if not name.startswith("."))


def _unreadable(error: OSError) -> None:
    raise InputError(f"may not be read ({error.strerror})", file=error.filename) from None


def sources_in(
    file: Path, relative: str, problems: Problems, glob: str | None, max_bytes: int, name: str | None = None
) -> Iterator[Source]:
    """The file itself, or the members of an archive. ``name``: of the file, for people, where it is a copy."""
    place = name or str(file)
    if archive_suffix(file.name) is None:
        if is_wanted(relative, glob):
            yield Source(place, relative, lambda: file.open("rb"))
        return
    members = _zip_members if file.name.lower().endswith(".zip") else _tar_members
    try:
        for member, opener in members(file):
            shown = f"{place}!{member}"
            pure = PurePosixPath(member)
            if pure.is_absolute() or ".." in pure.parts or "\\" in member:
                remedy = "Repack the archive with relative names, or pass --skip-bad."
                problems.report(InputError("a member whose name leaves the archive", file=shown, remedy=remedy))
            elif not any(part.startswith((".", "__MACOSX")) for part in pure.parts) and is_wanted(member, glob):
                yield Source(shown, str(pure), partial(_bounded, opener, shown, max_bytes))
    except InputError as error:
        problems.report(error)
    except PermissionError:
        problems.report(InputError("may not be read (permission denied)", file=place))
    except (*_DAMAGED_ARCHIVE, OSError) as error:
        if not _is_damage(error):
            raise
        told = f"damaged archive ({error}): what follows in it is not read"
        problems.report(InputError(told, file=place, remedy="Fetch the file again, or pass --skip-bad."))


def _is_damage(error: Exception) -> bool:
    """Of an OSError: bz2 tells of damage by one without a number; zipfile seeks places before the file's beginning."""
    return not isinstance(error, OSError) or error.errno in (None, errno.EINVAL)


def is_wanted(relative: str, glob: str | None) -> bool:
    return glob is None or fnmatch(relative, glob) or fnmatch(PurePosixPath(relative).name, glob)


class _StrictMember(tarfile.TarInfo):
    """Tells of every header that is not one; tarfile itself takes it for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _StrictMember:
        member = super().frombuf(buf, encoding, errors)
        is_note = member.type in (*tarfile.GNU_TYPES[:2], tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
        if member.size < 0 or (is_note and member.size > LARGEST_TAR_NOTE):
            raise tarfile.ReadError(f"a header says {member.size:,} bytes")
        return member

    @classmethod
    def fromtarfile(cls, archive: Any) -> Any:
        try:
            member = super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            archive.has_ended = True
            raise
        except tarfile.EmptyHeaderError:  # type: ignore[attr-defined]
            if not getattr(archive, "has_ended", False):
                raise tarfile.ReadError("it ends without its end mark: cut short?") from None
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} at byte {archive.offset:,}") from None
        except RecursionError:
            raise tarfile.ReadError("notes upon notes on one member") from None
        archive.has_ended = False
        return member


def _tar_members(file: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    with (
        decompressed(file.open("rb"), str(file)) as stream,
        # With ignore_zeros it does not stop where a second tar was added to the first.
        tarfile.open(fileobj=stream, mode="r|", tarinfo=_StrictMember, ignore_zeros=True) as archive,
    ):
        for member in archive:
            if member.issparse():
                raise tarfile.ReadError(f"{member.name!r} is a sparse file: pack it without --sparse")
            if member.isreg():  # neither links nor devices nor folders
                yield member.name.removeprefix("./"), partial(archive.extractfile, member)  # type: ignore[misc]
            archive.members.clear()  # type: ignore[attr-defined]  # a million members would be kept for nothing


def _zip_members(file: Path) -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    with zipfile.ZipFile(file) as archive:
        _check_zip(archive, file)
        for member in archive.infolist():
            link = (member.external_attr >> 16) & 0o170000 == 0o120000
            if not member.is_dir() and not link:
                yield member.filename, partial(_zip_member, archive, member)


def _check_zip(archive: zipfile.ZipFile, file: Path) -> None:
    """What zipfile does not look at: members before the first or between those listed; and how long all are together,
    for they may lie over one another."""
    members = archive.infolist()
    listed, size = _listed_members(file), len(members)
    if listed not in (0xFFFF, size & 0xFFFF):  # the first where there are more, and another record tells
        raise zipfile.BadZipFile(f"its directory has {size:,} members, and says that it has {listed:,}")
    before = min((member.header_offset for member in members), default=0)
    if before:
        raise zipfile.BadZipFile(f"{before:,} bytes before its first member: another archive?")
    packed, unpacked = file.stat().st_size, sum(member.file_size for member in members)
    if unpacked > max(HARMLESS, MOST_TIMES * packed):
        raise InputError(
            f"{packed:,} bytes of zip unpack to {unpacked:,}, over {MOST_TIMES} times as many",
            file=file,
            remedy="If that is what it should hold, unzip it first.",
        )


def _listed_members(file: Path) -> int:
    """How many members the record at the end of a zip tells of."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - 22 - 0xFFFF))  # it may have a comment
        end = stream.read()
    start = len(end) - 22 if end[-22:-18] == b"PK\5\6" else end.rfind(b"PK\5\6")
    return int.from_bytes(end[start + 10 : start + 12], "little")


def _zip_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    if member.flag_bits & 1:
        shown = f"{archive.filename}!{member.filename}"
        raise InputError("is encrypted", file=shown, remedy="Decrypt the archive first.")
    return archive.open(member)


def _bounded(opener: Callable[[], IO[bytes]], name: str, most: int) -> IO[bytes]:
    opened = opener()
    try:
        stream = _known_compression(decompressed(opened, name), name)
    except BaseException:
        opened.close()  # or the archive stays open
        raise
    return io.BufferedReader(_Bounded(stream, name, most), 1 << 16)


class _Bounded(io.RawIOBase):
    """A stream that may give ``most`` bytes: an archive of a few KB can hold gigabytes of one letter."""

    def __init__(self, stream: IO[bytes], name: str, most: int) -> None:
        self.stream, self.name, self.most, self.given = stream, name, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        data = self.stream.read(len(buffer))
        self.given += len(data)
        if self.given > self.most:
            raise InputError(
                f"more than {self.most:,} bytes when decompressed",
                file=self.name,
                remedy="If the archive is sound, allow more with --max-member-mb.",
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.stream.close()
        super().close()


def _known_compression(stream: Any, name: str) -> IO[bytes]:
    if stream.peek(2)[:2] == b"\x1f\x9d":
        raise InputError("is in the old Unix compress format", file=name, remedy="Run `uncompress` (or gunzip) on it.")
    return stream
