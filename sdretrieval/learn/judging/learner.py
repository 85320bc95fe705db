"""Continuous active learning: a linear classifier that is fitted again, and ranks the whole collection, at every click.

    learner = Learner(Features.of(snapshot), snapshot.analyze("the topic's text"))
    learner.learn(doc, True)                  # a click: document numbers of the snapshot
    doc = learner.best()                      # the unjudged document most likely to be relevant
    learner.words(10)                         # what speaks for relevance, and what against it

A support vector machine with squared hinge loss on tf-idf of the index's stems. The topic's text is a relevant document
until :data:`SEEDS` others are found; before the first document that is not relevant it alone ranks. Relevant documents
are few: together they weigh :data:`RATIO` times as much as the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from sdretrieval.index.snapshot import Snapshot
from sdretrieval.learn.judging.learner_loops import coordinate_descent, inverse_norms, score_all

SEEDS = 3
COST = 0.11
RATIO = 9.8
TOLERANCE = 0.01  # of the optimality conditions
ROUNDS = 100
_LUT = np.concatenate([[0.0], 1.0 + np.log(np.arange(1, 1024))])  # 1 + log count


@dataclass(frozen=True)
class Features:
    """tf-idf of a collection, kept as norms: the counts are the snapshot's own."""

    snapshot: Snapshot
    idf: np.ndarray
    inverse: np.ndarray  # 1 / norm of each document; 0 where it has no words

    @classmethod
    def of(cls, snapshot: Snapshot) -> Features:
        idf = 1.0 + np.log((1.0 + snapshot.n_docs) / (1.0 + snapshot.df))
        inverse = np.empty(snapshot.n_docs)
        inverse_norms(snapshot.doc_ptr, snapshot.doc_terms, snapshot.doc_counts, idf, _LUT, inverse)
        return cls(snapshot, idf, inverse)

    def row(self, doc: int) -> tuple[np.ndarray, np.ndarray]:
        """The terms of a document, and their features."""
        part = slice(int(self.snapshot.doc_ptr[doc]), int(self.snapshot.doc_ptr[doc + 1]))
        terms = np.asarray(self.snapshot.doc_terms[part])
        return terms, self._weighed(terms, np.asarray(self.snapshot.doc_counts[part])) * self.inverse[doc]

    def text(self, words: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """The same of a text outside the collection, of its analysed words; unknown ones are left out."""
        found = np.array([term for word in words if (term := self.snapshot.term_id(word)) >= 0], dtype=np.int32)
        terms, counts = np.unique(found, return_counts=True)
        values = self._weighed(terms, counts)
        return terms, values / (np.linalg.norm(values) or 1.0)

    def _weighed(self, terms: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return _LUT[np.minimum(counts, len(_LUT) - 1)] * self.idf[terms]


class Learner:
    """What was learnt of one topic. Documents are numbers of the snapshot; ``words`` is the topic's text, analysed."""

    def __init__(self, features: Features, words: Iterable[str] = ()) -> None:
        self.features, self.labels = features, dict[int, bool]()
        self._topic = features.text(words)
        self._rows: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._a: dict[int, float] = {}
        self._v, self._bias = np.zeros(features.snapshot.n_terms), np.zeros(1)
        self._scores: np.ndarray | None = None

    def learn(self, doc: int, relevant: bool | None) -> None:
        """A judgment, or another one of the same document; None takes it back."""
        if self.labels.get(doc) == relevant:
            return
        self._forget(doc)
        self.labels.pop(doc, None)
        if relevant is not None:
            self.labels[doc] = relevant
        self._scores = None

    def set(self, labels: Mapping[int, bool]) -> None:
        """All judgments there are: only those that changed cost anything."""
        for doc in [doc for doc in self.labels if doc not in labels]:
            self.learn(doc, None)
        for doc, relevant in labels.items():
            self.learn(doc, relevant)

    @property
    def scores(self) -> np.ndarray:
        """How each document of the collection is rated by what was learnt so far."""
        if self._scores is None:
            self._fit()
            s, f = self.features.snapshot, self.features
            self._scores = np.empty(s.n_docs)
            score_all(s.doc_ptr, s.doc_terms, s.doc_counts, self._v, _LUT, f.inverse, self._scores)
        return self._scores

    def best(self, taken: Iterable[int] = ()) -> int | None:
        """The unjudged document rated highest, without those ``taken``; None where none is left."""
        scores = self.scores.copy()
        for docs in (list(self.labels), list(taken)):
            scores[docs] = -np.inf
        doc = int(np.argmax(scores)) if len(scores) else 0
        return doc if len(scores) and scores[doc] > -np.inf else None

    def words(self, most: int = 10, doc: int | None = None) -> list[tuple[str, float]]:
        """The strongest words for relevance, then those against; of a document, what each adds to its rating."""
        assert self.scores is not None
        terms = np.flatnonzero(self._v) if doc is None else self.features.row(doc)[0]
        weights = self._v[terms] / self.features.idf[terms]
        if doc is not None:
            weights = weights * self.features.row(doc)[1]
        order = np.argsort(-weights, kind="stable")
        chosen = [i for i in order[:most] if weights[i] > 0] + [i for i in order[-most:] if weights[i] < 0]
        return [(self.features.snapshot.term(int(terms[i])), float(weights[i])) for i in chosen]

    # -- fitting -------------------------------------------------------------------------------------------------
    def _fit(self) -> None:
        relevant = sum(self.labels.values())
        y = {doc: 1.0 if label else -1.0 for doc, label in self.labels.items()}
        if relevant >= SEEDS:
            self._forget(-1)
        else:
            y[-1] = 1.0
        if len(y) == len([1 for one in y.values() if one > 0]):  # nothing to tell apart yet: by the topic alone
            self._start(y)
            return
        rows = [self._row(doc) for doc in y]
        ptr = np.cumsum([0, *(len(terms) for terms, _ in rows)])
        terms, values = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        signs, a = np.array(list(y.values())), np.array([self._a.get(doc, 0.0) for doc in y])
        cost = _costs(signs)
        if not self._a:
            self._v[:], self._bias[:] = 0.0, 0.0
        coordinate_descent(
            ptr, terms, values, self.features.idf, signs, cost, a, self._v, self._bias, TOLERANCE, ROUNDS
        )
        self._a = dict(zip(y, a.tolist(), strict=True))

    def _start(self, y: Mapping[int, float]) -> None:
        """Without a document that is not relevant: the sum of what is relevant."""
        self._a = {}
        self._v[:] = 0.0
        for doc in y:
            terms, values = self._row(doc)
            self._v[terms] += values * self.features.idf[terms]

    def _forget(self, doc: int) -> None:
        """Take a document's part out of the weights."""
        a = self._a.pop(doc, 0.0)
        if a:
            terms, values = self._row(doc)
            step = a * (1.0 if self.labels.get(doc, True) else -1.0)
            self._v[terms] -= step * values * self.features.idf[terms]
            self._bias[0] -= step

    def _row(self, doc: int) -> tuple[np.ndarray, np.ndarray]:
        if doc == -1:
            return self._topic
        if doc not in self._rows:
            self._rows[doc] = self.features.row(doc)
        return self._rows[doc]


def _costs(signs: np.ndarray) -> np.ndarray:
    """Relevant ones together weigh RATIO times as much as the others, all together as many as there are."""
    n, n_relevant = len(signs), int((signs > 0).sum())
    shares = np.where(signs > 0, RATIO / n_relevant, 1.0 / (n - n_relevant))
    return COST * n * shares / (1.0 + RATIO)
