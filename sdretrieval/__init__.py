"""sdretrieval: exact pseudo-relevance feedback and time-aware ranking over Lucene indexes.

    from sdretrieval import Index, evaluate, read_qrels, read_topics

    ix = Index("indexes/mine")
    for hit in ix.search("oil tanker spill", k=10):
        print(hit.rank, hit.date, hit.title)
    run = ix.search_topics(read_topics("topics.tsv"), "sd3")
    print(evaluate(run, read_qrels("qrels.txt"), ["AP", "P@5"]).mean)

Importing this package starts no JVM and imports neither pyserini nor torch: names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module it lives in
_HOMES = {
    "Index": "sdretrieval.ranking.interactive",
    "open_snapshot": "sdretrieval.index.snapshot",
    "Snapshot": "sdretrieval.index.snapshot",
    "search": "sdretrieval.ranking.retrieval",
    "rerank": "sdretrieval.ranking.retrieval",
    "make_ranker": "sdretrieval.ranking.registry",
    "Ranker": "sdretrieval.ranking.base",
    "explain": "sdretrieval.ranking.explain",
    "fuse": "sdretrieval.evaluate.fuse",
    "build_index": "sdretrieval.index.lucene.indexing",
    "read_corpus": "sdretrieval.collection.corpus",
    "read_topics": "sdretrieval.collection.trec",
    "read_run": "sdretrieval.collection.trec",
    "write_run": "sdretrieval.collection.trec",
    "read_qrels": "sdretrieval.collection.trec",
    "SdretrievalError": "sdretrieval.core.errors",
}
__all__ = [
    "Index",
    "Ranker",
    "SdretrievalError",
    "Snapshot",
    "__version__",
    "build_index",
    "evaluate",
    "explain",
    "fuse",
    "make_ranker",
    "open_snapshot",
    "read_corpus",
    "read_qrels",
    "read_run",
    "read_topics",
    "rerank",
    "search",
    "write_run",
]

if TYPE_CHECKING:
    from sdretrieval import evaluate
    from sdretrieval.collection.corpus import read_corpus
    from sdretrieval.collection.trec import read_qrels, read_run, read_topics, write_run
    from sdretrieval.core.errors import SdretrievalError
    from sdretrieval.evaluate.fuse import fuse
    from sdretrieval.index.lucene.indexing import build_index
    from sdretrieval.index.snapshot import Snapshot, open_snapshot
    from sdretrieval.ranking.base import Ranker
    from sdretrieval.ranking.explain import explain
    from sdretrieval.ranking.interactive import Index
    from sdretrieval.ranking.registry import make_ranker
    from sdretrieval.ranking.retrieval import rerank, search


def __getattr__(name: str) -> Any:
    import importlib  # only where it is needed

    if name == "evaluate":  # a room that can be called
        return importlib.import_module("sdretrieval.evaluate")
    if name not in _HOMES:
        raise AttributeError(f"module 'sdretrieval' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
