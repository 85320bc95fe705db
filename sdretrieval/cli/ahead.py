"""Java started before anything else is imported, where a query is typed: both take half a second, and can at once."""

from __future__ import annotations

import argparse
from pathlib import Path


def start_java(words: list[str]) -> None:
    """In a thread, for the words of a command that shows what one query finds in an index that has its snapshot."""
    from sdretrieval.core.jvm import start_ahead

    parser = argparse.ArgumentParser(add_help=False)
    for flag in ("--query", "--index", "--output"):
        parser.add_argument(flag, nargs="?")
    given, _ = parser.parse_known_args(words)
    if given.query and given.index and not given.output and postings_of(given.index):
        start_ahead(lambda: analyse_and_read(given.query, Path(given.index)))


def postings_of(index: str) -> int:
    """How many postings the snapshot of an index has; 0 where there is none."""
    from sdretrieval.index.commit import snapshot_folder

    sizes = [file.stat().st_size // 4 for file in snapshot_folder(index).glob("[!.]*/doc_words.bin")]
    return max(sizes, default=0)


def analyse_and_read(query: str, index: Path) -> None:
    """What loads the classes that analyse a query, where it takes Java, and read the texts of its hits."""
    from sdretrieval.index.index_notes import analyzer_of
    from sdretrieval.index.lucene.analysis import analyze
    from sdretrieval.index.lucene.texts import StoredTexts

    analyze(query, analyzer_of(index))
    texts = StoredTexts(index)
    texts.fields(0)
    texts.close()
