"""As-of retrieval: equal to a collection that ends at the query's time."""

from __future__ import annotations

import numpy as np
import pytest
from places import placed

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.index import past_statistics
from sdretrieval.index.past_statistics import PastStatistics
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.time.drifting_background import Drifting
from sdretrieval.ranking.time.leaks import leak_report
from sdretrieval.ranking.time.wrappers import time_aware

N, V = 120, 30
WORDS = [f"w{i:02d}" for i in range(V)]


def collection(seed: int = 0, undated: bool = True):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.4, (N, V))
    counts[:, 5] += 1
    times = rng.integers(0, 1000, N)
    counts[times < 700, 29] = 0  # a word nobody knew before 700
    if undated:
        times[::10] = UNDATED
    return counts, times, Snapshot.from_counts(counts, WORDS, [f"d{i:03d}" for i in range(N)], times)


def the_past(counts, times, time: int) -> Snapshot:
    """The collection as it was: rows before ``time`` alone."""
    rows = np.flatnonzero((times != UNDATED) & (times < time))
    return Snapshot.from_counts(counts[rows], WORDS, [f"d{i:03d}" for i in rows], times[rows])


@pytest.mark.parametrize("shortest", [past_statistics.SHORTEST, 7, 1])
def test_statistics_of_the_past_are_those_of_a_collection_that_ends_there(monkeypatch, shortest):
    """Forwards, backwards by a little, backwards by much, before everything; without and with spans that are kept."""
    monkeypatch.setattr(past_statistics, "SHORTEST", shortest)
    counts, times, snapshot = collection()
    past = PastStatistics(snapshot)
    for time in (100, 800, 790, 50, 0, 1000, 500):
        found = past.at(time)
        rows = counts[(times != UNDATED) & (times < time)]
        assert found.n_docs == len(rows)
        assert found.n_tokens == rows.sum()
        assert np.array_equal(found.cf, rows.sum(axis=0))
        assert np.array_equal(found.df, (rows > 0).sum(axis=0))


def test_earlier_answers_do_not_change_when_time_moves_on():
    _, _, snapshot = collection()
    past = PastStatistics(snapshot)
    early = past.at(300)
    before = early.cf.copy()
    past.at(900)
    assert np.array_equal(early.cf, before)


def test_spans_are_counted_once_for_all_who_ask(monkeypatch):
    monkeypatch.setattr(past_statistics, "SHORTEST", 7)
    _, _, snapshot = collection()
    first = PastStatistics(snapshot).at(900)
    counted, count = [], past_statistics._count_rows
    monkeypatch.setattr(past_statistics, "_count_rows", lambda *given: (counted.append(len(given[1])), count(*given)))
    again = PastStatistics(snapshot, inclusive=True).at(899)
    assert np.array_equal(first.cf, again.cf)
    assert sum(counted) <= 7 // 2  # what a whole step is short of, or too much by


def test_strictly_before_or_inclusive():
    snapshot = Snapshot.from_counts([[1], [1], [1]], ["a"], times=[1, 2, 3])
    assert PastStatistics(snapshot).at(2).n_docs == 1
    assert PastStatistics(snapshot, inclusive=True).at(2).n_docs == 2
    assert PastStatistics(snapshot).allowed(2).tolist() == [True, False, False]
    assert PastStatistics(snapshot, inclusive=True).allowed(2).tolist() == [True, True, False]


@pytest.mark.parametrize("name", sorted(rankers()))
def test_every_model_ranks_as_if_the_future_were_not_there(name):
    """Scores equal those of an index of the past alone, search and rerank; w29 is not yet a word at time 600."""
    counts, times, snapshot = collection()
    before = the_past(counts, times, 600)
    snapshot, before = placed(snapshot), placed(before)
    words = ["w03", "w08", "w29"]
    model = make_ranker(name)
    wanted = next(Engine(before).rank(model, [Query.from_words(before, words, qid="1")], RankOptions(hits=N)))
    q = Query.from_words(snapshot, words, qid="1", time=600)
    found = next(Engine(snapshot).rank(time_aware(model, as_of=True), [q], RankOptions(hits=N)))
    assert snapshot.docids.take(found.docs) == before.docids.take(wanted.docs)
    assert found.scores == pytest.approx(wanted.scores, rel=1e-9, abs=1e-12)
    assert found.query.unknown == ("w29",)

    given = np.arange(0, N, 2)
    inside = [d for d in snapshot.docids.take(given) if before.docids.find(d) >= 0]
    wanted = next(
        Engine(before).rank(
            model,
            [Query.from_words(before, words, qid="1")],
            RankOptions(hits=N, candidates={"1": before.docids.find_many(inside)}),
        )
    )
    found = next(
        Engine(snapshot).rank(time_aware(model, as_of=True), [q], RankOptions(hits=N, candidates={"1": given}))
    )
    assert snapshot.docids.take(found.docs) == before.docids.take(wanted.docs)
    assert found.scores == pytest.approx(wanted.scores, rel=1e-9, abs=1e-12)


