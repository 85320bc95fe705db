"""Labelled documents: an index and the file it was made from must tell the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Document, Reader
from sdretrieval.core.errors import IndexProblem, InputError, ParameterError
from sdretrieval.core.times import UNDATED, parse_time
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.learn.labelled import LabelledCorpus, corpus_from_documents, read_labelled

DOCUMENTS = [
    {
        "id": "a",
        "contents": "wheat and corn prices rise",
        "labels": ["grain", "trade"],
        "date": "1987-03-01",
        "split": "train",
    },
    {"id": "b", "contents": "corn harvest, corn exports", "labels": "grain", "split": "test"},
    {"id": "c", "contents": "the bank raised interest rates", "labels": ["interest"], "date": "1987-03-05"},
    {"id": "d", "contents": "nothing to say about it", "labels": []},
    {"id": "e", "contents": "oil exports", "labels": [7], "split": "train"},
    {"id": "f", "contents": "   ", "labels": ["grain"]},
]


def write(path: Path, records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("labelled")


@pytest.fixture(scope="module")
def file(folder) -> Path:
    return write(folder / "docs.jsonl", DOCUMENTS)


@pytest.fixture(scope="module")
def index(folder, file) -> Path:
    build_index(Reader(date="date").read([file]), folder / "index", threads=1)
    return folder / "index"


def in_words(corpus: LabelledCorpus) -> dict[str, dict[str, int]]:
    dense = corpus.counts.toarray()
    return {
        docid: {word: int(n) for word, n in zip(corpus.vocabulary, row, strict=True) if n}
        for docid, row in zip(corpus.docids, dense, strict=True)
    }


def test_a_file_gives_rows_in_its_order(file):
    corpus = read_labelled(file, fields=["split"], date_field="date")
    assert list(corpus.docids) == ["a", "b", "c", "d", "e"]
    assert corpus.labels == (("grain", "trade"), ("grain",), ("interest",), (), ("7",))
    assert corpus.fields == {"split": ["train", "test", None, None, "train"]}
    assert corpus.times.tolist() == [parse_time("1987-03-01"), UNDATED, parse_time("1987-03-05"), UNDATED, UNDATED]
    assert corpus.without_text == ("f",)
    assert corpus.counts.dtype == np.float64
    assert in_words(corpus)["b"] == {"corn": 2, "harvest": 1, "export": 1}
    assert corpus.label_names == ["7", "grain", "interest", "trade"]
    assert corpus.has_label("grain").tolist() == [True, True, False, False, False]


def test_an_index_tells_the_same_as_its_file(file, index):
    from_file = read_labelled(file, fields=["split"], date_field="date")
    from_index = read_labelled(index, fields=["split"])
    assert in_words(from_file) == in_words(from_index)
    assert from_file.labels == from_index.labels
    assert from_file.fields == from_index.fields
    np.testing.assert_array_equal(from_file.times, from_index.times)
    assert from_index.counts.shape == open_snapshot(index).by_doc.shape
    assert read_labelled(open_snapshot(index)).labels == from_index.labels


def test_many_documents_keep_the_order_of_the_file(folder):
    """More than one shard, so that threads really mix."""
    rng = np.random.default_rng(5)
    texts = [f"word{i} " + " ".join(f"w{k}" for k in rng.integers(0, 50, 5)) for i in range(11_000)]
    records = [{"id": f"n{i}", "contents": texts[i], "labels": str(i % 3)} for i in rng.permutation(11_000)]
    corpus = read_labelled(write(folder / "many.jsonl", records), analyzer=AnalyzerSpec(language="whitespace"))
    assert list(corpus.docids) == [record["id"] for record in records]
    assert corpus.single_labels().tolist() == [record["labels"] for record in records]
    own = [corpus.vocabulary.index(f"word{record['id'][1:]}") for record in records[:50]]
    assert corpus.counts[np.arange(50), own].A1.tolist() == [1.0] * 50
    assert corpus.counts.sum() == 6 * 11_000


def test_deleted_documents_are_left_out(folder, file):
    """Rows and stored fields must stay together when Lucene's numbers have gaps."""
    build_index(Reader().read([file]), folder / "holes", threads=1)
    _delete(folder / "holes", "b")
    corpus = read_labelled(folder / "holes")
    assert list(corpus.docids) == ["a", "c", "d", "e"]
    assert corpus.labels == (("grain", "trade"), ("interest",), (), ("7",))


