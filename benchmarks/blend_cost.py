"""What the default costs: the time of a query with ``blend`` by that with ``sd3``, on the same real text.

python -m benchmarks.blend_cost        # rhelp of ../shared/data: 117,000 messages, 500 topics, 1000 hits
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.collections import Collection
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker

MODELS = ("bm25", "rm3", "sd3", "blend")
ROUNDS = 5


def seconds(engine: Engine, model: str, queries: list[Query], alone: bool) -> float:
    """For all queries: in a batch, or one at a time."""
    ranker, began = make_ranker(model), time.perf_counter()
    for part in [[query] for query in queries] if alone else [queries]:
        for _ in engine.rank(ranker, part):
            pass
    return time.perf_counter() - began


def main() -> None:
    collection = Collection("rhelp")
    if not collection.available:
        print("../shared/data/rhelp is not on this machine")
        return
    queries = collection.queries
    print("ms a query, median of five rounds; ratio to sd3 within a round")
    for threads, alone in ((1, False), (2, False), (1, True)):
        engine = Engine(collection.snapshot, threads=threads)
        asked = queries[::5] if alone else queries
        for model in MODELS:
            seconds(engine, model, asked[:5], alone)
        rounds = [{model: seconds(engine, model, asked, alone) for model in MODELS} for _ in range(ROUNDS)]
        how = "one at a time" if alone else f"batch, {threads} thread{'s' * (threads > 1)}"
        for model in MODELS:
            ms = 1000 * np.median([r[model] for r in rounds]) / len(asked)
            ratio = np.median([r[model] / r["sd3"] for r in rounds])
            print(f"{how:<18} {model:<6} {ms:7.2f} ms   {ratio:.2f}")


if __name__ == "__main__":
    main()
