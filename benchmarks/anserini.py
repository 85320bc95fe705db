"""Anserini itself: the peer in effectiveness tables, nine systems of it, each with Anserini's defaults.

What its SimpleSearcher offers is asked of that. Axiomatic feedback and BM25PRF are rerankers of its SearchCollection
only, which looks for its indexes on the network: here they are given to Lucene's searcher as SearchCollection does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.jvm import java_class, start_jvm

# name in tables -> similarity, what is done besides
SYSTEMS = {
    "BM25": ("bm25", None),
    "BM25+RM3": ("bm25", "rm3"),
    "BM25+Rocchio": ("bm25", "rocchio"),
    "BM25+Ax": ("bm25", "axiom"),
    "BM25PRF": ("bm25", "bm25prf"),
    "QLD": ("qld", None),
    "QLD+RM3": ("qld", "rm3"),
    "QLD+Ax": ("qld", "axiom"),
    "SDM": ("bm25", "sdm"),
}
RERANK_CUTOFF = 50  # documents of the first pass that a reranker is given: SearchCollection's -rerankCutoff
SEED = 42  # SearchCollection's -axiom.seed; with -axiom.deterministic, so that a run can be had again


def anserini_run(index: Path, topics: list[Topic], system: str, hits: int = 1000) -> Run:
    """Rank with Anserini's own code; feedback needs an index with document vectors."""
    similarity, extra = SYSTEMS[system]
    rank = _reranked if extra in ("axiom", "bm25prf") else _searched
    return Run(dict(rank(index, topics, similarity, extra, hits)), system)


def _searched(
    index: Path, topics: list[Topic], similarity: str, extra: str | None, hits: int
) -> Iterator[tuple[str, Ranking]]:
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(index))
    try:
        if similarity == "bm25":
            searcher.set_bm25(0.9, 0.4)
        else:
            searcher.set_qld(1000.0)
        if extra == "rm3":
            searcher.set_rm3()
        elif extra == "rocchio":
            searcher.set_rocchio()
        generator = java_class("io.anserini.search.query.SdmQueryGenerator")() if extra == "sdm" else None
        for topic in topics:
            given = (topic.text, hits) if generator is None else (generator, topic.text, hits)
            found = searcher.search(*given)
            yield topic.qid, Ranking([hit.docid for hit in found], [hit.score for hit in found])
    finally:
        searcher.close()


def _reranked(
    index: Path, topics: list[Topic], similarity: str, extra: str | None, hits: int
) -> Iterator[tuple[str, Ranking]]:
    analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
    generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
    order = java_class("io.anserini.search.SearchCollection").BREAK_SCORE_TIES_BY_DOCID
    tie_breaker = java_class("io.anserini.rerank.lib.ScoreTiesAdjusterReranker")()
    tokens_of = java_class("io.anserini.analysis.AnalyzerUtils").analyze
    arguments = java_class("io.anserini.search.SearchCollection$Args")()
    arguments.hits = hits
    reranker = _reranker(index, analyzer, extra)
    kind, values = ("BM25", (0.9, 0.4)) if similarity == "bm25" else ("LMDirichlet", (1000.0,))
    with lucene_searcher(index, f"{kind}Similarity", values) as searcher:
        for topic in topics:
            query = generator.buildQuery("contents", analyzer, topic.text)
            first = searcher.search(query, RERANK_CUTOFF, order, True)
            context = java_class("io.anserini.rerank.RerankerContext")(
                searcher, topic.qid, query, None, topic.text, tokens_of(analyzer, topic.text), None, arguments
            )
            found = java_class("io.anserini.search.ScoredDocs").fromTopDocs(first, searcher)
            found = tie_breaker.rerank(reranker.rerank(found, context), context)
            yield topic.qid, Ranking(list(found.docids), list(found.scores))


def _reranker(index: Path, analyzer: Any, name: str | None) -> Any:
    """With the defaults of SearchCollection."""
    from jnius import cast  # the JVM runs by now

    analyzer = cast("org.apache.lucene.analysis.Analyzer", analyzer)
    if name == "bm25prf":
        make = java_class("io.anserini.rerank.lib.BM25PrfReranker")
        return make(analyzer, None, "contents", 20, 10, 0.9, 0.4, 0.2, False)
    make = java_class("io.anserini.rerank.lib.AxiomReranker")
    # It keeps the documents of the first index it saw for every later one, until one is made that throws dice.
    for deterministic in (False, True):
        made = make(
            analyzer, None, str(index), None, "contents", deterministic, SEED, 20, 30, 0.4, 20, None, False, False
        )
    return made


@contextmanager
def lucene_searcher(index: Path, similarity: str, values: Iterable[float]) -> Iterator[Any]:
    """Lucene's own IndexSearcher, with a similarity of these parameters."""
    start_jvm()
    from jnius import cast

    directory = java_class("org.apache.lucene.store.FSDirectory").open(
        java_class("java.nio.file.Paths").get(str(index))
    )
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    try:
        # The cast tells pyjnius which constructor is meant.
        searcher = java_class("org.apache.lucene.search.IndexSearcher")(
            cast("org.apache.lucene.index.IndexReader", reader)
        )
        searcher.setSimilarity(java_class(f"org.apache.lucene.search.similarities.{similarity}")(*values))
        yield searcher
    finally:
        reader.close()
        directory.close()
