"""Every kernel of the registry, built in or from outside, in one battery; and unknown ones are errors everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time import kernels
from sdretrieval.estimate.time.bandwidth import mlcv
from sdretrieval.estimate.time.density import likelihood_bandwidth, silverman, weighted_kde
from sdretrieval.estimate.time.kernels import Kernel, kernel_names, register_kernel
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.learn.tracking.story import Forgetting
from sdretrieval.ranking.time import prior_loops as loops
from sdretrieval.ranking.time.drifting_background import Drifting
from sdretrieval.ranking.time.prior import Density, Ranked, Recency, make_prior
from sdretrieval.ranking.time.wrappers import FeedbackTime

OUTSIDE = {
    "biweight": (lambda r: 15 / 16 * (1 - r**2) ** 2, 1.0),
    "cosine": (lambda r: np.pi / 4 * np.cos(np.pi / 2 * r), 1.0),
    "box": (lambda r: np.full(np.shape(r), 0.25), 2.0),
    "logistic": (lambda r: 1 / (2 + 2 * np.cosh(r)), 30.0),
    "laplace": (lambda r: 0.5 * np.exp(-r), 28.0),
}


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels of another package, for the time of a test."""
    monkeypatch.setattr(kernels, "_forms", dict(kernels._forms))
    for name, (formula, radius) in OUTSIDE.items():
        register_kernel(name, formula, radius=radius)
    yield


@pytest.fixture(params=[*kernel_names(), *OUTSIDE])
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def half(kernel: Kernel, k: int, l: int) -> float:
    """∫_0^∞ r^k K(r)^l dr, in pieces: kinks lie at whole numbers."""
    pieces = ((0.0, 1.0), (1.0, 2.0), (2.0, 60.0))
    return sum(quad(lambda r: r**k * float(kernel(r)) ** l, a, b, limit=200)[0] for a, b in pieces)


# -- one battery for all ---------------------------------------------------------------------------------------------


def test_integrates_to_one_and_has_its_moments(name: str) -> None:
    for online in (False, True):
        kernel = Kernel(name, online)
        assert kernel.moment(0, 1) == pytest.approx(1, abs=1e-8)
        for k in range(4):
            for l in (1, 2):
                both = half(kernel, k, l) * (1 if online else 1 + (-1) ** k)
                assert kernel.moment(k, l) == pytest.approx(both, rel=1e-6, abs=1e-9), (k, l)


def test_the_compiled_shape_is_the_formula(name: str) -> None:
    r = np.concatenate([np.linspace(0.0, 12.0, 3001), [1.0 - 1e-12, 1.0, 1.0 + 1e-12, 50.0, 1e6]])
    form = Kernel(name).form
    compiled = np.exp(loops.log_faded(form.shape, 1e-300, r, 1.0))
    assert compiled == pytest.approx(form.formula(r) / form.formula(np.zeros(1)), abs=1e-6)


def test_the_widths_are_where_they_say(name: str) -> None:
    form = Kernel(name).form
    peak = float(form.formula(np.zeros(1))[0])
    assert 0 < form.shape.reach <= form.width <= form.radius
    beyond = form.formula(np.linspace(form.width, 2 * form.width, 1000)[1:]) / peak
    assert (beyond <= 1e-12).all()
    assert (form.formula(np.linspace(form.shape.reach, form.radius, 1000)[1:-1]) / peak <= 1.1e-4).all()
    assert np.isfinite(form.formula(np.array([0.0, 1e100, np.inf]))).all()


def test_is_symmetric_or_strictly_past_and_falls(name: str) -> None:
    r = np.append(1e-9, np.linspace(0.01, 5.0, 200))
    assert Kernel(name)(-r).tolist() == Kernel(name)(r).tolist()
    assert (np.diff(Kernel(name)(r)) <= 0).all()
    assert Kernel(name, online=True)([-0.7, -1e-9, 0.0]).tolist() == [0, 0, 0]
    assert Kernel(name, online=True)(r) == pytest.approx(2 * Kernel(name)(r))


def test_an_edge_is_a_jump(name: str) -> None:
    assert Kernel(name).has_edge == (name in ("uniform", "box"))


# -- a kernel from outside, wherever kernels are used ----------------------------------------------------------------


def some_ranked(rng: np.random.Generator) -> Ranked:
    compared = np.sort(rng.uniform(0.0, 100.0, 300))
    first = rng.normal(80.0, 6.0, 40).clip(0.0, 100.0)
    return Ranked(100.0, 0.0, 100.0, compared, first, np.full(40, 1 / 40))


def rho(prior: Recency | Density, ranked: Ranked, times: np.ndarray) -> np.ndarray:
    return prior.ratio(ranked).added(np.zeros(len(times)), times, 1.0)


