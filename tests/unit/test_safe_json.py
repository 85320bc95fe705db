"""JSON that anyone may have written."""

from __future__ import annotations

import gzip

import pytest

from sdretrieval.core.errors import InputError
from sdretrieval.core.safe_json import DEEPEST, FRAMES, is_deep, parse_json, read_json


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a": [' * 9000 + "]}" * 9000, "nested too deeply"),
        ("[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested too deeply"),
        ('{"a":' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), "nested too deeply"),
        (str(2**63), "9223372036854775808 is too large a number"),
        ("-" + "9" * 5000, "is too large a number"),
        ("-1e999", "-1e999 is too large a number"),
        ("NaN", "NaN is not JSON"),
        ("{\n1", "at line 2, column 1"),
        ("", "Expecting value at column 1"),
    ],
)
def test_what_is_refused(text, told):
    with pytest.raises(ValueError, match=told):
        parse_json(text)


@pytest.mark.parametrize("piece", ["[", '{"a":', r'["\\", ', r'["\"]", '])
def test_only_brackets_outside_of_strings_make_a_text_deep(piece):
    """Python's compiled reader would follow them until the stack beside Java ends, from Python 3.13 on."""
    assert is_deep(piece * 2 * FRAMES) and not is_deep(piece * (FRAMES // 2))
    flat = f"[{', '.join([piece + '1' + (']' if piece[0] == '[' else '}')] * 2 * FRAMES)}]"
    assert not is_deep(flat) and len(parse_json(flat)) >= 2 * FRAMES
    assert not is_deep(f'["{"[" * 2 * FRAMES}"]')


def test_what_is_read():
    assert parse_json("[" * DEEPEST + "]" * DEEPEST)
    assert parse_json("[]" + " " * 9) == []
    assert parse_json("[" + "[]," * 9999 + "[]]") == [[]] * 10_000  # many, and not deep
    assert parse_json(f"[{-(2**63)}, {2**63 - 1}, 1e308]") == [-(2**63), 2**63 - 1, 1e308]
    assert parse_json("9" * 30, bounded=False) == int("9" * 30)
    assert parse_json("[Infinity]", constants=True) == [float("inf")]
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="'a' is given twice"):
        parse_json('{"a": 1, "a": 2}', unique=True)


def test_files(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(gzip.compress(b'{"a": 1}'))
    assert read_json(path) == {"a": 1}
    for content, told in ((b"[1]", "a JSON object was expected"), (b"{", "not JSON"), (b"\xff", "not JSON")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=told):
            read_json(path)
    path.write_bytes(gzip.compress(b'{"a": 1}')[:-2])
    with pytest.raises(InputError, match="damaged gzip data"):
        read_json(path)
    monkeypatch.setattr("sdretrieval.core.safe_json.LARGEST_FILE", 9)
    path.write_text('{"a": "0123456789"}')
    with pytest.raises(InputError, match="longer than 9 characters"):
        read_json(path)
