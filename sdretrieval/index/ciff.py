"""An index as CIFF, the Common Index File Format, for engines without Lucene (PISA, OldDog, JASS …).

The messages are those of sdretrieval/collection/corpus/ciff.py, whose reader they are read back with.
"""

from __future__ import annotations

import os
import struct

import numpy as np

from sdretrieval import __version__
from sdretrieval.collection.corpus.ciff import COUNT, DOCID, POSTING
from sdretrieval.core.files import atomic_writer
from sdretrieval.core.progress import progress
from sdretrieval.index.snapshot import Snapshot

VERSION = 1
_AVERAGE, _DESCRIPTION = 7 << 3 | 1, 8 << 3 | 2  # keys of the Header's fields that are no whole numbers


def write_ciff(path: str | os.PathLike[str], snapshot: Snapshot) -> None:
    """Write all postings and documents of a snapshot, plain or (by its name) ``.gz``. Lengths are exact."""
    totals = (VERSION, snapshot.n_terms, snapshot.n_docs, snapshot.n_terms, snapshot.n_docs, snapshot.n_tokens)
    average = struct.pack("<d", snapshot.n_tokens / snapshot.n_docs if snapshot.n_docs else 0.0)
    about = f"sdretrieval {__version__}, {snapshot.name}, analyzer {snapshot.analyzer.to_json()}".encode()
    header = b"".join(_number(field, value) for field, value in enumerate(totals, 1))
    header += bytes([_AVERAGE]) + average + bytes([_DESCRIPTION]) + _varint(len(about)) + about
    with atomic_writer(path, binary=True) as stream:
        stream.write(_varint(len(header)) + header)
        for term in progress(range(snapshot.n_terms), label="writing postings", unit="term"):
            begin, end = snapshot.term_ptr[term : term + 2]
            text = _text(1, snapshot.vocabulary.encoded(term)) + _number(2, int(end - begin))
            postings = _postings(snapshot.term_docs[begin:end], snapshot.term_counts[begin:end])
            message = text + _number(3, int(snapshot.cf[term])) + postings
            stream.write(_varint(len(message)) + message)
        for doc, length in enumerate(snapshot.doc_lengths.tolist()):
            message = _number(1, doc) + _text(2, snapshot.docids.encoded(doc)) + _number(3, length)
            stream.write(_varint(len(message)) + message)


def _postings(docs: np.ndarray, counts: np.ndarray) -> bytes:
    """Each a message of two numbers: the document less the one before, and the count."""
    gaps, counts = np.diff(docs, prepend=0), counts.astype(np.int64)
    sizes = 2 + _size(gaps) + _size(counts)
    same = np.ones_like(gaps)
    return varints(np.column_stack([POSTING * same, sizes, DOCID * same, gaps, COUNT * same, counts]).ravel())


def varints(numbers: np.ndarray) -> bytes:
    """Whole numbers of seven bits a byte, the lowest first; all but a number's last byte have the eighth set."""
    sizes = _size(numbers)
    starts = sizes.cumsum() - sizes
    data = np.zeros(sizes.sum(), dtype=np.uint8)
    for k in range(int(sizes.max(initial=0))):
        longer = sizes > k
        data[starts[longer] + k] = (numbers[longer] >> (7 * k) & 127) | ((sizes[longer] > k + 1) << 7)
    return data.tobytes()


def _size(numbers: np.ndarray) -> np.ndarray:
    """How many bytes each takes."""
    return np.searchsorted([1 << bits for bits in (7, 14, 21, 28)], numbers, side="right") + 1


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _varint(value)


def _text(field: int, text: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(text)) + text
