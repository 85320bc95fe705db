"""A classifier of text from end to end: words to counts to labels, with everything it takes to do it again.

A :class:`TextClassifier` keeps the vocabulary and the analyzer beside the fitted estimators, so that new text is read
as the training documents were. With one label a document it is one estimator over all classes; with several, one for
each label against the rest (4.13).

    score   of a document for a label: the log-odds log P(T|D) - log P(not T|D)

Generative models are sure of themselves far beyond reason (the scale S of the SD makes them as sure as one likes), and
against the rest their zero is nowhere near even odds. So the logits are calibrated on a fifth of the training
documents, by a model that did not see them: one factor for all classes, or, with several labels a document, a factor
and a shift for each label (Platt). The best class of a document and the ranking of documents for a label against the
rest do not change by it; what counts as a label does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sdretrieval.classify.models import ClassifierModel, classifier_model
from sdretrieval.errors import ParameterError
from sdretrieval.labelled import LabelledCorpus
from sdretrieval.lucene.analysis import AnalyzerSpec
from sdretrieval.progress import progress


@dataclass(eq=False)
class TextClassifier:
    """Fitted: from :func:`train` or from :func:`sdretrieval.classify.saved_models.load_classifier`."""

    model: ClassifierModel
    parameters: dict[str, Any]
    labels: list[str]
    vocabulary: list[str]
    analyzer: AnalyzerSpec
    estimators: list[Any]  # one over all labels, or one for each where several labels may hold
    multi_label: bool = False
    idf: np.ndarray | None = None
    calibration: np.ndarray = field(default_factory=lambda: np.array([[1.0, 0.0]]))  # factor and shift, by label or one
    about: dict[str, Any] = field(default_factory=dict)  # what it was trained on

    def features(self, corpus: LabelledCorpus) -> Any:
        """Counts, or tf-idf, over this classifier's vocabulary."""
        if corpus.analyzer != self.analyzer:
            raise ParameterError(
                f"the documents were analysed with {corpus.analyzer}, the classifier learnt with {self.analyzer}",
                remedy="Read them with the classifier's own analyzer.",
            )
        return _rows(corpus.aligned(self.vocabulary), self.idf)

    def scores(self, corpus: LabelledCorpus) -> np.ndarray:
        """Documents x labels."""
        return self._calibrated(self._logits(corpus))

    def _logits(self, corpus: LabelledCorpus) -> np.ndarray:
        X = self.features(corpus)
        times = {"times": corpus.times} if self.model.timed else {}
        if self.multi_label:
            return np.column_stack([estimator.decision_function(X, **times) for estimator in self.estimators])
        estimator = self.estimators[0]
        if hasattr(estimator, "predict_joint_log_proba"):
            return estimator.predict_joint_log_proba(X)
        logits = estimator.decision_function(X, **times)
        # Of two classes only the second's is told, less the first's.
        return np.column_stack([-logits / 2.0, logits / 2.0]) if logits.ndim == 1 else logits

    def _calibrated(self, logits: np.ndarray) -> np.ndarray:
        logits = self.calibration[:, 0] * logits + self.calibration[:, 1]
        return logits if self.multi_label else _log_odds(logits)

    def predict(self, corpus: LabelledCorpus) -> list[tuple[str, ...]]:
        """The labels of each document: the best one, or, where several may hold, those with a positive score."""
        return self.decide(self.scores(corpus))

    def decide(self, scores: np.ndarray) -> list[tuple[str, ...]]:
        """Labels from scores."""
        if not self.multi_label:
            return [(self.labels[best],) for best in scores.argmax(axis=1)]
        return [tuple(label for label, s in zip(self.labels, row, strict=True) if s > 0) for row in scores]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """P(T|D) from scores."""
        from scipy.special import expit

        return expit(scores)


