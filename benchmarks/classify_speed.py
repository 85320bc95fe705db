"""Training and predicting time of the classifiers on 20 Newsgroups, one split, in one run, one thread.

Must hold: SD trains as fast as the multinomial (within 2 x of ours, not slower than scikit-learn's MultinomialNB), at
least ten times faster than DCM and Dirichlet fitted as in the thesis, by Minka's iteration, and than a linear SVM;
predicts within 2 x of MultinomialNB. Our own Newton fits of DCM and Dirichlet are listed beside them.

    python -m benchmarks.classify_speed
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.collections import Collection
from benchmarks.results_classification import SEED, ThesisTfIdf, load, random_split, without_stop_words
from sdretrieval.learn.classify import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    SmoothedDirichletClassifier,
)

_SD = {"smoothing": 1e-4, "calibrate": False}
# The thesis's own settings for 20 Newsgroups (Table 4.2).
MODELS: dict[str, tuple[Any, int]] = {
    "scikit-learn's MultinomialNB": (MultinomialNB(alpha=1e-3, fit_prior=False), 9),
    "multinomial, Laplace": (MultinomialClassifier(additive=1e-3), 9),
    "multinomial, Jelinek-Mercer": (
        MultinomialClassifier(method="jelinek-mercer", smoothing=0.01, background_additive=1e-3),
        9,
    ),
    "SD": (SmoothedDirichletClassifier(smoothing=1e-4, background_additive=0.1, calibrate=False), 9),
    "SD-CE": (
        SmoothedDirichletClassifier(smoothing=1e-4, background_additive=1e-3, cross_entropy=True, calibrate=False),
        9,
    ),
    "DCM, Minka's iteration": (DCMClassifier(scale=900, additive=1e-4, method="fixed-point"), 3),
    "DCM, Newton on tail counts": (DCMClassifier(scale=900, additive=1e-4), 3),
    "Dirichlet, Minka's iteration": (
        DirichletClassifier(scale=400, smoothing=0.1, background_additive=0.01, method="fixed-point"),
        3,
    ),
    "Dirichlet, Newton": (DirichletClassifier(scale=400, smoothing=0.1, background_additive=0.01), 3),
    "linear SVM (tf-idf given)": (LinearSVC(C=1.0), 1),
}


def best(call: Callable[[], Any], times: int) -> float:
    """Processor time, the shortest of some: what disturbs a measurement only ever lengthens it."""
    found = []
    for _ in range(times):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)


def measure() -> dict[str, tuple[float, float, float]]:
    """Seconds to train, seconds to predict, accuracy, by model."""
    corpus = load("20news-bydate")
    counts = without_stop_words("20news-bydate", corpus, np.arange(len(corpus)))
    labels = np.unique(corpus.single_labels(), return_inverse=True)[1]
    split = random_split(len(corpus), np.random.default_rng(SEED), labels)
    train, test = counts[split.train], counts[split.test]
    y, truth = labels[split.train], labels[split.test]
    print(f"{train.shape[0]:,} documents to train on, {test.shape[0]:,} to label, {train.shape[1]:,} terms, 20 classes")
    weighting = ThesisTfIdf().fit(train)
    found = {}
    for name, (model, times) in MODELS.items():
        a, b = (weighting.transform(train), weighting.transform(test)) if "SVM" in name else (train, test)
        if times > 1:
            model.fit(a[:500], y[:500]).predict(b[:500])  # compiles
        seconds = best(lambda m=model, a=a: m.fit(a, y), times)
        predicting = best(lambda m=model, b=b: m.predict(b), 9)
        found[name] = seconds, predicting, float(np.mean(model.predict(b) == truth))
    return found


def main() -> None:
    if not Collection("20news-bydate").available:
        print("20news-bydate of ../shared/data is not on this machine: skipped")
        return
    with threadpool_limits(1):  # one thread for all: processor time is then what a call takes on a quiet machine
        found = measure()
    sd, peer = found["SD"], found["scikit-learn's MultinomialNB"]
    print(f"{'':<32}{'train, ms':>10}{'of SD':>9}{'predict, ms':>13}{'of NB':>8}{'accuracy':>10}")
    for name, (seconds, predicting, accuracy) in found.items():
        print(
            f"{name:<32}{1e3 * seconds:10.1f}{seconds / sd[0]:8.1f}x{1e3 * predicting:13.1f}"
            f"{predicting / peer[1]:7.2f}x{100 * accuracy:10.2f}"
        )
    ours = found["multinomial, Laplace"]
    print(f"SD trains in {sd[0] / ours[0]:.2f} x our multinomial's time (limit 2), ", end="")
    print(f"{sd[0] / peer[0]:.2f} x MultinomialNB's (limit 1); predicts in {sd[1] / peer[1]:.2f} x (limit 2)")
    for name in ("DCM, Minka's iteration", "Dirichlet, Minka's iteration", "linear SVM (tf-idf given)"):
        print(f"SD trains {found[name][0] / sd[0]:.1f} x faster than: {name} (limit 10)")


if __name__ == "__main__":
    sys.exit(main())
