"""The driver's side of ranking over shards: the models, unchanged, between two passes (three with a time prior).

For each batch of topics

    1  first pass on every shard        the best documents of each, the best N of all here (see merging.py)
    2  rows of the feedback documents   only those, from the shards that have them
    3  the model is estimated here      in the words of the whole collection, with statistics of the whole
    4  second pass on every shard       the same, with the estimated model

With a time prior step 4 is two passes: the evidence (best scores, their times, first and last time) must be known of
all shards before any score can be changed. The second of them is left out where the prior says nothing.

On the driver lie, for a batch of T topics: what the shards send, hits and a little more for each topic (12 bytes and
the docid each; hits · shards where documents are spread unevenly), the rows of T · fb_docs feedback documents (8 bytes
a word), the vocabulary with df and cf (memory-mapped), and for each thread a vector over the vocabulary. So many topics
are asked for at once that the first of these takes no more than ``RESULTS_IN_MEMORY``, and the statistics of topics
that have their own (as-of, drifting background) no more than ``STATISTICS_IN_MEMORY``.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.integrations.spark import packed, requests
from sdretrieval.integrations.spark.merging import Merged, Shares, merged
from sdretrieval.integrations.spark.requests import Hits, SentBackground, SentPlan, SentStatistics, Surveyed
from sdretrieval.integrations.spark.shards import Collection, OnDisk
from sdretrieval.integrations.spark.totals import Along, Increments, merged_timeline, past_statistics, plus, summed
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.engine import Result, pruned
from sdretrieval.ranking.feedback import Feedback, Rows
from sdretrieval.ranking.query import Query
from sdretrieval.records import Ranking
from sdretrieval.statistics import Statistics
from sdretrieval.temporal.background import BINS, DOCUMENT_BINS, Drifting, DriftingBackground
from sdretrieval.temporal.local_likelihood import LocalLikelihood
from sdretrieval.temporal.prior import Ratio
from sdretrieval.temporal.prior_loops import time_span
from sdretrieval.temporal.ranking import TimeAware, _known_then, _Timed, best_places, evidence_depth, verdict
from sdretrieval.times import UNDATED

STATISTICS_IN_MEMORY = 1 << 28  # bytes, of the statistics of a batch whose topics each have their own
RESULTS_IN_MEMORY = 1 << 28  # bytes, of what all shards send for a batch
HIT_BYTES = 40  # a document's number, score and docid
_SHARD_BITS = 40  # a document's number on the driver: shard and local number


@dataclass(eq=False)
class ShardedResult(Result):
    """One query's ranking over all shards, and how the model came to it. ``docs`` are not filled: see ``ranking``."""

    ranking: Ranking = field(default_factory=lambda: Ranking([], []))
    names: dict[int, str] = field(default_factory=dict)  # docids of the feedback documents, by their numbers


@dataclass(frozen=True, eq=False)
class Judged:
    """Docids known to be relevant, or not."""

    relevant: Sequence[str] = ()
    nonrelevant: Sequence[str] = ()


@dataclass(eq=False)
class _Topic:
    """A query on its way through the passes."""

    result: ShardedResult
    statistics: Statistics
    before: tuple[int, bool] | None = None
    candidates: np.ndarray | None = None  # numbers, in the order of the run
    docids: Sequence[str] = ()
    times: np.ndarray | None = None
    relevant: np.ndarray | None = None  # numbers
    nonrelevant: np.ndarray | None = None
    feedback: np.ndarray | None = None
    feedback_scores: np.ndarray | None = None


