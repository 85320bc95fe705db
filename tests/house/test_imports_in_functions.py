"""An import inside a function keeps start-up light, and a comment says so; in cli/ that is the rule for every verb."""

from __future__ import annotations

import ast

import pytest
from sources import Source, sources

Import = ast.Import | ast.ImportFrom


def late_imports(tree: ast.Module) -> list[Import]:
    """The imports inside functions, each once, from top to bottom."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    found = {node for function in functions for node in ast.walk(function) if isinstance(node, Import)}
    return sorted(found, key=lambda node: node.lineno)


def without_reason(source: Source) -> list[str]:
    """Where an import has no comment; one on or above an import holds for those in the lines right below it too."""
    explained: set[int] = set()  # the last lines of imports that have a reason
    found = []
    for node in late_imports(source.tree):
        if source.has_reason(node) or node.lineno - 1 in explained:
            explained.add(node.end_lineno or node.lineno)
        else:
            found.append(source.at(node))
    return found


def test_each_import_inside_a_function_has_its_reason():
    outside = (source for source in sources() if not source.name.startswith("sdretrieval/cli/"))
    found = [place for source in outside for place in without_reason(source)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("import numba", ["one.py:2"]),
        ("import numba  # takes a second", []),
        ("# Takes a second.\n    import numba", []),
        ("# Take a second.\n    import numba\n    import scipy", []),
        ("# Takes a second.\n    import numba\n\n    import scipy", ["one.py:5"]),
        ("late = 1  # a flag\n    import numba", ["one.py:3"]),
        ("if late:\n        from numba import njit", ["one.py:3"]),
        ("import numba  # noqa: F401", ["one.py:2"]),
        ("from numba import (  # takes a second\n        njit,\n    )", []),
        ("def g():\n        import numba", ["one.py:3"]),
    ],
)
def test_what_counts_as_a_reason(body, found):
    assert without_reason(Source("one.py", f"def f(late):\n    {body}\n")) == found
