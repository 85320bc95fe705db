"""Measures by period of the query, and by period of the relevant documents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.evaluate import choose_period, evaluate, evaluate_by_time, read_document_times
from sdretrieval.evaluate.time_slices import period_of


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("period", "label"),
    [
        ("year", "2011"),
        ("quarter", "2011-Q1"),
        ("month", "2011-01"),
        ("week", "2010-W52"),  # 1 January 2011 was a Saturday
        ("day", "2011-01-01"),
        ("hour", "2011-01-01T23"),
    ],
)
def test_periods_by_the_calendar(period, label):
    assert period_of(ms("2011-01-01T23:59:59"), period) == label


def test_no_time_and_unknown_periods_and_times():
    assert period_of(ms("1958-03-01"), "month") == "1958-03"
    assert period_of(None, "month") == period_of(UNDATED, "month") == "undated"
    with pytest.raises(ParameterError, match="fortnight"):
        period_of(0, "fortnight")
    with pytest.raises(ParameterError, match="query or relevant, got 'author'"):
        evaluate_by_time(RUN, QRELS, {}, "year", time_of="author")


QRELS = {"1": {"old": 1, "new": 1, "junk": 0}, "2": {"new": 1}, "3": {"old": 2, "undated": 1}}
RUN = {
    "1": {"old": 4.0, "junk": 3.0, "other": 2.0, "new": 1.0},
    "2": {"junk": 2.0, "new": 1.0},
    "3": {"undated": 2.0, "old": 1.0},
}
DOC_TIMES = {"old": ms("2010-06-01"), "new": ms("2011-02-01"), "junk": ms("2010-06-02")}


def test_by_query_time_deals_out_the_topics():
    times = {"1": ms("2011-01-05"), "2": ms("2011-02-05"), "3": ms("2011-01-25")}
    slices = evaluate_by_time(RUN, QRELS, times, "month", ["AP"])
    whole = evaluate(RUN, QRELS, ["AP"])
    assert [(s.period, s.evaluation.topics, s.relevant) for s in slices] == [
        ("2011-01", ("1", "3"), 4),
        ("2011-02", ("2",), 1),
    ]
    assert slices[0].evaluation.per_topic["AP"] == {q: whole.per_topic["AP"][q] for q in ("1", "3")}


def test_slices_by_query_time_add_up_to_the_whole():
    """Their means weighted by their topics are the mean over all; topics without a time stand last."""
    slices = evaluate_by_time(RUN, QRELS, {"1": ms("2011-01-05"), "2": ms("2011-02-05")}, "month", ["AP"])
    assert [s.period for s in slices] == ["2011-01", "2011-02", "undated"]
    total = sum(s.evaluation.mean["AP"] * s.topics for s in slices)
    assert total / 3 == pytest.approx(evaluate(RUN, QRELS, ["AP"]).mean["AP"])


def test_by_relevant_time_by_hand():
    """2010: topic 1 keeps old at rank 1 (AP 1); topic 3 loses the undated one above, old moves to rank 1 (AP 1).
    2011: topic 1 loses old, new moves from rank 4 to 3 (AP 1/3); topic 2 has new at rank 2 (AP 1/2).
    Undated: topic 3 has it at rank 1."""
    slices = evaluate_by_time(RUN, QRELS, DOC_TIMES, "year", ["AP"], time_of="relevant")
    assert {s.period: dict(s.evaluation.per_topic["AP"]) for s in slices} == {
        "2010": {"1": 1.0, "3": 1.0},
        "2011": {"1": pytest.approx(1 / 3), "2": 0.5},
        "undated": {"3": 1.0},
    }
    assert [s.relevant for s in slices] == [2, 2, 1]


def test_by_relevant_time_minds_the_threshold():
    """From grade 2 on only old of topic 3 is relevant; the undated document above it stays, now non-relevant."""
    slices = evaluate_by_time(RUN, QRELS, DOC_TIMES, "year", ["AP"], rel=2, time_of="relevant")
    assert [(s.period, s.evaluation.mean["AP"]) for s in slices] == [("2010", 0.5)]


def test_one_period_for_all_is_the_plain_evaluation():
    times = dict.fromkeys(("old", "new", "undated"), ms("2011-01-01"))
    (only,) = evaluate_by_time(RUN, QRELS, times, "year", ["AP", "nDCG@10"], time_of="relevant")
    assert only.evaluation.mean == evaluate(RUN, QRELS, ["AP", "nDCG@10"]).mean


def test_missing_topics_are_zero_in_their_period_when_complete():
    partial = {"2": RUN["2"]}
    slices = evaluate_by_time(partial, QRELS, DOC_TIMES, "year", ["AP"], complete=True, time_of="relevant")
    assert {s.period: s.evaluation.mean["AP"] for s in slices} == {"2010": 0.0, "2011": 0.25, "undated": 0.0}


def test_choose_period_prefers_the_finest_with_enough_in_it():
    day = 86_400_000
    assert choose_period([i * day // 4 for i in range(40)]) == "day"
    assert choose_period([i * 30 * day for i in range(40)]) == "quarter"
    assert choose_period([0, 1]) is None
    assert choose_period([UNDATED] * 50) is None


def test_document_times_from_a_file(tmp_path):
    file = tmp_path / "times.tsv"
    file.write_text("d1\t2011-02-08\n\nd2\t1297123200000\n")
    assert read_document_times(file) == {"d1": ms("2011-02-08"), "d2": ms("2011-02-08")}


@pytest.mark.parametrize(
    ("text", "said"),
    [("d1\t2011-02-08\nd2\n", ":2:"), ("d1\tyesterday\n", "yesterday"), ("d1\t2011\nd1\t2012\n", "again")],
)
def test_a_broken_file_of_times_is_named_with_its_line(tmp_path, text, said):
    file = tmp_path / "times.tsv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        read_document_times(file)
    assert said in str(error.value)
    assert str(file) in str(error.value)
