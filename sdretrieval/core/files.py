"""Files that are never half-written, and text that may be compressed."""

from __future__ import annotations

import gzip
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sdretrieval.core.compressed import DamagedData, decompressed
from sdretrieval.core.disk import NO_ROOM, sync_folder
from sdretrieval.core.errors import InputError, SdretrievalError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

STANDARD = "-"  # standard input or output, in the place of a file's name


@contextmanager
def atomic_writer(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO]:
    """Write aside, then move into place: readers see the old file or the whole new one, never a part.

    A name ending in ``.gz`` is compressed, reproducibly (no time stamp). On any exception, Ctrl-C included, nothing is
    left behind; what a killed writer left is removed by the next one in that folder. The new file has the old one's
    permissions. A link that you or root made stays a link, to the new file; another user's is an error. Pipes and
    devices are written to as they are, and ``-`` is standard output.
    """
    if os.fspath(path) == STANDARD:
        yield sys.stdout.buffer if binary else sys.stdout
        sys.stdout.flush()
        return
    check_writable(path)
    if is_special(path):
        with (
            _told(path, Path(path)),
            io.BufferedWriter(_Named(path, "wb"), 1 << 16) as raw,
            _layers(raw, Path(path), binary) as stream,
        ):
            yield stream
        return
    final = _followed(Path(path))
    with _told(path, final):
        final.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(final.parent)
        temporary, number = _open_beside(final)
    with _told(path, final, temporary):
        try:
            with io.BufferedWriter(_Named(number, "wb", name=temporary), 1 << 16) as raw:
                with _layers(raw, Path(path), binary) as stream:
                    yield stream
                with _naming(temporary):
                    os.fsync(number)
                os.replace(temporary, final)  # while it is locked, so that nobody takes it for abandoned
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        sync_folder(final.parent)


@contextmanager
def _told(path: str | os.PathLike[str], *own: Path) -> Iterator[None]:
    """What goes wrong with these files, told of ``path``. Other errors may be about anything the caller does."""
    try:
        yield
    except OSError as error:
        is_own = error.filename is not None and any(Path(error.filename) in (p, *p.parents) for p in own)
        if not is_own or isinstance(error, BrokenPipeError):
            raise
        remedy = "Make room." if error.errno in NO_ROOM else None
        raise SdretrievalError(f"{path}: cannot be written ({error.strerror or error})", remedy=remedy) from error


def _followed(path: Path) -> Path:
    """The file to replace. Whoever else may write to a folder could point a link in it at a file of yours."""
    last = path
    for _ in range(40):  # as many links as Linux follows
        if not last.is_symlink():
            return last.resolve()
        if last.lstat().st_uid not in (0, os.geteuid()):
            raise SdretrievalError(
                f"{path}: is a link to {last.resolve()}, made by another user: not followed",
                remedy="Name the file itself, or remove the link.",
            )
        last = last.parent / last.readlink()
    raise SdretrievalError(f"{path}: links lead in a circle", remedy="Remove the link.")


def _open_beside(final: Path) -> tuple[Path, int]:
    """A new file with an unguessable name beside ``final``, locked for as long as it is open."""
    old = final.stat() if final.exists() else None
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        temporary = final.with_name(f".{final.name[:40]}.{os.getpid()}-{secrets.token_hex(8)}.tmp")
        # What others may not read is never readable, not even while it is made.
        number = os.open(temporary, flags, 0o666 if old is None else 0o600)
        if lock_file(number) and os.fstat(number).st_nlink:
            break
        os.close(number)  # taken for abandoned between the two calls: another one
    if old is not None:
        with suppress(OSError):  # file systems without permissions
            temporary.chmod(stat.S_IMODE(old.st_mode) & 0o777)
    return temporary, number


_TEMPORARY = re.compile(r"\..*\.[0-9]+-[0-9a-f]{16}\.tmp", re.DOTALL)
_cleaned: set[Path] = set()


def _remove_abandoned(folder: Path) -> None:
    """Once for each folder: what killed writers left in it. A living one holds a lock on its file."""
    if folder in _cleaned or fcntl is None:
        return
    _cleaned.add(folder)
    for path in folder.iterdir():
        if _TEMPORARY.fullmatch(path.name):
            with suppress(OSError):  # another's, or gone meanwhile
                number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if lock_file(number):
                        path.unlink()
                finally:
                    os.close(number)


