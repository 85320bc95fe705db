"""What a document, an id or a label says is shown, never obeyed: control characters do not reach the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# All but line ends and tabs. An escape can repaint the screen, and on some terminals type for the user.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    r"""Text with its control characters spelt out.

    >>> print(visible("tea\x1b[2Jtime"))
    tea\x1b[2Jtime
    """
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _Visible:
    """A stream whose text is made visible; ``unfiltered`` is the stream itself, for progress bars."""

    def __init__(self, stream: Any) -> None:
        self.unfiltered = stream

    def write(self, text: str) -> int:
        self.unfiltered.write(visible(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


@contextmanager
def visible_controls() -> Iterator[None]:
    """All that is printed meanwhile."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(_Visible, before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
