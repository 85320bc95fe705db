"""File systems that Spark sees and this machine does not mount: hdfs://, s3a://, gs://, abfss://, viewfs://.

Hadoop's own client, out of Spark's jars, does the work, with the settings and credentials that Spark has: what Spark
reaches, this reaches. On the driver it runs in Spark's JVM (:class:`Hadoop`). Python workers have no way into the JVM
of their executor and run Hadoop's shell as a process of its own (:class:`HadoopShell`); a start takes 1.5 s, so they
ask seldom, and for whole folders.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdretrieval.errors import ParameterError, SdretrievalError

LARGEST_READ = 256 << 20  # of files that are read whole: manifests and notes
TRIES = 2  # of a copy that failed for another reason than a missing file
PAUSE = 1.0  # seconds between them
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://([^/]*)(.*)", re.DOTALL)
# A colon before anything but a port: the rest of a secret may have slashes, and so look like a path.
_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/{1,2}[^/]*:(?!\d*(/|$))", re.DOTALL)
_SCHEMES = re.compile(r"(hdfs|viewfs|webhdfs|s3a?|s3n|gs|abfss?|wasbs?):/", re.IGNORECASE)
_GLOB = re.compile(r"([\\*?\[\]{}])")
# The executor's Java: Lucene's, once it runs in a worker, puts its own into the variable.
_JAVA_HOME = os.environ.get("JAVA_HOME")


class StorageProblem(SdretrievalError):
    """A file system that cannot be reached, or does not do what it should. ``missing``: there is no such file."""

    def __init__(self, message: str, *, remedy: str | None = None, missing: bool = False) -> None:
        super().__init__(message, remedy=remedy)
        self.missing = missing


# -- addresses ---------------------------------------------------------------------------------------------------


def is_address(place: object) -> bool:
    """Whether it names something that is not mounted: ``scheme://…``, but ``file:///…`` is a path like any other."""
    found = _ADDRESS.match(place) if isinstance(place, str) else None
    return found is not None and found[1].lower() != "file"


def shown(text: str) -> str:
    """As messages may have it: of an address that may hold a password, the scheme alone."""
    found = _PASSWORD.match(text)
    return text if found is None else f"{found[1]}://…"


def place_of(text: str | os.PathLike[str]) -> Path | str:
    """Where something lies: a mounted folder or file as a path, an address as text."""
    text = re.sub(r"(?i)^file:/(?!/)", "file:///", os.fspath(text))  # as Java writes them
    if shown(text) != text:
        raise ParameterError(
            f"{shown(text)}: an address with a password in it, which would stand in every message",
            remedy="Give credentials as settings of Hadoop, in a file of Spark's (docs/SPARK.md).",
        )
    found = _ADDRESS.match(text)
    if found is None:
        if _SCHEMES.match(text):
            raise ParameterError(
                f"{text}: an address has two slashes after the colon", remedy="Hand addresses on as text, not as paths."
            )
        return Path(text)
    scheme, host, path = found.groups()
    if scheme.lower() == "file":
        if host not in ("", "localhost") or not path:
            told = "names no file" if not path else "a file of another machine"
            raise ParameterError(f"{text}: {told}", remedy="Write file:///path, or the path alone.")
        return Path(path)
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise ParameterError(f"{text!r}: an address with a control character")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        told = "the root of a file system" if not parts else "an address with '..' in it"
        raise ParameterError(f"{text}: {told}", remedy="Name a folder below it, by its full path.")
    return f"{scheme}://{host}/" + "/".join(parts)


def last_name(address: str) -> str:
    return address.rpartition("/")[2]


