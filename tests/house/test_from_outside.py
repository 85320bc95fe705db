"""A ranking model, a kernel and a measure of another package, used as the built-in ones are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from sdretrieval.cli.main import main
from sdretrieval.collection.trec import read_run

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.java

TEXTS = [
    "the flood came to the harbour",
    "flood flood in the old town",
    "a harbour with boats and a flood of visitors",
    "the harbour festival",
    "trains run late after the flood",
    "boats and trains",
]
NOW = "2024-03-01"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """A dated index with one topic, its time, and judgments."""
    folder = tmp_path_factory.mktemp("shelf")
    rows = [{"id": f"d{i}", "contents": text, "date": f"2024-02-{28 - 4 * i:02d}"} for i, text in enumerate(TEXTS)]
    (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "topics.tsv").write_text("1\tflood harbour\n")
    (folder / "times.tsv").write_text(f"1\t{NOW}\n")
    (folder / "qrels.txt").write_text("1 0 d1 1\n1 0 d2 1\n1 0 d3 0\n")
    words = ["--input", folder / "docs.jsonl", "--index", folder / "index", "--date-field", "date"]
    assert main(["index", *map(str, words)]) == 0
    return folder


def python(folder: Path, *words: object) -> str:
    """What Python prints, where ``folder`` holds an installed package."""
    path = os.pathsep.join([str(folder), str(REPOSITORY)])
    command = [sys.executable, *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def search(shelf: Path, run: Path, *words: object) -> list[str]:
    """The words of a search of the shelf."""
    files = ["--index", shelf / "index", "--topics", shelf / "topics.tsv", "--output", run]
    return ["search", *map(str, [*files, *words])]


def scores(path: Path) -> dict[str, float]:
    ranking = read_run(path)["1"]
    return dict(zip(ranking.docids, ranking.scores.tolist(), strict=True))


MODEL = '''
from dataclasses import dataclass
from typing import ClassVar

from sdretrieval.core.parameters import weight
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.weighting import JelinekMercer


@dataclass(frozen=True, kw_only=True)
class Mixed(Ranker):
    """Query likelihood with one share for all documents."""

    name: ClassVar[str] = "mixed"
    description: ClassVar[str] = "a model from outside"
    share: float = weight(0.3, "share of the document's own words")

    def first(self, query, statistics):
        return Plan(query.as_counts(), JelinekMercer(self.share), with_constant=True)
'''


def test_a_ranking_model_of_an_installed_package(tmp_path, shelf):
    """Found by its entry point: listed, given its parameter, and as exact as the built-in model of the same formula."""
    (tmp_path / "outside.py").write_text(MODEL)
    installed = tmp_path / "outside-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[sdretrieval.rankers]\nmixed = outside:Mixed\n")

    assert "a model from outside" in python(tmp_path, "-m", "sdretrieval.cli.main", "models")
    words = search(shelf, tmp_path / "mixed.trec", "--model", "mixed", "--set", "share=0.7")
    python(tmp_path, "-m", "sdretrieval.cli.main", *words)
    assert main(search(shelf, tmp_path / "ql.trec", "--model", "ql", "--set", "smoothing=jm", "--set", "lam=0.7")) == 0
    assert scores(tmp_path / "mixed.trec") == scores(tmp_path / "ql.trec")


def test_a_kernel_of_a_program_from_outside(tmp_path, shelf):
    """A recency prior with the triangle, under a name of its own, is the built-in one's to interpolation's error."""
    program = dedent(
        """
        import sys

        from sdretrieval.cli.main import main
        from sdretrieval.estimate.time.kernels import register_kernel

        register_kernel("ramp", lambda r: 1 - r)
        sys.exit(main(sys.argv[1:]))
        """
    )
    prior = ["--time-prior", "recency", "--bandwidth", "20d", "--time-weight", 1, "--topic-times", shelf / "times.tsv"]
    for kernel in ("ramp", "triangular", "exponential"):
        words = search(shelf, tmp_path / f"{kernel}.trec", "--model", "ql", "--set", "mu=5", *prior, "--kernel", kernel)
        if kernel == "ramp":
            python(tmp_path, "-c", program, *words)
        else:
            assert main(words) == 0
    found = scores(tmp_path / "ramp.trec")
    assert found == pytest.approx(scores(tmp_path / "triangular.trec"), abs=1e-5)
    assert found != pytest.approx(scores(tmp_path / "exponential.trec"), abs=0.05)


def test_a_measure_of_a_program_from_outside(tmp_path, shelf):
    """Precision under a name of its own: the same values."""
    program = dedent(
        """
        import sys

        from sdretrieval.cli.main import main
        from sdretrieval.evaluate.measures import register_measure

        register_measure("Found", lambda docids, grades: sum(grades.get(docid, 0) > 0 for docid in docids) / 3)
        sys.exit(main(sys.argv[1:]))
        """
    )
    assert main(search(shelf, tmp_path / "ql.trec", "--model", "ql")) == 0
    words = ["evaluate", shelf / "qrels.txt", tmp_path / "ql.trec", "--measures", "P@3", "Found@3", "-o", "jsonl"]
    rows = map(json.loads, python(tmp_path, "-c", program, *words).splitlines())
    values = {row["measure"]: row["value"] for row in rows}
    assert values["Found@3"] == values["P@3"] > 0
