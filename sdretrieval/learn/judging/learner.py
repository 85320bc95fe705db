"""Continuous active learning: a linear classifier that is fitted again, and ranks the whole collection, at every click.

    learner = Learner(Features.of(snapshot), snapshot.analyze("the topic's text"))
    learner.learn(doc, True)                  # a click: document numbers of the snapshot
    doc = learner.best()                      # the unjudged document most likely to be relevant
    learner.words(10)                         # what speaks for relevance, and what against it

A support vector machine with squared hinge loss on tf-idf of the index's stems. The topic's text is a relevant document
until :data:`SEEDS` others are found; before the first document that is not relevant it alone ranks, and afterwards it
keeps a share of the rating that falls as 1 / (1 + relevant ones found). Relevant documents are few: together they weigh
:data:`RATIO` times as much as the others. While few are found, and :data:`PATIENCE` others in a row say that the words
known so far lead nowhere, as many documents follow that are typical of the collection and unlike those judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sdretrieval.core.errors import IndexProblem
from sdretrieval.index.positions import Positions, positions_of
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.learn.judging.learner_loops import add_rows, coordinate_descent, inverse_norms, raise_first, score_all

SEEDS = 3
COST = 0.05
RATIO = 9.8
TOPIC = -1  # the topic's text among the examples
TOPIC_SHARE = 1.0
FIRST = 18  # places at the start of a document, where titles stand
FIRST_COUNTS = 3  # so many times more
_MOST_PLACED = 200_000  # documents: positions of larger collections are not exported for this
PATIENCE = 10  # documents in a row that are not relevant, before others are tried
ENOUGH = 5  # relevant documents: the learner alone chooses
TOLERANCE = 0.01  # of the optimality conditions
ROUNDS = 100
_LUT = np.concatenate([[0.0], 1.0 + np.log(np.arange(1, 256))]).astype(np.float32)  # 1 + log count, up to 255


@dataclass(frozen=True)
class Features:
    """tf-idf of a collection, kept as counts and norms."""

    snapshot: Snapshot
    counts: np.ndarray  # the snapshot's by document, in bytes, more for words at the start
    counts_by_term: np.ndarray
    idf: np.ndarray
    inverse: np.ndarray  # 1 / norm of each document; 0 where it has no words

    @classmethod
    def of(cls, snapshot: Snapshot, first_counts: int = FIRST_COUNTS) -> Features:
        s, idf = snapshot, 1.0 + np.log((1.0 + snapshot.n_docs) / (1.0 + snapshot.df))
        counts, by_term = (_bytes(each) for each in (s.rows.taken(0, s.doc_ptr[-1])[1], s.term_counts))
        if first_counts and (found := _positions(s)) is not None:
            where = (s.rows, found.starts, found.low, found.high)
            if not raise_first(*where, FIRST, first_counts, s.term_ptr, s.term_docs, counts, by_term):
                raise IndexProblem("the counts by word are not those by document", remedy="Delete its snapshot.")
        inverse = np.empty(s.n_docs, np.float32)
        inverse_norms(s.rows, counts, idf, _LUT, inverse)
        return cls(s, counts, by_term, idf, inverse)

    @cached_property
    def typical(self) -> np.ndarray:
        """The mean cosine of each document with all."""
        s, mean = self.snapshot, np.empty(self.snapshot.n_terms, np.float32)
        add_rows(s.term_ptr, s.term_docs, self.counts_by_term, _LUT, self.inverse, mean)
        return self.rated(mean * (self.idf**2 / s.n_docs).astype(np.float32))

    def rated(self, weights: np.ndarray) -> np.ndarray:
        """All documents by weights that were multiplied with idf."""
        s, scores = self.snapshot, np.zeros(self.snapshot.n_docs, np.float32)
        terms = np.flatnonzero(weights)
        score_all(terms, s.term_ptr, s.term_docs, self.counts_by_term, weights, _LUT, self.inverse, scores)
        return scores

    def row(self, doc: int) -> tuple[np.ndarray, np.ndarray]:
        """The terms of a document, and their features."""
        (terms, _), first = self.snapshot.row(doc), int(self.snapshot.doc_ptr[doc])
        return terms, self._weighed(terms, self.counts[first : first + len(terms)]) * self.inverse[doc]

    def text(self, words: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
        """The same of a text outside the collection, of its analysed words; unknown ones are left out."""
        found = np.array([term for word in words if (term := self.snapshot.term_id(word)) >= 0], dtype=np.int32)
        terms, counts = np.unique(found, return_counts=True)
        values = self._weighed(terms, counts)
        return terms, values / (np.linalg.norm(values) or 1.0)

    def _weighed(self, terms: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return _LUT[np.minimum(counts, len(_LUT) - 1)] * self.idf[terms]


def _bytes(counts: np.ndarray) -> np.ndarray:
    return np.minimum(counts, len(_LUT) - 1).astype(np.uint8)


def _positions(snapshot: Snapshot) -> Positions | None:
    """Where the words stand; None where the index does not tell."""
    try:
        return positions_of(snapshot) if snapshot.n_docs <= _MOST_PLACED else None
    except IndexProblem:
        return None


def _doubled(array: Any) -> Any:
    return np.concatenate([array, np.zeros(len(array) + 1, array.dtype)])


class _Examples:
    """What is learnt from, a row each, in arrays that grow: features by idf and times idf, label, multiplier."""

    def __init__(self, features: Features) -> None:
        self.features, self.docs = features, list[int]()
        self.ptr, self.y, self.a = np.zeros(64, np.int64), np.zeros(64), np.zeros(64)
        self.terms, self.down, self.up = np.zeros(4096, np.int32), np.zeros(4096), np.zeros(4096)

    def add(self, doc: int, row: tuple[np.ndarray, np.ndarray], y: float) -> None:
        n, begin = len(self.docs), int(self.ptr[len(self.docs)])
        end = begin + len(row[0])
        if n + 1 == len(self.ptr):
            self.ptr, self.y, self.a = (_doubled(each) for each in (self.ptr, self.y, self.a))
        while end > len(self.terms):
            self.terms, self.down, self.up = (_doubled(each) for each in (self.terms, self.down, self.up))
        terms, values = row
        idf = self.features.idf[terms]
        self.terms[begin:end], self.down[begin:end], self.up[begin:end] = terms, values / idf, values * idf
        self.ptr[n + 1], self.y[n], self.a[n] = end, y, 0.0
        self.docs.append(doc)


class Learner:
    """What was learnt of one topic. Documents are numbers of the snapshot; ``words`` is the topic's text, analysed."""

    def __init__(
        self,
        features: Features,
        words: Iterable[str] = (),
        *,
        cost: float = COST,
        topic_share: float = TOPIC_SHARE,
        patience: int = PATIENCE,
    ) -> None:
        self.features, self.labels = features, dict[int, bool]()
        self.cost, self.topic_share, self.patience = cost, topic_share, patience
        self._topic = features.text(words)
        self._v, self._bias = np.zeros(features.snapshot.n_terms), np.zeros(1)
        self._examples = _Examples(features)
        self._weights = np.zeros(features.snapshot.n_terms, np.float32)  # with the topic's own
        self._fitted, self._scores = False, np.zeros(0, np.float32)

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
        self._fitted = False

    def set(self, labels: Mapping[int, bool]) -> None:
        """All judgments there are: only those that changed cost anything."""
        for doc in [doc for doc in self.labels if doc not in labels]:
            self.learn(doc, None)
        for doc, relevant in labels.items():
            self.learn(doc, relevant)

    @property
    def scores(self) -> np.ndarray:
        """How each document of the collection is rated by what was learnt so far."""
        if not self._fitted:
            self._fit()
            self._scores, self._fitted = self.features.rated(self._weights), True
        return self._scores

    def best(self, taken: Iterable[int] = ()) -> int | None:
        """The unjudged document to judge next, without those ``taken``: the one rated highest, or the one most
        typical where the ratings lead nowhere. None where none is left."""
        out = np.array([*self.labels, *taken], dtype=np.int64)
        if len(np.unique(out)) == self.features.snapshot.n_docs:
            return None
        scores = self._typical() if self._astray() else self.scores.copy()
        scores[out] = -np.inf
        return int(np.argmax(scores))

    def _astray(self) -> bool:
        if sum(self.labels.values()) >= ENOUGH:
            return False
        row = next((n for n, label in enumerate(reversed(self.labels.values())) if label), len(self.labels))
        return row // self.patience % 2 == 1

    def _typical(self) -> np.ndarray:
        """Ratings by what all unseen documents have in common, less what those not relevant have."""
        f, weights = self.features, np.zeros(self.features.snapshot.n_terms, np.float32)
        others = [doc for doc, relevant in self.labels.items() if not relevant]
        for terms, values in map(f.row, others):
            weights[terms] += values * f.idf[terms]
        n = f.snapshot.n_docs
        return f.typical * (n / (n - len(others))) - f.rated(weights) / len(others)

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
            self._weights[:] = 0.0
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
        cost = self.cost * _shares(y)
        coordinate_descent(*arrays, y, cost, a, self._v, self._bias, TOLERANCE, ROUNDS)
        self._weights[:] = self._v
        # |w|² by the optimality conditions, Σ a (y f - 1 + a / 2C) = 0, without a look at the whole vocabulary.
        norm = np.sqrt(max(float(a.sum() - (a * a / (2 * cost)).sum()) - self._bias[0] ** 2, 0.0))
        self._weights[terms] += self.topic_share * norm / (1.0 + relevant) * topic

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


def _shares(signs: np.ndarray) -> np.ndarray:
    """Weights: relevant ones together weigh RATIO times as much as the others, all together as many as there are."""
    n, n_relevant = len(signs), int((signs > 0).sum())
    shares = np.where(signs > 0, RATIO / n_relevant, 1.0 / (n - n_relevant))
    return n * shares / (1.0 + RATIO)
