"""Importing the package loads little and starts nothing (asking for help: tests/cli/test_main.py)."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("pyserini", "torch", "numba", "jnius", "jnius_config", "sklearn", "matplotlib", "scipy.stats", "pandas")


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)


def test_import_loads_nothing_heavy_and_starts_no_java():
    done = python("import sys, sdretrieval\nprint(*sys.modules)")
    assert done.returncode == 0, done.stderr
    assert "sdretrieval" in done.stdout.split() and not {*done.stdout.split()} & set(HEAVY)


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
