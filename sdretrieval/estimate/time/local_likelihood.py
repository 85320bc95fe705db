"""The local unigram model: a language model for every instant, from the documents around it.

Zhao, Lebanon & Zhao 2009, the maximiser of the local likelihood (9):

    [θ̂_t]_w = Σ_τ K_h(t - τ) c(w, x^(τ)) / Σ_τ K_h(t - τ) |x^(τ)|                                   (10)

      c(w, x^(τ))   occurrences of w in the documents of time τ;  |x^(τ)| their length in words
      K_h           :mod:`~sdretrieval.estimate.time.kernels`, offline or online

h = ∞ is the global model (online: of the strict past), h = 0 the extreme local one, of the documents of exactly t.
A "word" is a column of the counts: :func:`ngram_counts` makes columns of n-grams.

**Where no document lies within the kernel's support** (10) is 0/0, and ``empty`` decides: ``"nan"`` (the default: a
row of NaN, because the data say nothing), ``"global"`` (the limit h = ∞; online that is all of the strict past, and
the uniform distribution before the first document), or ``"error"``.

Only documents within the support are touched, and no more than a block of rows is ever dense at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_matrix, csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import Timeline, known_times, timeline
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel, check_bandwidth

BLOCK = 16  # rows made at once: enough to share a pass over the window, few enough to stay in cache
EMPTY = ("nan", "global", "error")

Bandwidth = float | Callable[[Floats], ArrayLike]
Words = Sequence[int] | NDArray[np.integer] | None  # by number; None is all of them


def _as_times(times: ArrayLike) -> Floats:
    return np.atleast_1d(np.asarray(times, dtype=np.float64))


class LocalLikelihood:
    """θ̂_t (10) over sparse documents x terms counts, for any t.

    Parameters
    ----------
    counts, times
        Documents x terms, and a time for each document; undated documents are left out. Or a timeline, and None.
    bandwidth : float or callable
        h in the unit of the times; or a function of t, a time-varying h_t.
    kernel : str or Kernel
        Its name, or itself.
    online : bool, optional
        Whether only the strict past counts; by default as the kernel says.
    resolution : float, optional
        Merges documents into bins of that width, and compares times bin to bin.
    empty : {"nan", "global", "error"}
        What to do where no document is within reach.

    Examples
    --------
    >>> model = LocalLikelihood(csr_matrix([[2, 0], [1, 1], [0, 4]]), [0.0, 1.0, 5.0], 2.0, kernel="uniform")
    >>> model.at(0.5).tolist()
    [0.75, 0.25]
    """

    def __init__(
        self,
        counts: csr_matrix | Timeline,
        times: ArrayLike | None,
        bandwidth: Bandwidth,
        *,
        kernel: str | Kernel = "tricube",
        online: bool | None = None,
        resolution: float | None = None,
        empty: str = "nan",
    ) -> None:
        if empty not in EMPTY:
            raise ParameterError(f"empty={empty!r} is not known", remedy=f"Choose one of: {', '.join(EMPTY)}.")
        self.kernel = as_kernel(kernel, online=online)
        self.bandwidth = bandwidth if callable(bandwidth) else check_bandwidth(bandwidth)
        self.empty = empty
        if isinstance(counts, Timeline):
            self.line = counts
        else:
            if times is None:
                raise ParameterError("counts of documents need their times")
            self.line = timeline(counts, times, resolution=resolution)

    @property
    def n_terms(self) -> int:
        return int(self.line.counts.shape[1])

    def bandwidth_at(self, times: ArrayLike) -> Floats:
        """h at each time; constant unless the bandwidth is a function."""
        t = _as_times(times)
        if not callable(self.bandwidth):
            return np.full(len(t), self.bandwidth)
        h = np.asarray(self.bandwidth(t), dtype=np.float64)
        if h.shape != t.shape or not np.all(h >= 0):
            raise ParameterError("a bandwidth function must give a number >= 0 for each time")
        return h

    # -- the model ---------------------------------------------------------------------------------------------------
    def at(self, t: float) -> Floats:
        """θ̂_t over all terms."""
        return self.over([t])[0]

    def over(self, times: ArrayLike, words: Words = None) -> Floats:
        """θ̂_t(w): a dense times x words array, for the words asked for (by number; default all)."""
        t = _as_times(times)
        out = np.empty((len(t), self.n_terms if words is None else len(words)))
        for rows, theta in self.blocks(t, words):
            out[rows] = theta
        return out

    def rows(self, times: ArrayLike) -> Iterator[tuple[float, Floats]]:
        """(t, θ̂_t) one after the other in increasing t: a whole drift without a times x words matrix."""
        t = _as_times(times)
        for rows, theta in self.blocks(t):
            for row, values in zip(rows, theta, strict=True):
                yield float(t[row]), values

    def blocks(self, times: ArrayLike, words: Words = None) -> Iterator[tuple[NDArray[np.int64], Floats]]:
        """(positions in ``times``, their rows of θ̂), a few neighbouring times at once."""
        t = _as_times(times)
        counts = self.line.counts if words is None else csr_matrix(self.line.counts[:, np.asarray(words)])
        fallback = _Fallback(self, counts) if self.empty == "global" else None
        for rows, lo, hi, weights in self.windows(t):
            total = weights @ self.line.lengths[lo:hi]
            sums = weighted_rows(counts, lo, hi, weights)
            theta = np.full(sums.shape, np.nan)
            np.divide(sums, total[:, None], out=theta, where=total[:, None] > 0)
            for i in np.flatnonzero(total <= 0):
                if self.empty == "error":
                    raise ParameterError(
                        f"no document lies within the {self.kernel.name} kernel's reach of time {t[rows[i]]:.0f}",
                        remedy="Widen the bandwidth, or pass empty='global'.",
                    )
                if fallback is not None:
                    theta[i] = fallback(float(self.line.snap(t[rows[i]])))
            yield rows, theta

    def at_documents(self, counts: csr_matrix, times: ArrayLike) -> csr_matrix:
        """θ̂ at each document's own time, at its own words: a matrix with the pattern of ``counts``.

        What a drifting background needs when documents are smoothed at their own time.
        Undated documents get the global model, whatever ``empty`` says: nothing else is known of their time.
        """
        stamps, dated = known_times(times)
        counts = csr_matrix(counts)
        if counts.shape != (len(stamps), self.n_terms):
            raise ParameterError(f"counts {counts.shape} do not fit {len(stamps)} times and {self.n_terms} terms")
        distinct, which = np.unique(self.line.snap(stamps)[dated], return_inverse=True)
        order = np.flatnonzero(dated)[np.argsort(which, kind="stable")]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(distinct)))])
        out = csr_matrix((np.full(counts.nnz, np.nan), counts.indices.copy(), counts.indptr.copy()), counts.shape)
        fallback = _Fallback(self, self.line.counts)
        for rows, lo, hi, weights in self.windows(distinct):
            total = weights @ self.line.lengths[lo:hi]
            sums = weighted_rows(self.line.counts, lo, hi, weights)
            for i, row in enumerate(rows):
                background = fallback(float(distinct[row])) if self.empty == "global" else None
                for d in order[bounds[row] : bounds[row + 1]]:
                    span = slice(counts.indptr[d], counts.indptr[d + 1])
                    words = counts.indices[span]
                    if total[i] > 0:
                        out.data[span] = sums[i, words] / total[i]
                    elif background is not None:
                        out.data[span] = background[words]
                    elif self.empty == "error":
                        raise ParameterError(f"no document lies within reach of time {distinct[row]:.0f}")
        undated = np.repeat(~dated, np.diff(counts.indptr))
        out.data[undated] = self.global_model()[counts.indices[undated]]
        return out

    def global_model(self) -> Floats:
        """The limit h = ∞, offline: relative frequencies in all dated documents (θ^GE)."""
        sums = np.asarray(self.line.counts.sum(axis=0), dtype=np.float64).ravel()
        total = sums.sum()
        return sums / total if total > 0 else np.full(self.n_terms, np.nan)

    # -- what the model rests on -------------------------------------------------------------------------------------
    def local_counts(self, t: float) -> Floats:
        """Kernel-weighted counts around t, scaled so that they sum to :meth:`effective_words`.

        The scale makes one unit worth one word: a word drawn from these data carries the weight 1 on average, and
        θ̂_t has the variance of a multinomial sample of that size. All zero where nothing is within reach.
        """
        _, lo, hi, weights = next(self.windows(np.array([float(t)])))
        sums = weighted_rows(self.line.counts, lo, hi, weights)[0]
        return sums * _unit_scale(weights[0], self.line.lengths[lo:hi])

    def effective_words(self, times: ArrayLike) -> Floats:
        """(Σ K|x|)² / Σ K²|x|: how many independent words θ̂_t is worth, after (12)."""
        t = _as_times(times)
        out = np.zeros(len(t))
        for rows, lo, hi, weights in self.windows(t):
            lengths = self.line.lengths[lo:hi]
            for i, row in enumerate(rows):
                out[row] = _unit_scale(weights[i], lengths) * (weights[i] @ lengths)
        return out

    def windows(self, t: Floats) -> Iterator[tuple[NDArray[np.int64], int, int, Floats]]:
        """(positions in t, first row, past the last row, weights): neighbouring times share a window."""
        times = self.line.times
        snapped = self.line.snap(t)
        if not np.all(np.isfinite(snapped)):
            raise ParameterError("times to estimate at must be finite numbers")
        h = self.bandwidth_at(snapped)
        reach = np.array([self.kernel.reach(float(value)) for value in h])
        order = np.argsort(snapped, kind="stable")
        i = 0
        while i < len(order):
            first = snapped[order[i]]
            j = i + 1
            # Sharing a window pays while the times lie well within one another's reach.
            while j < len(order) and j - i < BLOCK and snapped[order[j]] - first <= 0.5 * reach[order[i]]:
                j += 1
            rows = order[i:j]
            at, width = snapped[rows], reach[rows]
            slack = 1e-12 * (np.abs(at) + np.where(np.isinf(width), 0.0, width))  # rounding must not cut a datum off
            lo = int(np.searchsorted(times, (at - width - slack).min(), side="left"))
            last = at.max() if self.kernel.online else (at + width + slack).max()
            hi = int(np.searchsorted(times, last, side="left" if self.kernel.online else "right"))
            hi = max(hi, lo)
            yield rows, lo, hi, self.kernel.weights(at[:, None] - times[None, lo:hi], h[rows, None])
            i = j


class _Fallback:
    """The model of h = ∞ at t, made once (offline) or as t moves on (online: of the strict past)."""

    def __init__(self, model: LocalLikelihood, counts: csr_matrix) -> None:
        self.line, self.counts, self.online = model.line, counts, model.kernel.online
        self.seen, self.sums, self.total = 0, np.zeros(counts.shape[1]), 0.0
        if not self.online:
            self._take(len(self.line.times))

    def _take(self, upto: int) -> None:
        weights = np.ones((1, upto - self.seen))
        self.sums = self.sums + weighted_rows(self.counts, self.seen, upto, weights)[0]
        self.total += float(self.line.lengths[self.seen : upto].sum())
        self.seen = upto

    def __call__(self, t: float) -> Floats:
        if self.online:
            upto = int(np.searchsorted(self.line.times, t, side="left"))
            if upto < self.seen:  # an earlier time than before: start again
                self.seen, self.sums, self.total = 0, np.zeros_like(self.sums), 0.0
            self._take(upto)
        if self.total <= 0:
            return np.full(len(self.sums), 1.0 / self.line.counts.shape[1])
        return self.sums / self.total


def _unit_scale(weights: Floats, lengths: Floats) -> float:
    """Σ K|x| / Σ K²|x|: makes a word of the window weigh 1 on average."""
    squares = float(weights**2 @ lengths)
    return float(weights @ lengths) / squares if squares > 0 else 0.0


def weighted_rows(counts: csr_matrix, lo: int, hi: int, weights: Floats) -> Floats:
    """weights @ counts[lo:hi] as a dense array, reading the window in place."""
    start, end = counts.indptr[lo], counts.indptr[hi]
    window = csc_matrix(  # the rows of a CSR matrix are the columns of its transpose: no copy
        (counts.data[start:end], counts.indices[start:end], counts.indptr[lo : hi + 1] - start),
        shape=(counts.shape[1], hi - lo),
        copy=False,
    )
    return np.ascontiguousarray((window @ np.ascontiguousarray(weights.T)).T)


class GroupedLocalLikelihood:
    """θ̂_t where each group of words has a bandwidth of its own (section 3.4), renormalised to sum to one.

    Frequent words bear a narrow kernel, rare ones need a wide one. ``group_of`` gives the group of each word,
    ``bandwidths`` the h of each group; see :func:`~sdretrieval.estimate.time.bandwidth.frequency_groups`.
    """

    def __init__(
        self,
        counts: csr_matrix | Timeline,
        times: ArrayLike | None,
        bandwidths: Sequence[Bandwidth],
        group_of: NDArray[np.integer],
        *,
        kernel: str | Kernel = "tricube",
        resolution: float | None = None,
        empty: str = "nan",
    ) -> None:
        first = LocalLikelihood(counts, times, inf, kernel=kernel, resolution=resolution, empty=empty)
        self.group_of = np.asarray(group_of)
        if self.group_of.shape != (first.n_terms,):
            raise ParameterError(f"{len(self.group_of)} words in groups but {first.n_terms} terms in the counts")
        if len(self.group_of) and not (self.group_of.min() >= 0 and self.group_of.max() < len(bandwidths)):
            raise ParameterError(f"groups must be numbered 0 .. {len(bandwidths) - 1}")
        self.models = [LocalLikelihood(first.line, None, h, kernel=first.kernel, empty=empty) for h in bandwidths]

    def at(self, t: float) -> Floats:
        return self.over([t])[0]

    def over(self, times: ArrayLike) -> Floats:
        t = _as_times(times)
        out = np.empty((len(t), len(self.group_of)))
        for group, model in enumerate(self.models):
            words = np.flatnonzero(self.group_of == group)
            if len(words):
                out[:, words] = model.over(t, words)
        total = out.sum(axis=1, keepdims=True)
        return np.divide(out, total, out=np.full(out.shape, np.nan), where=total > 0)


# -- n-grams: other columns, same code -----------------------------------------------------------------------------


def ngram_counts(sequences: Iterable[Sequence[Hashable]], n: int) -> tuple[csr_matrix, list[tuple[Hashable, ...]]]:
    """Documents x n-grams counts from token sequences, and the n-grams in column order, numbered as they appear.

    >>> counts, grams = ngram_counts([["a", "b", "a", "b"]], 2)
    >>> grams, counts.toarray().tolist()
    ([('a', 'b'), ('b', 'a')], [[2, 1]])
    """
    if n < 1:
        raise ParameterError(f"n-grams need n >= 1, got {n}")
    number: dict[tuple[Hashable, ...], int] = {}
    indptr, indices = [0], []
    for tokens in sequences:
        indices += [number.setdefault(tuple(tokens[i : i + n]), len(number)) for i in range(len(tokens) - n + 1)]
        indptr.append(len(indices))
    counts = csr_matrix((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(len(indptr) - 1, len(number)))
    counts.sum_duplicates()
    return counts, list(number)


def conditional(theta: Floats, ngrams: Sequence[tuple[Hashable, ...]]) -> Floats:
    """p(last word | the words before it) from probabilities of whole n-grams; NaN for a history never seen."""
    theta = np.asarray(theta, dtype=np.float64)
    number: dict[tuple[Hashable, ...], int] = defaultdict(lambda: len(number))
    history = np.array([number[gram[:-1]] for gram in ngrams], dtype=np.int64)
    mass = np.bincount(history, weights=theta, minlength=len(number))[history]
    return np.divide(theta, mass, out=np.full(theta.shape, np.nan), where=mass > 0)
