"""Flags that several verbs share, so that they are spelled and explained alike everywhere."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.cli.document_options import add_analyzer_arguments, analyzer_from
from sdretrieval.cli.value_types import positive
from sdretrieval.collection.records import Qrels, Topic
from sdretrieval.core.errors import ParameterError, few
from sdretrieval.core.files import STANDARD
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.profile_files import weakness
from sdretrieval.ranking.registry import make_ranker

if TYPE_CHECKING:
    from sdretrieval.collection.analyzer import AnalyzerSpec
    from sdretrieval.index.snapshot import Snapshot


def add_index_argument(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    parser.add_argument(
        "--index", required=required, metavar="DIR", help="Lucene index (Anserini's, Pyserini's or ours)"
    )
    add_analyzer_arguments(parser.add_argument_group("analyzer, of an index that does not say it (not one of ours)"))


def snapshot_from(args: argparse.Namespace, ranker: Ranker | None = None) -> Snapshot:
    """The index of --index, its queries analysed as it says, or as --language and its like say where it does not.

    With ``ranker`` also what this model will read besides."""
    from sdretrieval.index.index_notes import read_notes
    from sdretrieval.ranking.retrieval import as_snapshot

    snapshot, wanted = as_snapshot(args.index, ranker), analyzer_from(args)
    says = snapshot.index is None or "analyzer" in read_notes(snapshot.index)
    if wanted is not None and says and wanted != snapshot.analyzer:
        raise ParameterError(
            f"{args.index} was made with the analyzer {snapshot.analyzer}; {wanted} would not find its words",
            remedy="Leave out --language, --stemmer and --keep-stopwords.",
        )
    snapshot.analyzer = wanted or snapshot.analyzer
    if snapshot.index is not None and not says:
        for told, remedy in analyzer_doubts(snapshot.index, snapshot.analyzer):
            print(f"{told} {remedy}", file=sys.stderr)
    return snapshot


def analyzer_doubts(index: Path, spec: AnalyzerSpec) -> Iterator[tuple[str, str]]:
    """What an index's own texts say against an analyzer, and the flags that fit better."""
    from sdretrieval.index.lucene.language import DOUBTFUL, analyzer_fit

    with analyzer_fit(index) as fit:
        share = fit.share(spec)
        if share is None or share >= DOUBTFUL:
            return
        ordered = fit.best()
        better = ordered[0][1]
        named = " or ".join(_flags(other) for other, one in ordered[:3] if one == better)
        told = f"{index} was not analysed as {_flags(spec)} does it: of its texts' words {share:.0%} are its terms."
        yield told, f"Pass {named} ({better:.0%})." if better > share else "No analyzer known here fits it better."


def _flags(spec: AnalyzerSpec) -> str:
    if spec.language != "en":
        return f"--language {spec.language}"
    return f"--language en --stemmer {spec.stemmer}" + ("" if spec.stopwords else " --keep-stopwords")


def add_set_argument(group: Any, text: str) -> None:
    """``--set NAME=VALUE``, as :mod:`sdretrieval.core.parameters` reads it."""
    group.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE", help=text)


def add_model_arguments(parser: argparse.ArgumentParser, *, judged: bool = True) -> None:
    """``judged``: with the flags for relevance feedback from judged documents."""
    group = parser.add_argument_group("model")
    group.add_argument("--model", default="blend", metavar="NAME", help="see `sdretrieval models` (default: blend)")
    group.add_argument(
        "--profile", metavar="NAME|FILE", help="parameter values: default, paper, anserini, or a file from `tune`"
    )
    add_set_argument(group, "set a parameter of the model; may be repeated")
    if not judged:
        return
    group.add_argument("--feedback-qrels", metavar="FILE", help="learn from judged documents instead of the first hits")
    group.add_argument(
        "--relevant",
        nargs="+",
        default=[],
        metavar="DOCID",
        help="documents known to be relevant, for every topic of the call",
    )
    group.add_argument(
        "--nonrelevant", nargs="+", default=[], metavar="DOCID", help="documents known not to be relevant"
    )


def ranker_from(args: argparse.Namespace) -> Ranker:
    ranker = make_ranker(args.model, args.settings, profile=args.profile)
    if told := weakness(args.profile, args.model):
        print(f"--profile {args.profile}: {told}", file=sys.stderr)
    return ranker


