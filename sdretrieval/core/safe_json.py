"""JSON that anyone may have written: one reader for profiles, traces, states, manifests, topics and documents.

What Python's own lets through and something later stumbles over is refused here: values nested too deeply to be shown
or compared, whole numbers that no array holds, numbers that are infinite once read, NaN, and keys given twice.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import cache
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any, NoReturn

from sdretrieval.core.compressed import DamagedData
from sdretrieval.core.errors import InputError, shown
from sdretrieval.core.files import open_text

DEEPEST = 100  # objects and arrays inside one another
LARGEST_FILE = 64 << 20  # characters of a file that is one value
FRAMES = 1000  # of the stack, which are always there

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS = re.compile(r"[^\[\]{}]+")


def parse_json(text: str, *, bounded: bool = True, constants: bool = False, unique: bool = False) -> Any:
    """The value of a text; ValueError says what is wrong with it, and where.

    ``bounded``: numbers fit in 64 bits. ``constants``: NaN and Infinity, which Python writes, are taken. ``unique``: a
    key that is given twice is refused.

    >>> parse_json('{"weight": 1e999}')
    Traceback (most recent call last):
    ...
    ValueError: 1e999 is too large a number
    """
    try:
        value = json_decoder(bounded, constants, unique, is_deep(text)).decode(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"{error.msg} at {line}column {error.colno}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except OverflowError as error:
        raise ValueError(str(error)) from None
    check_depth(text, value)
    return value


def is_deep(text: str) -> bool:
    """Whether so many brackets are inside one another, or not closed, that Python's compiled reader must not follow.

    From 3.13 on it follows ten thousand of them, for which there is no room on the stack beside Java: it would crash.
    """
    if text.count("[") + text.count("{") <= FRAMES:
        return False
    left = _NO_BRACKETS.sub("", _STRING.sub("", text))
    for _ in range(30):
        before, left = left, left.replace("[]", "").replace("{}", "")
        if len(left) == len(before):
            break
    return len(left) > FRAMES


def check_depth(text: str, value: Any) -> None:
    """ValueError where the value of a text is nested too deeply."""
    if text.count("[") + text.count("{") <= DEEPEST:  # which is almost always, and quickly seen
        return
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level if isinstance(outer, dict | list) for inner in _inside(outer)]
    if any(isinstance(inner, dict | list) for inner in level):
        raise ValueError("nested too deeply")


def read_json(path: str | os.PathLike[str], remedy: str | None = None, **how: bool) -> dict[str, Any]:
    """The object that a file holds, plain or compressed; options as for :func:`parse_json`."""
    with open_text(path) as stream:
        try:
            text = stream.read(LARGEST_FILE + 1)
            if len(text) > LARGEST_FILE:
                raise ValueError(f"longer than {LARGEST_FILE:,} characters")
            value = parse_json(text, **how)
        except DamagedData as error:
            raise InputError(str(error), file=path, remedy="Fetch the file again.") from None
        except ValueError as error:
            raise InputError(f"not JSON: {error}", file=path, remedy=remedy) from None
    if not isinstance(value, dict):
        raise InputError(f"a JSON object was expected, got {shown(value)}", file=path, remedy=remedy)
    return value


def _inside(value: dict | list) -> Any:
    return value.values() if isinstance(value, dict) else value


@cache
def json_decoder(
    bounded: bool = True, constants: bool = False, unique: bool = False, deep: bool = False
) -> json.JSONDecoder:
    """``deep``: for a text that :func:`is_deep`; where it really is, a RecursionError."""
    decoder = json.JSONDecoder(
        parse_constant=None if constants else _no_constant,
        parse_int=_integer if bounded else None,
        parse_float=_float if bounded else None,
        object_pairs_hook=_once_each if unique else None,
    )
    if deep:
        decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(1 << 63) <= (value := int(digits)) < 1 << 63:
        raise ValueError(f"{shown(digits, 40)[1:-1]} is too large a number")
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{shown(digits, 40)[1:-1]} is too large a number")
    return value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"{shown(twice)} is given twice")
    return result
