"""The best documents of many wide plans in one reading of all rows: those of exhaustive scoring, to the bit.

A relevance model or SD class over the whole vocabulary has so many words that hardly a posting can be left out. But
plans of a batch share most of their words. So the documents' rows are read once for all of them: each word's evidence
is computed once, and added, times the word's weight in each plan, to a sum for each plan, many at a time. Evidence and
weights are whole numbers of 16 bits, rounded up, and so is each sum, with 1 for what each product has lost: it bounds
the score. A sum too large for its 16 bits bounds nothing; what documents' scores come to is found by scoring a few.

Somewhat more documents are kept than are asked for, and scored from their rows as exhaustive scoring scores them. If
the last of the best is above the bound of all that were left out, it is proven that none of these belongs among the
best; else (many equal scores at the end) the plan is left to the other ways of scoring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sdretrieval.ranking import pruned_loops, sieve_loops
from sdretrieval.ranking.loops import evidence
from sdretrieval.ranking.pruned import Pruned
from sdretrieval.ranking.sieve_loops import FULL
from sdretrieval.ranking.walk import NO_LIMIT, not_a_number, were_met
from sdretrieval.ranking.weighting import SATURATING

Span = tuple[int, int]
Found = tuple[np.ndarray, np.ndarray] | None
LANES = 32  # there are so many sums, or twice as many
READING, ADDING = 2.0, 1 / 32  # postings walked for a plan alone while one is read for all, and while one is added
ROUNDING = 2.0**-20  # of what is added in single precision
NO_LESS = 1.0 + 1e-6  # times a number as rounded: not below the number
LARGEST = 2.0**96  # times any count, or static score, it is a number in single precision
SAMPLE, ROOM = 256, 4.0  # documents that are scored first; so many times the best of these shall have room in a sum
MANY = 16  # of one word in a document: evidence of more may be too large for 16 bits
UNEQUAL = 2.0**-22  # scores this far apart, by their size, are not equal in single precision


def sifted(search: Pruned, depth: int, spans: Sequence[Span], each: Callable[..., list[Any]]) -> list[Found]:
    """For each plan of a search its best documents in rank order and their scores; None where they are not proven, or
    where reading all rows does not pay. ``spans`` of documents, for threads."""
    sieve, depth = Sieve(search, _bounded(search)), min(depth, search.snapshot.n_docs)
    found: list[Found] = [None] * len(search.plans)
    if depth < 1 or not sieve.pays:
        return found
    kept = depth + depth // 8 + LANES
    parts = each(lambda span: sieve.sift(span, kept), spans)
    for lane, number in enumerate(sieve.numbers):
        docs = np.concatenate([docs[lane, : filled[lane]] for docs, filled, _ in parts])
        left_out = max(sieve.highest(lane, float(floors[lane])) for _, _, floors in parts)
        found[number] = _proven(search, number, docs, depth, left_out)
    return found


def _bounded(search: Pruned) -> list[int]:
    """The plans whose scores sums can bound: all is finite, and neither weights nor factors of words are negative."""
    c, ptr = search.completion, np.cumsum([0, *(len(plan.model) for plan in search.plans)])
    others = np.maximum(np.abs(c.g), np.abs(c.mass))
    most = LARGEST / search.B.max(initial=1.0)
    bounded = []
    for i, plan in enumerate(search.plans):
        w, A = plan.model.weights, search.A[ptr[i] : ptr[i + 1]]
        has_bounds = w.min(initial=np.inf) >= 0.0 < w.max(initial=0.0) < np.inf and A.min() >= 0.0 and A.max() < most
        if has_bounds and others[i] < LARGEST * w.max() and np.isfinite(c.constant[i]):
            bounded.append(i)
    return bounded


def _proven(search: Pruned, number: int, docs: np.ndarray, depth: int, left_out: float) -> Found:
    """The best of the documents; None where one that was left out may be among them."""
    docs = np.sort(docs)
    scores, keys = pruned_loops.score_rows(docs, *search.scoring(number))
    if np.isnan(scores).any():
        raise not_a_number()
    met = were_met(scores)
    docs, scores, keys = docs[met], scores[met], keys[met]
    order = np.argsort(keys)[::-1][:depth]
    if left_out > -np.inf:
        last = scores[order[-1]] if len(order) == depth else -np.inf
        if not left_out < last - UNEQUAL * abs(last):
            return None
    return docs[order], scores[order]


@dataclass(frozen=True, eq=False)
class Sieve:
    """Some plans of a search, a lane for each. A lane's numbers are in units of its own."""

    search: Pruned
    numbers: Sequence[int]

    @property
    def pays(self) -> bool:
        s = self.search.snapshot
        postings = sum(int(s.df[self.search.plans[i].model.terms].sum()) for i in self.numbers)
        return bool(self.numbers) and postings > s.n_postings * (READING + ADDING * self._n_lanes)

    def sift(self, span: Span, depth: int) -> Any:
        """See sieve_loops.sift."""
        s, c, (A, *terms) = self.search.snapshot, self.search.completion, self._words
        allowed = NO_LIMIT if self.search.allowed is None else self.search.allowed
        steps = np.float32(self._steps * NO_LESS)
        words = *terms, A, self.search.B, self._kind, self._weights, steps, sieve_loops.log_table()
        others = self._static, self._share, *(self._lanes(values / self._units) for values in (c.g, c.mass))
        return sieve_loops.sift(s.rows, c.group, *span, allowed, *words, *others, len(self.numbers), depth)

    def highest(self, lane: int, floor: float) -> float:
        """The most that the score of a document comes to whose sum is at most ``floor``; -inf for no document."""
        if floor == -np.inf:
            return floor
        number, c = self.numbers[lane], self.search.completion
        static, share = self._most
        others = abs(c.g[number]) * static + abs(c.mass[number]) * share
        unit = self._units[number]
        return unit * floor + ROUNDING * (unit * abs(floor) + others) + float(c.constant[number])

    @cached_property
    def _most(self) -> list[float]:
        return [float(np.abs(values).max(initial=0.0)) for values in (self._static, self._share)]

    @property
    def _n_lanes(self) -> int:
        return -(-len(self.numbers) // LANES) * LANES

    def _lanes(self, values: np.ndarray) -> np.ndarray:
        lanes = np.zeros(self._n_lanes, dtype=np.float32)
        lanes[: len(self.numbers)] = values[self.numbers]
        return lanes

    @property
    def _kind(self) -> int:
        return self.search.plans[0].weighting.kind

    @cached_property
    def _largest(self) -> float:
        """The most that the evidence of a word comes to, of MANY at most."""
        B = self.search.B
        best = B.min(initial=np.inf) if self._kind == SATURATING else B.max(initial=0.0)
        return max(float(evidence(self._kind, MANY, self._words[0].max(), best)), 1e-30)

    @property
    def _steps(self) -> float:
        return (FULL - 2) / self._largest

    @cached_property
    def _units(self) -> np.ndarray:
        """Of each plan what 1 in a sum is worth: as little as leaves room for the best documents, and for a word."""
        n_docs = self.search.snapshot.n_docs
        sample = np.linspace(0, n_docs - 1, min(SAMPLE, n_docs)).astype(np.int64)
        units = np.ones(len(self.search.plans))
        for number in self.numbers:
            best = pruned_loops.score_rows(sample, *self.search.scoring(number, words_alone=True))[0].max(initial=0.0)
            word = self.search.plans[number].model.weights.max() * self._largest
            units[number] = max(ROOM * best, 1.001 * word) / FULL
        return units

    @cached_property
    def _static(self) -> np.ndarray:
        return self.search.completion.static.astype(np.float32)

    @cached_property
    def _share(self) -> np.ndarray:
        return self.search.completion.share.astype(np.float32)

    @cached_property
    def _words(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A_w of the words of all plans, the frequent ones first; a bit for each such term; its place among them."""
        s, plans = self.search.snapshot, self.search.plans
        used = np.unique(np.concatenate([plans[i].model.terms for i in self.numbers]))
        used = used[np.argsort(-s.df[used], kind="stable")]
        is_used, place = np.zeros(s.n_terms, dtype=np.bool_), np.zeros(s.n_terms, dtype=np.int32)
        is_used[used] = True
        place[used] = np.arange(len(used), dtype=np.int32)
        terms, A = np.concatenate([plan.model.terms for plan in plans]), np.empty(len(used), dtype=np.float32)
        of_these = is_used[terms]
        A[place[terms[of_these]]] = self.search.A[of_these]
        return A, np.packbits(is_used, bitorder="little"), place

    @cached_property
    def _weights(self) -> np.ndarray:
        """Of each of these words, and of none, the weight in each plan, times what a step of evidence is of a unit."""
        A, _, place = self._words
        weights = np.zeros((len(A) + 1, self._n_lanes), dtype=np.uint16)
        for lane, number in enumerate(self.numbers):
            model = self.search.plans[number].model
            whole = (FULL + 1) * model.weights / (self._steps * self._units[number])
            weights[place[model.terms], lane] = (whole * NO_LESS).astype(np.uint16) + 1
        return weights
