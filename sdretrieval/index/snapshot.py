"""The Snapshot: what models see of an index.

An immutable, memory-mapped copy of the term statistics of a Lucene index, kept beside it in
``<index>.snapshot/<fingerprint>/``: counts in both directions, vocabulary, docids, exact lengths, times. It is built
on first use from any Anserini or Pyserini index; opening one takes milliseconds and touches no Java.

A snapshot whose fingerprint is not the index's, or one of whose files has the wrong size, is never used but rebuilt.
Each build happens in a folder of its own that is renamed into place when complete: a crash leaves the old snapshot or
none, and two processes building at once do no harm.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import IndexProblem, ParameterError
from sdretrieval.core.packed_strings import PackedStrings
from sdretrieval.core.times import UNDATED
from sdretrieval.index.index_notes import analyzer_of, read_notes
from sdretrieval.index.lucene.analysis import analyze
from sdretrieval.index.lucene.export import export_index, fingerprint
from sdretrieval.index.snapshot_format import FORMAT, SNAPSHOT, snapshot_problem
from sdretrieval.index.statistics import Statistics

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from sdretrieval.index.compact import Compact

ABANDONED = 24 * 3600  # seconds after which a half-built snapshot has no builder any more


class Snapshot:
    """Term statistics of a collection. Get one from :func:`open_snapshot` or :meth:`from_counts`.

    Attributes
    ----------
    vocabulary, docids : PackedStrings
        Terms in byte order, and the documents' names.
    term_ptr, term_docs, term_counts, doc_ptr, doc_terms, doc_counts : ndarray
        Counts by term and by document, as compressed sparse rows.
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
    ) -> None:
        self.name, self.fingerprint, self.index = name, fingerprint, index
        self.analyzer, self.arrays = analyzer or AnalyzerSpec(), arrays
        self.term_ptr, self.term_docs, self.term_counts = (arrays[n] for n in ("term_ptr", "term_docs", "term_counts"))
        self.doc_ptr, self.doc_terms, self.doc_counts = (arrays[n] for n in ("doc_ptr", "doc_terms", "doc_counts"))
        self.cf: np.ndarray = arrays["cf"]
        self.doc_lengths: np.ndarray = arrays["doc_lengths"]
        self.times: np.ndarray = arrays["times"]
        self.vocabulary = PackedStrings(arrays["term_text"], arrays["term_text_ptr"])
        self.docids = PackedStrings(arrays["docid_text"], arrays["docid_text_ptr"], arrays["docid_order"])

    # -- sizes ---------------------------------------------------------------------------------------------------
    @property
    def n_docs(self) -> int:
        return len(self.doc_lengths)

    @property
    def n_terms(self) -> int:
        return len(self.cf)

    @property
    def n_postings(self) -> int:
        return len(self.term_docs)

    @cached_property
    def n_tokens(self) -> int:
        return int(self.cf.sum())

    @cached_property
    def df(self) -> np.ndarray:
        """In how many documents each term stands."""
        return np.diff(self.term_ptr)

    @property
    def p_collection(self) -> np.ndarray:
        """General English, θ^GE: the relative frequency of each term in the whole collection."""
        return self.statistics.p

    @cached_property
    def statistics(self) -> Statistics:
        return Statistics.of(self)

    @cached_property
    def docid_rank(self) -> np.ndarray:
        """The place of each document among all docids in byte order: ties between scores are decided by it."""
        if "docid_rank" in self.arrays:
            return self.arrays["docid_rank"]
        rank = np.empty(self.n_docs, dtype=np.int32)
        rank[self.docids.order] = np.arange(self.n_docs)
        return rank

    @cached_property
    def compact(self) -> Compact:
        """The postings in three bytes, for ranking."""
        from sdretrieval.index.compact import Compact  # compiled, and only ranking needs it

        return Compact.of(self.arrays)

    @property
    def is_dated(self) -> bool:
        return bool((self.times != UNDATED).any())

    # -- look-ups ------------------------------------------------------------------------------------------------
    def term_id(self, term: str) -> int:
        """The number of a term, or -1."""
        return self.vocabulary.find(term)

    def term(self, i: int) -> str:
        return self.vocabulary[i]

    def analyze(self, text: str) -> list[str]:
        """The terms of a text, analysed as this collection's documents were. Starts the JVM at first use."""
        return analyze(text, self.analyzer)

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
            "doc_ptr": matrix.indptr.astype(np.int64),
            "doc_terms": matrix.indices.astype(np.int32),
            "doc_counts": matrix.data,
            "term_ptr": columns.indptr.astype(np.int64),
            "term_docs": columns.indices.astype(np.int32),
            "term_counts": columns.data,
            "cf": np.asarray(matrix.sum(axis=0, dtype=np.int64)).ravel(),
            "doc_lengths": np.asarray(matrix.sum(axis=1, dtype=np.int64)).ravel(),
            "times": np.full(n_docs, UNDATED) if times is None else times,
            "term_text": terms.data,
            "term_text_ptr": terms.ptr,
            "docid_text": names.data,
            "docid_text_ptr": names.ptr,
            "docid_order": names.given_order,
        }
        return cls(arrays, analyzer=analyzer, name=name)


