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


@pytest.fixture
def told(files, capsys):
    """``told("evaluate qrels.txt ql.trec")``: its output, what it says on stderr in ``told.err``."""

    def run(command: str) -> str:
        assert main(command.split()) == 0
        out, run.err = capsys.readouterr()
        return out

    return run


def records(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


# ql: AP (1/2 + 2/4)/2, 1/2, 1; sd: 1, 1, 1/2. From grade 2 on only a of topic 1 is relevant: AP 1/2, 0, 0.
# By year of the relevant: 2011 has only c of topic 1, which without a stands at rank 3 of ql.
@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("ql.trec sd.trec -m AP P@5", "run topics AP P@5|ql 3 0.6667 0.2667|sd 3 0.8333 0.2667"),
        ("sd.trec --complete -m AP", "run topics AP|sd 4 0.6250"),
        ("ql.trec -m AP --per-topic", "run topic AP|ql 1 0.5000|ql 2 0.5000|ql 3 1.0000|ql all 0.6667"),
        ("ql.trec -m AP --places -1", "run topics AP|ql 3 0.6666666666666666"),
        ("ql.trec -m AP --rel 2", "run topics AP(rel=2)|ql 3 0.1667"),
        (
            "ql.trec -m AP --by-time month --topic-times times.tsv",
            "run period topics relevant AP drop of AP, %|ql 2011-01 1 2 0.5000 +0.0|ql 2011-02 2 2 0.7500 -50.0",
        ),
        ("ql.trec -m AP --topic-times times.tsv --from 2011-02-01", "run topics AP|ql 2 0.7500"),
        ("ql.trec -m AP --topic-times times.tsv --until 2011-02-01", "run topics AP|ql 1 0.5000"),
        (
            "ql.trec -m AP --by-time year --doc-times docs.tsv",
            "run period topics relevant AP drop of AP, %|ql 2010 3 3 0.6667 +0.0|ql 2011 1 1 0.3333 +50.0",
        ),
    ],
)
def test_tables(told, command, rows):
    found = told(f"evaluate qrels.txt {command}").splitlines()
    assert [line.split() for line in found] == [row.split() for row in rows.split("|")]


@pytest.mark.parametrize(
    "command",
    [
        "qrels.txt ql.trec -m AP P@5",
        "-m map -m P.5 qrels.txt ql.trec",  # trec_eval's order
        "-q -n -m map -m P.5 qrels.txt ql.trec",
        "qrels.txt ql.trec AP P@5",  # ir_measures' order
        "qrels.txt -m map P_5 ql=ql.trec",
        "-m AP qrels.txt --places 3 ql.trec P@5",
    ],
)
def test_the_orders_that_other_tools_take(told, command):
    header, *rows = told(f"evaluate {command}").splitlines()
    assert header.split()[2:] == ["AP", "P@5"]
    assert {row.split()[0] for row in rows} == {"ql"}
    assert ("all" in rows[-1]) is False
    assert len(rows) == (3 if "-q" in command else 1)


def test_a_measure_that_is_also_a_file_is_a_file(files, told, capsys):
    (files / "AP").write_text(QL)
    assert told("evaluate qrels.txt AP -m P@5").splitlines()[1].split()[0] == "AP"
    assert main(["evaluate", "qrels.txt", "P@5"]) == 2
    assert "no run was named" in capsys.readouterr().err


def test_output_is_a_file_and_was_a_format(files, told):
    assert told("evaluate qrels.txt ql.trec -m AP --output-format csv --output values.csv") == ""
    assert (files / "values.csv").read_text() == told("evaluate qrels.txt ql.trec -m AP --output-format csv")
    assert told("evaluate qrels.txt ql.trec -m AP -o csv") == (files / "values.csv").read_text()
    assert "--output-format csv" in told.err


def test_depth_and_condensed_lists_as_trec_eval(told):
    """b before a and d before c in topic 1: without the unjudged d, c is third; within two documents there is no c."""
    assert "0.5833" in told("evaluate qrels.txt ql.trec -m AP -q -J")
    assert records(told("evaluate qrels.txt ql.trec -m AP -M 2 -q --output-format jsonl"))[0]["value"] == 0.25


