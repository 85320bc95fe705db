"""Every ranking model once more: plain, slow, dense arithmetic over the whole vocabulary, in float64 or wider.

Written from the equations (Nallapati's thesis, chapters 2, 3 and 5; Lucene's and Anserini's documentation), not from
the package, and it imports nothing from it. No sparse forms, no dropped constants unless the equation drops them.

    counts   documents x words, f_w^D          theta   documents x words, a smoothed language model each
    p        general English, θ^GE             f       words, f^Q
    a        what documents are scored with: Σ_w a_w log θ^D_w or Σ_w a_w φ_w

Where an equation leaves a choice open, the rule is stated here and marked "Choice".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

# Some equations subtract numbers that are nearly equal; a plain reading of those needs digits to spare.
FLOAT = np.longdouble


class Undecided(Exception):
    """A cut falls between values that differ by rounding only: either side is right, so nothing can be compared."""


@dataclass
class Corpus:
    """Counts with names. Words that no document has are not part of a vocabulary."""

    counts: np.ndarray
    words: list[str]
    docids: list[str]

    def __post_init__(self) -> None:
        used = self.counts.sum(axis=0) > 0
        self.counts = np.asarray(self.counts, dtype=FLOAT)[:, used]
        self.words = [w for w, u in zip(self.words, used, strict=True) if u]

    @property
    def n_docs(self) -> int:
        return len(self.counts)

    @cached_property
    def lengths(self) -> np.ndarray:
        return self.counts.sum(axis=1)

    @cached_property
    def cf(self) -> np.ndarray:
        return self.counts.sum(axis=0)

    @cached_property
    def df(self) -> np.ndarray:
        return (self.counts > 0).sum(axis=0)

    @cached_property
    def p(self) -> np.ndarray:
        """θ^GE"""
        return self.cf / self.cf.sum()

    @cached_property
    def own(self) -> np.ndarray:
        """θ̂^D = f^D / |D|. Choice: an empty document has no words of its own, θ̂ = 0."""
        return np.divide(
            self.counts, self.lengths[:, None], out=np.zeros_like(self.counts), where=self.lengths[:, None] > 0
        )

    def query(self, words: Sequence[str]) -> np.ndarray:
        """f^Q over the vocabulary. Choice: a word no document has is left out, of |Q| too."""
        counted = Counter(words)
        return np.array([counted[w] for w in self.words], dtype=FLOAT)

    def has_any(self, words: np.ndarray) -> np.ndarray:
        """Documents with at least one of the marked words. Choice: a search lists these only."""
        return (self.counts[:, words] > 0).any(axis=1)


# -- smoothing ---------------------------------------------------------------------------------------------------


def smoothed(c: Corpus, kind: str, lam: float, mu: float) -> np.ndarray:
    """θ^D by (2.1) or (5.33)."""
    if kind == "jm":
        return lam * c.own + (1 - lam) * c.p
    share = (c.lengths / (mu + c.lengths))[:, None]
    return share * c.own + (1 - share) * c.p


def expected_log(a: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Σ_w a_w log θ_w for each document: minus the T-cross entropy H(a, θ)."""
    return (a * np.log(theta)).sum(axis=1)


def normalised(values: np.ndarray) -> np.ndarray:
    return values / values.sum()


def uniform(n: int) -> np.ndarray:
    return np.full(n, FLOAT(1) / n)


def from_logs(logs: np.ndarray) -> np.ndarray:
    """exp(x) / Σ exp(x)"""
    return normalised(np.exp(logs - logs.max()))


# -- other evidence ----------------------------------------------------------------------------------------------


def lucene_length(length: float) -> float:
    """The largest length not above this one that Lucene's norm byte can say (SmallFloat.byte4ToInt)."""
    sayable = []
    for byte in range(256):
        if byte < 24:
            sayable.append(byte)
        else:
            bits, shift = (byte - 24) & 7, ((byte - 24) >> 3) - 1
            sayable.append(24 + (bits if shift < 0 else (bits | 8) << shift))
    return float(max(s for s in sayable if s <= length))


def bm25(c: Corpus, a: np.ndarray, k1: float, b: float, *, one_byte: bool = False) -> np.ndarray:
    """Lucene: Σ a idf f/(f + k1 (1 - b + b |D|/avg)), idf = log(1 + (N - df + .5)/(df + .5))."""
    return _saturating(c, a * bm25_idf(c), k1, b, one_byte)


def bm25_idf(c: Corpus) -> np.ndarray:
    return np.log(1 + (c.n_docs - c.df + 0.5) / (c.df + 0.5))


def _saturating(c: Corpus, a: np.ndarray, k1: float, b: float, one_byte: bool) -> np.ndarray:
    lengths = np.array([lucene_length(n) for n in c.lengths]) if one_byte else c.lengths
    scores = np.zeros(c.n_docs, dtype=FLOAT)
    for d in range(c.n_docs):
        bound = k1 * (1 - b + b * lengths[d] / (c.cf.sum() / c.n_docs))
        for w in np.flatnonzero(c.counts[d]):
            scores[d] += a[w] * c.counts[d, w] / (c.counts[d, w] + bound)
    return scores


