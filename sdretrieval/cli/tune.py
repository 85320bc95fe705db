"""``sdretrieval tune``: choose a model's parameters on some topics, score them on others."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from sdretrieval.cli import options, time_options
from sdretrieval.cli.value_types import natural
from sdretrieval.core.errors import ParameterError

if TYPE_CHECKING:
    from sdretrieval.evaluate.fuse import Fusion
    from sdretrieval.evaluate.tune import FusionProblem, Problem
    from sdretrieval.ranking.base import Ranker

EXAMPLE = """\
examples:
  the thesis's hill climbing over all parameters, 5 folds; the winner as a profile for `search`:
    sdretrieval tune --index indexes/mine --topics topics.tsv --qrels qrels.txt --model sd3 --output sd3.json
    sdretrieval search --index indexes/mine --topics topics.tsv --model sd3 --profile sd3.json --output runs/tuned.txt

  a grid over two parameters, values given for one; killed and started again, it goes on where it was:
    sdretrieval tune --index indexes/mine --topics topics.tsv --qrels qrels.txt --model ql --method grid \\
        --params smoothing mu=100,500,1000,2000 --output ql.json --trace ql.trace.jsonl

  the weights of runs that are to be fused, and then the fused run:
    sdretrieval tune --fuse runs/bm25.txt runs/sd3.txt --qrels qrels.txt --output weights.json
    sdretrieval fuse runs/bm25.txt runs/sd3.txt --profile weights.json --output runs/fused.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    options.add_index_argument(parser, required=False)
    parser.add_argument("--qrels", required=True, metavar="FILE", help="judgments")
    parser.add_argument("--run", dest="run_file", metavar="FILE", help="tune re-ranking of this run instead of search")
    parser.add_argument(
        "--fuse", nargs="+", metavar="RUN", help="tune the weights of these runs, to be fused, instead of a model"
    )
    parser.add_argument("--output", required=True, metavar="PROFILE", help="the winning parameters, for --profile")
    parser.add_argument("--trace", metavar="JSONL", help="every setting's values (default: PROFILE.trace.jsonl)")
    parser.add_argument(
        "--params",
        nargs="+",
        default=[],
        metavar="NAME[=V,V…]",
        help="default: all with a grid; of --fuse, all weights",
    )
    parser.add_argument("--method", choices=("hill", "grid", "random"), default="hill", help="default: %(default)s")
    parser.add_argument(
        "--budget",
        type=options.positive,
        default=500,
        metavar="N",
        help="settings at most; for hill, of each climb (default: %(default)s)",
    )
    parser.add_argument("--folds", type=int, default=5, metavar="K", help="folds by topic (default: %(default)s)")
    parser.add_argument("--measure", default="AP", help="what to climb (default: %(default)s)")
    parser.add_argument("--hits", type=options.positive, default=1000, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=natural, default=0, help="of folds and samples (default: %(default)s)")
    parser.add_argument("--missing", choices=("error", "drop"), default="error", help="as in `rerank`")
    options.add_threads_argument(parser)
    options.add_topic_arguments(parser, required=False)
    options.add_model_arguments(parser, judged=False)
    time_options.add_time_arguments(parser, leak_check=False)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.files import check_writable
    from sdretrieval.evaluate import compare_values
    from sdretrieval.evaluate.tune import tune, write_profile
    from sdretrieval.ranking.base import Ranker
    from sdretrieval.ranking.wrapper import innermost

    began = time.perf_counter()
    trace = args.trace or f"{args.output}.trace.jsonl"
    for path in (args.output, trace):
        check_writable(path)
    problem, ranker, space = fusion_problem(args) if args.fuse else model_problem(args)
    found = tune(
        problem, ranker, space, method=args.method, budget=args.budget, folds=args.folds, seed=args.seed, trace=trace
    )
    best = ranker.with_(**found.settings)
    write_profile(args.output, innermost(best) if isinstance(best, Ranker) else best)  # of the model, not of its time
    compared = compare_values(found.values, found.default_values, measure=args.measure)
    print(f"{args.measure}, mean over {len(found.values)} topics")
    print(f"  as started             {found.default_mean:.4f}")
    print(f"  tuned, cross-validated {found.mean:.4f}   {args.folds} folds; no topic chose its own setting")
    print(f"  difference             {compared.difference:+.4f}   p = {compared.tests['t'].p_value:.3g} (paired t)")
    print("chosen on all topics:")
    for name, value in found.settings.items():
        print(f"  {name} = {value}")
    seconds = time.perf_counter() - began
    resumed = f", {found.resumed} of them from the trace" if found.resumed else ""
    print(f"{args.output}: {found.tried} settings{resumed}, {seconds:.1f} s", file=sys.stderr)
    return 0


def model_problem(args: argparse.Namespace) -> tuple[Problem, Ranker, dict[str, tuple]]:
    """A model over an index: what is tuned, and the values to try."""
    from sdretrieval.collection.trec import read_run
    from sdretrieval.evaluate.tune import Problem, space_of
    from sdretrieval.plugins.named import qrels_of
    from sdretrieval.ranking.retrieval import candidates_of, queries_of

    for flag in ("index", "topics"):
        if getattr(args, flag) is None:
            raise ParameterError(f"--{flag} is needed to tune a model", remedy="Only --fuse, for runs, does without.")
    ranker = options.ranker_from(args)
    with options.standard_input(args):
        topics = options.topics_from(args)
    snapshot = options.snapshot_from(args, ranker)
    space = space_of(ranker, args.params)
    candidates = None
    if args.run_file:
        topics, candidates = candidates_of(snapshot, read_run(args.run_file), topics, args.missing)
    problem = Problem(
        snapshot,
        queries_of(snapshot, topics),
        qrels_of(args.qrels),
        measure=args.measure,
        hits=args.hits,
        threads=args.threads,
        candidates=candidates,
    )
    return problem, time_options.time_from(args, ranker), space


def fusion_problem(args: argparse.Namespace) -> tuple[FusionProblem, Fusion, dict[str, tuple]]:
    """Runs to be fused: what is tuned, and the values to try."""
    from sdretrieval.core.parameters import read_settings
    from sdretrieval.evaluate.fuse import Fusion
    from sdretrieval.evaluate.inputs import read_runs
    from sdretrieval.evaluate.tune import FusionProblem, fusion_space
    from sdretrieval.plugins.named import qrels_of

    for flag, given in (("--index", args.index), ("--topics", args.topics), ("--run", args.run_file)):
        if given is not None:
            raise ParameterError(f"{flag} is for tuning a model, --fuse for runs", remedy="Drop one of the two.")
    runs = {named.name: named.run for named in read_runs(args.fuse)}
    if len(runs) < 2:
        raise ParameterError("fusing takes two runs", remedy="Name another run after --fuse.")
    fusion = Fusion(weights=dict.fromkeys(runs, 1.0))
    fusion = fusion.with_(**read_settings(fusion.name, fusion.domains(), args.settings, see="sdretrieval fuse -h"))
    problem = FusionProblem(runs, qrels_of(args.qrels), measure=args.measure, hits=args.hits)
    return problem, fusion, fusion_space(fusion, args.params)
