"""What all wrappers that know about time share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.wrapper import Wrapper

ORDERED = 1000  # first documents that the automatic prior orders anew

# What a manifest says about time where no wrapper says otherwise.
NO_TIME: dict[str, Any] = {
    "prior": None,
    "weight": None,
    "evidence": "score",
    "time_docs": 50,
    "background": None,
    "as_of": False,
    "inclusive": False,
    "feedback": None,
}


@dataclass(frozen=True, kw_only=True)
class TimeWrapper(Wrapper):
    """Base of the wrappers that know about time."""

    ranker: Ranker

    def time_settings(self) -> dict[str, Any]:
        """What the wrapper adds to the manifest's record about time."""
        raise NotImplementedError

    def settings(self) -> dict[str, Any]:
        inner = self.ranker.settings()
        return {**inner, "time": {**NO_TIME, **inner.get("time", {}), **self.time_settings()}}


def described(value: Any) -> dict[str, Any]:
    return {"kind": type(value).__name__.lower(), **{f.name: getattr(value, f.name) for f in fields(value)}}
