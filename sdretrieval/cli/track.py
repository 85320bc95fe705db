"""``sdretrieval track``: follow stories through a stream of documents, online."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.cli import document_options
from sdretrieval.cli.options import add_set_argument
from sdretrieval.cli.value_types import positive
from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.core.errors import InputError, ParameterError, few

if TYPE_CHECKING:
    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.learn.tracking.decisions import Outputs
    from sdretrieval.learn.tracking.state import StateFolder
    from sdretrieval.learn.tracking.stream_background import Background, StreamDocument
    from sdretrieval.learn.tracking.tracker import Step, Tracker

EXAMPLE = """\
examples:
  a growing file, stories given as queries; decisions appear as they are made:
    tail -n +1 -f stream.jsonl | sdretrieval track --topics topics.tsv --background indexes/last-year --threshold 0.005

  an index in time order, stories given by seed documents (story 0 docid 1), every score as a TREC run:
    sdretrieval track --index indexes/news --seeds seeds.txt --run runs/track.trec --output decisions.jsonl

  a service that survives crashes and restarts; run the same command again to go on:
    tail -n +1 -f stream.jsonl | sdretrieval track --topics topics.tsv --threshold 0.005 --adapt-threshold 0.02 \\
      --state runs/tracker --output runs/decisions.jsonl

