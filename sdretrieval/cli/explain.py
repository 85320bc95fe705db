"""``sdretrieval explain``: what a model learnt for one query, and why a document ranks where it does."""

from __future__ import annotations

import argparse
import json

from sdretrieval.cli import options, time_options
from sdretrieval.collection.records import Ranking, Topic
from sdretrieval.core.errors import InputError, ParameterError, few

EXAMPLE = """\
examples:
  sdretrieval explain --index indexes/mine --query "boundary layer transition"
  sdretrieval explain --index indexes/mine --topics topics.tsv --qid 12 --model rm3 --docid 184 --text
  sdretrieval explain --index indexes/mine --topics topics.tsv --qid 12 --docid 184 --compare-docid 329
  sdretrieval explain --index indexes/mine --topics topics.tsv --qid 12 --run runs/bm25.txt --model sd --json
  sdretrieval explain --index indexes/mine --topics topics.tsv --qid 12 --docid 184 --time-prior auto

A document's words, with what is listed below them, add up to its score.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    options.add_index_argument(parser)
    parser.add_argument("--query", metavar="TEXT", help="a query, instead of a topic of a file")
    parser.add_argument("--qid", metavar="ID", help="which topic of --topics")
    parser.add_argument("--docid", metavar="ID", help="take this document's score apart")
    parser.add_argument("--compare-docid", metavar="ID", help="and compare it with this one's")
    parser.add_argument("--run", dest="run_file", metavar="FILE", help="explain the reranking of this run")
    parser.add_argument("--expansion", metavar="FILE", help="explain the replay of this saved expansion")
    parser.add_argument(
        "--hits", type=options.positive, default=1000, metavar="N", help="how deep a run is (default: %(default)s)"
    )
    parser.add_argument(
        "--top", type=options.positive, default=20, metavar="N", help="rows of each table (default: %(default)s)"
    )
    parser.add_argument("--text", action="store_true", help="show titles or first words of documents")
    parser.add_argument("--json", action="store_true", help="for scripts; lists all words of a document")
    options.add_threads_argument(parser)
    options.add_topic_arguments(parser, required=False)
    options.add_model_arguments(parser)
    time_options.add_time_arguments(parser, leak_check=False)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.cli.bar_tables import terminal_width
    from sdretrieval.cli.explain_text import explanation_text, with_texts
    from sdretrieval.ranking.expansion import read_expansions
    from sdretrieval.ranking.explain import explain
    from sdretrieval.ranking.retrieval import replaying

    if args.compare_docid is not None and args.docid is None:
        raise ParameterError("--compare-docid needs a document to compare with", remedy="Give it as --docid.")
    ranker = time_options.time_from(args, options.ranker_from(args))
    with options.standard_input(args):
        topic = topic_from(args)
    snapshot = options.snapshot_from(args, ranker)
    if args.expansion is not None:
        ranker = replaying(ranker, read_expansions(args.expansion, snapshot))
    explanation = explain(
        snapshot,
        topic,
        ranker,
        args.docid,
        threads=args.threads,
        hits=args.hits,
        judged=options.judged_from(args, [topic], snapshot),
        compare=args.compare_docid,
        run=ranking_from(args, topic),
    )
    if args.text:
        if snapshot.index is None:
            raise ParameterError("--text needs an index on disk")
        explanation = with_texts(explanation, snapshot.index, args.top)
    if args.json:
        print(json.dumps(explanation.to_json(args.top), ensure_ascii=False, indent=1))
    else:
        print(explanation_text(explanation, terminal_width(), args.top))
    return 0


def topic_from(args: argparse.Namespace) -> Topic:
    """The topic asked about, from --query or from --topics and --qid."""
    if (args.query is None) == (args.topics is None):
        raise ParameterError("give either --query TEXT, or --topics FILE with --qid ID")
    if args.query is not None:
        return Topic(args.qid or "query", args.query)
    topics = {topic.qid: topic for topic in options.topics_from(args)}
    if args.qid is None:
        if len(topics) == 1:
            return next(iter(topics.values()))
        raise ParameterError(f"--topics has {len(topics)} topics", remedy=f"Choose one with --qid: {few(topics)}.")
    if args.qid not in topics:
        raise InputError(f"no topic {args.qid!r} in it", file=args.topics, remedy=f"It has {few(topics)}.")
    return topics[args.qid]


def ranking_from(args: argparse.Namespace, topic: Topic) -> Ranking | None:
    if args.run_file is None:
        return None
    from sdretrieval.collection.trec import read_run

    given = read_run(args.run_file)
    if topic.qid not in given:
        raise InputError(f"no topic {topic.qid!r} in it", file=args.run_file, remedy="Choose another --qid.")
    return given[topic.qid]
