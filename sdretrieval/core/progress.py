"""One way to show progress: a bar on stderr for anything that lasts over two seconds, silence otherwise.

Where stderr is no terminal, a line of its own twice a minute instead: a log is not filled with bars.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

DELAY_SECONDS = 2.0
SECONDS_BETWEEN_LINES = 30.0
SOON = 1e-6  # but not before it is known how long an item takes


def progress(items: Iterable[T], *, total: int | None = None, label: str = "", unit: str = "it") -> Iterator[T]:
    """Iterate, with a bar that appears only when the work takes longer than two seconds.

    The clock starts when the first item is there: compiling and loading before it tell nothing about the others.
    """
    if total is None and hasattr(items, "__len__"):
        total = len(items)  # type: ignore[arg-type]
    waiting, began = iter(items), 0.0
    for done, item in enumerate(waiting, 1):
        yield item
        began = began or time.monotonic()
        if time.monotonic() - began >= DELAY_SECONDS:
            yield from bar(waiting, total=total, label=label, unit=unit, initial=done, delay=SOON)


def bar(
    items: Iterable | None = None,
    *,
    total: int | None = None,
    label: str = "",
    unit: str = "it",
    initial: int = 0,
    delay: float = DELAY_SECONDS,
) -> Any:
    """The bar itself, for work that is not a plain loop: ``with bar(total=9) as b: b.update(3)``."""
    from tqdm import tqdm  # imported late: `sdretrieval --help` must answer at once

    screen = getattr(sys.stderr, "unfiltered", sys.stderr)  # commands filter what they print; a bar moves the cursor
    how: dict[str, Any] = {"dynamic_ncols": True, "file": screen}
    if not sys.stderr.isatty():
        how = {
            "file": _Lines(),
            "mininterval": SECONDS_BETWEEN_LINES,
            "maxinterval": SECONDS_BETWEEN_LINES,
            "ncols": 80,
        }
    return tqdm(items, total=total, desc=label, unit=unit, delay=delay, leave=False, initial=initial, **how)


class _Lines:
    """Takes a bar that is drawn over and over; writes each drawing as a line, and no clearing."""

    def write(self, text: str) -> None:
        if shown := text.strip():
            print(shown, file=sys.stderr)

    def flush(self) -> None:
        sys.stderr.flush()
