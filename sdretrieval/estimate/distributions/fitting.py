"""What the distributions share: how a fit ended, and the one unknown that DCM and Dirichlet are solved for.

Both maxima have one parameter for each word that rises with a level x, the multiplier of Σ_j α_j = S:

    S fixed   Φ(x) = Σ_j α_j(x) = S, with Φ convex and rising: Newton's method comes down on the root without
              overshooting from any x_0 with Φ(x_0) >= S
    S free    x is a known function of S as well: one equation in S

``method="fixed-point"`` is Minka's iteration as it is printed (Estimating a Dirichlet distribution, 2000), the
thesis's way: the same maximum, slowly.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

import numpy as np

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import ParameterError

METHODS = ("newton", "fixed-point")
EULER = 0.5772156649015329


@dataclass(frozen=True, eq=False, kw_only=True)
class Convergence:
    """How a fit ended; the last value of the path is the log-likelihood of the result. A closed form ends at once."""

    n_iter: int = 0
    converged: bool = True
    log_likelihood_path: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def log_likelihood(self) -> float:
        return float(self.log_likelihood_path[-1]) if len(self.log_likelihood_path) else float("nan")

    def warn(self, what: str) -> None:
        if not self.converged:
            from sklearn.exceptions import ConvergenceWarning  # slow to import, and seldom needed

            warnings.warn(
                f"{what} did not converge in {self.n_iter} iterations; raise max_iter or fix the scale S",
                ConvergenceWarning,
                stacklevel=3,
            )


class Distribution(Convergence):
    """A distribution of documents, and how its fit ended."""

    @classmethod
    def fit(cls, *args: Any, **settings: Any) -> Any:
        """Fit the distribution to documents. Each takes those of the settings that it has a use for.

        Parameters
        ----------
        counts : array or sparse matrix
            Documents x terms.
        weights : array, optional
            One for each document.
        additive : float
            δ, added to each count (4.8) or α (4.11).
        smoothing : float
            λ, the share of a document's own words (2.1).
        background, background_additive : array, float
            θ^GE; by default (4.10) of these documents with β.
        scale : float, optional
            S = Σ_j α_j; estimated where it is None.
        method, tolerance, max_iter : str, float, int
            "newton" or "fixed-point", and when to stop.

        Returns
        -------
        Distribution
            Of the class it was asked of.
        """
        raise NotImplementedError

    def log_density(self, counts: Any) -> np.ndarray:
        """The logarithm of the density, or probability, at each document.

        Parameters
        ----------
        counts : array or sparse matrix
            Documents x terms.

        Returns
        -------
        array
            One number for each document.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class FittedAlpha(Distribution):
    """A distribution with a parameter α for each term."""

    alpha: np.ndarray

    @property
    def scale(self) -> float:
        """S = Σ_j α_j."""
        return float(self.alpha.sum())


@dataclass(frozen=True, eq=False)
class OfSmoothedModels(FittedAlpha):
    """One over smoothed language models: documents are smoothed with λ (``smoothing``) and θ^GE (``background``)."""

    smoothing: float
    background: np.ndarray


def solve_alpha(
    problem: Any, scale: float | None, method: str, tolerance: float, max_iter: int, *, path: bool = True
) -> tuple[np.ndarray, Convergence]:
    """α̂ with S fixed, or estimated where it is None; without ``path`` likelihoods on the way are not computed.

    A problem is what a distribution knows of its data:

    n_alphas, log_likelihood(alpha)
    levels(x, step, alpha, slope)   α(x) into ``alpha`` and its derivative into ``slope``; their sums. ``step`` is how
                                    far x moved since the last call: the tangent is a starting point from the left
    start(scale), least_step(x)     an x with Φ(x) >= S; how far down Newton's method may go from x at once
    level_of(scale)                 x at the maximum with S free
    usual_scale, largest_scale      where the search for S starts; beyond it S makes no difference any more
    minka(alpha, scale)             the next α of his iteration, the first one after None
    """
    if method not in METHODS:
        raise ParameterError(f"unknown method {method!r}", remedy=f"One of: {', '.join(METHODS)}.")
    if not problem.n_alphas:
        return np.zeros(0), Convergence()
    steps: list[float] = []

    def note(alpha: np.ndarray) -> None:
        if path:
            steps.append(problem.log_likelihood(alpha))

    if method == "fixed-point":
        alpha, n_iter, converged = _fixed_point(problem, scale, tolerance, max_iter, note)
    elif scale is None:
        alpha, n_iter, converged = _newton_free(problem, tolerance, max_iter, note)
    else:
        alpha, n_iter, converged = _newton_fixed(problem, scale, tolerance, max_iter, note)
    return alpha, Convergence(n_iter=n_iter, converged=converged, log_likelihood_path=np.array(steps))


