"""A ceiling cannot be evaded: two indexes that differ only after it answer alike, byte for byte."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served_collection import CEILING, LATER, PAST

from sdretrieval import Index, Snapshot
from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.times import UNDATED, parse_time
from sdretrieval.index.past import digest, past_snapshot
from sdretrieval.ranking.interactive import Request
from sdretrieval.serve import answers

LATE = LATER[0]["id"]
BODIES = [
    {"q": "storm flood", "hits": 1000},
    {"q": "storm flood", "hits": 1000, "as_of": "2030-01-01"},
    {"q": "storm flood zeppelin", "until": "2030-01-01", "since": "2024-06-15", "hits": 1000},
    {"q": "zeppelin"},
    {"q": "storm flood", "as_of": "2024-04-01"},
    {"q": "storm flood", "relevant": ["doc100", "doc102"], "nonrelevant": ["doc103"]},
    {"q": "storm flood", "relevant": [LATE]},
    {"q": "storm flood", "drop": ["zeppelin"]},
    {"q": "storm flood", "weights": {"zeppelin": 5.0}},
    {"q": "storm flood", "docid": LATE},
    {"q": "storm flood", "docid": "doc100"},
    {"q": "storm flood", "docid": "doc100", "time_prior": "density"},
    *({"q": "storm city", "time_prior": prior, "hits": 200} for prior in ("auto", "recency", "density")),
    *({"q": "storm city", "model": model, "hits": 200} for model in ("bm25", "sd", "rm", "ql", "dph", "lucene-bm25")),
    {"q": "storm city", "model": "axiomatic", "set": {"fb_docs": 3}},
    {"q": "storm city", "format": "expansion"},
]
PATHS = ["/v1/tiny/search", "/v1/tiny/explain", "/v1/tiny/run"]


@pytest.fixture(scope="module")
def pair(path, other_path, serving):
    with serving(Index(path, as_of=CEILING)) as one, serving(Index(other_path, as_of=CEILING)) as other:
        yield one, other


def same(one, other) -> None:
    assert (one.status_code, one.content) == (other.status_code, other.content)
    kept = [{k: v for k, v in answer.headers.items() if k not in ("date", "server-timing")} for answer in (one, other)]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("place", PATHS)
def test_answers_do_not_depend_on_what_came_later(pair, place):
    for body in BODIES:
        one, other = (client.post(place, json=body) for client in pair)
        same(one, other)
        if one.status_code == 200:
            later = {document["id"] for document in LATER}
            assert not any(docid in one.text for docid in later - {body.get("docid")})
            assert "zeppelin" not in one.text.replace(body["q"], "") or "Not in the index: zeppelin" in one.text


def test_facts_and_documents_do_not_either(pair):
    for path in ("/v1/indexes", "/openapi.json", "/v1/tiny/documents/doc100", "/v1/tiny/documents/hostile"):
        one, other = (client.get(path) for client in pair)
        same(one, other)
        assert one.status_code == 200
    for docid in (LATE, "doc300", "aaa-first", "nowhere"):
        one, other = (client.get(f"/v1/tiny/documents/{docid}") for client in pair)
        same(one, other)
        assert one.status_code == 404
        assert one.json()["error"] == f"docid {docid!r} is not in index 'tiny' ({len(PAST)} documents)"


def test_a_document_at_the_ceiling_is_later():
    counts = np.eye(3, dtype=int)
    snapshot = Snapshot.from_counts(counts, ["a", "b", "c"], ["x", "y", "z"], [1, 2, UNDATED])
    past, numbers = past_snapshot(snapshot, 2)
    assert (past.docids.take(np.arange(1)), numbers.tolist(), past.n_terms) == (["x"], [0], 1)


def test_every_answer_has_its_certificate(pair, path):
    client, _ = pair
    certificate = client.get("/v1/indexes").json()[0]["certificate"]
    assert certificate["ceiling"] == "2024-07-01T00:00:00Z"
    assert certificate["documents"] == len(PAST)
    past, _ = past_snapshot(Index(path).snapshot, parse_time(CEILING))
    assert certificate["statistics_sha256"] == digest(past)  # anyone who has the index can check it
    for body in ({"q": "storm"}, {"q": "storm", "as_of": "2030-01-01"}):
        assert client.post("/v1/tiny/search", json=body).json()["certificate"] == certificate
    assert client.get("/v1/tiny/documents/doc100").json()["certificate"] == certificate
    earlier = client.post("/v1/tiny/search", json={"q": "storm", "as_of": "2024-04-01"}).json()["certificate"]
    assert earlier["ceiling"] == "2024-04-01T00:00:00Z"
    assert earlier["documents"] < certificate["documents"]


def test_what_is_asked_as_of_a_time_needs_no_ceiling(path, other_path):
    one, other = (Index(each).search("storm flood", as_of=CEILING, k=100) for each in (path, other_path))
    assert [(hit.docid, hit.score, hit.text) for hit in one] == [(hit.docid, hit.score, hit.text) for hit in other]


# -- any collection ----------------------------------------------------------------------------------------------

WORDS = ["apple", "bee", "comet", "dust", "ear", "fog"]
LATER_WORDS = ["zeppelin", "aardvark"]
AT = 1000


@st.composite
def two_collections(draw) -> tuple[Snapshot, Snapshot]:
    """Alike before AT, in another order and among other documents."""
    numbers = st.integers(0, 3)
    rows = draw(st.lists(st.lists(numbers, min_size=6, max_size=6).filter(any), min_size=2, max_size=8))
    times = draw(st.lists(st.integers(1, AT - 1), min_size=len(rows), max_size=len(rows)))
    made = []
    for name in "ab":
        later = draw(st.lists(st.lists(numbers, min_size=8, max_size=8), max_size=5))
        when = draw(
            st.lists(st.one_of(st.integers(AT, 2 * AT), st.just(UNDATED)), min_size=len(later), max_size=len(later))
        )
        documents = [(f"d{i}", [*row, 0, 0], t) for i, (row, t) in enumerate(zip(rows, times, strict=True))]
        documents += [(f"{name}{i}", row, t) for i, (row, t) in enumerate(zip(later, when, strict=True))]
        documents = draw(st.permutations(documents))
        docids, counts, dates = zip(*documents, strict=True)
        analyzer = AnalyzerSpec(language="whitespace")
        made.append(
            Snapshot.from_counts(np.array(counts), WORDS + LATER_WORDS, docids, dates, analyzer=analyzer, name="x")
        )
    return made[0], made[1]


@given(
    pair=two_collections(),
    words=st.lists(st.sampled_from(WORDS + LATER_WORDS), min_size=1, max_size=3),
    model=st.sampled_from(["blend", "sd", "rm3", "bm25", "ql"]),
    prior=st.sampled_from(["none", "auto", "recency", "density"]),
    as_of=st.one_of(st.none(), st.integers(2, 2 * AT)),
    edit=st.sampled_from([{}, {"drop": ("zeppelin",)}, {"weights": (("apple", 2.0),)}, {"relevant": ("d0",)}]),
)
@settings(max_examples=60)
def test_no_collection_tells_what_came_later(pair, words, model, prior, as_of, edit):
    request = Request(query=" ".join(words), model=model, time_prior=prior, as_of=as_of, k=50, **edit)
    told = []
    for snapshot in pair:
        index = Index(snapshot, as_of=datetime.fromtimestamp(AT / 1000, UTC))
        found = []
        for ask in (answers.search_answer, lambda i, r: answers.explain_answer(i, r, "d0"), answers.expansion_text):
            try:
                found.append(repr(ask(index, request)))
            except Exception as error:
                found.append(repr(error))
        told.append([*found, repr(answers.index_facts(index))])
    assert told[0] == told[1]
