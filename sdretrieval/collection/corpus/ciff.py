"""CIFF, the Common Index File Format (Lin et al. 2020): the index of another engine, read as documents.

A file is messages of protocol buffers, each after its length: a Header, a PostingsList for each term, a DocRecord for
each document. The text of a document is its terms, each as often as it stands there: to be indexed as it is. Of the
fields these are read (``sdretrieval/index/ciff.py`` writes the others too):

    Header        2 number of PostingsLists, 3 number of DocRecords
    PostingsList  1 term, 4 a posting: 1 docid less the one before, 2 count
    DocRecord     1 docid, 2 the document's name
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from sdretrieval.collection.corpus.record import LONGEST_CONTENTS
from sdretrieval.collection.corpus.sources import Source
from sdretrieval.core.errors import shown
from sdretrieval.core.progress import progress

ENDINGS = (".ciff", ".ciff.gz")
POSTING, DOCID, COUNT = 0x22, 0x08, 0x10  # keys: the field's number and how its value is written
_LONGEST = 1 << 31  # of a message, by the protocol
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5


def records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """``(number of the record, fields)`` of each document."""
    with source.binary() as stream:
        try:
            yield from _documents(stream)
        except (ValueError, IndexError, OverflowError, UnicodeDecodeError) as error:
            remedy = "Was it cut short, or is it no CIFF file?"
            raise source.error(f"not as CIFF has it ({shown(error)})", remedy=remedy) from None


def _documents(stream: IO[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    header = dict(_fields(_message(stream)))
    terms, docs, counts = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for _ in progress(range(_whole(header.get(2, 0))), label="reading postings", unit="term"):
        term, numbers, often = _postings(_message(stream))
        if term.split() != [term]:
            raise ValueError(f"a term with a space in it: {term!r}")
        terms.append(term)
        docs.append(numbers)
        counts.append(often)
    of_term = np.repeat(np.arange(len(terms)), [len(part) for part in docs[1:]])
    lengths = np.fromiter(map(len, terms), np.int64, len(terms))
    every, often = np.concatenate(docs), np.concatenate(counts)
    order = np.argsort(every, kind="stable")
    every, of_term, often = every[order], of_term[order], often[order]
    used = 0
    for number in range(1, _whole(header.get(3, 0)) + 1):
        record = dict(_fields(_message(stream)))
        begin, end = np.searchsorted(every, (doc := _whole(record.get(1, 0)), doc + 1))
        used += end - begin
        if (lengths[of_term[begin:end]] + 1) @ often[begin:end] > LONGEST_CONTENTS:
            raise ValueError(f"document {number} is longer than {LONGEST_CONTENTS:,} characters")
        words = [terms[i] for i in np.repeat(of_term[begin:end], often[begin:end])]
        yield number, {"id": _text(record.get(2, b"")), "contents": " ".join(words)}
    if used != len(every):
        raise ValueError(f"{len(every) - used} postings are of documents without a record, or of one with two")


def _postings(message: bytes) -> tuple[str, np.ndarray, np.ndarray]:
    """The term, its documents and its counts. Postings come last and, in a row, take no loop."""
    place, term = 0, ""
    while place < len(message) and message[place] != POSTING:
        number, value, place = _field(message, place)
        term = _text(value) if number == 1 else term
    numbers = varints(np.frombuffer(message, np.uint8, offset=place)) if place < len(message) else np.zeros(0, np.int64)
    if len(numbers) > 2 and numbers[2] == COUNT:  # of document 0: a zero need not be written
        numbers = np.insert(numbers, 2, (DOCID, 0))
    rows = numbers.reshape(-1, 6) if len(numbers) % 6 == 0 else np.zeros((1, 6), np.int64)
    if not (rows[:, (0, 2, 4)] == (POSTING, DOCID, COUNT)).all():
        raise ValueError(f"postings of {term!r} are not a document and a count each")
    docs, counts = rows[:, 3].cumsum(), rows[:, 5]
    if len(rows) and ((rows[1:, 3] < 1).any() or counts.min() < 1 or counts.sum() >= _LONGEST or docs[-1] >= _LONGEST):
        raise ValueError(f"documents of {term!r} do not rise, or a count is not positive")
    return term, docs, counts


def varints(data: np.ndarray) -> np.ndarray:
    """Whole numbers of seven bits a byte, the lowest first; a byte below 128 is a number's last."""
    ends = np.flatnonzero(data < 128) + 1
    if len(data) and (not len(ends) or ends[-1] != len(data)):
        raise ValueError("it ends inside a number")
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    sizes = ends - starts
    if len(sizes) and sizes.max() > 5:
        raise ValueError("a number is beyond 32 bits")
    values = np.zeros(len(ends), dtype=np.int64)
    for k in range(int(sizes.max(initial=0))):
        longer = sizes > k
        values[longer] |= (data[starts[longer] + k].astype(np.int64) & 127) << (7 * k)
    return values


def _message(stream: IO[bytes]) -> bytes:
    """The next message; its length stands before it."""
    size = shift = 0
    while True:
        byte = stream.read(1)[0]
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
        if shift > 28:
            raise ValueError("a message is beyond 32 bits long")
    message = stream.read(size) if size < _LONGEST else b""
    if len(message) < size:
        raise ValueError(f"a message of {size:,} bytes is cut short")
    return message


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(message):
        number, value, place = _field(message, place)
        yield number, value


def _field(message: bytes, place: int) -> tuple[int, int | bytes, int]:
    """The number of the field that begins at a place, its value, and where it ends."""
    key, place = _varint(message, place)
    kind = key & 7
    if kind == _VARINT:
        value, place = _varint(message, place)
        return key >> 3, value, place
    if kind not in (_BYTES, _EIGHT_BYTES, _FOUR_BYTES):
        raise ValueError(f"no kind of value is {kind}")
    size, place = _varint(message, place) if kind == _BYTES else (8 if kind == _EIGHT_BYTES else 4, place)
    if place + size > len(message):
        raise ValueError("a value is cut short")
    return key >> 3, message[place : place + size], place + size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError("a number is beyond 64 bits")


def _whole(value: int | bytes) -> int:
    if not isinstance(value, int) or value >= _LONGEST:
        raise ValueError("a number is no number, or beyond 31 bits")
    return value


def _text(value: int | bytes) -> str:
    if not isinstance(value, bytes):
        raise ValueError("a text is no text")
    return value.decode()
