"""The best documents of a plan without scoring all: the documents, order and scores of exhaustive scoring, to the bit.

Postings of three bytes (index/compact.py) are walked a block of 65,536 documents at a time. Each adds, in whole numbers
that stay in the processor's cache, an upper bound of its evidence w·φ to its document's sum. A document whose sum, with
all that lists not yet walked may add, stays below the score of the last of the best so far cannot be among the best.
So a block is left as soon as the few documents that still can are scored from their own rows at less cost than walking
on: the long lists of light words are hardly ever walked. Rows are added up in the order of the terms, as exhaustive
scoring adds, so the scores are the same bits.

The floor begins as a guess from the blocks already walked. Where fewer documents than asked for reach it, the guess was
too high, and the walk is made again with what is known by then.

Bounds need evidence that is not negative and that grows or falls with count and length, as LOG, SATURATING and FLOORED
do. What has none (DPH, wide plans, a multiple of general English) is scored exhaustively.
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
from sdretrieval.ranking.walk import NO_LIMIT, Completion, not_a_number, ranked
from sdretrieval.ranking.weighting import DIVERGING, FLOORED, SATURATING

MOST_WORDS = 1000  # of a plan: more are scored by the walk for wide plans
LARGEST_RATIO = 1e4  # of what needs no postings, or of negative weights, to what the bounds come to


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
    cells: Cells
    completion: Completion
    allowed: np.ndarray | None

    def best(self, depth: int, spans: Sequence[tuple[int, int]], each: Callable[..., list[Any]]) -> Any:
        """Documents in rank order and their scores; None where bounds do not tell. ``spans`` of blocks, for threads."""
        model, kind = self.plan.model, self.plan.weighting.kind
        depth = min(depth, self.snapshot.n_docs)
        if depth < 1 or not (np.isfinite(self.A).all() and (self.A >= 0).all()):
            return None
        units, highest, scale = pruned_loops.bounds(model.weights, self.A, self.cells.counts, self.cells.factors, kind)
        completed = self._most_completed()
        lost = -model.weights[model.weights < 0].sum()
        if not scale * max(abs(completed), lost) < LARGEST_RATIO * pruned_loops.MOST_UNITS or scale == 0.0:
            return None
        search = self._search(units, highest, scale, completed, depth)
        docs, scores, floor = search(spans, each, np.float32(-np.inf), True)
        if not _reaches(scores, depth, floor):  # the guess was too high
            known = np.float32(scores[-1]) if len(scores) == depth else np.float32(-np.inf)
            docs, scores, floor = search(spans, each, known, False)
        # What has only words of negative weight was never met.
        if lost and not (len(scores) == depth and np.float32(scores[-1]) > completed):
            return None
        return docs, scores

    def _search(self, units: np.ndarray, highest: np.ndarray, scale: float, completed: float, depth: int) -> Callable:
        s, model, c = self.snapshot, self.plan.model, self.completion
        compact, n_blocks = s.compact, s.compact.n_blocks
        lists, rest = pruned_loops.lists_of(
            s.term_ptr, model.terms, model.weights, highest, compact.ptr, compact.blocks, n_blocks
        )
        given = (
            *(s.term_ptr, compact.block_docs, compact.block_cells, compact.ptr, compact.blocks),
            *(s.doc_ptr, s.doc_terms, s.doc_counts),
            *(compact.group, NO_LIMIT if self.allowed is None else self.allowed, s.docid_rank),
            *(model.terms, model.weights, self.A, self.B, self.plan.weighting.kind, pruned_loops.hashed(model.terms)),
            *(units, scale, lists, rest, c.static, c.g[0], c.share, c.mass[0], c.constant[0], completed),
        )

        def search(spans, each, floor, guess):
            def part(span):
                keys, values = np.empty(2 * depth + 64, np.int64), np.empty(2 * depth + 64)
                filled, reached, is_number, _ = pruned_loops.best_documents(
                    *given, span[0], span[1] - span[0], n_blocks, depth, floor, guess, keys, values
                )
                if not is_number:
                    raise not_a_number()
                return keys[:filled], values[:filled], reached

            found = each(part, spans)
            keys, values = (np.concatenate(parts) for parts in ([one[i] for one in found] for i in (0, 1)))
            return *ranked(s, keys, values, depth), max(one[2] for one in found)

        return search

    def _most_completed(self) -> float:
        c = self.completion
        of_length = (c.mass[0] * c.share).max() if len(c.share) else 0.0
        return float(of_length + c.constant[0])


def _reaches(scores: np.ndarray, depth: int, floor: np.float32) -> bool:
    """Whether enough documents were found at or above the floor that all had to reach."""
    return bool(floor == -np.inf or (len(scores) == depth and np.float32(scores[-1]) >= floor))
