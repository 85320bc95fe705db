"""``sdretrieval fuse RUN …``: one run out of several."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sdretrieval.cli import options
from sdretrieval.core.errors import ParameterError, few

if TYPE_CHECKING:
    from sdretrieval.collection.records import Run
    from sdretrieval.evaluate.fuse import Fusion

# As evaluate/fuse.py has them: `--help` need not load what ranks.
METHODS, NORMALISATIONS = ("combsum", "combmnz", "rrf"), ("minmax", "z", "rank", "none")

EXAMPLE = """\
examples:
  sdretrieval fuse runs/bm25.txt runs/rm3.txt runs/sd3.txt --output runs/sum.txt
  sdretrieval fuse runs/bm25.txt runs/sd3.txt --method rrf --k 30 --output runs/rrf.txt
  sdretrieval fuse runs/bm25.txt runs/sd3.txt --normalise z --weights 0.5 1 --output runs/weighted.txt

  weights chosen on judged topics (and scored on others), then used:
    sdretrieval tune --fuse runs/bm25.txt runs/sd3.txt --qrels qrels.txt --output weights.json
    sdretrieval fuse runs/bm25.txt runs/sd3.txt --profile weights.json --output runs/fused.txt

combsum adds the runs' scores, each run's normalised over its list of the topic; combmnz multiplies the sum by the
number of runs that have the document; rrf adds 1 / (k + rank). What a run does not have gets nothing from it.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("runs", metavar="RUN", nargs="+", help="TREC run, or NAME=RUN to choose its name")
    parser.add_argument("--output", required=True, metavar="FILE", help="the fused run; .gz compresses it")
    parser.add_argument("--method", choices=METHODS, help="default: combsum")
    parser.add_argument("--normalise", choices=NORMALISATIONS, help="scores to one scale (default: minmax)")
    parser.add_argument("--weights", nargs="+", type=float, metavar="W", help="one for each run (default: all alike)")
    parser.add_argument("--k", type=float, help="constant of rrf (default: 60)")
    parser.add_argument(
        "--profile", metavar="FILE", help="method, normalisation and weights as `tune --fuse` wrote them"
    )
    parser.add_argument("--depth", type=options.positive, metavar="N", help="take the first N documents of each run")
    parser.add_argument("--hits", type=options.positive, default=1000, metavar="N", help="default: %(default)s")
    parser.add_argument("--tag", default="fuse", help="last column of the run (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.collection.trec import write_run
    from sdretrieval.core.files import check_writable, is_special
    from sdretrieval.evaluate.fuse import fused
    from sdretrieval.evaluate.inputs import read_runs, split_names
    from sdretrieval.ranking.manifest import manifest, write_manifest

    began = time.perf_counter()
    check_writable(args.output)
    files = dict(split_names(args.runs))
    if len(files) < 2:
        raise ParameterError("fusing takes two runs", remedy="Name another run.")
    fusion = fusion_from(args, list(files))
    runs = {named.name: named.run for named in read_runs(args.runs)}
    found = fused(runs, fusion, depth=args.depth, hits=args.hits, tag=args.tag)
    write_run(args.output, found)
    if not is_special(args.output):  # a pipe has no place beside it
        inputs = {f"run {name}": path for name, path in files.items()} | {"profile": args.profile}
        settings = {"hits": args.hits, "depth": args.depth, "tag": args.tag}
        note = manifest(
            verb="fuse", parameters=fusion.settings(), inputs=inputs, options=settings, command=args.command
        )
        write_manifest(args.output, note)
    say_lacking(runs, found)
    seconds = time.perf_counter() - began
    documents = sum(map(len, found.values()))
    print(f"{args.output}: {len(found)} topics, {documents} documents, {seconds:.1f} s", file=sys.stderr)
    return 0


def fusion_from(args: argparse.Namespace, names: list[str]) -> Fusion:
    """The flags, over those of the profile."""
    from sdretrieval.evaluate.fuse import Fusion, read_fusion

    fusion = Fusion(weights=dict.fromkeys(names, 1.0))
    if args.profile is not None:
        fusion = read_fusion(args.profile, fusion)
    if args.weights is not None:
        if len(args.weights) != len(names):
            raise ParameterError(f"{len(args.weights)} weights for {len(names)} runs", remedy="Give one for each.")
        fusion = fusion.with_(**dict(zip(fusion.weight_names, args.weights, strict=True)))
    given = {name: value for name in ("method", "normalise", "k") if (value := getattr(args, name)) is not None}
    fusion = fusion.with_(**given)
    if fusion.method == "rrf" and args.normalise is not None:
        raise ParameterError("rrf takes ranks, not scores: nothing to normalise", remedy="Drop --normalise.")
    if fusion.method != "rrf" and args.k is not None:
        raise ParameterError(f"{fusion.method} has no k", remedy="Pass --method rrf, or drop --k.")
    return fusion


def say_lacking(runs: Mapping[str, Run], found: Run) -> None:
    """Topics that not every run has: their documents get nothing from the others."""
    for name, one in runs.items():
        lacking = [qid for qid in found if qid not in one]
        if lacking:
            print(f"{name} has nothing for {len(lacking)} of {len(found)} topics ({few(lacking)})", file=sys.stderr)
