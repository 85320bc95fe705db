"""The built-in models: importing this registers them, in the order in which they are listed."""

# ruff: noqa: I001 - the order is the order of `sdretrieval models`
from sdretrieval.ranking.bm25 import BM25Ranker
from sdretrieval.ranking.query_likelihood import QueryLikelihood
from sdretrieval.ranking.rocchio import TfIdfRocchio
from sdretrieval.ranking.relevance_model import RM3, RelevanceModel
from sdretrieval.ranking.smoothed_dirichlet import SD3, SmoothedDirichlet
from sdretrieval.ranking.lucene_models import LuceneBM25, LuceneQLD, LuceneQLJM

__all__ = [
    "RM3",
    "SD3",
    "BM25Ranker",
    "LuceneBM25",
    "LuceneQLD",
    "LuceneQLJM",
    "QueryLikelihood",
    "RelevanceModel",
    "SmoothedDirichlet",
    "TfIdfRocchio",
]
