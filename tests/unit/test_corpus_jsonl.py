"""JSON lines, arrays and pretty-printed objects, and what is wrong with them."""

from __future__ import annotations

import gc
import gzip
import json
import warnings
from pathlib import Path

import pytest
from corpus_reading import check_refused, error_of, read

from sdretrieval.collection.corpus import Problems, Reader
from sdretrieval.core.errors import ParameterError

GOOD = {"id": "d1", "contents": "tea and time", "published": "2024-05-01", "labels": ["a", "b"]}


def write(path: Path, *lines: object) -> Path:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n"
    path.write_text(text, encoding="utf-8")
    return path


def test_one_object_per_line(tmp_path):
    (document,) = read(write(tmp_path / "a.jsonl", GOOD))
    assert (document.docid, document.contents, document.time) == ("d1", "tea and time", None)
    assert document.fields == {"published": "2024-05-01", "labels": ["a", "b"]}
    assert (document.source, document.line) == (str(tmp_path / "a.jsonl"), 1)


def test_blank_lines_count_as_lines_and_a_date_is_kept(tmp_path):
    path = write(tmp_path / "a.jsonl", GOOD, "", "   ", {"id": "d2", "contents": "x"})
    first, second = read(path, date="published")
    assert (first.line, second.line) == (1, 4)
    assert first.time == 1714521600000  # date -d 2024-05-01T00:00:00Z +%s
    assert first.fields["published"] == "2024-05-01"
    assert second.time is None  # undated, not bad
    (blank,) = read(write(tmp_path / "b.jsonl", GOOD, {**GOOD, "id": "3", "published": ""}), date="published")[1:]
    assert blank.time is None
    assert "none of 2 documents has a field 'publised'" in error_of(path, date="publised")


def test_fields_are_mapped_and_reserved_names_make_way(tmp_path):
    record = {"docno": 7, "body": "text", "id": "other", "_id": "kept", "sdr_time": "mine"}
    (document,) = read(write(tmp_path / "a.jsonl", record), docid="docno", contents=("body",))
    assert (document.docid, document.contents) == ("7", "text")
    assert document.fields == {"_id": "kept", "__id": "other", "_sdr_time": "mine"}


def test_several_contents_fields_are_joined_and_kept(tmp_path):
    records = [{"id": "1", "title": "Tea", "text": "leaves"}, {"id": "2", "text": "no title", "title": None}]
    first, second = read(write(tmp_path / "a.jsonl", *records), contents=("title", "text"))
    assert first.contents == "Tea\nleaves"
    assert first.fields == {"title": "Tea", "text": "leaves"}
    assert second.contents == "no title"


@pytest.mark.parametrize("form", [gzip.compress, lambda data: b"\xef\xbb\xbf" + data], ids=["gzip", "mark"])
def test_gzip_and_a_byte_order_mark_are_told_by_their_bytes(tmp_path, form):
    (tmp_path / "a.jsonl").write_bytes(form(json.dumps(GOOD).encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # files that are not closed
        assert read(tmp_path / "a.jsonl")[0].docid == "d1"
        gc.collect()


def test_folder_is_read_in_order_without_hidden_and_unknown_files(tmp_path):
    (tmp_path / "b").mkdir()
    for docid, name in enumerate((".hidden.jsonl", "a.jsonl", "b.jsonl", "b/z.jsonl")):
        write(tmp_path / name, {"id": docid, "contents": "x"})
    (tmp_path / "README.md").write_text("# about")
    reader = Reader()
    assert [document.docid for document in reader.read([tmp_path])] == ["1", "2", "3"]
    assert reader.ignored == [str(tmp_path / "README.md")]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([GOOD, {"id": "d2", "contents": "y"}], indent=1),
        json.dumps(GOOD, indent=1) + "\n" + json.dumps({"id": "d2", "contents": "y"}, indent=1),
        json.dumps(GOOD) + "\n" + json.dumps({"id": "d2", "contents": "y"}),
    ],
)
def test_json_files_may_hold_an_array_or_objects(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    assert [document.docid for document in read(tmp_path / "a.json")] == ["d1", "d2"]


def test_error_in_an_array_names_the_line(tmp_path):
    (tmp_path / "a.json").write_text('[\n{"id": "1", "contents": "x"},\n{"id": oops}]')
    assert error_of(tmp_path / "a.json").startswith(f"{tmp_path}/a.json:3: malformed JSON")


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ('{"id": "2", "contents": "cut sho', "malformed JSON (Unterminated string starting at at column 25)"),
        ('{"id": "2", "contents": "x", "n": NaN}', "NaN is not JSON"),
        ("[1, 2]", "a document must be a JSON object, got list: [1, 2]"),
        ('"text"', "a document must be a JSON object, got str"),
        ("[" * 100_000, "nested too deeply"),
        ('{"docno": "2", "contents": "x"}', "no field 'id'; there is 'docno', 'contents'"),
        ('{"id": null, "contents": "x"}', "no field 'id'"),
        ('{"id": 1.5, "contents": "x"}', "the id must be text or a whole number, got float: 1.5"),
        ('{"id": true, "contents": "x"}', "the id must be text or a whole number, got bool: True"),
        ('{"id": ["2"], "contents": "x"}', "the id must be text or a whole number, got list"),
        ('{"id": "", "contents": "x"}', "the id is empty"),
        ('{"id": "a b", "contents": "x"}', "the id 'a b' has a blank in it"),
        ('{"id": "a\\u00a0b", "contents": "x"}', "has a blank in it"),
        ('{"id": "a\\ud800", "contents": "x"}', "has a control character or a broken character"),
        ('{"id": "2"}', "no field 'contents'; there is 'id'"),
        ('{"id": "2", "contents": null}', "no field 'contents'"),
        ('{"id": "2", "contents": [{"x": 1}]}', "contents must be text, got list: [{'x': 1}]"),
        ('{"id": "2", "contents": {"main": "x"}}', "perhaps `contents.main`"),
        ('{"id": "2", "contents": 7}', "contents must be text, got int: 7"),
    ],
)
def test_bad_documents_are_errors_with_file_and_line(tmp_path, bad, told):
    path = write(tmp_path / "a.jsonl", {"id": "1", "contents": "x", "date": "2024-05-01"}, bad)
    check_refused(path, 2, told, date="date")


