"""JSON: an object per line (``.jsonl``), or an array or a sequence of objects over many lines (``.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from sdretrieval.collection.corpus.sources import Source

SUFFIXES = (".jsonl", ".ndjson", ".json")
LARGEST_WHOLE_FILE = 1 << 30  # characters; a JSON array has to be read whole


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_no_constant)  # Jackson, which reads it next, refuses NaN too


def records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line, object)`` for each document."""
    values = _lines if source.suffix != ".json" or _first_line_is_object(source) else _whole_file
    for number, value in values(source):
        if type(value) is dict:
            yield number, value
        else:
            message = f"a document must be a JSON object, got {type(value).__name__}: {json.dumps(value)[:60]}"
            source.report(message, number, 'Write documents as {"id": …, "contents": …}.')


def _lines(source: Source) -> Iterator[tuple[int, Any]]:
    decode = _decoder.decode
    for number, line in source.lines():
        if not line or line.isspace():
            continue
        try:
            yield number, decode(line)
        except (ValueError, RecursionError) as error:
            _report_malformed(source, number, line, error)


def _first_line_is_object(source: Source) -> bool:
    """Whether a ``.json`` file is in truth JSON lines."""
    head = source.head(1 << 13).decode(source.encoding, errors="replace").lstrip("\ufeff \t\r\n")
    try:
        return isinstance(_decoder.decode(head.split("\n", 1)[0]), dict)
    except ValueError:
        # A first line longer than the head: pretty-printed objects break their lines sooner.
        return head.startswith("{") and "\n" not in head
    except RecursionError:
        return False


def _whole_file(source: Source) -> Iterator[tuple[int, Any]]:
    remedy = "Convert it to one object per line, e.g. with `jq -c '.[]'`."
    text = source.whole_text(LARGEST_WHOLE_FILE, "a JSON array this large does not fit in memory", remedy)
    position, line, counted = 0, 1, 0
    inside_array = False
    while True:
        while position < len(text) and (text[position].isspace() or (inside_array and text[position] in ",]")):
            position += 1
        if position == len(text):
            return
        line, counted = line + text.count("\n", counted, position), position
        if text[position] == "[" and not inside_array:
            inside_array, position = True, position + 1
            continue
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            _report_malformed(source, line, text[position : position + 200], error)
            return  # there is no telling where the next value starts
        yield line, value


def _report_malformed(source: Source, number: int, line: str, error: Exception) -> None:
    where, told = "", str(error)
    if isinstance(error, json.JSONDecodeError):
        where, told = f" at column {error.colno}", error.msg
    elif isinstance(error, RecursionError):
        told = "nested too deeply"
    begin = line[:60] + ("…" if len(line) > 60 else "")
    remedy = "Correct the line, pass --skip-bad, or name the format with --format if this is no JSON."
    source.report(f"malformed JSON{where} ({told}): {begin!r}", number, remedy)
