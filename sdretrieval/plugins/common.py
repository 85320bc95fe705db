"""What the plugins share: a model from its name and settings, and documents looked up by their docids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import parse_time
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker

ON_MISSING = ("error", "drop")


def ranker_of(model: str | Ranker, profile: str | None, settings: Mapping[str, Any]) -> Ranker:
    """A model by name with its settings, or one that is ready made."""
    if not isinstance(model, Ranker):
        return make_ranker(model, settings, profile=profile)
    if settings or profile:
        given = ", ".join(settings) or f"profile {profile!r}"
        raise ParameterError(
            f"{given}: settings go with the name of a model, not with a model that is made already",
            remedy=f'Write "{model.name}", or make the change with model.with_(…).',
        )
    return model


def time_of(value: str | float | date) -> int:
    """The time of asking, in ms since 1970."""
    try:
        return parse_time(value)
    except ValueError as error:
        raise ParameterError(str(error)) from None


def check_missing(missing: str) -> str:
    if missing not in ON_MISSING:
        raise ParameterError(f"missing must be one of {', '.join(ON_MISSING)}; got {missing!r}")
    return missing


def document_numbers(snapshot: Snapshot, docids: Sequence[str], missing: str, where: str) -> np.ndarray:
    """The snapshot's numbers of these documents; -1, or an error, for those it does not have."""
    if len(set(docids)) != len(docids):
        seen: set[str] = set()
        twice = next(d for d in docids if d in seen or seen.add(d))  # type: ignore[func-returns-value]
        raise InputError(f"{where}: docid {twice!r} is there twice")
    numbers = snapshot.docids.find_many(docids)
    absent = np.flatnonzero(numbers < 0)
    if len(absent) and missing != "drop":
        raise InputError(
            f"{where}: docid {docids[int(absent[0])]!r} is not in the index {snapshot.name!r} "
            f"({snapshot.n_docs} documents; {len(absent)} of {len(docids)} are not)",
            remedy='Use the index the documents come from, or pass missing="drop".',
        )
    return numbers


def rescored(
    engine: Engine, ranker: Ranker, queries: Sequence[Query], candidates: Mapping[str, Mapping[int, Any]], **more: Any
) -> Iterator[Result]:
    """Given documents ranked: by query id their numbers, in the order of the first ranking."""
    numbers = {qid: np.fromiter(found, np.int64, len(found)) for qid, found in candidates.items()}
    depth = max(map(len, candidates.values()), default=0)
    return engine.rank(ranker, queries, RankOptions(hits=depth, candidates=numbers, **more))
