"""Where words stand in their documents: an optional part of a snapshot, taken from the index when a model first asks.

Arrays of their own, in the folder ``positions`` of the snapshot's. Document by document, for each of its terms in the
order of its row, as many places as the word has there, ascending; how many these are is known from the counts.

    starts   where the places of each document begin, and where the last one's end
    low      the lower 16 bits of each place
    high     the bits above them; nothing where no document is that long

An index that has no positions has a folder of empty arrays, so that nobody asks again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from sdretrieval.core.array_folder import ArrayFolder, Rule, array_file, map_array
from sdretrieval.core.disk import disk_errors_explained, remove
from sdretrieval.core.errors import IndexProblem
from sdretrieval.index.lucene.export import export_positions
from sdretrieval.index.snapshot import Snapshot, building
from sdretrieval.index.snapshot_format import SNAPSHOT

NAME = "positions"
POSITIONS = ArrayFolder(
    {"starts": "<i4 <i8", "low": "<u2", "high": "<u2"}, "positions.json", 3, {"starts": Rule(points_into="low")}
)
_TAKEN = "by_term"  # as the index has them
TRIES = 20  # to find an index between two commits of others


class NoPositions(IndexProblem):
    """A collection that does not tell where words stand."""


class IndexChanged(IndexProblem):
    """An index that another process has committed to since its snapshot was opened."""


class Positions:
    """The places of every word of a collection."""

    def __init__(self, snapshot: Snapshot, arrays: dict[str, np.ndarray]) -> None:
        self.rows = snapshot.rows
        self.starts, self.low, self.high = (arrays[name] for name in POSITIONS.types)
        # Compiled loops rely on it, and see to it that the counts of a row stay within its places.
        fits = len(self.starts) == snapshot.n_docs + 1 and self.starts[-1] == len(self.low)
        if not fits or len(self.high) not in (0, len(self.low)):
            raise _damaged(f"{len(self.starts) - 1} documents, {len(self.low)} and {len(self.high)} places")

    def counted(
        self, docs: np.ndarray, pairs: np.ndarray, gap: int, width: int, graded: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """How often pairs of words (rows of two terms) stand in order, and near each other: documents x pairs each."""
        from sdretrieval.index.windows import count_windows  # compiled, and only those who ask need it

        terms, places = np.unique(pairs, return_inverse=True)
        docs = np.ascontiguousarray(docs, dtype=np.int64)
        if len(docs) and not 0 <= docs.min() <= docs.max() < len(self.starts) - 1:
            raise IndexError("no such document")
        counts = np.zeros((2, len(docs), len(pairs)))
        stored = (self.rows, self.starts, self.low, self.high)
        if not count_windows(docs, *stored, terms, places.reshape(-1, 2), gap, width, graded, *counts):
            raise _damaged("a row has more words than places")
        return counts[0], counts[1]

    def of_documents(self, docs: np.ndarray) -> dict[str, np.ndarray]:
        """The same of some documents, in the order given."""
        lengths = self.starts[docs + 1] - self.starts[docs]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        at = np.repeat(self.starts[docs] - starts[:-1], lengths) + np.arange(starts[-1])
        return {"starts": starts, "low": self.low[at], "high": self.high[at] if len(self.high) else self.high}


def _damaged(what: str) -> IndexProblem:
    return IndexProblem(f"the positions of the collection do not fit it: {what}", remedy="Delete its snapshot.")


_known: WeakKeyDictionary[Snapshot, Positions | NoPositions] = WeakKeyDictionary()


def positions_of(snapshot: Snapshot) -> Positions:
    """The positions of a collection, read from its index when first asked for. Raises :class:`NoPositions`."""
    if snapshot not in _known:
        try:
            _known[snapshot] = Positions(snapshot, _arrays(snapshot))
        except NoPositions as told:
            _known[snapshot] = told
    found = _known[snapshot]
    if isinstance(found, NoPositions):
        raise NoPositions(found.message, remedy=found.remedy)
    return found


def has_positions(snapshot: Snapshot) -> bool:
    """Whether it has them; read from its index as above."""
    try:
        positions_of(snapshot)
    except NoPositions:
        return False
    return True


def open_with_positions(open_latest: Callable[[], Snapshot]) -> Snapshot:
    """The snapshot of an index, and its positions where it has some, of one commit: others may commit in between."""
    for _ in range(TRIES):
        snapshot = open_latest()
        try:
            has_positions(snapshot)
        except IndexChanged as error:
            changed = error
        else:
            return snapshot
    raise changed


def _arrays(snapshot: Snapshot) -> dict[str, np.ndarray]:
    if snapshot.places is not None:
        return POSITIONS.fitted(snapshot.places)
    folder = None if snapshot.folder is None else snapshot.folder / NAME
    if folder is None or (snapshot.index is None and POSITIONS.problem(folder) is not None):
        raise NoPositions(
            f"the collection {snapshot.name} has no positions of words, and the model asks for them",
            remedy="Open an index, or make it with Snapshot.from_words.",
        )
    if snapshot.index is not None and POSITIONS.problem(folder) is not None:
        remedy = "Make room, or set SDRETRIEVAL_SNAPSHOTS to a folder where there is some."
        with (
            disk_errors_explained(f"writing the positions of {snapshot.index}", remedy),
            building(folder.parent) as aside,
        ):
            if POSITIONS.problem(folder) is not None:  # no other process did it meanwhile
                _export(snapshot, snapshot.index, aside, folder)
    arrays = POSITIONS.map(folder)
    if len(arrays["starts"]) == 1 and snapshot.n_docs:
        raise NoPositions(
            f"the index {snapshot.index or snapshot.name} has no positions of words, and the model asks for them",
            remedy="Index the documents again without --no-store-positions (Anserini: with -storePositions).",
        )
    return arrays


def _export(snapshot: Snapshot, index: Path, aside: Path, folder: Path) -> None:
    segments = export_positions(index, array_file(aside, _TAKEN))
    if segments is not None:
        try:
            is_same = SNAPSHOT.read_notes(folder.parent)["segments"] == segments
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise IndexChanged(f"the index {index} has changed since it was opened", remedy="Open it again.")
    arrays = {name: np.zeros(int(name == "starts"), dtype=np.int64) for name in POSITIONS.types}
    POSITIONS.write(aside, arrays if segments is None else _by_document(snapshot, map_array(aside, _TAKEN, "<i4")))
    array_file(aside, _TAKEN).unlink()
    remove(folder)
    aside.rename(folder)


def _by_document(snapshot: Snapshot, by_term: np.ndarray) -> dict[str, np.ndarray]:
    """Places in the order of the terms, then of the documents, to those in the order of the documents' rows."""
    from sdretrieval.index.windows import places_by_document  # compiled, and only those who ask need it

    if len(by_term) != snapshot.n_tokens:
        raise _damaged(f"{len(by_term)} places for {snapshot.n_tokens} words")
    starts = np.concatenate([[0], np.cumsum(snapshot.doc_lengths)])
    low = np.empty(len(by_term), dtype=np.uint16)
    high = np.empty(len(by_term) if len(by_term) and by_term.max() >> 16 else 0, dtype=np.uint16)
    given = snapshot.term_ptr, snapshot.term_docs, snapshot.term_counts, by_term
    if not places_by_document(*given, starts, low, high):
        raise _damaged("the counts by word are not those by document")
    return {"starts": starts, "low": low, "high": high}
