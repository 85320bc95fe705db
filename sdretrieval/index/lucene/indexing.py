"""Documents to a Lucene index through Anserini's own IndexCollection, all or nothing.

The stream of documents is first written as Anserini's JSON lines into a hidden folder beside the target, so
that bad input is found before Lucene starts; the index is built there too, checked, and becomes the target's
next commit (committing.py). Whatever goes wrong before that, the target is as it was.

A document's time becomes a term of the field ``sdr_time`` (postings survive merges and deletes, and any
Lucene reader finds them); every other field is in the stored raw JSON.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from sdretrieval import __version__
from sdretrieval.collection.analyzer import AnalyzerSpec
from sdretrieval.collection.corpus.record import RESERVED, Document, Place, Problems, check_docid
from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.core.errors import IndexProblem, InputError, JavaError, ParameterError, SdretrievalError
from sdretrieval.core.jvm import java_class, start_jvm
from sdretrieval.core.progress import bar, progress
from sdretrieval.core.times import format_time
from sdretrieval.index.lucene.committing import ROOM, commit_index, writing_to
from sdretrieval.index.lucene.export import TIME_FIELD

# Times are terms of twenty digits, a 1 and (ms + 10^18), that sort as the times do. Digits alone: the
# Japanese analyzer parts letters from digits, the French one shortens words; numbers pass all of them whole.
TIME_OFFSET = 10**18
DOCUMENTS_PER_SHARD = 5_000
BYTES_PER_SHARD = 64 << 20
# Anserini does not index a text from which Java's trim() leaves nothing.
_TEXT = re.compile(r"[^\x00-\x20]")
_LISTED = 20
ASIDE = "index"  # in the folder an index is built in


def time_term(ms: int) -> str:
    """The term a time is indexed as.

    >>> time_term(0), time_term(-1)
    ('11000000000000000000', '10999999999999999999')
    """
    return f"1{ms + TIME_OFFSET:019d}"


@dataclass(kw_only=True)
class IndexSummary:
    """What became of a corpus. ``terms`` are unique terms; times are ms since 1970 UTC."""

    documents: int = 0
    added: int = 0  # to an index that was there
    deleted: int = 0  # from it, replaced ones included
    tokens: int = 0
    terms: int = 0
    undated: int = 0
    earliest: int | None = None
    latest: int | None = None
    empty: int = 0
    empty_docids: list[str] = field(default_factory=list)
    skipped: int = 0
    skipped_list: list[str] = field(default_factory=list)
    seconds_reading: float = 0.0
    seconds_indexing: float = 0.0
    bytes: int = 0

    @property
    def seconds(self) -> float:
        return self.seconds_reading + self.seconds_indexing

    def add(self, moment: int | None) -> None:
        """Count a document of this time."""
        self.documents += 1
        if moment is None:
            self.undated += 1
            return
        self.earliest = moment if self.earliest is None else min(self.earliest, moment)
        self.latest = moment if self.latest is None else max(self.latest, moment)

    def to_json(self) -> dict[str, Any]:
        """As plain values, times in ISO 8601."""
        values = asdict(self)
        for name in ("earliest", "latest"):
            values[name] = None if values[name] is None else format_time(values[name])
        for name in ("seconds_reading", "seconds_indexing"):
            values[name] = round(values[name], 3)
        return {**values, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What Lucene keeps besides the counts."""

    raw: bool = True
    positions: bool = True
    docvectors: bool = False

    def anserini_args(self) -> list[str]:
        return [f"-store{name.capitalize()}" for name, kept in asdict(self).items() if kept]


