"""Documents added, replaced and deleted: as if the index had been built anew, for every model and in Lucene too."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Document
from sdretrieval.collection.records import Topic
from sdretrieval.core.errors import IndexProblem, InputError, ParameterError
from sdretrieval.index import snapshot as module
from sdretrieval.index.index_notes import read_notes
from sdretrieval.index.living import append_documents, delete_documents
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.retrieval import search
from sdretrieval.ranking.time.wrappers import AsOf

pytestmark = pytest.mark.java
DAY = 86_400_000


def documents(first: int, n: int, *, seed: int = 1) -> list[Document]:
    chance = random.Random(f"{seed} {first}")
    words = [f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(60)]
    return [
        Document(f"d{k:03d}", " ".join(chance.choices(words[: 20 + k % 40], k=12)), k * DAY if k % 7 else None)
        for k in range(first, first + n)
    ]


TOPICS = [Topic("1", "wordaa wordba"), Topic("2", "wordca wordda wordzb"), Topic("3", "wordta", time=40 * DAY)]


def contents(snapshot: Snapshot) -> dict[str, tuple]:
    """All that a snapshot says of its documents, whatever their order."""
    rows = {}
    for d, docid in enumerate(snapshot.docids):
        span = slice(int(snapshot.doc_ptr[d]), int(snapshot.doc_ptr[d + 1]))
        terms = snapshot.vocabulary.take(snapshot.doc_terms[span])
        counts = tuple(zip(terms, snapshot.doc_counts[span].tolist(), strict=True))
        rows[docid] = (counts, int(snapshot.doc_lengths[d]), int(snapshot.times[d]))
    return rows


def runs(run) -> dict:
    return {qid: (ranking.docids, ranking.scores.tolist()) for qid, ranking in run.items()}


def same(changed: Path, anew: Path, tmp_path: Path) -> None:
    """One index after changes, the other built from the documents it should have: no difference anywhere."""
    ours, theirs = open_snapshot(changed), open_snapshot(anew)
    assert contents(ours) == contents(theirs)
    assert list(ours.vocabulary) == list(theirs.vocabulary)
    assert ours.cf.tolist() == theirs.cf.tolist() and ours.df.tolist() == theirs.df.tolist()
    shutil.rmtree(module.snapshot_folder(changed))
    whole = open_snapshot(changed)  # the same arrays, byte for byte, without the earlier snapshot
    for name, values in ours.arrays.items():
        assert np.array_equal(values, whole.arrays[name]), name
    models = [make_ranker(name) for name in rankers()]
    models += [AsOf(ranker=make_ranker("rm3")), AsOf(ranker=make_ranker("sd3"))]
    for ranker in models:
        topics = [topic for topic in TOPICS if topic.time is not None] if isinstance(ranker, AsOf) else TOPICS
        one, other = (search(path, topics, ranker, hits=50) for path in (changed, anew))
        assert runs(one) == runs(other), ranker.name


def test_appending_is_building_anew(tmp_path, monkeypatch):
    build_index(documents(0, 60), tmp_path / "index", threads=1)
    open_snapshot(tmp_path / "index")
    for first in (60, 65):
        summary = append_documents(documents(first, 5), tmp_path / "index", notes={"source": {"month": first}})
    assert (summary.documents, summary.added, summary.deleted) == (70, 5, 0)
    build_index([*documents(0, 60), *documents(60, 5), *documents(65, 5)], tmp_path / "anew", threads=1)
    same(tmp_path / "index", tmp_path / "anew", tmp_path)
    assert read_notes(tmp_path / "index")["source"] == {"month": 65}
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_equal_scores_do_not_tell_in_which_order_documents_came(tmp_path):
    """Lucene numbers documents as they come, and merging may change it: Lucene's own models go by docids too."""
    alike = [Document(f"d{k}", "wordaa wordba") for k in range(9)]
    for name, given in (("one", alike), ("other", alike[::-1])):
        build_index([*given, Document("last", "wordca")], tmp_path / name, threads=1)
    for model in (name for name in rankers() if name.startswith("lucene-")):
        one, other = (search(tmp_path / name, TOPICS[:1], make_ranker(model), hits=4) for name in ("one", "other"))
        assert runs(one) == runs(other), model


