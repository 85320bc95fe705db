"""The snapshot: in memory, on disk, stale, damaged, made twice at once, and of indexes that other tools made."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lucene_writing import delete

from sdretrieval.collection.corpus import Document
from sdretrieval.core import array_folder
from sdretrieval.core.array_folder import ArrayFolder
from sdretrieval.core.errors import IndexProblem, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.index import rows
from sdretrieval.index import snapshot as module
from sdretrieval.index.commit import latest_commit
from sdretrieval.index.living import append_documents
from sdretrieval.index.lucene import export
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, load_snapshot, open_snapshot, snapshot_folder, snapshot_state
from sdretrieval.index.snapshot_format import ARRAYS, SNAPSHOT, derived_for_ranking, snapshot_problem, write_snapshot
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker

EMPTY = "large_at", "large_counts", "block_starts"  # of few documents of short texts
JANUARY = 1704067200000  # 2024-01-01T00:00:00Z in ms
DOCUMENTS = [
    Document("b", "alpha beta beta gamma", JANUARY),
    Document("ä", "beta delta", JANUARY + 1),
    Document("a", "the of", None),  # nothing but stop words
    Document("c", "gamma gamma gamma alpha epsilon", JANUARY - 1),
]
# After Porter's stemmer.
COUNTS = {
    "b": {"alpha": 1, "beta": 2, "gamma": 1},
    "ä": {"beta": 1, "delta": 1},
    "a": {},
    "c": {"alpha": 1, "epsilon": 1, "gamma": 3},
}


def counts_of(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Both directions must say the same."""
    assert (snapshot.by_doc != snapshot.by_term.T).nnz == 0
    matrix = snapshot.by_doc.toarray()
    return {
        docid: {snapshot.term(int(t)): int(matrix[d, t]) for t in np.flatnonzero(matrix[d])}
        for d, docid in enumerate(snapshot.docids)
    }


def check_statistics(snapshot: Snapshot) -> None:
    """Everything that is told besides the counts follows from them."""
    matrix = snapshot.by_doc.toarray()
    assert snapshot.doc_lengths.tolist() == matrix.sum(axis=1).tolist()
    assert snapshot.cf.tolist() == matrix.sum(axis=0).tolist()
    assert snapshot.df.tolist() == (matrix > 0).sum(axis=0).tolist()
    assert snapshot.n_tokens == matrix.sum()
    assert snapshot.n_postings == (matrix > 0).sum()
    assert list(snapshot.vocabulary) == sorted(snapshot.vocabulary, key=str.encode)
    assert [snapshot.term_id(word) for word in snapshot.vocabulary] == list(range(snapshot.n_terms))
    assert [snapshot.docids.find(docid) for docid in snapshot.docids] == list(range(snapshot.n_docs))
    assert snapshot.docids.take(np.argsort(snapshot.docid_rank)) == sorted(snapshot.docids, key=str.encode)


# -- in memory ---------------------------------------------------------------------------------------------------


