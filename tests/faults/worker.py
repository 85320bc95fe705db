"""What is stopped and killed: all that writes, over and over. After each step it says so on its output.

``python worker.py FOLDER SEED WHAT``: ``all``; ``files``, which leaves the index as it is; or some of these,
``track`` or ``model``. At renames, removals, syncs and new folders it stops itself (SIGSTOP) now and then, so that
whoever watches sees the moments between; at other moments the watcher stops it.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus import Document

KINDS, VERSIONS = ("classify", "themes"), (0, 1)  # of saved models
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


def write_inputs(folder: Path) -> None:
    """What the commands read."""
    (folder / "topics.tsv").write_text("1\ta b\n2\tc v0\n3\te v1\n")
    (folder / "qrels.txt").write_text("1 0 d1 1\n2 0 d2 1\n3 0 d3 1\n")
    stream = [{"id": f"s{k}", "contents": document(k, 0).contents, "date": f"2024-01-{k + 1:02}"} for k in range(30)]
    (folder / "stream.jsonl").write_text("".join(json.dumps(line) + "\n" for line in stream))
    for version in VERSIONS:
        train = [{"id": f"d{k}", "contents": document(k, version).contents, "labels": "xy"[k % 2]} for k in range(20)]
        (folder / f"train-{version}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in train))


def tracking(folder: Path) -> list[str]:
    """The command that follows stories, or goes on with it."""
    files = {"input": "stream.jsonl", "topics": "topics.tsv", "state": "state", "output": "decisions.jsonl"}
    named = [word for name, file in files.items() for word in (f"--{name}", str(folder / file))]
    settings = ["--adapt-threshold", "0.0", "--emit", "all", "--checkpoint-every", "4"]
    return ["track", *named, "--run", str(folder / "track.run"), *settings]


def learning(folder: Path, kind: str, version: int) -> list[str]:
    """The command that saves a model of either kind, in either of two versions, under one name."""
    train, place = str(folder / f"train-{version}.jsonl"), str(folder / f"{kind}.sdm")
    if kind == "classify":
        return ["classify", "--train", train, "--save", place]
    settings = ["--n-topics", "2", "--steps", "2", "--threads", "1"]
    return ["themes", "fit", "--input", train, "--output", place, *settings]


def changes(index: Path) -> list[tuple[int, str, Callable[[], object]]]:
    """What changes the index, in turns: the state of it afterwards, a name, and what to call."""
    from sdretrieval.index.living import append_documents, delete_documents
    from sdretrieval.index.lucene.indexing import build_index

    built, appended, replaced, _, overwritten = states()

    def build(held: Held) -> None:
        build_index(documents(held), index, analyzer=PLAIN, threads=1, overwrite=True)

    return [
        (0, "index", lambda: build(built)),
        (1, "append", lambda: append_documents(documents(appended, but=built), index)),
        (2, "replace", lambda: append_documents(documents(replaced, but=appended), index, replace=True)),
        (3, "delete", lambda: delete_documents(["d0", "d44"], index)),
        (4, "overwrite", lambda: build(overwritten)),
    ]


def main(folder: Path, seed: str, what: str) -> None:
    import jnius_config  # all in a process of its own

    from sdretrieval.cli.main import main as command
    from sdretrieval.core.jvm import BRIEF
    from sdretrieval.index.snapshot import open_snapshot

    jnius_config.add_options(*BRIEF)

    index = folder / "index"
    given = ["--index", str(index), "--topics", str(folder / "topics.tsv")]

    def call(*words: str) -> None:
        assert command(list(words)) == 0

    def search(model: str) -> None:
        call("search", *given, "--model", model, "--output", str(folder / "run.txt"))

    def tune() -> None:
        (folder / "profile.json.trace.jsonl").unlink(missing_ok=True)
        budget = ["--params", "k1", "--budget", "2", "--method", "random", "--folds", "2"]
        files = ["--qrels", str(folder / "qrels.txt"), "--output", str(folder / "profile.json")]
        call("tune", *given, "--model", "bm25", *budget, *files)

    def track() -> None:
        shutil.rmtree(folder / "state", ignore_errors=True)
        call(*tracking(folder))

    write, append, replace, delete, overwrite = changes(index)
    files: list[tuple[str, Callable[[], object]]] = [
        ("search", lambda: search("bm25")),
        ("search", lambda: search("ql")),
        ("tune", tune),
        ("track", track),
    ]
    for kind, version in product(KINDS, VERSIONS):
        files.append((f"model-{kind}-{version}", partial(call, *learning(folder, kind, version))))
    if what != "all":
        write[2]()
        steps = [(0, name, step) for name, step in files if what == "files" or name.startswith(what)]
    else:
        before = [write, (0, "snapshot", lambda: open_snapshot(index)), append, replace, delete]
        after = [overwrite, (4, "snapshot", lambda: open_snapshot(index))]
        steps = [*before, *((3, name, step) for name, step in files), *after]
    stop_now_and_then(seed)
    while True:
        for state, name, step in steps:
            print(f"to {state} {name}", flush=True)
            step()
            print(f"at {state} {name}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
