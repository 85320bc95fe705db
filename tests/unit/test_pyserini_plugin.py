"""The Pyserini plugin: Anserini's own hits, Pyserini's own searcher, and a JVM that either side started."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import types
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

import pytest
from lucene_writing import without_notes

from sdretrieval.collection.corpus.record import Document
from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.jvm import java_class, start_jvm
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.plugins.pyserini import Hit, Reranker
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import rerank, search
from sdretrieval.ranking.time.wrappers import AsOf

pytestmark = pytest.mark.java

SUBJECTS = ["river", "bridge", "steel", "flood", "harvest", "grain"]
QUERY = "running rivers and the steel bridge"


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Path:
    """Thirty short texts over a few subjects; every third one also tells of running."""
    path = tmp_path_factory.mktemp("plugin") / "index"
    texts = []
    for n in range(30):
        words = [SUBJECTS[(n * k) % len(SUBJECTS)] for k in range(1, 4 + n % 5)]
        texts.append(" ".join([*words, f"place{n % 7}", "running water" if n % 3 == 0 else "still water"]))
    build_index((Document(f"doc{n:02d}", text) for n, text in enumerate(texts)), path)
    return path


class StandIn:
    """What the plugin uses of a LuceneSearcher, over the real SimpleSearcher."""

    def __init__(self, index_dir: Path) -> None:
        self.index_dir = str(index_dir)
        self.object = java_class("io.anserini.search.SimpleSearcher")(self.index_dir)

    def search(self, q: str, k: int = 10) -> list:
        return list(self.object.search(q, k))


@pytest.fixture(scope="module")
def searcher(index):
    return StandIn(index)


@pytest.fixture
def lucene_searcher(index, monkeypatch):
    """Pyserini's own LuceneSearcher, from its own file.

    ``pyserini.search`` imports torch for its other searchers, and Pyserini 2 downloads its list of prebuilt
    indexes when imported: these are stood in for.
    """
    start_jvm()
    import pyserini
    from pyserini.pyclass import autoclass

    folder, before = Path(pyserini.__file__).parent / "search", set(sys.modules)
    for name, place in (("pyserini.search", folder), ("pyserini.search.lucene", folder / "lucene")):
        module = types.ModuleType(name)
        module.__path__ = [str(place)]
        monkeypatch.setitem(sys.modules, name, module)
    prebuilt = types.ModuleType("pyserini.prebuilt_index_info")
    prebuilt.__getattr__ = lambda name: {}
    monkeypatch.setitem(sys.modules, prebuilt.__name__, prebuilt)
    module.JQuery = autoclass("org.apache.lucene.search.Query")
    module.JScoredDoc = autoclass("io.anserini.search.ScoredDoc")
    module.JQueryGenerator = autoclass("io.anserini.search.query.QueryGenerator")
    try:
        own = importlib.import_module("pyserini.search.lucene._searcher")
        yield own.LuceneSearcher(str(index))
    except ImportError as error:
        pytest.skip(f"Pyserini's searcher cannot be imported here: {error}")
    finally:
        for name in set(sys.modules) - before:
            if name.startswith("pyserini."):
                del sys.modules[name]


def expected_rerank(index, hits, model="sd3", query=QUERY, **arguments) -> dict[str, float]:
    """The same by way of TREC runs."""
    run = Run({"q": Ranking([hit.docid for hit in hits], [hit.score for hit in hits])})
    return dict(rerank(index, run, [Topic("q", query)], model, **arguments)["q"])


# -- hits in, hits out ---------------------------------------------------------------------------------------


def test_anserinis_hits_come_back_rescored(searcher, index):
    hits = searcher.search(QUERY, 12)
    before = [(hit.docid, hit.score) for hit in hits]
    rescored = Reranker(searcher, "sd3", fb_docs=5).rerank(QUERY, hits)
    assert {hit.docid: hit.score for hit in rescored} == pytest.approx(
        expected_rerank(index, hits, make_ranker("sd3", {"fb_docs": 5})), rel=1e-6
    )  # Java's scores are in single precision
    assert all(type(hit) is type(hits[0]) for hit in rescored)
    assert [hit.score for hit in rescored] == sorted((hit.score for hit in rescored), reverse=True)
    assert [(hit.docid, hit.score) for hit in hits] == before
    numbers = {hit.docid: hit.lucene_docid for hit in hits}
    for hit in rescored:
        assert hit.lucene_docid == numbers[hit.docid]
        assert json.loads(hit.lucene_document.get("raw"))["id"] == hit.docid


def test_pyserinis_own_searcher(lucene_searcher, index):
    hits = lucene_searcher.search(QUERY, k=12)
    reranker = Reranker(lucene_searcher, "rm3", fb_docs=4)
    rescored = reranker.rerank(QUERY, hits)
    assert {hit.docid: hit.score for hit in rescored} == pytest.approx(
        expected_rerank(index, hits, make_ranker("rm3", {"fb_docs": 4})), rel=1e-6
    )
    assert json.loads(lucene_searcher.doc(rescored[0].docid).raw())["id"] == rescored[0].docid
    batch = lucene_searcher.batch_search([QUERY, "grain harvest"], ["a", "b"], k=12, threads=2)
    both = reranker.batch_rerank([QUERY, "grain harvest"], ["a", "b"], batch, threads=2)
    assert [(hit.docid, hit.score) for hit in both["a"]] == [(hit.docid, hit.score) for hit in rescored]
    assert {hit.docid for hit in both["b"]} == {hit.docid for hit in batch["b"]}


Pair = namedtuple("Pair", ["docid", "score", "note"])


@dataclass(frozen=True)
class DenseResult:
    """As Pyserini's dense searchers return."""

    docid: str
    score: float


