"""Documents drawn from the distributions of chapter 3: for simulations, and to test the estimators against truth.

α   parameters of DCM, Dirichlet and SD     λ   smoothing          g   θ^GE, the background
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import betainc, betaincinv, logsumexp

from sdretrieval.core.errors import ParameterError

Seed = int | np.random.Generator | None


def sample_multinomial(probabilities: np.ndarray, lengths: Sequence[int] | np.ndarray, seed: Seed = None) -> csr_matrix:
    """Counts of one document for each length, documents x words."""
    p = _vector(probabilities, "probabilities", zero_allowed=True)
    if not np.isclose(p.sum(), 1.0):
        raise ParameterError(f"probabilities must sum to one, got {p.sum()}")
    rng, lengths = np.random.default_rng(seed), _lengths(lengths)
    words = _draw(np.cumsum(p), int(lengths.sum()), rng)
    return _counts(np.repeat(np.arange(len(lengths)), lengths), words, (len(lengths), len(p)))


def sample_dcm(alpha: np.ndarray, lengths: Sequence[int] | np.ndarray, seed: Seed = None) -> csr_matrix:
    """Counts from the Dirichlet compound multinomial (3.2): each document draws its own multinomial first."""
    alpha = _vector(alpha, "alpha")
    rng, lengths = np.random.default_rng(seed), _lengths(lengths)
    words = [_draw(np.cumsum(np.exp(sample_log_dirichlet(alpha, 1, rng)[0])), int(n), rng) for n in lengths]
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return _counts(rows, np.concatenate([*words, np.zeros(0, dtype=np.int64)]), (len(lengths), len(alpha)))


def sample_dirichlet(alpha: np.ndarray, size: int, seed: Seed = None) -> np.ndarray:
    """``size`` language models from Dirichlet(α) (3.1), one a row."""
    return np.exp(sample_log_dirichlet(alpha, size, seed))


def sample_log_dirichlet(alpha: np.ndarray, size: int, seed: Seed = None) -> np.ndarray:
    """Logarithms of Dirichlet(α) draws: they stay finite where α_j is so small that θ_j itself underflows.

    A Gamma(α) variable is a Gamma(α+1) variable times U^(1/α), which is taken in logarithms.
    """
    alpha = _vector(alpha, "alpha")
    rng = np.random.default_rng(seed)
    shape = (size, len(alpha))
    logs = np.log(rng.standard_gamma(alpha + 1.0, shape)) - rng.standard_exponential(shape) / alpha
    return logs - logsumexp(logs, axis=1, keepdims=True)


def sample_smoothed_dirichlet(
    alpha: np.ndarray,
    background: np.ndarray,
    smoothing: float,
    size: int,
    seed: Seed = None,
    *,
    sweeps: int = 200,
    thin: int = 20,
) -> np.ndarray:
    """``size`` smoothed language models from SD(α), one a row.

    On the compressed simplex the approximate SD (3.25) and the exact one (3.16) have the same shape, Π θ_j^(α_j - 1),
    and differ in a constant alone: a draw is one of a Dirichlet held to θ_j >= (1-λ)·g_j (3.20). Rejection would never
    accept with many words, so this is Gibbs sampling: in each sweep the words are paired at random, and each pair's
    share of its sum is drawn from its exact conditional, a Beta cut off at both ends. ``sweeps`` pass before the
    first draw and ``thin`` between draws: neighbouring draws are slightly dependent.
    """
    alpha, background = check_smoothed_dirichlet(alpha, background, smoothing)
    floor = (1.0 - smoothing) * background
    if len(alpha) == 1:
        return np.ones((size, 1))
    rng = np.random.default_rng(seed)
    theta = smoothing * (alpha / alpha.sum()) + floor
    out = np.empty((size, len(alpha)))
    for row in range(size):
        for _ in range(sweeps if row == 0 else thin):
            _exchange(theta, alpha, floor, rng)
        theta /= theta.sum()  # a thousand sweeps of rounding
        out[row] = theta
    return out


def _exchange(theta: np.ndarray, alpha: np.ndarray, floor: np.ndarray, rng: np.random.Generator) -> None:
    """One sweep: every pair of a random pairing anew, in place."""
    order = rng.permutation(len(theta))
    half = len(theta) // 2
    i, j = order[:half], order[half : 2 * half]
    total = theta[i] + theta[j]
    # Of the two, the one whose cut-off leaves less below it: differences close to one would lose their digits.
    swap = betainc(alpha[i], alpha[j], floor[i] / total) > 0.5
    i, j = np.where(swap, j, i), np.where(swap, i, j)
    low, high = floor[i] / total, 1.0 - floor[j] / total
    below, above = betainc(alpha[i], alpha[j], low), betainc(alpha[i], alpha[j], high)
    share = betaincinv(alpha[i], alpha[j], below + rng.random(half) * (above - below))
    # Where the mass between the ends is below what a float can tell, the ends still hold.
    share = np.clip(share, low, high)
    theta[i], theta[j] = share * total, (1.0 - share) * total


def to_counts(
    theta: np.ndarray, lengths: Sequence[int] | np.ndarray, background: np.ndarray, smoothing: float
) -> csr_matrix:
    """Smoothed language models back to counts, (3.18) and (3.19): θ̂ times the length, in whole numbers.

    Rounded so that each document has exactly its length: the largest remainders go up.
    """
    theta = np.atleast_2d(np.asarray(theta, dtype=float))
    lengths = _lengths(lengths)
    if len(lengths) != len(theta):
        raise ParameterError(f"{len(theta)} documents, but {len(lengths)} lengths")
    unsmoothed = np.clip((theta - (1.0 - smoothing) * np.asarray(background)) / smoothing, 0.0, None)
    unsmoothed /= unsmoothed.sum(axis=1, keepdims=True)
    exact = unsmoothed * lengths[:, None]
    whole = np.floor(exact)
    for row, missing in enumerate((lengths - whole.sum(axis=1)).round().astype(int)):
        whole[row, np.argsort(whole[row] - exact[row], kind="stable")[:missing]] += 1
    return csr_matrix(whole)


def _draw(cumulative: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Word numbers from a cumulative distribution; the last word with any mass takes what rounding leaves."""
    points = rng.random(size) * cumulative[-1]
    return np.minimum(np.searchsorted(cumulative, points, side="right"), np.searchsorted(cumulative, cumulative[-1]))


