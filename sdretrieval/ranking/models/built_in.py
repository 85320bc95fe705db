"""The built-in models: importing this registers them."""

from sdretrieval.ranking.models.bm25 import BM25Ranker
from sdretrieval.ranking.models.document_cross_entropy import DocumentCrossEntropy, DocumentRelevanceModel
from sdretrieval.ranking.models.lucene_models import LuceneBM25, LuceneQLD, LuceneQLJM
from sdretrieval.ranking.models.query_likelihood import QueryLikelihood
from sdretrieval.ranking.models.relevance_model import RM3, RelevanceModel
from sdretrieval.ranking.models.rocchio import TfIdfRocchio
from sdretrieval.ranking.models.smoothed_dirichlet import SD3, SmoothedDirichlet

# As `sdretrieval models` lists them, whatever was imported first.
BUILT_IN = (
    BM25Ranker,
    QueryLikelihood,
    TfIdfRocchio,
    RelevanceModel,
    RM3,
    SmoothedDirichlet,
    SD3,
    DocumentCrossEntropy,
    DocumentRelevanceModel,
    LuceneBM25,
    LuceneQLD,
    LuceneQLJM,
)
