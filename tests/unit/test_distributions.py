"""Every distribution against the plain reading of its equations, and its maximum against general optimisers."""

from __future__ import annotations

from functools import partial

import classify_oracle as plain
import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_matrix
from scipy.special import polygamma, psi
from sklearn.exceptions import ConvergenceWarning

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions import DCM, Dirichlet, Multinomial, SmoothedDirichlet, general_english
from sdretrieval.estimate.distributions.fitting import digamma_pair, inverse_digamma


def bursty(seed: int, docs: int = 30, words: int = 12, spread: float = 0.4) -> np.ndarray:
    """Counts with more bursts than a multinomial has; every word occurs, one document is empty."""
    random = np.random.default_rng(seed)
    theta = random.dirichlet(np.full(words, spread), size=docs)
    counts = np.array([random.multinomial(random.integers(5, 50), t) for t in theta]).astype(float)
    counts[0] += 1
    counts[3] = 0
    return counts


@pytest.fixture(params=[0, 1, 2])
def counts(request) -> np.ndarray:
    return bursty(request.param)


def test_digamma_and_its_inverse():
    for x in np.geomspace(1e-6, 1e6, 60):
        value, slope = digamma_pair(x)
        assert value == pytest.approx(psi(x), rel=1e-12, abs=1e-13)
        assert slope == pytest.approx(polygamma(1, x), rel=1e-12)
        for start in (0.0, x / 3, x * 2):
            found, curvature = inverse_digamma(psi(x), start)
            assert found == pytest.approx(x, rel=1e-8)
            assert curvature == pytest.approx(polygamma(1, x), rel=1e-7)


# Multinomial ------------------------------------------------------------------------------------------------------


def test_multinomial_fits(counts):
    assert Multinomial.fit(counts).theta == pytest.approx(counts.sum(axis=0) / counts.sum())
    assert Multinomial.fit(counts, additive=0.3).theta == pytest.approx(plain.laplace(counts, 0.3))
    ge = plain.general_english(counts, 2.0)
    found = Multinomial.fit(counts, smoothing=0.4, background=ge).theta
    assert found == pytest.approx(plain.jelinek_mercer(counts, 0.4, ge))


def test_multinomial_density_is_scipys(counts):
    model = Multinomial.fit(counts)
    wanted = [float(stats.multinomial(int(f.sum()), model.theta).logpmf(f)) for f in counts]
    assert model.log_density(counts) == pytest.approx(wanted)
    assert model.log_likelihood == pytest.approx(sum(wanted))
    without = (counts * np.log(model.theta)).sum(axis=1)
    assert model.log_density(csr_matrix(counts), coefficient=False) == pytest.approx(without)


def test_unseen_words_are_impossible_only_where_they_occur():
    model = Multinomial.fit([[2, 1, 0]])
    assert np.isfinite(model.log_density([[1, 1, 0]])).all()
    assert np.isneginf(model.log_density([[1, 0, 1]])).all()


# Smoothed Dirichlet -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [1e-3, 0.5, 0.9])
def test_sd_fit_and_density(counts, lam):
    """Any counts: tests/properties/test_distributions_exact.py."""
    model = SmoothedDirichlet.fit(csr_matrix(counts), smoothing=lam, background_additive=0.5, scale=2.0)
    assert model.background == pytest.approx(plain.general_english(counts, 0.5))
    theta = plain.smoothed(counts, lam, model.background)
    assert model.alpha == pytest.approx(plain.geometric_mean(theta, 2.0), rel=1e-11)
    assert model.scale == pytest.approx(2.0)
    assert model.log_density(csr_matrix(counts)) == pytest.approx(plain.log_sd(theta, model.alpha), rel=1e-10)
    assert model.log_likelihood == pytest.approx(plain.log_sd(theta, model.alpha).sum(), rel=1e-10)
    if lam == 0.5:
        best = plain.maximise(lambda a: plain.log_sd(theta, a).sum(), counts.shape[1], 2.0)
        assert model.alpha == pytest.approx(best, rel=1e-3)
        assert model.log_likelihood >= plain.log_sd(theta, best).sum() - 1e-7


def test_many_documents_do_not_overflow_the_product():
    """4,000 documents of factors up to 1e7: the product itself has 20,000 digits."""
    random = np.random.default_rng(1)
    counts = random.poisson(0.5, size=(4000, 6)).astype(float)
    ge = np.array([1 - 5e-7, *[1e-7] * 5])
    found = SmoothedDirichlet.fit(counts, smoothing=0.9, background=ge).alpha
    log_mean = np.log(plain.smoothed(counts, 0.9, ge)).mean(axis=0)
    wanted = np.exp(log_mean - log_mean.max())
    assert found == pytest.approx(wanted / wanted.sum(), rel=1e-10)