def test_from_counts():
    made = Snapshot.from_counts(
        [[0, 2, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], ["zoo", "ant", "Äpfel", "unused"], ["x", "a", "m"], [1, UNDATED, 3]
    )
    assert counts_of(made) == {"x": {"ant": 2, "Äpfel": 1}, "a": {"zoo": 1}, "m": {}}
    check_statistics(made)
    assert list(made.vocabulary) == ["ant", "zoo", "Äpfel"]  # by bytes; words nobody uses are dropped
    assert made.term_id("unused") == -1
    assert made.times.tolist() == [1, UNDATED, 3] and made.is_dated
    assert made.p_collection.sum() == pytest.approx(1.0)
    assert repr(made) == "<Snapshot in memory: 3 documents, 3 terms>"


def test_from_counts_takes_sparse_matrices_and_makes_names():
    from scipy.sparse import coo_matrix

    twice = coo_matrix(([1, 1, 4], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))  # a cell given in two parts
    made = Snapshot.from_counts(twice, ["a", "b"])
    assert counts_of(made) == {"d0": {"b": 2}, "d1": {"a": 4}}
    assert made.times.tolist() == [UNDATED, UNDATED] and not made.is_dated


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2)])
def test_from_counts_of_nothing(shape: tuple[int, int]):
    made = Snapshot.from_counts(np.zeros(shape), ["a", "b", "c"][: shape[1]])
    assert (made.n_docs, made.n_terms, made.n_tokens) == (shape[0], 0, 0)
    assert made.statistics.average_length == 0.0
    check_statistics(made)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 2]], ["a"]), "counts are 1 x 2, but 1 words"),
        (([[1]], ["a"], ["x", "y"]), "counts are 1 x 1, but 2 docids"),
        (([[1]], ["a"], ["x"], [1, 2]), "counts are 1 x 1, but 2 times"),
        (([[1, 1]], ["a", "a"]), "the word 'a' is given twice"),
        (([[1], [1]], ["a"], ["x", "x"]), "the docid 'x' is given twice"),
        (([[0.5]], ["a"]), "counts must be whole numbers"),
        (([[-1]], ["a"]), "counts must be whole numbers"),
        (([[2**31]], ["a"]), "counts must be whole numbers"),
    ],
)
def test_from_counts_refuses_what_does_not_fit(arguments: tuple, message: str):
    with pytest.raises(ParameterError, match=message):
        Snapshot.from_counts(*arguments)


@pytest.mark.parametrize(("most", "bits"), [(65_535, 16), (65_536, 16), (2**31 - 1, 16), (7, 30), (3, 30)])
def test_counts_in_the_words_of_rows_and_larger_ones(tmp_path, monkeypatch, most: int, bits: int):
    """Counts are kept in the bits that the terms leave where these are enough; models see no difference."""
    monkeypatch.setattr(rows, "LEAST_BITS", bits)
    given = [[most, 1, 0], [2, 0, 7], [0, 3, 1]]
    made = Snapshot.from_counts(given, ["a", "b", "c"])
    again = load_snapshot(tmp_path / write_snapshot(tmp_path, made.arrays))
    for one in (made, again):
        large = [count for row in given for count in row if count >= 1 << (32 - bits)]
        assert one.rows.large_counts.tolist() == large
        assert one.doc_counts.tolist() == [count for row in given for count in row if count]
        assert one.by_doc.dtype == np.int32 and one.by_doc.toarray().tolist() == given
        assert one.term_counts.tolist() == [most, 2, 1, 3, 7, 1]
    for name in ("bm25", "dph", "sd"):
        ranked = [
            next(Engine(one).rank(make_ranker(name), [Query.from_words(one, ["a", "c"])])) for one in (made, again)
        ]
        assert ranked[0].scores.tobytes() == ranked[1].scores.tobytes()


@pytest.fixture
def large_at_once(monkeypatch: pytest.MonkeyPatch):
    """Every collection is too large to have its postings by term kept."""
    monkeypatch.setattr(export, "FEW_POSTINGS", 0)


def without_postings(made: Snapshot) -> Snapshot:
    """The same, as a large one is kept."""
    return Snapshot({**made.arrays, **{name: np.zeros(0, np.int32) for name in ("term_docs", "term_counts")}})


def test_postings_by_term_are_made_of_the_rows(tmp_path):
    rng = np.random.default_rng(5)
    made = Snapshot.from_counts(rng.poisson(0.3, (500, 40)), [f"w{i:02}" for i in range(40)])
    other = load_snapshot(tmp_path / write_snapshot(tmp_path, without_postings(made).arrays))
    for name in ("term_docs", "term_counts"):
        assert getattr(other, name).tolist() == getattr(made, name).tolist()
        assert not getattr(other, name).flags.writeable
    wrong = np.array(made.term_ptr)
    wrong[1] += 1
    with pytest.raises(IndexProblem, match="counts by document are not those by word"):
        _ = Snapshot({**without_postings(made).arrays, "term_ptr": wrong}).term_docs


