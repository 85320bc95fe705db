"""TREC's files: topics, runs and judgments, read strictly and written whole.

Reading is strict because a silently skipped line is a silently wrong number: each error names the file and
the line, what was found there and the way out. Any file may be gzipped. Writing goes through a temporary
file, and refuses what could not be read back.

=========  ==========================================================================================
run        ``qid Q0 docid rank score tag``; the order is decided by the scores (:func:`rank_order`),
           as trec_eval does, never by the rank column or the order of lines
qrels      ``qid iteration docid relevance``
trec       ``<top>`` with ``<num> <title> <desc> <narr>``, closed or not, with or without their labels
microblog  the same with ``<querytime>``, and ``<query>`` or ``<title>``
tsv        qid, text and, optionally, time, separated by tabs; a header line ``qid query`` may come first
jsonl      one object per line with ``qid`` or ``id``; ``text``, ``query`` or ``title``; ``time``
smart      ``.I`` and ``.W``, as CISI and Cranfield
cacm       ``<DOC> <DOCNO>``, as Anserini ships the CACM queries
=========  ==========================================================================================

Reading order: runs and qrels; topics and what all their formats share; one parser per format; shared parts.
"""

from __future__ import annotations

import html
import json
import logging
import re
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import Literal, NoReturn

import numpy as np

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.files import atomic_writer, numbered_lines
from sdretrieval.records import Qrels, Ranking, Run, Topic
from sdretrieval.times import format_time, parse_time

Path = str | PathLike[str]
Missing = Literal["error", "drop"]

log = logging.getLogger(__name__)

TOPIC_FORMATS = ("trec", "microblog", "tsv", "jsonl", "smart", "cacm")

# trec_eval keeps an array with a place for every relevance level up to the highest: a level of a billion
# in a damaged file would cost gigabytes.
HIGHEST_RELEVANCE = 1_000_000

_RUN_FORM = "Each line is: qid Q0 docid rank score tag."
_QRELS_FORM = "Each line is: qid 0 docid relevance."


# ---------------------------------------------------------------------------------------- runs and qrels


def read_run(
    path: Path,
    *,
    known_docids: Container[str] | None = None,
    known_topics: Container[str] | None = None,
    missing: Missing = "error",
    collection: str = "the index",
) -> Run:
    """Read a run; topics stay in the order of the file, each list comes in rank order.

    ``known_docids`` and ``known_topics``, where given, are what the run may speak of; ``missing="drop"``
    leaves out the rest and logs how much that was. ``collection`` is what errors call the home of the docids.
    """
    source = _Source(path)
    known = _Known(source, known_docids, known_topics, missing, collection)
    found: dict[str, tuple[dict[str, float], list[int]]] = {}  # scores, and the lines they stood on
    tag = ""
    last: str | None = None
    for line, (qid, _, docid, rank, score, line_tag) in source.rows(6, _RUN_FORM):
        if qid != last:
            if not known.topic(qid, line):
                continue
            source.check_token(line, "topic id", qid)
            if not found:
                source.check_token(line, "tag", line_tag)
                tag = line_tag
            scores, lines = found.setdefault(qid, ({}, []))
            last = qid
        try:
            value = float(score)
        except ValueError:
            value = np.nan
        # Python also reads 1_000 and Arabic digits, which trec_eval takes for 1 and 0.
        if value != value or "_" in score or not score.isascii():
            source.fail(line, f"score {_shown(score)} is not a number", _RUN_FORM)
        if not rank.isdecimal():
            source.fail(line, f"rank {_shown(rank)} is not a whole number", _RUN_FORM)
        if not docid.isprintable():
            source.check_token(line, "docid", docid)
        if docid in scores:
            source.fail_again(line, qid, docid, lines[list(scores).index(docid)])
        if known.docid(docid, line):
            scores[docid] = value
            lines.append(line)
    rankings = {
        qid: Ranking(list(scores), np.fromiter(scores.values(), float, len(scores)))
        for qid, (scores, _) in found.items()
        if scores
    }
    known.report(left=len(rankings), form=_RUN_FORM)
    return Run(rankings, tag)


