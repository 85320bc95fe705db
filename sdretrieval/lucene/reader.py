"""An index opened by Lucene, and closed again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sdretrieval.errors import IndexProblem
from sdretrieval.lucene.jvm import java_class, start_jvm


@contextmanager
def opened(index: Path) -> Iterator[Any]:
    """Lucene's DirectoryReader of an index. Starts the JVM."""
    start_jvm()  # before jnius is imported, which would start one without Lucene
    from jnius import JavaException

    try:
        folder = java_class("java.nio.file.Paths").get(str(index))
        directory = java_class("org.apache.lucene.store.FSDirectory").open(folder)
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    except JavaException as error:
        raise IndexProblem(
            f"Lucene cannot open {index}: {error.innermessage or error}",
            remedy="An index of another Lucene version, or one being written, must be rebuilt.",
        ) from None
    try:
        yield reader
    finally:
        reader.close()
        directory.close()
