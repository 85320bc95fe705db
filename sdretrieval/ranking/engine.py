"""Scores plans over a snapshot: whole collections or given candidates, one pass or two, any number of threads.

Two ways to score the whole collection give the same sums up to rounding:

- *alone*: walk the postings of the plan's words, for one query. For plans of few words.
- *together*: walk the postings once for many queries, so that the logarithm of each is paid once for all of them.
  For plans over most of the vocabulary (exact rm and sd).

Which one is taken depends on the plan alone, never on threads or on the other queries: results are reproducible to
the last bit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from sdretrieval import kernels
from sdretrieval.errors import ParameterError
from sdretrieval.ranking.base import Expansion, Plan, Ranker
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel, strongest
from sdretrieval.ranking.walk import NO_COMPLETION, NOTHING, Best, Completion, Walk
from sdretrieval.ranking.weighting import FLOORED, Weighting
from sdretrieval.records import rank_order
from sdretrieval.snapshot import Snapshot
from sdretrieval.statistics import Statistics

T = TypeVar("T")
U = TypeVar("U")

DENSE_SHARE = 0.1  # a plan that touches more of the postings than this is scored together with others
BATCH = 64  # queries that share a walk, where their scores fit in memory
SCORES_IN_MEMORY = 1 << 25  # scores held at once: 256 MB
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, eq=False)
class Judgments:
    """Documents known to be relevant, or not, for one query: feedback that need not be guessed."""

    relevant: np.ndarray
    nonrelevant: np.ndarray


@dataclass(eq=False)
class Result:
    """One query's documents (numbers of the snapshot) in rank order, and how the model came to them."""

    query: Query
    docs: np.ndarray
    scores: np.ndarray
    plan: Plan
    feedback: Feedback | None = None
    expansion: Expansion | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class Engine:
    """Ranks queries over one snapshot. Cheap to make; holds only per-document vectors."""

    def __init__(self, snapshot: Snapshot, *, threads: int = 1, statistics: Statistics | None = None) -> None:
        self.snapshot = snapshot
        self.statistics = statistics or snapshot.statistics
        self.threads = max(1, threads)
        self._lengths = np.asarray(snapshot.doc_lengths, dtype=np.float64)
        # The lengths that occur, and which of them each document has.
        lengths, group = np.unique(self._lengths, return_inverse=True)
        self._length_groups = lengths, group.astype(np.int32)
        self.allowed: np.ndarray | None = None  # which documents may be ranked; None for all
        self._forget()

    def _forget(self) -> None:
        # Per weighting: the factors B_D of documents by length, and the static score of general English.
        self._doc_factors = lru_cache(maxsize=8)(self._compute_doc_factors)
        self._background = lru_cache(maxsize=8)(self._compute_background)

    def view(self, statistics: Statistics, allowed: np.ndarray | None = None) -> Engine:
        """The same snapshot with other statistics, and with only the documents marked in ``allowed``."""
        other = copy(self)
        other.statistics, other.allowed, other.threads = statistics, allowed, 1
        other._forget()
        return other

    def _met(self, marks: np.ndarray) -> np.ndarray:
        """Numbers of the documents that a plan met and that may be ranked."""
        docs = np.flatnonzero(marks != 0)  # a comparison first: NumPy finds bits faster than numbers
        return docs if self.allowed is None else docs[self.allowed[docs]]

    # -- the two passes ------------------------------------------------------------------------------------------
    def rank(
        self,
        ranker: Ranker,
        queries: Sequence[Query],
        *,
        hits: int = 1000,
        candidates: Mapping[str, np.ndarray] | None = None,
        judged: Mapping[str, Judgments] | None = None,
        prune: int | None = None,
        adjust: Callable[[Result, np.ndarray, np.ndarray], np.ndarray] | None = None,
    ) -> Iterator[Result]:
        """Results in the order of the queries.

        ``candidates``: rank only these documents (in the order of a given run, whose first ones are the feedback).
        ``judged``: known relevant and non-relevant documents by query id. ``prune``: keep only so many words of the
        final plan. ``adjust(result, docs, scores)`` may change the final scores, as a time prior does.
        """
        if hasattr(ranker, "rank_with"):  # a model that brings its own statistics for each query, as time does
            yield from ranker.rank_with(self, queries, hits=hits, candidates=candidates, judged=judged, prune=prune)
            return
        known = judged or {}

        def prepare(batch: Sequence[Query]) -> list[Result]:
            given = (None if candidates is None else candidates[query.qid] for query in batch)
            return [
                self._prepare(ranker, query, documents, known.get(query.qid), prune)
                for query, documents in zip(batch, given, strict=True)
            ]

        def finish(results: list[Result]) -> list[Result]:
            return self._finish(results, hits, candidates, adjust)

        size = min(BATCH, SCORES_IN_MEMORY // max(self.snapshot.n_docs, 1))
        if self.threads > 1:  # several batches, for one to be scored while the next is prepared
            size = min(size, -(-len(queries) // 4))
        yield from self._in_turn(prepare, finish, _batches(queries, max(1, size)))

    def _in_turn(self, prepare, finish, batches: Iterable[Sequence[Query]]) -> Iterator[Result]:
        """Score one batch while the plans of the next are made.

        Making plans is mostly Python, scoring them mostly compiled: so two threads seldom want the interpreter at the
        same time, as they would if both did both.
        """
        if self.threads == 1:
            for batch in batches:
                yield from finish(prepare(batch))
            return
        with ThreadPoolExecutor(1) as scorer, _quick_hand_over():
            scored: Future[list[Result]] | None = None
            for batch in batches:
                prepared = prepare(batch)
                done = scored.result() if scored else []
                scored = scorer.submit(finish, prepared)
                yield from done
            if scored:
                yield from scored.result()

    def _prepare(
        self,
        ranker: Ranker,
        query: Query,
        candidates: np.ndarray | None,
        judgments: Judgments | None,
        prune: int | None,
    ) -> Result:
        """First pass, feedback, second plan; the result has no documents yet."""
        plan = ranker.first(query, self.statistics)
        result = Result(query, np.zeros(0, dtype=np.int64), np.zeros(0), plan)
        if ranker.uses_feedback and not query.is_empty:
            feedback = self.feedback(ranker, query, plan, candidates, judgments)
            if len(feedback):
                result.feedback = feedback
                result.expansion = ranker.expand(query, feedback, self.statistics)
                result.plan = result.expansion.plan
        if prune is not None:
            result.plan, result.notes["pruned"] = pruned(result.plan, prune)
        return result

    def feedback(
        self,
        ranker: Ranker,
        query: Query,
        plan: Plan,
        candidates: np.ndarray | None = None,
        judgments: Judgments | None = None,
    ) -> Feedback:
        """Judged relevant documents where there are any; else the first of the candidates or of the first pass."""
        nonrelevant = None
        if judgments is not None and len(judgments.nonrelevant):
            nonrelevant = Rows.of(self.snapshot, judgments.nonrelevant)
        if judgments is not None and len(judgments.relevant):
            docs, is_judged = judgments.relevant, True
            scores = self.score_docs(plan, docs)
        else:
            is_judged = False
            refused = judgments.nonrelevant if judgments is not None else np.zeros(0, dtype=np.int64)
            depth = ranker.feedback_depth + len(refused)
            if candidates is not None:
                docs = candidates[:depth]
                scores = self.score_docs(plan, docs)
            else:
                docs, scores = self.first_documents(query, plan, depth)
            keep = ~np.isin(docs, refused)
            docs, scores = docs[keep][: ranker.feedback_depth], scores[keep][: ranker.feedback_depth]
        return Feedback(docs, scores, Rows.of(self.snapshot, docs), is_judged, nonrelevant)

    def first_documents(self, query: Query, plan: Plan, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best documents of the first pass, and their scores."""
        return self.best(plan, depth)

    def _finish(self, results: list[Result], hits: int, candidates, adjust) -> list[Result]:
        dense = [] if candidates is not None else [r.plan for r in results if self._is_dense(r.plan)]
        if adjust is None:
            found = self._best_together(dense, hits)
        else:  # scores that change afterwards are wanted for all documents
            scored = self._score_together(dense)

        def complete(result: Result) -> Result:
            plan = result.plan
            if candidates is not None:
                docs = candidates[result.query.qid]
                scores = self.score_docs(plan, docs)
                if adjust is not None:
                    scores = adjust(result, docs, scores)
                result.docs, result.scores = self.top(docs, scores, hits)
            elif adjust is None:
                result.docs, result.scores = found.get(id(plan)) or self.best(plan, hits)
            else:
                docs, scores = scored.get(id(plan)) or self.score_all(plan)
                result.docs, result.scores = self.top_of_all(docs, adjust(result, docs, scores), hits)
            return result

        return self._each(complete, results)

    # -- scoring -------------------------------------------------------------------------------------------------
    def score_all(self, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Documents that have at least one of the plan's words, and their scores."""
        scores, met = self._accumulate(plan)
        docs = self._met(met if len(met) else scores)
        return docs, self._complete(plan, docs, scores[docs])

    def best(self, plan: Plan, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best of them in rank order: the same as score_all and top, in one go over the scores."""
        scores, met = self._accumulate(plan)
        best = Best(self.snapshot, 1, depth, self._completion([plan]), self.allowed)
        best.add(0, scores[:, np.newaxis], met)
        return best.ranked(0)

    def _accumulate(self, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Σ_w s_w φ for every document, and which documents were met where the sum does not tell (else nothing)."""
        s = self.snapshot
        model, weighting, scores, met = plan.model, plan.weighting, np.zeros(s.n_docs), NOTHING
        A = weighting.term_factors(self.statistics, model.terms)
        B, group = self._doc_factors(weighting), self._length_groups[1]
        kernels.score_by_terms(
            s.term_ptr, s.term_docs, s.term_counts, model.terms, model.weights, A, B, group, weighting.kind, scores
        )
        if self._needs_marks(plan):
            met = np.zeros(s.n_docs, dtype=np.uint8)
            kernels.mark_documents(s.term_ptr, s.term_docs, model.terms, met)
        return scores, met

    def _needs_marks(self, plan: Plan) -> bool:
        """Whether a document that was met may score 0, so that its score does not tell."""
        return plan.weighting.kind == FLOORED or bool((plan.model.weights < 0).any())

    def score_docs(self, plan: Plan, docs: np.ndarray) -> np.ndarray:
        """Scores of given documents."""
        s, model, weighting = self.snapshot, plan.model, plan.weighting
        weights = model.dense(self.statistics.p) if model.background else _dense(model.terms, model.weights, s.n_terms)
        terms = np.flatnonzero(weights)
        A = _dense(terms, weighting.term_factors(self.statistics, terms), s.n_terms)
        B = self._doc_factors(weighting)[self._length_groups[1][docs]]
        scores = np.zeros(len(docs))
        kernels.score_candidates(s.doc_ptr, s.doc_terms, s.doc_counts, docs, weights, A, B, weighting.kind, scores)
        return scores + self._share_part(plan, docs) + plan.constant(self.statistics)

    def _complete(self, plan: Plan, docs: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Add what needs no postings: general English's static score, the background's share, the constant."""
        if plan.model.background:
            scores = scores + plan.model.background * self._background(plan.weighting)[docs]
        return scores + self._share_part(plan, docs) + plan.constant(self.statistics)

    def _share_part(self, plan: Plan, docs: np.ndarray) -> np.ndarray | float:
        """(Σ a_w) log(1 - λ_D); where it is the same for all documents it is part of the constant."""
        weighting = plan.weighting
        if not weighting.is_language_model or (weighting.share_is_constant and not plan.with_constant):
            return 0.0
        return plan.model.mass * weighting.log_background_share(self._lengths[docs])

    def _is_dense(self, plan: Plan) -> bool:
        if plan.weighting.kind == FLOORED:  # together, a document is known to be met by its score: not 0 by flooring
            return False
        df = self.snapshot.df[plan.model.terms].sum()
        return bool(df > DENSE_SHARE * self.snapshot.n_postings) and len(plan.model) > 16

    def _completion(self, plans: list[Plan]) -> Completion:
        """What plans of one weighting add to their sums: see _complete."""
        weighting, nothing = plans[0].weighting, np.zeros(0)
        with_share = [
            weighting.is_language_model and (plan.with_constant or not weighting.share_is_constant) for plan in plans
        ]
        return Completion(
            static=self._background(weighting) if any(plan.model.background for plan in plans) else nothing,
            g=np.array([plan.model.background for plan in plans]),
            share=weighting.log_background_share(self._length_groups[0]) if any(with_share) else nothing,
            group=self._length_groups[1],
            mass=np.array([plan.model.mass if share else 0.0 for plan, share in zip(plans, with_share, strict=True)]),
            constant=np.array([plan.constant(self.statistics) for plan in plans]),
        )

    def _walk(self, plans: list[Plan]) -> Walk:
        weighting = plans[0].weighting
        factors, group = self._doc_factors(weighting), self._length_groups[1]
        return Walk(self.snapshot, self.statistics, weighting, [plan.model for plan in plans], factors, group)

    def _best_together(self, plans: list[Plan], depth: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """The best documents of several plans in one walk over the postings, per weighting."""
        found = {}
        for group in _by_weighting(plans):
            completion, walk = self._completion(group), self._walk(group)

            def best_of(span: tuple[int, int], group=group, completion=completion, walk=walk) -> Best:
                best = Best(self.snapshot, len(group), depth, completion, self.allowed)
                for left, scores in walk.blocks(*span):
                    best.add(left, scores)
                return best

            first, *others = self._each(best_of, self._spans())
            for column, plan in enumerate(group):
                found[id(plan)] = first.ranked(column, others)
        return found

    def _score_together(self, plans: list[Plan]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Several plans in one walk over the postings, per weighting: all documents that were met."""
        scored = {}
        for group in _by_weighting(plans):
            walk, scores = self._walk(group), np.zeros((self.snapshot.n_docs, len(group)))

            def fill(span: tuple[int, int], walk=walk, scores=scores) -> None:
                for _ in walk.blocks(*span, scores):
                    pass

            self._each(fill, self._spans())
            for column, plan in enumerate(group):
                of_plan = np.ascontiguousarray(scores[:, column])
                docs = self._met(of_plan)
                scored[id(plan)] = docs, self._complete(plan, docs, of_plan[docs])
        return scored

    def _compute_doc_factors(self, weighting: Weighting) -> np.ndarray:
        """B_D for each length that documents have; whose length is which is in ``_length_groups``."""
        return weighting.doc_factors(self.statistics, self._length_groups[0])

    def _compute_background(self, weighting: Weighting) -> np.ndarray:
        s, p = self.snapshot, self.statistics.p
        terms = np.flatnonzero(p)
        A = _dense(terms, weighting.term_factors(self.statistics, terms), s.n_terms)
        B, scores = self._doc_factors(weighting)[self._length_groups[1]], np.zeros(s.n_docs)

        def walk(span):
            kernels.background_scores(
                s.doc_ptr, s.doc_terms, s.doc_counts, p, A, B, weighting.kind, span[0], span[1], scores
            )

        self._each(walk, self._spans())
        return scores

    # -- order ---------------------------------------------------------------------------------------------------
    def top(self, docs: np.ndarray, scores: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best documents in rank order; ties as records.rank_order decides them."""
        order = rank_order(self.snapshot.docid_rank[docs], scores, depth)
        return docs[order], scores[order]

    def top_of_all(self, docs: np.ndarray, scores: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The same for many documents in ascending order, without holding other threads up."""
        met = np.ones(len(docs), dtype=np.uint8)
        best = Best(self.snapshot, 1, depth, NO_COMPLETION, ties=self.snapshot.docid_rank[docs])
        best.add(0, np.ascontiguousarray(scores)[:, np.newaxis], met)
        return best.ranked(0)

    # -- threads -------------------------------------------------------------------------------------------------
    def _spans(self) -> list[tuple[int, int]]:
        edges = np.linspace(0, self.snapshot.n_docs, self.threads + 1).astype(int).tolist()
        return list(pairwise(edges))

    def _each(self, work: Callable[[T], U], items: Sequence[T], threads: int | None = None) -> list[U]:
        threads = self.threads if threads is None else threads
        if threads <= 1 or len(items) < 2:
            return [work(item) for item in items]
        parts = _batches(items, max(1, len(items) // (4 * threads)))  # an item alone is not worth a hand-over
        with ThreadPoolExecutor(threads) as pool, _quick_hand_over():
            return [done for part in pool.map(lambda part: [work(item) for item in part], parts) for done in part]


@contextmanager
def _quick_hand_over() -> Iterator[None]:
    """The loops that take long release the interpreter; between them, hand it over sooner than every 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _by_weighting(plans: list[Plan]) -> list[list[Plan]]:
    groups: dict[Weighting, list[Plan]] = {}
    for plan in plans:
        groups.setdefault(plan.weighting, []).append(plan)
    return list(groups.values())


def pruned(plan: Plan, n: int) -> tuple[Plan, float]:
    """A plan cut to its ``n`` words of largest absolute weight, and the share of the weights given up."""
    if n < 1:
        raise ParameterError(f"prune must keep at least 1 word; got {n}")
    model = plan.model
    if n >= len(model):
        return plan, 0.0
    size = np.abs(model.weights)
    kept = strongest(model.terms, size, n)
    total = float(size.sum())
    lost = 1.0 - float(size[kept].sum()) / total if total else 0.0
    smaller = TermModel(model.terms[kept], model.weights[kept], model.background)
    return Plan(smaller, plan.weighting, plan.with_constant), lost


def _dense(terms: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    vector = np.zeros(size)
    vector[terms] = values
    return vector


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))
