"""Every distribution against the plain reading of its equations, and its maximum against general optimisers."""

from __future__ import annotations

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


@pytest.mark.parametrize("lam", [1e-4, 0.1, 0.9])
def test_sparse_geometric_mean_is_the_dense_one(counts, lam):
    """(3.33) = (3.28)."""
    ge = plain.general_english(counts, 0.5)
    found = SmoothedDirichlet.fit(csr_matrix(counts), smoothing=lam, background_additive=0.5, scale=3.0)
    dense = plain.geometric_mean(plain.smoothed(counts, lam, ge), 3.0)
    assert found.background == pytest.approx(ge)
    assert found.alpha == pytest.approx(dense, rel=1e-11)
    assert found.scale == pytest.approx(3.0)


@pytest.mark.parametrize("lam", [1e-3, 0.5])
def test_sd_density(counts, lam):
    model = SmoothedDirichlet.fit(counts, smoothing=lam, background_additive=0.5, scale=2.0)
    theta = plain.smoothed(counts, lam, model.background)
    assert model.log_density(csr_matrix(counts)) == pytest.approx(plain.log_sd(theta, model.alpha), rel=1e-10)
    assert model.log_likelihood == pytest.approx(plain.log_sd(theta, model.alpha).sum(), rel=1e-10)


def test_sd_fit_is_the_maximum(counts):
    model = SmoothedDirichlet.fit(counts, smoothing=0.5, background_additive=0.5, scale=2.0)
    theta = plain.smoothed(counts, 0.5, model.background)
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
@pytest.mark.parametrize("method", ["newton", "fixed-point"])
def test_dirichlet_reaches_the_maximum(counts, S, method):
    model = Dirichlet.fit(
        counts, smoothing=0.6, background_additive=0.5, scale=S, method=method, max_iter=20000, tolerance=1e-10
    )
    assert model.converged
    theta = plain.smoothed(counts, 0.6, model.background)
    best = plain.maximise(lambda a: plain.log_dirichlet(theta, a).sum(), counts.shape[1], S)
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


def test_dirichlet_of_equal_documents_has_no_largest_scale():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = Dirichlet.fit([[3, 2, 1]] * 4, smoothing=0.5)
    assert not model.converged


# DCM --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("S", [0.5, 5.0, 500.0, None])
@pytest.mark.parametrize("method", ["newton", "fixed-point"])
def test_dcm_reaches_the_maximum(counts, S, method):
    model = DCM.fit(counts, scale=S, method=method, max_iter=20000, tolerance=1e-11)
    assert model.converged
    assert model.alpha == pytest.approx(plain.minka_dcm(counts, S), rel=1e-5)
    best = plain.maximise(lambda a: plain.log_dcm(counts, a).sum(), counts.shape[1], S)
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


def test_dcm_long_counts():
    """Longer than the loop multiplies out: log-gammas instead."""
    alpha = np.array([0.3, 2.0])
    counts = np.array([[1000.0, 33.0], [32.0, 0.0]])
    found = DCM(alpha).log_density(counts, coefficient=False)
    assert found == pytest.approx(plain.log_dcm(counts, alpha), rel=1e-12)


def test_dcm_of_enormous_counts():
    """A count of a thousand million is not written out as that many tails."""
    counts = np.array([[1e9, 3.0], [5.0, 2e9], [7.0, 4.0]])
    model = DCM.fit(counts, scale=3.0, tolerance=1e-11)
    assert model.converged
    assert model.alpha == pytest.approx(plain.minka_dcm(counts, 3.0), rel=1e-6)


def test_dcm_smoothing(counts):
    """(4.11)"""
    counts = np.column_stack([counts, np.zeros(len(counts))])
    plain_fit = DCM.fit(counts, scale=7.0)
    assert plain_fit.alpha[-1] == 0.0
    found = DCM.fit(counts, scale=7.0, additive=0.25).alpha
    V = counts.shape[1]
    assert found == pytest.approx(7.0 * (plain_fit.alpha + 0.25) / (7.0 + V * 0.25))


def test_dcm_of_multinomial_data_says_that_it_has_not_converged():
    """Documents less bursty than any multinomial's: S has no maximum."""
    with pytest.warns(ConvergenceWarning, match="fix the scale"):
        model = DCM.fit([[5, 5], [5, 5], [5, 5]])
    assert not model.converged


# All --------------------------------------------------------------------------------------------------------------

FITS = {
    "multinomial": lambda F, w: Multinomial.fit(F, w).theta,
    "sd": lambda F, w: SmoothedDirichlet.fit(F, w, smoothing=0.3, background_additive=0.1).alpha,
    "dirichlet": lambda F, w: Dirichlet.fit(F, w, smoothing=0.3, background_additive=0.1, scale=9.0).alpha,
    "dirichlet, S free": lambda F, w: Dirichlet.fit(F, w, smoothing=0.3, background_additive=0.1).alpha,
    "dcm": lambda F, w: DCM.fit(F, w, scale=9.0).alpha,
    "dcm, S free": lambda F, w: DCM.fit(F, w).alpha,
    "dcm, Minka": lambda F, w: DCM.fit(F, w, scale=9.0, method="fixed-point", max_iter=5000).alpha,
}


@pytest.mark.parametrize("name", FITS)
def test_weights_are_repetitions(name, counts):
    weights = np.random.default_rng(0).integers(0, 4, size=len(counts))
    fit = FITS[name]
    weighted = fit(counts, weights)
    repeated = fit(np.repeat(counts, weights, axis=0), None)
    assert weighted == pytest.approx(repeated, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ["dirichlet", "dirichlet, S free", "dcm", "dcm, S free", "dcm, Minka"])
def test_convergence_is_told(name, counts):
    model = {
        "dirichlet": lambda: Dirichlet.fit(counts, scale=9.0, background_additive=0.1),
        "dirichlet, S free": lambda: Dirichlet.fit(counts, background_additive=0.1),
        "dcm": lambda: DCM.fit(counts, scale=9.0),
        "dcm, S free": lambda: DCM.fit(counts),
        "dcm, Minka": lambda: DCM.fit(counts, scale=9.0, method="fixed-point"),
    }[name]()
    path = model.log_likelihood_path
    assert model.converged
    assert 1 <= model.n_iter <= len(path) + 1
    assert path[-1] >= path.max() - 1e-6 * abs(path[-1])
    assert path[-1] == model.log_likelihood


def test_minkas_iteration_never_goes_down(counts):
    path = DCM.fit(counts, scale=9.0, method="fixed-point").log_likelihood_path
    assert (np.diff(path) >= -1e-9).all()


def test_few_iterations_are_not_called_converged(counts):
    with pytest.warns(ConvergenceWarning):
        assert not DCM.fit(counts, scale=9.0, method="fixed-point", max_iter=2).converged


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
