"""What takes long is kept in .cache/results, so that a section that was stopped goes on where it was."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.collections import ROOT
from sdretrieval.core.files import atomic_writer

KEPT = ROOT / ".cache" / "results"
BESIDE = "<!-- beside -->"  # in a section's text: what follows goes into a file beside docs/RESULTS.md


class Spent:
    """Processor seconds since it was begun, those included that things taken from the cache had cost when made."""

    _of_cached = 0.0

    def __init__(self) -> None:
        self._began = time.process_time() + Spent._of_cached

    @property
    def seconds(self) -> float:
        return time.process_time() + Spent._of_cached - self._began

    @classmethod
    def add_cached(cls, seconds: float) -> None:
        cls._of_cached += seconds


def kept(name: str, make: Callable[[], Any]) -> Any:
    """What ``make`` gives (anything that JSON can say), made once. Delete .cache/results after a change of code."""
    path = KEPT / f"{name}.json"
    if path.is_file():
        found = json.loads(path.read_text(encoding="utf-8"))
        Spent.add_cached(found["processor seconds"])
        return found["made"]
    path.parent.mkdir(parents=True, exist_ok=True)
    spent = Spent()
    text = json.dumps({"made": make(), "processor seconds": spent.seconds})
    with atomic_writer(path) as out:
        out.write(text)
    print(f"{name}: {spent.seconds:.0f} s", file=sys.stderr, flush=True)
    return json.loads(text)["made"]
