"""A random dated collection, whole and in shards, and every model and time setting to rank it with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sdretrieval.demo import write_demo
from sdretrieval.ranking.base import Ranker, make_ranker
from sdretrieval.ranking.engine import Engine
from sdretrieval.ranking.query import Query
from sdretrieval.records import Ranking
from sdretrieval.snapshot import Snapshot
from sdretrieval.temporal.background import Drifting
from sdretrieval.temporal.prior import Density, Recency
from sdretrieval.temporal.ranking import FeedbackTime, TimeAware
from sdretrieval.times import UNDATED

DAY = 86_400_000
N, V = 400, 300

# Every model, and the other ways it can go: what each test of exactness ranks with.
MODELS: dict[str, tuple[str, dict]] = {
    "bm25": ("bm25", {}),
    "ql": ("ql", {}),
    "ql jm": ("ql", {"smoothing": "jm"}),
    "tfidf": ("tfidf", {"fb_docs": 20}),
    "rm": ("rm", {}),
    "rm dirichlet": ("rm", {"smoothing": "dirichlet", "fb_docs": 10}),
    "rm3": ("rm3", {}),
    "rm3 lm": ("rm3", {"scoring": "lm", "first_stage": "ql"}),
    "rm3 anserini": ("rm3", {"mode": "anserini"}),
    "rm3 anserini ql": ("rm3", {"mode": "anserini", "first_stage": "ql"}),
    "sd": ("sd", {}),
    "sd dirichlet": ("sd", {"smoothing": "dirichlet"}),
    "sd bm25": ("sd", {"first_stage": "bm25"}),
    "sd to convergence": ("sd", {"iterations": 0, "posterior": "exact"}),
    "sd3": ("sd3", {}),
    "sd3 lm": ("sd3", {"scoring": "lm", "first_stage": "sd", "posterior": "exact", "prior": 0.3}),
    "lucene-bm25": ("lucene-bm25", {}),
    "lucene-qld": ("lucene-qld", {}),
    "lucene-qljm": ("lucene-qljm", {}),
}

TIMES: dict[str, dict] = {
    "recency": {"prior": Recency()},
    "recency, fixed": {"prior": Recency(bandwidth=5.0 * DAY), "weight": 0.7},
    "recency, sharp": {"prior": Recency("uniform", bandwidth=2.0 * DAY), "weight": 0.5, "time_docs": 10},
    "density": {"prior": Density(), "weight": 0.4},
    "density, auto": {"prior": Density(), "evidence": "rank"},
    "density, cv, posterior": {"prior": Density(bandwidth="cv"), "weight": 0.3, "evidence": "posterior"},
    "as of": {"as_of": True},
    "as of, inclusive, recency": {"as_of": True, "inclusive": True, "prior": Recency(), "weight": 0.5},
    "timed feedback": {"feedback": FeedbackTime("query")},
    "feedback at the mode": {"feedback": FeedbackTime("mode"), "prior": Density()},
    "local background": {"background": Drifting(bandwidth=20.0 * DAY)},
    "penalised background": {"background": Drifting("penalised", bandwidth=20.0 * DAY)},
    "local background as of": {"background": Drifting(bandwidth=20.0 * DAY), "as_of": True},
    "background at documents": {"background": Drifting(at="document", bandwidth=15.0 * DAY)},
    "background at documents, recency": {
        "background": Drifting("penalised", at="document", bandwidth=15.0 * DAY),
        "prior": Recency(), "weight": 0.5,
    },
}  # fmt: skip


def ranker(name: str, time: str | None = None) -> Ranker:
    model, settings = MODELS[name]
    made = make_ranker(model, settings)
    return made if time is None else TimeAware(ranker=made, **TIMES[time])


class Sharding:
    """A collection with twins, empty and undated documents, and times of which many are the same."""

    def __init__(self, seed: int, *, n_docs: int = N, n_terms: int = V, distinct_times: int | None = None) -> None:
        rng = self.rng = np.random.default_rng(seed)
        lengths = rng.integers(1, 60, n_docs)
        share = 1.0 / np.arange(1, n_terms + 1)
        self.counts = np.vstack([rng.multinomial(length, share / share.sum()) for length in lengths])
        self.counts[n_docs // 2 : n_docs // 2 + 20] = self.counts[:20]  # twins: their scores tie
        self.counts[n_docs - 3 :] = 0
        self.words = [f"{'äbc'[i % 3]}{i * 7919 % n_terms}" for i in range(n_terms)]
        self.docids = [f"d{i:03d}" for i in rng.permutation(n_docs)]
        span = 100 * DAY
        self.times = rng.integers(0, span, n_docs)
        if distinct_times is not None:
            self.times = self.times * distinct_times // span * (span // distinct_times)
        self.times[rng.random(n_docs) < 0.1] = UNDATED
        self.whole = self.part(np.arange(n_docs))

    def part(self, rows: np.ndarray) -> Snapshot:
        return Snapshot.from_counts(self.counts[rows], self.words, [self.docids[i] for i in rows], self.times[rows])

    def shards(self, n: int) -> list[Snapshot]:
        """Documents spread at random; with many shards some have next to nothing."""
        share = self.rng.dirichlet(np.full(n, 0.7))
        where = self.rng.choice(n, len(self.docids), p=share)
        return [self.part(self.rng.permutation(np.flatnonzero(where == k))) for k in range(n)]

    def texts(self) -> list[list[str]]:
        """Common words, rare ones, repeats, unknown ones; one query of nothing known."""
        pick = lambda *numbers: [self.words[i] for i in numbers]  # noqa: E731
        return [pick(3, 40), pick(0, 90, 90), [*pick(250, 17, 5), "unheard-of"], ["unheard-of"], pick(120)]

    def queries(self, collection) -> list[Query]:
        return [
            Query.from_words(collection, words, qid=str(i), time=(30 + 20 * i) * DAY if i != 2 else 70 * DAY)
            for i, words in enumerate(self.texts())
        ]


def one_index(snapshot: Snapshot, model: Ranker, queries: list[Query], **options) -> dict[str, Ranking]:
    """What the single machine's engine finds."""
    return {
        result.query.qid: Ranking(snapshot.docids.take(result.docs), result.scores)
        for result in Engine(snapshot).rank(model, queries, **options)
    }


def assert_same(found: dict[str, Ranking], wanted: dict[str, Ranking], note: str = "") -> float:
    """Same documents, same order, scores to 1e-9; how far apart the scores are at most."""
    assert found.keys() == wanted.keys()
    worst = 0.0
    for qid, ranking in wanted.items():
        assert found[qid].docids == ranking.docids, (note, qid)
        apart = np.abs(found[qid].scores - ranking.scores)
        worst = max(worst, float(apart.max(initial=0.0)))
        assert (apart <= 1e-9).all(), (note, qid, worst)
    return worst


def write_corpus(folder: Path) -> list[str]:
    """The demo's documents in two files of ``docs``, its topics and judgments in ``demo``; the documents' lines."""
    write_demo(folder / "demo", n_docs=240, n_topics=12, mean_words=60)
    lines = (folder / "demo" / "docs.jsonl").read_text().splitlines(keepends=True)
    (folder / "docs").mkdir()
    (folder / "docs" / "a.jsonl").write_text("".join(lines[:100]))
    (folder / "docs" / "b.jsonl").write_text("".join(lines[100:]))
    return lines
