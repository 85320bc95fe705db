"""Held-out log-likelihood of the local model: what bandwidths are judged by.

Documents are dealt into folds. A held-out document of time t and fold f is scored by the model made of the *other*
folds around t, and since all documents of one time and fold meet the same model, only their merged counts matter:
one pass over the window gives the sums of all folds at once, and a fold's model is the total less its own share.

    p_t(w) = (1 - ε) θ̂_t(w) + ε b(w),     b(w) = (C_w + a) / (C + a·k)

      θ̂_t   (10) on the other folds; b where no document is within reach
      C     counts of the other folds, over all time; online, over the strict past of t, so that nothing leaks
      ε, a  ``background`` and ``additive``: keep log p finite for a word the window has not seen

The paper holds unseen words off by keeping the 500 most frequent words only; ε serves all of them.

**Two ways to the same sums.** A narrow window is added up anew at each time. For a wide one that would mean the whole
collection at each time, but a polynomial kernel is a polynomial in τ, so Σ_τ K((t - τ)/h) c_τ follows from the moments
Σ_τ c_τ τ^j of the data on either side of t, and these change by one time's documents as t moves on. What has been taken
off again leaves a trace of rounding. So where the other folds have little or nothing within reach (a gap in the dates),
the sums are made anew there too, and whether there is anything at all is counted in whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import Timeline, merge_rows, timeline
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel

WEIGHTS_AT_ONCE = 4_000_000  # kernel weights held in memory at a time
MOMENTS_AT_MOST = 64_000_000  # half a gigabyte of them
LITTLE = 1e-4  # of all words, within reach: below it rounding in the moments shows, which is 1e-9 of all words at most


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Sums of log p over held-out words: in all, by time, by group of words, by word.

    ``by_group`` is the likelihood of the group's words with all other words as one further outcome (a proper score;
    the words' own terms alone would reward a model that inflates the group).
    """

    total: float
    words: float
    by_time: Floats
    by_group: Floats
    by_word: Floats

    @property
    def per_word(self) -> float:
        return self.total / self.words if self.words > 0 else -inf


