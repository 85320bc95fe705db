"""A real standalone cluster on this machine: a master and two workers, processes of their own, from PySpark's wheel.

The workers call themselves by two names of the one machine. To Spark they are two machines, and it starts the second
copy of a slow task only on another machine than the first: on ``local-cluster``, whose workers are all one host, never.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from sdretrieval.lucene.jvm import find_spark_java

HOSTS = ("127.0.0.1", "localhost")
PATIENCE = 300.0  # seconds, for a machine that does much else
_TAG = "SDRETRIEVAL_TEST_CLUSTER"  # in the environment of every process of the cluster, executors and Python included


@contextlib.contextmanager
def standalone(folder: Path, *, cores: int = 2) -> Iterator[str]:
    """The master's address; everything is stopped at the end, whatever happens in between."""
    tag = uuid.uuid4().hex
    daemons: list[subprocess.Popen] = []

    def start(name: str, *words: object) -> Path:
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            daemon = subprocess.Popen(
                [spark_class(), *map(str, words)], env=_environment(tag), cwd=folder, stdin=subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        daemons.append(daemon)
        return log

    try:
        deploy = "org.apache.spark.deploy"
        log = start("master", f"{deploy}.master.Master", "--host", HOSTS[0], "--port", 0, "--webui-port", 0)
        url = _told(log, r"Starting Spark master at (spark://\S+)", daemons)
        workers = [
            start(
                f"worker-{i}", f"{deploy}.worker.Worker", "--host", host, "--webui-port", 0, "--cores", cores,
                "--memory", "2g", "--work-dir", folder / f"work-{i}", url,
            )
            for i, host in enumerate(HOSTS)
        ]  # fmt: skip
        for log in workers:
            _told(log, r"Successfully registered with master (\S+)", daemons)
        yield url
    finally:
        _stop(daemons, tag)


def spark_class() -> str:
    """What starts Spark's own programs; the wheel has it, though not sbin/start-master.sh."""
    import pyspark

    return str(Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "bin" / "spark-class")


def _environment(tag: str) -> dict[str, str]:
    return {
        **os.environ, "JAVA_HOME": str(find_spark_java().home), _TAG: tag, "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "SPARK_NO_DAEMONIZE": "1",
    }  # fmt: skip


def _told(log: Path, pattern: str, daemons: list[subprocess.Popen]) -> str:
    """What a program says of itself in its log."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and daemons[-1].poll() is None:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"{log.name} does not say {pattern!r}:\n{log.read_text(errors='replace')[-2000:]}")


def _stop(daemons: list[subprocess.Popen], tag: str) -> None:
    """Asked first, workers before their master; then killed, with whatever they have started."""
    for daemon in reversed(daemons):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, signal.SIGTERM)
    for daemon in reversed(daemons):
        try:
            daemon.wait(60)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
    end = time.monotonic() + PATIENCE
    while _processes(tag) and time.monotonic() < end:  # Python's workers go when their executor is gone
        time.sleep(0.1)
    left = _processes(tag)
    for number in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
    assert not left, "executors and their workers end with the cluster"


def _processes(tag: str) -> list[int]:
    """Those that carry the cluster's mark; where there is no /proc, none are seen."""
    mark, found = f"{_TAG}={tag}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
