"""Bandwidth selection: scores against plain loops, choices against optima known from simulation."""

from __future__ import annotations

from math import inf, log

import numpy as np
import pytest
from bias_variance import DriftPoint, exact_mise, optimal_bandwidth
from scipy.sparse import csr_matrix
from simulated_drift import SimulatedDrift, random_drift

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import coarse_resolution, format_duration, parse_duration, timeline
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.bandwidth import candidate_bandwidths, frequency_groups, lscv, mlcv, plug_in
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Kernel, kernel_names
from sdretrieval.estimate.time.local_likelihood import GroupedLocalLikelihood, LocalLikelihood

DAYS = 365.0


@pytest.fixture(scope="module")
def drift() -> SimulatedDrift:
    """A year in which 200 words come and go about one and a half times."""
    return random_drift(200, np.random.default_rng(11), start=0, end=DAYS, cycles=1.5, density_slope=0.3)


@pytest.fixture(scope="module")
def sample(drift: SimulatedDrift) -> tuple[csr_matrix, np.ndarray]:
    """Whole days, as real dates are."""
    rng = np.random.default_rng(12)
    times = np.floor(drift.sample_times(2000, rng))
    return drift.sample(2000, 50, rng, times=times)


# -- held-out likelihood against plain loops --------------------------------------------------------------------


def plain_held_out(
    counts: np.ndarray,
    times: np.ndarray,
    fold_of: np.ndarray,
    h: float,
    kernel: Kernel,
    group_of: np.ndarray,
    background: float,
    additive: float,
) -> tuple[float, np.ndarray]:
    """Every held-out document scored by its own model, made from scratch."""
    n_words = counts.shape[1]
    total, by_group = 0.0, np.zeros(group_of.max() + 1)
    for d in range(len(counts)):
        others = fold_of != fold_of[d]
        seen = others & (times < times[d]) if kernel.online else others
        back = counts[seen].sum(axis=0) + additive
        p = back / back.sum()
        weights = kernel.weights(times[d] - times, h) * others
        local = weights @ counts
        if local.sum() > 0:
            p = (1 - background) * local / local.sum() + background * p
        total += float(counts[d] @ np.log(p))
        for group in range(len(by_group)):
            mine = group_of == group
            rest = counts[d][~mine].sum()
            by_group[group] += counts[d][mine] @ np.log(p[mine])
            by_group[group] += rest * log(1 - p[mine].sum()) if rest else 0.0
    assert n_words == len(group_of)
    return total, by_group


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(
    ("name", "moments"), [(n, m) for n in kernel_names() for m in (False, True) if not m or Kernel(n).polynomial]
)
def test_held_out_equals_plain_loops(monkeypatch, name: str, online: bool, moments: bool) -> None:
    """Both ways to the sums: windows added up anew, and moments carried along."""
    kernel = Kernel(name, online)
    monkeypatch.setattr(FoldedTimeline, "_moments_wanted", lambda self, kernel, h: moments and h > 0)
    rng = np.random.default_rng(4)
    counts = rng.poisson(0.6, (50, 8))
    times = np.round(rng.uniform(0, 12, 50))
    fold_of, group_of = rng.integers(0, 3, 50), np.array([0, 0, 1, 1, 1, 2, 2, 2])
    folded = FoldedTimeline(csr_matrix(counts), times, folds=fold_of, group_of=group_of, background=0.2, additive=0.3)
    for h in (0.0, 2.0, 4.5, 12.0, inf):
        got = folded.score(h, kernel)
        total, by_group = plain_held_out(counts, times, fold_of, h, kernel, group_of, 0.2, 0.3)
        assert got.total == pytest.approx(total, rel=1e-9)
        assert got.by_group == pytest.approx(by_group, rel=1e-9)
        assert got.by_time.sum() == pytest.approx(total)
        assert got.by_word.sum() == pytest.approx(total)
        assert got.words == counts.sum()


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("name", [n for n in kernel_names() if Kernel(n).polynomial])
def test_held_out_equals_plain_loops_across_gaps(monkeypatch, name: str, online: bool) -> None:
    """Dates with gaps as long as a window, or nearly: what has left it leaves no trace."""
    kernel = Kernel(name, online)
    monkeypatch.setattr(FoldedTimeline, "_moments_wanted", lambda self, kernel, h: h > 0)
    rng = np.random.default_rng(6)
    counts = rng.poisson(0.6, (300, 8))
    times = np.concatenate([rng.uniform(0, 5, 150), rng.uniform(9, 11, 140), [14.99, 14.995], rng.uniform(19, 20, 8)])
    fold_of, group_of = rng.integers(0, 3, 300), np.array([0, 0, 1, 1, 1, 2, 2, 2])
    folded = FoldedTimeline(csr_matrix(counts), times, folds=fold_of, group_of=group_of, background=0.2, additive=0.3)
    for h in (1.7, 3.9, 4.0, 4.3):
        got = folded.score(h, kernel)
        total, by_group = plain_held_out(counts, times, fold_of, h, kernel, group_of, 0.2, 0.3)
        assert got.total == pytest.approx(total, rel=1e-7)
        assert got.by_group == pytest.approx(by_group, rel=1e-7)