# Dirichlet --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("S", [0.5, 20.0, 2000.0, None])
def test_dirichlet_reaches_the_maximum(counts, S):
    given = {"smoothing": 0.6, "background_additive": 0.5, "scale": S, "max_iter": 20000, "tolerance": 1e-10}
    newton, printed = (Dirichlet.fit(counts, method=method, **given) for method in ("newton", "fixed-point"))
    theta = plain.smoothed(counts, 0.6, newton.background)
    best = plain.maximise(lambda a: plain.log_dirichlet(theta, a).sum(), counts.shape[1], S)
    for model in (newton, printed):
        assert model.converged
        assert model.alpha == pytest.approx(best, rel=5e-3)
        assert model.log_likelihood == pytest.approx(plain.log_dirichlet(theta, model.alpha).sum(), rel=1e-9)
        assert model.log_likelihood >= plain.log_dirichlet(theta, best).sum() - 1e-6
        # the equation of the maximum itself: ψ(α_j) - L_j is one number (ψ(S) with S free)
        shift = psi(model.alpha) - np.log(theta).mean(axis=0)
        assert np.ptp(shift) < 1e-5 * max(1.0, abs(shift[0]))
        if S is None:
            assert shift == pytest.approx(np.full(len(shift), psi(model.scale)), rel=1e-5, abs=1e-6)
        else:
            assert model.scale == pytest.approx(S)


def test_dirichlet_density_is_scipys(counts):
    model = Dirichlet.fit(counts, smoothing=0.6, background_additive=0.5, scale=20.0)
    theta = plain.smoothed(counts, 0.6, model.background)
    wanted = [float(stats.dirichlet(model.alpha).logpdf(t / t.sum())) for t in theta]
    assert model.log_density(counts) == pytest.approx(wanted, rel=1e-9)


# DCM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("S", [0.5, 5.0, 500.0, None])
def test_dcm_reaches_the_maximum(counts, S):
    wanted = plain.minka_dcm(counts, S)
    best = plain.maximise(lambda a: plain.log_dcm(counts, a).sum(), counts.shape[1], S)
    for method in ("newton", "fixed-point"):
        model = DCM.fit(counts, scale=S, method=method, max_iter=20000, tolerance=1e-11)
        assert model.converged
        assert model.alpha == pytest.approx(wanted, rel=1e-5)
        assert model.log_likelihood == pytest.approx(plain.log_dcm(counts, model.alpha).sum(), rel=1e-10)
        assert model.log_likelihood >= plain.log_dcm(counts, best).sum() - 1e-6


def test_dcm_recovers_what_made_the_documents():
    random = np.random.default_rng(4)
    truth = np.array([0.1, 0.5, 1.0, 2.0, 4.0])
    counts = np.array([random.multinomial(200, random.dirichlet(truth)) for _ in range(4000)])
    assert DCM.fit(counts).alpha == pytest.approx(truth, rel=0.08)


def test_dcm_density_is_scipys(counts):
    model = DCM.fit(counts)
    wanted = [float(stats.dirichlet_multinomial(model.alpha, int(f.sum())).logpmf(f)) for f in counts]
    assert model.log_density(csr_matrix(counts)) == pytest.approx(wanted, abs=1e-9)
    assert model.log_density(counts, coefficient=False) == pytest.approx(plain.log_dcm(counts, model.alpha), abs=1e-9)


def test_dcm_with_counts_that_are_not_whole(counts):
    half = counts / 2
    for S in (5.0, None):
        model = DCM.fit(half, scale=S, tolerance=1e-11)
        assert model.alpha == pytest.approx(plain.minka_dcm(half, S), rel=1e-5)
        assert model.log_density(half, coefficient=False) == pytest.approx(plain.log_dcm(half, model.alpha), abs=1e-9)


def test_dcm_of_enormous_counts():
    """A count of a thousand million is not written out as that many tails; nor are long ones multiplied out."""
    counts = np.array([[1e9, 3.0], [5.0, 2e9], [7.0, 4.0]])
    model = DCM.fit(counts, scale=3.0, tolerance=1e-11)
    assert model.converged
    assert model.alpha == pytest.approx(plain.minka_dcm(counts, 3.0), rel=1e-6)
    alpha, counts = np.array([0.3, 2.0]), np.array([[1000.0, 33.0], [32.0, 0.0]])
    found = DCM(alpha).log_density(counts, coefficient=False)
    assert found == pytest.approx(plain.log_dcm(counts, alpha), rel=1e-12)


