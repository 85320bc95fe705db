"""One document, and the map from a source's field names to it.

Every format reader yields plain ``(line, mapping of field to value)`` records; :class:`FieldMap` turns each
into a :class:`Document` or says what is wrong with it, so that the rules are the same for all formats.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

from sdretrieval.core.errors import InputError, few, shown
from sdretrieval.core.times import parse_time

# Anserini reads documents with Jackson, which takes no string longer than this.
LONGEST_CONTENTS = 20_000_000
# Lucene takes no term longer than 32,766 bytes, and an id is a term.
LONGEST_ID = 8_000
KINDS = 12  # kinds of problems shown
PLACES = 3  # of each
UNDATED_CHOICES = ("keep", "drop", "error")
# What differs between messages of one kind: values in quotes, and numbers.
_PARTICULAR = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[0-9][0-9,.]*")
_PLACE = re.compile(r"^.*?(?::[0-9]+)?: ")
LISTED = 100  # a corpus in the wrong format has a million problems; the first hundred tell as much
# Names that Anserini or this package give a meaning of their own inside the index.
RESERVED = frozenset({"id", "contents", "sdr_time"})
# Fields that usually hold a date; only used to hint that --date-field might have been meant.
USUAL_DATE_FIELDS = ("date", "time", "timestamp", "datetime", "published", "created_at", "created", "pubdate")


@dataclass
class Problems:
    """Where readers report what they cannot use: they stop at the first, or count and list (``--skip-bad``).

    >>> seen = Problems(skip=True)
    >>> seen.report(InputError("no field 'id'", file="docs.jsonl", line=3))
    >>> seen.count, seen.listed
    (1, ["docs.jsonl:3: no field 'id'"])
    """

    skip: bool = False
    count: int = 0
    listed: list[str] = field(default_factory=list)
    kinds: dict[str, list[str]] = field(default_factory=dict)  # the first messages of a kind
    counts: Counter[str] = field(default_factory=Counter)

    def report(self, error: InputError) -> None:
        """Raise the error, or note it and let the reader go on."""
        if not self.skip:
            raise error
        self.count += 1
        if len(self.listed) < LISTED:
            self.listed.append(error.message)
        kind = _PARTICULAR.sub("…", _without_place(error))
        if kind in self.kinds or len(self.kinds) < LISTED:
            self.counts[kind] += 1
            first = self.kinds.setdefault(kind, [])
            if len(first) < PLACES:
                first.append(error.message)

    def grouped(self) -> Iterator[str]:
        """A line for each kind, the most frequent first: how often, the first message, other places."""
        for kind, count in self.counts.most_common(KINDS):
            first, *others = self.kinds[kind]
            places = ", ".join(other[: -len(_tail(other))].rstrip(": ") for other in others)
            more = f" (also {places}{', …' if count > PLACES else ''})" if others else ""
            yield f"{count:,} × {first[:300]}{more}"
        if len(self.counts) > KINDS:
            yield f"… and {self.count - sum(n for _, n in self.counts.most_common(KINDS)):,} of other kinds"


def _without_place(error: InputError) -> str:
    return error.message if error.file is None else _tail(error.message)


def _tail(message: str) -> str:
    """A message without the place it begins with."""
    return _PLACE.sub("", message, count=1)


class UnreadableDate(InputError):
    """A document whose date is missing or no date; the document may be kept without it."""


class Place(NamedTuple):
    """Where a record stands: a file (or ``archive!member``) and a line, where the format has lines."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def error(self, message: str, remedy: str | None = None) -> InputError:
        """What is wrong there."""
        return InputError(message, file=self.file, line=self.line, remedy=remedy)


@dataclass(slots=True)
class Document:
    """What is indexed: an id, a text, perhaps a time (ms since 1970 UTC), and other fields, kept as is."""

    docid: str
    contents: str
    time: int | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    source: str = ""
    line: int | None = None

    @property
    def place(self) -> Place:
        return Place(self.source or "(made in Python)", self.line)


def check_docid(docid: str) -> str | None:
    """What is wrong with a document id, or None. Ids stand in TREC files, where blanks part the columns."""
    if docid.isprintable() and docid and " " not in docid and len(docid) <= LONGEST_ID:
        return None
    if not docid:
        return "the id is empty"
    if docid.split() != [docid]:
        return f"the id {docid!r} has a blank in it, which would break TREC run and qrels files"
    if re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", docid):
        return f"the id {docid!r} has a control character or a broken character in it"
    if len(docid) > LONGEST_ID:
        return f"the id {docid[:40]!r}… is {len(docid):,} characters long (limit {LONGEST_ID:,})"
    return None


