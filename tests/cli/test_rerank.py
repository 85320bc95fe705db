"""``sdretrieval rerank`` as it is typed, over a real Lucene index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from sdretrieval.collection.records import Run
from sdretrieval.collection.trec import read_run
from sdretrieval.index.snapshot import open_snapshot

OWN = ["bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3"]
LUCENE = ["lucene-bm25", "lucene-qld", "lucene-qljm"]

# Not the order of any model; topic 6 is not in it.
GIVEN = """\
1 Q0 doc05 1 9.0 given
1 Q0 doc03 2 8.5 given
1 Q0 doc01 3 8.0 given
1 Q0 doc30 4 7.5 given
2 Q0 doc10 1 3.0 given
2 Q0 doc06 2 2.0 given
3 Q0 doc11 1 1.0 given
4 Q0 doc20 1 4.0 given
4 Q0 doc16 2 3.0 given
4 Q0 doc18 3 2.0 given
5 Q0 doc21 1 1.0 given
"""


@pytest.fixture
def given(tmp_path) -> Path:
    path = tmp_path / "given.txt"
    path.write_text(GIVEN)
    return path


@pytest.fixture
def flags(collection, given, tmp_path) -> list:
    files = ["--index", collection.index, "--topics", collection.topics, "--run", given]
    return [*files, "--output", tmp_path / "run.txt"]


@pytest.fixture
def rerank(typed, flags, tmp_path):
    """``rerank("--model", "ql") -> (run, what it said)``"""

    def go(*words: object) -> tuple[Run, str]:
        outcome = typed("rerank", *flags, *words)
        assert (outcome.code, outcome.out) == (0, ""), outcome
        return read_run(tmp_path / "run.txt"), outcome.err

    return go


@pytest.fixture
def said_no(refused, flags, tmp_path):
    def go(*words: object) -> str:
        told = refused("rerank", *flags, *words)
        assert not (tmp_path / "run.txt").exists()
        return told

    return go


@pytest.mark.parametrize("model", OWN + LUCENE)
def test_the_same_documents_come_out(rerank, given, model):
    before = read_run(given)
    after, said = rerank("--model", model)
    assert list(after) == list(before)
    for qid, ranking in after.items():
        assert sorted(ranking.docids) == sorted(before[qid].docids)
    assert after["4"].docids[0] == "doc16"  # the one that has the words of the query
    assert "1 topics are not in the run: no documents for them (6)" in said
    assert said.splitlines()[-1].startswith(f"{given.with_name('run.txt')}: 5 topics, 11 documents, ")


def test_reranking_the_first_stage_is_searching(typed, rerank, collection, tmp_path):
    """sd3 starts from bm25: over bm25's own documents both ways are the same computation."""
    search = ["search", "--index", collection.index, "--topics", collection.topics]
    typed(*search, "--model", "bm25", "--output", tmp_path / "first.txt")
    typed(*search, "--model", "sd3", "--output", tmp_path / "searched.txt")
    reranked, _ = rerank("--run", tmp_path / "first.txt", "--model", "sd3")
    searched = read_run(tmp_path / "searched.txt")
    for qid, ranking in reranked.items():
        whole = dict(searched[qid])
        assert len(whole) > len(ranking)
        assert dict(ranking) == pytest.approx({docid: whole[docid] for docid in ranking.docids}, rel=1e-12)


def test_run_weight_mixes_standardised_scores(rerank, given):
    """By hand, over each topic's documents: (1-w) z(model) + w z(run); the run alone at 1, the model alone at 0."""
    before, model = read_run(given), rerank("--model", "bm25")[0]
    for weight in (0.0, 0.3, 1.0):
        mixed, _ = rerank("--model", "bm25", "--run-weight", weight)
        for qid, ranking in mixed.items():
            own, theirs = (np.array([dict(run[qid])[docid] for docid in ranking.docids]) for run in (model, before))
            z = [(x - x.mean()) / x.std() if x.std() else 0 * x for x in (own, theirs)]
            wanted = own if weight == 0 else (1 - weight) * z[0] + weight * z[1]
            np.testing.assert_allclose(ranking.scores, wanted, atol=1e-6)
    assert [mixed[qid].docids for qid in mixed] == [before[qid].docids for qid in before]
    assert rerank("--model", "bm25", "--run-weight", 0.3, "--hits", 1)[0]["1"].docids[0] in before["1"].docids


def test_run_weight_out_of_range(said_no):
    assert "run_weight must be between 0 and 1; got 1.5" in said_no("--run-weight", 1.5)


def test_words_of_an_expansion_that_the_index_has_not(rerank, said_no, given, tmp_path):
    lines = [json.dumps({"qid": str(qid), "terms": {"comet": 1, "zzyzx": 1}}) for qid in range(1, 6)]
    (tmp_path / "q.jsonl").write_text("\n".join(lines) + "\n")
    assert "q.jsonl:1: " in said_no("--expansion", tmp_path / "q.jsonl")
    run, said = rerank("--expansion", tmp_path / "q.jsonl", "--missing", "drop")
    assert run["4"].docids[0] == "doc16"
    assert "5 words of " in said


