"""``sdretrieval spark …``: shards instead of one index, ranked exactly as one index would be, on Apache Spark."""

from __future__ import annotations

import argparse
import csv
import json
import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sdretrieval.cli import index, options, rerank, search, time_options
from sdretrieval.core.errors import IndexProblem, ParameterError, few
from sdretrieval.plugins.spark import BATCH

EXAMPLE = """\
examples:
  sdretrieval spark index --input corpus/ --index collections/news --shards 8 --date-field date
  sdretrieval spark search --index collections/news --topics topics.tsv --output runs/blend.txt

Spark needs a Java of its own: see docs/SPARK.md, also on how to start it on clusters.
"""
INDEX_EXAMPLE = """\
examples:
  sdretrieval spark index --input corpus/ --index collections/news --shards 8 --date-field date
  sdretrieval spark index --master yarn --input hdfs://head/corpus --index hdfs://head/collections/news --shards 200
"""
SEARCH_EXAMPLE = """\
examples:
  sdretrieval spark search --index collections/news --topics topics.tsv --output runs/blend.txt
  sdretrieval spark search --master spark://head:7077 --index /mnt/news --topics topics.tsv --topic-times times.tsv \\
      --time-prior recency --as-of query-time --output runs/recent.txt

Finished batches wait in OUTPUT.parts: the same command, started again, goes on after them.
"""
RERANK_EXAMPLE = """\
example:
  sdretrieval spark rerank --index collections/news --run runs/bm25.txt --topics topics.tsv --output runs/blend.txt
"""
CLASSIFY_EXAMPLE = """\
example:
  sdretrieval spark classify --index collections/news --load topics.model --output labels.tsv

One line a document: docid, its labels (separated by commas), and the highest score.
"""
DRIFT_EXAMPLE = """\
example:
  sdretrieval spark drift --index collections/news --words oil tariff --bandwidth 14d --output drift.csv

The curves and 95 % bands of `sdretrieval drift`, which on a sample finds a bandwidth.
"""

