"""``sdretrieval spark …``: shards instead of one index, ranked exactly as one index would be, on Apache Spark."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sdretrieval.cli import options, time_options
from sdretrieval.errors import ParameterError
from sdretrieval.integrations.spark import BATCH

EXAMPLE = """\
examples:
  sdretrieval spark index --input corpus/ --index collections/news --shards 8 --date-field date
  sdretrieval spark search --index collections/news --topics topics.tsv --output runs/sd3.txt
  sdretrieval spark search --master spark://head:7077 --index /mnt/news --topics topics.tsv --output runs/sd3.txt

`sdretrieval spark ACTION --help` explains an action. Spark needs a Java of its own; docs/SPARK.md says which, and how
to start on one machine, on a standalone cluster, on YARN and on Kubernetes.
"""
INDEX_EXAMPLE = """\
examples:
  sdretrieval spark index --input corpus/ --index collections/news --shards 8 --date-field date
  sdretrieval spark index --master yarn --input /mnt/corpus --index /mnt/collections/news --shards 200
  sdretrieval spark index --master yarn --input hdfs://head/corpus --index hdfs://head/collections/news --shards 200

Files and folders are mounted ones, or addresses of any file system that Spark sees. They are read in parallel, large
files of JSON lines in pieces; documents are dealt to the shards by their docids. The collection is finished when its
collection.json is there. A build that was stopped goes on with --resume.
"""
SEARCH_EXAMPLE = """\
examples:
  sdretrieval spark search --index collections/news --topics topics.tsv --output runs/sd3.txt
  sdretrieval spark search --index collections/news --topics topics.tsv --topic-times times.tsv \\
      --time-prior recency --as-of query-time --output runs/recent.txt

The run is the one that `sdretrieval search` writes for one index of the same documents. Finished batches wait in
OUTPUT.parts: the same command, started again, goes on after them.
"""
RERANK_EXAMPLE = """\
example:
  sdretrieval spark rerank --index collections/news --run runs/bm25.txt --topics topics.tsv --output runs/sd3.txt
"""
CLASSIFY_EXAMPLE = """\
example:
  sdretrieval classify --train labelled.jsonl --save topics.model
  sdretrieval spark classify --index collections/news --load topics.model --output labels.tsv

One line a document: docid, its labels (separated by commas), and the highest score.
"""
DRIFT_EXAMPLE = """\
example:
  sdretrieval spark drift --index collections/news --words oil tariff --bandwidth 14d --output drift.csv