Each document is scored against every story before anything is learnt from it; general English comes from --background
or from the stream so far. `sdretrieval tdt` measures what came out. docs/TRACKING.md explains the models.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    # argparse takes -1e-05, a score like any other, for a flag unless told that it is a number.
    parser._negative_number_matcher = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
    group = parser.add_argument_group("stream")
    source = group.add_mutually_exclusive_group()
    source.add_argument("--input", default="-", metavar="FILE", help="JSON lines; - is standard input (default)")
    source.add_argument("--index", metavar="DIR", help="a dated Lucene index, in time order")
    group.add_argument("--id-field", default="id", metavar="NAME", help="default: %(default)s")
    group.add_argument("--contents-field", action="append", default=[], metavar="NAME", help="default: contents")
    group.add_argument("--date-field", default="date", metavar="NAME", help="default: %(default)s")
    group.add_argument("--date-format", metavar="PATTERN", help="strptime pattern of the dates, or epoch_s, epoch_ms")
    group.add_argument("--skip-bad", action="store_true", help="count bad lines instead of stopping at the first")

    group = parser.add_argument_group("stories")
    group.add_argument("--topics", metavar="FILE", help="a query or text for each story: TSV, JSONL, TREC …")
    group.add_argument(
        "--seeds",
        metavar="FILE",
        help="seed documents, `story 0 docid 1`: of the --background index, or followed from when they come along",
    )

    group = parser.add_argument_group("general English")
    group.add_argument(
        "--background", default="stream", metavar="DIR|stream", help="an index of earlier documents (default: stream)"
    )
    group.add_argument("--grow", action="store_true", help="go on counting the stream on top of the index")
    document_options.add_analyzer_arguments(group)

    group = parser.add_argument_group("model")
    group.add_argument("--model", default="sd", choices=("tfidf", "rm", "nb", "sd"), help="default: %(default)s")
    add_set_argument(group, "set a parameter of the model (docs/TRACKING.md lists them); may be repeated")
    group.add_argument("--threshold", type=float, metavar="X", help="on topic from this score on")
    group.add_argument("--adapt-threshold", type=float, metavar="X", help="learn from this score on")
    group.add_argument("--feedback", metavar="FILE", help="documents to learn from when they come: story 0 docid 1")
    group.add_argument("--labelled", action="store_true", help="those of --feedback are known to be on topic")
    group.add_argument("--forget", metavar="KERNEL", help="let what was learnt fade: exponential, tricube, uniform …")
    group.add_argument("--bandwidth", metavar="TIME", help="of --forget: days, or 12h, 7d, 2w (default: 7d)")
    group.add_argument("--max-terms", type=positive, default=5000, metavar="N", help="words per story (default: 5000)")

    group = parser.add_argument_group("output")
    group.add_argument("--output", default="-", metavar="FILE", help="decisions as JSON lines (default: -, the screen)")
    group.add_argument(
        "--emit",
        choices=("auto", "all", "on-topic", "none"),
        default="auto",
        help="which decisions; auto: on-topic with a threshold, all without (default)",
    )
    group.add_argument("--run", dest="run_file", metavar="FILE", help="the same as a TREC run, when the stream ends")
    group.add_argument("--hits", type=positive, metavar="N", help="documents per story in the run (default: all)")
    group.add_argument("--tag", metavar="NAME", help="of the run (default: track-MODEL)")
    group.add_argument("--state", metavar="DIR", help="keep the state there; go on from it where it is")
    group.add_argument(
        "--checkpoint-every",
        type=positive,
        default=1000,
        metavar="N",
        help="documents between checkpoints; those since the last one are in a journal (default: %(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    from sdretrieval.learn.tracking.decisions import Outputs
    from sdretrieval.learn.tracking.state import StateFolder

    _check(args)
    spool = None if args.state is None else Path(args.state) / "run.part"
    outputs = Outputs(args.output, args.run_file, emit=args.emit, tag=args.tag or f"track-{args.model}", spool=spool)
    with StateFolder(args.state, every=args.checkpoint_every) as folder:
        _run(args, outputs, folder)
    return 0


def _run(args: argparse.Namespace, outputs: Outputs, folder: StateFolder) -> None:
    from sdretrieval.collection.corpus.record import Problems

    earlier = None if args.background == "stream" else _snapshot(args.background)
    spec = _analyzer(args, earlier)
    resumed = folder.exists
    tracker, steps, lengths = _make(args, folder, earlier, spec)
    if not tracker.names and not tracker.expected():
        raise _no_story()
    outputs.open(folder.notes.get("outputs", ()), lengths)
    folder.notes["outputs"] = outputs.names()
    outputs.write_again(steps)  # their decisions may have been lost, or half written
    if resumed:
        print(f"going on after {tracker.n_seen:,} documents ({len(tracker.names)} stories)", file=sys.stderr)
    problems = Problems(skip=args.skip_bad)
    # Before the checkpoint: an index's words have their numbers then, and sums the same order when it goes on.
    stream = _stream(args, tracker.background, spec, problems)
    folder.checkpoint(tracker, outputs.synced())
    if resumed:
        stream = _continued(stream, tracker.n_seen, folder.notes)
    count, began = Counter[str](), time.perf_counter()
    # However it ends, all is on disk: the document in hand is in the journal.
    try:
        for document in stream:
            late = tracker.last_time is not None and document.time is not None and document.time < tracker.last_time
            folder.before(tracker, document)
            made = tracker.process(document)
            count += Counter({"documents": 1, "scores": len(made.scores), "learnt": len(made.adapted), "late": late})
            count["on topic"] += outputs.write(made)
            folder.after(tracker, outputs.synced)
        folder.checkpoint(tracker, outputs.synced())
        outputs.finish(args.hits)
    except KeyboardInterrupt:  # the usual end of a stream that has none; it may be felt as late as in finish()
        outputs.finish(args.hits)
        raise
    except BaseException:
        outputs.discard()
        raise
    _tell(count, time.perf_counter() - began, tracker, problems)


def _tell(count: Counter[str], took: float, tracker: Tracker, problems: Any) -> None:
    scores, on_topic = count["scores"], "" if tracker.threshold is None else f", {count['on topic']:,} on topic"
    print(
        f"{count['documents']:,} documents x {len(tracker.names):,} stories: {scores:,} scores in {took:.1f} s "
        f"({scores / max(took, 1e-9):,.0f} per second){on_topic}, {count['learnt']:,} learnt",
        file=sys.stderr,
    )
    if count["late"]:
        print(f"{count['late']:,} documents came later than younger ones; scored as they came", file=sys.stderr)
    if problems.count:
        print(f"{problems.count:,} bad lines skipped; the first: {problems.listed[0]}", file=sys.stderr)
    waiting = sorted({name for names in tracker.expected().values() for name in names} - set(tracker.names))
    if waiting:
        print(f"no seed came for {len(waiting)} stories: {few(waiting)}", file=sys.stderr)


def _make(
    args: argparse.Namespace, folder: StateFolder, earlier: Snapshot | None, spec: AnalyzerSpec
) -> tuple[Tracker, list[Step], Sequence[int]]:
    """A new tracker, or the one of the state folder with stories it does not know added to it; the steps to write once
    more and the lengths of the outputs before them."""
    from sdretrieval.learn.tracking.stream_background import Background

    grows = earlier is None or args.grow
    about = {
        "analyzer": spec.to_json(),
        "background": "stream" if earlier is None else earlier.fingerprint,
        "grow": grows,
    }
    steps: list[Step] = []
    lengths: Sequence[int] = []
    if folder.exists:
        tracker, steps, lengths = folder.resume()
        wanted = {**_tracker(args, Background()).settings(), **about}
        kept = {**tracker.settings(), **{name: folder.notes.get(name) for name in about}}
        for name, value in wanted.items():
            if kept[name] != value:
                raise ParameterError(
                    f"{folder.folder} was made with {name} {kept[name]!r}, now it is {value!r}",
                    remedy="Go on with the same flags, or name another --state folder.",
                )
        tracker.feedback.update({docid: tuple(names) for docid, names in _by_document(args.feedback).items()})
    else:
        tracker = _tracker(args, Background() if earlier is None else Background.of_snapshot(earlier, grows=grows))
        folder.notes.update(about)
    _add_stories(args, tracker, earlier, spec)
    return tracker, steps, lengths


def _tracker(args: argparse.Namespace, background: Background) -> Tracker:
    from sdretrieval.core.timeline import parse_duration
    from sdretrieval.learn.tracking import Forgetting, Tracker, make_model

    return Tracker(
        make_model(args.model, args.settings),
        background,
        threshold=args.threshold,
        adapt_threshold=args.adapt_threshold,
        feedback=_by_document(args.feedback),
        labelled=args.labelled,
        forgetting=None if args.forget is None else Forgetting(args.forget, parse_duration(args.bandwidth or "7d")),
        max_terms=args.max_terms,
    )


def _add_stories(args: argparse.Namespace, tracker: Tracker, earlier: Snapshot | None, spec: AnalyzerSpec) -> None:
    from sdretrieval.learn.tracking.streams import index_document

    known, waiting = set(tracker.names), tracker.expected()
    seeds: dict[str, list[StreamDocument]] = {}
    if args.topics is not None:
        seeds = {query.docid: [query] for query in _queries(args.topics, known, tracker.background, spec)}
    numbers = None
    for docid, names in _by_document(args.seeds).items():
        row = -1 if earlier is None else earlier.docids.find(docid)
        for name in names:
            if name in known and docid not in waiting:
                continue  # resumed: this seed has been learnt
            if earlier is None or row < 0:
                tracker.expect_seed(name, docid)
                continue
            if numbers is None:
                numbers = tracker.background.numbers(list(earlier.vocabulary))
            seeds.setdefault(name, []).append(index_document(earlier, row, numbers))
    for name, documents in seeds.items():
        tracker.add_story(name, documents)


def _queries(path: str, known: set[str], background: Background, spec: AnalyzerSpec) -> Iterator[StreamDocument]:
    """Topics of stories that are not followed yet, as documents."""
    from sdretrieval.collection.trec import read_topics
    from sdretrieval.index.lucene.analysis import analyze

    for topic in read_topics(path):
        if topic.qid not in known:
            query = background.document(topic.qid, analyze(topic.text, spec), topic.time)
            if not query.length:
                raise InputError(
                    f"topic {topic.qid!r} has no word left after analysis: {topic.text[:60]!r}",
                    file=path,
                    remedy="Give it words that are no stop words.",
                )
            yield query


def _by_document(path: str | None) -> dict[str, list[str]]:
    """A file of `story 0 docid 1` by docid; lines with relevance 0 say nothing."""
    if path is None:
        return {}
    from sdretrieval.collection.trec import read_qrels

    found: dict[str, list[str]] = {}
    for story, grades in read_qrels(path).items():
        for docid, grade in grades.items():
            if grade > 0:
                found.setdefault(docid, []).append(story)
    return found


def _stream(
    args: argparse.Namespace, background: Background, spec: AnalyzerSpec, problems: Any
) -> Iterable[StreamDocument]:
    """Documents as they come, with a bar where the screen is free for it."""
    from sdretrieval.core.progress import progress
    from sdretrieval.learn.tracking.streams import index_stream

    if args.index is not None:
        documents, total = index_stream(_snapshot(args.index), background)
    else:
        documents, total = _jsonl_stream(args, background, spec, problems), None
    if args.index is None and args.input == "-":
        return documents
    return progress(documents, total=total, label="tracking", unit=" documents")


def _jsonl_stream(args: argparse.Namespace, background: Background, spec: AnalyzerSpec, problems: Any):
    from sdretrieval.collection.corpus.record import FieldMap
    from sdretrieval.core.files import open_text
    from sdretrieval.index.lucene.analysis import analyze
    from sdretrieval.learn.tracking.streams import jsonl_stream

    contents = tuple(args.contents_field) or ("contents",)
    fields = FieldMap(docid=args.id_field, contents=contents, date=args.date_field, date_format=args.date_format)
    name = "stdin" if args.input == "-" else args.input
    source: Any = nullcontext(sys.stdin) if args.input == "-" else open_text(args.input)
    with source as text:  # plain or gzip; its bytes are read, not its text
        words = partial(analyze, spec=spec)
        yield from jsonl_stream(text.buffer, background, words, fields=fields, problems=problems, name=name)


def _continued(stream: Iterable[StreamDocument], seen: int, notes: dict[str, Any]) -> Iterator[StreamDocument]:
    """The stream from where the state stands: one that begins with the same document again is the same stream."""
    documents = iter(stream)
    first = next(documents, None)
    if first is None:
        return
    if seen == 0 or first.docid != notes.get("first"):
        yield first
        yield from documents
        return
    n, last = 1, first.docid
    for following in islice(documents, seen - 1):
        n, last = n + 1, following.docid
    problem = ""
    if n < seen:
        problem = f" and ends after {n} documents; the state has seen {seen}"
    elif last != notes.get("last"):
        problem = f", but its document {seen} is {last!r} where the state has seen {notes.get('last')!r}"
    if problem:
        raise ParameterError(
            f"the stream begins again with {first.docid!r}{problem}",
            remedy="Feed the same stream from its beginning, or only what is new.",
        )
    yield from documents


def _snapshot(index: str) -> Snapshot:
    from sdretrieval.index.snapshot import open_snapshot

    return open_snapshot(index)


def _analyzer(args: argparse.Namespace, earlier: Snapshot | None) -> AnalyzerSpec:
    """How text becomes words: as in the indexes at hand, which must agree."""
    found = []
    if earlier is not None:
        found.append((f"--background {args.background}", earlier.analyzer))
    if args.index is not None:
        found.append((f"--index {args.index}", _snapshot(args.index).analyzer))
    asked = document_options.analyzer_from(args)
    if asked is not None or not found:
        found.append(("the flags", asked or AnalyzerSpec()))
    for name, spec in found[1:]:
        if spec != found[0][1]:
            raise ParameterError(
                f"{found[0][0]} was analysed as {found[0][1]}; {name}: {spec}",
                remedy="Words only match where documents are analysed alike: re-index one of them.",
            )
    return found[0][1]


def _no_story() -> ParameterError:
    return ParameterError("there is no story to follow", remedy="Give --topics, --seeds or both.")


def _check(args: argparse.Namespace) -> None:
    if args.topics is None and args.seeds is None and not (args.state and Path(args.state).is_dir()):
        raise _no_story()
    nothing = "says nothing without"
    for wrong, message, remedy in (
        (args.bandwidth and not args.forget, f"--bandwidth {nothing} --forget", "Add --forget exponential."),
        (args.labelled and args.feedback is None, f"--labelled {nothing} --feedback", "Add --feedback FILE."),
        (args.hits and args.run_file is None, f"--hits {nothing} --run", "Add --run FILE."),
        (args.emit == "on-topic" and args.threshold is None, "--emit on-topic needs a threshold", "Add --threshold X."),
        (args.emit == "none" and args.run_file, "--run writes what is emitted, none emits nothing", "Drop one."),
        (args.grow and args.background == "stream", "--grow is for a --background index: a stream grows", "Drop it."),
    ):
        if wrong:
            raise ParameterError(message, remedy=remedy)