Note = Callable[[np.ndarray], None]


def _newton_fixed(problem: Any, scale: float, tolerance: float, max_iter: int, note: Note):
    alpha, slope = np.zeros(problem.n_alphas), np.zeros(problem.n_alphas)
    x, step = problem.start(scale), 0.0
    converged, iteration, total = False, 0, scale
    while iteration < max_iter and not converged:
        iteration += 1
        total, rise = problem.levels(x, step, alpha, slope)
        note(alpha * (scale / total))
        converged = abs(total - scale) <= tolerance * scale
        step = max((scale - total) / rise, problem.least_step(x))
        x += step
    return alpha * (scale / total), iteration, converged


def _newton_free(problem: Any, tolerance: float, max_iter: int, note: Note):
    from scipy.optimize import brentq  # slow to import, and seldom asked for

    alpha, slope = np.zeros(problem.n_alphas), np.zeros(problem.n_alphas)
    calls = 0

    def excess(log_scale: float) -> float:
        """log Φ(x(S)) - log S: positive where a larger S is more likely."""
        nonlocal calls
        calls += 1
        alpha[:] = 0.0  # every α anew: the bracket jumps too far for tangents
        total, _ = problem.levels(problem.level_of(float(np.exp(log_scale))), 0.0, alpha, slope)
        note(alpha)
        return float(np.log(total) - log_scale)

    low = high = float(np.log(problem.usual_scale))
    while excess(low) < 0.0 and low > -20.0:
        low -= 1.5
    while excess(high) > 0.0 and high < np.log(problem.largest_scale):
        high += 1.5
    if excess(low) < 0.0 or excess(high) > 0.0:
        return alpha.copy(), calls, False
    root = brentq(excess, low, high, xtol=tolerance, rtol=max(tolerance, 1e-14), maxiter=max_iter)
    excess(root)
    return alpha.copy(), calls, True


def _fixed_point(problem: Any, scale: float | None, tolerance: float, max_iter: int, note: Note):
    alpha = problem.minka(None, scale)
    for iteration in range(1, max_iter + 1):
        previous = alpha
        alpha = problem.minka(previous, scale)
        note(alpha)
        if (np.abs(alpha - previous) <= tolerance * previous).all():
            return alpha, iteration, True
        if alpha.sum() > problem.largest_scale:
            break
    return alpha, iteration, False


# -- digamma where compiled loops can call it; tested against scipy.special ------------------------------------------
@njit(cache=True, nogil=True)
def digamma_pair(x):
    """ψ(x) and ψ'(x), x > 0: upward recurrence to x >= 8, then the asymptotic series."""
    value, slope = 0.0, 0.0
    while x < 8.0:
        r = 1.0 / x
        value -= r
        slope += r * r
        x += 1.0
    r = 1.0 / x
    s = r * r
    value += log(x) - 0.5 * r
    value -= s * (1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * (691 / 32760))))))
    slope += r + 0.5 * s
    slope += r * s * (1 / 6 - s * (1 / 30 - s * (1 / 42 - s * (1 / 30 - s * (5 / 66 - s * (691 / 2730))))))
    return value, slope


@njit(cache=True, nogil=True)
def digamma(x):
    return digamma_pair(x)[0]


@njit(cache=True, nogil=True)
def inverse_digamma(y, start):
    """The x > 0 with ψ(x) = y, and ψ' there; ``start`` <= 0 asks for Minka's starting point (2000, appendix C).

    Newton's method on a concave rising function: from the left of the root it never overshoots; a step from the right
    that would leave x > 0 is halved instead.
    """
    x = start
    if x <= 0.0:
        x = exp(y) + 0.5 if y >= -2.22 else -1.0 / (y + EULER)
    for _ in range(50):
        value, slope = digamma_pair(x)
        step = (y - value) / slope
        if step <= -x:
            step = -0.5 * x
        x += step
        if abs(step) <= 1e-14 * x or (abs(step) <= 1e-8 * x and abs(step) > 0.0):
            break  # quadratic: a step of 1e-8 leaves an error of 1e-16
    return x, digamma_pair(x)[1]
