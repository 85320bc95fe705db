"""Files that are never half-written, and text that may be gzipped."""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sdretrieval.core.errors import InputError, SdretrievalError

STANDARD = "-"  # standard input or output, in the place of a file's name
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def atomic_writer(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO]:
    """Write aside, then move into place: readers see the old file or the whole new one, never a part.

    A name ending in ``.gz`` is compressed, reproducibly (no time stamp). On any exception, Ctrl-C included,
    nothing is left behind. A link stays a link to the new file; pipes and devices are written to as they are, and
    ``-`` is standard output.
    """
    if os.fspath(path) == STANDARD:
        yield sys.stdout.buffer if binary else sys.stdout
        sys.stdout.flush()
        return
    check_writable(path)
    special = is_special(path)
    final = Path(path) if special else Path(path).resolve()
    temporary = final if special else final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        with io.BufferedWriter(_Named(temporary, "wb"), 1 << 16) as raw:
            with _layers(raw, Path(path), binary) as stream:
                yield stream
            if not special:
                with _naming(temporary):
                    os.fsync(raw.fileno())
        if not special:
            os.replace(temporary, final)
    except OSError as error:
        # Others may be about anything that the caller does meanwhile.
        own = error.filename is not None and Path(error.filename) in (temporary, final, *final.parents)
        if not own or isinstance(error, BrokenPipeError):
            raise
        remedy = "Make room." if error.errno in _NO_ROOM else None
        raise SdretrievalError(f"{path}: cannot be written ({error.strerror or error})", remedy=remedy) from error
    finally:
        if not special:
            temporary.unlink(missing_ok=True)


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

    def write(self, data: Any) -> int:
        with _naming(Path(str(self.name))):
            return super().write(data)


@contextmanager
def _layers(raw: IO[bytes], path: Path, binary: bool) -> Iterator[IO]:
    """Text over compression over bytes, as the name asks for; flushed down to ``raw`` at the end."""
    packed: Any = raw
    if path.suffix == ".gz":
        packed = gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6)
    stream: Any = packed if binary else io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
    yield stream
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


def open_text(path: str | os.PathLike[str]) -> IO[str]:
    """Open a UTF-8 text file, plain or ``.gz`` (told by its first two bytes, not by its name).

    ``errors="surrogateescape"`` lets the reader name the line that is not UTF-8; see :func:`numbered_lines`.
    """
    path = Path(path)
    try:
        stream = open(path, "rb")  # noqa: SIM115 - handed to the caller, who closes it
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("no such file", file=path, remedy="Check the path.") from None
    except IsADirectoryError:
        raise InputError("is a folder, a file was expected", file=path) from None
    except PermissionError:
        raise InputError("may not be read", file=path, remedy="Check its permissions.") from None
    magic = stream.peek(2)[:2]
    raw: Any = stream
    if magic == b"\x1f\x8b":
        raw = gzip.GzipFile(fileobj=stream)
        raw.myfileobj = stream  # closed with it
    return io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="\n")


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1, without line ends; a clear error where the text is not UTF-8 or the
    archive is cut short."""
    number = 0
    try:
        with open_text(path) as stream:
            for number, line in enumerate(stream, 1):
                text = line.rstrip("\r\n")
                if not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text):
                    bad = next(c for c in text if "\udc80" <= c <= "\udcff")
                    raise InputError(
                        f"not UTF-8: byte 0x{ord(bad) - 0xDC00:02x}",
                        file=path,
                        line=number,
                        remedy="Convert the file first, e.g. `iconv -f latin1 -t utf-8`.",
                    )
                yield number, text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"damaged gzip data after line {number} ({error})", file=path, remedy="Fetch the file again."
        ) from None
