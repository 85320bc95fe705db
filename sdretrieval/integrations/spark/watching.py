"""Signs of life on a terminal while Spark works: starting it takes seconds, a batch or a stage perhaps minutes."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from sdretrieval.progress import DELAY_SECONDS, bar

EVERY = 0.5  # seconds


@contextlib.contextmanager
def alive(shown: Any, look: Callable[[], None] | None = None) -> Iterator[None]:
    """Draw a bar anew, time and all, while the block lasts: not only when something is counted.

    ``look`` brings it up to date first. Where no one watches nothing is drawn, so that logs stay short.
    """
    if shown.disable or not sys.stderr.isatty():
        yield
        return
    stopped = threading.Event()

    def draw() -> None:
        if stopped.wait(DELAY_SECONDS):
            return
        shown.delay = 0  # it is on the screen from now on, and to be wiped away at the end
        while True:
            if look is not None:
                with contextlib.suppress(Exception):  # Spark, asked while it stops: the work itself will say so
                    look()
            shown.refresh()
            if stopped.wait(EVERY):
                return

    thread = threading.Thread(target=draw, name="alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


@contextlib.contextmanager
def waiting(label: str) -> Iterator[None]:
    """For work that counts nothing: what is done, and since when."""
    with bar(label=label) as shown:
        shown.bar_format = "{desc} … {elapsed}"
        with alive(shown):
            yield


@contextlib.contextmanager
def watching(context: Any, label: str) -> Iterator[None]:
    """For work that is one call: the tasks of the stage that runs, stage after stage."""
    with bar(label=label, unit="task") as shown:
        last = -1

        def look() -> None:
            nonlocal last
            stages = running(context)
            if not stages:
                return
            newest = max(stages, key=lambda stage: stage.stageId)
            if newest.stageId != last:
                last = newest.stageId
                shown.reset(total=newest.numTasks)
            shown.n = newest.numCompletedTasks

        with alive(shown, look):
            yield


def running(context: Any) -> list[Any]:
    """What Spark tells of the stages at work."""
    tracker = context.statusTracker()
    told = (tracker.getStageInfo(number) for number in tracker.getActiveStageIds())
    return [stage for stage in told if stage is not None]


def tasks(context: Any) -> str:
    """``5/8 tasks``, of all stages at work."""
    stages = running(context)
    total = sum(stage.numTasks for stage in stages)
    return f"{sum(stage.numCompletedTasks for stage in stages)}/{total} tasks" if total else ""
