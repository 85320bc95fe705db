"""Ranking over shards is ranking over one index: every model, every time setting, however documents are spread.

In one process and without Spark; test_spark.py runs the same on Spark. The single machine's engine is the judge.
"""

from __future__ import annotations

import numpy as np
import pytest
from sharding import DAY, MODELS, TIMES, Sharding, assert_same, one_index, ranker

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.integrations.spark.ranking import Judged, ShardedEngine
from sdretrieval.integrations.spark.runners import Here
from sdretrieval.integrations.spark.shards import InMemory
from sdretrieval.ranking.base import make_ranker
from sdretrieval.ranking.engine import Judgments
from sdretrieval.ranking.query import Query
from sdretrieval.snapshot import Snapshot
from sdretrieval.temporal.background import Drifting
from sdretrieval.temporal.ranking import TimeAware

SHARDS = (1, 3, 8)


def engine_of(snapshots: list[Snapshot], threads: int = 1) -> ShardedEngine:
    collection = InMemory(snapshots)
    return ShardedEngine(collection, Here(collection), threads=threads)


@pytest.fixture(scope="module", params=SHARDS)
def spread(request) -> tuple[Sharding, ShardedEngine]:
    sharding = Sharding(request.param)
    return sharding, engine_of(sharding.shards(request.param), threads=2)


def check(spread, model, hits: int = 100, judged=None, candidates=None, **options) -> None:
    sharding, engine = spread
    whole = sharding.whole
    numbers = lambda docids: whole.docids.find_many(docids)  # noqa: E731
    wanted = one_index(
        whole, model, sharding.queries(whole), hits=hits,
        judged=judged and {
            q: Judgments(numbers(sorted(j.relevant)), numbers(sorted(j.nonrelevant))) for q, j in judged.items()
        },
        candidates=candidates and {q: numbers(docids) for q, docids in candidates.items()}, **options,
    )  # fmt: skip
    results = engine.rank(
        model, sharding.queries(engine.collection), hits=hits, judged=judged, candidates=candidates, **options
    )
    assert any(len(ranking) for ranking in wanted.values())
    assert_same({r.query.qid: r.ranking for r in results}, wanted)


@pytest.mark.parametrize("name", MODELS)
def test_every_model(spread, name):
    check(spread, ranker(name))


@pytest.mark.parametrize("name", ["sd", "rm", "sd3"])
@pytest.mark.parametrize("hits", [1, 7, 1000])
def test_every_depth(spread, name, hits):
    check(spread, ranker(name), hits=hits)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("name", ["bm25", "ql", "sd", "sd3", "rm3 lm", "rm3 anserini"])
def test_every_time_setting(spread, name, time):
    check(spread, ranker(name, time))


@pytest.mark.parametrize("name", ["tfidf", "rm", "sd", "sd to convergence", "sd3"])
@pytest.mark.parametrize("time", [None, "density", "as of", "density, cv, posterior"])
def test_judged_documents(spread, name, time):
    sharding = spread[0]
    docids = sorted(sharding.docids)
    judged = {"0": Judged(docids[5:9], docids[100:104]), "1": Judged((), docids[:30]), "4": Judged(docids[50:51])}
    check(spread, ranker(name, time), judged=judged)


@pytest.mark.parametrize("name", ["bm25", "rm", "sd", "sd3", "lucene-qld"])
@pytest.mark.parametrize("time", [None, "recency", "as of, inclusive, recency", "background at documents, recency"])
def test_given_candidates(spread, name, time):
    sharding = spread[0]
    docids = np.random.default_rng(3).permutation(sharding.docids).tolist()
    candidates = {str(i): docids[40 * i : 40 * i + 60] for i in range(5)}
    check(spread, ranker(name, time), candidates=candidates)


@pytest.mark.parametrize("name", ["sd", "rm3"])
def test_pruned_plans(spread, name):
    check(spread, ranker(name), prune=12)


