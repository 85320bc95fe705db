"""``sdretrieval track``: follow topics through a stream of documents, online."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.lucene.analysis import LANGUAGES, STEMMERS, AnalyzerSpec

if TYPE_CHECKING:
    from sdretrieval.snapshot import Snapshot
    from sdretrieval.tracking.background import Background
    from sdretrieval.tracking.documents import StreamDocument
    from sdretrieval.tracking.journal import StateFolder
    from sdretrieval.tracking.outputs import Outputs
    from sdretrieval.tracking.tracker import Step, Tracker

EXAMPLE = """\
examples:
  a growing file, topics given as queries; decisions appear as they are made:
    tail -n +1 -f stream.jsonl | sdretrieval track --topics topics.tsv --background indexes/last-year --threshold 0.005

  an index in time order, topics given by seed documents (topic 0 docid 1), every score as a TREC run:
    sdretrieval track --index indexes/news --seeds seeds.txt --run runs/track.trec --output decisions.jsonl

  a service that survives crashes and restarts; run the same command again to go on:
    tail -n +1 -f stream.jsonl | sdretrieval track --topics topics.tsv --threshold 0.005 --adapt-threshold 0.02 \\
      --state runs/tracker --output runs/decisions.jsonl

Each document is scored against every topic before anything is learnt from it; general English comes from --background
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

    group = parser.add_argument_group("topics")
    group.add_argument("--topics", metavar="FILE", help="a query or text for each topic: TSV, JSONL, TREC …")
    group.add_argument(
        "--seeds", metavar="FILE",
        help="seed documents, `topic 0 docid 1`: of the --background index, or followed from when they come along",
    )  # fmt: skip

    group = parser.add_argument_group("general English")
    group.add_argument(
        "--background", default="stream", metavar="DIR|stream", help="an index of earlier documents (default: stream)"
    )
    group.add_argument("--grow", action="store_true", help="go on counting the stream on top of the index")
    group.add_argument("--language", choices=LANGUAGES, metavar="CODE", help="of the analysis, without an index")
    group.add_argument("--stemmer", choices=STEMMERS, help="of English, without an index (default: porter)")
    group.add_argument("--keep-stopwords", action="store_true", help="of English, without an index")

    group = parser.add_argument_group("model")
    group.add_argument("--model", default="sd", choices=("tfidf", "rm", "nb", "sd"), help="default: %(default)s")
    group.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE",
        help="set a parameter of the model (docs/TRACKING.md lists them); may be repeated",
    )  # fmt: skip
    group.add_argument("--threshold", type=_number, metavar="X", help="on topic from this score on")
    group.add_argument("--adapt-threshold", type=_number, metavar="X", help="learn from this score on")
    group.add_argument("--feedback", metavar="FILE", help="documents to learn from when they come: topic 0 docid 1")
    group.add_argument("--labelled", action="store_true", help="those of --feedback are known to be on topic")
    group.add_argument("--forget", metavar="KERNEL", help="let what was learnt fade: exponential, tricube, uniform …")
    group.add_argument("--bandwidth", metavar="TIME", help="of --forget: days, or 12h, 7d, 2w (default: 7d)")
    group.add_argument("--max-terms", type=_positive, default=5000, metavar="N", help="words per topic (default: 5000)")

    group = parser.add_argument_group("output")
    group.add_argument("--output", default="-", metavar="FILE", help="decisions as JSON lines (default: -, the screen)")
    group.add_argument(
        "--emit", choices=("auto", "all", "on-topic", "none"), default="auto",
        help="which decisions; auto: on-topic with a threshold, all without (default)",
    )  # fmt: skip
    group.add_argument("--run", dest="run_file", metavar="FILE", help="the same as a TREC run, when the stream ends")
    group.add_argument("--hits", type=_positive, metavar="N", help="documents per topic in the run (default: all)")
    group.add_argument("--tag", metavar="NAME", help="of the run (default: track-MODEL)")
    group.add_argument("--state", metavar="DIR", help="keep the state there; go on from it where it is")
    group.add_argument(
        "--checkpoint-every", type=_positive, default=1000, metavar="N",
        help="documents between checkpoints; those since the last one are in a journal (default: %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    from sdretrieval.tracking.journal import StateFolder
    from sdretrieval.tracking.outputs import Outputs

    _check(args)
    spool = None if args.state is None else Path(args.state) / "run.part"
    outputs = Outputs(args.output, args.run_file, emit=args.emit, tag=args.tag or f"track-{args.model}", spool=spool)
    folder = None if args.state is None else StateFolder(args.state, every=args.checkpoint_every)
    with folder or nullcontext():
        return _run(args, outputs, folder)


def _run(args: argparse.Namespace, outputs: Outputs, folder: StateFolder | None) -> int:
    from sdretrieval.corpus.problems import Problems

    earlier = _earlier(args)
    spec = _analyzer(args, earlier)
    resumed = folder is not None and folder.exists
    tracker, step, lengths = _make(args, folder, earlier, spec)
    if not tracker.names and not tracker.expected():
        raise ParameterError("there is no topic to follow", remedy="Give --topics, --seeds or both.")
    outputs.open(folder.notes.get("outputs", ()) if folder is not None else (), lengths)
    if folder is not None:
        folder.notes["outputs"] = outputs.names()
    if resumed:
        if step is not None:  # its decisions may have been lost, or half written
            outputs.write(step)
        print(f"going on after {tracker.n_seen:,} documents ({len(tracker.names)} topics)", file=sys.stderr)
    if folder is not None:
        folder.checkpoint(tracker, outputs.lengths())
    problems = Problems(skip=args.skip_bad)
    stream, total = _stream(args, tracker.background, spec, problems)
    if resumed and folder is not None:
        stream = _continued(stream, tracker.n_seen, folder.notes)
    count = _Count()
    # However it ends, all is on disk: the document in hand is in the journal.
    try:
        for document in _with_bar(stream, total, args):
            late = tracker.last_time is not None and document.time is not None and document.time < tracker.last_time
            if folder is not None:
                folder.before(tracker, document, outputs.lengths())
            made = tracker.process(document)
            count.add(made, outputs.write(made), late)
            if folder is not None:
                folder.after(tracker, outputs.lengths())
        if folder is not None:
            folder.checkpoint(tracker, outputs.lengths())
        outputs.finish(args.hits)
    except KeyboardInterrupt:  # the usual end of a stream that has none; it may be felt as late as in finish()
        outputs.finish(args.hits)
        raise
    except BaseException:
        outputs.discard()
        raise
    _tell(count, tracker, problems)
    return 0


class _Count:
    """What to say at the end."""

    def __init__(self) -> None:
        self.documents = self.scores = self.on_topic = self.adapted = self.late = 0
        self.began = time.perf_counter()

    def add(self, step: Step, on_topic: int, late: bool) -> None:
        self.documents += 1
        self.scores += len(step.scores)
        self.on_topic += on_topic
        self.adapted += len(step.adapted)
        self.late += late


def _tell(count: _Count, tracker: Tracker, problems: Any) -> None:
    took = max(time.perf_counter() - count.began, 1e-9)
    on_topic = "" if tracker.threshold is None else f", {count.on_topic:,} on topic"
    print(
        f"{count.documents:,} documents x {len(tracker.names):,} topics: {count.scores:,} scores in {took:.1f} s "
        f"({count.scores / took:,.0f} per second){on_topic}, {count.adapted:,} learnt",
        file=sys.stderr,
    )
    if count.late:
        print(f"{count.late:,} documents came later than younger ones; they were scored as they came", file=sys.stderr)
    if problems.count:
        print(f"{problems.count:,} bad lines skipped; the first: {problems.listed[0]}", file=sys.stderr)
    waiting = sorted({name for names in tracker.expected().values() for name in names} - set(tracker.names))
    if waiting:
        print(f"no seed came for {len(waiting)} topics: {', '.join(waiting[:10])}", file=sys.stderr)


def _make(
    args: argparse.Namespace, folder: StateFolder | None, earlier: Snapshot | None, spec: AnalyzerSpec
) -> tuple[Tracker, Step | None, Any]:
    """A new tracker, or the one of the state folder with topics it does not know added to it."""
    from sdretrieval.tracking.background import Background
    from sdretrieval.tracking.models import make_model
    from sdretrieval.tracking.tracker import Tracker

    def new(background: Background) -> Tracker:
        return Tracker(
            make_model(args.model, args.settings), background, threshold=args.threshold,
            adapt_threshold=args.adapt_threshold, feedback=_by_document(args.feedback), labelled=args.labelled,
            forgetting=_forgetting(args), max_terms=args.max_terms,
        )  # fmt: skip

    about = {"analyzer": spec.to_json(), "background": "stream" if earlier is None else earlier.fingerprint,
             "grow": bool(earlier is None or args.grow)}  # fmt: skip
    step: Step | None = None
    lengths: Sequence[int] = []
    if folder is not None and folder.exists:
        tracker, step, lengths = folder.resume()
        wanted = {**new(Background()).settings(), **about}
        kept = {**tracker.settings(), **{name: folder.notes.get(name) for name in about}}
        for name, value in wanted.items():
            if kept[name] != value:
                raise ParameterError(
                    f"{folder.folder} was made with {name} {kept[name]!r}, now it is {value!r}",
                    remedy="Go on with the same flags, or name another --state folder.",
                )
        tracker.feedback.update({docid: tuple(topics) for docid, topics in _by_document(args.feedback).items()})
    else:
        grows = earlier is None or args.grow
        tracker = new(Background() if earlier is None else Background.of_snapshot(earlier, grows=grows))
        if folder is not None:
            folder.notes.update(about)
    _add_topics(args, tracker, earlier, spec)
    return tracker, step, lengths


def _add_topics(args: argparse.Namespace, tracker: Tracker, earlier: Snapshot | None, spec: AnalyzerSpec) -> None:
    known = set(tracker.names)
    seeds: dict[str, list[StreamDocument]] = {}
    if args.topics is not None:
        from sdretrieval.lucene.analysis import analyze
        from sdretrieval.trec import read_topics

        for topic in read_topics(args.topics):
            if topic.qid not in known:
                query = tracker.background.document(topic.qid, analyze(topic.text, spec), topic.time)
                if not query.length:
                    raise InputError(
                        f"topic {topic.qid!r} has no word left after analysis: {topic.text[:60]!r}",
                        file=args.topics, remedy="Give it words that are no stop words.",
                    )  # fmt: skip
                seeds[topic.qid] = [query]
    if args.seeds is not None:
        numbers = None
        waiting = tracker.expected()
        for docid, names in _by_document(args.seeds).items():
            row = -1 if earlier is None else earlier.docids.find(docid)
            for name in names:
                if name in known and docid not in waiting:
                    continue  # resumed: this seed has been learnt
                if row < 0:
                    tracker.expect_seed(name, docid)
                    continue
                from sdretrieval.tracking.streams import index_document

                assert earlier is not None
                if numbers is None:
                    numbers = tracker.background.numbers(list(earlier.vocabulary))
                seeds.setdefault(name, []).append(index_document(earlier, row, numbers))
    for name, documents in seeds.items():
        tracker.add_topic(name, documents)


def _by_document(path: str | None) -> dict[str, list[str]]:
    """A file of `topic 0 docid 1` by docid; lines with relevance 0 say nothing."""
    if path is None:
        return {}
    from sdretrieval.trec import read_qrels

    found: dict[str, list[str]] = {}
    qrels = read_qrels(path)
    for topic in qrels:
        for docid in qrels[topic]:
            if qrels[topic][docid] > 0:
                found.setdefault(docid, []).append(topic)
    return found


def _stream(
    args: argparse.Namespace, background: Background, spec: AnalyzerSpec, problems: Any
) -> tuple[Iterator[StreamDocument], int | None]:
    from sdretrieval.tracking.streams import index_stream, jsonl_stream

    if args.index is not None:
        from sdretrieval.snapshot import open_snapshot

        return index_stream(open_snapshot(args.index), background)
    from sdretrieval.corpus.record import FieldMap
    from sdretrieval.lucene.analysis import analyze

    fields = FieldMap(
        docid=args.id_field, contents=tuple(args.contents_field) or ("contents",), date=args.date_field,
        date_format=args.date_format,
    )  # fmt: skip
    analyse: Callable[[str], list[str]] = lambda text: analyze(text, spec)  # noqa: E731
    if args.input == "-":
        return jsonl_stream(sys.stdin.buffer, background, analyse, fields=fields, problems=problems), None
    return _file_stream(args.input, background, analyse, fields, problems), None


def _file_stream(path: str, background: Background, analyse: Any, fields: Any, problems: Any):
    from sdretrieval.files import open_text
    from sdretrieval.tracking.streams import jsonl_stream

    with open_text(path) as text:  # plain or gzip; its bytes are read, not its text
        raw: Any = text.buffer  # type: ignore[attr-defined]
        yield from jsonl_stream(raw, background, analyse, fields=fields, problems=problems, name=path)


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
    if n < seen:
        raise ParameterError(
            f"the stream begins again with {first.docid!r} and ends after {n} documents; the state has seen {seen}",
            remedy="Feed the same stream from its beginning, or only what is new.",
        )
    if last != notes.get("last"):
        raise ParameterError(
            f"the stream begins again with {first.docid!r}, but its document {seen} is {last!r} where the state has "
            f"seen {notes.get('last')!r}",
            remedy="Feed the same stream from its beginning, or only what is new.",
        )
    yield from documents


def _with_bar(stream: Iterator[StreamDocument], total: int | None, args: argparse.Namespace):
    """A bar where the end is known and the screen is free for it."""
    if args.input == "-" and args.index is None:
        return stream
    from sdretrieval.progress import progress

    return progress(stream, total=total, label="tracking", unit=" documents")


def _earlier(args: argparse.Namespace) -> Snapshot | None:
    if args.background == "stream":
        return None
    from sdretrieval.snapshot import open_snapshot

    return open_snapshot(args.background)


def _analyzer(args: argparse.Namespace, earlier: Snapshot | None) -> AnalyzerSpec:
    """How text becomes words: as in the indexes at hand, which must agree."""
    chosen = args.language is not None or args.stemmer is not None or args.keep_stopwords
    found = []
    if earlier is not None:
        found.append((f"--background {args.background}", earlier.analyzer))
    if args.index is not None:
        from sdretrieval.snapshot import open_snapshot

        found.append((f"--index {args.index}", open_snapshot(args.index).analyzer))
    asked = AnalyzerSpec(
        language=args.language or "en", stemmer=args.stemmer or "porter", stopwords=not args.keep_stopwords
    )
    if chosen or not found:
        found.append(("the flags", asked))
    for name, spec in found[1:]:
        if spec != found[0][1]:
            raise ParameterError(
                f"{found[0][0]} was analysed as {found[0][1]}, {name} says {spec}",
                remedy="Words only match where documents are analysed alike: re-index one of them.",
            )
    return found[0][1]


def _forgetting(args: argparse.Namespace):
    if args.forget is None:
        return None
    from sdretrieval.temporal.timeline import parse_duration
    from sdretrieval.tracking.forgetting import Forgetting

    return Forgetting(args.forget, parse_duration(args.bandwidth or "7d"))


def _check(args: argparse.Namespace) -> None:
    if args.topics is None and args.seeds is None and not (args.state and Path(args.state).is_dir()):
        raise ParameterError("there is no topic to follow", remedy="Give --topics, --seeds or both.")
    if args.bandwidth is not None and args.forget is None:
        raise ParameterError("--bandwidth says nothing without --forget", remedy="Add --forget exponential.")
    if args.labelled and args.feedback is None:
        raise ParameterError("--labelled says nothing without --feedback", remedy="Add --feedback FILE.")
    if args.hits is not None and args.run_file is None:
        raise ParameterError("--hits says nothing without --run", remedy="Add --run FILE.")
    if args.emit == "on-topic" and args.threshold is None:
        raise ParameterError("--emit on-topic needs a threshold", remedy="Add --threshold X.")
    if args.emit == "none" and args.run_file is not None:
        raise ParameterError("--run writes what is emitted, and --emit none emits nothing", remedy="Drop one of them.")
    if args.grow and args.background == "stream":
        raise ParameterError("--grow is for a --background index: the stream grows anyway", remedy="Drop --grow.")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if value != value:
        raise argparse.ArgumentTypeError("nan is not a number")
    return value


def _positive(text: str) -> int:
    from sdretrieval.cli.options import positive

    return positive(text)
