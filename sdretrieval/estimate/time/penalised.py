"""Penalised local likelihood: local estimates drawn towards a global model, word by word. Paper 2009, section 5.

    ℓ*(θ) = Σ_w c_w log θ_w - λ_w |log θ_w - log q_w|,   θ in the simplex                             (23)

      c_w   local, kernel-weighted counts (:meth:`LocalLikelihood.local_counts`)
      q_w   the global model;  λ_w the penalty: a word leaves q_w only where the data insist

The maximiser is θ*_w = q_w clipped to [(c_w - λ_w)/β, (c_w + λ_w)/β], with the one β that makes it sum to one:
(29)-(33). :func:`solve` finds it exactly by the algorithm of Figure 13 in O(k + m log k), k words, of which m leave q.

Penalties λ_w = s q_w^p: ``sparse0`` (p = 0), ``sparse.5`` (p = 1/2; the paper's favourite and the default here) and
``sparse1`` (p = 1). Beside them the two classics: linear interpolation (37) and absolute discounting (40).
The strength s is chosen by approximate leave-one-out (41)-(42), at the cost of one solution for each s tried.

Conventions at the edges: without data (c = 0) the answer is q; q_w = 0 is taken as the limit q_w → 0, so a word
unknown to q keeps (c_w - λ_w)/β where that is positive and is 0 otherwise; λ = 0 is maximum likelihood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Floats
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood

POWERS = {"sparse0": 0.0, "sparse.5": 0.5, "sparse1": 1.0}
METHODS = (*POWERS, "interpolation", "discounting")


@dataclass(frozen=True, eq=False)
class PenalisedSolution:
    """The maximiser of (23), the multiplier β, and how many words left the global model."""

    theta: Floats
    beta: float
    moved: int


def solve(counts: ArrayLike, background: ArrayLike, penalties: ArrayLike) -> PenalisedSolution:
    """The exact maximiser of (23) by Figure 13.

    >>> solve([0, 2, 3, 4, 4], [.1, .2, .2, .2, .3], np.full(5, 1.0)).moved
    2
    """
    c, q, lam = _vectors(counts, background, penalties)
    _check(c, q, lam)
    theta, beta, moved = _figure_13(c, q, lam)
    return PenalisedSolution(theta, float(beta), int(moved))


def _vectors(*values: ArrayLike) -> list[Floats]:
    return [np.ascontiguousarray(x, dtype=np.float64) for x in values]


def _check(c: Floats, q: Floats, lam: Floats) -> None:
    if not (c.ndim == 1 and c.shape == q.shape == lam.shape and len(c)):
        raise ParameterError(
            f"counts, background and penalties must be vectors of one length, got {c.shape}, {q.shape}, {lam.shape}"
        )
    for name, x in (("counts", c), ("background", q), ("penalties", lam)):
        if not (np.isfinite(x).all() and x.min() >= 0):
            raise ParameterError(f"{name} must be finite and not negative")
    if abs(q.sum() - 1) > 1e-6:
        raise ParameterError(f"the background must sum to one, got {q.sum():.8g}")


@njit(cache=True)
def _sift(heap: NDArray, key: NDArray, size: int, i: int) -> None:
    """Move heap[i] down until no child has a smaller key."""
    item = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[item] <= key[heap[child]]:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = item


@njit(cache=True)
def _figure_13(c: NDArray, q: NDArray, lam: NDArray) -> tuple[NDArray, float, int]:
    """Figure 13 with two heaps: building them is O(k), and only words that leave q are taken off."""
    k = len(c)
    high = np.empty(k)  # n_w^+ = (c_w + λ_w)/q_w: below β, the word sinks under q
    low = np.empty(k)  # -n_w^- = -(c_w - λ_w)/q_w: n_w^- above β, the word rises over q
    for w in range(k):
        up, down = c[w] + lam[w], c[w] - lam[w]
        if q[w] > 0.0:
            high[w], low[w] = up / q[w], -down / q[w]
        else:  # the limit q_w → 0
            high[w] = np.inf
            low[w] = -np.inf if down > 0.0 else np.inf
    sinking = np.arange(k)
    rising = np.arange(k)
    for i in range(k // 2 - 1, -1, -1):
        _sift(sinking, high, k, i)
        _sift(rising, low, k, i)
    theta = q.copy()
    if high[sinking[0]] >= -low[rising[0]]:  # step 1: nothing leaves q; any β between the two will do
        return theta, min(max(c.sum(), -low[rising[0]]), high[sinking[0]]), 0

    side = np.zeros(k, dtype=np.int8)  # -1 for A^-, +1 for A^+, 0 for A^0
    n_sinking, n_rising = k, k
    mass, share = 0.0, 0.0  # numerator and denominator of (32)
    beta = np.nan
    while True:
        moved = False
        while n_sinking > 0 and side[sinking[0]] != 0:  # taken by the other side already
            n_sinking -= 1
            sinking[0] = sinking[n_sinking]
            _sift(sinking, high, n_sinking, 0)
        while n_rising > 0 and side[rising[0]] != 0:
            n_rising -= 1
            rising[0] = rising[n_rising]
            _sift(rising, low, n_rising, 0)
        # Steps 5 and 6 look at the same β_i; steps 2-4 are the first turn, where both extremes move.
        sink = n_sinking > 0 and (np.isnan(beta) or high[sinking[0]] < beta)
        rise = n_rising > 0 and (np.isnan(beta) or -low[rising[0]] > beta)
        if sink:
            w = sinking[0]
            side[w] = -1
            mass += c[w] + lam[w]
            share += q[w]
            moved = True
        if rise:
            w = rising[0]
            side[w] = 1
            mass += c[w] - lam[w]
            share += q[w]
            moved = True
        if not moved:
            break
        beta = mass / share
    # Once more from the final sets, so that rounding does not pile up along the way.
    mass, share = 0.0, 0.0
    count = 0
    for w in range(k):
        if side[w] != 0:
            mass += c[w] - side[w] * lam[w]
            share += q[w]
            count += 1
    beta = mass / share
    for w in range(k):
        if side[w] != 0:
            theta[w] = (c[w] - side[w] * lam[w]) / beta
    return theta, beta, count


def penalties(background: ArrayLike, strength: float, method: str = "sparse.5") -> Floats:
    """λ_w = strength · q_w^p."""
    if method not in POWERS:
        raise ParameterError(f"no penalty {method!r}", remedy=f"Choose one of: {', '.join(POWERS)}.")
    _check_strength("the strength of a penalty", strength)
    return strength * np.asarray(background, dtype=np.float64) ** POWERS[method]


def _check_strength(what: str, value: float) -> None:
    if not value >= 0:
        raise ParameterError(f"{what} must be zero or positive, got {value}")


def aligned_strength(background: ArrayLike, mean_penalty: float, method: str) -> float:
    """The strength at which the penalties average ``mean_penalty``: puts the methods on one axis, as in Figure 15."""
    unit = penalties(background, 1.0, method)
    return float(mean_penalty * len(unit) / unit.sum())


def interpolate(counts: ArrayLike, background: ArrayLike, strength: float) -> Floats:
    """Linear interpolation (37) with η = s/(N + s): (c_w + s q_w)/(N + s), that is, Dirichlet smoothing."""
    _check_strength("the strength of an interpolation", strength)
    c, q = _vectors(counts, background)
    total = c.sum() + strength
    return (c + strength * q) / total if total > 0 else q.copy()


def discount(counts: ArrayLike, background: ArrayLike, amount: float) -> Floats:
    """Absolute discounting (40): max(c_w - d, 0)/N + r q_w, r making it sum to one."""
    _check_strength("a discount", amount)
    c, q = _vectors(counts, background)
    total = c.sum()
    if total <= 0:
        return q.copy()
    kept = np.maximum(c - amount, 0.0) / total
    return kept + (1.0 - kept.sum()) * q


def estimate(counts: ArrayLike, background: ArrayLike, strength: float, method: str = "sparse.5") -> Floats:
    """θ by any of the five methods, at the given strength (s, or the discount d)."""
    if method == "interpolation":
        return interpolate(counts, background, strength)
    if method == "discounting":
        return discount(counts, background, strength)
    if method not in POWERS:
        raise ParameterError(f"no method {method!r}", remedy=f"Choose one of: {', '.join(METHODS)}.")
    return solve(counts, background, penalties(background, strength, method)).theta


# -- choosing the strength -----------------------------------------------------------------------------------------


def leave_one_out_score(counts: ArrayLike, background: ArrayLike, lam: ArrayLike) -> float:
    """Σ_w c_w log θ̃_w(c without one w), with β taken from the full counts (42).

    Kernel-weighted counts may be below one; then all of the word is left out.
    """
    c, q, lam = _vectors(counts, background, lam)
    beta = solve(c, q, lam).beta
    seen = c > 0
    rest = np.maximum(c[seen] - 1.0, 0.0)
    theta = np.clip(q[seen], (rest - lam[seen]) / beta, (rest + lam[seen]) / beta)
    with np.errstate(divide="ignore"):
        return float(c[seen] @ np.log(theta))


@dataclass(frozen=True, eq=False)
class StrengthChoice:
    """The strength chosen, and the leave-one-out score of each one tried."""

    strength: float
    tried: Floats
    scores: Floats


def choose_strength(
    counts: ArrayLike | Sequence[ArrayLike],
    background: ArrayLike,
    method: str = "sparse.5",
    *,
    tried: ArrayLike | None = None,
) -> StrengthChoice:
    """The strength of the highest approximate leave-one-out score (41)-(42).

    ``counts`` is one vector, or several that share the strength (the local counts of several times); their scores
    add up. Without ``tried``, a geometric grid from a mean penalty of 1e-4 to one above which nothing leaves q, then
    a finer one around the best.
    """
    if method not in POWERS:
        raise ParameterError(
            f"leave-one-out chooses the strength of {', '.join(POWERS)}, not of {method!r}",
            remedy="Choose the strength of the other methods on held-out data.",
        )
    (q,) = _vectors(background)
    vectors = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    unit = penalties(q, 1.0, method)

    def score(strengths: ArrayLike) -> dict[float, float]:
        return {float(s): sum(leave_one_out_score(c, q, s * unit) for c in vectors) for s in np.asarray(strengths)}

    if tried is not None:
        scored = score(tried)
    else:
        # A word leaves q at the latest where its penalty reaches its count plus its share of all counts.
        most = max((float(np.max((c + c.sum() * q)[unit > 0] / unit[unit > 0])) for c in vectors), default=0.0)
        if most <= 0:
            return StrengthChoice(0.0, np.zeros(1), np.zeros(1))
        coarse = np.geomspace(min(aligned_strength(q, 1e-4, method), most / 10), most, 20)
        scored = score(coarse)
        best = int(np.argmax(list(scored.values())))
        left, right = coarse[max(best - 1, 0)], coarse[min(best + 1, len(coarse) - 1)]
        scored |= score(np.geomspace(left, right, 8)[1:-1])
    grid = np.array(sorted(scored))
    scores = np.array([scored[s] for s in grid])
    return StrengthChoice(float(grid[int(np.argmax(scores))]), grid, scores)


class PenalisedLocalLikelihood:
    """θ̂*_t for any t: the local counts of a :class:`LocalLikelihood`, drawn towards a global model.

    The global model are the relative frequencies of all dated documents: where no document is within reach, it is the
    answer.
    """

    def __init__(self, local: LocalLikelihood, strength: float) -> None:
        self.local, self.strength, self.background = local, strength, local.global_model()

    def at(self, t: float) -> Floats:
        """θ̂*_t over all terms."""
        return estimate(self.local.local_counts(t), self.background, self.strength)

    def over(self, times: ArrayLike, words: Sequence[int] | None = None) -> Floats:
        """A dense times x words array, for the words asked for."""
        t = np.atleast_1d(np.asarray(times, dtype=np.float64))
        chosen = slice(None) if words is None else np.asarray(words)
        return np.array([self.at(float(value))[chosen] for value in t])