def test_a_gap_in_the_dates_costs_nothing() -> None:
    """Words that never drift, online, with a gap longer than the window: the first documents after it are scored by
    the past, not by rounding residue."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(50))
    counts = rng.multinomial(40, p, 400)
    times = np.concatenate([np.linspace(0, 50, 200), np.linspace(80, 100, 200)])
    folded = FoldedTimeline(csr_matrix(counts), times, folds=5)
    for h in (20.0, 25.0):
        assert folded._moments_wanted(Kernel("tricube", online=True), h)
        moved = folded.score(h, Kernel("tricube", online=True)).by_time
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(FoldedTimeline, "_moments_wanted", lambda self, kernel, h: False)
            anew = folded.score(h, Kernel("tricube", online=True)).by_time
        assert moved == pytest.approx(anew, rel=1e-6)


def test_windows_taken_in_pieces_change_nothing(monkeypatch, sample) -> None:
    counts, times = sample
    folded = FoldedTimeline(counts, times)
    for kernel in (Kernel("gaussian"), Kernel("gaussian", online=True)):
        whole = folded.score(9.0, kernel).total
        with monkeypatch.context() as patch:
            patch.setattr("sdretrieval.estimate.time.held_out.WEIGHTS_AT_ONCE", 1000)
            assert folded.score(9.0, kernel).total == pytest.approx(whole, rel=1e-12)


# -- likelihood choices ----------------------------------------------------------------------------------------


def true_likelihood(drift: SimulatedDrift, model, background: float = 0.1) -> float:
    """E log p of a fresh word at times uniform over the year: what a held-out set of any size would approach."""
    grid = np.linspace(1, DAYS - 1, 80)
    truth = drift.theta(grid)
    floor = background * truth.mean(axis=0)
    return float((truth * np.log((1 - background) * model.over(grid) + floor)).sum() / len(grid))


def test_mlcv_is_within_one_percent_of_the_best_bandwidth(drift, sample) -> None:
    """Figure 7, left. Also: it beats both extremes, and by more than that one percent of the gain."""
    counts, times = sample
    grid = np.append(np.geomspace(2, DAYS, 16), inf)
    chosen = mlcv(counts, times, bandwidths=grid, refine=False).bandwidth

    def value(h: float) -> float:
        return true_likelihood(drift, LocalLikelihood(counts, times, h, empty="global"))

    truth = np.array([value(h) for h in grid])
    assert value(chosen) >= truth.max() - 0.01 * abs(truth.max())
    assert abs(np.log(chosen / grid[np.argmax(truth)])) <= np.log(grid[1] / grid[0]) * 1.01  # one step off at most
    assert value(chosen) > value(inf) + 0.02
    assert value(chosen) > value(0.0) + 0.02


def test_offline_beats_online_and_local_beats_global(sample) -> None:
    """Figure 5, both scenarios, by the held-out likelihood itself."""
    counts, times = sample
    offline = mlcv(counts, times, kernel=Kernel("triangular"))
    online = mlcv(counts, times, kernel=Kernel("triangular", online=True))
    assert offline.scores.max() > online.scores.max() + 0.005
    for choice in (offline, online):
        assert choice.scores.max() > choice.scores[-1] + 0.005 and choice.bandwidths[-1] == inf
        assert choice.scores.max() > choice.scores[0] + 0.005
    assert online.bandwidth < offline.bandwidth


def test_mlcv_without_drift_stays_global() -> None:
    still = random_drift(50, np.random.default_rng(0), amplitude=0.0, end=DAYS)
    counts, times = still.sample(600, 40, np.random.default_rng(1))
    choice = mlcv(counts, times)
    assert choice.bandwidth >= DAYS / 2


def test_refining_never_does_worse(sample) -> None:
    counts, times = sample
    coarse, fine = (mlcv(counts, times, refine=refine) for refine in (False, True))
    assert len(fine.bandwidths) > len(coarse.bandwidths)
    assert fine.scores.max() >= coarse.scores.max()


def test_mlcv_does_not_see_the_order_or_the_undated(sample) -> None:
    """Folds go with documents here; undated ones and a shuffle must change nothing."""
    counts, times = sample
    folds = np.arange(len(times)) % 10
    expected = mlcv(counts, times, folds=folds, bandwidths=[10.0, 30.0], refine=False).scores
    shuffled = np.random.default_rng(0).permutation(len(times))
    again = mlcv(counts[shuffled], times[shuffled], folds=folds[shuffled], bandwidths=[10.0, 30.0], refine=False)
    assert again.scores == pytest.approx(expected, rel=1e-12)
    stamps = np.append(times.astype(np.int64), [UNDATED] * 5)
    more = csr_matrix(np.vstack([counts.toarray(), np.ones((5, counts.shape[1]))]))
    undated = mlcv(more, stamps, folds=np.append(folds, [0] * 5), bandwidths=[10.0, 30.0], refine=False)
    assert undated.scores == pytest.approx(expected, rel=1e-12)


def test_time_varying_bandwidth_follows_the_speed_of_the_drift() -> None:
    """Figure 7, right: a drift that speeds up wants wide kernels first and narrow ones later, and rewards them."""
    fast = random_drift(150, np.random.default_rng(3), end=DAYS, cycles=0.7, chirp=6.0)
    counts, times = fast.sample(4000, 60, np.random.default_rng(4))
    choice = mlcv(counts, times)
    schedule = choice.schedule()
    early, late = schedule(np.array([0.15 * DAYS, 0.85 * DAYS]))
    assert early > 1.5 * late
    fixed = true_likelihood(fast, LocalLikelihood(counts, times, choice.bandwidth, empty="global"))
    varying = true_likelihood(fast, LocalLikelihood(counts, times, schedule, empty="global"))
    assert varying > fixed


def test_word_groups_frequent_narrow_rare_wide(drift, sample) -> None:
    """Section 3.4: and the grouped model beats the single bandwidth."""
    counts, times = sample
    group_of = frequency_groups(counts, 3)
    choice = mlcv(counts, times, group_of=group_of)
    assert choice.by_group[0] < choice.by_group[-1]
    single = true_likelihood(drift, LocalLikelihood(counts, times, choice.bandwidth, empty="global"))
    grouped = GroupedLocalLikelihood(counts, times, choice.by_group.tolist(), group_of, empty="global")
    assert true_likelihood(drift, grouped) > single


def test_frequency_groups_share_the_tokens() -> None:
    counts = csr_matrix([[40, 1, 30, 2, 20, 3, 10, 4, 5, 5]])
    group_of = frequency_groups(counts, 3)
    assert group_of.tolist() == [0, 2, 1, 2, 1, 2, 2, 2, 2, 2]
    assert frequency_groups(csr_matrix([[1000, 1]]), 4).tolist() == [0, 1]  # none left empty


# -- least squares ---------------------------------------------------------------------------------------------


def plain_lscv(counts: np.ndarray, times: np.ndarray, h: float, kernel: Kernel) -> float:
    """The corrected (18), summed over words: documents left out one by one, g by the histogram of distinct times."""
    distinct = np.unique(times)
    step = float(np.median(np.diff(distinct)))
    score = 0.0
    for t in distinct:
        theta = LocalLikelihood(csr_matrix(counts), times, h, kernel=kernel, empty="global").at(t)
        here = np.flatnonzero((times == t) & (counts.sum(axis=1) > 0))
        if len(here) == 0 or (kernel.online and t == distinct[0]):
            continue
        cross = 0.0
        for d in here:
            rest = np.arange(len(times)) != d
            without = LocalLikelihood(csr_matrix(counts[rest]), times[rest], h, kernel=kernel, empty="global").at(t)
            cross += float(without @ counts[d]) / counts[d].sum() / len(here)
        score += step * (float(theta @ theta) - 2 * cross)
    return score


@pytest.mark.parametrize("kernel", [Kernel("tricube"), Kernel("uniform"), Kernel("tricube", online=True)], ids=str)
def test_lscv_equals_plain_loops(kernel: Kernel) -> None:
    rng = np.random.default_rng(9)
    counts, times = rng.poisson(0.7, (40, 6)), np.round(rng.uniform(0, 10, 40))
    grid = [0.5, 1.7, 4.0, inf]
    got = lscv(csr_matrix(counts), times, kernel=kernel, bandwidths=grid).scores
    expected = [plain_lscv(counts, times, h, kernel) for h in grid]
    assert got == pytest.approx(expected, rel=1e-9)


def test_lscv_estimates_the_mise_up_to_a_constant() -> None:
    """Differences between bandwidths are those of the exact mise, on average over samples: (17) without its last term.

    Times are spread unevenly (g rises ninefold), which is what the factor 1/g is for.
    """
    rng = np.random.default_rng(5)
    known = random_drift(8, rng, end=40.0, cycles=1.5, density_slope=0.8)
    times = np.floor(known.sample_times(400, rng)) + 0.5
    lengths = np.full(400, 15)
    grid = np.array([2.5, 5.0, 10.0, 20.0])
    days = np.unique(times)
    mise = np.array([exact_mise(known.theta, times, lengths, days, h).sum() for h in grid])
    scores = []
    for _ in range(60):
        counts, _ = known.sample(400, 15, rng, times=times, lengths=lengths)
        scores.append(lscv(counts, times, bandwidths=grid).scores)
    differences = np.diff(scores, axis=1)
    error = differences.std(axis=0) / np.sqrt(len(scores))
    # the trapezoid rule of the mise and the sum over days of lscv differ by the two half days at the ends
    assert np.all(np.abs(differences.mean(axis=0) - np.diff(mise)) < 4 * error + 0.03 * np.abs(np.diff(mise)))
    assert np.all(np.abs(np.diff(mise)) > 4 * error), "differences too small to be told from noise prove nothing"


def test_18_as_printed_cannot_choose(sample) -> None:
    """Its second term, summed over words as (19) asks, is the constant 2: what is left favours the widest kernel."""
    counts, times = sample
    model = LocalLikelihood(counts, times, 10.0)
    left_out = model.over(times[:5])  # any θ̂ sums to one, with or without a document
    assert left_out.sum(axis=1) == pytest.approx(np.ones(5))
    norms = [(LocalLikelihood(counts, times, h).over(np.unique(times)) ** 2).sum() for h in (10.0, 40.0, inf)]
    assert norms[0] > norms[1] > norms[2]


def test_lscv_lands_at_the_least_mise(drift, sample) -> None:
    counts, times = sample
    grid = np.geomspace(3, DAYS, 14)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    table = drift.theta(np.arange(DAYS))  # the times are whole days
    mise = [exact_mise(lambda t: table[t.astype(int)], times, lengths, np.arange(0.0, DAYS, 6), h).sum() for h in grid]
    chosen = lscv(counts, times, bandwidths=grid).bandwidth
    assert abs(np.log(chosen / grid[int(np.argmin(mise))])) < np.log(grid[1] / grid[0]) * 1.01  # within a step


# -- plug-in ---------------------------------------------------------------------------------------------------


def true_points(drift: SimulatedDrift, n: int, mean_length: float, grid: np.ndarray) -> list[DriftPoint]:
    theta, velocity, acceleration = drift.theta(grid), drift.velocity(grid), drift.acceleration(grid)
    return [
        DriftPoint(
            theta[i], velocity[i], acceleration[i], float(drift.density(t)), drift.density_derivative(), n, mean_length
        )
        for i, t in enumerate(grid)
    ]


def test_plug_in_is_near_the_asymptotic_optimum(drift, sample) -> None:
    """(20), once with everything known and once with everything estimated."""
    counts, times = sample
    grid = np.linspace(20, DAYS - 20, 40)
    points = true_points(drift, 2000, 50, grid)
    for kernel in (Kernel("tricube"), Kernel("triangular")):
        bias = np.trapezoid([(p.curvature**2).sum() for p in points], grid)
        noise = np.trapezoid([p.spread.sum() / (2000 * 50 * p.density) for p in points], grid)
        known = (kernel.moment(0, 2) * noise / (4 * kernel.moment(2, 1) ** 2 * bias)) ** 0.2
        assert plug_in(counts, times, kernel=kernel).bandwidth == pytest.approx(known, rel=0.2)
    online = Kernel("tricube", online=True)
    median = float(np.median([optimal_bandwidth(p, kernel=online) for p in points]))
    assert plug_in(counts, times, kernel=online).bandwidth == pytest.approx(median, rel=0.3)


def test_plug_in_over_time_follows_the_speed_of_the_drift() -> None:
    fast = random_drift(100, np.random.default_rng(3), end=DAYS, cycles=0.5, chirp=4.0)
    counts, times = fast.sample(4000, 60, np.random.default_rng(4))
    choice = plug_in(counts, times)
    early = np.median(choice.varying[choice.times < DAYS / 3])
    late = np.median(choice.varying[choice.times > 2 * DAYS / 3])
    assert early > 1.3 * late


def test_plug_in_without_drift_is_wide() -> None:
    """The noise of 300 words' derivatives must not be taken for drift."""
    still = random_drift(300, np.random.default_rng(0), amplitude=0.0, end=DAYS)
    counts, times = still.sample(1500, 40, np.random.default_rng(2))
    assert plug_in(counts, times).bandwidth > DAYS / 2


