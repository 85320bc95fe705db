"""What takes long is kept in .cache/results, so that a section that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from benchmarks.collections import ROOT
from sdretrieval.core.files import atomic_writer

KEPT = ROOT / ".cache" / "results"
BESIDE = "<!-- beside -->"  # in a section's text: what follows goes into a file beside docs/RESULTS.md


def kept(name: str, make: Callable[[], Any]) -> Any:
    """What ``make`` gives (anything that JSON can say), made once. Delete .cache/results after a change of code."""
    path = KEPT / f"{name}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        made = make()
        with atomic_writer(path) as out:
            out.write(json.dumps(made))
    return json.loads(path.read_text(encoding="utf-8"))