def _csr(data: np.ndarray, indices: np.ndarray, ptr: np.ndarray, shape: tuple[int, int]) -> csr_matrix:
    from scipy.sparse import csr_matrix  # slow to import, and opening a snapshot needs none

    # With both index arrays of one type SciPy takes them as they are instead of copying the large one.
    if len(indices) < np.iinfo(np.int32).max:
        ptr = ptr.astype(np.int32)
    return csr_matrix((data, indices, ptr), shape=shape, copy=False)


# -- on disk -----------------------------------------------------------------------------------------------------


def snapshot_folder(index: str | os.PathLike[str]) -> Path:
    """Where the snapshots of an index are kept: beside it, or below ``SDRETRIEVAL_SNAPSHOTS`` where that is set."""
    index = Path(index).resolve()
    elsewhere = os.environ.get("SDRETRIEVAL_SNAPSHOTS")
    if elsewhere:
        return Path(elsewhere) / f"{index.name}-{hashlib.sha256(str(index).encode()).hexdigest()[:12]}"
    return index.with_name(index.name + ".snapshot")


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
    analyzer, wanted_field, folder = analyzer_of(index), _date_field(index, date_field), _place(index, date_field)
    if rebuild or snapshot_problem(folder, folder.name) is not None:
        _build(index, folder, wanted_field, replace=rebuild)
    problem = snapshot_problem(folder, folder.name)
    if problem is not None:
        raise IndexProblem(
            f"the snapshot of {index} is still damaged after rebuilding: {problem}",
            remedy=f"Check the disk, and delete {folder}.",
        )
    return Snapshot(SNAPSHOT.map(folder), analyzer=analyzer, name=index.name, fingerprint=folder.name, index=index)


def load_snapshot(folder: str | os.PathLike[str], *, analyzer: AnalyzerSpec | None = None, name: str = "") -> Snapshot:
    """A finished snapshot from its own folder, ``….snapshot/<fingerprint>``, without its index and without Java.

    For machines that rank and never build: whatever is missing or cut short is an error that names the file.
    """
    folder = Path(folder)
    problem = snapshot_problem(folder, folder.name)
    if problem is not None:
        raise IndexProblem(f"the snapshot {folder} cannot be used: {problem}", remedy="Build it again from its index.")
    return Snapshot(SNAPSHOT.map(folder), analyzer=analyzer, name=name, fingerprint=folder.name)


def snapshot_state(index: str | os.PathLike[str], *, date_field: str | None = None) -> str:
    """``fresh``, ``absent``, ``stale``, or what is wrong with it: for ``sdretrieval doctor``."""
    folder = _place(Path(index), date_field)
    problem = snapshot_problem(folder, folder.name)
    if problem is None:
        return "fresh"
    if folder.exists():
        return problem
    return "stale" if folder.parent.is_dir() and any(folder.parent.iterdir()) else "absent"


def _place(index: Path, date_field: str | None) -> Path:
    """The folder of the snapshot that an index in its present state has; its name is the fingerprint."""
    return snapshot_folder(index) / fingerprint(index, f"format {FORMAT}", f"date {_date_field(index, date_field)}")


def _date_field(index: Path, asked: str | None) -> str:
    if asked is not None:
        return asked
    return "" if read_notes(index) else "date"


def _build(index: Path, folder: Path, date_field: str, *, replace: bool = False) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    except OSError as error:
        raise IndexProblem(
            f"the snapshot of {index} cannot be written: {error}",
            remedy="Make the folder writable, or set SDRETRIEVAL_SNAPSHOTS to a folder that is.",
        ) from error
    try:
        unparsed = export_index(index, aside, date_field=date_field)
        SNAPSHOT.finish(aside, fingerprint=folder.name, unparsed_dates=unparsed)
        shutil.copymode(folder.parent, aside)  # mkdtemp's folders are for their owner alone
        _put_in_place(aside, folder, replace)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_in_place(aside: Path, folder: Path, replace: bool) -> None:
    """Rename a finished build; whoever comes second finds a whole one there and discards their own."""
    for _ in range(3):
        try:
            os.rename(aside, folder)
            break
        except OSError:
            if not replace and snapshot_problem(folder, folder.name) is None:
                break
            shutil.rmtree(folder, ignore_errors=True)  # a damaged one, or one that is not trusted
    # Snapshots of earlier states (open maps of them stay valid), and what a killed build left long ago.
    for other in folder.parent.iterdir():
        if _is_abandoned(other) if other.name.startswith(".") else other.name != folder.name:
            shutil.rmtree(other, ignore_errors=True)


def _is_abandoned(building: Path) -> bool:
    try:
        return time.time() - building.stat().st_mtime > ABANDONED
    except FileNotFoundError:  # its builder finished just now
        return False
