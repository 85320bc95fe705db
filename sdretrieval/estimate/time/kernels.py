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

Everything known of a kernel stands in one :class:`KernelForm` of the registry; :func:`register_kernel` adds another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import gamma, inf, isinf, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.core.errors import ParameterError

Floats = NDArray[np.float64]
Formula = Callable[[Floats], Floats]

POLYNOMIAL, GAUSSIAN, EXPONENTIAL, TABLED = range(4)
TABLE_SIZE = 1 << 14
FURTHEST = 100.0  # bandwidths: a table that reached farther would be too coarse


class LoopShape(NamedTuple):
    """K(r)/K(0) for r >= 0, as compiled loops evaluate it.

    kind, p, q   (1 - r^p)^q on r < 1 (POLYNOMIAL), exp(-r²/2), exp(-r), or an interpolated table (TABLED)
    radius       in bandwidths, where K ends (POLYNOMIAL and TABLED)
    table        values at equal steps from 0 to the radius; else empty
    reach        where K has fallen under 1e-4 of its peak
    """

    kind: int
    p: int = 0
    q: int = 0
    radius: float = 1.0
    table: Floats = np.zeros(0)
    reach: float = 1.0


@dataclass(frozen=True, eq=False)
class KernelForm:
    """All that is known of a kernel, in its half r >= 0: the other half mirrors it.

    formula     K(r)
    moment      k, l to ∫_0^∞ r^k K(r)^l dr
    shape       what compiled loops evaluate
    radius      how far K reaches, in bandwidths; where it is unbounded, until exp() leaves the normal range of a double
    width       beyond it K is under 1e-12 of its peak: nothing to a sum that has data nearer by
    flat_from   bandwidth, in widths of the bounds, from which a reflected density is uniform to about a percent
    polynomial  (c, p, q) where K = c (1 - r^p)^q on r < 1
    """

    formula: Formula
    moment: Callable[[int, int], float]
    shape: LoopShape
    radius: float = 1.0
    width: float = 1.0
    flat_from: float = 64.0
    polynomial: tuple[float, int, int] | None = None


def _polynomial(c: float, p: int, q: int) -> KernelForm:
    """c (1 - r^p)^q on r < 1."""

    def formula(r: Floats) -> Floats:
        base = np.clip(1.0 - r**p, 0.0, None)
        return np.where(r < 1.0, c * base**q, 0.0)

    def moment(k: int, l: int) -> float:  # ∫_0^1 r^k c^l (1 - r^p)^(ql) dr = c^l/p B((k+1)/p, ql+1)
        a, b = (k + 1) / p, q * l + 1
        return c**l / p * gamma(a) * gamma(b) / gamma(a + b)

    return KernelForm(formula, moment, LoopShape(POLYNOMIAL, p, q), polynomial=(c, p, q))


_forms: dict[str, KernelForm] = {
    "uniform": _polynomial(1 / 2, 1, 0),
    "triangular": _polynomial(1.0, 1, 1),
    "epanechnikov": _polynomial(3 / 4, 2, 1),
    "tricube": _polynomial(70 / 81, 3, 3),
    "gaussian": KernelForm(
        lambda r: np.exp(-0.5 * r**2) / sqrt(2 * pi),
        lambda k, l: (2 * pi) ** (-l / 2) * 0.5 * (2 / l) ** ((k + 1) / 2) * gamma((k + 1) / 2),
        LoopShape(GAUSSIAN, reach=4.3),
        radius=37.0,
        width=7.5,
        flat_from=3.0,
    ),
    "exponential": KernelForm(
        lambda r: 0.5 * np.exp(-r),
        lambda k, l: 0.5**l * gamma(k + 1) / l ** (k + 1),
        LoopShape(EXPONENTIAL, reach=9.2),
        radius=700.0,
        width=28.0,
        flat_from=12.0,
    ),
}


def kernel_names() -> tuple[str, ...]:
    """The names of all kernels, those registered from outside last."""
    return tuple(_forms)


