"""Labelled documents as counts: what classifiers, topic models and trackers learn from.

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
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.errors import IndexProblem, InputError, ParameterError
from sdretrieval.lucene.analysis import AnalyzerSpec
from sdretrieval.snapshot import Snapshot, open_snapshot, snapshot_folder

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from sdretrieval.corpus import Document, Problems

Labels = tuple[str, ...]
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
            "docids": (self.docids, rows), "labels": (self.labels, rows), "times": (self.times, rows),
            "words": (self.vocabulary, columns),
            **{f"values of field {name!r}": (values, rows) for name, values in self.fields.items()},
        }  # fmt: skip
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
                told = "no label" if not labels else f"{len(labels)} labels ({', '.join(labels[:4])})"
                raise InputError(
                    f"document {docid!r} has {told}, exactly one is needed",
                    file=self.name or None,
                    remedy="Leave it out or correct it, or name another field with --label-field.",
                )
        return np.array([labels[0] for labels in self.labels], dtype=str)

    def aligned(self, vocabulary: Sequence[str]) -> csr_matrix:
        """The counts over another vocabulary, as of a trained model: words it does not know are dropped."""
        from scipy.sparse import csr_matrix

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
    date_format: str | None = None,
    format: str = "auto",
    encoding: str = "utf-8",
    skip_bad: bool = False,
) -> LabelledCorpus:
    """Documents with labels from a Lucene index, or from files, folders or archives of documents.

    ``label_field`` holds a label or a list of them (None: read no labels); ``label_separator`` parts several labels
    inside one text, as tables have them. Where no document has the field this is an error, unless
    ``labels_required`` is False. ``fields`` are extra stored fields to bring back, e.g. ``split``. The rest says how
    files are read, as the flags of ``sdretrieval index`` do; an index knows all that itself, except that
    ``date_field`` names the date's field in an index of another tool.
    """
    wanted = _Wanted(label_field, tuple(fields), label_separator)
    if isinstance(source, Snapshot) or (isinstance(source, str | os.PathLike) and _is_index(Path(source))):
        corpus, seen = _from_index(source, wanted, analyzer, date_field)
        remedy = "Name the field that holds the labels with --label-field, or index the documents again with it."
    else:
        from sdretrieval.corpus import Problems, Reader

        paths = [source] if isinstance(source, str | os.PathLike) else list(source)
        problems = Problems(skip=skip_bad)
        reader = Reader(
            format=format, docid=id_field, contents=tuple(contents), date=date_field, date_format=date_format,
            encoding=encoding, problems=problems,
        )  # fmt: skip
        name = str(paths[0]) if len(paths) == 1 else ""
        corpus, seen = _from_documents(reader.read(paths), wanted, analyzer or AnalyzerSpec(), problems, name)
        remedy = "Name the field that holds the labels with --label-field."
    _check_found(corpus, seen, wanted, labels_required, remedy)
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
    from sdretrieval.corpus import Problems

    wanted = _Wanted(label_field, tuple(fields), label_separator)
    return _from_documents(documents, wanted, analyzer or AnalyzerSpec(), Problems(), name)[0]


# What is asked for ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wanted:
    """The fields to bring back from each document's record."""

    label_field: str | None
    fields: tuple[str, ...]
    separator: str | None

    def labels(self, record: Mapping[str, Any]) -> Labels:
        """The labels of one record; ValueError for what cannot be one."""
        if self.label_field is None:
            return ()
        value = record.get(self.label_field)
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

    @property
    def names(self) -> tuple[str, ...]:
        return (*((self.label_field,) if self.label_field is not None else ()), *self.fields)


class _Seen:
    """Which of the wanted fields occurred at all, and what else there is: for errors that help."""

    def __init__(self, wanted: _Wanted) -> None:
        self.missing = set(wanted.names)
        self.others: dict[str, None] = {}
        self.first = ""

    def note(self, docid: str, record: Mapping[str, Any]) -> None:
        if not self.missing:
            return
        self.first = self.first or docid
        self.missing.difference_update([name for name in self.missing if record.get(name) is not None])
        self.others.update(dict.fromkeys(record))


def _check_found(corpus: LabelledCorpus, seen: _Seen, wanted: _Wanted, labels_required: bool, remedy: str) -> None:
    for name in wanted.names:
        if name not in seen.missing:
            continue
        is_label = name == wanted.label_field
        if is_label and not labels_required:
            continue
        hidden = {"contents", "id", "sdr_time"}
        others = [repr(other) for other in seen.others if other not in hidden]
        there = ", ".join(others[:10]) + (" …" if len(others) > 10 else "") if others else "no other field"
        raise InputError(
            f"none of {len(corpus):,} documents, from {seen.first!r} on, has a field {name!r}; there is {there}",
            file=corpus.name or None,
            remedy=remedy if is_label else "Check the name of the field.",
        )


