"""Scores plans over a snapshot: whole collections or given candidates, one pass or two, any number of threads.

The postings are walked once for many queries (walk.py), so that the logarithm of each is paid once for all of them.
Whichever queries share a walk, and however many threads walk, a document's sum is of the same numbers in the same
order: results are reproducible to the last bit.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np

from sdretrieval.collection.records import rank_order
from sdretrieval.core.errors import ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking import loops
from sdretrieval.ranking.base import Expansion, Plan, Ranker
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.notes import Note, PruneNote
from sdretrieval.ranking.pruned import MOST_WORDS, NO_STEPS, Cells, Pruned, Steps
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.sieve import sifted
from sdretrieval.ranking.term_model import TermModel, strongest
from sdretrieval.ranking.walk import NO_COMPLETION, Best, Completion, Walk, is_wide, not_a_number, were_met
from sdretrieval.ranking.weighting import Weighting
from sdretrieval.ranking.wrapper import Hooks, Others, View, followed, innermost, wrappers

T = TypeVar("T")
U = TypeVar("U")
Ranked = tuple[np.ndarray, np.ndarray]  # documents and their scores
NOTHING: Ranked = np.zeros(0, dtype=np.int64), np.zeros(0)

BATCH = 64  # queries that share a walk
SCORES_IN_MEMORY = 1 << 25  # numbers held at once where all scores are wanted: 256 MB
KEPT = 1 << 22  # documents kept at once as the best of some plans: 128 MB a thread
VIEWS = 4  # of the collection held at a time, per thread: each has statistics over the vocabulary
BOUNDS_FROM = 1 << 15  # documents of a collection in which bounds save more than they cost
WIDE_FACTOR = 32  # times as many for wide plans, where each is walked by itself
SHARED_FACTOR = 8  # times as many for 8 plans or more of frequent words, which share most of a walk over all
FREQUENT = 3  # postings of a plan by documents
WORTH = 32  # postings of a plan by documents asked for: with fewer, nearly all that have a word are among the best
SWITCH_SECONDS = 0.0005


@dataclass(frozen=True, eq=False)
class Judgments:
    """Documents known to be relevant, or not, for one query: feedback that need not be guessed."""

    relevant: np.ndarray
    nonrelevant: np.ndarray

    def among(self, allowed: np.ndarray) -> Judgments:
        """Those of the documents marked in ``allowed``."""
        return Judgments(self.relevant[allowed[self.relevant]], self.nonrelevant[allowed[self.nonrelevant]])


NOT_JUDGED = Judgments(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class RankOptions:
    """What a call of :meth:`Engine.rank` asks for besides model and queries.

    hits         how many documents for each query
    candidates   rank only these documents, by query id, in the order of a given run, whose first ones are the feedback
    judged       known relevant and non-relevant documents by query id
    prune        keep only so many words of the final plan
    """

    hits: int = 1000
    candidates: Mapping[str, np.ndarray] | None = None
    judged: Mapping[str, Judgments] | None = None
    prune: int | None = None

    def among(self, allowed: np.ndarray, queries: Iterable[Query]) -> RankOptions:
        """The options of some queries where only the documents marked in ``allowed`` exist."""
        candidates, judged, qids = self.candidates, self.judged, [query.qid for query in queries]
        if candidates is not None:
            candidates = {qid: candidates[qid][allowed[candidates[qid]]] for qid in qids}
        if judged is not None:
            judged = {qid: judged[qid].among(allowed) for qid in qids if qid in judged}
        return replace(self, candidates=candidates, judged=judged)


@dataclass(eq=False)
class Result:
    """One query's documents (numbers of the snapshot) in rank order, and how the model came to them."""

    query: Query
    docs: np.ndarray
    scores: np.ndarray
    plan: Plan
    feedback: Feedback | None = None
    expansion: Expansion | None = None
    notes: list[Note] = field(default_factory=list)


