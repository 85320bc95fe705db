"""Compiles the loops that take longest, once: tests in several processes, and what they start, find them in the cache.

python tests/compile_loops.py ranking
python tests/compile_loops.py learning
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO

import brief_java  # noqa: F401

import sdretrieval.ranking.engine as engine
from sdretrieval.cli.main import main
from sdretrieval.demo import write_demo

SEARCH = "search --index ix --topics d/topics.tsv --topic-times d/topics.times.tsv --hits 100 --output run.txt "
FLAGS = (
    "--model blend",
    "--model bm25",
    "--model sd",
    "--model rm3 --time-prior auto",
    "--model sdm --time-prior density",
    "--model ql --time-prior recency --as-of query-time",
)
LEARNING = (
    "themes fit --input d/docs.jsonl --n-topics 3 --output themes",
    "drift --index ix --vocabulary 50",
    "burstiness --index ix --words 10",
)


def command(line: str) -> None:
    told = StringIO()
    with redirect_stdout(StringIO()), redirect_stderr(told):
        code = main(line.split())
    assert not code, f"{line}: {told.getvalue()}"


def rank() -> None:
    for bounds in (engine.BOUNDS_FROM, 0):  # all documents scored, and those that bounds leave
        engine.BOUNDS_FROM = bounds
        for flags in FLAGS:
            command(SEARCH + flags)


def learn() -> None:
    for line in LEARNING:
        command(line)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_demo("d", n_docs=100, n_topics=5, mean_words=60)
        command("index --input d/docs.jsonl --index ix --date-field date")
        {"ranking": rank, "learning": learn}[sys.argv[1]]()