def build_index(
    documents: Iterable[Document],
    index_path: str | os.PathLike[str],
    *,
    analyzer: AnalyzerSpec | None = None,
    threads: int = 2,
    store_positions: bool = True,
    store_docvectors: bool = False,
    store_raw: bool = True,
    optimize: bool = True,
    overwrite: bool = False,
    problems: Problems | None = None,
    notes: dict[str, Any] | None = None,
) -> IndexSummary:
    """Index documents with Anserini; the finished index appears at ``index_path`` at once or not at all.

    With more than one thread, Lucene's internal document order differs between runs (scores do not).

    Parameters
    ----------
    documents
        From a :class:`~sdretrieval.collection.corpus.Reader`, or made in Python.
    analyzer
        How text becomes terms; Anserini's default where it is not given.
    store_positions, store_docvectors, store_raw
        What Lucene keeps besides the counts.
    optimize
        Merge to a single segment: export is fastest from one.
    overwrite
        Replace an index that is there, by a commit: who reads the old one goes on reading it.
    problems
        Where bad documents are reported; the first one is an error where it is not given.
    notes
        Kept in the commit beside the analyzer and the summary.

    Returns
    -------
    IndexSummary
    """
    target = Path(index_path)
    analyzer = analyzer or AnalyzerSpec()
    stored = Stored(raw=store_raw, positions=store_positions, docvectors=store_docvectors)
    check_target(target, overwrite=overwrite)
    with writing_to(target) as building:
        check_target(target, overwrite=overwrite)  # once more: others may have been at it
        summary = index_aside(
            documents, building, analyzer, stored, threads=threads, optimize=optimize, problems=problems
        )
        commit_index(target, building, notes_of(analyzer, summary, notes or {}, stored), added=building / ASIDE)
    return summary


def index_aside(
    documents: Iterable[Document],
    building: Path,
    analyzer: AnalyzerSpec,
    stored: Stored,
    *,
    threads: int = 2,
    optimize: bool = True,
    problems: Problems | None = None,
    check: Callable[[Document], None] = lambda document: None,
) -> IndexSummary:
    """A finished index of the documents in the folder ``ASIDE`` of ``building``; ``check`` may refuse a document."""
    if threads < 1:
        raise ParameterError(f"threads must be at least 1, got {threads}")
    shards, index = building / "documents", building / ASIDE
    shards.mkdir()
    summary = _write_shards(documents, shards, problems or Problems(), check)
    started = time.perf_counter()
    arguments = [
        *("-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"),
        *("-input", str(shards.resolve()), "-index", str(index.resolve())),
        *("-threads", str(threads), "-quiet"),
        *analyzer.anserini_args(),
        *stored.anserini_args(),
        *(["-optimize"] if optimize else []),
        *("-fields", TIME_FIELD),
    ]
    _run_anserini(arguments, summary.documents)
    shutil.rmtree(shards)
    summary.tokens, summary.terms = _statistics(index, summary.documents)
    summary.bytes = index_bytes(index)
    summary.seconds_indexing = time.perf_counter() - started
    return summary


def index_bytes(index: Path) -> int:
    """The size of an index's segments."""
    return sum(file.stat().st_size for file in index.glob("_*"))


def check_target(target: Path, *, overwrite: bool) -> None:
    """Refuse, before any work, a target that is in the way."""
    if not target.name:
        raise ParameterError(f"{str(target)!r} cannot be the name of an index")
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise IndexProblem(f"{target} exists and is not a folder.", remedy="Choose another name with --index.")
    content = [entry.name for entry in target.iterdir()]
    if not content:
        return
    if not any(name.startswith("segments") for name in content):
        raise IndexProblem(
            f"{target} exists and is not a Lucene index (it holds {', '.join(sorted(content)[:3])}…).",
            remedy="Choose another name with --index; only an index is ever overwritten.",
        )
    if not overwrite:
        raise IndexProblem(
            f"the index {target} exists.", remedy="Pass --overwrite to replace it, or choose another name."
        )


# Writing the documents ------------------------------------------------------------------------------------


def _write_shards(
    documents: Iterable[Document], folder: Path, problems: Problems, check: Callable[[Document], None]
) -> IndexSummary:
    """Write Anserini's JSON lines, several files so that threads share the work; check ids; keep count."""
    summary = IndexSummary()
    started = time.perf_counter()
    places = _Places()
    encode = json.JSONEncoder(allow_nan=False, default=_plain_value, check_circular=False).encode
    with _Shards(folder) as shards:
        for document in progress(documents, label="reading", unit=" documents"):
            try:
                _check(document, places)
                check(document)
                if not _TEXT.search(document.contents):
                    summary.empty += 1
                    if len(summary.empty_docids) < _LISTED:
                        summary.empty_docids.append(document.docid)
                    continue
                record = {"id": document.docid, "contents": document.contents, **document.fields}
                if document.time is not None:
                    record[TIME_FIELD] = time_term(document.time)
                shards.write(_encoded(document, record, encode))
            except InputError as error:
                problems.report(error)
                continue
            summary.add(document.time)
    summary.skipped, summary.skipped_list = problems.count, list(problems.listed)
    summary.seconds_reading = time.perf_counter() - started
    if not summary.documents:
        raise nothing_to_index(summary.empty, summary.skipped, summary.skipped_list)
    return summary


