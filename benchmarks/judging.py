"""``python -m benchmarks.judging [PART …]``: the judging loop on labelled collections.

reviews    eight systematic reviews beside ASReview (its own learner elas_u4, the review's title as prior knowledge):
           WSS@95, recall at 2R, processor time a click; parameters chosen without the review reported; ASReview again
           with the documents in --orders
stopping   whether the stated recall is true, over reviews and 20 starts each, and what it costs
order      documents and ids shuffled
clicks     processor time from click to new ranking; --index DIR, any index (default: reuters21578)
runs       cranfield with its qrels as the hidden assessor: the order of ten runs after 10 % of the pool

ASReview is installed for the benchmark alone: ``pip install --target FOLDER asreview`` and ``PYTHONPATH=FOLDER``.
"""

from __future__ import annotations

import argparse
import atexit
import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from benchmarks.collections import SHARED, Collection
from benchmarks.tables import mean_and_error, standard_error
from sdretrieval.collection.records import Run
from sdretrieval.core.tables import text_table
from sdretrieval.evaluate import evaluate
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.learn.judging.estimates import Contest
from sdretrieval.learn.judging.learner import FIRST_COUNTS, Features, Learner
from sdretrieval.learn.judging.simulation import Played, simulate
from sdretrieval.ranking.interactive import Index
from sdretrieval.ranking.retrieval import search

NEVER = 1 << 60
CHOICES: list[dict[str, Any]] = [
    {},
    {"cost": 0.03},
    {"cost": 0.11},
    {"topic_share": 0.0},
    {"first_counts": 0},
    {"first_counts": 1},
    {"patience": 20},
    {"patience": NEVER},
    {"cost": 0.11, "first_counts": 0, "patience": NEVER},
]
SYSTEMS = ("ql", "bm25", "tfidf", "dph", "rm3", "sd", "sd3", "dce", "bm25prf", "axiomatic", "blend")


# -- reviews -------------------------------------------------------------------------------------------------------


def reviews() -> list[Path]:
    return sorted(path.parent for path in (SHARED / "reviews").glob("*/labels.tsv"))


@cache
def review(folder: Path) -> tuple[Snapshot, np.ndarray, list[str]]:
    """A review's documents, which of them are relevant, and its title's words."""
    return indexed(folder, list(read_documents(folder)))


def read_documents(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "docs.jsonl.gz") as stream:
        return [json.loads(line) for line in stream]


def indexed(
    folder: Path, documents: list[dict[str, Any]], names: list[str] | None = None
) -> tuple[Snapshot, np.ndarray, list[str]]:
    """These documents of a review, indexed as a user's are; under other names on request."""
    labels = dict(line.split("\t") for line in (folder / "labels.tsv").read_text().splitlines())
    names = [document["id"] for document in documents] if names is None else names
    relevant = {name for name, document in zip(names, documents, strict=True) if labels[document["id"]] == "1"}
    place = Path(mkdtemp(prefix="judging-"))
    atexit.register(rmtree, place, ignore_errors=True)
    with open(place / "docs.jsonl", "w", encoding="utf-8") as stream:
        for name, document in zip(names, documents, strict=True):
            print(json.dumps({"id": name, "contents": document["contents"]}), file=stream)
    snapshot = Index.build(place / "docs.jsonl", place / "index").snapshot
    return (
        snapshot,
        np.array([docid in relevant for docid in snapshot.docids]),
        snapshot.analyze((folder / "topic.txt").read_text().strip()),
    )


def played(folder: Path, first_counts: int = FIRST_COUNTS, **how: Any) -> Played:
    snapshot, relevant, words = review(folder)
    return simulate(Learner(Features.of(snapshot, first_counts), words, **how), relevant)


def scores(one: Played) -> tuple[float, float, float]:
    return one.wss(0.95), one.recall_at(2 * one.total), 1000 * one.seconds


