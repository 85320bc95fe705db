"""How a count in a document becomes evidence: language-model smoothing and BM25, in one form.

Every ranking function here is   score(D) = Σ_w a_w · φ(f_w, D) + (terms that need no postings)
with one of four evidence functions,

    LOG         φ = log(1 + f · A_w · B_D)        Jelinek-Mercer, Dirichlet: (5.6), (4.29)
    SATURATING  φ = A_w · f / (f + B_D)           BM25, TF-IDF
    FLOORED     φ = max(0, log(1 + f · A_w) + B_D)   Lucene's Dirichlet
    DIVERGING   φ = (1 - f B_D)² / (f + 1) · (f log₂(f · A_w · B_D) + ½ log₂(2π f (1 - f B_D)))      DPH

    f    count of the word in the document
    A_w  a factor of the word,  B_D  a factor of the document

so one compiled loop serves all (loops.py). For language models the identity behind it is

    Σ_w a_w log θ^D_w = Σ_{w in D} a_w φ + Σ_w a_w log p_w + (Σ_w a_w) · log(1 - λ_D)

where 1 - λ_D is the weight of general English in the document's model: constant for Jelinek-Mercer, μ/(μ+|D|) for
Dirichlet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import parameter, positive, share, weight
from sdretrieval.index.statistics import Statistics

LOG, SATURATING, FLOORED, DIVERGING = 0, 1, 2, 3  # the compiled loops in loops.py know these numbers
_NEVER_SATURATED = 2.0**100
WEIGHTINGS: dict[str, type[Weighting]] = {}  # by name, also those of other packages: what a file of queries may ask for


@dataclass(frozen=True)
class Weighting:
    """Base: subclasses say what A_w and B_D are."""

    name: ClassVar[str] = ""  # in files of expanded queries; without one of its own it cannot be written to them
    kind: ClassVar[int] = LOG
    is_language_model: ClassVar[bool] = True
    share_is_constant: ClassVar[bool] = False  # whether log_background_share is the same for every document
    share_for_all: ClassVar[bool] = False  # whether it is added as it is, whatever the plan's weights add up to

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            WEIGHTINGS[cls.name] = cls

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        """A_w for these terms."""
        raise NotImplementedError

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        """B_D for documents of these lengths."""
        raise NotImplementedError

    def log_background_share(self, lengths: np.ndarray) -> np.ndarray:
        """log(1 - λ_D) for documents of these lengths; language models have one."""
        return np.zeros(len(lengths))

    def phi(self, counts: np.ndarray, term_factors: np.ndarray, doc_factors: np.ndarray | float) -> np.ndarray:
        """The evidence itself, vectorised; the compiled loops compute the same."""
        if self.kind == LOG:
            return np.log1p(counts * term_factors * doc_factors)
        if self.kind == FLOORED:
            return np.maximum(0.0, np.log1p(counts * term_factors) + doc_factors)
        if self.kind == DIVERGING:
            rest = 1.0 - counts * doc_factors  # of the document: 0 where it has no other word
            bits = counts * np.log2(counts * term_factors * doc_factors)
            bits += 0.5 * np.log2(2.0 * np.pi * counts * np.where(rest > 0.0, rest, 1.0))
            return np.where(rest > 0.0, rest**2 / (counts + 1.0) * bits, 0.0)
        return term_factors * counts / (counts + doc_factors)


def _inverse(lengths: np.ndarray) -> np.ndarray:
    return 1.0 / np.maximum(lengths, 1)  # an empty document has no counts, so any factor will do


@dataclass(frozen=True)
class JelinekMercer(Weighting):
    """θ^D = λ θ̂^D + (1-λ) θ^GE, (2.1)."""

    name: ClassVar[str] = "jm"
    lam: float = weight(0.5, "of the document's own words", "λ")
    share_is_constant: ClassVar[bool] = True

    @property
    def odds(self) -> float:
        """A_w = odds / p_w."""
        return self.lam / (1.0 - self.lam)

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return self.odds / statistics.p[terms]

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return _inverse(lengths)

    def log_background_share(self, lengths: np.ndarray) -> np.ndarray:
        return np.full(len(lengths), np.log1p(-self.lam))

    def document_shares(self, lengths: np.ndarray) -> np.ndarray:
        """λ_D, the weight of the document's own words."""
        return np.full(len(lengths), self.lam)


@dataclass(frozen=True)
class Dirichlet(Weighting):
    """θ^D = |D|/(μ+|D|) θ̂^D + μ/(μ+|D|) θ^GE, (5.33)."""

    name: ClassVar[str] = "dirichlet"
    mu: float = positive(1000.0, "words of general English added to a document", "μ")

    @property
    def odds(self) -> float:
        return 1.0 / self.mu

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return self.odds / statistics.p[terms]

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return np.ones(len(lengths))

    def log_background_share(self, lengths: np.ndarray) -> np.ndarray:
        return np.log(self.mu / (self.mu + lengths))

    def document_shares(self, lengths: np.ndarray) -> np.ndarray:
        return lengths / (self.mu + lengths)


def bm25_idf(df: np.ndarray | int, n_docs: int) -> np.ndarray:
    return np.log(1.0 + (n_docs - df + 0.5) / (df + 0.5))