@pytest.mark.parametrize("bandwidth", [0.4, 9.0, "auto"])
def test_recency_of_a_tabled_exponential_is_that_of_the_compiled_one(bandwidth: float | str) -> None:
    ranked, times = some_ranked(np.random.default_rng(1)), np.arange(0, 110)
    found = rho(Recency("laplace", bandwidth), ranked, times)
    assert found == pytest.approx(rho(Recency("exponential", bandwidth), ranked, times), abs=1e-4)
    assert np.ptp(found) > 0.1


@pytest.mark.parametrize("bandwidth", [9.0, "cv"])
def test_density_of_a_tabled_exponential_is_that_of_the_compiled_one(bandwidth: float | str) -> None:
    ranked, times = some_ranked(np.random.default_rng(2)), np.arange(0, 101)
    found = rho(Density("laplace", bandwidth), ranked, times)
    assert found == pytest.approx(rho(Density("exponential", bandwidth), ranked, times), abs=1e-3)
    assert np.ptp(found) > 0.1


def test_recency_by_hand() -> None:
    """ρ = log((1-ε) K(age/h)/K(0) + ε) less a constant: differences from the youngest document."""
    times = np.array([100, 95, 90, 85])
    found = rho(Recency("biweight", 20.0, floor=0.1), some_ranked(np.random.default_rng(3)), times)
    faded = np.log(0.9 * (1 - ((100 - times) / 20.0) ** 2) ** 2 + 0.1)
    assert found - found[0] == pytest.approx(faded - faded[0], abs=1e-3)


def test_local_likelihood_and_its_bandwidth() -> None:
    counts, times = csr_matrix([[2, 0], [1, 1], [0, 4]]), [0.0, 1.0, 5.0]
    model = LocalLikelihood(counts, times, 2.0, kernel="biweight")
    w = [15 / 16 * (1 - (0.5 / 2) ** 2) ** 2] * 2
    assert model.at(0.5) == pytest.approx([(2 * w[0] + w[1]) / (2 * w[0] + 2 * w[1]), w[1] / (2 * w[0] + 2 * w[1])])
    many = csr_matrix(np.random.default_rng(4).multinomial(20, [0.5, 0.3, 0.2], 60))
    assert mlcv(many, np.arange(60.0), kernel="logistic").bandwidth > 0


def test_densities_and_their_bandwidths(name: str) -> None:
    times = np.random.default_rng(5).normal(0.0, 1e7, 50)
    at = np.linspace(-6e7, 6e7, 4001)
    h = silverman(times, kernel=name)
    assert np.trapezoid(weighted_kde(times, None, at, name, h), at) == pytest.approx(1, abs=0.02)
    assert likelihood_bandwidth(times, kernel=name) > 0


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        Kernel,
        Recency,
        Density,
        lambda name: make_prior("recency", kernel=name),
        lambda name: Drifting("local", kernel=name),
        lambda name: FeedbackTime("query", kernel=name),
        Forgetting,
        lambda name: LocalLikelihood(csr_matrix([[1]]), [0.0], 1.0, kernel=name),
        lambda name: weighted_kde([0.0], None, [0.0], name, 1.0),
        lambda name: silverman([0.0, 9e9], kernel=name),
        lambda name: mlcv(csr_matrix([[1]]), [0.0], kernel=name),
    ],
)
def test_an_unknown_name_is_an_error_everywhere(use) -> None:
    with pytest.raises(ParameterError, match=r"no kernel 'parzen'(.|\n)*exponential, biweight"):
        use("parzen")


@pytest.mark.parametrize(
    ("formula", "radius", "message"),
    [
        (lambda r: (1 - r**2) ** 2, 1.0, r"integrates to 1.0666667(.|\n)*Divide"),
        (lambda r: 1 / (np.pi * (1 + r**2)), 50.0, r"integrates to 0.98(.|\n)*radius"),
        (lambda r: np.exp(-r) / 2, 0.0, "radius"),
        (lambda r: np.exp(-r) / 2, 1e3, "radius"),
        (lambda r: 1 - 2 * r, 1.0, "never negative"),
        (lambda r: r, 1.0, "highest at r = 0"),
        (lambda r: np.where(r > 0, 0.5, np.inf), 1.0, "finite"),
    ],
)
def test_what_is_no_kernel_is_refused(formula, radius: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        register_kernel("no-kernel", formula, radius=radius)
    assert "no-kernel" not in kernel_names()


def test_a_name_is_given_once() -> None:
    with pytest.raises(ParameterError, match="tricube"):
        register_kernel("tricube", lambda r: np.exp(-r) / 2)


def test_given_moments_are_taken() -> None:
    register_kernel("given", lambda r: 0.5 * np.exp(-r), radius=28.0, moment=Kernel("exponential").form.moment)
    assert Kernel("given").moment(2, 1) == Kernel("exponential").moment(2, 1)
