"""Topics: what all formats share; the formats themselves are in topic_formats.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from os import fspath
from typing import Literal

from sdretrieval.collection.records import Topic
from sdretrieval.collection.trec.topic_formats import (
    ALIASES,
    FORMAT_REMEDY,
    PARSERS,
    TOPIC_FORMATS,
    TopicFile,
    detect_format,
    is_header,
)
from sdretrieval.collection.trec.trec_file import CONTROL, SURROGATE, Path, TrecFile, check_writable
from sdretrieval.core.errors import InputError, ParameterError, shown
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.times import format_time


def read_topics(
    path: Path,
    format: str | None = None,
    field: str = "title",
    times: Path | None = None,
    *,
    qids: Literal["plain", "as-written"] = "plain",
    further: list[str] | None = None,
) -> list[Topic]:
    """Read topics in the order of the file.

    Parameters
    ----------
    format
        One of :data:`TOPIC_FORMATS`; told from the first lines where it is not given.
    field
        Which text is the query. ``"title"`` is the query proper under whatever name the format has for it
        (``<title>``, ``<query>``, ``text``, ``.W``). ``<top>`` and JSONL topics may have more: ``"desc"``,
        ``"title+desc"``, ``"title+desc+narr"``. What is not chosen stays in ``Topic.fields``.
    times
        A file of ``qid TAB time`` lines that gives, or overrides, the query times.
    qids
        Qrels call topic ``MB001`` 1 and topic ``051`` 51. ``"plain"`` does the same to the numbers in ``<top>``,
        SMART and CACM files; ``"as-written"`` leaves them. TSV and JSONL ids are never touched.
    further
        Filled with the topics that only ``times`` has. They change nothing, unless it has no other.

    Returns
    -------
    list of Topic
    """
    if qids not in ("plain", "as-written"):
        raise ParameterError(f"qids must be 'plain' or 'as-written', got {qids!r}")
    wanted = [ALIASES.get(name, name) for name in field.lower().split("+")]
    file = TopicFile(path, wanted)
    format = detect_format(file) if format is None else format
    if format not in TOPIC_FORMATS:
        remedy = f"Pass one of {', '.join(TOPIC_FORMATS)}."
        raise ParameterError(f"unknown topic format {shown(format)}", remedy=remedy)
    if format in ("tsv", "smart", "cacm") and wanted != ["title"]:
        message = f"{format} topics have one text, but field {field!r} of {fspath(path)} was asked for"
        raise ParameterError(message, remedy="Pass field 'title', which is that text.")
    plain = qids == "plain" and format not in ("tsv", "jsonl")
    topics: dict[str, Topic] = {}
    places: dict[str, int] = {}
    for raw in PARSERS[format](file):
        qid = _plain(raw.qid) if plain else raw.qid
        file.check_token(raw.line, "topic id", qid)
        if qid in topics:
            remedy = "Give each topic its own id." + (" qids='as-written' keeps its zeros." if plain else "")
            file.fail(raw.line, f"topic {shown(qid)} again: first on line {places[qid]}", remedy)
        if not raw.text:
            file.fail(raw.line, f"topic {shown(qid)} has no text", "Write the query, or remove the topic.")
        time = None if raw.time in (None, "") else file.time(raw.time_line or raw.line, raw.time)
        topics[qid] = Topic(qid, raw.text, time, raw.fields)
        places[qid] = raw.line
    if not topics:
        raise InputError(f"no topics in this file, read as {format}", file=path, remedy=FORMAT_REMEDY)
    if times is not None:
        given, others = TrecFile(times).times("topic id"), [] if further is None else further
        for qid, (_, time) in given.items():
            name = qid if qid in topics or not plain else _plain(qid)
            if name in topics:
                topics[name] = replace(topics[name], time=time)
            else:
                others.append(qid)
        if given and len(others) == len(given):
            remedy = "Do the two files belong together?"
            TrecFile(times).fail(given[others[0]][0], f"topic {shown(others[0])} is not in {fspath(path)}", remedy)
    return list(topics.values())


def read_times(path: Path) -> dict[str, int]:
    """Read query times, ``qid TAB time`` a line: ms since 1970 by topic."""
    return {qid: time for qid, (_, time) in TrecFile(path).times("topic id").items()}


def write_topics(path: Path, topics: Iterable[Topic]) -> None:
    """Write topics as JSONL where the name says so (``.jsonl``, ``.jsonl.gz``), as TSV otherwise.

    TSV keeps id, text and time; JSONL keeps the fields too.
    """
    line = _jsonl_line if fspath(path).removesuffix(".gz").endswith(".jsonl") else _tsv_line
    topics = list(topics)
    check_writable("topic id", [topic.qid for topic in topics])
    if not topics:
        raise ParameterError(f"no topics: nothing to write to {fspath(path)}")
    if len({topic.qid for topic in topics}) != len(topics):
        raise ParameterError("two topics have the same id")
    with atomic_writer(path) as stream:
        for topic in topics:
            stream.write(line(topic))


def _jsonl_line(topic: Topic) -> str:
    record: dict[str, object] = {"qid": topic.qid, "text": _checked_text(topic)}
    if topic.time is not None:
        record["time"] = format_time(topic.time)
    if topic.fields:
        if SURROGATE.search("".join([*topic.fields.keys(), *topic.fields.values()])):
            raise ParameterError(f"a field of topic {topic.qid!r} is not Unicode text")
        record["fields"] = dict(topic.fields)  # apart, so that no field can pose as the id, text or time
    # ASCII escapes: no character of a text can then be taken for the end of a line.
    return json.dumps(record) + "\n"


def _tsv_line(topic: Topic) -> str:
    text = _checked_text(topic)
    if CONTROL.search(text) or is_header([topic.qid, text]):
        raise ParameterError(
            f"text {shown(text)} of topic {topic.qid!r} would not survive in a TSV file",
            remedy="Write it to a .jsonl file instead, or remove tabs, line ends and control characters.",
        )
    return f"{topic.qid}\t{text}" + ("" if topic.time is None else f"\t{format_time(topic.time)}") + "\n"


def _checked_text(topic: Topic) -> str:
    text = topic.text.strip()
    if not text or SURROGATE.search(text):
        raise ParameterError(f"topic {topic.qid!r} needs a text in Unicode, got {shown(topic.text)}")
    return text


def _plain(qid: str) -> str:
    number = re.fullmatch(r"(?:MB)?0*([0-9]+)", qid, re.IGNORECASE)
    return number[1] if number else qid