def register_kernel(
    name: str, formula: Formula, *, radius: float = 1.0, moment: Callable[[int, int], float] | None = None
) -> None:
    """Make a kernel of another package known by its name, wherever a kernel is asked for.

        register_kernel("biweight", lambda r: 15 / 16 * (1 - r**2) ** 2)

    Parameters
    ----------
    name : str
        The name to choose it by.
    formula : callable
        K(r) of an array of r >= 0: one half of a symmetric density, highest at 0.
    radius : float
        Where K ends, in bandwidths; an unbounded kernel is cut off there, so where nothing of it is left.
    moment : callable, optional
        k, l to ∫_0^∞ r^k K(r)^l dr in closed form; by quadrature without it.
    """
    if name in _forms:
        raise ParameterError(f"a kernel {name!r} is known already", remedy="Register it by another name.")
    if not 0.0 < radius <= FURTHEST:
        raise ParameterError(f"kernel {name!r}: the radius must be in (0, {FURTHEST:g}] bandwidths, got {radius}")
    last = np.nextafter(radius, 0.0)  # a bounded kernel may jump at its end

    def cut_off(r: Floats) -> Floats:
        return np.where(r < radius, formula(np.minimum(r, last)), 0.0)

    values = cut_off(np.minimum(np.linspace(0.0, radius, TABLE_SIZE), last))
    if not (0.0 < values[0] < inf and ((values >= 0.0) & (values <= values[0])).all()):
        raise ParameterError(f"kernel {name!r}: K(r) must be a finite number, never negative, and highest at r = 0")
    above = np.flatnonzero(values > 1e-4 * values[0])
    reach = radius * min((above[-1] + 1) / (TABLE_SIZE - 1), 1.0)
    shape = LoopShape(TABLED, radius=radius, table=values / values[0], reach=reach)
    form = KernelForm(cut_off, cache(moment or _by_quadrature(cut_off, radius)), shape, radius=radius, width=radius)
    whole = 2 * form.moment(0, 1)
    if not abs(whole - 1.0) < 1e-6:
        raise ParameterError(
            f"kernel {name!r} integrates to {whole:.8g}, not to one",
            remedy="Divide its formula by that number, or widen its radius.",
        )
    _forms[name] = form


def _by_quadrature(formula: Formula, radius: float) -> Callable[[int, int], float]:
    def moment(k: int, l: int) -> float:
        from scipy.integrate import quad  # slow to import, and only kernels from outside need it

        return float(quad(lambda r: r**k * formula(np.array([r]))[0] ** l, 0.0, radius, limit=200)[0])

    return moment


@dataclass(frozen=True)
class Kernel:
    """A kernel by name, offline (symmetric) or online (strictly past).

    Parameters
    ----------
    name : str
        One of :func:`kernel_names`.
    online : bool
        Whether only data strictly before t count.

    Examples
    --------
    >>> Kernel("triangular")([-0.5, 0.0, 0.5]).tolist()
    [0.5, 1.0, 0.5]
    >>> Kernel("triangular", online=True)([-0.5, 0.0, 0.5]).tolist()
    [0.0, 0.0, 1.0]
    """

    name: str = "tricube"
    online: bool = False

    def __post_init__(self) -> None:
        if self.name not in _forms:
            raise ParameterError(f"no kernel {self.name!r}", remedy=f"Choose one of: {', '.join(_forms)}.")

    @property
    def form(self) -> KernelForm:
        """What the registry knows of it."""
        return _forms[self.name]

    @property
    def polynomial(self) -> tuple[float, int, int] | None:
        """(c, p, q) where one half of K is c (1 - r^p)^q, or None."""
        if self.form.polynomial is None:
            return None
        c, p, q = self.form.polynomial
        return (2 * c if self.online else c), p, q

    @property
    def has_edge(self) -> bool:
        """Whether K jumps to zero where it ends."""
        first, last = self.form.formula(np.array([0.0, np.nextafter(self.form.radius, 0.0)]))
        return bool(last > 1e-3 * first)

    def __call__(self, r: ArrayLike) -> Floats:
        """The base form K(r), normalised."""
        r = np.asarray(r, dtype=np.float64)
        value = self.form.formula(np.abs(r))
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
        return 0.0 if bandwidth == 0 else self.form.radius * bandwidth

    def moment(self, k: int, l: int) -> float:
        """μ_kl(K) = ∫ r^k K(r)^l dr, of Proposition 2.

        The online moments are taken in r = t - τ > 0 and hence positive.

        >>> Kernel("uniform").moment(2, 1)  # 1/3, the variance of the uniform density
        0.3333333333333333
        """
        if k < 0 or l < 1:
            raise ParameterError(f"moments need k >= 0 and l >= 1, got k={k}, l={l}")
        half = self.form.moment(k, l)
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
