"""SSL, SSL-naive and SSL-E as estimators: the paper's laws, scikit-learn's contract, and bad input."""

from __future__ import annotations

import evolving_oracle as oracle
import numpy as np
import pytest
from scipy.sparse import csr_matrix, vstack
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils.estimator_checks import check_estimator

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.saved_arrays import save_arrays
from sdretrieval.core.times import UNDATED, parse_time
from sdretrieval.learn.evolving import SSL, SSLE, SSLEOffline, SSLNaive
from sdretrieval.learn.evolving.frames import auc, quality
from sdretrieval.learn.evolving.state import KIND, to_arrays

ALL = (SSL, SSLNaive, SSLE, SSLEOffline)
ONLINE = (SSL, SSLNaive, SSLE)


def stream(frames: int = 4, n: int = 24, classes: int = 2, labels: int = 6, seed: int = 0) -> tuple:
    """(X, y, truth, frame): sparse documents whose classes have words of their own, which slowly change."""
    rng = np.random.default_rng(seed)
    d = 40
    rows, truth, when = [], [], []
    for t in range(frames):
        for i in range(n):
            c = i % classes
            own = (np.arange(6) + 8 * c + t // 2) % d
            x = (rng.random(d) < 0.1) * rng.uniform(0.5, 1.5, d)
            x[rng.choice(own, 2, replace=False)] += rng.uniform(0.5, 1.5, 2)
            rows.append(x / np.linalg.norm(x))
            truth.append("abcdef"[c])
            when.append(t)
    truth_, when_ = np.array(truth), np.array(when)
    y = np.full(len(truth_), "", dtype=object)
    for t in range(frames):
        here = np.flatnonzero(when_ == t)
        y[rng.choice(here, labels, replace=False)] = "?"
        for c in "abcdef"[:classes]:
            y[here[truth_[here] == c][0]] = "?"
    y[y == "?"] = truth_[y == "?"]
    return csr_matrix(np.array(rows)), y, truth_, when_


def decisions(model, X, frames) -> np.ndarray:
    return model.decision_function(X, frames=frames)


@pytest.mark.filterwarnings("ignore:a frame without labels")
@pytest.mark.parametrize("estimator", ALL)
def test_scikit_learns_own_checks(estimator) -> None:
    """All that apply. Labels may be missing, so y may hold NaN, which is one check; -1 is a label in others."""
    check_estimator(
        estimator(unlabelled=None), on_skip=None, expected_failed_checks={"check_supervised_y_no_nan": "NaN: no label"}
    )


@pytest.mark.parametrize("representer", ["frame", "history"])
def test_online_equals_18_frame_by_frame(representer: str) -> None:
    X, y, _, when = stream()
    model = SSLE(gamma_A=0.3, gamma_I=200.0, neighbours=4, sigma=1.0, representer=representer, classes=["a", "b"])
    model.fit(X, y, frames=when)
    w = np.zeros(X.shape[1])
    for t in range(4):
        Z = X[when == t].toarray()
        label = y[when == t]
        target = np.where(label == "b", 1.0, np.where(label == "a", -1.0, 0.0))
        K = Z @ Z.T + 1e-13 * np.eye(len(Z))
        L = oracle.laplacian(Z, 4, 1.0)
        if representer == "frame":
            w = Z.T @ oracle.alpha_18(K, L, label != "", target, Z @ w, 0.3, 200.0)
        else:  # (12) in the weights, where the whole space is allowed
            M = np.diag((label != "").astype(float)) + 200.0 / len(Z) ** 2 * L
            w = np.linalg.solve(Z.T @ M @ Z + 0.3 * np.eye(Z.shape[1]), Z.T @ target + 0.3 * w)
        got = decisions(model, X[when == t], when[when == t])
        np.testing.assert_allclose(got, Z @ w, atol=1e-6 if representer == "frame" else 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_first_frame_of_every_method_is_ssl(kernel: str) -> None:
    X, y, *_ = stream(frames=1)
    expected = SSL(kernel=kernel).fit(X, y).decision_function(X)
    for method in (SSLNaive, SSLE, SSLEOffline):
        np.testing.assert_allclose(method(kernel=kernel).fit(X, y).decision_function(X), expected, atol=1e-8)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("method", ALL)
def test_permuting_documents_inside_a_frame_changes_nothing(method, ties: bool) -> None:
    X, y, _, when = stream(n=12 if ties else 24)
    if ties:  # zeros and ones: many equal cosines; and copies
        X = csr_matrix(np.ceil(X.toarray()))
        X = csr_matrix(vstack([X, X[::5]]))
        y, when = np.concatenate([y, y[::5]]), np.concatenate([when, when[::5]])
    order = np.random.default_rng(1).permutation(len(y))
    plain, mixed = method().fit(X, y, frames=when), method().fit(X[order], y[order], frames=when[order])
    np.testing.assert_allclose(decisions(mixed, X, when), decisions(plain, X, when), atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "later"),
    [({"representer": "history"}, (1, 2, 3)), ({"representer": "history", "kernel": "rbf", "gamma": 0.5}, (1,))],
)
def test_a_huge_gamma_A_freezes_the_classifier(settings: dict, later: tuple[int, ...]) -> None:
    X, y, _, when = stream()
    model = SSLE(**settings).partial_fit(X[when == 0], y[when == 0])
    before = model.decision_function(X)
    model.set_params(gamma_A=1e12)
    for t in later:
        model.partial_fit(X[when == t], y[when == t])
    np.testing.assert_allclose(model.decision_function(X), before, atol=1e-9)
    assert all(record.temporal_cost < 1e-15 for record in model.frames_[1:])


def test_with_the_representer_constraint_it_freezes_on_the_frames_own_documents() -> None:
    X, y, _, when = stream()
    model, here = SSLE(representer="frame").partial_fit(X[when == 0], y[when == 0]), X[when == 1]
    before = model.decision_function(here)
    model.set_params(gamma_A=1e12).partial_fit(here, y[when == 1])
    np.testing.assert_allclose(model.decision_function(here), before, atol=1e-8)


def test_a_tiny_gamma_A_forgets() -> None:
    """What is left of history is its effect on documents that nothing else decides; labels are met exactly."""
    X, y, _, when = stream()
    model = SSLE(gamma_A=1e-6, gamma_I=0.0).fit(X, y, frames=when)
    last = (when == 3) & (y != "")
    np.testing.assert_allclose(decisions(model, X[last], when[last]), np.where(y[last] == "b", 1.0, -1.0), atol=1e-3)


def test_history_helps_where_labels_are_few() -> None:
    X, y, truth, when = stream(frames=8, n=40, labels=2, seed=3)
    rest = (y == "") & (when >= 2)

    def area(model) -> float:
        scores = decisions(model.fit(X, y, frames=when), X, when)
        return float(np.mean([auc(truth[rest & (when == t)] == "b", scores[rest & (when == t)]) for t in range(2, 8)]))

    assert area(SSLE()) > area(SSL())


def test_rbf_and_precomputed_agree() -> None:
    X, y, _, when = stream(frames=3)
    # The graph of a named kernel is on the documents, of a precomputed one on the kernel: without it they agree.
    by_name = SSLE(kernel="rbf", gamma=0.7, gamma_I=0.0).fit(X, y, frames=when)
    given = SSLE(kernel="precomputed", gamma_I=0.0)
    for t in range(3):
        K = rbf_kernel(X[when == t], gamma=0.7)
        cross = rbf_kernel(X[when == t], X[when == t - 1], gamma=0.7) if t else None
        given.partial_fit(K, y[when == t], cross=cross)
    new = X[:7]
    got = given.decision_function(rbf_kernel(new, X[when == 2], gamma=0.7))
    np.testing.assert_allclose(got, by_name.decision_function(new), atol=1e-6)
    with pytest.raises(ParameterError, match="needs K_"):
        given.partial_fit(np.eye(4), y[:4])
    with pytest.raises(ParameterError, match="knows only the last frame"):
        SSLE(kernel="precomputed", representer="history").partial_fit(np.eye(2), ["a", "b"])


def test_linear_kernel_equals_itself_precomputed_offline() -> None:
    X, y, _, when = stream(frames=3)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, when = X[order], y[order], when[order]
    K = (X @ X.T).toarray()
    model = SSLEOffline().fit(X, y, frames=when)
    given = SSLEOffline(kernel="precomputed").fit(K, y, frames=when)
    np.testing.assert_allclose(decisions(given, K, when), decisions(model, X, when), atol=1e-6)
    np.testing.assert_allclose(
        [r.temporal_cost for r in given.frames_], [r.temporal_cost for r in model.frames_], atol=1e-6
    )


@pytest.mark.parametrize("method", ONLINE)
def test_several_classes_against_the_rest(method) -> None:
    X, y, truth, when = stream(classes=3, labels=9)
    model = method(gamma_I=10.0).fit(X, y, frames=when)
    scores = decisions(model, X, when)
    assert scores.shape == (len(y), 3)
    against_rest = np.where(np.isin(y, ["", "b"]), y, "a")
    one = method(gamma_I=10.0).fit(X, against_rest, frames=when)
    np.testing.assert_allclose(scores[:, 1], decisions(one, X, when), atol=1e-8)
    assert np.mean(model.predict(X, frames=when) == truth) > 0.6


def test_two_classes_are_mirror_images() -> None:
    X, y, *_ = stream()
    swapped = np.where(y == "a", "z", y)
    one, other = (SSLE().fit(X, labels).decision_function(X) for labels in (y, swapped))
    np.testing.assert_allclose(other, -one, atol=1e-9)


# -- later documents, saving ----------------------------------------------------------------------------------------


def test_later_documents_are_predicted_by_the_latest_frame() -> None:
    X, y, _, when = stream()
    model = SSLE().fit(X, y, frames=when)
    later = model.decision_function(X[:5], frames=["9"] * 5)
    np.testing.assert_array_equal(later, model.decision_function(X[:5]))
    first = model.decision_function(X[:5], frames=[0] * 5)
    assert np.abs(first - later).max() > 1e-3


def test_frames_with_numbers_are_in_the_order_of_numbers() -> None:
    X, y, _, when = stream(frames=12, n=6)
    numbered, lettered = SSLE().fit(X, y, frames=when), SSLE().fit(X, y, frames=[f"{t:02d}" for t in when])
    assert [record.name for record in numbered.frames_] == [str(t) for t in range(12)]
    np.testing.assert_array_equal(decisions(numbered, X, when), decisions(lettered, X, [f"{t:02d}" for t in when]))
    np.testing.assert_array_equal(decisions(numbered, X[:3], [9.5, 99, -1]), decisions(numbered, X[:3], [9, 11, 0]))


def test_frames_by_date_equal_frames_by_name() -> None:
    X, y, _, when = stream()
    days = np.array([parse_time(f"2020-{t + 1:02d}-15") for t in when])
    days[0] = UNDATED
    by_date = SSLE().fit(X, y, times=days)
    by_name = SSLE().fit(X[1:], y[1:], frames=when[1:])
    assert [record.name for record in by_date.frames_] == ["2020-01", "2020-02", "2020-03", "2020-04"]
    np.testing.assert_allclose(by_date.decision_function(X), by_name.decision_function(X), atol=1e-12)
    # undated ones to predict: by the latest
    np.testing.assert_array_equal(by_date.decision_function(X[:1], times=days[:1]), by_date.decision_function(X[:1]))


@pytest.mark.parametrize(("kernel", "form"), [("linear", csr_matrix), ("rbf", csr_matrix), ("rbf", csr_matrix.toarray)])
@pytest.mark.parametrize("method", [*ONLINE, lambda **kw: SSLE(representer="history", **kw)])
def test_saved_and_resumed_is_as_if_never_stopped(tmp_path, method, kernel: str, form) -> None:
    X, y, _, when = stream()
    X = form(X)
    straight = method(kernel=kernel).fit(X, y, frames=when)
    half = method(kernel=kernel)
    for t in (0, 1):
        half.partial_fit(X[when == t], y[when == t], frame=str(t))
    half.save(tmp_path / "state")
    resumed = type(half).load(tmp_path / "state")
    for t in (2, 3):
        resumed.partial_fit(X[when == t], y[when == t], frame=str(t))
    np.testing.assert_array_equal(resumed.decision_function(X), straight.decision_function(X))
    assert resumed.frames_ == straight.frames_


@pytest.mark.parametrize("method", ALL)
def test_a_saved_classifier_predicts_alike(tmp_path, method) -> None:
    X, y, _, when = stream(classes=3)
    model = method(classes=["a", "b", "c"]).fit(X, y, frames=when)
    model.save(tmp_path / "state")
    np.testing.assert_array_equal(method.load(tmp_path / "state").decision_function(X), model.decision_function(X))


def test_wrong_files_and_parts_that_do_not_fit_are_told(tmp_path) -> None:
    X, y, *_ = stream()
    SSL().fit(X, y).save(tmp_path / "ssl")
    with pytest.raises(InputError, match=r"ssl: holds a SSL, expected a SSLE"):
        SSLE.load(tmp_path / "ssl")
    header, arrays = to_arrays(SSLE().fit(X, y))
    save_arrays(tmp_path / "short", KIND, header, arrays | {"coef": arrays["coef"][:-1]})
    save_arrays(tmp_path / "other", KIND, header | {"method": "Popen"}, arrays)
    save_arrays(tmp_path / "empty", KIND, {}, {})
    (tmp_path / "text").write_text("hello")
    for name in ("short", "other", "empty", "text"):
        with pytest.raises(InputError, match=f"{name}: .*damaged"):
            SSLE.load(tmp_path / name)


@pytest.mark.parametrize(("kernel", "form"), [("linear", csr_matrix), ("rbf", csr_matrix), ("rbf", np.asarray)])
@pytest.mark.parametrize("method", ONLINE)
def test_a_vocabulary_may_grow(method, kernel: str, form) -> None:
    """Words that come later weigh nothing before: as if the columns had been there from the start."""
    X, y, _, when = stream()
    X = X.toarray()
    padded = np.pad(X, ((0, 0), (0, 5)))
    padded[np.flatnonzero(when == 3)[0], 42] = 1.0
    X, wide = form(X), form(padded)
    whole = method(kernel=kernel).fit(wide, y, frames=when)
    grown = method(kernel=kernel)
    for t in range(4):
        if t == 3:
            grown.widen(45)
        grown.partial_fit((wide if t == 3 else X)[when == t], y[when == t], frame=str(t))
    np.testing.assert_allclose(grown.decision_function(wide), whole.decision_function(wide), atol=1e-9)
    with pytest.raises(ParameterError, match="only be added"):
        grown.widen(3)


def test_only_so_many_classifiers_are_kept() -> None:
    X, y, _, when = stream()
    model = SSLE(remember=2).fit(X, y, frames=when)
    full = SSLE().fit(X, y, frames=when)
    assert len(model.functions_) == 2 and len(model.frames_) == 4
    np.testing.assert_array_equal(model.decision_function(X), full.decision_function(X))


# -- costs ------------------------------------------------------------------------------------------------------------


def test_costs_are_those_of_the_paper() -> None:
    X, y, _, when = stream(frames=3)
    model = SSLE(sigma=1.0, neighbours=4, representer="history").fit(X, y, frames=when)
    w_p = np.zeros(X.shape[1])
    for t, record in enumerate(model.frames_):
        Z = X[when == t].toarray()
        w = model.decision_function(csr_matrix(np.eye(X.shape[1])), frames=[t] * X.shape[1])
        f = Z @ w
        assert record.spatial_cost == pytest.approx(f @ oracle.laplacian(Z, 4, 1.0) @ f / len(Z) ** 2, rel=1e-6)
        assert record.temporal_cost == pytest.approx(np.sum((w - w_p) ** 2), rel=1e-6)
        w_p = w


def test_ssl_e_moves_less_than_ssl() -> None:
    """Figure 2: that is what the temporal regulariser is for."""
    X, y, _, when = stream(frames=6)
    moved = [[r.temporal_cost for r in method().fit(X, y, frames=when).frames_[1:]] for method in (SSLE, SSL)]  # (5)
    assert np.mean(moved[0]) < np.mean(moved[1])


def test_auc_is_scikit_learns() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    truth, scores = rng.random(50) < 0.4, np.round(rng.normal(size=50), 1)
    assert auc(truth, scores) == pytest.approx(roc_auc_score(truth, scores), abs=1e-12)
    assert np.isnan(auc([1, 1], [0.1, 0.2]))


def test_quality_of_several_classes() -> None:
    classes = np.array(["a", "b", "c"])
    scores = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0.5]], dtype=float)
    area, accuracy = quality(np.array(["a", "b", "c"]), scores, classes)
    assert accuracy == pytest.approx(2 / 3)
    assert area == pytest.approx((1 + 0.75 + 1) / 3)


