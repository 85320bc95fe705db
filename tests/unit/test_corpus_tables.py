"""CSV and TSV."""

from __future__ import annotations

import pytest
from corpus_reading import check_refused, read

from sdretrieval.collection.corpus import Reader
from sdretrieval.core.errors import InputError, ParameterError


def test_csv_with_quotes_line_breaks_and_a_column_map(tmp_path):
    path = tmp_path / "news.csv"
    path.write_text(
        "url,headline,body,day,empty\r\n"
        'u1,"Tea, and ""time""","two\nlines",2024-05-01,\r\n'
        "u2,Plain,text,2024-05-02,\r\n",
        newline="",
    )
    first, second = read(path, docid="url", contents=("headline", "body"), date="day")
    assert first.docid == "u1"
    assert first.contents == 'Tea, and "time"\ntwo\nlines'
    assert first.fields == {"headline": 'Tea, and "time"', "body": "two\nlines", "day": "2024-05-01"}
    assert (second.line, second.time) == (4, 1714608000000)  # date -d 2024-05-02T00:00:00Z +%s


@pytest.mark.parametrize(
    ("name", "text", "options", "found"),
    [
        ("a.tsv", 'id\tcontents\n1\t"unbalanced\n2\the said "no"\n', {}, ['"unbalanced', 'he said "no"']),  # no quotes
        ("a.tsv", "0\tThe presence\n1\tof\n", {"columns": ("id", "contents")}, ["The presence", "of"]),  # MS MARCO's
        ("a.csv", "id;contents\n1;one, two\n", {"delimiter": ";"}, ["one, two"]),
        ("b.tsv", 'id\tcontents\n1\t"a\ttab"\n', {"format": "csv", "delimiter": "\t"}, ["a\ttab"]),
        ("a.csv", "id,contents\n1," + "word " * 100_000 + "\n", {}, ["word " * 100_000]),  # beyond csv's own limit
    ],
    ids=["no quotes", "no header", "delimiter", "quoted", "long"],
)
def test_tables_from_elsewhere(tmp_path, name, text, options, found):
    (tmp_path / name).write_text(text)
    assert [document.contents for document in read(tmp_path / name, **options)] == found


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("id,contents\n1,x\n2,y,z\n", 3, "3 columns, expected 2 (id, contents): ['2', 'y', 'z']"),
        ("id,contents\n1,x\n2\n", 3, "1 columns, expected 2"),
        ("id,contents\n1,x\n,y\n", 3, "the id is empty"),
        ('id,contents\n1,x\n2,"y"z\n', 3, "malformed row"),
        ('id,contents\n1,x\n2,"never closed\n', 3, "malformed row (unexpected end of data)"),
    ],
)
def test_bad_rows(tmp_path, text, line, told):
    path = tmp_path / "a.csv"
    path.write_text(text)
    check_refused(path, line, told)


@pytest.mark.parametrize(
    ("header", "told"),
    [("id,contents,id", "names the column 'id' twice"), ("id,,contents", "has a column without a name")],
)
def test_bad_header(tmp_path, header, told):
    path = tmp_path / "a.csv"
    path.write_text(header + "\n1,x,y\n")
    with pytest.raises(InputError, match=told):
        read(path)


def test_wrong_encoding_and_delimiter(tmp_path):
    with pytest.raises(ParameterError, match="one character"):
        Reader(delimiter="::")
    path = tmp_path / "a.csv"
    path.write_bytes("id,contents\n1,café\n".encode("cp1252"))
    with pytest.raises(InputError, match=r"a\.csv:2: not utf-8 text: byte 0xe9"):
        read(path)
    assert read(path, encoding="cp1252")[0].contents == "café"
