"""The built-in models: importing this registers them."""

from sdretrieval.ranking.bm25 import BM25Ranker
from sdretrieval.ranking.lucene_models import LuceneBM25, LuceneQLD, LuceneQLJM
from sdretrieval.ranking.query_likelihood import QueryLikelihood
from sdretrieval.ranking.relevance_model import RM3, RelevanceModel
from sdretrieval.ranking.rocchio import TfIdfRocchio
from sdretrieval.ranking.smoothed_dirichlet import SD3, SmoothedDirichlet

# As `sdretrieval models` lists them, whatever was imported first.
BUILT_IN = (
    BM25Ranker,
    QueryLikelihood,
    TfIdfRocchio,
    RelevanceModel,
    RM3,
    SmoothedDirichlet,
    SD3,
    LuceneBM25,
    LuceneQLD,
    LuceneQLJM,
)
