"""Writing, reading and sorting a run of 100 topics x 1000 hits, against the plainest loops that do it unchecked.

    python -m benchmarks.write_run

The baselines write one f-string per line into an open file, and read one split line at a time into dicts:
no checks, no ties, and a file that is there in part when the loop breaks. Sorting is by
trec_eval's rule, score down and then docid down, against Python's own sort of such pairs. Best of five, all in one
process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sdretrieval.collection.records import Ranking, Run, rank_order
from sdretrieval.collection.trec import read_run, write_run

TOPICS, HITS, REPEATS = 100, 1000, 5
TARGET_SECONDS = 0.5


def make_run() -> Run:
    """Scores as a language model gives them, one in ten tied."""
    rng = np.random.default_rng(20)
    rankings = {}
    for topic in range(1, TOPICS + 1):
        scores = rng.normal(-8, 2, HITS)
        scores[:: HITS // 100] = np.round(scores[:: HITS // 100], 1)
        docids = [f"DOC-{i:08d}" for i in rng.choice(10_000_000, HITS, replace=False)]
        rankings[str(topic)] = Ranking(docids, scores)
    return Run(rankings, "benchmark")


def plain_write(path: Path, run: Run) -> None:
    with path.open("w") as stream:
        for qid, ranking in run.items():
            for rank, (docid, score) in enumerate(ranking, 1):
                stream.write(f"{qid} Q0 {docid} {rank} {score} {run.tag}\n")


def plain_read(path: Path) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    with path.open() as stream:
        for line in stream:
            qid, _, docid, _, score, _ = line.split()
            run.setdefault(qid, {})[docid] = float(score)
    return run


def shuffled(run: Run) -> list[tuple[list[str], np.ndarray]]:
    rng = np.random.default_rng(21)
    orders = [rng.permutation(HITS) for _ in run]
    return [([r.docids[i] for i in o], r.scores[o]) for r, o in zip(run.values(), orders, strict=True)]


def plain_sort(docids: list[str], scores: np.ndarray) -> list[int]:
    pairs = list(zip(scores.astype(np.float32).tolist(), docids, strict=True))
    return sorted(range(len(pairs)), key=pairs.__getitem__, reverse=True)


def seconds(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    run = make_run()
    with tempfile.TemporaryDirectory() as folder:
        plain, ours = Path(folder) / "plain.trec", Path(folder) / "ours.trec"
        rows = [
            ("write", seconds(lambda: write_run(ours, run)), seconds(lambda: plain_write(plain, run))),
            ("read", seconds(lambda: read_run(ours)), seconds(lambda: plain_read(plain))),
        ]
        lists = shuffled(run)
        rows.append(
            (
                "sort",
                seconds(lambda: [rank_order(*one) for one in lists]),
                seconds(lambda: [plain_sort(*one) for one in lists]),
            )
        )
        if any(rank_order(*one).tolist() != plain_sort(*one) for one in lists):
            raise SystemExit("the two orders differ: the times mean nothing")
        if ours.read_text() != plain.read_text() or read_run(ours) != run:
            raise SystemExit("the two files differ, or the run did not come back: the times mean nothing")
    print(f"run of {TOPICS} topics x {HITS} hits; target < {TARGET_SECONDS} s each")
    for name, own, baseline in rows:
        verdict = "met" if own < TARGET_SECONDS else "MISSED"
        ratio = own / baseline
        print(f"{name:5}  {own:.3f} s  plain loop {baseline:.3f} s  ratio {ratio:.2f}  target {verdict}")


if __name__ == "__main__":
    main()
