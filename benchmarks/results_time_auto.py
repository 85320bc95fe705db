"""The automatic time prior beside the best constants set by hand, in docs/RESULTS.md: part of the section on time.

    python -m benchmarks.results_time_auto            # the tables
    python -m benchmarks.results_time_auto bm25       # of one model only

*By hand* is the best of the grids below in MAP on the very topics it is measured on: what nobody knows beforehand. It
is found by re-ranking the first thousand documents and then measured by a whole search. *auto* has nothing to set; its
two constants, ``doubt`` and ``nearness``, are chosen for each collection on the others (CHOICES) in the same way, with
rm3 and a part of their topics.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

from benchmarks.collections import Collection
from sdretrieval.collection.records import Topic
from sdretrieval.core.times import UNDATED
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.notes import AutoTimeNote
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import queries_of
from sdretrieval.ranking.time.prior import Density, Prior, Recency
from sdretrieval.ranking.time.wrappers import Auto, AutoPrior, TimePrior, time_aware
from sdretrieval.ranking.wrapper import Wrapper

DAY = 86_400_000.0
MODELS = ("bm25", "rm3", "blend")
# How each collection is searched; rhelp's topic times are those of the threads' last messages, and give them away.
SEARCHED: dict[str, dict[str, Any]] = {
    "jira": {"as_of": True},
    "rhelp": {},
    "microblog2011": {"as_of": True, "inclusive": True},
    "microblog2013": {"as_of": True, "inclusive": True},
    "cacm": {},
    "cf": {},
    "snopes": {},
}
TIMELESS = ("rhelp",)
GAINING, CONTROLS = ("jira", "rhelp", "microblog2011", "microblog2013"), ("cacm", "cf", "snopes")
PART = {"jira": 2, "rhelp": 4, "snopes": 8}  # for choices on other collections: every so many topics
CHOICES = [Auto(doubt=d, nearness=n) for d in (2.0, 4.0, 8.0) for n in (0.5, 0.75, 1.0)]
WEIGHTS = (0.25, 0.5, 1.0, 2.0)
BY_HAND: list[tuple[Prior, float]] = [
    *((Recency(bandwidth=h * DAY), w) for h in (0.5, 2.0, 10.0, 100.0, 1000.0) for w in WEIGHTS),
    *((Density(bandwidth=h * DAY), w) for h in (0.5, 2.0, 7.0, 30.0, 365.0) for w in WEIGHTS),
]


@dataclass(eq=False)
class Searched:
    """A collection with its judged topics, or every so many of them; or with its dates dealt out anew."""

    name: str
    every: int = 1
    shuffled: bool = False

    @cached_property
    def data(self) -> Collection:
        return Collection(self.name)

    @cached_property
    def snapshot(self) -> Snapshot:
        if not self.shuffled:
            return self.data.snapshot
        other = copy(self.data.snapshot)
        times = np.asarray(other.times).copy()
        dated = np.flatnonzero(times != UNDATED)
        times[dated] = np.random.default_rng(1).permutation(times[dated])
        other.times = times
        return other

    @cached_property
    def topics(self) -> list[Topic]:
        judged = [t for t in self.data.topics if any(g > 0 for g in self.data.qrels.get(t.qid, {}).values())]
        return [replace(t, time=None) if self.name in TIMELESS else t for t in judged][:: self.every]

    def _model(self, model: Ranker, prior: Prior | Auto | None, weight: float | None = None) -> Ranker:
        # With dates shuffled the past is any documents: as-of would change what is searched.
        settings = {} if self.shuffled else SEARCHED[self.name]
        return time_aware(model, prior=prior, weight=weight, **settings)

    def results(
        self, model: Ranker, prior: Prior | Auto | None = None, weight: float | None = None
    ) -> Iterator[Result]:
        queries = queries_of(self.snapshot, self.topics)
        return Engine(self.snapshot, threads=2).rank(self._model(model, prior, weight), queries, RankOptions(hits=1000))

    def precisions(self, results: Iterator[Result] | Sequence[Result]) -> np.ndarray:
        return np.array([self.precision(result.query.qid, result.docs) for result in results])

    def precision(self, qid: str, docs: np.ndarray) -> float:
        """Average precision over all relevant documents."""
        relevant = self._relevant[qid]
        places = np.flatnonzero(np.isin(docs, relevant[relevant >= 0]))
        return float((np.arange(1, len(places) + 1) / (places + 1)).sum() / len(relevant))

    @cached_property
    def _relevant(self) -> dict[str, np.ndarray]:
        find = self.snapshot.docids.find_many
        return {t.qid: find([d for d, g in self.data.qrels[t.qid].items() if g > 0]) for t in self.topics}

    def by_hand(self, model: Ranker, plain: list[Result]) -> tuple[Prior, float]:
        """The best of the grid, re-ranking a plain run."""
        tried = [(prior, w, TimePrior(ranker=model, prior=prior, weight=w)) for prior, w in BY_HAND]
        prior, weight, _ = max(tried, key=lambda item: self.reranked(item[2], plain).mean())
        return prior, weight

    def reranked(self, model: Wrapper, plain: Sequence[Result]) -> np.ndarray:
        """Average precisions of plain results with a prior."""
        engine = Engine(self.snapshot)
        hooks, results = model.hooks(engine), {r.query.qid: r for r in plain}

        def docs_of(r: Result) -> np.ndarray:
            view = engine.view(engine.statistics, self._there(r))
            changed = hooks.adjusted(view, replace(r, notes=[]), r.docs, r.scores)
            return r.docs if changed is None else engine.top(r.docs, changed, 1000)[0]

        for query in hooks.rehearsal([r.query for r in plain]):
            docs_of(results[query.qid])
        hooks.rehearsed()
        return np.array([self.precision(r.query.qid, docs_of(r)) for r in plain])

    def _there(self, result: Result) -> np.ndarray | None:
        """Which documents there are, as of a query's time."""
        if self.shuffled or not SEARCHED[self.name].get("as_of"):
            return None
        times, asked = np.asarray(self.snapshot.times), result.query.time
        assert asked is not None
        return (times != UNDATED) & ((times <= asked) if SEARCHED[self.name].get("inclusive") else (times < asked))


