"""Where words stand in their documents: an optional part of a snapshot, taken from the index when a model first asks.

One array of its own, in the folder ``positions`` of the snapshot's: for each term, for each of its documents, as many
places as the word has there, ascending. How many these are is known from the counts, so nothing else is kept.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.core.array_folder import ArrayFolder, Rule, array_file
from sdretrieval.core.disk import disk_errors_explained, remove
from sdretrieval.core.errors import IndexProblem
from sdretrieval.index.lucene.export import export_positions
from sdretrieval.index.snapshot_format import SNAPSHOT

if TYPE_CHECKING:
    from sdretrieval.index.snapshot import Snapshot

NAME = "positions"
POSITIONS = ArrayFolder({NAME: "<i4"}, "positions.json", 1, {NAME: Rule(at_least=0)})


class Positions:
    """The places of every word of a collection."""

    def __init__(self, snapshot: Snapshot, places: np.ndarray) -> None:
        self._snapshot, self._places = snapshot, places
        if len(places) != snapshot.n_tokens:
            raise IndexProblem(f"{len(places)} positions for {snapshot.n_tokens} words", remedy="Build it again.")

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self._snapshot.cf)])

    def of(self, term: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A term's documents, where the places of each end, and the places of all."""
        s = self._snapshot
        span = slice(s.term_ptr[term], s.term_ptr[term + 1])
        ends, places = np.cumsum(s.term_counts[span]), self._places[self._starts[term] : self._starts[term + 1]]
        if len(ends) == 0 or ends[-1] != len(places):  # compiled loops rely on it
            raise IndexProblem(f"the counts of term {term} do not add up to {len(places)}", remedy="Build it again.")
        return s.term_docs[span], ends, places

    @classmethod
    def of_snapshot(cls, snapshot: Snapshot) -> Positions:
        if NAME in snapshot.arrays:
            return cls(snapshot, snapshot.arrays[NAME])
        if snapshot.index is None:
            raise IndexProblem(
                "a collection of counts has no positions of words",
                remedy="Open an index, or make it with Snapshot.from_words.",
            )
        return cls(snapshot, _kept(snapshot))


def _kept(snapshot: Snapshot) -> np.ndarray:
    """The array on disk, written first where there is none or only a damaged one."""
    from sdretrieval.index.snapshot import building, snapshot_folder  # which imports this module

    assert snapshot.index is not None
    folder = snapshot_folder(snapshot.index) / snapshot.fingerprint / NAME
    if POSITIONS.problem(folder) is not None:
        remedy = "Make room, or set SDRETRIEVAL_SNAPSHOTS to a folder where there is some."
        with (
            disk_errors_explained(f"writing the positions of {snapshot.index}", remedy),
            building(folder.parent) as aside,
        ):
            if POSITIONS.problem(folder) is not None:  # no other process did it meanwhile
                _export(snapshot.index, aside, folder)
    return POSITIONS.map(folder)[NAME]


def _export(index: Path, aside: Path, folder: Path) -> None:
    segments = export_positions(index, array_file(aside, NAME))
    try:
        is_same = SNAPSHOT.read_notes(folder.parent)["segments"] == segments
    except FileNotFoundError:
        is_same = False
    if not is_same:
        raise IndexProblem(f"the index {index} has changed since it was opened", remedy="Open it again.")
    POSITIONS.finish(aside)
    remove(folder)
    aside.rename(folder)
