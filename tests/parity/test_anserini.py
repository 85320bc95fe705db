"""What Anserini and Lucene compute, computed again here: first stages, scores, and RM3 term by term.

The MAP figures are those of Anserini's documented CACM regression (BM25, QL with mu 1000, and RM3 over each),
judged by ``qrels.cacm.txt`` as Anserini supplies it.
"""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.anserini import lucene_searcher
from sdretrieval.collection.corpus import Reader
from sdretrieval.collection.corpus.record import Document
from sdretrieval.collection.records import Topic
from sdretrieval.collection.trec import read_qrels, read_topics
from sdretrieval.core.jvm import java_class
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import search

pytestmark = pytest.mark.java


# -- CACM ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cacm(shared_data, tmp_path_factory):
    """CACM from its original archive, with the document vectors that Anserini's RM3 wants."""
    folder = shared_data / "cacm"
    for name in ("cacm.tar.gz", "topics.cacm.txt", "qrels.cacm.txt"):
        if not (folder / name).exists():
            pytest.skip(f"{folder / name} is not on this machine")
    index = tmp_path_factory.mktemp("cacm") / "index"
    summary = build_index(Reader().read([folder / "cacm.tar.gz"]), index, store_docvectors=True)
    # Anserini's regression page for CACM (HtmlCollection, default analyzer) gives these three numbers.
    assert (summary.documents, summary.terms, summary.tokens) == (3204, 14363, 320968)
    assert (summary.empty, summary.skipped) == (0, 0)
    topics = read_topics(folder / "topics.cacm.txt")
    assert len(topics) == 64
    return index, topics, read_qrels(folder / "qrels.cacm.txt")


def mean_average_precision(run, qrels) -> float:
    import pytrec_eval

    values = pytrec_eval.RelevanceEvaluator(dict(qrels), {"map"}).evaluate(run.to_dict())
    assert len(values) == 52  # topics with judgments
    return float(np.mean([value["map"] for value in values.values()]))


@pytest.mark.shared
@pytest.mark.parametrize(
    ("model", "settings", "documented"), [("lucene-bm25", {}, 0.3123), ("lucene-qld", {"mu": 1000.0}, 0.3265)]
)
def test_first_stages_have_the_documented_map(cacm, model, settings, documented):
    index, topics, qrels = cacm
    judged = [topic for topic in topics if topic.qid in qrels]
    run = search(index, judged, make_ranker(model, settings), hits=1000)
    assert round(mean_average_precision(run, qrels), 4) == documented


@pytest.mark.shared
@pytest.mark.parametrize(("first_stage", "documented"), [("bm25", 0.3648), ("ql", 0.3629)])
def test_rm3_has_the_documented_map(cacm, first_stage, documented):
    index, topics, qrels = cacm
    model = make_ranker("rm3", {"first_stage": first_stage}, profile="anserini")
    assert (model.fb_docs, model.fb_terms, model.original_query_weight, model.mu) == (10, 10, 0.5, 1000.0)
    run = search(index, topics, model, hits=1000)
    assert mean_average_precision(run, qrels) == pytest.approx(documented, abs=0.0005)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("first_stage", "fb_docs", "fb_terms", "original_query_weight"),
    [("bm25", 10, 10, 0.5), ("ql", 10, 10, 0.5), ("ql", 5, 30, 0.25)],
)
def test_rm3_is_anserinis_term_by_term(cacm, first_stage, fb_docs, fb_terms, original_query_weight):
    """Every topic's expanded query (every fourth with other settings) is the one that Rm3Reranker ran, and its
    best documents have the scores that it gave them.

    Feedback documents are given in Lucene's order: between equal scores Anserini takes the lower docid first.
    """
    from sdretrieval.core.jvm import java_class

    index, topics, _ = cacm
    if fb_docs != 10:
        topics = topics[::4]
    snapshot = open_snapshot(index)
    engine = Engine(snapshot)
    model = make_ranker(
        "rm3",
        {
            "mode": "anserini",
            "first_stage": first_stage,
            "fb_docs": fb_docs,
            "fb_terms": fb_terms,
            "original_query_weight": original_query_weight,
        },
    )
    anserini = java_class("io.anserini.search.SimpleSearcher")(str(index))
    try:
        for topic in topics:
            if first_stage == "bm25":
                anserini.set_bm25(0.9, 0.4)
            else:
                anserini.set_qld(1000.0)
            anserini.unset_rm3()
            first = [hit.docid for hit in anserini.search(topic.text, fb_docs)]
            anserini.set_rm3(None, fb_terms, fb_docs, original_query_weight, False, True)
            feedback_terms = anserini.get_feedback_terms(topic.text).entrySet().toArray()
            theirs = {entry.getKey(): entry.getValue() for entry in feedback_terms}
            query = Query.from_topic(snapshot, topic)
            candidates = {topic.qid: snapshot.docids.find_many(first)}
            plan = next(engine.rank(model, [query], RankOptions(candidates=candidates))).plan
            ours = dict(zip(map(snapshot.term, plan.model.terms.tolist()), plan.model.weights.tolist(), strict=True))
            # Words that no document has stand in Anserini's query too; they find nothing.
            known = {term: weight for term, weight in theirs.items() if snapshot.term_id(term) >= 0}
            assert set(theirs) - set(known) == set(query.unknown), topic.qid
            assert ours == pytest.approx(known, rel=1e-5), topic.qid
            ((docs, scores),) = engine.score_all([plan])
            by_docid = dict(zip(snapshot.docids.take(docs), scores.tolist(), strict=True))
            best = {hit.docid: hit.score for hit in anserini.search(topic.text, 10)}  # rounded to four digits
            assert best == pytest.approx({docid: by_docid[docid] for docid in best}, abs=7e-5), topic.qid
    finally:
        anserini.close()


