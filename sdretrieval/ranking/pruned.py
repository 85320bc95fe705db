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
do. What has none (DPH, very wide plans) is scored exhaustively. What needs no postings (general English's static score,
its share by length) is bounded by its most over all documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdretrieval.index.compact import Compact
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking import pruned_loops
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.walk import NO_LIMIT, Completion, not_a_number
from sdretrieval.ranking.weighting import DIVERGING, FLOORED, SATURATING

MOST_WORDS = 4000  # of a plan: more are scored by the walk for wide plans
ALL_POSTINGS, ALL_DOCS = 8, 4  # bounds that can be added while one posting, one document is scored exhaustively


@dataclass(frozen=True, eq=False)
class Cells:
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


@dataclass(frozen=True, eq=False)
class Pruned:
    """The search for the best documents of one plan; ``completion`` is of this plan alone."""

    snapshot: Snapshot
    plan: Plan
    A: np.ndarray
    B: np.ndarray
    completion: Completion
    static: tuple[float, float, float]  # least, mean and most of general English's static scores
    allowed: np.ndarray | None

    def best(self, depth: int, cells: Cells, spans: Sequence[tuple[int, int]], each: Callable[..., list[Any]]) -> Any:
        """Documents in rank order and their scores; None where bounds do not tell. ``spans`` of blocks, for threads."""
        depth = min(depth, self.snapshot.n_docs)
        if depth < 1:
            return None
        if len(spans) > 1:
            found = self.step_by_step(depth, cells, spans, each)
        else:
            allowed, completed = self._allowed, self._completed()
            given = self._postings, self._plan, (cells.counts, cells.factors), depth, allowed, *completed
            found = pruned_loops.best(*given, self._cost_of_all(), self._rows)
        docs, scores, keys, state = found
        if state == pruned_loops.NOT_A_NUMBER:
            raise not_a_number()
        if state == pruned_loops.UNBOUNDED:
            return None
        order = np.argsort(keys)[::-1][:depth]
        return docs[order], scores[order]

    def step_by_step(
        self, depth: int, cells: Cells, spans: Sequence[tuple[int, int]], each: Callable[..., list[Any]]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """What pruned_loops.best does in one call, the spans walked by a thread each."""
        term_ptr, block_docs, block_cells, blocks_ptr, blocks, n_docs, n_blocks = self._postings
        planned = pruned_loops.planned(
            term_ptr, blocks_ptr, blocks, n_blocks, *self._plan, cells.counts, cells.factors
        )
        units, lists, rest, scale, lost = planned
        completed, usual = self._completed()
        nothing = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64)
        if not pruned_loops.are_telling(scale, completed, lost):
            return *nothing, pruned_loops.UNBOUNDED
        slack, least = max(0, int((completed - usual) * scale)), 1
        given = term_ptr, block_docs, block_cells, blocks_ptr, blocks, n_docs, self._allowed, self.plan.model.terms

        for guess in (True, False):

            def part(span: tuple[int, int], least=least, guess=guess) -> tuple[np.ndarray, np.ndarray, int]:
                first, last = span
                walk = first, last - first, n_blocks, depth, least, slack, guess
                return pruned_loops.promising(*given, units, lists, rest, *walk)

            found = list(zip(*each(part, spans), strict=True))
            docs, bounds, reached = np.concatenate(found[0]), np.concatenate(found[1]), max(found[2])
            if len(docs) > 4 * depth and pruned_loops.SCORING * len(docs) > self._cost_of_all():
                return *nothing, pruned_loops.UNBOUNDED
            docs, scores, keys, floor, _ = pruned_loops.best_rows(docs, bounds, depth, completed, scale, *self._rows)
            least = pruned_loops.in_units(floor, completed, scale)
            if least >= reached:  # else the guess was too high
                break
        return docs, scores, keys, pruned_loops.settled(scores, floor, completed, lost)

    def scored(self, docs: np.ndarray) -> np.ndarray:
        """Scores of documents from their rows, to the bits of exhaustive scoring; -0.0 where they have no word."""
        scores, *_ = pruned_loops.score_rows(docs, *self._rows)
        if np.isnan(scores).any():
            raise not_a_number()
        return scores

    @property
    def _postings(self) -> tuple[Any, ...]:
        s, c = self.snapshot, self.snapshot.compact
        return s.term_ptr, c.block_docs, c.block_cells, c.ptr, c.blocks, s.n_docs, c.n_blocks

    @property
    def _plan(self) -> tuple[Any, ...]:
        return self.plan.model.terms, self.plan.model.weights, self.A, self.plan.weighting.kind

    @property
    def _allowed(self) -> np.ndarray:
        return NO_LIMIT if self.allowed is None else self.allowed

    @property
    def _rows(self) -> tuple[Any, ...]:
        s, model, c = self.snapshot, self.plan.model, self.completion
        given = model.terms, model.weights, self.A, self.B, s.compact.group, self.plan.weighting.kind
        return (
            s.doc_ptr,
            s.doc_terms,
            s.doc_counts,
            *given,
            *(s.docid_rank, c.static, c.g[0], c.share, c.mass[0], c.constant[0]),
        )

    def _cost_of_all(self) -> int:
        """Postings that can be walked while all documents are scored: a sum of each takes as long as some."""
        return ALL_POSTINGS * int(self.snapshot.df[self.plan.model.terms].sum()) + ALL_DOCS * self.snapshot.n_docs

    def _completed(self) -> tuple[float, float]:
        """The most that what needs no postings comes to, and what it hardly falls short of among the best."""
        c, compact, most, usual = self.completion, self.snapshot.compact, 0.0, 0.0
        if len(c.static):
            least, mean, edge = (c.g[0] * value for value in self.static)
            most, usual = max(least, edge), (mean + min(least, edge)) / 2
        if len(c.share):
            average = int(np.searchsorted(compact.lengths, self.snapshot.statistics.average_length))
            most += (c.mass[0] * c.share).max()
            usual += c.mass[0] * c.share[min(average, len(c.share) - 1)]
        return float(most + c.constant[0]), float(usual + c.constant[0])