def explained(place: str, reason: str, *, missing: bool = False) -> StorageProblem:
    """What Hadoop said, and what to do about it."""
    reason = next((line.strip() for line in reason.splitlines() if line.strip()), "no reason given")
    scheme = place.partition("://")[0]
    said = re.sub(r"\S*/\S*", "", reason)  # without paths: a folder may be called timeout
    remedy = "docs/SPARK.md says how addresses are reached."
    if missing:
        remedy = "Check the address."
    elif re.search(r"No FileSystem for scheme|ClassNotFoundException|Class \S+ not found", said):
        remedy = (
            f"Spark has no client for {scheme}://. Give it one, e.g. --conf spark.jars.packages="
            "org.apache.hadoop:hadoop-aws:3.3.4 for s3a, or mount it and name the folder."
        )
    elif re.search(r"AccessControlException|AccessDenied|Permission denied|Forbidden|Credential", said):
        remedy = "Check the rights of the user that Spark runs as, and the credentials in its settings."
    elif re.search(r"UnknownHostException", said):
        remedy = "Check the host in the address; a cluster's own names are known where HADOOP_CONF_DIR is set."
    elif re.search(r"Connect(Timeout)?Exception|NoRouteTo|SocketTimeout|Connection (refused|reset|timed out)", said):
        remedy = "Does the service run, and is it reached from this machine? Check host and port."
    elif re.search(r"No space left|Disk quota|DiskQuota|NSQuota", said):
        remedy = "Make room there, or on this machine's disk (SPARK_LOCAL_DIRS, spark.local.dir)."
    return StorageProblem(f"{place}: {reason}", remedy=remedy, missing=missing)


# -- on the driver -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A file or folder of a listing. ``modified`` in ms since 1970."""

    name: str
    is_folder: bool
    size: int
    modified: int


class Hadoop:
    """Any file system, through the JVM that Spark's driver runs in."""

    def __init__(self, context: Any) -> None:
        self._context, self._jvm = context, context._jvm
        self._settings = context._jsc.hadoopConfiguration()

    @contextmanager
    def _at(self, address: str) -> Iterator[tuple[Any, Any]]:
        """The file system and path of an address; what Java throws becomes a StorageProblem."""
        from py4j.protocol import Py4JJavaError

        try:
            path = self._jvm.org.apache.hadoop.fs.Path(address)
            yield path.getFileSystem(self._settings), path
        except Py4JJavaError as error:
            thrown = error.java_exception
            kind, told = thrown.getClass().getSimpleName(), thrown.getMessage() or ""
            missing = kind in ("FileNotFoundException", "PathNotFoundException", "NotInMountpointException")
            raise explained(address, told if missing else f"{kind}: {told}", missing=missing) from None

    def qualified(self, address: str) -> str:
        """With the host that the settings name, where the address leaves it out: workers may have other settings."""
        with self._at(address) as (fs, path):
            return str(fs.makeQualified(path).toString())

    def status(self, address: str) -> Entry | None:
        """None where there is nothing."""
        try:
            with self._at(address) as (fs, path):
                return _entry(fs.getFileStatus(path))
        except StorageProblem as error:
            if error.missing:
                return None
            raise

    def listing(self, address: str) -> list[Entry]:
        """What a folder holds, by name; nothing where there is no such folder."""
        try:
            with self._at(address) as (fs, path):
                return sorted(map(_entry, fs.listStatus(path)), key=lambda entry: entry.name)
        except StorageProblem as error:
            if error.missing:
                return []
            raise

    def read(self, address: str) -> bytes:
        with self._at(address) as (fs, path):
            size = fs.getFileStatus(path).getLen()
            if size > LARGEST_READ:
                raise StorageProblem(f"{address}: {size:,} bytes are too many for such a file")
            stream = fs.open(path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, address: str, content: bytes) -> None:
        """Aside, then renamed: readers see the whole file or none."""
        aside = f"{address}.{os.urandom(4).hex()}.tmp"
        with self._at(aside) as (fs, path):
            stream = fs.create(path, True)
            try:
                stream.write(bytearray(content))
            finally:
                stream.close()
        self.delete(address)
        self.rename(aside, address)

    def make(self, address: str) -> None:
        """A folder, with those above it."""
        with self._at(address) as (fs, path):
            if not fs.mkdirs(path):
                raise explained(address, "the folder cannot be made")

    def rename(self, address: str, new: str) -> None:
        """To a name that is free: what stands there must have been deleted."""
        with self._at(address) as (fs, path):
            if not fs.rename(path, self._jvm.org.apache.hadoop.fs.Path(new)):
                raise explained(address, f"cannot be renamed to {new}")

    def delete(self, address: str) -> None:
        """With all that is below; nothing happens where there is nothing."""
        with self._at(address) as (fs, path):
            fs.delete(path, True)

    def get(self, addresses: Sequence[str], local: Path) -> None:
        """Files or folders into a local folder, under their own names."""
        for address in addresses:
            with self._at(address) as (fs, path):
                target = self._local(local / last_name(address))
                fs.copyToLocalFile(False, path, target, True)  # True: no files of checksums beside them

    def put(self, local: Path, address: str) -> None:
        """A local file or folder under a name that is free."""
        with self._at(address) as (fs, path):
            fs.copyFromLocalFile(False, True, self._local(local), path)

    def _local(self, path: Path) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(path.absolute().as_uri()))

    def for_workers(self) -> HadoopShell:
        text = self._jvm.java.io.StringWriter()
        self._settings.writeXml(text)
        conf = self._context.getConf()
        security = self._jvm.org.apache.hadoop.security.UserGroupInformation
        user = None if security.isSecurityEnabled() else str(self._context.sparkUser())
        more = conf.get("spark.executor.extraClassPath", "").split(os.pathsep)
        return HadoopShell(zlib.compress(text.toString().encode()), user, tuple(part for part in more if part))


