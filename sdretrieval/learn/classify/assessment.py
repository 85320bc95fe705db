"""How good a classifier is on labelled documents: accuracy, break-even precision, confusion; tuning by it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdretrieval.core.errors import InputError
from sdretrieval.core.progress import progress
from sdretrieval.learn.classify.bep import break_even_precisions
from sdretrieval.learn.classify.classifiers import classifier_model
from sdretrieval.learn.classify.text_classifier import TextClassifier, held_out_rows, train
from sdretrieval.learn.labelled import LabelledCorpus


@dataclass(frozen=True, eq=False)
class LabelScore:
    """One label's part: ``truth`` documents bear it, ``predicted`` were given it, ``right`` of those bear it."""

    label: str
    truth: int
    predicted: int
    right: int
    bep: float

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else float("nan")

    @property
    def recall(self) -> float:
        return self.right / self.truth if self.truth else float("nan")

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.truth + self.predicted) if self.truth + self.predicted else float("nan")


@dataclass(frozen=True, eq=False)
class Assessment:
    """Measures on one test set. Accuracy is the share of documents given exactly the labels they bear."""

    documents: int
    accuracy: float
    macro_bep: float
    micro_bep: float
    labels: list[LabelScore]
    confusion: np.ndarray | None  # truth x predicted, with one label a document
    unknown: dict[str, int]  # labels of test documents that the classifier never saw
    seconds: float = 0.0

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that documents bear or were given."""
        found = [score.f1 for score in self.labels if score.truth + score.predicted]
        return sum(found) / len(found) if found else float("nan")

    @property
    def micro_f1(self) -> float:
        """F1 of all decisions pooled."""
        right, all_ = (
            sum(counts) for counts in zip(*((s.right, s.truth + s.predicted) for s in self.labels), strict=True)
        )
        return 2 * right / all_ if all_ else float("nan")

    def confused(self, most: int = 10) -> list[tuple[str, str, int]]:
        """The commonest mistakes: (truth, predicted, how often)."""
        if self.confusion is None:
            return []
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        order = np.argsort(-wrong, axis=None, kind="stable")[:most]
        pairs = [np.unravel_index(place, wrong.shape) for place in order]
        names = [score.label for score in self.labels]
        return [(names[i], names[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]]

    def to_json(self) -> dict[str, Any]:
        def numbers(of: Any, *names: str) -> dict[str, float | None]:
            values = {name: float(getattr(of, name)) for name in names}
            return {name: None if np.isnan(value) else round(value, 6) for name, value in values.items()}

        return {
            "documents": self.documents,
            **numbers(self, "accuracy", "macro_f1", "micro_f1", "macro_bep", "micro_bep"),
            "labels": [
                {
                    "label": s.label,
                    "documents": s.truth,
                    "predicted": s.predicted,
                    "right": s.right,
                    **numbers(s, "precision", "recall", "f1", "bep"),
                }
                for s in self.labels
            ],
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            "unknown_labels": self.unknown,
            "seconds": round(self.seconds, 4),
        }


def assess(classifier: TextClassifier, corpus: LabelledCorpus) -> Assessment:
    """Label the documents and compare with the labels they bear."""
    began = time.perf_counter()
    scores = classifier.scores(corpus)
    return measure(classifier, corpus, scores, time.perf_counter() - began)


def measure(classifier: TextClassifier, corpus: LabelledCorpus, scores: np.ndarray, seconds: float = 0.0) -> Assessment:
    """The same from scores already there."""
    if not len(corpus):
        raise InputError("there is no document to test on", file=corpus.name or None)
    names = classifier.labels
    truth = np.column_stack([corpus.has_label(label) for label in names])
    given = classifier.chosen(scores)
    right = truth & given
    beps = break_even_precisions(truth, scores)
    confusion, unknown = None, Counter[str]()
    if not classifier.multi_label:  # otherwise further labels were not asked for
        unknown.update(label for label in corpus.single_labels().tolist() if label not in set(names))
        confusion = truth.astype(np.int64).T @ given.astype(np.int64)
    sizes = truth.sum(axis=0)
    columns = zip(names, sizes, given.sum(axis=0), right.sum(axis=0), beps, strict=True)
    some = sizes > 0
    return Assessment(
        documents=len(corpus),
        accuracy=float((truth == given).all(axis=1).mean()),
        macro_bep=float(beps[some].mean()) if some.any() else float("nan"),
        micro_bep=float(sizes[some] @ beps[some] / sizes.sum()) if some.any() else float("nan"),
        labels=[LabelScore(name, int(t), int(g), int(r), float(bep)) for name, t, g, r, bep in columns],
        confusion=confusion,
        unknown=dict(unknown.most_common()),
        seconds=seconds,
    )


def tune(
    corpus: LabelledCorpus,
    model: str,
    parameters: Mapping[str, Any] | Iterable[str] = (),
    *,
    multi_label: bool = False,
    labels: Sequence[str] | None = None,
    min_df: int = 1,
    held_out: float = 0.2,
    seed: int = 0,
) -> tuple[dict[str, Any], list[tuple[dict[str, Any], float]]]:
    """Choose parameters on a share of the training documents that the others do not see; those given stay.

    The measure is accuracy, with several labels a document macro-BEP. Returns the best values (the first of equals)
    and every trial.
    """
    kind = classifier_model(model)
    grid = kind.grid(parameters)
    rows = held_out_rows(corpus, held_out, seed, multi_label=multi_label)
    inside, outside = corpus.select(~rows), corpus.select(rows)
    names = None if labels is None else [label for label in labels if inside.has_label(label).any()]
    trials = []
    for one in progress(grid, total=len(grid), label="tuning", unit=" settings"):
        fitted = train(inside, kind, one, multi_label=multi_label, labels=names, min_df=min_df, calibrate=False)
        found = assess(fitted, outside)
        trials.append((one, found.macro_bep if multi_label else found.accuracy))
    return max(trials, key=lambda trial: trial[1])[0], trials