def judged_from(args: argparse.Namespace, topics: list[Topic], snapshot: Snapshot | None = None) -> Qrels | None:
    """Judged feedback from a qrels file, or from docids on the command line: these must be in the index."""
    if args.feedback_qrels:
        if args.relevant or args.nonrelevant:
            raise ParameterError("give either --feedback-qrels or --relevant/--nonrelevant, not both")
        from sdretrieval.collection.trec import read_qrels

        return read_qrels(args.feedback_qrels)
    if not args.relevant and not args.nonrelevant:
        return None
    both = sorted(set(args.relevant) & set(args.nonrelevant))
    if both:
        raise ParameterError(f"{both[0]!r} is given as relevant and as not relevant", remedy="Leave one out.")
    for docid in [*args.relevant, *args.nonrelevant]:
        if snapshot is not None and snapshot.docids.find(docid) < 0:
            raise ParameterError(
                f"docid {docid!r} is not in index {snapshot.name!r} ({snapshot.n_docs} documents)",
                remedy="Check --relevant and --nonrelevant.",
            )
    grades = {**dict.fromkeys(args.relevant, 1), **dict.fromkeys(args.nonrelevant, 0)}
    return Qrels({topic.qid: dict(grades) for topic in topics})


def say_judged(judged: Qrels | None, ranker: Ranker, topics: list[Topic], snapshot: Snapshot) -> None:
    """Say where judged feedback was given but cannot be learnt from."""
    if judged is None:
        return
    if not ranker.uses_feedback:
        print(f"{ranker.name} learns from no documents: the judged ones change nothing", file=sys.stderr)
        return
    relevant = {topic.qid: list(judged.relevant(topic.qid)) for topic in topics}
    without = [qid for qid, docids in relevant.items() if not (snapshot.docids.find_many(docids) >= 0).any()]
    if without:
        print(
            f"no judged relevant document in the index for {len(without)} topics "
            f"({few(without)}): they learn from their first documents",
            file=sys.stderr,
        )


def add_topic_arguments(parser: argparse.ArgumentParser, *, required: bool = True, typed: bool = False) -> None:
    """``typed``: with a flag for a query in the place of a file."""
    group = parser.add_argument_group("topics")
    source = group.add_mutually_exclusive_group(required=required) if typed else group
    told = "TSV, JSONL, TREC, SMART, Microblog …; - for standard input; or a name of ir_datasets or Pyserini"
    source.add_argument("--topics", required=required and not typed, metavar="FILE", help=told)
    if typed:
        source.add_argument("--query", metavar="TEXT", help="one query, as typed; without --output, hits to read")
    group.add_argument("--topic-format", metavar="NAME", help="where the format is not told from the file")
    group.add_argument("--topic-field", default="title", metavar="FIELD", help="title, desc, narr, or title+desc …")
    group.add_argument("--topic-times", metavar="FILE", help="query times: qid, tab, ISO time")


def topics_from(args: argparse.Namespace) -> list[Topic]:
    from sdretrieval.collection.trec import read_topics

    if getattr(args, "query", None) is not None:
        return [Topic("query", args.query)]
    if not Path(args.topics).exists():
        from sdretrieval.plugins.named import named_topics

        if (named := named_topics(args.topics, args.topic_field)) is not None:
            return named
    further: list[str] = []
    form, times = args.topic_format, args.topic_times
    topics = read_topics(args.topics, format=form, field=args.topic_field, times=times, further=further)
    if further:
        print(f"{times}: {len(further)} times are of topics not asked about: {few(further, 5)}", file=sys.stderr)
    return topics


@contextmanager
def standard_input(args: argparse.Namespace) -> Iterator[None]:
    """``--topics -``: standard input in a file of its own, since files of topics are looked at more than once."""
    if args.topics != STANDARD:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="sdretrieval-") as folder:
        args.topics = str(Path(folder, "standard-input"))
        Path(args.topics).write_bytes(sys.stdin.buffer.read())
        yield


def add_threads_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=positive, default=default_threads(), metavar="N", help="default: %(default)s")


def default_threads() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
