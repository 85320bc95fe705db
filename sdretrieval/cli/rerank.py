"""``sdretrieval rerank``: rescore the documents of any TREC run."""

from __future__ import annotations

import argparse
import sys
import time

from sdretrieval.cli import options, time_options
from sdretrieval.cli.search import Expansions, add_output_arguments, check_outputs, write
from sdretrieval.records import Run

EXAMPLE = """\
examples:
  sdretrieval rerank --index indexes/mine --run runs/bm25.txt --topics topics.tsv --output runs/sd3.txt
  sdretrieval rerank --index indexes/mine --run runs/bm25.txt --topics topics.tsv --topic-times times.tsv \\
      --time-prior recency --output runs/recent.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    options.add_index_argument(parser)
    parser.add_argument("--run", dest="run_file", required=True, metavar="FILE", help="a TREC run, plain or .gz")
    add_output_arguments(parser)
    parser.add_argument("--hits", type=options.positive, metavar="N", help="default: as many as the run has")
    parser.add_argument(
        "--missing", choices=("error", "drop"), default="error",
        help="documents that are not in the index, topics without a text (default: error)",
    )  # fmt: skip
    parser.add_argument(
        "--run-weight", type=float, default=0.0, metavar="W",
        help="mix the run's own scores in, standardised per topic: (1-W) model + W run (default: 0)",
    )  # fmt: skip
    options.add_topic_arguments(parser)
    options.add_model_arguments(parser)
    time_options.add_time_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.retrieval import Report, as_snapshot, rerank
    from sdretrieval.trec import read_run

    began = time.perf_counter()
    check_outputs(args)
    ranker, topics = time_options.time_from(args, options.ranker_from(args)), options.topics_from(args)
    snapshot = as_snapshot(args.index)
    judged, report = options.judged_from(args, topics, snapshot), Report()
    options.say_judged(judged, ranker, topics, snapshot)
    given = read_run(args.run_file)
    with Expansions(args, snapshot, ranker) as expansions:
        found = rerank(
            snapshot, given, topics, ranker, hits=args.hits, threads=args.threads, missing=args.missing,
            judged=judged, prune=args.prune, plans=expansions.plans,
            on_result=expansions.keep, report=report, run_weight=args.run_weight,
        )  # fmt: skip
    time_options.say_time(ranker, report, snapshot)
    if args.leak_check:
        time_options.say_leaks(
            found, ranker, topics, snapshot,
            lambda other: rerank(
                snapshot, given, topics, other, hits=args.hits, threads=args.threads, missing=args.missing,
                judged=judged, prune=args.prune, plans=expansions.plans, run_weight=args.run_weight,
            ),
        )  # fmt: skip
    say_unmatched({topic.qid for topic in topics}, given)
    write(args, "rerank", found, ranker, snapshot, report, began, {"topics": args.topics, "run": args.run_file})
    return 0


def say_unmatched(topics: set[str], given: Run) -> None:
    """Topics that only one of the two files has: nothing can be reranked for them."""
    for qids, told in (
        ([qid for qid in topics if qid not in given], "are not in the run: no documents for them"),
        ([qid for qid in given if qid not in topics], "of the run have no text and were dropped"),
    ):
        if qids:
            print(f"{len(qids)} topics {told} ({', '.join(sorted(qids)[:10])})", file=sys.stderr)
