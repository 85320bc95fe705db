"""How Spark is started: what its JVM is told, and what this process's environment keeps."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sdretrieval.core.errors import JavaError
from sdretrieval.plugins.spark import session


class Conf(dict):
    """As much of a SparkConf as is asked for, with what spark-defaults.conf says."""

    def __init__(self, loadDefaults: bool = True) -> None:
        super().__init__({"spark.speculation": "false"} if loadDefaults else {})
        self.setIfMissing = self.setdefault

    def setAppName(self, name: str) -> Conf:
        return self

    def setAll(self, pairs) -> Conf:
        self.update(pairs)
        return self


@pytest.fixture
def spark(monkeypatch) -> SimpleNamespace:
    """A Spark that only takes note."""
    for variable in list(os.environ):
        if variable.startswith(("SPARK_", "PYSPARK_")):
            monkeypatch.delenv(variable)
    monkeypatch.setenv("JAVA_HOME", "/own/java")

    def launch(conf: Conf) -> None:
        told.launched = dict(conf), dict(os.environ)

    def context(conf: Conf) -> SimpleNamespace:
        if told.error:
            raise RuntimeError(told.error)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # one of its own
        return SimpleNamespace(getConf=lambda: told.running or conf, stop=lambda: told.stopped.append(conf))

    told = SimpleNamespace(running=None, stopped=[], error="")
    fake = SimpleNamespace(_ensure_initialized=launch, getOrCreate=context)
    monkeypatch.setattr(session, "java_for_spark", lambda: ("/spark/java", "test"))
    monkeypatch.setattr(session, "import_pyspark", lambda: SimpleNamespace(SparkConf=Conf, SparkContext=fake))
    return told


def test_variables_for_java_do_not_stay_in_this_process(spark):
    """Lucene's Java may be looked for afterwards."""
    with session.spark_context("local[2]", settings={"spark.jars": "more.jar"}):
        assert os.environ["JAVA_HOME"] == "/own/java" and "PYSPARK_PYTHON" not in os.environ
    settings, environment = spark.launched
    assert settings["spark.jars"] == "more.jar" and environment["JAVA_HOME"] == "/spark/java"
    assert environment["PYSPARK_PYTHON"] == sys.executable
    assert (Path(environment["SPARK_CONF_DIR"]) / "log4j2.properties").is_file()
    assert len(spark.stopped) == 1


def test_what_the_user_set_is_kept(spark, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    monkeypatch.setenv("PYSPARK_PYTHON", "./env/bin/python")
    with session.spark_context("yarn", settings={"spark.executorEnv.OMP_NUM_THREADS": "3"}) as context:
        conf = context.getConf()
    assert "SPARK_CONF_DIR" not in spark.launched[1] and spark.launched[1]["PYSPARK_PYTHON"] == "./env/bin/python"
    assert conf["spark.speculation"] == "false", "by spark-defaults.conf"
    assert conf["spark.executorEnv.OMP_NUM_THREADS"] == "3" and "spark.driver.host" not in conf


def test_a_context_that_runs_already_is_left_running(spark):
    spark.running = Conf()
    with session.spark_context("local"):
        pass
    assert not spark.stopped


def test_an_interrupt_is_handled_as_before(spark):
    before = signal.getsignal(signal.SIGINT)
    with session.spark_context("local"):
        assert signal.getsignal(signal.SIGINT) is before is not signal.SIG_DFL


def test_a_start_that_fails_is_told_by_its_reason(spark):
    spark.error = "An error occurred while calling None.org.X.\n: java.lang.IllegalStateException: why\n\tat org.Y\n"
    wanted = r"master yarn, Java /spark/java\): java.lang.IllegalStateException: why\n"
    with pytest.raises(JavaError, match=wanted), session.spark_context("yarn"):
        pass
    assert os.environ["JAVA_HOME"] == "/own/java"
