"""``sdretrieval index``: files, folders, archives or an ir_datasets id to a Lucene index."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.reading import DOCID_STYLES, FORMATS, Reader
from sdretrieval.corpus.record import USUAL_DATE_FIELDS, Document
from sdretrieval.corpus.sources import MAX_MEMBER_BYTES
from sdretrieval.errors import ParameterError
from sdretrieval.lucene.analysis import LANGUAGES, STEMMERS, AnalyzerSpec
from sdretrieval.lucene.indexing import IndexSummary, build_index, check_target
from sdretrieval.times import format_time

EXAMPLE = """\
examples:
  JSON lines, {"id": …, "contents": …, "published": "2024-05-01", …}, with the date of each document:
    sdretrieval index --input docs.jsonl --index indexes/mine --date-field published

  TREC SGML, the text from two tags, dates like "May 14, 1991, Tuesday":
    sdretrieval index --input latimes/ --format trec --index indexes/la \\
        --contents-field HEADLINE --contents-field TEXT --date-field DATE --date-format '%B %d, %Y*'

  an archive of HTML pages; a CSV table; a collection of ir_datasets:
    sdretrieval index --input cacm.tar.gz --index indexes/cacm
    sdretrieval index --input news.csv --index indexes/news --id-field url --contents-field body
    sdretrieval index --dataset vaswani --index indexes/vaswani

The index appears whole or not at all. Dates may be ISO 8601, RFC 2822, YYYYMMDD, epoch seconds or ms.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    source = parser.add_argument_group("what to index").add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--input",
        nargs="+",
        metavar="PATH",
        help="files, folders or archives (.tar, .tar.gz, .zip); .gz is fine",
    )
    source.add_argument("--dataset", metavar="ID", help="an ir_datasets id instead of files")

    reading = parser.add_argument_group("how to read it")
    reading.add_argument(
        "--format", choices=("auto", *FORMATS), default="auto", help="default: told by names and first bytes"
    )
    reading.add_argument("--id-field", metavar="NAME", help="field of the id (default: id; TREC: DOCNO)")
    reading.add_argument(
        "--contents-field",
        metavar="NAME",
        action="append",
        default=[],
        help="field of the text (default: contents; TREC: as Anserini); repeat it to join several",
    )
    reading.add_argument(
        "--date-field", metavar="NAME", help="field of the date (default: documents have none)"
    )
    reading.add_argument(
        "--date-format",
        metavar="PATTERN",
        help="strptime pattern of the dates, or epoch_s, epoch_ms; final * = rest",
    )
    reading.add_argument("--encoding", default="utf-8", help="of the text (default: utf-8)")
    reading.add_argument(
        "--delimiter", metavar="CHAR", help=r"between columns (default: comma or tab; \t for tab)"
    )
    reading.add_argument(
        "--columns", metavar="A,B,…", help="names of the columns of a CSV or TSV file that has no header row"
    )
    reading.add_argument("--glob", metavar="PATTERN", help="read only files whose name or path matches")
    reading.add_argument(
        "--docid",
        choices=DOCID_STYLES,
        default="stem",
        help="id of a document that is a file: its name (default) or its path below the input",
    )
    reading.add_argument(
        "--skip-bad", action="store_true", help="count and list bad documents instead of stopping"
    )
    reading.add_argument(
        "--max-member-mb",
        type=int,
        default=MAX_MEMBER_BYTES >> 20,
        metavar="MB",
        help="most that one member of an archive may hold (default: %(default)s)",
    )

    building = parser.add_argument_group("how to index it")
    building.add_argument("--index", required=True, metavar="DIR", help="folder of the index to make")
    building.add_argument("--overwrite", action="store_true", help="replace an index that is there")
    building.add_argument(
        "--language", choices=LANGUAGES, default="en", metavar="CODE", help=", ".join(LANGUAGES)
    )
    building.add_argument(
        "--stemmer", choices=STEMMERS, default="porter", help="of English (default: porter)"
    )
    building.add_argument("--keep-stopwords", action="store_true", help="of English (default: remove them)")
    building.add_argument(
        "--threads", type=int, default=min(os.cpu_count() or 1, 8), help="default: %(default)s"
    )
    switch = argparse.BooleanOptionalAction
    building.add_argument("--store-positions", action=switch, default=True, help="of terms")
    building.add_argument(
        "--store-docvectors", action=switch, default=False, help="for Anserini's own feedback"
    )
    building.add_argument(
        "--store-raw", action=switch, default=True, help="text and other fields, to come back"
    )
    building.add_argument("--optimize", action=switch, default=True, help="merge to one segment")
    building.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(args: argparse.Namespace) -> int:
    target = Path(args.index)
    analyzer = AnalyzerSpec(language=args.language, stemmer=args.stemmer, stopwords=not args.keep_stopwords)
    check_target(target, overwrite=args.overwrite)  # before a long read
    problems = Problems(skip=args.skip_bad)
    ignored: list[str] = []
    hint = _DateHint(args.date_field)
    documents = _documents(args, problems, ignored)
    summary = build_index(
        hint.watch(documents),
        target,
        analyzer=analyzer,
        threads=args.threads,
        store_positions=args.store_positions,
        store_docvectors=args.store_docvectors,
        store_raw=args.store_raw,
        optimize=args.optimize,
        overwrite=args.overwrite,
        problems=problems,
        notes={"source": _notes(args)},
    )
    for line in _warnings(summary, ignored, hint):
        print(f"sdretrieval index: {line}", file=sys.stderr)
    if args.json:
        print(json.dumps({"index": str(target), **summary.to_json()}, ensure_ascii=False))
    else:
        print(_table(target, summary))
    return 0