class Engine:
    """Ranks queries over one snapshot. Cheap to make; holds only per-document vectors.

    Parameters
    ----------
    snapshot : Snapshot
        The collection.
    threads : int
        How many threads walk the postings; the results are the same.
    statistics : Statistics, optional
        Others than the collection's own.
    """

    def __init__(self, snapshot: Snapshot, *, threads: int = 1, statistics: Statistics | None = None) -> None:
        self.snapshot = snapshot
        self.statistics = statistics or snapshot.statistics
        self.threads = max(1, threads)
        # The lengths that occur, and which of them each document has.
        self._length_groups = snapshot.length_values.astype(np.float64), snapshot.length_group
        self.allowed: np.ndarray | None = None  # which documents may be ranked; None for all
        self._forget()

    def _forget(self) -> None:
        # Per weighting: the factors B_D of documents by length, and the static score of general English.
        self._doc_factors = lru_cache(maxsize=8)(self._compute_doc_factors)
        self._background = lru_cache(maxsize=8)(self._compute_background)
        self._background_steps = lru_cache(maxsize=8)(self._compute_background_steps)
        self._cells = lru_cache(maxsize=8)(self._compute_cells)

    def view(self, statistics: Statistics, allowed: np.ndarray | None = None) -> Engine:
        """The same snapshot with other statistics, and with only the documents marked in ``allowed``."""
        other = copy(self)
        other.statistics, other.allowed, other.threads = statistics, allowed, 1
        other._forget()
        return other

    # -- the two passes ------------------------------------------------------------------------------------------
    def rank(self, ranker: Ranker, queries: Sequence[Query], options: RankOptions | None = None) -> Iterator[Result]:
        """Results in the order of the queries."""
        options = options or RankOptions()
        hooks = self._hooks(ranker)
        for hook in hooks:
            hook.start(queries)
        rank = self._one_by_one if any(hook.per_query for hook in hooks) else self._on_one_view
        for hook in hooks:
            if sample := hook.rehearsal(queries):
                deque(rank(innermost(ranker), hooks, sample, options), maxlen=0)
                hook.rehearsed()
        yield from rank(innermost(ranker), hooks, queries, options)

    def _hooks(self, ranker: Ranker) -> list[Hooks]:
        """Of the wrappers from the outermost in, and of the model where it has some."""
        layers = [*wrappers(ranker), innermost(ranker)]
        return [hooks for layer in layers if (hooks := layer.hooks(self)) is not None]

    def _on_one_view(
        self, model: Ranker, hooks: Sequence[Hooks], queries: Sequence[Query], options: RankOptions
    ) -> Iterator[Result]:
        """All queries on the same documents, those that the wrappers leave."""
        seen = self._seen(hooks, queries[0]) if queries else None
        if seen is None or seen.allowed is None:
            return self._in_batches(model, hooks, queries, options)
        view = self.view(seen.statistics, seen.allowed)
        view.threads = self.threads
        return view._in_batches(model, hooks, queries, options.among(seen.allowed, queries))

    def _in_batches(
        self, model: Ranker, hooks: Sequence[Hooks], queries: Sequence[Query], options: RankOptions
    ) -> Iterator[Result]:
        size = BATCH
        if any(hook.adjusts and hook.reach is None for hook in hooks):  # all scores are held, in every thread
            size = min(size, SCORES_IN_MEMORY // max(3 * self.threads * self.snapshot.n_docs, 1))
        if self.threads > 1:  # several batches for each thread, unless each shall have much to share
            size = min(size, -(-len(queries) // (self.threads * (1 if model.is_wide else 4))))
        batches = list(_batches(queries, max(1, size)))
        engine = self if len(batches) < self.threads else self._of_one_thread()

        def work(batch: Sequence[Query]) -> list[Result]:
            return engine._finish(engine._prepare(model, hooks, batch, options), hooks, options)

        yield from self._in_turn(work, batches)

    def _one_by_one(
        self, model: Ranker, hooks: Sequence[Hooks], queries: Sequence[Query], options: RankOptions
    ) -> Iterator[Result]:
        """Each query on a view of its own; in the order of their times, so that the past only grows."""
        order = sorted(range(len(queries)), key=lambda i: (queries[i].time is not None, queries[i].time or 0))
        done: dict[int, Result] = {}
        following = 0
        for chunk in _batches(order, VIEWS * self.threads):
            views = [self._view(hooks, queries[i]) for i in chunk]

            def work(item: tuple[int, Engine]) -> Result:
                number, view = item
                query, wanted = queries[number], options
                if view.allowed is not None:
                    query, wanted = query.known_to(view.statistics), options.among(view.allowed, [query])
                return next(view._in_batches(model, hooks, [query], wanted))

            done.update(zip(chunk, self.each(work, list(zip(chunk, views, strict=True))), strict=True))
            while following in done:  # results in the order of the queries
                yield done.pop(following)
                following += 1

    def _seen(self, hooks: Sequence[Hooks], query: Query) -> View:
        view = View(self.statistics)
        for hook in hooks:
            view = hook.view(query, view)
        return view

    def _view(self, hooks: Sequence[Hooks], query: Query) -> Engine:
        view = self._seen(hooks, query)
        return self.view(view.statistics, view.allowed)

    def as_seen_by(self, ranker: Ranker, query: Query) -> Engine:
        """The statistics and documents that a model's wrappers leave for a query."""
        hooks = self._hooks(ranker)
        for hook in hooks:
            hook.start([query])
        return self._view(hooks, query) if hooks else self

    def _of_one_thread(self) -> Engine:
        """The same, sharing what is kept, for use in one of several threads."""
        other = copy(self)
        other.threads = 1
        return other

    def _in_turn(self, work: Callable[[T], list[Result]], batches: Sequence[T]) -> Iterator[Result]:
        """Results of batches in their order, a thread for each of a few at a time."""
        if self.threads == 1 or len(batches) < self.threads:
            for batch in batches:
                yield from work(batch)
            return
        with ThreadPoolExecutor(self.threads) as pool, _quick_hand_over():
            waiting: deque[Future[list[Result]]] = deque()
            try:
                for batch in batches:
                    waiting.append(pool.submit(work, batch))
                    if len(waiting) > self.threads:
                        yield from waiting.popleft().result()
                while waiting:
                    yield from waiting.popleft().result()
            finally:
                for future in waiting:  # where someone stops asking, or something went wrong
                    future.cancel()

    def _prepare(
        self, model: Ranker, hooks: Sequence[Hooks], queries: Sequence[Query], options: RankOptions
    ) -> list[Result]:
        """First pass, feedback, second plan; the results have no documents yet."""
        results = [Result(query, *NOTHING, model.first(query, self.statistics)) for query in queries]
        learning = [result for result in results if model.uses_feedback and not result.query.is_empty]
        for result, feedback in zip(learning, self._feedback(model, hooks, learning, options), strict=True):
            if len(feedback):
                result.feedback = feedback
                result.expansion = model.expand(
                    result.query, emphasised(feedback, result.query, hooks), self.statistics
                )
                result.plan = result.expansion.plan
        if options.prune is not None:
            for result in results:
                result.plan, lost = pruned(result.plan, options.prune)
                result.notes.append(PruneNote(lost))
        return results

    def _feedback(
        self, model: Ranker, hooks: Sequence[Hooks], results: Sequence[Result], options: RankOptions
    ) -> Iterator[Feedback]:
        """Judged relevant documents where there are any; else the first of the candidates or of the first pass.

        A model that learns beside judged documents gets both, the judged ones first.
        """
        candidates, depth = options.candidates, model.feedback_depth
        known = [(options.judged or {}).get(result.query.qid, NOT_JUDGED) for result in results]
        guessing = [model.learns_beside_judged or len(j.relevant) == 0 for j in known]
        searching = [r for r, guess in zip(results, guessing, strict=True) if candidates is None and guess]
        seen = max((len(j.nonrelevant) + len(j.relevant) for j, g in zip(known, guessing, strict=True) if g), default=0)
        reach = max([depth + seen, *(hook.first_reach for hook in hooks)])
        found = iter(self.first_documents(searching, reach))
        for result, j, guess in zip(results, known, guessing, strict=True):
            nonrelevant = Rows.of(self.snapshot, j.nonrelevant) if len(j.nonrelevant) else None
            (docs, scores), emphasis = NOTHING, None
            if guess:
                if candidates is None:
                    docs, scores = next(found)
                else:
                    docs = candidates[result.query.qid][:reach]
                    scores = self.score_docs(result.plan, docs)
                places, emphasis = self._places(hooks, result, docs, scores)
                if len(j.nonrelevant) or len(j.relevant):
                    places = places[~np.isin(docs[places], np.concatenate([j.nonrelevant, j.relevant]))]
                places = places[:depth]
                docs, scores, emphasis = docs[places], scores[places], None if emphasis is None else emphasis[places]
            unjudged = len(docs)
            if len(j.relevant):
                docs = np.concatenate([j.relevant, docs])
                scores = np.concatenate([self.score_docs(result.plan, j.relevant), scores])
                emphasis = None if emphasis is None else np.concatenate([np.ones(len(j.relevant)), emphasis])
            wanted = model.contrast(docs, self.snapshot, self.allowed)
            contrast = None if wanted is None else Rows.of(self.snapshot, wanted)
            rows, judged = Rows.of(self.snapshot, docs), len(j.relevant) > 0
            yield Feedback(docs, scores, rows, judged, nonrelevant, contrast, emphasis, unjudged)

    def _places(
        self, hooks: Sequence[Hooks], result: Result, docs: np.ndarray, scores: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The places of first documents in the order in which to learn from them, and their factors."""
        places, scores = np.arange(len(docs)), -np.sort(-scores)  # a run has an order of its own
        for hook in reversed(hooks):
            n = hook.first_reach
            if n and (given := hook.ordered(self, result, (docs[:n], scores[:n]))) is not None:
                factors = np.concatenate([given[1], np.ones(len(docs) - len(given[1]))])
                return np.concatenate([given[0], places[len(given[0]) :]]), factors
        return places, None

    def first_documents(self, results: Sequence[Result], depth: int) -> list[Ranked]:
        """The best documents of the first pass, and their scores."""
        return self.best([result.plan for result in results], depth)

    def _finish(self, results: list[Result], hooks: Sequence[Hooks], options: RankOptions) -> list[Result]:
        plans, candidates = [result.plan for result in results], options.candidates
        adjusting = [hook for hook in reversed(hooks) if hook.adjusts]  # the innermost first
        if candidates is None and not adjusting:
            for result, ranked in zip(results, self.best(plans, options.hits), strict=True):
                result.docs, result.scores = ranked
            return results
        few = all(hook.reach is not None for hook in adjusting)  # no scores but those of the first documents change
        depth = max([options.hits, *(hook.reach or 0 for hook in adjusting)])
        scored: Sequence[Ranked | None] = [None] * len(plans)
        if candidates is None:
            scored = self.best(plans, depth) if few else self.score_all(plans)

        def complete(item: tuple[Result, Ranked | None]) -> Result:
            result, found = item
            top: Callable[..., Ranked] | None = None if few else self.top_of_all
            others = self._others(result.plan) if few and found is not None else None
            if found is None:
                docs = candidates[result.query.qid]  # type: ignore[index]
                found, top = (docs, self.score_docs(result.plan, docs)), self.top
            docs, scores = self._adjusted(result, adjusting, found, top, max(depth, len(found[0])), others)
            result.docs, result.scores = docs[: options.hits], scores[: options.hits]
            return result

        return self.each(complete, list(zip(results, scored, strict=True)))

    def _adjusted(
        self,
        result: Result,
        hooks: Sequence[Hooks],
        found: Ranked,
        top: Callable[..., Ranked] | None,
        depth: int,
        others: Others | None,
    ) -> Ranked:
        """Documents in rank order by scores that the hooks have changed; ``top`` is None where they come in order."""
        docs, scores = found
        for hook in hooks:
            if hook.reach is not None and top is not None:
                (docs, scores), top = top(docs, scores, depth), None
            n = len(docs) if hook.reach is None else hook.reach
            changed = hook.adjusted(self, result, (docs[:n], scores[:n]), others)
            if others is not None:
                others = partial(self._brought, hook, result, others)
            if changed is not None:
                docs, scores = followed(changed, (docs[n:], scores[n:]))
                top = top or self.top_of_all
        return (docs, scores) if top is None else top(docs, scores, depth)

    def _brought(self, hook: Hooks, result: Result, others: Others, docs: np.ndarray) -> Ranked:
        return hook.brought(self, result, others(docs))

    def _others(self, plan: Plan) -> Others | None:
        """Scores documents from their rows, to the bits of exhaustive scoring; None for plans too wide for that."""
        if not 0 < len(plan.model) <= MOST_WORDS or plan.model.background:
            return None

        def score(docs: np.ndarray) -> Ranked:
            docs = docs if self.allowed is None else docs[self.allowed[docs]]
            scores = self._pruned([plan]).scored(docs)
            met = were_met(scores)
            return docs[met], scores[met]

        return score

    # -- scoring -------------------------------------------------------------------------------------------------
    def best(self, plans: Sequence[Plan], depth: int) -> list[Ranked]:
        """The best documents of each plan in rank order, and their scores: of those that have any of its words."""
        found: list[Ranked | None] = [None] * len(plans)
        for numbers in self._walked_together(plans, KEPT // max(depth, 1)):
            for number, ranked in zip(numbers, self._best_by_bounds([plans[i] for i in numbers], depth), strict=True):
                found[number] = ranked
        rest = iter(self.best_of_all([plan for plan, done in zip(plans, found, strict=True) if done is None], depth))
        return [next(rest) if done is None else done for done in found]

    def _best_by_bounds(self, plans: Sequence[Plan], depth: int) -> list[Ranked | None]:
        """The same for plans of one weighting, without scoring all documents; None where that cannot be, or is not
        worth it."""
        wide, weighting, n_docs = is_wide(plans[0].model), plans[0].weighting, self.snapshot.n_docs
        postings = np.array([self.snapshot.df[plan.model.terms].sum() for plan in plans])
        shared = not wide and len(plans) >= 8 and postings.mean() > FREQUENT * n_docs
        cells = self._cells(weighting) if n_docs >= BOUNDS_FROM * (SHARED_FACTOR if shared else 1) else None
        worth = [cells is not None and n >= min(WORTH * depth, n_docs) for n in postings.tolist()]
        bounded = [i for i, plan in enumerate(plans) if worth[i] and len(plan.model) <= MOST_WORDS]
        found: list[Ranked | None] = [None] * len(plans)
        if wide and bounded:
            searched = self._pruned([plans[i] for i in bounded])
            for number, ranked in zip(bounded, sifted(searched, depth, self._spans(), self.each), strict=True):
                found[number] = ranked
            bounded = [i for i in bounded if found[i] is None and n_docs >= BOUNDS_FROM * WIDE_FACTOR]
        if cells is None or not bounded:
            return found
        n_blocks = self.snapshot.compact.n_blocks
        edges = [part * n_blocks // self.threads for part in range(self.threads + 1)]
        spans = [span for span in pairwise(edges) if span[0] < span[1]]
        searched = self._pruned([plans[i] for i in bounded])
        for number, ranked in zip(bounded, searched.best(depth, cells, spans, self.each), strict=True):
            found[number] = ranked
        return found

    def _pruned(self, plans: Sequence[Plan]) -> Pruned:
        """Of plans of one weighting."""
        weighting, terms = plans[0].weighting, np.concatenate([plan.model.terms for plan in plans])
        A, B = weighting.term_factors(self.statistics, terms), self._doc_factors(weighting)
        completion = self._completion(plans)
        steps = self._background_steps(weighting) if len(completion.static) else NO_STEPS
        return Pruned(self.snapshot, plans, A, B, completion, steps, self.allowed)

    def best_of_all(self, plans: Sequence[Plan], depth: int) -> list[Ranked]:
        """The same by scoring every document that has any of the words."""
        found: list[Ranked] = [NOTHING] * len(plans)
        for numbers in self._walked_together(plans, KEPT // max(depth, 1)):
            group = [plans[i] for i in numbers]
            completion, walk = self._completion(group), self._walk(group)

            def best_of(span: tuple[int, int], completion=completion, walk=walk) -> Best:
                best = Best(self.snapshot, walk.n, depth, completion, span[1] - span[0], self.allowed)
                for left, width, scores in walk.blocks(*span):
                    best.add(left, width, scores)
                return best

            first, *others = self.each(best_of, self._spans())
            for row, number in enumerate(numbers):
                found[number] = first.ranked(row, others)
        return found

    def score_all(self, plans: Sequence[Plan]) -> list[Ranked]:
        """Documents that have at least one of a plan's words, ascending, and their scores."""
        found: list[Ranked] = [NOTHING] * len(plans)
        for numbers in self._walked_together(plans, SCORES_IN_MEMORY // max(self.snapshot.n_docs, 1)):
            group = [plans[i] for i in numbers]
            walk, scores = self._walk(group), np.empty((len(group), self.snapshot.n_docs))

            def fill(span: tuple[int, int], walk=walk, scores=scores) -> None:
                for _ in walk.blocks(*span, scores):
                    pass

            self.each(fill, self._spans())
            for row, number in enumerate(numbers):
                docs = np.empty(self.snapshot.n_docs, dtype=np.int64)
                docs = docs[: loops.touched(scores[row], docs)]
                if self.allowed is not None:
                    docs = docs[self.allowed[docs]]
                found[number] = docs, self._complete(plans[number], docs, scores[row][docs])
        return found

    def _walked_together(self, plans: Sequence[Plan], room: int) -> Iterator[Sequence[int]]:
        """Numbers of plans that share a walk: of one weighting, all narrow or all wide, not more than there is room."""
        groups: dict[tuple[Weighting, bool], list[int]] = {}
        for number, plan in enumerate(plans):
            if len(plan.model):  # without words no document is met
                groups.setdefault((plan.weighting, is_wide(plan.model)), []).append(number)
        for numbers in groups.values():
            yield from _batches(numbers, max(1, min(BATCH, room)))

    def score_docs(self, plan: Plan, docs: np.ndarray) -> np.ndarray:
        """Scores of given documents."""
        s, model, weighting = self.snapshot, plan.model, plan.weighting
        weights = model.dense(self.statistics.p) if model.background else _dense(model.terms, model.weights, s.n_terms)
        terms = np.flatnonzero(weights)
        A = _dense(terms, weighting.term_factors(self.statistics, terms), s.n_terms)
        B = self._doc_factors(weighting)[self._length_groups[1][docs]]
        scores = np.zeros(len(docs))
        loops.score_candidates(s.rows, docs, weights, A, B, weighting.kind, scores)
        return scores + self.share_part(plan, docs) + plan.constant(self.statistics)

    def _complete(self, plan: Plan, docs: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Add what needs no postings: general English's static score, the background's share, the constant."""
        if plan.model.background:
            scores = scores + plan.model.background * self._background(plan.weighting)[docs]
        return scores + self.share_part(plan, docs) + plan.constant(self.statistics)

    def share_part(self, plan: Plan, docs: np.ndarray) -> np.ndarray | float:
        """(Σ a_w) log(1 - λ_D); where it is the same for all documents it is part of the constant."""
        factor = plan.share_factor
        return factor * plan.weighting.log_background_share(self._lengths(docs)) if factor else 0.0

    def _lengths(self, docs: np.ndarray) -> np.ndarray:
        return self._length_groups[0][self._length_groups[1][docs]]

    def _completion(self, plans: Sequence[Plan]) -> Completion:
        """What plans of one weighting add to their sums: see _complete."""
        weighting, nothing = plans[0].weighting, np.zeros(0)
        factors = [plan.share_factor for plan in plans]
        return Completion(
            static=self._background(weighting) if any(plan.model.background for plan in plans) else nothing,
            g=np.array([plan.model.background for plan in plans]),
            share=weighting.log_background_share(self._length_groups[0]) if any(factors) else nothing,
            group=self._length_groups[1],
            mass=np.array(factors),
            constant=np.array([plan.constant(self.statistics) for plan in plans]),
        )

    def _walk(self, plans: list[Plan]) -> Walk:
        weighting = plans[0].weighting
        factors, group = self._doc_factors(weighting), self._length_groups[1]
        return Walk(self.snapshot, self.statistics, weighting, [plan.model for plan in plans], factors, group)

    def _compute_doc_factors(self, weighting: Weighting) -> np.ndarray:
        """B_D for each length that documents have; whose length is which is in ``_length_groups``."""
        return weighting.doc_factors(self.statistics, self._length_groups[0])

    def _compute_cells(self, weighting: Weighting) -> Cells | None:
        return Cells.of(self.snapshot.compact, weighting.kind, self._doc_factors(weighting))

    def _compute_background(self, weighting: Weighting) -> np.ndarray:
        s, p = self.snapshot, self.statistics.p
        terms = np.flatnonzero(p)
        A = _dense(terms, weighting.term_factors(self.statistics, terms), s.n_terms)
        B, scores = self._doc_factors(weighting)[self._length_groups[1]], np.zeros(s.n_docs)

        def walk(span):
            loops.background_scores(s.rows, p, A, B, weighting.kind, span[0], span[1], scores)

        self.each(walk, self._spans())
        return scores

    def _compute_background_steps(self, weighting: Weighting) -> Steps:
        return Steps.of(self._background(weighting))

    # -- order ---------------------------------------------------------------------------------------------------
    def top(self, docs: np.ndarray, scores: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best documents in rank order; ties as records.rank_order decides them."""
        order = rank_order(self.snapshot.docid_rank[docs], scores, depth)
        return docs[order], scores[order]

    def top_of_all(self, docs: np.ndarray, scores: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The same for many documents, without holding other threads up."""
        ties, scores = self.snapshot.docid_rank[docs], scores + 0.0  # a score of -0.0 is a score
        if len(docs) <= 2 * depth:  # as well ordered whole
            keys, are_numbers = loops.order_keys(scores, ties)
            if not are_numbers:
                raise not_a_number()
            order = np.argsort(keys)[::-1][:depth]
            return docs[order], scores[order]
        best = Best(self.snapshot, 1, depth, NO_COMPLETION, len(docs), ties=ties)
        best.add(0, len(docs), scores[np.newaxis])
        return best.ranked(0)

    # -- threads -------------------------------------------------------------------------------------------------
    def _spans(self) -> list[tuple[int, int]]:
        edges = np.linspace(0, self.snapshot.n_docs, self.threads + 1).astype(int).tolist()
        return list(pairwise(edges))

    def each(self, work: Callable[[T], U], items: Sequence[T], threads: int | None = None) -> list[U]:
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


def emphasised(feedback: Feedback, query: Query, hooks: Sequence[Hooks]) -> Feedback:
    """The feedback with the factors of all hooks, multiplied."""
    factors = [factor for hook in hooks if (factor := hook.emphasis(query, feedback.docs)) is not None]
    if not factors:
        return feedback
    own = [] if feedback.emphasis is None else [feedback.emphasis]
    return replace(feedback, emphasis=np.prod([*own, *factors], axis=0))


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
    pairs = None if plan.pairs is None else plan.pairs.among(smaller.terms)
    return replace(plan, model=smaller, pairs=pairs), lost


def _dense(terms: np.ndarray, values: np.ndarray, size: int) -> np.ndarray:
    vector = np.zeros(size)
    vector[terms] = values
    return vector


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[i : i + size] for i in range(0, len(items), size))
