"""The built-in models: importing this registers them."""

from sdretrieval.ranking.models.axiomatic import Axiomatic
from sdretrieval.ranking.models.blend import Blend
from sdretrieval.ranking.models.bm25 import BM25Ranker
from sdretrieval.ranking.models.bm25_prf import BM25PRF
from sdretrieval.ranking.models.divergence import KL, Bo1
from sdretrieval.ranking.models.document_cross_entropy import DocumentCrossEntropy, DocumentRelevanceModel
from sdretrieval.ranking.models.dph import DPHRanker
from sdretrieval.ranking.models.lucene_models import LuceneBM25, LuceneQLD, LuceneQLJM
from sdretrieval.ranking.models.query_likelihood import QueryLikelihood
from sdretrieval.ranking.models.relevance_model import RM3, RelevanceModel
from sdretrieval.ranking.models.rocchio import TfIdfRocchio
from sdretrieval.ranking.models.sequential_dependence import SequentialDependence
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
    Blend,
    Axiomatic,
    BM25PRF,
    DPHRanker,
    Bo1,
    KL,
    SequentialDependence,
    DocumentCrossEntropy,
    DocumentRelevanceModel,
    LuceneBM25,
    LuceneQLD,
    LuceneQLJM,
)