def asreview(folder: Path, seed: int = 0) -> Played | None:
    """ASReview as it comes; it begins with the first of the file, since it must know one that is not relevant. With a
    seed the file is shuffled."""
    try:
        import pandas as pd
        from asreview.learner import ActiveLearningCycle
        from asreview.models.models import get_ai_config
        from asreview.models.queriers import TopDown
        from asreview.models.stoppers import IsFittable
        from asreview.simulation.simulate import Simulate
    except ModuleNotFoundError:
        return None
    documents = read_documents(folder)
    if seed:
        np.random.default_rng(seed).shuffle(documents)
    labels = dict(line.split("\t") for line in (folder / "labels.tsv").read_text().splitlines())
    relevant = np.array([labels[document["id"]] == "1" for document in documents])
    titles = [document.get("title", "") for document in documents] + [(folder / "topic.txt").read_text().strip()]
    bodies = [document["contents"].removeprefix(document.get("title", "")).strip() for document in documents] + [""]
    cycles = [
        ActiveLearningCycle(querier=TopDown(), stopper=IsFittable()),
        ActiveLearningCycle.from_meta(get_ai_config("elas_u4")["value"]),
    ]
    frame = pd.DataFrame({"title": titles, "abstract": bodies})
    simulation = Simulate(frame, pd.Series([*relevant.astype(int), 1]), cycles, print_progress=False)
    simulation.label([len(documents)])
    began = process_time()
    simulation.review()
    seconds = process_time() - began
    order = np.array([i for i in simulation._results["record_id"] if i < len(documents)])
    return Played(order, relevant[order], int(relevant.sum()), len(relevant), seconds / len(order))


def part_reviews(args: argparse.Namespace) -> None:
    folders = reviews()
    ours = [[scores(played(folder, **choice)) for folder in folders] for choice in CHOICES]
    quality = [np.array([wss + recall for wss, recall, _ in rows]) for rows in ours]
    rows, table = [], []
    for i, folder in enumerate(folders):
        chosen = max(range(len(CHOICES)), key=lambda k: quality[k].sum() - quality[k][i])
        theirs = asreview(folder)
        told = ours[0][i], ours[chosen][i], (np.nan,) * 3 if theirs is None else scores(theirs)
        rows.append(told)
        table.append([folder.name, *(f"{v:.3f}" for one in told for v in one), str(chosen)])
        print(table[-1], flush=True)
    values = np.array(rows)
    for name, row in (("mean", values.mean(axis=0)), ("s.e.", np.apply_along_axis(standard_error, 0, values))):
        table.append([name, *(f"{v:.3f}" for one in row for v in one), ""])
    heads = [f"{what} {who}" for who in ("default", "left out", "ASReview") for what in ("WSS@95", "r@2R", "ms")]
    print(text_table(["review", *heads, "chosen"], table))
    for name, k in (("WSS@95", 0), ("recall at 2R", 1)):
        gain = values[:, 1, k] - values[:, 2, k]
        print(f"{name}, ours (left out) less ASReview's (s.e.): {mean_and_error(gain, 4, '+')}")
    for k, numbers in enumerate(ours):
        print(k, CHOICES[k] or "default", np.array(numbers).mean(axis=0).round(4).tolist())
    if args.orders > 1 and not np.isnan(values[:, 2]).any():
        print(f"ASReview, documents in {args.orders} orders:", flush=True)
        others = [[scores(asreview(folder, seed)) for folder in folders] for seed in range(1, args.orders)]  # type: ignore[arg-type]
        _told_over([values[:, 2].tolist(), *others])


def _told_over(runs: list) -> None:
    """Means over reviews of means over runs, and how far the runs' means are spread."""
    means = np.array(runs).mean(axis=1)
    spread = means.std(axis=0, ddof=1)
    for k, name in enumerate(("WSS@95", "recall at 2R")):
        print(f"  {name} {means[:, k].mean():.4f}, standard deviation over runs {spread[k]:.4f}")
    print("  recall at 2R by review", np.array(runs)[:, :, 1].mean(axis=0).round(3).tolist(), flush=True)


