"""``sdretrieval search``: rank a whole collection for each topic."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sdretrieval.cli import options, time_options
from sdretrieval.core.errors import ParameterError

if TYPE_CHECKING:
    from sdretrieval.collection.records import Ranking, Run, Topic
    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.ranking.base import Plan, Ranker
    from sdretrieval.ranking.retrieval import Report

EXAMPLE = """\
examples:
  sdretrieval search --index indexes/mine --query "oil tanker spill"
  sdretrieval search --index indexes/mine --topics topics.tsv --output runs/blend.txt
  sdretrieval search --index indexes/mine --topics topics.tsv --model rm3 --profile anserini --output runs/rm3.txt
  sdretrieval search --index indexes/mine --topics topics.tsv --model sd --set fb_docs=50 --output runs/sd.txt
  sdretrieval search --index indexes/mine --topics topics.tsv --topic-times times.tsv --time-prior recency \\
      --as-of query-time --output runs/recent.txt
"""


# Flags that the manifest keeps besides the parameters of the model.
RECORDED = (
    "hits",
    "prune",
    "missing",
    "run_weight",
    "profile",
    "tag",
    "topic_field",
    "topic_format",
    "relevant",
    "nonrelevant",
    "language",
    "stemmer",
    "keep_stopwords",
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    options.add_index_argument(parser)
    add_output_arguments(parser, required=False)
    parser.add_argument("--hits", type=options.positive, metavar="N", help="default: 1000; of hits to read, 10")
    options.add_topic_arguments(parser, typed=True)
    options.add_model_arguments(parser)
    time_options.add_time_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    told = "the run; .gz compresses it, - is standard output"
    parser.add_argument("--output", required=required, metavar="FILE", help=told)
    told = "say in the run how it was made, as a comment (ir_metadata), which trec_eval does not read"
    parser.add_argument("--ir-metadata", action="store_true", help=told)
    parser.add_argument("--tag", help="last column of the run (default: the model's name)")
    options.add_threads_argument(parser)
    parser.add_argument(
        "--prune",
        type=options.positive,
        metavar="N",
        help="keep the N strongest words of the final query: faster, not exact; says what it gave up",
    )
    parser.add_argument("--save-expansion", metavar="FILE", help="write the estimated queries, to read, edit or replay")
    parser.add_argument("--expansion", metavar="FILE", help="rank with these queries instead of estimating them")


def check_outputs(args: argparse.Namespace) -> None:
    """Before any work: can the files be written at its end?"""
    from sdretrieval.core.files import STANDARD, check_writable

    for file in (args.output, args.save_expansion):
        if file and file != STANDARD:
            check_writable(file)


def run(args: argparse.Namespace) -> int:
    from sdretrieval.cli.ahead import postings_of
    from sdretrieval.core.compiled import plain_loops
    from sdretrieval.index.compact import FEW
    from sdretrieval.ranking.retrieval import search

    args.hits = args.hits or (1000 if args.output else 10)

    def rank(snapshot: Snapshot, topics: list[Topic], ranker: Ranker, **given: Any) -> Run:
        return search(snapshot, topics, ranker, hits=args.hits, **given)

    if args.query is None and args.output is None:
        raise ParameterError("a run of topics needs a place", remedy="Pass --output FILE, or - for standard output.")
    is_brief = args.query is not None and 0 < postings_of(args.index) <= FEW and not time_options.plays_a_part(args)
    with options.standard_input(args), plain_loops(is_brief):
        return rank_and_write(args, "search", rank, {"topics": args.topics})


def rank_and_write(args: argparse.Namespace, verb: str, rank: Callable[..., Run], inputs: dict[str, str]) -> int:
    """What search and rerank do; ``rank`` is the one of them."""
    from sdretrieval.ranking.retrieval import Report

    began = time.perf_counter()
    check_outputs(args)
    ranker, topics = time_options.time_from(args, options.ranker_from(args)), options.topics_from(args)
    snapshot, report = options.snapshot_from(args, ranker), Report()
    judged = options.judged_from(args, topics, snapshot)
    options.say_judged(judged, ranker, topics, snapshot)
    given: dict[str, Any] = {"threads": args.threads, "judged": judged, "prune": args.prune}
    given["plans"] = replayed_plans(args, snapshot)
    with saved_expansions(args, snapshot, ranker) as keep:
        found = rank(snapshot, topics, ranker, on_result=keep, report=report, **given)
    if time_options.plays_a_part(args):
        time_options.say_time(ranker, report, snapshot)
    if args.leak_check:
        time_options.say_leaks(found, ranker, topics, snapshot, lambda other: rank(snapshot, topics, other, **given))
    if args.output is None:
        from sdretrieval.cli.hit_list import print_hits

        print_hits(snapshot, topics[0], found[topics[0].qid])
        return 0
    write(args, verb, found, ranker, snapshot, report, began, inputs)
    return 0


def replayed_plans(args: argparse.Namespace, snapshot: Snapshot) -> dict[str, Plan] | None:
    """The queries of --expansion."""
    if not args.expansion:
        return None
    from sdretrieval.ranking.expansion import read_expansions

    dropped: list[str] = []
    missing = args.missing if "missing" in args else "error"
    plans = read_expansions(args.expansion, snapshot, missing=missing, dropped=dropped)
    if dropped:
        print(f"{len(dropped)} words of {args.expansion} are not in the index and were dropped", file=sys.stderr)
    return plans


def saved_expansions(args: argparse.Namespace, snapshot: Snapshot, ranker: Ranker) -> AbstractContextManager:
    """--save-expansion: written as queries are done, in place only when all are."""
    if not args.save_expansion:
        return nullcontext()
    from sdretrieval.ranking.expansion import ExpansionWriter

    return ExpansionWriter(args.save_expansion, snapshot, ranker.name)


def write(args, verb: str, found, ranker, snapshot, report, began: float, inputs: dict) -> None:
    """The run, its manifest, and a closing line."""
    _check_found(args, len(found), sum(map(len, found.values())), report)
    note = note_of(args, verb, ranker, snapshot, report, inputs) if args.ir_metadata else None
    with writing(args, found.tag, report, note) as written:
        for qid, ranking in found.items():
            written.add(qid, ranking)
    tell(args, verb, written, ranker, snapshot, report, began, inputs)


class Written:
    """What has been written to --output so far."""

    def __init__(self, write: Callable[[str, Ranking], None]) -> None:
        self._write, self.topics, self.documents, self.without = write, 0, 0, []  # type: ignore[var-annotated]

    def add(self, qid: str, ranking: Ranking) -> None:
        self._write(qid, ranking)
        self.topics += 1
        self.documents += len(ranking)
        if not len(ranking):
            self.without.append(qid)


@contextmanager
def writing(
    args: argparse.Namespace, tag: str, report: Report, note: Mapping[str, Any] | None = None
) -> Iterator[Written]:
    """The run, topic by topic; in place only when all are there, and any of them has documents.

    A pipe or device, where nothing can be taken back, gets it when all are there.
    """
    from sdretrieval.collection.trec import run_writer, write_run
    from sdretrieval.core.files import is_special
    from sdretrieval.ranking.manifest import ir_metadata

    tag = args.tag or tag
    metadata = ir_metadata(note, tag) if note else None
    if is_special(args.output):
        kept: dict[str, Ranking] = {}
        written = Written(kept.__setitem__)
        yield written
        _check_found(args, written.topics, written.documents, report)
        write_run(args.output, kept, tag, metadata)
        return
    with run_writer(args.output, tag, metadata) as write:
        written = Written(write)
        yield written
        _check_found(args, written.topics, written.documents, report)


def _check_found(args: argparse.Namespace, topics: int, documents: int, report: Report) -> None:
    from sdretrieval.core.errors import InputError

    if not topics:
        raise InputError("none of these topics is in the run", file=args.topics, remedy="Do the two belong together?")
    if not documents:
        why = "none of their words is in the index" if report.empty_topics else "nothing was found for any of them"
        raise InputError(
            f"no documents for these {topics} topics: {why}",
            file=args.topics,
            remedy="Is this the index that the topics are for?",
        )


def note_of(args, verb: str, ranker, snapshot, report: Report, inputs: dict) -> dict[str, Any]:
    """How a run was made."""
    from sdretrieval.ranking.manifest import ALONG_TIME, manifest

    settings = {name: getattr(args, name, None) for name in RECORDED}
    inputs = {**inputs, "times": args.topic_times, "expansion": args.expansion, "feedback": args.feedback_qrels}
    note = manifest(verb=verb, ranker=ranker, snapshot=snapshot, inputs=inputs, options=settings, command=args.command)
    if chosen := time_options.chosen_for_manifest(report):
        note["time prior by topic"] = chosen
    if curves := report.time_curves.items():
        note[ALONG_TIME] = {qid: [[t, round(rho, 3)] for t, rho in curve] for qid, curve in curves}
    return note


def tell(args, verb: str, written: Written, ranker, snapshot, report: Report, began: float, inputs: dict) -> None:
    """The manifest of a run that has been written, and a closing line."""
    from sdretrieval.core.files import is_special
    from sdretrieval.ranking.manifest import write_manifest

    if not is_special(args.output):  # a pipe has no place beside it
        write_manifest(args.output, note_of(args, verb, ranker, snapshot, report, inputs))
    say = lambda text: print(text, file=sys.stderr)  # noqa: E731
    if report.empty_topics:
        so = "they keep their order" if verb.endswith("rerank") else "no documents for them"
        say(f"no known word in topics {', '.join(report.empty_topics[:10])}: {so}")
    elif written.without:
        say(f"no documents for topics {', '.join(written.without[:10])}")
    if report.dropped:
        say(f"{report.dropped} documents of the run are not in the index and were dropped")
    if report.without_positions:
        say("the index has no positions of words: neighbouring words of the query were not looked for")
    if report.pruned:
        mean = sum(report.pruned) / len(report.pruned)
        say(f"pruning gave up {100 * mean:.2f} % of the weights on average, {100 * max(report.pruned):.2f} % at most")
    seconds = time.perf_counter() - began
    say(f"{args.output}: {written.topics} topics, {written.documents} documents, {seconds:.1f} s")