def write_run(path: Path, run: Mapping[str, Ranking], tag: str | None = None) -> None:
    """Write a run, plain or (by its name) ``.gz``. A topic without documents has no line in this format.

    Scores are written with as many digits as it takes to read back the same number: rounding them would
    make ties, and so another order.
    """
    name = tag if tag is not None else str(getattr(run, "tag", "sdretrieval"))
    _check_writable("tag", [name])
    _check_writable("topic id", run)
    if not any(map(len, run.values())):
        raise ParameterError(f"no topic of run {name!r} has a document: nothing to write to {fspath(path)}")
    with atomic_writer(path) as stream:
        for qid, ranking in run.items():
            _check_writable("docid", ranking.docids)
            start, end = f"{qid} Q0 ", f" {name}\n"
            hits = enumerate(ranking, 1)
            stream.write("".join([f"{start}{docid} {rank} {score!r}{end}" for rank, (docid, score) in hits]))


def read_qrels(
    path: Path,
    *,
    known_docids: Container[str] | None = None,
    known_topics: Container[str] | None = None,
    missing: Missing = "error",
    collection: str = "the index",
) -> Qrels:
    """Read judgments; the options are those of :func:`read_run`. The second column is ignored."""
    source = _Source(path)
    known = _Known(source, known_docids, known_topics, missing, collection)
    found: dict[str, tuple[dict[str, int], list[int]]] = {}  # judgments, and the lines they stood on
    for line, (qid, _, docid, relevance) in source.rows(4, _QRELS_FORM):
        if not known.topic(qid, line):
            continue
        if qid not in found:
            source.check_token(line, "topic id", qid)
        judged, lines = found.setdefault(qid, ({}, []))
        digits = relevance[1:] if relevance[0] in "+-" else relevance
        if not (digits.isdecimal() and digits.isascii()):
            source.fail(line, f"relevance {_shown(relevance)} is not a whole number", _QRELS_FORM)
        # Length first: Python takes its time over a number of a million digits.
        if len(digits.lstrip("0")) > 7 or int(digits) > HIGHEST_RELEVANCE:
            remedy = f"Levels are small numbers such as 0, 1, 2. {_QRELS_FORM}"
            source.fail(line, f"relevance {_shown(relevance)} is beyond {HIGHEST_RELEVANCE}", remedy)
        if not docid.isprintable():
            source.check_token(line, "docid", docid)
        if docid in judged:
            source.fail_again(line, qid, docid, lines[list(judged).index(docid)])
        if known.docid(docid, line):
            judged[docid] = int(relevance)
            lines.append(line)
    judgments = {qid: judged for qid, (judged, _) in found.items() if judged}
    known.report(left=len(judgments), form=_QRELS_FORM)
    return Qrels(judgments)


