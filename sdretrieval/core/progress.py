"""One way to show progress: a bar on stderr for anything that lasts over two seconds, silence otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")

DELAY_SECONDS = 2.0


def progress(items: Iterable[T], *, total: int | None = None, label: str = "", unit: str = "it") -> Iterator[T]:
    """Iterate, with a bar that appears only when the work takes longer than two seconds."""
    yield from bar(items, total=total, label=label, unit=unit)


def bar(items: Iterable | None = None, *, total: int | None = None, label: str = "", unit: str = "it") -> Any:
    """The bar itself, for work that is not a plain loop: ``with bar(total=9) as b: b.update(3)``."""
    from tqdm import tqdm  # imported late: `sdretrieval --help` must answer at once

    screen = getattr(sys.stderr, "unfiltered", sys.stderr)  # commands filter what they print; a bar moves the cursor
    return tqdm(
        items, total=total, desc=label, unit=unit, delay=DELAY_SECONDS, leave=False, dynamic_ncols=True, file=screen
    )
