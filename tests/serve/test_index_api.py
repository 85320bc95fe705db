"""The ten-line API."""

from __future__ import annotations

import sys

import pytest
from served_collection import LATER, PAST
from starlette.testclient import TestClient

from sdretrieval import Index, SdretrievalError, Snapshot, search
from sdretrieval.collection.records import Topic
from sdretrieval.ranking.snippets import Marker, best_window
from sdretrieval.serve.app import make_app


def test_hits_have_texts_dates_and_scores(index):
    hits = index.search("storm flood", k=7)
    assert len(hits) == 7
    assert [hit.rank for hit in hits] == list(range(1, 8))
    assert hits[-1].docid == hits[6].docid == hits[5:][1].docid
    texts = {document["id"]: document for document in PAST + LATER}
    for hit in hits:
        assert (hit.text, hit.date[:10]) == (texts[hit.docid]["contents"], texts[hit.docid]["date"])
    assert index.doc(hits[0].docid).title == hits[0].title


def test_feedback_adds_up(index):
    first = index.search("storm flood")
    second = first.feedback(relevant=["doc100"])
    third = second.feedback(nonrelevant=["doc100"], relevant=["doc101"])
    assert (third.request.relevant, third.request.nonrelevant) == (("doc101",), ("doc100",))
    assert [hit.score for hit in second] != [hit.score for hit in first]


def test_an_explanation_adds_up(index):
    hits = index.search("storm flood", "sd3")
    for hit in hits:
        why = hits.explain(hit.docid)
        assert why.total == pytest.approx(hit.score)
    assert hits.explain().docid == hits[0].docid


def test_a_frame(index):
    pytest.importorskip("pandas")
    frame = index.search("storm", k=3).to_frame()
    assert list(frame["rank"]) == [1, 2, 3]


def test_a_frame_without_pandas_is_an_error_that_helps(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SdretrievalError, match="pip install pandas"):
        index.search("storm").to_frame()


def test_topics_make_a_run(index):
    topics = [Topic("1", "storm"), Topic("2", "bees")]
    assert index.search_topics(topics, "bm25") == search(index.snapshot, topics, "bm25")


def test_text_in_the_place_of_topics_is_told(index):
    with pytest.raises(SdretrievalError, match=r"Index\(.*\)\.search"):
        search(index.snapshot, "storm flood")


def test_a_snapshot_has_no_texts():
    index = Index(Snapshot.from_counts([[1, 2], [0, 1]], ["storm", "flood"], name="bare"))
    assert not index.document(0).stored
    assert index.search("storm")[0].title == ""
    with TestClient(make_app([index]), base_url="http://localhost") as client:
        assert not client.get("/v1/indexes").json()[0]["has_text"]
        assert client.get("/v1/bare/search?q=storm").status_code == 200


@pytest.mark.parametrize(
    "given", [{"k": 0}, {"model": "no"}, {"as_of": "soon"}, {"time_prior": "no"}, {"weights": {"storm": float("nan")}}]
)
def test_what_cannot_be_asked(index, given):
    with pytest.raises(SdretrievalError):
        index.search("storm", **given)


def test_as_of_goes_back_and_never_on(path):
    index = Index(path, as_of="2024-04-01")
    assert index.at("2030-01-01") is index
    earlier = index.at("2024-02-01")
    assert 0 < len(earlier) < len(index)
    assert earlier is index.at("2024-02-01")


def test_an_undated_index_has_no_past():
    with pytest.raises(SdretrievalError, match="needs dated documents"):
        Index(Snapshot.from_counts([[1]], ["storm"]), as_of="2024-01-01")


def test_a_window_holds_the_most_different_words():
    marker = Marker(str.split)
    text = "aa " * 5 + "x " * 200 + "aa bb " + "x " * 200 + "bb " * 5
    pieces = marker.snippet(text, ["aa", "bb"], 60)
    assert {piece for piece, marked in pieces if marked} == {"aa", "bb"}
    assert best_window([], 60, 500) == (0, 60)


@pytest.mark.parametrize("keeps_first", [True, False])
def test_words_are_found_alike(keeps_first):
    marker = Marker(lambda word: [word.rstrip("s")], keeps_first=keeps_first)
    text = "Cats don't sit: tests, CAT. it's a tomcat's cat"
    assert [text[w.start : w.end] for w in marker.found(text, ["cat", "test"])] == ["Cats", "tests", "CAT", "cat"]
