"""Markdown tables and standard errors, as the sections of docs/RESULTS.md write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike


def table(head: Sequence[str], rows: Mapping[str, Sequence[str]] | Iterable[Sequence[str]]) -> str:
    """``head`` begins with the cell above the labels; rows are cells by label, or lists that begin with one."""
    if isinstance(rows, Mapping):
        rows = [[label, *cells] for label, cells in rows.items()]
    first, *others = ("| " + " | ".join(cells) + " |" for cells in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others])


def standard_error(values: ArrayLike) -> float:
    """Of the mean of independent values."""
    found = np.asarray(values, dtype=float)
    return float(found.std(ddof=1) / np.sqrt(len(found)))


def mean_and_error(values: ArrayLike, places: int, sign: str = "") -> str:
    """The mean, and its standard error in brackets where there is more than one value."""
    found = np.asarray(values, dtype=float)
    mean = f"{found.mean():{sign}.{places}f}"
    return mean if len(found) == 1 else f"{mean} ({standard_error(found):.{places}f})"


def error_of(values: Mapping[str, float], others: Mapping[str, float]) -> str:
    """The standard error of the mean difference over topics, in brackets; nothing where all are equal."""
    gaps = np.array([value - others[qid] for qid, value in values.items()])
    return f" ({standard_error(gaps):.4f})" if gaps.any() else ""
