"""An index that goes out as CIFF and comes back ranks as before."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.java


def test_there_and_back(collection, typed, tmp_path):
    out, again = tmp_path / "all.ciff.gz", tmp_path / "again"
    assert typed("export", "--index", collection.index, "--output", out).code == 0
    assert typed("index", "--input", out, "--index", again).code == 0
    words_alone = ["--set", "ordered_weight=0", "--set", "near_weight=0"]
    for model, settings in (("rm3", []), ("blend", words_alone)):
        runs = []
        for place in (collection.index, again):
            words = ["--topics", collection.topics, "--model", model, "--output", tmp_path / "run.txt"]
            assert typed("search", "--index", place, *words, *settings).code == 0
            runs.append((tmp_path / "run.txt").read_bytes())
        assert runs[0] == runs[1]
    found = typed("search", "--index", again, "--topics", collection.topics, "--output", tmp_path / "words.txt")
    assert "no positions of words: neighbouring words of the query were not looked for" in found.err
    assert (tmp_path / "words.txt").read_bytes() == runs[0]  # CIFF does not tell where words stand


def test_ciff_is_not_mixed_with_texts(collection, refused, tmp_path):
    (tmp_path / "a.ciff").write_bytes(b"")
    told = refused("index", "--input", tmp_path / "a.ciff", "--index", collection.index, "--append")
    assert "Make one of its own" in told
    told = refused("index", "--input", tmp_path / "a.ciff", "--index", tmp_path / "new")
    assert "not as CIFF has it" in told