def test_dcm_smoothing(counts):
    """(4.11)"""
    counts = np.column_stack([counts, np.zeros(len(counts))])
    plain_fit = DCM.fit(counts, scale=7.0)
    assert plain_fit.alpha[-1] == 0.0
    found = DCM.fit(counts, scale=7.0, additive=0.25).alpha
    V = counts.shape[1]
    assert found == pytest.approx(7.0 * (plain_fit.alpha + 0.25) / (7.0 + V * 0.25))


# All --------------------------------------------------------------------------------------------------------------

SMOOTHED = {"smoothing": 0.3, "background_additive": 0.1}
FITS = {
    "multinomial": partial(Multinomial.fit),
    "sd": partial(SmoothedDirichlet.fit, **SMOOTHED),
    "dirichlet": partial(Dirichlet.fit, scale=9.0, **SMOOTHED),
    "dirichlet, S free": partial(Dirichlet.fit, **SMOOTHED),
    "dcm": partial(DCM.fit, scale=9.0),
    "dcm, S free": partial(DCM.fit),
    "dcm, Minka": partial(DCM.fit, scale=9.0, method="fixed-point", max_iter=5000),
}


@pytest.mark.parametrize("name", FITS)
def test_weights_are_repetitions(name, counts):
    weights = np.random.default_rng(0).integers(0, 4, size=len(counts))
    weighted, repeated = FITS[name](counts, weights), FITS[name](np.repeat(counts, weights, axis=0))
    what = "theta" if name == "multinomial" else "alpha"
    assert getattr(weighted, what) == pytest.approx(getattr(repeated, what), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", list(FITS)[2:])
def test_convergence_is_told(name, counts):
    model = FITS[name](counts)
    path = model.log_likelihood_path
    assert model.converged
    assert 1 <= model.n_iter <= len(path) + 1
    assert path[-1] >= path.max() - 1e-6 * abs(path[-1])
    assert path[-1] == model.log_likelihood
    if "Minka" in name:  # it never goes down
        assert (np.diff(path) >= -1e-9).all()


@pytest.mark.parametrize(
    "fit",
    [
        lambda: DCM.fit([[5, 5], [5, 5], [5, 5]]),  # less bursty than any multinomial's: S has no maximum
        lambda: Dirichlet.fit([[3, 2, 1]] * 4, smoothing=0.5),  # equal documents: the same
        lambda: DCM.fit(bursty(0), scale=9.0, method="fixed-point", max_iter=2),
    ],
)
def test_a_fit_that_has_not_converged_says_so(fit):
    with pytest.warns(ConvergenceWarning, match="did not converge.*fix the scale"):
        assert not fit().converged


def test_general_english():
    assert general_english(csr_matrix([[1.0, 0.0], [2.0, 0.0]]), 0.5).tolist() == [0.875, 0.125]
    assert general_english(csr_matrix((2, 4)), 0.0).tolist() == [0.25] * 4


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Multinomial.fit([[-1.0, 2.0]]), "-1.0"),
        (lambda: Multinomial.fit([[np.nan, 2.0]]), "nan"),
        (lambda: Multinomial.fit([[1.0, 2.0]], [-1.0]), "weights"),
        (lambda: Multinomial.fit([[1.0, 2.0]], [1.0, 2.0]), "weights"),
        (lambda: Multinomial.fit([[1.0]], additive=-1), "additive"),
        (lambda: Multinomial.fit([[1.0]], smoothing=0.5), "background"),
        (lambda: SmoothedDirichlet.fit([[1.0]], smoothing=1.0), "between 0 and 1"),
        (lambda: SmoothedDirichlet.fit([[1.0, 0.0]]), "1 of 2 terms"),
        (lambda: SmoothedDirichlet.fit([[1.0, 1.0]], background=[0.5, 0.4]), "sum to one"),
        (lambda: SmoothedDirichlet.fit([[1.0, 1.0]], background=[1.0]), "2 terms"),
        (lambda: SmoothedDirichlet.fit([[1.0]], scale=0.0), "positive"),
        (lambda: Dirichlet.fit([[1.0, 1.0]], method="gradient"), "gradient"),
        (lambda: DCM.fit([[1.0, 1.0]], method="gradient"), "gradient"),
        (lambda: DCM.fit([[1.0, 1.0]], scale=-4.0), "-4"),
    ],
)
def test_bad_input_is_named(call, said):
    with pytest.raises(ParameterError, match=said):
        call()