class ShardedEngine:
    """Ranks queries over all shards of a collection; ``runner`` answers requests (see runners.py)."""

    def __init__(self, collection: Collection, runner: Any, *, threads: int = 1) -> None:
        self.collection, self.runner, self.threads = collection, runner, max(1, threads)
        self.statistics = collection.totals.statistics
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="estimate")
        self._lock, self._first = threading.Lock(), threading.Lock()
        self._backgrounds: dict[Drifting, ShardedBackground] = {}
        self._shares = Shares(collection.n_shards)

    def rank(
        self,
        ranker: Ranker,
        queries: Sequence[Query],
        *,
        hits: int = 1000,
        candidates: Mapping[str, Sequence[str]] | None = None,
        judged: Mapping[str, Judged] | None = None,
        prune: int | None = None,
        missing: str = "error",
    ) -> list[ShardedResult]:
        """Results of one batch, in the order of the queries.

        ``candidates``: rank only these docids (in the order of a given run, whose first ones are the feedback);
        ``missing="drop"`` leaves out those that no shard has.
        """
        session = _Session(self, ranker)
        if candidates is not None:
            candidates = {query.qid: candidates[query.qid] for query in queries}
        judged = {query.qid: judged[query.qid] for query in queries if query.qid in judged} if judged else {}
        places = _Places(self.runner, candidates, judged)
        if missing != "drop":
            places.check(self.collection)
        topics = [
            _prepared(query, statistics, before, places, session.model)
            for query, statistics, before in session.views(queries)
        ]
        with self._first:  # one batch a step ahead: its models are estimated while workers make the next one's
            self._first_pass(session.model, topics)
        rows = _FetchedRows(self.runner, topics)
        session.times.update(places.times, rows.times)
        list(self._pool.map(lambda topic: self._estimate(session.model, topic, rows, prune), topics))
        if candidates is not None:
            self._given(session, topics, hits)
        elif session.adjusts:
            self._adjusted(session, topics, hits)
        else:
            sent = [self._sent(topic, topic.result.plan) for topic in topics]
            for topic, found in zip(topics, self._best(sent, [hits] * len(sent)), strict=True):
                topic.result.ranking = found.ranking
        return [topic.result for topic in topics]

    def rehearse(self, ranker: Ranker, query: Query) -> None:
        """Estimate a model from a made-up document: loads the compiled loops for it, while the workers start."""
        model = ranker.ranker if isinstance(ranker, TimeAware) else ranker
        if model.uses_feedback and not query.is_empty:
            one = np.ones(1, dtype=np.int32)
            rows = Rows(np.array([0, 1]), query.terms[:1].astype(np.int32), one, np.ones(1))
            with contextlib.suppress(Exception):  # whatever is wrong will be said of the real ones
                model.expand(query, Feedback(np.zeros(1, dtype=np.int64), np.zeros(1), rows), self.statistics)

    def batch_size(self, ranker: Ranker, wanted: int, hits: int = 1000) -> int:
        """How many topics to rank at once: fewer where shards are many, or each topic has statistics of its own."""
        of_one = HIT_BYTES * self._shares.of(hits) * self.collection.n_shards
        size = min(wanted, RESULTS_IN_MEMORY // of_one)
        if _per_query(ranker):
            size = min(size, STATISTICS_IN_MEMORY // (8 * 5 * max(len(self.collection.totals.vocabulary), 1)))
        return int(max(1, size))

    # -- first pass ----------------------------------------------------------------------------------------------
    def _first_pass(self, model: Ranker, topics: list[_Topic]) -> None:
        learning = [t for t in topics if model.uses_feedback and not t.result.query.is_empty]
        searching = [t for t in learning if t.relevant is None and t.candidates is None]
        sent = [self._sent(t, t.result.plan) for t in searching]
        depths = [model.feedback_depth + _size(t.nonrelevant) for t in searching]
        for topic, found in zip(searching, self._best(sent, depths), strict=True):
            numbers = (found.shards << _SHARD_BITS) | found.docs
            topic.result.names.update(zip(numbers.tolist(), found.docids, strict=True))
            self._take(topic, model, numbers, found.scores)
        given = [t for t in learning if t.relevant is not None or t.candidates is not None]
        for topic in given:
            if topic.relevant is not None:
                topic.feedback = topic.relevant
            else:
                assert topic.candidates is not None
                topic.feedback = topic.candidates[: model.feedback_depth + _size(topic.nonrelevant)]
                topic.result.names.update(zip(topic.feedback.tolist(), topic.docids, strict=False))
        plans = [self._sent(t, t.result.plan) for t in given]
        for topic, scores in zip(given, self._scores(plans, [t.feedback for t in given], None), strict=True):
            topic.feedback_scores = scores
            if topic.relevant is None:
                assert topic.feedback is not None
                self._take(topic, model, topic.feedback, scores)

    def _take(self, topic: _Topic, model: Ranker, numbers: np.ndarray, scores: np.ndarray) -> None:
        """The first documents that are not judged otherwise."""
        refused = np.zeros(0, dtype=np.int64) if topic.nonrelevant is None else topic.nonrelevant
        keep = np.flatnonzero(~np.isin(numbers, refused))[: model.feedback_depth]
        topic.feedback, topic.feedback_scores = numbers[keep], scores[keep]

    # -- the model -----------------------------------------------------------------------------------------------
    def _estimate(self, model: Ranker, topic: _Topic, rows: _FetchedRows, prune: int | None) -> None:
        result = topic.result
        if topic.feedback is not None and len(topic.feedback):
            assert topic.feedback_scores is not None
            nonrelevant = None if topic.nonrelevant is None else rows.of(topic.nonrelevant)
            is_judged = topic.relevant is not None
            result.feedback = Feedback(
                topic.feedback, topic.feedback_scores, rows.of(topic.feedback), is_judged, nonrelevant
            )
            result.expansion = model.expand(result.query, result.feedback, topic.statistics)
            result.plan = result.expansion.plan
        if prune is not None:
            result.plan, result.notes["pruned"] = pruned(result.plan, prune)

    # -- second pass ---------------------------------------------------------------------------------------------
    def _given(self, session: _Session, topics: list[_Topic], hits: int) -> None:
        """Scores of the candidates; there are few enough of them to be changed here."""
        sent = [self._sent(t, t.result.plan, session.background) for t in topics]
        found = self._scores(sent, [t.candidates for t in topics], session.sent_background)
        for topic, scores in zip(topics, found, strict=True):
            if session.has_prior and len(scores):
                assert topic.times is not None
                everything = np.arange(len(scores))
                ties = np.argsort(np.argsort(np.array([docid.encode() for docid in topic.docids], dtype=object)))
                places = best_places(scores, evidence_depth(session.settings), ties)
                low, high = time_span(topic.times, everything)
                ratio, factor = verdict(
                    session.settings, topic.result, scores[places], topic.times[places], low, high, session.times
                )
                scores = ratio.added(scores, topic.times, everything, factor)
            topic.result.ranking = Ranking(topic.docids, scores, hits)

    def _adjusted(self, session: _Session, topics: list[_Topic], hits: int) -> None:
        sent = [self._sent(t, t.result.plan, session.background) for t in topics]
        factors: list[tuple[Ratio, float]] = [(Ratio(), 0.0)] * len(topics)
        ranked, short = set(), set()  # by the survey already; and those that need more than the shares it had

        def survey(some: Sequence[int], depth: int, share: int) -> None:
            wanted = ([sent[i] for i in some], depth, share, session.sent_background)
            for i, parts in zip(some, self._of_plans(requests.survey, wanted), strict=True):
                factors[i] = ratio, factor = _verdict(session, topics[i], parts, depth)
                if factor == 0.0 or (ratio.table is None and ratio.exact is None):
                    found = merged([(n, part.ranked) for n, part in parts], hits, share)
                    if found is None:
                        short.add(i)
                    else:
                        topics[i].result.ranking = found.ranking
                        ranked.add(i)

        if session.has_prior:
            depth, share = evidence_depth(session.settings), self._shares.of(hits)
            for some in self._pieces(range(len(topics)), [depth + share] * len(topics)):
                survey(some, depth, share)
        left = [i for i in range(len(topics)) if i not in ranked]

        def ask(some: Sequence[int], depths: Sequence[int]) -> list[list[tuple[int, Hits]]]:
            numbers = [left[k] for k in some]
            wanted = ([sent[i] for i in numbers], [factors[i] for i in numbers], depths, session.sent_background)
            return self._of_plans(requests.adjusted, wanted)

        found = self._of_all([hits] * len(left), ask, {k for k, i in enumerate(left) if i in short})
        for i, best in zip(left, found, strict=True):
            topics[i].result.ranking = best.ranking

    # -- requests ------------------------------------------------------------------------------------------------
    def _best(self, sent: list[SentPlan], depths: list[int]) -> list[Merged]:
        """The best documents of each plan, to a depth of its own."""
        return self._of_all(
            depths, lambda some, asked: self._of_plans(requests.best, ([sent[i] for i in some], asked))
        )

    def _of_all(
        self,
        depths: Sequence[int],
        ask: Callable[[Sequence[int], Sequence[int]], list[list[tuple[int, Hits]]]],
        short: AbstractSet[int] = frozenset(),
    ) -> list[Merged]:
        """The best documents of all shards: a share from each, and where that may not be all, everything.

        ``ask(numbers, shares)`` has the shards' answers for some of the lists; of those that are known to be ``short``
        everything is asked for at once.
        """
        found: dict[int, Merged | None] = {}

        def fill(numbers: Sequence[int], asked: Sequence[int]) -> None:
            for some in self._pieces(numbers, asked):
                answers = ask(some, [asked[i] for i in some])
                for i in some:
                    found[i] = merged(answers.pop(0), depths[i], asked[i])

        shares = {depth: self._shares.of(depth) for depth in set(depths)}  # once: another batch may make them larger
        fill(range(len(depths)), [d if i in short else shares[d] for i, d in enumerate(depths)])
        again = [i for i in range(len(depths)) if found[i] is None]
        self._shares.learn(len(depths), len(again) + len(short))
        fill(again, depths)
        return [found[i] for i in range(len(depths))]  # type: ignore[misc]

    def _pieces(self, numbers: Sequence[int], depths: Sequence[int]) -> Iterator[Sequence[int]]:
        """So many at a time that what all shards send of them fits in RESULTS_IN_MEMORY: one at least."""
        start, held = 0, 0
        for k, i in enumerate(numbers):
            size = HIT_BYTES * depths[i] * self.collection.n_shards
            if k > start and held + size > RESULTS_IN_MEMORY:
                yield numbers[start:k]
                start, held = k, 0
            held += size
        if start < len(numbers):
            yield numbers[start:]

    def _of_plans(self, request: Callable, shared: tuple) -> list[list[tuple[int, Any]]]:
        """Answers by plan, each with the shard's number."""
        if not shared[0]:
            return []
        answers = self.runner.ask(request, shared)
        return [[(number, answer[i]) for number, answer in answers] for i in range(len(shared[0]))]

    def _scores(
        self, sent: list[SentPlan], wanted: Sequence[np.ndarray | None], background: SentBackground | None
    ) -> list[np.ndarray]:
        """Scores of given documents (numbers), plan by plan."""
        by_shard: dict[int, list[tuple[int, np.ndarray]]] = {}
        places: dict[tuple[int, int], np.ndarray] = {}
        for i, numbers in enumerate(wanted):
            assert numbers is not None
            shards, docs = numbers >> _SHARD_BITS, numbers & ((1 << _SHARD_BITS) - 1)
            for shard in np.unique(shards).tolist():
                here = np.flatnonzero(shards == shard)
                places[i, shard] = here
                by_shard.setdefault(shard, []).append((i, docs[here]))
        scores = [np.zeros(_size(numbers)) for numbers in wanted]
        for shard, answers in self.runner.ask(requests.score, (sent, background), by_shard) if by_shard else ():
            for i, values in answers:
                scores[i][places[i, shard]] = values
        return scores

    def _sent(
        self, topic: _Topic, plan: Plan, background: ShardedBackground | None = None
    ) -> SentPlan:
        model, statistics = plan.model, topic.statistics
        own = None
        if statistics is not self.statistics:
            whole_p = statistics.p if model.background else None
            t = model.terms
            own = SentStatistics(
                statistics.n_docs, statistics.n_tokens, statistics.df[t], statistics.cf[t], statistics.p[t], whole_p
            )
        by_bin = None
        if background is not None and background.settings.at == "document" and plan.weighting.is_language_model:
            by_bin = background.constants(plan, statistics)
        return SentPlan(
            terms=model.terms, weights=model.weights, background=model.background, mass=model.mass,
            constant=plan.constant(statistics), with_constant=plan.with_constant, weighting=plan.weighting,
            statistics=own, before=topic.before, by_bin=by_bin,
        )  # fmt: skip

    # -- kept sums -----------------------------------------------------------------------------------------------
    def past(self, times: Sequence[int], inclusive: bool) -> dict[int, Statistics]:
        """Statistics of the documents before each of these times, summed over shards once and kept."""
        distinct = sorted(set(times))
        kept = self._kept_past(distinct, inclusive)
        found = _load_increments(kept) if kept is not None else None
        if found is None:
            parts = [answer for _, answer in self.runner.ask(requests.increments, (distinct, inclusive))]
            found = summed(parts, len(self.collection.totals.vocabulary))
            if kept is not None:
                _save_increments(kept, found)
        return dict(zip(distinct, past_statistics(found, self.collection.totals.vocabulary), strict=True))

    def _kept_past(self, times: list[int], inclusive: bool) -> Path | None:
        if not isinstance(self.collection, OnDisk):
            return None
        key = hashlib.sha256(f"{inclusive} {times}".encode()).hexdigest()[:32]
        return self.collection.totals_folder / f"as-of-{key}.npz"

    def background(self, settings: Drifting) -> ShardedBackground:
        with self._lock:
            if settings not in self._backgrounds:
                self._backgrounds[settings] = ShardedBackground(self, settings)
            return self._backgrounds[settings]


def _size(numbers: np.ndarray | None) -> int:
    return 0 if numbers is None else len(numbers)


def _verdict(session: _Session, topic: _Topic, parts: list[tuple[int, Surveyed]], depth: int) -> tuple[Ratio, float]:
    """ρ and its factor from what the shards found: the best of all, as one index would order them."""
    scores = np.concatenate([part.best.scores for _, part in parts])
    if len(scores) == 0:
        return Ratio(), 0.0
    times = np.concatenate([part.best.times for _, part in parts])
    docids = packed.joined([part.best.docids for _, part in parts])
    encoded = [docids.encoded(i) for i in range(len(docids))]
    order = sorted(range(len(scores)), key=lambda i: (scores[i], encoded[i]), reverse=True)[:depth]
    low, high = min(part.low for _, part in parts), max(part.high for _, part in parts)
    return verdict(session.settings, topic.result, scores[order], times[order], low, high, session.times)


# -- documents named by their docids, and rows -------------------------------------------------------------------


class _Places:
    """Where the candidates and judged documents of a batch are: one request for all of them."""

    def __init__(
        self, runner: Any, candidates: Mapping[str, Sequence[str]] | None, judged: Mapping[str, Judged]
    ) -> None:
        self.candidates, self.judged = candidates, judged
        lists = [*(candidates or {}).values(), *(d for j in judged.values() for d in (j.relevant, j.nonrelevant))]
        wanted = sorted({docid for docids in lists for docid in docids})
        numbers = np.full(len(wanted), -1, dtype=np.int64)
        stamps = np.full(len(wanted), UNDATED, dtype=np.int64)
        if wanted:
            for shard, (here, docs, times) in runner.ask(requests.locate, packed.pack(wanted)):
                numbers[here] = (shard << _SHARD_BITS) | docs
                stamps[here] = times
        known = zip(wanted, numbers.tolist(), stamps.tolist(), strict=True)
        self.found = {docid: (number, time) for docid, number, time in known if number >= 0}
        self.times = dict(self.found.values())

    def check(self, collection: Collection) -> None:
        """Every candidate must be somewhere."""
        for qid, docids in (self.candidates or {}).items():
            absent = [docid for docid in docids if docid not in self.found]
            if absent:
                raise InputError(
                    f"topic {qid}: docid {absent[0]!r} is in no shard of {collection.name!r} "
                    f"({collection.n_docs} documents; {len(absent)} of the topic's {len(docids)} are not)",
                    remedy="Re-index, or pass --missing drop.",
                )

    def numbers(
        self, docids: Sequence[str], before: tuple[int, bool] | None
    ) -> tuple[np.ndarray, list[str], np.ndarray]:
        """Those there are, and were then: numbers, docids, times."""
        kept = [(docid, *self.found[docid]) for docid in docids if docid in self.found]
        if before is not None:
            limit = before[0] + before[1]  # times are whole: at most t is less than t + 1
            kept = [(docid, number, time) for docid, number, time in kept if time != UNDATED and time < limit]
        numbers = np.array([number for _, number, _ in kept], dtype=np.int64)
        return numbers, [docid for docid, _, _ in kept], np.array([time for *_, time in kept], dtype=np.int64)


class _FetchedRows:
    """The rows of all feedback documents of a batch, each fetched once."""

    def __init__(self, runner: Any, topics: list[_Topic]) -> None:
        wanted = [n for t in topics for n in (t.feedback, t.nonrelevant) if n is not None and len(n)]
        unique = np.unique(np.concatenate(wanted)) if wanted else np.zeros(0, dtype=np.int64)
        shards, docs = unique >> _SHARD_BITS, unique & ((1 << _SHARD_BITS) - 1)
        own = {n: docs[shards == n] for n in np.unique(shards).tolist()}
        self.rows: dict[int, tuple[np.ndarray, np.ndarray, float]] = {}
        self.times: dict[int, int] = {}
        for shard, (rows, times) in runner.ask(requests.rows, None, own) if own else ():
            for i, (doc, time) in enumerate(zip(own[shard].tolist(), times.tolist(), strict=True)):
                span = slice(rows.ptr[i], rows.ptr[i + 1])
                number = (shard << _SHARD_BITS) | doc
                self.rows[number] = rows.terms[span], rows.counts[span], rows.lengths[i]
                self.times[number] = time

    def of(self, numbers: np.ndarray) -> Rows:
        parts = [self.rows[number] for number in numbers.tolist()]
        ptr = np.zeros(len(parts) + 1, dtype=np.int64)
        np.cumsum([len(terms) for terms, _, _ in parts], out=ptr[1:])
        if not parts:
            empty = np.zeros(0, dtype=np.int32)
            return Rows(ptr, empty, empty, np.zeros(0))
        terms, counts = (np.concatenate([part[k] for part in parts]) for k in range(2))
        return Rows(ptr, terms, counts, np.array([length for _, _, length in parts]))


def _prepared(
    query: Query, statistics: Statistics, before: tuple[int, bool] | None, places: _Places, model: Ranker
) -> _Topic:
    """A topic with its first plan, and its candidates and judgments as numbers."""
    if before is not None:
        query = _known_then(query, statistics)
    nothing = np.zeros(0, dtype=np.int64)
    topic = _Topic(ShardedResult(query, nothing, np.zeros(0), model.first(query, statistics)), statistics, before)
    if places.candidates is not None:
        given = places.candidates[query.qid]
        topic.candidates, topic.docids, topic.times = places.numbers(given, before)
        topic.result.notes["dropped"] = sum(docid not in places.found for docid in given)
    if query.qid in places.judged:
        judged = places.judged[query.qid]
        # By docid, as one index takes them.
        (relevant, docids, _), (nonrelevant, *_) = (
            places.numbers(sorted(set(docids)), before) for docids in (judged.relevant, judged.nonrelevant)
        )
        topic.result.names.update(zip(relevant.tolist(), docids, strict=True))
        topic.relevant = relevant if len(relevant) else None
        topic.nonrelevant = nonrelevant if len(nonrelevant) else None
    return topic


# -- time --------------------------------------------------------------------------------------------------------


class _Times:
    """Times of the documents that the driver has heard of; indexed as the times of a snapshot are."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def update(self, *known: Mapping[int, int]) -> None:
        for part in known:
            self._known.update(part)

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        return np.array([self._known[number] for number in numbers.tolist()], dtype=np.int64)


def _per_query(ranker: Ranker) -> bool:
    if not isinstance(ranker, TimeAware):
        return False
    return ranker.as_of or (ranker.background is not None and ranker.background.at == "query")


class _Session:
    """What a model that is aware of time needs for one batch; for any other model, nothing."""

    def __init__(self, engine: ShardedEngine, ranker: Ranker) -> None:
        self.engine, self.times, self.model = engine, _Times(), ranker
        self.background: ShardedBackground | None = None
        self.is_timed = isinstance(ranker, TimeAware)
        if isinstance(ranker, TimeAware):
            self.settings = ranker
            self.model = ranker.ranker
            if ranker.feedback is not None:
                self.model = _Timed(ranker=ranker.ranker, time=ranker.feedback, times=self.times)  # type: ignore[arg-type]
            if ranker.background is not None:
                self.background = engine.background(ranker.background)

    @property
    def has_prior(self) -> bool:
        return self.is_timed and self.settings.prior is not None

    @property
    def adjusts(self) -> bool:
        """Whether scores are changed after the model's own."""
        return self.has_prior or self.sent_background is not None

    @cached_property
    def sent_background(self) -> SentBackground | None:
        at_documents = self.background is not None and self.background.settings.at == "document"
        return self.background.sent if self.background is not None and at_documents else None

    def views(self, queries: Sequence[Query]) -> Iterator[tuple[Query, Statistics, tuple[int, bool] | None]]:
        """Each query with its statistics and, for as-of, its limit."""
        whole = self.engine.statistics
        past: dict[int, Statistics] = {}
        as_of = self.is_timed and self.settings.as_of
        if as_of:
            self._check_times(queries)
            wanted = [query.time for query in queries if query.time is not None]
            past = self.engine.past(wanted, self.settings.inclusive)
        for query in queries:
            statistics, before = whole, None
            if as_of:
                assert query.time is not None
                statistics, before = past[query.time], (query.time, self.settings.inclusive)
            if self.background is not None and self.background.settings.at == "query":
                statistics = self.background.statistics_at(query.time, statistics)
            yield query, statistics, before

    def _check_times(self, queries: Sequence[Query]) -> None:
        if not self.engine.collection.is_dated:
            raise InputError(
                "as-of retrieval needs dated documents; the collection has none",
                remedy="Index again with the field that holds the date (--date-field), or leave out --as-of.",
            )
        timeless = [query.qid for query in queries if query.time is None]
        if timeless:
            raise InputError(
                f"as-of retrieval needs the time of every topic; {timeless[0]!r} has none",
                remedy="Give the times with --topic-times FILE (qid, tab, ISO time).",
            )


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
    def _moments(self):
        return self.runner.reduce(requests.moments, BINS, plus)

    @cached_property
    def resolution(self) -> float | None:
        return self._moments.resolution(BINS)

    @cached_property
    def local(self) -> LocalLikelihood:
        counts: Along = self.runner.reduce(requests.along, self.resolution, plus)
        return LocalLikelihood(
            merged_timeline(counts, self.resolution), None, self.bandwidth, kernel=self.settings.kernel,
            online=self.settings.at == "query",
        )  # fmt: skip

    @cached_property
    def _document_bins(self) -> tuple[np.ndarray, np.ndarray]:
        distinct = self.runner.reduce(requests.document_bins, self._document_resolution, np.union1d)
        return np.zeros(0, dtype=np.int64), distinct

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
        return np.array(
            [self.constant(number, plan, statistics) for number in [*range(len(self._document_bins[1])), -1]]
        )


# -- kept as-of statistics ---------------------------------------------------------------------------------------

_KIND = "as-of statistics"


def _save_increments(path: Path, increments: Increments) -> None:
    from dataclasses import fields

    from sdretrieval.errors import SdretrievalError
    from sdretrieval.saved import save_arrays

    try:
        save_arrays(path, _KIND, {}, {f.name: getattr(increments, f.name) for f in fields(increments)})
    except SdretrievalError:  # a folder that may only be read: then they are summed each time
        return


def _load_increments(path: Path) -> Increments | None:
    from sdretrieval.saved import load_arrays

    if not path.is_file():
        return None
    try:
        return Increments(**load_arrays(path, _KIND)[1])
    except (InputError, TypeError):  # damaged: summed again
        return None


__all__ = ["Judged", "ShardedEngine", "ShardedResult"]
