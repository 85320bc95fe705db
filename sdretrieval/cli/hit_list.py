"""Hits laid out for reading: title, date, and the part of the text with the words of the query."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sdretrieval.collection.records import Ranking, Topic
    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.ranking.interactive import Document
    from sdretrieval.ranking.snippets import Piece

MARGIN = 6
_MARK, _UNMARK = "\x00", "\x01"  # texts have none left when these are put in
BOLD, DIM, YELLOW, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[1;33m", "\x1b[0m"


def print_hits(snapshot: Snapshot, topic: Topic, ranking: Ranking) -> None:
    """The documents of a ranking on standard output, in colours where that is a terminal."""
    from sdretrieval.ranking.interactive import Index
    from sdretrieval.ranking.query import Query

    index, in_colour = Index(snapshot), has_colours()
    # What commands print is filtered; here texts are made visible one by one, and our own colours are to be obeyed.
    screen = getattr(sys.stdout, "unfiltered", sys.stdout)
    wanted = snapshot.vocabulary.take(Query.from_topic(snapshot, topic).terms)
    if not len(ranking):
        print(f"nothing was found for {in_one_line(topic.text)!r}")
    width = min(shutil.get_terminal_size().columns, 110)
    for rank, (docid, score) in enumerate(ranking, 1):
        document = index.doc(docid)
        pieces = index.marker.snippet(document.body, wanted)
        lines = hit_lines(rank, document, score, pieces, width)
        print("\n".join(coloured(line) if in_colour else plain(line) for line in lines), file=screen)


def has_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def hit_lines(rank: int, document: Document, score: float, pieces: list[Piece], width: int) -> list[str]:
    """Lines of one hit, each beginning with the colour it has on a terminal."""
    place, day = f"{rank:>{MARGIN - 2}}  ", "undated" if document.date is None else document.date[:10]
    title = in_one_line(document.title) or in_one_line(document.docid)
    shown = ((in_one_line(text), marked) for text, marked in pieces)
    snippet = "".join(f"{_MARK}{text}{_UNMARK}" if marked else text for text, marked in shown)
    margin = " " * MARGIN
    body = textwrap.wrap(snippet, width, initial_indent=margin, subsequent_indent=margin, break_long_words=False)
    return [
        f"{BOLD}{place}{textwrap.shorten(title, width - MARGIN, placeholder='…')}{PLAIN}",
        f"{DIM}{margin}{day}  {in_one_line(document.docid)}  {score:.4f}{PLAIN}",
        *body,
        "",
    ]


def coloured(line: str) -> str:
    return line.replace(_MARK, YELLOW).replace(_UNMARK, PLAIN)


def plain(line: str) -> str:
    for code in (_MARK, _UNMARK, BOLD, DIM, PLAIN):
        line = line.replace(code, "")
    return line


def in_one_line(text: str) -> str:
    """Text without line ends, and with control characters, also those that turn text around, spelt out.

    >>> in_one_line("a\\x1b[31mb\\u202ec")
    'a\\\\x1b[31mb\\\\u202ec'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else ascii(c)[1:-1] for c in text)
