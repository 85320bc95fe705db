"""Progress: a bar at a terminal, a line now and then in a log; what comes before the first item is not counted."""

from __future__ import annotations

import io
import sys

import pytest

from sdretrieval.core import progress as module
from sdretrieval.core.progress import progress


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """Time that passes as told."""
    now = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("tqdm.std.tqdm.monitor_interval", 0)  # no thread beside it
    return now


def work(clock: list[float], *seconds: float):
    for i, pause in enumerate(seconds):
        clock[0] += pause
        yield i


def test_a_log_gets_lines_now_and_then(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(False))
    assert list(progress(work(clock, *[1.0] * 100), total=100, label="ranking", unit="topic")) == list(range(100))
    written = sys.stderr.getvalue()
    assert "\r" not in written
    lines = written.splitlines()
    assert 3 <= len(lines) <= 4
    assert all(line.startswith("ranking: ") and "/100 [" in line for line in lines)


def test_a_terminal_gets_a_bar(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(True))
    list(progress(work(clock, *[1.0] * 20), total=20, label="ranking"))
    assert sys.stderr.getvalue().count("\r") > 10


def test_compiling_is_not_taken_for_a_slow_topic(clock, monkeypatch):
    """15 s before the first of 225 topics, a second for each further one: minutes are left, not an hour."""
    monkeypatch.setattr(sys, "stderr", Stream(False))
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 1.0)
    list(progress(work(clock, 15.0, *[1.0] * 224), total=225, label="ranking", unit="topic"))
    first = sys.stderr.getvalue().splitlines()[0]
    assert "1.00s/topic" in first or "1.00topic/s" in first
    assert "<03:4" in first


def test_short_work_and_no_work_say_nothing(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Stream(False))
    assert list(progress([], label="ranking")) == []
    assert list(progress(work(clock, 30.0, 0.5, 0.5), total=3)) == [0, 1, 2]
    assert sys.stderr.getvalue() == ""
