"""Local logistic regression (22): against its equation, against scikit-learn, and in its limits."""

from __future__ import annotations

import json
from math import inf

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.learn.classify.local_logistic import KIND, LocalLogisticRegression


def drifting(n: int = 400, classes: int = 2, seed: int = 0, turn: float = np.pi) -> tuple:
    """Two features; the direction that separates the classes turns by ``turn`` over the times 0 … 100."""
    rng = np.random.default_rng(seed)
    times = rng.uniform(0, 100, n)
    X = rng.normal(size=(n, 2))
    angle = turn * times / 100
    along = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    y = np.digitize(along, np.quantile(along, np.arange(1, classes) / classes))
    return X, y, times


@pytest.mark.parametrize("kind", [{}, {"online": True}])
def test_scikit_learns_own_checks(kind: dict) -> None:
    check_estimator(LocalLogisticRegression(**kind), on_skip=None)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_l1_passes_them_too_where_its_solver_does() -> None:
    stochastic = "saga, scikit-learn's solver of L1 with several classes, stops before weights equal repetitions"
    check_estimator(
        LocalLogisticRegression(penalty="l1"),
        on_skip=None,
        expected_failed_checks={
            "check_sample_weight_equivalence_on_dense_data": stochastic,
            "check_sample_weight_equivalence_on_sparse_data": stochastic,
        },
    )


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("name", ["tricube", "uniform", "exponential"])
def test_equals_the_equation(name: str, online: bool) -> None:
    """(22) with its L2 penalty, handed to a generic optimiser as it stands."""
    X, y, times = drifting(120)
    h, t, C = 25.0, 60.0, 2.0
    model = LocalLogisticRegression(bandwidth=h, kernel=name, online=online, C=C, tol=1e-9).fit(X, y, times)
    kernel = Kernel(name, online)
    weight = np.array([kernel((t - tau) / h) / kernel(1e-12) for tau in times]).ravel()
    sign = np.where(y == 1, 1.0, -1.0)

    def loss(eta: np.ndarray) -> float:
        return float(weight @ np.log1p(np.exp(-sign * (X @ eta[:2] + eta[2]))) + eta[:2] @ eta[:2] / (2 * C))

    found = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    local = model.model_at(t)
    np.testing.assert_allclose([*local.coef[0], local.intercept[0]], found.x, atol=1e-4)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_infinite_bandwidth_is_scikit_learns_model(penalty: str, classes: int) -> None:
    X, y, times = drifting(200, classes)
    ours = LocalLogisticRegression(bandwidth=inf, penalty=penalty, tol=1e-8, max_iter=20_000).fit(X, y, times)
    solver = "lbfgs" if penalty == "l2" else "liblinear" if classes == 2 else "saga"
    theirs = LogisticRegression(
        l1_ratio=float(penalty == "l1"), solver=solver, tol=1e-8, max_iter=20_000, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X, times), theirs.predict_proba(X), atol=1e-4)


def test_follows_a_meaning_that_turns_round() -> None:
    X, y, times = drifting(1500)
    train = np.arange(1500) % 2 == 0
    local = LocalLogisticRegression(bandwidth=15.0, resolution=2.5).fit(X[train], y[train], times[train])
    whole = LocalLogisticRegression(bandwidth=inf).fit(X[train], y[train], times[train])
    assert local.score(X[~train], y[~train], times[~train]) > whole.score(X[~train], y[~train], times[~train]) + 0.2


@pytest.mark.parametrize("online", [False, True])
def test_cross_validation_sees_drift_and_its_absence(online: bool) -> None:
    for turn, expect_local in ((2 * np.pi, True), (0.0, False)):
        X, y, times = drifting(600, turn=turn)
        model = LocalLogisticRegression(online=online, resolution=5.0, bandwidths=[10.0, 30.0, inf], max_fits=20).fit(
            X, y, times
        )
        assert (model.bandwidth_ < inf) == expect_local
        assert len(model.cv_results_["log_loss"]) == 3


def test_choosing_bandwidth_and_penalty_together() -> None:
    X, y, times = drifting(300)
    model = LocalLogisticRegression(
        resolution=10.0, bandwidths=[20.0, inf], C=[1e-4, 10.0], scoring="error", max_fits=15
    ).fit(X, y, times)
    assert (model.bandwidth_, model.C_) == (20.0, 10.0)
    assert model.cv_results_["C"].tolist() == [1e-4, 10.0, 1e-4, 10.0]


