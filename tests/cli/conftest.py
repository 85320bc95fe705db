"""A tiny dated collection of the tests' own, indexed once with ``sdretrieval index`` for all of the command-line tests.

Each subject has documents that use the query's words, and documents that only share other words with those:
feedback has something to find.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from shown import as_shown

from sdretrieval.cli.main import main
from sdretrieval.core.jvm import BRIEF

REPOSITORY = Path(__file__).resolve().parents[2]
BRIEF_JAVA = f"import jnius_config\njnius_config.add_options{BRIEF}"  # as tests/brief_java.py

# A subject: its query, then its documents with their grades.
SUBJECTS = """
harbour flood
2 The storm brought a flood to the harbour and the ferry stayed in port
2 Flood water closed the harbour; rescuers pumped cellars after the storm
1 Rescuers pumped cellars dry while the storm kept the ferry in port
1 Insurers count what the storm cost: cellars, boats and a ferry
0 A harbour festival with boats, music and fireworks

dying bees
2 Dying bees worry beekeepers; pesticides in the orchards are blamed
2 Bees are dying in orchards where pesticides were sprayed
1 Pesticides near orchards will be banned to protect pollinators
1 Beekeepers welcome the ban: hives recover without pesticides
0 A spelling contest for children, won with the word bees

night trains
2 Night trains return: sleeper carriages from the capital to the coast
1 Travellers book night trains again, and the railway buys sleeper carriages
1 The railway orders sleeper carriages for its lines to the coast
1 Sleeper services sell out before summer, says the railway
0 An athlete trains for the marathon of the capital, in rain and snow

comet telescope
2 A comet passes: astronomers point a telescope at its tail
2 The telescope saw the comet's tail break, astronomers report
1 Astronomers measure ice in the tail with a spectrometer
1 The observatory opens its dome for the passing visitor of ice and dust
0 A telescope was sold at an auction of brass instruments

bread prices
2 Bread prices rise as wheat grows scarce after the drought
2 Bakers raise bread prices, and millers blame the wheat harvest
1 Millers expect a poor wheat harvest after the drought
1 Drought halves the harvest; silos stand empty in the plains
0 Prices of houses fall in the capital

museum theft
2 Theft at the museum: thieves took paintings through a skylight
2 The museum theft was planned for weeks, detectives say
1 Detectives found the stolen paintings in a barn
1 A court sentenced the thieves; the paintings hang again
0 The museum of bread opens a new wing on millers and bakers
"""


@dataclass(frozen=True)
class Collection:
    """Where the files are; ``index`` is a real Lucene index."""

    documents: Path
    topics: Path
    qrels: Path
    index: Path


def write_collection(folder: Path) -> Collection:
    """30 documents of 2024, 6 topics, graded judgments; the index is still to be made."""
    made = Collection(
        folder / "documents.jsonl", folder / "topics.tsv", folder / "qrels.txt", folder / "indexes" / "tiny"
    )
    documents, judgments, topics = [], [], []
    for qid, subject in enumerate(SUBJECTS.strip().split("\n\n"), 1):
        query, *lines = subject.splitlines()
        topics.append(f"{qid}\t{query}\n")
        for line in lines:
            grade, _, text = line.partition(" ")
            place = len(documents) + 1
            docid, date = f"doc{place:02d}", f"2024-{1 + place % 6:02d}-{1 + place % 28:02d}"
            documents.append(json.dumps({"id": docid, "contents": text, "date": date, "subject": str(qid)}) + "\n")
            judgments.append(f"{qid} 0 {docid} {grade}\n")
    made.documents.write_text("".join(documents))
    made.qrels.write_text("".join(judgments))
    made.topics.write_text("".join(topics))
    return made


@pytest.fixture(scope="session")
def collection(tmp_path_factory) -> Collection:
    """Tests read it and never change it."""
    made = write_collection(tmp_path_factory.mktemp("collection"))
    words = ["index", "--input", made.documents, "--index", made.index, "--date-field", "date"]
    assert main([str(word) for word in words]) == 0
    return made


@dataclass(frozen=True)
class Outcome:
    """What a command left on the screen, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def typed(capsys) -> Callable[..., Outcome]:
    """``typed("search", "--index", …)``: a command in this process, where the JVM is started once."""

    def run(*words: object) -> Outcome:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as refused:  # argparse: a flag that is wrong or missing
            code = refused.code if isinstance(refused.code, int) else 1
        out, err = capsys.readouterr()
        return Outcome(code, out, as_shown(err))

    return run


@pytest.fixture
def refused(typed) -> Callable[..., str]:
    """A command that must be refused: exit code 2 and, on stderr, one error with perhaps its remedy."""

    def run(verb: str, *words: object) -> str:
        outcome = typed(verb, *words)
        assert (outcome.code, outcome.out) == (2, ""), outcome
        told = outcome.err[outcome.err.rindex(f"sdretrieval {verb}: ") :]
        assert "Traceback" not in outcome.err
        assert len(told.splitlines()) <= 2, told
        return told

    return run


@pytest.fixture
def ended() -> Callable[[subprocess.Popen], Outcome]:
    """Waits for what ``started`` started."""

    def wait(process: subprocess.Popen) -> Outcome:
        out, err = process.communicate(timeout=300)
        return Outcome(process.returncode, out, as_shown(err))

    return wait


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen]]:
    """A command in a process of its own; ``code`` runs in it first. Whatever still runs at the end is killed."""
    processes: list[subprocess.Popen] = []

    def run(*words: object, code: str = "", **options) -> subprocess.Popen:
        program = f"{BRIEF_JAVA}\n{code}\nimport sys\nfrom sdretrieval.cli.main import main\nsys.exit(main())\n"
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "default"}
        command = [sys.executable, "-c", program, *map(str, words)]
        processes.append(subprocess.Popen(command, env=environment, **options))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        process.communicate()
