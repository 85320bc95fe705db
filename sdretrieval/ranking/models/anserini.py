"""Anserini's RM3, term by term: not the relevance model of the literature, but what many papers report.

io.anserini.rerank.lib.Rm3Reranker takes each feedback document's ``fb_terms`` most frequent terms (of 2 to
20 characters [a-z0-9], in at most a tenth of the documents), L1-normalises them, adds them up weighted by the
*raw* retrieval score, keeps the ``fb_terms`` strongest, normalises, and mixes with the query. Lucene scores
with one-byte document lengths in both passes. Ties between terms are broken alphabetically. Query words that
no document has keep their share of the query's weight, and all weights are in single precision.

Anserini looks at no more than its ``-rerankCutoff`` documents (50 unless told otherwise) whatever ``fb_docs``
says; here ``fb_docs`` alone decides. tests/parity/test_anserini.py compares both, term by term.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan
from sdretrieval.ranking.feedback import Feedback, uniform
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, LuceneDirichlet, Weighting

if TYPE_CHECKING:
    from sdretrieval.ranking.models.axiomatic import Axiomatic
    from sdretrieval.ranking.models.relevance_model import RM3

MAX_DF_SHARE = 0.1


@lru_cache(maxsize=12)
def spelled(statistics: Statistics, pattern: str, model: str) -> np.ndarray:
    """Which terms are spelled as the whole pattern says."""
    if statistics.vocabulary is None:
        raise ParameterError(f"Anserini's {model} looks at the spelling of terms; here is no vocabulary")
    matches = re.compile(pattern).fullmatch
    return np.fromiter((matches(term) is not None for term in statistics.vocabulary), dtype=bool)


@lru_cache(maxsize=4)
def _usable(statistics: Statistics) -> np.ndarray:
    """Which terms Anserini takes into a feedback vector."""
    df_share = statistics.df.astype(np.float32) / np.float32(statistics.n_docs)
    return spelled(statistics, "[a-z0-9]{2,20}", "RM3") & (df_share <= np.float32(MAX_DF_SHARE))


def lucene_weighting(kind: str, model: RM3 | Axiomatic) -> Weighting:
    """What Lucene ranks with: BM25 or Dirichlet, lengths in one byte."""
    return BM25(model.k1, model.b, lucene_lengths=True) if kind == "bm25" else LuceneDirichlet(model.mu)


def first_plan(model: RM3, query: Query) -> Plan:
    return Plan(query.as_counts(), lucene_weighting(model.first_stage, model))


def expand(model: RM3, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
    scores = feedback.emphasised(np.ones(len(feedback)) if feedback.judged else feedback.scores)
    estimated = _relevance_model(feedback, scores, model.fb_terms, _usable(statistics))
    mixed = _interpolated(_query_vector(query), estimated, model.original_query_weight)
    weights = scores / scores.sum() if scores.sum() > 0 else uniform(len(scores))
    return Expansion(Plan(mixed, lucene_weighting(model.first_stage, model)), weights)


def _relevance_model(feedback: Feedback, scores: np.ndarray, fb_terms: int, usable: np.ndarray) -> TermModel:
    """The documents' vectors, each cut and normalised, added up in rank order and in single precision.

    Terms that stand in the same documents must come out equal to the last bit, as they do in Java: then the
    alphabet decides which of them are cut.
    """
    terms, sums = feedback.rows.sum_cut(scores, fb_terms, usable)
    return _single(TermModel(terms, sums.astype(np.float64)).strongest(fb_terms).normalised())


def _query_vector(query: Query) -> TermModel:
    """f^Q / |Q|, where |Q| counts unknown words too: they take their share of the weight and find nothing."""
    return _single(TermModel(query.terms, query.counts / max(query.length + len(query.unknown), 1.0)))


def _interpolated(query: TermModel, estimated: TermModel, query_weight: float) -> TermModel:
    share = float(np.float32(query_weight))
    return _single(_single(query.scaled(share)).plus(estimated.scaled(1.0 - share)))


def _single(model: TermModel) -> TermModel:
    """Rounded to single precision."""
    return TermModel(model.terms, model.weights.astype(np.float32).astype(np.float64))
