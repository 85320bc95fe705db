"""The package's own source, as trees with what stands in comments."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Source:
    """A module of the package, or a text that stands for one."""

    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def comments(self) -> frozenset[int]:
        """The lines that have a comment which tells a person something."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        found = (token for token in tokens if token.type == tokenize.COMMENT)
        for_tools = ("# type:", "# noqa", "# fmt:")
        return frozenset(token.start[0] for token in found if not token.string.startswith(for_tools))

    def has_reason(self, node: ast.stmt | ast.expr) -> bool:
        """Whether a comment stands beside the node, or alone on the line above."""
        above = node.lineno - 1
        if above in self.comments and self.text.splitlines()[above - 1].lstrip().startswith("#"):
            return True
        return any(line in self.comments for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))

    def at(self, node: ast.stmt | ast.expr) -> str:
        return f"{self.name}:{node.lineno}"


def sources() -> Iterator[Source]:
    for path in sorted((REPOSITORY / "sdretrieval").rglob("*.py")):
        yield Source(path.relative_to(REPOSITORY).as_posix(), path.read_text())