def _delete(index: Path, docid: str) -> None:
    from sdretrieval.core.jvm import java_class

    directory = java_class("org.apache.lucene.store.FSDirectory").open(
        java_class("java.nio.file.Paths").get(str(index))
    )
    config = java_class("org.apache.lucene.index.IndexWriterConfig")()
    config.setMergePolicy(java_class("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
    term = java_class("org.apache.lucene.index.Term")("id", docid)
    writer.deleteDocuments(java_class("org.apache.lucene.search.TermQuery")(term))
    writer.close()
    directory.close()


def test_select_by_numbers_and_by_mask(file):
    corpus = read_labelled(file, fields=["split"])
    some = corpus.select([4, 0])
    assert (list(some.docids), some.labels) == (["e", "a"], (("7",), ("grain", "trade")))
    assert some.fields == {"split": ["train", "train"]}
    np.testing.assert_array_equal(some.counts.toarray(), corpus.counts.toarray()[[4, 0]])
    masked = corpus.select(corpus.has_label("grain"))
    assert list(masked.docids) == ["a", "b"]
    assert len(corpus.select([])) == 0
    with pytest.raises(ParameterError, match="mask"):
        corpus.select(np.array([True]))


def test_single_labels_name_the_document(file):
    corpus = read_labelled(file)
    assert corpus.select([1, 2, 4]).single_labels().tolist() == ["grain", "interest", "7"]
    with pytest.raises(InputError, match=r"'a' has 2 labels \(grain, trade\)"):
        corpus.single_labels()
    with pytest.raises(InputError, match="'d' has no label"):
        corpus.select([1, 3]).single_labels()


def test_aligned_to_another_vocabulary(file):
    corpus = read_labelled(file)
    aligned = corpus.aligned(["zebra", "export", "corn"])
    np.testing.assert_array_equal(aligned.toarray(), [[0, 0, 1], [0, 1, 2], [0, 0, 0], [0, 0, 0], [0, 1, 0]])


def test_tables_with_a_separator(folder):
    table = folder / "docs.csv"
    table.write_text('id,contents,topics\n1,"corn, wheat",grain;trade\n2,gold,\n3,oil,crude\n')
    corpus = read_labelled(table, label_field="topics", label_separator=";")
    assert corpus.labels == (("grain", "trade"), (), ("crude",))


def test_no_labels_wanted_or_needed(file):
    assert set(read_labelled(file, label_field=None).labels) == {()}
    assert set(read_labelled(file, label_field="topic", labels_required=False).labels) == {()}


def test_documents_made_in_python():
    documents = [Document("1", "corn corn", fields={"labels": ["x"], "n": 3}), Document("2", "oil")]
    corpus = corpus_from_documents(documents, fields=["n"])
    assert corpus.labels == (("x",), ())
    assert corpus.fields == {"n": [3, None]}
    assert documents[0].fields == {"labels": ["x"], "n": 3}  # as they were


def test_a_missing_field_is_named_with_what_there_is(file, index):
    for source in (file, index):
        with pytest.raises(
            InputError, match=r"from 'a' on, has a field 'topic'; there is 'labels', 'date', 'split'"
        ) as e:
            read_labelled(source, label_field="topic")
        assert str(source) in str(e.value)
        assert "--label-field" in e.value.remedy
    with pytest.raises(InputError, match="has a field 'fold'"):
        read_labelled(file, fields=["fold"])


def test_a_label_of_the_wrong_kind(folder):
    path = write(folder / "bad.jsonl", [DOCUMENTS[0], {"id": "x", "contents": "corn", "labels": [{"name": "grain"}]}])
    with pytest.raises(InputError, match=r"bad\.jsonl:2: field 'labels': a label must be text or a number, got dict"):
        read_labelled(path)
    assert list(read_labelled(path, skip_bad=True).docids) == ["a"]
    build_index(Reader().read([path]), folder / "bad", threads=1)
    with pytest.raises(InputError, match="document 'x': field 'labels'"):
        read_labelled(folder / "bad")


def test_an_index_without_stored_fields(folder, file):
    build_index(Reader().read([file]), folder / "unstored", store_raw=False, threads=1)
    with pytest.raises(IndexProblem, match="does not store the fields of 'a'") as e:
        read_labelled(folder / "unstored")
    assert "--store-raw" in e.value.remedy
    assert len(read_labelled(folder / "unstored", label_field=None)) == 5


def test_the_analyzer_of_an_index_is_its_own(index):
    assert read_labelled(index).analyzer == AnalyzerSpec()
    with pytest.raises(ParameterError, match="was asked for"):
        read_labelled(index, analyzer=AnalyzerSpec(stemmer="none"))
    with pytest.raises(ParameterError, match="in memory"):
        read_labelled(Snapshot.from_counts([[1]], ["a"]))


def test_analysis_as_asked_for(file):
    corpus = read_labelled(file, analyzer=AnalyzerSpec(stemmer="none", stopwords=False))
    assert in_words(corpus)["c"] == {"the": 1, "bank": 1, "raised": 1, "interest": 1, "rates": 1}


def test_nothing_is_left_behind(file, tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("SDRETRIEVAL_SNAPSHOTS", str(tmp_path / "snapshots"))
    read_labelled(file)
    with pytest.raises(InputError):
        read_labelled(tmp_path / "absent.jsonl")
    assert not list((tmp_path / "temporary").iterdir())
    assert not list((tmp_path / "snapshots").iterdir())


def test_parts_must_fit():
    with pytest.raises(ParameterError, match="1 docids"):
        LabelledCorpus(["a"], csr_matrix((2, 1)), ["w"], ((), ()), np.zeros(2, dtype=np.int64))
