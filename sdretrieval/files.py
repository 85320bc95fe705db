"""Files that are never half-written, and text that may be gzipped."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sdretrieval.errors import InputError


@contextmanager
def atomic_writer(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO]:
    """Write aside, then move into place: readers see the old file or the whole new one, never a part.

    A name ending in ``.gz`` is compressed, reproducibly (no time stamp). On any exception, Ctrl-C included,
    nothing is left behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as raw:
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
            os.fsync(raw.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def open_text(path: str | os.PathLike[str]) -> IO[str]:
    """Open a UTF-8 text file, plain or ``.gz`` (told by its first two bytes, not by its name).

    ``errors="surrogateescape"`` lets the reader name the line that is not UTF-8; see :func:`numbered_lines`.
    """
    path = Path(path)
    try:
        stream = open(path, "rb")  # noqa: SIM115 - handed to the caller, who closes it
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="Check the path.") from None
    except IsADirectoryError:
        raise InputError("is a folder, a file was expected", file=path) from None
    except PermissionError:
        raise InputError("may not be read", file=path, remedy="Check its permissions.") from None
    magic = stream.peek(2)[:2]
    raw: Any = gzip.GzipFile(fileobj=stream) if magic == b"\x1f\x8b" else stream
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