def test_a_missing_field_is_answered_with_what_there_is(tmp_path):
    message = error_of(write(tmp_path / "a.jsonl", {"docno": "1", "contents": "x"}))
    assert message.endswith("Name the field that holds the id with --id-field, perhaps `docno`.")
    message = error_of(write(tmp_path / "a.jsonl", {"id": "1", "text": "x"}))
    assert message.endswith("Name the field(s) that hold the text with --contents-field, perhaps `text`.")


def test_wrong_encoding_is_named_with_its_line_and_the_way_out(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "1", "contents": "x"}\n' + '{"id": "2", "contents": "naïve"}\n'.encode("latin-1"))
    message = error_of(path)
    assert message.startswith(f"{path}:2: not utf-8 text: byte 0xef")
    assert "--encoding latin-1" in message
    assert read(path, encoding="latin-1")[1].contents == "naïve"
    problems = Problems(skip=True)
    assert [document.docid for document in read(path, problems=problems)] == ["1"]
    assert problems.count == 1


def test_utf_16_can_be_named_and_is_noticed_when_wrong(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "contents": "naïve"}\n', encoding="utf-16")
    assert read(path, encoding="utf-16")[0].contents == "naïve"
    (tmp_path / "odd.jsonl").write_bytes(b"\xff\xfe{")  # half a character
    assert "not utf-16 text" in error_of(tmp_path / "odd.jsonl", encoding="utf-16")


def test_truncated_gzip_is_an_error_after_its_last_line(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    lines = b"".join(json.dumps({"id": str(i), "contents": f"{i * i}"}).encode() + b"\n" for i in range(2000))
    path.write_bytes(gzip.compress(lines)[:-2000])
    message = error_of(path)
    assert "damaged gzip data" in message
    assert "Fetch the file again" in message


def test_nothing_to_read(tmp_path):
    path = tmp_path / "nowhere.jsonl"
    assert error_of(path).startswith(f"{path}: no such file or folder")
    assert "no file in it" in error_of(tmp_path)
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "more.rst").write_text("x")
    message = error_of(tmp_path)
    assert "cannot tell the format of any of the 2 files in it" in message
    assert "--format: jsonl, trec, html, text, csv, tsv" in message


def test_what_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr("sdretrieval.collection.corpus.sources.LONGEST_LINE", 100)
    path = write(tmp_path / "a.jsonl", {"id": "1", "contents": "x" * 500}, {"id": "2", "contents": "x" * 51})
    assert f"{path}:1: line longer than 100 characters" in error_of(path)
    assert [document.docid for document in read(path, problems=Problems(skip=True))] == ["2"]
    monkeypatch.setattr("sdretrieval.collection.corpus.record.LONGEST_CONTENTS", 50)
    assert "Anserini takes at most 50" in error_of(write(path, {"id": "2", "contents": "x" * 51}))


def test_unknown_encoding_and_format_are_parameter_errors():
    with pytest.raises(ParameterError, match="unknown encoding 'klingon'"):
        Reader(encoding="klingon")
    with pytest.raises(ParameterError, match="unknown format 'doc'"):
        Reader(format="doc")


@pytest.mark.parametrize(
    ("text", "ids", "told"),
    [
        ('[{"id": "1", "contents": "a"},\n{"id": "2", "contents": "b"}', "12", ":2: the array that begins on line 1"),
        ('[{"id": "1", "contents": "a"},\n', "1", ":2: the array that begins on line 1 is not closed"),
        ("\n[", "", ":2: the array that begins on line 2 is not closed"),
        ('[{"id": "1", "contents": "a"} {"id": "2", "contents": "b"}]', "1", "Expecting ',' or ']'"),
        ('[{"id": "1", "contents": "a"},]', "1", "Expecting value"),
        ('{\n"id": "1", "contents": "a"}]', "1", "Expecting value"),
        ('[{"id": "1", "contents": "a"}]\n[{"id": "2", "contents": "b"}, 3]', "12", "a JSON object, got int: 3"),
        ("[" * 100_000, "", "nested too deeply"),
        ('[{"id": "1", "contents": "a"},\n' + "[" * 100_000, "1", ":2: malformed JSON (nested too deeply)"),
        ('[{"id": "1", "contents": "a", "n": ' + "9" * 5000 + "}]", "", "malformed JSON"),
    ],
)
def test_arrays_are_read_to_their_end(tmp_path, text, ids, told):
    (tmp_path / "a.json").write_text(text)
    assert told in error_of(tmp_path / "a.json")
    problems = Problems(skip=True)
    assert [d.docid for d in read(tmp_path / "a.json", problems=problems)] == list(ids)
    assert problems.count == 1
