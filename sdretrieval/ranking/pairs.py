"""Neighbouring words of a query as evidence of their own, in the first documents of a ranking.

    added(D) = Σ_i  a^O_i φ(o_i) + a^U_i φ(u_i)      over neighbours i in the query as typed, after analysis

    o_i, u_i   how often the second word follows the first in D, and how often both stand within eight words
    φ          the plan's evidence of a count; the idf of a pair is the sum of its words'

These are the windows of the sequential dependence model (models/sequential_dependence.py) as a part of a plan. They are
counted in the first REACH documents alone, from their rows and positions (index/positions.py); the others follow.
Where a collection has no positions, the words rank by themselves, and a note says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.index.positions import has_positions, positions_of
from sdretrieval.ranking.base import Pairs, Plan
from sdretrieval.ranking.notes import NoPositionsNote
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.wrapper import Hooks, Others, Ranked

if TYPE_CHECKING:
    from sdretrieval.ranking.engine import Engine, Result

REACH = 1000  # first documents that are looked at
# places that may lie between two words in order, and near each other; whether those further apart count less
PAPER = (0, 6, False)


def neighbours(query: Query, in_order: float, near: float) -> Pairs | None:
    """The neighbours in a query, weighed alike for each time they are typed; None where there are none."""
    known = set(query.terms.tolist())
    found = Counter(pair for pair in pairwise(query.order) if known.issuperset(pair))
    if not found or not (in_order or near):
        return None
    times = np.array(list(found.values()), dtype=np.float64)
    return Pairs(np.array(list(found), dtype=np.int64), in_order * times, near * times)


def pair_parts(engine: Engine, plan: Plan, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a^O_i φ(o_i) and a^U_i φ(u_i): documents x pairs each."""
    assert plan.pairs is not None
    pairs, weighting, statistics = plan.pairs, plan.weighting, engine.statistics
    in_order, near = positions_of(engine.snapshot).counted(docs, pairs.terms, *PAPER)
    A = weighting.term_factors(statistics, pairs.terms.ravel()).reshape(-1, 2)
    idf = np.where(pairs.terms[:, 0] == pairs.terms[:, 1], A[:, 0], A.sum(axis=1))
    B = weighting.doc_factors(statistics, engine.snapshot.lengths_of(docs))[:, np.newaxis]

    def evidence(counts: np.ndarray) -> np.ndarray:
        return np.where(counts > 0, weighting.phi(np.maximum(counts, 1.0), idf, B), 0.0)

    return pairs.in_order * evidence(in_order), pairs.near * evidence(near)


def pair_scores(engine: Engine, plan: Plan, docs: np.ndarray) -> np.ndarray:
    """What pairs add to the scores of documents; nothing where the plan has none."""
    if plan.pairs is None or not len(docs):
        return np.zeros(len(docs))
    in_order, near = pair_parts(engine, plan, docs)
    return (in_order + near).sum(axis=1)


class PairHooks(Hooks):
    """Adds what the pairs of a plan bring to the scores of its words."""

    adjusts, reach = True, REACH

    def __init__(self, engine: Engine) -> None:
        self.snapshot = engine.snapshot

    def start(self, queries: Sequence[Query]) -> None:
        if any(len(query.order) > 1 for query in queries):
            has_positions(self.snapshot)  # taken from the index once, before threads ask for them

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        if result.plan.pairs is None:
            return None
        if not has_positions(self.snapshot):
            result.plan = replace(result.plan, pairs=None)
            result.notes.append(NoPositionsNote())
            return None
        return found[0], found[1] + pair_scores(engine, result.plan, found[0])

    def brought(self, engine: Engine, result: Result, found: Ranked) -> Ranked:
        return found[0], found[1] + pair_scores(engine, result.plan, found[0])
