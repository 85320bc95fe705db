"""Local logistic regression in docs/RESULTS.md: does p(y|x) drift, and does following it pay (Zhao et al., Figure 10)?

Half of the posts of a pair of mailing lists are for training, half for testing; months are the resolution. Online, each
month is predicted from training posts of strictly earlier months. Bandwidth and penalty are chosen on the training
half alone, where each month is predicted from what precedes it; the global model's penalty in the same way.

    python -m benchmarks.results_local_logistic
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from itertools import combinations
from math import inf

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.collections import Collection
from benchmarks.kept import BESIDE
from benchmarks.results_evolving import LISTS, name_of, posts, table, tf_idf
from sdretrieval.evaluate.significance import correct, paired_t
from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression

BANDWIDTHS = (8.0, 16.0, 24.0, 36.0, 48.0, inf)
STRENGTHS = (10.0, 100.0, 1000.0)
SPLITS = (10, 11)  # not those (from 0 on) that were looked at while the settings were made
FIRST = 6  # test months have at least so many before them
SIZES = (500, 1500, 4000)
CURVE = ("r-devel", "rcpp-devel")


@dataclass(frozen=True)
class Dated:
    X: csr_matrix
    y: np.ndarray
    times: np.ndarray  # number of the month or week

    def split(self, seed: int, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        order = np.random.default_rng(seed).permutation(len(self.y))
        half = len(order) // 2
        test = order[half:]
        return order[: half if size is None else min(size, half)], test[self.times[test] >= FIRST]


def pair(lists: tuple[str, str]) -> Dated:
    data = posts(True)
    rows = np.flatnonzero(np.isin(data.lists, lists))
    months = np.unique(data.months, return_inverse=True)[1]
    return Dated(data.X[rows], data.lists[rows], months[rows])


def reuters() -> Dated:
    """The two largest topics, stories that have one of them alone, by week."""
    from sdretrieval.learn.labelled import read_labelled

    corpus = read_labelled(Collection("reuters21578").index)
    kept = [i for i, labels in enumerate(corpus.labels) if ("earn" in labels) != ("acq" in labels)]
    corpus = corpus.select(kept)
    df = np.bincount(corpus.counts.indices, minlength=corpus.counts.shape[1])
    weeks = (corpus.times - corpus.times.min()) // (7 * 86_400_000)
    y = np.array(["earn" if "earn" in labels else "acq" for labels in corpus.labels])
    return Dated(tf_idf(corpus.counts, df, len(y)), y, weeks)


def fitted(data: Dated, train: np.ndarray, *, online: bool = True) -> dict[str, LocalLogisticRegression]:
    """The global model with the best C, and with the same C the best bandwidth, ∞ among them."""
    models: dict[str, LocalLogisticRegression] = {}
    strengths: tuple[float, ...] = STRENGTHS
    for name, bandwidth in (("global", inf), ("local", "auto")):
        models[name] = LocalLogisticRegression(
            bandwidth=bandwidth, bandwidths=BANDWIDTHS, C=strengths, online=online, max_fits=10, tol=1e-4
        ).fit(data.X[train], data.y[train], times=data.times[train])
        strengths = (models[name].C_,)
    return models


def mistakes(model: LocalLogisticRegression, data: Dated, test: np.ndarray) -> np.ndarray:
    return model.predict(data.X[test], times=data.times[test]) != data.y[test]


def by_time(wrong: np.ndarray, times: np.ndarray) -> np.ndarray:
    number, which = np.unique(times, return_inverse=True)
    return np.bincount(which, weights=wrong, minlength=len(number)) / np.bincount(which)


@dataclass
class Comparison:
    name: str
    size: int
    errors: tuple[float, float]  # global, local
    bandwidths: list[float]
    p_value: float


def compare(name: str, data: Dated) -> Comparison:
    rates: dict[str, list[float]] = {"global": [], "local": []}
    over_time: list[np.ndarray] = []
    bandwidths = []
    for seed in SPLITS:
        train, test = data.split(seed)
        models = fitted(data, train)
        wrong = {which: mistakes(model, data, test) for which, model in models.items()}
        for which, one in wrong.items():
            rates[which].append(float(one.mean()))
        bandwidths.append(models["local"].bandwidth_)
        over_time.append(by_time(wrong["local"] * 1.0 - wrong["global"], data.times[test]))
    shortest = min(len(one) for one in over_time)
    differences = np.mean([one[:shortest] for one in over_time], axis=0)
    return Comparison(
        name,
        len(train),
        (float(np.mean(rates["global"])), float(np.mean(rates["local"]))),
        bandwidths,
        paired_t(differences).p_value,
    )


def comparison_table() -> tuple[str, str]:
    done = [compare(name_of(lists), pair(lists)) for lists in combinations(LISTS, 2)]
    if Collection("reuters21578").available:
        done.append(compare("Reuters earn/acq, weeks", reuters()))
    corrected = correct([one.p_value for one in done])
    rows, better = {}, 0
    for one, p in zip(done, corrected, strict=True):
        total, local = one.errors
        better += local < total
        rows[one.name] = [
            f"{one.size:,}",
            f"{100 * total:.2f}",
            f"{100 * local:.2f}",
            f"{100 * (local - total) / total:+.1f} %",
            ", ".join("∞" if h == inf else f"{h:g}" for h in one.bandwidths),
            f"{one.p_value:.3f}",
            f"{p:.3f}",
        ]
        print(one, file=sys.stderr)
    columns = ["training", "global, error %", "local, error %", "relative", "h of each split", "p", "p, Holm"]
    mean = np.mean([(local - total) / total for total, local in (one.errors for one in done)])
    note = f"Local is better on {better} of {len(done)}; the mean relative change of the error is {100 * mean:+.1f} %."
    return table(columns, rows), note


def size_table() -> str:
    """Figure 10: error against the size of the training set, online and offline, local and global."""
    data = pair(CURVE)
    rows: dict[str, list[str]] = {}
    for size in (*SIZES, None):
        for online in (True, False):
            wrong: dict[str, list[float]] = {"global": [], "local": []}
            chosen = []
            for seed in SPLITS:
                train, test = data.split(seed, size)
                for name, model in fitted(data, train, online=online).items():
                    wrong[name].append(float(mistakes(model, data, test).mean()))
                chosen.append(model.bandwidth_)
            for name, rates in wrong.items():
                note = f" (h {', '.join('∞' if h == inf else f'{h:g}' for h in chosen)})" if name == "local" else ""
                label = f"{'online' if online else 'offline'}, {name}"
                rows.setdefault(label, []).append(f"{100 * np.mean(rates):.2f}{note}")
        print(size, {label: cells[-1] for label, cells in rows.items()}, file=sys.stderr)
    whole = len(data.split(0)[0])
    return table([*(f"{size:,}" for size in SIZES), f"{whole:,}"], rows)


def section() -> str:
    if not Collection("rlists").available:
        return "rlists is not on this machine"
    began = time.perf_counter()
    text, note = comparison_table()
    print(f"pairs: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return f"""\
Pairs of mailing lists (signatures, list names and cross-posted texts removed), a random half for training, the other
for testing, {len(SPLITS)} splits; error in percent on test posts from the {FIRST + 1}th month on.
**Online**: each month is predicted from training posts of earlier months alone. Tricube kernel, L2; the
global model's C chosen on the training half by predicting ten of its months from those before each; then, with that C,
h (months; of {len(BANDWIDTHS)} candidates, ∞ among them) in the same way. p: paired t-test over months.

{text}

{note}

{BESIDE}

Figure 10's comparison on {name_of(CURVE)}, by the number of training posts (h chosen in each split):

{size_table()}
"""


if __name__ == "__main__":
    print(section())
