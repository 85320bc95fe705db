"""The automatic time prior: against the plain oracle, its control under chance, and how it composes."""

from __future__ import annotations

from itertools import pairwise
from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.compiled import plain_loops
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions, Result
from sdretrieval.ranking.notes import AutoTimeNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import rerank
from sdretrieval.ranking.time import auto
from sdretrieval.ranking.time import auto_loops as loops
from sdretrieval.ranking.time.prior import Density, Recency
from sdretrieval.ranking.time.wrappers import Auto, AutoPrior, TimePrior, prior_on_run, time_aware
from tests import time_auto_oracle as oracle

DAY = 86_400_000
N, V = 1500, 30
BURST = np.arange(8)  # documents of one event, which word 3 is about


def collection(seed: int = 0, undated: int = 0, burst: bool = True, resolution: int = 1) -> Snapshot:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.3, (N, V))
    counts[:, 0] += 1
    counts[:, 3] = rng.random(N) < 0.04
    counts[BURST, 3] = 3
    times = rng.integers(0, 1000 * DAY, N)
    if burst:
        times[BURST] = 700 * DAY + rng.integers(0, 2 * DAY, len(BURST))
    times = times // resolution * resolution
    if undated:
        times[rng.choice(N, undated, replace=False)] = UNDATED
    return Snapshot.from_counts(counts, [f"w{i:02d}" for i in range(V)], times=times)


def query(snapshot: Snapshot, time: int | None = None, qid: str = "1", words=("w03", "w07")) -> Query:
    return Query.from_words(snapshot, list(words), qid=qid, time=time)


def ranked(snapshot: Snapshot, model, *queries: Query, **options):
    return list(Engine(snapshot).rank(model, queries, RankOptions(hits=N, **options)))


def by_words(snapshot: Snapshot, q: Query, plan, depth: int = N) -> Result:
    """What a plan finds without time."""
    return Result(q, *Engine(snapshot).best([plan], depth)[0], plan)


def note_of(result) -> AutoTimeNote:
    return next(note for note in result.notes if isinstance(note, AutoTimeNote))


def seen(snapshot: Snapshot, plain, docs: int = 50):
    """The dated first documents and what the oracle wants to know, from a plain ranking in rank order."""
    times = np.asarray(snapshot.times)
    background = [float(t) for t in times if t != UNDATED]
    dated = [(i, d) for i, d in enumerate(plain.docs[:docs]) if times[d] != UNDATED]
    first = [(i + 1.0, float(times[d])) for i, d in dated]
    others = [float(times[d]) for d in plain.docs[docs:1000] if times[d] != UNDATED]
    z = [float((plain.scores[i] - plain.scores[:100].mean()) / np.std(plain.scores[:100])) for i, _ in dated]
    return dated, (first, z, plain.query.time, background, others)


def expected(snapshot: Snapshot, plain, learnt=None):
    """Scores by document, by the oracle; ``learnt`` are a habit and its evidence."""
    times = np.asarray(snapshot.times)
    dated, (first, z, asked, background, others) = seen(snapshot, plain)
    place = {int(d): n for n, (_, d) in enumerate(dated)}
    evidence, log_burst, centres = oracle.bursts(first, background)
    a_b, a_q, log_near, crowds = oracle.belief(evidence), 0.0, None, oracle.crowds(centres, background)
    if asked is not None:
        habit, sure = learnt or ((), None)
        near, log_near = oracle.nearness(first, z, asked, background, others, *habit)
        a_q = oracle.belief(near if sure is None else sure)
    unit, scores = np.std(plain.scores[:100]), {}
    for rank, (d, score) in enumerate(zip(plain.docs.tolist(), plain.scores.tolist(), strict=True)):
        t = float(times[d])
        if rank >= 1000 and not (a_b and any(low <= t <= high for low, high in crowds)):
            continue
        rho = 0.0
        if times[d] != UNDATED:
            near = a_q * log_near(t) if log_near is not None else 0.0
            rho = a_b * log_burst(t, place.get(d)) + (near if rank < 1000 else min(near, 0.0))
        scores[d] = score + unit * rho
    return scores