def write_qrels(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> None:
    """Write judgments as ``qid 0 docid relevance``, plain or (by its name) ``.gz``."""
    _check_writable("topic id", qrels)
    if not any(map(len, qrels.values())):
        raise ParameterError(f"no topic has a judgment: nothing to write to {fspath(path)}")
    with atomic_writer(path) as stream:
        for qid, judged in qrels.items():
            _check_writable("docid", judged)
            for docid, relevance in judged.items():
                if not -HIGHEST_RELEVANCE <= relevance <= HIGHEST_RELEVANCE or relevance != int(relevance):
                    raise ParameterError(
                        f"relevance of {docid!r} for topic {qid!r} must be a whole number "
                        f"up to {HIGHEST_RELEVANCE}, got {_shown(relevance)}"
                    )
                stream.write(f"{qid} 0 {docid} {int(relevance)}\n")


class _Known:
    """What a run or qrels file may speak of, and what became of the rest."""

    def __init__(
        self,
        source: _Source,
        docids: Container[str] | None,
        topics: Container[str] | None,
        missing: Missing,
        collection: str,
    ) -> None:
        if missing not in ("error", "drop"):
            raise ParameterError(f"missing must be 'error' or 'drop', got {missing!r}")
        self.source = source
        # `in` reads a sequence from its start, for every line of the file: a set does not.
        self.docids = frozenset(docids) if isinstance(docids, Sequence) else docids
        self.topics = frozenset(topics) if isinstance(topics, Sequence) else topics
        self.drop = missing == "drop"
        self.collection = collection
        self.dropped = 0

    def topic(self, qid: str, line: int) -> bool:
        if self.topics is None or qid in self.topics:
            return True
        return self._absent(line, f"topic {_shown(qid)} is not among the topics{_size(self.topics, '')}")

    def docid(self, docid: str, line: int) -> bool:
        if self.docids is None or docid in self.docids:
            return True
        size = _size(self.docids, " documents")
        return self._absent(line, f"docid {_shown(docid)} is not in {self.collection}{size}", "re-index, or ")

    def _absent(self, line: int, message: str, remedy: str = "") -> bool:
        if not self.drop:
            remedy += "pass missing='drop' (--missing drop) to leave such lines out."
            self.source.fail(line, message, remedy[0].upper() + remedy[1:])
        self.dropped += 1
        return False

    def report(self, *, left: int, form: str) -> None:
        path = self.source.path
        if left and self.dropped:
            log.warning("%s: %d lines on unknown topics or docids dropped", fspath(path), self.dropped)
        elif self.dropped:
            message = f"all {self.dropped} lines are on unknown topics or docids"
            remedy = f"Is this the file that belongs to {self.collection}?"
            raise InputError(message, file=path, remedy=remedy)
        elif not left:
            raise InputError("the file is empty", file=path, remedy=form)


# ------------------------------------------------------------------------------------------------ topics


def read_topics(
    path: Path,
    format: str | None = None,
    field: str = "title",
    times: Path | None = None,
    *,
    names: Mapping[str, str] | None = None,
    qids: Literal["plain", "as-written"] = "plain",
) -> list[Topic]:
    """Read topics in the order of the file.

    ``format``: one of :data:`TOPIC_FORMATS`; told from the first lines where it is not given.

    ``field``: which text is the query. ``"title"`` is the query proper under whatever name the format has
    for it (``<title>``, ``<query>``, ``text``, ``.W``). ``<top>`` and JSONL topics may have more: ``"desc"``,
    ``"title+desc"``, ``"title+desc+narr"``. What is not chosen stays in ``Topic.fields``.

    ``times``: a file of ``qid TAB time`` lines that gives, or overrides, the query times.

    ``names``: JSONL's own names for ``qid``, ``text`` and ``time``, e.g. ``{"text": "question"}``.

    ``qids``: qrels call topic ``MB001`` 1 and topic ``051`` 51. ``"plain"`` does the same to the numbers in
    ``<top>``, SMART and CACM files; ``"as-written"`` leaves them. TSV and JSONL ids are never touched.
    """
    if qids not in ("plain", "as-written"):
        raise ParameterError(f"qids must be 'plain' or 'as-written', got {qids!r}")
    if names and (unknown := sorted(set(names) - {"qid", "text", "time"})):
        raise ParameterError(f"names maps 'qid', 'text' and 'time', got {unknown[0]!r}")
    wanted = [_ALIASES.get(name, name) for name in field.lower().split("+")]
    source = _TopicSource(path, wanted=wanted, names=names or {})
    format = _detect(source) if format is None else format
    if format not in TOPIC_FORMATS:
        remedy = f"Pass one of {', '.join(TOPIC_FORMATS)}."
        raise ParameterError(f"unknown topic format {_shown(format)}", remedy=remedy)
    if names and format != "jsonl":
        raise ParameterError(f"names is for JSONL topics, but {fspath(path)} is read as {format}")
    if format in ("tsv", "smart", "cacm") and wanted != ["title"]:
        message = f"{format} topics have one text, but field {field!r} of {fspath(path)} was asked for"
        raise ParameterError(message, remedy="Pass field 'title', which is that text.")
    plain = qids == "plain" and format not in ("tsv", "jsonl")
    topics: dict[str, Topic] = {}
    places: dict[str, int] = {}
    for raw in _PARSERS[format](source):
        qid = _plain(raw.qid) if plain else raw.qid
        source.check_token(raw.line, "topic id", qid)
        if qid in topics:
            remedy = "Give each topic its own id." + (" qids='as-written' keeps its zeros." if plain else "")
            source.fail(raw.line, f"topic {_shown(qid)} again: first on line {places[qid]}", remedy)
        if not raw.text:
            source.fail(raw.line, f"topic {_shown(qid)} has no text", "Write the query, or remove the topic.")
        time = None if raw.time in (None, "") else source.time(raw.time_line or raw.line, raw.time)
        topics[qid] = Topic(qid, raw.text, time, raw.fields)
        places[qid] = raw.line
    if not topics:
        raise InputError(f"no topics in this file, read as {format}", file=path, remedy=_FORMAT_REMEDY)
    if times is not None:
        for qid, (line, time) in _read_times(times).items():
            name = qid if qid in topics or not plain else _plain(qid)
            if name not in topics:
                _Source(times).fail(line, f"topic {_shown(qid)} is not in {fspath(path)}", "Remove the line.")
            topics[name] = replace(topics[name], time=time)
    return list(topics.values())


def read_times(path: Path) -> dict[str, int]:
    """Read query times, ``qid TAB time`` a line: ms since 1970 by topic."""
    return {qid: time for qid, (_, time) in _read_times(path).items()}


def write_topics(path: Path, topics: Iterable[Topic], format: str | None = None) -> None:
    """Write topics as TSV or JSONL: as told, else by the name (``.jsonl``, ``.jsonl.gz``; TSV otherwise).

    TSV keeps id, text and time; JSONL keeps the fields too.
    """
    if format is None:
        format = "jsonl" if fspath(path).removesuffix(".gz").endswith(".jsonl") else "tsv"
    if format not in ("tsv", "jsonl"):
        raise ParameterError(f"topics are written as 'tsv' or 'jsonl', not as {_shown(format)}")
    topics = list(topics)
    _check_writable("topic id", [topic.qid for topic in topics])
    if not topics:
        raise ParameterError(f"no topics: nothing to write to {fspath(path)}")
    if len({topic.qid for topic in topics}) != len(topics):
        raise ParameterError("two topics have the same id")
    with atomic_writer(path) as stream:
        for topic in topics:
            stream.write(_jsonl_line(topic) if format == "jsonl" else _tsv_line(topic))


def _jsonl_line(topic: Topic) -> str:
    record: dict[str, object] = {"qid": topic.qid, "text": _checked_text(topic)}
    if topic.time is not None:
        record["time"] = format_time(topic.time)
    if topic.fields:
        if _SURROGATE.search("".join([*topic.fields.keys(), *topic.fields.values()])):
            raise ParameterError(f"a field of topic {topic.qid!r} is not Unicode text")
        record["fields"] = dict(topic.fields)  # apart, so that no field can pose as the id, text or time
    # ASCII escapes: no character of a text can then be taken for the end of a line.
    return json.dumps(record) + "\n"


def _tsv_line(topic: Topic) -> str:
    text = _checked_text(topic)
    if _CONTROL.search(text) or _is_header([topic.qid, text]):
        raise ParameterError(
            f"text {_shown(text)} of topic {topic.qid!r} would not survive in a TSV file",
            remedy="Write it to a .jsonl file instead, or remove tabs, line ends and control characters.",
        )
    return f"{topic.qid}\t{text}" + ("" if topic.time is None else f"\t{format_time(topic.time)}") + "\n"


def _checked_text(topic: Topic) -> str:
    text = topic.text.strip()
    if not text or _SURROGATE.search(text):
        raise ParameterError(f"topic {topic.qid!r} needs a text in Unicode, got {_shown(topic.text)}")
    return text


def _plain(qid: str) -> str:
    number = re.fullmatch(r"(?:MB)?0*([0-9]+)", qid, re.IGNORECASE)
    return number[1] if number else qid


def _read_times(path: Path) -> dict[str, tuple[int, int]]:
    """Line and time by topic."""
    source = _Source(path)
    form = "Each line is: qid, tab, time."
    times: dict[str, tuple[int, int]] = {}
    for line, text in source.lines():
        if not text.strip():
            continue
        columns = [column.strip() for column in text.split("\t")]
        if len(columns) != 2:
            source.fail(line, f"expected 2 columns at tabs, found {len(columns)}: {_shown(text)}", form)
        qid, time = columns
        source.check_token(line, "topic id", qid)
        if qid in times:
            source.fail(line, f"topic {_shown(qid)} again: first on line {times[qid][0]}", "Remove one line.")
        times[qid] = line, source.time(line, time)
    if not times:
        raise InputError("the file is empty", file=path, remedy=form)
    return times


# ---------------------------------------------------------------------------------- one parser per format


@dataclass
class _RawTopic:
    """A topic as its format has it, before the checks that all formats share."""

    line: int
    qid: str
    text: str = ""
    time: object = None
    time_line: int | None = None
    fields: dict[str, str] = field(default_factory=dict)


_FORMAT_REMEDY = (
    f"Pass the format, one of {', '.join(TOPIC_FORMATS)}; the plainest is one topic per line: qid, tab, text."
)

_ALIASES = {"number": "num", "query": "title", "text": "title", "description": "desc", "narrative": "narr"}

# Tags of TREC-1 to the Microblog tracks, with the labels TREC writes before their texts. These are tags
# wherever they stand; others at the start of a line only, so that a <b> in a sentence is not a field.
_LABELS = {
    "top": "",
    "num": "number",
    "title": "topic title query",
    "desc": "description",
    "narr": "narrative",
    "dom": "domain",
    "smry": "summary",
    "con": "concept(s)",
    "fac": "factor(s)",
    "def": "definition(s)",
    "nat": "nationality",
    "time": "time",
    "head": "",
    "querytime": "",
    "querytweettime": "",
}
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_.-]*)(?:\s[^<>]*)?>")
_LABEL = re.compile(r"\s*([A-Za-z]+(?:\(s\))?)\s*:")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});")
_ASIDE = re.compile(r"\s*<(?:[?!].*|/?(?:topics|xml|parameters)(?:\s[^<>]*)?)>\s*", re.IGNORECASE)


