"""``sdretrieval search``: rank a whole collection for each topic."""

from __future__ import annotations

import argparse
import sys
import time

from sdretrieval.cli import options, time_options

EXAMPLE = """\
examples:
  sdretrieval search --index indexes/mine --topics topics.tsv --output runs/sd3.txt
  sdretrieval search --index indexes/mine --topics topics.tsv --model rm3 --profile anserini --output runs/rm3.txt
  sdretrieval search --index indexes/mine --topics topics.tsv --model sd --set fb_docs=50 --output runs/sd.txt
  sdretrieval search --index indexes/mine --topics topics.tsv --topic-times times.tsv --time-prior recency \\
      --as-of query-time --output runs/recent.txt
"""


# Flags that the manifest keeps besides the parameters of the model.
RECORDED = (
    "hits", "prune", "missing", "run_weight", "profile", "tag",
    "topic_field", "topic_format", "relevant", "nonrelevant",
)  # fmt: skip


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    options.add_index_argument(parser)
    add_output_arguments(parser)
    parser.add_argument("--hits", type=options.positive, default=1000, metavar="N", help="default: %(default)s")
    options.add_topic_arguments(parser)
    options.add_model_arguments(parser)
    time_options.add_time_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", required=True, metavar="FILE", help="the run; .gz compresses it")
    parser.add_argument("--tag", help="last column of the run (default: the model's name)")
    options.add_threads_argument(parser)
    parser.add_argument(
        "--prune", type=options.positive, metavar="N",
        help="keep the N strongest words of the final query: faster, not exact; says what it gave up",
    )  # fmt: skip
    parser.add_argument("--save-expansion", metavar="FILE", help="write the estimated queries, to read, edit or replay")
    parser.add_argument("--expansion", metavar="FILE", help="rank with these queries instead of estimating them")


def check_outputs(args: argparse.Namespace) -> None:
    """Before any work: can the files be written at its end?"""
    from sdretrieval.files import check_writable

    check_writable(args.output)
    if args.save_expansion:
        check_writable(args.save_expansion)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.retrieval import Report, as_snapshot, search

    began = time.perf_counter()
    check_outputs(args)
    ranker, topics = time_options.time_from(args, options.ranker_from(args)), options.topics_from(args)
    snapshot = as_snapshot(args.index)
    judged, report = options.judged_from(args, topics, snapshot), Report()
    options.say_judged(judged, ranker, topics, snapshot)
    with Expansions(args, snapshot, ranker) as expansions:
        found = search(
            snapshot, topics, ranker, hits=args.hits, threads=args.threads, judged=judged,
            prune=args.prune, plans=expansions.plans, on_result=expansions.keep, report=report,
        )  # fmt: skip
    time_options.say_time(ranker, report, snapshot)
    if args.leak_check:
        time_options.say_leaks(
            found, ranker, topics, snapshot,
            lambda other: search(
                snapshot, topics, other, hits=args.hits, threads=args.threads,
                judged=judged, prune=args.prune, plans=expansions.plans,
            ),
        )  # fmt: skip
    write(args, "search", found, ranker, snapshot, report, began, {"topics": args.topics})
    return 0


class Expansions:
    """--expansion in, --save-expansion out (written as queries are done, in place only when all are)."""

    def __init__(self, args: argparse.Namespace, snapshot, ranker) -> None:
        from sdretrieval.ranking import expansion

        self.plans, dropped = None, []  # type: ignore[var-annotated]
        if args.expansion:
            missing = getattr(args, "missing", "error")
            self.plans = expansion.read_expansions(args.expansion, snapshot, missing=missing, dropped=dropped)
        if dropped:
            print(f"{len(dropped)} words of {args.expansion} are not in the index and were dropped", file=sys.stderr)
        self.writer = None
        if args.save_expansion:
            self.writer = expansion.ExpansionWriter(args.save_expansion, snapshot, ranker.name)
        self.keep = self.writer

    def __enter__(self) -> Expansions:
        if self.writer is not None:
            self.writer.__enter__()
        return self

    def __exit__(self, *reason) -> None:
        if self.writer is not None:
            self.writer.__exit__(*reason)


def write(args, verb: str, found, ranker, snapshot, report, began: float, inputs: dict) -> None:
    """The run, its manifest, and a closing line."""
    from sdretrieval.errors import InputError
    from sdretrieval.files import is_special
    from sdretrieval.manifest import manifest, write_manifest
    from sdretrieval.records import Run
    from sdretrieval.trec import write_run

    without = [qid for qid, ranking in found.items() if not len(ranking)]
    if not found:
        raise InputError("none of these topics is in the run", file=args.topics, remedy="Do the two belong together?")
    if len(without) == len(found):
        why = "none of their words is in the index" if report.empty_topics else "nothing was found for any of them"
        raise InputError(
            f"no documents for these {len(found)} topics: {why}", file=args.topics,
            remedy="Is this the index that the topics are for?",
        )  # fmt: skip
    write_run(args.output, Run(found.rankings, args.tag or found.tag))
    settings = {name: getattr(args, name, None) for name in RECORDED}
    inputs = {**inputs, "times": args.topic_times, "expansion": args.expansion, "feedback": args.feedback_qrels}
    if not is_special(args.output):  # a pipe has no place beside it
        note = manifest(
            verb=verb, ranker=ranker, snapshot=snapshot, inputs=inputs, options=settings, command=args.command
        )
        write_manifest(args.output, note)
    say = lambda text: print(text, file=sys.stderr)  # noqa: E731
    if report.empty_topics:
        so = "they keep their order" if verb.endswith("rerank") else "no documents for them"
        say(f"no known word in topics {', '.join(report.empty_topics[:10])}: {so}")
    elif without:
        say(f"no documents for topics {', '.join(without[:10])}")
    if report.dropped:
        say(f"{report.dropped} documents of the run are not in the index and were dropped")
    if report.pruned:
        mean = sum(report.pruned) / len(report.pruned)
        say(f"pruning gave up {100 * mean:.2f} % of the weights on average, {100 * max(report.pruned):.2f} % at most")
    hits = sum(len(ranking) for ranking in found.rankings.values())
    seconds = time.perf_counter() - began
    say(f"{args.output}: {len(found)} topics, {hits} documents, {seconds:.1f} s")
