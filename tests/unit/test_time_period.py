"""Documents of a period alone: the same scores, other documents left out, everything beside it as before."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.time.period import Period
from sdretrieval.ranking.time.wrappers import AsOf, AutoPrior, Recency, TimePrior
from tests.unit.test_time_prior import DAY, N, collection, query, ranking

SINCE, UNTIL = 20 * DAY, 60 * DAY


def inside(snapshot: Snapshot, docs) -> np.ndarray:
    times = np.asarray(snapshot.times)[docs]
    return (times >= SINCE) & (times < UNTIL)


@pytest.mark.parametrize("name", ["bm25", "ql"])
def test_scores_are_those_of_the_whole_collection(name):
    snapshot = collection()
    q, model = query(snapshot), make_ranker(name)
    everything = ranking(snapshot, model, q)
    found = ranking(snapshot, Period(ranker=model, since=SINCE, until=UNTIL), q)
    kept = inside(snapshot, everything.docs)
    assert 0 < kept.sum() < len(kept)
    assert np.array_equal(found.docs, everything.docs[kept])
    assert np.array_equal(found.scores, everything.scores[kept])


@pytest.mark.parametrize("name", ["rm3", "sd", "blend"])
def test_feedback_is_of_the_period(name):
    snapshot = collection()
    found = ranking(snapshot, Period(ranker=make_ranker(name), since=SINCE, until=UNTIL), query(snapshot))
    assert len(found.docs) and inside(snapshot, found.docs).all() and inside(snapshot, found.feedback.docs).all()


def test_the_beginning_is_part_of_it_and_the_end_is_not():
    times = np.arange(N) * DAY
    times[5] = UNDATED
    snapshot = collection(times)
    found = Period(ranker=make_ranker("bm25"), since=3 * DAY, until=8 * DAY).within(snapshot)
    assert np.flatnonzero(found).tolist() == [3, 4, 6, 7]
    assert not Period(ranker=make_ranker("bm25")).within(snapshot)[5]


def test_candidates_and_judged_documents_are_of_the_period():
    snapshot = collection()
    model = Period(ranker=make_ranker("rm3"), since=SINCE, until=UNTIL)
    q, docs = query(snapshot), np.arange(N)
    some = Judgments(docs[:20], docs[20:30])
    found = ranking(snapshot, model, q, candidates={"1": docs}, judged={"1": some, "2": some})
    assert sorted(found.docs) == docs[inside(snapshot, docs)].tolist()
    assert len(found.feedback.docs) and inside(snapshot, found.feedback.docs).all()


@pytest.mark.parametrize(
    "prior", [lambda model: TimePrior(ranker=model, prior=Recency()), lambda m: AutoPrior(ranker=m)]
)
def test_priors_and_as_of_go_along(prior):
    snapshot = collection()
    model = Period(ranker=AsOf(ranker=prior(make_ranker("bm25"))), since=SINCE, until=UNTIL)
    found = ranking(snapshot, model, query(snapshot, 40 * DAY))
    times = np.asarray(snapshot.times)[found.docs]
    assert len(times) and times.min() >= SINCE and times.max() < 40 * DAY


@pytest.mark.parametrize("threads", [1, 2])
def test_many_queries_share_a_view(threads):
    snapshot = collection()
    queries = [Query.from_words(snapshot, [f"w{i:02d}", "w03"], qid=str(i)) for i in range(30)]
    model = Period(ranker=make_ranker("sd3"), since=SINCE, until=UNTIL)
    together = list(Engine(snapshot, threads=threads).rank(model, queries, RankOptions(hits=N)))
    for q, result in zip(queries, together, strict=True):
        alone = ranking(snapshot, model, q)
        assert np.array_equal(result.docs, alone.docs) and np.array_equal(result.scores, alone.scores)


def test_no_queries_no_results():
    assert not list(Engine(collection()).rank(Period(ranker=make_ranker("bm25"), since=SINCE), []))


def test_an_empty_period_and_an_undated_index_are_refused():
    with pytest.raises(ParameterError, match="is empty"):
        Period(ranker=make_ranker("bm25"), since=UNTIL, until=UNTIL)
    undated = collection(np.full(N, UNDATED))
    with pytest.raises(InputError, match="needs dated documents"):
        ranking(undated, Period(ranker=make_ranker("bm25"), since=SINCE), query(undated))


def test_the_manifest_has_the_limits():
    settings = Period(ranker=make_ranker("bm25"), since=0).settings()["time"]
    assert settings["from"].startswith("1970-01-01") and settings["until"] is None