class Plain:
    def __init__(self, docid: str, score: float) -> None:
        self.docid, self.score = docid, score


@pytest.mark.parametrize(
    "make", [lambda d, s: Pair(d, s, "kept"), DenseResult, Plain], ids=["tuple", "dataclass", "plain"]
)
def test_hits_of_other_kinds(index, make):
    hits = [make(f"doc{n:02d}", float(-n)) for n in (4, 7, 10, 1)]
    rescored = Reranker(index, "ql").rerank(QUERY, hits)
    assert {hit.docid: hit.score for hit in rescored} == expected_rerank(index, hits, "ql")
    assert all(type(hit) is type(hits[0]) for hit in rescored)
    assert [hit.score for hit in hits] == [-4.0, -7.0, -10.0, -1.0]
    if isinstance(hits[0], Pair):
        assert {hit.note for hit in rescored} == {"kept"}


def test_the_first_hits_are_the_feedback(index):
    """One feedback document, and it is the first of the list: other orders give other scores."""
    reranker = Reranker(index, "rm", fb_docs=1)
    docids = ["doc01", "doc02", "doc03", "doc05"]
    scores = set()
    for first in docids:
        hits = [DenseResult(d, 0.0) for d in [first, *(d for d in docids if d != first)]]
        scores.add(tuple(sorted((hit.docid, hit.score) for hit in reranker.rerank(QUERY, hits))))
    assert len(scores) == len(docids)


def test_judged_feedback(searcher, index):
    hits = searcher.search(QUERY, 12)
    judged = Qrels({"q": {hits[3].docid: 1, hits[4].docid: 1, hits[0].docid: 0}})
    rescored = Reranker(searcher, "sd").rerank(
        QUERY, hits, relevant=[hits[3].docid, hits[4].docid], nonrelevant=[hits[0].docid]
    )
    wanted = expected_rerank(index, hits, "sd", judged=judged)
    assert {hit.docid: hit.score for hit in rescored} == pytest.approx(wanted, rel=1e-6)
    found = Reranker(searcher, "sd").search(
        QUERY, 5, relevant=[hits[3].docid, hits[4].docid], nonrelevant=[hits[0].docid]
    )
    wanted = dict(search(index, [Topic("q", QUERY)], "sd", hits=5, judged=judged)["q"])
    assert {hit.docid: hit.score for hit in found} == wanted


# -- searching -----------------------------------------------------------------------------------------------


def test_search_is_the_packages_own(searcher, index):
    hits = Reranker(searcher, "sd3").search(QUERY, k=7)
    assert [(hit.docid, hit.score) for hit in hits] == list(search(index, [Topic("", QUERY)], "sd3", hits=7)[""])
    theirs = {hit.docid: hit.lucene_docid for hit in searcher.search(QUERY, 30)}
    assert hits[0].lucene_docid == theirs[hits[0].docid]
    assert json.loads(hits[0].lucene_document.get("raw"))["id"] == hits[0].docid
    assert len(Reranker(index).search(QUERY)) == 10  # Pyserini's default


