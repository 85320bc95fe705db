"""JSON: an object per line (``.jsonl``), or an array or a sequence of objects over many lines (``.json``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sdretrieval.collection.corpus.sources import Source
from sdretrieval.core.errors import shown
from sdretrieval.core.safe_json import check_depth, is_deep, json_decoder, parse_json

SUFFIXES = (".jsonl", ".ndjson", ".json")
LARGEST_WHOLE_FILE = 1 << 30  # characters; a JSON array has to be read whole
_BLANK = re.compile(r"\s*")


def _decoder_of(text: str) -> json.JSONDecoder:
    return json_decoder(bounded=False, deep=is_deep(text))  # an id may be a number of thirty digits


def records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line, object)`` for each document."""
    values = _lines if source.suffix != ".json" or _first_line_is_object(source) else _whole_file
    for number, value in values(source):
        if type(value) is dict:
            yield number, value
        else:
            message = f"a document must be a JSON object, got {type(value).__name__}: {shown(value)}"
            source.report(message, number, 'Write documents as {"id": …, "contents": …}.')


def _lines(source: Source) -> Iterator[tuple[int, Any]]:
    for number, line in source.lines():
        if not line or line.isspace():
            continue
        try:
            value = parse_json(line, bounded=False)
        except ValueError as error:
            _report_malformed(source, number, line, error)
        else:
            yield number, value


def _first_line_is_object(source: Source) -> bool:
    """Whether a ``.json`` file is in truth JSON lines."""
    head = source.head(1 << 13).decode(source.encoding, errors="replace").lstrip("\ufeff \t\r\n")
    first = head.split("\n", 1)[0]
    try:
        return isinstance(_decoder_of(first).decode(first), dict)
    except ValueError:
        # A first line longer than the head: pretty-printed objects break their lines sooner.
        return head.startswith("{") and "\n" not in head
    except RecursionError:
        return False


def _whole_file(source: Source) -> Iterator[tuple[int, Any]]:
    remedy = "Convert it to one object per line, e.g. with `jq -c '.[]'`."
    text = source.whole_text(LARGEST_WHOLE_FILE, "a JSON array this large does not fit in memory", remedy)
    decoder = _decoder_of(text)
    position, line, counted = 0, 1, 0
    array, expected = 0, "["  # the line of the open array, and what may stand there besides a value
    while True:
        position = _BLANK.match(text, position).end()  # type: ignore[union-attr]
        line, counted = line + text.count("\n", counted, position), position
        mark = text[position : position + 1]
        if not mark:
            break
        if mark in expected:
            position += 1
            array, expected = (0, "[") if mark == "]" else (array or line, "]" if mark == "[" else "")
            continue
        try:
            if array and "," in expected:
                raise json.JSONDecodeError("Expecting ',' or ']' after a value of the array", text, position)
            begin = position
            value, position = decoder.raw_decode(text, begin)
            check_depth(text[begin:position], value)
        except (ValueError, RecursionError) as error:
            _report_malformed(source, line, text[begin : begin + 200], error)
            return  # there is no telling where the next value starts
        yield line, value
        expected = ",]" if array else "["
    if array:
        message = f"the array that begins on line {array} is not closed: the file ends inside it"
        source.report(message, line, "If the file was cut short, fetch it again; or pass --skip-bad.")


def _report_malformed(source: Source, number: int, line: str, error: Exception) -> None:
    told = str(error)
    if isinstance(error, json.JSONDecodeError):
        told = f"{error.msg} at column {error.colno}"
    elif isinstance(error, RecursionError):
        told = "nested too deeply"
    remedy = "Correct the line, pass --skip-bad, or name the format with --format if this is no JSON."
    source.report(f"malformed JSON ({told}): {shown(line)}", number, remedy)
