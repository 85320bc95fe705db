"""``sdretrieval index``: files, folders, archives or an ir_datasets id to a Lucene index."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdretrieval.cli.document_options import add_field_arguments
from sdretrieval.cli.value_types import positive
from sdretrieval.collection.analyzer import LANGUAGES, STEMMERS, AnalyzerSpec
from sdretrieval.collection.corpus.ciff import ENDINGS
from sdretrieval.collection.corpus.reading import DOCID_STYLES, FORMATS, Reader
from sdretrieval.collection.corpus.record import UNDATED_CHOICES, USUAL_DATE_FIELDS, Document, Problems
from sdretrieval.collection.corpus.sources import MAX_MEMBER_BYTES
from sdretrieval.core.errors import ParameterError, few
from sdretrieval.core.files import numbered_lines
from sdretrieval.core.times import format_time
from sdretrieval.index.commit import latest_commit
from sdretrieval.index.living import append_documents, delete_documents
from sdretrieval.index.lucene.indexing import IndexSummary, build_index, check_target

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

  the index of another engine, as CIFF; --stemmer and --language say how its terms were made:
    sdretrieval index --input robust04.ciff.gz --index indexes/robust04 --stemmer porter

  to an index that is there: new documents, newer versions of some, and without two of them:
    sdretrieval index --input june.jsonl --index indexes/mine --append --date-field published
    sdretrieval index --input corrected.jsonl --index indexes/mine --replace --date-field published
    sdretrieval index --delete doc17 doc18 --index indexes/mine

The index appears whole or not at all. Dates may be ISO 8601, RFC 2822, YYYYMMDD, epoch seconds or ms.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    source = parser.add_argument_group("what to index").add_mutually_exclusive_group(required=True)
    ids = "delete these documents from the index; @FILE names a file of ids, one a line"
    source.add_argument("--delete", nargs="+", metavar="ID", help=ids)
    source.add_argument(
        "--input", nargs="+", metavar="PATH", help="files, folders or archives (.tar, .tar.gz, .zip); .gz is fine"
    )
    source.add_argument("--dataset", metavar="ID", help="an ir_datasets id instead of files")

    add_reading_arguments(parser)
    building = parser.add_argument_group("how to index it")
    add, switch = building.add_argument, argparse.BooleanOptionalAction
    add("--index", required=True, metavar="DIR", help="folder of the index to make")
    what = building.add_mutually_exclusive_group()
    what.add_argument("--overwrite", action="store_true", help="replace an index that is there")
    what.add_argument("--append", action="store_true", help="add to an index that is there; its analyzer is kept")
    what.add_argument("--replace", action="store_true", help="the same; documents of an id it has replace those")
    add("--language", choices=LANGUAGES, default="en", metavar="CODE", help=", ".join(LANGUAGES))
    add("--stemmer", choices=STEMMERS, default="porter", help="of English (default: porter)")
    add("--keep-stopwords", action="store_true", help="of English (default: remove them)")
    add("--threads", type=int, default=min(os.cpu_count() or 1, 8), metavar="N", help="default: %(default)s")
    add("--store-positions", action=switch, default=True, help="where words stand (default: yes)")
    add("--store-docvectors", action=switch, default=False, help="for Anserini's own feedback (default: no)")
    add("--store-raw", action=switch, default=True, help="text and other fields, to be shown (default: yes)")
    add("--optimize", action=switch, default=True, help="merge to one segment (default: yes)")
    add("--json", action="store_true", help="print the summary as JSON")


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to read it")
    add = group.add_argument
    add("--format", choices=("auto", *FORMATS), default="auto", help="default: told by names and first bytes")
    text = "field of the text (default: contents; TREC: as Anserini)"
    add_field_arguments(group, id="field of the id (default: id; TREC: DOCNO)", contents=text)
    add("--encoding", default="utf-8", help="of the text (default: utf-8)")
    add("--delimiter", metavar="CHAR", help=r"between columns (default: comma or tab; \t for tab)")
    add("--columns", metavar="A,B,…", help="names of the columns of a CSV or TSV file that has no header row")
    add("--glob", metavar="PATTERN", help="read only files whose name or path matches")
    ids = "id of a document that is a file: its name (default) or its path below the input"
    add("--docid", choices=DOCID_STYLES, default="stem", help=ids)
    add("--skip-bad", action="store_true", help="count and list bad documents instead of stopping")
    undated = "documents without a readable date (default: keep those without; a date that cannot be read is bad, "
    add("--undated", choices=UNDATED_CHOICES, help=undated + "and with --skip-bad the document is kept undated)")
    most = "most that one member of an archive may hold (default: %(default)s)"
    add("--max-member-mb", type=positive, default=MAX_MEMBER_BYTES >> 20, metavar="MB", help=most)


def run(args: argparse.Namespace) -> int:
    target = Path(args.index)
    settle_ciff(args)
    if args.delete:
        return _tell(args, delete_documents(_ids(args.delete), target), {})
    changing = args.append or args.replace
    if changing:
        latest_commit(target)  # before a long read, as the next
    else:
        check_target(target, overwrite=args.overwrite)
    problems = Problems(skip=args.skip_bad)
    ignored: list[str] = []
    dates = Problems(skip=True)
    hint = _DateHint(args.date_field)
    documents = _documents(args, problems, dates, ignored)
    given: dict[str, Any] = {"threads": args.threads, "problems": problems, "notes": {"source": _notes(args)}}
    options = building_options(args)
    if args.format == "ciff":
        options["analyzer"] = take_terms(options["analyzer"], given["notes"])
        options["store_positions"] = False  # it does not tell where words stand
    if changing:
        analyzer = None if options["analyzer"] == AnalyzerSpec() else options["analyzer"]
        summary = append_documents(hint.watch(documents), target, replace=args.replace, analyzer=analyzer, **given)
    else:
        summary = build_index(hint.watch(documents), target, overwrite=args.overwrite, **given, **options)
    for line in _warnings(args, summary, problems, dates, ignored, hint):
        print(f"sdretrieval index: {line}", file=sys.stderr)
    told = {"problems": list(problems.grouped()), "dates": list(dates.grouped()), "ignored": ignored}
    return _tell(args, summary, told, dates.count if args.undated == "drop" else 0)


def settle_ciff(args: argparse.Namespace) -> None:
    """CIFF is told by names alone; its terms are no text that an index of texts could take in."""
    if args.format == "auto" and args.input and all(name.endswith(ENDINGS) for name in args.input):
        args.format = "ciff"
    if args.format == "ciff" and (args.append or args.replace):
        raise ParameterError("a CIFF file cannot be added to an index", remedy="Make one of its own.")


def take_terms(queries: AnalyzerSpec, notes: dict[str, Any]) -> AnalyzerSpec:
    """The terms are indexed as they are, queries analysed as --language and its like say that the terms were made."""
    notes["analyzer"] = queries.to_json()
    return AnalyzerSpec(language="whitespace")


def _tell(args: argparse.Namespace, summary: IndexSummary, told: dict[str, Any], dropped: int = 0) -> int:
    if args.json:
        print(json.dumps({"index": args.index, **summary.to_json(), **told}, ensure_ascii=False))
    else:
        print(_table(Path(args.index), summary, dropped))
    return 0


def _ids(words: list[str]) -> Iterator[str]:
    """Ids as typed, and those of files given as @FILE."""
    for word in words:
        if word.startswith("@"):
            yield from (line.strip() for _, line in numbered_lines(word[1:]) if line.strip())
        else:
            yield word


def _documents(args: argparse.Namespace, problems: Problems, dates: Problems, ignored: list[str]) -> Iterator[Document]:
    options = reading_options(args)
    if not args.dataset:
        exclude = (Path(args.index),)
        return Reader(**options, exclude=exclude, problems=problems, dates=dates, ignored=ignored).read(args.input)
    if args.id_field or args.format != "auto":
        raise ParameterError(
            "--id-field and --format are for files; a dataset knows its own.", remedy="Leave them out."
        )
    from sdretrieval.plugins import datasets

    chosen = {name: options[name] for name in ("contents", "date", "date_format", "undated")}
    return datasets.documents(args.dataset, problems=problems, dates=dates, **chosen)


def reading_options(args: argparse.Namespace) -> dict[str, Any]:
    """How files are read: options of :class:`Reader`."""
    return {
        "format": args.format,
        "docid": args.id_field,
        "contents": tuple(args.contents_field),
        "date": args.date_field,
        "date_format": args.date_format,
        "undated": args.undated,
        "encoding": args.encoding,
        "docid_style": args.docid,
        "delimiter": "\t" if args.delimiter == r"\t" else args.delimiter,
        "columns": tuple(name.strip() for name in args.columns.split(",")) if args.columns else (),
        "glob": args.glob,
        "max_member_bytes": args.max_member_mb << 20,
    }


def building_options(args: argparse.Namespace) -> dict[str, Any]:
    """How documents are indexed: options of :func:`build_index`."""
    names = ("store_positions", "store_docvectors", "store_raw", "optimize")
    analyzer = AnalyzerSpec(language=args.language, stemmer=args.stemmer, stopwords=not args.keep_stopwords)
    return {"analyzer": analyzer, **{name: getattr(args, name) for name in names}}


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


def _warnings(
    args: argparse.Namespace,
    summary: IndexSummary,
    problems: Problems,
    dates: Problems,
    ignored: list[str],
    hint: _DateHint,
) -> Iterator[str]:
    if dates.count:
        what = "left out" if args.undated == "drop" else "kept, undated,"
        yield f"{what} {dates.count:,} documents without a date that could be read:"
        yield from (f"  {line}" for line in dates.grouped())
    if problems.count:
        yield f"skipped {problems.count:,} bad documents:"
        yield from (f"  {line}" for line in problems.grouped())
    if summary.empty:
        yield f"left out {summary.empty:,} documents without text ({few(summary.empty_docids, 5)})"
    if ignored:
        guessed = args.format == "auto"
        why = "of unknown format" if guessed else "that hold no text"
        yield f"ignored {len(ignored):,} files {why} ({few(ignored, 3)})" + "; --format reads them" * guessed
    if hint.found:
        yield f"documents have a field {hint.found!r}; --date-field {hint.found} would give them times"


def _table(target: Path, summary: IndexSummary, dropped: int = 0) -> str:
    dates = "none"
    if summary.earliest is not None and summary.latest is not None:
        dates = f"{format_time(summary.earliest)} .. {format_time(summary.latest)}"
    change = f" ({summary.added:,} added, {summary.deleted:,} deleted)" if summary.added or summary.deleted else ""
    rows = [
        ("index", str(target)),
        ("documents", f"{summary.documents:,}{change}"),
        ("tokens", f"{summary.tokens:,}"),
        ("unique terms", f"{summary.terms:,}"),
        ("dates", dates),
        ("undated", f"{summary.undated:,}"),
        ("skipped", f"{summary.skipped + dropped + summary.empty:,}" + _why(summary, dropped)),
        ("size", f"{summary.bytes / 1e6:,.1f} MB"),
        ("seconds", f"{summary.seconds:.1f} ({summary.seconds_reading:.1f} reading)"),
    ]
    return "\n".join(f"{name:<13}{value}" for name, value in rows)


def _why(summary: IndexSummary, dropped: int) -> str:
    """Of documents that were left out, how many for which reason."""
    reasons = {"bad": summary.skipped, "without a date": dropped, "without text": summary.empty}
    told = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
    return f" ({told})" if told else ""