def _entry(status: Any) -> Entry:
    name = str(status.getPath().getName())
    return Entry(name, bool(status.isDirectory()), int(status.getLen()), int(status.getModificationTime()))


# -- on workers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HadoopShell:
    """The same file systems from a process without a JVM of Spark's. It travels to the workers as data.

    The settings may hold credentials: they are never on a command line, and on disk only in a folder of the user's own
    for as long as a command runs (see :func:`scratch_folder` for a worker that is killed meanwhile).
    """

    settings: bytes = field(repr=False)  # core-site.xml, compressed
    user: str | None = None  # where names are believed: the one that Spark's own JVM goes by
    classpath: tuple[str, ...] = ()

    def get(self, addresses: Sequence[str], local: Path) -> None:
        """Files or folders into a local folder, under their own names."""
        names = [_GLOB.sub(r"\\\1", address) for address in addresses]  # the shell expands patterns
        told = addresses[0] if len(addresses) == 1 else f"{addresses[0].rpartition('/')[0]}/…"
        self._run(told, ["-get", "-f", *names, local.absolute().as_uri() + "/"])

    def put(self, local: Path, folder: str) -> None:
        """A local folder into one that is there, under its own name."""
        self._run(folder, ["-put", "-f", local.absolute().as_uri(), _GLOB.sub(r"\\\1", folder) + "/"])

    def _run(self, told: str, words: list[str]) -> None:
        with scratch_folder() as folder:
            for name, content in (("core-site.xml", zlib.decompress(self.settings)), ("hdfs-site.xml", _NO_SETTINGS)):
                with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                    out.write(content)
            command = [
                _java(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m",
                "-cp", os.pathsep.join([str(folder), *_jars(), *self.classpath]), "org.apache.hadoop.fs.FsShell",
                *words,
            ]  # fmt: skip
            # Java reads names in the locale's encoding.
            environment = {**os.environ, "LC_ALL": "C.UTF-8"}
            if self.user is not None:
                environment.setdefault("HADOOP_USER_NAME", self.user)
            for left in reversed(range(TRIES)):
                done = subprocess.run(
                    command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE, check=False, preexec_fn=_ends_with_parent(),
                )  # fmt: skip
                if done.returncode == 0:
                    return
                problem = _shell_problem(told, done.stderr.decode("utf-8", "replace"))
                if problem.missing or not left:
                    raise problem
                time.sleep(PAUSE)


_NO_SETTINGS = b"<configuration/>\n"  # without the file the shell does not start


def _ends_with_parent() -> Callable[[], None] | None:
    """For a new process to call: it is to be killed when this one is. Only Linux can."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()  # looked up here: little may be done after a fork

    def ask() -> None:
        prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it was faster
            os._exit(1)

    return ask


def _shell_problem(place: str, told: str) -> StorageProblem:
    lines = [line for line in told.partition("\nUsage:")[0].splitlines() if line.strip()]
    said = next((line for line in lines if re.match(r"-?(get|put|copy\w+): ", line)), lines[-1] if lines else "")
    said = re.sub(r"^-?(get|put|copy\w+): ", "", said)
    lost = re.match(r"`(.*)': No such file or directory", said)
    if lost:
        return explained(lost[1], "No such file or directory", missing=True)
    return explained(place, said)


def _java() -> str:
    for home in (os.environ.get("SPARK_JAVA_HOME"), _JAVA_HOME):
        if home and (Path(home) / "bin" / "java").is_file():
            return str(Path(home) / "bin" / "java")
    from sdretrieval.lucene.jvm import find_spark_java

    return str(find_spark_java().home / "bin" / "java")


def _jars() -> list[str]:
    """Spark's own jars, those given with spark.jars, and Hadoop's where Spark was built without it."""
    folders = [Path(os.environ["SPARK_HOME"], "jars")] if os.environ.get("SPARK_HOME") else []
    try:
        import pyspark
        from pyspark import SparkFiles

        folders.append(Path(pyspark.__file__).parent / "jars")
        added = getattr(SparkFiles, "_root_directory", None)
    except ImportError:
        added = None
    folders.append(Path.cwd() / "__spark_libs__")  # where YARN unpacks them
    own = next((folder for folder in folders if any(folder.glob("hadoop-*.jar"))), None)
    elsewhere = os.environ.get("SPARK_DIST_CLASSPATH")
    if own is None and not elsewhere:
        raise SdretrievalError(
            f"no Hadoop client on this worker (looked for hadoop-*.jar in {', '.join(map(str, folders))})",
            remedy="Install PySpark in the workers' Python, or set SPARK_HOME there.",
        )
    jars = [] if own is None else [f"{own}{os.sep}*"]
    jars += sorted(str(jar) for jar in Path(added).glob("*.jar")) if added else []
    return [*jars, elsewhere] if elsewhere else jars


# -- room on this machine ----------------------------------------------------------------------------------------


def local_folder(configured: str | None = None) -> Path:
    """A disk to work on: the first of Spark's local folders, or the one for temporary files."""
    told = os.environ.get("SPARK_LOCAL_DIRS") or configured or ""
    return Path(told.split(",")[0] or tempfile.gettempdir())


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """For the user alone, and gone afterwards.

    A worker that is killed leaves its folder: the next one to work in the same place removes it. Which are in use is
    told by locks, which end with a process however that ends. Where there are none, Spark clears its local folders.
    """
    base = local_folder()
    base = base if base.is_dir() else Path(tempfile.gettempdir())
    _remove_abandoned(base)
    made = Path(tempfile.mkdtemp(prefix=f".{_SCRATCH}", dir=base))
    with _opened(made) as lock:
        if lock is not None:
            hold(lock)
        folder = made.rename(made.with_name(made.name[1:]))  # seen by others only now that it is held
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


_SCRATCH = "sdretrieval-scratch-"


def _remove_abandoned(base: Path) -> None:
    for folder in base.glob(f"{_SCRATCH}*"):
        with _opened(folder) as lock:
            if lock is not None and hold(lock, wait=False):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """A folder to be held; None where that cannot be, or it is another user's."""
    file = None
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    try:
        yield file
    finally:
        if file is not None:
            os.close(file)


def hold(file: int, *, wait: bool = True) -> bool:
    """Lock an open file until it is closed. False where another has it, or the file system knows no locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True
