"""The built-in models: importing this registers them, in the order in which they are listed."""

from sdretrieval.ranking.bm25 import BM25Ranker
from sdretrieval.ranking.query_likelihood import QueryLikelihood
from sdretrieval.ranking.relevance_model import RM3, RelevanceModel
from sdretrieval.ranking.rocchio import TfIdfRocchio
from sdretrieval.ranking.smoothed_dirichlet import SD3, SmoothedDirichlet

__all__ = ["RM3", "SD3", "BM25Ranker", "QueryLikelihood", "RelevanceModel", "SmoothedDirichlet", "TfIdfRocchio"]
