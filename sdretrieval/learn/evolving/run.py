"""An evolving classifier over a dated, partly labelled corpus: from counts to predictions, frame by frame, resumable.

Documents are tf-idf rows of unit length, (1 + ln tf)(1 + ln((1 + N) / (1 + df))), with the N and df of the documents up
to and including their frame: nothing later than a frame has a say in it, and a run that is resumed gives what a run
that was never stopped would have given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from sdretrieval.core.errors import InputError, ParameterError, few
from sdretrieval.core.progress import progress
from sdretrieval.core.saved_arrays import Arrays, Header, load_model, save_arrays
from sdretrieval.learn.evolving.estimators import SSLEOffline
from sdretrieval.learn.evolving.frame_classifier import FrameClassifier
from sdretrieval.learn.evolving.frames import FrameRecord, best_classes, choose_labelled, frame_names, in_order, quality
from sdretrieval.learn.evolving.state import from_arrays, to_arrays
from sdretrieval.learn.labelled import LabelledCorpus

KIND = "evolving run"
Floats = NDArray[np.float64]


@dataclass
class Words:
    """The vocabulary so far, and in how many of the documents so far each word stands."""

    numbers: dict[str, int] = field(default_factory=dict)
    df: Floats = field(default_factory=lambda: np.zeros(0))
    documents: int = 0
    analyzer: str = ""  # that made the words: another one's would be other words

    def numbered(self, vocabulary: Sequence[str]) -> NDArray[np.int64]:
        """The column of each word; words not known are added at the end."""
        columns = np.array([self.numbers.setdefault(word, len(self.numbers)) for word in vocabulary], dtype=np.int64)
        self.df = np.pad(self.df, (0, len(self.numbers) - len(self.df)))
        return columns

    def add(self, counts: csr_matrix) -> None:
        self.df += np.bincount(counts.indices, minlength=len(self.df))
        self.documents += counts.shape[0]

    def tf_idf(self, counts: csr_matrix) -> csr_matrix:
        return tf_idf(counts, self.df, self.documents)


def tf_idf(counts: csr_matrix, df: Floats, n: int) -> csr_matrix:
    """Rows of unit length, by document frequencies among n documents."""
    X = counts.copy()
    X.data = 1.0 + np.log(np.maximum(X.data, 1.0))
    X = csr_matrix(X @ diags(1.0 + np.log((1.0 + n) / (1.0 + df))))
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return csr_matrix(diags(1.0 / np.where(norm > 0, norm, 1.0)) @ X)


@dataclass(frozen=True, eq=False)
class FrameResult:
    """One frame: its record, the documents' rows in the corpus, decision values, predictions, and quality on the
    documents whose label is known but was not shown (nan where there is none)."""

    record: FrameRecord
    rows: NDArray[np.intp]
    classes: NDArray
    scores: Floats
    predicted: NDArray
    auc: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class Selection:
    """What of a corpus takes part: rows, the label of each ('' for none), its frame, and whether the label is shown."""

    rows: NDArray[np.intp]
    labels: NDArray
    frames: NDArray
    shown: NDArray[np.bool_]
    undated: int
    of_other_classes: int

    def part(self, kept: NDArray[np.bool_]) -> Selection:
        columns = ("rows", "labels", "frames", "shown")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})


def select(
    corpus: LabelledCorpus,
    *,
    frame: str = "month",
    classes: Sequence[str] | None = None,
    per_frame: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
) -> Selection:
    """One label per document at most. With ``classes`` only labels among them count, and documents that have others
    alone are left out. With ``per_frame`` or ``fraction`` so many labels of a frame are shown and the rest hidden."""
    labels, kept = [], []
    others = 0
    for row, given in enumerate(corpus.labels):
        mine = given if classes is None else tuple(label for label in given if label in classes)
        if given and not mine:
            others += 1
            continue
        if len(mine) > 1:
            raise InputError(
                f"document {corpus.docids[row]!r} has {len(mine)} labels ({few(mine)}), one at most may be",
                file=corpus.name or None,
                remedy="Choose classes that exclude each other with --classes, or another --label-field.",
            )
        labels.append(mine[0] if mine else "")
        kept.append(row)
    rows, names = np.array(kept, dtype=np.intp), np.array(labels, dtype=str)
    if classes is not None:
        for label in classes:
            if label not in labels:
                raise InputError(f"no document has the label {label!r}", file=corpus.name or None)
    frames = frame_names(corpus.times[rows], frame)
    dated = frames != ""
    rows, names, frames = rows[dated], names[dated], frames[dated]
    if len(rows) == 0:
        raise InputError(
            f"none of {len(corpus)} documents has a date",
            file=corpus.name or None,
            remedy="Name the field of the dates with --date-field.",
        )
    shown = names != ""
    if per_frame is not None or fraction is not None:
        known = np.flatnonzero(shown)
        chosen = choose_labelled(names[known], frames[known], per_frame=per_frame, fraction=fraction, seed=seed)
        shown[known[~chosen]] = False
    return Selection(rows, names, frames, shown, int((~dated).sum()), others)


def evolve(
    corpus: LabelledCorpus, selection: Selection, model: FrameClassifier, words: Words | None = None
) -> Iterator[FrameResult]:
    """Go through the frames: each is learnt from, then its documents are classified."""
    words = Words() if words is None else words
    analyzer = repr(corpus.analyzer)
    if words.analyzer not in ("", analyzer):
        raise ParameterError(
            f"the documents were analysed by {analyzer}, those before them by {words.analyzer}",
            remedy="Index them alike, or start again.",
        )
    words.analyzer = analyzer
    columns = words.numbered(corpus.vocabulary)
    counts = corpus.counts[selection.rows]
    counts = csr_matrix(
        (counts.data, columns[counts.indices], counts.indptr), shape=(len(selection.rows), len(words.df))
    )
    counts.sort_indices()
    groups = in_order(selection.frames)
    if isinstance(model, SSLEOffline):
        words.add(counts)
        yield from _offline(words.tf_idf(counts), selection, model, groups)
        return
    if model.started:
        model.widen(len(words.df))
    for name, rows in progress(groups, label="frames", unit="frames"):
        here = csr_matrix(counts[rows])
        words.add(here)
        X = words.tf_idf(here)
        model.partial_fit(X, np.where(selection.shown[rows], selection.labels[rows], ""), frame=str(name))
        scores = model.decision_function(X) if len(model.classes_) else np.zeros((len(rows), 0))
        yield _result(model.frames_[-1], model.classes_, scores, rows, selection)


def _offline(X: csr_matrix, selection: Selection, model: SSLEOffline, groups: list) -> Iterator[FrameResult]:
    model.fit(X, np.where(selection.shown, selection.labels, ""), frames=selection.frames)
    if not len(model.classes_):
        raise ParameterError("no document is labelled", remedy="Label some, or check --label-field.")
    for number, (name, rows) in enumerate(groups):
        scores = model.decision_function(X[rows], frames=np.full(len(rows), name))
        yield _result(model.frames_[number], model.classes_, scores, rows, selection)


def _result(
    record: FrameRecord, classes: NDArray, scores: Floats, rows: NDArray[np.intp], selection: Selection
) -> FrameResult:
    hidden = (selection.labels[rows] != "") & ~selection.shown[rows]
    area = accuracy = nan
    predicted = best_classes(classes, scores) if len(classes) else np.full(len(rows), "", dtype="U1")
    if hidden.any() and len(classes):
        area, accuracy = quality(selection.labels[rows][hidden], scores[hidden], classes)
    return FrameResult(record, selection.rows[rows], classes, scores, predicted, area, accuracy)


def save_run(path: str | os.PathLike[str], model: FrameClassifier, words: Words) -> None:
    """The classifier with its words: all that the next documents need."""
    header, arrays = to_arrays(model)
    about = {
        "model": header,
        "vocabulary": list(words.numbers),
        "documents": words.documents,
        "analyzer": words.analyzer,
    }
    save_arrays(path, KIND, about, {**arrays, "df": words.df})


def load_run(path: str | os.PathLike[str]) -> tuple[Any, Words]:
    """The classifier and its words as :func:`save_run` wrote them; InputError where the file is none."""
    return load_model(path, KIND, _restored, "Check the path, or start again without --resume.")


def _restored(about: Header, arrays: Arrays) -> tuple[Any, Words]:
    df, vocabulary = arrays.pop("df"), about["vocabulary"]
    numbers = {str(word): i for i, word in enumerate(vocabulary)}
    words = Words(numbers, df, int(about["documents"]), str(about["analyzer"]))
    if df.shape != (len(numbers),) or len(vocabulary) != len(numbers) or df.dtype.kind != "f":
        raise ValueError("words and document frequencies do not fit")
    model = from_arrays(about["model"], arrays, FrameClassifier.methods)
    if model.n_features_in_ > len(numbers):
        raise ValueError("the classifier knows more words than there are")
    return model, words
