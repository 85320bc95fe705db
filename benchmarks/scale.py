"""Speed on millions of passages of real text, against Lucene in the same process: ratios, one run.

    python -m benchmarks.scale                      # 2 million passages
    python -m benchmarks.scale --passages 250000    # another size: growth is one size's ms against another's
    python -m benchmarks.scale --topics 100 --models rm3-10,sd3
    python -m benchmarks.scale --topics 25 --models time    # what time priors and as-of cost
    python -m benchmarks.scale --models command             # whole commands against Anserini's

The corpus is made by ../shared/tools/scale_corpus.py and indexed once, below .cache. Both sides get the same analysed
index, topics and number of hits. Lucene's side is Anserini's SimpleSearcher with RM3 of as many feedback documents and
words. Every result of sdretrieval is compared with exhaustive scoring, to the bit. Of each model it is told where the
time of a query goes. Passages have the dates of what they were taken from, topics those of their threads.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.collections import Collection
from benchmarks.corpus import corpus
from benchmarks.time_prior import best_of
from sdretrieval.collection.records import Topic
from sdretrieval.collection.trec import read_topics
from sdretrieval.core.anserini_jar import anserini_jar
from sdretrieval.core.jvm import find_java, java_class, start_jvm
from sdretrieval.index.snapshot import Snapshot, open_snapshot, snapshot_folder
from sdretrieval.ranking import engine as engine_module
from sdretrieval.ranking import pruned_loops
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.pruned import Pruned
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import queries_of
from sdretrieval.ranking.time.wrappers import Auto, Density, Recency, time_aware

HITS, THREADS, ALONE = 1000, 2, 200
POSTING_BYTES = 3  # of a posting that is walked
# name -> model, its settings, feedback documents and words of the RM3 it is measured against
CASES = {
    "rm3-10": ("rm3", {"fb_docs": 10, "fb_terms": 10}, (10, 10)),
    "rm3-100": ("rm3", {"fb_docs": 100, "fb_terms": 100}, (100, 100)),
    "anserini-10": ("rm3", {"mode": "anserini", "fb_docs": 10, "fb_terms": 10}, (10, 10)),
    "sd3": ("sd3", {"fb_docs": 20, "fb_terms": 40}, (20, 40)),
    "blend": ("blend", {}, (20, 40)),
    "sd": ("sd", {"fb_docs": 100}, (100, 100)),
}
TIME, COMMAND = "time", "command"
WITH_TIME: dict[str, dict[str, Any]] = {
    "recency": {"prior": Recency()},
    "density": {"prior": Density()},
    "auto": {"prior": Auto()},
    "as-of": {"as_of": True},
}


class Lucene:
    """Anserini's searcher; results stay in Java, where they cost nothing here."""

    def __init__(self, index: Path, topics: Sequence[Topic], fb_docs: int, fb_terms: int) -> None:
        start_jvm()
        self.searcher = java_class("io.anserini.search.SimpleSearcher")(str(index))
        self.searcher.set_bm25(0.9, 0.4)
        self.searcher.set_rm3(None, fb_terms, fb_docs, 0.5, False, True)
        self.topics = topics

    def run(self, topics: Sequence[Topic], threads: int) -> None:
        texts, qids = java_class("java.util.ArrayList")(), java_class("java.util.ArrayList")()
        for topic in topics:
            texts.add(topic.text)
            qids.add(topic.qid)
        self.searcher.batch_search(texts, qids, HITS, threads)

    def one(self, topic: Topic) -> None:
        self.run([topic], 1)


