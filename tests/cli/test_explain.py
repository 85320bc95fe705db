"""``sdretrieval explain`` as it is typed."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from places import placed

from sdretrieval.cli.main import main
from sdretrieval.index.snapshot import Snapshot

WORDS = ["wing", "flow", "heat", "mach", "lift", "drag", "shock", "layer"]


@pytest.fixture
def index(monkeypatch) -> str:
    """A collection in memory, under the name of an index; no Java."""
    counts = np.random.default_rng(3).poisson(0.7, size=(30, len(WORDS)))
    snapshot = placed(Snapshot.from_counts(counts, WORDS))
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.lower().split())
    monkeypatch.setattr("sdretrieval.ranking.retrieval.open_snapshot", lambda path: snapshot)
    return "indexes/mine"


@pytest.fixture
def topics(tmp_path) -> str:
    path = tmp_path / "topics.tsv"
    path.write_text("1\twing flow\n2\theat of shock\n")
    return str(path)


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main(["explain", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_query_and_a_document(capsys, index):
    code, out, err = run(capsys, "--index", index, "--query", "wing flow", "--docid", "d3", "--top", 4)
    assert (code, err) == (0, "")
    headings = "Query query      wing flow|held back|part axiomatic|Feedback documents|Words of the model"
    for heading in (*headings.split("|"), "Document d3: rank "):
        assert heading in out
    assert "First of" not in out


def test_without_a_document_the_ranking_is_shown(capsys, index):
    code, out, _ = run(capsys, "--index", index, "--query", "wing flow", "--model", "bm25")
    assert code == 0
    assert "First of" in out and re.search("^model +bm25 ", out, flags=re.MULTILINE)
    assert "Feedback documents" not in out


def test_a_topic_of_a_file_as_json(capsys, index, topics):
    given = "--qid 2 --model sd --set fb_docs=5 --docid d3 --compare-docid d4 --json".split()
    code, out, _ = run(capsys, "--index", index, "--topics", topics, *given)
    data = json.loads(out)
    assert code == 0
    assert (data["qid"], data["unknown_words"], data["settings"]["fb_docs"]) == ("2", ["of"], 5)
    assert len(data["feedback"]) == 5
    for document in data["documents"]:
        total = sum(w["contribution"] for w in document["words"]) + sum(document["parts"].values())
        assert total == pytest.approx(document["score"], abs=1e-9)
    assert data["differences"]


def test_a_reranked_run(capsys, index, topics, tmp_path):
    (tmp_path / "run.txt").write_text("1 Q0 d7 1 3.0 x\n1 Q0 d2 2 2.0 x\n")
    args = ("--index", index, "--topics", topics, "--run", tmp_path / "run.txt", "--docid", "d2", "--json")
    code, out, _ = run(capsys, *args, "--qid", 1)
    assert code == 0
    assert sorted(d["docid"] for d in json.loads(out)["first_documents"]) == ["d2", "d7"]
    code, _, err = run(capsys, *args, "--qid", 2)
    assert code == 2
    assert "run.txt: no topic '2' in it" in err


def test_a_saved_expansion(capsys, index, topics, tmp_path):
    (tmp_path / "q.jsonl").write_text('{"qid": "1", "terms": {"heat": 2, "drag": 1}}\n')
    code, out, _ = run(
        capsys, "--index", index, "--topics", topics, "--qid", 1, "--expansion", tmp_path / "q.jsonl", "--json"
    )
    assert code == 0
    assert {w["word"]: w["weight"] for w in json.loads(out)["words"]} == {"heat": 2.0, "drag": 1.0}


def test_judged_documents(capsys, index):
    code, out, _ = run(
        capsys, "--index", index, "--query", "wing", "--model", "sd", "--relevant", "d1", "d2", "--nonrelevant", "d5"
    )
    assert code == 0
    assert "2 documents judged relevant" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--query", "wing", "--docid", "zz"], "docid 'zz' is not in index"),
        (["--query", "jabberwocky", "--docid", "d1"], "'jabberwocky'"),
        (["--query", ""], "nothing is left of ''"),
        ([], "give either --query TEXT, or --topics FILE with --qid ID"),
        (["--query", "wing", "--topics", "TOPICS"], "give either --query TEXT, or --topics FILE with --qid ID"),
        (["--topics", "TOPICS"], "--topics has 2 topics\n  Choose one with --qid: 1, 2."),
        (["--topics", "TOPICS", "--qid", "9"], "topics.tsv: no topic '9' in it\n  It has 1, 2."),
        (["--query", "wing", "--compare-docid", "d1"], "--compare-docid needs a document to compare with"),
        (["--query", "wing", "--model", "sd4"], "unknown model 'sd4'"),
        (["--query", "wing", "--set", "fb_docs=0"], "fb_docs"),
        (["--query", "wing", "--text"], "--text needs an index on disk"),
    ],
)
def test_refusals(capsys, index, topics, words, told):
    code, out, err = run(capsys, "--index", index, *(topics if word == "TOPICS" else word for word in words))
    assert (code, out) == (2, "")
    assert err.startswith("sdretrieval explain: ")
    assert told in err


@pytest.mark.java
def test_titles_from_a_real_index(capsys, tmp_path):
    texts = [("a", "Wings", "wings and flows"), ("b", "", "a flow of heat " * 10), ("c", "Shocks", "shocks")]
    with (tmp_path / "docs.jsonl").open("w") as stream:
        for docid, title, contents in texts:
            fields = {"id": docid, "contents": contents} | ({"title": title} if title else {})
            stream.write(json.dumps(fields) + "\n")
    index = tmp_path / "index"
    assert main(["index", "--input", str(tmp_path / "docs.jsonl"), "--index", str(index)]) == 0
    capsys.readouterr()
    code, out, err = run(
        capsys, "--index", index, "--query", "The flowing wings", "--docid", "a", "--text", "--model", "sd3"
    )
    assert (code, err) == (0, "")
    assert "words         flow  wing" in out
    lines = out.splitlines()
    row = next(i for i, line in enumerate(lines) if line.startswith("  b  "))
    assert lines[row + 1].strip().startswith("a flow of heat a flow")
    document = out[out.index("Document a: rank 1 of 2") :].splitlines()
    assert "  Wings" in document[:3]
