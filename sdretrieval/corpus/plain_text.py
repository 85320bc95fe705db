"""Plain text files, one document each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.record import LONGEST_CONTENTS
from sdretrieval.corpus.sources import ENCODING_REMEDY, Source, undecodable
from sdretrieval.errors import InputError

SUFFIXES = (".txt", ".text")
_LONGEST_FILE = 4 * LONGEST_CONTENTS  # mark-up included


def records(source: Source, encoding: str, problems: Problems) -> Iterator[tuple[None, dict[str, Any]]]:
    """One record: the file's text."""
    yield None, {"contents": whole_text(source, encoding)}


def whole_text(source: Source, encoding: str) -> str:
    """The file as one string with plain line ends."""
    with source.text(encoding) as stream:
        text = stream.read(_LONGEST_FILE + 1)
    if len(text) > _LONGEST_FILE:
        raise InputError(
            f"longer than {_LONGEST_FILE:,} characters, too long for one document", file=source.name,
            remedy="Split it, or name the format with --format if it holds many documents.",
        )  # fmt: skip
    if not text.isascii() and (trouble := undecodable(text, encoding)):
        line = 1 + next(i for i, part in enumerate(text.split("\n")) if undecodable(part, encoding))
        raise InputError(trouble, file=source.name, line=line, remedy=ENCODING_REMEDY)
    return text.replace("\r\n", "\n")
