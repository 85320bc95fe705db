"""Digests of everything the command line computes: did a change of the code change a result?

    python -m benchmarks.digests record        # what the code of this checkout computes
    python -m benchmarks.digests check         # the same again, compared: lists what differs
    python -m benchmarks.digests check --collections demo --record ../before/.cache/benchmarks/digests.json

Runs of every model without and with each time option on the demo collection and on cranfield, cacm and microblog2011
(where ../shared/data is beside the project), expansions, explanations, evaluation, the report, tuning, fusion,
classifiers, trackers, evolving classifiers, themes, judging, drift and burstiness. One digest each of what a command
writes and prints, kept below .cache: last bits of sums differ between kinds of processors, so one records on a machine,
changes the code, and checks there. To compare with a commit, record in a worktree of it, and name that --record here.
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
from benchmarks.corpus import CACHE  # noqa: E402
from sdretrieval.cli.evolve import METHODS  # noqa: E402
from sdretrieval.cli.main import main as sdretrieval  # noqa: E402
from sdretrieval.estimate.time.kernels import kernel_names  # noqa: E402
from sdretrieval.learn.classify.classifiers import MODELS as CLASSIFIERS  # noqa: E402
from sdretrieval.ranking.models.built_in import BUILT_IN  # noqa: E402

RECORD = CACHE / "digests.json"
MODELS = [model.name for model in BUILT_IN]
TIMELESS = {"paper": "--profile paper", "anserini": "--profile anserini", "prune": "--prune 20"}
TIME = {
    "auto": "--time-prior auto",
    "period": "--from 1970-01-01 --until 2022-07-01",
    "recency": "--time-prior recency",
    "recency-fixed": "--time-prior recency --time-weight 0.7 --bandwidth 5d",
    "recency-narrow": "--time-prior recency --time-weight 1 --bandwidth 1h",
    "density": "--time-prior density",
    "density-cv": "--time-prior density --bandwidth cv --time-weight 1",
    "density-rank": "--time-prior density --time-evidence rank --time-docs 20",
    "density-posterior": "--time-prior density --time-evidence posterior",
    "density-uniform": "--time-prior density --time-evidence uniform --bandwidth 2d",
    "local": "--background local --bandwidth 7d",
    "local-document": "--background local --background-at document --bandwidth 7d --hits 50",
    "feedback-query": "--feedback-time query",
    "feedback-mode": "--feedback-time mode --feedback-time-weight 0.5 --bandwidth 3d",
    "as-of": "--as-of query-time",
    "as-of-all": "--as-of query-time-inclusive --time-prior recency --feedback-time query "
    "--background local --bandwidth 7d",
    "as-of-density": "--as-of query-time --time-prior density",
    "density-document": "--time-prior density --background local --background-at document --bandwidth 7d --hits 50",
}
COLLECTIONS = {"demo": "3", "cranfield": "4", "cacm": "7", "microblog2011": "1"}  # and a topic of each to explain
TIMED = {"demo", "microblog2011"}  # topics with times
DATED = {*TIMED, "cacm"}


class Jobs:
    """The commands, one by one, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.digests, self.failed = folder, {}, []

    def run(self, name: str, command: str, output: str | None = None, drop: str = "") -> None:
        """One command: the digest of what it prints and, where ``output`` is given, of the file it writes.

        ``drop``: a pattern of what is not the same from run to run.
        """
        printed = io.StringIO()
        words = command.split()  # no path has a space
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
                parts.append(json.dumps([told.get("model"), told["parameters"]]))
        self.digests[name] = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
        self.failed += [name] if code else []
        print(f"{name:<55} {self.digests[name]} {code}", flush=True)


def collections(folder: Path, wanted: list[str]) -> Iterator[tuple[str, Path, str]]:
    """Name, index and the flags of the topics of each collection. The demo is always made: others learn from it."""
    from sdretrieval.collection.corpus import Reader
    from sdretrieval.index.lucene.indexing import build_index

    demo = folder / "demo"
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        sdretrieval(["demo", "--folder", str(demo), "--index", str(folder / "demo-index")])
    for name in wanted:
        if name == "demo":
            yield name, folder / "demo-index", f"--topics {demo / 'topics.jsonl'}"
            continue
        source = SHARED / name
        if not source.is_dir():
            print(f"{name}: not in ../shared/data, left out", file=sys.stderr)
            continue
        reader = Reader(date="date") if name in DATED else Reader()
        build_index(reader.read([source / "docs.jsonl.gz"]), folder / f"{name}-index", threads=1)
        times = f" --topic-times {source / 'topics.times.tsv'}" if name in TIMED else ""
        yield name, folder / f"{name}-index", f"--topics {source / 'topics.tsv'}{times}"


