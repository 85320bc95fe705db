"""What ranking over shards on Spark costs beside one index on one machine, and how it grows.

Must hold: the whole command over shards takes no more than 2 x the single-machine command at equal work: 200,000
documents, 500 topics, 2 cores. Both write the same run, which is checked.

    python -m benchmarks.spark              # overhead at equal work
    python -m benchmarks.spark --scaling    # work per shard by number of shards; costs per posting
    python -m benchmarks.spark --estimate   # a billion documents on paper, from costs measured here

The shards are cut from the one index's snapshot, by docid, as `sdretrieval spark index` deals documents.
"""

from __future__ import annotations

import argparse
import filecmp
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.corpus import Corpus

CORPUS = Corpus(n_docs=200_000, n_topics=500, mean_words=200)
HITS, CORES = 1000, 2
ROUNDS = 5  # of both commands; the medians count, of times and of the ratio within a round
CASES = [("sd3", []), ("rm3", []), ("sd", []), ("rm", [])]


def sharded(corpus: Corpus, n: int) -> Path:
    """The corpus's index cut into ``n`` shards, once."""
    from sdretrieval.integrations.spark.building import shard_of
    from sdretrieval.integrations.spark.writing import write_collection
    from sdretrieval.snapshot import Snapshot, open_snapshot

    folder = corpus.folder / f"shards-{n}"
    if (folder / "collection.json").is_file():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    whole = open_snapshot(corpus.index())
    where = np.array([shard_of(docid, n) for docid in whole.docids])
    words = list(whole.vocabulary)

    def cut() -> Iterator[Snapshot]:
        for k in range(n):
            rows = np.flatnonzero(where == k)
            yield Snapshot.from_counts(
                whole.by_doc[rows], words, whole.docids.take(rows), np.asarray(whole.times)[rows],
                analyzer=whole.analyzer,
            )  # fmt: skip

    write_collection(folder, cut())
    return folder


def seconds(command: list[str]) -> float:
    """Until nobody holds the command's output: not its own process, nor a JVM that it has started."""
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def commands(model: str, settings: list[str], index: Path, shards: Path, folder: Path) -> tuple[list[str], list[str]]:
    shared = ["--topics", str(CORPUS.topics), "--model", model, "--hits", str(HITS), "--threads", str(CORES), *settings]
    start = [sys.executable, "-m", "sdretrieval.cli.main"]
    one = [*start, "search", "--index", str(index), *shared, "--output", str(folder / "one.txt")]
    many = [
        *start, "spark", "search", "--master", f"local[{CORES}]", "--index", str(shards), *shared,
        "--output", str(folder / "many.txt"),
    ]  # fmt: skip
    return one, many


def overhead(n_shards: int) -> bool:
    index, shards = CORPUS.index(), sharded(CORPUS, n_shards)
    print(f"{CORPUS.n_docs:,} documents in {n_shards} shards, {CORPUS.n_topics} topics, {HITS} hits, {CORES} cores")
    print("whole commands        one index    shards on Spark    ratio")
    kept = True
    with tempfile.TemporaryDirectory(dir=CORPUS.folder) as name:
        folder = Path(name)
        for command in commands("bm25", [], index, shards, folder):  # snapshot built, sums kept, code compiled
            seconds(command)
        for model, settings in CASES:
            both = commands(model, settings, index, shards, folder)
            rounds = [[seconds(command) for command in both] for _ in range(ROUNDS)]  # in turn: machines are noisy
            one, many = (statistics.median(times) for times in zip(*rounds, strict=True))
            ratio = statistics.median(many / one for one, many in rounds)
            same = filecmp.cmp(folder / "one.txt", folder / "many.txt", shallow=False)
            kept = kept and same
            told = "same run" if same else "ANOTHER RUN"
            print(f"  {model:<16} {one:10.1f} s {many:14.1f} s {ratio:11.2f} x  (limit 2)  {told}", flush=True)
    return kept


