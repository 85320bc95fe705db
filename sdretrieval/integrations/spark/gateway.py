"""Spark's JVM started at once: before PySpark is imported, and without the two programs that only work out its command.

PySpark starts a shell script, which starts a JVM that prints a command, which starts Spark's JVM: a third of a second,
after PySpark itself was imported for another. For Spark on this machine, with nothing set by the user, the command is
always the same. PySpark then connects as it does under spark-submit, to a JVM that is there. Where anything differs, or
this one ends early, PySpark starts it in its own way.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SPARK = "3.5."  # the versions that this is the command of
# What Spark's launcher tells every JVM (JavaModuleOptions of Spark 3.5); compared with it in tests.
OPENED = (
    "java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs",
    "sun.security.action", "sun.util.calendar",
)  # fmt: skip
MODULES = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
    "--add-opens=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Djdk.reflect.useDirectMethodHandle=false",
)
# Variables that change nothing about the command; any other of Spark's, or of Hadoop's, may.
HARMLESS = (
    "SPARK_JAVA_HOME", "SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_DIRS", "SPARK_USER",
    "SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE",  # which PySpark leaves where a context was made
)  # fmt: skip
_OTHERS = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")


def is_usual(settings: Mapping[str, str]) -> bool:
    """Whether nothing is set that the launcher would heed."""
    from importlib.metadata import PackageNotFoundError, version

    if settings or os.name != "posix":
        return False
    if any(name.startswith(_OTHERS) and name not in HARMLESS for name in os.environ):
        return False
    try:
        return version("pyspark").startswith(SPARK)
    except PackageNotFoundError:
        return False


def command(java: str, spark: Path, conf_folder: str, options: Sequence[str], early: Mapping[str, str]) -> list[str]:
    """What Spark's launcher would print for pyspark-shell with these options of the JVM and early settings."""
    submitted = [word for key, value in early.items() for word in ("--conf", f"{key}={value}")]
    return [
        str(Path(java) / "bin" / "java"), "-cp", f"{conf_folder.rstrip('/')}/:{spark / 'jars'}/*", "-Xmx1g",
        *options, *MODULES, "org.apache.spark.deploy.SparkSubmit", *submitted, "pyspark-shell",
    ]  # fmt: skip


class Gateway:
    """Spark's JVM on its way, and how PySpark reaches it."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sdretrieval-"))
        told = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._folder / "port"), "PYTHONHASHSEED": "0"}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, env={**os.environ, **environment, **told},
                process_group=0,  # Ctrl-C is for this process; Java ends when its input is closed
            )  # fmt: skip
        except BaseException:
            self._clear()
            raise

    def connected(self, pyspark: Any) -> Any:
        """PySpark's gateway to the JVM; None where it has ended."""
        found = self._folder / "port"
        while not found.is_file():  # it appears whole
            if self.process.poll() is not None:
                self._clear()
                return None
            time.sleep(0.01)
        told = found.read_bytes()
        self._clear()
        port, length = struct.unpack("!ii", told[:8])
        variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": told[8 : 8 + length].decode()}
        os.environ.update(variables)
        try:
            gateway = pyspark.java_gateway.launch_gateway()
        except BaseException:
            self.process.kill()
            raise
        finally:
            for name in variables:
                os.environ.pop(name, None)
        gateway.proc = self.process  # as where PySpark started it; and its input stays open
        return gateway

    def abandon(self) -> None:
        """End a JVM that nobody has connected to, and nobody will."""
        if self._folder.exists():
            self.end()

    def end(self) -> None:
        self.process.kill()
        self._clear()

    def _clear(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
