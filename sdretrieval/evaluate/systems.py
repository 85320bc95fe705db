"""Runs beside runs: how alike two rankings are without any judgments, and how alike measures order systems.

RBO is rank-biased overlap (Webber, Moffat and Zobel 2010), extrapolated, their (32): with s <= l the lengths of the two
lists and X_d the number of documents common to the first d of both,

    RBO = (1-p)/p (Σ_{d=1..l} X_d/d p^d + Σ_{d=s+1..l} X_s (d-s)/(s d) p^d) + ((X_l - X_s)/l + X_s/s) p^l    (1)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from sdretrieval.collection.records import Run
from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.measures import Evaluation


def rank_biased_overlap(first: Sequence[str], second: Sequence[str], p: float = 0.9) -> float:
    """(1): 1 for equal rankings, 0 for disjoint ones; ``p`` near 1 looks deep.

    >>> rank_biased_overlap("abc", "abc"), rank_biased_overlap("ab", "cd")
    (1.0, 0.0)
    """
    if not 0 < p < 1:
        raise ParameterError(f"p of RBO must be between 0 and 1, got {p}")
    short, long = sorted((first, second), key=len)
    s, l = len(short), len(long)
    if s == 0:
        return 1.0 if l == 0 else 0.0
    common, weights, at_s = 0, 0.0, 0
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    for d in range(1, l + 1):
        seen_long.add(long[d - 1])
        common += long[d - 1] in seen_short
        if d <= s:
            seen_short.add(short[d - 1])
            common += short[d - 1] in seen_long
            at_s = common
        weights += p**d * (common / d + (at_s * (d - s) / (s * d) if d > s else 0.0))
    return min(1.0, (1 - p) / p * weights + ((common - at_s) / l + at_s / s) * p**l)


def similarity(first: Run, second: Run, depths: Sequence[int] = (10, 100, 1000), p: float = 0.9) -> dict[str, float]:
    """Means over the topics both runs have: RBO, the share of common documents at depths, and Kendall's τ of those
    that both rank."""
    from scipy import stats  # takes its time to load

    topics = [qid for qid in first if qid in second]
    values: dict[str, list[float]] = {name: [] for name in ("RBO", *(f"overlap@{k}" for k in depths), "τ")}
    for qid in topics:
        a, b = first[qid].docids, second[qid].docids
        values["RBO"].append(rank_biased_overlap(a, b, p))
        for k in depths:
            most = max(len(a[:k]), len(b[:k]))
            values[f"overlap@{k}"].append(len(set(a[:k]) & set(b[:k])) / most if most else 1.0)
        place = {docid: i for i, docid in enumerate(b)}
        common = [place[docid] for docid in a if docid in place]
        if len(common) > 1:
            values["τ"].append(float(stats.kendalltau(range(len(common)), common).statistic))
    return {"topics": len(topics)} | {name: _mean(found) for name, found in values.items()}


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Kendall's τ-b and τ_ap of the orders that two lists of values put the same systems in.

    τ_ap (Yilmaz, Aslam and Robertson 2008) counts what is wrong near the top more: it is 2 times the mean, over the
    places i = 2 … n of an order, of the share of the systems above that the other order has above too, less 1. Here it
    is the mean of both directions; systems that tie in either list are half above each other.

    >>> tau, tau_ap = rank_correlation([0.4, 0.3, 0.2, 0.1], [0.3, 0.4, 0.2, 0.1])  # the best two exchanged
    >>> round(tau, 3), round(tau_ap, 3)
    (0.667, 0.333)
    """
    from scipy import stats  # takes its time to load

    tau = float(stats.kendalltau(first, second).statistic)
    return tau, (_tau_ap(first, second) + _tau_ap(second, first)) / 2


def _tau_ap(values: Sequence[float], other: Sequence[float]) -> float:
    order = sorted(range(len(values)), key=lambda i: -values[i])
    agree = np.sign(np.subtract.outer(values, values)) * np.sign(np.subtract.outer(other, other))
    shares = [np.mean((agree[order[:i], order[i]] + 1) / 2) for i in range(1, len(order))]
    return float(2 * np.mean(shares) - 1)


def measure_agreement(evaluations: Sequence[Evaluation]) -> dict[tuple[str, str], tuple[float, float]]:
    """:func:`rank_correlation` between the orders that two measures put the systems in, by pair of measures."""
    if len(evaluations) < 2:
        raise ParameterError("an order of systems takes two runs or more", remedy="Name more runs.")
    means: Mapping[str, list[float]] = {m: [e.mean[m] for e in evaluations] for m in evaluations[0].measures}
    return {(a, b): rank_correlation(means[a], means[b]) for a, b in combinations(means, 2)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
