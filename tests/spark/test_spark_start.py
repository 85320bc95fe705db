"""How Spark is started: what its JVM is told, what this process's environment keeps, the archive of its classes."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from sdretrieval.errors import JavaError
from sdretrieval.integrations.spark import classes, daemon, gateway, session
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
    for variable in list(os.environ):
        if variable.startswith(("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")) or variable == classes.VARIABLE:
            monkeypatch.delenv(variable)
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
    _accumulatorServer = None

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
    launch = SimpleNamespace(
        context=lambda *more: start(None, *more), begin=lambda: None, end=lambda: None, stop=session._stop
    )
    monkeypatch.setattr(session, "_Launch", lambda *given: launch)
    pyspark = SimpleNamespace(SparkContext=SimpleNamespace(_active_spark_context=None))
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    monkeypatch.setattr(session, "check_pyspark", lambda: None)
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


def test_spark_is_stopped_once_and_java_though_it_may_have_gone(monkeypatch, java):
    launch, calls = session._Launch("local", {}, str(java), True), []

    def stop(context) -> None:
        calls.append("stop")
        raise ConnectionRefusedError

    monkeypatch.setattr(session, "_stop", stop)
    monkeypatch.setattr(session, "_end_java", lambda context: calls.append("java"))
    for _ in range(2):
        launch.stop(FakeContext())
    assert calls == ["stop", "java"]


def test_a_context_that_runs_already_is_left_running(slow):
    _, context, pyspark = slow
    pyspark.SparkContext._active_spark_context = context
    with session.spark_context() as found:
        assert found is context
    assert not context.stopped


# -- its JVM at once ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [{}, {"spark.ui.showConsoleProgress": "false"}])
def test_the_command_is_the_one_that_sparks_launcher_works_out(tmp_path, early):
    """Spark's own launcher, asked for pyspark-shell."""
    java, spark = needed_java(), Path(importlib.util.find_spec("pyspark").origin).parent
    options = ["-XX:+UseSerialGC", "-Dlog4j2.configurationFile=/a b/log4j2.properties"]
    words = [word for key, value in early.items() for word in ("--conf", f"{key}={value}")]
    told = subprocess.run(
        [f"{java}/bin/java", "-cp", f"{spark}/jars/*", "org.apache.spark.launcher.Main",
         "org.apache.spark.deploy.SparkSubmit", *words, "--driver-java-options", shlex.join(options), "pyspark-shell"],
        env={**os.environ, "SPARK_HOME": str(spark), "SPARK_CONF_DIR": str(tmp_path), "JAVA_HOME": java,
             "SPARK_SCALA_VERSION": "2.12"},  # as its shell script has it
        capture_output=True, text=True, check=True, timeout=300,
    ).stdout  # fmt: skip
    wanted = [word.strip("\n") for word in told.split("\0") if word.strip()]
    told_to_spark = {**early, "spark.driver.extraJavaOptions": shlex.join(options)}
    assert gateway.command(java, spark, str(tmp_path), options, told_to_spark) == wanted