def test_bounds_for_unjudged_documents(told):
    values = {
        r["measure"]: r["value"]
        for r in records(
            told("evaluate qrels.txt ql.trec --output-format jsonl -m RBP(p=0.5) -m RBPResidual(p=0.5) Judged@3")
        )
    }
    # topic 1: b a d c gives 1/4 + 1/16, unjudged d 1/8 and the rest 1/16; topic 2: b is not judged; topic 3: a
    assert values["RBP(p=0.5,rel=1)"] == pytest.approx((0.3125 + 0.25 + 0.5) / 3)
    assert values["RBPResidual(p=0.5)"] == pytest.approx((0.1875 + 0.75 + 0.5) / 3)
    assert values["Judged@3"] == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)


def test_several_baselines_and_all_pairs(files, told):
    (files / "rm.trec").write_text(QL.replace(" b 1 4.0", " b 1 2.5"))
    out = told(
        "evaluate qrels.txt ql.trec sd.trec rm.trec -m AP --baseline ql --baseline sd --test t --tukey --agreement"
    )
    assert "against ql over 3 common topics" in out
    assert "against sd over 3 common topics" in out
    pairs = [line.split()[:3] for line in out.split("Tukey")[1].splitlines() if " AP " in line]
    assert pairs == [["ql", "sd", "AP"], ["ql", "rm", "AP"], ["sd", "rm", "AP"]]
    found = records(told("evaluate qrels.txt ql.trec sd.trec -m AP --tukey --output-format jsonl"))[-1]
    assert found["test"] == "tukey"
    out = told("evaluate qrels.txt ql.trec sd.trec -m AP P@1 --agreement")
    assert out.splitlines()[-1].split() == ["AP", "P@1", "1.0000", "1.0000"]


def test_runs_without_judgments(told, capsys, files):
    rows = told("compare ql.trec sd.trec other=ql.trec").splitlines()
    assert "no judgments" in rows[0]
    sd, other = (row.split() for row in rows[2:])
    assert other[:3] == ["other", "4", "1.0000"]
    assert sd[:2] == ["sd", "3"]
    (record,) = records(told("compare ql.trec sd.trec --output-format jsonl"))
    assert record["overlap@10"] == pytest.approx((2 / 4 + 1 / 2 + 1 / 2) / 3)
    (files / "far.trec").write_text("99 Q0 a 1 1.0 far\n")
    assert main(["compare", "ql.trec", "far.trec"]) == 2
    assert "no topic in common" in capsys.readouterr().err


def test_stderr_says_which_topics_were_not_counted(files, told):
    told("evaluate qrels.txt ql.trec sd.trec")
    assert "ql: 1 topic [77] without judgments: not counted" in told.err
    assert "sd: judged 1 topic [10] without results: not counted" in told.err
    told("evaluate qrels.txt sd.trec --complete")
    assert "counted as zero" in told.err
    (files / "short.trec").write_text("1 Q0 a 1 1.0 s\n")
    told("evaluate qrels.txt sd.trec short.trec")
    assert "different topics" in told.err


def test_jsonl_has_the_keys_and_values_of_ir_measures(told):
    """ir_measures always counts missing topics as zero: our --complete."""
    command = [sys.executable, "-m", "ir_measures", "qrels.txt", "sd.trec", "AP P@5 nDCG@10", "-q", "-o", "jsonl"]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = {}
    for record in records(theirs.stdout):
        expected[record.pop("query_id"), record.pop("measure")] = record.pop("value")
        assert not record
    ours = records(told("evaluate qrels.txt sd.trec -m AP P@5 nDCG@10 -q --output-format jsonl --complete"))
    assert {r["run"] for r in ours} == {"sd"}
    assert {(r["query_id"], r["measure"]): r["value"] for r in ours} == pytest.approx(expected)
    (record,) = records(told("evaluate qrels.txt sd.trec -m AP --output-format jsonl"))
    assert record == {"run": "sd", "measure": "AP", "value": pytest.approx(2.5 / 3)}  # no query_id without topics


