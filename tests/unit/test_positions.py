"""Positions: taken along when a model asks, whole or made again, and a clear word where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from sdretrieval.collection.corpus.record import Document
from sdretrieval.collection.records import Topic
from sdretrieval.core.errors import IndexProblem, ParameterError
from sdretrieval.index import positions
from sdretrieval.index.living import append_documents
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.positions import positions_of
from sdretrieval.index.snapshot import Snapshot, open_snapshot, snapshot_folder
from sdretrieval.ranking import retrieval
from sdretrieval.ranking.explain import explain
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import search

DOCUMENTS = [
    Document("apart", "shock at the nose and heat further down and a wave behind"),
    Document("phrase", "a shock wave and heat at the nose"),
    Document("turned", "wave of a shock"),
]
TOPICS = [Topic("1", "shock wave"), Topic("2", "heat")]


@pytest.fixture
def index(tmp_path):
    build_index(iter(DOCUMENTS), tmp_path / "index")
    return tmp_path / "index"


def test_a_collection_of_words_has_them_and_one_of_counts_says_so():
    found = positions_of(Snapshot.from_words([["b", "a", "b"], [], ["b"]]))
    assert found.starts.tolist() == [0, 3, 3, 4]
    assert found.low.tolist() == [1, 0, 2, 0]  # of a, then of b; of b
    with pytest.raises(IndexProblem, match="no positions"):
        positions_of(Snapshot.from_counts([[1]], ["a"]))


def test_weights_of_windows_leave_something_to_the_words():
    with pytest.raises(ParameterError, match="near_weight"):
        make_ranker("sdm", {"ordered_weight": 0.5, "near_weight": 0.5})


@pytest.mark.java
def test_they_are_read_when_asked_for_and_kept(index):
    snapshot = open_snapshot(index)
    kept = snapshot_folder(index) / snapshot.fingerprint / "positions"
    search(snapshot, TOPICS, "bm25")
    assert not kept.exists()
    run = search(snapshot, TOPICS, "sdm")
    assert run["1"].docids[0] == "phrase"
    assert sorted(path.name for path in kept.iterdir()) == ["high.bin", "low.bin", "positions.json", "starts.bin"]
    written = (kept / "low.bin").stat().st_mtime_ns
    assert dict(search(index, TOPICS, "sdm")["1"]) == dict(run["1"])
    assert (kept / "low.bin").stat().st_mtime_ns == written
    # Analysis leaves stop words out, and their places empty.
    wave = positions_of(snapshot).low[np.repeat(snapshot.doc_terms, snapshot.doc_counts) == snapshot.term_id("wave")]
    assert wave.tolist() == [10, 2, 0]


@pytest.mark.java
def test_damaged_ones_are_made_again(index):
    run = search(index, TOPICS, "sdm")
    [kept] = snapshot_folder(index).glob("*/positions/low.bin")
    whole = kept.read_bytes()
    for damaged in (whole[:-2], bytes([whole[0] ^ 1]) + whole[1:]):
        kept.write_bytes(damaged)
        assert dict(search(index, TOPICS, "sdm")["1"]) == dict(run["1"])
        assert kept.read_bytes() == whole


@pytest.mark.java
def test_an_index_without_them_says_so(tmp_path):
    build_index(iter(DOCUMENTS), tmp_path / "bare", store_positions=False)
    with pytest.raises(IndexProblem, match=r"bare has no positions.*") as caught:
        search(tmp_path / "bare", TOPICS, "sdm")
    assert "--no-store-positions" in str(caught.value)
    [noted] = snapshot_folder(tmp_path / "bare").glob("*/positions/low.bin")
    assert noted.stat().st_size == 0  # so that the index is not asked again


@pytest.mark.parametrize("far", [0, 70_000])
def test_places_of_long_documents_have_higher_bits(far):
    snapshot = Snapshot.from_words([["x"] * far + ["a", "b", "x", "b", "a"], ["b", "a"]])
    [a, b] = map(snapshot.term_id, "ab")
    in_order, near = positions_of(snapshot).counted(np.array([1, 0]), np.array([[a, b], [b, a]]), 0, 6, False)
    assert (in_order.tolist(), near.tolist()) == ([[0, 1], [1, 1]], [[1, 1], [3, 3]])


def test_arrays_that_do_not_fit_are_no_way_out_of_them():
    snapshot = Snapshot.from_words([["a", "b"], ["a", "a", "b"]])
    pairs, found = np.array([[0, 1]]), dict(snapshot.places or {})
    for starts in ([0, 1, 5], [0, 2, 4]):  # a row with more words than places
        snapshot.places = {**found, "starts": np.array(starts)}
        positions._known.pop(snapshot, None)
        with pytest.raises(IndexProblem, match="do not fit"):
            positions_of(snapshot).counted(np.array([0, 1]), pairs, 0, 6, False)
    for wrong in ({"starts": np.array([0, 5])}, {"high": np.zeros(2, np.uint16)}):
        snapshot.places = {**found, **wrong}
        positions._known.pop(snapshot, None)
        with pytest.raises(IndexProblem, match="do not fit"):
            positions_of(snapshot)
    snapshot.places = found
    positions._known.pop(snapshot, None)
    for docs in ([2], [-1]):
        with pytest.raises(IndexError):
            positions_of(snapshot).counted(np.array(docs), pairs, 0, 6, False)


@pytest.mark.java
def test_an_index_that_changed_since_is_not_mixed_up(index):
    before = open_snapshot(index)
    append_documents([Document("later", "shock wave shock wave")], index)
    with pytest.raises(IndexProblem, match="has changed"):
        positions_of(before)
    assert "later" in search(index, TOPICS, "sdm")["1"].docids
    with pytest.raises(IndexProblem, match="has changed"):  # its folder is gone by now
        positions_of(before)


@pytest.mark.java
@pytest.mark.parametrize("model", ["sdm", "blend"])
def test_a_commit_just_after_the_opening_is_no_error(index, monkeypatch, model):
    opened = []

    def open_and_be_overtaken(path):
        opened.append(open_snapshot(path))
        if len(opened) == 1:
            append_documents([Document("later", "shock wave shock wave")], index)
        return opened[-1]

    monkeypatch.setattr(retrieval, "open_snapshot", open_and_be_overtaken)
    assert "later" in search(index, TOPICS, model)["1"].docids
    assert [snapshot.n_docs for snapshot in opened] == [3, 4]


@pytest.mark.java
def test_explain_says_what_each_pair_brings(index):
    told = explain(open_snapshot(index), TOPICS[0], "sdm", "phrase").document
    assert told is not None
    assert set(told.parts) == {"'shock wave' in order", "'shock wave' near each other"}
    assert told.total == pytest.approx(told.score)
    turned = explain(open_snapshot(index), TOPICS[0], "sdm", "turned").document
    assert turned is not None and set(turned.parts) == {"'shock wave' near each other"}