def test_the_documents_of_a_term(monkeypatch):
    """By the compact postings: of rare words and of common ones, in one block and in several."""
    rng = np.random.default_rng(5)
    chances = [0.5, 0.1, 0.00002, 0.00005, 0.0001]
    counts = (rng.random((200_000, 5)) < chances) * rng.integers(1, 4, (200_000, 5))
    counts[7] = 1
    for n_docs in (200_000, 500):
        made = without_postings(Snapshot.from_counts(counts[:n_docs], list("abcde")))
        for term in range(5):
            assert made.docs_of(term).tolist() == np.flatnonzero(counts[:n_docs, term]).tolist()
    for name, value in (("block_docs", 65_535), ("starts", 2**31 - 1), ("starts", -(2**31))):
        compact = made.compact
        monkeypatch.setattr(made, "compact", replace(compact, **{name: np.full_like(getattr(compact, name), value)}))
        with pytest.raises(IndexProblem, match="compact postings are not its counts"):
            made.docs_of(0)
        monkeypatch.setattr(made, "compact", compact)


def test_postings_of_some_terms_are_looked_up_until_all_are_made(monkeypatch):
    monkeypatch.setattr(module, "LOOKED_UP", 0.2)
    counts = np.random.default_rng(5).poisson(0.3, (500, 40))
    made = without_postings(Snapshot.from_counts(counts, [f"w{i:02}" for i in range(40)]))
    looked_up = ([], []), ([3, 9], [0, 1]), ([9, 30, 39], [0, 1, 2])
    for terms, places in (*looked_up, ([1, 2, 3, 4], [1, 2, 3, 4]), ([9], [9])):
        ptr, docs, found, at = made.postings_of(np.array(terms, dtype=np.int64))
        assert at.tolist() == places
        for term, place in zip(terms, places, strict=True):
            span = slice(*ptr[place : place + 2])
            assert docs[span].tolist() == np.flatnonzero(counts[:, term]).tolist()
            assert found[span].tolist() == counts[docs[span], term].tolist()


# -- of an index -------------------------------------------------------------------------------------------------

java = pytest.mark.java


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of this package's making, with its snapshot."""
    index = tmp_path_factory.mktemp("built") / "index"
    build_index(DOCUMENTS, index, threads=1)
    open_snapshot(index)
    return index


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    """A copy to damage, without a snapshot."""
    return Path(shutil.copytree(built, tmp_path / "index"))


@pytest.fixture
def snapped(built: Path, tmp_path: Path) -> Path:
    """A copy with its snapshot."""
    shutil.copytree(snapshot_folder(built), tmp_path / "index.snapshot")
    return Path(shutil.copytree(built, tmp_path / "index"))


@pytest.fixture
def no_building(monkeypatch: pytest.MonkeyPatch):
    """Whoever tries to build a snapshot fails."""

    def refuse(*_args, **_more):
        raise AssertionError("the snapshot was built again")

    monkeypatch.setattr(module, "_build", refuse)


def only_snapshot(index: Path) -> Path:
    [folder] = snapshot_folder(index).iterdir()
    return folder


@java
def test_a_snapshot_is_the_index(index: Path):
    made = open_snapshot(index)
    assert counts_of(made) == COUNTS
    check_statistics(made)
    assert {d: int(t) for d, t in zip(made.docids, made.times, strict=True)} == {
        "b": JANUARY,
        "ä": JANUARY + 1,
        "a": UNDATED,
        "c": JANUARY - 1,
    }
    assert made.name == "index" and made.index == index
    assert made.analyze("The gammas") == ["gamma"]


@java
def test_a_large_collection_keeps_its_postings_once(index: Path, large_at_once):
    """And ranks alike, is appended to alike."""
    made = open_snapshot(index)
    assert [len(made.arrays[name]) for name in ("term_docs", "term_counts")] == [0, 0]
    assert snapshot_state(index, again=True) == "fresh"
    assert counts_of(made) == COUNTS
    check_statistics(made)
    append_documents([Document("d", "alpha zeta", JANUARY)], index)
    assert counts_of(open_snapshot(index)) == COUNTS | {"d": {"alpha": 1, "zeta": 1}}


