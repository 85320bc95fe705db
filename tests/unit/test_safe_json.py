"""JSON that anyone may have written."""

from __future__ import annotations

import gzip

import pytest

from sdretrieval.core.errors import InputError
from sdretrieval.core.safe_json import DEEPEST, parse_json, read_json


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[" * 100_000, "nested too deeply"),
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
