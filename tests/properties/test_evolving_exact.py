"""SSL-E on random small frames: the minimum is a minimum, whatever the documents are, and other laws."""

from __future__ import annotations

import evolving_oracle as oracle
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sdretrieval.learn.evolving import SSL, SSLE, SSLEOffline
from sdretrieval.learn.evolving.graph import laplacian, neighbour_graph
from sdretrieval.learn.evolving.solver import LinearGram, project, solve


@st.composite
def frames(draw) -> tuple:
    """Counts of few words, so that copies, empty documents and equal cosines are common; some labelled."""
    n, d = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    X = np.array(draw(st.lists(st.lists(st.integers(0, 2), min_size=d, max_size=d), min_size=n, max_size=n)), float)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=n, max_size=n)))
    w = np.array(draw(st.lists(st.integers(-2, 2), min_size=d, max_size=d)), float)
    return X, y, w


GAMMAS = st.tuples(st.sampled_from([1e-3, 0.1, 1.0, 30.0]), st.sampled_from([0.0, 1.0, 50.0, 1e4]))


@settings(max_examples=50)
@given(frames(), GAMMAS, st.integers(1, 4))
def test_the_minimum_of_12_is_a_minimum(frame: tuple, gammas: tuple[float, float], neighbours: int) -> None:
    """Zero gradient in w, of an objective that is strictly convex: nothing else is the minimum."""
    X, y, w_p = frame
    gamma_A, gamma_I = gammas
    L = laplacian(neighbour_graph(csr_matrix(X), neighbours=neighbours)) * (gamma_I / len(X) ** 2)
    for solver in ("auto", "direct"):
        answer = solve(
            LinearGram(csr_matrix(X)), L, y != 0, y[:, None], (X @ w_p)[:, None], gamma_A=gamma_A, solver=solver
        )
        w = w_p + X.T @ answer.beta[:, 0]
        f = X @ w
        gradient = X.T @ ((y != 0) * (f - y) + L @ f) + gamma_A * (w - w_p)
        scale = 1 + np.abs(X).sum() * (1 + np.abs(L).sum()) * (1 + np.abs(w_p).sum())
        assert np.abs(gradient).max() <= 1e-9 * scale
        np.testing.assert_allclose(answer.values[:, 0], f, atol=1e-9 * scale)


@settings(max_examples=25)
@given(frames())
def test_projection_keeps_the_values_and_is_shortest(frame: tuple) -> None:
    X, _, w = frame
    for solver in ("auto", "direct"):
        a = project(LinearGram(csr_matrix(X)), (X @ w)[:, None], solver=solver)[:, 0]
        np.testing.assert_allclose(X @ (X.T @ a), X @ w, atol=1e-8)
        np.testing.assert_allclose(X.T @ a, np.linalg.pinv(X) @ (X @ w), atol=1e-7)


@settings(max_examples=25)
@given(frames(), GAMMAS, st.randoms(use_true_random=False))
def test_order_changes_nothing(frame: tuple, gammas: tuple[float, float], random) -> None:
    X, y, _ = frame
    labels = [{-1.0: "a", 0.0: "", 1.0: "b"}[value] for value in y]
    order = list(range(len(y)))
    random.shuffle(order)
    given_ = {"gamma_A": gammas[0], "gamma_I": gammas[1], "neighbours": 2, "classes": ["a", "b"]}
    for method in (SSLE, SSLEOffline):
        plain = method(**given_).fit(X, labels).decision_function(X)
        mixed = method(**given_).fit(X[order], [labels[i] for i in order]).decision_function(X)
        np.testing.assert_allclose(mixed, plain, atol=1e-7)


@settings(max_examples=25)
@given(st.lists(frames(), min_size=1, max_size=3), GAMMAS)
def test_offline_is_no_worse_than_online_on_its_own_objective(many: list, gammas: tuple[float, float]) -> None:
    """The online functions are one candidate for (6); with one frame they are SSL's, and the minimum."""
    gamma_A, gamma_I = gammas
    d = max(X.shape[1] for X, _, _ in many)
    X = np.concatenate([np.pad(x, ((0, 0), (0, d - x.shape[1]))) for x, _, _ in many])
    y = np.concatenate([y for _, y, _ in many])
    when = np.repeat(np.arange(len(many)), [len(x) for x, _, _ in many])
    labels = np.array([{-1.0: "a", 0.0: "", 1.0: "b"}[value] for value in y])
    parts = []
    for t in range(len(many)):
        Z = X[when == t]
        L = laplacian(neighbour_graph(csr_matrix(Z))).toarray()
        parts.append((Z, L, y[when == t] != 0, y[when == t]))
    values = {}
    options = {"gamma_A": gamma_A, "gamma_I": gamma_I, "classes": ["a", "b"]}
    online = {"online": SSLE(representer="history", **options), "frame": SSLE(**options)}
    for name, model in {"offline": SSLEOffline(**options), **online}.items():
        model.fit(X, labels, frames=when)
        ws = np.array([model.decision_function(np.eye(d), frames=[t] * d) for t in range(len(many))])
        values[name] = oracle.objective_6(ws, parts, gamma_A, gamma_I)
    assert values["offline"] <= min(values["online"], values["frame"]) + 1e-7
    if len(many) == 1 and (y != 0).any():
        alone = SSL(**options).fit(X, labels)
        np.testing.assert_allclose(alone.decision_function(X), model.decision_function(X), atol=1e-7)
        assert abs(values["offline"] - values["online"]) <= 1e-7