@pytest.mark.parametrize("asked", [None, 703 * DAY])
@pytest.mark.parametrize("undated", [0, 60])
@pytest.mark.parametrize("name", ["bm25", "rm3"])
def test_scores_are_the_oracles(asked, undated, name):
    snapshot = collection(undated=undated)
    q = query(snapshot, asked)
    found = ranked(snapshot, time_aware(make_ranker(name), prior=Auto()), q)[0]
    plain = by_words(snapshot, q, found.plan)
    wanted = expected(snapshot, plain)
    assert note_of(found).choice == ("bursts" if asked is None else "both")
    first = dict(zip(found.docs.tolist()[: len(wanted)], found.scores.tolist(), strict=False))
    assert first == pytest.approx(wanted, abs=1e-9)
    assert (np.diff(found.scores) <= 0).all()
    assert found.docs[len(wanted) :].tolist() == [d for d in plain.docs.tolist() if d not in wanted]  # as they were


@pytest.mark.parametrize("asked", [None, 703 * DAY])
@pytest.mark.parametrize("undated", [0, 60])
def test_feedback_is_what_the_oracle_learns_from(asked, undated):
    """Ordered by the scores that time has changed, and weighted by half of what it tells."""
    snapshot, model = collection(undated=undated), make_ranker("rm3")
    q = query(snapshot, asked)
    first = by_words(snapshot, q, model.first(q, snapshot.statistics), 200)
    changed, unit = expected(snapshot, first), np.std(first.scores[:100])
    best = sorted(changed, key=lambda d: -changed[d])[: model.fb_docs]
    own = dict(zip(first.docs.tolist(), first.scores.tolist(), strict=True))
    found = ranked(snapshot, time_aware(model, prior=Auto()), q)[0]
    assert found.feedback.docs.tolist() == best != first.docs[: model.fb_docs].tolist()
    assert found.feedback.scores.tolist() == [own[d] for d in best]
    assert found.feedback.emphasis == pytest.approx([exp(0.5 * (changed[d] - own[d]) / unit) for d in best])
    assert note_of(found).learnt_in_time and "feedback by time too" in str(note_of(found))
    posterior = ranked(snapshot, model, q, candidates={"1": found.feedback.docs})[0].expansion.weights
    weighted = posterior * found.feedback.emphasis
    assert found.expansion.weights == pytest.approx(weighted / weighted.sum())


