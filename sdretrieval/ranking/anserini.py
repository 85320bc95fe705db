"""Anserini's RM3, term by term: not the relevance model of the literature, but what many papers report.

io.anserini.rerank.lib.Rm3Reranker takes each feedback document's ``fb_terms`` most frequent terms (of 2 to 20
characters [a-z0-9], in at most a tenth of the documents), L1-normalises them, adds them up weighted by the *raw*
retrieval score, keeps the ``fb_terms`` strongest, normalises, and mixes with the query. Lucene scores with one-byte
document lengths in both passes. Ties between terms are broken alphabetically.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.errors import ParameterError
from sdretrieval.ranking.base import Expansion, Plan
from sdretrieval.ranking.feedback import Feedback
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, LuceneDirichlet, Weighting
from sdretrieval.statistics import Statistics

if TYPE_CHECKING:
    from sdretrieval.ranking.relevance_model import RM3

MAX_DF_SHARE = 0.1
_spelled_well = re.compile(r"[a-z0-9]{2,20}").fullmatch


@lru_cache(maxsize=4)
def _usable(statistics: Statistics) -> np.ndarray:
    """Which terms Anserini takes into a feedback vector."""
    if statistics.vocabulary is None:
        raise ParameterError("Anserini's RM3 looks at the spelling of terms; these statistics have no vocabulary")
    spelling = np.fromiter((_spelled_well(t) is not None for t in statistics.vocabulary), dtype=bool)
    return spelling & (statistics.df <= MAX_DF_SHARE * statistics.n_docs)


def lucene_weighting(model: RM3) -> Weighting:
    """What Lucene ranks with: BM25 or Dirichlet, lengths in one byte."""
    if model.first_stage == "bm25":
        return BM25(model.k1, model.b, lucene_lengths=True)
    return LuceneDirichlet(model.mu)


def first_plan(model: RM3, query: Query) -> Plan:
    return Plan(query.as_counts(), lucene_weighting(model))


def expand(model: RM3, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
    usable = _usable(statistics)
    rows, scores = feedback.rows, np.ones(len(feedback)) if feedback.judged else feedback.scores
    collected: list[TermModel] = []
    for i in range(len(rows)):
        span = slice(rows.ptr[i], rows.ptr[i + 1])
        terms, counts = rows.terms[span].astype(np.int64), rows.counts[span].astype(np.float64)
        keep = usable[terms]
        document = TermModel(terms[keep], counts[keep]).strongest(model.fb_terms).normalised()
        collected.append(document.scaled(float(scores[i])))
    joined = TermModel.of(
        np.concatenate([m.terms for m in collected]) if collected else np.zeros(0, dtype=np.int64),
        np.concatenate([m.weights for m in collected]) if collected else np.zeros(0),
    )
    cut = joined.strongest(model.fb_terms).normalised()
    mixed = cut.mixed(query.as_distribution(), model.original_query_weight)
    weights = scores / scores.sum() if len(scores) and scores.sum() > 0 else scores
    return Expansion(Plan(mixed, lucene_weighting(model)), weights)
