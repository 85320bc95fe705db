"""A name that starts with an underscore belongs to its module: no other module uses it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest
from sources import Source, sources

DOCUMENTED = {"_asdict", "_replace", "_fields", "_make", "_exit"}  # of namedtuple and os: public in spite of it


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED and name != "_"


def defined(tree: ast.Module) -> set[str]:
    """Every name that the module gives to something: functions, classes, variables, attributes, arguments."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
    return found


def imported(tree: ast.Module) -> set[str]:
    """The names by which the module knows modules, classes and functions of the rest of the package."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_ours(node):
            found |= {name.asname or name.name for name in node.names}
    return found


def is_ours(node: ast.ImportFrom) -> bool:
    return node.level > 0 or (node.module or "").split(".")[0] == "sdretrieval"


def private_uses(source: Source, names_of_ours: set[str]) -> Iterator[str]:
    """Each use of a private name of another module; of a library, only where no comment gives the reason."""
    own, others = defined(source.tree), imported(source.tree)
    for node in ast.walk(source.tree):
        match node:
            case ast.ImportFrom() if is_ours(node):
                path = (node.module or "").split(".")
                yield from (f"{source.at(node)} imports {name}" for name in path if is_private(name))
                yield from (f"{source.at(node)} imports {name.name}" for name in node.names if is_private(name.name))
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                private = [name.name for name in names if any(map(is_private, name.name.split(".")))]
                if private and not source.has_reason(node):
                    yield f"{source.at(node)} imports {private[0]} without saying why"
            case ast.Attribute(value=value, attr=name) if is_private(name):
                whose = value.id if isinstance(value, ast.Name) else ""
                if whose in {"self", "cls"} or (name in own and whose not in others):
                    continue
                if name in names_of_ours or whose in others:
                    yield f"{source.at(node)} uses .{name}"
                elif not source.has_reason(node):
                    yield f"{source.at(node)} uses .{name} of a library without saying why"


def all_private_uses(files: Iterable[Source]) -> list[str]:
    files = list(files)
    ours = set().union(*(defined(source.tree) for source in files))
    return [use for source in files for use in private_uses(source, ours)]


def test_no_private_name_of_another_module_is_used():
    found = all_private_uses(sources())
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from sdretrieval.core.files import _open", ["imports _open"]),
        ("from . import _open", ["imports _open"]),
        ("from sdretrieval._late import read", ["imports _late"]),
        ("import numpy._core", ["imports numpy._core without saying why"]),
        ("import numpy._core  # the public one imports half of scipy", []),
        ("print(thing._secret)", ["uses ._secret"]),
        ("from sdretrieval.core import files\n_secret = files._secret", ["uses ._secret"]),
        ("class A:\n    def f(self, other):\n        self._x = other._x\n", []),
        ("class A:\n    def f(self):\n        return self._x\n", []),
        ("pair._replace(a=1)", []),
        ("parser._actions", ["uses ._actions of a library without saying why"]),
        ("# argparse has no other way to list flags\nparser._actions", []),
        ("import parser  # noqa: F401\nparser._actions", ["uses ._actions of a library without saying why"]),
    ],
)
def test_what_counts_as_a_use(text, found):
    other = Source("other.py", "def _secret(): ...\n")
    assert [use.split(" ", 1)[1] for use in all_private_uses([Source("one.py", text), other])] == found
