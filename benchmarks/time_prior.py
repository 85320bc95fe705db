"""What time costs: a prior beside the query it is added to, and as-of statistics beside counting the past anew.

    python -m benchmarks.time_prior [rhelp]

Two yardsticks. *query*: text in, ranked docids out, what a user of `search` waits for; the target is about it.
*search*, *rerank*: the ranking alone, of queries already analysed, to document numbers. All variants take turns in one
process and one thread,
and each query counts with its best round, in processor time: other work on the machine does not show. On the
microblog2011 pool where it is at hand, or the collection named (rhelp has 117,000 documents, of which every 10th topic
is taken), else on a generated collection.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.collections import Collection
from sdretrieval.collection.records import Ranking, Run, Topic
from sdretrieval.collection.trec import read_topics
from sdretrieval.index.past_statistics import PastStatistics, timelines
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import queries_of, search
from sdretrieval.ranking.time.wrappers import Auto, Density, Recency, time_aware

ROUNDS = 7
TARGET = 0.25
MODELS = ("bm25", "rm3", "blend")


def collection(named: str | None = None) -> tuple[str, Snapshot, list[Topic], Run]:
    pool = Collection(named or "microblog2011")
    if pool.available and named:
        snapshot, topics, name = pool.snapshot, pool.topics[::10], pool.name
    elif pool.available:
        snapshot, topics, name = pool.snapshot, [t for t in pool.topics if t.qid in pool.run("QL")], pool.name
    else:
        snapshot, topics, name = *_generated(), "generated"
    return name, snapshot, topics, search(snapshot, topics, "ql")


def _generated() -> tuple[Snapshot, list[Topic]]:
    from sdretrieval.collection.corpus import Reader
    from sdretrieval.demo import write_demo
    from sdretrieval.index.lucene.indexing import build_index

    folder = Path(tempfile.mkdtemp())
    files = write_demo(folder, n_docs=20_000)
    build_index(Reader(date="date").read([files.documents]), folder / "index", threads=1)
    return open_snapshot(folder / "index"), read_topics(files.topics)


def best_of(variants: dict[str, Callable[[Query], object]], queries: list[Query]) -> dict[str, float]:
    """Mean milliseconds per query of each variant: the variants take turns, each query keeps its best round.

    Each round begins with another one: the first to rank a query finds its postings farther from the processor.
    """
    best = {name: np.full(len(queries), np.inf) for name in variants}
    for turn in range(ROUNDS):
        begin = turn % len(variants)
        for i, query in enumerate(queries):
            for name, work in [*variants.items()][begin:] + [*variants.items()][:begin]:
                began = time.thread_time()
                work(query)
                best[name][i] = min(best[name][i], time.thread_time() - began)
    return {name: float(values.mean()) * 1e3 for name, values in best.items()}


def prior_costs(snapshot: Snapshot, topics: list[Topic], run: Run) -> float:
    """Prints every model's costs; returns the largest share of the whole query among them."""
    engine, worst = Engine(snapshot), 0.0
    queries = queries_of(snapshot, topics)
    by_qid = {topic.qid: topic for topic in topics}
    given = {qid: snapshot.docids.find_many(run[qid].docids) for qid in run}
    for verb, candidates in (("query", None), ("search", None), ("rerank", given)):
        for name in MODELS:
            plain = make_ranker(name)
            models = {
                "none": plain,
                "recency": time_aware(plain, prior=Recency()),
                "density": time_aware(plain, prior=Density()),
                "auto": time_aware(plain, prior=Auto()),
            }

            def work(model, candidates=candidates, verb=verb):
                def rank(query):
                    return next(engine.rank(model, [query], RankOptions(hits=1000, candidates=candidates)))

                def whole(query):  # on a loaded engine: what is paid once per command is not counted
                    found = rank(Query.from_topic(snapshot, by_qid[query.qid]))
                    return Ranking(snapshot.docids.take(found.docs), found.scores)

                return whole if verb == "query" else rank

            costs = best_of({label: work(model) for label, model in models.items()}, queries)
            shares = {label: costs[label] / costs["none"] - 1 for label in ("recency", "density", "auto")}
            worst = max(worst, *shares.values()) if verb == "query" else worst
            print(
                f"{verb:7s} {name:5s} {costs['none']:6.2f} ms per query, "
                + ", ".join(f"{label} +{100 * share:4.1f} %" for label, share in shares.items())
            )
    return worst


def as_of_costs(snapshot: Snapshot, topics: list[Topic]) -> None:
    times = sorted(topic.time for topic in topics if topic.time is not None)

    def anew() -> None:
        for t in times:
            timelines.clear()
            PastStatistics(snapshot).at(t)

    def alone() -> None:
        for t in times:
            PastStatistics(snapshot).at(t)

    def moved() -> None:
        past = PastStatistics(snapshot)
        for t in times:
            past.at(t)

    counted, single, along = (
        1e3 * min(_processor_seconds(way) for _ in range(3)) / len(times) for way in (anew, alone, moved)
    )
    print(
        f"as-of statistics of {len(times)} queries over {snapshot.n_docs} documents: {along:.2f} ms per query moving "
        f"along time, {single:.2f} ms one by one where others have asked before, {counted:.2f} ms counting anew"
    )


def _processor_seconds(work: Callable[[], None]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main() -> None:
    name, snapshot, topics, run = collection(*sys.argv[1:2])
    print(f"{name}: {snapshot.n_docs} documents, {len(topics)} topics")
    worst = prior_costs(snapshot, topics, run)
    as_of_costs(snapshot, topics)
    print(
        f"a time prior costs {100 * worst:.1f} % of the query's time at most "
        f"(target: under {100 * TARGET:.0f} %: {'met' if worst < TARGET else 'MISSED'})"
    )


if __name__ == "__main__":
    main()
