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
from scipy.special import expit, logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.progress import progress
from sdretrieval.learn.classify.base import sharpness
from sdretrieval.learn.classify.classifiers import ClassifierModel, classifier_model
from sdretrieval.learn.labelled import LabelledCorpus


@dataclass(eq=False)
class TextClassifier:
    """A fitted classifier, made by :func:`train` or read by :func:`~.saved_models.load_classifier`.

    Attributes
    ----------
    model, parameters : the kind of classifier and the values of its parameters
    labels : what may be predicted, in the order of the scores' columns
    vocabulary, analyzer, idf : how text becomes features
    estimators : one over all labels, or one for each where several labels may hold
    calibration : factor and shift of the logits, one row, or one by label
    about : what it was trained on
    """

    model: ClassifierModel
    parameters: dict[str, Any]
    labels: list[str]
    vocabulary: list[str]
    analyzer: AnalyzerSpec
    estimators: list[Any]
    multi_label: bool = False
    idf: np.ndarray | None = None
    calibration: np.ndarray = field(default_factory=lambda: np.array([[1.0, 0.0]]))
    about: dict[str, Any] = field(default_factory=dict)

    def features(self, corpus: LabelledCorpus) -> Any:
        """Counts, or tf-idf, over this classifier's vocabulary."""
        if corpus.analyzer != self.analyzer:
            raise ParameterError(
                f"the documents were analysed with {corpus.analyzer}, the classifier learnt with {self.analyzer}",
                remedy="Read them with the classifier's own analyzer.",
            )
        return _rows(corpus.aligned(self.vocabulary), self.idf)

    def scores(self, corpus: LabelledCorpus) -> np.ndarray:
        """Log-odds, documents x labels."""
        logits = self.calibration[:, 0] * self.logits(corpus) + self.calibration[:, 1]
        return logits if self.multi_label else _log_odds(logits)

    def logits(self, corpus: LabelledCorpus) -> np.ndarray:
        """What the estimators say, documents x labels, before calibration."""
        X, times = self.features(corpus), _times(self.model, corpus)
        if self.multi_label:
            return np.column_stack([estimator.decision_function(X, **times) for estimator in self.estimators])
        if self.model.generative:
            return self.estimators[0].predict_joint_log_proba(X)
        logits = self.estimators[0].decision_function(X, **times)
        # Of two classes only the second's is told, less the first's.
        return np.column_stack([-logits / 2.0, logits / 2.0]) if logits.ndim == 1 else logits

    def predict(self, corpus: LabelledCorpus) -> list[tuple[str, ...]]:
        """The labels of each document: the best one, or, where several may hold, those with a positive score."""
        return self.decide(self.scores(corpus))

    def decide(self, scores: np.ndarray) -> list[tuple[str, ...]]:
        """Labels from scores."""
        return [tuple(self.labels[k] for k in np.flatnonzero(row)) for row in self.chosen(scores)]

    def chosen(self, scores: np.ndarray) -> np.ndarray:
        """A mask of documents x labels from scores."""
        if self.multi_label:
            return scores > 0
        return np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """P(T|D) from scores."""
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

    Parameters
    ----------
    corpus : the documents
    model, parameters : a name of ``sdretrieval classify --list-models``, and values that are not the defaults
    multi_label : whether a document may bear several labels; those that bear none are then examples of the rest
    labels : those to learn (default: all in use); with one label a document each must bear exactly one of them
    min_df : words in fewer documents are left out
    calibrate : learn a second time, from four fifths of the documents, to make probabilities of the scores; logistic
        regression, whose scores are such, does without
    seed : of the choice of that fifth

    Returns
    -------
    TextClassifier
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
    idf = np.log((1.0 + len(corpus)) / (1.0 + df[kept])) + 1.0 if kind.tfidf else None
    began = time.perf_counter()
    targets = _targets(corpus, names) if multi_label else [corpus.single_labels()]
    estimators = _fitted(kind, values, _rows(corpus.counts[:, kept], idf), targets, _times(kind, corpus))
    about: dict[str, Any] = {
        "source": corpus.name,
        "documents": len(corpus),
        "seconds": round(time.perf_counter() - began, 4),
    }
    if kind.timed:
        about["bandwidth"] = [str(estimator.bandwidth_) for estimator in estimators]
    classifier = TextClassifier(
        model=kind,
        parameters=values,
        labels=names if multi_label else [str(label) for label in estimators[0].classes_],
        vocabulary=[corpus.vocabulary[int(i)] for i in kept],
        analyzer=corpus.analyzer,
        estimators=estimators,
        multi_label=multi_label,
        idf=idf,
        about=about,
    )
    if calibrate and not kind.probabilistic:
        classifier.calibration = _calibration(classifier, corpus, values, min_df, seed)
    return classifier


