"""The stored raw JSON of every document of an index, in bulk: where labels and other fields come back from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdretrieval.errors import IndexProblem
from sdretrieval.lucene.jvm import java_class, start_jvm
from sdretrieval.progress import progress


def stored_records(index: Path) -> Iterator[dict[str, Any] | None]:
    """The fields each document was indexed with, in the snapshot's order; None where nothing is stored.

    About 15,000 documents a second. Starts the JVM.
    """
    start_jvm()  # before jnius is imported, which would start one without Lucene
    from jnius import JavaException

    try:
        directory = java_class("org.apache.lucene.store.FSDirectory").open(
            java_class("java.nio.file.Paths").get(str(index))
        )
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    except JavaException as error:
        raise IndexProblem(
            f"Lucene cannot open {index}: {error.innermessage or error}",
            remedy="An index of another Lucene version, or one being written, must be rebuilt.",
        ) from None
    try:
        # The exporter leaves deleted documents out and numbers the rest in order: so it is here.
        live = java_class("org.apache.lucene.index.MultiBits").getLiveDocs(reader)
        stored = reader.storedFields()
        numbers = range(reader.maxDoc())
        for number in progress(numbers, total=len(numbers), label="reading fields", unit=" documents"):
            if live is None or live.get(number):
                yield _parsed(stored.document(number).get("raw"))
    finally:
        reader.close()
        directory.close()


def _parsed(raw: str | None) -> dict[str, Any] | None:
    if raw is None:
        return None
    try:
        value = json.loads(raw)
    except ValueError:
        return {"contents": raw}
    return value if isinstance(value, dict) else {"contents": raw}