@pytest.mark.parametrize("seed", range(4))
def test_few_distinct_times(seed):
    """Bins of time are then the times themselves."""
    sharding = Sharding(seed, n_docs=150, distinct_times=20)
    both = sharding, engine_of(sharding.shards(4))
    for time in ("local background", "background at documents", "density", "recency"):
        check(both, ranker("ql", time))


@pytest.mark.parametrize("seed", range(12))
def test_small_collections_with_many_ties(seed):
    """A dozen words and the same documents over and over: most scores are shared by several documents."""
    sharding = Sharding(seed, n_docs=90, n_terms=12)
    sharding.counts = np.minimum(sharding.counts, 1)
    sharding.whole = sharding.part(np.arange(90))
    sharding.texts = lambda: [sharding.words[:2], sharding.words[3:4]]  # type: ignore[method-assign]
    both = sharding, engine_of(sharding.shards(5))
    for name in ("bm25", "sd", "rm3", "tfidf"):
        for time in (None, "recency", "density", "density, auto"):
            check(both, ranker(name, time), hits=20)


def test_undated_collections():
    sharding = Sharding(1)
    sharding.times[:] = np.iinfo(np.int64).min
    sharding.whole = sharding.part(np.arange(len(sharding.docids)))
    both = sharding, engine_of(sharding.shards(3))
    check(both, ranker("sd3", "recency"))
    with pytest.raises(InputError, match="needs dated documents"):
        both[1].rank(ranker("sd3", "as of"), sharding.queries(both[1].collection))


def test_a_topic_without_a_time():
    sharding = Sharding(1)
    engine = engine_of(sharding.shards(3))
    query = Query.from_words(engine.collection, sharding.words[:2], qid="timeless")
    with pytest.raises(InputError, match="'timeless' has none"):
        engine.rank(ranker("bm25", "as of"), [query])


def test_a_background_without_a_bandwidth_is_refused():
    """Cross-validation deals documents into folds by their numbers in one index."""
    sharding = Sharding(1)
    engine = engine_of(sharding.shards(2))
    model = TimeAware(ranker=make_ranker("ql"), background=Drifting())
    with pytest.raises(ParameterError, match="needs a bandwidth") as caught:
        engine.rank(model, sharding.queries(engine.collection))
    assert "--bandwidth 30d" in str(caught.value)


def test_statistics_of_each_topic_make_batches_smaller(monkeypatch):
    from sdretrieval.integrations.spark import ranking

    engine = engine_of(Sharding(1).shards(2))
    monkeypatch.setattr(ranking, "STATISTICS_IN_MEMORY", 3 * 40 * len(engine.collection.totals.vocabulary))
    assert engine.batch_size(ranker("sd3"), 100) == 100
    assert engine.batch_size(ranker("sd3", "as of"), 100) == 3
    assert engine.batch_size(ranker("sd3", "local background"), 100) == 3
    assert engine.batch_size(ranker("sd3", "background at documents"), 100) == 100


def test_many_shards_and_hits_make_batches_smaller():
    """What all shards send for a batch stays below 256 MB: 40 bytes a document, of which each sends its share."""
    engine = engine_of(Sharding(1).shards(2))
    assert engine.batch_size(ranker("sd3"), 128, hits=1000) == 128
    engine._shares.n_shards = engine.collection.n_shards = 2000
    share = engine._shares.of(1000)
    assert 5 < share <= 10
    assert engine.batch_size(ranker("sd3"), 10_000, hits=1000) == (1 << 28) // (40 * share * 2000) > 128
    assert engine.batch_size(ranker("sd3"), 128, hits=10**7) == 1


# -- what each shard is asked for ----------------------------------------------------------------------------------


def dealt(sharding: Sharding, where: np.ndarray) -> ShardedEngine:
    """Documents in the shards that ``where`` has for them."""
    return engine_of([sharding.part(np.flatnonzero(where == k)) for k in range(int(where.max()) + 1)])


def asked_of(engine: ShardedEngine) -> list[tuple[str, int, int]]:
    """What is asked from now on: the request, for how many topics, and the most that a shard sent for one of them."""
    asked, ask = [], engine.runner.ask

    def watched(request, shared, *own):
        answers = ask(request, shared, *own)
        if request.__name__ in ("best", "adjusted"):
            sizes = [len(hits.scores) for _, lists in answers for hits in lists]
            asked.append((request.__name__, len(shared[0]), max(sizes)))
        return answers

    engine.runner.ask = watched
    return asked