def test_plug_in_allows_for_bursty_documents(drift) -> None:
    """Documents twice as noisy as multinomial ones want a wider kernel; "multinomial" does not notice."""
    rng = np.random.default_rng(8)
    counts, times = drift.sample(2000, 50, rng, concentration=12.0)
    robust, printed = (plug_in(counts, times, variance=v).bandwidth for v in ("documents", "multinomial"))
    design = 1 + (50 - 1 + 1) / (12 + 1)  # of words: 1 + (length - 1)/(concentration + 1), lengths being Poisson
    assert robust / printed == pytest.approx(design**0.2, rel=0.05)


# -- edges -----------------------------------------------------------------------------------------------------


def test_one_instant_has_no_bandwidth_but_the_infinite() -> None:
    counts, times = csr_matrix([[3, 1], [2, 2], [1, 1]]), [5.0, 5.0, 5.0]
    assert candidate_bandwidths(times).tolist() == [inf]
    assert mlcv(counts, times, folds=2).bandwidth == inf
    assert lscv(counts, times).bandwidth == inf
    assert plug_in(counts, times).bandwidth == inf
    assert mlcv(counts, times, folds=2).schedule()(np.array([5.0])).tolist() == [inf]


def test_a_single_document() -> None:
    counts = csr_matrix([[3, 1]])
    assert mlcv(counts, [5.0]).bandwidth == inf
    assert lscv(counts, [5.0]).bandwidth == inf
    assert plug_in(counts, [5.0]).bandwidth == inf


