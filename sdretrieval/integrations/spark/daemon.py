"""The process that Spark forks its Python workers from, with what they need imported once instead of in each.

Named by the setting ``spark.python.daemon.module``; started by Spark as ``python -m`` this module, when the first task
is there. Where Spark runs on this machine alone the driver has started one already (:class:`Early`), which
imports while Spark's Java starts. The one that Spark starts then hands over to it: its input and output, by which Spark
knows it, and its environment.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

VARIABLE = "SDRETRIEVAL_SPARK_DAEMON"  # where the early one listens: a socket in a folder of the user's own
MODULE = "sdretrieval.integrations.spark.daemon"
PATIENCE = 30.0  # seconds, of either with the other
_LENGTH = 8  # bytes that tell how long the message is


def main() -> None:
    if sys.argv[1:2] == ["--early"]:
        _wait(Path(sys.argv[2]))
    elif _handed_over(os.environ.get(VARIABLE)):
        os._exit(0)  # its files are the other's
    else:
        _without_archives()
        _serve(_prepared())


# -- an early one ------------------------------------------------------------------------------------------------


class Early:
    """A daemon that imports what workers need and waits for Spark's to hand over. Raises OSError.

    ``environment``: with what Spark will tell its own, as far as an interpreter reads it when it starts.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        import subprocess
        import tempfile

        self._folder = Path(tempfile.mkdtemp(prefix="sdretrieval-"))  # nobody else may look into it
        self.address = str(self._folder / "daemon")
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, "--early", self.address], stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment},
                process_group=0,
            )  # fmt: skip
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    @staticmethod
    def is_possible() -> bool:
        return hasattr(socket, "send_fds")

    def dismiss(self) -> None:
        """Let it end if nobody has handed over; else it has another input, and ends with Spark."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _wait(address: Path) -> None:
    """Import, then take over from the daemon that Spark starts."""
    import select

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    try:
        listener.listen(1)
        trial = address.with_name("nothing")
        daemon = _prepared(trial)
        shutil.rmtree(trial, ignore_errors=True)
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if listener not in ready:  # the driver has ended, or needs no workers
            return
        connection, _ = listener.accept()
    finally:
        listener.close()
        with suppress(OSError):
            address.unlink()
        with suppress(OSError):
            address.parent.rmdir()
    connection.settimeout(PATIENCE)
    begin, files, _, _ = socket.recv_fds(connection, _LENGTH, 3)
    told = json.loads(_received(connection, int.from_bytes(begin, "big")))
    connection.sendall(b"!")
    if connection.recv(1) != b"!":  # it has given up waiting
        return
    connection.settimeout(None)  # it stays open as long as this process, or a worker, lives
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.path[:] = told["path"]
    _serve(daemon)


def _handed_over(address: str | None) -> bool:
    """Whether an early daemon serves Spark in this one's place. It has done so when this returns."""
    if not address or not _is_own(Path(address).parent):
        return False
    _without_archives()
    told = json.dumps({"environment": dict(os.environ), "path": sys.path}).encode()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(address)
            socket.send_fds(connection, [len(told).to_bytes(_LENGTH, "big")], [0, 1, 2])
            connection.sendall(told)
            if connection.recv(1) != b"!":
                return False
            connection.sendall(b"!")
            connection.settimeout(None)
            for number in (0, 1):  # Spark is to hear of the other's end
                os.close(number)
            with suppress(OSError):
                connection.recv(1)
            return True
    except OSError:  # it has gone, or serves already, or is stuck
        return False


def _is_own(folder: Path) -> bool:
    """Whether nobody else can have put anything there: the environment, with its secrets, is sent to who listens."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _received(connection: socket.socket, length: int) -> bytes:
    parts = []
    while length > 0 and (part := connection.recv(min(length, 1 << 16))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


# -- every one ---------------------------------------------------------------------------------------------------


def _without_archives() -> None:
    """Spark puts its PySpark, an archive of sources, before the installed one. Where that brought the archive along
    they are the same, and a module of the archive would be compiled anew each time: most of a second."""
    import importlib.util

    archives = [path for path in sys.path if path.endswith("pyspark.zip")]
    sys.path[:] = [path for path in sys.path if path not in archives]
    installed = importlib.util.find_spec("pyspark")
    if not all(
        installed is not None and installed.origin is not None and Path(installed.origin).parent in Path(path).parents
        for path in archives
    ):
        sys.path[1:1] = archives
        importlib.invalidate_caches()


def _prepared(folder: Path | None = None) -> Any:
    """PySpark's daemon, with what workers need; with a new ``folder`` to try them in, their compiled loops too."""
    import gc
    import zipimport

    gc.disable()  # nothing of what is imported is garbage, and looking takes an eighth of the time
    from pyspark import daemon

    with suppress(ImportError):  # a worker's own import will say better what is missing
        from sdretrieval.integrations.spark import requests, runners  # noqa: F401

        if folder is not None:
            requests.load_loops(folder)
    # Before every task a worker has all importers look again at what there is, and those of zip archives read the whole
    # directory of PySpark's, thirteen times over: a fifth of a second. The archives do not change.
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    # A worker collects garbage after every task; what was imported here need not be looked through each time.
    gc.collect()
    gc.freeze()
    gc.enable()
    return daemon


def _serve(daemon: Any) -> None:
    # Java sends a task in two small pieces, and holds the second back until the first is acknowledged; which Linux does
    # after 40 ms, where nothing goes the other way. So acknowledge at once: most tasks do not take as long as that.
    work = daemon.worker

    def worker(sock: socket.socket, authenticated: bool) -> int:
        if hasattr(socket, "TCP_QUICKACK"):  # lasts for a while only: hence before each task
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return work(sock, authenticated)

    daemon.worker = worker
    daemon.manager()


if __name__ == "__main__":
    main()