# -- bad and odd input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [SSLE, SSLNaive])
def test_a_frame_without_labels_goes_by_history(method) -> None:
    X, y, truth, when = stream()
    y = np.where(when == 2, "", y)
    model = method(gamma_I=10.0).fit(X, y, frames=when)
    assert model.frames_[2].note == ("no labels" if method is SSLE else "")
    here = when == 2
    assert auc(truth[here] == "b", decisions(model, X[here], when[here])) > 0.6


def test_a_frame_without_labels_tells_ssl_nothing() -> None:
    X, *_ = stream(frames=1)
    with pytest.warns(UserWarning, match="without labels"):
        model = SSL(classes=["a", "b"]).partial_fit(X, [None] * X.shape[0])
    assert not model.decision_function(X).any()


def test_labels_of_one_class() -> None:
    """In one frame they are solved like any others; where there is no other class ever, it is everybody's."""
    X, y, _, when = stream()
    model = SSLE().fit(X, np.where((when == 1) & (y == "b"), "", y), frames=when)
    assert model.frames_[1].note == "labels of one class"
    assert np.isfinite(decisions(model, X, when)).all()
    assert set(SSLE().fit(X, np.where(y == "b", "", y), frames=when).predict(X)) == {"a"}


def test_an_empty_frame_leaves_the_classifier_as_it_is() -> None:
    X, y, _, when = stream()
    model = SSLE().partial_fit(X[when == 0], y[when == 0])
    before = model.decision_function(X)
    model.partial_fit(X[:0], [])
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.frames_[1].documents == 0 and "stays" in model.frames_[1].note
    model.partial_fit(X[when == 1], y[when == 1])
    straight = SSLE().fit(X[when < 2], y[when < 2], frames=when[when < 2])
    np.testing.assert_allclose(model.decision_function(X), straight.decision_function(X), atol=1e-12)