def _counts(rows: np.ndarray, words: np.ndarray, shape: tuple[int, int]) -> csr_matrix:
    matrix = csr_matrix((np.ones(len(words)), (rows, words)), shape=shape)
    matrix.sum_duplicates()
    return matrix


def _vector(values: np.ndarray, name: str, *, zero_allowed: bool = False) -> np.ndarray:
    values = np.asarray(values, dtype=float)
    if values.ndim != 1 or not len(values):
        raise ParameterError(f"{name} must be a vector, got shape {values.shape}")
    bad = ~np.isfinite(values) | (values < 0 if zero_allowed else values <= 0)
    if bad.any():
        raise ParameterError(f"{name} must be {'non-negative' if zero_allowed else 'positive'}, got {values[bad][0]}")
    return values


def check_smoothed_dirichlet(
    alpha: np.ndarray, background: np.ndarray, smoothing: float
) -> tuple[np.ndarray, np.ndarray]:
    """α and g of a smoothed Dirichlet as arrays."""
    alpha, background = _vector(alpha, "alpha"), _vector(background, "the background", zero_allowed=True)
    if alpha.shape != background.shape:
        raise ParameterError(f"alpha and background must be of one length, got {len(alpha)} and {len(background)}")
    if not np.isclose(background.sum(), 1.0):
        raise ParameterError(f"the background must be a distribution, it sums to {background.sum()}")
    if not 0.0 < smoothing <= 1.0:
        raise ParameterError(f"smoothing must be in (0, 1], got {smoothing}")
    return alpha, background


def _lengths(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    given = np.atleast_1d(np.asarray(lengths))
    whole = given.astype(np.int64)
    if (whole != given).any() or (whole < 0).any():
        raise ParameterError("lengths must be whole numbers from 0 on")
    return whole
