"""Topic tracking: follow stories through a dated stream, online (thesis chapter 6; docs/TRACKING.md).

Reading order: models.py, what a topic is and how it learns; background.py, general English that never sees the future;
tracker.py, the online loop; state.py and journal.py, stopping and going on; tdt.py, what errors cost; replay.py, whole
streams at once for experiments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_HOMES = {
    "Background": "background",
    "Forgetting": "forgetting",
    "StreamDocument": "documents",
    "Tracker": "tracker",
    "Trials": "tdt",
    "evaluate_trials": "tdt",
    "load_tracker": "state",
    "make_model": "models",
    "save_tracker": "state",
}
__all__ = [
    "Background", "Forgetting", "StreamDocument", "Tracker", "Trials", "evaluate_trials", "load_tracker", "make_model",
    "save_tracker",
]  # fmt: skip

if TYPE_CHECKING:
    from sdretrieval.tracking.background import Background
    from sdretrieval.tracking.documents import StreamDocument
    from sdretrieval.tracking.forgetting import Forgetting
    from sdretrieval.tracking.models import make_model
    from sdretrieval.tracking.state import load_tracker, save_tracker
    from sdretrieval.tracking.tdt import Trials, evaluate_trials
    from sdretrieval.tracking.tracker import Tracker


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sdretrieval.tracking' has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"sdretrieval.tracking.{_HOMES[name]}"), name)
    return value
