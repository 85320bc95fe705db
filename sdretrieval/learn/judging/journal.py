"""A journal that loses no click: lines that are only ever added, each with its checksum, each on disk before it counts.

    9ad2c3f0 {"n": 7, "do": "judge", "qid": "1", "docid": "d3", "grade": 1, "who": "ann", "at": "…"}

Any number of processes may write to it: a line is added under a lock, after the lines of others have been read. A last
line that was not finished, because the process was killed or the power went, is cut off: nobody was told that it was
written. Any other damage is an error that names the line.
"""

from __future__ import annotations

import io
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from sdretrieval.core.disk import sync_folder
from sdretrieval.core.errors import InputError, SdretrievalError
from sdretrieval.core.files import append_whole, lock_file
from sdretrieval.core.safe_json import parse_json

PATIENCE = 30.0  # seconds to wait for another process, whose lines take milliseconds
Entry = dict[str, Any]


class Journal:
    """A file of entries, taken in by ``take`` in order: those there are, and those that come, whoever adds them."""

    def __init__(self, path: Path, take: Callable[[Entry], None]) -> None:
        self.path, self._take = path, take
        self.n = 0  # of the last entry
        self._read, self._lines, self._inside = 0, 0, RLock()  # bytes and lines taken in

    def refresh(self) -> None:
        """Take in what others have added; a line that is just being written comes next time."""
        with self._inside:
            if self.path.exists():
                with open(self.path, "rb") as stream:
                    self._catch_up(stream)

    def add(self, make: Callable[[], Mapping[str, Any] | None]) -> Entry | None:
        """Add the entry that ``make`` makes of the state by then; None adds nothing. On return it is on disk."""
        with self._inside, self._locked() as stream:
            whole = self._catch_up(stream)
            if whole < os.fstat(stream.fileno()).st_size:
                os.ftruncate(stream.fileno(), whole)  # a line that nobody finished
            made = make()
            if made is None:
                return None
            entry = {"n": self.n + 1, **made}
            line = written(entry)
            append_whole(stream, line)
            os.fsync(stream.fileno())
            self._read, self._lines = self._read + len(line), self._lines + 1
            self._apply(entry)
            return entry

    @contextmanager
    def _locked(self) -> Iterator[io.FileIO]:
        is_new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with io.FileIO(self.path, "a+") as stream:
            if is_new:
                sync_folder(self.path.parent)
            until = time.monotonic() + PATIENCE
            while not lock_file(stream.fileno()):
                if time.monotonic() > until:
                    raise SdretrievalError(f"{self.path}: another process keeps it locked", remedy="Stop that one.")
                time.sleep(0.005)
            yield stream

    def _catch_up(self, stream: Any) -> int:
        """Take in whole lines from where we are; returns where they end."""
        stream.seek(self._read)
        data = stream.read()
        lines = data.split(b"\n")[:-1]
        for place, line in enumerate(lines, 1):
            entry = entry_of(line)
            if entry is None or entry["n"] <= self.n:
                if entry is None and place == len(lines) and data.endswith(b"\n"):
                    break  # the last one: its end reached the disk before its beginning
                raise InputError(
                    "not an entry as it was written" if entry is None else f"entry {entry['n']} follows {self.n}",
                    file=self.path,
                    line=self._lines + 1,
                    remedy="The file was damaged or edited. Restore it, or remove this line to go on without it.",
                )
            self._read, self._lines = self._read + len(line) + 1, self._lines + 1
            self._apply(entry)
        return self._read

    def _apply(self, entry: Entry) -> None:
        self.n = entry["n"]
        self._take(entry)


def written(entry: Mapping[str, Any]) -> bytes:
    text = json.dumps(entry, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def entry_of(line: bytes) -> Entry | None:
    """The entry of a line, None where the line is damaged."""
    check, _, text = line.partition(b" ")
    try:
        if check != b"%08x" % zlib.crc32(text):
            return None
        entry = parse_json(text.decode(), unique=True)
    except ValueError:
        return None
    is_entry = isinstance(entry, dict) and isinstance(entry.get("n"), int) and isinstance(entry.get("do"), str)
    return entry if is_entry else None
