"""Where words stand in their documents: an optional part of a snapshot, taken from the index when a model first asks.

One array of its own, in the folder ``positions`` of the snapshot's: for each term, for each of its documents, as many
places as the word has there, ascending. How many these are is known from the counts, so nothing else is kept.
"""

from __future__ import annotations

from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from sdretrieval.core.array_folder import ArrayFolder, Rule, array_file
from sdretrieval.core.disk import disk_errors_explained, remove
from sdretrieval.core.errors import IndexProblem
from sdretrieval.index.lucene.export import export_positions
from sdretrieval.index.snapshot import Snapshot, building, snapshot_folder
from sdretrieval.index.snapshot_format import SNAPSHOT

NAME = "positions"
POSITIONS = ArrayFolder({NAME: "<i4"}, "positions.json", 1, {NAME: Rule(at_least=0)})


_known: WeakKeyDictionary[Snapshot, Positions] = WeakKeyDictionary()


class Positions:
    """The places of every word of a collection."""

    def __init__(self, snapshot: Snapshot, places: np.ndarray) -> None:
        self._ptr, self._docs, self._counts = snapshot.term_ptr, snapshot.term_docs, snapshot.term_counts
        self._places, self._starts = places, np.concatenate([[0], np.cumsum(snapshot.cf)])
        if len(places) != self._starts[-1]:
            raise _damaged(f"{len(places)} places for {self._starts[-1]} words")

    @property
    def places(self) -> np.ndarray:
        """All of them: term by term, document by document, ascending."""
        return self._places

    def of(self, term: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A term's documents, where the places of each end, and the places of all."""
        span = slice(self._ptr[term], self._ptr[term + 1])
        ends, places = np.cumsum(self._counts[span]), self._places[self._starts[term] : self._starts[term + 1]]
        if len(ends) == 0 or ends[-1] != len(places):  # compiled loops rely on it
            raise _damaged(f"{len(places)} places of term {term}, and its counts add up to another number")
        return self._docs[span], ends, places


def _damaged(what: str) -> IndexProblem:
    return IndexProblem(f"the positions of the collection do not fit it: {what}", remedy="Delete its snapshot.")


def positions_of(snapshot: Snapshot) -> Positions:
    """The positions of a collection, read from its index when first asked for."""
    if snapshot not in _known:
        places = snapshot.arrays.get(NAME)  # of a collection in memory
        _known[snapshot] = Positions(snapshot, _kept(snapshot) if places is None else places)
    return _known[snapshot]


def _kept(snapshot: Snapshot) -> np.ndarray:
    """The array on disk, written first where there is none or only a damaged one."""
    if snapshot.index is None:
        raise IndexProblem(
            "a collection of counts has no positions of words",
            remedy="Open an index, or make it with Snapshot.from_words.",
        )
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
