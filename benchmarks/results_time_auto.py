"""The automatic time prior beside the best constants set by hand, in docs/RESULTS.md: part of the section on time.

    python -m benchmarks.results_time_auto            # the tables: every 4th topic of rhelp and snopes, else all
    python -m benchmarks.results_time_auto --every 1  # of all topics
    python -m benchmarks.results_time_auto bm25       # of one model only

*By hand* is the best of the grids below in MAP on the very topics it is measured on: what nobody knows beforehand.
*auto* has nothing to set; its constants are chosen for each collection on the others (CHOICES), with the models that
learn. What is done is kept (kept.py), so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np

from benchmarks.collections import Collection
from benchmarks.kept import kept
from benchmarks.tables import standard_error, table
from sdretrieval.collection.records import Topic
from sdretrieval.core.times import UNDATED
from sdretrieval.evaluate.measures import evaluate
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.notes import AutoTimeNote
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import queries_of, rerank
from sdretrieval.ranking.time.prior import Density, Prior, Recency
from sdretrieval.ranking.time.wrappers import Auto, TimePrior, time_aware
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
TIMELESS, LARGE = ("rhelp",), ("jira", "rhelp", "snopes")
WHOLE = ("jira",)  # of the large ones those with all topics in the table: few of jira's have more than one document
YEARS = ("microblog2011", "microblog2013")
CHOICES = [Auto(doubt=d, learning=x) for d in (2.0, 4.0, 8.0) for x in (0.0, 0.5, 1.0)]
LEARNING = ("rm3", "blend")  # models to choose with
EVERY = 4  # of the topics of large collections, for choosing; for the table too where not WHOLE
SPLITS = 20  # into tenths
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
        every = self.every if self.name in LARGE else 1
        return [replace(t, time=None) if self.name in TIMELESS else t for t in judged][::every]

    @property
    def settings(self) -> dict[str, Any]:
        # With dates shuffled the past is any documents: as-of would change what is searched.
        return {} if self.shuffled else SEARCHED[self.name]

    @cache  # noqa: B019 - as long as the benchmark runs
    def plain(self, model: str) -> list[Result]:
        """The first thousand documents of each topic, without a prior."""
        return self.whole(model)

    def whole(self, model: str, prior: Prior | Auto | None = None, weight: float | None = None) -> list[Result]:
        """A search of its own."""
        ranker = time_aware(make_ranker(model), prior=prior, weight=weight, **self.settings)
        queries = queries_of(self.snapshot, self.topics)
        return list(Engine(self.snapshot).rank(ranker, queries, RankOptions(hits=1000)))

    def kept(self, what: str, make: Callable[[], Any]) -> Any:
        """Of these topics, made once."""
        every = f"{self.every}th" if self.name in LARGE else "all"
        return kept(f"time-{self.name}-{every}{'-shuffled' if self.shuffled else ''}-{what}", make)

    def precisions(self, results: Sequence[Result]) -> np.ndarray:
        return np.array([self.precision(r.query.qid, r.docs) for r in results])

    def precision(self, qid: str, docs: np.ndarray) -> float:
        """Average precision over all relevant documents."""
        relevant = self._relevant[qid]
        places = np.flatnonzero(np.isin(docs, relevant[relevant >= 0]))
        return float((np.arange(1, len(places) + 1) / (places + 1)).sum() / len(relevant))

    @cached_property
    def _relevant(self) -> dict[str, np.ndarray]:
        find = self.snapshot.docids.find_many
        return {t.qid: find([d for d, g in self.data.qrels[t.qid].items() if g > 0]) for t in self.topics}

    def without(self, model: str) -> np.ndarray:
        return np.array(self.kept(f"{model}-none", lambda: self.precisions(self.plain(model)).tolist()))

    def by_hand(self, model: str) -> np.ndarray:
        """Of the grid, constants x topics. The named priors order the first thousand anew: no more is needed."""

        def tried(prior: Prior, weight: float) -> list[float]:
            return self.reranked(TimePrior(ranker=make_ranker(model), prior=prior, weight=weight), model).tolist()

        return np.array(self.kept(f"{model}-by-hand", lambda: [tried(*constants) for constants in BY_HAND]))

    def auto(self, model: str, prior: Auto) -> tuple[np.ndarray, float]:
        """Average precisions, and the share of topics for which the prior is off."""

        def make() -> tuple[list[float], float]:
            results = self.whole(model, prior)
            notes = [note for result in results for note in result.notes if isinstance(note, AutoTimeNote)]
            off = sum(note.choice == "none" for note in notes) / max(len(notes), 1)
            return self.precisions(results).tolist(), off

        precisions, off = self.kept(f"{model}-auto-{prior.doubt:g}-{prior.learning:g}", make)
        return np.array(precisions), off

    def reranked(self, wrapper: Wrapper, model: str) -> np.ndarray:
        """Average precisions of the plain results with a prior."""
        engine, plain = Engine(self.snapshot), self.plain(model)
        hooks = wrapper.hooks(engine)

        def docs_of(r: Result) -> np.ndarray:
            view = engine.view(engine.statistics, self._there(r))
            changed = hooks.adjusted(view, replace(r, notes=[]), (r.docs, r.scores), None)
            return r.docs if changed is None else engine.top(*changed, 1000)[0]

        return np.array([self.precision(r.query.qid, docs_of(r)) for r in plain])

    def _there(self, result: Result) -> np.ndarray | None:
        """Which documents there are, as of a query's time."""
        if not self.settings.get("as_of"):
            return None
        times, asked = np.asarray(self.snapshot.times), result.query.time
        assert asked is not None
        return (times != UNDATED) & ((times <= asked) if self.settings.get("inclusive") else (times < asked))