The curves and 95 % bands of `sdretrieval drift`. The bandwidth must be given: choosing one deals single documents into
folds, and no machine has them all; `sdretrieval drift` on a sample finds one.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (text, setup, _, example) in ACTIONS.items():
        sub = actions.add_parser(
            name, help=text, description=text[0].upper() + text[1:] + ".", epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        sub.add_argument("--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        setup(sub)
        _add_spark_arguments(sub)
        sub.epilog = example


def run(args: argparse.Namespace) -> int:
    _check_places(args)
    return ACTIONS[args.action][2](args)


_FILES = (
    "topics", "topic_times", "feedback_qrels", "profile", "run_file", "expansion", "save_expansion", "load", "output",
)  # fmt: skip


def _check_places(args: argparse.Namespace) -> None:
    """Small files are read and written by this process; of addresses, what is wrong is said before Spark starts."""
    from sdretrieval.integrations.spark.storage import is_address, place_of, shown

    for name in _FILES:
        value = getattr(args, name, None) or ""
        if is_address(value):
            flag = "--run" if name == "run_file" else "--" + name.replace("_", "-")
            raise ParameterError(
                f"{flag} {shown(value)}: only --index and --input may be addresses",
                remedy="Copy the file here, or mount it.",
            )
    for place in (args.index, *(getattr(args, "input", None) or ())):
        place_of(place)


def _add_spark_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Spark")
    group.add_argument(
        "--master", metavar="URL",
        help="local[4], spark://host:7077, yarn, k8s://… (default: what spark-submit or its settings say, or local[*])",
    )  # fmt: skip
    group.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )


@contextmanager
def _spark(args: argparse.Namespace) -> Iterator[Any]:
    """A SparkContext, while the block lasts."""
    with _starting(args) as spark:
        yield spark.context()


@contextmanager
def _starting(args: argparse.Namespace) -> Iterator[Any]:
    """Spark on its way (see session.Starting), stopped when the block ends."""
    from sdretrieval.integrations.spark.session import Starting

    settings = {}
    for text in args.conf:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ParameterError(
                f"--conf takes KEY=VALUE, got {text!r}", remedy="As in --conf spark.executor.memory=4g."
            )
        settings[key] = value
    spark = Starting(args.master, settings=settings, is_program=args.is_program)
    try:
        yield spark
    finally:
        spark.stop()


def _opened_early(args: argparse.Namespace) -> Any:
    """The collection, so that what is wrong with it is said before Spark starts; None where only Spark reaches it."""
    from sdretrieval.integrations.spark.shards import open_collection
    from sdretrieval.integrations.spark.storage import is_address

    return None if is_address(args.index) else open_collection(args.index)


# -- index -------------------------------------------------------------------------------------------------------


def _configure_index(parser: argparse.ArgumentParser) -> None:
    from sdretrieval.cli import index

    index.configure(parser)
    for action in parser._actions:
        if action.dest == "threads":
            action.help, action.default = argparse.SUPPRESS, None
        elif action.dest == "dataset":
            action.help = argparse.SUPPRESS
        elif action.dest == "overwrite":
            action.help = "replace a collection that is there"
        elif action.dest == "input":
            action.help = "files, folders or archives, mounted on all machines, or addresses (hdfs://…, s3a://…)"
        elif action.dest == "index":
            action.help = "folder of the collection to make, mounted on all machines, or an address"
    sharding = parser.add_argument_group("shards")
    sharding.add_argument(
        "--shards", type=options.positive, required=True, metavar="N", help="how many indexes to make"
    )
    sharding.add_argument("--resume", action="store_true", help="go on with a build that was stopped")


def _index(args: argparse.Namespace) -> int:
    from sdretrieval.integrations.spark.building import build_shards
    from sdretrieval.integrations.spark.runners import OnSpark
    from sdretrieval.integrations.spark.search import prepare
    from sdretrieval.integrations.spark.shards import open_collection
    from sdretrieval.integrations.spark.watching import watching
    from sdretrieval.lucene.analysis import AnalyzerSpec

    if args.threads is not None:
        raise ParameterError(
            "--threads is for `sdretrieval index`: here each task is one core's work",
            remedy="Spark tells how many run at once: --master 'local[4]', spark.executor.cores, spark.cores.max.",
        )
    if args.dataset:
        raise ParameterError("--dataset is for `sdretrieval index`", remedy="Export it to files, and name these.")
    began = time.perf_counter()
    reading = {
        "format": args.format, "docid": args.id_field, "contents": tuple(args.contents_field), "date": args.date_field,
        "date_format": args.date_format, "encoding": args.encoding, "docid_style": args.docid,
        "delimiter": "\t" if args.delimiter == r"\t" else args.delimiter,
        "columns": tuple(name.strip() for name in args.columns.split(",")) if args.columns else (),
        "glob": args.glob, "max_member_bytes": args.max_member_mb << 20,
    }  # fmt: skip
    building = {
        "store_positions": args.store_positions, "store_docvectors": args.store_docvectors,
        "store_raw": args.store_raw, "optimize": args.optimize,
    }  # fmt: skip
    analyzer = AnalyzerSpec(language=args.language, stemmer=args.stemmer, stopwords=not args.keep_stopwords)
    with _spark(args) as context, watching(context, "building"):
        summary = build_shards(
            context, args.input, args.index, args.shards, analyzer=analyzer, reading=reading, building=building,
            skip_bad=args.skip_bad, overwrite=args.overwrite, resume=args.resume,
        )  # fmt: skip
        collection = open_collection(args.index, context)
        prepare(collection, OnSpark(collection, context))
    for line in _index_warnings(summary):
        print(f"sdretrieval spark index: {line}", file=sys.stderr)
    facts = {
        "collection": str(args.index), "shards": summary.shards, "documents": summary.documents,
        "tokens": summary.tokens, "unique terms": len(collection.totals.vocabulary), "undated": summary.undated,
        "skipped": summary.skipped, "seconds": round(time.perf_counter() - began, 1),
    }  # fmt: skip
    if args.json:
        import json

        print(json.dumps(facts, ensure_ascii=False))
    else:
        print(
            "\n".join(
                f"{name:<13}{value:,}" if isinstance(value, int) else f"{name:<13}{value}"
                for name, value in facts.items()
            )
        )
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
        shown = ", ".join(summary.ignored[:3]) + (" …" if len(summary.ignored) > 3 else "")
        yield f"ignored {len(summary.ignored):,} files of unknown format ({shown}); --format reads them all"


# -- search and rerank -------------------------------------------------------------------------------------------


def _configure_ranking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--index", required=True, metavar="DIR", help="a collection of `spark index`, or its address")
    parser.add_argument("--output", required=True, metavar="FILE", help="the run; .gz compresses it")
    parser.add_argument("--tag", help="last column of the run (default: the model's name)")
    parser.add_argument(
        "--prune", type=options.positive, metavar="N",
        help="keep the N strongest words of the final query: faster, not exact; says what it gave up",
    )  # fmt: skip
    parser.add_argument(
        "--batch", type=options.positive, default=BATCH, metavar="N",
        help="topics that share a pass over the shards (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--threads", type=options.positive, default=options.default_threads(), metavar="N",
        help="threads of the driver, which estimate the models (default: %(default)s)",
    )  # fmt: skip
    options.add_topic_arguments(parser)
    options.add_model_arguments(parser)
    time_options.add_time_arguments(parser)
    next(action for action in parser._actions if action.dest == "leak_check").help = argparse.SUPPRESS
    parser.add_argument("--save-expansion", metavar="FILE", help="write the estimated queries, to read, edit or replay")
    parser.add_argument("--expansion", metavar="FILE", help="rank with these queries instead of estimating them")


def _configure_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hits", type=options.positive, default=1000, metavar="N", help="default: %(default)s")
    _configure_ranking(parser)


def _configure_rerank(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", dest="run_file", required=True, metavar="FILE", help="a TREC run, plain or .gz")
    parser.add_argument("--hits", type=options.positive, metavar="N", help="default: as many as the run has")
    parser.add_argument(
        "--missing", choices=("error", "drop"), default="error",
        help="documents that are in no shard, topics without a text (default: error)",
    )  # fmt: skip
    _configure_ranking(parser)


def _search(args: argparse.Namespace) -> int:
    def work(engine: Any, topics: list, ranker: Any, **common: Any) -> None:
        from sdretrieval.integrations.spark.search import search

        search(engine, topics, ranker, hits=args.hits, **common)

    return _rank(args, "spark search", work, {"topics": args.topics})


def _rerank(args: argparse.Namespace) -> int:
    from sdretrieval.cli.rerank import say_unmatched
    from sdretrieval.trec import read_run

    given = read_run(args.run_file)

    def work(engine: Any, topics: list, ranker: Any, **common: Any) -> None:
        from sdretrieval.integrations.spark.search import rerank

        rerank(engine, given, topics, ranker, hits=args.hits, missing=args.missing, **common)
        say_unmatched({topic.qid for topic in topics}, given)

    return _rank(args, "spark rerank", work, {"topics": args.topics, "run": args.run_file})


def _rank(args: argparse.Namespace, verb: str, work: Callable, inputs: dict) -> int:
    from sdretrieval.cli.search import check_outputs

    if args.leak_check:
        raise ParameterError("--leak-check is for one index", remedy="Compare two runs with `sdretrieval compare`.")
    began = time.perf_counter()
    check_outputs(args)
    with _starting(args) as spark:  # first, for it takes longest
        return _rank_on(spark, args, verb, work, inputs, began)


def _rank_on(spark: Any, args: argparse.Namespace, verb: str, work: Callable, inputs: dict, began: float) -> int:
    from sdretrieval.cli.search import tell, writing
    from sdretrieval.files import is_special
    from sdretrieval.integrations.spark.ranking import ShardedEngine
    from sdretrieval.integrations.spark.runners import OnSpark
    from sdretrieval.integrations.spark.search import prepare
    from sdretrieval.integrations.spark.shards import open_collection
    from sdretrieval.integrations.spark.watching import watching
    from sdretrieval.lucene.jvm import start_jvm
    from sdretrieval.ranking.expansion import read_expanded_queries
    from sdretrieval.retrieval import Report

    ranker, topics = time_options.time_from(args, options.ranker_from(args)), options.topics_from(args)
    collection = _opened_early(args)
    if args.expansion:
        read_expanded_queries(args.expansion)  # what is wrong with the file is said before Spark is there
    judged, report = options.judged_from(args, topics), Report()
    if judged is not None and not ranker.uses_feedback:
        print(f"{ranker.name} learns from no documents: the judged ones change nothing", file=sys.stderr)
    parts = None if is_special(args.output) else Path(f"{args.output}.parts")
    if parts is not None and parts.is_dir():
        print(f"{parts}: finished batches of this run, if there are any, are taken up", file=sys.stderr)
    start_jvm()  # for the words of the topics; Spark's own is still starting
    if collection is not None and topics:
        collection.analyze(topics[0].text)  # loads the analyzer
    context = spark.context()
    collection = collection or open_collection(args.index, context)
    runner = OnSpark(collection, context)
    with watching(context, "summing"):
        prepare(collection, runner)
    engine = ShardedEngine(collection, runner, threads=args.threads)
    with writing(args, ranker.name, report) as written, _saved_expansions(args) as on_expansion:
        work(
            engine, topics, ranker, judged=judged, prune=args.prune, batch=args.batch, parts=parts,
            plans=_plans(args, collection), on_expansion=on_expansion, on_ranking=written.add, on_last=spark.release,
            report=report,
        )  # fmt: skip
    time_options.say_time(ranker, report, collection)  # type: ignore[arg-type]
    tell(args, verb, written, ranker, collection, report, began, inputs)
    if parts is not None:
        import shutil

        shutil.rmtree(parts, ignore_errors=True)
    return 0


def _plans(args: argparse.Namespace, collection: Any) -> Any:
    """--expansion, in the words of all shards."""
    from sdretrieval.integrations.spark.expansions import read_plans

    if not args.expansion:
        return None
    dropped: list[str] = []
    plans = read_plans(args.expansion, collection, getattr(args, "missing", "error"), dropped)
    if dropped:
        print(f"{len(dropped)} words of {args.expansion} are in no shard and were dropped", file=sys.stderr)
    return plans


@contextmanager
def _saved_expansions(args: argparse.Namespace) -> Iterator[Callable[[str], Any] | None]:
    """--save-expansion: written line by line, in place only when all are done."""
    from sdretrieval.files import atomic_writer

    if not args.save_expansion:
        yield None
        return
    with atomic_writer(args.save_expansion) as out:
        yield lambda line: out.write(line + "\n")


# -- classify ----------------------------------------------------------------------------------------------------


def _configure_classify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--index", required=True, metavar="DIR", help="a collection of `spark index`, or its address")
    parser.add_argument("--load", required=True, metavar="FILE", help="a classifier from `sdretrieval classify --save`")
    parser.add_argument("--output", required=True, metavar="FILE", help="docid, labels, score; .gz compresses it")


def _classify(args: argparse.Namespace) -> int:
    from sdretrieval.files import atomic_writer, check_writable
    from sdretrieval.integrations.spark.labelling import check_classifier, labels
    from sdretrieval.integrations.spark.runners import OnSpark
    from sdretrieval.integrations.spark.search import prepare
    from sdretrieval.integrations.spark.shards import open_collection

    check_writable(args.output)
    collection = _opened_early(args)
    if collection is not None:
        check_classifier(args.load, collection)
    began, n = time.perf_counter(), 0
    with _spark(args) as context, atomic_writer(args.output) as out:
        if collection is None:
            collection = open_collection(args.index, context)
            check_classifier(args.load, collection)
        runner = OnSpark(collection, context)
        prepare(collection, runner)
        for docid, names, score in labels(runner, args.load):
            out.write(f"{docid}\t{','.join(names)}\t{score:.6g}\n")
            n += 1
    print(f"{args.output}: {n} documents, {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 0


# -- drift -------------------------------------------------------------------------------------------------------


def _configure_drift(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--index", required=True, metavar="DIR", help="a collection with dates, or its address")
    parser.add_argument("--words", nargs="+", required=True, metavar="WORD", help="words to follow")
    parser.add_argument("--bandwidth", required=True, metavar="TIME", help="days, or with a unit: 12h, 7d, 2w")
    parser.add_argument("--resolution", default="day", metavar="TIME", help="hour, day, week, month (default: day)")
    parser.add_argument(
        "--kernel", choices=("uniform", "triangular", "epanechnikov", "tricube", "gaussian"), default="tricube",
        help="default: %(default)s",
    )  # fmt: skip
    parser.add_argument("--output", required=True, metavar="FILE", help="a CSV table; .gz compresses it")


def _drift(args: argparse.Namespace) -> int:
    import csv

    from sdretrieval.cli.drift import find_word
    from sdretrieval.errors import IndexProblem
    from sdretrieval.files import atomic_writer, check_writable
    from sdretrieval.integrations.spark.drifting import drift
    from sdretrieval.integrations.spark.runners import OnSpark
    from sdretrieval.integrations.spark.search import prepare
    from sdretrieval.integrations.spark.shards import open_collection
    from sdretrieval.temporal.timeline import parse_duration
    from sdretrieval.times import format_time

    bandwidth, resolution = parse_duration(args.bandwidth), parse_duration(args.resolution)
    check_writable(args.output)
    collection = _opened_early(args)
    with _spark(args) as context:
        collection = collection or open_collection(args.index, context)
        runner = OnSpark(collection, context)
        prepare(collection, runner)
        if not collection.is_dated:
            raise IndexProblem(
                f"{args.index}: none of its {collection.n_docs} documents has a date",
                remedy="Index again with --date-field NAME.",
            )
        terms = [find_word(collection, word) for word in args.words]  # type: ignore[arg-type]
        found = drift(runner, terms, bandwidth=bandwidth, resolution=resolution, kernel=args.kernel)
    with atomic_writer(args.output) as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(["time", "documents", "words", "word", "frequency", "lower", "upper"])
        for i, time_ms in enumerate(found.grid.tolist()):
            for word, curve in zip(args.words, found.curves, strict=True):
                values = [curve.frequency[i], curve.lower[i], curve.upper[i]]
                shown = ["" if value != value else f"{value:.6g}" for value in values]
                row = [format_time(round(time_ms)), found.documents[i], found.words[i], word, *shown]
                table.writerow(row)
    print(f"{args.output}: {len(found.grid)} times, {len(terms)} words", file=sys.stderr)
    return 0


# action -> (help, its flags, what it does, examples)
ACTIONS: dict[str, tuple[str, Callable, Callable, str]] = {
    "index": ("turn a corpus into a collection of Lucene shards, in parallel", _configure_index, _index, INDEX_EXAMPLE),
    "search": ("rank a sharded collection for topics; a TREC run", _configure_search, _search, SEARCH_EXAMPLE),
    "rerank": ("rescore the documents of a TREC run over shards", _configure_rerank, _rerank, RERANK_EXAMPLE),
    "classify": (
        "label every document of a sharded collection", _configure_classify, _classify, CLASSIFY_EXAMPLE,
    ),
    "drift": ("how often words are used over time, over all shards", _configure_drift, _drift, DRIFT_EXAMPLE),
}  # fmt: skip