def time_options(name: str) -> dict[str, str]:
    """Those that have something to go by: an undated collection has one all the same, and says so."""
    if name not in DATED:
        return {"density": TIME["density"]}
    return {option: flags for option, flags in TIME.items() if name in TIMED or "--as-of" not in flags}


def rankings(jobs: Jobs, name: str, index: Path, topics: str) -> None:
    where, first = f"--index {index} {topics}", jobs.folder / f"{name}.bm25.txt"
    for model in MODELS:
        out = f"{name}.{model}.txt"
        search, saved = f"search {where} --model {model}", jobs.folder / f"{out}.expansion.jsonl"
        expands = not model.startswith("lucene")
        jobs.run(f"{name} search {model}", search + (f" --save-expansion {saved}" if expands else ""), out)
        if expands and saved.is_file():
            jobs.digests[f"{name} expansion {model}"] = hashlib.sha256(saved.read_bytes()).hexdigest()[:24]
            jobs.run(f"{name} replay {model}", f"{search} --expansion {saved}", f"{name}.{model}.replay.txt")
        options = {**TIMELESS, **time_options(name)}
        if name == "microblog2011":  # large: fewer models with each option
            options = options if model in ("bm25", "sd3", "rm") else {"as-of": TIME["as-of"]}
        for option, flags in options.items():
            flags += "" if "--hits" in flags else " --hits 200"
            jobs.run(f"{name} search {model} {option}", f"{search} {flags}", f"{name}.{model}.{option}.txt")
        if expands:
            rerank = f"rerank {where} --run {first} --model {model} --run-weight 0.3"
            jobs.run(f"{name} rerank {model}", rerank, f"{name}.{model}.rerank.txt")
    jobs.run(f"{name} threads", f"search {where} --threads 1", f"{name}.threads.txt")
    if name in TIMED:
        for kernel in kernel_names():
            for prior in ("recency", "density"):
                flags = f"--model bm25 --hits 200 --time-prior {prior} --kernel {kernel}"
                jobs.run(f"{name} kernel {kernel} {prior}", f"search {where} {flags}", f"{name}.{kernel}.{prior}.txt")
        past = f"rerank {where} --run {first} --as-of query-time --time-prior recency"
        jobs.run(f"{name} rerank as-of", past, f"{name}.rerank-as-of.txt")
    for model in ("bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3", "blend", "sdm"):
        explain = f"explain {where} --model {model} --qid {COLLECTIONS[name]}"
        jobs.run(f"{name} explain {model}", explain)
        jobs.run(f"{name} explain json {model}", f"{explain} --json")
    sd3, rm3 = (jobs.folder / f"{name}.{model}.txt.expansion.jsonl" for model in ("sd3", "rm3"))
    jobs.run(f"{name} expansion show", f"expansion show {sd3}")
    jobs.run(f"{name} expansion diff", f"expansion diff {sd3} {rm3}")


def evaluation(jobs: Jobs, name: str, index: Path, topics: str) -> None:
    qrels = jobs.folder / "demo" / "qrels.txt" if name == "demo" else SHARED / name / "qrels.txt"
    runs = [str(jobs.folder / f"{name}.{model}.txt") for model in ("bm25", "rm3", "sd3")]
    given = f"{qrels} {' '.join(runs)} --measures AP P@5 nDCG@10"
    jobs.run(f"{name} evaluate", f"evaluate {given} --baseline {runs[0]}")
    jobs.run(f"{name} evaluate each", f"evaluate {given} -q")
    jobs.run(f"{name} compare", f"compare {qrels} {' '.join(runs[1:])}")
    for method in ("combsum", "combmnz", "rrf"):
        jobs.run(f"{name} fuse {method}", f"fuse {' '.join(runs)} --method {method}", f"{name}.{method}.txt")
    report = f"report {given} {topics} --collection {name} --latex {jobs.folder / f'{name}.tex'}"
    jobs.run(f"{name} report", report, f"{name}.report.html", drop=r"\d{4}-\d\d-\d\dT[^\s\"]*|[0-9a-f]{32}")
    if name in ("demo", "cranfield"):
        tune = f"tune --index {index} {topics} --qrels {qrels} --model sd3 --method random --budget 6 --folds 3"
        jobs.run(f"{name} tune", tune, f"{name}.profile.json", drop=r"[\d.]+ (s|ms)\b")
    if name != "microblog2011":  # large
        judge = f"judge simulate --index {index} {topics.split(' --topic-times')[0]} --qrels {qrels} --json"
        jobs.run(f"{name} judge", judge, drop=r'"ms_per_click": [\d.e-]+')


