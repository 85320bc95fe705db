"""Plain-text tables, columns aligned, numbers to the right; and numbers for reading and for JSON."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Any

NOTHING = "-"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of text under a header; the first ``left`` columns are flush left.

    >>> print(text_table(["run", "AP"], [["ql", "0.25"], ["rm3", "0.3"]]))
    run    AP
    ql   0.25
    rm3   0.3
    """
    table = [list(header), *(list(row) for row in rows)]
    widths = [max(_width(row[i]) for row in table) for i in range(len(header))]
    lines = []
    for row in table:
        cells = [_pad(cell, width, i < left) for i, (cell, width) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float, places: int = 4, sign: bool = False) -> str:
    """A number for a table; a dash where there is none. ``places=-1`` gives every digit."""
    if value is None or math.isnan(value):
        return NOTHING
    if places < 0:
        return f"{value:+}" if sign else f"{value}"
    return f"{value:{'+' if sign else ''}.{places}f}"


def probability(p: float) -> str:
    """A p-value for reading: never 0, never more digits than it deserves."""
    if math.isnan(p):
        return NOTHING
    return "<.0001" if p < 0.0001 else f"{p:.4f}".removeprefix("0") if p < 1 else "1"


def as_much(times: float) -> str:
    """``as much``, ``1.4 times as much``."""
    return "as much" if times == 1 else f"{times:g} times as much"


def json_number(value: Any) -> Any:
    """JSON has no nan and no infinity: None stands for them."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text