def lucene_dirichlet(c: Corpus, a: np.ndarray, mu: float) -> np.ndarray:
    """Lucene's LMDirichletSimilarity: p = (cf+1)/(|C|+1), one-byte lengths, a word adds 0 rather than less."""
    p = (c.cf + 1) / (c.cf.sum() + 1)
    scores = np.zeros(c.n_docs, dtype=FLOAT)
    for d in range(c.n_docs):
        for w in np.flatnonzero(c.counts[d]):
            word = np.log(1 + c.counts[d, w] / (mu * p[w])) + np.log(mu / (lucene_length(c.lengths[d]) + mu))
            if a[w] and abs(word) < 1e-12:  # floored or not by rounding alone
                raise Undecided
            scores[d] += a[w] * max(word, 0.0)
    return scores


def lucene_jelinek_mercer(c: Corpus, a: np.ndarray, lam: float) -> np.ndarray:
    """Lucene's LMJelinekMercerSimilarity: λ is the collection's share there."""
    p = (c.cf + 1) / (c.cf.sum() + 1)
    scores = np.zeros(c.n_docs, dtype=FLOAT)
    for d in range(c.n_docs):
        for w in np.flatnonzero(c.counts[d]):
            own = (1 - lam) * c.counts[d, w] / lucene_length(c.lengths[d])
            scores[d] += a[w] * np.log(1 + own / (lam * p[w]))
    return scores


def bm25_counts(c: Corpus, a: np.ndarray, k1: float, b: float, *, one_byte: bool = False) -> np.ndarray:
    """The same without idf."""
    return _saturating(c, a, k1, b, one_byte)


def dph(c: Corpus, a: np.ndarray) -> np.ndarray:
    """Terrier's DPH. Choice: a document of one word, however often, scores 0: the limit for f → |D|."""
    scores = np.zeros(c.n_docs, dtype=FLOAT)
    for d in range(c.n_docs):
        for w in np.flatnonzero(c.counts[d]):
            f, share = c.counts[d, w], c.counts[d, w] / c.lengths[d]
            if share < 1:
                bits = f * np.log2(f * (c.cf.sum() / c.n_docs) / c.lengths[d] * (c.n_docs / c.cf[w]))
                bits += 0.5 * np.log2(2 * np.pi * f * (1 - share))
                scores[d] += a[w] * (1 - share) ** 2 / (f + 1) * bits
    return scores


def windows(text: Sequence[str], a: str, b: str, mode: str) -> tuple[float, float]:
    """How often b follows a, and how often they are near: within eight words, or as Lucene's spans count.

    Choice: each place is taken with the next one of the other word; a word typed twice, with its own next one.
    """
    gap, width, graded = {"exact": (0, 6, False), "anserini": (1, 8, True)}[mode]
    places = {word: [i for i, w in enumerate(text) if w == word] for word in (a, b)}

    def between(one: str, other: str) -> list[int]:
        return [min(later) - i - 1 for i in places[one] if (later := [j for j in places[other] if j > i])]

    ordered = sum(1 / (1 + g) if graded else 1 for g in between(a, b) if g <= gap)
    met = between(a, b) if a == b else between(a, b) + between(b, a)
    near = sum(1 / (3 + g) if graded else 1 for g in met if g <= width)
    if graded and a == b:
        near += len(places[a]) / 2  # Lucene has a word near itself
    return float(ordered), float(near)


def sequential_dependence(texts: Sequence[Sequence[str]], query: Sequence[str], s: dict[str, Any]) -> np.ndarray:
    """Metzler and Croft's model over BM25, a score for each text."""
    words = sorted({word for text in texts for word in text})
    c = Corpus(np.array([[text.count(word) for word in words] for text in texts]), words, [""] * len(texts))
    one_byte, idf = s["mode"] == "anserini", dict(zip(words, bm25_idf(c), strict=True))
    share = 1 - s["ordered_weight"] - s["near_weight"] if len(query) > 1 else 1
    scores = share * bm25(c, c.query(query), s["k1"], s["b"], one_byte=one_byte)
    for a, b in pairwise(query):
        for kind, weight in enumerate((s["ordered_weight"], s["near_weight"])):
            f = np.array([windows(text, a, b, s["mode"])[kind] for text in texts], dtype=FLOAT)
            worth = np.log(1 + (c.n_docs - (f > 0).sum() + 0.5) / ((f > 0).sum() + 0.5))
            if one_byte:
                worth = sum(idf.get(word, 0) for word in {a, b})
            for d, text in enumerate(texts):
                length = lucene_length(len(text)) if one_byte else len(text)
                bound = s["k1"] * (1 - s["b"] + s["b"] * length / (c.cf.sum() / c.n_docs))
                scores[d] += weight * worth * f[d] / (f[d] + bound)
    return scores


# -- order -------------------------------------------------------------------------------------------------------


def ranked(c: Corpus, scores: np.ndarray, listed: np.ndarray) -> list[int]:
    """Documents by trec_eval's rule: single-precision score down, then docid down."""
    return sorted(np.flatnonzero(listed).tolist(), key=lambda d: (np.float32(scores[d]), c.docids[d]), reverse=True)


def top(c: Corpus, scores: np.ndarray, listed: np.ndarray, n: int) -> list[int]:
    order = ranked(c, scores, listed)
    if 0 < n < len(order):
        scale, gap = np.abs(scores).max(), abs(scores[order[n - 1]] - scores[order[n]])
        tied = gap <= 1e-12 * scale and np.float32(scores[order[n - 1]]) == np.float32(scores[order[n]])
        if scale < 1e-9 or not (tied or gap > 1e-6 * scale):
            raise Undecided
    return order[:n]


