"""CSV and TSV: a document per row, fields by the header row (or by ``--columns`` where there is none).

CSV has quotes as spreadsheets write them. TSV has none: a field holds neither tabs nor line breaks, and a
quotation mark is a letter like any other, as in MS MARCO's files. For quoted TSV, read it as CSV with a tab
for delimiter.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import Any

from sdretrieval.collection.corpus.record import LONGEST_CONTENTS
from sdretrieval.collection.corpus.sources import Source

CSV_SUFFIXES = (".csv",)
TSV_SUFFIXES = (".tsv", ".tab")


Rows = Iterator[tuple[int, dict[str, Any]]]


def csv_records(source: Source, delimiter: str = ",", columns: tuple[str, ...] = ()) -> Rows:
    """``(line on which the row begins, fields)``; rows of empty cells are passed over."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_CONTENTS))
    lines = _Counted(source)
    yield from _rows(source, csv.reader(lines, delimiter=delimiter, strict=True), lines, columns)


def tsv_records(source: Source, delimiter: str = "\t", columns: tuple[str, ...] = ()) -> Rows:
    lines = _Counted(source)
    rows = (line.rstrip("\n").split(delimiter) if line != "\n" else [] for line in lines)
    yield from _rows(source, rows, lines, columns)


def sniff(source: Source) -> str:
    """What parts the columns of a CSV file's header row: the most frequent of comma, semicolon, tab and bar."""
    first = source.head(1 << 14).decode(source.encoding, errors="replace").lstrip("\ufeff\r\n").split("\n", 1)[0]
    outside = re.sub(r'"[^"]*"', "", first)
    return max(",;\t|", key=outside.count)  # the comma where there is none of them


class _Counted:
    """Lines with their ends, remembering the number of the last one."""

    def __init__(self, source: Source) -> None:
        self._lines, self.number = source.lines(), 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        return line + "\n"


def _rows(source: Source, rows: Iterator[list[str]], lines: _Counted, columns: tuple[str, ...]) -> Rows:
    header = columns
    while True:
        begin = lines.number + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            remedy = "Check the quotation marks; a file without quoting is --format tsv."
            source.report(f"malformed row ({error})", begin, remedy)
            continue
        if not any(cell.strip() for cell in row):
            continue
        if not header:
            header = _header(source, begin, row)
        elif len(row) != len(header):
            message = f"{len(row)} columns, expected {len(header)} ({', '.join(header)}): {row[:4]!r}"
            source.report(message, begin, "Correct the row, name another --delimiter, or pass --skip-bad.")
        else:
            yield begin, dict(zip(header, row, strict=True))


def _header(source: Source, line: int, row: list[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in row)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or "" in names:
        trouble = f"names the column {twice[0]!r} twice" if twice else "has a column without a name"
        remedy = "Correct it, or name the columns with --columns if the file has no header row."
        raise source.error(f"the header row {trouble}: {list(names)!r}", line, remedy)
    return names
