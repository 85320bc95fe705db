"""Only documents of a period are ranked; statistics stay those of the whole collection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sdretrieval.core.times import UNDATED
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.time.base import TimeWrapper
from sdretrieval.ranking.wrapper import Hooks, View


@dataclass(frozen=True, kw_only=True)
class Period(TimeWrapper):
    """Rank the documents with since <= time < until (ms; None for no bound). Undated ones are left out."""

    label: ClassVar[str] = "period"
    place: ClassVar[int] = 5

    since: int | None = None
    until: int | None = None

    def time_settings(self) -> dict[str, Any]:
        return {"since": self.since, "until": self.until}

    def hooks(self, engine: Engine) -> Hooks:
        times = np.asarray(engine.snapshot.times)
        inside = times != UNDATED
        if self.since is not None:
            inside &= times >= self.since
        if self.until is not None:
            inside &= times < self.until
        return PeriodHooks(inside)


class PeriodHooks(Hooks):
    per_query = True

    def __init__(self, inside: np.ndarray) -> None:
        self.inside = inside

    def view(self, query: Query, view: View) -> View:
        return View(view.statistics, self.inside if view.allowed is None else view.allowed & self.inside)
