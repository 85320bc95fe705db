"""JSON: an object per line (``.jsonl``), or an array or a sequence of objects over many lines (``.json``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

from sdretrieval.corpus.problems import Problems
from sdretrieval.corpus.sources import ENCODING_REMEDY, Source, undecodable
from sdretrieval.errors import InputError

SUFFIXES = (".jsonl", ".ndjson", ".json")
LARGEST_WHOLE_FILE = 1 << 30  # characters; a JSON array has to be read whole


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_no_constant)  # Jackson, which reads it next, refuses NaN too


def records(source: Source, encoding: str, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(line, object)`` for each document."""
    if source.suffix == ".json" and not _first_line_is_object(source, encoding):
        yield from _whole_file(source, encoding, problems)
        return
    decode = _decoder.decode
    for number, line in source.lines(encoding, problems):
        if not line or line.isspace():
            continue
        try:
            value = decode(line)
        except ValueError as error:
            problems.report(_malformed(source, number, line, error))
            continue
        except RecursionError:
            problems.report(InputError("JSON nested too deeply", file=source.name, line=number))
            continue
        if type(value) is dict:
            yield number, value
        else:
            problems.report(_not_object(source, number, value))


def _first_line_is_object(source: Source, encoding: str) -> bool:
    """Whether a ``.json`` file is in truth JSON lines."""
    try:
        head = source.head(1 << 13).decode(encoding, errors="replace").lstrip("\ufeff \t\r\n")
        return isinstance(_decoder.decode(head.split("\n", 1)[0]), dict)
    except ValueError:
        # A first line longer than the head: pretty-printed objects break their lines sooner.
        return head.startswith("{") and "\n" not in head
    except RecursionError:
        return False


def _whole_file(source: Source, encoding: str, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    with source.text(encoding) as stream:
        text = stream.read(LARGEST_WHOLE_FILE + 1)
    if len(text) > LARGEST_WHOLE_FILE:
        raise InputError(
            "a JSON array this large does not fit in memory", file=source.name,
            remedy="Convert it to one object per line, e.g. with `jq -c '.[]'`.",
        )  # fmt: skip
    if trouble := undecodable(text, encoding):
        raise InputError(trouble, file=source.name, remedy=ENCODING_REMEDY)
    position, line, counted = 0, 1, 0
    inside_array = False
    while True:
        while position < len(text) and (
            text[position].isspace() or (inside_array and text[position] in ",]")
        ):
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
            problems.report(_malformed(source, line, text[position : position + 200], error))
            return  # there is no telling where the next value starts
        if type(value) is dict:
            yield line, value
        else:
            problems.report(_not_object(source, line, value))


def _malformed(source: Source, number: int, line: str, error: Exception) -> InputError:
    where = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    told = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    begin = line[:60] + ("…" if len(line) > 60 else "")
    return InputError(
        f"malformed JSON{where} ({told}): {begin!r}",
        file=source.name,
        line=number,
        remedy="Correct the line, pass --skip-bad, or name the format with --format if this is no JSON.",
    )


def _not_object(source: Source, number: int, value: Any) -> InputError:
    return InputError(
        f"a document must be a JSON object, got {type(value).__name__}: {json.dumps(value)[:60]}",
        file=source.name,
        line=number,
        remedy='Write documents as {"id": …, "contents": …}.',
    )
