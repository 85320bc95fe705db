"""Classification in docs/RESULTS.md: the thesis's Tables 4.1 (Reuters-21578) and 4.2 (20 Newsgroups) again.

As there (section 4.1): Porter stems, a list of stop words, no feature selection; free parameters by hill climbing on a
validation split of one training set, then kept on every split; 25 random 80:20 splits for the significance tests.

    python -m benchmarks.results_classification            # both tables, as Markdown
    python -m benchmarks.results_classification reuters --splits 5
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, diags_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from benchmarks.collections import Collection
from benchmarks.tables import standard_error, table
from sdretrieval.core.progress import progress
from sdretrieval.evaluate.significance import Comparison, compare_values
from sdretrieval.learn.classify import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    RelevantAgainstRest,
    SmoothedDirichletClassifier,
    break_even_precisions,
)
from sdretrieval.learn.classify.against_rest import indicator
from sdretrieval.learn.labelled import LabelledCorpus, read_labelled

SPLITS, SHARE, SEED = 25, 0.2, 2006
TOPICS = 10
# scikit-learn's list is nearest in size to the thesis's "about 400", less the nouns, verbs and adjectives in it.
NOT_STOP_WORDS = (
    "amount bill bottom cry describe detail empty fill find fire front interest mill mine "
    "move name serious show side sincere system thick thin top"
).split()


# Data -------------------------------------------------------------------------------------------------------------


def stop_words() -> list[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return sorted(set(ENGLISH_STOP_WORDS) - set(NOT_STOP_WORDS))


def load(name: str) -> LabelledCorpus:
    collection = Collection(name)
    return read_labelled(collection.index, fields=("split",) if name == "reuters21578" else ())


def without_stop_words(name: str, corpus: LabelledCorpus, rows: np.ndarray) -> csr_matrix:
    """Counts of some documents over the words that occur in them, stop words dropped."""
    stems = set(Collection(name).snapshot.analyze(" ".join(stop_words())))
    counts = corpus.counts[rows]
    kept = np.asarray(counts.sum(axis=0)).ravel() > 0
    kept &= np.array([word not in stems for word in corpus.vocabulary])
    return csr_matrix(counts[:, np.flatnonzero(kept)])


@dataclass(frozen=True)
class Split:
    train: np.ndarray
    test: np.ndarray


def random_split(
    rows: np.ndarray | int, random: np.random.Generator, strata: np.ndarray | None = None, share: float = SHARE
) -> Split:
    """80:20, class by class where there are classes."""
    groups = [rows] if strata is None else [np.flatnonzero(strata == label) for label in np.unique(strata)]
    parts = [random.permutation(group) for group in groups]
    cuts = [round(share * len(part)) for part in parts]
    train, test = ([p[c:] for p, c in zip(parts, cuts, strict=True)], [p[:c] for p, c in zip(parts, cuts, strict=True)])
    return Split(np.sort(np.concatenate(train)), np.sort(np.concatenate(test)))


# Models -----------------------------------------------------------------------------------------------------------


class ThesisTfIdf(TransformerMixin, BaseEstimator):
    """tf · log((N + 1) / (n + 0.5)) of the training documents, rows of length one (section 4.4)."""

    def fit(self, X, y=None):
        n = np.asarray((X > 0).sum(axis=0)).ravel()
        self.idf_ = np.log((X.shape[0] + 1.0) / (n + 0.5))
        return self

    def transform(self, X):
        return normalize(csr_matrix(X @ diags_array(self.idf_)))


DECADES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1)
SHARES = (*DECADES, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
ADDITIVES = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
SCALES = (50, 100, 200, 300, 400, 600, 900, 1200, 1500, 1800, 2400, 3000, 4000, 6000, 9000, 13000, 20000, 30000)


@dataclass(frozen=True)
class Model:
    """A row of the tables: how it is made from its free parameters, and what the climb starts from."""

    name: str
    make: Callable[..., Any]
    grid: Mapping[str, Sequence[float]]
    start: Mapping[str, float]
    symbols: str


MODELS = [
    Model("Multi-L", MultinomialClassifier, {"additive": ADDITIVES}, {"additive": 0.01}, "δ"),
    Model(
        "Multi-JM",
        lambda **p: MultinomialClassifier(method="jelinek-mercer", **p),
        {"smoothing": SHARES, "background_additive": ADDITIVES},
        {"smoothing": 0.5, "background_additive": 0.01},
        "λ, β",
    ),
    Model("DCM", DCMClassifier, {"scale": SCALES, "additive": ADDITIVES}, {"scale": 900, "additive": 0.01}, "S, δ"),
    Model(
        "Dir",
        DirichletClassifier,
        {"scale": SCALES, "smoothing": SHARES, "background_additive": ADDITIVES},
        {"scale": 1200, "smoothing": 0.1, "background_additive": 0.01},
        "S, λ, β",
    ),
    Model(
        "SD",
        SmoothedDirichletClassifier,
        {"smoothing": SHARES, "background_additive": ADDITIVES},
        {"smoothing": 1e-3, "background_additive": 0.1},
        "λ, β",
    ),
    Model(
        "SD-CE",
        lambda **p: SmoothedDirichletClassifier(cross_entropy=True, **p),
        {"smoothing": SHARES, "background_additive": ADDITIVES},
        {"smoothing": 1e-3, "background_additive": 0.1},
        "λ, β",
    ),
    Model(
        "SVM",
        lambda C: make_pipeline(ThesisTfIdf(), LinearSVC(C=C)),
        {"C": (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)},
        {"C": 0.5},
        "C",
    ),
]


def _undertrained(C: float) -> Any:
    """w²/2 + (C/n) Σ ξ, which the manual of SVM^multiclass gives: its C = 1 is liblinear's 1/n."""

    class Divided(LinearSVC):
        def fit(self, X, y, sample_weight=None):
            self.C = C / X.shape[0]
            return super().fit(X, y, sample_weight)

    return make_pipeline(ThesisTfIdf(), Divided(multi_class="crammer_singer"))


