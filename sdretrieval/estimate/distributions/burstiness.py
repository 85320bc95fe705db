"""How well the distributions of chapter 3 predict how often a word occurs in a document (thesis section 3.4).

Words that occur at all come back more often than chance would have it: they are bursty, and the rarer the burstier.
Figure 3.5 shows it by pooling, over the high-, medium- and low-frequency words of a collection, the share of documents
with f occurrences of a word, and by laying the predictions of each distribution over it. There it was judged by eye,
the scale S was set by eye and λ was 0.9. Here

- each distribution is fitted to one part of the documents, its S is chosen on a second and it is measured on a third;
- the distance between empirical and predicted distributions is a Kullback-Leibler divergence, over all counts and
  over those of documents that have the word;
- unseen documents get a perplexity (3.42) from each distribution, per class of words and over all. The thesis had no
  use for it, because Dirichlet and SD are densities; as probabilities of counts (see ``marginals``) they can take part.

Each word class is a sample of its words where it is large; empirical and predicted values are of the same words, and
totals are scaled up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import betaln, xlogy

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.progress import bar
from sdretrieval.estimate.distributions import DCM, Dirichlet, Multinomial, SmoothedDirichlet, general_english
from sdretrieval.estimate.distributions import marginal_loops as loops
from sdretrieval.estimate.distributions.marginals import (
    beta_binomial_log_mass,
    beta_log_shape,
    binomial_log_mass,
    smoothed_proportion,
)

NAMES = ("multinomial", "dcm", "dirichlet", "sd")
CLASSES = ("high", "medium", "low")
SHARES = (0.01, 0.05)  # of the vocabulary, by falling frequency: the first 1 %, the next 4 %, the rest
COARSE = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # values of S to start from
SMOOTHINGS = (0.1, 0.3, 0.5, 0.7, 0.9)  # values of λ to choose from
CHOOSE_BY = ("likelihood", "tail")
WORDS_TO_CHOOSE_BY, DOCUMENTS_TO_CHOOSE_BY = 100, 1000  # of each class, and at most: S needs no more
LARGEST_COUNT = 5_000


@dataclass(frozen=True, eq=False)
class Fitted:
    """One distribution of the words' counts: θ of the multinomial, α of the others."""

    name: str
    values: np.ndarray  # θ or α, over the vocabulary
    scale: Any = None  # S, of all but the multinomial
    smoothing: Any = None  # λ, of Dirichlet and SD
    background: np.ndarray = field(default_factory=lambda: np.zeros(0))


def fit(name: str, counts: csr_matrix, *, scale: float = 1.0, smoothing: float = 0.9) -> Fitted:
    """Maximum likelihood with S fixed; every word must occur."""
    if name == "multinomial":
        return Fitted(name, Multinomial.fit(counts).theta)
    if name == "dcm":
        return Fitted(name, DCM.fit(counts, scale=scale, tolerance=1e-6).alpha, scale)
    smoothed: dict[str, Any] = {"scale": scale, "smoothing": smoothing, "background": general_english(counts)}
    if name == "dirichlet":
        return Fitted(name, Dirichlet.fit(counts, tolerance=1e-6, **smoothed).alpha, **smoothed)
    _check_name(name)
    return Fitted(name, SmoothedDirichlet.fit(counts, **smoothed).alpha, **smoothed)


def _check_name(name: str) -> None:
    if name not in NAMES:
        raise ParameterError(f"no distribution {name!r}", remedy=f"One of: {', '.join(NAMES)}.")


# Words ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WordClass:
    """Words of about the same frequency: all of them, and those looked at."""

    name: str
    words: np.ndarray
    sample: np.ndarray
    share_of_occurrences: float


def word_classes(cf: np.ndarray, most: int = 0, seed: int = 0) -> list[WordClass]:
    """High-, medium- and low-frequency words (the first 1 %, the next 4 %, the rest), ``most`` of each looked at."""
    order = np.argsort(-cf, kind="stable")
    order = order[cf[order] > 0]
    if len(order) < 3:
        raise ParameterError(f"{len(order)} words cannot be parted into three classes")
    first = min(max(1, round(SHARES[0] * len(order))), len(order) - 2)
    second = min(max(first + 1, round(SHARES[1] * len(order))), len(order) - 1)
    rng = np.random.default_rng(seed)
    found = []
    for name, words in zip(CLASSES, np.split(order, [first, second]), strict=True):
        sample = words if not most or len(words) <= most else rng.choice(words, most, replace=False)
        found.append(WordClass(name, words, np.sort(sample), float(cf[words].sum() / cf.sum())))
    return found