def _detect(source: _TopicSource) -> str:
    for line, text in source.numbered:
        start = text.lstrip()
        if not start or _ASIDE.fullmatch(text):
            continue
        if start.startswith("{"):
            return "jsonl"
        if re.match(r"<top[\s>]", start, re.IGNORECASE):
            return "trec"  # Microblog topics are these, with a <querytime>
        if re.match(r"<doc[\s>]", start, re.IGNORECASE):
            return "cacm"
        if re.match(r"\.I(?:\s|$)", start):
            return "smart"
        if "\t" in text:
            return "tsv"
        source.fail(line, f"cannot tell the topic format from {_shown(text)}", _FORMAT_REMEDY)
    raise InputError("no topics: the file is empty", file=source.path, remedy="Check the path.")


def _parse_trec(source: _TopicSource) -> Iterator[_RawTopic]:
    """``<top>`` topics. A field ends where the next begins: TREC's own files close their tags or do not."""
    remedy = "Each topic is <top>, its fields, </top>."
    pieces: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    start = 0  # the line of the open <top>; 0 outside
    name = ""  # the open field; "" between fields

    def keep(line: int, text: str) -> None:
        if name:
            pieces[name].append(text)
        elif text.strip():
            where = "in no field of its topic" if start else "outside <top> … </top>"
            source.fail(line, f"text {_shown(text.strip())} {where}", remedy)

    for line, text in source.numbered:
        if not start and _ASIDE.fullmatch(text):
            continue
        done = 0
        indent = len(text) - len(text.lstrip())
        for tag in _TAG.finditer(text):
            closing, tag_name = tag[1] == "/", _ALIASES.get(tag[2].lower(), tag[2].lower())
            if not (tag_name in _LABELS or tag_name == name or tag.start() == indent):
                continue
            keep(line, text[done : tag.start()])
            done = tag.end()
            if tag_name == "top":
                if closing and start:
                    yield _tagged(source, start, pieces, places)
                elif start:
                    source.fail(line, f"<top> inside the topic that begins on line {start}", remedy)
                elif closing:
                    source.fail(line, "</top> without <top>", remedy)
                start, name, pieces, places = 0 if closing else line, "", {}, {}
            elif not start:
                source.fail(line, f"{tag[0]} outside <top> … </top>", remedy)
            elif closing:
                name = ""
            elif tag_name in pieces:
                source.fail(line, f"{tag[0]} twice in the topic that begins on line {start}", remedy)
            else:
                name = tag_name
                pieces[name], places[name] = [], line
        keep(line, text[done:])
    if start:
        source.fail(start, "<top> is never closed: the file ends inside the topic", "Fetch the file again.")