UNDERTRAINED = Model("SVM, C/n", _undertrained, {}, {}, "C")


def climb(model: Model, value: Callable[[dict[str, float]], float]) -> tuple[dict[str, float], float, int]:
    """Hill climbing: to the best of the neighbours, one step along one parameter, until none is better."""
    names = list(model.grid)
    known: dict[tuple[int, ...], float] = {}

    def at(place: tuple[int, ...]) -> float:
        if place not in known:
            known[place] = value({name: model.grid[name][i] for name, i in zip(names, place, strict=True)})
        return known[place]

    here = tuple(list(model.grid[name]).index(model.start[name]) for name in names)
    while True:
        around = [
            (*here[:i], here[i] + step, *here[i + 1 :])
            for i, name in enumerate(names)
            for step in (-1, 1)
            if 0 <= here[i] + step < len(model.grid[name])
        ]
        best = max(around, key=at)
        if at(best) <= at(here):
            return {n: model.grid[n][i] for n, i in zip(names, here, strict=True)}, known[here], len(known)
        here = best


# Experiments ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Documents, what is measured on a split of them, and the splits."""

    counts: csr_matrix
    measure: Callable[[Any, Split], float]  # an unfitted estimator on a split
    validation: Split
    splits: list[Split]


def reuters_task(n_splits: int) -> tuple[Task, dict[str, Any]]:
    """ModApte: topics ranked one by one against the rest, macro-BEP over the ten with most training documents."""
    corpus = load("reuters21578")
    part = np.array(corpus.fields["split"])
    rows = np.flatnonzero(part != "unused")
    part, labels = part[rows], [corpus.labels[i] for i in rows]
    counts = without_stop_words("reuters21578", corpus, rows)
    train = np.flatnonzero(part == "train")
    names, sizes = np.unique(list(chain.from_iterable(labels[i] for i in train)), return_counts=True)
    topics = names[np.argsort(-sizes, kind="stable")[:TOPICS]]
    wanted, _ = indicator(labels, topics)
    random = np.random.default_rng(SEED)
    inner = random_split(train, random, share=len(np.flatnonzero(part == "test")) / len(part))

    splits = [random_split(len(rows), random) for _ in range(n_splits)]
    fixed = Split(train, np.flatnonzero(part == "test"))
    bears = np.flatnonzero(wanted.any(axis=1))
    narrow = Split(np.intersect1d(train, bears), np.intersect1d(fixed.test, bears))
    task = Task(counts, against_rest(counts, wanted), inner, splits)
    return task, {"topics": topics, "wanted": wanted, "fixed": fixed, "narrow": narrow}