def learning(jobs: Jobs, index: Path) -> None:
    demo, documents = jobs.folder / "demo", jobs.folder / "labelled.jsonl"
    label_demo(demo / "docs.jsonl", documents)
    for model in CLASSIFIERS:
        train = f"classify --train {documents} --model {model} --date-field date"
        jobs.run(f"classify {model}", f"{train} --input {documents}", f"classify.{model}.jsonl")
        jobs.run(f"classify held-out {model}", f"{train} --held-out 0.3 --json", drop=r'"seconds[^,}]*')
    for method in METHODS:
        evolve = f"evolve --input {documents} --method {method} --label-fraction 0.2"
        jobs.run(f"evolve {method}", evolve, f"evolve.{method}.jsonl")
    seeds = jobs.folder / "seeds.txt"
    lines = (demo / "qrels.txt").read_text(encoding="utf-8").splitlines()
    first = {line.split()[0]: line for line in reversed(lines) if line.split()[3] != "0"}
    seeds.write_text("\n".join(first[qid] for qid in sorted(first)[:8]) + "\n", encoding="utf-8")
    stories = {"queries": f"--topics {demo / 'topics.tsv'}", "seeds": f"--seeds {seeds} --forget tricube"}
    for model in ("tfidf", "rm", "nb", "sd"):
        run = jobs.folder / f"track.{model}.txt"
        for kind, given in stories.items():
            track = f"track --index {index} {given} --model {model} --adapt-threshold 0.02 --run {run} --hits 100"
            jobs.run(f"track {model} {kind}", track, f"track.{model}.{kind}.jsonl")
        jobs.run(f"tdt {model}", f"tdt {demo / 'qrels.txt'} {run} --documents 3000 -q")
    for loss in ("squared", "hellinger"):
        model = jobs.folder / f"{loss}.themes"
        how = f"--loss {loss} --n-topics 12 --bandwidth 5 --steps 3 --threads 1 --output {model}"
        jobs.run(f"themes fit {loss}", f"themes fit --input {demo / 'docs.jsonl'} {how}", drop=r"[\d.]+ s\b")
        jobs.run(f"themes show {loss}", f"themes show --model {model} --json")
        weights = f"themes transform --model {model} --index {index}"
        jobs.run(f"themes transform {loss}", weights, f"themes.{loss}.jsonl")
        for verb in ("segment", "strip"):
            one = f"themes {verb} --model {model} --index {index} --docid demo-000007 --segments 4"
            jobs.run(f"themes {verb} {loss}", one)
    jobs.run("drift", f"drift --index {index} --json")
    jobs.run("drift gaussian", f"drift --index {index} --kernel gaussian --bandwidth 9d --json")
    jobs.run("burstiness", f"burstiness --index {index} --json")
    jobs.run("burstiness as printed", f"burstiness --index {index} --as-printed --json")


def label_demo(source: Path, target: Path) -> None:
    """The demo's documents with a label each (the length class of the title): something to learn from."""
    with open(target, "w", encoding="utf-8") as out:
        for line in source.read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            words = document["contents"].lower().split()
            document["labels"] = "storm" if "wind" in words or "winds" in words else "rest"
            out.write(json.dumps(document) + "\n")


def compute(wanted: list[str]) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = Jobs(folder)
        for collection in collections(folder, wanted):
            rankings(jobs, *collection)
            evaluation(jobs, *collection)
            if collection[0] == "demo":
                learning(jobs, collection[1])
        if jobs.failed:
            print(f"ended with an error, of which the digest is: {', '.join(jobs.failed)}")
        return jobs.digests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "check"))
    several = {"nargs": "+", "choices": tuple(COLLECTIONS), "default": list(COLLECTIONS)}
    parser.add_argument("--collections", **several, help="only these; what learns is part of the demo")
    parser.add_argument("--record", type=Path, default=RECORD, metavar="FILE", help="default: %(default)s")
    args = parser.parse_args()
    if args.action == "check" and not args.record.is_file():
        parser.error("nothing was recorded: run `python -m benchmarks.digests record` on the code to compare with")
    found = compute(args.collections)
    recorded = json.loads(args.record.read_text(encoding="utf-8")) if args.record.is_file() else {}
    if args.action == "record":
        args.record.parent.mkdir(parents=True, exist_ok=True)
        args.record.write_text(json.dumps(recorded | found) + "\n", encoding="utf-8")
        print(f"{len(found)} digests in {args.record}")
        return 0
    recorded = {name: digest for name, digest in recorded.items() if collection_of(name) in args.collections}
    unlike = [name for name, digest in recorded.items() if found.get(name) != digest]
    for name in unlike:
        print(f"differs: {name}")
    new = len(found.keys() - recorded.keys())
    print(
        f"{len(recorded) - len(unlike)} of {len(recorded)} the same"
        + (f"; {new} more were not recorded" if new else "")
    )
    return 1 if unlike or not recorded else 0


def collection_of(job: str) -> str:
    """What learns is part of the demo."""
    first = job.partition(" ")[0]
    return first if first in COLLECTIONS else "demo"


if __name__ == "__main__":
    sys.exit(main())
