"""The evolving benchmark solves for all labelings at once: what it reports is what the estimators of the package do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks import results_evolving as benchmark
from sdretrieval.learn.evolving import SSL, SSLE, SSLEOffline, SSLNaive
from sdretrieval.learn.evolving.frames import auc

MONTHS, EACH = 4, 40
GAMMAS = (0.01, 50.0)
ESTIMATORS = {
    benchmark.SSL: SSL,
    benchmark.NAIVE: SSLNaive,
    benchmark.FRAME: SSLE,
    benchmark.ALL: lambda **more: SSLE(representer="history", **more),
}


def task(classes: int) -> benchmark.Task:
    """Posts whose lists differ in a few of thirty words, and whose words drift."""
    rng = np.random.default_rng(classes)
    lists = benchmark.LISTS[:classes]
    months = np.repeat([f"2010-{m:02d}" for m in range(1, MONTHS + 1)], EACH)
    which = rng.integers(classes, size=len(months))
    rates = rng.gamma(0.3, 1.0, (classes, 30))
    counts = csr_matrix(
        rng.poisson(rates[which] + rng.gamma(0.3, 1.0, (MONTHS, 30)).repeat(EACH, axis=0)).astype(float)
    )
    df = np.bincount(counts.indices, minlength=30)
    X = benchmark.tf_idf(counts, df, len(months))
    return benchmark.Task(benchmark.Posts(X, counts, np.array(lists)[which], months, 0), lists)


def by_estimator(made, of: benchmark.Task, labelled: list[np.ndarray], r: int) -> np.ndarray:
    """Quality by month of one labeling, frame after frame."""
    names = np.array(["a", "b", "c"])
    found = []
    for t, frame in enumerate(of.frames):
        shown = labelled[t][:, r]
        made.partial_fit(frame.X, np.where(shown, names[frame.y], ""))
        scores = made.decision_function(frame.X)
        if of.functions == 1:
            found.append(auc(frame.y[~shown] == 1, scores[~shown]))
        else:
            found.append(float(np.mean(scores.argmax(axis=1)[~shown] == frame.y[~shown])))
    return np.array(found)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", ESTIMATORS)
def test_the_tables_are_what_the_estimators_do(method: str, classes: int, monkeypatch) -> None:
    monkeypatch.setattr(benchmark, "FRACTION", 0.3)
    of = task(classes)
    labelled = of.labelings(range(2))
    outcome = benchmark.run(of, labelled, method, *GAMMAS)
    for r in range(2):
        made = ESTIMATORS[method](gamma_A=GAMMAS[0], gamma_I=GAMMAS[1], classes=["a", "b", "c"][:classes])
        np.testing.assert_allclose(outcome.quality[:, r], by_estimator(made, of, labelled, r), atol=0.004)
    if method in (benchmark.FRAME, benchmark.ALL):
        np.testing.assert_array_less(
            1e-6, np.abs(outcome.quality - benchmark.run(of, labelled, benchmark.SSL, *GAMMAS).quality).max()
        )


def test_offline_is_the_estimators_offline() -> None:
    of = task(2)
    labelled = of.labelings(range(1))
    outcome = benchmark.run_offline(of, labelled, *GAMMAS)
    X = csr_matrix(np.vstack([frame.X.toarray() for frame in of.frames]))
    y = np.concatenate([frame.y for frame in of.frames])
    shown = np.concatenate([mask[:, 0] for mask in labelled])
    frames = np.repeat(np.arange(MONTHS), EACH)
    made = SSLEOffline(gamma_A=GAMMAS[0], gamma_I=GAMMAS[1])
    scores = made.fit(X, np.where(shown, np.array(["a", "b"])[y], ""), frames=frames).decision_function(
        X, frames=frames
    )
    for t in range(MONTHS):
        rest = ~shown & (frames == t)
        assert outcome.quality[t, 0] == pytest.approx(auc(y[rest] == 1, scores[rest]), abs=0.01)


def test_what_is_solved_anew_sees_nothing_later_and_is_compared_with_its_own_months() -> None:
    of = task(2)
    labelled = of.labelings(range(2))
    assert benchmark.every_third(of) == [2]
    anew = benchmark.run_refitted(of, labelled, *GAMMAS).quality
    assert len(of.frames) == MONTHS
    of.frames = of.frames[:3]
    np.testing.assert_array_equal(anew, benchmark.run_offline(of, labelled[:3], *GAMMAS).quality[-1:])


def test_leads_are_of_frames_with_labelings_averaged() -> None:
    one, other = np.array([[0.9, 0.7], [0.8, 0.8]]), np.array([[0.7, 0.7], [0.6, 0.8]])
    assert benchmark.lead(one, other) == "+10.00 (0.00)"
    assert benchmark.lead(one[:, :1], other[:, 1:]) == "+10.00 (10.00)"
