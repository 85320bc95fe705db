"""Kernels in time, after Zhao, Lebanon & Zhao 2009 (*Local Likelihood Modeling of the Concept Drift Phenomenon*).

    K_h(r) = K(r / h) / h      r = t - τ: how long before t the datum of time τ was seen
                               h: the bandwidth, in the unit of the times

*Offline* kernels are symmetric: past and future inform the present. *Online* kernels are zero for r <= 0: only data
**strictly before** t count, and the other half is doubled so that the kernel still integrates to one.

The paper prints the tricube (6) without its constant; 70/81 makes it integrate to one. Estimators are ratios and do
not care, but densities, moments, and bias and variance do.

============= ========================= =========================================
name          K(r), offline             support
============= ========================= =========================================
uniform       1/2                       -1 < r < 1, (8)
triangular    1 - abs(r)                -1 < r < 1, (7)
epanechnikov  3/4 (1 - r²)              -1 < r < 1
tricube       70/81 (1 - abs(r)³)³      -1 < r < 1, (6)
gaussian      exp(-r²/2) / √(2π)        unbounded
exponential   exp(-abs(r)) / 2          unbounded; online, a memory that fades by 1/e every h
============= ========================= =========================================
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, inf, isinf, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.errors import ParameterError

Floats = NDArray[np.float64]

# Bounded kernels are all c (1 - |r|^p)^q on |r| < 1: one evaluation, one moment formula.
_POLYNOMIAL = {
    "uniform": (1 / 2, 1, 0),
    "triangular": (1.0, 1, 1),
    "epanechnikov": (3 / 4, 2, 1),
    "tricube": (70 / 81, 3, 3),
}
# Beyond these radii exp() has left the normal range of a double, so nothing is lost by not looking there.
_UNBOUNDED = {"gaussian": 37.0, "exponential": 700.0}
# … and beyond these it is under 1e-12 of its peak: nothing to a sum that has data nearer by.
_NEGLIGIBLE = {"gaussian": 7.5, "exponential": 28.0}

NAMES = (*_POLYNOMIAL, *_UNBOUNDED)


@dataclass(frozen=True)
class Kernel:
    """A kernel by name, offline (symmetric) or online (strictly past).

    >>> Kernel("triangular")([-0.5, 0.0, 0.5]).tolist()
    [0.5, 1.0, 0.5]
    >>> Kernel("triangular", online=True)([-0.5, 0.0, 0.5]).tolist()
    [0.0, 0.0, 1.0]
    """

    name: str = "tricube"
    online: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ParameterError(f"no kernel {self.name!r}", remedy=f"Choose one of: {', '.join(NAMES)}.")

    @property
    def radius(self) -> float:
        """How far the kernel reaches, in bandwidths (for the unbounded ones: until it underflows)."""
        return _UNBOUNDED.get(self.name, 1.0)

    @property
    def width(self) -> float:
        """Where the kernel has become negligible beside its peak, in bandwidths."""
        return _NEGLIGIBLE.get(self.name, 1.0)

    @property
    def polynomial(self) -> tuple[float, int, int] | None:
        """(c, p, q) where one half of K is c (1 - r^p)^q, or None."""
        if self.name not in _POLYNOMIAL:
            return None
        c, p, q = _POLYNOMIAL[self.name]
        return (2 * c if self.online else c), p, q

    def __call__(self, r: ArrayLike) -> Floats:
        """The base form K(r), normalised."""
        r = np.asarray(r, dtype=np.float64)
        distance = np.abs(r)
        if self.name in _POLYNOMIAL:
            c, p, q = _POLYNOMIAL[self.name]
            base = np.clip(1.0 - distance**p, 0.0, None)
            value = np.where(distance < 1.0, c * base**q, 0.0)
        elif self.name == "gaussian":
            value = np.exp(-0.5 * distance**2) / sqrt(2 * pi)
        else:
            value = 0.5 * np.exp(-distance)
        return np.where(r > 0.0, 2.0 * value, 0.0) if self.online else value

    def scaled(self, r: ArrayLike, bandwidth: float) -> Floats:
        """K_h(r) = K(r/h)/h, a density in r."""
        check_bandwidth(bandwidth, positive=True, finite=True)
        return self(np.asarray(r, dtype=np.float64) / bandwidth) / bandwidth

    def weights(self, r: ArrayLike, bandwidth: ArrayLike) -> Floats:
        """Weights proportional to K_h(r), in its limits too: a constant for h = ∞, the Dirac mass at r = 0 for h = 0.

        At a finite h > 0 the weight is K(r/h), without the factor 1/h that cancels in every estimator. An online
        kernel has no mass at r = 0, hence no weight anywhere for h = 0. ``bandwidth`` may be an array beside ``r``.
        """
        r = np.asarray(r, dtype=np.float64)
        h = np.asarray(bandwidth, dtype=np.float64)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            u = r / h
        u = np.where(h == 0.0, np.where(r == 0.0, 0.0, np.copysign(inf, r)), u)
        if self.online:  # r/∞ would round to the excluded 0, and so would a tiny r over a huge h
            u = np.where((r > 0.0) & (u == 0.0), np.finfo(float).tiny, u)
        return self(u)

    def reach(self, bandwidth: float) -> float:
        """The largest distance at which a datum can count."""
        return 0.0 if bandwidth == 0 else self.radius * bandwidth

    def moment(self, k: int, l: int) -> float:
        """μ_kl(K) = ∫ r^k K(r)^l dr, of Proposition 2, in closed form.

        The online moments are taken in r = t - τ > 0 and hence positive; see :mod:`~sdretrieval.temporal.bias_variance`
        for the signs this brings.

        >>> Kernel("uniform").moment(2, 1)  # 1/3, the variance of the uniform density
        0.3333333333333333
        """
        if k < 0 or l < 1:
            raise ParameterError(f"moments need k >= 0 and l >= 1, got k={k}, l={l}")
        if self.name in _POLYNOMIAL:  # ∫_0^1 r^k c^l (1 - r^p)^(ql) dr = c^l/p B((k+1)/p, ql+1)
            c, p, q = _POLYNOMIAL[self.name]
            a, b = (k + 1) / p, q * l + 1
            half = c**l / p * gamma(a) * gamma(b) / gamma(a + b)
        elif self.name == "gaussian":
            half = (2 * pi) ** (-l / 2) * 0.5 * (2 / l) ** ((k + 1) / 2) * gamma((k + 1) / 2)
        else:
            half = 0.5**l * gamma(k + 1) / l ** (k + 1)
        if self.online:
            return 2**l * half
        return 2 * half if k % 2 == 0 else 0.0

    @property
    def canonical(self) -> float:
        """δ₀ = (μ_02 / μ_21²)^(1/5): bandwidths in proportion to it smooth alike (Marron & Nolan 1988), offline."""
        symmetric = Kernel(self.name)
        return (symmetric.moment(0, 2) / symmetric.moment(2, 1) ** 2) ** 0.2


def as_kernel(kernel: str | Kernel, *, online: bool | None = None) -> Kernel:
    """A :class:`Kernel` from its name or itself; ``online`` overrides when given."""
    if isinstance(kernel, Kernel):
        return kernel if online is None or online == kernel.online else Kernel(kernel.name, online)
    return Kernel(kernel, bool(online))


def check_bandwidth(value: float, *, positive: bool = False, finite: bool = False) -> float:
    """The bandwidth as a float, or an error that says what was received."""
    value = float(value)
    if not value >= 0 or (positive and value == 0) or (finite and isinf(value)):
        wanted = ("positive" if positive else "zero or positive") + (" and finite" if finite else "")
        raise ParameterError(
            f"a bandwidth must be {wanted}, got {value}",
            remedy="It is in the unit of the times: milliseconds for the times of an index.",
        )
    return value
