"""Digests of everything the command line computes: did a change of the code change a result?

    python -m benchmarks.digests record        # what the code of this checkout computes
    python -m benchmarks.digests check         # the same again, compared: lists what differs

Runs of every model without and with each time option on the demo collection and on cranfield, cacm and microblog2011
(where ../shared/data is beside the project), expansions, explanations, evaluation, the report, tuning, classifiers,
trackers, evolving classifiers, topics, drift and burstiness. One digest each of what a command writes and prints, kept
in benchmarks/digests.json. Floating-point sums may differ in their last bit between processors of unlike kinds: record
on a machine before comparing on it. ``--only NAME`` takes the jobs whose name contains NAME.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy: sums of matrix products depend on the number of threads

from benchmarks.collections import SHARED  # noqa: E402
from sdretrieval.cli.main import main as sdretrieval  # noqa: E402

RECORD = Path(__file__).with_name("digests.json")
MODELS = ["bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3", "lucene-bm25", "lucene-qld", "lucene-qljm"]
CLASSIFIERS = ["sd", "sd-ce", "multinomial", "multinomial-jm", "dcm", "dirichlet", "svm", "logistic", "local-logistic"]
KERNELS = ["uniform", "triangular", "epanechnikov", "tricube", "gaussian", "exponential"]
TIMELESS = {"paper": ["--profile", "paper"], "anserini": ["--profile", "anserini"], "prune": ["--prune", "20"]}
TIME = {
    "recency": ["--time-prior", "recency"],
    "recency-fixed": ["--time-prior", "recency", "--time-weight", "0.7", "--bandwidth", "5d"],
    "recency-narrow": ["--time-prior", "recency", "--time-weight", "1", "--bandwidth", "1h"],
    "density": ["--time-prior", "density"],
    "density-cv": ["--time-prior", "density", "--bandwidth", "cv", "--time-weight", "1"],
    "density-rank": ["--time-prior", "density", "--time-evidence", "rank", "--time-docs", "20"],
    "density-posterior": ["--time-prior", "density", "--time-evidence", "posterior"],
    "density-uniform": ["--time-prior", "density", "--time-evidence", "uniform", "--bandwidth", "2d"],
    "local": ["--background", "local", "--bandwidth", "7d"],
    "local-document": ["--background", "local", "--background-at", "document", "--bandwidth", "7d", "--hits", "50"],
    "feedback-query": ["--feedback-time", "query"],
    "feedback-mode": ["--feedback-time", "mode", "--feedback-time-weight", "0.5", "--bandwidth", "3d"],
    "as-of": ["--as-of", "query-time"],
    "as-of-all": [
        "--as-of",
        "query-time-inclusive",
        "--time-prior",
        "recency",
        "--feedback-time",
        "query",
        "--background",
        "local",
        "--bandwidth",
        "7d",
    ],
    "as-of-density": ["--as-of", "query-time", "--time-prior", "density"],
    "density-document": [
        "--time-prior",
        "density",
        "--background",
        "local",
        "--background-at",
        "document",
        "--bandwidth",
        "7d",
        "--hits",
        "50",
    ],
}
TIMED = {"demo", "microblog2011"}  # topics with times
DATED = {*TIMED, "cacm"}


class Jobs:
    """The commands, one by one, in a folder of their own."""

    def __init__(self, folder: Path, only: str) -> None:
        self.folder, self.only, self.digests = folder, only, {}

    def run(self, name: str, *argv: object, output: str | None = None, drop: str = "") -> None:
        """One command: the digest of what it prints and, where ``output`` is given, of the file it writes.

        ``drop``: a pattern of what is not the same from run to run.
        """
        if self.only not in name:
            return
        printed = io.StringIO()
        words = [str(word) for word in argv]
        if output is not None:
            words += ["--output", str(self.folder / output)]
        with contextlib.redirect_stdout(printed), open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):
            try:
                code = sdretrieval(words) or 0
            except SystemExit as stop:
                code = stop.code
        text = re.sub(drop, "", printed.getvalue()) if drop else printed.getvalue()
        parts = [str(code), text.replace(str(self.folder), "")]
        if output is not None and (self.folder / output).is_file():
            written = (self.folder / output).read_text(encoding="utf-8").replace(str(self.folder), "")
            parts.append(re.sub(drop, "", written) if drop else written)
            manifest = self.folder / (output + ".manifest.json")
            if manifest.is_file():
                told = json.loads(manifest.read_text(encoding="utf-8"))
                parts.append(json.dumps([told["model"], told["parameters"]]))
        self.digests[name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
        print(f"{name:<55} {self.digests[name]} {code}", flush=True)


def collections(folder: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """Name, index and the flags of the topics of each collection."""
    from sdretrieval.collection.corpus import Reader
    from sdretrieval.index.lucene.indexing import build_index

    demo = folder / "demo"
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        sdretrieval(["demo", "--folder", str(demo), "--index", str(folder / "demo-index")])
    yield "demo", folder / "demo-index", ["--topics", str(demo / "topics.jsonl")]
    for name in ("cranfield", "cacm", "microblog2011"):
        source = SHARED / name
        if not source.is_dir():
            print(f"{name}: not in ../shared/data, left out", file=sys.stderr)
            continue
        reader = Reader(date="date") if name in DATED else Reader()
        build_index(reader.read([source / "docs.jsonl.gz"]), folder / f"{name}-index", threads=1)
        topics = ["--topics", str(source / "topics.tsv")]
        if name in TIMED:
            topics += ["--topic-times", str(source / "topics.times.tsv")]
        yield name, folder / f"{name}-index", topics


def time_options(name: str) -> dict[str, list[str]]:
    """Those that have something to go by: an undated collection has one all the same, and says so."""
    if name not in DATED:
        return {"density": TIME["density"]}
    return {option: flags for option, flags in TIME.items() if name in TIMED or "--as-of" not in flags}


def rankings(jobs: Jobs, name: str, index: Path, topics: list[str]) -> None:
    where = ["--index", index, *topics]
    for model in MODELS:
        out = f"{name}.{model}.txt"
        saved = jobs.folder / f"{out}.expansion.jsonl"
        expansion = [] if model.startswith("lucene") else ["--save-expansion", saved]
        jobs.run(f"{name} search {model}", "search", *where, "--model", model, *expansion, output=out)
        if expansion and saved.is_file():
            jobs.digests[f"{name} expansion {model}"] = hashlib.sha256(saved.read_bytes()).hexdigest()[:24]
            jobs.run(
                f"{name} replay {model}",
                "search",
                *where,
                "--model",
                model,
                "--expansion",
                saved,
                output=f"{name}.{model}.replay.txt",
            )
        options = {**TIMELESS, **time_options(name)}
        if name == "microblog2011":  # large: fewer models with each option
            options = options if model in ("bm25", "sd3", "rm") else {"as-of": TIME["as-of"]}
        for option, flags in options.items():
            if "--hits" not in flags:
                flags = [*flags, "--hits", "200"]
            jobs.run(
                f"{name} search {model} {option}",
                "search",
                *where,
                "--model",
                model,
                *flags,
                output=f"{name}.{model}.{option}.txt",
            )
        if expansion:
            jobs.run(
                f"{name} rerank {model}",
                "rerank",
                *where,
                "--run",
                jobs.folder / f"{name}.bm25.txt",
                "--model",
                model,
                "--run-weight",
                "0.3",
                output=f"{name}.{model}.rerank.txt",
            )
    jobs.run(f"{name} threads", "search", *where, "--threads", "1", output=f"{name}.threads.txt")
    if name in TIMED:
        for kernel in KERNELS:
            for prior in ("recency", "density"):
                jobs.run(
                    f"{name} kernel {kernel} {prior}",
                    "search",
                    *where,
                    "--model",
                    "bm25",
                    "--hits",
                    "200",
                    "--time-prior",
                    prior,
                    "--kernel",
                    kernel,
                    output=f"{name}.{kernel}.{prior}.txt",
                )
        jobs.run(
            f"{name} rerank as-of",
            "rerank",
            *where,
            "--run",
            jobs.folder / f"{name}.bm25.txt",
            "--as-of",
            "query-time",
            "--time-prior",
            "recency",
            output=f"{name}.rerank-as-of.txt",
        )
    qid = {"demo": "3", "cranfield": "4", "cacm": "7", "microblog2011": "1"}[name]
    for model in ("bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3"):
        given = ["explain", *where, "--model", model, "--qid", qid]
        jobs.run(f"{name} explain {model}", *given)
        jobs.run(f"{name} explain json {model}", *given, "--json")
    jobs.run(f"{name} expansion show", "expansion", "show", jobs.folder / f"{name}.sd3.txt.expansion.jsonl")
    jobs.run(
        f"{name} expansion diff",
        "expansion",
        "diff",
        jobs.folder / f"{name}.sd3.txt.expansion.jsonl",
        jobs.folder / f"{name}.rm3.txt.expansion.jsonl",
    )


def evaluation(jobs: Jobs, name: str, index: Path, topics: list[str]) -> None:
    qrels = jobs.folder / "demo" / "qrels.txt" if name == "demo" else SHARED / name / "qrels.txt"
    runs = [jobs.folder / f"{name}.{model}.txt" for model in ("bm25", "rm3", "sd3")]
    given = [qrels, *runs, "--measures", "AP", "P@5", "nDCG@10"]
    jobs.run(f"{name} evaluate", "evaluate", *given, "--baseline", runs[0])
    jobs.run(f"{name} evaluate each", "evaluate", *given, "-q")
    jobs.run(f"{name} compare", "compare", qrels, *runs[1:])
    report = ["report", *given, *topics, "--collection", name, "--latex", jobs.folder / f"{name}.tex"]
    jobs.run(f"{name} report", *report, output=f"{name}.report.html", drop=r"\d{4}-\d\d-\d\dT[^\s\"]*|[0-9a-f]{32}")
    if name in ("demo", "cranfield"):
        jobs.run(
            f"{name} tune",
            "tune",
            "--index",
            index,
            *topics,
            "--qrels",
            qrels,
            "--model",
            "sd3",
            "--method",
            "random",
            "--budget",
            "6",
            "--folds",
            "3",
            output=f"{name}.profile.json",
            drop=r"[\d.]+ (s|ms)\b",
        )


def learning(jobs: Jobs, index: Path) -> None:
    documents = jobs.folder / "labelled.jsonl"
    label_demo(jobs.folder / "demo" / "docs.jsonl", documents)
    times = ["--date-field", "date"]
    for model in CLASSIFIERS:
        jobs.run(
            f"classify {model}",
            "classify",
            "--train",
            documents,
            "--model",
            model,
            *times,
            "--input",
            documents,
            output=f"classify.{model}.jsonl",
        )
        jobs.run(
            f"classify held-out {model}",
            "classify",
            "--train",
            documents,
            "--model",
            model,
            *times,
            "--held-out",
            "0.3",
            "--json",
            drop=r'"seconds[^,}]*',
        )
    for method in ("ssl-e", "ssl", "ssl-naive", "offline"):
        jobs.run(
            f"evolve {method}",
            "evolve",
            "--input",
            documents,
            "--method",
            method,
            "--label-fraction",
            "0.2",
            output=f"evolve.{method}.jsonl",
        )
    seeds = jobs.folder / "seeds.txt"
    lines = (jobs.folder / "demo" / "qrels.txt").read_text(encoding="utf-8").splitlines()
    first = {line.split()[0]: line for line in reversed(lines) if line.split()[3] != "0"}
    seeds.write_text("\n".join(first[qid] for qid in sorted(first)[:8]) + "\n", encoding="utf-8")
    topics = jobs.folder / "demo" / "topics.tsv"
    for model in ("tfidf", "rm", "nb", "sd"):
        for kind, given in (("queries", ["--topics", topics]), ("seeds", ["--seeds", seeds, "--forget", "tricube"])):
            jobs.run(
                f"track {model} {kind}",
                "track",
                "--index",
                index,
                *given,
                "--model",
                model,
                "--adapt-threshold",
                "0.02",
                "--run",
                jobs.folder / f"track.{model}.txt",
                "--hits",
                "100",
                output=f"track.{model}.{kind}.jsonl",
            )
        jobs.run(
            f"tdt {model}",
            "tdt",
            jobs.folder / "demo" / "qrels.txt",
            jobs.folder / f"track.{model}.txt",
            "--documents",
            "3000",
            "-q",
        )
    fitted = ["--n-topics", "12", "--bandwidth", "5", "--steps", "3", "--threads", "1"]
    for loss in ("squared", "hellinger"):
        model = jobs.folder / f"{loss}.topics"
        jobs.run(
            f"topics fit {loss}",
            "topics",
            "fit",
            "--input",
            jobs.folder / "demo" / "docs.jsonl",
            "--loss",
            loss,
            *fitted,
            "--output",
            model,
            drop=r"[\d.]+ s\b",
        )
        jobs.run(f"topics show {loss}", "topics", "show", "--model", model, "--json")
        jobs.run(
            f"topics transform {loss}",
            "topics",
            "transform",
            "--model",
            model,
            "--index",
            index,
            output=f"topics.{loss}.jsonl",
        )
        for verb in ("segment", "strip"):
            jobs.run(
                f"topics {verb} {loss}",
                "topics",
                verb,
                "--model",
                model,
                "--index",
                index,
                "--docid",
                "demo-000007",
                "--segments",
                "4",
            )
    jobs.run("drift", "drift", "--index", index, "--json")
    jobs.run("drift gaussian", "drift", "--index", index, "--kernel", "gaussian", "--bandwidth", "9d", "--json")
    jobs.run("burstiness", "burstiness", "--index", index, "--json")
    jobs.run("burstiness as printed", "burstiness", "--index", index, "--as-printed", "--json")


def label_demo(source: Path, target: Path) -> None:
    """The demo's documents with a label each (the length class of the title): something to learn from."""
    with open(target, "w", encoding="utf-8") as out:
        for line in source.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            words = document["contents"].lower().split()
            document["labels"] = "storm" if "wind" in words or "winds" in words else "rest"
            out.write(json.dumps(document) + "\n")


def compute(only: str) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = Jobs(folder, only)
        for collection in collections(folder):
            rankings(jobs, *collection)
            evaluation(jobs, *collection)
            if collection[0] == "demo":
                learning(jobs, collection[1])
        return jobs.digests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "check"))
    parser.add_argument("--only", default="", metavar="NAME")
    args = parser.parse_args()
    found = compute(args.only)
    if args.action == "record":
        RECORD.write_text(json.dumps(found) + "\n", encoding="utf-8")
        print(f"{len(found)} digests in {RECORD.name}")
        return 0
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    recorded = {name: digest for name, digest in recorded.items() if args.only in name}
    unlike = [name for name, digest in recorded.items() if found.get(name) != digest]
    for name in unlike:
        print(f"differs: {name}")
    print(f"{len(recorded) - len(unlike)} of {len(recorded)} the same")
    return 1 if unlike else 0


if __name__ == "__main__":
    sys.exit(main())
