"""Corpora as people have them: mixed dates, lists, nested fields, semicolons, empty cells, pictures among pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from corpus_reading import error_of, read

from sdretrieval.collection.corpus import Problems, Reader
from sdretrieval.collection.corpus.record import lookup, read_time
from sdretrieval.core.errors import InputError, ParameterError

DATES = ["2020-01-02", "03.04.2020", "05/06/2020", "last week", "", "99.99.2020"]


@pytest.fixture
def mixed(tmp_path) -> Path:
    lines = ["id,date,contents", *(f"{i},{date},text {i}" for i, date in enumerate(DATES))]
    (tmp_path / "mixed.csv").write_text("\n".join(lines))
    return tmp_path / "mixed.csv"


def times(documents) -> list[str]:
    return [document.docid for document in documents if document.time is not None]


def test_several_patterns_are_tried_in_order(mixed):
    patterns = ["auto", "%d.%m.%Y", "%m/%d/%Y"]
    documents = read(mixed, date="date", date_format=patterns, undated="keep")
    assert len(documents) == 6
    assert times(documents) == ["0", "1", "2"]
    assert read_time("03.04.2020", patterns) == read_time("2020-04-03")
    assert read_time("05/06/2020", ["%d/%m/%Y", "%m/%d/%Y"]) == read_time("2020-06-05")
    with pytest.raises(ValueError, match=r"'soon'. Accepted: 'auto', '%d\.%m\.%Y'"):
        read_time("soon", patterns)


@pytest.mark.parametrize(
    ("undated", "skip", "kept", "noted"),
    [("keep", False, "012345", 4), ("drop", False, "0", 5), (None, True, "012345", 4), ("drop", True, "0", 5)],
)
def test_what_becomes_of_documents_without_a_readable_date(mixed, undated, skip, kept, noted):
    """One of the six has no date at all: that is no problem unless it is to be dropped."""
    reader = Reader(date="date", undated=undated, problems=Problems(skip=skip))
    assert "".join(document.docid for document in reader.read([mixed])) == kept
    assert (reader.dates.count, reader.problems.count) == (noted, 0)


def test_a_date_that_cannot_be_read_is_an_error_with_ways_out(mixed):
    assert "mixed.csv:3: field 'date': not a time: '03.04.2020'" in error_of(mixed, date="date")
    told = error_of(mixed, date="date", date_format=["auto", "%d.%m.%Y", "%m/%d/%Y"])
    assert "mixed.csv:5" in told
    assert "--undated keep" in told
    told = error_of(
        mixed, date="date", date_format=["auto", "%d.%m.%Y", "%m/%d/%Y", "last%W*", "last week"], undated="error"
    )
    assert "mixed.csv:6: no date in field 'date'" in told
    with pytest.raises(ParameterError, match="keep, drop or error"):
        Reader(undated="perhaps")


def test_problems_are_told_by_kind_with_counts_and_first_places(tmp_path):
    path = tmp_path / "many.jsonl"
    lines = [json.dumps({"id": str(i), "contents": "x", "date": f"day {i}"}) for i in range(500)]
    lines += [json.dumps({"id": str(i), "text": "x"}) for i in range(3)] + [
        '{"id": "9", "contents": "y", "date": 2020}'
    ]
    path.write_text("\n".join(lines))
    reader = Reader(date="date", problems=Problems(skip=True))
    assert len(list(reader.read([path]))) == 501
    (dates,) = reader.dates.grouped()
    assert dates.startswith(f"500 × {path}:1: field 'date': not a time: 'day 0'")
    assert dates.endswith(f"(also {path}:2, {path}:3, …)")
    (fields,) = reader.problems.grouped()
    assert fields.startswith(f"3 × {path}:501: no field 'contents'; there is 'id', 'text'")
    assert fields.endswith(f"(also {path}:502, {path}:503)")


def test_many_kinds_are_cut_short():
    problems = Problems(skip=True)
    for kind in range(300):
        problems.report(InputError("a" * kind + "!"))
    *shown, last = problems.grouped()
    assert len(shown) == 12
    assert last == "… and 288 of other kinds"
    assert len(problems.kinds) == 100  # a hostile corpus does not fill the memory


def test_nested_fields_and_lists(tmp_path):
    record = {
        "meta": {"id": "a1", "dates": ["2020-05-01"]},
        "headline": {"main": "Tea", "kicker": None},
        "paragraphs": [{"text": "first"}, {"no": "text"}, {"text": "second"}],
        "keywords": ["green", 7],
    }
    path = tmp_path / "nested.jsonl"
    path.write_text(json.dumps(record))
    contents = ("headline.main", "headline.kicker", "paragraphs.text", "keywords")
    (document,) = read(path, docid="meta.id", contents=contents, date="meta.dates")
    assert (document.docid, document.contents) == ("a1", "Tea\nfirst\nsecond\ngreen\n7")
    assert document.time == read_time("2020-05-01")
    assert document.fields["headline"] == record["headline"]
    assert lookup({"a.b": 1, "a": {"b": 2}}, "a.b") == 1  # a field of that very name goes first
    assert lookup({"a": [1, {"b": 2}]}, "a.c") is None
    assert "perhaps `headline.main`" in error_of(path, docid="meta.id", contents=("headline",))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_told_by_the_header(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    rows = [["id", '"contents, or; not"', "n"], ["1", '"a; b, c|d"', "5"]]
    path.write_text("\ufeff" + "\n".join(delimiter.join(row) for row in rows))
    (document,) = read(path, contents=("contents, or; not",))
    assert (document.docid, document.contents, document.fields) == ("1", "a; b, c|d", {"n": "5"})


def test_empty_cells_and_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,title,contents\n1,,x\n,,\n,\n2,t,\n   ,  ,\n3,t,y\n")
    documents = read(path)
    assert [(d.docid, d.contents, d.fields) for d in documents] == [
        ("1", "x", {}),
        ("2", "", {"title": "t"}),  # a document without text, which is told so
        ("3", "y", {"title": "t"}),
    ]


def test_pictures_among_pages_are_left_alone(tmp_path):
    (tmp_path / "a.html").write_text("<p>tea</p>")
    (tmp_path / "noext").write_text("plain words")
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (tmp_path / "style.css").write_text("p { margin: 0 }")
    (tmp_path / "data.bin").write_bytes(b"abc\0def")
    reader = Reader(format="text")
    assert sorted(document.docid for document in reader.read([tmp_path])) == ["a", "noext"]
    assert sorted(Path(name).name for name in reader.ignored) == ["data.bin", "logo.png", "style.css"]