def by_topic(counts: csr_matrix, wanted: np.ndarray, estimator: Any, split: Split) -> np.ndarray:
    """Break-even points of topics ranked one by one."""
    model = RelevantAgainstRest(estimator).fit(counts[split.train], wanted[split.train])
    return break_even_precisions(wanted[split.test], model.decision_function(counts[split.test]))


def against_rest(counts: csr_matrix, wanted: np.ndarray) -> Callable[[Any, Split], float]:
    """Macro-BEP."""
    return lambda estimator, split: float(np.nanmean(by_topic(counts, wanted, estimator, split)))


def instances_task(task: Task, wanted: np.ndarray, n_splits: int) -> Task:
    """What the thesis's random splits may have been: each of a document's topics makes a document of that topic alone,
    and these are split class by class. Copies of one document then contradict each other."""
    documents, topic = np.nonzero(wanted)
    truth = np.eye(wanted.shape[1], dtype=bool)[topic]
    counts = csr_matrix(task.counts[documents])
    random = np.random.default_rng(SEED + 1)
    splits = [random_split(len(documents), random, topic) for _ in range(n_splits)]
    return Task(counts, against_rest(counts, truth), task.validation, splits)


def newsgroups_task(n_splits: int) -> tuple[Task, dict[str, Any]]:
    """20 Newsgroups: accuracy."""
    corpus = load("20news-bydate")
    counts = without_stop_words("20news-bydate", corpus, np.arange(len(corpus)))
    labels = corpus.single_labels()
    random = np.random.default_rng(SEED)
    splits = [random_split(len(corpus), random, labels) for _ in range(n_splits)]
    first = splits[0].train
    inner = random_split(len(first), random, labels[first])

    def measure(estimator: Any, split: Split) -> float:
        model = estimator.fit(counts[split.train], labels[split.train])
        return float(np.mean(model.predict(counts[split.test]) == labels[split.test]))

    return Task(counts, measure, Split(first[inner.train], first[inner.test]), splits), {"labels": labels}


@dataclass
class Row:
    model: Model
    chosen: dict[str, float]
    validation: float
    tried: int
    values: list[float] = field(default_factory=list)  # one for each random split
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))


def experiment(task: Task, models: Sequence[Model]) -> list[Row]:
    rows = []
    for model in progress(models, total=len(models), label="models", unit=" models"):
        began = time.perf_counter()
        chosen, value, tried = climb(model, lambda p, m=model: task.measure(m.make(**p), task.validation))
        row = Row(model, chosen, value, tried)
        row.values = [task.measure(model.make(**chosen), split) for split in task.splits]
        row.seconds = time.perf_counter() - began
        rows.append(row)
    return rows


def compared(one: Row, other: Row) -> Comparison:
    return compare_values(*({str(i): v for i, v in enumerate(row.values)} for row in (one, other)), tests=("t", "sign"))


