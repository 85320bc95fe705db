"""Local logistic regression in docs/RESULTS.md: does p(y|x) drift, and does following it pay (Zhao et al., Figure 10)?

Half of the posts of a pair of mailing lists are for training, half for testing, dealt out at random or by whole
threads; months are the resolution. Online, each month is predicted from training posts of strictly earlier months.
Bandwidth and penalty are chosen together on the training half alone; the global model's penalty in the same way.

    python -m benchmarks.results_local_logistic
    python -m benchmarks.results_local_logistic dev/rcpp geo/mac      # some pairs alone
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.collections import Collection
from benchmarks.kept import BESIDE, kept
from benchmarks.results_evolving import LISTS, name_of, one_line, posts
from benchmarks.tables import standard_error, table
from sdretrieval.evaluate.significance import paired_t
from sdretrieval.learn.classify.local_logistic import LocalLogisticRegression
from sdretrieval.learn.evolving.run import tf_idf

BANDWIDTHS = (3.0, 6.0, 12.0, 24.0, 48.0, inf)
STRENGTHS = (10.0, 100.0)
SPLIT = 10  # not one of those (from 0 on) that were looked at while the settings were made
FITS = 6  # of cross-validation, for each candidate
FIRST = 6  # test months have at least so many before them
SIZES = (500, 1500, 4000)
CURVE = ("r-devel", "rcpp-devel")


@dataclass(frozen=True)
class Dated:
    X: csr_matrix
    y: np.ndarray
    times: np.ndarray  # number of the month or week
    threads: np.ndarray | None = None

    def split(self, whole_threads: bool, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows: posts dealt out one by one, or a thread at a time."""
        rng = np.random.default_rng(SPLIT)
        if whole_threads:
            _, thread = np.unique(self.threads, return_inverse=True)
            order = np.lexsort((rng.permutation(len(self.y)), rng.permutation(thread.max() + 1)[thread]))
            cuts = np.flatnonzero(np.diff(thread[order])) + 1
            half = int(cuts[np.abs(cuts - len(order) // 2).argmin()])
        else:
            order, half = rng.permutation(len(self.y)), len(self.y) // 2
        train, test = order[:half], order[half:]
        if size is not None:
            train = rng.permutation(train)[:size]
        return train, test[self.times[test] >= FIRST]


def pair(lists: tuple[str, str]) -> Dated:
    data = posts(True)
    rows = np.flatnonzero(np.isin(data.lists, lists))
    months = np.unique(data.months, return_inverse=True)[1]
    return Dated(data.X[rows], data.lists[rows], months[rows], None if data.threads is None else data.threads[rows])


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


def fitted(
    data: Dated, train: np.ndarray, *, online: bool = True, groups: np.ndarray | None = None
) -> dict[str, LocalLogisticRegression]:
    """The global model with the best C, and the best bandwidth and C of the local one."""
    return {
        name: LocalLogisticRegression(
            bandwidth=bandwidth, bandwidths=BANDWIDTHS, C=STRENGTHS, online=online, max_fits=FITS, tol=1e-3
        ).fit(data.X[train], data.y[train], times=data.times[train], groups=None if groups is None else groups[train])
        for name, bandwidth in (("global", inf), ("local", "auto"))
    }


def mistakes(model: LocalLogisticRegression, data: Dated, test: np.ndarray) -> np.ndarray:
    return model.predict(data.X[test], times=data.times[test]) != data.y[test]


def by_time(wrong: dict[str, np.ndarray], times: np.ndarray) -> tuple[np.ndarray, float]:
    """By month, the error rate of the local model less the global one's; and the standard error of its mean."""
    number, which = np.unique(times, return_inverse=True)
    more = wrong["local"] * 1.0 - wrong["global"]
    differences = np.bincount(which, weights=more, minlength=len(number)) / np.bincount(which)
    return differences, standard_error(differences)


def compare(data: Dated, online: bool, whole_threads: bool) -> dict[str, Any]:
    train, test = data.split(whole_threads)
    models = fitted(data, train, online=online, groups=data.threads if whole_threads else None)
    wrong = {name: mistakes(model, data, test) for name, model in models.items()}
    differences, error = by_time(wrong, data.times[test])
    return {
        "training": len(train),
        **{name: float(one.mean()) for name, one in wrong.items()},
        "error": error,
        "h": str(models["local"].bandwidth_),
        "C": [models["global"].C_, models["local"].C_],
        "p": paired_t(differences).p_value,
    }


def comparison_table(names: Sequence[str] = ()) -> tuple[str, str, str]:
    """A row for each pair, online and offline side by side: threads apart, random halves; and the means of both."""
    tasks: dict[str, Callable[[], Dated]] = {name_of(lists): partial(pair, lists) for lists in combinations(LISTS, 2)}
    if Collection("reuters21578").available:
        tasks["Reuters earn/acq, weeks"] = reuters
    rows: dict[bool, dict[str, list[str]]] = {True: {}, False: {}}
    errors: dict[tuple[bool, bool], list[tuple[float, float]]] = {}
    for name in names or tasks:
        data = tasks[name]()
        for whole_threads in (False, True) if data.threads is not None else (False,):
            cells = []
            for online in (True, False):
                kind = f"{name.replace('/', '-')}-{'online' if online else 'offline'}-{whole_threads}"
                one = kept(f"local-logistic/{kind}", partial(compare, data, online, whole_threads))
                print(kind, one, file=sys.stderr, flush=True)
                if data.threads is not None:  # the means are over the same pairs
                    errors.setdefault((whole_threads, online), []).append((one["global"], one["local"]))
                h = "∞" if one["h"] == "inf" else f"{float(one['h']):g}"
                cells += [
                    f"{100 * one['global']:.2f}",
                    f"{100 * (one['local'] - one['global']):+.2f} ({100 * one['error']:.2f})",
                    f"{h}, {one['C'][1]:g}",
                ]
            rows[whole_threads][name] = [f"{one['training']:,}", *cells]
    head = "global, error %|local less global (s.e.)|h, C"
    columns = ["", "training", *(f"{when}: {each}" for when in ("online", "offline") for each in head.split("|"))]
    means: dict[str, list[str]] = {}
    for (whole_threads, online), values in errors.items():
        both = 100 * np.array(values)
        relative = 100 * (both[:, 1] / both[:, 0] - 1)
        error = standard_error(relative) if len(relative) > 1 else float("nan")
        means[f"{'online' if online else 'offline'}, {'threads apart' if whole_threads else 'random halves'}"] = [
            *(f"{mean:.2f}" for mean in both.mean(axis=0)),
            f"{relative.mean():+.1f} % ({error:.1f})",
            f"{(relative < 0).sum()} of {len(relative)}",
        ]
    summary = table(
        ["", "global, error %", "local, error %", "mean relative change (s.e. over pairs)", "lower on"], means
    )
    return table(columns, rows[True]), table(columns, rows[False]), summary


def size_table() -> str:
    whole = len(pair(CURVE).split(False)[0])
    return table(["", *(f"{size:,}" for size in (*SIZES, whole))], kept("local-logistic/sizes", errors_by_size))


def errors_by_size() -> dict[str, list[str]]:
    """Figure 10: error against the size of the training set, online and offline, local and global."""
    data = pair(CURVE)
    rows: dict[str, list[str]] = {}
    for size in (*SIZES, None):
        for online in (True, False):
            train, test = data.split(False, size)
            models = fitted(data, train, online=online)
            wrong = {name: mistakes(model, data, test) for name, model in models.items()}
            h = "∞" if models["local"].bandwidth_ == inf else f"{models['local'].bandwidth_:g}"
            error = by_time(wrong, data.times[test])[1]
            for name, note in (("global", ""), ("local", f" ({100 * error:.2f}), h {h}")):
                label = f"{'online' if online else 'offline'}, {name}"
                rows.setdefault(label, []).append(f"{100 * wrong[name].mean():.2f}{note}")
        print(size, {label: cells[-1] for label, cells in rows.items()}, file=sys.stderr)
    return rows


def section(names: Sequence[str] = ()) -> str:
    if not Collection("rlists").available:
        return "rlists is not on this machine"
    apart, halves, summary = comparison_table(names)
    introduction = f"""\
Pairs of mailing lists (signatures, list names and cross-posted texts removed), half for training, half for testing:
posts dealt out at random, and by whole threads (so too in cross-validation). Error in percent on test posts from the
{FIRST + 1}th month on. Online: each month from training posts of earlier months alone. Tricube kernel, L2; h (months;
{len(BANDWIDTHS)} candidates, ∞ among them) and C ({len(STRENGTHS)}) chosen together by cross-validated log loss on the
training half; the global model's C likewise. Standard errors of differences are over months."""
    shown = f"""\
{one_line(introduction)}

{summary}

{BESIDE}

Threads apart:

{apart}

Posts dealt out at random, answers of one thread on both sides:

{halves}"""
    if names:
        return shown
    return f"""{shown}

Figure 10's comparison on {name_of(CURVE)}, random halves, by the number of training posts: error in percent, in
brackets the standard error of the difference, over months:

{size_table()}
"""


if __name__ == "__main__":
    print(section(sys.argv[1:]))
