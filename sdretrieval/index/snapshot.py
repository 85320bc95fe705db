"""The Snapshot: what models see of an index.

An immutable, memory-mapped copy of the term statistics of a Lucene index, kept beside it in
``<index>.snapshot/<fingerprint>/``: counts in both directions, vocabulary, docids, exact lengths, times. It is built
on first use from any Anserini or Pyserini index; opening one takes milliseconds and touches no Java.

A snapshot whose fingerprint is not that of the index's commit, or one of whose files is damaged, is never used but
built again, from an earlier one and what has come since where that is less work. One process builds at a time, in a
folder that is renamed into place when complete: a crash leaves the old snapshot or none.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.array_folder import read_only
from sdretrieval.core.disk import disk_errors_explained, remove, scratch_folder, sync_folder
from sdretrieval.core.errors import IndexProblem, ParameterError
from sdretrieval.core.packed_strings import PackedStrings
from sdretrieval.core.progress import bar
from sdretrieval.core.times import UNDATED
from sdretrieval.index.commit import Commit, latest_commit, snapshot_folder
from sdretrieval.index.lucene.analysis import analyze
from sdretrieval.index.lucene.committing import clear_abandoned
from sdretrieval.index.lucene.export import export_index
from sdretrieval.index.rows import Rows, packed_rows, row_values
from sdretrieval.index.snapshot_format import FORMAT, SNAPSHOT, grouped, inverse, snapshot_problem
from sdretrieval.index.sparse import postings_by_term
from sdretrieval.index.statistics import Statistics

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from sdretrieval.index.compact import Compact

LOOKED_UP = 0.1  # of all postings; before more are looked up, all are made
BUILDING = ".building"  # where a snapshot is built, and the lock of whoever builds


class Snapshot:
    """Term statistics of a collection. Get one from :func:`open_snapshot` or :meth:`from_counts`.

    Attributes
    ----------
    vocabulary, docids : PackedStrings
        Terms in byte order, and the documents' names.
    rows : Rows
        Words and counts by document, as they are stored.
    term_ptr, term_docs, term_counts, doc_ptr, doc_terms, doc_counts : ndarray
        Counts by term and by document, as compressed sparse rows; those by document made of ``rows`` when asked for.
    cf, doc_lengths, times : ndarray
        Collection frequencies, exact lengths, and times in ms since 1970 (``UNDATED`` where there is none).
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        *,
        analyzer: AnalyzerSpec | None = None,
        name: str = "",
        fingerprint: str = "",
        index: Path | None = None,
        folder: Path | None = None,
    ) -> None:
        self.name, self.fingerprint, self.index, self.folder = name, fingerprint, index, folder
        self.places: dict[str, np.ndarray] | None = None  # of words, where they are in memory (index/positions.py)
        self.analyzer, self.arrays = analyzer or AnalyzerSpec(), arrays
        self.term_ptr, self.doc_ptr, self.times, self.docid_rank, self.length_values, self.length_group = (
            arrays[name] for name in ("term_ptr", "doc_ptr", "times", "docid_rank", "length_values", "length_group")
        )
        self.rows, self._looked_up = Rows.of(arrays), 0
        self.vocabulary = PackedStrings(arrays["term_text"], arrays["term_text_ptr"])
        docids = arrays["docid_text"], arrays["docid_text_ptr"]
        self.docids = PackedStrings(*docids, partial(inverse, self.docid_rank))

    # -- sizes ---------------------------------------------------------------------------------------------------
    @property
    def n_docs(self) -> int:
        return len(self.times)

    @property
    def n_terms(self) -> int:
        return len(self.term_ptr) - 1

    @property
    def n_postings(self) -> int:
        return len(self.rows.words)

    @cached_property
    def n_tokens(self) -> int:
        return int(self.cf.sum())

    @cached_property
    def df(self) -> np.ndarray:
        """In how many documents each term stands."""
        return np.diff(self.term_ptr).astype(np.int64)

    @cached_property
    def cf(self) -> np.ndarray:
        return read_only(self.arrays["cf"].astype(np.int64, copy=False))

    @cached_property
    def doc_lengths(self) -> np.ndarray:
        return read_only(self.length_values[self.length_group])

    def lengths_of(self, docs: np.ndarray | int) -> np.ndarray:
        """The lengths of some documents, or of one."""
        return self.length_values[self.length_group[docs]]

    @property
    def doc_terms(self) -> np.ndarray:
        return self._by_row[0]

    @property
    def doc_counts(self) -> np.ndarray:
        return self._by_row[1]

    @cached_property
    def _by_row(self) -> tuple[np.ndarray, np.ndarray]:
        terms, counts = self.rows.taken()
        return read_only(terms), read_only(counts)

    def row(self, doc: int) -> tuple[np.ndarray, np.ndarray]:
        """The terms of a document, ascending, and their counts."""
        return self.rows.taken(int(self.doc_ptr[doc]), int(self.doc_ptr[doc + 1]))

    @property
    def term_docs(self) -> np.ndarray:
        return self._by_term[0]

    @property
    def term_counts(self) -> np.ndarray:
        return self._by_term[1]

    @cached_property
    def _by_term(self) -> tuple[np.ndarray, np.ndarray]:
        """Of a large collection made when first asked for: 8 bytes of memory for each posting."""
        return postings_by_term(self.arrays)

    @property
    def p_collection(self) -> np.ndarray:
        """General English, θ^GE: the relative frequency of each term in the whole collection."""
        return self.statistics.p

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics.of(self)

    @cached_property
    def compact(self) -> Compact:
        """The postings in three bytes, for ranking."""
        from sdretrieval.index.compact import Compact, compact_arrays  # compiled, and only ranking needs it

        is_kept = "block_docs" in self.arrays
        return Compact.of(self.arrays if is_kept else {**self.arrays, **SNAPSHOT.fitted(compact_arrays(self.arrays))})

    @cached_property
    def is_dated(self) -> bool:
        return bool((self.times != UNDATED).any())

    def time_span(self) -> tuple[int, int | None, int | None]:
        """How many documents have no time, and the earliest and the latest time."""
        dated = self.times[self.times != UNDATED]
        span = (int(dated.min()), int(dated.max())) if len(dated) else (None, None)
        return self.n_docs - len(dated), *span

    # -- look-ups ------------------------------------------------------------------------------------------------
    def term_id(self, term: str) -> int:
        """The number of a term, or -1."""
        return self.vocabulary.find(term)

    def term(self, i: int) -> str:
        return self.vocabulary[i]

    def analyze(self, text: str) -> list[str]:
        """The terms of a text, analysed as this collection's documents were. Starts the JVM where that takes Java."""
        return analyze(text, self.analyzer)

    def docs_of(self, term: int) -> np.ndarray:
        """The documents that have a term, ascending."""
        if self._has_by_term:
            return self.term_docs[self.term_ptr[term] : self.term_ptr[term + 1]]
        return self.compact.docs_of(term, self.term_ptr)

    def postings_of(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As ``term_ptr``, ``term_docs`` and ``term_counts``, and the place of each term there.

        Of a large collection only these terms', as long as not too many have been asked for.
        """
        sizes = self.df[terms]
        if self._has_by_term or self._looked_up + sizes.sum() > LOOKED_UP * self.n_postings:
            return self.term_ptr, self.term_docs, self.term_counts, terms
        self._looked_up += int(sizes.sum())
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        docs = np.concatenate([ptr[:0], *(self.docs_of(term) for term in terms.tolist())]).astype(np.int32)
        counts = row_values(self.rows, ptr, terms, docs)
        return read_only(ptr), read_only(docs), read_only(counts), np.arange(len(terms))

    @property
    def _has_by_term(self) -> bool:
        return len(self.arrays["term_docs"]) == self.n_postings or "_by_term" in self.__dict__

    # -- matrices ------------------------------------------------------------------------------------------------
    @cached_property
    def by_doc(self) -> csr_matrix:
        """Counts, documents x terms, over the memory-mapped arrays."""
        return _csr(self.doc_counts, self.doc_terms, self.doc_ptr, (self.n_docs, self.n_terms))

    @cached_property
    def by_term(self) -> csr_matrix:
        """Counts, terms x documents, over the memory-mapped arrays."""
        return _csr(self.term_counts, self.term_docs, self.term_ptr, (self.n_terms, self.n_docs))

    def __repr__(self) -> str:
        return f"<Snapshot {self.name or 'in memory'}: {self.n_docs} documents, {self.n_terms} terms>"

    # -- without an index ----------------------------------------------------------------------------------------
    @classmethod
    def from_counts(
        cls,
        counts: Any,
        vocabulary: Sequence[str],
        docids: Sequence[str] | None = None,
        times: Iterable[int] | None = None,
        *,
        analyzer: AnalyzerSpec | None = None,
        name: str = "",
    ) -> Snapshot:
        """A snapshot in memory from a matrix of counts, documents x terms. Terms nobody uses are dropped."""
        from scipy.sparse import csr_matrix  # slow to import, and opening a snapshot needs none

        given = csr_matrix(counts)
        matrix = given.astype(np.int32)
        if (matrix != given).nnz or (matrix.nnz and matrix.data.min() < 0):
            raise ParameterError("counts must be whole numbers from 0 to 2^31 - 1")
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        times = None if times is None else np.asarray(list(times), dtype=np.int64)
        for what, values, wanted in (
            ("words", vocabulary, matrix.shape[1]),
            ("docids", docids, matrix.shape[0]),
            ("times", times, matrix.shape[0]),
        ):
            if values is not None and len(values) != wanted:
                raise ParameterError(f"counts are {matrix.shape[0]} x {matrix.shape[1]}, but {len(values)} {what}")
        for what, strings in (("word", vocabulary), ("docid", docids or ())):
            if len(set(strings)) != len(strings):
                raise ParameterError(f"the {what} {Counter(strings).most_common(1)[0][0]!r} is given twice")
        # The index's order: terms by their bytes.
        used = np.asarray(matrix.sum(axis=0)).ravel() > 0
        order = [i for i in sorted(range(len(vocabulary)), key=lambda i: vocabulary[i].encode()) if used[i]]
        matrix = matrix[:, order].tocsr()
        matrix.sort_indices()
        columns = matrix.tocsc()
        n_docs = matrix.shape[0]
        names = PackedStrings.pack(docids if docids is not None else [f"d{i}" for i in range(n_docs)])
        terms = PackedStrings.pack([vocabulary[i] for i in order], is_sorted=True)
        arrays = {
            "doc_ptr": matrix.indptr,
            **packed_rows(matrix.indices, matrix.data, len(terms)),
            "term_ptr": columns.indptr,
            "term_docs": columns.indices,
            "term_counts": columns.data,
            "cf": np.asarray(matrix.sum(axis=0, dtype=np.int64)).ravel(),
            **grouped(np.asarray(matrix.sum(axis=1, dtype=np.int64)).ravel()),
            "times": np.full(n_docs, UNDATED) if times is None else times,
            "term_text": terms.data,
            "term_text_ptr": terms.ptr,
            "docid_text": names.data,
            "docid_text_ptr": names.ptr,
            "docid_rank": inverse(names.order),
        }
        return cls(SNAPSHOT.fitted(arrays), analyzer=analyzer, name=name)

    @classmethod
    def from_words(cls, documents: Sequence[Sequence[str]], docids: Sequence[str] | None = None) -> Snapshot:
        """A snapshot in memory from the words of documents, in order: it has positions."""
        vocabulary = sorted({word for document in documents for word in document}, key=str.encode)
        number = {word: i for i, word in enumerate(vocabulary)}
        texts = [[number[word] for word in document] for document in documents]
        counts = np.zeros((len(documents), len(vocabulary)), dtype=np.int64)
        for d, text in enumerate(texts):
            np.add.at(counts[d], text, 1)
        made = cls.from_counts(counts, vocabulary, docids)
        made.places = places_of(texts)
        return made


def places_of(texts: Sequence[Sequence[int]]) -> dict[str, np.ndarray]:
    """Where words stand (index/positions.py), of documents given as the numbers of their terms in order."""
    starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    places = np.concatenate([np.argsort(text, kind="stable") for text in ([], *texts)]).astype(np.int64)
    return {"starts": starts, "low": (places & 0xFFFF).astype("<u2"), "high": (places >> 16).astype("<u2")}


def _csr(data: np.ndarray, indices: np.ndarray, ptr: np.ndarray, shape: tuple[int, int]) -> csr_matrix:
    from scipy.sparse import csr_matrix  # slow to import, and opening a snapshot needs none

    # With both index arrays of one type SciPy takes them as they are instead of copying the large one.
    if len(indices) < np.iinfo(np.int32).max:
        ptr = ptr.astype(np.int32)
    return csr_matrix((data, indices, ptr), shape=shape, copy=False)


# -- on disk -----------------------------------------------------------------------------------------------------


def open_snapshot(index: str | os.PathLike[str], *, rebuild: bool = False, date_field: str | None = None) -> Snapshot:
    """The snapshot of a Lucene index, built first where there is none or only a stale or damaged one.

    Parameters
    ----------
    index
        A folder made by Anserini, Pyserini or ``sdretrieval index``.
    rebuild
        Build it whatever is there.
    date_field
        A stored field, or a member of the stored raw JSON, that holds the date of a document in an index made by
        another tool (default ``date``). Indexes made by ``sdretrieval index`` carry their times themselves.

    Returns
    -------
    Snapshot
    """
    index = Path(index)
    clear_abandoned(index)
    for _ in range(20):  # others may commit, and remove the snapshot of an earlier commit, at any moment
        commit = latest_commit(index)
        folder = _place(commit, date_field)
        _clear_left(folder)
        problem = snapshot_problem(folder, folder.name)
        if problem is None and not rebuild:
            analyzer = AnalyzerSpec.from_json(commit.notes.get("analyzer", {}))
            with suppress(FileNotFoundError):
                about: dict[str, Any] = {"name": index.name, "fingerprint": folder.name, "index": index}
                return Snapshot(SNAPSHOT.map(folder), analyzer=analyzer, **about, folder=folder)
        else:
            done = _build(commit, folder, date_field, replace=rebuild)
            rebuild = rebuild and not done
    raise IndexProblem(
        f"the snapshot of {index} is still damaged after rebuilding: {problem}",
        remedy=f"Check the disk, and delete {folder}.",
    )


def load_snapshot(folder: str | os.PathLike[str], *, analyzer: AnalyzerSpec | None = None, name: str = "") -> Snapshot:
    """A finished snapshot from its own folder, ``….snapshot/<fingerprint>``, without its index and without Java.

    For machines that rank and never build: whatever is missing or cut short is an error that names the file.
    """
    folder = Path(folder)
    problem = snapshot_problem(folder, folder.name)
    if problem is not None:
        raise IndexProblem(f"the snapshot {folder} cannot be used: {problem}", remedy="Build it again from its index.")
    return Snapshot(SNAPSHOT.map(folder), analyzer=analyzer, name=name, fingerprint=folder.name, folder=folder)


def snapshot_state(index: str | os.PathLike[str], *, date_field: str | None = None, again: bool = False) -> str:
    """``fresh``, ``absent``, ``stale``, or what is wrong with it: for ``sdretrieval doctor``.

    ``again``: read it all, seen before or not."""
    folder = _place(latest_commit(Path(index)), date_field)
    problem = snapshot_problem(folder, folder.name, again=again)
    if problem is None:
        return "fresh"
    if folder.exists():
        return problem
    return "stale" if any(folder.parent.glob("[!.]*")) else "absent"


def _place(commit: Commit, date_field: str | None) -> Path:
    """The folder of the snapshot of a commit; its name is the fingerprint."""
    name = commit.fingerprint(f"format {FORMAT}", f"date {_date_field(commit, date_field)}")
    return snapshot_folder(commit.index) / name


def _date_field(commit: Commit, asked: str | None) -> str:
    if asked is not None:
        return asked
    return "" if commit.notes else "date"


def _clear_left(folder: Path) -> None:
    """Remove what a killed builder left, unless another is at work."""
    if (folder.parent / BUILDING).exists():
        with suppress(OSError), scratch_folder(folder.parent / BUILDING) as free:
            if free and snapshot_problem(folder, folder.name) is None:
                _remove_others(folder)


def _build(commit: Commit, folder: Path, date_field: str | None, *, replace: bool = False) -> bool:
    """Build a snapshot, unless another process just did; False where the index has gone on to another commit."""
    index, wanted = commit.index, _date_field(commit, date_field)
    remedy = "Make room, or set SDRETRIEVAL_SNAPSHOTS to a folder where there is some."
    with disk_errors_explained(f"writing the snapshot of {index}", remedy), building(folder) as aside:
        if not replace and snapshot_problem(folder, folder.name) is None:
            return True
        earlier, known = _earlier(folder) if not wanted else (None, [])
        made = export_index(index, aside, date_field=wanted, earlier=earlier, known=known)
        if made.commit != commit.name:
            return False
        about = {"fingerprint": folder.name, "unparsed_dates": made.unparsed_dates, "segments": made.segments}
        SNAPSHOT.finish(aside, made.types, **about)
        if latest_commit(index).name == commit.name and latest_commit(index).data != commit.data:
            return False  # another index of the same name and number
        _put_in_place(aside, folder, is_latest=latest_commit(index).data == commit.data)
        return True


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """A folder to build a snapshot in, once no other process is at it."""
    place = folder.parent / BUILDING
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held, bar(label="waiting for another process that builds the snapshot", unit="") as shown:
            while not held.enter_context(scratch_folder(place)):
                shown.update()
                time.sleep(0.05)
            aside = place / folder.name
            remove(aside)
            aside.mkdir()
            shown.close()
            yield aside
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise IndexProblem(
            f"the snapshot {folder} cannot be written: {error}",
            remedy="Make the folder writable, or set SDRETRIEVAL_SNAPSHOTS to a folder that is.",
        ) from error


def _earlier(folder: Path) -> tuple[Path | None, list[str]]:
    """The latest whole snapshot of another commit, and its segments."""
    others = [other for other in folder.parent.iterdir() if not other.name.startswith(".") and other != folder]
    for other in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True):
        if snapshot_problem(other, other.name) is None:
            return other, [str(name) for name in SNAPSHOT.read_notes(other).get("segments", [])]
    return None, []


def _put_in_place(aside: Path, folder: Path, *, is_latest: bool) -> None:
    """Rename a finished build; then remove snapshots of earlier states, whose open maps stay valid."""
    shutil.copymode(folder.parent, aside)
    if folder.exists():  # a damaged one, or one that is not trusted
        folder.rename(aside.with_name("replaced"))
    aside.rename(folder)
    sync_folder(folder.parent)
    if is_latest:
        _remove_others(folder)


def _remove_others(folder: Path) -> None:
    for other in folder.parent.iterdir():
        if other.name not in (folder.name, BUILDING):
            remove(other)
