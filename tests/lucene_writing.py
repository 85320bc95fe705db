"""What tests do to indexes as other tools would, with Lucene itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sdretrieval.core.jvm import java_class


@contextmanager
def lucene_writer(index: Path) -> Iterator[Any]:
    """A writer that merges nothing; it commits at the end."""
    folder = java_class("java.nio.file.Paths").get(str(index))
    directory = java_class("org.apache.lucene.store.FSDirectory").open(folder)
    settings = java_class("org.apache.lucene.index.IndexWriterConfig")()
    settings.setMergePolicy(java_class("org.apache.lucene.index.NoMergePolicy").INSTANCE)
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory, settings)
    yield writer
    writer.close()
    directory.close()


def delete(index: Path, docid: str) -> None:
    """Mark a document as deleted, and leave its postings where they are."""
    with lucene_writer(index) as writer:
        term = java_class("org.apache.lucene.index.Term")("id", docid)
        writer.deleteDocuments(java_class("org.apache.lucene.search.TermQuery")(term))


def without_notes(index: Path) -> None:
    """As if another tool had made it."""
    with lucene_writer(index) as writer:
        writer.setLiveCommitData(java_class("java.util.HashMap")().entrySet())
