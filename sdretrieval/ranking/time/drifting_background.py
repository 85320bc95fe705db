"""A background that drifts: general English θ^GE replaced by the local model θ̂_t in the smoothing of every model.

At the *query's* time it is one more set of statistics: online, from documents strictly before the query, so nothing of
the future enters through the local counts (combine with as-of for the global part too). At the *document's* time each
document is smoothed with the English of its own days (offline kernel); times are taken in bins, and the estimated
query stays the one that global statistics gave. Models that have no background (BM25, TF-IDF) rank the same, except
for what their feedback learns: sd3 and rm3 weigh words against it.

    local      (1-η) θ̂_t + η θ^GE, η = 0.1: plain, with as much of the global model as keeps every word possible
    penalised  the maximiser of (23), Sparse.5: words stay at θ^GE unless the days around t insist

Where no document is within the kernel's reach, and for undated documents, it is θ^GE.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.timeline import coarse_resolution, middle_of_bin
from sdretrieval.core.times import UNDATED
from sdretrieval.estimate.time.kernels import Floats, Kernel, as_kernel, check_bandwidth
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.feedback import Rows

if TYPE_CHECKING:
    from sdretrieval.ranking.base import Plan
    from sdretrieval.ranking.engine import Engine

METHODS = ("local", "penalised")
PLACES = ("query", "document")
GLOBAL_SHARE = 0.1  # η
BINS = 256  # along time, for the estimates
DOCUMENT_BINS = 32  # for smoothing at the document's time: each needs a background of its own
MODELS_TO_CHOOSE_BY = 3  # times at which the strength of the penalty is chosen


@dataclass(frozen=True, eq=False)
class DriftedStatistics(Statistics):
    """Statistics whose general English is a given model; N, df and cf stay."""

    background: np.ndarray | None = None

    @cached_property
    def p(self) -> np.ndarray:
        assert self.background is not None
        return self.background

    @classmethod
    def around(cls, statistics: Statistics, background: np.ndarray) -> DriftedStatistics:
        s = statistics
        return cls(s.n_docs, s.n_tokens, s.df, s.cf, s.vocabulary, background)


@dataclass(frozen=True)
class Drifting:
    """How the background drifts. ``bandwidth`` in ms, or None: ten-fold likelihood cross-validation, once per index."""

    method: str = "local"
    at: str = "query"
    kernel: str = "tricube"
    bandwidth: float | None = None

    def __post_init__(self) -> None:
        for name, value, known in (("background", self.method, METHODS), ("place", self.at, PLACES)):
            if value not in known:
                raise ParameterError(f"no {name} {value!r}", remedy=f"One of: {', '.join(known)}.")
        as_kernel(self.kernel)
        if self.bandwidth is not None:
            check_bandwidth(self.bandwidth, positive=True)

    def of(self, snapshot: Snapshot) -> DriftingBackground:
        return DriftingBackground(snapshot, self)


class DriftingBackground:
    """θ̂_t of one snapshot, made ready: the timeline is laid out and the bandwidth chosen on first use."""

    def __init__(self, snapshot: Snapshot, settings: Drifting) -> None:
        self.snapshot, self.settings = snapshot, settings

    @cached_property
    def resolution(self) -> float | None:
        return coarse_resolution(self.snapshot.times, BINS)

    @cached_property
    def bandwidth(self) -> float:
        if self.settings.bandwidth is not None:
            return self.settings.bandwidth
        from sdretrieval.estimate.time.bandwidth import mlcv  # only where it is needed

        times = np.asarray(self.snapshot.times)
        if not (times != UNDATED).any():
            return inf
        kernel = Kernel(self.settings.kernel, self.settings.at == "query")  # as the model itself has it
        return mlcv(self.snapshot.by_doc, times, kernel=kernel, resolution=self.resolution, refine=False).bandwidth

    @cached_property
    def local(self) -> LocalLikelihood:
        return LocalLikelihood(
            self.snapshot.by_doc,
            self.snapshot.times,
            self.bandwidth,
            kernel=self.settings.kernel,
            online=self.settings.at == "query",
            resolution=self.resolution,
        )

    @cached_property
    def strength(self) -> float:
        """Of the penalty: approximate leave-one-out (41)-(42) over a few times along the collection."""
        from sdretrieval.estimate.time.penalised import choose_strength  # only where it is needed

        times = self.local.line.times
        places = times[np.linspace(0, len(times) - 1, MODELS_TO_CHOOSE_BY + 2).astype(int)[1:-1]]
        counts = [c for c in (self.local.local_counts(float(t)) for t in places) if c.sum() > 0]
        if not counts:
            return inf
        return choose_strength(counts, self.snapshot.p_collection).strength

    def at(self, time: float | None, statistics: Statistics) -> Floats:
        """The background at a time; ``statistics`` give the global model it leans on (of the past, for as-of)."""
        q = statistics.p
        if time is None or statistics.n_tokens == 0 or len(self.local.line.times) == 0:
            return q
        counts = self.local.local_counts(float(time))
        total = float(counts.sum())
        if total <= 0:
            return q
        if self.settings.method == "local":
            return (1.0 - GLOBAL_SHARE) * counts / total + GLOBAL_SHARE * q
        from sdretrieval.estimate.time.penalised import estimate  # only where it is needed

        return q if self.strength == inf else estimate(counts, q, self.strength)

    def statistics_at(self, time: float | None, statistics: Statistics) -> Statistics:
        background = self.at(time, statistics)
        return statistics if background is statistics.p else DriftedStatistics.around(statistics, background)

    # -- at the document's time ----------------------------------------------------------------------------------
    @cached_property
    def _document_bins(self) -> tuple[np.ndarray, np.ndarray]:
        """The bin of each document (-1 undated), and the time each bin stands for."""
        times = np.asarray(self.snapshot.times)
        dated = times != UNDATED
        bins = np.full(len(times), -1, dtype=np.int64)
        resolution = coarse_resolution(times, DOCUMENT_BINS)
        at = times[dated].astype(np.float64)
        if resolution is not None:
            at = middle_of_bin(at, resolution)
        distinct, bins[dated] = np.unique(at, return_inverse=True)
        return bins, distinct

    @cached_property
    def _by_bin(self) -> dict[int, Statistics]:
        return {}

    @cached_property
    def _entropies(self) -> dict[int, float]:
        return {}

    def _statistics_of_bin(self, number: int, statistics: Statistics) -> Statistics:
        if number < 0:
            return statistics
        if number not in self._by_bin:
            time = float(self._document_bins[1][number])
            self._by_bin[number] = self.statistics_at(time, statistics)
        return self._by_bin[number]

    def score_docs(self, engine: Engine, plan: Plan, docs: np.ndarray) -> np.ndarray:
        """Σ_w a_w log θ^D_w, each document smoothed with the background of its own time.

        The whole sum is computed: what is the same for all documents under one background is not so under several.
        """
        statistics, model, weighting = engine.statistics, plan.model, plan.weighting
        a = model.dense(statistics.p)
        rows = Rows.of(engine.snapshot, docs)
        row_of = np.repeat(np.arange(len(docs)), np.diff(rows.ptr))
        wanted = a[rows.terms] != 0.0
        row_of, terms, counts = row_of[wanted], rows.terms[wanted], rows.counts[wanted]
        A, B, constants = np.empty(len(terms)), np.empty(len(docs)), np.empty(len(docs))
        bins = self._document_bins[0][docs]
        for number in np.unique(bins).tolist():
            local = self._statistics_of_bin(number, statistics)
            here, postings = bins == number, bins[row_of] == number
            A[postings] = weighting.term_factors(local, terms[postings])
            B[here] = weighting.doc_factors(local, rows.lengths[here])
            constants[here] = self.constant(number, plan, statistics)
        evidence = a[terms] * weighting.phi(counts, A, B[row_of])
        scores = np.bincount(row_of, weights=evidence, minlength=len(docs))
        return scores + constants + model.mass * weighting.log_background_share(rows.lengths)

    def constant(self, number: int, plan: Plan, statistics: Statistics) -> float:
        """Σ_w a_w log p_w(t): what every document of a bin has."""
        local, model = self._statistics_of_bin(number, statistics), plan.model
        constant = float(model.weights @ local.log_p[model.terms])
        if model.background:
            constant += model.background * self._cross_entropy(number, local, statistics)
        return constant

    def _cross_entropy(self, number: int, local: Statistics, statistics: Statistics) -> float:
        """Σ_w p_w log p_w(t)"""
        if number not in self._entropies:
            used = statistics.cf > 0
            self._entropies[number] = float(statistics.p[used] @ local.log_p[used])
        return self._entropies[number]
