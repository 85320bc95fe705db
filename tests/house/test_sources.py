"""docs/SOURCES.md leaves out no equation, table or figure of the four papers, and its tests reach its code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pages import REPOSITORY

PAGE = (REPOSITORY / "docs" / "SOURCES.md").read_text(encoding="utf-8")
PARTS = dict(
    zip(("thesis", "drift", "evolving", "themes"), re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:], strict=True)
)
CHAPTERS = {1: 15, 2: 18, 3: 50, 4: 36, 5: 33, 6: 23, 7: 15}  # the thesis's equations
FIGURES = {1: 1, 3: 5, 5: 6, 6: 1, 7: 1}
TABLES = {2: 1, 4: 2, 5: 3, 6: 3}
LAST = {"drift": (42, 16, 0), "evolving": (19, 2, 2), "themes": (10, 5, 2)}  # equations, figures, tables


def first_cells(part: str) -> list[str]:
    return [line.split("|")[1] for line in PARTS[part].splitlines() if line.startswith("|")]


def equations(part: str) -> set[str]:
    """Single ones and ranges: (3.14)-(3.16)."""
    found = set()
    for cell in first_cells(part):
        for first, last in re.findall(r"\(([\d.]+)\)(?:-\(([\d.]+)\))?", cell):
            chapter, _, low = first.rpartition(".")
            high = (last or first).rpartition(".")[2]
            found |= {f"{chapter}.{n}" if chapter else str(n) for n in range(int(low), int(high) + 1)}
    return found


def named(part: str, word: str) -> set[str]:
    """Numbers after 'Figure' or 'Figures', 'Table' or 'Tables'."""
    found = set()
    for cell in first_cells(part):
        for numbers in re.findall(rf"{word}s? ((?:[\d.]+(?:, )?)+)", cell):
            found |= set(numbers.strip(", ").split(", "))
    return found


def numbered(last: dict[int, int]) -> set[str]:
    return {f"{chapter}.{n}" for chapter, most in last.items() for n in range(1, most + 1)}


def test_every_part_of_the_thesis_is_told() -> None:
    assert numbered(CHAPTERS) == equations("thesis")
    assert numbered(FIGURES) == named("thesis", "Figure")
    assert numbered(TABLES) == named("thesis", "Table")


@pytest.mark.parametrize("part", LAST)
def test_every_part_of_the_papers_is_told(part: str) -> None:
    found = equations(part), named(part, "Figure"), named(part, "Table")
    for numbers, last in zip(found, LAST[part], strict=True):
        assert numbers == {str(n) for n in range(1, last + 1)}


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Part, code, test, result."""
    for line in PAGE.splitlines():
        if line.startswith("|") and not line.startswith(("|---", "| part")):
            _, part, _, *cells, _ = line.split("|")
            yield part, *cells


def test_every_row_has_code_and_test_or_says_why_not() -> None:
    for part, code, test, result in rows():
        assert ("`" in code and "`" in test) or result.strip(), part


FOLDERS = ("", "sdretrieval", "tests", "tests/unit")


def files(cell: str) -> list[Path]:
    """test_docs.py has seen that they exist."""
    named = re.findall(r"`([\w/]+\.py)`", cell)
    return [next(path for folder in FOLDERS if (path := REPOSITORY / folder / name).is_file()) for name in named]


@cache
def imported(path: Path) -> frozenset[Path]:
    """What a file imports, in functions too, or names as a module that is imported by name."""
    modules = (
        {f"sdretrieval.cli.{path.stem[5:]}"} if path.parent.name == "cli" else set()
    )  # tests are named by the verb
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            modules |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            modules |= {one.name for one in node.names}
        elif isinstance(node, ast.Constant) and re.fullmatch(r"sdretrieval(\.\w+)+", str(node.value)):
            modules.add(node.value)
    places = [REPOSITORY / folder / module.replace(".", "/") for module in modules for folder in ("", "tests")]
    found = {file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")}
    return frozenset(file for file in found if file.is_file())


@cache
def reached(path: Path) -> frozenset[Path]:
    seen, waiting = set(), [path]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += imported(one)
    return frozenset(seen)


def test_the_code_of_a_row_is_reached_by_its_tests() -> None:
    for part, code, test, _ in rows():
        seen = set().union(*(reached(path) for path in files(test)))
        for path in files(code):
            assert path in seen, f"{part.strip()}: {path.name}"
        for path in files(test):
            assert reached(path) & set(files(code)), f"{part.strip()}: {path.name}"


def test_a_test_of_something_else_reaches_nothing() -> None:
    (other,) = files("`unit/test_bep.py`")
    assert not reached(other) & set(files("`learn/lcsc/coding.py`, `benchmarks/results_ranking.py`"))


def test_results_are_sections_of_the_page() -> None:
    """Where a row says Ranking, there is one; what begins small, with a link or with a name tells why not."""
    page = (REPOSITORY / "docs" / "RESULTS.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (.*)$", page, flags=re.MULTILINE))
    named = {re.split("[;:,.]", result.strip())[0] for *_, result in rows()}
    assert {one for one in named if re.match("[A-Z]", one)} - {"Industry Sector cannot be had"} <= sections
