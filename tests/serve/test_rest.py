"""REST: what is asked and what is answered."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator

from sdretrieval import search
from sdretrieval.collection.records import Topic
from sdretrieval.ranking.expansion import ExpandedQuery
from sdretrieval.serve.workers import Workers

SEARCH = "/v1/tiny/search"


def post(client, path=SEARCH, **given) -> dict:
    answer = client.post(path, json={"q": "storm flood", **given})
    assert answer.status_code == 200, answer.text
    return answer.json()


def docids(answer: dict) -> list[str]:
    return [hit["docid"] for hit in answer["hits"]]


def test_an_index_tells_what_it_is(client, index):
    (facts,) = client.get("/v1/indexes").json()
    assert (facts["name"], facts["documents"], facts["dated"], facts["has_text"]) == ("tiny", len(index), True, True)
    assert facts["first_date"] < facts["last_date"]
    assert facts["ceiling"] is None
    blend = next(model for model in facts["models"] if model["name"] == "blend")
    assert {key: blend["parameters"][1][key] for key in ("name", "default")} == {"name": "fb_docs", "default": 20}


@pytest.mark.parametrize("model", ["bm25", "blend", "sd3", "rm3", "lucene-bm25"])
def test_hits_are_those_of_search(client, index, model):
    run = search(index.snapshot, [Topic("1", "storm flood")], model, hits=5, on_result=lambda result: None)
    answer = post(client, model=model, hits=5)
    assert docids(answer) == run["1"].docids
    assert [hit["score"] for hit in answer["hits"]] == run["1"].scores.tolist()
    assert [hit["rank"] for hit in answer["hits"]] == [1, 2, 3, 4, 5]


def test_get_and_post_are_alike(client):
    by_address = client.get(SEARCH, params={"query": "storm flood", "hits": 3, "set": ["fb_docs=5", "b=0.3"]})
    by_body = client.post(SEARCH, json={"q": "storm flood", "hits": 3, "set": {"fb_docs": 5, "b": 0.3}})
    assert by_address.content == by_body.content
    assert by_address.json()["settings"]["fb_docs"] == 5


def test_snippets_mark_what_the_analyzer_makes_of_words(client):
    for hit in post(client, q="storms flooding")["hits"]:
        marked = {text.lower() for text, is_marked in hit["snippet"] if is_marked}
        assert marked
        assert marked <= {"storm", "flood"}
    assert all(hit["snippet"] == [] for hit in post(client, snippets=False)["hits"])


def test_words_can_be_dropped_and_weighted(client):
    before = post(client)
    word = next(word["term"] for word in before["words"] if word["part"] == "feedback")
    after = post(client, drop=[word], weights={"ferri": 2.0})
    words = {found["term"]: found for found in after["words"]}
    assert words[word]["dropped"]
    assert words["ferri"]["weight"] == 2.0
    assert not words["ferri"]["dropped"]
    assert docids(after) != docids(before)


def test_an_expansion_can_be_saved_and_replayed(client, index):
    given = {"q": "storm flood", "weights": {"ferri": 2.0}, "hits": 5}
    saved = client.post("/v1/tiny/run", json={**given, "format": "expansion"})
    assert "attachment" in saved.headers["content-disposition"]
    plan = ExpandedQuery.from_json(saved.json()).plan(index.snapshot)
    run = search(index.snapshot, [Topic("query", "storm flood")], plans={"query": plan}, hits=5)
    lines = client.post("/v1/tiny/run", json=given).text.splitlines()
    assert [line.split()[2] for line in lines] == run["query"].docids == docids(post(client, **given))
    assert all(re.fullmatch(r"query Q0 \S+ \d+ \S+ \S+", line) for line in lines)


def test_feedback_teaches(client):
    plain, told = post(client), post(client, relevant=["doc100"], nonrelevant=["doc101"])
    assert [document["docid"] for document in told["feedback"]] == ["doc100"]
    assert told["words"] != plain["words"]
    assert "1 document judged relevant" in told["note"]


@pytest.mark.parametrize("prior", ["none", "auto", "recency", "density"])
def test_time_tells_what_it_added(client, prior):
    answer = post(client, time_prior=prior)
    assert answer["time"]["kind"] == prior
    assert len(answer["time"]["density"]) == 128
    assert len(answer["timeline"]) == len({entry["docid"] for entry in answer["timeline"]}) > 10
    assert all((hit["time_adjustment"] is None) == (prior == "none") for hit in answer["hits"])


def test_weight_and_width_of_the_kernel_move_the_ranking(client):
    given = {"time_prior": "recency", "bandwidth": "20d", "hits": 30}
    off, on = (post(client, **given, time_weight=weight) for weight in (0.0, 3.0))
    assert docids(on) != docids(off)
    assert on["time"]["bandwidth_days"] == pytest.approx(20)
    assert {hit["time_adjustment"] for hit in off["hits"]} == {0.0}
    by_date = sorted(on["hits"], key=lambda hit: hit["date"])
    added = [hit["time_adjustment"] for hit in by_date]
    assert added == sorted(added)  # the later, the more


def test_a_period(client):
    answer = post(client, since="2024-03-01", until="2024-05-01", hits=50)
    dates = [hit["date"][:10] for hit in answer["hits"]]
    assert dates
    assert all("2024-03-01" <= date < "2024-05-01" for date in dates)
    assert 0 < answer["candidates"] <= len(dates)


def test_a_score_comes_apart(client):
    found = post(client, time_prior="recency", time_weight=1.0, hits=5)
    for hit in found["hits"]:
        told = post(client, "/v1/tiny/explain", time_prior="recency", time_weight=1.0, docid=hit["docid"])
        assert (told["score"], told["rank"]) == (hit["score"], hit["rank"])
        parts = sum(word["contribution"] for word in told["words"]) + told["static"] + told["time"]
        assert parts == pytest.approx(hit["score"])
        assert told["time"] == pytest.approx(hit["time_adjustment"])
        assert {taught["docid"] for taught in told["taught"]} == {taught["docid"] for taught in found["feedback"]}


def test_an_edited_score_comes_apart(client):
    edits = {"drop": ["storm"], "weights": {"ferri": 1.0}}
    hit = post(client, **edits)["hits"][0]
    told = post(client, "/v1/tiny/explain", **edits, docid=hit["docid"])
    assert sum(word["contribution"] for word in told["words"]) + told["static"] == pytest.approx(hit["score"])
    assert "storm" not in {word["term"] for word in told["words"] if word["contribution"]}


def test_a_document(client):
    told = client.get("/v1/tiny/documents/doc100").json()
    assert told["title"] in told["text"]
    assert told["fields"]["date"] == told["date"][:10]


@pytest.mark.parametrize(
    ("place", "given", "status", "told"),
    [
        (SEARCH, {"q": " "}, 400, "no query"),
        (SEARCH, {"q": "x", "model": "bm26"}, 400, "unknown model"),
        (SEARCH, {"q": "x", "hits": 0}, 400, "hits"),
        (SEARCH, {"q": "x", "hits": 1001}, 400, "hits"),
        (SEARCH, {"q": "x", "set": {"fb_docs": 10**9}}, 400, "at most 1000"),
        (SEARCH, {"q": "x", "set": {"fb_doc": 10}}, 400, "did you mean 'fb_docs'"),
        (SEARCH, {"q": "x", "set": {"k1": "nan"}}, 400, "k1"),
        (SEARCH, {"q": "x", "as_of": "yesterday"}, 400, "not a time"),
        (SEARCH, {"q": "x", "since": "2024-02-01", "until": "2024-01-01"}, 400, "is empty"),
        (SEARCH, {"q": "x", "bandwidth": "-7d", "time_prior": "recency"}, 400, "length of time"),
        (SEARCH, {"q": "x", "bandwidth": "0", "time_prior": "recency"}, 400, "positive"),
        (SEARCH, {"q": "x", "relevant": ["nowhere"]}, 404, "'nowhere' is not in index"),
        (SEARCH, {"q": "x", "relevant": ["doc100"], "nonrelevant": ["doc100"]}, 400, "as not relevant"),
        (SEARCH, {"q": "x", "drop": ["nosuchword"]}, 400, "nosuchword"),
        (SEARCH, {"q": "x", "profile": "/etc/passwd"}, 400, "profile"),
        (SEARCH, {"q": "x" * 5000}, 400, "4000"),
        ("/v1/tiny/explain", {"q": "storm"}, 400, "no docid"),
        ("/v1/tiny/explain", {"q": "storm", "docid": "nowhere"}, 404, "'nowhere'"),
        ("/v1/other/search", {"q": "x"}, 404, "no index 'other'"),
    ],
)
def test_what_cannot_be_answered_is_said(client, place, given, status, told):
    answer = client.post(place, json=given)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "remedy"}), answer.text
    assert told in answer.json()["error"]


def test_no_known_word_finds_nothing(client):
    answer = post(client, q="xylophone")
    assert (answer["hits"], answer["candidates"], answer["time"]) == ([], 0, None)
    assert "xylophon" in answer["note"]


def test_the_schema_is_valid_openapi(client):
    schema = client.get("/openapi.json").json()
    assert schema["openapi"].startswith("3.1")
    paths = ["/v1/indexes", "/v1/{index}/search", "/v1/{index}/documents/{docid}", "/v1/{index}/explain"]
    assert set(paths) < set(schema["paths"])
    for part in schema["components"]["schemas"].values():  # OpenAPI 3.1's schemas are JSON Schema's
        Draft202012Validator.check_schema(part)
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', client.get("/openapi.json").text))
    assert references <= set(schema["components"]["schemas"])
    body = schema["components"]["schemas"]["AskingByBody"]
    Draft202012Validator(body).validate({"q": "storm", "hits": 3})
    assert not Draft202012Validator(body).is_valid({"q": "storm", "hits": 3000})


def test_too_many_at_once_are_turned_away(index, serving):
    with serving(index, workers=Workers(1, waiting=-1)) as client:
        answer = client.get("/v1/indexes")
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")


def test_what_takes_too_long_is_given_up(index, serving):
    with serving(index, workers=Workers(1, seconds=0.0)) as client:
        assert client.get("/v1/indexes").status_code == 503
