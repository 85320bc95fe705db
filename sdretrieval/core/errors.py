"""Errors a user can act on: what, where, what was received, and the way out.

The command line prints them without a traceback and exits with 2; from Python they are ordinary exceptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath

FileName = str | PathLike[str]


class SdretrievalError(Exception):
    """Base of every error this package raises on purpose.

    >>> print(SdretrievalError("lambda must be in (0, 1), got 2.0", remedy="Pass --set smoothing=0.5."))
    lambda must be in (0, 1), got 2.0
      Pass --set smoothing=0.5.
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message if self.remedy is None else f"{self.message}\n  {self.remedy}"


class ParameterError(SdretrievalError, ValueError):
    """A parameter outside its range, or a name that does not exist."""


class InputError(SdretrievalError):
    """A file that does not say what it should; carries the place as ``file:line``."""

    def __init__(
        self, message: str, *, file: FileName | None = None, line: int | None = None, remedy: str | None = None
    ) -> None:
        self.file = None if file is None else fspath(file)
        self.line = line
        place = "" if self.file is None else f"{self.file}:" + ("" if line is None else f"{line}:") + " "
        super().__init__(place + message, remedy=remedy)


class IndexProblem(SdretrievalError):
    """An index or snapshot that is missing, foreign, stale or broken."""


class JavaError(SdretrievalError):
    """No usable Java, or Java said no."""


def shown(value: object, most: int = 80) -> str:
    """A value for a message: quoted, with control characters escaped, never a page long."""
    if isinstance(value, str):
        return repr(value if len(value) <= most else value[: most - 20] + "…")
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= most else text[: most - 20] + "…"


def few(names: Iterable[object], most: int = 10) -> str:
    """The first of many names for a message, and that there are more.

    >>> few("abc", 2), few("ab", 2)
    ('a, b, …', 'a, b')
    """
    listed = [str(name) for name in names]
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")