def loaded(n_shards: int) -> None:
    """Once everything is open: no start of Python, Java or Spark."""
    from sdretrieval.integrations.spark import search
    from sdretrieval.integrations.spark.ranking import ShardedEngine
    from sdretrieval.integrations.spark.runners import OnSpark
    from sdretrieval.integrations.spark.session import spark_context
    from sdretrieval.integrations.spark.shards import open_collection
    from sdretrieval.ranking.base import make_ranker
    from sdretrieval.retrieval import as_snapshot
    from sdretrieval.retrieval import search as search_one
    from sdretrieval.trec import read_topics

    snapshot, topics = as_snapshot(CORPUS.index()), read_topics(CORPUS.topics)
    collection = open_collection(sharded(CORPUS, n_shards))
    print("once loaded           one index    shards on Spark    ratio")
    with spark_context(f"local[{CORES}]") as context:
        runner = OnSpark(collection, context)
        search.prepare(collection, runner)
        engine = ShardedEngine(collection, runner, threads=CORES)
        for model, _ in CASES:
            ranker = make_ranker(model)
            times = []
            for work in (
                lambda ranker=ranker: search_one(snapshot, topics, ranker, hits=HITS, threads=CORES),
                lambda ranker=ranker: search.search(engine, topics, ranker, hits=HITS),
            ):
                work()
                began = time.perf_counter()
                work()
                times.append(time.perf_counter() - began)
            print(f"  {model:<16} {times[0]:10.1f} s {times[1]:14.1f} s {times[1] / times[0]:11.2f} x", flush=True)


# -- work per shard ----------------------------------------------------------------------------------------------


def passes(n_shards: int, model: str, n_topics: int = 128) -> dict[str, float]:
    """One batch in this process: seconds of each request on the largest shard, postings walked, bytes sent."""
    import pickle

    from sdretrieval.integrations.spark.ranking import ShardedEngine
    from sdretrieval.integrations.spark.runners import Here
    from sdretrieval.integrations.spark.shards import InMemory, open_collection
    from sdretrieval.ranking.base import make_ranker
    from sdretrieval.ranking.query import Query
    from sdretrieval.trec import read_topics

    on_disk = open_collection(sharded(CORPUS, n_shards))
    collection = InMemory([on_disk.snapshot(n) for n in range(n_shards)])
    collection.analyzer = on_disk.analyzer
    runner = Here(collection)
    engine = ShardedEngine(collection, runner)
    queries = [Query.from_topic(collection, topic) for topic in read_topics(CORPUS.topics)[:n_topics]]
    spent: dict[str, list[float]] = {}
    facts = {"postings": 0.0, "down": 0.0, "up": 0.0, "hits": 0.0, "hit_bytes": 0.0, "jobs": 0.0}

    def ask(request, shared, own=None):
        answers = []
        numbers = range(n_shards) if own is None else own
        for n in numbers:
            shard = runner.shard(n)
            more = () if own is None else (own[n],)
            began = time.process_time()
            answer = request(shard, shared, *more)
            spent.setdefault(f"{request.__name__} {facts['jobs']:.0f}", []).append(time.process_time() - began)
            answers.append((n, answer))
        facts["jobs"] += 1
        if request.__name__ == "best":
            df = collection.totals.df
            facts["postings"] += sum(float(df[plan.terms].sum()) for plan in shared[0])
            facts["hits"] += sum(len(hits.scores) for _, lists in answers for hits in lists)
            facts["hit_bytes"] += len(pickle.dumps(answers))
        facts["down"] += len(pickle.dumps(shared))
        facts["up"] += len(pickle.dumps(answers))
        return answers

    runner.ask = ask  # type: ignore[method-assign]
    engine.rank(make_ranker(model), queries, hits=HITS)  # open files, compile
    for values in (spent, facts):
        for key in list(values):
            values[key] = [] if values is spent else 0.0
    spent.clear()
    began = time.process_time()
    engine.rank(make_ranker(model), queries, hits=HITS)
    total = time.process_time() - began
    work = sum(sum(values) for values in spent.values())
    largest = sum(max(values) for values in spent.values())
    return {
        "topics": n_topics, "work": work, "largest": largest, "driver": total - work, "documents": collection.n_docs,
        "words": len(collection.totals.vocabulary), "all_postings": collection.totals.n_postings, **facts,
    }  # fmt: skip


