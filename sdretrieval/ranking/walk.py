"""Many plans in one walk over the postings, and the best documents of each: what engine.py is built from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking import loops
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import Weighting

NARROW_SUMS = 1 << 19  # sums of a block of documents and all plans: what the processor keeps near
NARROW_MOST = 1 << 22  # of these sums, however rare the words: 32 MB
POSTINGS = 64  # that a word should have in a block, on average, to be worth looking up
WIDE_BLOCK = 8192  # documents, where the plans are wide
TABLES = 1 << 22  # numbers in tables of logarithms: 32 MB
WIDE = 1000  # a plan of more words is wide: see loops.score_wide
NO_LIMIT = np.zeros(0, dtype=np.bool_)  # for the compiled loops


@dataclass(frozen=True, eq=False)
class Completion:
    """What needs no postings, for some plans of one weighting: see loops.keep_best."""

    static: np.ndarray
    g: np.ndarray
    share: np.ndarray
    group: np.ndarray
    mass: np.ndarray
    constant: np.ndarray


_ZERO = np.zeros(1)
NO_COMPLETION = Completion(np.zeros(0), _ZERO, np.zeros(0), np.zeros(1, dtype=np.int32), _ZERO, _ZERO)


class Best:
    """The best documents so far of each of some plans; blocks of documents are added in any order."""

    def __init__(
        self,
        snapshot: Snapshot,
        plans: int,
        depth: int,
        completion: Completion,
        documents: int,
        allowed: np.ndarray | None = None,
        ties: np.ndarray | None = None,
    ) -> None:
        """``documents``: how many will be added. ``ties``: their places among all docids, where they are not numbers
        of the snapshot's documents."""
        self.ties = snapshot.docid_rank if ties is None else ties
        self.snapshot, self.completion, self.wanted = snapshot, completion, depth
        self.depth = min(depth, documents)
        self.allowed = NO_LIMIT if allowed is None else allowed
        room = (plans, 2 * self.depth + 64)
        self.keys, self.values = np.empty(room, dtype=np.int64), np.empty(room)
        self.filled = np.zeros(plans, dtype=np.int64)
        self.floors = np.full(plans, -np.inf, dtype=np.float32)

    def add(self, left: int, width: int, scores: np.ndarray) -> None:
        """Sums of ``width`` documents from ``left`` on, a row for each plan."""
        if self.depth == 0:
            return
        c = self.completion
        numbers = loops.keep_best(
            scores,
            width,
            left,
            self.allowed,
            c.static,
            c.g,
            c.share,
            c.group,
            c.mass,
            c.constant,
            self.ties,
            self.depth,
            self.keys,
            self.values,
            self.filled,
            self.floors,
        )
        if not numbers:
            raise not_a_number()

    def ranked(self, row: int, others: Sequence[Best] = ()) -> tuple[np.ndarray, np.ndarray]:
        """Documents and scores of a plan in rank order, together with what others found elsewhere."""
        parts = [(part.keys[row, : part.filled[row]], part.values[row]) for part in (self, *others)]
        keys = np.concatenate([keys for keys, _ in parts]) if others else parts[0][0]
        values = np.concatenate([values[: len(keys)] for keys, values in parts]) if others else parts[0][1]
        return ranked(self.snapshot, keys, values, self.wanted)


def not_a_number() -> ParameterError:
    return ParameterError("a score is not a number (NaN)", remedy="Check the model's parameters and weights.")


def were_met(scores: np.ndarray) -> np.ndarray:
    """Which scores are of documents that have any of the words: that of others is -0.0."""
    return (scores != 0.0) | ~np.signbit(scores)


def ranked(snapshot: Snapshot, keys: np.ndarray, values: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Documents and scores in rank order, by the keys of loops.keep_best."""
    order = np.argsort(keys)[::-1][:depth]
    return snapshot.docids.order[keys[order] & 0xFFFFFFFF].astype(np.int64), values[order]


class Walk:
    """The postings of several plans of one weighting, walked once for all of them."""

    def __init__(
        self,
        snapshot: Snapshot,
        statistics: Statistics,
        weighting: Weighting,
        models: Sequence[TermModel],
        B: np.ndarray,
        group: np.ndarray,
    ) -> None:
        self.snapshot, self.weighting, self.n, self.B, self.group = snapshot, weighting, len(models), B, group
        # The words' weights as a sparse matrix, a row for each word: see loops.score_narrow.
        words = np.concatenate([model.terms for model in models])
        order = np.argsort(words, kind="stable")
        words = words[order]
        edges = np.flatnonzero(np.diff(words, prepend=-1))
        self.terms, self.w_ptr = words[edges], np.append(edges, len(words))
        self.w_plan = np.repeat(np.arange(self.n), [len(model) for model in models])[order]
        self.w_value = np.concatenate([model.weights for model in models])[order]
        self.A = weighting.term_factors(statistics, self.terms)
        self.postings = snapshot.postings_of(self.terms)
        self.tables = loops.evidence_tables(snapshot.term_ptr, self.terms, self.A, B, weighting.kind, TABLES)
        self.is_wide = is_wide(models[0])

    def blocks(self, start: int, stop: int, whole: np.ndarray | None = None) -> Iterator[tuple[int, int, np.ndarray]]:
        """Σ_w s_w φ, a row for each plan, a block of documents at a time: its first, how many, the sums.

        The sums are lent until the next block is asked for; or they are written to their columns of ``whole``.
        """
        size = self._block_size()
        ptr, docs, _, places = self.postings
        cursor = loops.first_postings(ptr, docs, places, start)
        lent = np.empty((self.n, min(size, max(stop - start, 0)))) if whole is None else whole
        for left in range(start, stop, size):
            right = min(left + size, stop)
            at = 0 if whole is None else left
            self._score(left, right, cursor, lent, at)
            yield left, right - left, lent

    def _score(self, left: int, right: int, cursor: np.ndarray, scores: np.ndarray, at: int) -> None:
        given = (
            *self.postings,
            self.w_ptr,
            self.w_plan,
            self.w_value,
            self.A,
            self.B,
            self.group,
            self.weighting.kind,
            *self.tables,
            cursor,
            left,
            right,
        )
        block = scores[:, at : at + right - left]
        score: Any = loops.score_wide if self.is_wide else loops.score_narrow
        if self.is_wide:
            rows = np.full((right - left, self.n), -0.0)
            score(*given, rows)
            block[:] = rows.T
        else:
            block[:] = -0.0
            score(*given, at, scores)

    def _block_size(self) -> int:
        """So many documents that their sums stay near the processor; more where the words are rare."""
        if self.is_wide:
            return WIDE_BLOCK
        postings = int(self.snapshot.df[self.terms].sum())
        for_rare = POSTINGS * len(self.terms) * self.snapshot.n_docs // max(postings, 1)
        return max(1, min(max(NARROW_SUMS // self.n, for_rare), NARROW_MOST // self.n, self.snapshot.n_docs))


def is_wide(model: TermModel) -> bool:
    return len(model) > WIDE
