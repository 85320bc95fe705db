"""Anserini's axiomatic feedback, BM25PRF and SDM, computed again here: weights and scores, and MAP on cranfield."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from benchmarks.anserini import RERANK_CUTOFF, SYSTEMS, anserini_run
from sdretrieval.collection.corpus import Reader
from sdretrieval.collection.corpus.record import Document
from sdretrieval.collection.records import Topic
from sdretrieval.collection.trec import read_qrels, read_topics
from sdretrieval.evaluate import evaluate
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import open_snapshot
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.models.anserini_axiomatic import java_random
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import search

pytestmark = pytest.mark.java

MODELS = {"BM25+Ax": ("axiomatic", {}), "QLD+Ax": ("axiomatic", {"scoring": "ql"}), "BM25PRF": ("bm25prf", {})}


def test_dice_are_javas():
    """As ``new Random(42)`` gives them; also for a power of two, which Java treats apart."""
    from sdretrieval.core.jvm import java_class

    for bound in (10, 64, 1400, 2**30 + 1):
        java = java_class("java.util.Random")(42)
        assert list(islice(java_random(42, bound), 50)) == [java.nextInt(bound) for _ in range(50)], bound


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """700 texts of ten themes, so that words come together; some words have digits, which Anserini passes over."""
    rng = np.random.default_rng(4)
    letters = list("bdfgklmnprtvz")
    words = np.array(sorted({"".join(rng.choice(letters, 4)) for _ in range(300)} | {f"x{i}" for i in range(20)}))
    general = rng.dirichlet(np.full(len(words), 0.3))
    themes = 0.6 * rng.dirichlet(np.full(len(words), 0.05), size=10) + 0.4 * general
    documents = [
        Document(f"d{n:03d}", " ".join(rng.choice(words, size=int(rng.integers(5, 120)), p=themes[n % 10])))
        for n in range(700)
    ]
    index = tmp_path_factory.mktemp("generated") / "index"
    build_index(iter(documents), index, store_docvectors=True)
    topics = [Topic(str(n), " ".join(rng.choice(words, size=1 + n % 5, p=themes[n % 10]))) for n in range(10)]
    topics.append(Topic("twice", f"{topics[4].text} {topics[4].text} unheardof"))
    return index, topics


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_of_the_tables_runs(generated, system):
    index, topics = generated
    run = anserini_run(index, topics[:3], system, hits=5)
    assert [len(run[topic.qid]) for topic in topics[:3]] == [5, 5, 5]


@pytest.mark.parametrize("system", MODELS)
def test_scores_are_anserinis(generated, system):
    """Every document's score, from feedback documents in Lucene's order: it takes the lower docid first in ties."""
    index, topics = generated
    name, settings = MODELS[system]
    model = make_ranker(name, settings, profile="anserini")
    first = anserini_run(index, topics, "BM25" if SYSTEMS[system][0] == "bm25" else "QLD", RERANK_CUTOFF)
    theirs = anserini_run(index, topics, system)
    snapshot = open_snapshot(index)
    engine = Engine(snapshot)
    for topic in topics:
        query = Query.from_topic(snapshot, topic)
        candidates = {topic.qid: snapshot.docids.find_many(first[topic.qid].docids)}
        plan = next(engine.rank(model, [query], RankOptions(candidates=candidates))).plan
        ((docs, scores),) = engine.score_all([plan])
        ours = dict(zip(snapshot.docids.take(docs), scores.tolist(), strict=True))
        # A millionth less for each tie that Anserini breaks.
        assert dict(theirs[topic.qid]) == pytest.approx(ours, rel=2e-5, abs=1e-6 * len(ours)), topic.qid


def test_windows_are_lucenes(generated):
    """Every document's score, rounded to four digits as Anserini does; with a word typed twice and one unheard of."""
    index, topics = generated
    topics = [*topics, Topic("echo", " ".join(topics[4].text.split()[:1] * 3))]
    ours = search(index, topics, make_ranker("sdm", profile="anserini"))
    theirs = anserini_run(index, topics, "SDM")
    plain = search(index, topics, make_ranker("sdm", {"ordered_weight": 0.0, "near_weight": 0.0}, profile="anserini"))
    for topic in topics:
        assert dict(theirs[topic.qid]) == pytest.approx(dict(ours[topic.qid]), abs=6e-5 + 1e-6 * len(ours[topic.qid]))
    assert any(dict(plain[topic.qid]) != dict(ours[topic.qid]) for topic in topics)


@pytest.fixture(scope="module")
def cranfield(shared_data, tmp_path_factory):
    folder = shared_data / "cranfield"
    if not (folder / "docs.jsonl.gz").exists():
        pytest.skip(f"{folder} is not on this machine")
    index = tmp_path_factory.mktemp("cranfield") / "index"
    build_index(Reader().read([folder / "docs.jsonl.gz"]), index, store_docvectors=True, threads=1)
    return folder, index


@pytest.mark.shared
@pytest.mark.parametrize("system", ["BM25+Ax", "BM25PRF", "SDM"])
def test_map_on_cranfield_is_anserinis(cranfield, system):
    """Every thirtieth topic: Anserini takes a second for each. ``python -m benchmarks.results Ranking`` has all."""
    folder, index = cranfield
    topics, qrels = read_topics(folder / "topics.tsv")[::30], read_qrels(folder / "qrels.txt")
    qrels = {topic.qid: qrels[topic.qid] for topic in topics if topic.qid in qrels}
    name, settings = MODELS.get(system, ("sdm", {}))
    ours = search(index, topics, make_ranker(name, settings, profile="anserini"), hits=1000)
    theirs = anserini_run(index, topics, system)
    expected = evaluate(theirs, qrels, ["AP"]).mean["AP"]
    assert evaluate(ours, qrels, ["AP"]).mean["AP"] == pytest.approx(expected, abs=5e-5)
