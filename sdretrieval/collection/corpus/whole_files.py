"""Files that are one document each: plain text, and HTML pages.

HTML becomes text as Anserini's HtmlCollection does it: with Jsoup, inside the JVM.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from sdretrieval.collection.corpus.record import LONGEST_CONTENTS
from sdretrieval.collection.corpus.sources import ENCODING_REMEDY, Source
from sdretrieval.core.jvm import java_class

TEXT_SUFFIXES = (".txt", ".text")
HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_LONGEST_FILE = 4 * LONGEST_CONTENTS  # mark-up included
_LONGEST_HEAD = 1 << 20
_END_OF_HEAD = re.compile(r"</head|<body", re.IGNORECASE)
_IN_HEAD = re.compile(r"<!--|<(title|meta|script|style)(?=[\s/>])", re.IGNORECASE)
_AFTER = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("title", "script", "style")}
_AFTER[""] = re.compile("-->")  # of a comment
_ATTRIBUTE = re.compile(r"[\s/]*([^\s=>/]+)\s*(?:=\s*)?")
_VALUE = re.compile(r"[^\s>]*")
# Jsoup takes time by the square of how deep elements lie; those that end by themselves do not lie deep.
_DEEPEST = 4000
_ELEMENT = re.compile(r"<(/?)([a-z][a-z0-9]*)")
_END_BY_THEMSELVES = frozenset(
    "p li dt dd tr td th thead tbody option br hr img input meta link area base col wbr source embed param".split()
)


def text_records(source: Source) -> Iterator[tuple[None, dict[str, Any]]]:
    """One record: the file's text."""
    yield None, {"contents": _whole_text(source)}


def html_records(source: Source) -> Iterator[tuple[None, dict[str, Any]]]:
    """One record: the page's text, its title, and each named ``<meta>`` (dates are often there)."""
    page = _whole_text(source)
    if (depth := _depth(page)) > _DEEPEST:
        remedy = "Correct the page, or pass --skip-bad."
        raise source.error(f"elements lie {depth:,} deep in one another: no page", remedy=remedy)
    to_text = _jsoup()
    from jnius import JavaException  # starts Java

    try:
        text = to_text(page).strip()
    except UnicodeError as error:
        raise source.error(f"not Unicode text ({error})", remedy=ENCODING_REMEDY) from None
    except JavaException as error:
        raise source.error(f"not HTML that Jsoup can read ({error})", remedy="Pass --skip-bad.") from None
    yield None, {**head_fields(page), "contents": text}


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
    end = _END_OF_HEAD.search(page)
    head = page[: min(end.start() if end else len(page), _LONGEST_HEAD)]
    title, place = "", 0
    metas: dict[str, str] = {}
    while found := _IN_HEAD.search(head, place):
        name = (found[1] or "").lower()
        if name == "meta":
            values, place = _attributes(head, found.end())
            called = values.get("name") or values.get("property") or values.get("itemprop")
            if called and values.get("content"):
                metas.setdefault(called, values["content"])
            continue
        begin = head.find(">", found.end()) + 1 if name else found.end()
        after = _AFTER[name].search(head, begin) if begin else None
        place = after.end() if after else len(head)
        if name == "title" and begin:
            title = title or " ".join(html.unescape(head[begin : after.start() if after else place]).split())
    return {**({"title": title} if title else {}), **metas}


def _attributes(head: str, place: int) -> tuple[dict[str, str], int]:
    """Those of a tag, and where it ends. A quotation mark that is not closed takes all that follows."""
    values: dict[str, str] = {}
    while attribute := _ATTRIBUTE.match(head, place):
        place = attribute.end()
        quote = head[place : place + 1]
        if not attribute[0].rstrip().endswith("="):
            value, end = "", place
        elif quote in ("'", '"'):
            end = head.find(quote, place + 1) + 1
            if not end:
                return {}, len(head)
            value = head[place + 1 : end - 1]
        else:
            value, end = (found := _VALUE.match(head, place))[0], found.end()  # type: ignore[index, union-attr]
        values.setdefault(attribute[1].lower(), html.unescape(value))
        place = end
    return values, place


def _depth(page: str) -> int:
    """How deep elements lie in one another, but for those that end by themselves."""
    if page.count("<") <= _DEEPEST:
        return 0
    opened = Counter[str]()
    depth = deepest = 0
    for closing, name in _ELEMENT.findall(page.lower()):
        if name not in _END_BY_THEMSELVES and not (closing and not opened[name]):
            step = -1 if closing else 1
            opened[name] += step
            depth += step
            deepest = max(deepest, depth)
    return deepest
