"""First-stage search inside Lucene, through Anserini's SimpleSearcher."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.jvm import java_class
from sdretrieval.core.progress import progress
from sdretrieval.index.index_notes import analyzer_of
from sdretrieval.index.lucene.analysis import java_analyzer
from sdretrieval.index.lucene.contents import opened


@dataclass(frozen=True)
class Similarity:
    """One of Lucene's own: ``bm25`` (k1, b), ``qld`` (mu) or ``qljm`` (lam)."""

    kind: str
    parameters: Mapping[str, float]


def lucene_search(
    index: Path,
    topics: Sequence[Topic],
    similarity: Similarity,
    *,
    tag: str = "lucene",
    hits: int = 1000,
    analyzer: AnalyzerSpec | None = None,
) -> Run:
    """Rank topics with one of Lucene's own similarities; analysed as the index says where no ``analyzer`` is given."""
    find = _find_with_lucene if similarity.kind == "qljm" else _find_with_anserini
    with closing(find(index, similarity, hits, java_analyzer(analyzer or analyzer_of(index)))) as finder:
        next(finder)  # to its first question
        rankings = {
            topic.qid: Ranking(*finder.send(topic.text))
            for topic in progress(topics, total=len(topics), label="searching", unit="topic")
        }
    return Run(rankings, tag)


# A query text in, (docids, scores) out.
Finder = Generator[tuple[list[str], list[float]], str, None]


def _find_with_anserini(index: Path, similarity: Similarity, hits: int, analyzer: Any) -> Finder:
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(index.absolute()))
    searcher.set_analyzer(analyzer)
    if similarity.kind == "bm25":
        searcher.set_bm25(similarity.parameters["k1"], similarity.parameters["b"])
    else:
        searcher.set_qld(similarity.parameters["mu"])
    try:
        text = yield [], []
        while True:
            found = searcher.search(text, hits)
            text = yield [hit.docid for hit in found], [hit.score for hit in found]
    finally:
        searcher.close()


def _find_with_lucene(index: Path, similarity: Similarity, hits: int, analyzer: Any) -> Finder:
    """SimpleSearcher has no Jelinek-Mercer: the same query on Lucene's IndexSearcher."""
    with opened(index) as reader:
        from jnius import cast  # once the JVM runs

        # Named as what the constructor wants: pyjnius would pick the one for IndexReaderContext.
        of_reader = java_class("org.apache.lucene.search.IndexSearcher")
        searcher = of_reader(cast("org.apache.lucene.index.IndexReader", reader))
        jelinek_mercer = java_class("org.apache.lucene.search.similarities.LMJelinekMercerSimilarity")
        searcher.setSimilarity(jelinek_mercer(similarity.parameters["lam"]))
        generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        stored = reader.storedFields()
        # As SimpleSearcher does: equal scores by docid, not by Lucene's numbers, which tell how an index came about.
        ties = java_class("io.anserini.search.SimpleSearcher").BREAK_SCORE_TIES_BY_DOCID
        text = yield [], []
        while True:
            found = searcher.search(generator.buildQuery("contents", analyzer, text), hits, ties, True).scoreDocs
            text = yield [stored.document(hit.doc).get("id") for hit in found], [hit.score for hit in found]