def _tagged(
    source: _TopicSource, start: int, pieces: Mapping[str, list[str]], places: Mapping[str, int]
) -> _RawTopic:
    fields = {}
    for name, parts in pieces.items():
        text = " ".join(parts)
        label = _LABEL.match(text)
        if label and label[1].lower() in _LABELS.get(name, "").split():
            text = text[label.end() :]
        fields[name] = _squeeze(_ENTITY.sub(lambda entity: html.unescape(entity[0]), text))
    number = fields.pop("num", "")
    if not number:
        source.fail(start, "topic without a <num>", "Each topic has its id, as in <num> Number: 51.")
    text = source.chosen(start, number, fields)
    return _RawTopic(start, number, text, fields.get("querytime"), places.get("querytime"), fields)


def _parse_microblog(source: _TopicSource) -> Iterator[_RawTopic]:
    for raw in _parse_trec(source):
        if not raw.time:
            remedy = "Add it, or read the file as 'trec', which needs none."
            source.fail(raw.line, f"topic {_shown(raw.qid)} has no <querytime>", remedy)
        yield raw


def _parse_tsv(source: _TopicSource) -> Iterator[_RawTopic]:
    form = "Each line is: qid, tab, text and, optionally, tab, time."
    first = True
    for line, text in source.numbered:
        if not text.strip():
            continue
        columns = [column.strip() for column in text.split("\t")]
        if not (first and _is_header(columns)):
            if len(columns) not in (2, 3):
                found = f"found {len(columns)}: {_shown(text)}"
                source.fail(line, f"expected 2 or 3 columns at tabs, {found}", form)
            yield _RawTopic(line, columns[0], columns[1], columns[2] if len(columns) == 3 else None)
        first = False


