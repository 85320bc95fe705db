"""The local unigram model (10) against a plain double loop, its limits, and its edges."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import DAY
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.kernels import Kernel, kernel_names
from sdretrieval.estimate.time.local_likelihood import (
    GroupedLocalLikelihood,
    LocalLikelihood,
    conditional,
    ngram_counts,
)


def plain(counts: np.ndarray, times: np.ndarray, t: float, h: float, kernel: Kernel) -> np.ndarray:
    """(10), word by word and document by document."""
    n_docs, n_words = counts.shape
    above, below = np.zeros(n_words), 0.0
    for d in range(n_docs):
        weight = float(kernel((t - times[d]) / h))
        for w in range(n_words):
            above[w] += weight * counts[d, w]
            below += weight * counts[d, w]
    return above / below if below > 0 else np.full(n_words, np.nan)


@pytest.fixture
def sample() -> tuple[np.ndarray, np.ndarray]:
    """Sixty documents over twelve words; times unsorted, some equal."""
    rng = np.random.default_rng(3)
    return rng.poisson(0.7, (60, 12)), rng.permutation(np.round(rng.uniform(0, 20, 60), 1))


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("name", kernel_names())
def test_equals_the_plain_double_loop(sample, name: str, online: bool) -> None:
    counts, times = sample
    kernel = Kernel(name, online)
    at = np.concatenate([times[:7], np.linspace(-3, 25, 9)])
    for h in (0.4, 3.0, 40.0):
        model = LocalLikelihood(csr_matrix(counts), times, h, kernel=kernel)
        expected = np.array([plain(counts, times, t, h, kernel) for t in at])
        assert model.over(at) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_by_hand() -> None:
    """Triangular, h = 2, t = 1: weights 1/2 and 1 on (3, 1) and (0, 2); θ̂ = (1.5, 2.5) / 4."""
    model = LocalLikelihood(csr_matrix([[3, 1], [0, 2], [9, 9]]), [0.0, 1.0, 3.0], 2.0, kernel="triangular")
    assert model.at(1.0).tolist() == [1.5 / 4, 2.5 / 4]


def test_infinite_bandwidth_is_the_global_model(sample) -> None:
    counts, times = sample
    whole = counts.sum(axis=0) / counts.sum()
    for t in (-100.0, 7.0):
        assert LocalLikelihood(csr_matrix(counts), times, np.inf).at(t) == pytest.approx(whole, rel=1e-12)
    wide = LocalLikelihood(csr_matrix(counts), times, 1e6).at(7.0)
    assert wide == pytest.approx(whole, rel=1e-9)
    assert LocalLikelihood(csr_matrix(counts), times, 10.0).at(7.0) != pytest.approx(whole, rel=1e-3)


def test_zero_bandwidth_is_the_extreme_local_model(sample) -> None:
    counts, times = sample
    t = times[5]
    same = counts[times == t].sum(axis=0)
    for h in (0.0, 1e-9):
        assert LocalLikelihood(csr_matrix(counts), times, h).at(t) == pytest.approx(same / same.sum())


def test_online_infinite_bandwidth_is_all_of_the_strict_past(sample) -> None:
    counts, times = sample
    t = np.sort(times)[30]
    past = counts[times < t].sum(axis=0)
    model = LocalLikelihood(csr_matrix(counts), times, np.inf, online=True)
    assert model.at(t) == pytest.approx(past / past.sum(), rel=1e-12)


def test_only_documents_within_the_support_are_touched(sample) -> None:
    """Poison everything outside the window: nothing of it may reach the answer."""
    counts, times = sample
    clean = LocalLikelihood(csr_matrix(counts, dtype=float), times, 2.0).at(10.0)
    poisoned = counts.astype(float)
    poisoned[np.abs(times - 10.0) > 2.0] = np.nan
    model = LocalLikelihood(csr_matrix(poisoned), times, 2.0)
    assert model.at(10.0) == pytest.approx(clean, rel=1e-12)


def test_a_whole_drift_needs_no_dense_matrix() -> None:
    """200 times x 5000 words would be 8 MB; going through them row by row stays below a quarter of that."""
    rng = np.random.default_rng(0)
    counts = csr_matrix(random_array((400, 5000), density=0.01, rng=rng).tocsr())
    times = rng.uniform(0, 100, 400)
    model = LocalLikelihood(counts, times, 10.0)
    tracemalloc.start()
    total = sum(theta.sum() for _, theta in model.rows(np.linspace(0, 100, 200)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == pytest.approx(200)
    assert peak < 200 * 5000 * 8 / 4


def test_words_asked_for_are_columns_of_the_whole(sample) -> None:
    counts, times = sample
    model = LocalLikelihood(csr_matrix(counts), times, 3.0)
    at = [15.0, 2.0, 8.0]
    assert model.over(at, [7, 0]).tolist() == model.over(at)[:, [7, 0]].tolist()


def test_rows_come_in_order_of_time(sample) -> None:
    counts, times = sample
    model = LocalLikelihood(csr_matrix(counts), times, 3.0)
    got = list(model.rows([15.0, 2.0, 8.0]))
    assert [t for t, _ in got] == [2.0, 8.0, 15.0]
    assert got[2][1] == pytest.approx(model.at(15.0))


# -- documents' own times --------------------------------------------------------------------------------------


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("empty", ["nan", "global"])
def test_at_documents_is_the_model_at_their_own_time_and_words(sample, empty: str, online: bool) -> None:
    counts, times = sample
    model = LocalLikelihood(csr_matrix(counts), times, 3.0, empty=empty, online=online)
    asked = times + np.where(np.arange(len(times)) % 3, 0.0, 1e4)  # every third far from any document
    own = model.at_documents(csr_matrix(counts), asked).toarray()
    for d in range(len(times)):
        assert own[d] == pytest.approx(np.where(counts[d] > 0, model.at(asked[d]), 0.0), nan_ok=True)


def test_at_documents_without_any_within_reach(sample) -> None:
    counts, times = sample
    model = LocalLikelihood(csr_matrix(counts), times, 3.0, empty="error")
    with pytest.raises(ParameterError, match="no document lies within reach"):
        model.at_documents(csr_matrix(counts), times + 1e4)


def test_undated_documents_are_smoothed_with_the_global_model() -> None:
    counts, times = csr_matrix([[2, 0], [0, 2], [1, 1]]), np.array([0, 10 * DAY, UNDATED])
    model = LocalLikelihood(counts, times, 1.0 * DAY)
    assert model.at_documents(counts, times).toarray()[2].tolist() == [0.5, 0.5]


# -- edges -----------------------------------------------------------------------------------------------------


def test_undated_documents_are_left_out(sample) -> None:
    counts, times = sample
    stamps = (times * DAY).astype(np.int64)
    undated = stamps.copy()
    undated[:20] = UNDATED
    with_gaps = LocalLikelihood(csr_matrix(counts), undated, 3.0 * DAY)
    without = LocalLikelihood(csr_matrix(counts[20:]), stamps[20:], 3.0 * DAY)
    assert with_gaps.at(8.0 * DAY) == pytest.approx(without.at(8.0 * DAY))
    assert with_gaps.line.undated == 20


def test_nothing_within_reach() -> None:
    counts, times = csr_matrix([[3, 1]]), [0.0]
    assert np.isnan(LocalLikelihood(counts, times, 1.0).at(5.0)).all()
    assert LocalLikelihood(counts, times, 1.0, empty="global").at(5.0).tolist() == [0.75, 0.25]
    with pytest.raises(ParameterError, match="within the tricube kernel's reach of time 5"):
        LocalLikelihood(counts, times, 1.0, empty="error").at(5.0)


def test_online_fallback_never_sees_the_future() -> None:
    counts, times = csr_matrix([[3, 1], [0, 4], [9, 9]]), [0.0, 10.0, 20.0]
    model = LocalLikelihood(counts, times, 1.0, online=True, empty="global")
    # in this order: the fallback has to start again for an earlier time
    assert model.at(15.0).tolist() == [3 / 8, 5 / 8]
    assert model.over([15.0, 5.0, 0.0]).tolist() == [[3 / 8, 5 / 8], [3 / 4, 1 / 4], [1 / 2, 1 / 2]]


def test_all_documents_at_one_instant() -> None:
    counts = csr_matrix([[3, 1], [0, 4]])
    for h in (0.0, 1.0, np.inf):
        assert LocalLikelihood(counts, [7.0, 7.0], h).at(7.0).tolist() == [3 / 8, 5 / 8]
    assert np.isnan(LocalLikelihood(counts, [7.0, 7.0], 1.0, online=True).at(7.0)).all()


def test_single_document() -> None:
    model = LocalLikelihood(csr_matrix([[1, 3]]), [7.0], 1.0)
    assert model.at(7.5).tolist() == [0.25, 0.75]


def test_no_documents_at_all() -> None:
    model = LocalLikelihood(csr_matrix((0, 3)), np.zeros(0), 1.0)
    assert np.isnan(model.at(0.0)).all()


def test_resolution_merges_days_and_keeps_the_present_day_out_of_the_past() -> None:
    """At 15:00 the 20:00 document of the same day lies in the future; the bin of t is left out as a whole."""
    hour = DAY / 24
    counts = csr_matrix([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    times = [5 * hour, DAY + 3 * hour, DAY + 20 * hour]
    model = LocalLikelihood(counts, times, np.inf, online=True, resolution=DAY)
    assert model.at(DAY + 15 * hour).tolist() == [1, 0, 0]
    assert model.at(2 * DAY + hour) == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def test_bandwidth_may_vary_with_time(sample) -> None:
    counts, times = sample
    model = LocalLikelihood(csr_matrix(counts), times, lambda t: np.where(t < 10, 1.0, 5.0))
    assert model.at(4.0) == pytest.approx(LocalLikelihood(csr_matrix(counts), times, 1.0).at(4.0))
    assert model.at(12.0) == pytest.approx(LocalLikelihood(csr_matrix(counts), times, 5.0).at(12.0))


def test_local_counts_are_worth_the_effective_number_of_words() -> None:
    """Equal weights: the plain counts. Weights 1 and 1/2 on 4 words each: (4 + 2)² / (4 + 1) = 7.2 words."""
    counts = csr_matrix([[3, 1], [0, 4]])
    flat = LocalLikelihood(counts, [0.0, 1.0], 5.0, kernel="uniform")
    assert flat.local_counts(0.0).tolist() == [3, 5]
    model = LocalLikelihood(counts, [0.0, 1.0], 2.0, kernel="triangular")
    assert model.effective_words([0.0, 9.0]) == pytest.approx([7.2, 0])
    assert model.local_counts(0.0).sum() == pytest.approx(7.2)
    assert model.local_counts(0.0) / 7.2 == pytest.approx(model.at(0.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bandwidth": -1.0}, "-1.0"),
        ({"bandwidth": 1.0, "empty": "zero"}, "empty='zero'"),
        ({"bandwidth": 1.0, "times": [1.0]}, "2 documents but 1 times"),
        ({"bandwidth": 1.0, "resolution": 0.0}, "resolution"),
    ],
)
def test_bad_arguments_are_named(arguments: dict, message: str) -> None:
    options = {"times": [0.0, 1.0], **arguments}
    with pytest.raises(ParameterError, match=message):
        LocalLikelihood(csr_matrix([[1], [1]]), **options)


def test_times_asked_for_must_be_finite() -> None:
    with pytest.raises(ParameterError, match="finite"):
        LocalLikelihood(csr_matrix([[1]]), [0.0], 1.0).at(float("nan"))


# -- groups of words and n-grams -------------------------------------------------------------------------------


def test_one_bandwidth_for_all_groups_is_the_plain_model(sample) -> None:
    counts, times = sample
    grouped = GroupedLocalLikelihood(csr_matrix(counts), times, [3.0, 3.0], np.arange(12) % 2)
    assert grouped.at(8.0) == pytest.approx(LocalLikelihood(csr_matrix(counts), times, 3.0).at(8.0))


def test_groups_use_their_own_bandwidth_up_to_normalisation(sample) -> None:
    counts, times = sample
    narrow = LocalLikelihood(csr_matrix(counts), times, 1.0).at(8.0)
    wide = LocalLikelihood(csr_matrix(counts), times, 9.0).at(8.0)
    grouped = GroupedLocalLikelihood(csr_matrix(counts), times, [1.0, 9.0], np.arange(12) % 2).at(8.0)
    mixed = np.where(np.arange(12) % 2 == 0, narrow, wide)
    assert grouped == pytest.approx(mixed / mixed.sum())


def test_ngram_counts_by_hand() -> None:
    counts, grams = ngram_counts([["a", "b", "a", "b"], ["b"], ["b", "b"]], 2)
    assert grams == [("a", "b"), ("b", "a"), ("b", "b")]
    assert counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_bigrams_go_through_the_same_code() -> None:
    """After 'a' the early documents say 'b', the late ones 'c'."""
    sequences = [["a", "b"]] * 3 + [["a", "c"]] * 3
    counts, grams = ngram_counts(sequences, 2)
    model = LocalLikelihood(counts, [0.0, 1.0, 2.0, 8.0, 9.0, 10.0], 3.0)
    early, late = conditional(model.at(1.0), grams), conditional(model.at(9.0), grams)
    assert early.tolist() == [1, 0]
    assert late.tolist() == [0, 1]


def test_conditional_normalises_within_a_history() -> None:
    grams = [("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")]
    assert conditional(np.array([0.1, 0.3, 0.6, 0.0]), grams) == pytest.approx([0.25, 0.75, 1.0, np.nan], nan_ok=True)
