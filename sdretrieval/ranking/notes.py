"""Typed notes: what was done to a query on its way, besides ranking it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from sdretrieval.core.timeline import format_duration
from sdretrieval.core.times import UNDATED


@dataclass(frozen=True)
class PruneNote:
    """The share of the final plan's weights that pruning gave up."""

    lost: float


@dataclass(frozen=True)
class TimeNote:
    """What a time prior did: its weight, and the ``gain`` in nats for each of ``evidence`` effective documents.

    curve        what a document's time adds, w·ρ, in nats, at some times, ms; nothing where that is nothing
    """

    prior: str
    weight: float
    gain: float
    evidence: float
    bandwidth_ms: float
    has_time: bool = True  # whether the query has the time that the prior wants
    curve: tuple[tuple[int, float], ...] = ()

    @property
    def bandwidth(self) -> str:
        return format_duration(self.bandwidth_ms)

    def __str__(self) -> str:
        if not self.has_time:
            return f"{self.prior}: nothing, since the topic has no time"
        return f"{self.prior}, bandwidth {self.bandwidth}, weight {self.weight:.2f}"


@dataclass(frozen=True)
class AutoTimeNote:
    """What the automatic time prior found: nats of evidence, and how far each kind was believed (ranking/time/auto.py).

    near_share   of the topic's documents, near the query's time; ``learnt_from`` so many topics of the call
    pictured     some documents' times and what these add, of which the ``curve`` of a :class:`TimeNote` is made
    learnt_in_time   whether feedback documents were chosen and weighted by what the first pass's times tell
    """

    prior: str
    bursts: float
    bursts_believed: float
    nearness: float
    nearness_believed: float
    near_share: float
    learnt_from: int
    pictured: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False, repr=False)
    learnt_in_time: bool = False

    has_time = True  # it does without the query's time where there is none

    @cached_property
    def curve(self) -> tuple[tuple[int, float], ...]:
        if self.pictured is None:
            return ()
        times, nats = self.pictured
        dated = np.flatnonzero(times != UNDATED)
        order = dated[np.argsort(times[dated], kind="stable")]
        return tuple(zip(times[order].astype(np.int64).tolist(), nats[order].tolist(), strict=True))

    @property
    def weight(self) -> float:
        return max(self.bursts_believed, self.nearness_believed)

    @property
    def choice(self) -> str:
        """``none``, ``bursts``, ``nearness`` or ``both``; ``feedback``, where time told of the first pass alone."""
        bursts, nearness = self.bursts_believed > 0, self.nearness_believed > 0
        neither = "feedback" if self.learnt_in_time else "none"
        return "both" if bursts and nearness else "bursts" if bursts else "nearness" if nearness else neither

    def __str__(self) -> str:
        told = []
        if self.bursts_believed > 0:
            told.append(f"bursts ({self.bursts:.1f} nats, believed by {self.bursts_believed:.2f})")
        if self.nearness_believed > 0:
            topics = f", {self.learnt_from} topics" if self.learnt_from else ""
            told.append(
                f"nearness to the query's time ({self.nearness:.1f} nats{topics}, believed by "
                f"{self.nearness_believed:.2f}, {100 * self.near_share:.0f} % of documents near)"
            )
        what = " and ".join(told) if told else f"none (bursts {self.bursts:.1f}, nearness {self.nearness:.1f} nats)"
        return f"{what}; feedback by time too" if self.learnt_in_time else what


@dataclass(frozen=True)
class NoPositionsNote:
    """Neighbouring words were not looked for: the collection does not tell where words stand."""

    def __str__(self) -> str:
        return "words alone: the index has no positions, so neighbouring words were not looked for"


Note = NoPositionsNote | PruneNote | TimeNote | AutoTimeNote
