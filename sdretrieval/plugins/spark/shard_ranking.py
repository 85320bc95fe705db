"""The driver's side of ranking over shards: the models, unchanged, between two passes.

For each batch of topics

    1  first pass on every shard        the best documents of each, merged on the workers (see requests.py)
    2  rows of the feedback documents   only those, from the shards that have them
    3  the model is estimated here      in the words of the whole collection, with statistics of the whole
    4  second pass on every shard       the same, with the estimated model

A time prior orders the first documents anew, here on the driver. Wrappers have the hooks that they have on one index
(ranking/wrapper.py), given what all shards together know.

What lies on the driver meanwhile, docs/SPARK.md tells (Limits); the two largest parts have bounds here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from sdretrieval.collection.records import Ranking, rank_order
from sdretrieval.core import sorted_strings
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.index.statistics import Statistics
from sdretrieval.plugins.spark import requests
from sdretrieval.plugins.spark.requests import Hits, SentBackground, SentPlan, SentStatistics, in_shard, numbered, split
from sdretrieval.plugins.spark.shards import Collection
from sdretrieval.plugins.spark.totals import Along, Increments, Moments
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.engine import NOT_JUDGED, NOTHING, Judgments, Ranked, Result, emphasised, pruned
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.models.sequential_dependence import SequentialDependence
from sdretrieval.ranking.notes import NoPositionsNote, PruneNote
from sdretrieval.ranking.pairs import REACH
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.time.drifting_background import BINS, DOCUMENT_BINS, Drifting, DriftingBackground
from sdretrieval.ranking.time.wrappers import (
    AsOf,
    BackgroundHooks,
    FeedbackHooks,
    LocalBackground,
    TimedFeedback,
    TimePrior,
    check_times,
)
from sdretrieval.ranking.wrapper import Hooks, View, Wrapper, followed, innermost, wrapper_of, wrappers

STATISTICS_IN_MEMORY = 1 << 28  # bytes, of the statistics of a batch whose topics each have their own
RESULTS_IN_MEMORY = 1 << 28  # bytes, of what shards send for a batch
HIT_BYTES = 40  # a document's number, score, time and docid


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardOptions:
    """What a call of :meth:`ShardedEngine.rank` asks for besides model and queries.

    ``candidates``: rank only these docids, by query id, in the order of a given run, whose first ones are the feedback.
    """

    hits: int = 1000  # for each query
    candidates: Mapping[str, Sequence[str]] | None = None
    judged: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # grades by query id and docid
    prune: int | None = None  # keep only so many words of the final plan
    missing: str = "error"  # or "drop": leave out candidates that no shard has


class Heard:
    """Docids and times of the documents that the driver has heard of, by their numbers."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._docids: dict[int, str] = {}
        self._times: dict[int, int] = {}

    def add(self, numbers: np.ndarray, docids: Iterable[str], times: np.ndarray) -> None:
        for number, docid, time in zip(numbers.tolist(), docids, times.tolist(), strict=True):
            self.numbers[docid], self._docids[number], self._times[number] = number, docid, time

    def find(self, docids: Iterable[str], before: tuple[int, bool] | None) -> np.ndarray:
        """Numbers of those there are, and were before a time (or at it)."""
        found = np.array([self.numbers[docid] for docid in docids if docid in self.numbers], dtype=np.int64)
        if before is None:
            return found
        times = self[found]
        return found[(times != UNDATED) & (times < before[0] + before[1])]  # whole: at most t is less than t + 1

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        """Times, as an array of all documents' times would have them."""
        return np.array([self._times[number] for number in numbers.tolist()], dtype=np.int64)

    def take(self, numbers: np.ndarray) -> list[str]:
        """Docids, as :meth:`PackedStrings.take` has them."""
        return [self._docids[number] for number in numbers.tolist()]


@dataclass(eq=False)
class ShardedResult(Result):
    """One query's ranking over all shards, and how the model came to it. ``docs`` are not filled: see ``ranking``."""

    ranking: Ranking = field(default_factory=lambda: Ranking([], []))
    heard: Heard = field(default_factory=Heard)
    dropped: int = 0  # candidates that no shard has


@dataclass(eq=False)
class _Topic:
    """A query on its way through the passes. Documents are numbers."""

    result: ShardedResult
    statistics: Statistics
    before: tuple[int, bool] | None
    candidates: np.ndarray | None
    judged: Judgments
    feedback: tuple[np.ndarray, np.ndarray] = NOTHING  # with their scores

    @property
    def query(self) -> Query:
        return self.result.query

    @property
    def is_judged(self) -> bool:
        return len(self.judged.relevant) > 0