@cache
def searched(name: str, every: int, shuffled: bool = False) -> Searched:
    return Searched(name, every, shuffled)


@cache
def gains(name: str) -> np.ndarray:
    """Of each of the CHOICES relative to no prior, the models that learn taken together."""
    collection = searched(name, EVERY)
    return np.mean(
        [
            [collection.auto(model, choice)[0].mean() / collection.without(model).mean() - 1.0 for choice in CHOICES]
            for model in LEARNING
        ],
        axis=0,
    )


def chosen_without(name: str) -> Auto:
    """The constants with the highest mean gain on the other collections, each in units of its largest, up or down."""
    others = [other for other in SEARCHED if other != name and Collection(other).available]
    found = np.array([gains(other) for other in others])
    units = np.maximum(np.abs(found).max(axis=1, keepdims=True), 1e-3)
    return CHOICES[int((found / units).mean(axis=0).argmax())]


def section(models: Sequence[str] = MODELS, every: int = EVERY) -> str:
    sampled = ", ".join(name for name in LARGE if name not in WHOLE)
    part = f" Of {sampled} every {every}th topic." if every > 1 else ""
    lines = [
        "### How much time matters, found automatically",
        "",
        "MAP over judged topics: without a prior, with the best constants of a grid set by hand on these very topics "
        f"({len(BY_HAND)} of them: recency and density, bandwidths of half a day to years, weights .25 to 2), and with "
        "`--time-prior auto`, its constants chosen on the other collections (in brackets: doubt, learning; of "
        f"{len(CHOICES)}, with rm3 and blend, every {EVERY}th topic of the large ones). Differences with their "
        "standard errors; *share* is of the gain by hand. *held out*: the gain by hand where each tenth of the topics "
        f"has the constants that are best on the others (mean of {SPLITS} ways to split). jira and the microblogs as "
        f"of the topic's time; rhelp without topic times.{part}",
        "",
    ]
    head = "| model | none | by hand | to none | held out | auto | to none | share | to by hand | off | as shipped"
    rows = []
    for name, model in product(SEARCHED, models):
        rows.append(_row(searched(name, 1 if name in WHOLE else every), model, chosen_without(name)))
        print(rows[-1], file=sys.stderr, flush=True)
    return "\n".join([*lines, table(head.split("|"), rows), "", _control_line(models), "", _supplied()])


def control(models: Sequence[str] = MODELS) -> str:
    """The table beside the page: where time means nothing."""
    lines = [
        "### Dates dealt out anew",
        "",
        f"Dates dealt out anew among the documents, no as-of, every {2 * EVERY}th topic of the large ones, auto as "
        "shipped: nothing is to be gained.",
        "",
    ]
    rows = []
    for name, model in product(SEARCHED, models):
        without, auto, off = _controlled(name, model)
        cells = [f"{without.mean():.4f}", f"{auto.mean():.4f}", _difference(auto - without), f"{100 * off:.0f} %"]
        rows.append([name, model, *cells])
    return "\n".join([*lines, table(["", "model", "none", "auto", "difference", "off for"], rows)])


