"""Beside Drift in docs/results/: drift within a class, p_t(x|y), and local models of word pairs (n = 2).

python -m benchmarks.results_drift_more            # both, as Markdown; or: classes, pairs
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.collections import Collection
from benchmarks.results_drift import (
    ADDITIVE,
    BACKGROUND,
    KERNEL,
    LEAST_COUNT,
    MOST_WORDS,
    Data,
    Scored,
    mixture,
    score,
    smoothed,
)
from benchmarks.tables import table
from sdretrieval.core.timeline import DAY, format_duration, middle_of_bin, timeline
from sdretrieval.estimate.time.bandwidth import candidate_bandwidths, choose_by_likelihood
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.learn.labelled import read_labelled
from sdretrieval.learn.lcsc.passage_ranking import kept_sequences

CLASSES = {
    "rlists": ("r-devel", "r-sig-geo", "r-sig-finance", "rcpp-devel", "r-sig-mac"),
    "reuters21578": ("earn", "acq", "crude", "trade"),
}
KAPPAS = (30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)


def chosen_bandwidth(data: Data, kernel: Kernel) -> float:
    folded = FoldedTimeline(data.train, data.train_times, resolution=DAY, background=BACKGROUND, additive=ADDITIVE)
    return choose_by_likelihood(
        folded, kernel=kernel, bandwidths=candidate_bandwidths(folded.line.times), refine=False
    ).bandwidth


# -- within a class ------------------------------------------------------------------------------------------------


def by_class(name: str) -> dict[str, Data]:
    """The documents of each class alone (one label of the list), over the words of all; a fifth is held out."""
    corpus = read_labelled(Collection(name).index)
    totals = np.asarray(corpus.counts.sum(axis=0)).ravel()
    frequent = np.argsort(-totals, kind="stable")[:MOST_WORDS]
    counts = csr_matrix(corpus.counts[:, np.sort(frequent[totals[frequent] >= LEAST_COUNT])])
    test = np.random.default_rng(0).permutation(len(corpus)) % 5 == 0
    found = {}
    for label in CLASSES[name]:
        mine = np.array([[one for one in labels if one in CLASSES[name]] == [label] for labels in corpus.labels])
        rows = mine & ~test, mine & test
        found[label] = Data(counts[rows[0]], corpus.times[rows[0]], counts[rows[1]], corpus.times[rows[1]])
    return found


def errors_of(classes: dict[str, Data], bandwidths: Sequence[float], kernel: Kernel) -> Scored:
    """Wrong decisions of naive Bayes with p_t(w|y) at those bandwidths, by day."""
    data = list(classes.values())
    models = [
        LocalLikelihood(one.train, one.train_times, h, kernel=kernel, resolution=DAY)
        for one, h in zip(data, bandwidths, strict=True)
    ]
    limits = [LocalLikelihood(one.train, one.train_times, inf, kernel=kernel, resolution=DAY) for one in data]
    prior = np.log([one.train.shape[0] for one in data])
    day_of = [middle_of_bin(one.test_times.astype(float), DAY) for one in data]
    days = np.unique(np.concatenate(day_of))
    wrong, seen = np.zeros(len(days)), np.zeros(len(days))
    for number, t in enumerate(days):
        logs = []
        for model, limit in zip(models, limits, strict=True):
            b = limit.at(float(t))
            b = smoothed(b * limit.effective_words([t])[0]) if not np.isnan(b[0]) else smoothed(np.zeros(len(b)))
            logs.append(np.log(mixture(model)(float(t), b)))
        for truth, (one, own) in enumerate(zip(data, day_of, strict=True)):
            rows = np.flatnonzero(own == t)
            if len(rows):
                scores = one.test[rows] @ np.array(logs).T + prior
                wrong[number] += np.count_nonzero(scores.argmax(axis=1) != truth)
                seen[number] += len(rows)
    return Scored(wrong, seen)


def classes_part(name: str) -> str:
    classes = by_class(name)
    rows: dict[str, list[str]] = {label: [f"{one.train.shape[0]:,}"] for label, one in classes.items()}
    told = []
    for online in (False, True):
        kernel, chosen = Kernel(KERNEL, online), []
        for label, data in classes.items():
            h = chosen_bandwidth(data, kernel)
            local, whole = (
                score(
                    data,
                    mixture(LocalLikelihood(data.train, data.train_times, one, kernel=kernel, resolution=DAY)),
                    online,
                )
                for one in (h, inf)
            )
            rows[label] += [
                f"{whole.mean:.4f}",
                f"{local.mean - whole.mean:+.4f} ({local.error_to(whole):.4f})",
                format_duration(h),
            ]
            chosen.append(h)
            print(name, label, rows[label], file=sys.stderr, flush=True)
        local, whole = (errors_of(classes, hs, kernel) for hs in (chosen, [inf] * len(chosen)))
        told.append(
            f"{'online' if online else 'offline'} {100 * whole.mean:.2f} % with global class models, "
            f"{100 * local.mean:.2f} with local ones (s.e. of the difference {100 * local.error_to(whole):.2f})"
        )
    head = [
        "",
        "documents",
        *(f"{w}: {c}" for w in ("offline", "online") for c in ("global", "local gains (s.e.)", "h")),
    ]
    return (
        f"### Drift within a class: {name}\n\nEach class by itself, p_t(x|y): log-likelihood of a held-out word, and "
        "what the local model adds, h by likelihood.\n\n"
        + table(head, rows)
        + f"\n\nNaive Bayes among the classes with these p_t(x|y), errors on held-out documents: {'; '.join(told)}."
    )


# -- pairs of words ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pairs:
    """Words that follow another within a document: both words, the row of the document, its time."""

    before: np.ndarray
    word: np.ndarray
    row: np.ndarray
    times: np.ndarray  # of each document
    n_words: int

    def select(self, rows: np.ndarray) -> Pairs:
        number = np.full(len(self.times), -1)
        number[rows] = np.arange(len(rows))
        kept = number[self.row] >= 0
        return Pairs(self.before[kept], self.word[kept], number[self.row[kept]], self.times[rows], self.n_words)

    @property
    def code(self) -> np.ndarray:
        return self.before.astype(np.int64) * self.n_words + self.word

    @cached_property
    def seen(self) -> np.ndarray:
        """Pairs that are there twice or more, in order."""
        codes, counts = np.unique(self.code, return_counts=True)
        return codes[counts >= 2]

    def column(self, code: np.ndarray) -> np.ndarray:
        """The number of a pair among those seen; one past the last for the others."""
        place = np.minimum(np.searchsorted(self.seen, code), len(self.seen) - 1)
        return np.where(self.seen[place] == code, place, len(self.seen))

    def counts(self, columns: np.ndarray, n: int) -> csr_matrix:
        made = csr_matrix((np.ones(len(columns)), (self.row, columns)), shape=(len(self.times), n))
        made.sum_duplicates()
        return made


def word_pairs(name: str) -> Pairs:
    snapshot = Collection(name).snapshot
    documents = kept_sequences(snapshot)
    frequent = np.argsort(-snapshot.cf, kind="stable")[:MOST_WORDS]
    number = np.full(snapshot.n_terms, -1)
    number[frequent] = np.arange(len(frequent))
    rows = np.repeat(np.arange(len(documents)), documents.lengths)
    tokens = number[documents.tokens]
    rows, tokens = rows[tokens >= 0], tokens[tokens >= 0]  # gaps close
    follows = rows[1:] == rows[:-1]
    return Pairs(tokens[:-1][follows], tokens[1:][follows], rows[1:][follows], snapshot.times, len(frequent))


def scored_pairs(train: Pairs, test: Pairs, h: float, online: bool, kappas: Sequence[tuple]) -> list[dict[str, Scored]]:
    """Log-likelihood of the second words by day, for each (κ, κ_t).

    pairs, global       B(w|v) = (c(vw) + κ p(w)) / (c(v) + κ), p the global model of single words
    … and local words   the same with p_t, the local mixture, in the place of p
    pairs, local        (c_t(vw) + κ_t B(w|v)) / (c_t(v) + κ_t), B with p_t
    """
    kernel = Kernel(KERNEL, online)
    n, m = train.n_words, len(train.seen)
    parts = [
        LocalLikelihood(train.counts(columns, size), train.times, h, kernel=kernel, resolution=DAY)
        for columns, size in ((train.word, n), (train.before, n), (train.column(train.code), m + 1))
    ]
    line = parts[0].line
    totals = [np.zeros(n), np.zeros(n), np.zeros(m + 1)]
    upto = 0
    test_line = timeline(test.counts(test.word, n), test.times, resolution=DAY)
    day_of = test_line.row_of[test.row]
    order = np.argsort(day_of, kind="stable")
    bounds = np.searchsorted(day_of[order], np.arange(len(test_line.times) + 1))
    sums: list[dict[str, list[float]]] = [{} for _ in kappas]
    words = []
    for day, t in enumerate(test_line.times):
        reach = int(np.searchsorted(line.times, t, side="left")) if online else len(line.times)
        if reach > upto:
            for total, part in zip(totals, parts, strict=True):
                total += np.asarray(part.line.counts[upto:reach].sum(axis=0)).ravel()
            upto = reach
        mine = order[bounds[day] : bounds[day + 1]]
        v, w, pair = test.before[mine], test.word[mine], train.column(test.code[mine])
        near = [part.local_counts(float(t)) for part in parts]
        p = smoothed(totals[0])
        total = near[0].sum()
        p_t = (1 - BACKGROUND) * near[0] / total + BACKGROUND * p if total > 0 else p
        unseen = pair == m
        seen, seen_t = (np.where(unseen, 0.0, counts[pair]) for counts in (totals[2], near[2]))
        for (kappa, kappa_t), found in zip(kappas, sums, strict=True):
            back, back_t = ((seen + kappa * q[w]) / (totals[1][v] + kappa) for q in (p, p_t))
            local = (seen_t + kappa_t * back_t) / (near[1][v] + kappa_t)
            each = (p[w], p_t[w], back, back_t, local)
            for label, values in zip(MODELS, each, strict=True):
                found.setdefault(label, []).append(float(np.log(values).sum()))
        words.append(float(len(mine)))
    return [{label: Scored(np.array(x), np.array(words)) for label, x in found.items()} for found in sums]


MODELS = ("words, global", "words, local", "pairs, global", "pairs, global, and local words", "pairs, local")


def pairs_part(name: str) -> str:
    everything = word_pairs(name)
    deal = np.random.default_rng(0).permutation(len(everything.times))
    train, test = (
        everything.select(np.flatnonzero(deal % 5 == 0) if held else np.flatnonzero(deal % 5)) for held in (0, 1)
    )
    inner = np.random.default_rng(1).permutation(len(train.times)) % 10 == 0
    rows: dict[str, list[str]] = {label: [] for label in MODELS}
    notes = []
    for online in (False, True):
        words = train.counts(train.word, train.n_words)
        h = chosen_bandwidth(Data(words, train.times, words, train.times), Kernel(KERNEL, online))
        grid = [(k, k_t) for k in KAPPAS[:4] for k_t in KAPPAS]
        tried = scored_pairs(train.select(np.flatnonzero(~inner)), train.select(np.flatnonzero(inner)), h, online, grid)
        best = {label: grid[int(np.argmax([one[label].mean for one in tried]))] for label in MODELS[2:]}
        found = scored_pairs(train, test, h, online, list(best.values()))
        scored = {label: found[0][label] for label in MODELS[:2]}
        scored |= {label: found[i][label] for i, label in enumerate(best)}
        for label, one in scored.items():
            base = scored[MODELS[0] if label in MODELS[:2] else MODELS[2]]
            gain = "" if one is base else f" {one.mean - base.mean:+.4f} ({one.error_to(base):.4f})"
            rows[label].append(f"{one.mean:.4f}{gain}")
        notes.append(
            f"{'online' if online else 'offline'} h = {format_duration(h)}, κ = {best[MODELS[2]][0]:g}, "
            f"{best[MODELS[3]][0]:g}, {best[MODELS[4]][0]:g}, κ_t = {best[MODELS[4]][1]:g}"
        )
        print(name, online, notes[-1], {label: cells[-1] for label, cells in rows.items()}, file=sys.stderr, flush=True)
    return (
        f"### Pairs of words: {name}\n\nLog-likelihood of a held-out word given the one before it, and what the rows "
        "add to the global one of their kind (standard error over days). Pairs back off to single words by "
        "(c(vw) + κ p(w)) / (c(v) + κ), local pairs to global ones in the same way with κ_t, both chosen on a tenth of "
        f"the training documents; h is that of single words: {'; '.join(notes)}.\n\n"
        + table(["", "offline", "online"], rows)
    )


PARTS = {"classes": classes_part, "pairs": pairs_part}


def more(names: Sequence[str] = ()) -> str:
    return "\n\n".join(PARTS[part](name) for part in names or PARTS for name in CLASSES if Collection(name).available)


if __name__ == "__main__":
    print(more(sys.argv[1:]))
