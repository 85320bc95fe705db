"""``sdretrieval burstiness`` as it is typed."""

from __future__ import annotations

import json


def test_tables_and_picture(typed, collection, tmp_path):
    outcome = typed("burstiness", "--index", collection.index, "--plot", tmp_path / "b.png")
    assert outcome.code == 0, outcome.err
    for told in "fitted to 18 documents|measured on 6|perplexity|multinomial|sd|against the multinomial".split("|"):
        assert told in outcome.out
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
    assert "b.png" in outcome.err


def test_json(typed, collection):
    found = json.loads(typed("burstiness", "--index", collection.index, "--distributions", "dcm", "sd", "--json").out)
    assert [one["name"] for one in found["distributions"]] == ["dcm", "sd"]
    assert [one["name"] for one in found["classes"]] == ["high", "medium", "low"]
    assert abs(sum(found["classes"][2]["empirical"]) - 1) < 1e-9
    assert found["distributions"][0]["trials"]


def test_other_ways(typed, collection):
    printed = typed("burstiness", "--index", collection.index, "--as-printed", "--distributions", "sd")
    assert "as printed" in printed.out
    assert "perplexity" not in printed.out
    free = typed("burstiness", "--index", collection.index, "--smoothing", "auto", "--distributions", "sd")
    assert free.code == 0


def test_what_is_refused(refused, collection, tmp_path):
    index = ["--index", collection.index]
    assert "no index at" in refused("burstiness", "--index", tmp_path / "absent")
    assert "number or auto" in refused("burstiness", *index, "--smoothing", "high")
    assert "(0, 1)" in refused("burstiness", *index, "--smoothing", "2")
    assert "no distribution 'normal'" in refused("burstiness", *index, "--distributions", "normal")
    assert "is a folder" in refused("burstiness", *index, "--plot", tmp_path)
