"""Where Lucene comes from when Pyserini is not installed: pip is asked for one pinned release, and its jar is kept."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from sdretrieval.core import anserini_jar
from sdretrieval.core.errors import JavaError

REPOSITORY = Path(__file__).parents[2]

JAR = "pyserini-9/pyserini/resources/jars/anserini-9.9-fatjar.jar"


@pytest.fixture
def calls(monkeypatch, tmp_path) -> list[list[str]]:
    """A machine without Pyserini whose pip delivers a small one; the commands it was given."""
    monkeypatch.delenv("ANSERINI_CLASSPATH", raising=False)
    monkeypatch.delenv("SDRETRIEVAL_FETCH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "pyserini", None)
    seen: list[list[str]] = []
    return seen


@pytest.fixture
def pip(calls, monkeypatch):
    def make(code: int = 0, member: str = JAR) -> None:
        def download(command: list[str], **_: object) -> subprocess.CompletedProcess:
            calls.append(command)
            if not code:
                with tarfile.open(Path(command[command.index("--dest") + 1]) / "pyserini-9.tar.gz", "w:gz") as packed:
                    packed.addfile(tarfile.TarInfo("pyserini-9/README.md"))
                    info = tarfile.TarInfo(member)
                    info.size = 3
                    packed.addfile(info, io.BytesIO(b"jar"))
            return subprocess.CompletedProcess(command, code, stdout="ERROR: no network\n")

        monkeypatch.setattr(subprocess, "run", download)

    return make


def test_the_jar_is_fetched_once_without_dependencies(calls, pip, tmp_path, capsys):
    pip()
    assert anserini_jar.find_jar() is None
    jar = anserini_jar.anserini_jar()
    assert (jar.name, jar.read_bytes()) == ("anserini-9.9-fatjar.jar", b"jar")
    assert jar.is_relative_to(tmp_path / "sdretrieval")
    assert [path.name for path in jar.parent.iterdir()] == [jar.name]  # nothing else is left
    told = capsys.readouterr().err
    assert "fetched once with pip" in told
    assert "SDRETRIEVAL_FETCH=no forbids it" in told
    assert str(jar.parent) in told
    assert anserini_jar.anserini_jar() == jar
    (command,) = calls
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "--require-hashes"} <= set(command)
    assert command[-1] == str(anserini_jar.PINNED)


def test_it_may_be_forbidden(calls, pip, monkeypatch):
    pip()
    monkeypatch.setenv("SDRETRIEVAL_FETCH", "no")
    with pytest.raises(JavaError, match="forbids") as refused:
        anserini_jar.anserini_jar()
    assert "pip install --no-deps pyserini" in str(refused.value)
    assert not calls


@pytest.mark.parametrize(("answer", "fetched"), [("\n", True), ("y\n", True), ("n\n", False), ("", True)])
def test_a_terminal_is_asked(calls, pip, monkeypatch, answer, fetched):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    pip()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    if fetched:
        assert anserini_jar.anserini_jar().exists()
    else:
        with pytest.raises(JavaError, match="was not fetched"):
            anserini_jar.anserini_jar()
    assert len(calls) == fetched


def test_what_pip_says_is_told(calls, pip):
    pip(code=1)
    with pytest.raises(JavaError, match=r"pip could not fetch pyserini==.*\n.*no network"):
        anserini_jar.anserini_jar()
    pip(member="pyserini-9/pyserini/resources/jars/another.jar")
    with pytest.raises(JavaError, match=r"no anserini-.* in pyserini-9\.tar\.gz"):
        anserini_jar.anserini_jar()
    assert anserini_jar.find_jar() is None


def test_the_pinned_release_is_that_of_the_requirements():
    def pins(text: str) -> set[str]:
        return set(re.findall(r'^pyserini==\S+ ; python_version \S+ "3\.12"', text, flags=re.MULTILINE))

    wanted = pins((REPOSITORY / "requirements" / "runtime.txt").read_text())
    assert len(wanted) == 2
    assert pins(anserini_jar.PINNED.read_text()) == wanted
    assert re.fullmatch(r"pyserini==\d+\.\d+\.\d+", anserini_jar._release())
