"""TREC SGML: ``<DOC><DOCNO>…</DOCNO> … <TEXT>…</TEXT></DOC>``, as on the TREC and TDT disks.

The text is what Anserini's TrecCollection takes: the contents of a known set of tags, in the order of the
document, without mark-up and with character entities resolved. Every tag at the top level of a DOC is a
field, by its name in lower case.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from sdretrieval.collection.corpus.record import LONGEST_CONTENTS
from sdretrieval.collection.corpus.sources import Source

SUFFIXES = (".sgml", ".sgm", ".trec")
DOCID_FIELD = "docno"
# Anserini's list. DATE and DD are in it: their words are part of the text in all published results.
CONTENT_TAGS = ("text", "headline", "title", "hl", "head", "ttl", "dd", "date", "lp", "leadpara")
_LONGEST_DOC = 2 * LONGEST_CONTENTS

_DOC = re.compile(r"<DOC(?=[\s>])[^>]*>|</DOC\s*>", re.IGNORECASE)
_DOC_ID = re.compile(r"""\bid\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*)[^>]*>")
# What an HTML parser takes for mark-up; "<3>" and "a < b" are text.
_MARKUP = re.compile(r"<(?:/?([A-Za-z][\w.:-]*)[^>]*|[!?/][^>]*)>")
_INLINE = frozenset(
    {"a", "b", "big", "cite", "code", "em", "f", "font", "i", "small", "span", "strong", "sub", "sup", "tt", "u"}
)


def records(source: Source, content_tags: tuple[str, ...] = CONTENT_TAGS) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line of <DOC>, fields)`` for each document; the text is the field ``contents``."""
    found = False
    for line, opening, body in _documents(source):
        found = True
        fields, texts = _fields(opening, body, content_tags)
        if DOCID_FIELD not in fields:
            source.report("this <DOC> has no <DOCNO>", line, "Add one, or pass --skip-bad.")
        elif not texts:
            wanted = ", ".join(f"<{tag.upper()}>" for tag in content_tags)
            there = ", ".join(f"<{tag.upper()}>" for tag in fields if tag != DOCID_FIELD) or "none"
            source.report(
                f"document {fields[DOCID_FIELD]!r} has no text in any of {wanted}; other tags in it: {there}",
                line,
                "Name the tag(s) that hold the text with --contents-field, or pass --skip-bad.",
            )
        else:
            yield line, {**fields, "contents": "\n".join(texts)}
    if not found:
        source.report("no <DOC> in it", remedy="Name the format of the file with --format.")


def _documents(source: Source) -> Iterator[tuple[int, str, str]]:
    """``(line, opening tag, body)`` for each DOC element, holding one at a time in memory."""
    opening, started, size = "", 0, 0
    parts: list[str] = []
    for number, line in source.lines():
        done = 0  # what of the line was dealt with
        for tag in tags(_DOC, line):
            if tag[0][1] != "/":
                if started:
                    _report_unclosed(source, started, f"another begins on line {number}")
                opening, started, parts, size, done = tag[0], number, [], 0, tag.end()
            elif started:
                parts.append(line[done : tag.start()])
                yield started, opening, "\n".join(parts)
                started = 0
        if started:
            parts.append(line[done:])
            size += len(line) - done
            if size > _LONGEST_DOC:
                _report_unclosed(source, started, f"{size:,} characters later")
                started = 0
    if started:
        _report_unclosed(source, started, "the file ends")


def tags(pattern: re.Pattern, text: str) -> Iterator[re.Match]:
    """The tags of a text, in linear time: before the last ``>`` every tag that begins has an end."""
    return pattern.finditer(text, 0, text.rfind(">") + 1)


def _report_unclosed(source: Source, line: int, told: str) -> None:
    remedy = "Add </DOC>; if the file was cut short, fetch it again, or pass --skip-bad."
    source.report(f"the <DOC> that begins here is not closed ({told})", line, remedy)


def _fields(opening: str, body: str, content_tags: tuple[str, ...]) -> tuple[dict[str, Any], list[str]]:
    """The tags of a document as fields, and the texts of those that make its contents."""
    fields: dict[str, str] = {}
    texts: list[str] = []
    for tag, inner in _elements(body):
        text = plain(inner)
        if tag in content_tags:
            texts.append(text)
        if tag != "text" or tag not in content_tags:
            fields[tag] = f"{fields[tag]}\n{text}" if tag in fields else text
    if DOCID_FIELD not in fields and (in_tag := _DOC_ID.search(opening)):
        fields[DOCID_FIELD] = in_tag[1].strip()
    return fields, texts


def _elements(body: str) -> Iterator[tuple[str, str]]:
    """Top-level ``(tag, inside)`` pairs in one pass; a tag that is never closed is taken for text."""
    found = list(tags(_TAG, body))
    last_close = {tag[2].lower(): tag.start() for tag in found if tag[1]}
    current: re.Match | None = None
    for tag in found:
        name = tag[2].lower()
        if current is None:
            if not tag[1] and last_close.get(name, -1) > tag.start():
                current = tag
        elif tag[1] and name == current[2].lower():
            yield name, body[current.end() : tag.start()]
            current = None


def plain(text: str) -> str:
    """Text without mark-up, entities resolved, blank at the ends stripped.

    >>> plain("<P> AT&amp;T said <3> times </P>")
    'AT&T said <3> times'
    """
    if "<" in text:
        end = text.rfind(">") + 1  # as in tags()
        text = _MARKUP.sub(lambda tag: "" if (tag[1] or "").lower() in _INLINE else " ", text[:end]) + text[end:]
    if "&" in text:
        text = html.unescape(text)
    return text.strip()
