"""The penalised estimator: exact against constrained optimisers, the paper's toy, its simulation, its edges."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.estimate.time.penalised import (
    METHODS,
    POWERS,
    PenalisedLocalLikelihood,
    aligned_strength,
    choose_strength,
    discount,
    estimate,
    interpolate,
    leave_one_out_score,
    penalties,
    solve,
)

TOY_COUNTS = np.array([0.0, 2, 3, 4, 4])
TOY_GLOBAL = np.array([0.1, 0.2, 0.2, 0.2, 0.3])


def objective(theta: np.ndarray, c: np.ndarray, q: np.ndarray, lam: np.ndarray) -> float:
    """(23)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fit = np.where(c > 0, c * np.log(theta), 0.0)
        penalty = np.where(lam > 0, lam * np.abs(np.log(theta) - np.log(q)), 0.0)
    return float(fit.sum() - penalty.sum())


def optimiser(c: np.ndarray, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """(23) by a general constrained optimiser.

    With θ_w = q_w exp(a_w - b_w), a and b not negative, the problem is smooth and concave, and the simplex becomes
    Σ q_w exp(a_w - b_w) <= 1.
    """
    k = len(c)

    def loss(x: np.ndarray) -> float:
        a, b = x[:k], x[k:]
        return float(-(c * (a - b) - lam * (a + b)).sum())

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.concatenate([lam - c, lam + c])

    def room(x: np.ndarray) -> float:
        return float(1 - (q * np.exp(x[:k] - x[k:])).sum())

    def room_gradient(x: np.ndarray) -> np.ndarray:
        theta = q * np.exp(x[:k] - x[k:])
        return np.concatenate([-theta, theta])

    constraint = {"type": "ineq", "fun": room, "jac": room_gradient}
    result = minimize(
        loss,
        np.full(2 * k, 0.1),
        jac=gradient,
        bounds=[(0, 30)] * (2 * k),
        constraints=[constraint],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    theta = q * np.exp(result.x[:k] - result.x[k:])
    return theta / theta.sum()


def every_assignment(c: np.ndarray, q: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """(23) by trying each of the 3^k ways of putting words above, at and below q, with β from (32)."""
    best, best_value = q, objective(q, c, q, lam)
    for sides in product((-1, 0, 1), repeat=len(c)):
        side = np.array(sides)
        if not (side != 0).any():
            continue
        effective = c - side * lam
        moved = side != 0
        mass, share = effective[moved].sum(), q[moved].sum()
        if mass <= 0 or (effective[moved] < 0).any():
            continue
        theta = np.where(moved, effective * share / mass, q)
        value = objective(theta, c, q, lam)
        if value > best_value:
            best, best_value = theta, value
    return best


def random_problem(rng: np.random.Generator, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    c = rng.poisson(rng.exponential(4, k)).astype(float)
    c[rng.integers(k)] += 1
    return c, rng.dirichlet(np.full(k, 2.0)), rng.exponential(rng.choice([0.1, 1.0, 3.0]), k)


def test_equals_a_general_constrained_optimiser() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        c, q, lam = random_problem(rng, int(rng.integers(2, 9)))
        found, reference = solve(c, q, lam).theta, optimiser(c, q, lam)
        assert found == pytest.approx(reference, abs=2e-4)
        # the optimiser stops short of the top; nothing may lie above ours
        assert objective(found, c, q, lam) >= objective(reference, c, q, lam) - 1e-9


def test_equals_the_best_of_all_assignments() -> None:
    rng = np.random.default_rng(1)
    for _ in range(40):
        c, q, lam = random_problem(rng, int(rng.integers(2, 6)))
        assert solve(c, q, lam).theta == pytest.approx(every_assignment(c, q, lam), abs=1e-12)


def test_conditions_of_corollary_4_on_a_large_problem() -> None:
    rng = np.random.default_rng(2)
    q = 1 / np.arange(1, 5001)
    q /= q.sum()
    c = rng.multinomial(30_000, rng.permutation(q)).astype(float)
    for strength in (0.1, 10.0, 300.0):
        lam = penalties(q, strength, "sparse.5")
        solution = solve(c, q, lam)
        low, high = (c - lam) / q, (c + lam) / q
        above, below = solution.theta > q, solution.theta < q
        at = ~above & ~below
        assert solution.theta.sum() == pytest.approx(1, abs=1e-12)
        assert (low[above] > solution.beta * (1 - 1e-12)).all()
        assert (high[below] < solution.beta * (1 + 1e-12)).all()
        assert (low[at] <= solution.beta * (1 + 1e-12)).all()
        assert (high[at] >= solution.beta * (1 - 1e-12)).all()
        assert solution.moved == (above | below).sum()


def test_figure_11_toy() -> None:
    """The paths of Figure 11, left, worked out by hand from (32)-(33).

    At λ = 0: maximum likelihood. At λ = 1 words 1 and 4 have left q: β = (0 + 1 + 4 - 1)/.3 = 40/3, deviations
    -(.1 - 3/40) = -.025 and 3·3/40 - .2 = .025. Word 3 is back at λ = 3/7, word 2 at λ = 2/3. From λ = 4/3 on, where
    (4 - λ)/.2 = λ/.1, all is q.
    """

    def deviation(lam: float) -> np.ndarray:
        return solve(TOY_COUNTS, TOY_GLOBAL, np.full(5, lam)).theta - TOY_GLOBAL

    assert deviation(0.0) == pytest.approx(TOY_COUNTS / 13 - TOY_GLOBAL)
    assert deviation(1.0) == pytest.approx([-0.025, 0, 0, 0.025, 0], abs=1e-12)
    assert np.flatnonzero(np.abs(deviation(1.3)) > 1e-12).tolist() == [0, 3]
    assert not deviation(4 / 3 + 1e-9).any()
    around = (0.05, 3 / 7 - 0.01, 3 / 7 + 0.01, 2 / 3 - 0.01, 2 / 3 + 0.01)
    assert [int((np.abs(deviation(lam)) > 1e-12).sum()) for lam in around] == [5, 4, 3, 3, 2]


def test_two_words_are_a_soft_threshold() -> None:
    """Section 5.1: with two words and one λ, θ* is θ̂ moved by λ/N towards q and stopped there."""
    q = np.array([0.3, 0.7])
    for count in range(11):
        c = np.array([float(count), 10.0 - count])
        expected = np.clip(0.3, c[0] / 10 - 0.15, c[0] / 10 + 0.15)
        assert solve(c, q, np.full(2, 1.5)).theta[0] == pytest.approx(expected)


def test_lemma_1_all_counts_below_their_penalties() -> None:
    assert solve(TOY_COUNTS, TOY_GLOBAL, TOY_COUNTS + 0.1).theta.tolist() == TOY_GLOBAL.tolist()


def test_without_data_the_answer_is_the_global_model() -> None:
    for lam in (0.0, 1.0):
        assert solve(np.zeros(5), TOY_GLOBAL, np.full(5, lam)).theta.tolist() == TOY_GLOBAL.tolist()


def test_a_word_the_global_model_does_not_know_is_the_limit_of_rare_ones() -> None:
    c, lam = np.array([3.0, 5.0, 2.0]), np.array([1.0, 1.0, 2.5])
    limit = solve(c, [0.0, 1.0, 0.0], lam).theta
    near = solve(c, [1e-12, 1 - 2e-12, 1e-12], lam).theta
    assert limit == pytest.approx(near, abs=1e-9)
    assert limit[0] > 0 == limit[2]


@pytest.mark.parametrize(
    ("c", "q", "lam", "message"),
    [
        ([1.0], [0.5, 0.5], [1.0, 1.0], "one length"),
        ([1.0, -1.0], [0.5, 0.5], [1.0, 1.0], "counts"),
        ([1.0, 1.0], [0.5, 0.4], [1.0, 1.0], "sum to one, got 0.9"),
        ([1.0, 1.0], [0.5, 0.5], [1.0, np.nan], "penalties"),
    ],
)
def test_bad_problems_are_named(c: list, q: list, lam: list, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        solve(c, q, lam)


# -- the five methods ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_a_distribution_between_its_extremes(method: str) -> None:
    assert estimate(TOY_COUNTS, TOY_GLOBAL, 0.0, method) == pytest.approx(TOY_COUNTS / 13)
    middle = estimate(TOY_COUNTS, TOY_GLOBAL, 0.7, method)
    assert middle.sum() == pytest.approx(1)
    assert estimate(TOY_COUNTS, TOY_GLOBAL, 1e9, method) == pytest.approx(TOY_GLOBAL)
    assert np.abs(middle - TOY_COUNTS / 13).max() > 1e-3
    assert np.abs(middle - TOY_GLOBAL).max() > 1e-3


def test_interpolation_and_discounting_by_hand() -> None:
    """c = (3, 1), q = (.5, .5): (3 + 1)/(4 + 2) with strength 2; max(1 - 1.5, 0) = 0 with discount 1.5, r = 5/8."""
    assert interpolate([3, 1], [0.5, 0.5], 2.0) == pytest.approx([4 / 6, 2 / 6])
    assert discount([3, 1], [0.5, 0.5], 1.5) == pytest.approx([1.5 / 4 + 5 / 16, 5 / 16])


@pytest.mark.parametrize("method", POWERS)
def test_aligned_strengths_have_equal_total_penalty(method: str) -> None:
    strength = aligned_strength(TOY_GLOBAL, 0.4, method)
    assert penalties(TOY_GLOBAL, strength, method).sum() == pytest.approx(5 * 0.4)


def test_unknown_methods_are_named() -> None:
    for call in (penalties, aligned_strength):
        with pytest.raises(ParameterError, match="sparse2"):
            call(TOY_GLOBAL, 1.0, "sparse2")
    with pytest.raises(ParameterError, match="discounting"):
        choose_strength(TOY_COUNTS, TOY_GLOBAL, "discounting")


@pytest.fixture(scope="module")
def figure_15() -> dict[str, float]:
    """Lowest excess cross-entropy of each method over a range of strengths; q equals θ for 65 % of the words."""
    rng = np.random.default_rng(0)
    k, best = 1000, dict.fromkeys(METHODS, 0.0)
    for _ in range(3):
        q = 1 / np.arange(1, k + 1)
        q /= q.sum()
        moved = rng.random(k) > 0.65
        theta = q.copy()
        theta[moved] *= np.exp(rng.normal(0, 1, moved.sum()))
        theta[moved] *= q[moved].sum() / theta[moved].sum()
        c = rng.multinomial(10_000, theta).astype(float)
        for method in METHODS:
            scale = method if method in POWERS else "sparse1"
            losses = []
            for d in np.geomspace(0.05, 20, 14):
                strength = d if method == "discounting" else aligned_strength(q, d, scale)
                fitted = np.maximum(estimate(c, q, strength, method), 1e-300)
                losses.append(float(theta @ np.log(theta / fitted)))
            best[method] += min(losses) / 3
    return best


def test_figure_15_ordering(figure_15: dict[str, float]) -> None:
    """Sparse0 and Sparse.5 ahead, Sparse1 with linear interpolation, absolute discounting last."""
    ahead = max(figure_15["sparse0"], figure_15["sparse.5"])
    assert ahead < 0.8 * min(figure_15["sparse1"], figure_15["interpolation"])
    assert figure_15["sparse1"] == pytest.approx(figure_15["interpolation"], rel=0.25)
    assert figure_15["discounting"] > 1.3 * max(figure_15["sparse1"], figure_15["interpolation"])


# -- choosing the strength -------------------------------------------------------------------------------------


def exact_leave_one_out_score(c: np.ndarray, q: np.ndarray, lam: np.ndarray) -> float:
    """(41) itself: one solution for each distinct word."""
    score = 0.0
    for w in np.flatnonzero(c > 0):
        without = c.copy()
        without[w] = max(c[w] - 1.0, 0.0)
        score += c[w] * np.log(solve(without, q, lam).theta[w])
    return score


def test_approximate_leave_one_out_follows_the_exact_one() -> None:
    """Figure 16, left: the two curves overlap."""
    rng = np.random.default_rng(5)
    q = 1 / np.arange(1, 151)
    q /= q.sum()
    c = rng.multinomial(1500, 0.6 * q + 0.4 * rng.permutation(q)).astype(float)
    strengths = np.geomspace(1, 100, 7)
    approximate = np.array([leave_one_out_score(c, q, penalties(q, s)) for s in strengths])
    exact = np.array([exact_leave_one_out_score(c, q, penalties(q, s)) for s in strengths])
    assert np.argmax(approximate) == np.argmax(exact)
    assert approximate == pytest.approx(exact, rel=1e-3)
    assert np.ptp(exact) > 20 * np.abs(approximate - exact).max()


def test_chosen_strength_is_nearly_the_best() -> None:
    """Figure 16, right: within .005 nats a word of the best strength in hindsight."""
    rng = np.random.default_rng(6)
    q = 1 / np.arange(1, 1001)
    q /= q.sum()
    for _ in range(3):
        theta = np.where(rng.random(1000) < 0.5, q, rng.permutation(q))
        theta /= theta.sum()
        c = rng.multinomial(8000, theta).astype(float)
        choice = choose_strength(c, q)

        def loss(strength: float, c: np.ndarray = c, theta: np.ndarray = theta) -> float:
            return float(-theta @ np.log(np.maximum(estimate(c, q, strength), 1e-300)))

        best = min(loss(s) for s in np.geomspace(choice.tried[0], choice.tried[-1], 40))
        assert loss(choice.strength) - best < 0.005
        assert loss(choice.tried[0]) - best > 0.02 < loss(choice.tried[-1]) - best


def test_several_times_share_one_strength() -> None:
    one = choose_strength(TOY_COUNTS, TOY_GLOBAL, tried=[0.1, 1.0, 5.0])
    two = choose_strength([TOY_COUNTS, TOY_COUNTS], TOY_GLOBAL, tried=[0.1, 1.0, 5.0])
    assert two.scores == pytest.approx(2 * one.scores)


def test_kernel_weighted_counts_below_one_are_left_out_whole() -> None:
    score = leave_one_out_score([0.4, 6.0], [0.5, 0.5], [0.1, 0.1])
    beta = solve([0.4, 6.0], [0.5, 0.5], [0.1, 0.1]).beta
    assert score == pytest.approx(0.4 * np.log(0.1 / beta) + 6 * np.log((5 - 0.1) / beta))


def test_no_counts_need_no_strength() -> None:
    assert choose_strength(np.zeros(5), TOY_GLOBAL).strength >= 0
    assert estimate(np.zeros(5), TOY_GLOBAL, choose_strength(np.zeros(5), TOY_GLOBAL).strength).tolist() == (
        TOY_GLOBAL.tolist()
    )


# -- over time -------------------------------------------------------------------------------------------------


def test_penalised_over_time() -> None:
    """Within reach: (23) on the local counts; out of reach: the global model."""
    counts = csr_matrix([[5, 1, 0], [1, 4, 3]])
    local = LocalLikelihood(counts, [0.0, 10.0], 2.0, kernel="uniform")
    model = PenalisedLocalLikelihood(local, 0.8)
    q = np.array([6, 5, 3]) / 14
    assert model.at(0.5) == pytest.approx(solve([5, 1, 0], q, 0.8 * np.sqrt(q)).theta)
    assert model.at(5.0) == pytest.approx(q)
    assert model.over([0.5, 5.0], [2, 0]) == pytest.approx(np.array([model.at(0.5), model.at(5.0)])[:, [2, 0]])
