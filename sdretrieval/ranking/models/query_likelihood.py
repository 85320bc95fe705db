"""Query likelihood, thesis (2.2)-(2.6): log P(Q | θ^D) = Σ_w f^Q_w log θ^D_w, exact (true lengths, no flooring)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sdretrieval.core.parameters import choice, parameter, weight
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Plan, Ranker, register
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import Dirichlet, JelinekMercer


def mu_parameter(help: str = "Dirichlet prior", default: float = 1000.0):
    grid = (50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)
    return parameter(default, help, symbol="μ", low=0.0, high=1e9, open=True, grid=grid)


SMOOTHINGS = ("dirichlet", "jm")


def smoother(kind: str, lam: float, mu: float) -> JelinekMercer | Dirichlet:
    """The smoothing a model's ``smoothing`` parameter names."""
    return Dirichlet(mu) if kind == "dirichlet" else JelinekMercer(lam)


@register
@dataclass(frozen=True, kw_only=True)
class QueryLikelihood(Ranker):
    """Documents by the probability of generating the query.

    λ and μ as in (2.1) and (5.33); the thesis uses Dirichlet with μ = 900.
    """

    name: ClassVar[str] = "ql"
    description: ClassVar[str] = "query likelihood, Dirichlet or Jelinek-Mercer smoothing, exact"

    smoothing: str = choice("dirichlet", "how documents are smoothed", SMOOTHINGS)
    mu: float = mu_parameter()
    lam: float = weight(0.5, "share of the document's own words (Jelinek-Mercer)", symbol="λ")

    def first(self, query: Query, statistics: Statistics) -> Plan:
        return Plan(query.as_counts(), smoother(self.smoothing, self.lam, self.mu), with_constant=True)
