"""What is stopped and killed: all that writes, over and over. After each step it says so on its output.

``python worker.py FOLDER SEED``. At renames, removals, syncs and new folders it stops itself (SIGSTOP) now and then, so
that whoever watches sees the moments between; at other moments the watcher stops it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Document

PLAIN = AnalyzerSpec(language="whitespace")


def document(k: int, version: int) -> Document:
    chance = random.Random(f"{k} {version}")
    return Document(f"d{k}", " ".join(chance.choices("abcdefghij", k=8)) + f" v{version}", k)


Held = dict[str, int]  # version by number of the document, as text


def states() -> list[Held]:
    """What the index holds after each of the steps, in a round."""
    built = {f"{k}": 0 for k in range(40)}
    appended = {**built, **{f"{k}": 0 for k in range(40, 45)}}
    replaced = {**appended, **{f"{k}": 1 for k in range(43, 48)}}
    deleted = {k: v for k, v in replaced.items() if k not in ("0", "44")}
    overwritten = {f"{k}": 2 for k in range(10)}
    return [built, appended, replaced, deleted, overwritten]


def counts(held: Held) -> dict[str, Counter]:
    return {f"d{k}": Counter(document(int(k), v).contents.split()) for k, v in held.items()}


def documents(held: Held, *, but: Held | None = None) -> list[Document]:
    return [document(int(k), v) for k, v in held.items() if but is None or but.get(k) != v]


def stop_now_and_then(seed: str) -> None:
    chance = random.Random(seed)

    def stopping(call):
        def called(*given, **named):
            if chance.random() < 0.3:
                os.kill(os.getpid(), signal.SIGSTOP)
            return call(*given, **named)

        return called

    for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync"):
        setattr(os, name, stopping(getattr(os, name)))


def main(folder: Path, seed: str) -> None:
    from sdretrieval.cli.main import main as command
    from sdretrieval.index.living import append_documents, delete_documents
    from sdretrieval.index.lucene.indexing import build_index
    from sdretrieval.index.snapshot import open_snapshot

    index, (built, appended, replaced, _, overwritten) = folder / "index", states()
    (folder / "topics.tsv").write_text("1\ta b\n2\tc v0\n3\tv1\n")
    (folder / "qrels.txt").write_text("1 0 d1 1\n2 0 d2 1\n3 0 d3 1\n")
    given = ["--index", str(index), "--topics", str(folder / "topics.tsv")]
    tuning = [
        "tune",
        *given,
        "--qrels",
        str(folder / "qrels.txt"),
        "--model",
        "bm25",
        "--params",
        "k1",
        "--budget",
        "2",
    ]

    def search(model: str) -> None:
        assert command(["search", *given, "--model", model, "--output", str(folder / "run.txt")]) == 0

    def tune() -> None:
        (folder / "profile.json.trace.jsonl").unlink(missing_ok=True)
        words = [
            *tuning,
            "--budget",
            "2",
            "--method",
            "random",
            "--folds",
            "2",
            "--output",
            str(folder / "profile.json"),
        ]
        assert command(words) == 0

    steps = [  # with the state of the index after each
        (0, lambda: build_index(documents(built), index, analyzer=PLAIN, threads=1, overwrite=True)),
        (0, lambda: open_snapshot(index)),
        (1, lambda: append_documents(documents(appended, but=built), index)),
        (2, lambda: append_documents(documents(replaced, but=appended), index, replace=True)),
        (3, lambda: delete_documents(["d0", "d44"], index)),
        (3, lambda: search("bm25")),
        (3, lambda: search("ql")),
        (3, tune),
        (4, lambda: build_index(documents(overwritten), index, analyzer=PLAIN, threads=1, overwrite=True)),
        (4, lambda: open_snapshot(index)),
    ]
    stop_now_and_then(seed)
    while True:
        for state, step in steps:
            print(f"to {state}", flush=True)
            step()
            print(f"at {state}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