def beaten(rows: Sequence[Row], row: Row) -> str:
    """Numbers of the models that are significantly worse by both tests; A for all of them, A-i for all but one."""
    worse, missing = [], []
    for number, other in enumerate(rows, 1):
        if other is not row:
            c = compared(row, other)
            clear = c.difference > 0 and all(test.p_value < 0.05 for test in c.tests.values())
            (worse if clear else missing).append(number)
    if not missing:
        return "A"
    return f"A-{missing[0]}" if len(missing) == 1 and len(rows) > 3 else ",".join(map(str, worse))


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Pairs that the t-test and the sign test judge differently."""
    found = []
    for a, b in combinations(rows, 2):
        t, sign = (compared(a, b).tests[test].p_value for test in ("t", "sign"))
        if (t < 0.05) != (sign < 0.05):
            found.append(f"{a.model.name} and {b.model.name} (t: p = {t:.3g}, sign: p = {sign:.3g})")
    return found


def written(values: Mapping[str, float]) -> str:
    return ", ".join(f"{value:g}" for value in values.values())


# Tables -----------------------------------------------------------------------------------------------------------

# Table 4.1: parameters, BEP on ModApte, mean ± sd on random splits, significance
PUBLISHED_REUTERS = {
    "Multi-L": ("0.01", "71.42", "60.05 ± 0.78", "6"),
    "Multi-JM": ("0.7, 0.001", "72.78", "60.00 ± 0.83", "6"),
    "DCM": ("1500, 0.1", "72.38", "60.21 ± 0.78", "6"),
    "Dir": ("3000, 0.2, 0.001", "74.87", "64.24 ± 0.82", "A-5"),
    "SD": ("0.01, 1", "79.24", "65.64 ± 0.84", "A"),
    "SVM": ("20", "76.21", "59.25 ± 1.13", ""),
}
# Table 4.2, 20 Newsgroups: parameters, accuracy, significance
PUBLISHED_NEWSGROUPS = {
    "Multi-L": ("0.001", "87.02 ± 0.46", "2,4,7"),
    "Multi-JM": ("0.01, 0.001", "86.41 ± 0.46", ""),
    "DCM": ("900, 0.0001", "88.04 ± 0.51", "1,2,7"),
    "Dir": ("400, 0.1, 0.01", "86.54 ± 0.44", ""),
    "SD": ("0.0001, 0.1", "89.72 ± 0.47", "A-6"),
    "SD-CE": ("0.0001, 0.001", "90.56 ± 0.42", "A"),
    "SVM": ("1", "86.48 ± 0.65", ""),
}


def spread(row: Row, rows: Sequence[Row] = ()) -> str:
    """Mean ± standard deviation in %; bold where it is significantly better than all others of ``rows``."""
    values = 100 * np.array(row.values)
    text = f"{values.mean():.2f}" + (f" ± {values.std(ddof=1):.2f}" if len(values) > 1 else "")
    return f"**{text}**" if rows and beaten(rows, row) == "A" else text


def against(values: Sequence[np.ndarray], one: int, other: int) -> str:
    """The mean of the one in %, and the standard error of its difference to the other."""
    gain = values[one] - values[other]
    error = f" ({100 * standard_error(gain):.2f})" if one != other else ""
    return f"{100 * values[one].mean():.2f}{error}"


BEGUN = ["#", "model", "parameters"]


def begun(place: int, row: Row) -> list[str]:
    """The first cells of a row."""
    return [str(place + 1), f"{row.model.name} ({row.model.symbols})", written(row.chosen)]


def reuters(n_splits: int = SPLITS) -> str:
    task, extra = reuters_task(n_splits)
    rows = experiment(task, [model for model in MODELS if model.name != "SD-CE"])
    again = instances_task(task, extra["wanted"], n_splits)
    alone = [
        replace(row, values=[again.measure(row.model.make(**row.chosen), split) for split in again.splits])
        for row in progress(rows, total=len(rows), label="single topics", unit=" models")
    ]
    fixed, narrow = (
        [by_topic(task.counts, extra["wanted"], row.model.make(**row.chosen), extra[split]) for row in rows]
        for split in ("fixed", "narrow")
    )
    sd = next(i for i, row in enumerate(rows) if row.model.name == "SD")
    lines = [
        "### Reuters-21578, ModApte (Table 4.1)",
        "",
        f"{described(task.counts)} (thesis: 12,902; 27,545; 81). Macro-BEP in % over "
        f"{', '.join(extra['topics'])}; in brackets the standard error of the difference to SD over these. Top ten: "
        f"ModApte with the {len(extra['narrow'].train):,} and {len(extra['narrow'].test):,} documents that bear any of "
        "these topics, all others left out of training and test. Random: mean ± "
        f"standard deviation over {n_splits} random 80:20 "
        "splits. One topic each: the same with every document "
        f"repeated for each of its topics as if that were its only one ({again.counts.shape[0]:,} documents), which "
        "would explain the thesis's random splits: see CLASSIFICATION.md.",
        "",
    ]
    cells = [
        [
            *begun(i, row),
            *(against(values, i, sd) for values in (fixed, narrow)),
            *(cell for one, all_ in ((row, rows), (single, alone)) for cell in (spread(one, all_), beaten(all_, one))),
            *PUBLISHED_REUTERS[row.model.name],
        ]
        for i, (row, single) in enumerate(zip(rows, alone, strict=True))
    ]
    measured = ["ModApte", "top ten", "random", "better than", "one topic each", "better than"]
    head = [*BEGUN, *measured, "thesis: parameters", "ModApte", "random", "better than"]
    return "\n".join([*lines, table(head, cells), "", both_tests(rows) + " One topic each: " + agreement(alone)])


def newsgroups(n_splits: int = SPLITS) -> str:
    task, _ = newsgroups_task(n_splits)
    rows = experiment(task, MODELS)
    theirs = Row(UNDERTRAINED, {"C": 1.0}, float("nan"), 0)
    theirs.values = [task.measure(UNDERTRAINED.make(C=1.0), split) for split in task.splits]
    lines = [
        "### 20 Newsgroups (Table 4.2)",
        "",
        f"{described(task.counts)} (thesis: 18,828; 116,199; 150). Accuracy in %, mean ± standard deviation over "
        f"{n_splits} random 80:20 splits.",
        "",
    ]
    cells = [
        [*begun(i, row), spread(row, rows), beaten(rows, row), *PUBLISHED_NEWSGROUPS[row.model.name]]
        for i, row in enumerate(rows)
    ]
    head = [*BEGUN, "accuracy", "better than", "thesis: parameters", "accuracy", "better than"]
    told = (
        "An SVM in Crammer and Singer's form with the thesis's C = 1 divided by the number of training documents, as "
        f"the manual of SVM^multiclass has it, reaches {spread(theirs)}."
    )
    return "\n".join([*lines, table(head, cells), "", told, "", both_tests(rows)])


def described(counts: csr_matrix) -> str:
    n, terms = counts.shape
    return f"{n:,} documents, {terms:,} terms, {counts.sum() / n:.0f} words a document"


def agreement(rows: Sequence[Row]) -> str:
    found = disagreements(rows)
    return "the two tests disagree on " + "; ".join(found) + "." if found else "the two tests agree on every pair."


def both_tests(rows: Sequence[Row]) -> str:
    return (
        '"Better than" numbers the models that are significantly worse (A: all, A-i: all but i), by both the paired '
        f"t-test and the sign test at 95 %; {agreement(rows)} Hill climbing tried "
        + ", ".join(f"{row.tried} ({row.model.name})" for row in rows)
        + " settings on the validation split; "
        "seconds in all: " + ", ".join(f"{row.seconds:.0f}" for row in rows) + "."
    )


TABLES = {"reuters": reuters, "newsgroups": newsgroups}


def section() -> str:
    parts = [
        "Generative classifiers of thesis chapter 4 beside its own numbers. Porter stems, stop words dropped, no "
        "feature selection; free parameters by hill climbing on a validation split of one training set, then fixed. "
        "What differs, and why, is told in [CLASSIFICATION.md](CLASSIFICATION.md)."
    ]
    for make, name in ((reuters, "reuters21578"), (newsgroups, "20news-bydate")):
        parts.append(make() if Collection(name).available else f"### {name}\n\nnot on this machine")
    return "\n\n".join(parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="*", help=f"of {', '.join(TABLES)}")
    parser.add_argument("--splits", type=int, default=SPLITS)
    given = parser.parse_args()
    for name in given.table or TABLES:
        began = time.perf_counter()
        print(TABLES[name](given.splits), flush=True)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