def test_what_the_launcher_would_heed_is_left_to_it(monkeypatch):
    assert gateway.is_usual({})
    assert not gateway.is_usual({"spark.driver.memory": "2g"})
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert gateway.is_usual({})
    for variable in ("SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "HADOOP_CONF_DIR"):
        with monkeypatch.context() as patch:
            patch.setenv(variable, "x")
            assert not gateway.is_usual({})
    monkeypatch.setattr("importlib.metadata.version", lambda name: "4.0.1")
    assert not gateway.is_usual({})


@pytest.mark.parametrize(
    ("master", "variables", "begins"),
    [
        ("local[2]", {}, True), (None, {}, True), ("local-cluster[2,1,1024]", {}, False), ("yarn", {}, False),
        (None, {"SPARK_HOME": "/opt/spark"}, False), (None, {"PYSPARK_GATEWAY_PORT": "1"}, False),
        ("local[2]", {"SPARK_HOME": "/opt/spark"}, False), ("local[2]", {"PYSPARK_GATEWAY_PORT": "1"}, False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_program", [True, False])
def test_only_what_runs_on_this_machine_is_begun_early(java, monkeypatch, master, variables, begins, is_program):
    """The JVM before the fork, for what is imported before that takes a while; and it is told where to find it."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(session, "jvm_of_pyspark", lambda: None)
    begun = []
    monkeypatch.setattr(session, "Early", type("Early", (), {
        "is_possible": staticmethod(lambda: True), "address": "there", "fork": lambda self: begun.append("fork"),
    }))  # fmt: skip
    monkeypatch.setattr(session, "Gateway", lambda command, environment: begun.append(environment))
    session._Launch(master, {}, str(java), is_program).begin()
    assert len(begun) == (1 + is_program if begins else 0)
    if begins:
        assert begun[0]["JAVA_HOME"] == str(java) and begun[0]["OMP_NUM_THREADS"] == "1"
        assert begun[0].get("SDRETRIEVAL_SPARK_DAEMON") == ("there" if is_program else None)
        assert begun[1:] == ["fork"] * is_program


def test_a_jvm_that_ends_at_once_is_left_to_pyspark(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started = gateway.Gateway([sys.executable, "-c", ""], {})
    assert started.connected(None) is None
    with pytest.raises(OSError):
        gateway.Gateway([str(tmp_path / "no-java")], {})
    assert list(tmp_path.iterdir()) == []


def test_a_jvm_that_nobody_wants_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    started = gateway.Gateway([sys.executable, "-c", "import time; time.sleep(1000)"], {})
    started.abandon()
    assert started.process.wait(300) != 0
    assert list(tmp_path.iterdir()) == []


# -- the daemon of its workers at once ---------------------------------------------------------------------------


FORKED = """
import os, socket, sys, time
from pathlib import Path
from sdretrieval.integrations.spark.daemon import Early, _handed_over

assert Early.is_possible()
before = [open(os.devnull), os.pipe(), socket.socket()]
early = Early()
early.fork()
listed = Path(f"/proc/{early.pid}/fd")
end = time.monotonic() + 300
while len(list(listed.iterdir())) != 4:  # input, two outputs, and where it listens
    assert time.monotonic() < end, sorted(os.readlink(path) for path in listed.iterdir())
    time.sleep(0.01)
assert os.getpgid(early.pid) == early.pid != os.getpgid(0)
print(os.readlink(listed / "1"), os.readlink(listed / "2"))
while any(int(line.split()[1], 16) for line in open(f"/proc/{early.pid}/status") if line.startswith("SigBlk")):
    assert time.monotonic() < end
    time.sleep(0.01)
if sys.argv[1] == "dismiss":
    early.dismiss()
    print(os.waitpid(early.pid, 0)[1])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
@pytest.mark.parametrize("end", ["dismiss", "the driver ends"])
def test_a_daemon_that_nobody_needs_ends_and_holds_nothing_of_the_drivers(tmp_path, monkeypatch, end):
    """Whoever reads the driver's output would wait for it; and Spark's JVM, whose input says when it is to end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", FORKED, end], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["/dev/null /dev/null", *(["0"] if end == "dismiss" else [])]
    until = time.monotonic() + 300
    while list(tmp_path.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_where_a_fork_would_cut_something_in_half_there_is_none(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: None})
    monkeypatch.delitem(sys.modules, "jnius", raising=False)
    assert daemon.Early.is_possible()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "_current_frames", lambda: {1: None, 2: None})
        assert not daemon.Early.is_possible()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "darwin")
        assert not daemon.Early.is_possible()
    monkeypatch.setitem(sys.modules, "jnius", SimpleNamespace())
    assert not daemon.Early.is_possible()


LOUD = """
import os, sys
from sdretrieval.integrations.spark import daemon

read, write = os.pipe()
if os.fork() == 0:
    os.setpgid = lambda *given: None
    alive, _ = os.pipe()
    daemon._leave_the_driver(alive, keep=write)
    os.dup2(write, 1)
    os.dup2(write, 2)
    print("out")
    print("err", file=sys.stderr)
    os._exit(0)
os.close(write)
print(os.fdopen(read).read().split())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
def test_what_a_forked_worker_says_is_heard_though_it_ends_at_once():
    done = subprocess.run([sys.executable, "-c", LOUD], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "['out', 'err']\n", "")


def test_what_is_wrong_with_what_workers_import_is_left_to_them(tmp_path, monkeypatch, java):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(session, "jvm_of_pyspark", lambda: None)
    monkeypatch.setattr(session, "Gateway", lambda *given: None)
    monkeypatch.setattr(daemon.Early, "is_possible", staticmethod(lambda: True))

    def broken() -> None:
        raise ModuleNotFoundError("No module named 'py4j'")

    monkeypatch.setattr(daemon, "_import", broken)
    launch = session._Launch("local", {}, str(java), True)
    launch.begin()
    assert not list(tmp_path.glob("sdretrieval-*"))
    assert not daemon._handed_over(launch.child[daemon.VARIABLE])


def test_after_a_fork_that_failed_nobody_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    early = daemon.Early()

    def refused() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refused)
    with pytest.raises(OSError, match="no more processes"):
        early.fork()
    assert list(tmp_path.iterdir()) == []
    assert not daemon._handed_over(early.address)


def test_without_one_the_daemon_that_spark_starts_serves(tmp_path):
    assert not daemon._handed_over(None)
    assert not daemon._handed_over(str(tmp_path / "nobody"))


@pytest.mark.parametrize("rights", [0o700, 0o777])
def test_nothing_is_handed_over_to_who_does_not_answer_or_may_be_anybody(tmp_path, monkeypatch, rights):
    """It would get the environment, with its secrets."""
    monkeypatch.setattr(daemon, "PATIENCE", 0.2)
    folder = tmp_path / "own"
    folder.mkdir()
    folder.chmod(rights)
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(folder)  # for such an address may not be long
        listener.bind("daemon")
        listener.listen(1)
        listener.settimeout(0.1)
        assert not daemon._handed_over("./daemon")
        if rights == 0o777:
            with pytest.raises(TimeoutError):
                listener.accept()
        else:
            listener.accept()


STARTED = """
import os, sys
from sdretrieval.integrations.spark.session import Starting

def seen(number):
    from threadpoolctl import threadpool_info
    import numpy
    daemon = open(f"/proc/{os.getppid()}/cmdline").read().split("\\0")
    threads = max(library["num_threads"] for library in threadpool_info())
    return number, "-m" not in daemon, hash("a") % 1000, os.environ["OMP_NUM_THREADS"], threads, os.getppid()

settings = dict(word.split("=") for word in sys.argv[2:])
starting = Starting("local[2]", settings=settings, is_program=sys.argv[1] == "yes")
context = starting.context()
for _ in range(2):
    print(*context.parallelize(range(4), 4).map(seen).collect())
java = context._gateway.proc
starting.stop()
print(os.environ.get("PYSPARK_GATEWAY_PORT"), hash("a") % 1000, java.pid)
if sys.argv[1] == "yes":
    java.wait(300)  # before this process ends
else:
    assert java.poll() is None  # left for another context
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc, and forks on Linux alone")
@pytest.mark.parametrize(
    ("is_program", "settings", "early"),
    [
        ("yes", [], True), ("yes", ["spark.app.id=x"], True), ("yes", ["spark.python.worker.reuse=false"], False),
        ("no", [], False),
    ],
    ids=["nothing set", "a setting", "a setting of workers", "not a program"],
)  # fmt: skip
def test_spark_that_was_begun_early_works_and_leaves_nothing(tmp_path, monkeypatch, is_program, settings, early):
    needed_java()
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", STARTED, is_program, *settings], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, second, last = done.stdout.splitlines()
    port, seed, java = last.split()
    if not early:  # the driver's own, else, as of all that is forked from it
        seed = subprocess.run(
            [sys.executable, "-c", "print(hash('a') % 1000, end='')"], env={**os.environ, "PYTHONHASHSEED": "0"},
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    for line in (first, second):
        tasks = re.findall(r"\((\d), (True|False), (\d+), '(\d+)', (\d+), (\d+)\)", line)
        assert [task[:5] for task in tasks] == [(str(number), str(early), seed, "1", "1") for number in range(4)]
    assert port == "None"
    processes = {int(java), *(int(pid) for pid in re.findall(r", (\d+)\)", first))}
    end = time.monotonic() + 300
    while any(Path(f"/proc/{pid}").exists() for pid in processes):
        assert time.monotonic() < end, processes
        time.sleep(0.05)
    assert not list(tmp_path.glob("sdretrieval-*"))


def needed_java() -> str:
    from needed import _java

    found = _java()
    if found is None:
        pytest.skip("no Java that Spark runs on")
    return str(found.home)
