"""Folders of plain arrays that are mapped, not read: what snapshots and the sums of shards are on disk.

Each array is a file ``<name>.bin`` of little-endian numbers. A file of notes in JSON is written last; it has the format
and the size of each array in bytes. A folder without notes, or with a file of another size, is not whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


def array_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.bin"


def map_array(folder: Path, name: str, dtype: str) -> np.ndarray:
    """One array, read from disk as it is used."""
    path = array_file(folder, name)
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.zeros(0, dtype=dtype)
    # As a plain array: slicing the memmap subclass costs microseconds, and the map lives on as its base.
    return np.memmap(path, dtype=dtype, mode="r").view(np.ndarray)


def map_arrays(folder: Path, types: Mapping[str, str]) -> dict[str, np.ndarray]:
    return {name: map_array(folder, name, dtype) for name, dtype in types.items()}


@dataclass(frozen=True)
class ArrayFolder:
    """A kind of such folders. ``types``: dtype by name; ``notes``: the file of notes."""

    types: Mapping[str, str]
    notes: str
    version: int

    def map(self, folder: Path) -> dict[str, np.ndarray]:
        return map_arrays(folder, self.types)

    def create(self, folder: Path, name: str, size: int) -> np.ndarray:
        """A new array on disk, to be filled."""
        path, dtype = array_file(folder, name), self.types[name]
        if size == 0:
            path.touch()
            return np.zeros(0, dtype=dtype)
        return np.memmap(path, dtype=dtype, mode="w+", shape=(size,))

    def write(self, folder: Path, arrays: Mapping[str, np.ndarray], **about: Any) -> None:
        """All arrays, then the notes, with ``about`` in them."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, dtype in self.types.items():
            np.ascontiguousarray(arrays[name], dtype=dtype).tofile(array_file(folder, name))
        self.finish(folder, **about)

    def finish(self, folder: Path, **about: Any) -> None:
        """The notes on arrays that are there."""
        sizes = {name: array_file(folder, name).stat().st_size for name in self.types}
        (folder / self.notes).write_text(json.dumps({"format": self.version, **about, "sizes": sizes}, indent=1))

    def problem(self, folder: Path, check: Callable[[dict], str | None] = lambda notes: None) -> str | None:
        """What is wrong with a folder, by itself or by a ``check`` of its notes; None when it is whole."""
        try:
            notes = json.loads((folder / self.notes).read_text())
            if notes["format"] != self.version:
                return f"format {notes['format']}"
            for name in self.types:
                size = array_file(folder, name).stat().st_size
                if size != notes["sizes"][name]:
                    return f"{name}.bin has {size} bytes instead of {notes['sizes'][name]}"
            return check(notes)
        except FileNotFoundError as error:
            return f"{Path(error.filename).name} is missing"
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"{self.notes} is damaged ({error})"
