"""Times: every accepted form, every refusal."""

from __future__ import annotations

import time as clock
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from sdretrieval.core.times import UNDATED, format_time, parse_time

NOON = 1_300_017_600_000
"""2011-03-13T12:00:00Z; `date -u -d 2011-03-13T12:00:00 +%s` prints 1300017600."""
DAY = 1_299_974_400_000
"""Its midnight: 43,200 s earlier."""

FORMS = {
    NOON: [
        "2011-03-13T12:00:00Z", "2011-03-13T12:00:00", "2011-03-13 12:00", "2011-03-13 12:00:00 UTC",
        "2011-03-13T14:30:00+02:30", "2011-03-13T07:00:00-0500", "20110313T120000Z", "  2011-03-13T12:00:00Z\n",
        "20110313120000", 20110313120000, "1300017600", "1300017600000", 1300017600, 1300017600000,
        np.int64(1300017600), np.float64(1300017600), "Sun, 13 Mar 2011 12:00:00 +0000",
        "Sun, 13 Mar 2011 12:00:00 GMT", "13 Mar 2011 07:00:00 EST", "Sun, 13 Mar 11 12:00 -0000",
        "Sun, 13 Mar 2011 04:00:00 -0800 (PST)", "Sun Mar 13 12:00:00 +0000 2011", "Sun Mar 13 14:00:00 +0200 2011",
        "Sun Mar 13 12:00:00 2011", datetime(2011, 3, 13, 12),
        datetime(2011, 3, 13, 13, tzinfo=timezone(timedelta(hours=1))),
    ],
    NOON + 250: [
        "2011-03-13T12:00:00.250Z", "2011-03-13T12:00:00,25Z", "2011-03-13T12:00:00.250999Z", "1300017600.25",
        1300017600.25,
    ],
    DAY: ["2011-03-13", "20110313", 20110313, date(2011, 3, 13)],
    -1000: [-1, "-1", "1969-12-31T23:59:59Z"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, expected) for expected, values in FORMS.items() for value in values),
        ("2011-03", DAY - 12 * 86_400_000),
        ("2011", DAY - 71 * 86_400_000),
        (0, 0),
        ("0", 0),
        (86_400_000, 86_400_000_000),  # eight digits, but no day: seconds
        ("1969-12-31", -86_400_000),
        ("Wed, 31 Dec 1969 23:00:00 +0000", -3_600_000),
        ("1969-12-31T23:59:59.9995Z", -1),  # fractions round down to the millisecond they lie in
        ("0001-01-01", -719_162 * 86_400_000),  # days before 1970
        (99_999_999_999, 99_999_999_999_000),  # seconds below 1e11, milliseconds from there
        (100_000_000_000, 100_000_000_000),
        (-99_999_999_999 // 2, -50_000_000_000_000),
        ("-100000000000", -100_000_000_000),
    ],
)
def test_accepted_forms(value, expected):
    assert parse_time(value) == expected


@pytest.mark.parametrize(
    ("value", "pattern", "expected"),
    [
        ("13-MAR-2011 12:00:00.25", "%d-%b-%Y %H:%M:%S.%f", NOON + 250),
        ("13.03.2011", "%d.%m.%Y", DAY),
        (201103, "%Y%m", DAY - 12 * 86_400_000),
        ("13.03.2011 14:00 +0200", "%d.%m.%Y %H:%M %z", NOON),
        ("20110313", "epoch_s", 20_110_313_000),
        ("20110313", "epoch_ms", 20_110_313),
        (1.5, "epoch_s", 1500),
        (20110313, "epoch_ms", 20_110_313),
    ],
)
def test_a_pattern_overrules_every_guess(value, pattern, expected):
    assert parse_time(value, pattern) == expected


REFUSED = [
    "", " ", "yesterday", "13/03/2011", "2011-13-01", "2011-02-29", "20111313", "20110313250000", "201103",
    "2011-3-13", "Sun, 31 Feb 2011 12:00:00 +0000", "Sun, 13 Mar 2011 12:00:00 +9999",
    "Sun Mrz 13 12:00:00 +0000 2011", "2011-03-13T12:00:00Z and more", "２０１１-03-13", "١٣٠٠٠١٧٦٠٠", "1_300_017_600",
    "1e9", "nan", "2011-03-13\x00", "9" * 5000, "x" * 100_000, "\ud800", float("nan"), float("inf"), 1.3e15, 10**5000,
    -(10**14), True, None, b"2011-03-13", [2011], UNDATED,
    "0001-01-01T00:00:00+01:00",  # its zone leaves the calendar
]  # fmt: skip


@pytest.mark.parametrize(
    "value", REFUSED, ids=lambda value: "huge" if isinstance(value, int) and abs(value) > 10**30 else repr(value)[:30]
)
def test_refused_with_a_short_message(value):
    with pytest.raises(ValueError, match="not a time: ") as caught:
        parse_time(value)
    assert "ISO 8601" in str(caught.value)
    assert len(str(caught.value)) < 500
    if value == "13/03/2011":
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [("2011", "%d.%m.%Y"), ("2011", "%Q"), ("1 1", "%Y %Y"), ("x", "epoch_s"), (True, "%Y"), (None, "%Y")],
)
def test_the_message_names_the_pattern(value, pattern):
    with pytest.raises(ValueError, match="not a time") as caught:
        parse_time(value, pattern)
    assert repr(pattern) in str(caught.value)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (NOON + 250, "2011-03-13T12:00:00.250Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (np.int64(NOON), "2011-03-13T12:00:00Z"),
        (UNDATED, "undated"),
        (parse_time("9999-12-31T23:59:59.999Z"), "9999-12-31T23:59:59.999Z"),
    ],
)
def test_format(ms, text):
    assert format_time(ms) == text


def test_undated_fits_an_int64_and_precedes_every_date():
    assert np.array([UNDATED], dtype=np.int64)[0] == UNDATED
    assert parse_time("0001-01-01") > UNDATED
    with pytest.raises(ValueError, match="outside the years"):
        format_time(UNDATED + 1)


def test_agrees_with_the_standard_library_over_a_thousand_random_moments():
    rng = np.random.default_rng(7)
    for ms in rng.integers(-60_000_000_000_000, 250_000_000_000_000, 1000).tolist():
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
        assert parse_time(moment.isoformat()) == ms
        assert parse_time(format_time(ms)) == ms


def test_long_hostile_text_is_refused():
    """In milliseconds; a pattern that looks back, quadratic in 200,000 characters, takes many minutes."""
    start = clock.process_time()
    for text in ("Sun, " * 50_000, "1" + " " * 200_000 + "x", "Sun " + " " * 200_000 + "Mar"):
        with pytest.raises(ValueError, match="not a time"):
            parse_time(text)
    assert clock.process_time() - start < 100
