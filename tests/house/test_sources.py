"""docs/SOURCES.md leaves out no equation, table or figure of the four papers; its paths are checked by test_docs.py."""

from __future__ import annotations

import re

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


def test_every_row_has_code_and_test_or_says_why_not() -> None:
    for line in PAGE.splitlines():
        if line.startswith("|") and not line.startswith(("|---", "| part")):
            _, part, _, code, test, result, _ = line.split("|")
            assert ("`" in code and "`" in test) or result.strip(), part
