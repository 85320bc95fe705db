"""``sdretrieval reproduce``: make a run again from its manifest, and say what differs."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.core.errors import InputError

if TYPE_CHECKING:
    from sdretrieval.collection.records import Run

EXAMPLE = """\
examples:
  sdretrieval reproduce runs/blend.txt
  sdretrieval reproduce runs/blend.txt --index /elsewhere/indexes/mine --output runs/again.txt

Exit code 0: the same, byte for byte. 1: it differs; what is known of why is said first.
"""
VERBS = ("search", "rerank", "fuse")  # the only ones that a manifest may ask for


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("run_file", metavar="RUN", help="a run with its manifest beside it")
    parser.add_argument("--index", metavar="DIR", help="where the index is now (default: where it was)")
    parser.add_argument("--output", metavar="FILE", help="keep the new run (default: compare and forget it)")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.collection.trec import read_run
    from sdretrieval.evaluate.inputs import find_beside, read_manifest
    from sdretrieval.ranking.manifest import check_belongs, manifest_path

    old = Path(args.run_file)
    place = find_beside(old, "manifest.json")
    if place is None or not old.is_file():
        raise InputError("no manifest beside this run", file=old, remedy="Only a run with its manifest can be redone.")
    before = read_manifest(place)
    check_belongs(before, old, place)
    with tempfile.TemporaryDirectory() as scratch:
        new = Path(args.output or Path(scratch) / old.name)
        _again(before, place, new, args.index)
        for line in differences(before, read_manifest(manifest_path(new))):
            print(line)
        same = new.read_bytes() == old.read_bytes()
        for line in ["the same, byte for byte"] if same else run_differences(read_run(old), read_run(new)):
            print(line)
    return 0 if same else 1


def _again(before: Mapping[str, Any], place: Path, output: Path, index: str | None) -> None:
    from sdretrieval.cli.main import parser_for

    words = before.get("command")
    if not (isinstance(words, list) and all(isinstance(w, str) for w in words) and words[1:2] and words[1] in VERBS):
        told = f"its command is not one of {', '.join(VERBS)}: {str(words)[:80]!r}"
        raise InputError(told, file=place, remedy="Runs made from Python or on Spark are made again by hand.")
    again = parser_for(words[1]).parse_args(words[1:])
    again.output, again.save_expansion = str(output), None
    again.is_program, again.command = False, words
    if index is not None:
        again.index = index
    again.run(again)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """What two manifests say of how their runs were made, where it is not the same."""
    for name in ("sdretrieval", "python", "model"):
        if before.get(name) != after.get(name):
            yield f"{name}: was {before.get(name)}, is {after.get(name)}"
    for name in ("index", "parameters", "options", "inputs"):
        was, now = (part if isinstance(part := of.get(name), Mapping) else {} for of in (before, after))
        for key in sorted({*was, *now}):
            if was.get(key) != now.get(key):
                yield f"{name}, {key}: was {was.get(key)}, is {now.get(key)}"


def run_differences(old: Run, new: Run) -> Iterator[str]:
    """How two runs differ: topics, documents, scores, or the order of equal scores alone."""
    if old.keys() != new.keys():
        yield f"topics: {len(old.keys() - new.keys())} are gone, {len(new.keys() - old.keys())} are new"
    ties = documents = 0
    largest = 0.0
    for qid in old.keys() & new.keys():
        was, now = (dict(zip(run[qid].docids, run[qid].scores.tolist(), strict=True)) for run in (old, new))
        documents += was.keys() != now.keys()
        largest = max([largest, *(abs(was[docid] - now[docid]) for docid in was.keys() & now.keys())])
        ties += was == now and old[qid].docids != new[qid].docids
    yield f"documents differ in {documents} topics, the order of ties alone in {ties}"
    yield f"scores differ by up to {largest:.3g}"
    if not documents and not ties and not largest:
        yield "only the text differs: the tag, or how scores are written"