ADDRESSES = "mounted on all machines, or an address (hdfs://…, s3a://…)"
# Small files are read and written by this process.
FILES = "topics topic_times feedback_qrels profile run_file expansion save_expansion load output".split()


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (text, setup, _, example) in ACTIONS.items():
        sub = actions.add_parser(
            name,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        setup(sub)
        sub.epilog = example
        add = sub.add_argument_group("Spark").add_argument
        masters = "local[4], spark://host:7077, yarn, k8s://… (default: as Spark's settings say, or local[*])"
        add("--master", metavar="URL", help=masters)
        add("--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated")


def _change_help(parser: argparse.ArgumentParser, **texts: str) -> None:
    """Of flags that another verb has set up, by their names."""
    for action in parser._actions:  # argparse has no other way to find a flag
        action.help = texts.get(action.dest, action.help)


def run(args: argparse.Namespace) -> int:
    _check_places(args)
    return ACTIONS[args.action][2](args)


def _check_places(args: argparse.Namespace) -> None:
    """Of addresses, what is wrong is said before Spark starts."""
    from sdretrieval.plugins.spark.storage import is_address, place_of, shown

    for name in FILES:
        value = getattr(args, name, None) or ""
        if is_address(value):
            flag = "--run" if name == "run_file" else "--" + name.replace("_", "-")
            raise ParameterError(
                f"{flag} {shown(value)}: only --index and --input may be addresses",
                remedy="Copy the file here, or mount it.",
            )
    for place in (args.index, *(getattr(args, "input", None) or ())):
        place_of(place)


@contextmanager
def _spark(args: argparse.Namespace) -> Iterator[Any]:
    """A SparkContext, while the block lasts."""
    from sdretrieval.plugins.spark.session import spark_context

    settings = {}
    for text in args.conf:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ParameterError(
                f"--conf takes KEY=VALUE, got {text!r}", remedy="As in --conf spark.executor.memory=4g."
            )
        settings[key] = value
    if args.action == "index" and sys.stderr.isatty():  # other actions draw bars of their own, or are short
        settings.setdefault("spark.ui.showConsoleProgress", "true")
    logging.getLogger().addFilter(_is_no_interrupt)
    with spark_context(args.master, settings=settings) as context:
        yield context


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    """Py4J logs the traceback of an interrupt, which the command tells of itself."""
    return not record.getMessage().startswith("KeyboardInterrupt while sending command")


@contextmanager
def _opened(args: argparse.Namespace, check: Callable[[Any], Any] | None = None) -> Iterator[tuple[Any, Any]]:
    """The collection, with its sums, and what answers requests. ``check`` may refuse the collection.

    What is wrong with a mounted one is said before Spark starts; what lies at an address, only Spark reaches.
    """
    from sdretrieval.plugins.spark.runners import OnSpark
    from sdretrieval.plugins.spark.search import prepare
    from sdretrieval.plugins.spark.shards import open_collection
    from sdretrieval.plugins.spark.storage import is_address

    check = check or (lambda collection: None)
    if not is_address(args.index):
        check(open_collection(args.index))
    with _spark(args) as context:
        collection = open_collection(args.index, context)
        check(collection)
        runner = OnSpark(collection, context)
        prepare(collection, runner)
        yield collection, runner


# -- index -------------------------------------------------------------------------------------------------------


def _configure_index(parser: argparse.ArgumentParser) -> None:
    index.configure(parser)
    _change_help(
        parser,
        threads=argparse.SUPPRESS,
        dataset=argparse.SUPPRESS,
        overwrite="replace a collection that is there",
        input=f"files, folders or archives, {ADDRESSES}",
        index=f"folder of the collection to make, {ADDRESSES}",
    )
    parser.set_defaults(threads=None)
    add = parser.add_argument_group("shards").add_argument
    add("--shards", type=options.positive, required=True, metavar="N", help="how many indexes to make")
    add("--resume", action="store_true", help="go on with a build that was stopped")


def _index(args: argparse.Namespace) -> int:
    from sdretrieval.plugins.spark.building import Recipe, build_shards
    from sdretrieval.plugins.spark.runners import OnSpark
    from sdretrieval.plugins.spark.search import prepare
    from sdretrieval.plugins.spark.shards import open_collection

    if args.threads is not None:
        raise ParameterError(
            "--threads is for `sdretrieval index`: here each task is one core's work",
            remedy="Spark tells how many run at once: --master 'local[4]', spark.executor.cores, spark.cores.max.",
        )
    if args.dataset:
        raise ParameterError("--dataset is for `sdretrieval index`", remedy="Export it to files, and name these.")
    if args.format == "ciff":
        raise ParameterError("--format ciff is for `sdretrieval index`", remedy="Name the texts that were indexed.")
    began = time.perf_counter()
    building, reading = index.building_options(args), index.reading_options(args)
    recipe = Recipe(args.index, args.shards, building.pop("analyzer"), reading, building, args.skip_bad)
    with _spark(args) as context:
        summary = build_shards(context, args.input, recipe, overwrite=args.overwrite, resume=args.resume)
        collection = open_collection(args.index, context)
        prepare(collection, OnSpark(collection, context))
    for line in _index_warnings(summary):
        print(f"sdretrieval spark index: {line}", file=sys.stderr)
    facts = {
        "collection": str(args.index),
        "shards": len(summary.shards),
        "documents": summary.documents,
        "tokens": summary.tokens,
        "unique terms": len(collection.vocabulary),
        "undated": summary.undated,
        "skipped": summary.skipped,
        "seconds": round(time.perf_counter() - began, 1),
    }
    if args.json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        for name, value in facts.items():
            print(f"{name:<13}{value:,}" if isinstance(value, int) else f"{name:<13}{value}")
    return 0


def _index_warnings(summary: Any) -> Iterator[str]:
    if summary.reused:
        yield f"{summary.reused} shards were there already"
    if summary.skipped:
        yield f"skipped {summary.skipped:,} bad documents:"
        yield from (f"  {line}" for line in summary.skipped_list)
    if summary.empty:
        yield f"left out {summary.empty:,} documents without text"
    if summary.ignored:
        shown = few(summary.ignored, 3)
        yield f"ignored {len(summary.ignored):,} files of unknown format ({shown}); --format reads them all"


# -- search and rerank -------------------------------------------------------------------------------------------


def _configure_search(parser: argparse.ArgumentParser, verb: Any = search) -> None:
    verb.configure(parser)
    _change_help(
        parser,
        index="a collection of `spark index`, or its address",
        threads="threads of the driver, which estimate the models (default: %(default)s)",
        missing="documents that are in no shard, topics without a text (default: error)",
        query="one query, as typed",
        leak_check=argparse.SUPPRESS,
        ir_metadata=argparse.SUPPRESS,
        run_weight=argparse.SUPPRESS,
    )
    if verb is search:  # of one index it prints the hits of a query; here there is always a run
        _change_help(parser, hits="default: %(default)s")
        parser.set_defaults(hits=1000)
        parser._option_string_actions["--output"].required = True  # argparse has no other way
    batch = "topics that share a pass over the shards (default: %(default)s)"
    parser.add_argument("--batch", type=options.positive, default=BATCH, metavar="N", help=batch)


def _configure_rerank(parser: argparse.ArgumentParser) -> None:
    _configure_search(parser, rerank)


def _rank(args: argparse.Namespace) -> int:
    for flag, given, remedy in (
        ("--leak-check", args.leak_check, "Compare two runs with `sdretrieval compare`."),
        ("--ir-metadata", args.ir_metadata, "The manifest beside the run says how it was made."),
        ("--run-weight", getattr(args, "run_weight", 0.0), "Rerank one index with it."),
    ):
        if given:
            raise ParameterError(f"{flag} is for one index", remedy=remedy)
    with options.standard_input(args):
        return _ranked(args)


def _ranked(args: argparse.Namespace) -> int:
    from sdretrieval.collection.trec import read_run
    from sdretrieval.core.files import atomic_writer, is_special
    from sdretrieval.plugins.spark import search as shards
    from sdretrieval.plugins.spark.shard_ranking import ShardedEngine
    from sdretrieval.ranking.expansion import read_expanded_queries
    from sdretrieval.ranking.retrieval import Report

    began = time.perf_counter()
    search.check_outputs(args)
    ranker, topics = time_options.time_from(args, options.ranker_from(args)), options.topics_from(args)
    given = read_run(args.run_file) if args.action == "rerank" else None
    if args.expansion:
        read_expanded_queries(args.expansion)  # what is wrong with the file is said before Spark is there
    judged, report = options.judged_from(args, topics), Report()
    if judged is not None and not ranker.uses_feedback:
        print(f"{ranker.name} learns from no documents: the judged ones change nothing", file=sys.stderr)
    parts = None if is_special(args.output) else Path(f"{args.output}.parts")
    if parts is not None and parts.is_dir():
        print(f"{parts}: finished batches of this run, if there are any, are taken up", file=sys.stderr)
    saving = atomic_writer(args.save_expansion) if args.save_expansion else nullcontext()
    with _opened(args) as (collection, runner), search.writing(args, ranker.name, report) as written, saving as lines:

        def on_answer(answer: Any) -> None:
            written.add(answer.qid, answer.ranking)
            if lines is not None:
                lines.write(answer.expansion + "\n")

        batching = shards.Batching(
            batch=args.batch,
            parts=parts,
            plans=search.replayed_plans(args, collection),
            with_expansions=lines is not None,
            on_answer=on_answer,
            report=report,
        )
        engine = ShardedEngine(collection, runner, threads=args.threads)
        how: dict[str, Any] = {"hits": args.hits, "judged": judged, "prune": args.prune, "batching": batching}
        if given is None:
            shards.search(engine, topics, ranker, **how)
        else:
            shards.rerank(engine, given, topics, ranker, missing=args.missing, **how)
            rerank.say_unmatched({topic.qid for topic in topics}, given)
    time_options.say_time(ranker, report, collection)
    inputs = {"topics": args.topics, **({} if given is None else {"run": args.run_file})}
    search.tell(args, f"spark {args.action}", written, ranker, collection, report, began, inputs)
    if parts is not None:
        shutil.rmtree(parts, ignore_errors=True)
    return 0


# -- classify ----------------------------------------------------------------------------------------------------


def _configure_classify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--index", required=True, metavar="DIR", help="a collection of `spark index`, or its address")
    parser.add_argument("--load", required=True, metavar="FILE", help="a classifier from `sdretrieval classify --save`")
    parser.add_argument("--output", required=True, metavar="FILE", help="docid, labels, score; .gz compresses it")


def _classify(args: argparse.Namespace) -> int:
    from sdretrieval.core.files import atomic_writer, check_writable
    from sdretrieval.plugins.spark.labelling import check_classifier, labels

    check_writable(args.output)
    began, n = time.perf_counter(), 0
    opened = _opened(args, lambda collection: check_classifier(args.load, collection))
    with opened as (_, runner), atomic_writer(args.output) as out:
        for docid, names, score in labels(runner, args.load):
            out.write(f"{docid}\t{','.join(names)}\t{score:.6g}\n")
            n += 1
    print(f"{args.output}: {n} documents, {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 0


# -- drift -------------------------------------------------------------------------------------------------------


def _configure_drift(parser: argparse.ArgumentParser) -> None:
    from sdretrieval.estimate.time.kernels import kernel_names

    parser.add_argument("--index", required=True, metavar="DIR", help="a collection with dates, or its address")
    parser.add_argument("--words", nargs="+", required=True, metavar="WORD", help="words to follow")
    parser.add_argument("--bandwidth", required=True, metavar="TIME", help="days, or with a unit: 12h, 7d, 2w")
    parser.add_argument("--resolution", default="day", metavar="TIME", help="hour, day, week, month (default: day)")
    parser.add_argument("--kernel", choices=kernel_names(), default="tricube", help="default: %(default)s")
    parser.add_argument("--output", required=True, metavar="FILE", help="a CSV table; .gz compresses it")


def _drift(args: argparse.Namespace) -> int:
    from sdretrieval.cli.drift import find_word
    from sdretrieval.core.files import atomic_writer, check_writable
    from sdretrieval.core.timeline import parse_duration
    from sdretrieval.core.times import format_time
    from sdretrieval.plugins.spark.drifting import drift

    bandwidth, resolution = parse_duration(args.bandwidth), parse_duration(args.resolution)
    check_writable(args.output)
    with _opened(args) as (collection, runner):
        if not collection.is_dated:
            raise IndexProblem(
                f"{args.index}: none of its {collection.n_docs} documents has a date",
                remedy="Index again with --date-field NAME.",
            )
        terms = [find_word(collection, word) for word in args.words]
        found = drift(runner, terms, bandwidth=bandwidth, resolution=resolution, kernel=args.kernel)
    with atomic_writer(args.output) as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["time", "documents", "words", "word", "frequency", "lower", "upper"])
        for i, time_ms in enumerate(found.grid.tolist()):
            volume = format_time(round(time_ms)), found.documents[i], found.words[i]
            for word, curve in zip(args.words, found.curves, strict=True):
                values = curve.frequency[i], curve.lower[i], curve.upper[i]
                table.writerow([*volume, word, *("" if value != value else f"{value:.6g}" for value in values)])
    print(f"{args.output}: {len(found.grid)} times, {len(terms)} words", file=sys.stderr)
    return 0


# action -> (help, its flags, what it does, examples)
ACTIONS: dict[str, tuple[str, Callable, Callable, str]] = {
    "index": ("turn a corpus into a collection of Lucene shards, in parallel", _configure_index, _index, INDEX_EXAMPLE),
    "search": ("rank a sharded collection for topics; a TREC run", _configure_search, _rank, SEARCH_EXAMPLE),
    "rerank": ("rescore the documents of a TREC run over shards", _configure_rerank, _rank, RERANK_EXAMPLE),
    "classify": ("label every document of a sharded collection", _configure_classify, _classify, CLASSIFY_EXAMPLE),
    "drift": ("how often words are used over time, over all shards", _configure_drift, _drift, DRIFT_EXAMPLE),
}
