"""The best documents of a plan without scoring all: the documents, order and scores of exhaustive scoring, to the bit.

Postings of three bytes (index/compact.py) are walked a block of 65,536 documents at a time. Each adds, in whole numbers
that stay in the processor's cache, an upper bound of its evidence w·φ to its document's sum. A document whose sum, with
all that lists not yet walked may add, stays below what the last of the best reaches cannot be among the best. So a
block is looked over as soon as few documents still can, and these are looked up in the long lists of light words, which
are hardly ever walked. What is left of all blocks is scored from the documents' own rows, the highest bounds first,
until no bound reaches the last of the best: hardly more documents than are asked for. Rows are added up in the order of
the terms, as exhaustive scoring adds, so the scores are the same bits.

What must be reached begins as a guess from the blocks already walked. Where fewer documents than asked for reach it,
the guess was too high, and the walk is made again with what is known by then.

Bounds need evidence that is not negative and that grows or falls with count and length, as LOG, SATURATING and FLOORED
do. What has none (DPH, very wide plans) is scored exhaustively. General English's static score, in steps, is what a
document's sum begins with; what else needs no postings (its share by length) is bounded by its most over all documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sdretrieval.index.compact import Compact
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking import pruned_loops
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.walk import NO_LIMIT, Completion, not_a_number
from sdretrieval.ranking.weighting import DIVERGING, FLOORED, SATURATING

NOTHING = np.zeros(0)
MOST_WORDS = 4000  # of a plan: more are scored by the walk for wide plans
Span = tuple[int, int]


class Cells(NamedTuple):
    """Of each cell the count and the factor B_D that make the most of the evidence."""

    counts: np.ndarray
    factors: np.ndarray

    @classmethod
    def of(cls, compact: Compact, kind: int, B: np.ndarray) -> Cells | None:
        """None where evidence of this kind, or of such factors, has no bound by cells."""
        if kind == DIVERGING or not np.isfinite(B).all() or (kind != FLOORED and (B < 0).any()):
            return None
        counts, factors = np.zeros(256, np.int64), np.zeros(256)
        best = np.min if kind == SATURATING else np.max
        for cell, (_, count, first, last) in enumerate(compact.cells.tolist()):
            if count:
                counts[cell], factors[cell] = count, best(B[first : last + 1])
        return cls(counts, factors)


class Steps(NamedTuple):
    """General English's static scores in 256 steps: where they begin, how wide they are, and each document's.

    A document of the step k has a score from low + k·width to low + (k + 1)·width.
    """

    low: float
    width: float
    of_docs: np.ndarray

    @classmethod
    def of(cls, static: np.ndarray) -> Steps:
        low, high = float(static.min()), float(static.max())
        if not np.isfinite(high - low):  # nothing is bounded
            return cls(low, np.inf, np.zeros(len(static), dtype=np.uint8))
        low, width = low - 1e-9 * (high - low), max((high - low) * (1.0 + 1e-8) / 256, 1e-300)
        return cls(low, width, np.minimum((static - low) / width, 255).astype(np.uint8))


NO_STEPS = Steps(0.0, 0.0, np.zeros(0, dtype=np.uint8))


@dataclass(frozen=True, eq=False)
class Pruned:
    """The search for the best documents of some plans of one weighting."""

    snapshot: Snapshot
    plans: Sequence[Plan]
    A: np.ndarray  # of all plans' words, one plan after the other
    B: np.ndarray
    completion: Completion
    steps: Steps
    allowed: np.ndarray | None

    def best(self, depth: int, cells: Cells, spans: Sequence[Span], each: Callable[..., list[Any]]) -> list[Any]:
        """Documents in rank order and their scores; None where bounds do not tell. ``spans`` of blocks, for threads."""
        depth = min(depth, self.snapshot.n_docs)
        if depth < 1:
            return [None] * len(self.plans)
        if len(spans) > 1:
            return self.in_steps(depth, cells, spans, each)
        c, kind = self.completion, self.plans[0].weighting.kind
        terms, weights = (np.concatenate([getattr(p.model, of) for p in self.plans]) for of in ("terms", "weights"))
        documents = self.snapshot.rows, self.B, c.group, self.snapshot.docid_rank, c.static, c.share
        docs, scores, keys, ends, states = pruned_loops.best_of_each(
            *(self._ptr, terms, weights, self.A, *self._completed, c.g, c.mass, c.constant),
            *((kind, *self._postings), cells, self.steps, depth, self._allowed, documents),
        )
        cuts = zip([0, *ends[:-1].tolist()], ends.tolist(), states.tolist(), strict=True)
        return [self._ranked(docs[i:j], scores[i:j], keys[i:j], state, depth) for i, j, state in cuts]

    def in_steps(self, depth: int, cells: Cells, spans: Sequence[Span], each: Callable[..., list[Any]]) -> list[Any]:
        """The same, several threads for one plan."""
        found = [self._step_by_step(number, depth, cells, spans, each) for number in range(len(self.plans))]
        return [self._ranked(*one, depth) for one in found]

    @staticmethod
    def _ranked(docs: np.ndarray, scores: np.ndarray, keys: np.ndarray, state: int, depth: int) -> Any:
        if state == pruned_loops.NOT_A_NUMBER:
            raise not_a_number()
        order = np.argsort(keys)[::-1][:depth]
        return None if state == pruned_loops.UNBOUNDED else (docs[order], scores[order])

    def _step_by_step(
        self, number: int, depth: int, cells: Cells, spans: Sequence[Span], each: Callable[..., list[Any]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """What pruned_loops.best_of_each does in one call, the spans walked by a thread each."""
        term_ptr, _, _, blocks_ptr, blocks, n_docs, n_blocks = self._postings
        given = term_ptr, blocks_ptr, blocks, n_docs, n_blocks, cells, self.steps
        plan = *self._plan(number), self.completion.g[number]
        units, start, lists, rest, scale, lost, most, loose = pruned_loops.planned(*plan, *given)
        completed, usual = (float(values[number]) for values in self._completed)
        nothing = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        if not pruned_loops.are_telling(scale, completed, lost):
            return *nothing, pruned_loops.UNBOUNDED
        slack, least = max(0, int((completed - usual) * scale)) + loose, 1
        walked = self._allowed, self.plans[number].model.terms, units, start, self.steps[2], lists, rest

        for guess in (True, False):

            def part(span: Span, least=least, guess=guess) -> tuple[np.ndarray, np.ndarray, int]:
                walk = span[0], span[1] - span[0], n_blocks, depth, least, slack, guess
                return pruned_loops.promising(*self._postings[:-1], *walked, *walk)

            found = list(zip(*each(part, spans), strict=True))
            docs, bounds, reached = np.concatenate(found[0]), np.concatenate(found[1]), max(found[2])
            if pruned_loops.are_too_many(docs, depth, most):
                return *nothing, pruned_loops.UNBOUNDED
            how = completed, scale, *self.scoring(number)
            docs, scores, keys, floor = pruned_loops.best_rows(docs, bounds, depth, *how)
            least = pruned_loops.in_units(floor, completed, scale)
            if least >= reached:  # else the guess was too high
                break
        return docs, scores, keys, pruned_loops.settled(scores, floor, completed, start, scale, lost)

    def scored(self, docs: np.ndarray) -> np.ndarray:
        """Scores of documents by the only plan, to the bits of exhaustive scoring; -0.0 where they have no word."""
        scores, _ = pruned_loops.score_rows(docs, *self.scoring(0))
        if np.isnan(scores).any():
            raise not_a_number()
        return scores

    @property
    def _ptr(self) -> np.ndarray:
        """Where the words of each plan begin."""
        return np.concatenate([[0], np.cumsum([len(plan.model) for plan in self.plans])])

    @property
    def _postings(self) -> tuple[Any, ...]:
        s, c = self.snapshot, self.snapshot.compact
        return s.term_ptr, c.block_docs, c.block_cells, c.ptr, (c.blocks, c.starts), s.n_docs, c.n_blocks

    @property
    def _allowed(self) -> np.ndarray:
        return NO_LIMIT if self.allowed is None else self.allowed

    def _plan(self, number: int) -> tuple[Any, ...]:
        plan, ptr = self.plans[number], self._ptr
        return plan.model.terms, plan.model.weights, self.A[ptr[number] : ptr[number + 1]], plan.weighting.kind

    def scoring(self, number: int, words_alone: bool = False) -> tuple[Any, ...]:
        """What pruned_loops.score_rows takes besides documents; ``words_alone``: for what the plan's words add."""
        c, (terms, weights, A, kind) = self.completion, self._plan(number)
        given = self.snapshot.rows, terms, weights, A, self.B, c.group, kind, self.snapshot.docid_rank
        if words_alone:
            return *given, NOTHING, NOTHING, (0.0, 0.0, 0.0)
        return *given, c.static, c.share, (c.g[number], c.mass[number], c.constant[number])

    @cached_property
    def _completed(self) -> tuple[np.ndarray, np.ndarray]:
        """The most that what needs no postings comes to, and what it hardly falls short of among the best.

        Of the static score the least: what it is above that is added document by document.
        """
        c, compact = self.completion, self.snapshot.compact
        low, width, _ = self.steps
        most = usual = c.constant + np.minimum(c.g * low, c.g * (low + 256 * width))
        if len(c.share):
            average = int(np.searchsorted(compact.lengths, self.snapshot.statistics.average_length))
            most = most + np.maximum(c.mass * c.share.max(), c.mass * c.share.min())
            usual = usual + c.mass * c.share[min(average, len(c.share) - 1)]
        return most, usual
