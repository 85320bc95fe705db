"""What is in a Lucene index: for ``sdretrieval doctor``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sdretrieval.lucene.jvm import java_class
from sdretrieval.lucene.reader import opened


@dataclass
class IndexFacts:
    """Counts and fields of an index, as Lucene sees it."""

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
    """Open an index with Lucene and look around. Starts the JVM."""
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
