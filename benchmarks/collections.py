"""The real collections of ../shared/data, indexed once under indexes/ for measurements."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sdretrieval.collection.corpus import Reader
from sdretrieval.collection.records import Qrels, Run, Topic
from sdretrieval.collection.trec import read_qrels, read_run, read_topics
from sdretrieval.core.files import lock_file
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.ranking.query import Query

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "data"
INDEXES = ROOT / "indexes"
THREADS = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)


@contextmanager
def one_at_a_time(index: Path) -> Iterator[None]:
    """Of sections made side by side one builds the index, and the others wait for it."""
    with index.with_name(f"{index.name}.lock").open("w") as file:
        while not lock_file(file.fileno()):
            time.sleep(0.1)
        yield


@dataclass(frozen=True)
class Collection:
    """One collection: ``Collection("cacm").snapshot`` and so on."""

    name: str

    @property
    def folder(self) -> Path:
        return SHARED / self.name

    @property
    def available(self) -> bool:
        return (self.folder / "docs.jsonl.gz").is_file()

    @cached_property
    def index(self) -> Path:
        """The Lucene index, with document vectors so that Anserini's own feedback can run on it."""
        path = INDEXES / f"results-{self.name.replace('/', '-')}"
        with one_at_a_time(path):
            if not path.is_dir():
                documents = Reader(date="date") if self._dated else Reader()
                build_index(documents.read([self.folder / "docs.jsonl.gz"]), path, store_docvectors=True, threads=1)
        return path

    @property
    def _dated(self) -> bool:
        return self.name not in ("cranfield", "npl", "dl19", "20news-bydate")

    @cached_property
    def snapshot(self) -> Snapshot:
        return open_snapshot(self.index)

    @cached_property
    def topics(self) -> list[Topic]:
        times = self.folder / "topics.times.tsv"
        return read_topics(self.folder / "topics.tsv", times=times if times.is_file() else None)

    @cached_property
    def qrels(self) -> Qrels:
        return read_qrels(self.folder / "qrels.txt")

    @cached_property
    def queries(self) -> list[Query]:
        return [Query.from_topic(self.snapshot, topic) for topic in self.topics]

    def run(self, name: str) -> Run:
        """A run supplied with the collection."""
        return read_run(self.folder / "runs" / f"{name}.txt.gz")
