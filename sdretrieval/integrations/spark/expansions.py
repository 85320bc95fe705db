"""Expanded queries over shards: written as one index writes them, and replayed (see ranking/expansion.py)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from sdretrieval.integrations.spark.ranking import ShardedResult
from sdretrieval.integrations.spark.shards import Collection
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.expansion import ExpandedQuery, read_expansions


class _Names:
    """Docids of the documents that the driver has heard of; taken as those of a snapshot are."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names

    def take(self, numbers: np.ndarray) -> list[str]:
        return [self._names[number] for number in numbers.tolist()]


def line_of(result: ShardedResult, collection: Collection, model: str) -> str:
    """What was estimated for a topic, as a line of the file."""
    standing_in = SimpleNamespace(vocabulary=collection.totals.vocabulary, docids=_Names(result.names))
    return ExpandedQuery.of(result, standing_in, model).to_line()  # type: ignore[arg-type]


def read_plans(
    path: str | os.PathLike[str], collection: Collection, missing: str = "error", dropped: list[str] | None = None
) -> dict[str, Plan]:
    """A file as plans in the words of all shards. Their statistics must have been summed."""
    standing_in = SimpleNamespace(vocabulary=collection.totals.vocabulary, name=collection.name)
    return read_expansions(path, standing_in, missing, dropped)  # type: ignore[arg-type]


def mark_of(plans: Mapping[str, Plan], qids: Iterable[str]) -> Sequence[str]:
    """Tells other plans apart: batches ranked with these must not be taken up for those."""
    marks = []
    for qid in qids:
        plan = plans.get(qid)
        if plan is None:
            marks.append("")
            continue
        model = plan.model
        told = f"{model.background!r} {plan.weighting!r} {plan.with_constant}".encode()
        arrays = np.asarray(model.terms, dtype=np.int64).tobytes() + np.asarray(model.weights, dtype=float).tobytes()
        marks.append(hashlib.sha256(told + b"\0" + arrays).hexdigest())
    return marks