def _targets(corpus: LabelledCorpus, names: Sequence[str]) -> list[np.ndarray]:
    """Which documents bear each label; some must, and some must not."""
    targets = [corpus.has_label(label) for label in names]
    for label, relevant in zip(names, targets, strict=True):
        if not 0 < relevant.sum() < len(relevant):
            every = "every" if relevant.any() else "no"
            raise ParameterError(f"{every} training document has label {label!r}", remedy="Leave it out.")
    return targets


def _fitted(
    kind: ClassifierModel, values: dict[str, Any], X: Any, targets: list[np.ndarray], times: dict[str, Any]
) -> list[Any]:
    """An estimator for each target; scikit-learn's warnings are raised again as they are, each once."""
    several = progress(targets, total=len(targets), label="labels", unit=" labels") if len(targets) > 1 else targets
    estimators = []
    for y in several:
        with warnings.catch_warnings():
            warnings.simplefilter("once")
            estimators.append(kind.make(values).fit(X, y, **times))
    return estimators


def _times(kind: ClassifierModel, corpus: LabelledCorpus) -> dict[str, Any]:
    return {"times": corpus.times} if kind.timed else {}


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
    if not several:
        inside, outside = (part.select([found[0] in learnt for found in part.labels]) for part in (inside, outside))
    if not len(outside):
        return even
    other = train(inside, classifier.model, values, multi_label=several, labels=learnt, min_df=min_df, calibrate=False)
    logits = other.logits(outside)
    if not several:
        truth = np.searchsorted(other.labels, outside.single_labels())
        return np.array([[sharpness(logits, truth), 0.0]])
    found = np.tile(even, (len(classifier.labels), 1))
    for column, label in enumerate(learnt):
        found[classifier.labels.index(label)] = _platt(logits[:, column], outside.has_label(label))
    return found


def _platt(scores: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Factor and shift of a logistic curve through one label's scores; the factor is never negative."""
    spread = float(scores.std())
    if not 0 < truth.sum() < len(truth) or spread == 0.0:
        return 1.0, 0.0
    middle = float(scores.mean())
    curve = LogisticRegression(C=1e3).fit((scores[:, None] - middle) / spread, truth)
    factor = float(curve.coef_[0, 0]) / spread
    if factor <= 0.0:  # worse than chance out there: leave the order alone
        return 1.0, 0.0
    return factor, float(curve.intercept_[0]) - factor * middle


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


def _rows(counts: Any, idf: np.ndarray | None) -> Any:
    """Counts, or (1 + log f)·idf scaled to length one."""
    if idf is None:
        return counts
    weighted = counts.copy()
    weighted.data = (1.0 + np.log(weighted.data)) * idf[weighted.indices]
    return normalize(weighted, copy=False)


def _log_odds(logits: np.ndarray) -> np.ndarray:
    """log P(T|D) - log P(not T|D) where P is proportional to the exponential of the logits."""
    out = np.empty_like(logits)
    for k in range(logits.shape[1]):
        out[:, k] = logits[:, k] - logsumexp(np.delete(logits, k, axis=1), axis=1)
    return out