# -- stopping, order, clicks ---------------------------------------------------------------------------------------


def starts(relevant: np.ndarray, n: int) -> Iterator[list[int]]:
    """The title alone, then with a relevant and another document, at random, judged first."""
    yield []
    rng = np.random.default_rng(0)
    for _ in range(n - 1):
        yield [int(rng.choice(np.flatnonzero(relevant))), int(rng.choice(np.flatnonzero(~relevant)))]


def part_stopping(args: argparse.Namespace) -> None:
    table: list[list[str]] = []
    all_true: dict[float, list[bool]] = {0.8: [], 0.95: []}
    for folder in reviews():
        snapshot, relevant, words = review(folder)
        features, row = Features.of(snapshot), [folder.name]
        games = [
            simulate(Learner(features, words), relevant, first=first, until=lambda hits: False)
            for first in starts(relevant, args.starts)
        ]
        for target in all_true:
            stops = [game.stops(target) for game in games]
            all_true[target] += [true for _, true in stops]
            row += [
                f"{np.mean([true for _, true in stops]):.2f}",
                f"{np.mean([n for n, _ in stops]) / len(relevant):.2f}",
            ]
        print(row, flush=True)
        table.append(row)
    print(text_table(["review", "true at .80", "judged", "true at .95", "judged"], table))
    print({target: f"{np.mean(true):.3f} of {len(true)}" for target, true in all_true.items()})


def part_order(args: argparse.Namespace) -> None:
    for folder in reviews():
        documents, wss = read_documents(folder), []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            order = rng.permutation(len(documents)) if seed else np.arange(len(documents))
            names = [f"x{i}" for i in rng.permutation(len(documents))]
            snapshot, relevant, words = indexed(folder, [documents[i] for i in order], names)
            wss.append(simulate(Learner(Features.of(snapshot), words), relevant).wss(0.95))
        print(folder.name, "WSS@95", np.round(wss, 4).tolist(), "spread", round(max(wss) - min(wss), 4), flush=True)


def part_clicks(args: argparse.Namespace) -> None:
    snapshot = open_snapshot(args.index) if args.index else Collection("reuters21578").snapshot
    if args.documents:
        snapshot = _first(snapshot, args.documents)
    began = process_time()
    features = Features.of(snapshot)
    print(f"{snapshot.n_docs:,} documents, {int(snapshot.doc_ptr[-1]):,} postings; once {process_time() - began:.2f} s")
    rng = np.random.default_rng(0)
    learner, times = Learner(features, [snapshot.term(int(t)) for t in features.row(0)[0][:5]]), []
    for click in range(args.clicks):
        doc = learner.best()
        assert doc is not None
        began = process_time()
        learner.learn(doc, bool(rng.random() < 0.3))
        learner.best()
        times.append(1000 * (process_time() - began))
        if click + 1 in (20, 50, 100, 200, 500, 1000):
            last = times[-min(50, len(times)) :]
            print(f"after {click + 1} clicks: median {np.median(last):.2f} ms, 95 % {np.quantile(last, 0.95):.2f} ms")


def _first(snapshot: Snapshot, n: int) -> Snapshot:
    """The first documents of a collection, with all of its words."""
    arrays, kept = snapshot.arrays, snapshot.term_docs < n
    by_document = {name: arrays[name][:n] for name in ("length_group", "times")} | {
        "doc_ptr": arrays["doc_ptr"][: n + 1]
    }
    by_term = {"term_docs": snapshot.term_docs[kept], "term_counts": snapshot.term_counts[kept]}
    ends = np.concatenate([[0], np.cumsum(kept)])[snapshot.term_ptr]
    return Snapshot({**arrays, **by_document, **by_term, "term_ptr": ends})


# -- runs ----------------------------------------------------------------------------------------------------------