@given(st.integers(0, 5), st.integers(-300 * DAY, 3000 * DAY), st.sampled_from([None, 703 * DAY]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_only_distances_in_time_count(seed, shift, asked, shuffled):
    """With all dates moved alike the same documents are learnt from, some of the first 200, and the same are found."""
    snapshot, model = collection(seed), make_ranker("rm3")
    times = np.asarray(snapshot.times)
    if shuffled:
        times = np.random.default_rng(seed).permutation(times)
    here, there = (
        Snapshot.from_counts(snapshot.by_doc.toarray(), [f"w{i:02d}" for i in range(V)], times=times + by)
        for by in (0, shift)
    )
    a, b = (
        ranked(s, time_aware(model, prior=Auto()), query(s, None if asked is None else asked + by))[0]
        for s, by in ((here, 0), (there, shift))
    )
    assert a.docs.tolist() == b.docs.tolist() and a.scores == pytest.approx(b.scores, rel=1e-12)
    assert a.feedback.docs.tolist() == b.feedback.docs.tolist() and note_of(a).choice == note_of(b).choice
    first = by_words(here, a.query, model.first(a.query, here.statistics), 200)
    assert set(a.feedback.docs.tolist()) <= set(first.docs.tolist())
    if a.feedback.emphasis is None:
        assert a.feedback.docs.tolist() == first.docs[: model.fb_docs].tolist()
    else:
        assert (a.feedback.emphasis > 0).all()


def test_a_run_is_learnt_from_as_the_first_pass_it_is():
    snapshot, model = collection(), time_aware(make_ranker("rm3"), prior=Auto())
    q = query(snapshot)
    first = by_words(snapshot, q, model.first(q, snapshot.statistics))
    searched = ranked(snapshot, model, q)[0]
    reranked = ranked(snapshot, model, q, candidates={"1": first.docs})[0]
    assert reranked.feedback.docs.tolist() == searched.feedback.docs.tolist()
    assert reranked.feedback.emphasis == pytest.approx(searched.feedback.emphasis)
    # Another's order counts: documents that time does not tell apart stay in it.
    turned = np.concatenate([first.docs[:30][::-1], first.docs[30:]])
    outside = [d for d in ranked(snapshot, model, q, candidates={"1": turned})[0].feedback.docs if d not in BURST]
    assert len(outside) > 1 and outside == [d for d in turned if d in outside]


def test_judged_documents_keep_their_weight_beside_those_of_the_first_pass():
    snapshot, q = collection(), query(collection())
    judged = Judgments(np.array([40, 41]), np.array([0, 1]))
    model = make_ranker("sd").with_(unjudged_weight=0.5)
    found = ranked(snapshot, time_aware(model, prior=Auto()), q, judged={"1": judged})[0].feedback
    assert found.docs[:2].tolist() == [40, 41] and found.emphasis[:2].tolist() == [1.0, 1.0]
    assert found.unjudged == len(found.docs) - 2 and not {0, 1, 40, 41} & set(found.docs[2:].tolist())
    assert len(set(found.emphasis[2:].tolist())) > 1


@pytest.mark.parametrize("prior", [Auto(), Density(bandwidth=3.0 * DAY), Recency(bandwidth=9.0 * DAY)])
def test_more_hits_go_on_where_fewer_end(prior):
    snapshot = collection()
    q, model = query(snapshot, 703 * DAY, words=("w00", "w03", "w07")), make_ranker("bm25")
    plain = ranked(snapshot, model, q)[0]
    assert len(plain.docs) > 1000
    timed = time_aware(model, prior=prior, weight=1.0)
    found = {n: next(Engine(snapshot).rank(timed, [q], RankOptions(hits=n))) for n in (10, N)}
    assert found[N].docs[:10].tolist() == found[10].docs.tolist() != plain.docs[:10].tolist()
    assert found[N].scores[:10].tolist() == found[10].scores.tolist()
    assert sorted(found[N].docs.tolist()) == sorted(plain.docs.tolist())


def test_reranking_gives_the_same_scores_in_any_order_of_candidates():
    snapshot = collection()
    q = query(snapshot, 703 * DAY)
    model = time_aware(make_ranker("bm25"), prior=Auto())
    whole = ranked(snapshot, model, q)[0]
    shuffled = np.random.default_rng(1).permutation(whole.docs)
    again = ranked(snapshot, model, q, candidates={"1": shuffled})[0]
    assert again.docs.tolist() == whole.docs.tolist()
    assert again.scores == pytest.approx(whole.scores, abs=1e-9)


def test_a_burst_is_found_and_raised():
    snapshot = collection()
    q = query(snapshot)
    plain, found = (ranked(snapshot, time_aware(make_ranker("bm25"), prior=p), q)[0] for p in (None, Auto()))
    in_burst = [np.flatnonzero(np.isin(r.docs, BURST)).mean() for r in (plain, found)]
    assert in_burst[1] < in_burst[0]
    note = note_of(found)
    assert note.bursts > 4 and 700 * DAY <= max(note.curve, key=lambda point: point[1])[0] <= 702 * DAY
    assert "bursts" in str(note) and note.weight == note.bursts_believed


def test_chance_alone_is_not_believed():
    """With dates that tell nothing at most one topic in 20 has an effect; and no score changes for the others."""
    on = 0
    for seed in range(100):
        snapshot = collection(seed, burst=False)
        q = query(snapshot)
        plain, found = (ranked(snapshot, time_aware(make_ranker("rm3"), prior=p), q)[0] for p in (None, Auto()))
        if note_of(found).choice == "none":
            assert found.scores.tolist() == plain.scores.tolist()
        else:
            on += 1
    assert on <= 5


def test_dates_of_a_years_resolution_make_no_bursts():
    """Three dates in all: documents of one date are as near as can be, and mean nothing."""
    for seed in range(20):
        snapshot = collection(seed, burst=False, resolution=365 * DAY)
        assert (
            note_of(ranked(snapshot, time_aware(make_ranker("bm25"), prior=Auto()), query(snapshot))[0]).choice
            == "none"
        )


@pytest.mark.parametrize("times", [np.full(N, 5 * DAY), np.full(N, UNDATED)])
def test_one_instant_and_no_dates_change_nothing(times):
    rng = np.random.default_rng(0)
    snapshot = Snapshot.from_counts(rng.poisson(0.3, (N, V)) + 0, [f"w{i:02d}" for i in range(V)], times=times)
    q = query(snapshot, 6 * DAY)
    plain, found = (ranked(snapshot, time_aware(make_ranker("rm3"), prior=p), q)[0] for p in (None, Auto()))
    assert found.docs.tolist() == plain.docs.tolist()
    assert found.scores == pytest.approx(plain.scores)


@pytest.mark.parametrize("name", ["bm25", "rm3"])
@pytest.mark.parametrize("inclusive", [False, True])
def test_as_of_ranks_as_if_the_future_were_not_there(inclusive, name):
    snapshot, asked = collection(), 701 * DAY
    times = np.asarray(snapshot.times)
    past = times <= asked if inclusive else times < asked
    rows = snapshot.by_doc.toarray()[past]
    kept = [docid for docid, keep in zip(snapshot.docids.take(np.arange(N)), past, strict=True) if keep]
    ended = Snapshot.from_counts(rows, [f"w{i:02d}" for i in range(V)], times=times[past], docids=kept)
    model = make_ranker(name)
    found = ranked(snapshot, time_aware(model, prior=Auto(), as_of=True, inclusive=inclusive), query(snapshot, asked))[
        0
    ]
    wanted = ranked(ended, time_aware(model, prior=Auto()), query(ended, asked))[0]
    assert note_of(found).choice == note_of(wanted).choice != "none"
    assert snapshot.docids.take(found.docs) == ended.docids.take(wanted.docs)
    assert found.scores == pytest.approx(wanted.scores, abs=1e-9)


def asking(snapshot: Snapshot, n: int = 48) -> list[Query]:
    """Topics about words of documents written shortly before they are asked."""
    rng = np.random.default_rng(5)
    times = np.asarray(snapshot.times)
    queries = []
    for i in range(n):
        doc = int(rng.choice(np.flatnonzero(times > 100 * DAY)))
        words = snapshot.by_doc[doc].toarray()[0].argsort()[::-1][:4]
        queries.append(query(snapshot, int(times[doc]) + DAY, f"q{i:02d}", [f"w{w:02d}" for w in words]))
    return queries


def test_nearness_is_learnt_from_topics_of_the_call():
    snapshot = collection(burst=False)
    queries, model = asking(snapshot), time_aware(make_ranker("bm25"), prior=Auto())
    found = ranked(snapshot, model, *queries)
    assert all(note_of(r).learnt_from == 10 for r in found)
    alone = ranked(snapshot, model, queries[7])[0]
    assert note_of(alone).learnt_from == 0
    plain = ranked(snapshot, make_ranker("bm25"), *queries)
    sample = [plain[i] for i in np.linspace(0, 47, 10).astype(int)]
    topics = [seen(snapshot, r)[1] for r in sorted(sample, key=lambda r: r.query.time)]
    learnt = oracle.habit(topics), oracle.learnt_evidence(topics)
    wanted = expected(snapshot, plain[7], learnt)
    assert note_of(found[7]).choice == "nearness"
    first = dict(zip(found[7].docs.tolist()[: len(wanted)], found[7].scores.tolist(), strict=False))
    assert first == pytest.approx(wanted, abs=1e-9)


def test_with_as_of_only_earlier_topics_teach():
    """Documents of the later half, and so the topics asked then, may be anything."""
    snapshot, queries = collection(burst=False), asking(collection(burst=False))
    cut = 500 * DAY
    times = np.asarray(snapshot.times).copy()
    later = times >= cut
    rows = snapshot.by_doc.toarray()
    rows[later] = np.random.default_rng(9).permutation(rows[later])
    other = Snapshot.from_counts(rows, [f"w{i:02d}" for i in range(V)], times=times)
    model = time_aware(make_ranker("bm25"), prior=Auto(), as_of=True)
    for a, b in zip(ranked(snapshot, model, *queries), ranked(other, model, *queries), strict=True):
        if a.query.time <= cut:
            assert a.docs.tolist() == b.docs.tolist() and a.scores.tolist() == b.scores.tolist()


def test_threads_change_nothing():
    snapshot = collection()
    queries, model = asking(snapshot), time_aware(make_ranker("rm3"), prior=Auto(), as_of=True)
    one, two = (list(Engine(snapshot, threads=n).rank(model, queries, RankOptions(hits=50))) for n in (1, 2))
    assert [r.scores.tolist() for r in one] == [r.scores.tolist() for r in two]


def test_judged_documents_are_the_evidence():
    snapshot = collection()
    judged = {"1": Judgments(BURST, np.zeros(0, dtype=np.int64))}
    q = query(snapshot, words=("w07",))
    found = ranked(snapshot, time_aware(make_ranker("rm3"), prior=Auto()), q, judged=judged)[0]
    assert note_of(found).choice == "bursts"


@pytest.mark.parametrize("seed", range(4))
def test_documents_of_a_period_are_counted_as_any_others_are(seed):
    """By the ends of their places in the calendar, or one by one: the same masses."""
    rng = np.random.default_rng(seed)
    snapshot = collection(seed, undated=40)
    times, calendar = np.asarray(snapshot.times), auto.calendar_of(snapshot)
    asked = rng.integers(0, 1000 * DAY, 6).astype(float)
    for allowed in ((times != UNDATED) & (times < 600 * DAY), times > 300 * DAY, rng.random(N) < 0.5, times > 1e15):
        there = [float(t) for t in times[allowed] if t != UNDATED]
        wanted = [oracle.masses(t, there) if there else [1.0] * 24 for t in asked]
        assert calendar.masses(calendar.there(allowed), asked) == pytest.approx(np.array(wanted))


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=80),
    st.sampled_from([1, 1000, 3_600_000]),
    st.integers(-(10**6), 2 * 10**6),
)
@settings(max_examples=60, deadline=None)
def test_windows_are_counted_however_the_documents_crowd(times, unit, asked):
    """Beyond either end of the calendar too, with many documents in one of its steps, or all of one instant."""
    times = np.array([*times, *[times[0]] * 40]) * unit
    calendar = auto.Calendar(SimpleNamespace(times=times))
    found = calendar.masses(calendar.there(None), np.array([float(asked * unit), float(times[0])]))
    assert found.tolist() == [oracle.masses(t, times.tolist()) for t in (asked * unit, times[0])]