def test_csv_can_be_read_back_and_latex_is_a_table(told):
    rows = list(csv.DictReader(io.StringIO(told('evaluate qrels.txt a,"b"=ql.trec -m AP -q --output-format csv'))))
    assert {r["run"] for r in rows} == {'a,"b"'}
    found = {r["query_id"]: float(r["value"]) for r in rows}
    assert found == {"1": 0.5, "2": 0.5, "3": 1.0, "all": pytest.approx(2 / 3)}
    assert r"qrels & MAP & 66.67 & \textbf{83.33} \\" in told(
        "evaluate qrels.txt ql.trec sd.trec --output-format latex"
    )


def test_recall_precision_points(told):
    found = records(told("evaluate qrels.txt ql.trec -m AP --recall-precision --output-format jsonl"))
    assert [r["measure"] for r in found] == ["AP"] + [f"IPrec@{i / 10}" for i in range(11)]


def test_significance_against_a_baseline(told):
    out = told("evaluate qrels.txt ql.trec sd.trec --baseline ql -m AP --test t sign")
    assert "against ql over 3 common topics" in out
    row = out.splitlines()[-1].split()
    assert row[:4] == ["sd", "AP", "0.8333", "+0.1667"]
    assert "2/0/1" in row
    # The baseline may be named only there.
    found = records(told("evaluate qrels.txt sd.trec --baseline ql.trec -m AP --output-format jsonl"))
    assert [r["run"] for r in found] == ["ql", "sd", "sd"]
    assert found[-1]["baseline"] == "ql"
    assert set(found[-1]["tests"]) == {"t", "wilcoxon", "sign", "randomisation"}
    assert found[-1]["tests"]["sign"]["p"] == 1.0


def test_periods_in_other_forms(told):
    command = "evaluate qrels.txt ql.trec -m AP --by-time month --topic-times times.tsv --output-format"
    assert "ql,2011-02,2,2,AP,0.75" in told(f"{command} csv")
    assert records(told(f"{command} jsonl"))[0]["period"] == "2011-01"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evaluate qrels.txt missing.trec", "missing.trec"),
        ("evaluate qrels.txt ql.trec -m MAPP", "'MAPP'"),
        ("evaluate qrels.txt ql.trec --baseline nobody", "nobody"),
        ("evaluate qrels.txt ql.trec --by-time month", "--topic-times"),
        ("evaluate qrels.txt ql.trec --by-time month --time-of query", "--topic-times"),
        ("evaluate qrels.txt ql.trec --from 2011", "--topic-times"),
        ("evaluate qrels.txt ql.trec --until 1999 --topic-times times.tsv", "times.tsv"),
        ("evaluate qrels.txt ql.trec -q --output-format latex", "csv"),
        ("evaluate qrels.txt other.trec", "no topic of the run (x1) is judged"),
        ("compare qrels.txt ql.trec", "two runs"),
        ("compare qrels.txt ql.trec sd.trec --topic 99", "'99'"),
    ],
)
def test_mistakes_are_explained_and_exit_with_2(files, capsys, command, said):
    (files / "other.trec").write_text("x1 Q0 a 1 1.0 o\n")
    assert main(command.split()) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


# --- compare ---------------------------------------------------------------------------------------------------


def test_compare_shows_gains_losses_and_moves(told):
    rows = [line.split() for line in told("compare qrels.txt ql.trec sd.trec -m AP --topic 1").splitlines()]
    for row in ("1 +0.5000 0.5000 1.0000", "3 -0.5000 1.0000 0.5000"):  # topics
        assert row.split() in rows
    for row in ("a 2 2 1 +1", "c 1 4 2 +2", "b 0 1 - gone", "d ? 3 - gone"):  # documents
        assert row.split() in rows


def test_compare_as_jsonl(told):
    found = records(told("compare qrels.txt ql.trec sd.trec -m AP --output-format jsonl"))
    assert found[0]["difference"] == pytest.approx(1 / 6)
    assert [(r["query_id"], r["difference"]) for r in found[1:]] == [("1", 0.5), ("2", 0.5), ("3", -0.5)]
