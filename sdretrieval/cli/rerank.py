"""``sdretrieval rerank``: rescore the documents of any TREC run."""

from __future__ import annotations

import argparse
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from sdretrieval.cli import options, time_options
from sdretrieval.cli.search import add_output_arguments, rank_and_write
from sdretrieval.core.errors import few

if TYPE_CHECKING:
    from sdretrieval.collection.records import Run, Topic
    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.ranking.base import Ranker

EXAMPLE = """\
examples:
  sdretrieval rerank --index indexes/mine --run runs/bm25.txt --topics topics.tsv --output runs/blend.txt
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
        "--missing",
        choices=("error", "drop"),
        default="error",
        help="documents that are not in the index, topics without a text (default: error)",
    )
    parser.add_argument(
        "--run-weight",
        type=float,
        default=0.0,
        metavar="W",
        help="mix the run's own scores in, standardised per topic: (1-W) model + W run (default: 0)",
    )
    options.add_topic_arguments(parser)
    options.add_model_arguments(parser)
    time_options.add_time_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.collection.trec import read_run
    from sdretrieval.ranking.retrieval import rerank

    read = cache(read_run)  # when all is known to be in place, and once

    def rank(snapshot: Snapshot, topics: list[Topic], ranker: Ranker, **settings: Any) -> Run:
        given = read(args.run_file)
        if "report" in settings:  # once, not for the leak check too
            say_unmatched({topic.qid for topic in topics}, given)
        settings.update(hits=args.hits, missing=args.missing, run_weight=args.run_weight)
        return rerank(snapshot, given, topics, ranker, **settings)

    with options.standard_input(args):
        return rank_and_write(args, "rerank", rank, {"topics": args.topics, "run": args.run_file})


def say_unmatched(topics: set[str], given: Run) -> None:
    """Topics that only one of the two files has: nothing can be reranked for them."""
    for qids, told in (
        ([qid for qid in topics if qid not in given], "are not in the run: no documents for them"),
        ([qid for qid in given if qid not in topics], "of the run have no text and were dropped"),
    ):
        if qids:
            print(f"{len(qids)} topics {told} ({few(sorted(qids))})", file=sys.stderr)