def test_batch_search(index):
    queries, qids = [QUERY, "grain harvest", "flood"], ["1", "2", "3"]
    reranker = Reranker(index, "rm3")
    batch = reranker.batch_search(queries, qids, k=6, threads=2)
    assert list(batch) == qids
    for query, qid in zip(queries, qids, strict=True):
        assert batch[qid] == reranker.search(query, k=6)


def test_results_can_be_reranked_again(index):
    hits = Reranker(index, "bm25").search(QUERY, k=8)
    again = Reranker(index, "sd").rerank(QUERY, hits)
    assert all(isinstance(hit, Hit) for hit in again)
    assert again[0].lucene_document.get("id") == again[0].docid


def test_a_snapshot_in_memory_needs_no_index(index):
    counts = [[2, 1, 0], [0, 1, 1], [1, 0, 3]]
    reranker = Reranker(Snapshot.from_counts(counts, ["river", "steel", "flood"]), "ql")
    hits = reranker.search("steel flood", k=3)
    assert {hit.docid for hit in hits} == {"d0", "d1", "d2"}
    with pytest.raises(InputError, match="in memory"):
        _ = hits[0].lucene_document


def test_a_query_without_a_known_word(searcher, index):
    hits = searcher.search(QUERY, 5)
    reranker = Reranker(searcher, "sd3")
    assert reranker.search("zzz qqq") == []
    assert reranker.batch_search(["zzz"], ["a"]) == {"a": []}
    assert reranker.rerank("zzz qqq", hits) == hits
    assert reranker.rerank(QUERY, []) == []


# -- how queries are analysed --------------------------------------------------------------------------------