def train(
    corpus: LabelledCorpus,
    model: str | ClassifierModel = "sd",
    parameters: Mapping[str, Any] | Iterable[str] = (),
    *,
    multi_label: bool = False,
    labels: Sequence[str] | None = None,
    min_df: int = 1,
    calibrate: bool = True,
    seed: int = 0,
) -> TextClassifier:
    """Fit a classifier to labelled documents.

    ``labels`` are those to learn (default: all in use). With one label a document, every document must bear exactly
    one of them; with ``multi_label`` documents that bear none are examples of the rest. Words in fewer than
    ``min_df`` documents are left out. ``calibrate`` learns a second time, from four fifths of the documents, to make
    probabilities of the scores; logistic regression, whose scores are such, does without.
    """
    kind = classifier_model(model) if isinstance(model, str) else model
    values = kind.parameters(parameters)
    names = sorted(labels) if labels is not None else corpus.label_names
    if len(names) < 2 and not (multi_label and names):
        told = f"only {names[0]!r}" if names else "none"
        raise ParameterError(f"at least two labels are needed, there is {told}", remedy="Check the label field.")
    if min_df < 1:
        raise ParameterError(f"min_df must be 1 or more, got {min_df}")
    df = np.bincount(corpus.counts.indices, minlength=corpus.counts.shape[1])
    kept = np.flatnonzero(df >= min_df)
    if not len(kept):
        raise ParameterError(f"no word is in {min_df} documents or more", remedy="Lower --min-df.")
    counts = corpus.counts[:, kept]
    idf = np.log((1.0 + len(corpus)) / (1.0 + df[kept])) + 1.0 if kind.tfidf else None
    X = _rows(counts, idf)
    times = {"times": corpus.times} if kind.timed else {}
    began = time.perf_counter()
    estimators: list[Any] = []
    if multi_label:
        for label in progress(names, total=len(names), label="labels", unit=" labels"):
            relevant = corpus.has_label(label)
            if not 0 < relevant.sum() < len(relevant):
                every = "every" if relevant.any() else "no"
                raise ParameterError(f"{every} training document has label {label!r}", remedy="Leave it out.")
            estimators.append(_fitted(kind, values, X, relevant, times))
    else:
        estimators.append(_fitted(kind, values, X, corpus.single_labels(), times))
        names = [str(label) for label in estimators[0].classes_]
    seconds = time.perf_counter() - began
    about = {"source": corpus.name, "documents": len(corpus), "seconds": round(seconds, 4)}
    if hasattr(estimators[0], "bandwidth_"):
        about["bandwidth"] = [str(estimator.bandwidth_) for estimator in estimators]
    classifier = TextClassifier(
        model=kind, parameters=values, labels=names, vocabulary=[corpus.vocabulary[int(i)] for i in kept],
        analyzer=corpus.analyzer, estimators=estimators, multi_label=multi_label, idf=idf, about=about,
    )  # fmt: skip
    if calibrate and not kind.probabilistic:
        classifier.calibration = _calibration(classifier, corpus, values, min_df, seed)
    return classifier


def _calibration(
    classifier: TextClassifier, corpus: LabelledCorpus, values: dict[str, Any], min_df: int, seed: int
) -> np.ndarray:
    """Factor and shift from documents that the classifier of the others did not see."""
    even = np.array([[1.0, 0.0]])
    several = classifier.multi_label
    try:
        held = held_out_rows(corpus, 0.2, seed, multi_label=several)
    except ParameterError:  # too few documents: as they are
        return even
    inside, outside = corpus.select(~held), corpus.select(held)
    learnt = [label for label in classifier.labels if 0 < inside.has_label(label).sum() < len(inside)]
    if len(learnt) < 2:
        return even
    rows = np.array([several or found[0] in learnt for found in outside.labels], dtype=bool)
    if not several:
        inside = inside.select([found[0] in learnt for found in inside.labels])
    outside = outside.select(rows)
    if not len(outside):
        return even
    other = train(inside, classifier.model, values, multi_label=several, labels=learnt, min_df=min_df, calibrate=False)
    logits = other._logits(outside)
    if not several:
        truth = np.searchsorted(other.labels, outside.single_labels())
        return np.array([[_sharpness(logits, truth), 0.0]])
    found = np.tile(even, (len(classifier.labels), 1))
    for column, label in enumerate(learnt):
        found[classifier.labels.index(label)] = _platt(logits[:, column], outside.has_label(label))
    return found


def _sharpness(logits: np.ndarray, truth: np.ndarray) -> float:
    """The factor under which the true classes are the most likely, between 1e-4 and 1e6."""
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    rows = np.arange(len(truth))

    def loss(log_factor: float) -> float:
        scaled = np.exp(log_factor) * logits
        return float((logsumexp(scaled, axis=1) - scaled[rows, truth]).mean())

    best = minimize_scalar(loss, bounds=(np.log(1e-4), np.log(1e6)), method="bounded", options={"xatol": 1e-3})
    return float(np.exp(best.x))


