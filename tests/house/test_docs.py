"""README, CONTRIBUTING and docs/ are true: links, paths, names, verbs, flags, commands, examples."""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, REPOSITORY, anchors, blocks, links, prose, shell_commands, spans

from sdretrieval.cli.main import VERBS

every_page = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
FOLDERS = ("", "sdretrieval", "tests")  # what paths may start from


# -- links, paths, names -------------------------------------------------------------------------------------------


@every_page
def test_links_lead_somewhere(page):
    for link in links(page):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def is_file_there(name: str) -> bool:
    if "/" not in name:  # a file named beside another: by its name alone
        return any(next((REPOSITORY / folder).rglob(name), None) for folder in ("sdretrieval", "tests", "benchmarks"))
    return any((REPOSITORY / folder / name).exists() for folder in FOLDERS)


@every_page
def test_code_that_is_named_exists(page):
    for span in spans(page):
        if re.fullmatch(r"[\w./]+\.(py|java)|(sdretrieval|tests|benchmarks|docs|requirements)/[\w./]*", span):
            assert is_file_there(span), span


def resolve(dotted: str) -> object:
    """A module, or an attribute of one, by its full name."""
    module, rest = dotted, []
    while True:
        try:
            found: object = importlib.import_module(module)
            break
        except ModuleNotFoundError as error:
            if error.name != module:  # something that it imports
                raise
            module, _, last = module.rpartition(".")
            rest.insert(0, last)
    for name in rest:
        found = getattr(found, name)
    return found


@every_page
def test_names_of_the_package_exist(page):
    named = [span for span in spans(page) if re.fullmatch(r"sdretrieval(\.\w+)+", span)]
    named += re.findall(r"^::: (\S+)$", prose(page), flags=re.MULTILINE)
    for name in named:
        if name != "sdretrieval.rankers":  # an entry point group
            resolve(name)


@every_page
def test_imports_of_examples_work(page):
    """Also of those that are not run."""
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("sdretrieval"):
                for alias in node.names:
                    resolve(f"{node.module}.{alias.name}")


def test_rooms_stand_in_the_architecture():
    rooms = re.findall(r"^\| `(\w+)/` \|", (REPOSITORY / "docs" / "ARCHITECTURE.md").read_text(), flags=re.MULTILINE)
    there = {path.parent.name for path in (REPOSITORY / "sdretrieval").glob("*/__init__.py")}
    assert set(rooms) == there
    assert len(rooms) == len(there)


# -- commands ------------------------------------------------------------------------------------------------------


def test_readme_is_short():
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 120


def test_readme_has_every_verb():
    rows = re.findall(r"^\| (`.+?) \|", (REPOSITORY / "README.md").read_text(), flags=re.MULTILINE)
    listed = {verb for row in rows for verb in re.findall(r"`([a-z]+)`", row)}
    first_of = {module: verb for verb, (module, _) in reversed(VERBS.items())}  # a second verb of a module is an alias
    assert set(first_of.values()) <= listed


class Refused(Exception):
    pass


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        raise Refused(message)


def parser_of(verb: str) -> argparse.ArgumentParser:
    parser = Parser(prog=f"sdretrieval {verb}")
    importlib.import_module(f"sdretrieval.cli.{VERBS[verb][0]}").configure(parser)
    return parser


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    """All flags, those of actions (`spark search`, `themes fit`) among them."""
    flags = {"--debug"}
    for action in parser._actions:
        flags.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                flags |= flags_of(inner)
    return flags


def check_command(words: list[str], *, whole: bool) -> None:
    """``whole``: with everything that the verb asks for; else the verb and the flags alone."""
    if not words or words[0].startswith("-") or words[0] == "VERB":
        return
    parser = parser_of(words[0])  # a KeyError: there is no such verb
    if whole:
        parser.parse_args(words[1:])
        return
    unknown = {word for word in words if word.startswith("--")} - flags_of(parser)
    assert not unknown, unknown


@every_page
def test_shell_commands_parse(page):
    for words in shell_commands(page):
        if words[0] == "sdretrieval":
            check_command(words[1:], whole=True)


@every_page
def test_commands_in_the_text_have_verbs_and_flags(page):
    for span in spans(page):
        if span.startswith("sdretrieval "):
            check_command([word.strip("…") for word in span.split()[1:]], whole=False)


@every_page
def test_benchmarks_and_targets_exist(page):
    text = page.read_text(encoding="utf-8")
    for module in re.findall(r"python -m (benchmarks[\w.]*)", text):
        assert (REPOSITORY / module.rstrip(".").replace(".", "/")).with_suffix(".py").exists() or module == "benchmarks"
    targets = set(re.findall(r"^(\w+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`make (\w+)", text)) <= targets


# -- examples ------------------------------------------------------------------------------------------------------


@pytest.mark.java
def test_examples_hold(tmp_path):
    """Python examples, and the commands that work on the demo's files: in a folder of their own, in a process."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    script = Path(__file__).with_name("run_examples.py")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:] + done.stdout[-2000:]


# -- the site ------------------------------------------------------------------------------------------------------


def test_every_page_is_in_the_site():
    listed = re.findall(r"^ +- .*?: (\S+\.md)$", (REPOSITORY / "mkdocs.yml").read_text(), flags=re.MULTILINE)
    docs = REPOSITORY / "docs"
    assert sorted(listed) == sorted(page.relative_to(docs).as_posix() for page in PAGES if page.is_relative_to(docs))


def test_site_builds_and_needs_no_network(tmp_path):
    """Strictly: a warning fails. Nothing is loaded from elsewhere."""
    pytest.importorskip("mkdocs", reason="`make docs` installs what the site is built with")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    for page in tmp_path.rglob("*.html"):
        assert not re.search(r"<(script|link|img)[^>]*(src|href)=.?https?:", page.read_text(encoding="utf-8")), (
            page.name
        )
