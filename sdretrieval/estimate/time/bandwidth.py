"""Which bandwidth? Cross-validated likelihood, cross-validated least squares, plug-in; per time; per group of words.

Paper 2009, section 3.4. All selectors work on a timeline of at most a few hundred bins (``resolution``; by default
the times themselves where they are that few), and answer in the unit of the times.

=====================  ==========================================================================================
:func:`mlcv`           ten-fold maximum-likelihood cross-validation: the default, and what `auto` means
:func:`lscv`           least-squares cross-validation (18)-(19), in the corrected form
:func:`plug_in`        (20) with estimated drift: a closed form, for one h or one h_t for each time
``.schedule()``        of :func:`mlcv`'s answer: a time-varying h_t
``.by_group``          of :func:`mlcv`'s answer with ``group_of``: an h for each group of words
=====================  ==========================================================================================

h = ∞ (the global model) is always among the candidates of the two cross-validations: where nothing drifts, that is
what they may answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.progress import progress
from sdretrieval.core.timeline import Timeline, coarse_resolution, timeline
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel


def candidate_bandwidths(times: ArrayLike, *, number: int = 14) -> Floats:
    """A geometric grid from one and a half times the usual gap between distinct times to their whole range, and ∞.

    One instant has no range: only ∞ is left.
    """
    distinct = np.unique(np.asarray(times, dtype=np.float64))
    if len(distinct) < 2:
        return np.array([inf])
    gap, span = float(np.median(np.diff(distinct))), float(distinct[-1] - distinct[0])
    least = min(1.5 * gap, span)
    return np.unique(np.append(np.geomspace(least, span, number), inf))


# -- likelihood ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LikelihoodChoice:
    """Held-out log-likelihood at each bandwidth tried, and what it recommends.

    scores      candidates: mean log-likelihood of a held-out word, in nats
    over_time   candidates x times: sums; ``words`` held out at each time
    over_groups candidates x groups: sums
    """

    kernel: Kernel
    bandwidths: Floats
    scores: Floats
    times: Floats
    words: Floats
    over_time: Floats
    over_groups: Floats

    @property
    def bandwidth(self) -> float:
        """The best single h."""
        return float(self.bandwidths[int(np.argmax(self.scores))])

    @property
    def finite_bandwidth(self) -> float | None:
        """The best h but ∞; None where there is no other."""
        finite = np.isfinite(self.bandwidths)
        return float(self.bandwidths[finite][int(np.argmax(self.scores[finite]))]) if finite.any() else None

    @property
    def by_group(self) -> Floats:
        """The best h of each group of words."""
        return self.bandwidths[np.argmax(self.over_groups, axis=0)]

    def schedule(self, window: float | None = None) -> Callable[[Floats], Floats]:
        """A time-varying h_t: at each time the h whose likelihood is best *around* that time.

        The likelihood is averaged over a triangular ``window`` (half-width; default an eighth of the range), since a
        single day's is too noisy to choose by. The answer is a function of time, constant beyond the ends.
        """
        span = float(self.times[-1] - self.times[0]) if len(self.times) else 0.0
        width = span / 8 if window is None else float(window)
        if not width > 0:
            return lambda t: np.full(np.shape(t), self.bandwidth)
        near = Kernel("triangular").weights(self.times[:, None] - self.times[None, :], width)
        smooth = self.over_time @ near
        best = self.bandwidths[np.argmax(smooth, axis=0)]

        def at(t: Floats) -> Floats:
            position = np.clip(np.searchsorted(self.times, t), 1, len(self.times) - 1)
            left = t - self.times[position - 1] <= self.times[position] - t
            return best[np.where(left, position - 1, position)]

        return at


def mlcv(
    counts: csr_matrix,
    times: ArrayLike,
    *,
    kernel: str | Kernel = "tricube",
    bandwidths: ArrayLike | None = None,
    folds: int | NDArray[np.integer] = 10,
    seed: int = 0,
    resolution: float | None = None,
    background: float = 0.1,
    group_of: NDArray[np.integer] | None = None,
    refine: bool = True,
) -> LikelihoodChoice:
    """h of the highest ten-fold held-out log-likelihood.

    Held-out words are scored by (1 - background) θ̂_t + background b: see :mod:`~sdretrieval.estimate.time.held_out`.

    Parameters
    ----------
    counts, times
        Documents x terms, and a time for each document; undated documents are left out.
    kernel : str or Kernel
        Offline by its name alone.
    bandwidths : array, optional
        Those to try; by default :func:`candidate_bandwidths`.
    folds : int or array
        How many, dealt at random by ``seed``; or the fold of each document.
    resolution : float, optional
        Merges documents into bins of that width; by default into a few hundred.
    background : float
        ε, the share of the background.
    group_of : array, optional
        The group of each word, for an h of each group.
    refine : bool
        Whether to try a few more bandwidths around the best of the grid.

    Returns
    -------
    LikelihoodChoice
    """
    if resolution is None:
        resolution = coarse_resolution(times)
    folded = FoldedTimeline(
        counts, times, folds=folds, seed=seed, background=background, group_of=group_of, resolution=resolution
    )
    return choose_by_likelihood(folded, kernel=kernel, bandwidths=bandwidths, refine=refine)


def choose_by_likelihood(
    folded: FoldedTimeline,
    *,
    kernel: str | Kernel = "tricube",
    bandwidths: ArrayLike | None = None,
    refine: bool = True,
) -> LikelihoodChoice:
    """:func:`mlcv` on counts already dealt into folds."""
    kernel = as_kernel(kernel)
    line = _dated(folded.line)
    grid = _grid(line, bandwidths)
    label = "likelihood, " + ("online" if kernel.online else "offline")
    scored = {h: folded.score(h, kernel) for h in progress(grid, label=label, unit="bandwidths")}
    if refine:
        best = int(np.argmax([scored[h].total for h in grid]))
        around = [h for h in grid[max(best - 1, 0) : best + 2] if 0 < h < inf]
        for left, right in pairwise(around):
            for h in np.geomspace(left, right, 4)[1:-1].tolist():
                scored[h] = folded.score(h, kernel)
    tried = sorted(scored)
    results = [scored[h] for h in tried]
    words = folded.group_cells.sum(axis=1).reshape(len(line.times), folded.n_folds)
    return LikelihoodChoice(
        kernel=kernel,
        bandwidths=np.array(tried),
        scores=np.array([result.per_word for result in results]),
        times=line.times,
        words=words.sum(axis=1),
        over_time=np.array([result.by_time for result in results]),
        over_groups=np.array([result.by_group for result in results]),
    )


def _dated(line: Timeline) -> Timeline:
    if len(line.times) == 0:
        raise ParameterError("no dated document to choose a bandwidth by", remedy="Check the times.")
    return line


def _grid(line: Timeline, bandwidths: ArrayLike | None) -> list[float]:
    given = candidate_bandwidths(line.times) if bandwidths is None else np.asarray(bandwidths, dtype=np.float64)
    if given.size == 0:
        raise ParameterError("no bandwidth to choose from")
    return np.unique(given).tolist()


def frequency_groups(counts: csr_matrix, groups: int = 4) -> NDArray[np.int64]:
    """A group for each word, by frequency: 0 the most frequent; each group holds about the same number of tokens."""
    if groups < 1:
        raise ParameterError(f"groups must be 1 or more, got {groups}")
    cf = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    order = np.argsort(-cf, kind="stable")
    before = np.cumsum(cf[order]) - cf[order]
    total = max(cf.sum(), 1.0)
    group_of = np.empty(len(cf), dtype=np.int64)
    group_of[order] = np.minimum((before / total * groups).astype(np.int64), groups - 1)
    _, compact = np.unique(group_of, return_inverse=True)  # a very frequent word may fill several groups alone
    return compact.astype(np.int64)


# -- least squares ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LeastSquaresChoice:
    """LSCV(h) summed over words, (19), at each bandwidth tried: an estimate of mise(h) - ∫ Σ θ² dt."""

    kernel: Kernel
    bandwidths: Floats
    scores: Floats

    @property
    def bandwidth(self) -> float:
        return float(self.bandwidths[int(np.argmin(self.scores))])


def lscv(
    counts: csr_matrix,
    times: ArrayLike,
    *,
    kernel: str | Kernel = "tricube",
    bandwidths: ArrayLike | None = None,
    resolution: float | None = None,
) -> LeastSquaresChoice:
    """h of the least cross-validated squared error, summed over words (19).

    **The form of (18).** What has to be estimated is the cross term of (17), ∫ [θ̂_t]_i [θ_t]_i dt. The second term of
    (18) as printed averages [θ̂^(-j)]_i alone and so forgets the observation. Used here is

        LSCV(h, i) = ∫ [θ̂_t]_i² dt - 2/n Σ_j [θ̂^(-j) at t_j]_i y_ji / g(t_j),     y_ji = c(i, x_j) / |x_j|

    whose summand has the expectation of the cross term: E y_ji = [θ_{t_j}]_i, the document itself being left out of
    θ̂^(-j), and 1/g turns an average over documents into an integral over time. g is estimated by the histogram on
    the bins of the timeline, which makes the second term a plain average over the documents of each bin, then a sum
    over bins; the first term is summed over the same bins. Bins without documents take no part.

    Where nothing else is within reach the global model stands in (online: that of the strict past; the first bin,
    which has none, is left out).
    """
    kernel = as_kernel(kernel)
    line = _in_few_bins(counts, times, resolution)
    rows, grid = len(line.times), _grid(line, bandwidths)
    # Documents in order of time, empty ones left out: they have no relative frequencies.
    counts = csr_matrix(counts, dtype=np.float64)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    kept = np.flatnonzero((line.row_of >= 0) & (lengths > 0))
    kept = kept[np.argsort(line.row_of[kept], kind="stable")]
    documents, lengths, row_of = csr_matrix(counts[kept]), lengths[kept], line.row_of[kept]
    squares = np.asarray(documents.multiply(documents).sum(axis=1)).ravel()  # c_j·c_j
    bounds = np.searchsorted(row_of, np.arange(rows + 1))
    occupied = np.flatnonzero(np.diff(bounds) > 0)
    if kernel.online:
        occupied = occupied[occupied > 0]
    step = line.resolution if line.resolution is not None else _usual_gap(line.times)
    # Words enter through inner products alone: of bins with bins, and of documents with bins. Both are made once,
    # and every bandwidth is then a small quadratic form.
    smoothers = [kernel.weights(line.times[:, None] - line.times[None, :], h) for h in grid]
    own = [float(kernel.weights(0.0, h)) for h in grid]
    gram = (line.counts @ line.counts.T).toarray()
    cross = np.zeros((len(grid), rows))  # mean over a bin's documents of θ̂^(-j)·y_j
    columns = csr_matrix(line.counts.T)
    everywhere, total_length = np.ones(rows), float(line.lengths.sum())
    for row in occupied:
        span = slice(bounds[row], bounds[row + 1])
        with_bins = (documents[span] @ columns).toarray()  # c_j·C_b
        size = lengths[span]
        if kernel.online:
            rest = (with_bins[:, :row].sum(axis=1), np.full(len(size), line.lengths[:row].sum()))
        else:
            rest = (with_bins @ everywhere - squares[span], total_length - size)
        for i in range(len(grid)):
            # (c_j·S - K(0) c_j·c_j) / (L - K(0) |x_j|), or the global model where that is nothing
            around = float(smoothers[i][row] @ line.lengths)
            mass = around - own[i] * size
            local = mass > 1e-9 * max(around, 1e-300)
            inner = np.where(local, with_bins @ smoothers[i][row] - own[i] * squares[span], rest[0])
            mass = np.where(local, mass, rest[1])
            ratio = np.divide(inner, mass * size, out=np.zeros_like(inner), where=mass > 0)
            cross[i, row] = ratio.mean()
    scores = np.empty(len(grid))
    for i, smoother in enumerate(smoothers):
        smoother = smoother.copy()
        empty = smoother @ line.lengths <= 0
        smoother[empty] = np.tri(rows, k=-1)[empty] if kernel.online else 1.0
        smoother = smoother[occupied]
        norm = np.einsum("bi,bi->b", smoother @ gram, smoother) / (smoother @ line.lengths) ** 2  # θ̂·θ̂
        scores[i] = float(np.full(len(occupied), step) @ (norm - 2 * cross[i, occupied]))
    return LeastSquaresChoice(kernel, np.array(grid), scores)


def _in_few_bins(counts: csr_matrix, times: ArrayLike, resolution: float | None) -> Timeline:
    resolution = coarse_resolution(times, 256) if resolution is None else resolution
    return _dated(timeline(counts, times, resolution=resolution))


def _usual_gap(times: Floats) -> float:
    return float(np.median(np.diff(times))) if len(times) > 1 else 1.0


# -- plug-in ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PlugInChoice:
    """The plug-in bandwidths, and the estimated quantities they rest on.

    bandwidth   one h, minimising the leading terms of the mise over the whole time
    varying     h_t at each of ``times``, (20)
    bias        estimated Σ_j ([θ̇]_j g'/g + [θ̈]_j/2)² (online: Σ_j [θ̇]_j²) at each time
    pilot       bandwidth of the local cubic fit that estimated the derivatives
    """

    kernel: Kernel
    bandwidth: float
    times: Floats
    varying: Floats
    bias: Floats
    pilot: float


def plug_in(
    counts: csr_matrix, times: ArrayLike, *, kernel: str | Kernel = "tricube", variance: str = "documents"
) -> PlugInChoice:
    """(20), with everything unknown estimated from the data.

    * θ̇ and θ̈ by a local cubic fit to the relative frequencies of the bins. Its bandwidth, the ``pilot``, is chosen by
      leave-one-bin-out least squares, times 0.9 to serve the second derivative (Fan & Gijbels 1996, table 3.2).
    * Squares of estimates are too large by their noise, and there are thousands of words to add it up. Bins never meet
      themselves: θ_b·θ_b is estimated from pairs of *different* documents of the bin, which is unbiased.
    * tr V per word from the spread of documents around their bin (``variance="documents"``, which allows for the
      burstiness of words in real documents), or 1 - Σθ² as the paper's multinomial has it (``"multinomial"``).
    * nλg(t) is the density of words over time, smoothed with the pilot bandwidth, and reflected at both ends.

    Infinite where no drift rises above the noise. All words count; there is no word-by-word output because nothing is
    ever computed word by word: the fits live in the inner products of bins.
    """
    kernel = as_kernel(kernel)
    if variance not in ("documents", "multinomial"):
        raise ParameterError(f"variance={variance!r} is not known", remedy="Choose documents or multinomial.")
    line = _in_few_bins(counts, times, None)
    used = np.flatnonzero(line.lengths > 0)
    t, m = line.times[used], line.lengths[used]
    if len(t) < 8:  # a cubic and its residuals need more than that
        return PlugInChoice(kernel, inf, t, np.full(len(t), inf), np.zeros(len(t)), inf)
    frequencies = csr_matrix(line.counts[used].multiply(1 / m[:, None]))
    gram = (frequencies @ frequencies.T).toarray()
    unbiased, per_word = _without_noise(counts, line, used, gram)
    if variance == "multinomial":
        per_word = float(np.average(1 - np.diag(unbiased), weights=m))
    span = float(t[-1] - t[0])
    pilot = 0.9 * _cubic_pilot(t, m, gram)
    density, slope = _word_density(t, m, pilot)  # nλg and its derivative
    cubic = _cubic_weights(t, m, pilot)
    if kernel.online:
        v = cubic[:, 1]  # θ̇ = v·(relative frequencies)
    else:
        v = cubic[:, 1] * (slope / density)[:, None] + cubic[:, 2]  # θ̇ g'/g + θ̈/2
    bias = ((v @ unbiased) * v).sum(axis=1)
    # Averaged over the pilot's window, a single time's value is still noisy; never below what rounding could give.
    near = Kernel("epanechnikov").weights(t[:, None] - t[None, :], pilot) if np.isfinite(pilot) else np.ones((1, 1))
    smooth = (near * bias).sum(axis=1) / np.broadcast_to(near, (len(t), len(t))).sum(axis=1)
    step = np.gradient(t)
    mean_bias, mean_variance = float(step @ bias), float(step @ (per_word / density))
    mu_02 = kernel.moment(0, 2)

    def minimiser(squared: float, noise: float) -> float:
        if squared <= 0:
            return inf
        if kernel.online:
            return float((mu_02 * noise / (2 * kernel.moment(1, 1) ** 2 * squared)) ** (1 / 3))
        return float((mu_02 * noise / (4 * kernel.moment(2, 1) ** 2 * squared)) ** 0.2)

    varying = np.array([minimiser(float(s), per_word / d) for s, d in zip(smooth, density, strict=True)])
    chosen = minimiser(mean_bias, mean_variance)
    # Beyond the whole range every kernel is nearly flat: call it global rather than print a number without meaning.
    limit = 4 * span
    varying = np.where(varying > limit, inf, varying)
    return PlugInChoice(kernel, inf if chosen > limit else chosen, t, varying, bias, float(pilot))


def _without_noise(counts: csr_matrix, line: Timeline, used: NDArray[np.int64], gram: Floats) -> tuple[Floats, float]:
    """Inner products θ_b·θ_b' of bins without the noise on the diagonal, and the variance of a word, tr V.

    Different bins share no noise. Within a bin: Σ_{i≠j} c_i·c_j / Σ_{i≠j} |x_i||x_j|, or, where a bin holds a single
    document, the mean product with its neighbours.
    """
    counts = csr_matrix(counts, dtype=np.float64)
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    squares = np.asarray(counts.multiply(counts).sum(axis=1)).ravel()
    dated = line.row_of >= 0
    rows = len(line.times)
    own = np.bincount(line.row_of[dated], weights=squares[dated], minlength=rows)[used]
    own_pairs = np.bincount(line.row_of[dated], weights=lengths[dated] ** 2, minlength=rows)[used]
    m = line.lengths[used]
    unbiased = gram.copy()
    pairs = m**2 - own_pairs
    several = pairs > 1e-9 * m**2
    beside = np.array([np.mean([gram[b, o] for o in (b - 1, b + 1) if 0 <= o < len(used)]) for b in range(len(used))])
    inside = np.divide(np.diag(gram) * m**2 - own, pairs, out=beside.copy(), where=several)
    np.fill_diagonal(unbiased, inside)
    # E |c_j|² = |x_j|² |θ|² + Var: what is left, per word
    spread = float((own - own_pairs * inside).sum()) / float(m.sum())
    return unbiased, max(spread, 1e-12)


def _cubic_weights(t: Floats, m: Floats, pilot: float) -> Floats:
    """times x 4 x bins: the linear weights that give the four coefficients of the local cubic at each time."""
    scale = pilot if np.isfinite(pilot) else float(t[-1] - t[0])
    u = (t[None, :] - t[:, None]) / scale
    w = m * Kernel("epanechnikov").weights(u * scale, pilot)
    basis = u[:, None, :] ** np.arange(4)[:, None]  # times x powers x bins
    weighted = basis * w[:, None, :]
    normal = weighted @ basis.transpose(0, 2, 1)
    weights = np.linalg.pinv(normal, rcond=1e-10, hermitian=True) @ weighted
    return weights / (scale ** np.arange(4))[:, None]


def _cubic_pilot(t: Floats, m: Floats, gram: Floats) -> float:
    """The bandwidth of the local cubic fit of least leave-one-bin-out squared error, all words together."""
    span = float(t[-1] - t[0])
    # No narrower than leaves eight bins around every bin for four coefficients.
    eighth = np.sort(np.abs(t[:, None] - t[None, :]), axis=1)[:, min(8, len(t) - 1)].max() * 1.001
    best, best_error = inf, inf
    for pilot in [*np.geomspace(min(eighth, span), span, 10), inf]:
        smoother = _cubic_weights(t, m, float(pilot))[:, 0]
        leverage = np.diag(smoother)
        if np.any(leverage > 1 - 1e-6):
            continue
        residual = np.eye(len(t)) - smoother
        errors = ((residual @ gram) * residual).sum(axis=1) / (1 - leverage) ** 2
        error = float(m @ errors)
        if error < best_error:
            best, best_error = float(pilot), error
    return best


def _word_density(t: Floats, m: Floats, pilot: float) -> tuple[Floats, Floats]:
    """Words per unit of time at each bin, and its derivative: a Gaussian smooth of the bins, reflected at the ends."""
    span = float(t[-1] - t[0])
    gap = _usual_gap(t)
    low, high = t[0] - gap / 2, t[-1] + gap / 2
    if not np.isfinite(pilot):
        return np.full(len(t), m.sum() / (span + gap)), np.zeros(len(t))
    h = pilot / 2
    density, slope = np.zeros(len(t)), np.zeros(len(t))
    for image in (t, 2 * low - t, 2 * high - t):
        u = (t[:, None] - image[None, :]) / h
        k = np.exp(-0.5 * u**2) / (h * np.sqrt(2 * np.pi))
        density += k @ m
        slope += (-u / h * k) @ m
    return density, slope
