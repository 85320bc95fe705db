"""Labelled documents as counts: what classifiers, theme models and trackers learn from.

The source is a Lucene index that stores its raw JSON, or any corpus that ``sdretrieval index`` reads; such a corpus
is indexed into a temporary folder, so that its text is analysed by Lucene and exactly as an index's would be.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Document, Problems, Reader
from sdretrieval.core.errors import IndexProblem, InputError, ParameterError, few
from sdretrieval.index.lucene.contents import stored_records
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot, snapshot_folder

Labels = tuple[str, ...]
Taken = tuple[Labels, list]  # what is brought back of a document: its labels, and the extra fields
Source = str | os.PathLike[str] | Snapshot


@dataclass(frozen=True)
class LabelledCorpus:
    """Documents with their labels: one row of ``counts`` each. An empty tuple of labels is an unlabelled document.

    Rows of an index are in the order of its snapshot, those of a file in the file's order. ``fields`` holds the
    extra fields asked for, None where a document has none. ``without_text`` names documents of a file that were
    left out, as an index leaves them out, because they have no text.
    """

    docids: Sequence[str]
    counts: csr_matrix  # documents x terms, float64
    vocabulary: Sequence[str]
    labels: tuple[Labels, ...]
    times: np.ndarray  # ms since 1970 UTC, UNDATED where unknown
    fields: dict[str, list] = field(default_factory=dict)
    analyzer: AnalyzerSpec = field(default_factory=AnalyzerSpec)
    name: str = ""
    without_text: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        rows, columns = self.counts.shape
        parts: dict[str, tuple[Sequence | np.ndarray, int]] = {
            "docids": (self.docids, rows),
            "labels": (self.labels, rows),
            "times": (self.times, rows),
            "words": (self.vocabulary, columns),
            **{f"values of field {name!r}": (values, rows) for name, values in self.fields.items()},
        }
        for what, (values, wanted) in parts.items():
            if len(values) != wanted:
                raise ParameterError(f"counts are {rows} x {columns}, but there are {len(values)} {what}")

    def __len__(self) -> int:
        return self.counts.shape[0]

    def __repr__(self) -> str:
        return (
            f"<LabelledCorpus {self.name or 'in memory'}: {len(self)} documents, {self.counts.shape[1]} terms, "
            f"{len(self.label_names)} labels>"
        )

    @property
    def label_names(self) -> list[str]:
        """Every label in use, sorted."""
        return sorted({label for labels in self.labels for label in labels})

    def has_label(self, label: str) -> np.ndarray:
        """For each document, whether it bears the label."""
        return np.fromiter((label in labels for labels in self.labels), dtype=bool, count=len(self))

    def select(self, rows: Any) -> LabelledCorpus:
        """Some of the documents: row numbers in any order, or a mask. The vocabulary stays whole."""
        rows = np.asarray(rows)
        if rows.dtype == bool:
            if rows.shape != (len(self),):
                raise ParameterError(f"a mask of {rows.shape} does not fit {len(self)} documents")
            rows = np.flatnonzero(rows)
        rows = rows.astype(np.int64).ravel()
        return replace(
            self,
            docids=[self.docids[i] for i in rows],
            counts=self.counts[rows],
            labels=tuple(self.labels[i] for i in rows),
            times=self.times[rows],
            fields={name: [values[i] for i in rows] for name, values in self.fields.items()},
            without_text=(),
        )

    def single_labels(self) -> np.ndarray:
        """The one label of each document; InputError naming the first that has none or several."""
        for docid, labels in zip(self.docids, self.labels, strict=True):
            if len(labels) != 1:
                told = "no label" if not labels else f"{len(labels)} labels ({few(labels)})"
                raise InputError(
                    f"document {docid!r} has {told}, exactly one is needed",
                    file=self.name or None,
                    remedy="Leave it out or correct it, name another field with --label-field, or pass --multi-label.",
                )
        return np.array([labels[0] for labels in self.labels], dtype=str)

    def aligned(self, vocabulary: Sequence[str]) -> csr_matrix:
        """The counts over another vocabulary, as of a trained model: words it does not know are dropped."""
        numbers = {word: number for number, word in enumerate(vocabulary)}
        target = np.fromiter((numbers.get(word, -1) for word in self.vocabulary), np.int64, len(self.vocabulary))
        entries = self.counts.tocoo()
        columns = target[entries.col]
        known = columns >= 0
        return csr_matrix(
            (entries.data[known], (entries.row[known], columns[known])), shape=(len(self), len(vocabulary))
        )


def read_labelled(
    source: Source | Sequence[str | os.PathLike[str]],
    *,
    label_field: str | None = "labels",
    fields: Iterable[str] = (),
    analyzer: AnalyzerSpec | None = None,
    labels_required: bool = True,
    label_separator: str | None = None,
    id_field: str | None = None,
    contents: Sequence[str] = (),
    date_field: str | None = None,
    date_format: str | Sequence[str] | None = None,
    format: str = "auto",
    encoding: str = "utf-8",
    skip_bad: bool = False,
) -> LabelledCorpus:
    """Documents with labels from a Lucene index, or from files, folders or archives of documents.

    Parameters
    ----------
    source : an index, a snapshot of one, or a path or paths of documents
    label_field : field of a label or a list of them; None reads no labels
    fields : extra stored fields to bring back, e.g. ``split``
    analyzer : how text becomes words; an index knows that itself
    labels_required : whether it is an error that no document has the field
    label_separator : parts several labels inside one text, as tables have them
    date_field : field of the date; in an index only where another tool made it
    id_field, contents, date_format, format, encoding, skip_bad : how files are read, as `sdretrieval index` has it

    Returns
    -------
    LabelledCorpus
    """
    wanted = _Fields(label_field, fields, label_separator)
    remedy = "Name the field that holds the labels with --label-field"
    if isinstance(source, Snapshot) or (isinstance(source, str | os.PathLike) and _is_index(Path(source))):
        corpus = _from_index(source, wanted, analyzer, date_field)
        remedy += ", or index the documents again with it"
    else:
        paths = [source] if isinstance(source, str | os.PathLike) else list(source)
        reader = Reader(
            format=format,
            docid=id_field,
            contents=tuple(contents),
            date=date_field,
            date_format=date_format,
            encoding=encoding,
            problems=Problems(skip=skip_bad),
        )
        name = str(paths[0]) if len(paths) == 1 else ""
        corpus = _from_documents(reader.read(paths), wanted, analyzer or AnalyzerSpec(), reader.problems, name)
    wanted.check(corpus, labels_required, f"{remedy}.")
    return corpus


def corpus_from_documents(
    documents: Iterable[Document],
    *,
    label_field: str | None = "labels",
    fields: Iterable[str] = (),
    analyzer: AnalyzerSpec | None = None,
    label_separator: str | None = None,
    name: str = "",
) -> LabelledCorpus:
    """The same from documents made in Python; labels may be missing."""
    wanted = _Fields(label_field, fields, label_separator)
    return _from_documents(documents, wanted, analyzer or AnalyzerSpec(), Problems(), name)


class _Fields:
    """The fields to bring back from each document, and which of them occurred at all: for errors that help."""

    def __init__(self, label_field: str | None, fields: Iterable[str], separator: str | None) -> None:
        self.label_field, self.extra, self.separator = label_field, tuple(fields), separator
        self.names = (*(() if label_field is None else (label_field,)), *self.extra)
        self.missing = set(self.names)
        self.others: dict[str, None] = {}
        self.first = ""

    def take(self, docid: str, record: Mapping[str, Any]) -> Taken:
        """Labels and extra fields of one record; ValueError for what cannot be a label."""
        labels = self._labels(record)
        if self.missing:
            self.first = self.first or docid
            self.missing.difference_update([name for name in self.missing if record.get(name) is not None])
            self.others.update(dict.fromkeys(record))
        return labels, [record.get(name) for name in self.extra]

    def _labels(self, record: Mapping[str, Any]) -> Labels:
        value = None if self.label_field is None else record.get(self.label_field)
        if value is None:
            return ()
        if isinstance(value, str) and self.separator:
            value = value.split(self.separator)
        values = value if isinstance(value, list | tuple) else [value]
        for one in values:
            if not isinstance(one, str | int | float):
                raise ValueError(
                    f"field {self.label_field!r}: a label must be text or a number, got {type(one).__name__}"
                )
        # In order, each once; "" is how a table says that there is none.
        return tuple(dict.fromkeys(text for one in values if (text := str(one).strip())))

    def check(self, corpus: LabelledCorpus, labels_required: bool, remedy: str) -> None:
        """InputError for the first field that no document has."""
        for name in self.names:
            is_label = name == self.label_field
            if name not in self.missing or (is_label and not labels_required):
                continue
            others = [repr(other) for other in self.others if other not in {"contents", "id", "sdr_time"}]
            there = few(others) or "no other field"
            raise InputError(
                f"none of {len(corpus):,} documents, from {self.first!r} on, has a field {name!r}; there is {there}",
                file=corpus.name or None,
                remedy=remedy if is_label else "Check the name of the field.",
            )

    def corpus(self, taken: Sequence[Taken], **parts: Any) -> LabelledCorpus:
        return LabelledCorpus(
            labels=tuple(labels for labels, _ in taken),
            fields={name: [values[i] for _, values in taken] for i, name in enumerate(self.extra)},
            **parts,
        )


# The two routes ---------------------------------------------------------------------------------------------------


def _is_index(path: Path) -> bool:
    return path.is_dir() and any(path.glob("segments*"))


def _from_index(source: Any, wanted: _Fields, analyzer: AnalyzerSpec | None, date_field: str | None) -> LabelledCorpus:
    snapshot = source if isinstance(source, Snapshot) else open_snapshot(source, date_field=date_field)
    if snapshot.index is None:
        raise ParameterError("a snapshot in memory has no labels: make a LabelledCorpus directly")
    if analyzer is not None and analyzer != snapshot.analyzer:
        raise ParameterError(
            f"the index {snapshot.index} was made with {snapshot.analyzer}, {analyzer} was asked for",
            remedy="Leave the analyzer out, or index the documents again with it.",
        )
    docids = list(snapshot.docids)
    return wanted.corpus(
        _stored(snapshot.index, docids, wanted) if wanted.names else [((), [])] * len(docids),
        docids=docids,
        counts=snapshot.by_doc.astype(np.float64),
        vocabulary=list(snapshot.vocabulary),
        times=np.array(snapshot.times),
        analyzer=snapshot.analyzer,
        name=str(snapshot.index),
    )


def _stored(index: Path, docids: list[str], wanted: _Fields) -> list[Taken]:
    taken = []
    for docid, record in zip(docids, stored_records(index), strict=True):
        if record is None:
            raise IndexProblem(
                f"the index {index} does not store the fields of {docid!r}.",
                remedy="Index the documents again with --store-raw (Anserini: -storeRaw).",
            )
        try:
            taken.append(wanted.take(docid, record))
        except ValueError as error:
            raise InputError(f"document {docid!r}: {error}", file=index) from None
    return taken


def _from_documents(
    documents: Iterable[Document], wanted: _Fields, analyzer: AnalyzerSpec, problems: Problems, name: str
) -> LabelledCorpus:
    kept: dict[str, Taken] = {}  # the first of equal docids, as in the index

    def watched() -> Iterator[Document]:
        for document in documents:
            try:
                taken = wanted.take(document.docid, document.fields)
            except ValueError as error:
                place = document.place
                problems.report(InputError(str(error), file=place.file, line=place.line))
                continue
            kept.setdefault(document.docid, taken)
            # Only the text and the time matter to the index; the rest is kept here.
            yield replace(document, fields={})

    with tempfile.TemporaryDirectory(prefix="sdretrieval-") as folder:
        index = Path(folder) / "index"
        build_index(
            watched(),
            index,
            analyzer=analyzer,
            threads=min(os.cpu_count() or 1, 4),
            store_positions=False,
            store_raw=False,
            problems=problems,
        )
        try:
            snapshot = open_snapshot(index)
            # Threads leave the index in any order: back to the file's, so that results can be repeated.
            row_of = dict(zip(kept, snapshot.docids.find_many(list(kept)).tolist(), strict=True))
            docids = [docid for docid, row in row_of.items() if row >= 0]
            rows = np.array([row_of[docid] for docid in docids], dtype=np.int64)
            return wanted.corpus(
                [kept[docid] for docid in docids],
                docids=docids,
                counts=snapshot.by_doc[rows].astype(np.float64),
                vocabulary=list(snapshot.vocabulary),
                times=snapshot.times[rows],
                analyzer=analyzer,
                name=name,
                without_text=tuple(docid for docid, row in row_of.items() if row < 0),
            )
        finally:  # it may lie elsewhere, see SDRETRIEVAL_SNAPSHOTS
            shutil.rmtree(snapshot_folder(index), ignore_errors=True)
