"""The process that Spark forks its Python workers from, with what they need imported once instead of in each.

Named by the setting ``spark.python.daemon.module``; started by Spark as ``python -m`` this module, when the first task
is there. A command that runs Spark on this machine alone has forked one from itself already (:class:`Early`), which
need not import anything, and loads the compiled loops while Spark's Java starts. The one that Spark starts then hands
over to it: its input and output, by which Spark knows it, and its environment.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

VARIABLE = "SDRETRIEVAL_SPARK_DAEMON"  # where the early one listens: a socket in a folder of the user's own
# Threads of numerical libraries, where the user says how many.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
PATIENCE = 30.0  # seconds, of either with the other
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_LENGTH = 8  # bytes that tell how long the message is


def main() -> None:
    _without_archives()
    if _handed_over(os.environ.get(VARIABLE)):
        os._exit(0)  # its files are the other's
    _import()
    _ready()
    _serve()


# -- an early one ------------------------------------------------------------------------------------------------


class Early:
    """A daemon forked from the driver, which has imported what workers need; it waits for Spark's to hand over.

    Two steps, for Spark's JVM, whose environment tells where it listens, starts between them. Raises OSError.
    """

    def __init__(self) -> None:
        import tempfile

        self._listener, self._alive = socket.socket(socket.AF_UNIX), -1
        self._folder = Path(tempfile.mkdtemp(prefix="sdretrieval-"))  # nobody else may look into it
        self.address = str(self._folder / "daemon")
        self.pid: int | None = None
        try:
            self._listener.bind(self.address)
            self._listener.listen(1)
        except BaseException:
            self._clear()
            raise

    @staticmethod
    def is_possible() -> bool:
        """Whether nothing runs here that a fork would cut in half: no other thread of Python's, no Java.

        Threads of numerical libraries are theirs to care for, which they do on Linux.
        """
        has_java = "jnius" in sys.modules
        return sys.platform == "linux" and len(sys._current_frames()) == 1 and not has_java

    def fork(self) -> None:
        """Raises whatever is wrong with what workers import."""
        try:
            _import()
            read, self._alive = os.pipe()  # at its end the child knows that this process has ended
            # A signal in the child, before it is one that never returns, would have it go on as a second driver.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # of threads, see is_possible
                    self.pid = os.fork()
                if self.pid == 0:
                    _never_returning(lambda: self._child(read, before))
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(read)
            self._listener.close()
        except BaseException:  # then nobody may be left waiting for an answer
            self.dismiss()
            raise

    def _child(self, alive: int, signals: set[signal.Signals | int]) -> None:
        _leave_the_driver(alive, keep=self._listener.fileno())
        signal.pthread_sigmask(signal.SIG_SETMASK, signals)
        _wait(self._listener, self._folder)

    def dismiss(self) -> None:
        """Let it end if nobody has handed over; else it has another input, and ends with Spark."""
        if self._alive >= 0:
            os.close(self._alive)
            self._alive = -1
        self._clear()

    def _clear(self) -> None:
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _never_returning(work: Callable[[], None]) -> NoReturn:
    """A forked process ends here: what the driver has still to do, and to clear up, is not its business."""
    code = 1
    try:
        work()
        code = 0
    except SystemExit as told:
        code = told.code if isinstance(told.code, int) else 1
    finally:
        os._exit(code)


def _leave_the_driver(alive: int, keep: int) -> None:
    """Be a process of one's own: no signals of the driver's, no files, above all not the input of Spark's JVM, and
    no threads in numerical libraries, for a task is one core's work."""
    os.setpgid(0, 0)
    for caught in _SIGNALS:
        signal.signal(caught, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_WRONLY)
    for number, file in enumerate((alive, nothing, nothing)):
        os.dup2(file, number)
    for opened in [int(path.name) for path in Path("/proc/self/fd").iterdir()]:
        if opened > 2 and opened != keep:
            with suppress(OSError):  # the one that listed them
                os.close(opened)
    # By lines, for workers end without a last flush.
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(n, mode, 1, errors="backslashreplace", closefd=False) for n, mode in enumerate("rww")
    )
    if not any(name in os.environ for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")):
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)  # of libraries that are loaded
    for name in THREADS:
        os.environ.setdefault(name, "1")  # and of those that will be


def _wait(listener: socket.socket, folder: Path) -> None:
    """Load the compiled loops, then take over from the daemon that Spark starts."""
    import select

    try:
        _load_loops(folder / "nothing")
        _ready()
        ready, _, _ = select.select([listener.fileno(), sys.stdin.fileno()], [], [])
        if listener.fileno() not in ready:  # the driver has ended, or needs no workers
            return
        connection, _ = listener.accept()
    finally:
        listener.close()
        shutil.rmtree(folder, ignore_errors=True)
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
    _serve()


def _handed_over(address: str | None) -> bool:
    """Whether an early daemon serves Spark in this one's place. It has done so when this returns."""
    if not address or not _is_own(Path(address).parent):
        return False
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


def _import() -> None:
    """What every worker needs."""
    import gc

    was = gc.isenabled()
    gc.disable()  # nothing of what is imported is garbage, and looking takes an eighth of the time
    try:
        from pyspark import daemon  # noqa: F401

        with suppress(ImportError):  # a worker's own import will say better what is missing
            from sdretrieval.integrations.spark import requests, runners  # noqa: F401
    finally:
        if was:
            gc.enable()


def _load_loops(folder: Path) -> None:
    """The compiled loops of a pass, tried in a new folder."""
    from sdretrieval.integrations.spark import requests

    with suppress(Exception):  # what is wrong will be said of the real shards
        requests.load_loops(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _ready() -> None:
    """The last of what can be done before the first task is there."""
    import gc
    import zipimport

    # Before every task a worker has all importers look again at what there is, and those of zip archives read the whole
    # directory of PySpark's, thirteen times over: a fifth of a second. The archives do not change.
    zipimport.zipimporter.invalidate_caches = lambda self: None  # type: ignore[method-assign]
    # A worker collects garbage after every task; what was imported here need not be looked through each time.
    gc.collect()
    gc.freeze()


def _serve() -> None:
    from pyspark import daemon

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
