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
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval import kernels
from sdretrieval.errors import ParameterError
from sdretrieval.ranking.base import Expansion, Plan, Ranker
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel, strongest
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
BLOCK = 8192  # documents whose scores stay in the processor's cache


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
            yield from ranker.rank_with(
                self, queries, hits=hits, candidates=candidates, judged=judged, prune=prune
            )
            return
        judged = judged or {}
        size = max(1, min(BATCH, SCORES_IN_MEMORY // max(self.snapshot.n_docs, 1)))
        for batch in _batches(queries, size):
            prepared = self._each(
                lambda query: self._prepare(
                    ranker, query, None if candidates is None else candidates[query.qid], judged.get(query.qid), prune
                ),
                batch,
            )
            yield from self._finish(prepared, hits, candidates, adjust)

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
        return self.top_of_all(*self.score_all(plan), depth)

    def _finish(self, results: list[Result], hits: int, candidates, adjust) -> Iterator[Result]:
        dense = [] if candidates is not None else [r for r in results if self._is_dense(r.plan)]
        together = self._score_together([r.plan for r in dense])

        def complete(result: Result) -> Result:
            if candidates is not None:
                docs = candidates[result.query.qid]
                scores = self.score_docs(result.plan, docs)
            else:
                scored = together.get(id(result.plan))
                docs, scores = scored if scored is not None else self.score_all(result.plan)
            if adjust is not None:
                scores = adjust(result, docs, scores)
            top = self.top if candidates is not None else self.top_of_all
            result.docs, result.scores = top(docs, scores, hits)
            return result

        yield from self._each(complete, results)

    # -- scoring -------------------------------------------------------------------------------------------------
    def score_all(self, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
        """Documents that have at least one of the plan's words, and their scores."""
        s = self.snapshot
        model, weighting, scores = plan.model, plan.weighting, np.zeros(s.n_docs)
        A = weighting.term_factors(self.statistics, model.terms)
        B, group = self._doc_factors(weighting), self._length_groups[1]
        kernels.score_by_terms(
            s.term_ptr, s.term_docs, s.term_counts, model.terms, model.weights, A, B, group, weighting.kind, scores
        )
        met = scores
        if weighting.kind == FLOORED or (model.weights < 0).any():  # only then may a document that was met score 0
            met = np.zeros(s.n_docs, dtype=np.uint8)
            kernels.mark_documents(s.term_ptr, s.term_docs, model.terms, met)
        docs = self._met(met)
        return docs, self._complete(plan, docs, scores[docs])

    def score_docs(self, plan: Plan, docs: np.ndarray) -> np.ndarray:
        """Scores of given documents."""
        s, model, weighting = self.snapshot, plan.model, plan.weighting
        weights = model.dense(self.statistics.p) if model.background else _dense(model.terms, model.weights, s.n_terms)
        terms = np.flatnonzero(weights)
        A = _dense(terms, weighting.term_factors(self.statistics, terms), s.n_terms)
        B = self._doc_factors(weighting)[self._length_groups[1][docs]]
        scores = np.zeros(len(docs))
        kernels.score_candidates(
            s.doc_ptr, s.doc_terms, s.doc_counts, docs, weights, A, B, weighting.kind, scores
        )
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

    def _score_together(self, plans: list[Plan]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Several plans in one walk over the postings, per weighting."""
        scored = {}
        groups: dict[Weighting, list[Plan]] = {}
        for plan in plans:
            groups.setdefault(plan.weighting, []).append(plan)
        for weighting, group in groups.items():
            scores = self._walk_together(weighting, [plan.model for plan in group])
            for column, plan in enumerate(group):
                of_plan = np.ascontiguousarray(scores[:, column])
                docs = self._met(of_plan)
                scored[id(plan)] = docs, self._complete(plan, docs, of_plan[docs])
        return scored

    def _walk_together(self, weighting: Weighting, models: list[TermModel]) -> np.ndarray:
        """Σ_w s_w φ for every document (rows) and model (columns)."""
        s = self.snapshot
        columns = np.repeat(np.arange(len(models)), [len(model) for model in models])
        rows = np.concatenate([model.terms for model in models])
        values = np.concatenate([model.weights for model in models])
        weights = csr_matrix((values, (rows, columns)), shape=(s.n_terms, len(models)))
        terms = np.flatnonzero(np.diff(weights.indptr))
        weights = weights[terms]
        A, B = weighting.term_factors(self.statistics, terms), self._doc_factors(weighting)
        group = self._length_groups[1]
        scores = np.zeros((s.n_docs, len(models)))

        def walk(span: tuple[int, int]) -> None:
            kernels.score_in_blocks(
                s.term_ptr, s.term_docs, s.term_counts, terms, weights.indptr, weights.indices, weights.data, A, B,
                group, weighting.kind, span[0], span[1], BLOCK, scores,
            )  # fmt: skip

        self._each(walk, self._spans())
        return scores

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
        ranks = kernels.best_ranks(docs, scores, self.snapshot.docid_rank, depth)
        if len(ranks) < min(depth, len(docs)):  # a score that is not a number: let it be told
            return self.top(docs, scores, depth)
        found = self.snapshot.docids.order[ranks].astype(np.int64)
        return found, scores[np.searchsorted(docs, found)]

    # -- threads -------------------------------------------------------------------------------------------------
    def _spans(self) -> list[tuple[int, int]]:
        edges = np.linspace(0, self.snapshot.n_docs, self.threads + 1).astype(int).tolist()
        return list(pairwise(edges))

    def _each(self, work: Callable[[T], U], items: Sequence[T]) -> list[U]:
        if self.threads == 1 or len(items) < 2:
            return [work(item) for item in items]
        # The loops that take long release the interpreter; between them, hand it over sooner than every 5 ms.
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, SWITCH_SECONDS))
        try:
            with ThreadPoolExecutor(self.threads) as pool:
                return list(pool.map(work, items))
        finally:
            sys.setswitchinterval(before)


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
