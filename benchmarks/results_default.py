"""How far the shipped default of sd3 was chosen with its collections in view (docs/RESULTS.notes.md).

Every setting of a grid is ranked on cacm, cranfield and npl. For each collection, the setting that is best on the other
two (mean of MAP, each relative to Anserini's best there) is scored on it: what a default chosen without it would reach.

    python -m benchmarks.results_default       # a quarter of an hour; resumable
"""

from __future__ import annotations

import numpy as np

from benchmarks.anserini import SYSTEMS, anserini_run
from benchmarks.collections import Collection
from benchmarks.results_ranking import SEARCHED, TRACES
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.tune import Problem, Trace, combinations, identity_of, settings_key, space_of
from sdretrieval.ranking.registry import make_ranker

GRID = [
    "fb_docs=5,10,15,20,25,30",
    "fb_terms=15,25,40,70",
    "original_query_weight=0.2,0.3,0.4,0.5",
    "precision=0.1,0.25,0.5,1.0",
]


def maps_of(c: Collection) -> tuple[float, list[float]]:
    """MAP of sd3 as shipped, and of every setting of the grid."""
    ranker = make_ranker("sd3")
    problem = Problem(c.snapshot, c.queries, c.qrels, threads=2)
    TRACES.mkdir(parents=True, exist_ok=True)
    trace = Trace(TRACES / f"{c.name}-sd3-default.jsonl", identity_of(problem, ranker), problem.qids)

    def mean(settings: dict) -> float:
        key = settings_key(settings)
        if key not in trace.table:
            trace.add(settings, problem.values(ranker.with_(**settings)))
        return float(np.mean(list(trace.table[key].values())))

    return mean({}), [mean(settings) for settings in combinations(space_of(ranker, GRID))]


def anserini_best(c: Collection) -> float:
    """The best MAP of Anserini's five systems, over topics with a relevant document."""
    judged = {qid: grades for qid, grades in c.qrels.items() if any(grade > 0 for grade in grades.values())}
    runs = (anserini_run(c.index, c.topics, name) for name in SYSTEMS)
    return max(evaluate(run, judged, ["AP"], complete=True).mean["AP"] for run in runs)


if __name__ == "__main__":
    settings = list(combinations(space_of(make_ranker("sd3"), GRID)))
    print(f"{len(settings)} settings: {'; '.join(GRID)}")
    shipped, maps, peers = {}, {}, {}
    for name in SEARCHED:
        shipped[name], maps[name] = maps_of(Collection(name))
        peers[name] = anserini_best(Collection(name))
    for name in SEARCHED:
        others = [np.array(maps[other]) / peers[other] for other in SEARCHED if other != name]
        chosen = int(np.argmax(np.mean(others, axis=0)))
        print(
            f"{name}: as shipped {shipped[name]:.4f}, chosen on the other two {maps[name][chosen]:.4f}, "
            f"best of the grid {max(maps[name]):.4f}, Anserini's best {peers[name]:.4f}; {settings[chosen]}"
        )