def test_results_come_in_the_order_of_the_queries_and_each_at_its_time():
    snapshot = collection()[2]
    queries = [Query.from_words(snapshot, ["w03", "w05"], qid=str(t), time=t) for t in (900, 100, 500, 0, 700, 100)]
    model = time_aware(make_ranker("bm25"), as_of=True)
    results = list(Engine(snapshot, threads=2).rank(model, queries, RankOptions(hits=N)))
    assert [r.query.qid for r in results] == [q.qid for q in queries]
    for q, result in zip(queries, results, strict=True):
        found = np.asarray(snapshot.times)[result.docs]
        assert (found < q.time).all() and (found != UNDATED).all()
    assert len(results[3].docs) == 0  # nothing before time 0


def test_judged_documents_of_the_future_teach_nothing():
    _, times, snapshot = collection(undated=False)
    late = np.flatnonzero(times > 800)
    q = Query.from_words(snapshot, ["w03"], qid="1", time=500)
    model = time_aware(make_ranker("rm3"), as_of=True)
    none = np.zeros(0, dtype=np.int64)
    with_late = next(Engine(snapshot).rank(model, [q], RankOptions(judged={"1": Judgments(late, late)})))
    without = next(Engine(snapshot).rank(model, [q], RankOptions(judged={"1": Judgments(none, none)})))
    assert np.array_equal(with_late.docs, without.docs) and np.array_equal(with_late.scores, without.scores)


def test_a_topic_without_a_time_is_an_error_that_names_it():
    _, _, snapshot = collection()
    queries = [Query.from_words(snapshot, ["w03"], qid="q7")]
    with pytest.raises(InputError, match="'q7' has none") as caught:
        list(Engine(snapshot).rank(time_aware(make_ranker("bm25"), as_of=True), queries))
    assert "--topic-times" in str(caught.value)


def test_an_index_without_dates_is_an_error():
    snapshot = Snapshot.from_counts([[1]], ["a"])
    with pytest.raises(InputError, match="dated documents"):
        list(
            Engine(snapshot).rank(
                time_aware(make_ranker("bm25"), as_of=True), [Query.from_words(snapshot, ["a"], time=5)]
            )
        )


def test_a_background_at_the_documents_time_would_look_ahead():
    with pytest.raises(ParameterError, match="beyond the query's"):
        time_aware(make_ranker("ql"), as_of=True, background=Drifting("local", "document"))


def test_leak_report_by_hand():
    """One of four documents is from the future; of the rest, a and b have changed places."""
    past = Run({"1": Ranking(["a", "b", "c"], np.array([3.0, 2.0, 1.0]))}, "")
    everything = Run({"1": Ranking(["f", "b", "a", "c"], np.array([4.0, 3.0, 2.0, 1.0]))}, "")
    report = leak_report(past, everything, {"1": {"a", "b", "c"}}, depth=4)
    assert (report.topics, report.changed, report.future, report.lost) == (1, 1, 0.25, 0.0)
    assert report.moved == pytest.approx(2 / 3)
    assert "25.0 %" in str(report)


def test_a_run_that_sees_no_future_leaks_nothing():
    run = Run({"1": Ranking(["a", "b"], np.array([2.0, 1.0]))}, "")
    report = leak_report(run, run, {"1": {"a", "b"}})
    assert (report.changed, report.future, report.lost, report.moved) == (0, 0.0, 0.0, 0.0)
