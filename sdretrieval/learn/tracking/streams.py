"""Where documents come from: JSON lines as they arrive, or a dated index in time order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING

import numpy as np

from sdretrieval.collection.corpus.record import FieldMap, Place, Problems
from sdretrieval.core.errors import IndexProblem, InputError, shown
from sdretrieval.core.safe_json import parse_json
from sdretrieval.core.times import UNDATED
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument

if TYPE_CHECKING:
    from sdretrieval.index.snapshot import Snapshot


def jsonl_stream(
    stream: IO[bytes],
    background: Background,
    analyze: Callable[[str], list[str]],
    *,
    fields: FieldMap | None = None,
    problems: Problems | None = None,
    name: str = "stdin",
) -> Iterator[StreamDocument]:
    """One document for each line, as soon as the line is there (so that ``tail -f`` can feed it)."""
    fields = fields or FieldMap(date="date")
    problems = problems or Problems()
    for number, line in enumerate(iter(stream.readline, b""), 1):
        if line.isspace():
            continue
        try:
            record = fields.document(_record(line, name, number), Place(name, number))
        except InputError as error:
            problems.report(error)
            continue
        yield background.document(record.docid, analyze(record.contents), record.time)


def _record(line: bytes, name: str, number: int) -> dict:
    remedy = 'Each line is an object such as {"id": …, "contents": …, "date": …}; or pass --skip-bad.'
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        value = parse_json(text.strip(), bounded=False)
    except ValueError as error:  # not UTF-8 is a ValueError too
        begin = shown(line[:80].decode("utf-8", "replace").rstrip())
        raise InputError(f"not JSON ({error}): {begin}", file=name, line=number, remedy=remedy) from None
    if not isinstance(value, dict):
        raise InputError(f"not an object: {shown(value)}", file=name, line=number, remedy=remedy)
    return value


def index_stream(snapshot: Snapshot, background: Background) -> tuple[Iterator[StreamDocument], int]:
    """The dated documents of an index in time order (of one time: in the index's order), and how many there are."""
    if not snapshot.is_dated:
        raise IndexProblem(
            f"{snapshot.name}: none of its {snapshot.n_docs} documents has a date",
            remedy="Re-index with `sdretrieval index --date-field NAME`.",
        )
    rows = np.flatnonzero(snapshot.times != UNDATED)
    rows = rows[np.argsort(snapshot.times[rows], kind="stable")]
    numbers = background.numbers(list(snapshot.vocabulary))
    return (index_document(snapshot, int(row), numbers) for row in rows), len(rows)


def index_document(snapshot: Snapshot, row: int, numbers: np.ndarray) -> StreamDocument:
    """A document of an index; ``numbers`` are the background's for the index's words."""
    time, (terms, counts) = int(snapshot.times[row]), snapshot.row(row)
    return StreamDocument.make(snapshot.docids[row], numbers[terms], counts, None if time == UNDATED else time)