@dataclass(frozen=True)
class BM25(Weighting):
    """Lucene's BM25: idf · f / (f + k1 (1 - b + b |D| / avg)), idf = log(1 + (N - df + .5) / (df + .5)).

    ``lucene_lengths`` rounds document lengths as Lucene stores them, in one byte.
    """

    name: ClassVar[str] = "bm25"
    k1: float = positive(0.9, "how soon further occurrences of a word count less")
    b: float = share(0.4, "how much long documents are held against")
    lucene_lengths: bool = parameter(False, "lengths as Lucene stores them")
    kind: ClassVar[int] = SATURATING
    is_language_model: ClassVar[bool] = False

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return bm25_idf(statistics.df[terms], statistics.n_docs)

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        if self.lucene_lengths:
            lengths = lucene_length(lengths)
        average = max(statistics.average_length, 1e-300)
        # b = 1 with an empty document would divide 0 by 0; its counts are never asked for.
        return np.maximum(self.k1 * (1.0 - self.b + self.b * lengths / average), 1e-300)


@dataclass(frozen=True)
class BM25Counts(BM25):
    """BM25 without idf: f / (f + k1 (1 - b + b |D| / avg)), for plans that say themselves what a word is worth."""

    name: ClassVar[str] = "bm25-counts"

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return np.ones(len(terms))


def lucene_length(lengths: np.ndarray) -> np.ndarray:
    """Document lengths after Lucene's one-byte rounding (SmallFloat.intToByte4 and back).

    Lengths up to 39 are kept; above, a number keeps its four highest bits (beyond the first 24).
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    free = 24  # values stored as they are: 255 - longToInt4(Integer.MAX_VALUE)
    rest = np.maximum(lengths - free, 0)
    bits = np.zeros(len(rest), dtype=np.int64)
    large = rest >= 16
    bits[large] = np.floor(np.log2(rest[large])).astype(np.int64) - 3
    kept = (rest >> bits) << bits
    return np.where(lengths < free, lengths, kept + free)


@dataclass(frozen=True)
class LuceneDirichlet(Weighting):
    """Lucene's LMDirichletSimilarity as it is: one-byte lengths, p = (cf+1)/(|C|+1), and no term below zero.

    φ = max(0, log(1 + f A_w) + B_D): for parity with Anserini; :class:`Dirichlet` is the equation.
    """

    name: ClassVar[str] = "lucene-dirichlet"
    mu: float = positive(1000.0, "words of general English added to a document", "μ")
    kind: ClassVar[int] = FLOORED
    is_language_model: ClassVar[bool] = False

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return (statistics.n_tokens + 1.0) / (self.mu * (statistics.cf[terms] + 1.0))

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return np.log(self.mu / (lucene_length(lengths) + self.mu))


@dataclass(frozen=True)
class TfIdf(Weighting):
    """Documents as vectors of idf · f / (f + k1 (1 - b + b |D| / avg)), idf = log((N+1) / df): the Lemur toolkit's."""

    name: ClassVar[str] = "tfidf"
    k1: float = positive(1.0, "as in BM25")
    b: float = share(0.3, "as in BM25")
    kind: ClassVar[int] = SATURATING
    is_language_model: ClassVar[bool] = False

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return np.log((statistics.n_docs + 1.0) / statistics.df[terms])

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return BM25(self.k1, self.b).doc_factors(statistics, lengths)


@dataclass(frozen=True)
class DocumentWords(Weighting):
    """φ = f, or f/|D|: counts as they are, of a document that is not smoothed; log(1-λ) for each of its words.

    A·f/(f + B) with A = B = 2^100 is f, and with B = 2^100 |D| it is f/|D|, to the last bit: f is nothing beside B, and
    multiplying by a power of two is exact.
    """

    name: ClassVar[str] = "document-words"
    lam: float = weight(0.9, "share of other words than general English's in the class", "λ")
    per_word: bool = parameter(False, "divided by the length of the document")
    kind: ClassVar[int] = SATURATING
    is_language_model: ClassVar[bool] = False
    share_for_all: ClassVar[bool] = True

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return np.full(len(terms), _NEVER_SATURATED)

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return _NEVER_SATURATED * (np.maximum(lengths, 1.0) if self.per_word else np.ones(len(lengths)))

    def log_background_share(self, lengths: np.ndarray) -> np.ndarray:
        return np.log1p(-self.lam) * (np.minimum(lengths, 1.0) if self.per_word else lengths)


@dataclass(frozen=True)
class LuceneJelinekMercer(Weighting):
    """Lucene's LMJelinekMercerSimilarity: log(1 + (1-λ) f/|D| / (λ p)), p = (cf+1)/(|C|+1); λ is the collection's."""

    name: ClassVar[str] = "lucene-jm"
    lam: float = weight(0.1, "of the collection", "λ")
    kind: ClassVar[int] = LOG
    is_language_model: ClassVar[bool] = False

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return (1.0 - self.lam) * (statistics.n_tokens + 1.0) / (self.lam * (statistics.cf[terms] + 1.0))

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return _inverse(lucene_length(lengths))


@dataclass(frozen=True)
class DPH(Weighting):
    """Hypergeometric divergence from randomness without parameters: Amati et al., FUB at TREC 2007, as in Terrier.

    A_w = 1/p_w and B_D = 1/|D|: what a count says is measured against f/|D| = p_w, and may speak against a document.
    """

    name: ClassVar[str] = "dph"
    kind: ClassVar[int] = DIVERGING
    is_language_model: ClassVar[bool] = False

    def term_factors(self, statistics: Statistics, terms: np.ndarray) -> np.ndarray:
        return 1.0 / statistics.p[terms]

    def doc_factors(self, statistics: Statistics, lengths: np.ndarray) -> np.ndarray:
        return _inverse(lengths)
