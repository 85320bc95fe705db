"""Runs the examples of the pages on the demo collection, made anew in the working folder; tells which do not hold.

A process of its own (see test_docs.py): examples register models and start Java.
"""

from __future__ import annotations

import doctest
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import brief_java  # noqa: F401
from pages import PAGES, Block, blocks, shell_commands

from sdretrieval.cli.main import main
from sdretrieval.demo import write_demo

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
NOT_HERE = "SPARK.md"  # its examples want Spark


def run_doctest(block: Block, names: dict) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, block.page.name, str(block.page), block.line)
    test.globs = names  # later blocks of a page go on where earlier ones ended
    if doctest.DocTestRunner(optionflags=OPTIONS).run(test, clear_globs=False).failed:
        raise AssertionError(f"{block.page.name}: a doctest failed")


def run_python(block: Block, names: dict) -> None:
    exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), names)


def run_command(words: list[str]) -> None:
    told = StringIO()
    try:
        with redirect_stdout(StringIO()), redirect_stderr(told):
            code = main(words[1:])
    except SystemExit as stopped:
        code = stopped.code
    assert not code, f"{' '.join(words)}: ended with {code}\n{told.getvalue()[-1000:]}"


def on_demo(words: list[str]) -> bool:
    """Whether a command works on the demo's files, so that it can be tried; a server would not end by itself."""
    if words[0] != "sdretrieval" or words[1] == "serve":
        return False
    return any("runs/demo" in word or "indexes/demo" in word for word in words)


def attempt(what: Callable, *arguments: object) -> bool:
    try:
        what(*arguments)
    except Exception:
        traceback.print_exc()
        return False
    return True


def run_page(page: Path) -> bool:
    names: dict = {"__name__": "__main__"}
    good = [attempt(run_command, words) for words in shell_commands(page) if on_demo(words)]
    for block in blocks(page, "python", "pycon"):
        if block.runs:
            good.append(attempt(run_python if block.language == "python" else run_doctest, block, names))
    return all(good)


if __name__ == "__main__":
    write_demo("runs/demo")
    run_command(
        ["sdretrieval", "index", *"--input runs/demo/docs.jsonl --index indexes/demo --date-field date".split()]
    )
    failed = [page.name for page in PAGES if page.name != NOT_HERE and not run_page(page)]
    print("failed:", *failed) if failed else print("all examples hold")
    sys.stdout.flush()
    os._exit(bool(failed))  # no waiting for Java