def test_only_what_is_new_is_read_from_lucene(tmp_path, monkeypatch):
    build_index(documents(0, 60), tmp_path / "index", threads=1)
    kept: list[int] = []
    from sdretrieval.index.lucene import export

    real = export.append_to
    monkeypatch.setattr(export, "append_to", lambda old, n, new: kept.append(n) or real(old, n, new))
    append_documents(documents(60, 5), tmp_path / "index")
    assert kept == [60]
    append_documents(documents(65, 200), tmp_path / "index")  # more than there was: read anew
    assert kept == [60]


def test_replacing_and_deleting(tmp_path):
    build_index(documents(0, 60), tmp_path / "index", threads=1)
    newer = documents(55, 10, seed=2)  # five of them are there
    with pytest.raises(InputError, match="document id 'd055' is in the index already"):
        append_documents(newer, tmp_path / "index")
    summary = append_documents(newer, tmp_path / "index", replace=True)
    assert (summary.documents, summary.added, summary.deleted) == (65, 10, 5)
    summary = delete_documents(["d000", "d060", "d000"], tmp_path / "index")
    assert (summary.documents, summary.deleted) == (63, 2)
    left = [d for d in [*documents(0, 60)[:55], *newer] if d.docid not in ("d000", "d060")]
    build_index(left, tmp_path / "anew", threads=1)
    same(tmp_path / "index", tmp_path / "anew", tmp_path)


def test_what_cannot_be_done_changes_nothing(tmp_path):
    index = tmp_path / "index"
    with pytest.raises(IndexProblem, match="no index at"):
        append_documents(documents(0, 1), index)
    build_index(documents(0, 3), index, threads=1)
    before = sorted(path.name for path in index.iterdir())
    with pytest.raises(ParameterError, match=r"no document of .* has the id 'x', nor 1 more"):
        delete_documents(["x", "d000", "y"], index)
    with pytest.raises(ParameterError, match="the analyzer of"):
        append_documents(documents(3, 1), index, analyzer=AnalyzerSpec(stemmer="none"))
    with pytest.raises(InputError, match="no document to index"):
        append_documents([], index)
    assert sorted(path.name for path in index.iterdir()) == before
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".snapshot")] == ["index"]


def test_an_index_of_another_tool_is_not_added_to_but_deleted_from(tmp_path):
    from lucene_writing import without_notes

    build_index(documents(0, 3), tmp_path / "index", threads=1)
    without_notes(tmp_path / "index")
    with pytest.raises(IndexProblem, match="made by another tool"):
        append_documents(documents(3, 1), tmp_path / "index")
    assert delete_documents(["d001"], tmp_path / "index").documents == 2
    assert read_notes(tmp_path / "index") == {}


def test_all_documents_may_be_deleted_and_others_added(tmp_path):
    build_index(documents(0, 3), tmp_path / "index", threads=1)
    assert delete_documents([f"d{k:03d}" for k in range(3)], tmp_path / "index").documents == 0
    assert append_documents(documents(3, 2), tmp_path / "index").documents == 2


def test_pyserini_opens_it_by_its_path_at_every_step(tmp_path):
    from sdretrieval.core.jvm import java_class

    def found(word: str) -> list[str]:
        searcher = java_class("io.anserini.search.SimpleSearcher")(str(tmp_path / "index"))
        try:
            return sorted(hit.docid for hit in searcher.search(word, 10))
        finally:
            searcher.close()

    build_index([Document("a", "tea")], tmp_path / "index")
    assert found("tea") == ["a"]
    append_documents([Document("b", "tea milk")], tmp_path / "index")
    assert found("tea") == ["a", "b"]
    append_documents([Document("a", "coffee")], tmp_path / "index", replace=True)
    assert (found("tea"), found("coffee")) == (["b"], ["a"])
    delete_documents(["a"], tmp_path / "index")
    assert found("coffee") == []
    build_index([Document("c", "water")], tmp_path / "index", overwrite=True)
    assert (found("tea"), found("water")) == ([], ["c"])
