"""``search --query``: hits to read, and pipes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sdretrieval.cli.hit_list import in_one_line
from sdretrieval.collection.trec import read_run


@pytest.fixture
def hits(typed, collection):
    def search(*words: object) -> str:
        outcome = typed("search", "--index", collection.index, *words)
        assert outcome.code == 0, outcome.err
        return outcome.out

    return search


def test_a_query_is_answered_with_hits_to_read(hits):
    found = hits("--query", "harbour flooding", "--hits", 3)
    assert found.count("doc0") == 3
    assert "2024-" in found
    assert "The storm brought a flood to the harbour" in found
    assert "\x1b" not in found  # no colours in a pipe


def test_a_new_process_answers_the_same_without_numba_and_scipy(hits, collection):
    """Java starts in a thread of its own, meanwhile, and loops of so small a collection are not compiled."""
    words = ["--query", "harbour flooding", "--hits", "3"]
    program = (
        "import sys\n"
        "from sdretrieval.cli.main import main\n"
        "code = main()\n"
        "print([name for name in ('numba', 'scipy', 'pandas') if name in sys.modules], code, file=sys.stderr)\n"
    )
    given = [sys.executable, "-c", program, "search", "--index", str(collection.index), *words]
    expected = hits(*words)
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (expected, "[] 0\n")


@pytest.mark.parametrize("asked", [("--query", "harbour flooding"), ("--topics",)])
def test_a_run_takes_neither_java_nor_the_compiler(typed, collection, tmp_path, asked):
    """Where loops have been compiled once, and the queries are plain English."""
    program = (
        "import sys\n"
        "from sdretrieval.cli.main import main\n"
        "assert main() == 0\n"
        "print([name for name in ('jnius', 'scipy.linalg') if name in sys.modules])\n"
    )
    words = ["search", "--index", str(collection.index), *asked, *[str(collection.topics)][: 2 - len(asked)]]
    for output in ("first", "again"):
        given = [sys.executable, "-c", program, *words, "--output", tmp_path / output]
        done = subprocess.run(given, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert typed(*words, "--output", tmp_path / "here").code == 0
    assert (tmp_path / "here").read_bytes() == (tmp_path / "again").read_bytes() != b""


def test_words_are_marked_on_a_terminal(hits, monkeypatch):
    monkeypatch.setattr("sdretrieval.cli.hit_list.has_colours", lambda: True)
    found = hits("--query", "flooding", "--hits", 1)
    assert "\x1b[1;33mflood\x1b[0m" in found.lower()


def test_nothing_found_is_said(typed, collection):
    outcome = typed("search", "--index", collection.index, "--query", "xylophone \x1b[31m")
    assert (outcome.code, outcome.out) == (0, "nothing was found for 'xylophone \\\\x1b[31m'\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a\x1b[31mb", "a\\x1b[31mb"), ("\u202eflow", "\\u202eflow"), ("a\nb\tc", "a b c"), ("é𝄞", "é𝄞")],
)
def test_control_characters_are_shown_and_not_obeyed(text, shown):
    assert in_one_line(text) == shown


def test_hostile_titles_are_shown(typed, tmp_path):
    evil = "\x1b]0;owned\x07 \x1b[2J<b>storm</b>"
    (tmp_path / "docs.jsonl").write_text(json.dumps({"id": "one", "title": evil, "contents": f"{evil} storm \x9b31m"}))
    assert typed("index", "--input", tmp_path / "docs.jsonl", "--index", tmp_path / "index").code == 0
    found = typed("search", "--index", tmp_path / "index", "--query", "storm")
    assert found.code == 0
    assert all(c.isprintable() or c == "\n" for c in found.out)
    assert "undated" in found.out


def test_minus_is_standard_input_and_output(typed, collection, monkeypatch, tmp_path):
    topics = collection.topics.read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(topics)))
    given = ("search", "--index", collection.index, "--model", "bm25")
    piped = typed(*given, "--topics", "-", "--output", "-")
    assert piped.code == 0, piped.err
    file = tmp_path / "run.txt"
    assert typed(*given, "--topics", collection.topics, "--output", file).code == 0
    assert piped.out == file.read_text()
    assert not list(tmp_path.glob("-*"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(topics)))
    told = typed("explain", "--index", collection.index, "--topics", "-", "--qid", "1")
    assert told.code == 0, told.err


def test_a_query_can_make_a_run(typed, collection, tmp_path):
    file = tmp_path / "run.txt"
    assert typed("search", "--index", collection.index, "--query", "dying bees", "--output", file).code == 0
    assert list(read_run(file)) == ["query"]


def test_a_run_of_topics_needs_a_place(refused, collection):
    told = refused("search", "--index", collection.index, "--topics", collection.topics)
    assert "--output FILE" in told


def test_either_topics_or_a_query(typed, collection):
    given = ("search", "--index", collection.index)
    assert typed(*given).code == 2
    assert typed(*given, "--topics", collection.topics, "--query", "bees").code == 2
