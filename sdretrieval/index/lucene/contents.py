"""An index opened by Lucene: what is in it, and the fields its documents were stored with. Starts the JVM."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sdretrieval.core.errors import IndexProblem
from sdretrieval.core.jvm import java_class, start_jvm
from sdretrieval.core.progress import progress
from sdretrieval.core.safe_json import parse_json


@contextmanager
def opened(index: Path) -> Iterator[Any]:
    """Lucene's DirectoryReader of an index."""
    start_jvm()  # before jnius is imported, which would start one without Lucene
    from jnius import JavaException  # starts Java

    try:
        folder = java_class("java.nio.file.Paths").get(str(index.absolute()))  # Java does not follow chdir
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


@dataclass
class IndexFacts:
    """Counts and fields of an index, as Lucene sees it: for ``sdretrieval doctor``."""

    documents: int
    deleted: int
    segments: int
    fields: list[str] = field(default_factory=list)  # indexed fields
    stored: list[str] = field(default_factory=list)  # stored fields of the first document
    has_vectors: bool = False
    has_positions: bool = False


def lucene_version() -> str:
    return java_class("org.apache.lucene.util.Version").LATEST.toString()


def inspect_index(index: Path) -> IndexFacts:
    """Open an index with Lucene and look around."""
    with opened(index) as reader:
        facts = IndexFacts(reader.numDocs(), reader.numDeletedDocs(), reader.leaves().size())
        infos = java_class("org.apache.lucene.index.FieldInfos").getMergedFieldInfos(reader).iterator()
        while infos.hasNext():
            info = infos.next()
            options = info.getIndexOptions().toString()
            if options != "NONE":
                facts.fields.append(info.name)
            if info.name == "contents":
                asks = getattr(info, "hasTermVectors", None) or info.hasVectors  # Lucene 10, Lucene 9
                facts.has_vectors = bool(asks())
                facts.has_positions = "POSITIONS" in options
        if facts.documents:
            first = reader.storedFields().document(0).getFields().iterator()
            while first.hasNext():
                facts.stored.append(first.next().name())
        return facts


def check_integrity(index: Path) -> None:
    """Read all files of an index; an error where one's checksum is wrong."""
    with opened(index) as reader:
        from jnius import JavaException  # once the JVM runs

        leaves = reader.leaves()
        for number in progress(range(leaves.size()), total=leaves.size(), label="reading", unit=" segments"):
            try:
                leaves.get(number).reader().checkIntegrity()
            except JavaException as error:
                raise IndexProblem(
                    f"{index} is damaged: {error.innermessage or error}",
                    remedy="Restore it from a copy, or index the documents again.",
                ) from None


def stored_records(index: Path) -> Iterator[dict[str, Any] | None]:
    """The fields each document was indexed with, in the snapshot's order; None where nothing is stored.

    About 15,000 documents a second.
    """
    with opened(index) as reader:
        # The exporter leaves deleted documents out and numbers the rest in order: so it is here.
        live = java_class("org.apache.lucene.index.MultiBits").getLiveDocs(reader)
        stored = reader.storedFields()
        numbers = range(reader.maxDoc())
        for number in progress(numbers, total=len(numbers), label="reading fields", unit=" documents"):
            if live is None or live.get(number):
                yield parsed_fields(stored.document(number).get("raw"))


def stored_document(index: Path, docid: str) -> dict[str, Any] | None:
    """The fields a document was indexed with; None where the index stores none (or has no such document)."""
    return next(stored_documents(index, [docid]))


def stored_documents(index: Path, docids: Iterable[str]) -> Iterator[dict[str, Any] | None]:
    """:func:`stored_document` of many."""
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(index.absolute()))
    try:
        for docid in docids:
            document = searcher.doc(docid)
            yield None if document is None else parsed_fields(document.get("raw"))
    finally:
        searcher.close()


def parsed_fields(raw: str | None) -> dict[str, Any] | None:
    """The fields in a document's stored raw text; text that is no JSON object is its contents."""
    if raw is None:
        return None
    try:
        value = parse_json(raw, bounded=False, constants=True)
    except ValueError:
        return {"contents": raw}
    return value if isinstance(value, dict) else {"contents": raw}


def title_of(fields: Mapping[str, Any], length: int = 80) -> str:
    """A stored document's title, or the beginning of its contents, on one line."""
    lower = {str(name).lower(): value for name, value in fields.items()}
    for name in ("title", "headline", "contents", "text", "body"):
        value = lower.get(name)
        if isinstance(value, str) and value.strip():
            text = " ".join(value.lstrip()[: 10 * length].split())  # not of all: it may be a book
            if not text.isprintable():
                text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
            return text if len(text) <= length else text[: length - 1].rstrip() + "…"
    return ""
