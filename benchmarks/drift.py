"""Speed of the local model: a whole drift at daily resolution, against the dense product it stands for; likelihood.

Must hold: the whole drift of 20,000 documents and 30,000 words, row by row, >= 20 x faster than the dense product
K · C on the same data (measured on a slice of the days and scaled up), and never more than a block of rows in memory.

    python -m benchmarks.drift
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.estimate.time.bandwidth import candidate_bandwidths, choose_by_likelihood
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.estimate.time.local_likelihood import BLOCK, LocalLikelihood

DOCUMENTS, WORDS, DAYS, TOKENS = 20_000, 30_000, 365, 120
BANDWIDTH = 25.0  # days, what the paper found on a year of news
DENSE_DAYS = 16


def collection(seed: int = 0) -> tuple[csr_matrix, np.ndarray]:
    """A Zipfian vocabulary, a tenth of which comes and goes with the seasons."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.random(DOCUMENTS) * DAYS)
    p = 1 / np.arange(1, WORDS + 1)
    p /= p.sum()
    tokens = rng.choice(WORDS, size=(DOCUMENTS, TOKENS), p=p)
    season = (tokens % 10 == 0) & (np.sin(2 * np.pi * times / DAYS + tokens.T).T < 0)
    tokens = np.where(season, (tokens + 5) % WORDS, tokens)
    rows = np.repeat(np.arange(DOCUMENTS), TOKENS)
    counts = csr_matrix((np.ones(tokens.size), (rows, tokens.ravel())), shape=(DOCUMENTS, WORDS))
    counts.sum_duplicates()
    return counts, times


def seconds(work: Callable[[], object], repeat: int = 3) -> float:
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return float(best)


def main() -> int:
    counts, times = collection()
    days = np.arange(DAYS) + 0.5
    print(f"{DOCUMENTS} documents, {WORDS} words, {counts.nnz} counts, {DAYS} days, tricube h = {BANDWIDTH:g} days")
    building = seconds(lambda: LocalLikelihood(counts, times, BANDWIDTH))
    model = LocalLikelihood(counts, times, BANDWIDTH)

    def whole_drift() -> float:
        return sum(float(theta[0]) for _, theta in model.rows(days))

    ours = seconds(whole_drift)
    words = [3, 300, 3000]
    few = seconds(lambda: model.over(days, words))

    def dense_product(dense: np.ndarray) -> np.ndarray:
        weights = Kernel("tricube").weights(days[:DENSE_DAYS, None] - times[None, :], BANDWIDTH)
        sums = weights @ dense
        return sums / sums.sum(axis=1, keepdims=True)

    dense = counts.toarray()
    theirs = seconds(lambda: dense_product(dense), 1) * DAYS / DENSE_DAYS
    same = np.abs(dense_product(dense) - model.over(days[:DENSE_DAYS])).max()
    tracemalloc.start()
    whole_drift()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    matrix = DAYS * WORDS * 8
    print(f"  building              {building:8.3f} s")
    print(f"  whole drift, by rows  {ours:8.3f} s   {1e3 * ours / DAYS:.2f} ms a day, {theirs / ours:.0f} x faster")
    print(f"  three words           {few:8.3f} s")
    print(f"  dense product         {theirs:8.3f} s   (largest difference to ours {same:.1e})")
    print(f"  most memory by rows   {peak / 1e6:8.1f} MB  a dense times x words matrix is {matrix / 1e6:.0f} MB")

    folded = FoldedTimeline(counts, times, resolution=1.0)
    folded.score(2.0)  # compiles, once
    for online in (False, True):
        began = time.perf_counter()
        choice = choose_by_likelihood(
            folded, kernel=Kernel("tricube", online), bandwidths=candidate_bandwidths(folded.line.times)
        )
        took = time.perf_counter() - began
        print(
            f"  ten-fold likelihood   {took:8.3f} s   {len(choice.bandwidths)} bandwidths, "
            f"{'online' if online else 'offline'}: h = {choice.bandwidth:.3g} days"
        )
    good = theirs / ours >= 20 and peak < 2 * BLOCK * WORDS * 8 + 30e6 and same < 1e-12
    print("holds" if good else "DOES NOT HOLD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
