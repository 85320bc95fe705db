"""``sdretrieval expansion`` as it is typed."""

from __future__ import annotations

import json

import pytest

from sdretrieval.cli.main import main


def write(path, *records) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


@pytest.fixture
def a(tmp_path) -> str:
    return write(
        tmp_path / "a.jsonl",
        {
            "qid": "1",
            "query": "hot wings",
            "model": "sd3",
            "terms": {"heat": 3, "wing": 1},
            "feedback": [{"docid": "d1", "weight": 0.25}, {"docid": "d2", "weight": 0.75}],
        },
        {"qid": "2", "model": "sd3", "terms": {"flow": 1}},
        {"qid": "7", "terms": {}},
    )


@pytest.fixture
def b(tmp_path) -> str:
    return write(
        tmp_path / "b.jsonl",
        {
            "qid": "1",
            "model": "rm",
            "weighting": {"type": "jm", "lam": 0.3},
            "background": 0.1,
            "terms": {"heat": 4, "drag": 4},
        },
        {"qid": "2", "model": "rm", "terms": {"flow": 1}},
    )


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(["expansion", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_show(capsys, a):
    code, out, _ = run(capsys, "show", a, "--qid", "1")
    assert code == 0
    lines = out.splitlines()
    assert lines[:4] == [
        "Topic 1: hot wings",
        "  sd3, 2 words, bm25 k1=0.9 b=0.4",
        "  learnt from d2 0.7500, d1 0.2500",
        "  word  weight",
    ]
    assert lines[4].split()[:2] == ["heat", "3.000"]
    assert len(lines[4]) > len(lines[5])  # the longer bar


def test_show_all_and_cut(capsys, a):
    code, out, _ = run(capsys, "show", a, "--top", "1")
    assert code == 0
    headings = [line for line in out.splitlines() if line.startswith("Topic")]
    assert headings == ["Topic 1: hot wings", "Topic 2", "Topic 7"]
    assert "  … 1 more words" in out


def test_show_json_can_be_read_back(capsys, a, tmp_path):
    _, out, _ = run(capsys, "show", a, "--json")
    (tmp_path / "again.jsonl").write_text(out)
    _, again, _ = run(capsys, "show", str(tmp_path / "again.jsonl"), "--json")
    assert out == again


def test_diff_has_a_line_per_topic(capsys, a, b):
    """Cosines by hand: 12 / (√10 · √32) = .671, and 1."""
    code, out, _ = run(capsys, "diff", a, b)
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["1", "2", "2", "1", "0.33", "0.671", "1", "wing", "drag"] in rows
    assert ["2", "1", "1", "1", "1.00", "1.000", "1"] in rows
    assert ["mean", "0.67", "0.835", "1.0"] in rows
    assert "1 topics only in A: 7" in out
    assert f"A  {a}: sd3, bm25 k1=0.9 b=0.4" in out
    assert f"B  {b}: rm, jm lam=0.3 / rm, bm25 k1=0.9 b=0.4" in out


def test_diff_of_one_topic_word_by_word(capsys, a, b):
    code, out, _ = run(capsys, "diff", a, b, "--qid", "1")
    assert code == 0
    rows = [line.split()[:4] for line in out.splitlines()]
    assert ["heat", "75.00", "50.00", "-25.00"] in rows
    assert "  only in A (%): wing 25" in out
    assert "  only in B (%): drag 50" in out
    assert "B  rm, 2 words, jm lam=0.3, background 0.1000" in out


def test_diff_json(capsys, a, b):
    _, out, _ = run(capsys, "diff", a, b, "--json")
    first, second = map(json.loads, out.splitlines())
    assert first["cosine"] == pytest.approx(12 / 320**0.5)
    assert first["b"]["weighting"] == {"type": "jm", "lam": 0.3}
    assert (second["qid"], second["unchanged"], second["changed"]) == ("2", 1, [])


def test_refusals(capsys, a, b, tmp_path):
    code, out, err = run(capsys, "show", a, "--qid", "9")
    assert (code, out) == (2, "")
    assert err == f"sdretrieval expansion: {a}: no topic '9' in it\n  It has 1, 2, 7.\n"
    code, _, err = run(capsys, "diff", a, str(tmp_path / "none.jsonl"))
    assert code == 2
    assert "none.jsonl: no such file" in err
    other = write(tmp_path / "other.jsonl", {"qid": "x", "terms": {}})
    code, _, err = run(capsys, "diff", b, other)
    assert code == 2
    assert f"{b}: no topic in common with {other}" in err
    assert "They have 1, 2 and x." in err
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"qid": "1", "terms": {"x": NaN}}\n')
    code, _, err = run(capsys, "show", str(bad))
    assert code == 2
    assert f"{bad}:1: not JSON: NaN is not JSON" in err