@pytest.mark.parametrize("name", ["bm25", "rm3"])
def test_loops_run_by_python_give_the_same_bits(name):
    snapshot = collection(undated=60)
    q, model = query(snapshot, 703 * DAY), time_aware(make_ranker(name), prior=Auto())
    compiled = ranked(snapshot, model, q)[0]
    with plain_loops():
        plain = ranked(snapshot, model, q)[0]
    assert plain.scores.tolist() == compiled.scores.tolist() and plain.docs.tolist() == compiled.docs.tolist()
    assert note_of(plain) == note_of(compiled) and note_of(plain).curve == note_of(compiled).curve


def test_levels_end_where_windows_do():
    """To the millisecond, from the same instant to beyond the widest window."""
    reach, centre = np.array(oracle.REACH, dtype=float), 1.7e12
    for sign in (1.0, -1.0):
        assert loops.levels_to(centre + sign * reach, centre).tolist() == list(range(24))
        assert loops.levels_to(centre + sign * (reach + 1.0), centre).tolist() == list(range(1, 25))
    assert loops.levels_to(np.array([centre, -(2.0**63)]), centre).tolist() == [0, 24]


def test_names_settings_and_wrong_ones():
    model = time_aware(make_ranker("sd3"), prior=Auto(docs=30), as_of=True)
    assert model.name == "sd3+time-auto+as-of"
    assert model.settings()["time"]["prior"]["docs"] == 30
    with pytest.raises(ParameterError, match="time prior already"):
        AutoPrior(ranker=TimePrior(ranker=make_ranker("bm25"), prior=Density()))
    for wrong in ({"docs": 1}, {"doubt": 0.0}, {"chance": 1.0}, {"nearness": -1.0}, {"learning": -1.0}):
        with pytest.raises(ParameterError):
            Auto(**wrong)


