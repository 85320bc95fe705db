"""Continuous active learning: a linear classifier that is fitted again, and ranks the whole collection, at every click.

    learner = Learner(Features.of(snapshot), snapshot.analyze("the topic's text"))
    learner.learn(doc, True)                  # a click: document numbers of the snapshot
    doc = learner.best()                      # the unjudged document most likely to be relevant
    learner.words(10)                         # what speaks for relevance, and what against it

A support vector machine with squared hinge loss on tf-idf of the index's stems. The topic's text is a relevant document
until :data:`SEEDS` others are found; before the first document that is not relevant it alone ranks, and afterwards it
keeps a share of the rating that falls as 1 / (1 + relevant ones found). Relevant documents are few: together they weigh
:data:`RATIO` times as much as the others.
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
TOPIC = -1  # the topic's text among the examples
TOPIC_SHARE = 1.0
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


class _Examples:
    """What is learnt from, a row each, in arrays that grow: features by idf and times idf, label, multiplier."""

    def __init__(self, features: Features) -> None:
        self.features, self.docs = features, list[int]()
        self.ptr, self.y, self.a = np.zeros(64, np.int64), np.zeros(63), np.zeros(63)
        self.terms, self.down, self.up = np.zeros(4096, np.int32), np.zeros(4096), np.zeros(4096)

    def add(self, doc: int, row: tuple[np.ndarray, np.ndarray], y: float) -> None:
        n, begin = len(self.docs), int(self.ptr[len(self.docs)])
        end = begin + len(row[0])
        if n + 1 == len(self.ptr):
            self.ptr, self.y, self.a = (np.resize(each, 2 * len(each) + 1) for each in (self.ptr, self.y, self.a))
        if end > len(self.terms):
            size = 2 * end
            self.terms, self.down, self.up = (np.resize(each, size) for each in (self.terms, self.down, self.up))
        terms, values = row
        idf = self.features.idf[terms]
        self.terms[begin:end], self.down[begin:end], self.up[begin:end] = terms, values / idf, values * idf
        self.ptr[n + 1], self.y[n], self.a[n] = end, y, 0.0
        self.docs.append(doc)

    def row(self, i: int) -> slice:
        return slice(int(self.ptr[i]), int(self.ptr[i + 1]))


class Learner:
    """What was learnt of one topic. Documents are numbers of the snapshot; ``words`` is the topic's text, analysed."""

    def __init__(self, features: Features, words: Iterable[str] = ()) -> None:
        self.features, self.labels = features, dict[int, bool]()
        self._topic = features.text(words)
        self._v, self._bias = np.zeros(features.snapshot.n_terms), np.zeros(1)
        self._examples = _Examples(features)
        self._weights = self._v  # with the topic's own
        self._scores: np.ndarray | None = None

    def learn(self, doc: int, relevant: bool | None) -> None:
        """A judgment, or another one of the same document; None takes it back."""
        if self.labels.get(doc) == relevant:
            return
        if doc in self.labels:
            del self.labels[doc]
            self._restart()
        if relevant is not None:
            self.labels[doc] = relevant
            if self._examples.docs:
                self._add(doc)
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
            score_all(s.doc_ptr, s.doc_terms, s.doc_counts, self._weights, _LUT, f.inverse, self._scores)
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
        terms = np.flatnonzero(self._weights) if doc is None else self.features.row(doc)[0]
        weights = self._weights[terms] / self.features.idf[terms]
        if doc is not None:
            weights = weights * self.features.row(doc)[1]
        order = np.argsort(-weights, kind="stable")
        chosen = [i for i in order[:most] if weights[i] > 0] + [i for i in order[-most:] if weights[i] < 0]
        return [(self.features.snapshot.term(int(terms[i])), float(weights[i])) for i in chosen]

    # -- fitting -------------------------------------------------------------------------------------------------
    def _fit(self) -> None:
        relevant = sum(self.labels.values())
        terms, values = self._topic
        topic = values * self.features.idf[terms]
        if relevant == len(self.labels):  # nothing to tell apart yet: by what is relevant alone
            self._weights = np.zeros_like(self._v)
            self._weights[terms] = topic
            for doc in self.labels:
                some, features = self.features.row(doc)
                self._weights[some] += features * self.features.idf[some]
            return
        if self._examples.docs[:1] == [TOPIC] and relevant >= SEEDS:
            self._restart()
        if not self._examples.docs:
            self._begin(relevant)
        examples, n = self._examples, len(self._examples.docs)
        y, a = examples.y[:n], examples.a[:n]
        arrays = (examples.ptr[: n + 1], examples.terms, examples.down, examples.up)
        coordinate_descent(*arrays, y, _costs(y), a, self._v, self._bias, TOLERANCE, ROUNDS)
        self._weights = self._v.copy()
        norm = float(np.sqrt(((self._v / self.features.idf) ** 2).sum()))
        self._weights[terms] += TOPIC_SHARE * norm / (1.0 + relevant) * topic

    def _begin(self, relevant: int) -> None:
        if relevant < SEEDS:
            self._examples.add(TOPIC, self._topic, 1.0)
        for doc in self.labels:
            self._add(doc)

    def _add(self, doc: int) -> None:
        self._examples.add(doc, self.features.row(doc), 1.0 if self.labels[doc] else -1.0)

    def _restart(self) -> None:
        """Something was taken back: learn from what is left."""
        self._examples = _Examples(self.features)
        self._v[:], self._bias[:] = 0.0, 0.0


def _costs(signs: np.ndarray) -> np.ndarray:
    """Relevant ones together weigh RATIO times as much as the others, all together as many as there are."""
    n, n_relevant = len(signs), int((signs > 0).sum())
    shares = np.where(signs > 0, RATIO / n_relevant, 1.0 / (n - n_relevant))
    return COST * n * shares / (1.0 + RATIO)