def test_the_manifest_makes_the_run_again(rerank, typed, collection, given, tmp_path):
    rerank("--model", "sd", "--set", "fb_docs=2", "--missing", "drop", "--feedback-qrels", collection.qrels)
    path = tmp_path / "run.txt"
    told = json.loads(Path(f"{path}.manifest.json").read_text())
    assert (told["verb"], told["model"], told["options"]["missing"]) == ("rerank", "sd", "drop")
    assert told["index"]["fingerprint"] == open_snapshot(collection.index).fingerprint
    assert {name: entry["file"] for name, entry in told["inputs"].items()} == {
        "topics": str(collection.topics),
        "run": str(given),
        "feedback": str(collection.qrels),
    }
    before = path.read_bytes()
    path.unlink()
    assert typed(*told["command"][1:]).code == 0
    assert path.read_bytes() == before


def test_a_run_may_be_reranked_onto_itself(typed, flags, given):
    assert typed("rerank", *flags, "--output", given, "--model", "ql").code == 0
    assert read_run(given).tag == "ql"
    assert len(read_run(given)) == 5


# -- what is missing ---------------------------------------------------------------------------------------------


def test_documents_that_the_index_has_not(rerank, said_no, given):
    with given.open("a") as stream:
        stream.write("5 Q0 doc99 2 0.5 given\n5 Q0 doc98 3 0.4 given\n")
    told = said_no()
    assert "topic 5: docid 'doc99' is not in index 'tiny' (30 documents; 2 of the topic's 3 are not)" in told
    assert "--missing drop" in told
    run, said = rerank("--missing", "drop")
    assert run["5"].docids == ["doc21"]
    assert "2 documents of the run are not in the index and were dropped" in said


def test_topics_that_have_no_text(rerank, said_no, given):
    with given.open("a") as stream:
        stream.write("77 Q0 doc01 1 0.5 given\n")
    told = said_no()
    assert "topic '77' of the run has no text among the 6 topics" in told
    assert "--missing drop" in told
    run, said = rerank("--missing", "drop")
    assert list(run) == ["1", "2", "3", "4", "5"]
    assert "1 topics of the run have no text and were dropped (77)" in said


def test_nothing_in_common(said_no, given):
    given.write_text("77 Q0 doc01 1 0.5 given\n")
    assert "none of these topics is in the run" in said_no("--missing", "drop")
    given.write_text("1 Q0 doc99 1 0.5 given\n")
    assert "no documents for these 1 topics" in said_no("--missing", "drop")


def test_a_topic_of_unknown_words(rerank, collection, given, tmp_path):
    topics = tmp_path / "topics.tsv"
    topics.write_text(collection.topics.read_text().replace("harbour flood", "zzyzx"))
    run, said = rerank("--topics", topics)
    assert run["1"] == read_run(given)["1"]
    assert "no known word in topics 1: they keep their order" in said


# -- bad input ---------------------------------------------------------------------------------------------------


def test_what_is_not_there(said_no, given, tmp_path):
    assert f"{tmp_path / 'no.txt'}: no such file" in said_no("--run", tmp_path / "no.txt")
    assert f"{tmp_path}: is a folder, a file was expected" in said_no("--run", tmp_path)
    assert "no index at" in said_no("--index", tmp_path / "no")
    assert "docid 'doc99' is not in index 'tiny'" in said_no("--relevant", "doc99")
    assert "1 or more; got 0" in said_no("--set", "fb_docs=0")
    given.write_text("1 Q0 doc01 1 high given\n")
    assert said_no().startswith(f"sdretrieval rerank: {given}:1: score 'high' is not a number")


def test_an_index_that_was_replaced_is_noticed(typed, tmp_path, collection):
    """The snapshot of the old index is not used for the new one."""
    index, topics = tmp_path / "index", tmp_path / "topics.tsv"
    shutil.copytree(collection.index, index)
    topics.write_text("1\tcomet\n")
    flags = ["--index", index, "--topics", topics, "--output", tmp_path / "run.txt", "--model", "bm25"]
    assert typed("search", *flags).code == 0
    (tmp_path / "new.jsonl").write_text('{"id": "new", "contents": "another comet"}\n')
    assert typed("index", "--input", tmp_path / "new.jsonl", "--index", index, "--overwrite").code == 0
    outcome = typed("rerank", *flags, "--run", tmp_path / "run.txt")
    assert outcome.code == 2
    assert "is not in index 'index' (1 documents; 2 of" in outcome.err
    assert typed("search", *flags).code == 0
    assert read_run(tmp_path / "run.txt")["1"].docids == ["new"]
