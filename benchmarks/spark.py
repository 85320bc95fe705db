"""What ranking over shards on Spark costs beside one index of the same real text, once everything is open.

    python -m benchmarks.spark
    python -m benchmarks.spark --passages 4000000 --shards 8 --topics 500 --master 'local-cluster[2,1,6144]'

Both write the same run, which is checked; the exit code tells. The passages are those of benchmarks.scale. The shards
are cut from the one index's snapshot, by docid, as `sdretrieval spark index` deals documents; without positions, so
that `blend` ranks by words alone on both sides.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.corpus import corpus
from benchmarks.sharded import write_collection
from sdretrieval.collection.trec import read_topics
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.plugins.spark import search as shards
from sdretrieval.plugins.spark.building import shard_of
from sdretrieval.plugins.spark.runners import OnSpark
from sdretrieval.plugins.spark.session import spark_context
from sdretrieval.plugins.spark.shard_ranking import ShardedEngine
from sdretrieval.plugins.spark.shards import open_collection
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import search

HITS, CORES = 1000, 2
MODELS = "bm25,rm3,sd3,sd"


def sharded(whole: Snapshot, folder: Path, n: int) -> Path:
    """A snapshot cut into ``n`` shards, once."""
    if (folder / "collection.json").is_file():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    where, words = np.array([shard_of(docid, n) for docid in whole.docids]), list(whole.vocabulary)

    def cut() -> Iterator[Snapshot]:
        for k in range(n):
            rows = np.flatnonzero(where == k)
            times, docids = np.asarray(whole.times)[rows], whole.docids.take(rows)
            yield Snapshot.from_counts(whole.by_doc[rows], words, docids, times, analyzer=whole.analyzer)

    write_collection(folder, cut())
    return folder


def timed(work: Callable) -> tuple[float, object]:
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def measure(args: argparse.Namespace) -> bool:
    index, file = corpus(args.passages)
    snapshot, topics = open_snapshot(index), list(read_topics(file))[: args.topics]
    folder = sharded(snapshot, index.with_name(f"shards-{args.shards}"), args.shards)
    collection, kept = open_collection(folder), True
    print(f"{args.passages:,} passages in {args.shards} shards, {len(topics)} topics, {HITS} hits, {args.master}")
    print("            one index    shards on Spark    ratio")
    with spark_context(args.master) as context:
        runner = OnSpark(collection, context)
        shards.prepare(collection, runner)
        engine = ShardedEngine(collection, runner, threads=CORES)
        for model in args.models.split(","):
            ranker = make_ranker(model, {"ordered_weight": 0.0, "near_weight": 0.0} if model == "blend" else {})
            both = (
                lambda ranker=ranker: search(snapshot, topics, ranker, hits=HITS, threads=CORES),
                lambda ranker=ranker: shards.search(engine, topics, ranker, hits=HITS),
            )
            found = [work() for work in both]  # opens files, compiles
            rounds = [[timed(work)[0] for work in both] for _ in range(args.rounds)]  # in turn: machines are noisy
            one, many = (statistics.median(times) for times in zip(*rounds, strict=True))
            ratio = statistics.median(many / one for one, many in rounds)
            kept = kept and found[0] == found[1]
            told = "same run" if found[0] == found[1] else "ANOTHER RUN"
            print(f"  {model:<6} {one:10.1f} s {many:14.1f} s {ratio:11.2f} x  {told}", flush=True)
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=250_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--topics", type=int, default=250)
    parser.add_argument("--master", default=f"local[{CORES}]")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--rounds", type=int, default=3)
    sys.exit(0 if measure(parser.parse_args()) else "the runs differ")