def scaling() -> None:
    print(f"one batch of 128 topics, {CORPUS.n_docs:,} documents; seconds of processor time")
    print("model  shards  all shards  slowest shard   driver   sent to workers   sent to driver   ns a posting")
    for model in ("sd3", "sd"):
        for n in (1, 2, 4, 8, 16):
            m = passes(n, model)
            print(
                f"{model:<6} {n:6d} {m['work']:11.2f} {m['largest']:14.2f} {m['driver']:8.2f} "
                f"{m['down'] / 1e6:12.1f} MB {m['up'] / 1e6:13.1f} MB {1e9 * m['work'] / m['postings']:14.2f}",
                flush=True,
            )


def estimate(documents: float = 1e9, per_shard: float = 5e6) -> None:
    """On paper, from costs measured on one shard here. Postings grow with the documents; results do not."""
    from sdretrieval.integrations.spark.merging import Shares
    from sdretrieval.integrations.spark.ranking import HIT_BYTES, RESULTS_IN_MEMORY
    from sdretrieval.ranking.base import make_ranker

    scale, n = documents / CORPUS.n_docs, round(documents / per_shard)
    shares = Shares(n)
    print(f"\n{documents:.0e} documents of the same kind in {n} shards of {per_shard:.0e}: an estimate, not a run")
    for model in ("sd3", "sd"):
        one, many = passes(1, model), passes(16, model)
        postings = one["all_postings"] * scale
        disk = postings * 16  # two directions, a number and a count each
        own = per_shard * (8 + 4 + 8 + 8 * 2)  # lengths, their groups, places of docids, static scores
        seconds_each = one["work"] * scale / n
        sent = one["topics"] * n * (shares.of(HITS) + shares.of(make_ranker(model).feedback_depth))
        up = one["up"] - one["hit_bytes"] + sent * many["hit_bytes"] / many["hits"]  # rows, and hits
        driver = one["driver"] + max(many["driver"] - one["driver"], 0.0) / 15 * (n - 1)  # what one more shard costs it
        batch = RESULTS_IN_MEMORY // (HIT_BYTES * shares.of(HITS) * n)
        print(f"  {model}: {one['topics']:.0f} topics (up to {batch:.0f} in a batch before results outgrow the driver)")
        print(f"    snapshots {disk / 1e12:.1f} TB, {disk / n / 1e9:.0f} GB a shard (mapped; ranking reads half of it)")
        print(f"    a worker's own memory {own / 1e6:.0f} MB a shard, and 8 bytes for each word of the collection")
        print(f"    {seconds_each:.0f} s a shard; {seconds_each * n / 3600:.1f} core-hours in all")
        for cores in (200, 50):
            took = seconds_each * n / cores
            print(f"    on {cores} cores {took:.0f} s, and {driver:.1f} s on the driver")
        print(
            f"    network {up / 1e6:.0f} MB to the driver, {n * one['down'] / 1e6:.0f} MB to the workers "
            f"({one['down'] / 1e6:.1f} MB from the driver, the rest worker to worker)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--documents", type=int, default=CORPUS.n_docs)
    parser.add_argument("--mean-words", type=int, default=CORPUS.mean_words)
    args = parser.parse_args()
    CORPUS = Corpus(args.documents, CORPUS.n_topics, args.mean_words)
    if args.scaling:
        scaling()
    elif args.estimate:
        estimate()
    else:
        same = overhead(args.shards)
        loaded(args.shards)
        sys.exit(0 if same else "the runs differ")
