"""Compressed streams, read strictly: to the end of the last member, with their checksums, and never without bound.

gzip, bzip2 and xz files may hold several members one after the other (pigz, bgzip, pbzip2, ``cat a.gz b.gz``): all are
read. Python's own readers stop at, or pass over, some of what is damaged; here anything that does not decompress to its
end is a :class:`DamagedData`. A few kilobytes can unpack to gigabytes of one letter, so what comes out may be at most
:data:`MOST_TIMES` as long as what went in, once it is over :data:`HARMLESS`.
"""

from __future__ import annotations

import bz2
import io
import lzma
import zlib
from typing import IO, Any

from sdretrieval.core.errors import InputError

ENDINGS = (".gz", ".bz2", ".xz")
MOST_TIMES = 250  # text shrinks to a fifth, logs to a fiftieth
HARMLESS = 64 << 20  # bytes that any machine can hold
_LZMA_MEMORY = 512 << 20  # `xz -9` needs 65 MB
_PIECE = 1 << 17
_MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\x00"}


class DamagedData(ValueError):
    """Compressed data that is cut short, altered, or followed by something else."""


def compression(head: bytes) -> str | None:
    """gzip, bzip2 or xz, told by a file's first six bytes."""
    return next((kind for kind, magic in _MAGIC.items() if head.startswith(magic)), None)


def decompressed(raw: IO[bytes], name: str) -> Any:
    """A buffered stream of what ``raw`` holds: decompressed where its first bytes say that it is compressed.

    ``name`` is for messages. Closing it closes ``raw``.
    """
    stream: Any = raw if hasattr(raw, "peek") else io.BufferedReader(raw)
    head = stream.peek(6)[:6]
    if len(head) < 6 and name.lower().endswith(ENDINGS) and any(magic.startswith(head) for magic in _MAGIC.values()):
        stream.close()
        raise DamagedData(f"no compressed data in it: it is {'cut short' if head else 'empty'}")
    kind = compression(head)
    return stream if kind is None else io.BufferedReader(_Decompressed(stream, kind, name), _PIECE)


class _Decompressed(io.RawIOBase):
    def __init__(self, raw: IO[bytes], kind: str, name: str) -> None:
        self.raw, self.kind, self.name = raw, kind, name
        self.taken = self.given = 0
        self._left = b""  # taken, not yet decompressed
        self._decoder = self._new_decoder()
        self._problem: Exception | None = None

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.raw.close()
        super().close()

    def _new_decoder(self) -> Any:
        if self.kind == "gzip":
            return zlib.decompressobj(wbits=31)  # with gzip's header and checksum
        return bz2.BZ2Decompressor() if self.kind == "bzip2" else lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)

    def readinto(self, buffer: Any) -> int:
        if self._problem is not None:  # whoever skips what is bad must not be given what comes after it
            raise self._problem
        try:
            data = self._next(len(buffer))
        except (zlib.error, lzma.LZMAError, EOFError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # bz2 tells of damage by one without
                raise
            self._problem = DamagedData(f"damaged {self.kind} data (before byte {self.taken:,}: {error})")
            raise self._problem from None
        self.given += len(data)
        if self.given > max(HARMLESS, MOST_TIMES * self.taken):
            self._problem = InputError(
                f"{self.taken:,} bytes of {self.kind} unpack to over {MOST_TIMES} times as many",
                file=self.name,
                remedy="If that is what it should hold, decompress it first.",
            )
            raise self._problem
        buffer[: len(data)] = data
        return len(data)

    def _next(self, most: int) -> bytes:
        """Some bytes, none only at the end of all members."""
        while True:
            if self._decoder.eof:
                self._left = self._decoder.unused_data.lstrip(b"\0")  # tapes and xz fill up with zeros
                while not self._left:
                    if not self._take():
                        return b""
                    self._left = self._left.lstrip(b"\0")
                self._decoder = self._new_decoder()
            go_on = bool(self._left) or not getattr(self._decoder, "needs_input", True) or self._take()
            data = self._decoder.decompress(self._left, most)
            self._left = getattr(self._decoder, "unconsumed_tail", b"")  # bz2 and xz keep it themselves
            if data:
                return data
            if not go_on and not self._decoder.eof:
                raise EOFError("it is cut short")

    def _take(self) -> bool:
        self._left = self.raw.read(_PIECE) or b""
        self.taken += len(self._left)
        return bool(self._left)
