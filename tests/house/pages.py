"""README, CONTRIBUTING and docs/*.md as the tests read them: blocks of code, spans of code, links, headings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").glob("**/*.md"))]

_BLOCK = re.compile(r"(?:<!-- (not run)[^\n]*-->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block of code. ``runs``: it is not marked <!-- not run: why -->."""

    page: Path
    language: str
    text: str
    line: int
    runs: bool


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, found[2], found[3], text.count("\n", 0, found.start(3)) + 1, not found[1])
        for found in _BLOCK.finditer(text)
        if found[2] in languages
    ]


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def spans(page: Path) -> list[str]:
    return _SPAN.findall(prose(page))


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The headings as links name them: lower case, words joined by hyphens, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def shell_commands(page: Path) -> Iterator[list[str]]:
    """Every command of the shell blocks, as words; lines joined, variables of the block put in, pipes parted."""
    for block in blocks(page, "sh", "bash"):
        values: dict[str, str] = {}
        for line in block.text.replace("\\\n", " ").splitlines():
            if given := re.fullmatch(r"(\w+)=(\S*)", line):
                values[given[1]] = given[2]
                continue
            line = re.sub(r"(^|\s)#.*", "", line)  # shlex would take any # for a comment's, the shell does not
            words = shlex.split(Template(line).safe_substitute(values))
            while "|" in words:
                cut = words.index("|")
                yield words[:cut]
                words = words[cut + 1 :]
            if words:
                yield words
