"""Corpora of any size for measuring speed: the project's own demo generator, written once below .cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchmarks.collections import ROOT
from sdretrieval.demo import write_demo

CACHE = ROOT / ".cache" / "benchmarks"


@dataclass(frozen=True)
class Corpus:
    """``n_docs`` generated documents and ``n_topics`` topics, with a Lucene index that has document vectors."""

    n_docs: int = 50_000
    n_topics: int = 500
    mean_words: int = 280

    @property
    def folder(self) -> Path:
        return CACHE / f"demo-{self.n_docs}-{self.n_topics}-{self.mean_words}"

    @property
    def documents(self) -> Path:
        path = self.folder / "docs.jsonl"
        if not path.is_file():
            write_demo(self.folder, n_docs=self.n_docs, n_topics=self.n_topics, mean_words=self.mean_words)
        return path

    @property
    def topics(self) -> Path:
        return self.documents.with_name("topics.tsv")

    def index(self) -> Path:
        """Built by `sdretrieval index`, once."""
        from sdretrieval.collection.corpus import Reader
        from sdretrieval.index.lucene.indexing import build_index

        path = self.folder / "index"
        if not path.is_dir():
            build_index(Reader(date="date").read([self.documents]), path, store_docvectors=True)
        return path
