"""A drifting background in smoothing: at the query's time and at the document's."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.bandwidth import mlcv
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.time.drifting_background import GLOBAL_SHARE, DriftedStatistics, Drifting
from sdretrieval.ranking.time.wrappers import time_aware

DAY = 86_400_000
N, V = 200, 25


def collection(undated: int = 0):
    """Word 0 fades out along time, word 1 grows, the rest are steady."""
    rng = np.random.default_rng(0)
    days = np.sort(rng.integers(0, 20, N))
    counts = rng.poisson(0.8, (N, V))
    counts[:, 0] = rng.poisson(4 * (1 - days / 20))
    counts[:, 1] = rng.poisson(4 * days / 20)
    times = days * DAY
    if undated:
        times = times.copy()
        times[:undated] = UNDATED
    return counts, times, Snapshot.from_counts(counts, [f"w{i:02d}" for i in range(V)], times=times)


def rank(snapshot, model, time=20 * DAY, words=("w00", "w01", "w05")):
    query = Query.from_words(snapshot, list(words), qid="1", time=time)
    return next(Engine(snapshot).rank(model, [query], RankOptions(hits=N)))


@pytest.mark.parametrize("method", ["local", "penalised"])
@pytest.mark.parametrize("at", ["query", "document"])
def test_a_background_is_a_distribution_that_gives_every_word_a_chance(method, at):
    _, _, snapshot = collection()
    background = Drifting(method, at, bandwidth=4.0 * DAY).of(snapshot)
    for time in (3.0 * DAY, 12.0 * DAY, 20.0 * DAY):
        p = background.at(time, snapshot.statistics)
        assert p.sum() == pytest.approx(1.0)
        assert (p > 0).all()


def test_the_local_background_by_hand():
    """Uniform kernel of 3.5 days before day 10: documents of days 7, 8, 9, mixed with a tenth of the global model."""
    counts, times, snapshot = collection()
    background = Drifting("local", kernel="uniform", bandwidth=3.5 * DAY).of(snapshot)
    rows = counts[(times >= 7 * DAY) & (times < 10 * DAY)].sum(axis=0)
    wanted = (1 - GLOBAL_SHARE) * rows / rows.sum() + GLOBAL_SHARE * snapshot.p_collection
    assert background.at(10.0 * DAY, snapshot.statistics) == pytest.approx(wanted)


def test_at_the_query_only_the_past_counts_locally():
    """Word 1 is rare before day 4 however common it becomes."""
    counts, times, snapshot = collection()
    background = Drifting("local", bandwidth=30.0 * DAY).of(snapshot)
    early = background.at(4.0 * DAY, snapshot.statistics)
    rows = counts[times < 4 * DAY].sum(axis=0)
    assert early[1] < GLOBAL_SHARE * snapshot.p_collection[1] + 1.5 * rows[1] / rows.sum()


def test_without_data_in_reach_it_is_the_global_model():
    _, _, snapshot = collection()
    for method in ("local", "penalised"):
        background = Drifting(method, bandwidth=1.0 * DAY).of(snapshot)
        assert background.statistics_at(-50.0 * DAY, snapshot.statistics) is snapshot.statistics
        assert background.statistics_at(None, snapshot.statistics) is snapshot.statistics


def test_penalised_moves_the_drifting_words_and_few_others():
    _, _, snapshot = collection()
    background = Drifting("penalised", bandwidth=3.0 * DAY).of(snapshot)
    p, q = background.at(20.0 * DAY, snapshot.statistics), snapshot.p_collection
    ratio = np.abs(np.log(p / q))
    assert set(np.argsort(-ratio)[:2].tolist()) == {0, 1}
    assert p[0] < q[0] and p[1] > q[1]


def test_infinite_bandwidth_at_the_documents_time_is_the_global_ranking():
    """h = ∞ makes θ̂_t the global model (every document is dated): the same order, scores apart by a constant."""
    _, _, snapshot = collection()
    for name in ("ql", "rm", "sd"):
        plain = rank(snapshot, make_ranker(name))
        drifting = Drifting("local", "document", bandwidth=inf)
        timed = rank(snapshot, time_aware(make_ranker(name), background=drifting))
        assert np.array_equal(plain.docs, timed.docs)
        assert np.ptp(timed.scores - plain.scores) == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize("smoothing", ["jm", "dirichlet"])
def test_at_the_documents_time_the_whole_equation_is_computed(smoothing):
    """Σ_w f^Q_w log θ^D_w with θ^D smoothed by the background of the document's own time, dense by hand."""
    counts, times, snapshot = collection(undated=5)
    model = make_ranker("ql", {"smoothing": smoothing, "mu": 30.0, "lam": 0.4})
    drifting = Drifting("local", "document", bandwidth=4.0 * DAY)
    result = rank(snapshot, time_aware(model, background=drifting))
    background = drifting.of(snapshot)
    for doc, score in zip(result.docs[:20], result.scores[:20], strict=True):
        time = None if times[doc] == UNDATED else float(times[doc])
        p = background.at(time, snapshot.statistics)
        length = counts[doc].sum()
        share = 0.4 if smoothing == "jm" else length / (length + 30.0)
        theta = share * counts[doc] / length + (1 - share) * p
        assert score == pytest.approx(np.log(theta[[0, 1, 5]]).sum())


