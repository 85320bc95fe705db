"""Typed notes: what was done to a query on its way, besides ranking it."""

from __future__ import annotations

from dataclasses import dataclass

from sdretrieval.core.timeline import format_duration


@dataclass(frozen=True)
class PruneNote:
    """The share of the final plan's weights that pruning gave up."""

    lost: float


@dataclass(frozen=True)
class TimeNote:
    """What a time prior did: its weight, and the ``gain`` in nats for each of ``evidence`` effective documents."""

    prior: str
    weight: float
    gain: float
    evidence: float
    bandwidth_ms: float
    has_time: bool = True  # whether the query has the time that the prior wants

    @property
    def bandwidth(self) -> str:
        return format_duration(self.bandwidth_ms)


Note = PruneNote | TimeNote
