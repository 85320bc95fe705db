"""Documents of a period alone: a wrapper that says which documents there are.

>>> from sdretrieval.ranking.registry import make_ranker
>>> Period(ranker=make_ranker("sd3"), since=0, until=86_400_000).name
'sd3+period'

Only documents of the period are ranked, learnt from and evidence for a time prior. Statistics stay those of the whole
collection: how rare a word is does not change with what is asked for. Who wants the counts of the past alone takes
as-of. Undated documents may be of any time and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED, format_time
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.time.base import TimeWrapper
from sdretrieval.ranking.wrapper import Hooks, View


@dataclass(frozen=True, kw_only=True)
class Period(TimeWrapper):
    """Only documents from ``since`` on and before ``until``, in ms since 1970; None for no such limit."""

    label: ClassVar[str] = "period"
    place: ClassVar[int] = 5

    since: int | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise ParameterError(
                f"the period from {format_time(self.since)} until {format_time(self.until)} is empty",
                remedy="The end is not part of it: it must be later than the beginning.",
            )

    def time_settings(self) -> dict[str, Any]:
        return {
            name: None if ms is None else format_time(ms) for name, ms in (("from", self.since), ("until", self.until))
        }

    def hooks(self, engine: Engine) -> Hooks:
        return PeriodHooks(self.within(engine.snapshot))

    def within(self, snapshot: Snapshot) -> np.ndarray:
        """Which documents are of the period, a boolean each."""
        if not snapshot.is_dated:
            raise InputError(
                "a period needs dated documents; the index has none",
                remedy="Index again with a --date-field, or leave out --from and --until.",
            )
        times = np.asarray(snapshot.times)
        inside = times != UNDATED
        if self.since is not None:
            inside &= times >= self.since
        return inside if self.until is None else inside & (times < self.until)


class PeriodHooks(Hooks):
    def __init__(self, inside: np.ndarray) -> None:
        self.inside = inside

    def view(self, query: Query, view: View) -> View:
        return replace(view, allowed=self.inside if view.allowed is None else self.inside & view.allowed)
