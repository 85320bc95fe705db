"""``sdretrieval demo``: the whole way once, on a collection the project generates itself.

Every step is a command that is printed before it runs, so that it can be typed again with other files.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from pathlib import Path

from sdretrieval.cli.value_types import natural
from sdretrieval.core.errors import ParameterError, SdretrievalError

EXAMPLE = """\
example:
  sdretrieval demo --folder runs/demo --index indexes/demo
"""

# name in the table -> flags of `sdretrieval search`. Judgments stop at the query's time, so every ranking does.
AS_OF = ["--as-of", "query-time"]
RUNS: dict[str, list[str]] = {
    "QL": ["--model", "ql"],
    "BM25": ["--model", "bm25"],
    "RM": ["--model", "rm"],
    "RM3": ["--model", "rm3"],
    "SD-EM": ["--model", "sd"],
    "SD3": ["--model", "sd3"],
    "SD-EM+time": ["--model", "sd", "--time-prior", "recency"],
    "SD3+time": ["--model", "sd3", "--time-prior", "recency"],
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("--folder", default="runs/demo", metavar="DIR", help="collection, runs and report go there")
    parser.add_argument("--index", default="indexes/demo", metavar="DIR", help="the Lucene index")
    parser.add_argument("--seed", type=natural, default=None, help="of the generator (default: the documented one)")
    parser.add_argument("--documents", type=int, default=3000, metavar="N", help="default: %(default)s")
    parser.add_argument("--topics", type=int, metavar="N", help="default: 50, or one for every 20 documents")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.demo import DEFAULT_SEED, write_demo

    began = time.perf_counter()
    seed = DEFAULT_SEED if args.seed is None else args.seed
    folder, index = Path(args.folder), Path(args.index)
    say(f"# a synthetic news stream of {args.documents} documents, seed {seed} (see docs/DEMO.md)")
    topics = max(1, min(50, args.documents // 20)) if args.topics is None else args.topics
    files = write_demo(folder, seed=seed, n_docs=args.documents, n_topics=topics)
    _index_once(files.documents, index)
    say("# rankings: query likelihood, relevance models, smoothed-Dirichlet feedback, without and with time")
    runs = {name: folder / f"{name.lower()}.txt" for name in RUNS}
    for name, flags in RUNS.items():
        output = ["--tag", name, "--save-expansion", f"{runs[name]}.expansion.jsonl", "--output", runs[name]]
        do("search", "--index", index, "--topics", files.topics, *flags, *AS_OF, *output)
    named = [f"{name}={path}" for name, path in runs.items()]
    say("# how good they are; the first run is the baseline of the significance tests")
    do("evaluate", files.qrels, *named, "--measures", "AP", "P@5", "--baseline", "QL", "--test", "t", "wilcoxon")
    page = folder / "report.html"
    beside = ["--topics", files.topics, "--documents", files.documents]
    do("report", files.qrels, *named, *beside, "--title", "The demo collection", "--output", page)
    say(f"\nruns, with manifests and expanded queries beside them: {folder}\nreport: {page}")
    say(f"done in {time.perf_counter() - began:.1f} s")
    say(f"\nlook around in the browser:  sdretrieval serve --index {shlex.quote(str(index))}")
    return 0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def do(*words: object) -> None:
    """Print a command and run it in this process: the JVM starts once."""
    from sdretrieval.cli.main import main

    command = [str(word) for word in words]
    say(f"$ sdretrieval {shlex.join(command)}")
    code = main(command)
    if code == 130:  # Ctrl-C ends the demo too
        raise KeyboardInterrupt
    if code:
        raise SdretrievalError(f"the step above ended with code {code}")


def _index_once(documents: Path, index: Path) -> None:
    """Index the collection, unless this very collection is indexed there already; never over anything else."""
    from sdretrieval.core.files import atomic_writer
    from sdretrieval.ranking.manifest import file_digest

    stamp, digest = index / "demo.txt", file_digest(documents)
    if stamp.is_file() and stamp.read_text().strip() == digest:
        say(f"# {index} holds it already")
        return
    if index.exists() and not stamp.is_file():
        raise ParameterError(f"{index} exists and is not the demo's", remedy="Give another place with --index.")
    do("index", "--input", documents, "--index", index, "--date-field", "date", "--overwrite")
    with atomic_writer(stamp) as out:
        out.write(digest + "\n")