def test_copies_get_one_answer_whatever_their_labels() -> None:
    """Two copies with contradicting labels: f is one number for both, here their mean, drawn towards zero."""
    X = csr_matrix(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    model = SSL(gamma_I=0.0, gamma_A=0.5).fit(X, ["a", "b", "b"])
    f = model.decision_function(X)
    assert f[0] == f[1] == pytest.approx(0.0, abs=1e-12)
    assert f[2] == pytest.approx(1 / 1.5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("method", ONLINE)
def test_a_label_not_seen_before_is_as_if_announced(method, kernel: str) -> None:
    X, y, _, when = stream(classes=3, labels=9)
    y = np.where((y == "a") & (when < 2), "", y)  # a turns up in the third frame
    later = method(kernel=kernel).fit(X, y, frames=when)
    announced = method(kernel=kernel, classes=["a", "b", "c"]).fit(X, y, frames=when)
    assert later.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(later.decision_function(X), announced.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(decisions(later, X, when), decisions(announced, X, when), atol=1e-8)


@pytest.mark.parametrize("mark", [None, np.nan, "", -1, 0])
def test_marks_of_the_unlabelled(mark) -> None:
    """-1 is a label like any other where the mark is another."""
    X, y, *_ = stream()
    model, names = (SSLE(unlabelled=0), (-1, 1)) if mark == 0 else (SSLE(), (1, 2))
    model.fit(X, [mark if label == "" else names["ab".index(label)] for label in y])
    assert model.classes_.tolist() == list(names)
    np.testing.assert_allclose(model.decision_function(X), SSLE().fit(X, y).decision_function(X), atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma_A": 0.0}, "gamma_A must be positive"),
        ({"gamma_I": -1.0}, "gamma_I must be zero or positive"),
        ({"kernel": "cubic"}, "kernel must be one of linear, rbf, precomputed; got .cubic."),
        ({"kernel": "rbf", "gamma": 0.0}, "gamma must be positive"),
        ({"neighbours": 0}, "neighbours must be 1 or more"),
        ({"representer": "all"}, "representer must be"),
        ({"remember": 0}, "remember must be"),
    ],
)
def test_bad_parameters(parameters: dict, message: str) -> None:
    X, y, *_ = stream()
    with pytest.raises(ParameterError, match=message):
        SSLE(**parameters).fit(X, y)


def test_bad_shapes_and_labels() -> None:
    X, y, *_ = stream()
    for call, told in (
        (lambda: SSLE().fit(X, y[:-1]), "labels of shape"),
        (lambda: SSLE().fit(X[:2], ["a", 1]), "partly text, partly numbers"),
        (lambda: SSLE(kernel="precomputed").fit(X, y), "square"),
        (lambda: SSLE().fit(X, y, times=np.full(len(y), UNDATED)), "no document has a date"),
        (lambda: SSLE(classes=["a", "c"]).fit(X, y), "label 'b' is none of the classes given: 'a', 'c'"),
        (lambda: SSLE().partial_fit(X, [""] * len(y)).predict(X), "no label has been seen"),
        (lambda: SSLE().save("nowhere"), "has seen no frame"),
    ):
        with pytest.raises(ParameterError, match=told):
            call()
    with pytest.raises(NotFittedError):
        SSLE().predict(X)
    assert not hasattr(SSLEOffline(), "partial_fit")


def test_figure_1_toy_of_two_gaussians() -> None:
    """They fluctuate from frame to frame and drift in the long run: a frame by itself sees too little, the first
    frame's classifier grows old, SSL-E follows."""
    rng = np.random.default_rng(0)
    gains: list[tuple[float, float]] = []
    for _ in range(5):
        alone, evolving, first = SSL(gamma_A=0.1, gamma_I=1.0), SSLE(gamma_A=3.0, gamma_I=1.0), SSL(gamma_A=0.1)
        rates: dict[str, list[float]] = {"alone": [], "evolving": [], "first": []}
        for t in range(20):
            angle = 0.1 * t + rng.normal(0, 0.2)
            truth = np.where(np.arange(40) % 2 == 0, "a", "b")
            middle = np.array([np.cos(angle), np.sin(angle)])
            X = np.where(truth == "a", 1.0, -1.0)[:, None] * middle + rng.normal(0, 1.0, (40, 2))
            y = np.where(np.arange(40) < 4, truth, "")
            alone.partial_fit(X, y)
            evolving.partial_fit(X, y)
            if t == 0:
                first.partial_fit(X, truth)
            for name, model in (("alone", alone), ("evolving", evolving), ("first", first)):
                rates[name].append(float(np.mean(model.predict(X[4:]) == truth[4:])))
        gains.append(
            (
                np.mean(rates["evolving"][5:]) - np.mean(rates["alone"][5:]),
                np.mean(rates["evolving"][10:]) - np.mean(rates["first"][10:]),
            )
        )
    over_alone, over_first = np.mean(gains, axis=0)
    assert over_alone > 0.02 and over_first > 0.1
