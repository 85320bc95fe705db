"""Runs as a command line names them, and what lies beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.tables import number, probability, text_table
from sdretrieval.evaluate.inputs import (
    find_beside,
    read_documents,
    read_expansions,
    read_manifest,
    read_runs,
    split_names,
    stem,
)


def test_a_run_is_called_after_its_file_and_clashes_are_told_apart():
    files = {"ql.trec": "ql", "QL.txt.gz": "QL", "run.bm25.tuned": "run.bm25.tuned", ".txt": ".txt", "a+b.run": "a+b"}
    assert {file: stem(Path(file)) for file in files} == files
    named = [("SD", Path("runs/x.trec")), ("ql", Path("runs/ql.trec"))]
    assert split_names(["SD=runs/x.trec", "runs/ql.trec"]) == named
    assert [name for name, _ in split_names(["a/ql.trec", "b/ql.trec"])] == ["a/ql.trec", "b/ql.trec"]
    with pytest.raises(ParameterError, match="two runs are called 'X'"):
        split_names(["X=a.trec", "X=b.trec"])


def test_a_path_with_an_equals_sign_is_a_path(tmp_path):
    file = tmp_path / "mu=1000.trec"
    file.write_text("")
    assert split_names([str(file)]) == [("mu=1000", file)]


def test_what_lies_beside_a_run_is_read(tmp_path):
    run = tmp_path / "sd.trec.gz"
    with gzip.open(run, "wt") as stream:
        stream.write("1 Q0 a 1 2.0 t\n")
    (tmp_path / "sd.trec.gz.manifest.json").write_text('{"model": "sd"}')
    with gzip.open(tmp_path / "sd.expansion.jsonl.gz", "wt") as stream:
        stream.write('{"qid": 1, "terms": {"wing": 0.5}, "more": []}\n\n')
    (named,) = read_runs([str(run)], beside=True)
    assert named.name == "sd"
    assert named.manifest == {"model": "sd"}
    assert named.expansions == {"1": {"wing": 0.5}}
    assert find_beside(tmp_path / "other.trec", "manifest.json") is None


def test_only_the_heaviest_terms_are_kept(tmp_path):
    file = tmp_path / "e.jsonl"
    file.write_text(json.dumps({"qid": "1", "terms": {f"t{i}": (-1) ** i * i for i in range(500)}}))
    assert read_expansions(file, most=3) == {"1": {"t499": -499.0, "t498": 498.0, "t497": -497.0}}


@pytest.mark.parametrize("text", ["{", "[1]", "[" * 100_000])
def test_a_broken_manifest_is_named(tmp_path, text):
    file = tmp_path / "m.json"
    file.write_text(text)
    with pytest.raises(InputError, match=r"m\.json"):
        read_manifest(file)


@pytest.mark.parametrize(
    "line", ["{}", '{"qid": 1}', '{"qid": 1, "terms": ["a"]}', '{"qid": 1, "terms": {"a": "x"}}', "x"]
)
def test_a_broken_expansion_is_named_with_its_line(tmp_path, line):
    file = tmp_path / "e.jsonl"
    file.write_text('{"qid": "1", "terms": {}}\n' + line + "\n")
    with pytest.raises(InputError, match=r"e\.jsonl:2:"):
        read_expansions(file)


def test_titles_and_dates_of_wanted_documents(tmp_path):
    file = tmp_path / "docs.jsonl"
    documents = [
        {"id": "a", "title": "A  title\nin lines", "date": "2011-02-08"},
        {"id": "b", "contents": "x" * 500},
        {"id": "c", "title": "unwanted", "date": "not a date"},
    ]
    file.write_text("".join(json.dumps(d) + "\n" for d in documents))
    titles, times = read_documents(file, ["a", "b"])
    assert titles == {"a": "A title in lines", "b": "x" * 160}
    assert times == {"a": 1297123200000}
    file.write_text('{"id": "a"}\n[1]\n')
    with pytest.raises(InputError, match=r"docs\.jsonl:2:"):
        read_documents(file, ["a"])


def test_tables_line_up():
    assert text_table(["run", "AP"], [["ql", "0.25"], ["日本", "1"]]) == "run     AP\nql    0.25\n日本     1"


def test_numbers_for_tables():
    numbers = [number(0.12345), number(float("nan")), number(0.5, 2, sign=True), number(0.125, -1)]
    assert numbers == ["0.1235", "-", "+0.50", "0.125"]
    assert [probability(p) for p in (0.00001, 0.0123, 1.0, float("nan"))] == ["<.0001", ".0123", "1", "-"]
