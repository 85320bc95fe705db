"""A query in the words of a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sdretrieval.collection.records import Topic
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.term_model import TermModel


@dataclass(frozen=True, eq=False)
class Query:
    """Known terms with their counts f^Q; words the collection has never seen are only listed.

    A word outside the vocabulary has probability zero in every document and in general English: it cannot tell
    documents apart, so |Q| counts the known words.
    """

    qid: str
    text: str
    terms: np.ndarray  # ascending, unique
    counts: np.ndarray
    unknown: tuple[str, ...] = ()
    time: int | None = None
    order: tuple[int, ...] = ()  # the terms as typed, -1 for a word the collection has never seen

    @classmethod
    def from_words(
        cls, snapshot: Snapshot, words: Sequence[str], *, qid: str = "", text: str = "", time: int | None = None
    ) -> Query:
        order = tuple(snapshot.term_id(word) for word in words)
        known = Counter(term for term in order if term >= 0)
        unknown = [word for word, term in zip(words, order, strict=True) if term < 0]
        terms = np.array(sorted(known), dtype=np.int64)
        counts = np.array([known[t] for t in terms.tolist()], dtype=np.float64)
        return cls(qid, text or " ".join(words), terms, counts, tuple(unknown), time, order)

    @classmethod
    def from_topic(cls, snapshot: Snapshot, topic: Topic) -> Query:
        return cls.from_words(snapshot, snapshot.analyze(topic.text), qid=topic.qid, text=topic.text, time=topic.time)

    @property
    def length(self) -> float:
        """|Q|"""
        return float(self.counts.sum())

    @property
    def is_empty(self) -> bool:
        return len(self.terms) == 0

    def known_to(self, statistics: Statistics) -> Query:
        """The query without the words that no document of these statistics has: they are unknown words there."""
        seen = statistics.cf[self.terms] > 0
        if seen.all():
            return self
        words = statistics.vocabulary
        unseen = [str(t) if words is None else words[t] for t in self.terms[~seen].tolist()]
        return replace(self, terms=self.terms[seen], counts=self.counts[seen], unknown=(*self.unknown, *unseen))

    def as_counts(self) -> TermModel:
        """f^Q"""
        return TermModel(self.terms, self.counts)

    def as_distribution(self) -> TermModel:
        """θ̂^Q = f^Q / |Q|"""
        return TermModel(self.terms, self.counts / self.length) if len(self.terms) else self.as_counts()