def _is_header(columns: list[str]) -> bool:
    names = [column.lower() for column in columns]
    return names[0] in ("qid", "query_id", "id") and names[1:2] in (["query"], ["text"], ["title"])


def _parse_jsonl(source: _TopicSource) -> Iterator[_RawTopic]:
    form = 'Each line is an object such as {"qid": "1", "text": "the query"}; other names can be mapped.'
    usual = {
        "qid": ("qid", "id", "query_id"),
        "text": ("text", "query", "title"),
        "time": ("time", "querytime"),
    }

    def name_of(role: str, record: Mapping[str, object], line: int) -> str:
        name = source.names.get(role) or next((name for name in usual[role] if name in record), "")
        if name not in record and (name or role != "time"):
            wanted = _shown(name) if name else " or ".join(map(repr, usual[role]))
            source.fail(line, f"no {wanted} in the topic, only {_listed(record)}", form)
        return name

    for line, text in source.numbered:
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            source.fail(line, f"not JSON ({str(error)[:80]}): {_shown(text)}", form)
        if not isinstance(record, dict):
            source.fail(line, f"a JSON {type(record).__name__} instead of an object: {_shown(text)}", form)
        qid = record.pop(name_of("qid", record, line))
        if isinstance(qid, bool) or not isinstance(qid, str | int):
            source.fail(line, f"topic id {_shown(qid)} is neither text nor a whole number", form)
        time = record.pop(name_of("time", record, line), None)
        text_name = name_of("text", record, line) if "title" in source.wanted else ""
        query = record.pop(text_name, None) if source.wanted == ["title"] else record.get(text_name, "")
        if not isinstance(query, str):
            source.fail(line, f"{text_name!r} of topic {_shown(qid)} is not text but {_shown(query)}", form)
        nested = record.get("fields")
        if isinstance(nested, dict):
            del record["fields"]
            record |= nested
        fields = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in record.items()
            if value is not None
        }
        if source.wanted != ["title"]:
            named = {_ALIASES.get(name.lower(), name.lower()): value for name, value in fields.items()}
            query = source.chosen(line, str(qid), named | ({"title": query} if text_name else {}))
        if _SURROGATE.search("".join([query, *fields, *fields.values()])):
            source.fail(line, f"topic {_shown(qid)} has half a surrogate pair", "Write the text as UTF-8.")
        yield _RawTopic(line, str(qid).strip(), query.strip(), time, line, fields)


