"""The reading loop: sources to documents, whatever their format."""

from __future__ import annotations

import codecs
import mimetypes
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sdretrieval.collection.corpus import ciff, delimited, jsonl, trec_sgml, whole_files
from sdretrieval.collection.corpus.record import UNDATED_CHOICES, Document, FieldMap, Place, Problems, UnreadableDate
from sdretrieval.collection.corpus.sources import MAX_MEMBER_BYTES, Source, discover
from sdretrieval.core.errors import InputError, ParameterError, few

FORMATS = {  # and the extensions that tell of them
    "jsonl": jsonl.SUFFIXES,
    "trec": trec_sgml.SUFFIXES,
    "html": whole_files.HTML_SUFFIXES,
    "text": whole_files.TEXT_SUFFIXES,
    "csv": delimited.CSV_SUFFIXES,
    "tsv": delimited.TSV_SUFFIXES,
    "ciff": (),  # never among others: its terms are indexed as they are
}
_SUFFIXES = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}
DOCID_STYLES = ("stem", "path")
_FILE_ID = "\0file"  # no real field can be named so


@dataclass
class Reader:
    """How to read a corpus.

    Parameters
    ----------
    format
        One of :data:`FORMATS`, or ``auto``: told by names and first bytes.
    docid, contents, date
        The fields of the id, the text and the date. What is not given is the format's own habit; no ``date``, no times.
    date_format
        A strptime pattern (a final ``*`` lets anything follow), ``epoch_s`` or ``epoch_ms``; or several, in order.
    undated
        What becomes of a document without a readable date where ``date`` is given: ``keep``, ``drop`` or ``error``. By
        default one without any is kept, and one that cannot be read is bad (kept where bad documents are skipped).
    docid_style
        The id of a document that is a file: its name (``stem``) or its ``path`` below the input.
    delimiter, columns
        Of CSV and TSV files; ``columns`` where there is no header row.
    glob, exclude
        Read only files whose name or path matches, and not these folders.
    problems
        Where bad documents are reported; the first one is an error where it is not given.
    """

    format: str = "auto"
    docid: str | None = None
    contents: tuple[str, ...] = ()
    date: str | None = None
    date_format: str | Sequence[str] | None = None
    undated: str | None = None
    encoding: str = "utf-8"
    docid_style: str = "stem"
    delimiter: str | None = None
    columns: tuple[str, ...] = ()
    glob: str | None = None
    exclude: tuple[Path, ...] = ()
    max_member_bytes: int = MAX_MEMBER_BYTES
    problems: Problems = field(default_factory=Problems)
    dates: Problems = field(default_factory=lambda: Problems(skip=True))  # dates that --undated made no problem of
    ignored: list[str] = field(default_factory=list)  # files of no known format in a folder or archive
    _documents_seen: int = 0
    _dated: int = 0

    def __post_init__(self) -> None:
        if self.format not in ("auto", *FORMATS):
            raise ParameterError(f"unknown format {self.format!r}", remedy=f"One of: auto, {', '.join(FORMATS)}.")
        if self.docid_style not in DOCID_STYLES:
            raise ParameterError(f"unknown docid style {self.docid_style!r}", remedy="One of: stem, path.")
        if self.undated not in (None, *UNDATED_CHOICES):
            raise ParameterError(f"undated is keep, drop or error, got {self.undated!r}")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ParameterError(f"the delimiter must be one character, got {self.delimiter!r}")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ParameterError(
                f"unknown encoding {self.encoding!r}", remedy="For example utf-8, latin-1, cp1252, shift_jis."
            ) from None

    def read(self, paths: Iterable[str | os.PathLike[str]]) -> Iterator[Document]:
        """Every document below the paths, in order."""
        for path in paths:
            seen, ignored = 0, len(self.ignored)
            for source in discover(
                path, self.problems, exclude=self.exclude, glob=self.glob, max_member_bytes=self.max_member_bytes
            ):
                seen += 1
                yield from self.documents_in(source)
            if seen == len(self.ignored) - ignored and not self.problems.count:
                raise self._nothing(path, seen)
        if self.date is not None and self._documents_seen and not self._dated:
            raise InputError(
                f"none of {self._documents_seen:,} documents has a field {self.date!r} with a date in it",
                remedy="Check --date-field, or leave it out.",
            )

    def documents_in(self, source: Source) -> Iterator[Document]:
        """Those of one source, which is then closed; what is bad is reported."""
        source.encoding, source.problems = self.encoding, self.problems
        try:
            found = self._format_of(source)
            if found is None:
                self.ignored.append(source.name)
            else:
                yield from self._documents(source, found)
        except InputError as error:
            self.problems.report(error)
        finally:
            source.close()

    def _nothing(self, path: str | os.PathLike[str], seen: int) -> InputError:
        if seen == 0:
            told = "no file in it" + (f" matches {self.glob!r}" if self.glob else "")
            return InputError(told, file=path, remedy="Check the path" + (" and --glob." if self.glob else "."))
        names = few((Path(name.rpartition("!")[2]).name for name in self.ignored[-seen:]), 3)
        which = f"this file ({names})" if seen == 1 else f"any of the {seen} files in it ({names})"
        remedy = f"Name it with --format: {', '.join(FORMATS)}."
        return InputError(f"cannot tell the format of {which}", file=path, remedy=remedy)

    def _format_of(self, source: Source) -> str | None:
        if self.format != "auto":
            return None if self.format != "ciff" and _is_no_text(source) else self.format
        found = _SUFFIXES.get(source.suffix)
        return found if found and found != "text" else (_sniff(source.head()) or found)

    def _documents(self, source: Source, found: str) -> Iterator[Document]:
        records, mapping = self._records(source, found)
        for line, fields in records:
            if found in ("html", "text"):
                fields["path"] = source.relative
                if self.docid is None:
                    name = source.stem if self.docid_style == "stem" else source.relative
                    # a file's name may have blanks, an id may not; the rest of the name stays readable
                    fields[_FILE_ID] = "".join(quote(c) if c.isspace() else c for c in name)
            try:
                made = self.document(mapping, fields, Place(source.name, line))
            except InputError as error:
                self.problems.report(error)
                continue
            if made is None:
                continue
            if found in ("csv", "tsv"):
                made.fields = {name: value for name, value in made.fields.items() if value != ""}
            self._documents_seen += 1
            self._dated += made.time is not None
            yield made

    def document(self, mapping: FieldMap, fields: dict[str, Any], place: Place) -> Document | None:
        """What a record stands for; None where it is left out for want of a date."""
        try:
            made = mapping.document(fields, place)
            if made.time is not None or self.date is None or self.undated in (None, "keep"):
                return made
            error = UnreadableDate(f"no date in field {self.date!r}", file=place.file, line=place.line)
            error.remedy = "Pass --undated keep or --undated drop."
        except UnreadableDate as unreadable:
            error = unreadable
        if self.undated == "error" or (self.undated is None and not self.problems.skip):
            raise error
        self.dates.report(error)
        return None if self.undated == "drop" else replace(mapping, date=None).document(fields, place)

    def _records(self, source: Source, found: str) -> tuple[Iterator, FieldMap]:
        """The format's records, and the field map with the format's habits filled in."""
        contents = self.contents or ("contents",)
        mapping = FieldMap(docid=self.docid or "id", contents=contents, date=self.date, date_format=self.date_format)
        if found == "trec":
            mapping = replace(mapping, docid=self.docid or trec_sgml.DOCID_FIELD).lowered()
            tags = mapping.contents if self.contents else trec_sgml.CONTENT_TAGS
            return trec_sgml.records(source, tags), replace(mapping, contents=("contents",))
        if found in ("csv", "tsv"):
            read, usual = (delimited.csv_records, ",") if found == "csv" else (delimited.tsv_records, "\t")
            chosen = self.delimiter or (usual if found == "tsv" or self.columns else delimited.sniff(source))
            return read(source, chosen, self.columns), mapping
        if found in ("html", "text"):
            whole = whole_files.html_records if found == "html" else whole_files.text_records
            return whole(source), replace(mapping, docid=self.docid or _FILE_ID)
        return (ciff if found == "ciff" else jsonl).records(source), mapping


def _is_no_text(source: Source) -> bool:
    """Pictures, fonts, styles and scripts among pages: by their names, or by zero bytes."""
    kind = mimetypes.guess_type(source.relative)[0] or ""
    if kind.split("/")[0] in ("image", "audio", "video", "font") or kind in ("text/css", "text/javascript"):
        return True
    return b"\0" in source.head() and not source.encoding.lower().startswith(("utf-16", "utf_16", "utf-32", "utf_32"))


def _sniff(head: bytes) -> str | None:
    """The format told by a file's first bytes, for names that do not tell."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:2048].lower()
    if text.startswith(b"{"):
        return "jsonl"
    if b"<doc>" in text or text.startswith(b"<doc "):
        return "trec"
    if text.startswith((b"<!doctype html", b"<html")):
        return "html"
    return None


def read_corpus(paths: Iterable[str | os.PathLike[str]], **options) -> Iterator[Document]:
    """Documents below files, folders or archives; options are those of :class:`Reader`.

    >>> list(read_corpus(["docs.jsonl"], date="published"))    # doctest: +SKIP
    """
    return Reader(**options).read([paths] if isinstance(paths, str | os.PathLike) else paths)