@java
def test_opening_again_builds_nothing(snapped: Path, no_building: None):
    made = open_snapshot(snapped)
    assert counts_of(made) == COUNTS
    assert snapshot_state(snapped) == "fresh"
    assert not made.term_docs.flags.writeable


@java
def test_a_snapshot_is_readable_by_whoever_can_read_its_parent(index: Path):
    open_snapshot(index)
    folder = only_snapshot(index)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode)


@java
def test_rebuilding_on_request_replaces_the_files(snapped: Path):
    before = (only_snapshot(snapped) / "cf.bin").stat().st_ino
    assert open_snapshot(snapped, rebuild=True).cf.tolist() == [2, 3, 1, 1, 4]
    assert (only_snapshot(snapped) / "cf.bin").stat().st_ino != before


@java
@pytest.mark.parametrize("name", [name for name in ARRAYS if name not in EMPTY])
def test_one_flipped_bit_is_noticed_and_mended(snapped: Path, name: str):
    """Also in a snapshot that this process has found whole before: the file has changed since."""
    open_snapshot(snapped)
    path = only_snapshot(snapped) / f"{name}.bin"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    assert snapshot_state(snapped) == f"{name}.bin is damaged: its checksum is wrong"
    with pytest.raises(IndexProblem, match="checksum is wrong"):
        load_snapshot(only_snapshot(snapped))
    assert counts_of(open_snapshot(snapped)) == COUNTS


@java
def test_a_whole_snapshot_is_read_once_by_a_process_and_those_it_starts(snapped: Path, monkeypatch):
    monkeypatch.delenv("SDRETRIEVAL_CHECKED", raising=False)
    read: list[str] = []
    real = array_folder.checksum
    monkeypatch.setattr(array_folder, "checksum", lambda values: read.append("x") or real(values))
    open_snapshot(snapped)
    assert len(read) == len(ARRAYS)
    open_snapshot(snapped)
    assert len(read) == len(ARRAYS)
    assert snapshot_state(snapped, again=True) == "fresh"
    assert len(read) == 2 * len(ARRAYS)
    code = f"""
        from sdretrieval.core import array_folder
        array_folder.checksum = None
        from sdretrieval.index.snapshot import open_snapshot
        open_snapshot({str(snapped)!r})
    """
    assert run_python(code).returncode == 0


def test_a_large_snapshot_is_read_once_until_the_machine_starts_again(tmp_path: Path, monkeypatch):
    """By any process: the environment forgets. A changed file is read again."""
    folder = tmp_path / write_snapshot(tmp_path, dict(Snapshot.from_counts([[1, 2], [0, 1]], ["a", "b"]).arrays))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(array_folder, "_LARGE", 0)
    read: list[str] = []
    real = array_folder.checksum
    monkeypatch.setattr(array_folder, "checksum", lambda values: read.append("x") or real(values))

    def times_read() -> int:
        monkeypatch.delenv("SDRETRIEVAL_CHECKED", raising=False)
        read.clear()
        load_snapshot(folder)
        return len(read) // len(ARRAYS)

    assert [times_read(), times_read()] == [1, 0]
    [memory] = (tmp_path / "cache" / "sdretrieval").iterdir()
    assert memory.stat().st_mode & 0o077 == 0
    os.utime(folder / "times.bin")
    assert [times_read(), times_read()] == [1, 0]
    memory.rename(memory.with_name("whole-of-another-start"))
    assert [times_read(), times_read()] == [1, 0]
    assert [path.name for path in memory.parent.iterdir()] == [memory.name]


