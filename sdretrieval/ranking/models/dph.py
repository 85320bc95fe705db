"""DPH: divergence from randomness, without parameters; see :class:`sdretrieval.ranking.weighting.DPH`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Plan, Ranker, register
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import DPH


@register
@dataclass(frozen=True, kw_only=True)
class DPHRanker(Ranker):
    """Σ_w f^Q_w (1 - f_w/|D|)² / (f_w + 1) · (f_w log₂(f_w / (|D| p_w)) + ½ log₂(2π f_w (1 - f_w/|D|)))."""

    name: ClassVar[str] = "dph"
    description: ClassVar[str] = "DPH, divergence from randomness without parameters"

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), DPH())