# -- Lucene's scores -----------------------------------------------------------------------------------------

SIMILARITIES = {
    "lucene-bm25": ("BM25Similarity", {"k1": 0.9, "b": 0.4}),
    "lucene-qld": ("LMDirichletSimilarity", {"mu": 700.0}),
    "lucene-qljm": ("LMJelinekMercerSimilarity", {"lam": 0.3}),
}
QUERIES = ["w0", "w1 w2 w3", "w5 w5 w9", "w40 w150 w0 w1", "w199", "w3 absent w3 w3"]


@pytest.fixture(scope="module")
def small_index(tmp_path_factory):
    """Random texts of 1 to 3000 words: many lengths that one byte cannot hold, frequent and rare words."""
    rng = np.random.default_rng(20)
    words = np.array([f"w{i}" for i in range(200)])
    share = 1.0 / np.arange(1, 201)
    share /= share.sum()
    lengths = np.unique(np.geomspace(1, 3000, 80).astype(int))
    documents = (Document(f"d{n}", " ".join(rng.choice(words, size=size, p=share))) for n, size in enumerate(lengths))
    index = tmp_path_factory.mktemp("small") / "index"
    build_index(documents, index)
    return index


def scored_by_lucene(index, similarity, values, texts):
    """docid -> score for each text, straight from Lucene's IndexSearcher (Anserini rounds to four digits)."""
    with lucene_searcher(index, similarity, values) as searcher:
        analyzer = java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newDefaultInstance()
        generator = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")()
        stored = searcher.storedFields()
        for text in texts:
            found = searcher.search(generator.buildQuery("contents", analyzer, text), 10_000).scoreDocs
            yield {stored.document(hit.doc).get("id"): hit.score for hit in found}


@pytest.mark.parametrize("name", SIMILARITIES)
def test_plans_give_lucenes_scores(small_index, name):
    similarity, settings = SIMILARITIES[name]
    snapshot = open_snapshot(small_index)
    engine, model = Engine(snapshot), make_ranker(name, settings)
    theirs = scored_by_lucene(small_index, similarity, settings.values(), QUERIES)
    for text, expected in zip(QUERIES, theirs, strict=True):
        query = Query.from_words(snapshot, text.split())
        ((docs, scores),) = engine.score_all([model.first(query, snapshot.statistics)])
        ours = dict(zip(snapshot.docids.take(docs), scores.tolist(), strict=True))
        assert expected, text
        # Lucene computes in single precision; a Dirichlet score near its floor is a difference of two others.
        assert ours == pytest.approx(expected, rel=1e-5, abs=2e-6), text


@pytest.mark.parametrize("name", SIMILARITIES)
def test_search_runs_lucene_itself_with_the_same_result(small_index, name):
    """``search`` asks Lucene itself: the same documents, with the scores that Anserini rounded."""
    _, settings = SIMILARITIES[name]
    snapshot = open_snapshot(small_index)
    engine, model = Engine(snapshot), make_ranker(name, settings)
    run = search(small_index, [Topic(str(i), text) for i, text in enumerate(QUERIES)], model, hits=10_000)
    for i, text in enumerate(QUERIES):
        query = Query.from_words(snapshot, text.split())
        ((docs, scores),) = engine.score_all([model.first(query, snapshot.statistics)])
        ours = dict(zip(snapshot.docids.take(docs), scores.tolist(), strict=True))
        # Four decimals, and one millionth less for each tie that is broken.
        assert dict(run[str(i)]) == pytest.approx(ours, abs=0.00005 + 1e-6 * len(ours)), text
