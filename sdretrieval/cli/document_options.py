"""Flags that say how documents are read, so that every verb that reads a corpus spells and explains them alike.

Each function adds some flags to a group of argparse; what differs from verb to verb is given as ``default`` or help.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sdretrieval.collection.analyzer import AnalyzerSpec

Group = Any  # a group of argparse, which has no public name for its class


def add_field_arguments(
    group: Group,
    *,
    id: str = "field of the id (default: id)",
    contents: str = "field of the text (default: contents)",
    date: str = "field of the date (default: documents have none); a.b is field b of object a",
) -> None:
    """Which fields hold id, text and date."""
    add, text = group.add_argument, f"{contents}; repeat it to join several"
    add("--id-field", metavar="NAME", help=id)
    add("--contents-field", metavar="NAME", action="append", default=[], help=text)
    add("--date-field", metavar="NAME", help=date)
    dates = "strptime pattern of the dates, or epoch_s, epoch_ms; final * = rest; may be repeated: the first that fits"
    add("--date-format", metavar="PATTERN", action="append", help=f"{dates} (auto: the usual forms)")


def add_label_arguments(group: Group, *, default: str | None, help: str) -> None:
    """Which field holds the labels."""
    group.add_argument("--label-field", default=default, metavar="NAME", help=help)
    group.add_argument("--label-separator", metavar="CHAR", help="between several labels in one text, as in tables")


def add_file_arguments(group: Group) -> None:
    """What kind of files they are."""
    group.add_argument("--format", default="auto", metavar="NAME", help="as in `sdretrieval index` (default: auto)")
    group.add_argument("--encoding", default="utf-8", help="of the text (default: utf-8)")
    group.add_argument("--skip-bad", action="store_true", help="leave out bad documents instead of stopping")


def add_analyzer_arguments(group: Group) -> None:
    """How text becomes words, where no index says it."""
    group.add_argument("--language", metavar="CODE", help="of the text, as in `sdretrieval index` (default: en)")
    group.add_argument("--stemmer", metavar="NAME", help="of English: porter (default), krovetz, none")
    group.add_argument("--keep-stopwords", action="store_true", help="of English (default: remove them)")


def analyzer_from(args: argparse.Namespace) -> AnalyzerSpec | None:
    """As asked for; None where nothing was, so that an index keeps its own."""
    if not (args.language or args.stemmer or args.keep_stopwords):
        return None
    from sdretrieval.collection.analyzer import AnalyzerSpec

    return AnalyzerSpec(
        language=args.language or "en", stemmer=args.stemmer or "porter", stopwords=not args.keep_stopwords
    )


def reading_options(args: argparse.Namespace) -> dict[str, Any]:
    """The flags of fields, labels' separator and files, as keywords of ``learn.labelled.read_labelled``."""
    names = ("label_separator", "id_field", "date_field", "date_format", "format", "encoding", "skip_bad")
    return {"contents": args.contents_field, **{name: getattr(args, name) for name in names}}