def nothing_to_index(empty: int, skipped: int, listed: list[str]) -> InputError:
    told = f"{empty} empty, {skipped} skipped as bad" + (f"; the first: {listed[0]}" if listed else "")
    return InputError(f"the corpus has no document to index ({told}).", remedy="Check the input and --format.")


def _check(document: Document, places: _Places) -> None:
    """Documents made in Python have not been through a reader: ids are checked here for all."""
    place = document.place
    if trouble := check_docid(document.docid):
        raise place.error(trouble)
    if not RESERVED.isdisjoint(document.fields):
        raise place.error(f"fields may not be named {', '.join(sorted(RESERVED & document.fields.keys()))}")
    if before := places.add(document.docid, place):
        raise place.error(
            f"document id {document.docid!r} was already used at {before}",
            "Ids must be unique: correct one, pass --skip-bad to keep the first, or, where ids are "
            "file names, pass --docid path.",
        )


class _Places:
    """Where each id was seen, in as little memory as a dictionary of whole numbers takes."""

    _LINES = 1 << 40

    def __init__(self) -> None:
        self._files: list[str] = []
        self._seen: dict[str, int] = {}

    def add(self, docid: str, place: Place) -> Place | None:
        """Note an id; the place of its first use if it has one."""
        if not self._files or self._files[-1] != place.file:
            self._files.append(place.file)
        here = (len(self._files) - 1) * self._LINES + (place.line or 0)
        before = self._seen.setdefault(docid, here)
        if before is here:
            return None
        file, line = divmod(before, self._LINES)
        return Place(self._files[file], line or None)


