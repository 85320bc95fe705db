"""Ranking over shards is ranking over one index: every model, every time setting, however documents are spread.

In one process; test_cluster.py has one of each kind on Spark. The single machine's engine is the judge.
"""

from __future__ import annotations

import numpy as np
import pytest
from sharding import DAY, MODELS, TIMES, Sharding, assert_same, engine_of, one_index, ranker

from sdretrieval.core.errors import InputError
from sdretrieval.core.times import UNDATED
from sdretrieval.plugins.spark import shard_ranking
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine, ShardOptions
from sdretrieval.ranking.retrieval import judgments_of


@pytest.fixture(scope="module", params=[6])
def spread(request) -> tuple[Sharding, ShardedEngine]:
    sharding = Sharding(request.param)
    return sharding, engine_of(sharding.shards(request.param), threads=2)


def check(spread, model, hits: int = 100, judged=None, candidates=None, prune=None) -> None:
    sharding, engine = spread
    whole = sharding.whole
    wanted = one_index(
        whole,
        model,
        sharding.queries(whole),
        hits=hits,
        judged=judgments_of(whole, judged),
        candidates=candidates and {qid: whole.docids.find_many(docids) for qid, docids in candidates.items()},
        prune=prune,
    )
    options = ShardOptions(hits=hits, judged=judged or {}, candidates=candidates, prune=prune)
    results = engine.rank(model, sharding.queries(engine.collection), options)
    assert any(len(ranking) for ranking in wanted.values())
    assert_same({result.query.qid: result.ranking for result in results}, wanted)


@pytest.mark.parametrize("spread", [1, 3, 8], indirect=True)
@pytest.mark.parametrize("name", MODELS)
def test_every_model(spread, name):
    check(spread, ranker(name))


@pytest.mark.parametrize("name", ["sd", "rm", "sd3", "blend"])
@pytest.mark.parametrize("hits", [1, 7, 1000])
def test_every_depth(spread, name, hits):
    check(spread, ranker(name), hits=hits)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("name", ["bm25", "sd", "blend", "rm3 lm"])
def test_every_time_setting(spread, name, time):
    check(spread, ranker(name, time))


@pytest.mark.parametrize("name", ["tfidf", "rm", "sd", "sd to convergence", "sd3"])
@pytest.mark.parametrize("time", [None, "density", "as of", "density, cv, posterior"])
def test_judged_documents(spread, name, time):
    docids = sorted(spread[0].docids)
    judged = {
        "0": dict.fromkeys(docids[5:9], 1) | dict.fromkeys(docids[100:104], 0),
        "1": dict.fromkeys(docids[:30], 0) | {"nowhere": 1, "nor here": 0},
        "4": {docids[50]: 1},
    }
    check(spread, ranker(name, time), judged=judged)


@pytest.mark.parametrize("name", ["bm25", "rm", "sd", "sd3", "lucene-qld"])
@pytest.mark.parametrize("time", [None, "recency", "as of, inclusive, recency", "background at documents, recency"])
def test_given_candidates(spread, name, time):
    docids = np.random.default_rng(3).permutation(spread[0].docids).tolist()
    check(spread, ranker(name, time), candidates={str(i): docids[40 * i : 40 * i + 60] for i in range(5)})


@pytest.mark.parametrize("spread", [3, 8], indirect=True)
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


@pytest.mark.parametrize("seed", range(6))
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


@pytest.mark.parametrize("name", ["bm25", "sd3"])
@pytest.mark.parametrize("time", [None, "recency", "density", "as of", "background at documents"])
def test_where_one_shard_has_all_of_the_best(name, time):
    """Documents in the order of their scores for a topic."""
    sharding, model = Sharding(12), ranker(name, time)
    found = one_index(sharding.whole, model, sharding.queries(sharding.whole)[:1], hits=400)["0"]
    rank = {docid: i for i, docid in enumerate(found.docids)}
    where = np.array([rank.get(docid, 399) * 16 // 400 for docid in sharding.docids])
    check((sharding, engine_of([sharding.part(np.flatnonzero(where == k)) for k in range(16)])), model, hits=20)


@pytest.mark.parametrize("time", [UNDATED, 5 * DAY])
def test_where_times_tell_nothing_apart(time):
    sharding = Sharding(1)
    sharding.times[:] = time
    sharding.whole = sharding.part(np.arange(len(sharding.docids)))
    both = sharding, engine_of(sharding.shards(3))
    check(both, ranker("sd3", "recency"))
    if time == UNDATED:
        with pytest.raises(InputError, match="needs dated documents"):
            both[1].rank(ranker("sd3", "as of"), sharding.queries(both[1].collection))


def test_what_makes_batches_smaller(monkeypatch):
    """Statistics of each topic; many shards and hits, of which lists of √n shards reach the driver."""
    engine = engine_of(Sharding(1).shards(2))
    monkeypatch.setattr(shard_ranking, "STATISTICS_IN_MEMORY", 3 * 40 * len(engine.collection.totals.vocabulary))
    assert engine.batch_size(ranker("sd3"), 100) == 100
    assert engine.batch_size(ranker("sd3", "as of"), 100) == 3
    assert engine.batch_size(ranker("sd3", "local background"), 100) == 3
    assert engine.batch_size(ranker("sd3", "background at documents"), 100) == 100
    engine.collection.n_shards = 400
    assert engine.batch_size(ranker("sd3"), 10_000, hits=1000) == (1 << 28) // (40 * 1000 * 20)
    assert engine.batch_size(ranker("sd3"), 128, hits=10**7) == 1