@pytest.mark.parametrize("select", [mlcv, lscv, plug_in])
def test_no_dated_document_is_an_error(select) -> None:
    with pytest.raises(ParameterError, match="no dated document"):
        select(csr_matrix([[3, 1]]), np.array([UNDATED]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, t: mlcv(c, t, folds=1), "at least 2 folds"),
        (lambda c, t: mlcv(c, t, background=0.0), "background"),
        (lambda c, t: mlcv(c, t, bandwidths=[]), "no bandwidth"),
        (lambda c, t: mlcv(c, t, folds=np.zeros(1, dtype=int)), "1 folds given for 2 documents"),
        (lambda c, t: plug_in(c, t, variance="none"), "variance='none'"),
        (lambda c, t: frequency_groups(c, 0), "groups"),
    ],
)
def test_bad_arguments_are_named(call, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call(csr_matrix([[3, 1], [1, 1]]), [1.0, 2.0])


# -- time lines and lengths of time ----------------------------------------------------------------------------


def test_timeline_merges_sorts_and_leaves_out() -> None:
    line = timeline(csr_matrix([[1, 0], [0, 2], [3, 0], [5, 5]]), np.array([20, 10, 20, UNDATED]))
    assert line.times.tolist() == [10, 20]
    assert line.counts.toarray().tolist() == [[0, 2], [4, 0]]
    assert line.documents.tolist() == [1, 2]
    assert line.row_of.tolist() == [1, 0, 1, -1]
    assert line.undated == 1


def test_coarse_resolution_leaves_few_bins() -> None:
    times = np.random.default_rng(0).uniform(0, 1e6, 3000)
    width = coarse_resolution(times, 100)
    assert width is not None
    assert len(timeline(csr_matrix(np.ones((3000, 1))), times, resolution=width).times) <= 101
    assert coarse_resolution([1.0, 2.0, 2.0]) is None


@pytest.mark.parametrize(
    ("text", "days"),
    [("7", 7), ("0.5", 0.5), ("12h", 0.5), ("2w", 14), ("day", 1), ("90min", 1 / 16), ("1e2d", 100), ("inf", inf)],
)
def test_parse_duration(text: str, days: float) -> None:
    assert parse_duration(text) == pytest.approx(days * 86_400_000)


@pytest.mark.parametrize("text", ["", "-3", "3 fortnights", "d", "nan", "1,5"])
def test_parse_duration_names_what_it_cannot_read(text: str) -> None:
    with pytest.raises(ParameterError, match="not a length of time"):
        parse_duration(text)


def test_format_duration() -> None:
    texts = [format_duration(parse_duration(x)) for x in ("1d", "36h", "90min", "5s", "inf")]
    assert texts == ["1 day", "1.5 days", "1.5 hours", "5 seconds", "infinite (global)"]
