"""Importing the package, and asking for help, loads little and starts nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyserini", "torch", "numba", "jnius", "jnius_config", "sklearn", "matplotlib", "scipy.stats", "pandas")


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def loaded_after(code: str) -> set[str]:
    done = python(f"{code}\nimport sys\nprint(*sorted(sys.modules), sep='\\n', file=sys.stderr)")
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


def test_import_loads_nothing_heavy_and_starts_no_java():
    loaded = loaded_after("import sdretrieval")
    assert "sdretrieval" in loaded
    assert not loaded & set(HEAVY)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_exits_well_and_loads_nothing_heavy(arguments: list[str]):
    code = f"""
import sys
from sdretrieval.cli.main import main
try:
    main({arguments!r})
except SystemExit as stop:
    assert stop.code in (0, None), stop.code
"""
    assert not loaded_after(code) & set(HEAVY)


def test_help_of_the_installed_command():
    done = subprocess.run(
        [sys.executable, "-m", "sdretrieval.cli.main", "--help"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert "sdretrieval index" in done.stdout  # an example


def test_public_names_exist():
    """What ``__all__`` promises can be had, with nothing else imported before."""
    done = python(
        "import sdretrieval\nfor name in getattr(sdretrieval, '__all__', []):\n    getattr(sdretrieval, name)\n"
        "print(sdretrieval.__version__)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_evaluate_is_a_function_and_a_room():
    done = python(
        "from sdretrieval import build_index, evaluate, explain, read_corpus\n"
        "assert evaluate({'1': {'a': 1.0}}, {'1': {'a': 1}}, ['AP']).mean['AP'] == 1\n"
        "from sdretrieval.evaluate import compare, evaluate as function\n"
        "import sdretrieval.evaluate.fuse\n"
        "assert sdretrieval.evaluate.compare is compare and evaluate.evaluate is function\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
