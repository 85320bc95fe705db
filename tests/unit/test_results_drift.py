"""What is behind the tables and pictures of drift: scores by day, pairs of words, paths in the simplex."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.drift_figures import place, simulated_mise
from benchmarks.results_drift import Data, Scored, mixture, score
from benchmarks.results_drift_more import MODELS, Pairs, errors_of, scored_pairs
from sdretrieval.core.timeline import DAY
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood


def test_the_error_of_a_difference_is_that_of_resampled_days() -> None:
    rng = np.random.default_rng(0)
    words = rng.integers(50, 200, 300).astype(float)
    one, other = (Scored(words * -7 + rng.normal(0, 30, 300), words) for _ in range(2))
    means = []
    for _ in range(2000):
        rows = rng.integers(300, size=300)
        means.append((one.sums - other.sums)[rows].sum() / words[rows].sum())
    assert one.error_to(other) == pytest.approx(np.std(means), rel=0.08)


def test_a_local_class_model_follows_what_a_global_one_confuses() -> None:
    """The classes trade their words half way."""
    rng = np.random.default_rng(1)
    times = np.arange(40) * float(DAY)
    classes = {}
    for label, (early, late) in {"a": (0, 1), "b": (1, 0)}.items():
        train, test = (
            csr_matrix(
                np.array([rng.multinomial(10, np.eye(4)[early if d < 20 else late] * 0.7 + 0.075) for d in range(40)])
            ).astype(float)
            for _ in range(2)
        )
        classes[label] = Data(train, times, test, times)
    kernel = Kernel("tricube")
    local, whole = errors_of(classes, [5.0 * DAY] * 2, kernel), errors_of(classes, [np.inf] * 2, kernel)
    assert local.words.sum() == whole.words.sum() == 80
    assert local.mean < 0.1 < 0.3 < whole.mean


def pairs() -> Pairs:
    """Every day one document; the word before decides, and what follows 0 changes on day 20."""
    rng = np.random.default_rng(2)
    before, word, row = [], [], []
    for day in range(40):
        tokens = [int(rng.integers(5))]
        for _ in range(60):
            tokens.append((tokens[-1] + (1 if day < 20 else 2)) % 5 if rng.random() < 0.9 else int(rng.integers(5)))
        before += tokens[:-1]
        word += tokens[1:]
        row += [day] * 60
    return Pairs(np.array(before), np.array(word), np.array(row), np.arange(40) * DAY, 5)


def test_pairs_keep_their_columns_when_documents_are_chosen() -> None:
    everything = pairs()
    some = everything.select(np.array([3, 7]))
    assert len(some.word) == 120 and set(some.row) == {0, 1} and some.times.tolist() == [3 * DAY, 7 * DAY]
    columns = some.column(some.code)
    known = columns < len(some.seen)
    np.testing.assert_array_equal(some.seen[columns[known]], some.code[known])
    codes, counts = np.unique(some.code, return_counts=True)
    assert set(some.code[~known]) == set(codes[counts < 2])


@pytest.mark.parametrize("online", [False, True])
def test_local_pairs_are_best_where_pairs_drift_and_words_do_not(online: bool) -> None:
    everything = pairs()
    train, test = everything.select(np.arange(0, 40, 2)), everything.select(np.arange(1, 40, 2))
    [found] = scored_pairs(train, test, 8.0 * DAY, online, [(10.0, 10.0)])
    means = {label: found[label].mean for label in MODELS}
    assert means["pairs, local"] > means["pairs, global"] + 0.15
    assert abs(means["words, local"] - means["words, global"]) < 0.1
    assert all(one.words.sum() == len(test.word) for one in found.values())


def test_the_first_rows_of_pairs_are_the_models_of_single_words() -> None:
    """What Drift scores, on the second words of the pairs."""
    everything = pairs()
    train, test = everything.select(np.arange(0, 40, 2)), everything.select(np.arange(1, 40, 2))
    [found] = scored_pairs(train, test, 8.0 * DAY, False, [(10.0, 10.0)])
    data = Data(train.counts(train.word, 5), train.times, test.counts(test.word, 5), test.times)
    model = LocalLikelihood(data.train, data.train_times, 8.0 * DAY, resolution=DAY)
    assert score(data, mixture(model), False).mean == pytest.approx(found["words, local"].mean)


def test_the_simulated_error_falls_with_the_documents() -> None:
    few, many = (np.mean([simulated_mise(n, False, seed) for seed in range(3)]) for n in (200, 2000))
    assert many < 0.4 * few


def test_corners_of_the_simplex() -> None:
    np.testing.assert_allclose(place(np.eye(3)), [[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