# -- on the scores of a run ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [Auto(), Recency(bandwidth=5.0 * DAY), Density(bandwidth=3.0 * DAY)])
def test_a_prior_is_added_to_the_mixture_with_a_run(prior):
    """At a run weight of 1 it is the prior on the run's own scores, whatever the model."""
    snapshot = collection()
    rng = np.random.default_rng(3)
    order = np.concatenate([BURST[:4], rng.permutation(np.arange(10, 400)), BURST[4:]])
    docids = snapshot.docids.take(order)
    given = Run({"1": Ranking(docids, np.linspace(10, 1, len(docids)) ** 2)}, "given")
    topics = [Topic("1", "w07", time=703 * DAY)]
    timed = prior_on_run(snapshot, given, topics, prior, weight=None if isinstance(prior, Auto) else 1.0)
    model = time_aware(make_ranker("bm25"), prior=prior, weight=1.0)
    found = rerank(snapshot, given, topics, model, run_weight=1.0)
    assert list(found["1"].docids) == list(timed["1"].docids) != list(given["1"].docids)


def test_a_calendar_is_made_once_a_snapshot():
    snapshot = collection()
    assert auto.calendar_of(snapshot) is auto.calendar_of(snapshot)


def test_bandwidths_of_hours_and_days_differ():
    """The table of a density follows its bandwidth, however long the range."""
    rng = np.random.default_rng(0)
    times = rng.integers(0, 9_500 * DAY, N)
    times[:30] = 5_000 * DAY + rng.integers(0, 20 * DAY, 30)
    counts = rng.poisson(0.3, (N, V))
    counts[:30, 3] += 2
    snapshot = Snapshot.from_counts(counts, [f"w{i:02d}" for i in range(V)], times=times)
    scores = [
        ranked(snapshot, time_aware(make_ranker("bm25"), prior=Density(bandwidth=h), weight=1.0), query(snapshot))[0]
        for h in (0.5 * DAY, 2.0 * DAY, 7.0 * DAY)
    ]
    by_doc = [dict(zip(r.docs.tolist(), r.scores.tolist(), strict=True)) for r in scores]
    differences = [max(abs(a[d] - b[d]) for d in range(30)) for a, b in pairwise(by_doc)]
    assert min(differences) > 0.05
