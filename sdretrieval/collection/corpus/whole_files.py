"""Files that are one document each: plain text, and HTML pages.

HTML becomes text as Anserini's HtmlCollection does it: with Jsoup, inside the JVM.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from html.parser import HTMLParser
from typing import Any

from sdretrieval.collection.corpus.record import LONGEST_CONTENTS
from sdretrieval.collection.corpus.sources import Source
from sdretrieval.core.jvm import java_class

TEXT_SUFFIXES = (".txt", ".text")
HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_LONGEST_FILE = 4 * LONGEST_CONTENTS  # mark-up included
_WORTH_PARSING = re.compile(r"<meta|<title", re.IGNORECASE)
_END_OF_HEAD = re.compile(r"</head|<body", re.IGNORECASE)


def text_records(source: Source) -> Iterator[tuple[None, dict[str, Any]]]:
    """One record: the file's text."""
    yield None, {"contents": _whole_text(source)}


def html_records(source: Source) -> Iterator[tuple[None, dict[str, Any]]]:
    """One record: the page's text, its title, and each named ``<meta>`` (dates are often there)."""
    page = _whole_text(source)
    yield None, {**head_fields(page), "contents": _jsoup()(page).strip()}


def _whole_text(source: Source) -> str:
    """The file as one string with plain line ends."""
    message = f"longer than {_LONGEST_FILE:,} characters, too long for one document"
    remedy = "Split it, or name the format with --format if it holds many documents."
    return source.whole_text(_LONGEST_FILE, message, remedy).replace("\r\n", "\n")


@cache
def _jsoup() -> Callable[[str], str]:
    return java_class("io.anserini.collection.JsoupStringTransform").SINGLETON.apply


def head_fields(page: str) -> dict[str, str]:
    """The title and the named ``<meta>`` values of a page's head.

    >>> head_fields('<head><title>Tea &amp; time</title><meta name="date" content="1991-05-14"></head>')
    {'title': 'Tea & time', 'date': '1991-05-14'}
    """
    if not _WORTH_PARSING.search(page):
        return {}
    end = _END_OF_HEAD.search(page)
    parser = _Head()
    parser.feed(page[: end.start()] if end else page[: 1 << 16])
    parser.close()
    title = " ".join("".join(parser.title).split())
    return {**({"title": title} if title else {}), **parser.metas}


class _Head(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.metas: dict[str, str] = {}
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title  # an SVG further on may have one too
        elif tag == "meta":
            values = dict(attrs)
            name = values.get("name") or values.get("property") or values.get("itemprop")
            if name and values.get("content"):
                self.metas.setdefault(name, values["content"] or "")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = self._in_title and tag != "title"

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
