"""What tests on a real Spark need: PySpark, and a Java that Spark runs on, found or installed; else skipped."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import packages
import pytest

from sdretrieval.cli.main import main
from sdretrieval.core.jvm import find_spark_java
from sdretrieval.demo import write_demo
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.learn.classify.saved_models import save_classifier
from sdretrieval.learn.classify.text_classifier import TextClassifier, train
from sdretrieval.learn.labelled import LabelledCorpus

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a Java that lives a minute
BRIEFLY = {
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.executor.extraJavaOptions": BRIEF,
    "spark.python.authenticate.socketTimeout": "300s",  # 15 s are soon over on a busy machine
}
# PySpark drops the sockets that jobs' results come through without closing them.
MARKS = [pytest.mark.java, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


def spark_for(module: ModuleType) -> Any:
    """PySpark, for a module of tests. Workers cannot import it: what it defines travels whole."""
    pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed (sdretrieval[spark])")
    java, reason = packages.java_for_spark()
    if java is None:
        pytest.skip(reason, allow_module_level=True)
    for travels in (module, sys.modules[__name__]):
        pyspark.cloudpickle.register_pickle_by_value(travels)
    return pyspark


class Corpus:
    """The demo's documents in two files beside one of no known format; one index of them, and its topics."""

    def __init__(self, folder: Path, docs: Path, names: tuple[str, str] = ("a.jsonl", "b.jsonl")) -> None:
        self.folder, self.docs, self.index, demo = folder, docs, folder / "one", folder / "demo"
        write_demo(demo, n_docs=200, n_topics=10, mean_words=60)
        self.lines = (demo / "docs.jsonl").read_text().splitlines(keepends=True)
        for name, lines in zip(names, (self.lines[:80], self.lines[80:]), strict=True):
            (docs / name).parent.mkdir(parents=True, exist_ok=True)
            (docs / name).write_text("".join(lines))
        (docs / "notes.xyz").write_text("not a document")
        assert command("index", "--input", docs, "--index", self.index, "--date-field", "date") == 0
        self.topics = ("--topics", demo / "topics.tsv", "--topic-times", demo / "topics.times.tsv")

    @property
    def whole(self) -> Snapshot:
        return open_snapshot(self.index)

    def run(self, output: Path, verb: str, index: object, *flags: object) -> bytes:
        """The run that a command writes."""
        assert command(*verb.split(), "--index", index, *self.topics, *flags, "--output", output) == 0
        return output.read_bytes()

    def classifier(self, file: Path) -> tuple[TextClassifier, LabelledCorpus]:
        """Tells the early half from the late one; saved."""
        whole = self.whole
        halves = tuple(("early",) if t < np.median(whole.times) else ("late",) for t in whole.times)
        counts, times = whole.by_doc.astype(float), np.asarray(whole.times)
        known = LabelledCorpus(list(whole.docids), counts, whole.vocabulary, halves, times, analyzer=whole.analyzer)
        classifier = train(known, "sd")
        save_classifier(classifier, file)
        return classifier, known


def command(*words: object) -> int:
    """`sdretrieval …` in this process: it finds the running Spark."""
    return main([str(word) for word in words])


def wait_for(happened: Callable[[], Any], seconds: float = 300.0) -> None:
    """For machines that do much else."""
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError("it did not happen in time")
        time.sleep(0.02)


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A real standalone cluster on this machine, a master and two workers: the master's address.

    The workers call themselves by two names of the one machine. To Spark they are two machines, and it starts the
    second copy of a slow task only on another machine than the first. Everything is stopped at the end.
    """
    import pyspark  # which may not be there

    daemons: list[subprocess.Popen] = []
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_spark_java().home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": BRIEF,
    }
    spark = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)

    def start(name: str, pattern: str, kind: str, *words: object) -> str:
        """What the program says of itself in its log."""
        log = folder / f"{name}.log"
        with log.open("wb") as out:
            daemon = subprocess.Popen(
                [spark / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *map(str, words)],
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        daemons.append(daemon)
        wait_for(lambda: daemon.poll() is not None or re.search(pattern, log.read_text(errors="replace")))
        found = re.search(pattern, log.read_text(errors="replace"))
        assert found, f"{name} does not say {pattern!r}:\n{log.read_text(errors='replace')[-2000:]}"
        return found[1]

    try:
        where = ("--host", "127.0.0.1", "--port", 0, "--webui-port", 0)
        url = start("master", r"Starting Spark master at (spark://\S+)", "master.Master", *where)
        for i, host in enumerate(("127.0.0.1", "localhost")):
            words = f"--host {host} --webui-port 0 --cores 2 --memory 2g --work-dir {folder}/work-{i}".split()
            start(f"worker-{i}", r"Successfully registered with master (\S+)", "worker.Worker", *words, url)
        yield url
    finally:
        for daemon in reversed(daemons):  # workers before their master, with the executors that they have started
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                    os.killpg(daemon.pid, number)
                    daemon.wait(60)