def test_the_searchers_analyzer_is_used_where_the_index_says_nothing(index, tmp_path):
    """An index of another tool, and a searcher told to split at blanks: `running` is not stemmed to `run`."""
    bare = tmp_path / "bare"
    shutil.copytree(index, bare)
    without_notes(bare)
    searcher = StandIn(bare)
    reranker = Reranker(searcher, "ql")
    assert len(reranker.search("running", 30)) == 10
    searcher.object.set_analyzer(java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")())
    assert reranker.search("running", 30) == []
    assert len(reranker.search("run", 30)) == 10
    assert len(Reranker(bare, "ql").search("running", 30)) == 10


def test_the_indexs_own_notes_come_first(index):
    searcher = StandIn(index)
    searcher.object.set_analyzer(java_class("org.apache.lucene.analysis.core.WhitespaceAnalyzer")())
    assert len(Reranker(searcher, "ql").search("running", 30)) == 10


# -- bad input -----------------------------------------------------------------------------------------------


def test_documents_that_are_not_in_the_index(index):
    hits = [DenseResult("doc01", 3.0), DenseResult("nowhere", 2.0), DenseResult("doc02", 1.0)]
    with pytest.raises(InputError, match=r"'nowhere' is not in the index .*1 of 3"):
        Reranker(index).rerank(QUERY, hits)
    kept = Reranker(index, missing="drop").rerank(QUERY, hits)
    assert {hit.docid for hit in kept} == {"doc01", "doc02"}
    assert Reranker(index, missing="drop").rerank(QUERY, hits[1:2]) == []
    with pytest.raises(InputError, match="'nowhere' is not in the index"):
        Reranker(index).search(QUERY, relevant=["nowhere"])


def test_what_is_refused(searcher, index):
    with pytest.raises(ParameterError, match="unknown model 'sd9'"):
        Reranker(index, "sd9")
    with pytest.raises(ParameterError, match="ql has no parameter 'fb_docs'"):
        Reranker(index, "ql", fb_docs=5)
    with pytest.raises(ParameterError, match="fb_docs: settings go with the name"):
        Reranker(index, make_ranker("rm3"), fb_docs=5)
    with pytest.raises(ParameterError, match="missing must be one of"):
        Reranker(index, missing="ignore")
    with pytest.raises(ParameterError, match="does not say where its index is"):
        Reranker(searcher.object)
    reranker = Reranker(index, make_ranker("rm3", {"fb_docs": 5}))
    with pytest.raises(ParameterError, match="hits must be at least 1; got 0"):
        reranker.search(QUERY, 0)
    with pytest.raises(ParameterError, match="2 queries, but 1 qids"):
        reranker.batch_search(["a", "b"], ["1"])
    with pytest.raises(ParameterError, match="qids must be unique"):
        reranker.batch_search(["a", "b"], ["1", "1"])
    with pytest.raises(InputError, match="hits for 'x', but no query"):
        reranker.batch_rerank(["a"], ["1"], {"x": []})
    with pytest.raises(InputError, match="a hit must have a docid"):
        reranker.rerank(QUERY, ["doc01"])
    with pytest.raises(InputError, match="docid 'doc01' is there twice"):
        reranker.rerank(QUERY, [DenseResult("doc01", 2.0), DenseResult("doc01", 1.0)])
    query = java_class("io.anserini.search.query.BagOfWordsQueryGenerator")().buildQuery(
        "contents", searcher.object.get_analyzer(), QUERY
    )
    with pytest.raises(ParameterError, match="a query must be a text"):
        reranker.search(query)


# -- who starts Java -----------------------------------------------------------------------------------------


def java_with_vector_module() -> Path | None:
    """A Java home that Pyserini can start by itself: 21 or later, with jdk.incubator.vector."""
    homes = [Path(home) for home in [os.environ.get("JAVA_HOME", "")] if home]
    for home in [*homes, *sorted(Path("/usr/lib/jvm").glob("*"))]:
        try:
            release = (home / "release").read_text()
        except OSError:
            continue
        version = re.search(r'JAVA_VERSION="(\d+)', release)
        if version and int(version[1]) >= 21 and "jdk.incubator.vector" in release:
            return home
    return None


def test_pyserini_may_start_java_first(index, tmp_path):
    """In a process of its own: Pyserini starts Java its own way; the snapshot is then built in that JVM."""
    home = java_with_vector_module()
    if home is None:
        pytest.skip("no Java >= 21 with jdk.incubator.vector here, which Pyserini's own start needs")
    script = (
        "import json, sys\n"
        "from pyserini.pyclass import autoclass\n"
        "started = autoclass('java.lang.System').getProperty('java.home')\n"
        "from sdretrieval.plugins.pyserini import Reranker\n"
        "hits = Reranker(sys.argv[1], 'sd3').search(sys.argv[2], k=7)\n"
        "print(json.dumps([started, [[hit.docid, hit.score] for hit in hits]]))\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, str(index), QUERY],
        env={**os.environ, "JAVA_HOME": str(home), "SDRETRIEVAL_SNAPSHOTS": str(tmp_path / "snapshots")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.returncode == 0, finished.stderr
    started, found = json.loads(finished.stdout.splitlines()[-1])
    assert Path(started).resolve() == home.resolve()
    assert any((tmp_path / "snapshots").iterdir())
    here = Reranker(index, "sd3").search(QUERY, k=7)
    assert found == [[hit.docid, hit.score] for hit in here]


def test_opening_twice_uses_one_snapshot(index):
    first, second = Reranker(index), Reranker(str(index))
    assert first.snapshot.fingerprint == second.snapshot.fingerprint == open_snapshot(index).fingerprint


def test_models_that_know_about_time_get_the_time_of_asking(tmp_path):
    documents = (Document(f"doc{n}", "river bridge", time=n * 86_400_000) for n in range(9))
    build_index(documents, tmp_path / "dated")
    model = Reranker(tmp_path / "dated", AsOf(ranker=make_ranker("bm25")))
    past = {f"doc{n}" for n in range(4)}
    found = model.search("river", time="1970-01-05")
    assert {hit.docid for hit in found} == past
    everything = Reranker(tmp_path / "dated", "bm25").search("river", 9)
    assert {hit.docid for hit in model.rerank("river", everything, time="1970-01-05")} == past
    times = {"a": "1970-01-05", "b": 0.0}
    batch = model.batch_search(["river", "bridge"], ["a", "b"], times=times)
    assert {hit.docid for hit in batch["a"]} == past and not batch["b"]
    assert {hit.docid for hit in model.batch_rerank(["river"], ["a"], {"a": everything}, times=times)["a"]} == past
    with pytest.raises(InputError, match="needs the time of every topic"):
        model.search("river")
    with pytest.raises(ParameterError, match="not a time"):
        model.search("river", time="soon")
