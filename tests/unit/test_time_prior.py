"""Document priors in time: equations, conventions, and how they compose with every model."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest
from places import placed

from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.density import silverman, weighted_kde
from sdretrieval.estimate.time.kernels import Kernel, kernel_names
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions
from sdretrieval.ranking.notes import TimeNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.time import prior_loops as loops
from sdretrieval.ranking.time.prior import FULL_WEIGHT, Density, Ranked, Recency, make_prior
from sdretrieval.ranking.time.wrappers import FeedbackTime, TimePrior, prior_on_run, time_aware

DAY = 86_400_000
N, V = 300, 40
PRIORS = (Recency(), Density(), Recency(bandwidth=5.0 * DAY), Density(bandwidth=3.0 * DAY), Density(bandwidth="cv"))


def collection(times=None, seed: int = 0) -> Snapshot:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.3, (N, V))
    counts[:, 0] += 1
    if times is None:
        times = rng.integers(0, 100 * DAY, N)
    return placed(Snapshot.from_counts(counts, [f"w{i:02d}" for i in range(V)], times=times))


def query(snapshot: Snapshot, time: int | None = 100 * DAY) -> Query:
    return Query.from_words(snapshot, ["w03", "w07", "w11"], qid="1", time=time)


def ranking(snapshot: Snapshot, model, q: Query, **options):
    return next(Engine(snapshot).rank(model, [q], RankOptions(hits=N, **options)))


def ranked(times, query_time=None, first=None, weights=None) -> Ranked:
    times = np.asarray(times, dtype=float)
    first = times if first is None else np.asarray(first, dtype=float)
    weights = np.full(len(first), 1 / len(first)) if weights is None else weights
    return Ranked(query_time, times.min(), times.max(), times, first, weights)


def values(ratio, times) -> np.ndarray:
    """ρ of documents of the given times."""
    times = np.asarray(times, dtype=np.int64)
    return ratio.added(np.zeros(len(times)), times, 1.0)


# -- equations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", kernel_names())
def test_recency_is_the_log_of_the_kernel(kernel):
    """ρ(D) - ρ(D') = log K_h(t_q - t_D) - log K_h(t_q - t_D'), up to the floor of 1e-9; by hand from kernels.py."""
    times, h = np.array([91, 94, 99]) * DAY, 10.0 * DAY
    ratio = Recency(kernel, h, floor=1e-9).ratio(ranked(times, 100.0 * DAY))
    rho = values(ratio, times)
    wanted = np.log(Kernel(kernel, online=True)((100.0 * DAY - times) / h))
    assert rho - rho[0] == pytest.approx(wanted - wanted[0], abs=1e-4)


def test_recency_ratio_averages_to_one_over_the_documents():
    """E_g exp ρ = 1: what makes ρ = 0 the value for an undated document."""
    times = np.random.default_rng(1).integers(0, 100 * DAY, 500)
    rho = values(Recency(bandwidth=20.0 * DAY).ratio(ranked(times, 100.0 * DAY)), times)
    assert np.exp(rho).mean() == pytest.approx(1.0, abs=1e-3)


def test_a_sharp_recency_is_computed_document_by_document():
    """One hour in a hundred days is far under the width of a bin; exp(-age/h) still comes out exactly."""
    times, h = np.array([100 * DAY - 600_000, 100 * DAY - 4_200_000, 0]), 3_600_000.0
    ratio = Recency(bandwidth=h, floor=0.01).ratio(ranked(times, 100.0 * DAY))
    rho = values(ratio, times)
    faded = [0.99 * np.exp(-600_000 / h) + 0.01, 0.99 * np.exp(-4_200_000 / h) + 0.01]
    assert rho[0] - rho[1] == pytest.approx(log(faded[0] / faded[1]), abs=1e-9)


def test_the_density_on_bins_is_the_weighted_kernel_density():
    """f̂ and ĝ from density.py (reflected at both ends), the ratio formed by hand."""
    rng = np.random.default_rng(2)
    times = np.sort(rng.integers(0, 100 * DAY, 400)).astype(float)
    times[[0, -1]] = 0, 100 * DAY
    first, weights = rng.normal(60, 8, 30).clip(0, 100) * DAY, rng.dirichlet(np.ones(30))
    h = 6.0 * DAY
    ratio = Density(bandwidth=h).ratio(ranked(times, None, first, weights))
    at = np.array([5, 50, 60, 95]) * DAY
    f = weighted_kde(first, weights, at, "gaussian", h, (0, 100 * DAY))
    g = weighted_kde(times, None, at, "gaussian", h, (0, 100 * DAY))
    assert values(ratio, at) == pytest.approx(np.log(0.95 * f / g + 0.05), abs=0.02)


def test_the_rule_for_the_bandwidth_is_silvermans():
    rng = np.random.default_rng(3)
    first, weights = rng.normal(0, 5 * DAY, 40), rng.dirichlet(np.ones(40))
    spread, size = loops.spread_in_time(first, weights)
    assert 0.9 * spread * size**-0.2 == pytest.approx(silverman(first, weights, "gaussian"), rel=1e-9)


def test_smoothing_keeps_all_mass_whatever_the_width():
    masses = np.random.default_rng(4).dirichlet(np.ones(20))
    for name in kernel_names():
        for width in (0.5, 3.0, 40.0, 500.0):
            smoothed = loops.smooth(np.arange(20) * 3, masses, Kernel(name).form.shape, width, 64)
            assert smoothed.sum() == pytest.approx(1.0)


def test_leaving_one_out_by_hand():
    """Three documents at 0, 1 and 1 days: the two of one instant are left out together."""
    t, w = np.array([0.0, 1.0, 1.0]), np.array([0.5, 0.25, 0.25])
    out = loops.left_out_density(t, w, -100.0, 100.0, Kernel("exponential").form.shape, 1.0)
    assert out == pytest.approx([np.exp(-1.0)] * 3)


def test_automatic_recency_finds_a_known_fading():
    """Evidence drawn from a uniform collection tilted by exp(-age/10 days): h within a factor of two."""
    rng = np.random.default_rng(5)
    times = rng.uniform(0, 100, 2000) * DAY
    first = (100 - rng.exponential(10, 400)) * DAY
    ratio = Recency().ratio(ranked(times, 100.0 * DAY, first[first > 0]))
    assert 5 * DAY < ratio.bandwidth < 20 * DAY
    assert ratio.trust > 0.9


@pytest.mark.parametrize("prior", [Recency(), Density()])
def test_evidence_that_follows_the_collection_has_no_weight(prior):
    """Drawn from the collection itself: over 50 draws the automatic weight is on average under a tenth of the full."""
    rng = np.random.default_rng(6)
    trusts = []
    for _ in range(50):
        times = rng.uniform(0, 100, 500) * DAY
        trusts.append(prior.ratio(ranked(times, 100.0 * DAY, rng.choice(times, 50))).trust)
    assert np.mean(trusts) < 0.1


# -- conventions -----------------------------------------------------------------------------------------------------


def test_undated_documents_keep_their_scores():
    times = np.random.default_rng(7).integers(0, 100 * DAY, N)
    times[::3] = UNDATED
    snapshot = collection(times)
    for prior in PRIORS[2:4]:  # of a given bandwidth: they have an opinion on any data
        plain = ranking(snapshot, make_ranker("bm25"), query(snapshot))
        timed = ranking(snapshot, time_aware(make_ranker("bm25"), prior=prior, weight=1.0), query(snapshot))
        before = dict(zip(plain.docs, plain.scores, strict=True))
        after = dict(zip(timed.docs, timed.scores, strict=True))
        assert all(after[d] == before[d] for d in before if times[d] == UNDATED)
        assert any(after[d] != before[d] for d in before)


def test_a_topic_without_a_time_has_no_recency_but_a_density():
    snapshot = collection()
    bm25, timeless = make_ranker("bm25"), query(snapshot, None)
    plain = ranking(snapshot, bm25, timeless)
    recent = ranking(snapshot, time_aware(bm25, prior=Recency(), weight=1.0), timeless)
    dense = ranking(snapshot, time_aware(bm25, prior=Density(), weight=1.0), timeless)
    assert np.array_equal(recent.docs, plain.docs) and np.array_equal(recent.scores, plain.scores)
    [note] = recent.notes
    assert isinstance(note, TimeNote) and not note.has_time
    assert not np.array_equal(dense.scores, plain.scores)


def test_the_future_has_the_floor_and_the_present_the_peak():
    """At 50 days: the document of that instant is most recent, those after it rank with the infinitely old."""
    times = np.array([10, 50, 51, 90]) * DAY
    prior = Recency(bandwidth=1.0 * DAY, floor=0.02)
    rho = values(prior.ratio(ranked(times, 50.0 * DAY)), times)
    assert rho[1] == rho.max()
    assert rho[2] == pytest.approx(rho[1] + log(0.02), abs=1e-9)
    assert rho[3] == rho[2] == pytest.approx(rho[0], abs=1e-9)


def test_a_query_before_every_document_changes_nothing():
    snapshot = collection()
    early = query(snapshot, -5 * DAY)
    plain = ranking(snapshot, make_ranker("sd3"), early)
    for prior in (Recency(), Recency(bandwidth=3.0 * DAY)):
        timed = ranking(snapshot, time_aware(make_ranker("sd3"), prior=prior, weight=1.0), early)
        assert np.array_equal(timed.docs, plain.docs)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("times", [np.full(N, 7 * DAY), np.full(N, UNDATED)])
def test_one_instant_and_no_dates_change_nothing(prior, times):
    snapshot = collection(times)
    plain = ranking(snapshot, make_ranker("sd3"), query(snapshot))
    timed = ranking(snapshot, time_aware(make_ranker("sd3"), prior=prior, weight=1.0), query(snapshot))
    assert np.array_equal(timed.docs, plain.docs) and np.array_equal(timed.scores, plain.scores)


# -- composition -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(rankers()))
@pytest.mark.parametrize("candidates", [False, True])
def test_a_constant_prior_changes_no_ranking_of_any_model(name, candidates):
    snapshot = collection()
    q = query(snapshot)
    options = {"candidates": {"1": np.arange(0, N, 2)}} if candidates else {}
    plain = ranking(snapshot, make_ranker(name), q, **options)
    for constant in (Recency(bandwidth=inf), None):
        timed = ranking(snapshot, time_aware(make_ranker(name), prior=constant, weight=1.0), q, **options)
        assert np.array_equal(timed.docs, plain.docs) and np.array_equal(timed.scores, plain.scores)


@pytest.mark.parametrize("name", sorted(rankers()))
def test_a_strong_recency_brings_any_model_to_the_newest(name):
    """With a weight of ten million spreads the order is that of the times alone."""
    snapshot = collection()
    timed = ranking(
        snapshot, time_aware(make_ranker(name), prior=Recency(bandwidth=30.0 * DAY), weight=1e7), query(snapshot)
    )
    times = np.asarray(snapshot.times)[timed.docs]
    assert (np.diff(times) <= 0).all()


def test_the_scale_of_the_scores_does_not_matter():
    """Scores times 1000 (precision scales sd's scores): the same documents in the same order."""
    snapshot = collection()
    orders = []
    for scale in (1.0, 1000.0):
        scores = scale * np.random.default_rng(8).normal(size=N)
        session_model = time_aware(make_ranker("bm25"), prior=Recency(bandwidth=9.0 * DAY), weight=0.5)
        orders.append(np.argsort(-_adjusted(snapshot, session_model, scores)))
    assert np.array_equal(*orders)


def _adjusted(snapshot: Snapshot, model: TimePrior, scores: np.ndarray) -> np.ndarray:
    from sdretrieval.ranking.engine import Result

    engine = Engine(snapshot)
    q = query(snapshot)
    empty = Result(q, np.zeros(0, dtype=np.int64), np.zeros(0), model.first(q, engine.statistics))
    return model.hooks(engine).adjusted(engine, empty, (np.arange(N), scores), None)[1]


def test_ties_are_broken_by_time():
    snapshot = collection()
    scores = _adjusted(
        snapshot, time_aware(make_ranker("bm25"), prior=Recency(bandwidth=9.0 * DAY), weight=1.0), np.zeros(N)
    )
    assert np.argmax(scores) == np.argmax(snapshot.times)


@pytest.mark.parametrize("evidence", ["score", "posterior", "rank", "uniform"])
def test_every_kind_of_evidence_ranks(evidence):
    snapshot = collection()
    model = time_aware(make_ranker("rm3"), prior=Density(), weight=0.5, evidence=evidence)
    assert np.isfinite(ranking(snapshot, model, query(snapshot)).scores).all()


def test_judged_documents_are_the_evidence():
    """Judged documents of days 20 to 21: the density's best time is there, whatever the scores say."""
    times = np.linspace(0, 100 * DAY, N).astype(np.int64)
    snapshot = collection(times)
    relevant = np.flatnonzero((times > 20 * DAY) & (times < 23 * DAY))
    model = time_aware(make_ranker("rm3"), prior=Density(), weight=1e3)
    judged = {"1": Judgments(relevant, np.zeros(0, dtype=np.int64))}
    result = ranking(snapshot, model, query(snapshot), judged=judged)
    assert abs(times[result.docs[0]] - 21.5 * DAY) < 3 * DAY


@pytest.mark.parametrize("name", [n for n in sorted(rankers()) if make_ranker(n).uses_feedback])
def test_feedback_is_weighted_by_time(name):
    snapshot = collection()
    weights = {}
    for label, model in (
        ("plain", make_ranker(name)),
        ("none", time_aware(make_ranker(name), feedback=FeedbackTime(weight=0.0))),
        ("query", time_aware(make_ranker(name), feedback=FeedbackTime(bandwidth=10.0 * DAY))),
        ("mode", time_aware(make_ranker(name), feedback=FeedbackTime("mode"))),
    ):
        result = ranking(snapshot, model, query(snapshot))
        weights[label] = result.expansion.weights / result.expansion.weights.sum()
        ages = 100 * DAY - np.asarray(snapshot.times)[result.feedback.docs]
    assert weights["none"] == pytest.approx(weights["plain"])
    factors = 0.95 * np.exp(-ages / (10.0 * DAY)) + 0.05
    if name != "blend":  # its weights are means over depths, each emphasised by itself
        assert weights["query"] == pytest.approx(weights["plain"] * factors / (weights["plain"] @ factors), rel=1e-5)
    assert not np.allclose(weights["mode"], weights["plain"])


def test_feedback_time_says_nothing_without_spread_or_query_time():
    times = np.array([1.0, 2.0, np.nan]) * DAY
    assert FeedbackTime().emphasis(times, None) is None
    assert FeedbackTime("mode").emphasis(np.full(3, 5.0 * DAY), 9.0 * DAY) is None
    factors = FeedbackTime(bandwidth=1.0 * DAY).emphasis(times, 3.0 * DAY)
    assert factors[2] == pytest.approx(factors[:2].mean())  # an undated document: as the others on average


def test_names_settings_and_changes():
    model = time_aware(make_ranker("sd3"), prior=Recency(), as_of=True)
    assert model.name == "sd3+recency+as-of"
    assert model.with_(fb_docs=7, weight=0.2).settings()["fb_docs"] == 7
    assert model.with_(weight=0.2).settings()["time"]["weight"] == 0.2
    assert model.settings()["time"]["prior"]["kernel"] == "exponential"


def test_threads_and_company_do_not_change_a_ranking():
    snapshot = collection()
    queries = [Query.from_words(snapshot, [f"w{i:02d}", "w07"], qid=str(i), time=(40 + i) * DAY) for i in range(12)]
    model = time_aware(make_ranker("sd3"), prior=Density())
    together = list(Engine(snapshot, threads=3).rank(model, queries, RankOptions(hits=50)))
    for q, result in zip(queries, together, strict=True):
        alone = next(Engine(snapshot).rank(model, [q], RankOptions(hits=50)))
        assert np.array_equal(alone.docs, result.docs) and np.array_equal(alone.scores, result.scores)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Recency(floor=0.0),
        lambda: Recency(bandwidth=-1.0),
        lambda: Recency(bandwidth="cv"),
        lambda: Recency(kernel="boxcar"),
        lambda: Density(bandwidth="wide"),
        lambda: make_prior("novelty"),
        lambda: FeedbackTime("noon"),
        lambda: FeedbackTime(weight=-1.0),
        lambda: time_aware(make_ranker("ql"), prior=Recency(), weight=-0.1),
        lambda: time_aware(make_ranker("ql"), prior=Recency(), evidence="guess"),
        lambda: time_aware(make_ranker("ql"), prior=Recency(), time_docs=0),
        lambda: time_aware(time_aware(make_ranker("ql"), as_of=True), as_of=True),
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_full_weights_are_those_documented():
    assert FULL_WEIGHT == {"recency": 0.5, "density": 0.3}


def test_a_prior_on_the_scores_of_any_run():
    """The same documents; with a large weight, in the order of their times."""
    snapshot = collection()
    docids = [f"d{i}" for i in range(40)]
    run = Run({"1": Ranking(docids, np.linspace(9, 1, 40))}, "given")
    topics = [Topic("1", "w03", 100 * DAY, {})]
    same = prior_on_run(snapshot, run, topics, Recency(bandwidth=inf))
    assert list(same["1"].docids) == docids and same.tag == "given+recency"
    timed = prior_on_run(snapshot, run, topics, Recency(bandwidth=30.0 * DAY), weight=1e7)
    times = np.asarray(snapshot.times)[snapshot.docids.find_many(list(timed["1"].docids))]
    assert sorted(timed["1"].docids) == sorted(docids) and (np.diff(times) <= 0).all()
