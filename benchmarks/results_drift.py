"""Drift in docs/RESULTS.md: selected bandwidths and held-out likelihood on two dated collections.

A fifth of the documents is the test set; everything, bandwidths and strengths included, is chosen on the rest. Terms
are those of the index (Porter stems without stop words, as in the paper), the most frequent of those that occur five
times or more; times are days.

    python -m benchmarks.results_drift            # both, as Markdown
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.collections import Collection
from benchmarks.kept import BESIDE
from benchmarks.tables import table
from sdretrieval.core.timeline import DAY, format_duration, timeline
from sdretrieval.estimate.time.bandwidth import (
    candidate_bandwidths,
    choose_by_likelihood,
    frequency_groups,
    lscv,
    plug_in,
)
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.estimate.time.local_likelihood import GroupedLocalLikelihood, LocalLikelihood
from sdretrieval.estimate.time.penalised import choose_strength, estimate

COLLECTIONS = ("reuters21578", "rlists")
GLOBAL = "global, h = ∞"
KERNEL, MOST_WORDS, LEAST_COUNT, ADDITIVE, BACKGROUND = "tricube", 10_000, 5, 0.1, 0.1


@dataclass
class Data:
    """Training and test counts of one collection by document, and what is common to all models."""

    train: csr_matrix
    train_times: np.ndarray
    test: csr_matrix
    test_times: np.ndarray

    @property
    def n_words(self) -> int:
        return int(self.train.shape[1])


def load(name: str, seed: int = 0) -> Data:
    snapshot = Collection(name).snapshot
    frequent = np.argsort(-snapshot.cf, kind="stable")[:MOST_WORDS]
    frequent = np.sort(frequent[snapshot.cf[frequent] >= LEAST_COUNT])
    counts = csr_matrix(snapshot.by_doc[:, frequent])
    test = np.random.default_rng(seed).permutation(snapshot.n_docs) % 5 == 0
    return Data(counts[~test], snapshot.times[~test], counts[test], snapshot.times[test])


def split(data: Data, seed: int = 1) -> Data:
    """A tenth of the training set as a test set of its own, to choose by."""
    held = np.random.default_rng(seed).permutation(data.train.shape[0]) % 10 == 0
    return Data(data.train[~held], data.train_times[~held], data.train[held], data.train_times[held])


def smoothed(sums: np.ndarray) -> np.ndarray:
    return (sums + ADDITIVE) / (sums.sum() + ADDITIVE * len(sums))


@dataclass(frozen=True)
class Scored:
    """Log-likelihood of the test words of each day, and how many they are."""

    sums: np.ndarray
    words: np.ndarray

    @property
    def mean(self) -> float:
        return float(self.sums.sum() / self.words.sum())

    def error_to(self, other: Scored) -> float:
        """Standard error of the difference of two means a word: a ratio of sums, days as the samples."""
        gain = self.sums - other.sums
        rest = gain - gain.sum() / self.words.sum() * self.words
        return float(np.sqrt((rest**2).sum() * len(rest) / (len(rest) - 1)) / self.words.sum())


def score(data: Data, theta: Callable[[float, np.ndarray], np.ndarray], online: bool) -> Scored:
    """``theta`` makes the model of a day from its time and the background."""
    return score_each(data, lambda t, b: [theta(t, b)], online)[0]


def score_each(
    data: Data, models: Callable[[float, np.ndarray], list[np.ndarray]], online: bool, every: int = 1
) -> list[Scored]:
    """:func:`score` of several models at once, on every so many of the days that have test documents."""
    line = timeline(data.train, data.train_times, resolution=DAY)
    test = timeline(data.test, data.test_times, resolution=DAY)
    everything = np.asarray(line.counts.sum(axis=0)).ravel()
    past, upto = np.zeros(data.n_words), 0
    sums, words = [], []
    for row in range(0, len(test.times), every):
        t = float(test.times[row])
        if online:
            reach = int(np.searchsorted(line.times, t, side="left"))
            past = past + np.asarray(line.counts[upto:reach].sum(axis=0)).ravel()
            upto = reach
        span = slice(test.counts.indptr[row], test.counts.indptr[row + 1])
        counts, terms = test.counts.data[span], test.counts.indices[span]
        background = smoothed(past if online else everything)
        sums.append([counts @ np.log(p[terms]) for p in models(t, background)])
        words.append(float(counts.sum()))
    return [Scored(np.array(each), np.array(words)) for each in zip(*sums, strict=True)]


def mixture(model, background: float = BACKGROUND) -> Callable[[float, np.ndarray], np.ndarray]:
    """(1 - ε) θ̂_t + ε b, and b where nothing is within reach: the model that cross-validation scores."""

    def at(t: float, b: np.ndarray) -> np.ndarray:
        local = model.at(t)
        return b if np.isnan(local[0]) else (1 - background) * local + background * b

    return at


def shrunk(model: LocalLikelihood, strength: float, method: str) -> Callable[[float, np.ndarray], np.ndarray]:
    return lambda t, b: estimate(model.local_counts(t), b, strength, method)


def by_leave_one_out(data: Data, model: LocalLikelihood, online: bool) -> float:
    """One λ for all days: approximate leave-one-out over a sample of them."""
    line = model.line
    rows = np.unique(np.linspace(len(line.times) // 10, len(line.times) - 1, 12).astype(int))
    counts = np.array([model.local_counts(float(t)) for t in line.times[rows]])
    background = smoothed(np.asarray(line.counts.sum(axis=0)).ravel())
    return choose_strength(counts[counts.sum(axis=1) > 0], background).strength


def by_held_out(data: Data, h: float, method: str, strengths: np.ndarray, kernel: Kernel, every: int) -> float:
    """The strength of the best likelihood on a tenth of the training documents, on every so many days."""
    inner = split(data)
    model = LocalLikelihood(inner.train, inner.train_times, h, kernel=kernel, resolution=DAY)

    def each(t: float, background: np.ndarray) -> list[np.ndarray]:
        counts = model.local_counts(t)
        return [estimate(counts, background, float(s), method) for s in strengths]

    return float(strengths[int(np.argmax([one.mean for one in score_each(inner, each, kernel.online, every)]))])


def measure(name: str) -> tuple[Data, dict[str, dict[str, tuple[Scored, str]]]]:
    data = load(name)
    table: dict[str, dict[str, tuple[Scored, str]]] = {}

    def put(row: str, scenario: str, value: Scored, note: str) -> None:
        table.setdefault(row, {})[scenario] = (value, note)

    for scenario in ("offline", "online"):
        kernel = Kernel(KERNEL, scenario == "online")
        group_of = frequency_groups(data.train, 4)
        folded = FoldedTimeline(
            data.train, data.train_times, resolution=DAY, background=BACKGROUND, additive=ADDITIVE, group_of=group_of
        )
        choice = choose_by_likelihood(folded, kernel=kernel, bandwidths=candidate_bandwidths(folded.line.times))

        def local(h, kernel: Kernel = kernel) -> LocalLikelihood:
            return LocalLikelihood(data.train, data.train_times, h, kernel=kernel, resolution=DAY)

        online = kernel.online
        put(GLOBAL, scenario, score(data, mixture(local(inf)), online), "")
        if not online:
            put("extreme local, h → 0", scenario, score(data, mixture(local(0.0)), online), "")
        h = choice.bandwidth
        put("local, h by likelihood (MLCV)", scenario, score(data, mixture(local(h)), online), format_duration(h))
        squares = lscv(data.train, data.train_times, kernel=kernel, resolution=DAY).bandwidth
        put(
            "local, h by least squares (LSCV)",
            scenario,
            score(data, mixture(local(squares)), online),
            format_duration(squares),
        )
        plugged = plug_in(data.train, data.train_times, kernel=kernel).bandwidth
        put(
            "local, h by plug-in (20)", scenario, score(data, mixture(local(plugged)), online), format_duration(plugged)
        )
        schedule = choice.schedule()
        chosen = schedule(folded.line.times)
        put(
            "local, h_t over time",
            scenario,
            score(data, mixture(local(schedule)), online),
            f"{format_duration(chosen.min())} to {format_duration(chosen.max())}",
        )
        by_group = choice.by_group
        model = GroupedLocalLikelihood(
            data.train, data.train_times, by_group.tolist(), group_of, kernel=kernel, resolution=DAY
        )
        put(
            "local, h by group of words",
            scenario,
            score(data, mixture(model), online),
            ", ".join(format_duration(x) for x in by_group),
        )
        strength = by_leave_one_out(data, local(h), online)
        put(
            "penalised (Sparse.5), λ by leave-one-out",
            scenario,
            score(data, shrunk(local(h), strength, "sparse.5"), online),
            f"{format_duration(h)}, λ = {strength:.3g}",
        )
        every = max(1, len(folded.line.times) // 500)  # days are many; a sample of them decides as well
        for label, method, strengths in (
            ("penalised (Sparse.5), λ by held-out", "sparse.5", np.geomspace(30, 3000, 9)),
            ("linear interpolation, η by held-out", "interpolation", np.geomspace(1e3, 1e7, 9)),
        ):
            strength = by_held_out(data, h, method, strengths, kernel, every)
            put(
                label,
                scenario,
                score(data, shrunk(local(h), strength, method), online),
                f"{format_duration(h)}, strength {strength:.3g}",
            )
    return data, table


def rows(names: tuple[str, ...] = COLLECTIONS) -> str:
    """The tables, as Markdown."""
    parts = [
        "Mean log-likelihood of a held-out word (nats; higher is better; in brackets the standard error of the "
        "difference to the global model, days as samples) on a random fifth of the documents; all "
        f"choices made on the rest. {KERNEL.capitalize()} kernel, daily resolution, at most {MOST_WORDS:,} terms. "
        "Offline: past and future; online: strictly past days alone. The first group is mixed with a tenth of the "
        "(smoothed) global model, the past's in the online case; the others shrink towards it by themselves."
    ]
    for name in names:
        began = time.perf_counter()
        if not Collection(name).available:
            parts.append(f"### {name}\n\nnot on this machine")
            continue
        data, found = measure(name)
        about = (
            f"### {name}\n\n{data.train.shape[0]:,} documents to estimate from, {data.test.shape[0]:,} held out, "
            f"{data.n_words:,} terms.\n\n"
        )
        shown: dict[str, list[str]] = {}
        for label, row in found.items():
            cells = shown[label] = []
            for scenario in ("offline", "online"):
                if scenario in row:
                    value, note = row[scenario]
                    reference = found[GLOBAL][scenario][0]
                    error = "" if value is reference else f" ({value.error_to(reference):.4f})"
                    cells += [f"{value.mean:.4f}{error}", note]
                else:
                    cells += ["—", ""]
        parts.append(about + table(["model", "offline", "", "online", ""], shown))
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    introduction, *tables = parts
    return "\n\n".join([introduction, tables[-1], BESIDE, *tables[:-1]])


def section() -> str:
    from benchmarks.drift_figures import figures_part  # both take their scores from here
    from benchmarks.results_drift_more import more

    return "\n\n".join([rows(), more(), figures_part()])


if __name__ == "__main__":
    print(rows(tuple(sys.argv[1:]) or COLLECTIONS))
