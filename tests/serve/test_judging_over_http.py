"""Judging over REST: what a click answers, files in and out, and what is refused."""

from __future__ import annotations

import shutil

import pytest
from served_collection import CEILING, HOSTILE

from sdretrieval import Index
from sdretrieval.learn.judging import Project
from sdretrieval.serve.guard import IMPORT_BYTES

PLACE = "/v1/tiny/judging"


@pytest.fixture
def judged(path, tmp_path, serving):
    """A client over an index of its own, and the index."""
    index = Index(shutil.copytree(path, tmp_path / "tiny"))
    with serving(index) as client:
        yield client, index


def act(client, name: str, /, status: int = 200, project: str = "pilot", **body) -> dict:
    answer = client.post(f"{PLACE}/{project}/{name}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_topic_is_judged_from_the_first_click_to_the_qrels(judged):
    client, index = judged
    assert client.get(PLACE).json() == {"projects": []}
    facts = act(client, "topics", topics=[{"text": "storm flood"}, {"qid": "b", "text": "bees"}])
    assert [topic["qid"] for topic in facts["topics"]] == ["1", "b"]
    view = act(client, "next", qid="1", who="ann")
    first = view["offer"]["docid"]
    assert any(is_marked for _, is_marked in view["offer"]["document"]["text"])
    view = act(client, "judge", qid="1", docid=first, grade=1, who="ann", note="clear", came="learn")
    assert view["offer"]["docid"] != first
    assert (view["topic"]["judged"], view["curve"], view["last"][0]["note"]) == (1, [[0, 0], [1, 1]], "clear")
    assert client.get(PLACE).json() == {"projects": ["pilot"]}
    assert client.get(f"{PLACE}/pilot/export").text == f"1 0 {first} 1\n"
    assert dict(Project(index, "pilot").qrels()["1"]) == {first: 1}


def test_undo_offers_the_document_again(judged):
    client, _ = judged
    act(client, "topics", topics=[{"text": "storm flood"}])
    first = act(client, "next", qid="1")["offer"]["docid"]
    act(client, "judge", qid="1", docid=first, grade=2)
    view = act(client, "undo", qid="1")
    assert (view["offer"]["docid"], view["undone"]["grade"], view["topic"]["judged"]) == (first, 2, 0)
    assert act(client, "undo", qid="1")["undone"] is None


def test_files_go_in_and_come_out_again(judged):
    client, _ = judged
    act(client, "import", kind="topics", text="7\tstorm flood\n")
    run = "".join(f"7 Q0 doc{100 + i} {i + 1} {10 - i} mine\n" for i in range(5))
    assert act(client, "import", kind="run", name="mine", text=run)["runs"] == ["mine"]
    assert client.get(f"{PLACE}/pilot/export?what=pool").text.count("\n") == 5
    told = act(client, "import", kind="qrels", text="7 0 doc101 1\n7 0 doc102 0\n")
    assert (told["taken"], told["assessors"]) == (2, ["imported"])
    rows = act(client, "measures")["rows"]
    assert {row["measure"] for row in rows} == {"AP", "P@5", "nDCG@10"}
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)


def test_a_bad_file_is_told_by_its_line_and_nothing_is_taken_in(judged):
    client, index = judged
    act(client, "topics", topics=[{"text": "storm flood"}])
    told = act(client, "import", 400, kind="qrels", text="1 0 doc101 1\n1 0 doc102 maybe\n")
    assert told["error"].startswith("qrels.txt:2: ")
    assert Project(index, "pilot").judgments() == []


def test_certificates_name_their_price_before_anything_is_drawn(judged):
    client, _ = judged
    act(client, "topics", topics=[{"text": "storm flood"}])
    price = act(client, "stopping", qid="1", target=0.8)["price"]
    assert act(client, "next", 400, qid="1", way="certificate")["error"].startswith("no sample")
    assert act(client, "certify", qid="1", target=0.8)["certificate"] == {"left": price["sample"]}


@pytest.mark.parametrize(
    ("name", "body", "status", "told"),
    [
        ("next", {"qid": "no such"}, 400, "no topic"),
        ("judge", {"qid": "1", "docid": "no such", "grade": 1}, 404, "no such"),
        ("judge", {"qid": "1", "docid": "doc101", "grade": 101}, 400, "grade"),
        ("judge", {"qid": "1", "grade": 1}, 400, "docid"),
        ("next", {"qid": "1", "way": "guess"}, 400, "guess"),
        ("next", {"qid": "1", "other": 1}, 400, "other"),
        ("pool", {"models": ["no-such"]}, 400, "no-such"),
        ("explode", {}, 404, "explode"),
    ],
)
def test_what_cannot_be_done_is_told(judged, name, body, status, told):
    client, _ = judged
    act(client, "topics", topics=[{"text": "storm flood"}])
    assert told in act(client, name, status, **body)["error"]


@pytest.mark.parametrize("name", ["..", "a b", "%2e%2e"])
def test_a_project_cannot_be_named_out_of_its_folder(judged, name):
    client, index = judged
    answer = client.post(f"{PLACE}/{name}/topics", json={"topics": [{"text": "storm"}]})
    assert answer.status_code in (400, 404, 405)
    assert not index.snapshot.index.with_name("tiny.judging").exists()


def test_a_collection_of_the_past_is_not_judged(path, serving):
    with serving(Index(path, as_of=CEILING)) as client:
        assert "earlier time" in act(client, "overview", 400)["error"]
        assert client.get(PLACE).status_code == 400


def test_hostile_text_comes_as_text(judged):
    client, _ = judged
    act(client, "topics", topics=[{"text": HOSTILE}])
    view = act(client, "open", qid="1", docid="hostile")
    assert "".join(piece for piece, _ in view["offer"]["document"]["text"]).startswith("<img src=x")
    assert client.get("/judge").headers["content-security-policy"].startswith("default-src 'none'")


def test_only_imports_may_be_long(judged):
    client, _ = judged
    long = "x" * (1 << 17)
    assert client.post(f"{PLACE}/pilot/next", json={"note": long}).status_code == 413
    assert (
        client.post(f"{PLACE}/pilot/import", json={"kind": "topics", "text": f"1\t{long[:3000]}\n"}).status_code == 200
    )
    too_long = client.post(f"{PLACE}/pilot/import", content=b"x" * (IMPORT_BYTES + 1))
    assert too_long.status_code == 413
