"""The burstiness analysis against plain loops, and against documents whose distribution is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.results_burstiness import normaliser_curves, normaliser_figure
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.plotting import write_figure
from sdretrieval.estimate.distributions import burstiness, marginals
from sdretrieval.estimate.distributions.burstiness import NAMES, Documents, analyse, divergence, fit, word_classes
from sdretrieval.estimate.distributions.burstiness_plots import write_plot
from sdretrieval.estimate.distributions.sampling import sample_dcm, sample_multinomial


@pytest.fixture(scope="module")
def zipf() -> np.ndarray:
    weights = 1.0 / np.arange(1, 301)
    return weights / weights.sum()


@pytest.fixture(scope="module")
def bursty(zipf) -> csr_matrix:
    lengths = np.random.default_rng(1).integers(20, 60, 500)
    return sample_dcm(40 * zipf, lengths, seed=2)


def small() -> csr_matrix:
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.7, (12, 9))
    counts[0] += 1
    return csr_matrix(counts.astype(float))


def plain_log_mass(fitted: burstiness.Fitted, word: int, f: int, n: int) -> float:
    """One number at a time."""
    value = fitted.values[word]
    if fitted.name == "multinomial":
        return float(marginals.binomial_log_mass(f, n, value))
    if fitted.name == "dcm":
        return float(marginals.beta_binomial_log_mass(f, n, value, fitted.scale))
    return float(marginals.lattice_log_mass(f, n, value, fitted.scale, fitted.background[word], fitted.smoothing))


@pytest.mark.parametrize("name", NAMES)
def test_predictions_equal_plain_loops(name):
    counts = small()
    fitted = fit(name, counts, scale=8.0, smoothing=0.8)
    documents = Documents.of(counts)
    words = np.array([0, 4, 7])
    found = burstiness.predict(fitted, documents, words, top=5)
    dense, lengths = counts.toarray(), counts.sum(axis=1).A1
    for i, n in enumerate(lengths):
        expected = sum(plain_log_mass(fitted, w, int(dense[i, w]), int(n)) for w in words)
        assert found.per_document[i] == pytest.approx(expected, abs=1e-8)
    masses = [np.mean([np.exp(plain_log_mass(fitted, w, f, int(n))) for w in words for n in lengths]) for f in range(6)]
    np.testing.assert_allclose(found.masses, masses, rtol=1e-8)
    # All counts together are certain.
    everything = burstiness.predict(fitted, documents, words, top=int(lengths.max()))
    assert everything.masses.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_recipe(name):
    counts = small()
    fitted = fit(name, counts, scale=8.0, smoothing=0.8)
    words, top = np.array([1, 2]), 4
    lengths = counts.sum(axis=1).A1
    density = marginals.beta_log_density if name == "dirichlet" else marginals.approximate_beta_log_density

    def printed(w: int, n: float, f: int) -> float:
        if name in ("multinomial", "dcm"):  # (3.45), (3.46)
            return n * np.exp(plain_log_mass(fitted, w, f, int(n)))
        theta = marginals.smoothed_proportion(f, n, fitted.background[w], 0.8)  # (3.50) with (3.48) or (3.49)
        return np.exp(density(theta, fitted.values[w], 8.0))

    sums = np.array([sum(printed(w, n, f) for w in words for n in lengths if f <= n) for f in range(top + 1)])
    found = burstiness.predict_as_printed(fitted, Documents.of(counts), words, top)
    np.testing.assert_allclose(found, sums / sums.sum(), rtol=1e-8)


def test_empirical_shares():
    counts = small()
    words = np.array([0, 4, 7])
    dense = counts.toarray()[:, words]
    shares = burstiness.empirical(Documents.of(counts), words)
    assert shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(shares, [(dense == f).mean() for f in range(len(shares))])
    assert shares[-1] > 0


def test_divergence():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.3, 0.1])
    assert divergence(p, q) == pytest.approx(0.5 * np.log(0.5 / 0.6) + 0.2 * np.log(2))
    assert divergence(p, q, present=True) == pytest.approx(0.6 * np.log(0.6 / 0.75) + 0.4 * np.log(0.4 / 0.25))
    assert divergence(p, p) == 0
    assert 50 < divergence(np.array([0.9, 0.1]), np.array([1.0])) < np.inf  # held back by the smallest float
    assert np.isnan(divergence(np.array([1.0]), q, present=True))
    assert divergence(p, np.array([1.0]), present=True) == np.inf


def test_word_classes_are_one_four_and_ninety_five_per_cent():
    cf = np.random.default_rng(0).permutation(np.arange(1, 1001))
    high, medium, low = word_classes(cf)
    assert (len(high.words), len(medium.words), len(low.words)) == (10, 40, 950)
    assert cf[high.words].min() > cf[medium.words].max() > cf[medium.words].min() > cf[low.words].max()
    assert sum(one.share_of_occurrences for one in (high, medium, low)) == pytest.approx(1)
    sampled = word_classes(cf, most=20, seed=1)
    assert [len(one.sample) for one in sampled] == [10, 20, 20]
    assert set(sampled[2].sample) <= set(low.words)
    assert [len(one.words) for one in word_classes(np.array([5, 3, 2, 0]))] == [1, 1, 1]
    with pytest.raises(ParameterError, match="three classes"):
        word_classes(np.array([1, 0, 2]))


def test_documents_of_a_dcm_are_told_best_by_the_dcm(bursty):
    found = analyse(bursty, words=0)
    assert found.perplexity["dcm"] == min(found.perplexity.values())
    assert 20 < found.scales["dcm"] < 80  # the truth is 40
    for name in ("high", "medium", "low"):
        assert found.fits["dcm"][name].kl < found.fits["multinomial"][name].kl
    assert found.sizes == (300, 100, 100)


def test_documents_of_a_multinomial_need_no_burstiness(zipf):
    lengths = np.random.default_rng(4).integers(20, 60, 400)
    found = analyse(sample_multinomial(zipf, lengths, seed=5), words=0, names=("multinomial", "dcm"))
    assert found.scales["dcm"] > 500  # towards infinity, where the DCM is a multinomial
    assert found.perplexity["dcm"] == pytest.approx(found.perplexity["multinomial"], rel=0.02)


def test_perplexity_is_the_equation(bursty):
    """(3.42) by hand from the marginals, over every word and held-out document."""
    found = analyse(bursty, words=0, names=("multinomial",))
    order = np.random.default_rng(0).permutation(bursty.shape[0])
    test, train = bursty[order[:100]], bursty[order[200:]]
    known = np.flatnonzero(train.sum(axis=0).A1 > 0)
    theta = train.sum(axis=0).A1[known] / train.sum()
    dense = test[:, known].toarray()
    logs = marginals.binomial_log_mass(dense, dense.sum(axis=1, keepdims=True), theta)
    assert found.perplexity["multinomial"] == pytest.approx(np.exp(-logs.sum() / dense.sum()), rel=1e-9)
    assert found.occurrences == dense.sum()
    np.testing.assert_allclose(np.sort(found.per_document["multinomial"]), np.sort(logs.sum(axis=1)), rtol=1e-9)


def test_a_sample_of_words_stands_for_all(bursty):
    some, everything = (analyse(bursty, words=n, names=("multinomial",)) for n in (100, 0))
    assert some.perplexity["multinomial"] == pytest.approx(everything.perplexity["multinomial"], rel=0.1)
    assert len(some.classes[2].sample) == 100
    assert len(some.classes[2].words) > 200


def test_smoothing_can_be_chosen(bursty):
    fixed = analyse(bursty, words=60, names=("sd",))
    free = analyse(bursty, words=60, names=("sd",), smoothing=None)
    assert free.smoothings["sd"] in (0.1, 0.3, 0.5, 0.7, 0.9)
    best = max(trial.value for trial in fixed.trials["sd"])
    assert max(trial.value for trial in free.trials["sd"]) >= best
    assert fixed.smoothings["sd"] == 0.9


def test_choosing_by_the_tail(bursty):
    by_tail = analyse(bursty, words=60, names=("sd",), choose_by="tail")
    by_likelihood = analyse(bursty, words=60, names=("sd",))
    printed = analyse(bursty, words=60, names=("multinomial", "sd"), as_printed=True)
    assert by_tail.perplexity["sd"] >= by_likelihood.perplexity["sd"] * 0.98
    assert printed.choose_by == "tail"
    assert np.isnan(printed.perplexity["sd"])
    assert printed.fits["sd"]["low"].masses.sum() == pytest.approx(1)


def test_pictures(bursty, tmp_path):
    found = analyse(bursty, words=40, names=("multinomial", "dcm"))
    for name, magic in (("f.png", b"\x89PNG"), ("f.svg", b"<?xml"), ("f.pdf", b"%PDF")):
        write_plot(found, tmp_path / name, "made")
        assert (tmp_path / name).read_bytes().startswith(magic)
    write_figure(normaliser_figure(), tmp_path / "z.png", dpi=95)
    assert (tmp_path / "z.png").stat().st_size < 100_000


def test_figure_3_4():
    """The Dirichlet's normaliser is π / sin(πα); the exact SD's is bounded; Z_a is 1/2 in the middle."""
    curves = normaliser_curves(0.2, points=9)
    np.testing.assert_allclose(curves["dirichlet"], np.pi / np.sin(np.pi * curves["alpha"]))
    assert curves["exact"].max() < np.log(1.5) + 1e-6
    assert curves["approximate"][4] == pytest.approx(0.5)


def test_what_is_refused(bursty):
    for options, told in (
        ({"smoothing": 1.0}, "smoothing"),
        ({"words": -1}, "words"),
        ({"shares": (0.5, 0.5)}, "shares"),
        ({"choose_by": "eye"}, "no way to choose"),
        ({"names": ("poisson",)}, "no distribution 'poisson'"),
    ):
        with pytest.raises(ParameterError, match=told):
            analyse(bursty, **options)
    with pytest.raises(ParameterError, match="too few"):
        analyse(bursty[:5])
