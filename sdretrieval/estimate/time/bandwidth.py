"""Which bandwidth? The one of the highest ten-fold cross-validated likelihood: paper 2009, section 3.4.

It works on a timeline of at most a few hundred bins (``resolution``; by default the times themselves where they are
that few), and answers in the unit of the times. h = ∞ (the global model) is always among the candidates: where nothing
drifts, that is what it may answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.progress import progress
from sdretrieval.core.timeline import Timeline, coarse_resolution
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
    Undated documents are left out. ``folds`` is how many, dealt at random by ``seed``, or the fold of each document;
    ``resolution`` merges documents into bins of that width, by default into a few hundred; ``group_of`` is the group of
    each word, for an h of each group; ``refine`` tries a few more bandwidths around the best of the grid.
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
    only: int | None = None,
) -> LikelihoodChoice:
    """:func:`mlcv` on counts already dealt into folds; ``only`` scores a single fold."""
    kernel = as_kernel(kernel)
    line = checked_dated(folded.line)
    grid = grid_of(line, bandwidths)
    label = "likelihood, " + ("online" if kernel.online else "offline")
    scored = {h: folded.score(h, kernel, only=only) for h in progress(grid, label=label, unit="bandwidths")}
    if refine:
        best = int(np.argmax([scored[h].total for h in grid]))
        around = [h for h in grid[max(best - 1, 0) : best + 2] if 0 < h < inf]
        for left, right in pairwise(around):
            for h in np.geomspace(left, right, 4)[1:-1].tolist():
                scored[h] = folded.score(h, kernel, only=only)
    tried = sorted(scored)
    results = [scored[h] for h in tried]
    words = folded.group_cells.sum(axis=1).reshape(len(line.times), folded.n_folds)
    return LikelihoodChoice(
        kernel=kernel,
        bandwidths=np.array(tried),
        scores=np.array([result.per_word for result in results]),
        times=line.times,
        words=words.sum(axis=1) if only is None else words[:, only],
        over_time=np.array([result.by_time for result in results]),
        over_groups=np.array([result.by_group for result in results]),
    )


def checked_dated(line: Timeline) -> Timeline:
    if len(line.times) == 0:
        raise ParameterError("no dated document to choose a bandwidth by", remedy="Check the times.")
    return line


def grid_of(line: Timeline, bandwidths: ArrayLike | None) -> list[float]:
    given = candidate_bandwidths(line.times) if bandwidths is None else np.asarray(bandwidths, dtype=np.float64)
    if given.size == 0:
        raise ParameterError("no bandwidth to choose from")
    return np.unique(given).tolist()