def strongest(values: np.ndarray, n: int) -> np.ndarray:
    """The n largest of the non-zero values, the others 0."""
    order = [w for w in np.argsort(-values, kind="stable") if values[w] != 0]
    if n < len(order) and values[order[n - 1]] - values[order[n]] <= 1e-9 * np.abs(values).max():
        raise Undecided
    kept = np.zeros_like(values)
    kept[order[:n]] = values[order[:n]]
    return kept


# -- models ------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """Scores of all documents, which of them a search lists, and the way there."""

    scores: np.ndarray
    listed: np.ndarray
    first: np.ndarray  # scores of the first pass
    feedback: list[int] = field(default_factory=list)
    weights: np.ndarray | None = None  # of the feedback documents
    a: np.ndarray | None = None  # the final model over the whole vocabulary
    bounds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("scores", "first", "weights", "a"):
            values = getattr(self, name)
            setattr(self, name, None if values is None else np.asarray(values, dtype=np.float64))


@dataclass
class Feedback:
    """Documents to learn from: the top of a first pass, or judged ones."""

    docs: list[int]
    judged: bool
    nonrelevant: list[int]
    unjudged: int = 0  # the last ones, where others are judged


def choose_feedback(
    c: Corpus,
    f: np.ndarray,
    first: np.ndarray,
    n: int,
    relevant: Sequence[int],
    nonrelevant: Sequence[int],
    both: bool = False,
) -> Feedback:
    """Judged relevant documents where there are any, all of them; else the first n that are not judged otherwise.

    ``both``: the judged ones, and after them the first n.
    """
    listed = c.has_any(f > 0)
    listed[[*nonrelevant, *relevant]] = False
    found = top(c, first, listed, n) if both or not len(relevant) else []
    if len(relevant):
        return Feedback([*sorted(relevant), *found], True, list(nonrelevant), len(found))
    return Feedback(found, False, list(nonrelevant))


def labelled(given: Feedback, chances: np.ndarray, s: dict[str, Any]) -> tuple[np.ndarray, float]:
    """Weights of documents, summing to one, and the share of the query: 1 for what is labelled, as below (5.14).

    Choice, after (6.19): the best of the unlabelled documents has ``unjudged_weight``, or 1 where nothing is judged;
    the query has ``query_weight``.
    """
    known = len(given.docs) - given.unjudged if given.judged else 0
    best = max(chances[known:], default=0)
    raw = []
    for i, chance in enumerate(chances):
        if i < known or best == 0:
            raw.append(FLOAT(1))
        else:
            raw.append(chance / best * (s["unjudged_weight"] if given.judged else 1))
    return normalised(np.array(raw)), s["query_weight"] / (sum(raw) + s["query_weight"])


def query_likelihood(c: Corpus, f: np.ndarray, s: dict[str, Any]) -> Answer:
    """log P(Q|θ^D) = Σ f^Q log θ^D, (5.5)."""
    scores = expected_log(f, smoothed(c, s["smoothing"], s["lam"], s["mu"]))
    return Answer(scores, c.has_any(f > 0), scores, a=f)


def likelihood_ratio(c: Corpus, theta_r: np.ndarray, length: str) -> np.ndarray:
    """(2.16), θ^N general English; divided by |D| where the mean over words is asked for."""
    scores = np.array([(f_d * np.log(theta_r / c.p)).sum() for f_d in c.counts])
    return scores / np.maximum(c.lengths, 1) if length == "word" else scores


def document_cross_entropy(c: Corpus, f: np.ndarray, s: dict[str, Any]) -> Answer:
    """θ^R = λ θ̂^Q + (1-λ) θ^GE."""
    theta_r = s["lam"] * normalised(f) + (1 - s["lam"]) * c.p if f.any() else c.p
    return one_pass(c, f, likelihood_ratio(c, theta_r, s["length"]))


def one_pass(c: Corpus, f: np.ndarray, scores: np.ndarray) -> Answer:
    return Answer(scores, c.has_any(f > 0), scores, a=f)


def words_of(c: Corpus, docs: Sequence[int], weights: np.ndarray) -> np.ndarray:
    """The words of documents that weigh anything."""
    return (c.counts[[d for d, w in zip(docs, weights, strict=True) if w > 0]] > 0).any(axis=0)


def tfidf_rocchio(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """Vectors idf · f/(f + k1 (1 - b + b|D|/avg)), idf = log((N+1)/df); query idf · f; q' = q + β · centroid."""
    idf = np.log((c.n_docs + 1) / c.df)
    vectors = np.zeros_like(c.counts)
    for d, w in zip(*np.nonzero(c.counts), strict=True):
        bound = s["k1"] * (1 - s["b"] + s["b"] * c.lengths[d] / (c.cf.sum() / c.n_docs))
        vectors[d, w] = idf[w] * c.counts[d, w] / (c.counts[d, w] + bound)
    query = idf * f
    first = vectors @ query
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first)
    weights = uniform(len(given.docs))
    moved = query + s["beta"] * strongest(vectors[given.docs].mean(axis=0), s["fb_terms"])
    return Answer(vectors @ moved, c.has_any(moved > 0), first, given.docs, weights, moved)


