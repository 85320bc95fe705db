"""BM25 in Lucene's form, over exact document lengths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdretrieval.core.parameters import parameter, share
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Plan, Ranker, register
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import BM25


def k1_parameter(default: float = 0.9):
    return parameter(default, "BM25 saturation", symbol="k1", low=0.0, high=100.0, open=True, grid=(0.6, 0.9, 1.2, 1.6))


def b_parameter(default: float = 0.4):
    return share(default, "BM25 length normalisation", symbol="b", grid=(0.2, 0.4, 0.6, 0.75))


@register
@dataclass(frozen=True, kw_only=True)
class BM25Ranker(Ranker):
    """Σ_w f^Q_w · idf_w · f_w / (f_w + k1 (1 - b + b |D|/avg)). Anserini's k1 and b; exact lengths."""

    name: ClassVar[str] = "bm25"
    description: ClassVar[str] = "BM25 as Lucene defines it, over exact document lengths"

    k1: float = k1_parameter()
    b: float = b_parameter()

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), BM25(self.k1, self.b))
