"""Signs of life: what is drawn on a terminal while Spark starts, builds and ranks; and that logs stay clean."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest
from sharding import Sharding, ranker

from sdretrieval import progress
from sdretrieval.integrations.spark import search, watching
from sdretrieval.integrations.spark.ranking import ShardedEngine
from sdretrieval.integrations.spark.runners import Here
from sdretrieval.integrations.spark.shards import InMemory
from sdretrieval.records import Topic


class Screen(io.StringIO):
    is_terminal = True

    def isatty(self) -> bool:
        return self.is_terminal

    def shows(self, text: str) -> None:
        """Wait until it does; the drawing is another thread's."""
        end = time.monotonic() + 300
        while text not in self.getvalue():
            assert time.monotonic() < end, f"{text!r} is not shown: {self.getvalue()!r}"
            time.sleep(0.01)

    @property
    def is_wiped(self) -> bool:
        """Whether the last line is blank, and the next text overwrites it."""
        return self.getvalue().endswith("\r") and self.getvalue().split("\r")[-2].strip() == ""


@pytest.fixture
def screen(monkeypatch) -> Screen:
    monkeypatch.setattr(watching, "EVERY", 0.01)
    for module in (watching, progress):  # two seconds in earnest
        monkeypatch.setattr(module, "DELAY_SECONDS", 0.05)
    return Screen()


class Tracker:
    """What a SparkContext's tracker tells; stages as (tasks, done)."""

    def __init__(self) -> None:
        self.stages: dict[int, tuple[int, int]] = {}

    def statusTracker(self) -> Tracker:
        return self

    def getActiveStageIds(self) -> list[int]:
        return list(self.stages)

    def getStageInfo(self, number: int) -> SimpleNamespace | None:
        if number not in self.stages:
            return None
        total, done = self.stages[number]
        return SimpleNamespace(stageId=number, numTasks=total, numCompletedTasks=done)


def test_waiting_shows_that_it_does(screen):
    with redirect_stderr(screen), watching.waiting("starting Spark"):
        screen.shows("starting Spark … 0")  # and the minutes and seconds since
    assert screen.is_wiped


def test_the_tasks_of_the_stage_at_work(screen):
    spark = Tracker()
    with redirect_stderr(screen), watching.watching(spark, "building"):
        screen.shows("building")
        spark.stages = {3: (8, 2)}
        screen.shows("2/8")
        spark.stages = {4: (5, 4)}
        screen.shows("4/5")
        spark.stages = {}
    assert screen.is_wiped


def test_a_spark_that_no_longer_answers_disturbs_nothing(screen):
    with redirect_stderr(screen), watching.watching(SimpleNamespace(), "building"):
        screen.shows("building")


def test_short_work_and_logs_see_nothing(screen, monkeypatch):
    monkeypatch.setattr(watching, "DELAY_SECONDS", 100.0)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 100.0)
    with redirect_stderr(screen), watching.waiting("starting Spark"):
        pass
    monkeypatch.setattr(watching, "DELAY_SECONDS", 0.0)
    screen.is_terminal = False
    with redirect_stderr(screen), watching.watching(Tracker(), "building"), watching.waiting("starting Spark"):
        time.sleep(0.1)
    assert screen.getvalue() == ""


def test_ranking_shows_itself_before_the_first_batch_is_through(screen):
    class Analysed(InMemory):
        def analyze(self, text: str) -> list[str]:
            return text.split()

    sharding = Sharding(2)
    collection = Analysed(sharding.shards(2))
    engine = ShardedEngine(collection, Here(collection))
    engine.runner.context = spark = Tracker()
    spark.stages = {1: (8, 3), 2: (8, 4)}
    rank: Callable = engine.rank

    def slow(*asked, **options):
        screen.shows("7/16 tasks")
        return rank(*asked, **options)

    engine.rank = slow  # type: ignore[method-assign]
    topics = [Topic(str(i), " ".join(words)) for i, words in enumerate(sharding.texts())]
    with redirect_stderr(screen):
        run = search.search(engine, topics, ranker("bm25"), hits=5)
    assert len(run) == 5 and "ranking:   0%" in screen.getvalue() and screen.is_wiped
