"""A random dated collection, whole and in shards, and every model and time setting to rank it with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pytest
from places import placed

from sdretrieval.collection.records import Ranking
from sdretrieval.core.times import UNDATED
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.plugins.spark.runners import plus
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine
from sdretrieval.plugins.spark.shards import Collection, Shard
from sdretrieval.plugins.spark.totals import Totals
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.time.drifting_background import Drifting
from sdretrieval.ranking.time.prior import Density, Recency
from sdretrieval.ranking.time.wrappers import FeedbackTime, time_aware

DAY = 86_400_000
N, V = 400, 300

# Every model, and the other ways it can go: what each test of exactness ranks with.
MODELS: dict[str, tuple[str, dict]] = {
    "bm25": ("bm25", {}),
    "ql": ("ql", {}),
    "ql jm": ("ql", {"smoothing": "jm"}),
    "tfidf": ("tfidf", {"fb_docs": 20}),
    "rm": ("rm", {}),
    "rm dirichlet": ("rm", {"smoothing": "dirichlet", "fb_docs": 10}),
    "rm3": ("rm3", {}),
    "rm3 lm": ("rm3", {"scoring": "lm", "first_stage": "ql"}),
    "rm3 anserini": ("rm3", {"mode": "anserini"}),
    "rm3 anserini ql": ("rm3", {"mode": "anserini", "first_stage": "ql"}),
    "sd": ("sd", {}),
    "sd dirichlet": ("sd", {"smoothing": "dirichlet"}),
    "sd bm25": ("sd", {"first_stage": "bm25"}),
    "sd to convergence": ("sd", {"iterations": 0, "posterior": "exact"}),
    "sd3": ("sd3", {}),
    "blend": ("blend", {}),
    "sd3 lm": ("sd3", {"scoring": "lm", "first_stage": "sd", "posterior": "exact", "prior": 0.3}),
    "lucene-bm25": ("lucene-bm25", {}),
    "lucene-qld": ("lucene-qld", {}),
    "lucene-qljm": ("lucene-qljm", {}),
}

TIMES: dict[str, dict] = {
    "recency": {"prior": Recency()},
    "recency, fixed": {"prior": Recency(bandwidth=5.0 * DAY), "weight": 0.7},
    "recency, sharp": {"prior": Recency("uniform", bandwidth=2.0 * DAY), "weight": 0.5, "time_docs": 10},
    "density": {"prior": Density(), "weight": 0.4},
    "density, auto": {"prior": Density(), "evidence": "rank"},
    "density, cv, posterior": {"prior": Density(bandwidth="cv"), "weight": 0.3, "evidence": "posterior"},
    "as of": {"as_of": True},
    "as of, inclusive, recency": {"as_of": True, "inclusive": True, "prior": Recency(), "weight": 0.5},
    "timed feedback": {"feedback": FeedbackTime("query")},
    "feedback at the mode": {"feedback": FeedbackTime("mode"), "prior": Density()},
    "local background": {"background": Drifting(bandwidth=20.0 * DAY)},
    "penalised background": {"background": Drifting("penalised", bandwidth=20.0 * DAY)},
    "local background as of": {"background": Drifting(bandwidth=20.0 * DAY), "as_of": True},
    "background at documents": {"background": Drifting(at="document", bandwidth=15.0 * DAY)},
    "background at documents, recency": {
        "background": Drifting("penalised", at="document", bandwidth=15.0 * DAY),
        "prior": Recency(),
        "weight": 0.5,
    },
}


def ranker(name: str, time: str | None = None) -> Ranker:
    model, settings = MODELS[name]
    made = make_ranker(model, settings)
    return made if time is None else time_aware(made, **TIMES[time])


class Sharding:
    """A collection with twins, empty and undated documents, and times of which many are the same."""

    def __init__(self, seed: int, *, n_docs: int = N, n_terms: int = V, distinct_times: int | None = None) -> None:
        rng = self.rng = np.random.default_rng(seed)
        lengths = rng.integers(1, 60, n_docs)
        share = 1.0 / np.arange(1, n_terms + 1)
        self.counts = np.vstack([rng.multinomial(length, share / share.sum()) for length in lengths])
        self.counts[n_docs // 2 : n_docs // 2 + 20] = self.counts[:20]  # twins: their scores tie
        self.counts[n_docs - 3 :] = 0
        self.words = [f"{'äbc'[i % 3]}{i * 7919 % n_terms}" for i in range(n_terms)]
        self.docids = [f"d{i:03d}" for i in rng.permutation(n_docs)]
        span = 100 * DAY
        self.times = rng.integers(0, span, n_docs)
        if distinct_times is not None:
            self.times = self.times * distinct_times // span * (span // distinct_times)
        self.times[rng.random(n_docs) < 0.1] = UNDATED
        self.whole = self.part(np.arange(n_docs))

    def part(self, rows: np.ndarray) -> Snapshot:
        docids = [self.docids[i] for i in rows]
        return placed(Snapshot.from_counts(self.counts[rows], self.words, docids, self.times[rows]))

    def shards(self, n: int) -> list[Snapshot]:
        """Documents spread at random; with many shards some have next to nothing."""
        share = self.rng.dirichlet(np.full(n, 0.7))
        where = self.rng.choice(n, len(self.docids), p=share)
        return [self.part(self.rng.permutation(np.flatnonzero(where == k))) for k in range(n)]

    def texts(self) -> list[list[str]]:
        """Common words, rare ones, repeats, unknown ones; one query of nothing known."""
        pick = lambda *numbers: [self.words[i] for i in numbers]  # noqa: E731
        return [pick(3, 40), pick(0, 90, 90), [*pick(250, 17, 5), "unheard-of"], ["unheard-of"], pick(120)]

    def queries(self, collection) -> list[Query]:
        return [
            Query.from_words(collection, words, qid=str(i), time=(30 + 20 * i) * DAY if i != 2 else 70 * DAY)
            for i, words in enumerate(self.texts())
        ]


class InMemory(Collection):
    """Snapshots as shards. Blanks part words: no Java."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self.snapshots, self.name, self.fingerprint = list(snapshots), "in memory", ""
        self.n_shards, self.analyzer = len(self.snapshots), self.snapshots[0].analyzer
        self.has_positions = all(snapshot.places is not None for snapshot in self.snapshots)

    def snapshot(self, number: int) -> Snapshot:
        return self.snapshots[number]

    @cached_property
    def totals(self) -> Totals:
        return Here(self).reduce(Totals.of, None)

    def analyze(self, text: str) -> list[str]:
        return text.split()


