"""The commit an index is at: Lucene's ``segments_N``, read without Java.

Lucene writes new files, syncs them, and then makes them the index by one rename of ``pending_segments_N`` to
``segments_N``. So the bytes of the latest such file name one state of the index for good: the fingerprint is of them.
They end with a map of the committer's own (the user data), where our notes are, and a CRC-32 of all before it.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sdretrieval.core.errors import IndexProblem
from sdretrieval.core.safe_json import parse_json

KEY = b"sdretrieval"  # of ours in the user data
SEGMENTS = re.compile(r"segments(?:_([0-9a-z]+))?")  # the generation in base 36
_SEGMENT_FILE = re.compile(r"(_[0-9a-z]+)[._].*")


@dataclass(frozen=True)
class Commit:
    """One state of an index: the name and the bytes of its ``segments_N``."""

    index: Path
    name: str
    data: bytes

    @cached_property
    def notes(self) -> dict:
        """What ``sdretrieval index`` noted: analyzer, fields, source; empty for an index of another tool."""
        if not self.is_whole:
            raise IndexProblem(
                f"the index {self.index} cannot be read: the checksum of {self.name} is wrong.",
                remedy="Restore it from a copy, or re-index; `sdretrieval doctor --index …` says more.",
            )
        return notes_in(self.data, self.index / self.name)

    def fingerprint(self, *extra: str) -> str:
        """A hash that changes with every commit, and with ``extra``."""
        digest = hashlib.sha256(self.data)
        for word in extra:
            digest.update(f"|{word}".encode())
        return digest.hexdigest()[:32]

    @property
    def is_whole(self) -> bool:
        return zlib.crc32(self.data[:-8]) == int.from_bytes(self.data[-8:], "big")

    def has(self, file: str) -> bool:
        """Whether a file of the folder may belong to this commit: its segment is named in it."""
        segment = _SEGMENT_FILE.fullmatch(file)
        if segment is None:
            return not file.startswith("pending_segments")
        name = segment[1].encode()
        return bytes([len(name)]) + name in self.data


def latest_commit(index: Path) -> Commit:
    """The commit that an index is at now."""
    if not index.is_dir():
        raise IndexProblem(
            f"no index at {index}.", remedy="Check the path, or build one with `sdretrieval index --input … --index …`."
        )
    for _ in range(100):  # the one found may be replaced, and removed, before it is read
        names = [entry.name for entry in index.iterdir() if SEGMENTS.fullmatch(entry.name)]
        if not names:
            break
        name = max(names, key=_generation)
        try:
            return Commit(index, name, (index / name).read_bytes())
        except FileNotFoundError:
            continue
    raise IndexProblem(
        f"{index} is not a Lucene index (no segments file in it).",
        remedy="Point to the folder that holds segments_1 and friends.",
    )


def _generation(name: str) -> int:
    return int(SEGMENTS.fullmatch(name)[1] or "0", 36)  # type: ignore[index]


def notes_in(data: bytes, shown: object) -> dict:
    """Our notes in the bytes of a ``segments_N``; empty where there are none."""
    _, found, rest = data.rpartition(bytes([len(KEY)]) + KEY)
    if not found:
        return {}
    # Lucene's vInt: seven bits a byte, the lowest first; the last byte is below 128.
    size = next((i for i, byte in enumerate(rest[:5], 1) if byte < 0x80), 5)
    length = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(rest[:size]))
    return _parsed(rest[size : size + length], shown)


def _parsed(text: bytes, shown: object) -> dict:
    try:
        notes = parse_json(text.decode("utf-8"), bounded=False, constants=True)
        if not isinstance(notes, dict):
            raise ValueError("not an object")
        return notes
    except ValueError as error:
        raise IndexProblem(f"{shown} cannot be read ({error}).", remedy="Re-index, or delete it.") from None


def snapshot_folder(index: str | os.PathLike[str]) -> Path:
    """Where the snapshots of an index are kept: beside it, or below ``SDRETRIEVAL_SNAPSHOTS`` where that is set."""
    index = Path(index).resolve()
    elsewhere = os.environ.get("SDRETRIEVAL_SNAPSHOTS")
    if elsewhere:
        return Path(elsewhere) / f"{index.name}-{hashlib.sha256(str(index).encode()).hexdigest()[:12]}"
    return index.with_name(index.name + ".snapshot")