def relevance_model(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """(5.1)-(5.9)."""
    first = expected_log(f, smoothed(c, s["smoothing"], s["lambda_query"], s["mu"]))
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant, s["unjudged_weight"] > 0)
    if not given.docs:
        return one_pass(c, f, first)
    weights, model = _theta_r(c, f, given, s)
    scores = expected_log(model, smoothed(c, s["smoothing"], s["lambda_ranking"], s["mu"]))  # (5.9)
    met = words_of(c, given.docs, weights) | ((f > 0) & (s["query_weight"] > 0))
    return Answer(scores, c.has_any(met), first, given.docs, weights, model)


def document_relevance_model(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """The relevance model, and (2.16) under it."""
    answer = relevance_model(c, f, s, relevant, nonrelevant)
    if answer.feedback:
        first = expected_log(f, smoothed(c, s["smoothing"], s["lambda_query"], s["mu"]))
        given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant, s["unjudged_weight"] > 0)
        _, model = _theta_r(c, f, given, s)
        answer.scores = likelihood_ratio(c, model, s["length"]).astype(np.float64)
    return answer


def _theta_r(c: Corpus, f: np.ndarray, given: Feedback, s: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    likelihood = expected_log(f, smoothed(c, s["smoothing"], s["lambda_query"], s["mu"])[given.docs])
    weights, query_share = labelled(given, from_logs(likelihood), s)  # (5.4), (5.8)
    theta = smoothed(c, s["smoothing"], s["lambda_model"], s["mu"])[given.docs]
    # Choice: the query is averaged in as it is, θ̂^Q.
    return weights, (1 - query_share) * (weights @ theta) + (query_share * normalised(f) if query_share else 0)


def rm3(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """θ^R cut to its fb_terms strongest words, normalised, and mixed with θ̂^Q.

    Choice: words that no feedback document has are not expansion words, however common they are.
    """
    if s["mode"] == "anserini":
        return anserini_rm3(c, f, s, relevant, nonrelevant)
    if s["first_stage"] == "bm25":
        first = bm25(c, f, s["k1"], s["b"])
    else:
        first = expected_log(f, smoothed(c, s["smoothing"], s["lambda_query"], s["mu"]))
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant, s["unjudged_weight"] > 0)
    if not given.docs:
        return one_pass(c, f, first)
    weights, model = _theta_r(c, f, given, s)
    met = words_of(c, given.docs, weights) | ((f > 0) & (s["query_weight"] > 0))
    mixed = normalised(f) if not met.any() else _mixed(np.where(met, model, 0.0), f, s)
    if s["scoring"] == "bm25":
        scores = bm25(c, mixed, s["k1"], s["b"])
    else:
        scores = expected_log(mixed, smoothed(c, s["smoothing"], s["lambda_ranking"], s["mu"]))
    return Answer(scores, c.has_any(mixed > 0), first, given.docs, weights, mixed)


def _mixed(values: np.ndarray, f: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    share = s["original_query_weight"]
    return (1 - share) * normalised(strongest(values, s["fb_terms"])) + share * normalised(f)


def _by_lucene(c: Corpus, s: dict[str, Any], kind: str, a: np.ndarray) -> np.ndarray:
    return bm25(c, a, s["k1"], s["b"], one_byte=True) if kind == "bm25" else lucene_dirichlet(c, a, s["mu"])


def anserini_rm3(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=(), unknown: int = 0) -> Answer:
    """Anserini's Rm3Reranker: documents cut to fb_terms, L1-normalised, weighted by the raw score, cut, mixed.

    Anserini calculates in single precision; this does not, so it is right to about 1e-6.
    """
    lucene = partial(_by_lucene, c, s, s["first_stage"])
    first = lucene(f)
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first)
    usable = np.array([re.fullmatch("[a-z0-9]{2,20}", w) is not None for w in c.words]) & (10 * c.df <= c.n_docs)
    raw = np.ones(len(given.docs)) if given.judged else first[given.docs]
    if ((raw > 0) & (raw < 1e-12)).any():  # a score that is floored to 0 or not by rounding alone
        raise Undecided
    total = np.zeros(len(c.words))
    for d, score in zip(given.docs, raw, strict=True):
        cut = _most_frequent(c.counts[d] * usable, c.words, s["fb_terms"])
        if cut.sum() > 0:
            total += score * normalised(cut)
    kept = strongest(total, s["fb_terms"])
    query = f / (f.sum() + unknown)
    share = s["original_query_weight"]
    mixed = share * query + (1 - share) * (normalised(kept) if kept.sum() > 0 else 0)
    weights = normalised(raw) if raw.sum() > 0 else np.full(len(raw), 1 / len(raw))
    return Answer(lucene(mixed), c.has_any(mixed > 0), first, given.docs, weights, mixed)


def _most_frequent(counts: np.ndarray, words: list[str], n: int) -> np.ndarray:
    """Whole numbers, so ties are real ones: the alphabet decides."""
    order = sorted(np.flatnonzero(counts).tolist(), key=lambda w: (-counts[w], words[w]))
    kept = np.zeros_like(counts)
    kept[order[:n]] = counts[order[:n]]
    return kept


# -- axiomatic feedback ------------------------------------------------------------------------------------------


def axiomatic(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """Fang and Zhai 2006, over the R feedback documents and (N-1) R others, of which only expectations are known."""
    if s["mode"] == "anserini":
        return anserini_axiomatic(c, f, s, relevant, nonrelevant)

    def score(a: np.ndarray) -> np.ndarray:
        if s["scoring"] == "bm25":
            return bm25(c, a, s["k1"], s["b"])
        return expected_log(a, smoothed(c, "dirichlet", 0.0, s["mu"]))

    first = score(f)
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first)
    weights = uniform(len(given.docs))
    R = FLOAT(len(given.docs))
    near, far = c.counts[given.docs] > 0, np.delete(c.counts, given.docs, axis=0) > 0
    others = (FLOAT(s["pool"]) - 1) * R if len(far) else FLOAT(0)
    u = far.mean(axis=0, dtype=FLOAT) if len(far) else np.zeros(len(c.words), dtype=FLOAT)
    n = R + others
    typed = f * np.log((c.n_docs + FLOAT(1)) / c.df) ** s["idf_power"]
    found = np.zeros(len(c.words), dtype=FLOAT)
    for q in np.flatnonzero(f):
        itself = _information(near[:, q], near[:, q], u[q], u[q], u[q], others, n)
        if not near[:, q].any() or itself < 1e-12:
            continue
        for t in np.flatnonzero(near.any(axis=0)):
            n_qt = (near[:, q] & near[:, t]).sum() + others * u[q] * u[t]
            apart = (near[:, q].sum() + others * u[q]) * (near[:, t].sum() + others * u[t]) / n
            if t != q and n_qt > apart:
                both = _information(near[:, q], near[:, t], u[q], u[t], u[q] * u[t], others, n)
                found[t] += typed[q] * s["beta"] * both / itself
    if (np.abs(found - 1e-8) < 1e-12).any():
        raise Undecided
    found[found <= 1e-8] = 0
    a = typed + np.where(f > 0, found, strongest(np.where(f > 0, 0, found), s["fb_terms"]))
    return Answer(score(a), c.has_any(a > 0), first, given.docs, weights, a)


def anserini_axiomatic(
    c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=(), unknown: int = 0
) -> Answer:
    """Anserini's AxiomReranker where the pool is the whole collection, so that no dice are thrown.

    Anserini calculates in single precision; this does not, so it is right to about 1e-6.
    """
    lucene = partial(_by_lucene, c, s, s["scoring"])
    first = lucene(f)
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first)
    assert len(given.docs) * s["pool"] >= c.n_docs
    usable = [w for w in range(len(c.words)) if re.fullmatch("[a-z]{2,}", c.words[w])]
    pool = (c.counts[:, usable] > 0).any(axis=1)
    has = c.counts[pool] > 0
    totals = np.zeros(len(c.words), dtype=FLOAT)
    for q in np.flatnonzero(f):
        if q not in usable:
            continue
        scores = {}
        itself = _information(has[:, q], has[:, q], 0, 0, 0, 0, len(has))
        if itself < 1e-9:  # Anserini divides 0 by 0, and what comes of it takes places in its queues
            raise Undecided
        idf = np.log(FLOAT((1 + c.n_docs) // c.df[q]))
        for t in usable:
            both = _information(has[:, q], has[:, t], 0, 0, 0, 0, len(has))
            scores[t] = idf * f[q] * (1 if t == q else s["beta"] * both / itself)
        for t in _first_half(c, scores, max(1000, s["fb_terms"])):
            if abs(scores[t] - 1e-8) < 1e-7:
                raise Undecided
            if scores[t] > 1e-8:
                totals[t] += scores[t]
    totals /= f.sum() + unknown
    kept = _first_half(c, {t: totals[t] for t in np.flatnonzero(totals)}, s["fb_terms"])
    a = np.where(np.isin(np.arange(len(c.words)), kept), totals, 0) if kept else f
    return Answer(lucene(a), c.has_any(a > 0), first, given.docs, uniform(len(given.docs)), a)


def _first_half(c: Corpus, scores: dict[int, Any], most: int) -> list[int]:
    """The best, half of them at most, as Anserini's loop over a queue that shrinks; ties: the alphabet."""
    order = sorted(scores, key=lambda t: (-np.float32(scores[t]), c.words[t]))
    n = min((len(order) + 1) // 2, most)
    if 0 < n < len(order):
        gap, scale = scores[order[n - 1]] - scores[order[n]], max(abs(scores[t]) for t in order)
        if gap <= 1e-5 * scale and scale > 0:
            raise Undecided
    return order[:n]


def _information(x: np.ndarray, y: np.ndarray, u_x, u_y, u_xy, others, n) -> FLOAT:
    """Σ P(X, Y) log P(X, Y) / P(X) P(Y), where others share the words as u says."""
    total = FLOAT(0)
    for has_x in (True, False):
        for has_y in (True, False):
            p_x = ((x == has_x).sum() + others * (u_x if has_x else 1 - u_x)) / n
            p_y = ((y == has_y).sum() + others * (u_y if has_y else 1 - u_y)) / n
            rest = {(True, True): u_xy, (True, False): u_x - u_xy, (False, True): u_y - u_xy}
            outside = rest.get((has_x, has_y), 1 - u_x - u_y + u_xy)
            p_xy = (((x == has_x) & (y == has_y)).sum() + others * outside) / n
            if p_xy > 1e-15:
                total += p_xy * np.log(p_xy / (p_x * p_y))
    return total


# -- other feedback ----------------------------------------------------------------------------------------------


def bm25_prf(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """Robertson and Spärck Jones's weights in the place of idf; new words by Sakai and Robertson's offer."""
    if s["mode"] == "anserini":
        usable = np.array([re.fullmatch("[a-z0-9]{2,20}", w) is not None and not w.isdigit() for w in c.words])
    else:
        usable = np.ones(len(c.words), dtype=bool)
    one_byte = s["mode"] == "anserini"
    first = bm25(c, f, s["k1"], s["b"], one_byte=one_byte)
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first)
    R, N = len(given.docs), c.n_docs
    r = (c.counts[given.docs] > 0).sum(axis=0)
    weight = np.log((r + FLOAT(0.5)) * (N - c.df - R + r + 0.5) / ((c.df - r + 0.5) * (R - r + 0.5)))
    new = np.maximum(weight * s["new_term_weight"], 1e-6)
    offered = np.where((f == 0) & (r >= 2) & usable, new * np.log(np.maximum(r, 1)), 0)
    a = np.where(strongest(offered, s["fb_terms"]) > 0, new, 0) + np.where(f > 0, np.maximum(weight, 1e-6), 0)
    scores = bm25_counts(c, a, s["k1"], s["b"], one_byte=one_byte)
    return Answer(scores, c.has_any(a > 0), first, given.docs, uniform(R), a)


def divergence(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=(), *, kl: bool) -> Answer:
    """Amati's Bo1 or KL, and f^Q / max f^Q + β w / max w."""

    def score(a: np.ndarray) -> np.ndarray:
        return dph(c, a) if s["scoring"] == "dph" else bm25(c, a, s["k1"], s["b"])

    first = score(f)
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first)
    together = c.counts[given.docs].sum(axis=0)
    worth = np.zeros(len(c.words), dtype=FLOAT)
    for t in np.flatnonzero(together):
        if kl:
            share = together[t] / together.sum()
            worth[t] = share * np.log2(share / c.p[t])
        else:
            P = c.cf[t] / c.n_docs
            worth[t] = together[t] * np.log2((1 + P) / P) + np.log2(1 + P)
    if (np.abs(worth[together > 0]) < 1e-13).any():  # as frequent as anywhere: rounding would decide
        raise Undecided
    kept = strongest(np.maximum(worth, 0), s["fb_terms"])
    a = f / f.max()
    if kept.any():
        a = a + s["beta"] * kept / kept.max()
    return Answer(score(a), c.has_any(a > 0), first, given.docs, uniform(len(given.docs)), a)


# -- smoothed Dirichlet ------------------------------------------------------------------------------------------


def log_density(theta: np.ndarray, alpha: np.ndarray, S: float) -> np.ndarray:
    """log of (3.25): S^S / Π α^α · Π θ^(α-1)."""
    return S * np.log(S) - (alpha * np.log(alpha)).sum() + expected_log(alpha - 1, theta)


def geometric_mean(weights: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """(5.13) with S = 1: (1/Z) Π_i (θ^i)^{W_i}."""
    return normalised(np.exp(weights @ np.log(theta)))


def smoothed_dirichlet(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """Section 5.2; ``s["iterations"]`` is the number of M-steps.

    Choice: E-steps after the first see documents smoothed with λ_E1 as the first did, and S λ_M2 = K |Q| by (5.28)
    (for Dirichlet smoothing, λ_M2 is the mean over the feedback documents); or, with ``later_e_steps=likelihood``, as
    in the M-step and with the same S, since only then EM cannot lose.
    Choice: where the query is a labelled document, the M-step smooths it as it smooths documents.
    """
    S = s["precision"] * f.sum()
    theta_first = smoothed(c, s["smoothing"], s["lambda_first"], s["mu"])
    theta_m = smoothed(c, s["smoothing"], s["lambda_feedback"], s["mu_feedback"])
    # (5.11), (5.10), each without S
    from_query = s["lambda_query"] * normalised(f) + (1 - s["lambda_query"]) * c.p if f.any() else c.p
    if s["first_stage"] == "bm25":
        first = bm25(c, f, s["k1"], s["b"])
    else:
        first = _difference(S * from_query, S * c.p, theta_first, c.p)  # (5.12)
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant, s["unjudged_weight"] > 0)
    if not given.docs:
        return one_pass(c, f, first)
    a_n = c.p
    if given.nonrelevant:
        n, share = len(given.nonrelevant), s["nonrelevant_weight"]
        theta_n = np.vstack([theta_m[given.nonrelevant], c.p])
        a_n = geometric_mean(np.append(share * uniform(n), 1 - share), theta_n)
    length = f.sum()
    own_share = s["lambda_feedback"] if s["smoothing"] == "jm" else length / (s["mu_feedback"] + length)
    theta_q = own_share * normalised(f) + (1 - own_share) * c.p if f.any() else c.p

    def m_step(chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights, query_share = labelled(given, chances, s)
        all_weights = np.append((1 - query_share) * weights, query_share)
        return weights, geometric_mean(all_weights, np.vstack([theta_m[given.docs], theta_q]))

    bounds: list[float] = []
    if given.judged and not given.unjudged:
        weights = uniform(len(given.docs))
    elif s["first_stage"] == "bm25" and s["posterior"] == "approximate":
        weights = from_logs(s["precision"] * first[given.docs])  # Choice: BM25 stands for the log ratio
    elif s["posterior"] == "approximate":
        weights = from_logs(_difference(S * from_query, S * a_n, theta_first[given.docs], c.p))  # (5.26)
    else:
        weights = _posteriors(_log_ratio(from_query, a_n, theta_first[given.docs], S), s)
    weights, a_r = m_step(weights)
    if (given.unjudged or not given.judged) and s["iterations"] != 1:
        theta_e, S_e = theta_m[given.docs], S
        if s["later_e_steps"] == "rescaled":
            lengths = c.lengths[given.docs]
            shares = lengths / (s["mu_feedback"] + lengths)
            theta_e, S_e = (
                theta_first[given.docs],
                S / (s["lambda_feedback"] if s["smoothing"] == "jm" else shares.mean()),
            )
        ratio = _log_ratio(a_r, a_n, theta_e, S_e)
        bounds.append(_bound(ratio, s))
        for _ in range(s["iterations"] - 1):
            weights, a_r = m_step(_posteriors(ratio, s))
            ratio = _log_ratio(a_r, a_n, theta_e, S_e)
            bounds.append(_bound(ratio, s))
    theta_final = smoothed(c, s["smoothing"], s["lambda_ranking"], s["mu"])
    met = words_of(c, given.docs, weights) | ((f > 0) & (s["query_weight"] > 0))
    if given.nonrelevant:
        met = met | (c.counts[given.nonrelevant] > 0).any(axis=0)
    if "original_query_weight" in s:
        excess = a_r - a_n
        if (np.abs(excess[met]) < 1e-13 * c.p[met]).any():  # rounding would decide what is positive
            raise Undecided
        a, scores = _sd3(c, f, s, np.where(met, excess, 0.0), theta_final)
        return Answer(scores, c.has_any(a > 0), first, given.docs, weights, a, bounds)
    scores = _difference(S * a_r, S * a_n, theta_final, c.p)  # (4.31)
    return Answer(scores, c.has_any(met), first, given.docs, weights, S * (a_r - a_n), bounds)


def _difference(alpha_r: np.ndarray, alpha_n: np.ndarray, theta: np.ndarray, p: np.ndarray) -> np.ndarray:
    """H(α^N, θ^D) - H(α^R, θ^D) without H(α^N, p) - H(α^R, p), which is the same for all documents.

    By (4.29) that is (4.31), for α's of equal sum.
    """
    return expected_log(alpha_r - alpha_n, theta / p)


def _log_ratio(a_r: np.ndarray, a_n: np.ndarray, theta: np.ndarray, S: float) -> np.ndarray:
    """log P(θ|α^R) - log P(θ|α^N), straight from the densities, (5.17)."""
    return log_density(theta, S * a_r, S) - log_density(theta, S * a_n, S)


def _posteriors(ratio: np.ndarray, s: dict[str, Any]) -> np.ndarray:
    if s["posterior"] == "approximate":
        return from_logs(ratio)  # (5.23), (5.25)
    odds = np.exp(ratio) * s["prior"] / (1 - s["prior"])
    return normalised(odds / (odds + 1))  # (5.16), (5.15)


def _bound(ratio: np.ndarray, s: dict[str, Any]) -> float:
    """Σ_i log(π P(θ^i|α^R) + (1-π) P(θ^i|α^N)) against α^N alone; for π → 0, log Σ_i of the ratios."""
    if s["posterior"] == "approximate":
        return float(ratio.max() + np.log(np.exp(ratio - ratio.max()).sum()))
    return float(np.log(s["prior"] * np.exp(ratio) + 1 - s["prior"]).sum())


def _sd3(
    c: Corpus, f: np.ndarray, s: dict[str, Any], excess: np.ndarray, theta: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The positive excess, cut, normalised, mixed with θ̂^Q."""
    positive = np.maximum(excess, 0.0)
    a = _mixed(positive, f, s) if positive.any() else normalised(f)
    if s["scoring"] == "bm25":
        return a, bm25(c, a, s["k1"], s["b"])
    # Scores leave out Σ_w a_w log p_w, and for Jelinek-Mercer log(1-λ): the same for all documents.
    scores = expected_log(a, theta / c.p)
    return a, scores - a.sum() * np.log(1 - s["lambda_ranking"]) if s["smoothing"] == "jm" else scores


# -- the blend ---------------------------------------------------------------------------------------------------

# What its parts are set to, besides words, depth, k1 and b.
LEARN_ONLY = {"original_query_weight": 0.0, "query_weight": 0.0, "unjudged_weight": 0.0, "scoring": "bm25"}
BLEND_PARTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "sd": (
        smoothed_dirichlet,
        {
            **LEARN_ONLY,
            **{"first_stage": "bm25", "smoothing": "jm", "lambda_query": 0.99, "lambda_first": 0.3},
            **{"lambda_feedback": 1e-4, "lambda_ranking": 0.5, "precision": 0.25, "iterations": 1},
            **{"posterior": "approximate", "nonrelevant_weight": 1.0, "mu": 1000.0, "mu_feedback": 1e5},
        },
    ),
    "rm": (
        rm3,
        {
            **LEARN_ONLY,
            **{"mode": "lavrenko", "first_stage": "bm25", "smoothing": "jm", "lambda_query": 0.2},
            **{"lambda_model": 0.7, "lambda_ranking": 0.3, "mu": 1000.0},
        },
    ),
    "axiomatic": (axiomatic, {"mode": "expected", "scoring": "bm25", "pool": 10.0, "beta": 0.6, "idf_power": 0.5}),
}


def blend(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant=(), nonrelevant=()) -> Answer:
    """What parts at all depths agree on, counting r times as much as the query where both are at their best."""
    return _blended(c, f, s, relevant, nonrelevant)[0]


def blend_of_texts(texts: Sequence[Sequence[str]], query: Sequence[str], s: dict[str, Any]) -> np.ndarray:
    """The same where it is known where words stand, a score for each text."""
    words = sorted({word for text in texts for word in text})
    c = Corpus(
        np.array([[text.count(word) for word in words] for text in texts], dtype=FLOAT),
        words,
        [f"d{i}" for i in range(len(texts))],
    )
    answer, query_weight = _blended(c, c.query(query), s, (), ())
    scores, idf, known = answer.scores.copy(), dict(zip(words, bm25_idf(c), strict=True)), c.query(query).sum()
    unit = query_weight / known / (1 - s["ordered_weight"] - s["near_weight"]) if answer.feedback else 0.0
    slope = s["final_b"]
    for a, b in pairwise(query):
        if a not in idf or b not in idf:
            continue
        for d, text in enumerate(texts):
            bound = s["k1"] * (1 - slope + slope * len(text) / (c.cf.sum() / c.n_docs))
            for count, weight in zip(
                windows(text, a, b, "exact"), (s["ordered_weight"], s["near_weight"]), strict=True
            ):
                if count:
                    scores[d] += unit * weight * sum(idf[word] for word in {a, b}) * count / (count + bound)
    return scores


def _blended(c: Corpus, f: np.ndarray, s: dict[str, Any], relevant, nonrelevant) -> tuple[Answer, float]:
    first = bm25(c, f, s["k1"], s["b"])
    given = choose_feedback(c, f, first, s["fb_docs"], relevant, nonrelevant)
    if not given.docs:
        return one_pass(c, f, first), 1.0
    depths = [max(1, round(share * s["fb_docs"])) for share in (0.25, 0.5, 1.0)]
    depths = depths[:1] if given.judged else depths
    parts = [name.strip() for name in s["parts"].split(",")]
    estimates, weights = [], np.zeros(len(given.docs))
    for part in parts:
        model, values = BLEND_PARTS[part]
        for depth in depths:
            settings = {**values, "fb_docs": depth, "fb_terms": 100, "k1": s["k1"], "b": s["b"]}
            answer = model(c, f, settings, relevant, nonrelevant)
            words = np.where(f > 0, 0.0, answer.a) if part == "axiomatic" else answer.a
            if part != "axiomatic" and not _learnt_anything(c, answer):
                words = np.zeros_like(answer.a)
            estimates.append(normalised(words) if words.any() else words)
            weights[: len(answer.weights)] += answer.weights / (len(parts) * len(depths))
    e, b = _agreed(np.array(estimates), s["caution"]), s["final_b"]
    a = normalised(f * bm25_idf(c) ** s["idf_power"])
    cut = strongest(e * bm25_idf(c), s["fb_terms"]) > 0

    def highest(words: np.ndarray) -> float:
        return bm25(c, words, s["k1"], b)[given.docs].max()

    alike = [words * cut / (highest(words * cut) or 1.0) for words in estimates]
    e, kept, r = _agreed(np.array(alike), s["caution"]), 1.0, s["feedback_weight"]
    if e.any():
        kept = 1 / (1 + r) if given.judged else (1 / highest(a)) / (1 / highest(a) + r * e.sum())
        a = kept * a + (1 - kept) * normalised(e)
    return Answer(bm25(c, a, s["k1"], b), c.has_any(a > 0), first, given.docs, weights, a), kept


def _agreed(estimates: np.ndarray, caution: float) -> np.ndarray:
    n, mean = len(estimates), np.mean(estimates, axis=0)
    if n == 1:
        return mean
    lower = mean - caution * np.sqrt(((estimates - mean) ** 2).sum(axis=0) / (n * (n - 1)))
    return np.where(lower > 1e-9 * mean, lower, 0.0)


def _learnt_anything(c: Corpus, answer: Answer) -> bool:
    """Feedback documents without words, or without any excess, leave the query alone: that is not learnt."""
    return bool(words_of(c, answer.feedback, answer.weights)[answer.a > 0].any())


MODELS = {
    "blend": blend,
    "bm25": lambda c, f, s, *_: one_pass(c, f, bm25(c, f, s["k1"], s["b"])),
    "ql": lambda c, f, s, *_: query_likelihood(c, f, s),
    "tfidf": tfidf_rocchio,
    "rm": relevance_model,
    "rm3": rm3,
    "dce": lambda c, f, s, *_: document_cross_entropy(c, f, s),
    "rm-dce": document_relevance_model,
    "sd": smoothed_dirichlet,
    "sd3": smoothed_dirichlet,
    "axiomatic": axiomatic,
    "bm25prf": bm25_prf,
    "dph": lambda c, f, s, *_: one_pass(c, f, dph(c, f)),
    "bo1": lambda c, f, s, *judged: divergence(c, f, s, *judged, kl=False),
    "kl": lambda c, f, s, *judged: divergence(c, f, s, *judged, kl=True),
    "lucene-bm25": lambda c, f, s, *_: one_pass(c, f, bm25(c, f, s["k1"], s["b"], one_byte=True)),
    "lucene-qld": lambda c, f, s, *_: one_pass(c, f, lucene_dirichlet(c, f, s["mu"])),
    "lucene-qljm": lambda c, f, s, *_: one_pass(c, f, lucene_jelinek_mercer(c, f, s["lam"])),
}
