"""Clustering in docs/RESULTS.md: the SD mixture that the thesis leaves to future work (section 7.1), twice.

Clusters are asked for as many as there are labels and compared with them by normalised mutual information. λ and S λ
of the SD mixture (in mean lengths of a document) and δ of the multinomial one are those that are best on the *other*
collection.

    python -m benchmarks.results_clustering
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.collections import Collection
from benchmarks.kept import kept
from benchmarks.tables import standard_error, table
from sdretrieval.learn.classify.mixture import MultinomialMixture, SmoothedDirichletMixture
from sdretrieval.learn.evolving.run import tf_idf
from sdretrieval.learn.labelled import read_labelled

COLLECTIONS = ("reuters21578", "20news-bydate")
LEAST, MOST = 3, 0.2  # documents of a word, at least and as a share at most: the same for all
DOCUMENTS, SEEDS = 2000, 10
SETTINGS: dict[str, list[tuple]] = {
    "k-means, tf-idf": [()],
    "multinomial mixture": [(0.001,), (0.01,), (0.1,), (1.0,)],
    "SD mixture": [(lam, sharp) for lam in (0.01, 0.03, 0.1, 0.3) for sharp in (3.0, 10.0, 30.0)],
}


@cache
def documents(name: str) -> tuple[csr_matrix, np.ndarray]:
    """Every k-th document with one label: of Reuters those of its ten largest topics."""
    corpus = read_labelled(Collection(name).index)
    single = [i for i, labels in enumerate(corpus.labels) if len(labels) == 1]
    names, counts = np.unique([corpus.labels[i][0] for i in single], return_counts=True)
    largest = set(names[np.argsort(-counts)][: 20 if name == "20news-bydate" else 10])
    rows = [i for i in single if corpus.labels[i][0] in largest]
    rows = rows[:: max(1, len(rows) // DOCUMENTS)]
    counts_of = csr_matrix(corpus.counts[rows])
    df = np.bincount(counts_of.indices, minlength=counts_of.shape[1])
    kept_words = (df >= LEAST) & (df <= MOST * len(rows))
    return csr_matrix(counts_of[:, kept_words]), np.array([corpus.labels[i][0] for i in rows])


def made(method: str, setting: tuple, X: csr_matrix, k: int, seed: int) -> tuple[Any, csr_matrix]:
    if method == "k-means, tf-idf":
        df = np.bincount(X.indices, minlength=X.shape[1])
        return KMeans(k, n_init=1, random_state=seed), tf_idf(X, df, X.shape[0])
    if method == "multinomial mixture":
        return MultinomialMixture(n_components=k, n_init=1, additive=setting[0], random_state=seed), X
    lam, sharp = setting
    scale = sharp * X.sum() / X.shape[0] / lam
    return SmoothedDirichletMixture(n_components=k, n_init=1, smoothing=lam, scale=scale, random_state=seed), X


def agreement(name: str, method: str, setting: tuple, seeds: range) -> list[float]:
    X, labels = documents(name)
    k, found = len(set(labels)), []
    for seed in seeds:
        model, rows = made(method, setting, X, k, seed)
        found.append(float(normalized_mutual_info_score(labels, model.fit_predict(rows))))
    return found


def searched(name: str, method: str, setting: tuple) -> float:
    """The mean over two seeds that are not those reported."""
    make: Callable[[], list[float]] = partial(agreement, name, method, setting, range(100, 102))
    return float(np.mean(kept(f"clustering/{name}-{method}-{setting}", make)))


def section() -> str:
    missing = [name for name in COLLECTIONS if not Collection(name).available]
    if missing:
        return f"not on this machine: {', '.join(missing)}"
    rows: dict[str, list[str]] = {method: [] for method in SETTINGS}
    titles = []
    for name, other in zip(COLLECTIONS, reversed(COLLECTIONS), strict=True):
        X, labels = documents(name)
        titles.append(f"{name}: {X.shape[0]:,} documents, {len(set(labels))} labels")
        results = {}
        for method, settings in SETTINGS.items():
            began = time.perf_counter()
            best = max(settings, key=partial(searched, other, method))
            results[method] = kept(
                f"clustering/{name}-{method}-{best}-reported", partial(agreement, name, method, best, range(SEEDS))
            )
            told = "" if not best else f"δ {best[0]:g}" if len(best) == 1 else f"λ {best[0]:g}, Sλ {best[1]:g} lengths"
            print(name, method, best, results[method], f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
            rows[method].append(told)
        means = {method: float(np.mean(values)) for method, values in results.items()}
        errors = {method: standard_error(values) for method, values in results.items()}
        first, second = sorted(means, key=lambda method: -means[method])[:2]
        clear = means[first] - means[second] > 2 * np.hypot(errors[first], errors[second])
        for method in SETTINGS:
            text = f"{means[method]:.3f}"
            told = rows[method].pop()
            mark = f"**{text}**" if clear and method == first else text
            rows[method] += [f"{mark} ({errors[method]:.3f})", told]
    return (
        f"Normalised mutual information of clusters and labels: mean of {SEEDS} starts (standard error), as many "
        f"clusters as labels, words of {LEAST} documents or more and of at most {100 * MOST:.0f} % of them; settings "
        "are the best of a grid on the other collection. See [CLASSIFICATION.md](CLASSIFICATION.md#clusters).\n\n"
        + table(["", *(part for title in titles for part in (title, "with"))], rows)
    )


if __name__ == "__main__":
    print(section())
