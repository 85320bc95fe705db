"""What readers and writers of TREC files share: a file with its lines, and how to say what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sized
from os import PathLike
from typing import NoReturn

from sdretrieval.core.errors import InputError, ParameterError, few, shown
from sdretrieval.core.files import numbered_lines
from sdretrieval.core.times import parse_time

Path = str | PathLike[str]


class TrecFile:
    """A file that is being read: its lines, and the way to say what is wrong with one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[tuple[int, str]]:
        yield from numbered_lines(self.path)

    def rows(
        self, count: int, form: str, lines: Iterable[tuple[int, str]] | None = None
    ) -> Iterator[tuple[int, list[str]]]:
        """Lines (all, where none are given) in their columns; empty ones are passed over."""
        for line, text in self.lines() if lines is None else lines:
            columns = text.split()
            if len(columns) == count:
                yield line, columns
            elif columns:
                found = f"found {len(columns)}: {shown(text)}"
                self.fail(line, f"expected {count} columns, {found}", f"{form} Ids have no spaces in them.")

    def check_token(self, line: int, what: str, text: str) -> None:
        if problem := token_problem(text):
            self.fail(line, f"{what} {shown(text)} {problem}", f"A {what} is one word of printable text.")

    def check_filled(self, found: Sized, form: str) -> None:
        if not found:
            raise InputError("the file is empty", file=self.path, remedy=form)

    def time(self, line: int, value: object) -> int:
        try:
            return parse_time(value)  # type: ignore[arg-type]  # it says itself what it cannot take
        except ValueError as error:
            self.fail(line, str(error), "Write times as 2011-02-08T12:30:27Z.")

    def times(self, what: str) -> dict[str, tuple[int, int]]:
        """The line and the time of each topic or document of a table, ``id TAB time`` a line."""
        form = f"Each line is: {what}, tab, time."
        times: dict[str, tuple[int, int]] = {}
        for line, text in self.lines():
            if not text.strip():
                continue
            columns = [column.strip() for column in text.split("\t")]
            if len(columns) != 2:
                self.fail(line, f"expected 2 columns at tabs, found {len(columns)}: {shown(text)}", form)
            name, time = columns
            self.check_token(line, what, name)
            if name in times:
                self.fail(line, f"{what} {shown(name)} again: first on line {times[name][0]}", "Remove one line.")
            times[name] = line, self.time(line, time)
        self.check_filled(times, form)
        return times

    def fail_again(self, line: int, qid: str, docid: str, first: int) -> NoReturn:
        message = f"docid {shown(docid)} again for topic {shown(qid)}: first on line {first}"
        self.fail(line, message, "A document stands once per topic: remove one of the lines.")

    def fail(self, line: int, message: str, remedy: str) -> NoReturn:
        raise InputError(message, file=self.path, line=line, remedy=remedy)


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
SURROGATE = re.compile(r"[\ud800-\udfff]")


def token_problem(text: str) -> str | None:
    """Why a text cannot be a column of a line."""
    if not text:
        return "is empty"
    if CONTROL.search(text):
        return "has a control character in it"
    return None if text.split() == [text] else "has a space in it"


def check_writable(what: str, tokens: Iterable[str]) -> None:
    tokens = tokens if isinstance(tokens, list) else list(tokens)
    together = " ".join(tokens)
    if together.isprintable() and together.split() == tokens:
        return  # the common case, for a thousand docids at once
    for token in tokens:
        if problem := token_problem(token):
            raise ParameterError(
                f"{what} {shown(token)} {problem}: it could not be read back",
                remedy=f"A {what} is one word of printable text.",
            )


def squeeze(text: str) -> str:
    return " ".join(text.split())


def listed(names: Iterable[str]) -> str:
    return few(map(shown, names)) or "nothing"