class _Shards:
    """JSON lines over numbered files, a new one when the last is full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stream: IO[str] | None = None
        self.count = self.lines = self.size = 0

    def __enter__(self) -> _Shards:
        return self

    def write(self, line: str) -> None:
        if self.stream is None or self.lines >= DOCUMENTS_PER_SHARD or self.size >= BYTES_PER_SHARD:
            self.__exit__()
            path = self.folder / f"{self.count:06d}.jsonl"
            # ASCII, everything else escaped: the same bytes whatever Java's idea of the default encoding
            self.stream = open(path, "w", encoding="ascii", newline="\n", buffering=1 << 20)  # noqa: SIM115
            self.count, self.lines, self.size = self.count + 1, 0, 0
        self.stream.write(line + "\n")
        self.lines += 1
        self.size += len(line)

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream.close()


def _encoded(document: Document, record: dict[str, Any], encode: Callable[[Any], str]) -> str:
    try:
        return encode(record)
    except (ValueError, TypeError, RecursionError) as error:
        raise document.place.error(
            f"document {document.docid!r} cannot be stored as JSON ({error})",
            "Numbers must be finite and names of fields text; correct it, or pass --skip-bad.",
        ) from None


def _plain_value(value: Any) -> Any:
    """What JSON has no word for, from documents made in Python: dates and numpy numbers; the rest as text."""
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


# Anserini ---------------------------------------------------------------------------------------------------


def _run_anserini(arguments: list[str], expected: int) -> None:
    """Run IndexCollection and make sure that every document arrived.

    Java works in a thread of its own, so that Ctrl-C reaches Python at once. Anserini prints its errors
    instead of raising them: what it prints, its counters and Lucene's record of a fatal error tell.
    """
    indexer = _indexer(arguments)
    counters, writer = indexer.getCounters(), indexer.writer
    with _java_errors() as printed:
        work = _in_java_thread(indexer.run)
        try:
            with bar(total=expected, label="indexing", unit=" documents") as shown:
                while wait([work], 0.1).not_done:
                    shown.update(counters.indexed.get() - shown.n)
            fatal = writer.getTragicException()
            if work.exception() or fatal or counters.indexed.get() != expected:
                first = next(iter(printed()), None)
                reason = fatal.toString() if fatal else first or work.exception() or "no reason given"
                raise _explained(str(reason), counters.indexed.get(), expected)
        except BaseException:
            with suppress(Exception):
                writer.rollback()  # stops every indexing thread and releases the files
            wait([work], 60)
            raise


def _in_java_thread(call: Callable[[], Any]) -> Future:
    """A call into Java on another thread, leaving this one free to notice Ctrl-C and to show progress."""
    import jnius  # once the JVM runs

    future: Future = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except Exception as error:
            future.set_exception(error)
        finally:
            jnius.detach()

    threading.Thread(target=work, name="anserini", daemon=True).start()
    return future


def _indexer(arguments: list[str]) -> Any:
    """Anserini's IndexCollection, from the same words its command line takes."""
    # Anserini's default buffer (4 GB) is more than many a heap.
    heap_mb = java_class("java.lang.Runtime").getRuntime().maxMemory() >> 20
    words = java_class("java.util.ArrayList")()
    for word in [*arguments, "-memoryBuffer", str(max(16, min(1024, heap_mb // 4)))]:
        words.add(word)
    settings = java_class("io.anserini.index.IndexCollection$Args")()
    parser = java_class("org.kohsuke.args4j.CmdLineParser")(settings)
    try:
        parser.parseArgument(words)
        return java_class("io.anserini.index.IndexCollection")(settings)
    except Exception as error:
        raise JavaError(f"Anserini does not take {' '.join(arguments)}: {error}") from error


@contextmanager
def _java_errors() -> Iterator[Callable[[], list[str]]]:
    """Catch what Java prints as errors meanwhile; the function returned gives the lines so far.

    After a failure Java's error stream stays shut: Lucene's merge threads die when they please, and the stack trace
    each leaves behind says nothing that the error raised does not say better.
    """
    start_jvm()
    from jnius import cast  # once the JVM runs

    system, stream = java_class("java.lang.System"), java_class("java.io.PrintStream")
    configurator = java_class("org.apache.logging.log4j.core.config.Configurator")
    level = java_class("org.apache.logging.log4j.Level")
    before, caught = system.err, java_class("java.io.ByteArrayOutputStream")()
    system.setErr(stream(cast("java.io.OutputStream", caught)))
    configurator.setRootLevel(level.OFF)  # it logs the same errors once more
    try:
        yield lambda: [line for line in caught.toString().splitlines() if line.strip()]
    except BaseException:
        system.setErr(stream(java_class("java.io.OutputStream").nullOutputStream()))
        raise
    else:
        system.setErr(before)
    finally:
        configurator.setRootLevel(level.ERROR)


def _explained(reason: str, indexed: int, expected: int) -> SdretrievalError:
    told = f"Anserini indexed {indexed:,} of {expected:,} documents, then failed: {reason}"
    if re.search(r"no space left|quota|file too large", reason, re.IGNORECASE):
        return IndexProblem(f"no room left on the disk. {told}", remedy=ROOM)
    if "OutOfMemoryError" in reason:
        return JavaError(f"Java ran out of memory. {told}", remedy="Pass --threads 1, or give Java a larger heap.")
    if "Thai segmentation" in reason:
        version = java_class("java.lang.System").getProperty("java.version")
        return JavaError(
            f"this Java ({version}) cannot segment Thai. {told}",
            remedy="Set JAVA_HOME to a full JDK, version 21 or later.",
        )
    return JavaError(told)


def _statistics(index: Path, expected: int) -> tuple[int, int]:
    """Tokens and unique terms of the finished index, which also proves that it can be opened."""
    with closing(java_class("io.anserini.index.IndexReaderUtils").getReader(str(index.resolve()))) as reader:
        if reader.numDocs() != expected:
            raise JavaError(f"the index has {reader.numDocs():,} documents, expected {expected:,}")
        tokens = reader.getSumTotalTermFreq("contents")
        terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, "contents")
        if terms is None:  # nothing but stop words
            return 0, 0
        unique = terms.size()
        if unique < 0:  # unknown over several segments: count
            walk, unique = terms.iterator(), 0
            while walk.next() is not None:
                unique += 1
        return max(tokens, 0), unique


def notes_of(analyzer: AnalyzerSpec, summary: IndexSummary, more: dict[str, Any], stored: Stored) -> dict[str, Any]:
    """What later commands need to know, for the commit."""
    return {
        "created_by": f"sdretrieval {__version__}",
        "anserini": anserini_jar().name.removeprefix("anserini-").removesuffix("-fatjar.jar"),
        "analyzer": analyzer.to_json(),
        "stored": asdict(stored),
        "time_field": TIME_FIELD,
        **more,
        "summary": summary.to_json(),
    }
