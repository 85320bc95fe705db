"""Tracking: follow stories through a dated stream, online (thesis chapter 6; docs/TRACKING.md).

Reading order: story.py, what is learnt of a story; story_models.py, the models; stream_background.py, general English
that never sees the future; tracker.py, the online loop; streams.py, where documents come from; decisions.py, what is
written; state.py, stopping and going on; tdt.py, what errors cost; replay.py, whole streams at once for experiments.
"""

from sdretrieval.learn.tracking.state import load_tracker, save_tracker
from sdretrieval.learn.tracking.story import Forgetting
from sdretrieval.learn.tracking.story_models import make_model
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument
from sdretrieval.learn.tracking.tdt import Trials, evaluate_trials
from sdretrieval.learn.tracking.tracker import Tracker

__all__ = [
    "Background",
    "Forgetting",
    "StreamDocument",
    "Tracker",
    "Trials",
    "evaluate_trials",
    "load_tracker",
    "make_model",
    "save_tracker",
]