def test_online_sees_nothing_of_its_own_time_or_later() -> None:
    X, y, times = drifting(300)
    model = LocalLogisticRegression(bandwidth=30.0, online=True, resolution=10.0).fit(X, y, times)
    before = model.predict_proba(X[:5], np.full(5, 55.0))
    changed = y.copy()
    changed[times >= 50] = 1 - changed[times >= 50]  # the bin of 55 is 50 to 60
    again = LocalLogisticRegression(bandwidth=30.0, online=True, resolution=10.0).fit(X, changed, times)
    np.testing.assert_array_equal(again.predict_proba(X[:5], np.full(5, 55.0)), before)
    assert (
        np.abs(again.predict_proba(X[:5], np.full(5, 65.0)) - model.predict_proba(X[:5], np.full(5, 65.0))).max() > 0.1
    )


def test_before_the_first_datum_an_online_model_knows_nothing() -> None:
    X, y, times = drifting(50)
    model = LocalLogisticRegression(bandwidth=10.0, online=True).fit(X, y, times)
    np.testing.assert_array_equal(model.predict_proba(X[:3], [-1.0] * 3), np.full((3, 2), 0.5))


def test_out_of_reach_the_kernel_is_widened() -> None:
    X, y, times = drifting(100)
    model = LocalLogisticRegression(bandwidth=1.0).fit(X, y, times)
    far = LocalLogisticRegression(bandwidth=2 * (1000.0 - times.max())).fit(X, y, times)
    np.testing.assert_allclose(model.predict_proba(X, [1000.0] * 100), far.predict_proba(X, [1000.0] * 100))


def test_one_class_within_reach() -> None:
    """Its weight alone decides; a class of three that is absent is all but impossible."""
    X = np.array([[0.0], [1.0], [0.0], [1.0], [2.0]])
    model = LocalLogisticRegression(bandwidth=1.0).fit(X, ["a", "a", "a", "b", "c"], [0, 0, 10, 10, 20])
    assert model.predict([[5.0]], [0]).tolist() == ["a"]
    two = model.predict_proba([[1.0]], [10])[0]
    assert two[2] < 1e-12 and two[:2].sum() == pytest.approx(1.0)


def test_now_is_the_last_time() -> None:
    X, y, times = drifting(200)
    offline = LocalLogisticRegression(bandwidth=20.0).fit(X, y, times)
    np.testing.assert_array_equal(offline.predict_proba(X), offline.predict_proba(X, np.full(200, times.max())))
    online = LocalLogisticRegression(bandwidth=20.0, online=True).fit(X, y, times)
    last = np.argmax(times)
    assert online.model_at().weight.sum() > online.model_at(times[last]).weight.sum()  # the last datum counts now


def test_sparse_equals_dense_and_order_does_not_matter() -> None:
    X, y, times = drifting(150)
    wide = np.zeros((150, 50))
    wide[:, [7, 30]] = X
    dense = LocalLogisticRegression(bandwidth=20.0, resolution=5.0).fit(wide, y, times)
    order = np.random.default_rng(0).permutation(150)
    sparse = LocalLogisticRegression(bandwidth=20.0, resolution=5.0).fit(
        csr_matrix(wide[order]), y[order], times[order]
    )
    np.testing.assert_allclose(
        sparse.decision_function(csr_matrix(wide), times), dense.decision_function(wide, times), atol=2e-3
    )


def test_weights_are_repetitions() -> None:
    X, y, times = drifting(100)
    w = np.random.default_rng(1).integers(0, 3, 100)
    settings = {"bandwidth": 30.0, "tol": 1e-8, "resolution": 10.0}
    weighted = LocalLogisticRegression(**settings).fit(X, y, times, sample_weight=w)
    repeated = LocalLogisticRegression(**settings).fit(X.repeat(w, 0), y.repeat(w), times.repeat(w))
    np.testing.assert_allclose(weighted.predict_proba(X, times), repeated.predict_proba(X, times), atol=1e-5)


def test_undated_documents() -> None:
    X, y, times = drifting(100)
    stamps = times.astype(np.int64)
    stamps[:10] = UNDATED
    model = LocalLogisticRegression(bandwidth=30.0, resolution=10.0).fit(X, y, stamps)
    rest = LocalLogisticRegression(bandwidth=30.0, resolution=10.0).fit(X[10:], y[10:], stamps[10:])
    np.testing.assert_array_equal(model.predict_proba(X, stamps), rest.predict_proba(X, stamps))
    np.testing.assert_array_equal(model.predict_proba(X[:10], stamps[:10]), model.predict_proba(X[:10]))


