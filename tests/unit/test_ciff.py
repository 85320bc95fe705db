"""CIFF: what is written is read back, by ours and by the reference reader; what is damaged is refused."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdretrieval.collection.corpus import read_corpus
from sdretrieval.collection.corpus.ciff import varints as read_varints
from sdretrieval.core.errors import InputError
from sdretrieval.index.ciff import varints, write_ciff
from sdretrieval.index.snapshot import Snapshot

WORDS = ["apple", "Österreich", "zebra", "日本"]


def snapshot_of(counts: list[list[int]]) -> Snapshot:
    return Snapshot.from_counts(np.array(counts).reshape(-1, len(WORDS)), WORDS, [f"d-{i}" for i in range(len(counts))])


def counts_of(path: Path) -> dict[str, Counter[str]]:
    return {d.docid: Counter(d.contents.split()) for d in read_corpus([path], format="ciff", contents=("contents",))}


def known_counts(counts: list[list[int]]) -> dict[str, Counter[str]]:
    return {f"d-{i}": +Counter(dict(zip(WORDS, row, strict=True))) for i, row in enumerate(counts)}


SMALL = [[0, 3, 1, 0], [2, 0, 200, 1], [0, 0, 1, 0]]


@pytest.fixture
def small(tmp_path) -> Path:
    write_ciff(tmp_path / "small.ciff", snapshot_of(SMALL))
    return tmp_path / "small.ciff"


@given(st.lists(st.lists(st.integers(0, 300), min_size=4, max_size=4).filter(any), min_size=1, max_size=5))
def test_what_is_written_is_read_back(tmp_path_factory, counts):
    path = tmp_path_factory.mktemp("ciff") / "a.ciff.gz"
    write_ciff(path, snapshot_of(counts))
    assert counts_of(path) == known_counts(counts)


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1))
def test_numbers_of_seven_bits_a_byte(numbers):
    data = varints(np.array(numbers))
    assert read_varints(np.frombuffer(data, np.uint8)).tolist() == numbers
    assert len(data) == sum(max(1, -(-number.bit_length() // 7)) for number in numbers)


def test_the_reference_reader_reads_it(small):
    reading = pytest.importorskip("ciff_toolkit.read", reason="the reference reader, ciff-toolkit, is not installed")
    with reading.CiffReader(small) as reader:
        header = reader.read_header()
        found: dict[str, Counter[str]] = {f"d-{i}": Counter() for i in range(3)}
        for postings in reader.read_postings_lists():
            docs = np.cumsum([posting.docid for posting in postings.postings])
            assert postings.df == len(docs)
            assert postings.cf == sum(posting.tf for posting in postings.postings)
            for doc, posting in zip(docs, postings.postings, strict=True):
                found[f"d-{doc}"][postings.term] = posting.tf
        documents = list(reader.read_documents())
    assert found == known_counts(SMALL)
    assert [(d.docid, d.collection_docid, d.doclength) for d in documents] == [
        (0, "d-0", 4),
        (1, "d-1", 203),
        (2, "d-2", 1),
    ]
    assert (header.num_docs, header.total_docs, header.total_postings_lists) == (3, 3, 4)
    assert (header.total_terms_in_collection, header.average_doclength) == (208, 208 / 3)
    assert "sdretrieval" in header.description


def test_what_the_reference_writer_writes_is_read(small, tmp_path):
    """It leaves out zeros, as protocol buffers do: the first document's number."""
    reading = pytest.importorskip("ciff_toolkit.read", reason="the reference reader, ciff-toolkit, is not installed")
    from ciff_toolkit.write import CiffWriter

    with reading.CiffReader(small) as reader, CiffWriter(tmp_path / "again.ciff") as writer:
        writer.write_header(reader.read_header())
        writer.write_postings_lists(reader.read_postings_lists())
        writer.write_documents(reader.read_documents())
    assert (tmp_path / "again.ciff").stat().st_size < small.stat().st_size
    assert counts_of(tmp_path / "again.ciff") == known_counts(SMALL)


def test_a_cut_file_is_refused_wherever_it_is_cut(small, tmp_path):
    whole = small.read_bytes()
    cut = tmp_path / "cut.ciff"
    for size in range(len(whole)):
        cut.write_bytes(whole[:size])
        with pytest.raises(InputError):
            counts_of(cut)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"\x0a\x03a b", "a space in it"),
        (b"\x0a\x01a\x22\x04\x08\x01\x10\x00", "not positive"),
        (b"\x0a\x01a\x22\x04\x08\x01\x10\x01\x22\x04\x08\x00\x10\x01", "do not rise"),
        (b"\x0a\x01a\x22\x04\x10\x01\x08\x01", "a document and a count"),
        (b"\x0a\x01a\x22\x08\x08\x01\x10\xff\xff\xff\xff\x07", "longer than|not positive"),
        (b"\x0a\x09a", "cut short"),
        (b"\x0a\x01a\x22\x04\x08\x09\x10\x01", "without a record"),
    ],
)
def test_postings_that_cannot_be(tmp_path, message, said):
    document = b"\x08\x01\x12\x01d"
    parts = b"\x10\x01\x18\x01", message, document
    (tmp_path / "bad.ciff.gz").write_bytes(gzip.compress(b"".join(bytes([len(part)]) + part for part in parts)))
    with pytest.raises(InputError, match=said):
        counts_of(tmp_path / "bad.ciff.gz")
