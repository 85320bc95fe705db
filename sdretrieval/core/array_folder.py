"""Folders of plain arrays that are mapped, not read: what snapshots and the sums of shards are on disk.

Each array is a file ``<name>.bin`` of little-endian numbers. A file of notes in JSON is written last; it has the
format, and the size, type and checksum (XXH3, 64 bits) of each array. A folder without notes, or with a file of
another size, is not whole. Contents are checked when a folder is first opened by a process tree, a large one by this
user since the machine was started, and when it has changed since: checksums, and the :class:`Rule` of each array, so
that no compiled loop walks out of one, whoever wrote the folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.core.disk import allocate, own_cache, sync_folder
from sdretrieval.core.safe_json import parse_json

LARGEST_NOTES = 1 << 24  # bytes
_CHECKED = "SDRETRIEVAL_CHECKED"  # in the environment, which processes hand on: states of folders found whole
_KEPT = 50  # such states
_LARGE = 1 << 26  # bytes of a folder that is worth remembering for other processes


def array_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"


def read_only(array: np.ndarray) -> np.ndarray:
    """As a mapped array is: what is compiled for the one serves the other."""
    array.flags.writeable = False
    return array


def map_array(folder: Path, name: str, dtype: str) -> np.ndarray:
    """One array, read from disk as it is used."""
    path = array_file(folder, name)
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return read_only(np.zeros(0, dtype=dtype))
    # As a plain array: slicing the memmap subclass costs microseconds, and the map lives on as its base.
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)


def map_arrays(folder: Path, types: Mapping[str, str]) -> dict[str, np.ndarray]:
    return {name: map_array(folder, name, dtype) for name, dtype in types.items()}


def fitting(values: np.ndarray, types: str) -> str:
    """Of some types (``<i4 <i8``) the first that has room for these whole numbers; the last where none has."""
    *narrow, widest = types.split()
    low, high = (int(values.min()), int(values.max())) if narrow and len(values) else (0, 0)
    return next((t for t in narrow if np.iinfo(t).min <= low <= high <= np.iinfo(t).max), widest)


@dataclass(frozen=True)
class Rule:
    """What must hold of an array besides its checksum: a checksum comes from the same hands as the array."""

    length_of: str | None = None  # it is as long as that array, and
    extra: int = 0  # longer by this
    instead: str | None = None  # or it is empty, where this array has that length: it says as much
    points_into: str | None = None  # it ascends from 0 to the length of that array
    is_text: bool = False  # where that array is text, in UTF-8
    below: str | None = None  # values are from 0 to below the length of that array
    at_least: int | None = None
    check: Callable[[np.ndarray, Mapping[str, np.ndarray]], str | None] | None = None  # what else is wrong

    def broken(self, values: np.ndarray, arrays: Mapping[str, np.ndarray]) -> str | None:
        """What does not hold; None when all does."""
        if self.length_of is not None:
            wanted = len(arrays[self.length_of]) + self.extra
            is_instead = self.instead is not None and len(values) == 0 and len(arrays[self.instead]) == wanted
            if len(values) != wanted and not is_instead:
                return f"has {len(values)} entries, {self.length_of} has {len(arrays[self.length_of])}"
        if self.points_into is not None:
            return self._badly_pointing(values, arrays[self.points_into])
        if len(values) == 0:
            return None
        if self.below is not None and not (values.min() >= 0 and values.max() < len(arrays[self.below])):
            return f"points outside of {self.below}"
        if self.at_least is not None and values.min() < self.at_least:
            return f"has a value below {self.at_least}"
        return self.check(values, arrays) if self.check else None

    def _badly_pointing(self, values: np.ndarray, into: np.ndarray) -> str | None:
        if len(values) == 0 or values[0] != 0 or values[-1] != len(into) or (values[1:] < values[:-1]).any():
            return f"does not ascend from 0 to the length of {self.points_into}"
        if self.is_text:
            try:
                into.tobytes().decode("utf-8")
            except UnicodeDecodeError:
                return f"points into {self.points_into}, which is not UTF-8"
            starts = into[values[:-1][values[:-1] < len(into)]]
            if ((starts & 0xC0) == 0x80).any():
                return f"points into the middle of a character of {self.points_into}"
        return None


def checksum(values: np.ndarray) -> str:
    from xxhash import xxh3_64_hexdigest  # only where arrays are written or first opened

    return xxh3_64_hexdigest(np.ascontiguousarray(values).data)


@dataclass(frozen=True)
class ArrayFolder:
    """A kind of such folders. ``types``: dtype by name, or several, of which the first that has room is taken (see
    :func:`fitting`); ``notes``: the file of notes; ``rules``: what must hold.

    ``derive``: arrays that follow from the others, which have rules; they must be what it makes: all of them where
    a folder is read ``again``, else those that others must fit.
    """

    types: Mapping[str, str]
    notes: str
    version: int
    rules: Mapping[str, Rule] = field(default_factory=dict)
    derive: Callable[[Mapping[str, np.ndarray], bool], Mapping[str, np.ndarray]] = lambda arrays, all_of_them: {}

    def map(self, folder: Path) -> dict[str, np.ndarray]:
        return map_arrays(folder, self._types(self.read_notes(folder)))

    def _types(self, notes: Mapping[str, Any]) -> dict[str, str]:
        """Of each array the type that it has."""
        told = {name: notes["types"][name] if " " in types else types for name, types in self.types.items()}
        for name, dtype in told.items():
            if dtype not in self.types[name].split():
                raise ValueError(f"{name} of another type")
        return told

    def fitted(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Arrays in memory as they would be mapped."""
        return {
            name: read_only(np.asarray(values).astype(fitting(values, self.types[name]), copy=False))
            for name, values in arrays.items()
        }

    def create(self, folder: Path, name: str, size: int) -> np.ndarray:
        """A new array on disk, to be filled; its room is taken, so that filling it cannot fail."""
        path, dtype = array_file(folder, name), np.dtype(self.types[name])
        if size == 0:
            path.touch()
            return np.zeros(0, dtype=dtype)
        allocate(path, size * dtype.itemsize)
        return np.memmap(path, dtype=dtype, mode="r+", shape=(size,))

    def write(self, folder: Path, arrays: Mapping[str, np.ndarray], **about: Any) -> None:
        """All arrays, then the notes, with ``about`` in them."""
        folder.mkdir(parents=True, exist_ok=True)
        self.finish(folder, {name: self.put(folder, name, arrays[name]) for name in self.types}, **about)

    def put(self, folder: Path, name: str, values: np.ndarray) -> str:
        """One array to disk; the type it has there."""
        dtype = fitting(values, self.types[name])
        np.ascontiguousarray(values, dtype=dtype).tofile(array_file(folder, name))
        return dtype

    def finish(self, folder: Path, types: Mapping[str, str], **about: Any) -> None:
        """The notes on arrays that are there. They are synced; arrays need not be, for their checksums tell."""
        types = {**self.types, **types}
        arrays = map_arrays(folder, types)
        sizes = {name: values.nbytes for name, values in arrays.items()}
        checksums = {name: checksum(values) for name, values in arrays.items()}
        with open(folder / self.notes, "w", encoding="utf-8") as stream:
            about |= {"types": types, "sizes": sizes, "checksums": checksums}
            json.dump({"format": self.version, **about}, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(folder)

    def read_notes(self, folder: Path) -> dict[str, Any]:
        """The notes of a folder, as they are: an OSError or ValueError where they cannot be read."""
        with open(folder / self.notes, "rb") as stream:
            text = stream.read(LARGEST_NOTES)
        notes = parse_json(text.decode("utf-8"), bounded=False, constants=True)
        if not isinstance(notes, dict):
            raise ValueError("not an object")
        return notes

    def problem(
        self, folder: Path, check: Callable[[dict], str | None] = lambda notes: None, *, again: bool = False
    ) -> str | None:
        """What is wrong with a folder, by itself or by a ``check`` of its notes; None when it is whole.

        Contents are read only where this process, or one it comes from, has not seen this state, or with ``again``.
        """
        try:
            notes = self.read_notes(folder)
            if notes["format"] != self.version:
                return f"format {notes['format']}"[:80]
            for name in self.types:
                size = array_file(folder, name).stat().st_size
                if size != notes["sizes"][name]:
                    return f"{name}.bin has {size} bytes instead of {notes['sizes'][name]}"[:120]
            return check(notes) or self._content_problem(folder, notes, again)
        except FileNotFoundError as error:
            return f"{Path(error.filename).name} is missing"
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"{self.notes} is damaged ({error})"

    def _content_problem(self, folder: Path, notes: Mapping[str, Any], again: bool) -> str | None:
        state, arrays = self._state(folder), map_arrays(folder, self._types(notes))
        checked = os.environ.get(_CHECKED, "").split()
        is_large = sum(values.nbytes for values in arrays.values()) >= _LARGE
        if not again and (state in checked or (is_large and state in _remembered())):
            return None
        for name, values in arrays.items():
            if checksum(values) != notes["checksums"][name]:
                return f"{name}.bin is damaged: its checksum is wrong"
            if told := self.rules.get(name, Rule()).broken(values, arrays):
                return f"{name}.bin {told}"
        for name, values in self.derive(arrays, again).items():
            if not np.array_equal(values, arrays[name]):
                return f"{name}.bin does not follow from the others"
        os.environ[_CHECKED] = " ".join([*checked, state][-_KEPT:])
        if is_large:
            _remember(state)
        return None

    def _state(self, folder: Path) -> str:
        """Changes with any change of a file."""
        from xxhash import xxh3_64_hexdigest  # as above

        files = [folder / self.notes, *(array_file(folder, name) for name in self.types)]
        about = [(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in map(Path.stat, files)]
        return xxh3_64_hexdigest(repr((folder.resolve().name, about)).encode())


def _memory() -> Path:
    """The file of states found whole. A start of the machine has one of its own: a power cut undoes unsynced arrays."""
    return own_cache() / f"whole-{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}"


def _remembered() -> list[str]:
    try:
        memory = _memory()
        return memory.read_text().split() if memory.stat().st_uid == os.getuid() else []
    except (OSError, ValueError, AttributeError):  # none yet, or another system than Linux
        return []


def _remember(state: str) -> None:
    with suppress(OSError, ValueError):
        memory = _memory()
        memory.parent.mkdir(parents=True, exist_ok=True)
        for other in memory.parent.glob("whole-*"):
            if other != memory:
                other.unlink()
        with open(memory, "a", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
            stream.write(f"{state}\n")
