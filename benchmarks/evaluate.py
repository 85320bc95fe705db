"""Evaluating 20 runs of 50 topics x 1000 hits, against calling pytrec_eval directly on the same data.

Must hold: our time <= 1.5 x pytrec_eval's. The peer gets its dictionaries ready-made; we start from Run records and
make of them what pytrec_eval takes inside the time measured. Processor time, both in one process, by turns, the best
of nine each; the numbers are compared before the times.

    python -m benchmarks.evaluate
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pytrec_eval

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.evaluate import Evaluator

RUNS, TOPICS, HITS, JUDGED, REPEATS = 20, 50, 1000, 300, 9
MEASURES = {"AP": "map", "P@5": "P_5", "nDCG@10": "ndcg_cut_10"}
LIMIT = 1.5


def make_data() -> tuple[list[Run], dict[str, dict[str, int]]]:
    rng = np.random.default_rng(7)
    documents = [f"DOC-{i:06d}" for i in range(100_000)]
    qrels: dict[str, dict[str, int]] = {}
    for topic in range(1, TOPICS + 1):
        judged = rng.choice(len(documents), JUDGED, replace=False).tolist()
        grades = rng.choice(3, JUDGED, p=[0.8, 0.15, 0.05]).tolist()
        qrels[str(topic)] = {documents[i]: grade for i, grade in zip(judged, grades, strict=True)}
    runs = []
    for number in range(RUNS):
        rankings = {}
        for qid, grades_of in qrels.items():
            others = [documents[i] for i in rng.choice(len(documents), HITS, replace=False).tolist()]
            found = list(dict.fromkeys([*list(grades_of)[: JUDGED // 2], *others]))[:HITS]
            scores = np.round(rng.normal(-8, 2, HITS), 3)  # with ties, as printed scores have
            rankings[qid] = Ranking(found, scores)
        runs.append(Run(rankings, f"run{number}"))
    return runs, qrels


def seconds(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return time.process_time() - began


def main() -> None:
    runs, qrels = make_data()
    ready = [run.to_dict() for run in runs]

    def theirs() -> list[dict[str, dict[str, float]]]:
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values()))
        return [evaluator.evaluate(run) for run in ready]

    def ours() -> list:
        evaluator = Evaluator(qrels, list(MEASURES))
        return [evaluator.evaluate(run) for run in runs]

    for mine, yours in zip(ours(), theirs(), strict=True):
        for name, trec_name in MEASURES.items():
            if mine.per_topic[name] != {qid: values[trec_name] for qid, values in yours.items()}:
                sys.exit(f"the numbers differ on {name}: the times would mean nothing")
    times = [(seconds(theirs), seconds(ours)) for _ in range(REPEATS)]
    peer, own = (min(column) for column in zip(*times, strict=True))
    ratio = own / peer
    print(f"{RUNS} runs x {TOPICS} topics x {HITS} hits, {' '.join(MEASURES)}")
    print(f"pytrec_eval, called directly  {peer:.3f} s")
    print(f"sdretrieval.evaluate          {own:.3f} s")
    print(f"ratio                         {ratio:.2f} (limit {LIMIT})")
    if ratio > LIMIT:
        sys.exit(f"evaluating takes {ratio:.2f} x pytrec_eval's time, more than {LIMIT}")


if __name__ == "__main__":
    main()