def lock_file(number: int) -> bool:
    """Lock an open file until it is closed, by whatever end of this process; False where another has it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def append_whole(stream: io.FileIO, data: bytes) -> None:
    """Add to the end of an unbuffered file all of ``data`` or, with an error, nothing: a full disk takes a part."""
    begin = os.fstat(stream.fileno()).st_size
    written = 0
    try:
        while written < len(data):
            written += stream.write(data[written:]) or 0
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(stream.fileno(), begin)
        error.filename = str(stream.name)
        raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors of writing carry no name: this one."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


class _Named(io.FileIO):
    """A file whose errors say which one it is."""

    def __init__(self, file: Any, mode: str, name: Path | None = None) -> None:
        super().__init__(file, mode)
        self.path = Path(file) if name is None else name

    def write(self, data: Any) -> int:
        with _naming(self.path):
            return super().write(data)


@contextmanager
def _layers(raw: IO[bytes], path: Path, binary: bool) -> Iterator[IO]:
    """Text over compression over bytes, as the name asks for; flushed down to ``raw`` at the end."""
    packed: Any = raw
    if path.suffix == ".gz":
        packed = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6)
    stream: Any = packed if binary else io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
    try:
        yield stream
    except BaseException:
        if packed is not raw:  # what is left in it goes nowhere: Python 3.13 complains where it is found later
            packed.fileobj = io.BytesIO()
            stream.close()
        raise
    stream.flush()
    if stream is not packed:
        stream.detach()  # so that closing the text layer does not close the file before it is synced
    if packed is not raw:
        packed.close()
    raw.flush()


def is_special(path: str | os.PathLike[str]) -> bool:
    """A pipe, terminal or device: nothing that could be replaced by a file, or have others beside it."""
    if os.fspath(path) == STANDARD:
        return True
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def check_writable(path: str | os.PathLike[str]) -> None:
    """Say now what writing would say later: for commands that work long before they write."""
    path = Path(path)
    if path.is_dir():  # the empty path is the current folder
        raise SdretrievalError(f"{path}: is a folder, a file to write was expected", remedy="Add a file name.")
    above = next((parent for parent in path.parents if parent.exists()), Path())
    if not above.is_dir():
        raise SdretrievalError(f"{path}: cannot be written, {above} is not a folder")
    if not path.exists() and not os.access(above, os.W_OK | os.X_OK):
        raise SdretrievalError(f"{path}: cannot be written, no permission for {above}")


LONGEST_LINE = 32 << 20  # characters; beyond this it is no line but a mistake


def open_binary(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file, plain or compressed (gzip, bzip2, xz; told by its first bytes, not by its name)."""
    path = Path(path)
    try:
        return decompressed(open(path, "rb"), str(path))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("no such file", file=path, remedy="Check the path.") from None
    except IsADirectoryError:
        raise InputError("is a folder, a file was expected", file=path) from None
    except PermissionError:
        raise InputError("may not be read", file=path, remedy="Check its permissions.") from None
    except (OSError, ValueError) as error:  # a name too long, or with a null in it
        raise InputError(f"cannot be read ({error})", file=path, remedy="Check the path.") from None


def open_text(path: str | os.PathLike[str]) -> IO[str]:
    """Open a UTF-8 text file, plain or compressed.

    ``errors="surrogateescape"`` lets the reader name the line that is not UTF-8; see :func:`numbered_lines`.
    """
    return io.TextIOWrapper(open_binary(path), encoding="utf-8-sig", errors="surrogateescape", newline="\n")


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, without line ends; a clear error where the text is not UTF-8, a line has no end
    or the compressed data is damaged."""
    number = 0
    try:
        with open_text(path) as stream:
            while line := stream.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError(f"longer than {LONGEST_LINE:,} characters", file=path, line=number)
                text = line.rstrip("\r\n")
                if not text.isascii() and (bad := _ESCAPED_BYTE.search(text)):
                    raise InputError(
                        f"not UTF-8: byte 0x{ord(bad[0]) - 0xDC00:02x}",
                        file=path,
                        line=number,
                        remedy="Convert the file first, e.g. `iconv -f latin1 -t utf-8`.",
                    )
                yield number, text
    except DamagedData as error:
        raise InputError(f"{error} after line {number}", file=path, remedy="Fetch the file again.") from None


_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