class ShardedEngine:
    """Ranks queries over all shards of a collection; ``runner`` answers requests (see runners.py)."""

    def __init__(self, collection: Collection, runner: Any, *, threads: int = 1) -> None:
        self.collection, self.runner = collection, runner
        self.statistics = collection.totals.statistics
        self._pool = ThreadPoolExecutor(max(1, threads), thread_name_prefix="estimate")
        self._backgrounds: dict[Drifting, ShardedBackground] = {}

    def rank(
        self, ranker: Ranker, queries: Sequence[Query], options: ShardOptions | None = None
    ) -> list[ShardedResult]:
        """Results of one batch, in the order of the queries."""
        options = options or ShardOptions()
        session = _Session(self, ranker, queries)
        self._locate(session.heard, queries, options)
        topics = [session.topic(query, options) for query in queries]
        self._first_pass(session, topics)
        rows = self._rows(topics)
        list(self._pool.map(lambda topic: _estimate(session, topic, rows, options.prune), topics))
        for topic in topics:
            if topic.result.plan.pairs is not None and not self.collection.has_positions:
                topic.result.plan = replace(topic.result.plan, pairs=None)
                topic.result.notes.append(NoPositionsNote())
        sent = [self._sent(topic, session.background) for topic in topics]
        if options.candidates is not None:
            rankings = self._candidates_ranked(session, topics, sent, options.hits)
        else:
            rankings = self._ranked(session, topics, sent, options.hits)
        for topic, ranking in zip(topics, rankings, strict=True):
            topic.result.ranking = ranking
        return [topic.result for topic in topics]

    def batch_size(self, ranker: Ranker, wanted: int, hits: int = 1000) -> int:
        """How many topics to rank at once: fewer where shards are many, or each topic has statistics of its own."""
        prior = wrapper_of(ranker, TimePrior)
        hits = max(hits, REACH if prior is None else prior.reach)
        size = min(wanted, RESULTS_IN_MEMORY // (HIT_BYTES * hits * math.isqrt(self.collection.n_shards)))
        background = wrapper_of(ranker, LocalBackground)
        if wrapper_of(ranker, AsOf) or (background is not None and background.drifting.at == "query"):
            size = min(size, STATISTICS_IN_MEMORY // (8 * 5 * max(len(self.collection.vocabulary), 1)))
        return max(1, size)

    def _locate(self, heard: Heard, queries: Sequence[Query], options: ShardOptions) -> None:
        """Where candidates and judged documents are: one request for all of them."""
        qids = [query.qid for query in queries]
        lists = [options.judged[qid] for qid in qids if qid in options.judged]
        candidates = {} if options.candidates is None else {qid: options.candidates[qid] for qid in qids}
        wanted = sorted({docid for docids in (*lists, *candidates.values()) for docid in docids})
        if wanted:
            found = self.runner.reduce(requests.locate, sorted_strings.pack(wanted))
            here = np.flatnonzero(found.numbers >= 0)
            heard.add(found.numbers[here], (wanted[i] for i in here.tolist()), found.times[here])
        for qid, docids in candidates.items():
            absent = [docid for docid in docids if docid not in heard.numbers]
            if absent and options.missing != "drop":
                raise InputError(
                    f"topic {qid}: docid {absent[0]!r} is in no shard of {self.collection.name!r} "
                    f"({self.collection.n_docs} documents; {len(absent)} of the topic's {len(docids)} are not)",
                    remedy="Re-index, or pass --missing drop.",
                )

    # -- first pass ----------------------------------------------------------------------------------------------
    def _first_pass(self, session: _Session, topics: list[_Topic]) -> None:
        """Feedback: judged documents where there are any; else the first of the candidates or of all."""
        model = session.model
        learning = [topic for topic in topics if model.uses_feedback and not topic.query.is_empty]
        if model.learns_beside_judged and any(topic.is_judged for topic in learning):
            raise ParameterError(
                f"{model.name}: unjudged documents beside judged ones are for one index, not for shards",
                remedy="Pass --set unjudged_weight=0.",
            )
        given, searching = [], []
        for topic in learning:
            depth = model.feedback_depth + len(topic.judged.nonrelevant)
            if topic.is_judged:
                given.append((topic, topic.judged.relevant))
            elif topic.candidates is not None:
                given.append((topic, topic.candidates[:depth]))
            else:
                searching.append((topic, depth))
        found = self._best([self._sent(topic) for topic, _ in searching], [depth for _, depth in searching])
        for (topic, _), hits in zip(searching, found, strict=True):
            session.heard.add(hits.numbers, hits.docids, hits.times)
            topic.feedback = hits.numbers, hits.scores
        scores = self._scores([self._sent(topic) for topic, _ in given], [numbers for _, numbers in given], None)
        for (topic, numbers), values in zip(given, scores, strict=True):
            topic.feedback = numbers, values
        for topic in learning:
            if not topic.is_judged:
                numbers, values = topic.feedback
                keep = np.flatnonzero(~np.isin(numbers, topic.judged.nonrelevant))[: model.feedback_depth]
                topic.feedback = numbers[keep], values[keep]

    def _rows(self, topics: Sequence[_Topic]) -> _FetchedRows:
        wanted = [numbers for topic in topics for numbers in (topic.feedback[0], topic.judged.nonrelevant)]
        unique = np.unique(np.concatenate(wanted)) if wanted else NOTHING[0]
        own = {shard: in_shard(unique[places]) for shard, places in split(unique).items()}
        return _FetchedRows((numbered(n, own[n]), rows) for n, rows in self.runner.ask(requests.rows, None, own))

    # -- second pass ---------------------------------------------------------------------------------------------
    def _candidates_ranked(
        self, session: _Session, topics: list[_Topic], sent: list[SentPlan], hits: int
    ) -> list[Ranking]:
        """There are few enough candidates for their scores to be changed here."""
        wanted = [topic.candidates for topic in topics if topic.candidates is not None]
        scored = list(zip(wanted, self._scores(sent, wanted, session.sent_background), strict=True))
        scored = self._with_pairs(session, sent, scored)
        return [session.ranked(topic, *ranked, hits) for topic, ranked in zip(topics, scored, strict=True)]

    def _ranked(self, session: _Session, topics: list[_Topic], sent: list[SentPlan], hits: int) -> list[Ranking]:
        has_pairs = any(one.plan.pairs is not None for one in sent)
        depth = max(hits, session.prior.reach if session.prior else 0, REACH if has_pairs else 0)
        if session.sent_background is None:
            found = self._best(sent, [depth] * len(sent))
        else:
            found = self.runner.reduce(requests.best_drifting, (sent, depth, session.sent_background))
        if session.prior is None and not has_pairs:
            return [best.ranking for best in found]
        for best in found:
            session.heard.add(best.numbers, best.docids, best.times)
        scored = self._with_pairs(session, sent, [(best.numbers, best.scores) for best in found])
        return [session.ranked(topic, *ranked, hits) for topic, ranked in zip(topics, scored, strict=True)]

    def _with_pairs(self, session: _Session, sent: list[SentPlan], found: list[Ranked]) -> list[Ranked]:
        """What pairs add to the first documents of each plan that has some; the others behind them."""
        having = [i for i, one in enumerate(sent) if one.plan.pairs is not None]
        for i in having:
            numbers, scores = found[i]
            order = rank_order(session.heard.take(numbers), scores)
            found[i] = numbers[order], scores[order]
        first = [found[i][0][:REACH] for i in having]
        added = self._asked(requests.pairs, [sent[i] for i in having], first)
        for i, numbers, values in zip(having, first, added, strict=True):
            scores = found[i][1]
            found[i] = followed((numbers, scores[:REACH] + values), (found[i][0][REACH:], scores[REACH:]))
        return found

    # -- requests ------------------------------------------------------------------------------------------------
    def _best(self, sent: list[SentPlan], depths: list[int]) -> list[Hits]:
        """The best documents of each plan, to a depth of its own."""
        return self.runner.reduce(requests.best, (sent, depths)) if sent else []

    def _scores(
        self, sent: list[SentPlan], wanted: Sequence[np.ndarray], background: SentBackground | None
    ) -> list[np.ndarray]:
        """Scores of given documents, plan by plan."""
        return self._asked(requests.score, (sent, background), wanted)

    def _asked(self, request: Any, given: Any, wanted: Sequence[np.ndarray]) -> list[np.ndarray]:
        """A value for each of the documents wanted of each plan, from the shards that have them."""
        places = [split(numbers) for numbers in wanted]
        own: dict[int, list[tuple[int, np.ndarray]]] = {}
        for i, numbers in enumerate(wanted):
            for shard, here in places[i].items():
                own.setdefault(shard, []).append((i, in_shard(numbers[here])))
        scores = [np.zeros(len(numbers)) for numbers in wanted]
        for shard, answers in self.runner.ask(request, given, own) if own else ():
            for i, values in answers:
                scores[i][places[i][shard]] = values
        return scores

    def _sent(self, topic: _Topic, background: ShardedBackground | None = None) -> SentPlan:
        plan, statistics, own, by_bin = topic.result.plan, topic.statistics, None, None
        model = plan.model
        if statistics is not self.statistics:
            df, cf, p = (vector[model.terms] for vector in (statistics.df, statistics.cf, statistics.p))
            whole_p = statistics.p if model.background else None
            own = SentStatistics(statistics.n_docs, statistics.n_tokens, df, cf, p, whole_p)
        if background is not None and background.settings.at == "document" and plan.weighting.is_language_model:
            by_bin = background.constants(plan, statistics)
        return SentPlan(plan, plan.constant(statistics), own, topic.before, by_bin)

    def background(self, settings: Drifting) -> ShardedBackground:
        return self._backgrounds.setdefault(settings, ShardedBackground(self, settings))


# -- the model ---------------------------------------------------------------------------------------------------


class _FetchedRows:
    """The rows of all feedback documents of a batch, each fetched once."""

    def __init__(self, found: Iterable[tuple[np.ndarray, Rows]]) -> None:
        self.rows: dict[int, tuple[np.ndarray, np.ndarray, float]] = {}
        for numbers, rows in found:
            for i, number in enumerate(numbers.tolist()):
                span = slice(rows.ptr[i], rows.ptr[i + 1])
                self.rows[number] = rows.terms[span], rows.counts[span], rows.lengths[i]

    def of(self, numbers: np.ndarray) -> Rows:
        parts = [self.rows[number] for number in numbers.tolist()]
        ptr = np.cumsum([0, *(len(terms) for terms, _, _ in parts)])
        nothing = np.zeros(0, dtype=np.int32)
        terms, counts = (np.concatenate([nothing, *(part[k] for part in parts)]) for k in range(2))
        return Rows(ptr, terms, counts, np.array([length for _, _, length in parts]))


def _estimate(session: _Session, topic: _Topic, rows: _FetchedRows, prune: int | None) -> None:
    result, (docs, scores) = topic.result, topic.feedback
    if len(docs):
        refused = topic.judged.nonrelevant
        nonrelevant = rows.of(refused) if len(refused) else None
        result.feedback = Feedback(docs, scores, rows.of(docs), topic.is_judged, nonrelevant)
        feedback = emphasised(result.feedback, result.query, session.hooks)
        result.expansion = session.model.expand(result.query, feedback, topic.statistics)
        result.plan = result.expansion.plan
    if prune is not None:
        result.plan, lost = pruned(result.plan, prune)
        result.notes.append(PruneNote(lost))


# -- wrappers ----------------------------------------------------------------------------------------------------


class _Session:
    """The wrappers of a model for one batch: hooks as on one index, and what shards need to know of them."""

    def __init__(self, engine: ShardedEngine, ranker: Ranker, queries: Sequence[Query]) -> None:
        self.engine, self.model, self.heard = engine, innermost(ranker), Heard()
        if isinstance(self.model, SequentialDependence):
            raise ParameterError(
                "sdm is not offered over shards: its windows are looked for in all documents",
                remedy="Rank one index with it; blend looks for them in the first documents.",
            )
        self.prior, self.as_of = wrapper_of(ranker, TimePrior), wrapper_of(ranker, AsOf)
        self.background: ShardedBackground | None = None
        self.hooks = [self._hooks(wrapper) for wrapper in wrappers(ranker)]
        for hook in self.hooks:
            hook.start(queries)

    def _hooks(self, wrapper: Wrapper) -> Hooks:
        if isinstance(wrapper, TimePrior):
            return Hooks()  # its evidence takes a pass over the shards
        if isinstance(wrapper, AsOf):
            return _PastHooks(self.engine, wrapper.inclusive)
        if isinstance(wrapper, TimedFeedback):
            return FeedbackHooks(wrapper, self.heard)
        if isinstance(wrapper, LocalBackground):
            self.background = self.engine.background(wrapper.drifting)
            return BackgroundHooks(self.background)
        raise ParameterError(f"{wrapper.own_label} is not offered over shards", remedy="Rank one index with it.")

    @cached_property
    def sent_background(self) -> SentBackground | None:
        """For scores that are smoothed at the documents' own times."""
        is_wanted = self.background is not None and self.background.settings.at == "document"
        return self.background.sent if is_wanted else None  # type: ignore[union-attr]

    def ranked(self, topic: _Topic, numbers: np.ndarray, scores: np.ndarray, hits: int) -> Ranking:
        """Documents in rank order; with a prior the first ones ordered anew, and the others behind them."""
        if self.prior is not None and len(numbers):
            order, n = rank_order(self.heard.take(numbers), scores), self.prior.reach
            numbers, scores = numbers[order], scores[order]
            first = numbers[:n], self.prior.added(topic.result, scores[:n], self.heard[numbers[:n]], self.heard)
            numbers, scores = followed(first, (numbers[n:], scores[n:]))
        return Ranking(self.heard.take(numbers), scores, hits)

    def topic(self, query: Query, options: ShardOptions) -> _Topic:
        """A query with its statistics and first plan, and its candidates and judgments as numbers."""
        view, before, candidates, judged, dropped = View(self.engine.statistics), None, None, NOT_JUDGED, 0
        for hook in self.hooks:
            view = hook.view(query, view)
        if self.as_of is not None:
            assert query.time is not None
            before, query = (query.time, self.as_of.inclusive), query.known_to(view.statistics)
        if options.candidates is not None:
            given = options.candidates[query.qid]
            candidates = self.heard.find(given, before)
            dropped = sum(docid not in self.heard.numbers for docid in given)
        if query.qid in options.judged:
            grades = sorted(options.judged[query.qid].items())  # by docid, as one index takes them
            known = ((d for d, g in grades if g > 0), (d for d, g in grades if g <= 0))
            judged = Judgments(*(self.heard.find(docids, before) for docids in known))
        plan = self.model.first(query, view.statistics)
        result = ShardedResult(query, *NOTHING, plan, heard=self.heard, dropped=dropped)
        return _Topic(result, view.statistics, before, candidates, judged)


class _PastHooks(Hooks):
    """Statistics of the documents before each query's time, summed over shards."""

    def __init__(self, engine: ShardedEngine, inclusive: bool) -> None:
        self.engine, self.inclusive = engine, inclusive

    def start(self, queries: Sequence[Query]) -> None:
        check_times(queries, self.engine.collection.is_dated)
        times = sorted({query.time for query in queries if query.time is not None})
        increments = self.engine.runner.reduce(Increments.of, (times, self.inclusive))
        self.past = dict(zip(times, increments.statistics(self.engine.collection.vocabulary), strict=True))

    def view(self, query: Query, view: View) -> View:
        return View(self.past[query.time])  # type: ignore[index]


class ShardedBackground(DriftingBackground):
    """θ̂_t of all shards: counts along time are summed over them once, at most 256 rows over the vocabulary."""

    def __init__(self, engine: ShardedEngine, settings: Drifting) -> None:
        if settings.bandwidth is None:
            raise ParameterError(
                "a drifting background over shards needs a bandwidth: cross-validation deals single documents into "
                "folds, and no machine has them all",
                remedy="Pass --bandwidth, as in --bandwidth 30d; `sdretrieval drift` on a sample finds one.",
            )
        standing_in = SimpleNamespace(p_collection=engine.statistics.p)
        super().__init__(standing_in, settings)  # type: ignore[arg-type]
        self.runner, self.statistics = engine.runner, engine.statistics

    @cached_property
    def _moments(self) -> Moments:
        return self.runner.reduce(Moments.of, BINS)

    @cached_property
    def resolution(self) -> float | None:
        return self._moments.resolution(BINS)

    @cached_property
    def local(self) -> LocalLikelihood:
        counts: Along = self.runner.reduce(Along.of, self.resolution)
        line, online = counts.timeline(self.resolution), self.settings.at == "query"
        return LocalLikelihood(line, None, self.bandwidth, kernel=self.settings.kernel, online=online)

    @cached_property
    def _document_bins(self) -> tuple[np.ndarray, np.ndarray]:
        return NOTHING[0], self._moments.bins(DOCUMENT_BINS)

    @property
    def _document_resolution(self) -> float | None:
        return self._moments.resolution(DOCUMENT_BINS)

    @cached_property
    def sent(self) -> SentBackground:
        """For the workers: at most 32 models over the vocabulary."""
        times = self._document_bins[1]
        by_bin = [self._statistics_of_bin(number, self.statistics) for number in range(len(times))]
        models = [None if local is self.statistics else local.p for local in by_bin]
        return SentBackground(self.settings, self._document_resolution, times, models)

    def constants(self, plan: Plan, statistics: Statistics) -> np.ndarray:
        """Σ_w a_w log p_w(t) for each bin, and for the undated."""
        bins = [*range(len(self._document_bins[1])), -1]
        return np.array([self.constant(number, plan, statistics) for number in bins])
