"""Kernels by hand, and in their limits; test_kernel_registry.py has what holds of all of them."""

from __future__ import annotations

from math import pi, sqrt

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Kernel, check_bandwidth, kernel_names


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("uniform", 0.5),
        ("triangular", 1 - 0.5),
        ("epanechnikov", 0.75 * (1 - 0.25)),
        ("tricube", 70 / 81 * (1 - 0.125) ** 3),
        ("gaussian", np.exp(-0.125) / sqrt(2 * pi)),
        ("exponential", 0.5 * np.exp(-0.5)),
    ],
)
def test_values_by_hand(name: str, by_hand: float) -> None:
    """K(1/2), and K(-1/2), from the formulas (6)-(8) and the textbook ones."""
    assert Kernel(name)([0.5, -0.5]) == pytest.approx([by_hand, by_hand])


@pytest.mark.parametrize("name", ["uniform", "triangular", "epanechnikov", "tricube"])
def test_bounded_support_is_open(name: str) -> None:
    assert Kernel(name)([-1.0, 1.0, 1.5]).tolist() == [0, 0, 0]
    assert (Kernel(name)([-0.999, 0.999]) > 0).all()


def test_scaled_is_a_density_in_r() -> None:
    """K_h(r) = K(r/h)/h: a triangle of base 2h and height 1/h."""
    assert Kernel("triangular").scaled([0, 2.5, 5], 5.0) == pytest.approx([0.2, 0.1, 0])


@pytest.mark.parametrize("name", kernel_names())
def test_limits_of_the_weights(name: str) -> None:
    r = np.array([-3.0, 0.0, 3.0])
    flat = Kernel(name).weights(r, np.inf)
    assert flat[0] == flat[1] == flat[2] > 0
    dirac = Kernel(name).weights(r, 0.0)
    assert dirac[0] == dirac[2] == 0 < dirac[1]
    past = Kernel(name, online=True).weights(r, np.inf)
    assert past[0] == past[1] == 0 < past[2]
    assert not Kernel(name, online=True).weights(r, 0.0).any()


def test_online_weights_of_the_recent_past_survive_a_huge_bandwidth() -> None:
    """r/h underflows to the excluded zero here."""
    assert Kernel("tricube", online=True).weights(5e-324, 1e300) > 0


def test_canonical_bandwidths() -> None:
    """Marron & Nolan 1988, table 1: (1/(4π))^(1/10) Gaussian, 15^(1/5) Epanechnikov, (9/2)^(1/5) uniform."""
    assert Kernel("gaussian").canonical == pytest.approx((1 / (4 * pi)) ** 0.1)
    assert Kernel("epanechnikov").canonical == pytest.approx(15**0.2)
    assert Kernel("uniform").canonical == pytest.approx(4.5**0.2)


@pytest.mark.parametrize("value", [-1.0, float("nan")])
def test_bad_bandwidth_is_named(value: float) -> None:
    with pytest.raises(ParameterError, match=str(value)):
        check_bandwidth(value)


def test_moment_orders_are_checked() -> None:
    with pytest.raises(ParameterError, match="l=0"):
        Kernel().moment(0, 0)
