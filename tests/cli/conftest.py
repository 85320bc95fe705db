"""A tiny dated collection of the tests' own, indexed once with ``sdretrieval index`` for all of the command-line tests.

Each subject has documents that use the query's words, and documents that only share other words with those:
feedback has something to find.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sdretrieval.cli.main import main

REPOSITORY = Path(__file__).resolve().parents[2]

# qid -> query, documents with their grade.
SUBJECTS: dict[str, tuple[str, list[tuple[str, int]]]] = {
    "1": ("harbour flood", [
        ("The storm brought a flood to the harbour and the ferry stayed in port", 2),
        ("Flood water closed the harbour; rescuers pumped cellars after the storm", 2),
        ("Rescuers pumped cellars dry while the storm kept the ferry in port", 1),
        ("Insurers count what the storm cost: cellars, boats and a ferry", 1),
        ("A harbour festival with boats, music and fireworks", 0),
    ]),
    "2": ("dying bees", [
        ("Dying bees worry beekeepers; pesticides in the orchards are blamed", 2),
        ("Bees are dying in orchards where pesticides were sprayed", 2),
        ("Pesticides near orchards will be banned to protect pollinators", 1),
        ("Beekeepers welcome the ban: hives recover without pesticides", 1),
        ("A spelling contest for children, won with the word bees", 0),
    ]),
    "3": ("night trains", [
        ("Night trains return: sleeper carriages from the capital to the coast", 2),
        ("Travellers book night trains again, and the railway buys sleeper carriages", 1),
        ("The railway orders sleeper carriages for its lines to the coast", 1),
        ("Sleeper services sell out before summer, says the railway", 1),
        ("An athlete trains at night for the marathon of the capital", 0),
    ]),
    "4": ("comet telescope", [
        ("A comet passes: astronomers point a telescope at its tail", 2),
        ("The telescope saw the comet's tail break, astronomers report", 2),
        ("Astronomers measure ice in the tail with a spectrometer", 1),
        ("The observatory opens its dome for the passing visitor of ice and dust", 1),
        ("A telescope was sold at an auction of brass instruments", 0),
    ]),
    "5": ("bread prices", [
        ("Bread prices rise as wheat grows scarce after the drought", 2),
        ("Bakers raise bread prices, and millers blame the wheat harvest", 2),
        ("Millers expect a poor wheat harvest after the drought", 1),
        ("Drought halves the harvest; silos stand empty in the plains", 1),
        ("Prices of houses fall in the capital", 0),
    ]),
    "6": ("museum theft", [
        ("Theft at the museum: thieves took paintings through a skylight", 2),
        ("The museum theft was planned for weeks, detectives say", 2),
        ("Detectives found the stolen paintings in a barn", 1),
        ("A court sentenced the thieves; the paintings hang again", 1),
        ("The museum of bread opens a new wing on millers and bakers", 0),
    ]),
}  # fmt: skip


@dataclass(frozen=True)
class Collection:
    """Where the files are; ``index`` is a real Lucene index."""

    documents: Path
    topics: Path
    qrels: Path
    index: Path

    def __post_init__(self) -> None:
        place = 0
        records, judgments = [], []
        for qid, (_, documents) in SUBJECTS.items():
            for text, grade in documents:
                place += 1
                docid, date = f"doc{place:02d}", f"2024-{1 + place % 6:02d}-{1 + place % 28:02d}"
                records.append({"id": docid, "contents": text, "date": date, "subject": qid})
                judgments.append(f"{qid} 0 {docid} {grade}\n")
        self.documents.parent.mkdir(parents=True, exist_ok=True)
        self.documents.write_text("".join(json.dumps(record) + "\n" for record in records))
        self.qrels.write_text("".join(judgments))
        self.topics.write_text("".join(f"{qid}\t{query}\n" for qid, (query, _) in SUBJECTS.items()))


@pytest.fixture(scope="session")
def collection(tmp_path_factory) -> Collection:
    """30 documents, 6 topics, graded judgments; tests read it and never change it."""
    folder = tmp_path_factory.mktemp("collection")
    made = Collection(
        folder / "documents.jsonl", folder / "topics.tsv", folder / "qrels.txt", folder / "indexes" / "tiny"
    )
    words = ["index", "--input", made.documents, "--index", made.index, "--date-field", "date"]
    assert main([str(word) for word in words]) == 0
    return made


@dataclass(frozen=True)
class Outcome:
    """What a command left on the screen."""

    code: int
    out: str
    err: str


Typed = Callable[..., Outcome]


@pytest.fixture
def typed(capsys) -> Typed:
    """``typed("search", "--index", …)``: a command in this process, where the JVM is started once."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        return Outcome(code, out, err)

    return run


def start(*words: object, code: str | None = None, **options) -> subprocess.Popen:
    """A command in a process of its own; ``code`` runs first in it."""
    program = f"{code or ''}\nimport sys\nfrom sdretrieval.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **options.pop("env", {})}
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options,
    )  # fmt: skip
