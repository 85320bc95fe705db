"""Lucene's own similarities as models: lucene-bm25, lucene-qld, lucene-qljm.

``search`` runs them inside Lucene itself (sdretrieval/index/lucene/search.py). Their plans give the same scores without
Java, up to Lucene's single precision: one-byte lengths, (cf+1)/(|C|+1) as collection model, Dirichlet floored at 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdretrieval.core.parameters import weight
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Plan, Ranker, register
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.models.query_likelihood import mu_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import BM25, LuceneDirichlet, LuceneJelinekMercer


@dataclass(frozen=True, kw_only=True)
class LuceneRanker(Ranker):
    """Base of the three: ``similarity`` is what lucene/search.py asks the searcher for."""

    similarity: ClassVar[str] = ""


@register
@dataclass(frozen=True, kw_only=True)
class LuceneBM25(LuceneRanker):
    name: ClassVar[str] = "lucene-bm25"
    description: ClassVar[str] = "BM25 run by Lucene itself"
    similarity: ClassVar[str] = "bm25"

    k1: float = k1_parameter()
    b: float = b_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), BM25(self.k1, self.b, lucene_lengths=True))


@register
@dataclass(frozen=True, kw_only=True)
class LuceneQLD(LuceneRanker):
    name: ClassVar[str] = "lucene-qld"
    description: ClassVar[str] = "query likelihood with Dirichlet smoothing, run by Lucene itself"
    similarity: ClassVar[str] = "qld"

    mu: float = mu_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), LuceneDirichlet(self.mu))


@register
@dataclass(frozen=True, kw_only=True)
class LuceneQLJM(LuceneRanker):
    name: ClassVar[str] = "lucene-qljm"
    description: ClassVar[str] = "query likelihood with Jelinek-Mercer smoothing, run by Lucene itself"
    similarity: ClassVar[str] = "qljm"

    lam: float = weight(0.1, "share of the *collection*, as Lucene counts it", symbol="λ")

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), LuceneJelinekMercer(self.lam))