@dataclass(frozen=True, kw_only=True)
class FieldMap:
    """Which fields of a source are id, contents and date.

    ``contents`` may name several fields: those present are joined by line breaks, and so are lists. ``headline.main``
    is the field ``main`` of the object ``headline``, or of each object of a list. ``date_format`` is a strptime
    pattern, or several that are tried in order (``auto``: the usual forms); a final ``*`` lets anything follow:
    ``%B %d, %Y*`` reads "May 14, 1991, Home Edition".
    """

    docid: str = "id"
    contents: tuple[str, ...] = ("contents",)
    date: str | None = None
    date_format: str | Sequence[str] | None = None

    def lowered(self) -> FieldMap:
        """For formats whose tags are known by name whatever their case."""
        return replace(
            self,
            docid=self.docid.lower(),
            contents=tuple(name.lower() for name in self.contents),
            date=None if self.date is None else self.date.lower(),
        )

    def document(self, record: Mapping[str, Any], place: Place) -> Document:
        """The document a record stands for; otherwise InputError with place, value and the way out."""
        docid = lookup(record, self.docid)
        if type(docid) is int:
            docid = str(docid)
        if type(docid) is not str:
            raise self._bad_docid(record, place)
        if trouble := check_docid(docid):
            raise place.error(trouble, "Correct it, or pass --skip-bad.")
        contents = self._contents(record, place)
        time = self._time(record, place) if self.date is not None else None
        fields = dict(record)
        fields.pop(self.docid, None)
        if len(self.contents) == 1:  # several parts are kept apart as well: a title remains a title
            fields.pop(self.contents[0], None)
        if not RESERVED.isdisjoint(fields):
            fields = _renamed(fields)
        return Document(docid, contents, time, fields, place.file, place.line)

    def _contents(self, record: Mapping[str, Any], place: Place) -> str:
        parts = [_joined(part) for name in self.contents if (part := lookup(record, name)) is not None]
        if not parts:
            wanted = " or ".join(repr(name) for name in self.contents)
            remedy = f"Name the field(s) that hold the text with --contents-field{_suggest(record, _TEXT_NAMES)}."
            raise place.error(f"no field {wanted}; there is {_names(record)}", remedy)
        for part in parts:
            if type(part) is not str:
                message = f"contents must be text, got {type(part).__name__}: {shown(part)}"
                inside = f", perhaps `{self.contents[0]}.{next(iter(part))}`" if isinstance(part, dict) and part else ""
                raise place.error(message, f"Name other fields with --contents-field{inside}, or pass --skip-bad.")
        text = parts[0] if len(parts) == 1 else "\n".join(parts)
        if len(text) > LONGEST_CONTENTS:
            message = f"contents is {len(text):,} characters long; Anserini takes at most {LONGEST_CONTENTS:,}"
            raise place.error(message, "Split the document, or pass --skip-bad.")
        return text

    def _time(self, record: Mapping[str, Any], place: Place) -> int | None:
        value = lookup(record, str(self.date))
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is None or value == "":
            return None
        try:
            return read_time(value, self.date_format)
        except (ValueError, TypeError, OverflowError) as error:
            remedy = "Give its strptime pattern with --date-format, or pass --undated keep, or --skip-bad."
            if self.date_format:
                remedy = f"Patterns: {self.date_format!r}; add another --date-format, or pass --undated keep."
            raise UnreadableDate(
                f"field {self.date!r}: {error}", file=place.file, line=place.line, remedy=remedy
            ) from None

    def _bad_docid(self, record: Mapping[str, Any], place: Place) -> InputError:
        value = lookup(record, self.docid)
        message = f"the id must be text or a whole number, got {type(value).__name__}: {shown(value)}"
        if value is None:
            message = f"no field {self.docid!r}; there is {_names(record)}"
        return place.error(message, f"Name the field that holds the id with --id-field{_suggest(record, _ID_NAMES)}.")


_ID_NAMES = ("docid", "docno", "doc_id", "_id", "ID", "Id", "pid", "uid", "key", "url")
_TEXT_NAMES = ("text", "body", "content", "abstract", "passage", "segment", "raw", "title")


def lookup(record: Mapping[str, Any], name: str) -> Any:
    """A field by its name; with dots, inside objects and lists of objects. None where there is none.

    >>> lookup({"byline": {"person": [{"name": "A"}, {"name": "B"}]}}, "byline.person.name")
    ['A', 'B']
    """
    if name in record or "." not in name:
        return record.get(name)
    head, _, rest = name.partition(".")
    inner = record.get(head)
    if isinstance(inner, Mapping):
        return lookup(inner, rest)
    if isinstance(inner, list):
        found = [lookup(one, rest) for one in inner if isinstance(one, Mapping)]
        return [one for one in found if one is not None] or None
    return None


def _joined(value: Any) -> Any:
    """A list of texts (or numbers) as one text; anything else as it is."""
    plain = isinstance(value, list) and all(isinstance(one, str | int | float) for one in value)
    return "\n".join(map(str, value)) if plain else value


def read_time(value: Any, pattern: str | Sequence[str] | None = None) -> int:
    """Like :func:`sdretrieval.core.times.parse_time`; a pattern may end in ``*``: anything may follow.

    Of several patterns the first that fits counts; ``auto`` stands for the usual forms.
    """
    if pattern is not None and not isinstance(pattern, str):
        if len(pattern) != 1:
            return _by_any(value, pattern)
        pattern = pattern[0]
    if pattern == "auto":
        pattern = None
    if pattern is not None and pattern.endswith("*"):
        pattern = pattern[:-1]
        if isinstance(value, str):
            value = value.strip()
            try:
                datetime.strptime(value, pattern)
            except ValueError as error:
                told = str(error).partition("unconverted data remains: ")
                if told[1]:
                    value = value[: -len(told[2])]
    return parse_time(value, pattern)


def _by_any(value: Any, patterns: Sequence[str]) -> int:
    for pattern in patterns:
        with suppress(ValueError, TypeError, OverflowError):
            return read_time(value, pattern)
    raise ValueError(f"not a time: {shown(value)}. Accepted: {', '.join(map(repr, patterns))}.")


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    """Fields that are not mapped but bear a reserved name come back with a leading underscore."""
    result = {name: value for name, value in fields.items() if name not in RESERVED}
    for name in RESERVED & fields.keys():
        free = "_" + name
        while free in result:
            free = "_" + free
        result[free] = fields[name]
    return result


def _names(record: Mapping[str, Any]) -> str:
    return few(map(repr, record)) or "no field at all"


def _suggest(record: Mapping[str, Any], usual: tuple[str, ...]) -> str:
    found = next((name for name in usual if name in record), None)
    return f", perhaps `{found}`" if found else ""