def hostile(arrays: dict[str, np.ndarray], name: str, change) -> dict[str, np.ndarray]:
    values = np.array(arrays[name])
    changed = change(values)
    return {**arrays, name: values if changed is None else changed}


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("term_docs", lambda v: v.__setitem__(0, 3), "term_docs.bin points outside of times"),
        ("term_docs", lambda v: v.__setitem__(0, -1), "term_docs.bin points outside of times"),
        ("doc_words", lambda v: v.__setitem__(1, 1 << 16 | 3), "doc_words.bin points outside of cf"),
        ("doc_words", lambda v: v.__setitem__(1, 1), "doc_words.bin has no counts where large_at has none"),
        ("large_at", lambda v: np.array([0, 2], v.dtype), "doc_words.bin has no counts where large_at has none"),
        ("large_at", lambda v: v.__setitem__(0, 3), "doc_words.bin has no counts where large_at has none"),
        ("large_at", lambda v: v[:0], "doc_words.bin has no counts where large_at has none"),
        ("docid_rank", lambda v: v.__setitem__(0, -1), "docid_rank.bin points outside of times"),
        ("term_ptr", lambda v: v.__setitem__(1, 99), "term_ptr.bin does not ascend from 0 to the length of doc_words"),
        ("term_docs", lambda v: v[:-1], "term_docs.bin has 3 entries, doc_words has 4"),
        ("doc_words", lambda v: v[:-1], "term_ptr.bin does not ascend from 0 to the length of doc_words"),
        ("large_counts", lambda v: v[:0], "large_counts.bin has 0 entries, large_at has 1"),
        ("large_counts", lambda v: v.__setitem__(0, 0), "large_counts.bin has a value below 1"),
        ("doc_ptr", lambda v: v.__setitem__(0, 1), "doc_ptr.bin does not ascend from 0"),
        ("term_ptr", lambda v: v[:-1], "term_ptr.bin has 3 entries, cf has 3"),
        ("term_counts", lambda v: v.__setitem__(0, 0), "term_counts.bin has a value below 1"),
        ("times", lambda v: v[1:], "term_docs.bin points outside of times"),
        ("times", lambda v: np.append(v, 1), "docid_text_ptr.bin has 4 entries, times has 4"),
        ("docid_text", lambda v: v.__setitem__(0, 0xFF), "docid_text_ptr.bin points into docid_text, which is not"),
        ("docid_text_ptr", lambda v: v.__setitem__(1, 2), "docid_text_ptr.bin points into the middle of a character"),
        ("block_docs", lambda v: v[:-1], "block_docs.bin has 3 entries, doc_words has 4"),
        ("blocks", lambda v: v[:-1], "blocks.bin has 3 entries instead of 4"),
        ("block_starts", lambda v: np.zeros(3, v.dtype), "block_starts.bin has 3 entries instead of 0"),
        ("blocks_ptr", lambda v: v[:-1], "blocks_ptr.bin does not follow from the others"),
        ("blocks_ptr", lambda v: v.__setitem__(1, v[2]), "blocks_ptr.bin does not follow from the others"),
        ("cells", lambda v: v.__setitem__(3, 1 << 40), "cells.bin does not follow from the others"),
        ("length_values", lambda v: v.__setitem__(0, -1), "length_values.bin has a value below 0"),
        ("length_group", lambda v: v.__setitem__(0, 9), "length_group.bin points outside of length_values"),
        ("docid_rank", lambda v: v.__setitem__(0, 9), "docid_rank.bin points outside of times"),
    ],
)
def test_a_snapshot_from_elsewhere_is_checked_before_any_loop_runs(tmp_path, name, change, told):
    """Its checksums are right: whoever made it wrote both."""
    made = Snapshot.from_counts([[70_000, 1, 0], [0, 1, 0], [0, 0, 1]], ["a", "b", "c"], ["aä", "b", "c"])
    whole = {**made.arrays, **derived_for_ranking(made.arrays)}
    SNAPSHOT.write(tmp_path / "mark", hostile(whole, name, change), fingerprint="mark")
    with pytest.raises(IndexProblem, match=told):
        load_snapshot(tmp_path / "mark")


