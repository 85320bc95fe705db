"""Anserini itself, through its SimpleSearcher: the peer in effectiveness tables."""

from __future__ import annotations

from pathlib import Path

from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.jvm import java_class

# name in tables -> calls on the searcher; all with Anserini's defaults
SYSTEMS = {
    "BM25": ("bm25", None),
    "BM25+RM3": ("bm25", "rm3"),
    "BM25+Rocchio": ("bm25", "rocchio"),
    "QLD": ("qld", None),
    "QLD+RM3": ("qld", "rm3"),
}


def anserini_run(index: Path, topics: list[Topic], system: str, hits: int = 1000) -> Run:
    """Rank with Anserini's own code; feedback needs an index with document vectors."""
    similarity, feedback = SYSTEMS[system]
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(index))
    try:
        if similarity == "bm25":
            searcher.set_bm25(0.9, 0.4)
        else:
            searcher.set_qld(1000.0)
        if feedback == "rm3":
            searcher.set_rm3()
        elif feedback == "rocchio":
            searcher.set_rocchio()
        rankings = {}
        for topic in topics:
            found = searcher.search(topic.text, hits)
            rankings[topic.qid] = Ranking([hit.docid for hit in found], [hit.score for hit in found])
        return Run(rankings, system)
    finally:
        searcher.close()