class FoldedTimeline:
    """Counts along time, dealt into folds; scores any bandwidth."""

    def __init__(
        self,
        counts: csr_matrix,
        times: ArrayLike,
        *,
        folds: int | NDArray[np.integer] = 10,
        seed: int = 0,
        resolution: float | None = None,
        background: float = 0.1,
        additive: float = 0.1,
        group_of: NDArray[np.integer] | None = None,
    ) -> None:
        if not 0 < background <= 1:
            raise ParameterError(f"background must be in (0, 1], got {background}")
        if not additive > 0:
            raise ParameterError(f"additive must be positive, got {additive}")
        self.line: Timeline = timeline(counts, times, resolution=resolution)
        dated = self.line.row_of >= 0
        fold_of = deal(dated, folds, seed)
        self.n_folds = int(fold_of.max(initial=1)) + 1
        self.background, self.additive = float(background), float(additive)
        cell = np.where(dated & (fold_of >= 0), self.line.row_of * self.n_folds + fold_of, -1)
        self.cells = merge_rows(counts, cell, len(self.line.times) * self.n_folds)
        n_terms = int(counts.shape[1])
        self.group_of = np.zeros(n_terms, dtype=np.int64) if group_of is None else np.asarray(group_of, dtype=np.int64)
        if self.group_of.shape != (n_terms,):
            raise ParameterError(f"{len(self.group_of)} words in groups but {n_terms} terms in the counts")
        self.n_groups = int(self.group_of.max(initial=0)) + 1
        member = csr_matrix((np.ones(n_terms), (np.arange(n_terms), self.group_of)), shape=(n_terms, self.n_groups))
        self.group_cells = np.ascontiguousarray((self.cells @ member).toarray())
        self.group_sizes = np.bincount(self.group_of, minlength=self.n_groups).astype(np.float64)

    def score(self, bandwidth: float, kernel: str | Kernel = "tricube") -> HeldOut:
        """Held-out likelihood at one bandwidth, over all folds."""
        kernel = as_kernel(kernel)
        times, n_rows, n_terms = self.line.times, len(self.line.times), len(self.group_of)
        sums = np.zeros(n_rows), np.zeros(self.n_groups), np.zeros(n_terms)
        # The background's counts: of everything, or of the past so far.
        seen = np.zeros((self.n_folds, n_terms)), np.zeros((self.n_folds, self.n_groups))
        lo, hi = self._window(kernel, bandwidth)
        wide = self._moments_wanted(kernel, bandwidth)
        powers = _moment_coefficients(times, bandwidth, kernel) if wide else (np.zeros((1, 1)),) * 3
        # Of each word and each group: for each fold and, last, for all folds together; before and after t; each power.
        shape = (self.n_folds + 1, 2, powers[0].shape[1])
        # How many entries each fold has before each time, to know what is empty; the kernel, where sums are made anew.
        entries = np.diff(self.cells.indptr).reshape(n_rows, self.n_folds)
        before = np.concatenate([np.zeros((1, self.n_folds), np.int64), np.cumsum(entries, axis=0, dtype=np.int64)])
        height, inner, outer = kernel.polynomial or (1.0, 1, 0)
        anew = (before, times, float(bandwidth), float(height), inner, outer)
        moments = tuple(np.zeros((n if wide else 1, *shape)) for n in (n_terms, self.n_groups))
        cells = (self.cells.indptr, self.cells.indices, self.cells.data, self.group_cells)
        settings = (self.n_folds, self.background, self.additive, kernel.online, wide)
        first = 0
        while first < n_rows:
            last, held = first, 0
            while last < n_rows and (wide or last == first or held + hi[last] - lo[last] <= WEIGHTS_AT_ONCE):
                held += int(hi[last] - lo[last])
                last += 1
            spans = hi[first:last] - lo[first:last]
            start = np.concatenate([[0], np.cumsum(spans)])
            weights = np.zeros(0)
            if not wide:
                column = np.arange(start[-1]) - np.repeat(start[:-1] - lo[first:last], spans)
                weights = kernel.weights(np.repeat(times[first:last], spans) - times[column], bandwidth)
            windows = (lo, hi, start, weights)
            words = (self.group_of, self.group_sizes)
            _score_rows(first, last, settings, windows, cells, words, powers, moments, anew, seen, sums)
            first = last
        scored = self.group_cells.sum(axis=1).reshape(n_rows, self.n_folds)
        by_time, by_group, by_word = sums
        return HeldOut(
            total=float(by_time.sum()), words=float(scored.sum()), by_time=by_time, by_group=by_group, by_word=by_word
        )

    def _window(self, kernel: Kernel, bandwidth: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows within reach of each row: from lo, up to but without hi."""
        times = self.line.times
        n_rows = len(times)
        if np.isinf(bandwidth):
            lo, hi = np.zeros(n_rows, dtype=np.int64), np.full(n_rows, n_rows)
        elif bandwidth == 0:
            lo, hi = np.arange(n_rows), np.arange(1, n_rows + 1)
        else:
            reach = kernel.reach(bandwidth)
            slack = 1e-12 * (np.abs(times) + reach)  # rounding must not cut a datum off
            lo = np.searchsorted(times, times - reach - slack, side="left")
            hi = np.searchsorted(times, times + reach + slack, side="right")
            if kernel.polynomial is not None:  # moments need the support to the last bit
                lo = lo + ((times - times[lo]) / bandwidth >= 1.0)
                hi = hi - ((times[hi - 1] - times) / bandwidth >= 1.0)
        if kernel.online:
            hi = np.arange(n_rows)
        return lo, np.maximum(hi, lo)

    def _moments_wanted(self, kernel: Kernel, bandwidth: float) -> bool:
        """Where windows are wide, and the powers of τ/h small enough that no more than seven digits cancel."""
        times = self.line.times
        if kernel.polynomial is None or bandwidth == 0 or len(times) < 2:
            return False
        _, p, q = kernel.polynomial
        if len(self.group_of) * (self.n_folds + 1) * 2 * (p * q + 1) > MOMENTS_AT_MOST:
            return False
        ratio = 0.0 if np.isinf(bandwidth) else float(times[-1] - times[0]) / bandwidth
        return ratio ** (p * q) < 1e7 and ratio < len(times) / 16


def _moment_coefficients(times: Floats, bandwidth: float, kernel: Kernel) -> tuple[Floats, Floats, Floats]:
    """x^j for each time, and a_j with Σ_j a_j x^j = K, for data before and for data at or after each time.

    With x = τ/h and y = t/h:  (1 - u^p)^q = Σ_i C(q,i) (-1)^i u^(pi),  u = ±(y - x),  and the binomial theorem again.
    """
    assert kernel.polynomial is not None
    c, p, q = kernel.polynomial
    if np.isinf(bandwidth):
        q = 0  # a constant
    middle = 0.5 * (times[0] + times[-1])
    y = (times - middle) / bandwidth
    powers = y[:, None] ** np.arange(p * q + 1)
    left, right = np.zeros_like(powers), np.zeros_like(powers)
    for i in range(q + 1):
        for j in range(p * i + 1):
            term = c * comb(q, i) * (-1) ** i * comb(p * i, j) * powers[:, p * i - j]
            left[:, j] += term * (-1) ** j  # u = y - x
            right[:, j] += term * (-1) ** (p * i - j)  # u = x - y
    return powers, left, right


def deal(dated: NDArray[np.bool_], folds: int | NDArray[np.integer], seed: int) -> NDArray[np.int64]:
    """A fold for each document: given, or of equal size at random among the dated ones (-1 for the others)."""
    if not isinstance(folds, int | np.integer):
        given = np.asarray(folds, dtype=np.int64)
        if given.shape != dated.shape:
            raise ParameterError(f"{len(given)} folds given for {len(dated)} documents")
        return given
    n = int(np.count_nonzero(dated))
    if folds < 2:
        raise ParameterError(f"cross-validation needs at least 2 folds, got {folds}")
    fold_of = np.full(len(dated), -1, dtype=np.int64)
    fold_of[dated] = np.random.default_rng(seed).permutation(n) % folds
    return fold_of


@njit(cache=True)
def _score_rows(first, last, settings, windows, cells, words, powers, moments, anew, seen, by):
    """Add the log-likelihoods of the rows from ``first`` up to ``last`` to what is summed ``by`` time, group, word."""
    n_folds, background, additive, online, wide = settings
    lo, hi, start, weights = windows
    indptr, indices, data, group_cells = cells
    group_of, group_sizes = words
    x, left, right = powers
    word_moments, group_moments = moments
    entries_before, times, bandwidth, height, inner, outer = anew
    seen_words, seen_groups = seen
    by_time, by_group, by_word = by
    n_terms = len(group_of)
    n_groups = len(group_sizes)
    n_rows = (len(indptr) - 1) // n_folds
    if not online and first == 0:
        for row in range(n_rows):
            _take(row, n_folds, cells, seen)
    sums = np.zeros((n_folds, n_terms))  # Σ K c of each fold
    group_sums = np.zeros((n_folds, n_groups))
    length = np.empty(n_folds)
    little = LITTLE * group_cells.sum()
    entered, left_behind = 0, 0
    for row in range(first, last):
        if wide:
            while entered < hi[row] and not online:  # comes into reach from the future
                _shift(entered, 1, 1.0, n_folds, cells, x, moments)
                entered += 1
            if row > 0:  # has become the past
                if not online:
                    _shift(row - 1, 1, -1.0, n_folds, cells, x, moments)
                _shift(row - 1, 0, 1.0, n_folds, cells, x, moments)
            while left_behind < lo[row]:  # goes out of reach
                _shift(left_behind, 0, -1.0, n_folds, cells, x, moments)
                left_behind += 1
            for fold in range(n_folds):
                for group in range(n_groups):
                    group_sums[fold, group] = _evaluate(left[row], right[row], group_moments[group, fold])
        by_moments = wide and group_sums.sum() - _largest(group_sums) > little
        if not by_moments:
            sums[:] = 0.0
            group_sums[:] = 0.0
            for source in range(lo[row], hi[row]):
                if wide:
                    u = abs(times[row] - times[source]) / bandwidth
                    weight = height * (1.0 - u**inner) ** outer if u < 1.0 else 0.0
                else:
                    weight = weights[start[row - first] + source - lo[row]]
                if weight == 0.0:
                    continue
                for fold in range(n_folds):
                    cell = source * n_folds + fold
                    for p in range(indptr[cell], indptr[cell + 1]):
                        sums[fold, indices[p]] += weight * data[p]
                    for group in range(n_groups):
                        group_sums[fold, group] += weight * group_cells[cell, group]
        total, seen_total = 0.0, 0.0
        for fold in range(n_folds):
            length[fold] = group_sums[fold].sum()
            total += length[fold]
            seen_total += seen_groups[fold].sum()
        for fold in range(n_folds):
            cell = row * n_folds + fold
            if indptr[cell] == indptr[cell + 1]:
                continue
            inside = total - length[fold]
            outside = seen_total - seen_groups[fold].sum() + additive * n_terms
            others = 0
            for other in range(n_folds):
                if other != fold:
                    others += entries_before[hi[row], other] - entries_before[lo[row], other]
            local = others > 0 and inside > 1e-9 * max(total, 1e-300)
            cell_words = 0.0
            for p in range(indptr[cell], indptr[cell + 1]):
                w = indices[p]
                back = additive
                for other in range(n_folds):
                    if other != fold:
                        back += seen_words[other, w]
                probability = back / outside
                if local:
                    here = 0.0
                    if by_moments:
                        here = _evaluate(left[row], right[row], word_moments[w, n_folds])
                        here = max(here - _evaluate(left[row], right[row], word_moments[w, fold]), 0.0)
                    else:
                        for other in range(n_folds):
                            if other != fold:
                                here += sums[other, w]
                    probability = (1.0 - background) * here / inside + background * probability
                gain = data[p] * np.log(probability)
                by_time[row] += gain
                by_group[group_of[w]] += gain
                by_word[w] += gain
                cell_words += data[p]
            if n_groups > 1:  # all other words as one outcome
                for group in range(n_groups):
                    others = cell_words - group_cells[cell, group]
                    if others <= 0.0:
                        continue
                    back = additive * group_sizes[group]
                    here = 0.0
                    for other in range(n_folds):
                        if other != fold:
                            back += seen_groups[other, group]
                            here += group_sums[other, group]
                    mass = back / outside
                    if local:
                        mass = (1.0 - background) * here / inside + background * mass
                    by_group[group] += others * np.log(max(1.0 - mass, 1e-300))
        if online:
            _take(row, n_folds, cells, seen)


@njit(cache=True)
def _largest(group_sums):
    """The most that one fold has."""
    most = 0.0
    for fold in range(len(group_sums)):
        most = max(most, group_sums[fold].sum())
    return most


@njit(cache=True)
def _take(row, n_folds, cells, seen):
    """Add the documents of one time to what has been seen."""
    indptr, indices, data, group_cells = cells
    seen_words, seen_groups = seen
    for fold in range(n_folds):
        cell = row * n_folds + fold
        for p in range(indptr[cell], indptr[cell + 1]):
            seen_words[fold, indices[p]] += data[p]
        for group in range(seen_groups.shape[1]):
            seen_groups[fold, group] += group_cells[cell, group]


@njit(cache=True)
def _shift(row, side, sign, n_folds, cells, x, moments):
    """Add the documents of one time to the moments of one side of t (0 before, 1 after), or take them off."""
    indptr, indices, data, group_cells = cells
    word_moments, group_moments = moments
    for fold in range(n_folds):
        cell = row * n_folds + fold
        for p in range(indptr[cell], indptr[cell + 1]):
            own, everyone = word_moments[indices[p], fold, side], word_moments[indices[p], n_folds, side]
            for j in range(x.shape[1]):
                amount = sign * data[p] * x[row, j]
                own[j] += amount
                everyone[j] += amount
        for group in range(len(group_moments)):
            for j in range(x.shape[1]):
                group_moments[group, fold, side, j] += sign * group_cells[cell, group] * x[row, j]


@njit(cache=True)
def _evaluate(left, right, moments):
    """Σ K c from the moments of either side."""
    value = 0.0
    for j in range(len(left)):
        value += left[j] * moments[0, j] + right[j] * moments[1, j]
    return max(value, 0.0)  # rounding may leave a trace of what has been taken off
