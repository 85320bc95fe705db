"""Times as the package keeps them: whole milliseconds since 1970-01-01 UTC, in an int64.

One parser serves document dates, query times and command-line options. What it accepts, and how it decides:

=====================================  =====================================================================
``2011-02-08T12:30:27.183Z``           ISO 8601, extended or basic; without a zone it is UTC
``2011-02-08``, ``2011-02``, ``2011``  ISO 8601 day, month, year (as text): their first millisecond
``20110208``, ``20110208123027``       eight or fourteen digits: a day, or a day and time of day
``1297168227``, ``1297168227183``      any other number: the epoch, in seconds below 1e11, else in ms
``Tue, 08 Feb 2011 12:30:27 +0000``    RFC 2822; zone names it does not define count as UTC (its 4.3)
``Tue Feb 08 12:30:27 +0000 2011``     Twitter's form, in TREC Microblog topics
=====================================  =====================================================================

1e11 is the year 5138 in seconds and March 1973 in milliseconds: only milliseconds from 1966-10 to 1973-03 are
out of reach of the rule, and ``pattern="epoch_ms"`` (or ``"epoch_s"``) says which it is. Six-digit text is
refused (a month? ``yymmdd``? seconds?). Anything else takes a ``strptime`` pattern.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from math import isfinite
from numbers import Integral, Real

import numpy as np

from sdretrieval.core.errors import shown

UNDATED: int = int(np.iinfo(np.int64).min)
"""The time of a document that has none. It sorts before every date and equals no date."""

EPOCH_PATTERNS = {"epoch_s": 1000, "epoch_ms": 1}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EARLIEST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_LATEST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MILLISECOND
_SECONDS_BELOW = 1e11
_LONGEST = 100

_NUMBER = re.compile(r"[+-]?[0-9]{1,19}(?:\.[0-9]{0,19})?", re.ASCII)
_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})", re.ASCII)
# email.utils guesses at almost anything; this is the part of RFC 2822 that leaves nothing to guess.
_RFC_2822 = re.compile(
    r"(?:[a-z]{3,9}\.?,?\s+)?[0-9]{1,2}[\s-][a-z]{3}[\s-](?:[0-9]{2}|[0-9]{4})\s+[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?"
    r"(?:\s+(?:[+-][0-9]{4}|[a-z]{1,5}))?(?:\s+\([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
_TWITTER = re.compile(
    r"[a-z]{3}\s+([a-z]{3})\s+([0-9]{1,2})\s+([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\s+([+-][0-9]{4}|[a-z]{1,5}))?\s+([0-9]{4})",
    re.ASCII | re.IGNORECASE,
)

_ACCEPTED = (
    "ISO 8601 (2011-02-08T12:30:27Z, 2011-02-08, 2011-02), RFC 2822 (Tue, 08 Feb 2011 12:30:27 +0000), "
    "YYYYMMDD, epoch seconds or milliseconds, or give a strptime pattern such as '%d-%b-%Y'"
)


def parse_time(value: str | float | date, pattern: str | None = None) -> int:
    """Milliseconds since 1970 UTC, from any of the forms in this module's table.

    ``pattern`` is a ``strptime`` pattern, or ``"epoch_s"`` or ``"epoch_ms"`` for numbers; then nothing else
    is tried. Raises ``ValueError`` naming the value and what would have been accepted.

    >>> parse_time("2011-02-08T12:30:27.183Z")
    1297168227183
    >>> parse_time("26-FEB-1987 15:01:01.79", "%d-%b-%Y %H:%M:%S.%f")
    541350061790
    """
    try:
        ms = _parse(value) if pattern is None else _parse_with(value, pattern)
    except (ValueError, OverflowError, re.error) as error:
        accepted = _ACCEPTED if pattern is None else f"pattern {pattern!r}"
        raise ValueError(f"not a time: {shown(value)} ({error}). Accepted: {accepted}.") from None
    return ms


def format_time(ms: int) -> str:
    """ISO 8601 in UTC, with milliseconds only where there are some; ``undated`` for :data:`UNDATED`.

    >>> format_time(1297168227183), format_time(-1000)
    ('2011-02-08T12:30:27.183Z', '1969-12-31T23:59:59Z')
    """
    ms = int(ms)
    if ms == UNDATED:
        return "undated"
    if not _EARLIEST <= ms <= _LATEST:
        raise ValueError(f"not a time: {shown(ms)} ms is outside the years 1 to 9999")
    moment = _EPOCH + ms * _MILLISECOND
    text = moment.isoformat(timespec="milliseconds" if ms % 1000 else "seconds")
    return text.removesuffix("+00:00") + "Z"


def _parse(value: object) -> int:
    if isinstance(value, str):
        return _parse_text(value.strip())
    if isinstance(value, datetime):
        return _milliseconds(value)
    if isinstance(value, date):
        return _milliseconds(datetime(value.year, value.month, value.day))
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise ValueError(f"a {type(value).__name__}, text or a number was expected")
    if not isinstance(value, Integral):
        return _epoch(float(value))
    number = int(value)
    digits = str(number) if 0 < number < 10**14 else ""
    if len(digits) in (8, 14):
        with suppress(ValueError):  # a JSON number may well be a day; where it is none, it is the epoch
            return _compact(digits)
    return _epoch(number)


def _parse_text(text: str) -> int:
    if len(text) > _LONGEST:  # no date is; and no pattern below is then given much to chew on
        raise ValueError(f"{len(text)} characters")
    if text.isdigit() and text.isascii():
        if len(text) == 4:
            return _milliseconds(datetime(int(text), 1, 1))
        if len(text) == 6:
            raise ValueError("six digits could be a month, a day or seconds; give a pattern such as '%Y%m'")
        if len(text) in (8, 14):
            return _compact(text)
    if _NUMBER.fullmatch(text):
        return _epoch(_number(text))
    if month := _MONTH.fullmatch(text):
        return _milliseconds(datetime(int(month[1]), int(month[2]), 1))
    if twitter := _TWITTER.fullmatch(text):
        name, day, clock, zone, year = twitter.groups()
        text = f"{day} {name} {year} {clock} {zone or '+0000'}"
    if _RFC_2822.fullmatch(text):
        from email.utils import parsedate_to_datetime  # with all that mail needs

        return _milliseconds(parsedate_to_datetime(text))
    text = re.sub(r"\s*(?:UTC|GMT)$", "Z", text)
    return _milliseconds(datetime.fromisoformat(text))


def _compact(digits: str) -> int:
    digits = digits.ljust(14, "0")
    month, day, hour, minute, second = (int(digits[i : i + 2]) for i in range(4, 14, 2))
    return _milliseconds(datetime(int(digits[:4]), month, day, hour, minute, second))


def _epoch(value: int | float, unit: int | None = None) -> int:
    """``unit``: milliseconds in one step of ``value``; by magnitude where it is not told."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("not a finite number")
    if unit is None:
        unit = 1000 if abs(value) < _SECONDS_BELOW else 1
    return _within_years(value * unit if isinstance(value, int) else round(value * unit))


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _parse_with(value: object, pattern: str) -> int:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise ValueError(f"a {type(value).__name__}, text or a number was expected")
    text = str(value).strip()
    if pattern not in EPOCH_PATTERNS:
        return _milliseconds(datetime.strptime(text, pattern))
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return _epoch(_number(text), EPOCH_PATTERNS[pattern])


def _milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _within_years((moment - _EPOCH) // _MILLISECOND)  # integer arithmetic: exact before 1970 too


def _within_years(ms: int) -> int:
    if not _EARLIEST <= ms <= _LATEST:
        raise ValueError("outside the years 1 to 9999")
    return ms