@pytest.mark.parametrize("name", [name for name, types in ARRAYS.items() if " " in types])
def test_a_type_that_an_array_has_not_is_refused(tmp_path, name: str):
    """The bytes, and so the checksum, are the same; the notes say of what numbers they are."""
    counts = np.ones((300, 3), int)
    counts[2:, 2], counts[0, 0] = 0, 70_000
    folder = tmp_path / write_snapshot(tmp_path, Snapshot.from_counts(counts, ["a", "b", "c"]).arrays)
    notes = json.loads((folder / "snapshot.json").read_text())
    for given in (*set(ARRAYS[name].split()) - {notes["types"][name]}, "<f4", "|O8", 3, None):
        wrong = {**notes, "types": {**notes["types"], name: given}}
        (folder / "snapshot.json").write_text(json.dumps(wrong))
        with pytest.raises(IndexProblem, match="cannot be used"):
            load_snapshot(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block_docs", 65_535),
        ("block_cells", 255),
        ("blocks", 255),
        ("block_starts", 2**31 - 1),
        ("block_starts", -(2**31)),
    ],
)
def test_compact_postings_from_elsewhere_do_no_harm(tmp_path, monkeypatch, name, value):
    """They are walked as they are, within bounds; that they are others than the counts' is found when asked for."""
    monkeypatch.setattr("sdretrieval.ranking.engine.BOUNDS_FROM", 1)
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.7, (300, 12))
    counts[:, 2] = np.arange(300) < 3  # a rare word
    made = Snapshot.from_counts(counts, [f"w{i:02}" for i in range(12)])
    whole = {**made.arrays, **derived_for_ranking(made.arrays)}
    SNAPSHOT.write(tmp_path / "mark", hostile(whole, name, lambda v: v.fill(value)), fingerprint="mark")
    engine = Engine(load_snapshot(tmp_path / "mark"))
    query = Query.from_words(engine.snapshot, ["w01", "w02"], qid="1")
    assert all(len(result.docs) <= 10 for result in engine.rank(make_ranker("bm25"), [query], RankOptions(hits=10)))
    assert f"{name}.bin does not follow" in snapshot_problem(tmp_path / "mark", "mark", again=True)


@pytest.mark.parametrize("text", ["[" * 100_000, "[]", "{}", '{"format": 1e999}', '{"format": 2, "sizes": []}', "\xff"])
def test_odd_notes_are_damaged_notes(tmp_path, text: str):
    made = Snapshot.from_counts([[1]], ["a"])
    folder = tmp_path / write_snapshot(tmp_path, made.arrays)
    (folder / "snapshot.json").write_text(text, encoding="latin-1")
    with pytest.raises(IndexProblem, match="cannot be used"):
        load_snapshot(folder)