# Predictions ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Documents:
    """Counts of some documents, with their lengths grouped: most lengths occur many times."""

    counts: csr_matrix
    lengths: np.ndarray  # distinct
    group: np.ndarray  # of each document
    probabilities: np.ndarray  # P(|D|)

    @classmethod
    def of(cls, counts: csr_matrix) -> Documents:
        each = np.asarray(counts.sum(axis=1)).ravel().astype(np.int64)
        lengths, group = np.unique(each, return_inverse=True)
        return cls(csr_matrix(counts), lengths, group, np.bincount(group) / max(len(each), 1))

    @property
    def n_docs(self) -> int:
        return len(self.group)


@dataclass(frozen=True, eq=False)
class Predicted:
    """What a distribution says of some words: pooled masses of f = 0, 1, …, and the documents' log-likelihoods."""

    masses: np.ndarray
    per_document: np.ndarray


def empirical(documents: Documents, words: np.ndarray) -> np.ndarray:
    """The share of (document, word) pairs with f = 0, 1, … occurrences."""
    counts = documents.counts[:, words].data.astype(np.int64)
    seen = np.bincount(counts[counts > 0], minlength=1).astype(float)
    seen[0] = documents.n_docs * len(words) - seen[1:].sum()
    return seen / (documents.n_docs * len(words))


def predict(fitted: Fitted, documents: Documents, words: np.ndarray, top: int) -> Predicted:
    """Masses of the counts 0 … ``top``, pooled over words and over the documents' lengths, and log-likelihoods."""
    entries = csr_matrix(documents.counts[:, words]).tocoo()
    f, w, row = entries.data, entries.col, entries.row
    group = documents.group[row]
    n, values = documents.lengths[group], fitted.values[words][w]
    masses, log_zero, log_total = _masses(fitted, words, documents.lengths, documents.probabilities, top)
    if fitted.name == "multinomial":
        logs = binomial_log_mass(f, n, values)
    elif fitted.name == "dcm":
        logs = beta_binomial_log_mass(f, n, values, fitted.scale)
    else:
        theta = smoothed_proportion(f, n, fitted.background[words][w], fitted.smoothing)
        logs = beta_log_shape(theta, values, np.asarray(fitted.scale)) - log_total[w, group]
    per_document = log_zero.sum(axis=0)[documents.group]
    per_document = per_document + np.bincount(row, logs - log_zero[w, group], minlength=documents.n_docs)
    return Predicted(masses.mean(axis=0), per_document)


def predict_as_printed(fitted: Fitted, documents: Documents, words: np.ndarray, top: int) -> np.ndarray:
    """The thesis's recipe: (3.45), (3.46) with the factor |D|, (3.50) with densities; normalised over f at the end."""
    some = documents.lengths > 0
    lengths, p = documents.lengths[some], documents.probabilities[some]
    if fitted.name in ("multinomial", "dcm"):
        masses = _masses(fitted, words, lengths, p * lengths / (p @ lengths), top)[0]
    else:
        values, background = fitted.values[words], fitted.background[words]
        rest = fitted.scale - values
        if fitted.name == "dirichlet":
            log_normaliser = betaln(values, rest)
        else:
            log_normaliser = xlogy(values, values) + xlogy(rest, rest) - fitted.scale * np.log(fitted.scale)
        masses = np.empty((len(words), top + 1))
        loops.density_masses(values, fitted.scale, background, fitted.smoothing, log_normaliser, lengths, p, masses)
    pooled = masses.mean(axis=0)
    total = pooled.sum()  # densities need not be of any size
    return pooled / total if 0.0 < total < np.inf else np.zeros_like(pooled)