def _parse_smart(source: _TopicSource) -> Iterator[_RawTopic]:
    raw: _RawTopic | None = None
    name = ""
    parts: dict[str, list[str]] = {}

    def finished(raw: _RawTopic) -> _RawTopic:
        raw.fields = {key: _squeeze(" ".join(texts)) for key, texts in parts.items()}
        raw.text = raw.fields.get("w") or raw.fields.get("t", "")
        return raw

    for line, text in source.numbered:
        # Only a letter alone opens a section: ".NET" and ".W3C" are words of a query.
        marker = re.match(r"\.([A-Z])(?:\s+(.*))?$", text)
        if marker and marker[1] == "I":
            if raw is not None:
                yield finished(raw)
            raw, name, parts = _RawTopic(line, (marker[2] or "").strip()), "", {}
        elif marker and not marker[2] and raw is not None:
            name = marker[1].lower()
            parts.setdefault(name, [])
        elif name:
            parts[name].append(text)
        elif text.strip():
            remedy = "Each topic is a line .I with its id, a line .W, and its text."
            source.fail(line, f"{_shown(text)} before {'.W' if raw else 'the first .I'}", remedy)
    if raw is not None:
        yield finished(raw)


def _parse_cacm(source: _TopicSource) -> Iterator[_RawTopic]:
    form = "Each topic is <DOC> <DOCNO> its id </DOCNO> its text </DOC>."
    start = 0
    parts: list[str] = []
    for line, text in source.numbered:
        for piece in re.split(r"(</?DOC>)", text, flags=re.IGNORECASE):
            tag = piece.upper()
            if tag == "<DOC>":
                if start:
                    source.fail(line, f"<DOC> inside the topic that begins on line {start}", form)
                start, parts = line, []
            elif tag == "</DOC>":
                body = re.fullmatch(r"(?is)\s*<DOCNO>([^<]*)</DOCNO>(.*)", "\n".join(parts))
                if not start or body is None:
                    source.fail(start or line, "topic without its <DOCNO>" if start else "</DOC> alone", form)
                yield _RawTopic(start, body[1].strip(), _squeeze(body[2]))
                start = 0
            elif start:
                parts.append(piece)
            elif piece.strip():
                source.fail(line, f"text {_shown(piece)} outside <DOC> … </DOC>", form)
    if start:
        source.fail(start, "<DOC> is never closed: the file ends inside the topic", "Fetch the file again.")