def test_at_the_querys_time_models_see_the_drifted_statistics():
    """ql with the drifted p by hand: the fading word is rarer now, so it says more."""
    counts, _, snapshot = collection()
    drifting = Drifting("local", bandwidth=4.0 * DAY)
    model = make_ranker("ql", {"smoothing": "jm", "lam": 0.4})
    result = rank(snapshot, time_aware(model, background=drifting))
    p = drifting.of(snapshot).at(20.0 * DAY, snapshot.statistics)
    wanted = np.log1p(0.4 * counts / counts.sum(axis=1, keepdims=True) / (0.6 * p))[:, [0, 1, 5]].sum(axis=1)
    difference = result.scores - wanted[result.docs]
    assert np.ptp(difference) == pytest.approx(0.0, abs=1e-9)


def test_bm25_has_no_background():
    _, _, snapshot = collection()
    plain = rank(snapshot, make_ranker("bm25"))
    for at in ("query", "document"):
        drifting = Drifting("local", at, bandwidth=2.0 * DAY)
        timed = rank(snapshot, time_aware(make_ranker("bm25"), background=drifting))
        assert np.array_equal(plain.docs, timed.docs) and np.array_equal(plain.scores, timed.scores)


@pytest.mark.parametrize("name", ["rm", "rm3", "sd", "sd3", "tfidf"])
def test_feedback_models_rank_with_any_background_and_as_of(name):
    _, _, snapshot = collection()
    for method in ("local", "penalised"):
        model = time_aware(make_ranker(name), background=Drifting(method, bandwidth=4.0 * DAY), as_of=True)
        result = rank(snapshot, model, time=12 * DAY)
        assert len(result.docs) and np.isfinite(result.scores).all()
        assert (np.asarray(snapshot.times)[result.docs] < 12 * DAY).all()


def test_with_as_of_the_background_leans_on_the_past_alone():
    """A change after the query's time changes no score."""
    counts, times, _ = collection()
    other = counts.copy()
    other[times >= 12 * DAY] = np.roll(other[times >= 12 * DAY], 7, axis=1)
    words = [f"w{i:02d}" for i in range(V)]
    results = []
    for c in (counts, other):
        snapshot = Snapshot.from_counts(c, words, times=times)
        model = time_aware(make_ranker("sd3"), background=Drifting("local", bandwidth=4.0 * DAY), as_of=True)
        results.append(rank(snapshot, model, time=12 * DAY))
    assert np.array_equal(results[0].docs, results[1].docs)
    assert results[0].scores == pytest.approx(results[1].scores, rel=1e-12)


def test_the_automatic_bandwidth_of_steady_words_is_wide_and_of_undated_ones_infinite():
    _, _, snapshot = collection()
    assert Drifting("local").of(snapshot).bandwidth > 0
    undated = Snapshot.from_counts([[1, 2]], ["a", "b"])
    assert Drifting("local").of(undated).bandwidth == inf
    assert Drifting("local").of(undated).statistics_at(5.0, undated.statistics) is undated.statistics


@pytest.mark.parametrize("at", ["query", "document"])
def test_the_automatic_bandwidth_is_that_of_the_models_own_kernel(at):
    """At the query's time the model looks back alone, and so must the likelihood that its bandwidth is chosen by."""
    rng = np.random.default_rng(8)
    times = rng.integers(0, 200, 600) * DAY
    phase = 2 * np.pi * times / (40 * DAY)
    rate = np.stack([1 + np.sin(phase + k) for k in range(6)], axis=1)
    snapshot = Snapshot.from_counts(rng.poisson(3 * rate), [f"w{k}" for k in range(6)], times=times)
    background = Drifting("local", at).of(snapshot)
    chosen = {
        online: mlcv(
            snapshot.by_doc, times, kernel=Kernel("tricube", online), resolution=background.resolution, refine=False
        ).bandwidth
        for online in (True, False)
    }
    assert chosen[True] != chosen[False]
    assert background.bandwidth == chosen[at == "query"]


def test_drifted_statistics_keep_the_counts():
    _, _, snapshot = collection()
    p = np.full(V, 1 / V)
    drifted = DriftedStatistics.around(snapshot.statistics, p)
    assert drifted.p is p and drifted.df is snapshot.statistics.df and drifted.n_docs == N
    assert drifted.log_p == pytest.approx(np.full(V, -np.log(V)))


@pytest.mark.parametrize("wrong", [{"method": "global"}, {"at": "noon"}, {"kernel": "boxcar"}, {"bandwidth": 0.0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ParameterError):
        Drifting(**wrong)