@cache
def gains(name: str) -> list[float]:
    """Of each of the CHOICES on a part of a collection's topics, relative to no prior; re-ranking rm3."""
    searched, model = Searched(name, PART.get(name, 1)), make_ranker("rm3")
    plain = list(searched.results(model))
    without = searched.precisions(plain).mean()
    return [searched.reranked(AutoPrior(ranker=model, prior=c), plain).mean() / without - 1.0 for c in CHOICES]


def chosen_without(name: str) -> Auto:
    """The constants with the highest mean gain on the other collections, each in units of its largest, up or down."""
    others = [other for other in SEARCHED if other != name and Collection(other).available]
    found = np.array([gains(other) for other in others])
    units = np.maximum(np.abs(found).max(axis=1, keepdims=True), 1e-3)
    return CHOICES[int((found / units).mean(axis=0).argmax())]


def section(models: Sequence[str] = MODELS) -> str:
    lines = [
        "### How much time matters, found automatically",
        "",
        "MAP over judged topics: without a prior, with the best constants of a grid set by hand on these very topics "
        f"({len(BY_HAND)} of them: recency and density, bandwidths of half a day to years, weights .25 to 2), and with "
        "`--time-prior auto`, its two constants chosen on the other collections (in brackets: doubt, nearness). jira "
        "and the microblogs as of the topic's time; rhelp without topic times.",
        "",
        "| | model | none | by hand | auto | share of the gain | off for |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in (*GAINING, *CONTROLS):
        for model in models:
            lines.append(_row(Searched(name), model, chosen_without(name)))
            print(lines[-1], file=sys.stderr, flush=True)
    lines += ["", "Dates dealt out anew among the documents, no as-of: nothing is to be gained.", ""]
    lines += ["| | model | none | auto | difference | off for |", "|---|---|---|---|---|---|"]
    for name in SEARCHED:
        for model in models:
            lines.append(_control(Searched(name, PART.get(name, 1), shuffled=True), model, chosen_without(name)))
    return "\n".join(lines)


def _row(searched: Searched, name: str, prior: Auto) -> str:
    model = make_ranker(name)
    plain = list(searched.results(model))
    without = searched.precisions(plain).mean()
    best, weight = searched.by_hand(model, plain)
    hand = searched.precisions(searched.results(model, best, weight)).mean()
    auto, off = _auto(searched, model, prior)
    told = f"{best.name} {best.bandwidth / DAY:g} d, {weight:g}"  # type: ignore[operator]
    share = f"{100 * (auto - without) / (hand - without):.0f} %" if hand - without > 0.001 else "–"
    settings = f"{prior.doubt:g}, {prior.nearness:g}"
    cells = (searched.name, name, f"{without:.4f}", f"{hand:.4f} ({told})", f"{auto:.4f} ({settings})", share, off)
    return f"| {' | '.join(cells)} |"


def _control(searched: Searched, name: str, prior: Auto) -> str:
    model = make_ranker(name)
    without = searched.precisions(searched.results(model)).mean()
    auto, off = _auto(searched, model, prior)
    return f"| {searched.name} | {name} | {without:.4f} | {auto:.4f} | {auto - without:+.4f} | {off} |"


def _auto(searched: Searched, model: Ranker, prior: Auto) -> tuple[float, str]:
    found, choices = [], Counter[str]()
    for result in searched.results(model, prior):
        found.append(searched.precision(result.query.qid, result.docs))
        choices.update(note.choice for note in result.notes if isinstance(note, AutoTimeNote))
    return float(np.mean(found)), f"{100 * choices['none'] / max(choices.total(), 1):.0f} %"


if __name__ == "__main__":
    print(section(sys.argv[1:] or MODELS))