class Ours:
    """An engine and a model."""

    def __init__(self, snapshot: Snapshot, model: str, settings: dict) -> None:
        self.snapshot, self.ranker, self.engines = snapshot, make_ranker(model, settings), {}
        for threads in (1, THREADS):
            self.engines[threads] = Engine(snapshot, threads=threads)

    def rank(self, topics: Sequence[Topic], threads: int, bounds: bool = True) -> list:
        queries = [Query.from_topic(self.snapshot, topic) for topic in topics]
        known, engine_module.BOUNDS_FROM = engine_module.BOUNDS_FROM, 0 if bounds else sys.maxsize
        try:
            return list(self.engines[threads].rank(self.ranker, queries, RankOptions(hits=HITS)))
        finally:
            engine_module.BOUNDS_FROM = known

    def run(self, topics: Sequence[Topic], threads: int) -> None:
        self.rank(topics, threads)

    def one(self, topic: Topic) -> None:
        self.rank([topic], 1)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def both_clocks(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock on the wall and of the processors: on a busy machine the second says more."""
    began = time.process_time()
    return seconds(work), time.process_time() - began


def compare(name: str, snapshot: Snapshot, index: Path, topics: Sequence[Topic], rounds: int, rate: float) -> None:
    model, settings, (docs, words) = CASES[name]
    ours, peer = Ours(snapshot, model, settings), Lucene(index, topics, docs, words)
    for side in (ours, peer):  # compiled, and warm
        side.run(topics, THREADS)
    times = np.array([[both_clocks(lambda s=s: s.run(topics, THREADS)) for s in (ours, peer)] for _ in range(rounds)])
    wall, processor = np.median(times[:, 1] / times[:, 0], axis=0)
    rates = len(topics) / np.median(times[:, :, 0], axis=0)
    print(f"{name}: {rates[0]:.0f} queries a second against Lucene's {rates[1]:.1f}: {wall:.1f} x", end="")
    print(f" ({processor:.1f} x by processor time, {1000 * np.median(times[:, 0, 1]) / len(topics):.1f} ms a query)")
    alone = topics[:ALONE]
    times = np.array([(seconds(lambda t=t: ours.one(t)), seconds(lambda t=t: peer.one(t))) for t in alone]) * 1000
    shown = [np.percentile(times[:, side], (50, 95, 99)) for side in (0, 1)]
    told = [" ".join(f"{value:.1f}" for value in values) for values in shown]
    print(f"  one at a time, one thread, ms (p50, p95, p99): {told[0]}; Lucene {told[1]}", flush=True)
    spent = where(ours, alone)
    postings = np.mean([snapshot.df[result.plan.model.terms].sum() for result in ours.rank(alone, THREADS)])
    limit = 1000 * POSTING_BYTES * postings / rate
    print(f"  the final plan has {postings:,.0f} postings, which the memory gives in {limit:.2f} ms", end="")
    print(f"; they are walked, or passed over, in {1000 * spent['final pass: walking'] / len(alone):.2f}")
    same(ours, topics)


def same(ours: Ours, topics: Sequence[Topic]) -> None:
    found, expected = (ours.rank(topics, THREADS, bounds) for bounds in (True, False))
    different = sum(
        a.docs.tolist() != b.docs.tolist() or a.scores.tobytes() != b.scores.tobytes()
        for a, b in zip(found, expected, strict=True)
    )
    print(f"  results that differ from exhaustive scoring: {different} of {len(topics)}", flush=True)


def where(ours: Ours, topics: Sequence[Topic]) -> Counter:
    """Where the processor's time of a query goes, one at a time, one thread: parts of a pass are among its own."""
    spent, passes = Counter(), ["final"]

    def clocked(owner: Any, name: str, label: str, is_first: bool = False) -> Any:
        work = getattr(owner, name)

        def clocked_work(*given: Any) -> Any:
            passes.append("first") if is_first else None
            began = time.thread_time()
            try:
                return work(*given)
            finally:
                spent[f"{passes[-1]} {label}" if label.startswith("pass") else label] += time.thread_time() - began
                passes.pop() if is_first else None

        return patch.object(owner, name, clocked_work)

    with ExitStack() as stack:
        stack.enter_context(patch.object(Pruned, "best", Pruned.in_steps))  # whose parts can be seen
        for given in (
            (Query, "from_topic", "analysis"),
            (type(ours.ranker), "expand", "estimating"),
            (Engine, "first_documents", "pass", True),
            (Engine, "_finish", "pass"),
            (pruned_loops, "planned", "pass: planning"),
            (pruned_loops, "promising", "pass: walking"),
            (pruned_loops, "best_rows", "pass: rows"),
        ):
            stack.enter_context(clocked(*given))
        ours.one(topics[0])
        spent.clear()
        began = time.thread_time()
        for topic in topics:
            ours.one(topic)
        total = time.thread_time() - began
    whole = sum(spent[label] for label in ("analysis", "estimating", "first pass", "final pass"))
    told = [f"{label} {1000 * s / len(topics):.2f}" for label, s in sorted(spent.items())]
    print(f"  ms of a query: {', '.join(told)}, all else {1000 * (total - whole) / len(topics):.2f}", flush=True)
    return spent


def with_time(snapshot: Snapshot, topics: Sequence[Topic], n: int) -> None:
    """What time adds to a query without it, in processor time: some topics one at a time, each its best of several
    rounds; and as-of for all of them in one call, which goes along with time.
    """
    queries, engine, options = queries_of(snapshot, topics), Engine(snapshot), RankOptions(hits=HITS)
    dated = snapshot.n_docs - snapshot.time_span()[0]
    print(f"time: {dated:,} passages are dated; ms of a query without it, and what it adds")
    for name in ("bm25", "rm3", "blend"):
        models = {"none": make_ranker(name)}
        models |= {label: time_aware(models["none"], **settings) for label, settings in WITH_TIME.items()}
        ways = {
            label: lambda query, model=model: next(engine.rank(model, [query], options))
            for label, model in models.items()
        }
        costs = best_of(ways, queries[:: -(-len(queries) // n)])  # they are in the order of time
        together = [
            both_clocks(lambda model=models[label]: deque(engine.rank(model, queries, options), maxlen=0))[1]
            for label in ("none", "as-of")
        ]
        added = {label: costs[label] - costs["none"] for label in WITH_TIME}
        told = [f"{label} {ms:+.2f} ({100 * ms / costs['none']:.0f} %)" for label, ms in added.items()]
        print(
            f"{name}: {costs['none']:.2f} ms, {', '.join(told)}; "
            f"as-of, {len(topics)} topics in one call {1000 * (together[1] - together[0]) / len(topics):+.2f}",
            flush=True,
        )


def spent(command: Sequence[str]) -> tuple[float, float]:
    """Seconds of a whole command by the wall's clock and its processors'."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = seconds(lambda: subprocess.run(command, check=True, capture_output=True))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def whole_commands(index: Path, path: Path, rounds: int) -> None:
    """`search` against Anserini's SearchCollection -rm3, start-up and writing included: one topic, and all."""
    with tempfile.TemporaryDirectory() as folder:
        one, run = Path(folder) / "one.tsv", Path(folder) / "run.txt"
        one.write_text(path.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
        files = f"--index {index} --topics {{}} --output {run} --hits {HITS} --threads {THREADS}"
        rm3 = "-topicReader TsvString -bm25 -rm3 -rm3.fbDocs 10 -rm3.fbTerms 10"
        java = f"{find_java().home / 'bin' / 'java'} -cp {anserini_jar()} io.anserini.search.SearchCollection"
        ours = f"{sys.executable} -m sdretrieval.cli.main search {files}"
        commands = {"Anserini's rm3": f"{java} {files.replace('--', '-')} {rm3}"}
        commands |= {"rm3": f"{ours} --model rm3 --set fb_docs=10 --set fb_terms=10", "blend": f"{ours} --model blend"}
        for name, command in commands.items():
            spent(command.format(one).split())  # compiled, and read once
            times = np.array([[spent(command.format(topics).split()) for topics in (one, path)] for _ in range(rounds)])
            (wall_one, cpu_one), (wall, cpu) = np.median(times, axis=0)
            print(f"whole command, {name}: one topic {wall_one:.1f} s (of the processor {cpu_one:.1f}), ", end="")
            print(f"all {wall:.1f} s ({cpu:.1f})", flush=True)


def memory_rate() -> float:
    """Bytes a second that one thread reads from memory."""
    numbers = np.ones(1 << 25)
    return numbers.nbytes / min(seconds(lambda: numbers.sum()) for _ in range(5))


def machine(snapshot: Snapshot, index: Path, rate: float) -> None:
    """The snapshot's size, the process's memory, and what the memory can do."""
    everything, own = snapshot_folder(index).rglob("*.bin"), snapshot_folder(index).glob("*/*.bin")
    whole, size, lucene = (sum(f.stat().st_size for f in files) / 1e6 for files in (everything, own, index.iterdir()))
    per_posting = 1e6 * size / snapshot.n_postings
    print(f"snapshot {size:.0f} MB ({per_posting:.1f} bytes a posting), ", end="")
    print(f"with positions {whole:.0f}, Lucene's index {lucene:.0f}")
    print(
        f"memory at its most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB, mapped files included"
    )
    print(f"memory is read at {rate / 1e9:.1f} GB a second; a posting that is walked has {POSTING_BYTES} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=2_000_000)
    parser.add_argument("--topics", type=int, default=500, help="how many of the 500")
    parser.add_argument("--rounds", type=int, default=3)
    known = ",".join((*CASES, TIME, COMMAND))
    parser.add_argument("--models", default=known, help=f"some of {known}")
    args = parser.parse_args()
    index, path = corpus(args.passages)
    times = Collection("rhelp").folder / "topics.times.tsv"  # of the threads that the topics are the subjects of
    every = list(read_topics(path, times=times))
    topics = every[: args.topics]
    rate = memory_rate()
    opening = seconds(lambda: Engine(open_snapshot(index)))
    snapshot = open_snapshot(index)
    print(f"{snapshot.n_docs:,} passages, {snapshot.n_postings:,} postings, {len(topics)} topics, {HITS} hits")
    print(f"opening the snapshot and making an engine: {1000 * opening:.0f} ms")
    for name in args.models.split(","):
        if name == TIME:
            with_time(snapshot, every, args.topics)
        elif name == COMMAND:
            whole_commands(index, path, args.rounds)
        else:
            compare(name, snapshot, index, topics, args.rounds, rate)
    machine(snapshot, index, rate)


if __name__ == "__main__":
    main()
