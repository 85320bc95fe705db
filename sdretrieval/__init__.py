"""sdretrieval: exact pseudo-relevance feedback and time-aware ranking over Lucene indexes.

    from sdretrieval import read_qrels, read_topics, search
    from sdretrieval.evaluate import evaluate

    run = search("indexes/mine", read_topics("topics.tsv"), "sd3")
    print(evaluate(run, read_qrels("qrels.txt"), ["AP", "P@5"]).mean)

Importing this package starts no JVM and imports neither pyserini nor torch: names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# public name -> the module it lives in
_HOMES = {
    "open_snapshot": "sdretrieval.index.snapshot",
    "Snapshot": "sdretrieval.index.snapshot",
    "search": "sdretrieval.ranking.retrieval",
    "rerank": "sdretrieval.ranking.retrieval",
    "make_ranker": "sdretrieval.ranking.registry",
    "Ranker": "sdretrieval.ranking.base",
    "fuse": "sdretrieval.evaluate.fuse",
    "read_topics": "sdretrieval.collection.trec",
    "read_run": "sdretrieval.collection.trec",
    "write_run": "sdretrieval.collection.trec",
    "read_qrels": "sdretrieval.collection.trec",
    "SdretrievalError": "sdretrieval.core.errors",
}
__all__ = [
    "Ranker",
    "SdretrievalError",
    "Snapshot",
    "__version__",
    "fuse",
    "make_ranker",
    "open_snapshot",
    "read_qrels",
    "read_run",
    "read_topics",
    "rerank",
    "search",
    "write_run",
]

if TYPE_CHECKING:
    from sdretrieval.collection.trec import read_qrels, read_run, read_topics, write_run
    from sdretrieval.core.errors import SdretrievalError
    from sdretrieval.evaluate.fuse import fuse
    from sdretrieval.index.snapshot import Snapshot, open_snapshot
    from sdretrieval.ranking.base import Ranker
    from sdretrieval.ranking.registry import make_ranker
    from sdretrieval.ranking.retrieval import rerank, search


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sdretrieval' has no attribute {name!r}")
    import importlib  # only where it is needed

    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
