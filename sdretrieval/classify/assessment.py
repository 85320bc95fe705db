"""How good a classifier is on labelled documents: accuracy, break-even precision, confusion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdretrieval.classify.bep import break_even_precisions
from sdretrieval.classify.text_classifier import TextClassifier
from sdretrieval.errors import InputError
from sdretrieval.labelled import LabelledCorpus


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
        def number(value: float) -> float | None:
            return None if np.isnan(value) else round(float(value), 6)

        return {
            "documents": self.documents,
            "accuracy": number(self.accuracy),
            "macro_bep": number(self.macro_bep),
            "micro_bep": number(self.micro_bep),
            "labels": [
                {"label": s.label, "documents": s.truth, "predicted": s.predicted, "right": s.right,
                 "precision": number(s.precision), "recall": number(s.recall), "f1": number(s.f1),
                 "bep": number(s.bep)}
                for s in self.labels
            ],
            "confusion": None if self.confusion is None else self.confusion.tolist(),
            "unknown_labels": self.unknown,
            "seconds": round(self.seconds, 4),
        }  # fmt: skip


def assess(classifier: TextClassifier, corpus: LabelledCorpus) -> Assessment:
    """Label the documents and compare with the labels they bear."""
    import time

    began = time.perf_counter()
    scores = classifier.scores(corpus)
    return measure(classifier, corpus, scores, time.perf_counter() - began)


def measure(classifier: TextClassifier, corpus: LabelledCorpus, scores: np.ndarray, seconds: float = 0.0) -> Assessment:
    """The same from scores already there."""
    if not len(corpus):
        raise InputError("there is no document to test on", file=corpus.name or None)
    names = classifier.labels
    truth = np.array([[label in labels for label in names] for labels in corpus.labels], dtype=bool)
    decided = classifier.decide(scores)
    given = np.array([[label in labels for label in names] for labels in decided], dtype=bool)
    beps = break_even_precisions(truth, scores)
    known = set(names)
    if classifier.multi_label:  # other labels were not asked for
        wanted: Sequence[set[str]] = [set(labels) & known for labels in corpus.labels]
        unknown: Counter[str] = Counter()
        confusion = None
    else:
        corpus.single_labels()
        wanted = [set(labels) for labels in corpus.labels]
        unknown = Counter(label for labels in corpus.labels for label in labels if label not in known)
        number = {label: k for k, label in enumerate(names)}
        confusion = np.zeros((len(names), len(names)), dtype=np.int64)
        for labels, found in zip(corpus.labels, decided, strict=True):
            if labels[0] in number:
                confusion[number[labels[0]], number[found[0]]] += 1
    sizes = truth.sum(axis=0)
    parts = [
        LabelScore(name, int(sizes[k]), int(given[:, k].sum()), int((truth & given)[:, k].sum()), float(beps[k]))
        for k, name in enumerate(names)
    ]
    some = sizes > 0
    return Assessment(
        documents=len(corpus),
        accuracy=float(np.mean([set(found) == labels for found, labels in zip(decided, wanted, strict=True)])),
        macro_bep=float(beps[some].mean()) if some.any() else float("nan"),
        micro_bep=float(sizes[some] @ beps[some] / sizes.sum()) if some.any() else float("nan"),
        labels=parts,
        confusion=confusion,
        unknown=dict(unknown.most_common()),
        seconds=seconds,
    )
