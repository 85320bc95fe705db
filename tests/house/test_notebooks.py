"""The notebooks in docs/ run, cell after cell, as they stand."""

from __future__ import annotations

import ast
import json

import pytest
from pages import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs").glob("*.ipynb"))


def run_cell(source: str, names: dict) -> object:
    """What Jupyter would show below the cell: the value of its last line, where that is an expression."""
    tree = ast.parse(source)
    shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if shown is None:
        return None
    return eval(compile(ast.Expression(shown.value), "<cell>", "eval"), names)


@pytest.mark.java
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.name for path in NOTEBOOKS])
def test_a_notebook_runs(path, capsys):
    notebook, names = json.loads(path.read_text()), {"__name__": "__main__"}
    assert notebook["nbformat"] == 4
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    shown = [run_cell(source, names) for source in code]
    assert len(code) > 5
    assert sum(value is not None for value in shown) > 3


def test_there_is_a_notebook():
    assert [path.name for path in NOTEBOOKS] == ["quickstart.ipynb"]