def test_saved_and_loaded(tmp_path) -> None:
    X, y, times = drifting(120, 3)
    names = np.array(["früh", "b", "c"])[y]
    for bandwidth in (25.0, inf):
        model = LocalLogisticRegression(bandwidth=bandwidth, online=True, resolution=5.0).fit(
            csr_matrix(X), names, times
        )
        model.save(tmp_path / "model")
        loaded = LocalLogisticRegression.load(tmp_path / "model")
        np.testing.assert_array_equal(loaded.predict_proba(X, times), model.predict_proba(X, times))
        assert loaded.predict(X, times).tolist() == model.predict(X, times).tolist()


def test_a_damaged_file_is_told(tmp_path) -> None:
    from sdretrieval.core.saved_arrays import save_arrays

    X, y, times = drifting(50)
    header, arrays = LocalLogisticRegression(bandwidth=9.0).fit(X, y, times).to_arrays()
    json.dumps(header)
    for name, (h, a) in {
        "short": (header, arrays | {"codes": arrays["codes"][:-1]}),
        "codes": (header, arrays | {"codes": arrays["codes"] + 5}),
        "kernel": (header | {"kernel": "nut"}, arrays),
        "huge": (header, arrays | {"data": np.full_like(arrays["data"], 1e308)}),
        "empty": ({}, {}),
    }.items():
        save_arrays(tmp_path / name, KIND, h, a)
        with pytest.raises(InputError, match="damaged"):
            LocalLogisticRegression.load(tmp_path / name)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"bandwidth": -1.0}, "bandwidth must be zero or positive; got -1"),
        ({"bandwidth": "narrow"}, "bandwidth must be a number or auto; got 'narrow'"),
        ({"kernel": "nut"}, "no kernel 'nut'"),
        ({"penalty": "l3"}, "penalty must be"),
        ({"C": 0.0}, "C must be positive"),
        ({"C": []}, "C must be positive"),
        ({"resolution": 0.0}, "resolution must be positive"),
        ({"scoring": "luck"}, "scoring must be"),
        ({"folds": 1}, "folds must be 2 or more"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    X, y, times = drifting(20)
    with pytest.raises(ParameterError, match=message):
        LocalLogisticRegression(**parameters).fit(X, y, times)


def test_bad_data() -> None:
    X, y, times = drifting(20)
    for labels, when, told in (
        (y, times[:-1], "20 documents but 19 times"),
        (y, np.full(20, np.nan), "no training document has a time"),
        (np.zeros(20), times, "two classes or more"),
    ):
        with pytest.raises(ParameterError, match=told):
            LocalLogisticRegression().fit(X, labels, when)


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_cross_validation_never_trains_on_what_it_predicts(online: bool, scoring: str) -> None:
    """Every document has a word of its own: a model that has seen it knows its label, one that has not, nothing."""
    n = 80
    X, times = csr_matrix(np.eye(n)), np.repeat(np.arange(8.0), 10)
    y = np.random.default_rng(3).permutation(n) % 2
    model = LocalLogisticRegression(
        online=online, bandwidths=[3.0, inf], C=100.0, scoring=scoring, fit_intercept=False, class_weight="balanced"
    ).fit(X, y, times)
    chance = np.log(2) if scoring == "log_loss" else 0.5
    np.testing.assert_allclose(model.cv_results_[scoring], chance, atol=0.15 if scoring == "error" else 1e-9)


def test_groups_are_held_out_together() -> None:
    """Threads of two posts a month apart, with a word of their own: the one gives away the label of the other."""
    n = 80
    thread = np.arange(n) % (n // 2)
    X, times = csr_matrix(np.eye(n // 2)[thread]), np.arange(n) // 10.0
    y = np.random.default_rng(3).permutation(n // 2)[thread] % 2
    model = LocalLogisticRegression(bandwidths=[5.0, inf], C=100.0, fit_intercept=False, class_weight="balanced")
    assert model.fit(X, y, times).cv_results_["log_loss"].max() < 0.5 * np.log(2)
    np.testing.assert_allclose(model.fit(X, y, times, groups=thread).cv_results_["log_loss"], np.log(2), atol=1e-9)
    with pytest.raises(ParameterError, match="3 groups"):
        model.fit(X, y, times, groups=[1, 2, 3])