def test_shards_send_a_share_each():
    """400 documents in 16 shards, the best 64 of them: 4 of a shard on average, and it is asked for 19."""
    sharding = Sharding(11)
    spread = sharding, dealt(sharding, sharding.rng.permutation(400) % 16)
    asked = asked_of(spread[1])
    check(spread, ranker("bm25"), hits=64)
    assert asked == [("best", 5, 19)]
    assert spread[1]._shares.of(64) == 19


@pytest.mark.parametrize("name", ["bm25", "sd3"])
@pytest.mark.parametrize("time", [None, "recency", "density", "as of", "background at documents"])
def test_where_one_shard_has_the_best_topics_are_asked_again(name, time):
    """Documents in the order of their scores for a topic: the first shard has all of the best."""
    sharding, model = Sharding(12), ranker(name, time)
    found = one_index(sharding.whole, model, sharding.queries(sharding.whole)[:1], hits=400)["0"]
    rank = {docid: i for i, docid in enumerate(found.docids)}
    where = np.array([rank.get(docid, 399) * 16 // 400 for docid in sharding.docids])
    spread = sharding, dealt(sharding, where)
    asked = asked_of(spread[1])
    check(spread, model, hits=20)
    assert spread[1]._shares.factor > 1
    if name == "bm25":  # sd3 has learned it from its first pass
        assert asked[-1][2] == 20  # all, of the topics that need it, after a share; where that was not of a survey:
        assert time in ("recency", "density") or (asked[-2][2] < 20 and asked[-1][1] <= asked[-2][1])
    n = len(asked)
    check(spread, model, hits=20)
    assert all(size == 20 for *_, size in asked[n:])  # now in full at once


@pytest.mark.parametrize("time", [None, "recency", "as of"])
def test_shares_that_another_batch_has_just_made_larger(monkeypatch, time):
    """Batches run side by side: whatever is asked for is what the answers are judged by."""
    sharding = Sharding(12)
    found = one_index(sharding.whole, ranker("bm25", time), sharding.queries(sharding.whole)[:1], hits=400)["0"]
    rank = {docid: i for i, docid in enumerate(found.docids)}
    spread = sharding, dealt(sharding, np.array([rank.get(docid, 399) * 16 // 400 for docid in sharding.docids]))
    shares, of = spread[1]._shares, type(spread[1]._shares).of

    def growing(depth: int) -> int:
        shares.factor *= 1.1
        return of(shares, depth)

    monkeypatch.setattr(shares, "of", growing)
    check(spread, ranker("bm25", time), hits=20)


@pytest.mark.parametrize("time", [None, "recency"])
def test_what_does_not_fit_in_memory_is_asked_for_in_pieces(monkeypatch, time):
    from sdretrieval.integrations.spark import ranking

    monkeypatch.setattr(ranking, "RESULTS_IN_MEMORY", 2 * 40 * 100 * 3)  # two lists of three shards
    sharding = Sharding(14)
    spread = sharding, engine_of(sharding.shards(3))
    calls, ask = [], spread[1].runner.ask
    spread[1].runner.ask = lambda request, *more: (calls.append(request.__name__), ask(request, *more))[1]
    check(spread, ranker("ql", time), hits=100)
    assert len(calls) >= 3


def test_the_second_pass_of_a_prior_is_left_out_where_it_says_nothing():
    """All of one instant: nothing to tell, so no shard is asked again."""
    sharding = Sharding(1)
    sharding.times[:] = 5 * DAY
    engine = engine_of(sharding.shards(2))
    asked: list[str] = []
    ask = engine.runner.ask
    engine.runner.ask = lambda request, *more: (asked.append(request.__name__), ask(request, *more))[1]
    engine.rank(ranker("bm25", "recency"), sharding.queries(engine.collection))
    assert asked == ["survey"]
