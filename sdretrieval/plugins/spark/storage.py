"""File systems that Spark sees and this machine does not mount: hdfs://, s3a://, gs://, abfss://, viewfs://.

Hadoop's own client, out of Spark's jars, does the work, with the settings and credentials that Spark has: what Spark
reaches, this reaches. On the driver it runs in Spark's JVM (:class:`Hadoop`; :class:`Mounted` is the same for mounted
folders). Python workers have no way into the JVM of their executor and run Hadoop's shell as a process of its own
(:class:`HadoopShell`); a start takes 1.5 s, so they ask seldom, and for whole folders.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdretrieval.core.disk import remove
from sdretrieval.core.errors import ParameterError, SdretrievalError
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.jvm import find_spark_java
from sdretrieval.plugins.spark.session import CONF

LARGEST_READ = 256 << 20  # of files that are read whole: manifests and notes
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


# What Hadoop says, and what to do about it.
_REMEDIES = {
    r"No FileSystem for scheme|ClassNotFoundException|Class \S+ not found": "Spark has no client for {scheme}://. Give "
    "it one (--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.3.4 for s3a), or mount it and name the folder.",
    "AccessControlException|AccessDenied|Permission denied|Forbidden|Credential": "Check the rights of the user that "
    "Spark runs as, and the credentials in its settings.",
    "UnknownHostException": "Check the host; a cluster's own names are known where HADOOP_CONF_DIR is set.",
    "Connect(Timeout)?Exception|NoRouteTo|SocketTimeout|Connection (refused|reset|timed out)": "Does the service run, "
    "and is it reached from this machine? Check host and port.",
    "No space left|Disk quota|DiskQuota|NSQuota": "Make room there, or on this machine's disk (SPARK_LOCAL_DIRS).",
}


def explained(place: str, reason: str, *, missing: bool = False) -> StorageProblem:
    """What Hadoop said, and what to do about it."""
    reason = next((line.strip() for line in reason.splitlines() if line.strip()), "no reason given")
    said = re.sub(r"\S*/\S*", "", reason)  # without paths: a folder may be called timeout
    fitting = (remedy for pattern, remedy in _REMEDIES.items() if re.search(pattern, said))
    remedy = "Check the address." if missing else next(fitting, "docs/SPARK.md says how addresses are reached.")
    remedy = remedy.format(scheme=place.partition("://")[0])
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
        self._settings = context._jsc.hadoopConfiguration()  # PySpark has no public way to Hadoop

    @contextmanager
    def _at(self, address: str) -> Iterator[tuple[Any, Any]]:
        """The file system and path of an address; what Java throws becomes a StorageProblem."""
        from py4j.protocol import Py4JJavaError  # comes with PySpark, an optional extra

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
        with self._at(address) as (fs, path):
            return _entry(fs.getFileStatus(path)) if fs.exists(path) else None

    def listing(self, address: str) -> list[Entry]:
        """What a folder holds, by name; nothing where there is no such folder."""
        with self._at(address) as (fs, path):
            found = fs.listStatus(path) if fs.exists(path) else []
            return sorted(map(_entry, found), key=lambda entry: entry.name)

    def read(self, address: str) -> bytes:
        with self._at(address) as (fs, path):
            size = fs.getFileStatus(path).getLen()
            if size > LARGEST_READ:
                raise StorageProblem(f"{address}: {size:,} bytes are too many for such a file")
            with closing(fs.open(path)) as stream:
                return bytes(stream.readAllBytes())

    def write(self, address: str, content: bytes) -> None:
        """Aside, then renamed: readers see the whole file or none."""
        aside = f"{address}.{os.urandom(4).hex()}.tmp"
        with self._at(aside) as (fs, path), closing(fs.create(path, True)) as stream:
            stream.write(bytearray(content))
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


class Mounted:
    """The same for folders that are mounted here: as much of it as building asks for."""

    def status(self, place: str) -> Entry | None:
        path = Path(place)
        if not path.exists() and not path.is_symlink():
            return None
        about = path.lstat()
        # A link to nothing counts as a folder, as one to a folder does: of either the link alone is removed.
        return Entry(path.name, path.is_dir() or not path.exists(), about.st_size, about.st_mtime_ns // 1_000_000)

    def listing(self, place: str) -> list[Entry]:
        return [self.status(str(path)) for path in sorted(Path(place).iterdir())] if Path(place).is_dir() else []  # type: ignore[misc]

    def read(self, place: str) -> bytes:
        try:
            return Path(place).read_bytes()
        except OSError as error:
            missing = isinstance(error, FileNotFoundError | NotADirectoryError)
            raise StorageProblem(f"{place}: {error.strerror}", missing=missing) from None

    def write(self, place: str, content: bytes) -> None:
        with atomic_writer(place, binary=True) as out:
            out.write(content)

    def make(self, place: str) -> None:
        Path(place).mkdir(parents=True, exist_ok=True)

    def rename(self, place: str, new: str) -> None:
        Path(place).rename(new)

    def delete(self, place: str) -> None:
        remove(Path(place))


# -- on workers --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HadoopShell:
    """The same file systems from a process without a JVM of Spark's. It travels to the workers as data.

    The settings may hold credentials: they are never on a command line, and on disk only in a file of the user's own
    for as long as a command runs.
    """

    settings: bytes = field(repr=False)  # of Hadoop, as XML, compressed
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

    def exists(self, address: str) -> bool:
        return self._run(address, ["-test", "-e", _GLOB.sub(r"\\\1", address)], accepted=(0, 1)) == 0

    def delete(self, address: str) -> None:
        """A file or folder with all in it; nothing where there is none."""
        self._run(address, ["-rm", "-r", "-f", "-skipTrash", _GLOB.sub(r"\\\1", address)])

    def _run(self, told: str, words: list[str], accepted: tuple[int, ...] = (0,)) -> int:
        # The shell asks for two files of settings on its class path; those in the folder CONF say nothing.
        classes = os.pathsep.join([str(CONF), *_jars(), *self.classpath])
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx512m", "-cp", classes]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}  # Java reads names in the locale's encoding
        if self.user is not None:
            environment.setdefault("HADOOP_USER_NAME", self.user)
        with tempfile.NamedTemporaryFile(prefix=SCRATCH, suffix=".xml", dir=local_folder()) as settings:
            settings.write(zlib.decompress(self.settings))
            settings.flush()
            done = subprocess.run(
                [_java(), *options, "org.apache.hadoop.fs.FsShell", "-conf", settings.name, *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                preexec_fn=_end_with_parent if sys.platform.startswith("linux") else None,
            )
        if done.returncode not in accepted:
            raise _shell_problem(told, done.stderr.decode("utf-8", "replace"))
        return done.returncode


_LIBC = ctypes.CDLL(None) if sys.platform.startswith("linux") else None  # not after a fork


def _end_with_parent() -> None:
    """For a new process to call: it is to be killed when the worker is."""
    _LIBC.prctl(1, signal.SIGKILL)  # type: ignore[union-attr]  # PR_SET_PDEATHSIG


def _shell_problem(place: str, told: str) -> StorageProblem:
    told = told.partition("\nUsage:")[0].strip()
    found = re.search(r"^-?(?:get|put|copy\w+): (.*)", told, re.MULTILINE)
    said = found[1] if found else told.rpartition("\n")[2]
    lost = re.match(r"`(.*)': No such file or directory", said)
    return explained(lost[1], "No such file or directory", missing=True) if lost else explained(place, said)


def _java() -> str:
    for home in (os.environ.get("SPARK_JAVA_HOME"), _JAVA_HOME):
        if home and (Path(home) / "bin" / "java").is_file():
            return str(Path(home) / "bin" / "java")
    return str(find_spark_java().home / "bin" / "java")


def _jars() -> list[str]:
    """Spark's own jars, those given with spark.jars, and Hadoop's where Spark was built without it."""
    import pyspark  # an optional extra; every worker has it

    homes = (os.environ.get("SPARK_HOME"), Path(pyspark.__file__).parent)
    folders = [*(Path(home, "jars") for home in homes if home), Path.cwd() / "__spark_libs__"]  # the last is YARN's
    added = pyspark.SparkFiles._root_directory  # the public way wants a SparkContext off workers
    own = next((folder for folder in folders if any(folder.glob("hadoop-*.jar"))), None)
    elsewhere = os.environ.get("SPARK_DIST_CLASSPATH")
    if own is None and not elsewhere:
        raise SdretrievalError(
            f"no Hadoop client on this worker (looked for hadoop-*.jar in {', '.join(map(str, folders))})",
            remedy="Set SPARK_HOME there.",
        )
    jars = [] if own is None else [f"{own}{os.sep}*"]
    jars += sorted(str(jar) for jar in Path(added).glob("*.jar")) if added else []
    return [*jars, elsewhere] if elsewhere else jars


# -- room on this machine ----------------------------------------------------------------------------------------

SCRATCH = "sdretrieval-scratch-"


def local_folder(configured: str | None = None) -> Path:
    """A disk to work on: the first of Spark's local folders, or the one for temporary files.

    Workers are told of one that Spark removes at the end, with what a worker that was killed has left in it.
    """
    told = Path((os.environ.get("SPARK_LOCAL_DIRS") or configured or "").split(",")[0])
    return told if told.name and told.is_dir() else Path(tempfile.gettempdir())


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """For the user alone, and gone afterwards."""
    return tempfile.TemporaryDirectory(prefix=SCRATCH, dir=local_folder(), ignore_cleanup_errors=True)
