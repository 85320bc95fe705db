"""Tables with bars for the terminal, and numbers in them that add up by eye: what `explain` and `expansion` share."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from sdretrieval.core.tables import text_table

Column = tuple[str, Sequence[str]]  # header and cells


def terminal_width() -> int:
    return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 120)


def wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")


def bar(value: float, largest: float, width: int) -> str:
    """A bar of blocks, light ones for what counts against.

    >>> bar(3.0, 4.0, 8), bar(-2.0, 4.0, 8)
    ('██████', '░░░░')
    """
    if not largest > 0:
        return ""
    cells = min(abs(value) / largest, 1.0) * width
    if value < 0:
        return "░" * max(round(cells), 1)
    eighths = round(cells * 8)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def bar_table(columns: Sequence[Column], values: Sequence[float], width: int) -> list[str]:
    """Lines of a table with a bar for one value per row, in what is left of the width.

    Rows beyond the values have no bar; columns that end early have empty cells below.
    """
    rows = list(zip_longest(*(cells for _, cells in columns), fillvalue=""))
    lines = text_table([header for header, _ in columns], rows).splitlines()
    # The last column is flush right, so the header is as wide as the table.
    room = min(width - len(lines[0]) - 5, 30)
    largest = max(map(abs, values), default=0.0)
    if room >= 5:
        for i, value in enumerate(values, 1):
            lines[i] = f"{lines[i]}   {bar(value, largest, room)}".rstrip()
    return ["  " + line for line in lines]


def significant(value: float) -> str:
    """Four significant digits without exponents where they can be done without.

    >>> significant(0.012345), significant(123.456), significant(1e-7), significant(0)
    ('0.01235', '123.5', '1.000e-07', '0')
    """
    if value == 0:
        return "0"
    size = abs(value)
    if size < 1e-4 or size >= 1e7:
        return f"{value:.3e}"
    return f"{value:.{max(0, 3 - math.floor(math.log10(size)))}f}"


def column(name: str, values: Sequence[float]) -> tuple[str, list[str]]:
    """A column to add up by eye: one number of decimals, five digits for the largest.

    Small numbers are given in thousandths, millionths and so on, and the header says so.

    >>> column("weight", [0.0000123456, 0.00000098])
    ('weight (×1e-6)', ['12.346', '0.980'])
    """
    largest = max(map(abs, values), default=0.0)
    if not largest:
        return name, ["0"] * len(values)
    exponent = 0
    if largest < 1e-3 or largest >= 1e7:
        exponent = 3 * math.floor(math.log10(largest) / 3)
        name = f"{name} (×1e{exponent})"
    places = min(max(4 - math.floor(math.log10(largest) - exponent), 0), 6)
    # Divided in two steps: the smallest floats have no finite inverse.
    half = exponent // 2
    return name, [f"{value / 10.0**half / 10.0 ** (exponent - half):.{places}f}" for value in values]