def _control_line(models: Sequence[str]) -> str:
    found = {(name, model): _controlled(name, model) for name, model in product(SEARCHED, models)}
    name, model = max(found, key=lambda key: abs((found[key][1] - found[key][0]).mean()))
    without, auto, _ = found[name, model]
    least = min(off for _, _, off in found.values())
    return (
        "Where dates are dealt out anew among the documents nothing is to be gained: *auto* is off for "
        f"{100 * least:.0f} % of the topics or more, and changes MAP most on {name} with {model}, by "
        f"{_difference(auto - without)}."
    )


def _controlled(name: str, model: str) -> tuple[np.ndarray, np.ndarray, float]:
    """Average precisions without a prior and with it, and the share of topics for which it is off."""
    collection = searched(name, 2 * EVERY, True)
    return collection.without(model), *collection.auto(model, Auto())


def _row(collection: Searched, model: str, prior: Auto) -> list[str]:
    without = collection.without(model)
    grid = collection.by_hand(model)
    number = int(grid.mean(axis=1).argmax())
    (best, weight), hand = BY_HAND[number], grid[number]
    auto, off = collection.auto(model, prior)
    told = f"{best.name} {best.bandwidth / DAY:g} d, {weight:g}"  # type: ignore[operator]
    gain = hand.mean() - without.mean()
    share = f"{100 * (auto.mean() - without.mean()) / gain:.0f} %" if gain > 0.001 else "–"
    by_auto = f"{auto.mean():.4f} ({prior.doubt:g}, {prior.learning:g})"
    shipped = collection.auto(model, Auto())[0]
    cells = [f"{without.mean():.4f}", f"{hand.mean():.4f} ({told})", _difference(hand - without)]
    cells += [f"{chosen_on_others(grid) - without.mean():+.4f}", by_auto]
    cells += [_difference(auto - without), share, _difference(auto - hand)]
    cells += [f"{100 * off:.0f} %", f"{shipped.mean():.4f}"]
    return [collection.name, model, *cells]


def chosen_on_others(grid: np.ndarray) -> float:
    """MAP where each tenth of the topics has the constants that are best on the rest: mean of so many ways to split."""
    random, n = np.random.default_rng(0), grid.shape[1]
    found = np.empty((SPLITS, n))
    for i in range(SPLITS):
        tenth = random.permutation(n) % 10
        for k in range(10):
            found[i, tenth == k] = grid[grid[:, tenth != k].mean(axis=1).argmax()][tenth == k]
    return float(found.mean())


def _difference(values: np.ndarray) -> str:
    return f"{values.mean():+.4f} ± {standard_error(values):.4f}"


def _supplied() -> str:
    """The default model with the prior on the supplied runs, beside the supplied RM3 runs."""
    text = (
        "Re-ranking the supplied query-likelihood runs of both Microblog years with the default model, nothing tuned "
        "on the year; the supplied RM3 runs searched the full collection. MAP / P@30 over all relevant tweets, and the "
        "difference to RM3 in MAP.\n\n"
    )
    rows = {}
    for name in YEARS:
        data, default = Collection(name), make_ranker(MODELS[-1])
        given, measures = data.run("QL"), ["AP", "P@30"]

        def again(model: Ranker, data=data, given=given, measures=measures):
            found = rerank(data.snapshot, given, data.topics, model, missing="drop")
            return evaluate(found, data.qrels, measures, complete=True)

        timed = time_aware(default, prior=chosen_without(name), **SEARCHED[name])
        plain = time_aware(default, **SEARCHED[name])
        supplied = [evaluate(run, data.qrels, measures, complete=True) for run in (given, data.run("RM3"))]
        found = [*supplied, again(plain), again(timed)]
        ours, theirs = (np.array(list(found[i].per_topic["AP"].values())) for i in (-1, 1))
        cells = [f"{one.mean['AP']:.4f} / {one.mean['P@30']:.4f}" for one in found]
        rows[name] = [*cells, _difference(ours - theirs)]
    return text + table(["", "supplied QL", "supplied RM3", "default", "default, auto", "to RM3"], rows)


def main(words: Sequence[str]) -> None:
    at = words.index("--every") if "--every" in words else None
    every = EVERY if at is None else int(words[at + 1])
    models = [word for i, word in enumerate(words) if at is None or i not in (at, at + 1)]
    print(section(models or MODELS, every), control(models or MODELS), sep="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
