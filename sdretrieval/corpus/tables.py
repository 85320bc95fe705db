"""CSV and TSV: a document per row, fields by the header row (or by ``--columns`` where there is none).

CSV has quotes as spreadsheets write them. TSV has none: a field holds neither tabs nor line breaks, and a
quotation mark is a letter like any other, as in MS MARCO's files. For quoted TSV, read it as CSV with a tab
for delimiter.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.record import LONGEST_CONTENTS
from sdretrieval.corpus.sources import Source
from sdretrieval.errors import InputError

CSV_SUFFIXES = (".csv",)
TSV_SUFFIXES = (".tsv", ".tab")


def csv_records(
    source: Source, encoding: str, problems: Problems, delimiter: str = ",", columns: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line on which the row begins, fields)``; empty cells are left out."""
    csv.field_size_limit(max(csv.field_size_limit(), 2 * LONGEST_CONTENTS))
    lines = _Counted(source, encoding, problems)
    yield from _rows(source, csv.reader(lines, delimiter=delimiter, strict=True), lines, problems, columns)


def tsv_records(
    source: Source, encoding: str, problems: Problems, delimiter: str = "\t", columns: tuple[str, ...] = ()
) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = _Counted(source, encoding, problems)
    rows = (line.rstrip("\n").split(delimiter) if line != "\n" else [] for line in lines)
    yield from _rows(source, rows, lines, problems, columns)


class _Counted:
    """Lines with their ends, remembering the number of the last one."""

    def __init__(self, source: Source, encoding: str, problems: Problems) -> None:
        self._lines = source.lines(encoding, problems)
        self.number = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> str:
        self.number, line = next(self._lines)
        return line + "\n"


def _rows(
    source: Source, rows: Iterator[list[str]], lines: _Counted, problems: Problems, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, Any]]]:
    header: tuple[str, ...] = columns
    while True:
        begin = lines.number + 1
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problems.report(
                InputError(
                    f"malformed row ({error})",
                    file=source.name,
                    line=begin,
                    remedy="Check the quotation marks; a file without quoting is --format tsv.",
                )
            )
            continue
        if not row:
            continue
        if not header:
            header = _header(source, begin, row)
            continue
        if len(row) != len(header):
            problems.report(
                InputError(
                    f"{len(row)} columns, expected {len(header)} ({', '.join(header)}): {row[:4]!r}",
                    file=source.name,
                    line=begin,
                    remedy="Correct the row, name another --delimiter, or pass --skip-bad.",
                )
            )
            continue
        yield begin, {name: value for name, value in zip(header, row, strict=True) if value != ""}


def _header(source: Source, line: int, row: list[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in row)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or "" in names:
        trouble = f"names the column {twice[0]!r} twice" if twice else "has a column without a name"
        raise InputError(
            f"the header row {trouble}: {list(names)!r}", file=source.name, line=line,
            remedy="Correct it, or name the columns with --columns if the file has no header row.",
        )  # fmt: skip
    return names