def _platt(scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Factor and shift of a logistic curve through one label's scores; the factor is never negative."""
    from sklearn.linear_model import LogisticRegression

    spread = float(scores.std())
    if not 0 < truth.sum() < len(truth) or spread == 0.0:
        return 1.0, 0.0
    middle = float(scores.mean())
    curve = LogisticRegression(C=1e3).fit((scores[:, None] - middle) / spread, truth)
    factor = float(curve.coef_[0, 0]) / spread
    if factor <= 0.0:  # worse than chance out there: leave the order alone
        return 1.0, 0.0
    return factor, float(curve.intercept_[0]) - factor * middle


def tune(
    corpus: LabelledCorpus,
    model: str,
    parameters: Mapping[str, Any] | Iterable[str] = (),
    *,
    multi_label: bool = False,
    labels: Sequence[str] | None = None,
    min_df: int = 1,
    held_out: float = 0.2,
    seed: int = 0,
) -> tuple[dict[str, Any], list[tuple[dict[str, Any], float]]]:
    """Choose settings on a share of the training documents that the others do not see; settings given stay.

    The measure is accuracy, with several labels a document macro-BEP. Returns the best settings (the first of equals)
    and every trial.
    """
    from sdretrieval.classify.assessment import assess

    kind = classifier_model(model)
    given = dict(parameters) if isinstance(parameters, Mapping) else dict(kind._pair(text) for text in parameters)
    fixed = kind.parameters(given)
    grid = [{**fixed, **{name: value for name, value in one.items() if name not in given}} for one in kind.grid()]
    grid = list({tuple(sorted(one.items(), key=lambda item: item[0])): one for one in grid}.values())
    rows = held_out_rows(corpus, held_out, seed, multi_label=multi_label)
    inside, outside = corpus.select(~rows), corpus.select(rows)
    names = None if labels is None else [label for label in labels if inside.has_label(label).any()]
    trials = []
    for one in progress(grid, total=len(grid), label="tuning", unit=" settings"):
        fitted = train(inside, kind, one, multi_label=multi_label, labels=names, min_df=min_df, calibrate=False)
        found = assess(fitted, outside)
        trials.append((one, found.macro_bep if multi_label else found.accuracy))
    best = max(range(len(trials)), key=lambda i: (trials[i][1], -i))
    return trials[best][0], trials


def held_out_rows(corpus: LabelledCorpus, share: float, seed: int, *, multi_label: bool = False) -> np.ndarray:
    """A mask of documents to hold out: a share of each label's documents, at least one left to learn from."""
    if not 0.0 < share < 1.0:
        raise ParameterError(f"the share to hold out must be in (0, 1), got {share}")
    rng = np.random.default_rng(seed)
    held = np.zeros(len(corpus), dtype=bool)
    if multi_label:
        held[rng.permutation(len(corpus))[: max(1, round(share * len(corpus)))]] = True
        return held
    labels = corpus.single_labels()
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held[rows[: min(len(rows) - 1, round(share * len(rows)))]] = True
    if not held.any():
        raise ParameterError("no label has two documents: nothing can be held out", remedy="Train on more documents.")
    return held


def folds(corpus: LabelledCorpus, number: int, seed: int, *, multi_label: bool = False) -> Iterator[np.ndarray]:
    """Masks of ``number`` disjoint test sets, each with its share of every label."""
    if not 2 <= number <= len(corpus):
        raise ParameterError(f"folds must be from 2 to the {len(corpus)} documents, got {number}")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(corpus))
    if not multi_label:  # dealt out label after label
        order = order[np.argsort(corpus.single_labels()[order], kind="stable")]
    fold = np.empty(len(corpus), dtype=np.int64)
    fold[order] = np.arange(len(corpus)) % number
    return (fold == k for k in range(number))


def _fitted(kind: ClassifierModel, values: dict[str, Any], X: Any, y: np.ndarray, times: dict[str, Any]) -> Any:
    """A fitted estimator; scikit-learn's warnings are raised again as they are, each once."""
    with warnings.catch_warnings():
        warnings.simplefilter("once")
        return kind.make(values).fit(X, y, **times)


def _rows(counts: Any, idf: np.ndarray | None) -> Any:
    """Counts, or (1 + log f)·idf scaled to length one."""
    if idf is None:
        return counts
    from sklearn.preprocessing import normalize

    weighted = counts.copy()
    weighted.data = (1.0 + np.log(weighted.data)) * idf[weighted.indices]
    return normalize(weighted, copy=False)


def _log_odds(logits: np.ndarray) -> np.ndarray:
    """log P(T|D) - log P(not T|D) where P is proportional to the exponential of the logits."""
    from scipy.special import logsumexp

    out = np.empty_like(logits)
    for k in range(logits.shape[1]):
        out[:, k] = logits[:, k] - logsumexp(np.delete(logits, k, axis=1), axis=1)
    return out
