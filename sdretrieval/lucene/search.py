"""First-stage search inside Lucene, through Anserini's SimpleSearcher, and stored fields of documents."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.lucene.analysis import analyzer_of, java_analyzer
from sdretrieval.lucene.jvm import java_class
from sdretrieval.lucene.reader import opened
from sdretrieval.lucene.stored import parsed
from sdretrieval.progress import progress
from sdretrieval.records import Ranking, Run, Topic

if TYPE_CHECKING:
    from sdretrieval.ranking.lucene_models import LuceneRanker


def _searcher(index: Path):
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(index))
    searcher.set_analyzer(java_analyzer(analyzer_of(index)).analyzer)
    return searcher


def lucene_search(index: Path, topics: Sequence[Topic], model: LuceneRanker, *, hits: int = 1000) -> Run:
    """Rank topics with one of Lucene's own similarities."""
    find = _find_with_lucene if model.similarity == "qljm" else _find_with_anserini
    with closing(find(index, model, hits)) as finder:
        next(finder)  # to its first question
        rankings = {
            topic.qid: Ranking(*finder.send(topic.text))
            for topic in progress(topics, total=len(topics), label="searching", unit="topic")
        }
    return Run(rankings, model.name)


# A query text in, (docids, scores) out.
Finder = Generator[tuple[list[str], list[float]], str, None]


def _find_with_anserini(index: Path, model: LuceneRanker, hits: int) -> Finder:
    searcher = _searcher(index)
    if model.similarity == "bm25":
        searcher.set_bm25(model.k1, model.b)  # type: ignore[attr-defined]
    else:
        searcher.set_qld(model.mu)  # type: ignore[attr-defined]
    try:
        text = yield [], []
        while True:
            found = searcher.search(text, hits)
            text = yield [hit.docid for hit in found], [hit.score for hit in found]
    finally:
        searcher.close()


def _find_with_lucene(index: Path, model: LuceneRanker, hits: int) -> Finder:
    """SimpleSearcher has no Jelinek-Mercer: the same query on Lucene's IndexSearcher."""
    with opened(index) as reader:
        from jnius import cast

        # Named as what the constructor wants: pyjnius would pick the one for IndexReaderContext.
        of_reader = java_class("org.apache.lucene.search.IndexSearcher")
        searcher = of_reader(cast("org.apache.lucene.index.IndexReader", reader))
        similarity = java_class("org.apache.lucene.search.similarities.LMJelinekMercerSimilarity")
        searcher.setSimilarity(similarity(model.lam))  # type: ignore[attr-defined]
        generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        analyzer = java_analyzer(analyzer_of(index)).analyzer
        stored = reader.storedFields()
        text = yield [], []
        while True:
            found = searcher.search(generator.buildQuery("contents", analyzer, text), hits).scoreDocs
            text = yield [stored.document(hit.doc).get("id") for hit in found], [hit.score for hit in found]


def stored_document(index: Path, docid: str) -> dict[str, Any] | None:
    """The fields a document was indexed with; None where the index stores none (or has no such document)."""
    searcher = _searcher(index)
    try:
        document = searcher.doc(docid)
        return None if document is None else parsed(document.get("raw"))
    finally:
        searcher.close()