_PARSERS: dict[str, Callable[[_TopicSource], Iterator[_RawTopic]]] = {
    "trec": _parse_trec,
    "microblog": _parse_microblog,
    "tsv": _parse_tsv,
    "jsonl": _parse_jsonl,
    "smart": _parse_smart,
    "cacm": _parse_cacm,
}


# ------------------------------------------------------------------------------------------ shared parts


class _Source:
    """A file that is being read: its lines, and the way to say what is wrong with one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[tuple[int, str]]:
        number = 0
        try:
            for number, text in numbered_lines(self.path):
                yield number, text
        except zlib.error as error:
            message = f"damaged gzip data after line {number} ({error})"
            raise InputError(message, file=self.path, remedy="Fetch the file again.") from None

    def rows(self, count: int, form: str) -> Iterator[tuple[int, list[str]]]:
        """Lines in their columns; empty lines are passed over."""
        for line, text in self.lines():
            columns = text.split()
            if len(columns) == count:
                yield line, columns
            elif columns:
                found = f"found {len(columns)}: {_shown(text)}"
                self.fail(line, f"expected {count} columns, {found}", f"{form} Ids have no spaces in them.")

    def check_token(self, line: int, what: str, text: str) -> None:
        if problem := _token_problem(text):
            self.fail(line, f"{what} {_shown(text)} {problem}", f"A {what} is one word of printable text.")

    def time(self, line: int, value: object) -> int:
        try:
            return parse_time(value)  # type: ignore[arg-type]  # it says itself what it cannot take
        except ValueError as error:
            self.fail(line, str(error), "Write query times as 2011-02-08T12:30:27Z.")

    def fail_again(self, line: int, qid: str, docid: str, first: int) -> NoReturn:
        message = f"docid {_shown(docid)} again for topic {_shown(qid)}: first on line {first}"
        self.fail(line, message, "A document stands once per topic: remove one of the lines.")

    def fail(self, line: int, message: str, remedy: str) -> NoReturn:
        raise InputError(message, file=self.path, line=line, remedy=remedy)


class _TopicSource(_Source):
    """A topic file, with what is wanted of it: the fields that make the query, and JSONL's own names."""

    def __init__(self, path: Path, *, wanted: list[str], names: Mapping[str, str]) -> None:
        super().__init__(path)
        self.wanted = wanted
        self.names = names
        self.numbered = list(self.lines())

    def chosen(self, line: int, qid: str, fields: Mapping[str, str]) -> str:
        """The wanted fields, joined."""
        for name in self.wanted:
            if name not in fields:
                message = f"topic {_shown(qid)} has no field {_shown(name)}, only {_listed(fields)}"
                self.fail(line, message, "Choose among these, e.g. field='title'.")
        return " ".join(fields[name] for name in self.wanted if fields[name])


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def _token_problem(text: str) -> str | None:
    """Why a text cannot be a column of a line."""
    if not text:
        return "is empty"
    if _CONTROL.search(text):
        return "has a control character in it"
    return None if text.split() == [text] else "has a space in it"


def _check_writable(what: str, tokens: Iterable[str]) -> None:
    tokens = tokens if isinstance(tokens, list) else list(tokens)
    together = " ".join(tokens)
    if together.isprintable() and together.split() == tokens:
        return  # the common case, for a thousand docids at once
    for token in tokens:
        if problem := _token_problem(token):
            raise ParameterError(
                f"{what} {_shown(token)} {problem}: it could not be read back",
                remedy=f"A {what} is one word of printable text.",
            )


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _size(known: Container[str], unit: str) -> str:
    return f" ({len(known)}{unit})" if isinstance(known, Sized) else ""


def _listed(names: Iterable[str]) -> str:
    listed = [_shown(name) for name in names]
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "") if listed else "nothing"


def _shown(value: object) -> str:
    """A value for a message: quoted, with control characters escaped, never a page long."""
    if isinstance(value, str):
        return repr(value if len(value) <= 80 else value[:60] + "…")
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 80 else text[:60] + "…"