def part_runs(args: argparse.Namespace) -> None:
    """Kendall's τ of the order of runs by partial judgments with that by all of the pool."""
    for name in args.collections:
        collection = Collection(name)
        topics = [topic for topic in collection.topics if collection.qrels.relevant(topic.qid)]
        runs = {s: search(collection.snapshot, topics, s, hits=100) for s in SYSTEMS[: args.systems]}
        pools = {topic.qid: _pool(runs, topic.qid, args.depth) for topic in topics}
        truth = {q: {d: int(collection.qrels[q].get(d, 0) > 0) for d in pool} for q, pool in pools.items()}
        size = sum(map(len, pools.values()))
        exact = [evaluate(run, truth, ["AP"]).mean["AP"] for run in runs.values()]
        print(f"{name}: {len(topics)} topics, {len(runs)} runs, pools of {args.depth}: {size} documents", flush=True)
        budgets = {round(share * size): share for share in (0.02, 0.05, 0.1, 0.2)}
        for budget, judged, estimate in _by_runs(runs, pools, truth, list(budgets)):
            shallow = _shallow(pools, truth, budget)
            told = {
                "chosen, estimated": estimate,
                "chosen, as it is": [evaluate(run, judged, ["AP"]).mean["AP"] for run in runs.values()],
                "depth-k": [evaluate(run, shallow, ["AP"]).mean["AP"] for run in runs.values()],
            }
            taus = {how: round(float(kendalltau(exact, values).statistic), 3) for how, values in told.items()}
            print(f"  {budgets[budget]:.0%} judged ({budget}): Kendall's τ {taus}", flush=True)


def _pool(runs: dict[str, Run], qid: str, depth: int) -> dict[str, int]:
    best: dict[str, int] = {}
    for run in runs.values():
        for rank, docid in enumerate(run[qid].docids[:depth], 1):
            best[docid] = min(rank, best.get(docid, rank))
    return dict(sorted(best.items(), key=lambda pair: (pair[1], pair[0])))


def _by_runs(runs: dict, pools: dict, truth: dict, budgets: list[int]) -> Iterator[tuple[int, dict, list[float]]]:
    """Judgments where the runs disagree, and AP estimated by them, after each of some numbers of clicks."""
    contest = Contest(runs, pools)
    judged: dict[str, dict[str, int]] = {qid: {} for qid in pools}
    seen: dict[str, set[str]] = {qid: set() for qid in pools}
    for n in range(1, max(budgets) + 1):
        found = contest.next_anywhere(judged, seen)
        assert found is not None
        qid, docid = found
        judged[qid][docid] = truth[qid][docid]
        seen[qid].add(docid)
        if n in budgets:
            yield n, {q: g for q, g in judged.items() if g}, [one.estimate for one in contest.measures(judged, ["AP"])]


def _shallow(pools: dict, truth: dict, budget: int) -> dict:
    """The documents of best rank, over all topics alike, as many as the budget allows."""
    order = sorted((rank, qid, docid) for qid, pool in pools.items() for docid, rank in pool.items())
    judged: dict[str, dict[str, int]] = {}
    for _, qid, docid in order[:budget]:
        judged.setdefault(qid, {})[docid] = truth[qid][docid]
    return judged


PARTS = {name.removeprefix("part_"): part for name, part in list(globals().items()) if name.startswith("part_")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    parser.add_argument("--index", help="of `clicks`")
    parser.add_argument("--documents", type=int, help="of `clicks`: only the first so many")
    parser.add_argument("--clicks", type=int, default=200)
    parser.add_argument("--orders", type=int, default=1, help="of `reviews`: orders of the documents for ASReview")
    parser.add_argument("--starts", type=int, default=20, help="of `stopping`, for each review")
    parser.add_argument("--collections", nargs="+", default=["cranfield"], help="of `runs`")
    parser.add_argument("--systems", type=int, default=10, help="of `runs`: the first so many models")
    parser.add_argument("--depth", type=int, default=50, help="of `runs`: of the full pool")
    args = parser.parse_args()
    for name in args.parts or PARTS:
        print(f"\n-- {name}", flush=True)
        PARTS[name](args)


if __name__ == "__main__":
    main()
