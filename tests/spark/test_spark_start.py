"""How Spark is started: what its JVM is told, what this process's environment keeps, the archive of its classes."""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from sdretrieval.errors import JavaError
from sdretrieval.integrations.spark import classes, session
from sdretrieval.integrations.spark.classes import archive_options


@pytest.fixture
def java(tmp_path: Path) -> Path:
    home = tmp_path / "java"
    home.mkdir()
    (home / "release").write_text('JAVA_VERSION="17.0.1"')
    return home


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "spark.jar").write_bytes(b"x")
    return folder


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_PYTHON", classes.VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# -- the archive of classes --------------------------------------------------------------------------------------


def made(options: list[str]) -> Path:
    return Path(options[0].removeprefix("-XX:ArchiveClassesAtExit="))


def test_an_archive_is_made_then_used(java, jars, tmp_path):
    folder = tmp_path / "archives"
    first = archive_options(java, jars, folder)
    assert first[0].startswith("-XX:ArchiveClassesAtExit=")
    made(first).write_bytes(b"archive")
    assert archive_options(java, jars, folder) == []  # it may still be being written
    old = time.time() - 2 * classes.WHOLE_AFTER
    os.utime(made(first), (old, old))
    then = archive_options(java, jars, folder)
    (archive,) = folder.glob("*.jsa")
    assert then[:2] == [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
    assert archive.read_bytes() == b"archive"
    assert list(folder.glob("*.new")) == []
    for name, age in (("long-unused.jsa", 2 * classes.UNUSED_AFTER), ("another.jsa", 60)):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    archive_options(java, jars, folder)
    assert {path.name for path in folder.glob("*.jsa")} == {archive.name, "another.jsa"}


def test_another_java_or_another_jar_is_another_archive(java, jars, tmp_path):
    folder = tmp_path / "archives"
    names = {made(archive_options(java, jars, folder)).name.split(".")[0]}
    (jars / "more.jar").write_bytes(b"y")
    names.add(made(archive_options(java, jars, folder)).name.split(".")[0])
    (java / "release").write_text('JAVA_VERSION="21"')
    names.add(made(archive_options(java, jars, folder)).name.split(".")[0])
    assert len(names) == 3


def test_it_works_without(java, jars, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    assert archive_options(java, jars, tmp_path / "file") == []
    assert archive_options(tmp_path / "no-java", jars, tmp_path / "archives") == []
    monkeypatch.setenv(classes.VARIABLE, "off")
    assert archive_options(java, jars, tmp_path / "archives") == []


# -- what the launcher is told -----------------------------------------------------------------------------------


def options_of(launch: session._Launch) -> str:
    words = shlex.split(launch.shared["PYSPARK_SUBMIT_ARGS"])
    return words[words.index("--driver-java-options") + 1]


@pytest.mark.parametrize("master", [None, "local[2]", "local"])
def test_one_machine_has_an_archive(java, master):
    launch = session._Launch(master, {}, str(java))
    assert "-XX:ArchiveClassesAtExit" in options_of(launch)
    assert list(Path(launch.child["SPARK_CONF_DIR"]).iterdir()) == []
    assert "log4j2.configurationFile" in options_of(launch)


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "spark://head:7077", "yarn"])
def test_clusters_have_none(java, master):
    launch = session._Launch(master, {}, str(java))
    assert "Archive" not in options_of(launch)
    assert (Path(launch.child["SPARK_CONF_DIR"]) / "log4j2.properties").is_file()


def test_what_the_user_set_is_kept(java, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    launch = session._Launch("local", {"spark.driver.memory": "3g"}, str(java))
    assert "SPARK_CONF_DIR" not in launch.child and "OMP_NUM_THREADS" not in launch.child
    assert "Archive" not in options_of(launch)
    assert shlex.split(launch.shared["PYSPARK_SUBMIT_ARGS"])[:2] == ["--driver-memory", "3g"]


def test_variables_for_java_do_not_reach_this_process(java, monkeypatch):
    """Lucene's Java may be looked for while Spark's starts."""
    seen = {}

    def launched(conf, popen_kwargs):
        popen_kwargs["env"] = dict(os.environ)
        seen.update(child=popen_kwargs["env"], own=os.environ.get("JAVA_HOME"), settings=dict(conf.getAll()))
        raise RuntimeError("no further")

    monkeypatch.setenv("JAVA_HOME", "/own/java")
    pyspark = SimpleNamespace(
        SparkContext=SimpleNamespace(_gateway=None), java_gateway=SimpleNamespace(launch_gateway=launched),
        SparkConf=lambda loadDefaults: _Conf(),
    )  # fmt: skip
    launch = session._Launch("local[2]", {"spark.jars": "more.jar"}, str(java))
    with pytest.raises(JavaError, match="no further"):
        launch.context(pyspark, "test")
    assert seen["child"]["JAVA_HOME"] == str(java)
    assert seen["child"]["PYSPARK_PYTHON"] == sys.executable
    assert seen["own"] == "/own/java"
    assert seen["settings"]["spark.jars"] == "more.jar"
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_an_error_in_java_is_told_by_its_exception():
    told = "An error occurred while calling None.org.X.\n: java.lang.IllegalStateException: why\n\tat org.Y\n"
    assert session._reason(RuntimeError(told)) == "java.lang.IllegalStateException: why"
    assert session._reason(RuntimeError("short\nlong")) == "short"
    assert session._reason(RuntimeError()) == "RuntimeError()"


class _Conf:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def getAll(self):
        return list(self.values.items())


# -- in the background -------------------------------------------------------------------------------------------


class FakeContext:
    stopped = False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def slow(monkeypatch):
    """A start that waits to be let go on."""
    go, context = threading.Event(), FakeContext()

    def start(self, pyspark, name):
        go.wait(30)
        return context

    monkeypatch.setattr(session, "java_for_spark", lambda: ("/java", "test"))
    monkeypatch.setattr(session, "_Launch", lambda *given: SimpleNamespace(context=lambda *more: start(None, *more)))
    pyspark = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=None))
    monkeypatch.setattr(session, "import_pyspark", lambda: pyspark)
    return go, context, pyspark


def test_it_starts_in_the_background_and_is_stopped(slow):
    go, context, _ = slow
    spark = session.Starting("local")
    go.set()
    assert spark.context() is context
    spark.release()
    spark.stop()
    assert context.stopped


def test_no_one_waits_for_a_start_that_is_not_wanted_any_more(slow):
    go, context, _ = slow
    spark = session.Starting("local")
    spark.stop()  # at once: the start has not been let go on
    assert not context.stopped
    go.set()
    spark._starting.join(30)
    assert context.stopped


def test_a_context_that_runs_already_is_left_running(slow):
    _, context, pyspark = slow
    pyspark.SparkContext._active_spark_context = context
    with session.spark_context() as found:
        assert found is context
    assert not context.stopped