# The two routes ---------------------------------------------------------------------------------------------------


def _is_index(path: Path) -> bool:
    return path.is_dir() and any(path.glob("segments*"))


def _from_index(
    source: Any, wanted: _Wanted, analyzer: AnalyzerSpec | None, date_field: str | None
) -> tuple[LabelledCorpus, _Seen]:
    snapshot = source if isinstance(source, Snapshot) else open_snapshot(source, date_field=date_field)
    if snapshot.index is None:
        raise ParameterError("a snapshot in memory has no labels: make a LabelledCorpus directly")
    if analyzer is not None and analyzer != snapshot.analyzer:
        raise ParameterError(
            f"the index {snapshot.index} was made with {snapshot.analyzer}, {analyzer} was asked for",
            remedy="Leave the analyzer out, or index the documents again with it.",
        )
    docids = list(snapshot.docids)
    seen = _Seen(wanted)
    labels: list[Labels] = [()] * len(docids)
    fields: dict[str, list] = {name: [None] * len(docids) for name in wanted.fields}
    if wanted.names:
        from sdretrieval.lucene.stored import stored_records

        for row, record in enumerate(stored_records(snapshot.index)):
            if record is None:
                raise IndexProblem(
                    f"the index {snapshot.index} does not store the fields of {docids[row]!r}.",
                    remedy="Index the documents again with --store-raw (Anserini: -storeRaw).",
                )
            seen.note(docids[row], record)
            try:
                labels[row] = wanted.labels(record)
            except ValueError as error:
                raise InputError(f"document {docids[row]!r}: {error}", file=snapshot.index) from None
            for name in wanted.fields:
                fields[name][row] = record.get(name)
    corpus = LabelledCorpus(
        docids=docids,
        counts=snapshot.by_doc.astype(np.float64),
        vocabulary=list(snapshot.vocabulary),
        labels=tuple(labels),
        times=np.array(snapshot.times),
        fields=fields,
        analyzer=snapshot.analyzer,
        name=str(snapshot.index),
    )
    return corpus, seen


def _from_documents(
    documents: Iterable[Document], wanted: _Wanted, analyzer: AnalyzerSpec, problems: Problems, name: str
) -> tuple[LabelledCorpus, _Seen]:
    from sdretrieval.lucene.indexing import build_index

    seen = _Seen(wanted)
    kept: dict[str, tuple[Labels, list]] = {}  # the first of equal docids, as in the index

    def watched() -> Iterator[Document]:
        for document in documents:
            try:
                labels = wanted.labels(document.fields)
            except ValueError as error:
                place = document.place
                problems.report(InputError(str(error), file=place.file, line=place.line))
                continue
            kept.setdefault(document.docid, (labels, [document.fields.get(one) for one in wanted.fields]))
            seen.note(document.docid, document.fields)
            # Only the text and the time matter to the index; the rest is kept here.
            yield replace(document, fields={})

    with tempfile.TemporaryDirectory(prefix="sdretrieval-") as folder:
        index = Path(folder) / "index"
        build_index(
            watched(), index, analyzer=analyzer, threads=min(os.cpu_count() or 1, 4), store_positions=False,
            store_raw=False, problems=problems,
        )  # fmt: skip
        try:
            snapshot = open_snapshot(index)
            rows = snapshot.docids.find_many(list(kept))
            # Threads leave the index in any order: back to the file's, so that results can be repeated.
            corpus = LabelledCorpus(
                docids=[docid for docid, row in zip(kept, rows, strict=True) if row >= 0],
                counts=snapshot.by_doc[rows[rows >= 0]].astype(np.float64),
                vocabulary=list(snapshot.vocabulary),
                labels=tuple(labels for (labels, _), row in zip(kept.values(), rows, strict=True) if row >= 0),
                times=snapshot.times[rows[rows >= 0]],
                fields={
                    one: [values[i] for (_, values), row in zip(kept.values(), rows, strict=True) if row >= 0]
                    for i, one in enumerate(wanted.fields)
                },
                analyzer=analyzer,
                name=name,
                without_text=tuple(docid for docid, row in zip(kept, rows, strict=True) if row < 0),
            )
        finally:  # it may lie elsewhere, see SDRETRIEVAL_SNAPSHOTS
            shutil.rmtree(snapshot_folder(index), ignore_errors=True)
    return corpus, seen
