"""BM25PRF: the words of feedback documents, and the query's, weighed by Robertson and Spärck Jones's relevance weight.

S. Robertson and K. Spärck Jones, Relevance weighting of search terms (JASIS 1976); T. Sakai and S. Robertson, Relative
and absolute term selection criteria (SIGIR 2002); Anserini's io.anserini.rerank.lib.BM25PrfReranker.

    w_t = log (r_t + ½)(N - n_t - R + r_t + ½) / ((n_t - r_t + ½)(R - r_t + ½))     at least 1e-6
    o_t = w_t log r_t                                                                what a new word offers

    R, r_t    feedback documents, those with the word         N, n_t    documents, those with the word

New words stand in two of the feedback documents at least; the ``fb_terms`` that offer most count κ w_t each, the
query's words w_t, however often they are typed. Documents are ranked by Σ_t w_t f/(f + k1 (1 - b + b |D|/avg)): w takes
the place of idf.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from sdretrieval.core.parameters import choice, count, share
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan, Ranker, register
from sdretrieval.ranking.feedback import Feedback, uniform
from sdretrieval.ranking.models.anserini import spelled
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel, strongest
from sdretrieval.ranking.weighting import BM25, BM25Counts

LEAST = 1e-6
ROUNDING = 1e-9
IN_DOCUMENTS = 2.0  # of the feedback: what a new word needs


@register
@dataclass(frozen=True, kw_only=True)
class BM25PRF(Ranker):
    """``mode=anserini``: one-byte lengths, Java's ties, and new words of 2 to 20 characters [a-z0-9] with a letter."""

    name: ClassVar[str] = "bm25prf"
    description: ClassVar[str] = "BM25 with Robertson and Spärck Jones's relevance weights; or as Anserini does it"
    uses_feedback: ClassVar[bool] = True

    mode: str = choice("exact", "the equations, or Anserini's variant", ("exact", "anserini"))
    fb_docs: int = count(10, "feedback documents", symbol="R")
    fb_terms: int = count(20, "new words", grid=(10, 20, 40, 80))
    new_term_weight: float = share(0.2, "what new words count", symbol="κ", grid=(0.1, 0.2, 0.3, 0.5))
    k1: float = k1_parameter()
    b: float = b_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), BM25(self.k1, self.b, lucene_lengths=self.mode == "anserini"))

    def expand(self, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
        weights = feedback.emphasised(uniform(len(feedback)))
        rows, R = feedback.rows, len(feedback)
        r = TermModel.of(rows.terms, np.repeat(R * weights, np.diff(rows.ptr)))
        typed = np.isin(r.terms, query.terms)
        own = np.zeros(len(query.terms))
        own[np.searchsorted(query.terms, r.terms[typed])] = r.weights[typed]
        kept = TermModel(query.terms, self._worth(query.terms, own, R, 1.0, statistics))
        new = ~typed & (r.weights >= IN_DOCUMENTS - ROUNDING)
        kept = kept.plus(self._chosen(TermModel(r.terms[new], r.weights[new]), feedback, statistics))
        return Expansion(Plan(kept, BM25Counts(self.k1, self.b, lucene_lengths=self.mode == "anserini")), weights)

    def _chosen(self, r: TermModel, feedback: Feedback, statistics: Statistics) -> TermModel:
        """Of new words in so many feedback documents, those that offer most, with their weights."""
        if self.mode == "anserini":
            usable = spelled(statistics, "(?=[0-9]*[a-z])[a-z0-9]{2,20}", "BM25PRF")[r.terms]
            r = TermModel(r.terms[usable], r.weights[usable])
        worth = self._worth(r.terms, r.weights, len(feedback), self.new_term_weight, statistics)
        offer = worth * np.log(r.weights)
        if self.mode == "anserini":
            offer, order = offer.astype(np.float32), java_order(r.terms, feedback, statistics)
            kept = np.sort(order[np.argsort(-offer[order], kind="stable")[: self.fb_terms]])
        else:
            kept = strongest(r.terms, offer, self.fb_terms)
        return TermModel(r.terms[kept], worth[kept])

    def _worth(self, terms: np.ndarray, r: np.ndarray, R: int, factor: float, statistics: Statistics) -> np.ndarray:
        """w of words in ``r`` of R documents, times a factor."""
        # Judged documents may be from after an as-of view, which does not count them.
        n = np.maximum(statistics.df[terms], r)
        N = max(statistics.n_docs, R)
        others = np.maximum(N - n - R + r, 0.0)
        w = np.log((r + 0.5) * (others + 0.5) / ((n - r + 0.5) * (np.maximum(R - r, 0.0) + 0.5)))
        return np.maximum(w * factor, LEAST)


# -- ties as Java's HashMap breaks them --------------------------------------------------------------------------


def java_order(terms: np.ndarray, feedback: Feedback, statistics: Statistics) -> np.ndarray:
    """Positions of the terms in the order in which Anserini's maps list them: where offers tie, it decides.

    Each document's words go through a HashSet of their own, then through one of all documents, then through a map.
    """
    words, rows = statistics.vocabulary, feedback.rows
    assert words is not None  # their spelling was looked at
    everything: dict[int, int] = {}
    for start, stop in pairwise(rows.ptr.tolist()):
        hashes = {t: _java_hash(words[t]) for t in rows.terms[start:stop].tolist()}
        everything.update((t, hashes[t]) for t in _listed(hashes) if t not in everything)
    place = {t: i for i, t in enumerate(terms.tolist())}
    return np.array([place[t] for t in _listed({t: everything[t] for t in _listed(everything) if t in place})], int)


def _listed(hashes: dict[int, int]) -> list[int]:
    """Keys that were put into a HashMap in this order, as it lists them: by bucket, older ones first."""
    buckets = 16
    while len(hashes) > 0.75 * buckets:
        buckets *= 2
    return sorted(hashes, key=lambda key: hashes[key] & (buckets - 1))


def _java_hash(text: str) -> int:
    """String.hashCode as HashMap spreads it."""
    h = 0
    for unit in array("H", text.encode("utf-16-le")):
        h = (31 * h + unit) & 0xFFFFFFFF
    return h ^ (h >> 16)