def _documents(args: argparse.Namespace, problems: Problems, ignored: list[str]) -> Iterator[Document]:
    contents = tuple(args.contents_field)
    if args.dataset:
        if args.id_field or args.format != "auto":
            raise ParameterError(
                "--id-field and --format are for files; a dataset knows its own.", remedy="Leave them out."
            )
        from sdretrieval.integrations import datasets

        return datasets.documents(
            args.dataset,
            contents=contents,
            date=args.date_field,
            date_format=args.date_format,
            problems=problems,
        )
    return Reader(
        format=args.format,
        docid=args.id_field,
        contents=contents,
        date=args.date_field,
        date_format=args.date_format,
        encoding=args.encoding,
        docid_style=args.docid,
        delimiter="\t" if args.delimiter == r"\t" else args.delimiter,
        columns=tuple(name.strip() for name in args.columns.split(",")) if args.columns else (),
        glob=args.glob,
        exclude=(Path(args.index),),
        max_member_bytes=args.max_member_mb << 20,
        problems=problems,
        ignored=ignored,
    ).read(args.input)


def _notes(args: argparse.Namespace) -> dict[str, Any]:
    """How the corpus was read, for `doctor` and for whoever wants to do it again."""
    names = ("dataset", "format", "id_field", "contents_field", "date_field", "date_format", "encoding")
    return {name: value for name in names if (value := getattr(args, name))}


class _DateHint:
    """Notices a field that looks like a date where none was asked for."""

    def __init__(self, date_field: str | None) -> None:
        self.date_field = date_field
        self.found: str | None = None

    def watch(self, documents: Iterator[Document]) -> Iterator[Document]:
        for number, document in enumerate(documents):
            if number == 0 and self.date_field is None:
                self.found = next((name for name in USUAL_DATE_FIELDS if name in document.fields), None)
            yield document


def _warnings(summary: IndexSummary, ignored: list[str], hint: _DateHint) -> Iterator[str]:
    if summary.skipped:
        yield f"skipped {summary.skipped:,} bad documents:"
        yield from (f"  {line}" for line in summary.skipped_list)
        if summary.skipped > len(summary.skipped_list):
            yield f"  … and {summary.skipped - len(summary.skipped_list):,} more"
    if summary.empty:
        shown = ", ".join(summary.empty_docids[:5]) + (" …" if summary.empty > 5 else "")
        yield f"left out {summary.empty:,} documents without text ({shown})"
    if ignored:
        shown = ", ".join(ignored[:3]) + (" …" if len(ignored) > 3 else "")
        yield f"ignored {len(ignored):,} files of unknown format ({shown}); --format reads them all"
    if hint.found:
        yield f"documents have a field {hint.found!r}; --date-field {hint.found} would give them times"


def _table(target: Path, summary: IndexSummary) -> str:
    dates = "none"
    if summary.earliest is not None and summary.latest is not None:
        dates = f"{format_time(summary.earliest)} .. {format_time(summary.latest)}"
    rows = [
        ("index", str(target)),
        ("documents", f"{summary.documents:,}"),
        ("tokens", f"{summary.tokens:,}"),
        ("unique terms", f"{summary.terms:,}"),
        ("dates", dates),
        ("undated", f"{summary.undated:,}"),
        ("skipped", f"{summary.skipped:,}"),
        ("size", f"{summary.bytes / 1e6:,.1f} MB"),
        ("seconds", f"{summary.seconds:.1f} ({summary.seconds_reading:.1f} reading)"),
    ]
    return "\n".join(f"{name:<13}{value}" for name, value in rows)