@java
def test_a_full_disk_is_an_error_that_names_itself(index: Path, monkeypatch):
    def full(path: Path, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(array_folder, "allocate", full)
    with pytest.raises(IndexProblem, match="no room left while writing the snapshot"):
        open_snapshot(index)
    assert list(snapshot_folder(index).iterdir()) == []


@java
@pytest.mark.parametrize("name", [*ARRAYS, "snapshot"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damage_is_noticed(snapped: Path, name: str, damage: str, no_building: None):
    path = only_snapshot(snapped) / (f"{name}.bin" if name in ARRAYS else "snapshot.json")
    if damage == "gone":
        path.unlink()
        told = f"{path.name} is missing"
    else:
        size = path.stat().st_size
        left = path.write_bytes(path.read_bytes()[: size // 2] or b"more")  # or, of an empty file, longer
        told = "snapshot.json is damaged" if name == "snapshot" else f"{path.name} has {left} bytes instead of {size}"
    assert snapshot_state(snapped).startswith(told)
    with pytest.raises(AssertionError, match="built again"):
        open_snapshot(snapped)


@java
def test_damage_is_mended(snapped: Path):
    (only_snapshot(snapped) / "term_docs.bin").write_bytes(b"")
    assert counts_of(open_snapshot(snapped)) == COUNTS
    assert snapshot_state(snapped) == "fresh"


@java
def test_a_changed_index_makes_its_snapshot_stale(snapped: Path):
    old = open_snapshot(snapped)
    delete(snapped, "b")
    assert snapshot_state(snapped) == "stale"
    new = open_snapshot(snapped)
    assert "b" not in list(new.docids)
    assert new.fingerprint != old.fingerprint
    assert only_snapshot(snapped).name == new.fingerprint  # the old one is gone
    assert counts_of(old) == COUNTS  # but whoever has it open keeps it


@java
def test_deleted_documents_are_left_out(snapped: Path):
    """And words that only they had; the others are numbered anew."""
    delete(snapped, "c")
    made = open_snapshot(snapped)
    assert counts_of(made) == {docid: counts for docid, counts in COUNTS.items() if docid != "c"}
    check_statistics(made)
    assert made.term_id("epsilon") == -1
    assert {d: int(t) for d, t in zip(made.docids, made.times, strict=True)}["ä"] == JANUARY + 1


@java
def test_all_documents_deleted(snapped: Path):
    for docid in COUNTS:
        delete(snapped, docid)
    made = open_snapshot(snapped)
    assert (made.n_docs, made.n_terms, made.n_postings) == (0, 0, 0)


@java
def test_a_field_without_any_word(tmp_path: Path):
    build_index([Document("x", "the of and", None), Document("y", "of", None)], tmp_path / "index", threads=1)
    made = open_snapshot(tmp_path / "index")
    assert (made.n_docs, made.n_terms) == (2, 0)
    assert made.doc_lengths.tolist() == [0, 0]
    check_statistics(made)


@java
def test_a_failed_build_leaves_the_old_snapshot(snapped: Path, monkeypatch: pytest.MonkeyPatch):
    before = only_snapshot(snapped)

    def fail(*given: object, **notes: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ArrayFolder, "finish", fail)
    with pytest.raises(KeyboardInterrupt):
        open_snapshot(snapped, rebuild=True)
    assert only_snapshot(snapped) == before
    assert snapshot_state(snapped) == "fresh"


@java
def test_a_killed_build_leaves_no_snapshot_and_is_cleared_away_later(index: Path):
    """Killed between the export and the rename: nothing that looks whole, and the next one succeeds."""
    code = f"""
        import os
        from sdretrieval.core.array_folder import ArrayFolder
        from sdretrieval.index import snapshot
        ArrayFolder.finish = lambda *given, **notes: os._exit(9)
        snapshot.open_snapshot({str(index)!r})
    """
    assert run_python(code).returncode == 9
    [left] = snapshot_folder(index).iterdir()
    assert left.name == ".building"
    assert not list(snapshot_folder(index).glob("*/snapshot.json"))
    assert snapshot_state(index) == "absent"
    assert counts_of(open_snapshot(index)) == COUNTS
    assert not left.exists()


@java
def test_what_a_killed_builder_left_goes_when_the_snapshot_is_next_opened(snapped: Path):
    left = snapshot_folder(snapped) / ".building" / "half"
    left.mkdir(parents=True)
    open_snapshot(snapped)
    assert len(list(snapshot_folder(snapped).iterdir())) == 1


@java
def test_two_processes_building_at_once(index: Path):
    code = f"""
        import sys
        from sdretrieval.core.jvm import start_jvm
        from sdretrieval.index.snapshot import open_snapshot
        start_jvm()
        import sdretrieval.ranking.loops
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(5):
            made = open_snapshot({str(index)!r}, rebuild=False)
        print(made.fingerprint, int(made.by_doc.sum()), made.docids[made.n_docs - 1])
    """
    both = [start_python(code) for _ in range(2)]
    for process in both:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    assert answers[0][0].split()[1] == "11"
    assert len(list(snapshot_folder(index).iterdir())) == 1


@java
def test_the_second_builder_keeps_the_first_ones_snapshot(snapped: Path, monkeypatch: pytest.MonkeyPatch):
    """As when both found none: the loser of the race discards its own."""
    place = only_snapshot(snapped)
    inode = (place / "cf.bin").stat().st_ino
    assert module._build(latest_commit(snapped), place, "")
    assert (only_snapshot(snapped) / "cf.bin").stat().st_ino == inode


@java
def test_snapshots_can_live_elsewhere(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SDRETRIEVAL_SNAPSHOTS", str(tmp_path / "elsewhere"))
    assert counts_of(open_snapshot(index)) == COUNTS
    assert not (tmp_path / "index.snapshot").exists()
    assert snapshot_folder(index).parent == tmp_path / "elsewhere"
    other = tmp_path / "other" / "index"
    assert snapshot_folder(other) != snapshot_folder(index)  # same name, other place


@java
def test_a_place_that_cannot_be_written_is_named(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SDRETRIEVAL_SNAPSHOTS", str(tmp_path / "file"))
    with pytest.raises(IndexProblem, match="cannot be written") as caught:
        open_snapshot(index)
    assert "SDRETRIEVAL_SNAPSHOTS" in str(caught.value)


def test_no_index_at_all(tmp_path: Path):
    with pytest.raises(IndexProblem, match="no index at"):
        open_snapshot(tmp_path / "nowhere")
    with pytest.raises(IndexProblem, match="not a Lucene index"):
        open_snapshot(tmp_path)


@java
def test_a_broken_index_is_named(tmp_path: Path):
    (tmp_path / "segments_1").write_bytes(b"not Lucene's")
    with pytest.raises(IndexProblem, match="cannot be read") as caught:
        open_snapshot(tmp_path)
    assert "sdretrieval doctor" in str(caught.value)
    assert not snapshot_folder(tmp_path).exists()


# -- of indexes made by other tools --------------------------------------------------------------------------------


def foreign_index(folder: Path, records: list[dict], *flags: str) -> Path:
    """What Pyserini's command line makes: the same call of Anserini's IndexCollection."""
    from sdretrieval.core.jvm import java_class

    (folder / "corpus").mkdir(parents=True)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (folder / "corpus" / "documents.jsonl").write_text(lines)
    arguments = [
        *("-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", "-quiet"),
        *("-input", str(folder / "corpus"), "-index", str(folder / "index"), *flags),
    ]
    java_class("io.anserini.index.IndexCollection").main(arguments)
    return folder / "index"


RECORDS = [
    {"id": "x1", "contents": "alpha beta beta", "date": "2024-01-01"},
    {"id": "x2", "contents": "beta gamma", "date": "some day"},
    {"id": "x3", "contents": "gamma", "when": "2024-01-02"},
]


@java
def test_an_index_without_stored_text_or_vectors(tmp_path: Path):
    made = open_snapshot(foreign_index(tmp_path, RECORDS))
    assert counts_of(made) == {"x1": {"alpha": 1, "beta": 2}, "x2": {"beta": 1, "gamma": 1}, "x3": {"gamma": 1}}
    check_statistics(made)
    assert not made.is_dated


@java
def test_dates_come_from_the_stored_json(tmp_path: Path):
    index = foreign_index(tmp_path, RECORDS, "-storeRaw")
    made = open_snapshot(index)
    assert {d: int(t) for d, t in zip(made.docids, made.times, strict=True)} == {
        "x1": JANUARY,
        "x2": UNDATED,
        "x3": UNDATED,
    }
    assert json.loads((only_snapshot(index) / "snapshot.json").read_text())["unparsed_dates"] == 1
    other = open_snapshot(index, date_field="when")
    assert {d: int(t) for d, t in zip(other.docids, other.times, strict=True)} == {
        "x1": UNDATED,
        "x2": UNDATED,
        "x3": JANUARY + 86_400_000,
    }


@java
def test_vectors_and_positions_change_nothing(tmp_path: Path):
    plain = open_snapshot(foreign_index(tmp_path / "a", RECORDS))
    rich = open_snapshot(foreign_index(tmp_path / "b", RECORDS, "-storePositions", "-storeDocvectors", "-storeRaw"))
    assert counts_of(plain) == counts_of(rich)


# -- helpers -----------------------------------------------------------------------------------------------------


def start_python(code: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, check=False
    )
