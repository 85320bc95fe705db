"""``sdretrieval evaluate`` and ``sdretrieval compare`` as a shell sees them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from sdretrieval.cli.main import main

QRELS = """\
1 0 a 2
1 0 b 0
1 0 c 1
2 0 a 1
3 0 a 1
10 0 z 1
"""
QL = """\
1 Q0 b 1 4.0 ql
1 Q0 a 2 3.0 ql
1 Q0 d 3 2.0 ql
1 Q0 c 4 1.0 ql
2 Q0 b 1 2.0 ql
2 Q0 a 2 1.0 ql
3 Q0 a 1 1.0 ql
77 Q0 a 1 1.0 ql
"""
SD = """\
1 Q0 a 1 4.0 sd
1 Q0 c 2 3.0 sd
2 Q0 a 1 2.0 sd
3 Q0 b 1 2.0 sd
3 Q0 a 2 1.0 sd
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("qrels.txt", QRELS), ("ql.trec", QL), ("sd.trec", SD)):
        (tmp_path / name).write_text(text)
    (tmp_path / "times.tsv").write_text("1\t2011-01-01\n2\t2011-02-01\n3\t2011-02-09\n10\t2011-03-01\n")
    (tmp_path / "docs.tsv").write_text("a\t2010-05-01\nc\t2011-05-01\n")
    return tmp_path


