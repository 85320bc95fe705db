"""Topics, runs and judgments: small records that every part of the package shares.

:func:`rank_order` is the only place that decides how equal scores are ordered, and it decides as trec_eval
does.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.core.errors import ParameterError


def rank_order(docids: Sequence[str], scores: ArrayLike, depth: int | None = None) -> NDArray[np.int64]:
    """Positions of the documents from rank 1 down; with ``depth``, of the first ``depth`` only.

    The rule is trec_eval's: score down, and among equal scores docid *down* (``strcmp`` on UTF-8, which is
    the order of code points). trec_eval holds scores in single precision, so scores that differ only beyond
    float32 are equal: 1.0 and 1.0 + 1e-9 are a tie. A program that compares doubles evaluates another list.

    >>> rank_order(["a", "b", "c"], [1.0, 1.0, 2.0]).tolist()
    [2, 1, 0]
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or len(scores) != len(docids):
        raise ParameterError(f"{len(docids)} docids, but scores of shape {scores.shape}")
    if depth is not None and depth < 0:
        raise ParameterError(f"depth must be at least 0, got {depth}")
    with np.errstate(over="ignore", under="ignore"):  # beyond float32 is infinity (or zero), as for trec_eval
        key = -scores.astype(np.float32)
    unordered = np.flatnonzero(np.isnan(key))
    if len(unordered):
        first = int(unordered[0])
        raise ParameterError(
            f"score of {docids[first]!r} is not a number ({len(unordered)} of {len(key)} scores)",
            remedy="A score that is NaN has no rank: drop the document or repair the model.",
        )
    if depth is not None and depth < len(key):
        if depth == 0:
            return np.empty(0, dtype=np.int64)
        # Keep every tie of the last place, so that the cut is made by docid and not by chance.
        candidates = np.flatnonzero(key <= np.partition(key, depth - 1)[depth - 1])
        key = key[candidates]
    else:
        candidates = np.arange(len(key))
    by_score = np.argsort(key, kind="stable")
    order = candidates[by_score]
    key = key[by_score]
    same_as_next = key[1:] == key[:-1]
    if not same_as_next.any():
        return order[:depth]
    # Strings are compared inside tied groups only.
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same_as_next, [False]))))
    positions = order.tolist()
    for start, last in edges.reshape(-1, 2).tolist():
        if last - start == 1:  # most ties are pairs, and `sorted` costs more than one comparison
            if docids[positions[start]] < docids[positions[last]]:
                positions[start], positions[last] = positions[last], positions[start]
        else:
            group = positions[start : last + 1]
            positions[start : last + 1] = sorted(group, key=docids.__getitem__, reverse=True)
    return np.array(positions[:depth], dtype=np.int64)


@dataclass(frozen=True)
class Topic:
    """A query: its id, text, time in ms (``None`` where it has none), and all the fields of its source."""

    qid: str
    text: str
    time: int | None = None
    fields: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)


class Ranking:
    """One topic's documents with their scores, always in rank order: whatever order they are given in.

    >>> ranking = Ranking(["a", "b"], [1.0, 2.0])
    >>> ranking.docids, ranking.scores.tolist()
    (['b', 'a'], [2.0, 1.0])
    """

    __slots__ = ("docids", "scores")

    docids: list[str]
    scores: NDArray[np.float64]

    def __init__(self, docids: Sequence[str], scores: ArrayLike, depth: int | None = None) -> None:
        order = rank_order(docids, scores, depth)
        self.docids = [docids[i] for i in order.tolist()]
        self.scores = np.asarray(scores, dtype=np.float64)[order]
        self.scores.flags.writeable = False  # another score would be another order
        if len(set(self.docids)) != len(self.docids):
            seen: set[str] = set()
            twice = next(d for d in self.docids if d in seen or seen.add(d))  # type: ignore[func-returns-value]
            raise ParameterError(f"docid {twice!r} is ranked twice for one topic")

    @classmethod
    def in_order(cls, docids: list[str], scores: NDArray[np.float64]) -> Ranking:
        """From documents that are in rank order already, none of them twice: what the engine finds."""
        ranking = cls.__new__(cls)
        ranking.docids, ranking.scores = docids, scores
        ranking.scores.flags.writeable = False
        return ranking

    def __len__(self) -> int:
        return len(self.docids)

    def __iter__(self) -> Iterator[tuple[str, float]]:
        return iter(zip(self.docids, self.scores.tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return self.docids == other.docids and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        best = ", ".join(f"{self.docids[i]} {self.scores[i]:.4g}" for i in range(min(3, len(self))))
        return f"Ranking({len(self)} documents: {best}{', …' if len(self) > 3 else ''})"

    def top(self, depth: int) -> Ranking:
        """The first ``depth`` documents."""
        return Ranking(self.docids, self.scores, depth)

    def only(self, docids: Container[str]) -> Ranking:
        """Those of the documents that are among these, in the same order."""
        return self._at([i for i, docid in enumerate(self.docids) if docid in docids])

    def without(self, docids: Container[str]) -> Ranking:
        """The others."""
        return self._at([i for i, docid in enumerate(self.docids) if docid not in docids])

    def _at(self, places: list[int]) -> Ranking:
        return Ranking.in_order([self.docids[i] for i in places], self.scores[places])


@dataclass(frozen=True)
class Run(Mapping[str, Ranking]):
    """Ranked lists by topic, in the order of the file or of the topics, with the run's tag."""

    rankings: dict[str, Ranking]
    tag: str = "sdretrieval"

    def __getitem__(self, qid: str) -> Ranking:
        return self.rankings[qid]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rankings)

    def __len__(self) -> int:
        return len(self.rankings)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """``{qid: {docid: score}}``, as pytrec_eval and ir_measures take it."""
        return {qid: dict(ranking) for qid, ranking in self.rankings.items()}


@dataclass(frozen=True)
class Qrels(Mapping[str, dict[str, int]]):
    """Judgments by topic: ``qrels[qid][docid]`` is the relevance; a document not listed is not judged."""

    judgments: dict[str, dict[str, int]]

    def __getitem__(self, qid: str) -> dict[str, int]:
        return self.judgments[qid]

    def __iter__(self) -> Iterator[str]:
        return iter(self.judgments)

    def __len__(self) -> int:
        return len(self.judgments)

    def relevant(self, qid: str, level: int = 1) -> set[str]:
        """Documents judged at least ``level`` for the topic; none for a topic without judgments."""
        return {docid for docid, relevance in self.judgments.get(qid, {}).items() if relevance >= level}