class Here:
    """Requests answered in this process, one shard after the other."""

    def __init__(self, collection: Collection) -> None:
        self.collection, self._shards = collection, {}

    def _shard(self, number: int) -> Shard:
        if number not in self._shards:
            self._shards[number] = Shard(self.collection, number)
        return self._shards[number]

    def ask(self, request: Callable, shared: Any, own: Mapping[int, Any]) -> list[tuple[int, Any]]:
        return [(n, request(self._shard(n), shared, mine)) for n, mine in own.items()]

    def reduce(self, request: Callable, shared: Any) -> Any:
        return reduce(plus, [request(self._shard(n), shared) for n in range(self.collection.n_shards)])


def engine_of(collection: Collection | Sequence[Snapshot], threads: int = 1) -> ShardedEngine:
    collection = collection if isinstance(collection, Collection) else InMemory(collection)
    return ShardedEngine(collection, Here(collection), threads=threads)


def one_index(snapshot: Snapshot, model: Ranker, queries: list[Query], **options) -> dict[str, Ranking]:
    """What the single machine's engine finds."""
    return {
        result.query.qid: Ranking(snapshot.docids.take(result.docs), result.scores)
        for result in Engine(snapshot).rank(model, queries, RankOptions(**options))
    }


def assert_same(found: dict[str, Ranking], wanted: dict[str, Ranking], note: object = "") -> None:
    """Same documents, same order, scores to 1e-9."""
    assert found.keys() == wanted.keys()
    for qid, ranking in wanted.items():
        assert found[qid].docids == ranking.docids, (note, qid)
        assert found[qid].scores == pytest.approx(ranking.scores, rel=0, abs=1e-9), (note, qid)