def test_a_table_of_means(files, capsys):
    """ql: AP (1/2 + 2/4)/2, 1/2, 1; sd: 1, 1, 1/2."""
    assert main(["evaluate", "qrels.txt", "ql.trec", "sd.trec", "--measures", "AP", "P@5"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["run", "topics", "AP", "P@5"], ["ql", "3", "0.6667", "0.2667"], ["sd", "3", "0.8333", "0.2667"]]


def test_stderr_says_which_topics_were_not_counted(files, capsys):
    main(["evaluate", "qrels.txt", "ql.trec", "sd.trec"])
    said = capsys.readouterr().err
    assert "ql: 1 topic [77] without judgments: not counted" in said
    assert "sd: judged 1 topic [10] without results: not counted" in said


def test_complete_counts_zero(files, capsys):
    main(["evaluate", "qrels.txt", "sd.trec", "--complete", "--measures", "AP"])
    captured = capsys.readouterr()
    assert captured.out.splitlines()[1].split() == ["sd", "4", "0.6250"]
    assert "counted as zero" in captured.err


def test_means_over_different_topics_are_pointed_out(files, capsys):
    (files / "short.trec").write_text("1 Q0 a 1 1.0 s\n")
    main(["evaluate", "qrels.txt", "sd.trec", "short.trec"])
    assert "different topics" in capsys.readouterr().err


def test_jsonl_has_the_keys_and_values_of_ir_measures(files, capsys):
    """ir_measures always counts missing topics as zero: our --complete."""
    command = [sys.executable, "-m", "ir_measures", "qrels.txt", "sd.trec", "AP P@5 nDCG@10", "-q", "-o", "jsonl"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = {}
    for line in theirs.stdout.splitlines():
        record = json.loads(line)
        expected[record.pop("query_id"), record.pop("measure")] = record.pop("value")
        assert not record
    main(["evaluate", "qrels.txt", "sd.trec", "-m", "AP", "P@5", "nDCG@10", "-q", "-o", "jsonl", "--complete"])
    ours = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {r["run"] for r in ours} == {"sd"}
    assert {(r["query_id"], r["measure"]): r["value"] for r in ours} == pytest.approx(expected)


def test_jsonl_without_topics_has_no_query_id(files, capsys):
    main(["evaluate", "qrels.txt", "sd.trec", "-m", "AP", "-o", "jsonl"])
    (record,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert record == {"run": "sd", "measure": "AP", "value": pytest.approx(2.5 / 3)}


def test_csv_can_be_read_back(files, capsys):
    main(["evaluate", "qrels.txt", 'a,"b"=ql.trec', "-m", "AP", "-q", "-o", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(r["run"], r["query_id"], float(r["value"])) for r in rows] == [
        ('a,"b"', "1", 0.5),
        ('a,"b"', "2", 0.5),
        ('a,"b"', "3", 1.0),
        ('a,"b"', "all", pytest.approx(2 / 3)),
    ]


def test_latex_output(files, capsys):
    main(["evaluate", "qrels.txt", "ql.trec", "sd.trec", "-o", "latex"])
    out = capsys.readouterr().out
    assert r"qrels & MAP & 66.67 & 83.33 \\" in out


def test_per_topic_table(files, capsys):
    main(["evaluate", "qrels.txt", "ql.trec", "-m", "AP", "--per-topic"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1:] == [["ql", "1", "0.5000"], ["ql", "2", "0.5000"], ["ql", "3", "1.0000"], ["ql", "all", "0.6667"]]


def test_places(files, capsys):
    main(["evaluate", "qrels.txt", "ql.trec", "-m", "AP", "--places", "-1"])
    assert "0.6666666666666666" in capsys.readouterr().out


def test_threshold(files, capsys):
    """From grade 2 on only a of topic 1 is relevant: AP 1/2, 0, 0."""
    main(["evaluate", "qrels.txt", "ql.trec", "-m", "AP", "--rel", "2"])
    out = capsys.readouterr().out
    assert "AP(rel=2)" in out
    assert "0.1667" in out


def test_recall_precision_points(files, capsys):
    main(["evaluate", "qrels.txt", "ql.trec", "-m", "AP", "--recall-precision", "-o", "jsonl"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["measure"] for r in records] == ["AP"] + [f"IPrec@{i / 10}" for i in range(11)]


def test_significance_against_a_baseline(files, capsys):
    main(["evaluate", "qrels.txt", "ql.trec", "sd.trec", "--baseline", "ql", "-m", "AP", "--test", "t", "sign"])
    out = capsys.readouterr().out
    assert "against ql over 3 common topics" in out
    row = out.splitlines()[-1].split()
    assert row[:4] == ["sd", "AP", "0.8333", "+0.1667"]
    assert "2/0/1" in row


def test_the_baseline_may_be_named_only_there(files, capsys):
    main(["evaluate", "qrels.txt", "sd.trec", "--baseline", "ql.trec", "-m", "AP", "-o", "jsonl"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["run"] for r in records] == ["ql", "sd", "sd"]
    assert records[-1]["baseline"] == "ql"
    assert set(records[-1]["tests"]) == {"t", "wilcoxon", "sign", "randomisation"}
    assert records[-1]["tests"]["sign"]["p"] == 1.0


def test_by_query_time(files, capsys):
    command = ["evaluate", "qrels.txt", "ql.trec", "-m", "AP", "--by-time", "month", "--topic-times", "times.tsv"]
    main([*command])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["run", "period", "topics", "relevant", "AP"],
        ["ql", "2011-01", "1", "2", "0.5000"],
        ["ql", "2011-02", "2", "2", "0.7500"],
    ]
    main([*command, "-o", "csv"])
    assert "ql,2011-02,2,2,AP,0.75" in capsys.readouterr().out
    main([*command, "-o", "jsonl"])
    assert json.loads(capsys.readouterr().out.splitlines()[0])["period"] == "2011-01"


def test_by_relevant_time(files, capsys):
    """2011: only c of topic 1, which without a stands at rank 3 of ql."""
    main(["evaluate", "qrels.txt", "ql.trec", "-m", "AP", "--by-time", "year", "--doc-times", "docs.tsv"])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["ql", "2011", "1", "1", "0.3333"] in rows


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["qrels.txt", "missing.trec"], "missing.trec"),
        (["qrels.txt", "ql.trec", "-m", "MAPP"], "'MAPP'"),
        (["qrels.txt", "ql.trec", "--baseline", "nobody"], "nobody"),
        (["qrels.txt", "ql.trec", "--by-time", "month"], "--topic-times"),
        (["qrels.txt", "ql.trec", "--by-time", "month", "--time-of", "query"], "--topic-times"),
        (["qrels.txt", "ql.trec", "-q", "-o", "latex"], "csv"),
        (["qrels.txt", "other.trec"], "no topic of the run (first: x1) is judged"),
    ],
)
def test_mistakes_are_explained_and_exit_with_2(files, capsys, arguments, said):
    (files / "other.trec").write_text("x1 Q0 a 1 1.0 o\n")
    assert main(["evaluate", *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_help_has_an_example(capsys):
    for verb in ("evaluate", "compare", "report"):
        with pytest.raises(SystemExit) as end:
            main([verb, "--help"])
        assert end.value.code == 0
        assert f"sdretrieval {verb} qrels" in capsys.readouterr().out


# --- compare ---------------------------------------------------------------------------------------------------


def test_compare_shows_gains_losses_and_moves(files, capsys):
    assert main(["compare", "qrels.txt", "ql.trec", "sd.trec", "-m", "AP", "--topic", "1"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["1", "+0.5000", "0.5000", "1.0000"] in rows
    assert ["3", "-0.5000", "1.0000", "0.5000"] in rows
    assert ["a", "2", "2", "1", "+1"] in rows
    assert ["c", "1", "4", "2", "+2"] in rows
    assert ["b", "0", "1", "-", "gone"] in rows
    assert ["d", "?", "3", "-", "gone"] in rows


def test_compare_as_jsonl(files, capsys):
    main(["compare", "qrels.txt", "ql.trec", "sd.trec", "-m", "AP", "-o", "jsonl"])
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert records[0]["difference"] == pytest.approx(1 / 6)
    assert [(r["query_id"], r["difference"]) for r in records[1:]] == [("1", 0.5), ("2", 0.5), ("3", -0.5)]


def test_compare_takes_two(files, capsys):
    assert main(["compare", "qrels.txt", "ql.trec"]) == 2
    assert "two runs" in capsys.readouterr().err
    assert main(["compare", "qrels.txt", "ql.trec", "sd.trec", "--topic", "99"]) == 2
    assert "'99'" in capsys.readouterr().err
