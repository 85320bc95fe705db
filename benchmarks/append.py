"""Documents appended to an index against the index built anew, on rhelp of ../shared/data; results must be the same.

The last thousand documents by date are appended to an index of the others: seconds with the snapshot, against building
all of it and its snapshot. Then N and cf, df of every word, and runs of every model, are compared. ``--months K`` also
replays the last K months, each as one append, and compares again.

    python -m benchmarks.append [--months 6] [--documents 20000] [--topics 50]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import groupby
from pathlib import Path

from benchmarks.collections import SHARED
from sdretrieval.collection.corpus import Document, Reader
from sdretrieval.collection.trec import read_topics
from sdretrieval.core.times import format_time
from sdretrieval.index.living import append_documents
from sdretrieval.index.lucene.indexing import build_index
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.retrieval import search

NEW = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("months", 0), ("documents", 0), ("topics", 50)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    documents = list(Reader(date="date").read([SHARED / "rhelp" / "docs.jsonl.gz"]))
    documents.sort(key=lambda document: document.time or 0)
    documents = documents[-args.documents :]
    topics = read_topics(SHARED / "rhelp" / "topics.tsv")[: args.topics]
    with tempfile.TemporaryDirectory() as folder:
        grown, anew = Path(folder) / "grown", Path(folder) / "anew"
        built(documents[:-NEW], grown)
        began = time.perf_counter()
        append_documents(documents[-NEW:], grown)
        appended = time.perf_counter() - began
        rebuilt = built(documents, anew)
        print(f"{len(documents):,} documents; {NEW:,} appended in {appended:.1f} s, all built anew in {rebuilt:.1f} s")
        print(f"  ratio {appended / rebuilt:.3f}")
        compare(grown, anew, topics)
        if args.months:
            replay(documents, args.months, Path(folder) / "replayed", anew, topics)


def built(documents: list[Document], index: Path) -> float:
    """Seconds of an index with its snapshot."""
    began = time.perf_counter()
    build_index(documents, index)
    open_snapshot(index)
    return time.perf_counter() - began


def replay(documents: list[Document], months: int, index: Path, anew: Path, topics: list) -> None:
    of = [list(group) for _, group in groupby(documents, key=lambda document: format_time(document.time or 0)[:7])]
    built([document for month in of[:-months] for document in month], index)
    for month in of[-months:]:
        began = time.perf_counter()
        append_documents(month, index)
        print(f"  {format_time(month[0].time or 0)[:7]}: {len(month):,} in {time.perf_counter() - began:.1f} s")
    compare(index, anew, topics)


def compare(grown: Path, anew: Path, topics: list) -> None:
    one, other = open_snapshot(grown), open_snapshot(anew)
    print(f"  N, vocabulary, cf, df the same: {statistics(one) == statistics(other)}")
    for name in rankers():
        runs = [search(snapshot, topics, make_ranker(name), hits=1000) for snapshot in (one, other)]
        same = all(
            runs[0][qid].docids == ranking.docids and runs[0][qid].scores.tolist() == ranking.scores.tolist()
            for qid, ranking in runs[1].items()
        )
        print(f"  {name}: runs the same to the last bit: {same}", flush=True)


def statistics(snapshot: Snapshot) -> tuple:
    return snapshot.n_docs, list(snapshot.vocabulary), snapshot.cf.tolist(), snapshot.df.tolist()


if __name__ == "__main__":
    main()