def _masses(
    fitted: Fitted, words: np.ndarray, lengths: np.ndarray, p: np.ndarray, top: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Masses of 0 … ``top`` by word, over lengths of probabilities p; log_zero and log_total of ``marginal_loops``."""
    values, masses = fitted.values[words], np.empty((len(words), top + 1))
    log_zero, log_total = np.empty((2, len(words), len(lengths)))
    if fitted.name == "multinomial":
        loops.binomial_masses(values, lengths, p, masses, log_zero)
    elif fitted.name == "dcm":
        loops.beta_binomial_masses(values, fitted.scale, lengths, p, masses, log_zero)
    else:
        background = fitted.background[words]
        loops.lattice_masses(
            values, fitted.scale, background, fitted.smoothing, lengths, p, masses, log_zero, log_total
        )
    return masses, log_zero, log_total


def divergence(truth: np.ndarray, predicted: np.ndarray, *, present: bool = False) -> float:
    """KL(empirical ‖ predicted) in nats; ``present``: among documents that have the word, f >= 1."""
    size = max(len(truth), len(predicted))
    p, q = (np.pad(values, (0, size - len(values))) for values in (truth, predicted))
    if present:
        p, q = p[1:], q[1:]
        if p.sum() == 0:
            return float("nan")
        if q.sum() == 0:
            return float("inf")
        p, q = p / p.sum(), q / q.sum()
    some = p > 0
    # A count that a distribution all but rules out may be below what a float can hold: then this is a lower bound.
    q = np.maximum(q, np.finfo(float).tiny)
    return float((p[some] * (np.log(p[some]) - np.log(q[some]))).sum())


# The analysis -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassFit:
    """One distribution on one class of words."""

    masses: np.ndarray
    kl: float
    kl_present: float
    log_likelihood: float  # nats per occurrence of the class's words; nan as printed


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting and what it was judged by, larger being better."""

    scale: float
    smoothing: float
    value: float


@dataclass(frozen=True, eq=False)
class Burstiness:
    """What :func:`analyse` found. ``perplexity`` is (3.42) over the whole vocabulary of the held-out documents."""

    classes: list[WordClass]
    scales: dict[str, float | None]
    smoothings: dict[str, float | None]
    sizes: tuple[int, int, int]  # documents fitted to, chosen on, measured on
    occurrences: float  # in the documents measured on
    choose_by: str
    as_printed: bool
    trials: dict[str, list[Trial]]
    empirical: dict[str, np.ndarray] = field(default_factory=dict)  # by class
    fits: dict[str, dict[str, ClassFit]] = field(default_factory=dict)  # by distribution, by class
    perplexity: dict[str, float] = field(default_factory=dict)
    per_document: dict[str, np.ndarray] = field(default_factory=dict)  # log-likelihood of each held-out document, nats


def analyse(
    counts: csr_matrix,
    *,
    smoothing: float | None = 0.9,
    words: int = 1000,
    shares: tuple[float, float] = (0.2, 0.2),
    seed: int = 0,
    names: Sequence[str] = NAMES,
    choose_by: str = "likelihood",
    as_printed: bool = False,
) -> Burstiness:
    """Figure 3.5 with numbers, for documents x terms.

    ``shares`` of the documents choose S and are measured on; ``words`` of each class are looked at (0: all).
    ``smoothing`` is λ of Dirichlet and SD; None chooses it together with S. ``choose_by`` is the likelihood of the
    documents to choose on, or ``"tail"``, the divergence over counts of one and more: what the eye sees of a plot.
    ``as_printed`` follows the thesis's recipe of predictions to the letter; those are no probabilities, so there is
    no likelihood, and S is chosen by the tail.
    """
    if smoothing is not None and not 0.0 < smoothing < 1.0:
        raise ParameterError(f"smoothing must be in (0, 1), got {smoothing}")
    if words < 0:
        raise ParameterError(f"words must be 0 (all) or more, got {words}")
    if min(shares) <= 0 or sum(shares) >= 1:
        raise ParameterError(f"shares must be positive and leave something to fit to, got {shares}")
    for name in names:
        _check_name(name)
    if choose_by not in CHOOSE_BY:
        raise ParameterError(f"no way to choose {choose_by!r}", remedy=f"One of: {', '.join(CHOOSE_BY)}.")
    choose_by = "tail" if as_printed else choose_by
    matrix = csr_matrix(counts, dtype=np.float64)
    matrix = matrix[np.asarray(matrix.sum(axis=1)).ravel() > 0]
    if matrix.shape[0] < 10:
        raise ParameterError(f"{matrix.shape[0]} documents with words are too few to part in three", remedy="Use more.")
    order = np.random.default_rng(seed).permutation(matrix.shape[0])
    ends = np.maximum(1, np.round(np.cumsum(shares) * len(order)).astype(int))
    measured, chosen, fitted_to = np.split(order, ends)
    chosen = chosen[:DOCUMENTS_TO_CHOOSE_BY]  # their order is random already
    known = np.flatnonzero(np.asarray(matrix[fitted_to].sum(axis=0)).ravel() > 0)  # a word never seen has no estimate
    train, validation, test = (csr_matrix(matrix[part][:, known]) for part in (fitted_to, chosen, measured))
    cf = np.asarray(train.sum(axis=0)).ravel()
    few = min(words, WORDS_TO_CHOOSE_BY) if words else WORDS_TO_CHOOSE_BY
    choosing = _Choosing(train, Documents.of(validation), word_classes(cf, few, seed), choose_by, as_printed)
    grid = SMOOTHINGS if smoothing is None else (smoothing,)
    best = {name: choosing.best(name, grid) for name in names}
    found = Burstiness(
        classes=word_classes(cf, words, seed),
        scales={name: fitted.scale for name, fitted in best.items()},
        smoothings={name: fitted.smoothing for name, fitted in best.items()},
        sizes=(len(fitted_to), len(chosen), len(measured)),
        occurrences=float(test.sum()),
        choose_by=choose_by,
        as_printed=as_printed,
        trials=choosing.trials,
    )
    _measure(found, best, Documents.of(test))
    in_index = [replace(one, words=known[one.words], sample=known[one.sample]) for one in found.classes]
    return replace(found, classes=in_index)


class _Choosing:
    """S, and perhaps λ, on documents of their own: coarse values of S first, then finer around the best."""

    def __init__(
        self, train: csr_matrix, documents: Documents, classes: list[WordClass], choose_by: str, as_printed: bool
    ) -> None:
        self.train, self.documents, self.classes = train, documents, classes
        self.choose_by, self.as_printed = choose_by, as_printed
        self.truth = {one.name: empirical(documents, one.sample) for one in classes}
        self.trials: dict[str, list[Trial]] = {}

    def best(self, name: str, smoothings: Sequence[float]) -> Fitted:
        if name == "multinomial":  # nothing to choose
            return fit(name, self.train)
        if name == "dcm":  # it smooths nothing
            smoothings = smoothings[:1]
        self.trials[name] = trials = []
        with bar(total=len(smoothings) * len(COARSE) + 4, label=f"fitting {name}", unit=" fits") as shown:

            def attempt(scale: float, smoothing: float) -> None:
                value = self._value(fit(name, self.train, scale=scale, smoothing=smoothing))
                trials.append(Trial(scale, smoothing, value))
                shown.update(1)

            for smoothing in smoothings:
                for scale in COARSE:
                    attempt(scale, smoothing)
            for step in (10.0**0.5, 10.0**0.25):
                middle = max(trials, key=lambda trial: trial.value)
                for scale in (middle.scale * step, middle.scale / step):
                    attempt(scale, middle.smoothing)
        best = max(trials, key=lambda trial: trial.value)
        return fit(name, self.train, scale=best.scale, smoothing=best.smoothing)

    def _value(self, fitted: Fitted) -> float:
        total = 0.0
        for one in self.classes:
            truth = self.truth[one.name]
            if self.choose_by == "likelihood":
                likelihood = float(predict(fitted, self.documents, one.sample, 0).per_document.sum())
                total += likelihood * len(one.words) / len(one.sample)
            elif truth[0] < 1.0:  # otherwise none of the words is there, and nothing to compare
                top = min(len(truth) - 1, LARGEST_COUNT)
                if self.as_printed:
                    masses = predict_as_printed(fitted, self.documents, one.sample, top)
                else:
                    masses = predict(fitted, self.documents, one.sample, top).masses
                total -= divergence(truth, masses, present=True)
        return total


def _measure(found: Burstiness, best: dict[str, Fitted], documents: Documents) -> None:
    """Everything that the held-out documents say."""
    for one in found.classes:
        found.empirical[one.name] = empirical(documents, one.sample)
    with bar(total=len(best) * len(found.classes), label="measuring", unit=" classes") as shown:
        for name, fitted in best.items():
            found.fits[name], found.per_document[name] = {}, np.zeros(documents.n_docs)
            for one in found.classes:
                truth = found.empirical[one.name]
                top = min(max(len(truth) - 1, 50), LARGEST_COUNT)
                predicted = predict(fitted, documents, one.sample, top)
                masses, likelihood = predicted.masses, float(predicted.per_document.sum())
                if found.as_printed:
                    masses, likelihood = predict_as_printed(fitted, documents, one.sample, top), float("nan")
                seen = float(documents.counts[:, one.sample].sum())
                found.fits[name][one.name] = ClassFit(
                    masses,
                    divergence(truth, masses),
                    divergence(truth, masses, present=True),
                    likelihood / seen if seen else float("nan"),
                )
                found.per_document[name] += predicted.per_document * (len(one.words) / len(one.sample))
                shown.update(1)
            each = found.per_document[name].sum() / found.occurrences
            found.perplexity[name] = float("nan") if found.as_printed else float(np.exp(-each))
