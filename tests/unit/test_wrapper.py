"""Wrappers: they compose in any order that makes sense, say so where it does not, and their bounds hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import ClassVar

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.times import UNDATED
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.learn.lcsc.passage_ranking import PassageRanker
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import replaying
from sdretrieval.ranking.time.drifting_background import Drifting
from sdretrieval.ranking.time.prior import Density, Recency
from sdretrieval.ranking.time.wrappers import AsOf, FeedbackTime, LocalBackground, TimedFeedback, TimePrior, time_aware
from sdretrieval.ranking.wrapper import Hooks, View, Wrapper, innermost, wrapper_of, wrappers

DAY = 86_400_000
N, V = 200, 30
DRIFTING = Drifting("local", bandwidth=20.0 * DAY)


def collection() -> Snapshot:
    rng = np.random.default_rng(3)
    times = rng.integers(0, 100 * DAY, N)
    times[::17] = UNDATED
    return Snapshot.from_counts(rng.poisson(0.4, (N, V)), [f"w{i:02d}" for i in range(V)], times=times)


SNAPSHOT = collection()
QUERIES = [
    Query.from_words(SNAPSHOT, words, qid=str(i), time=time * DAY)
    for i, (words, time) in enumerate([(["w03", "w07"], 80), (["w11", "w12", "w13"], 30), (["w05"], 99)])
]


def ranked(model: Ranker, threads: int = 1, **options) -> list[tuple[list[int], list[float]]]:
    results = Engine(SNAPSHOT, threads=threads).rank(model, QUERIES, RankOptions(**options))
    return [(result.docs.tolist(), result.scores.tolist()) for result in results]


# Each takes a model and wraps it.
PARTS = {
    "prior": lambda ranker: TimePrior(ranker=ranker, prior=Recency(bandwidth=9.0 * DAY), weight=1.0),
    "background": lambda ranker: LocalBackground(ranker=ranker, drifting=DRIFTING),
    "feedback": lambda ranker: TimedFeedback(ranker=ranker, time=FeedbackTime(bandwidth=9.0 * DAY)),
    "as-of": lambda ranker: AsOf(ranker=ranker),
}


def wrapped(name: str, parts) -> Ranker:
    ranker = make_ranker(name)
    for part in parts:
        ranker = PARTS[part](ranker)
    return ranker


@pytest.mark.parametrize("name", ["ql", "rm3", "sd"])
def test_all_orders_that_make_sense_rank_alike_and_have_one_name(name):
    wanted = time_aware(
        make_ranker(name),
        prior=Recency(bandwidth=9.0 * DAY),
        weight=1.0,
        background=DRIFTING,
        feedback=FeedbackTime(bandwidth=9.0 * DAY),
        as_of=True,
    )
    expected = ranked(wanted, hits=50)
    made = refused = 0
    for order in permutations(PARTS):
        if order.index("as-of") < order.index("background"):  # as-of inside the background
            with pytest.raises(ParameterError, match="as-of around the background"):
                wrapped(name, order)
            refused += 1
            continue
        model = wrapped(name, order)
        assert model.name == wanted.name == f"{name}+recency+local+timed-feedback+as-of"
        assert model.settings() == wanted.settings()
        assert ranked(model, hits=50) == expected
        made += 1
    assert (made, refused) == (12, 12)


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_worn_twice(part):
    with pytest.raises(ParameterError, match="already"):
        PARTS[part](PARTS[part](make_ranker("ql")))


def test_new_scores_go_inside_what_adds_to_them():
    at_documents = replace(DRIFTING, at="document")
    prior = TimePrior(ranker=make_ranker("ql"), prior=Density())
    with pytest.raises(ParameterError, match="density around local"):
        LocalBackground(ranker=prior, drifting=at_documents)
    inside = LocalBackground(ranker=make_ranker("ql"), drifting=at_documents)
    outside = TimePrior(ranker=inside, prior=Recency(bandwidth=9.0 * DAY), weight=1.0)
    assert outside.name == "ql+recency+local"
    assert ranked(outside) != ranked(inside)  # the prior is added to the new scores, not overwritten by them
    with pytest.raises(ParameterError, match="looks beyond the query's"):
        AsOf(ranker=inside)


def test_a_passage_ranker_is_worn_inside_too():
    model = TimePrior(ranker=PassageRanker(passage_weight=0.0), prior=Recency(bandwidth=9.0 * DAY), weight=1.0)
    plain = TimePrior(ranker=make_ranker("ql"), prior=Recency(bandwidth=9.0 * DAY), weight=1.0)
    assert ranked(model) == ranked(plain)


def test_changes_go_to_whom_they_belong():
    model = AsOf(ranker=TimePrior(ranker=make_ranker("rm3"), prior=Recency()))
    changed = model.with_(fb_docs=7, inclusive=True)
    assert innermost(changed).fb_docs == 7 and changed.feedback_depth == 7
    assert wrapper_of(changed, AsOf).inclusive and not model.inclusive
    assert [type(wrapper) for wrapper in wrappers(changed)] == [AsOf, TimePrior]
    assert wrapper_of(make_ranker("rm3"), AsOf) is None


def test_a_replayed_model_keeps_its_wrappers():
    model = time_aware(make_ranker("sd3"), prior=Recency(bandwidth=9.0 * DAY), weight=1.0, as_of=True)
    plans = {result.query.qid: result.plan for result in Engine(SNAPSHOT).rank(model, QUERIES)}
    again = replaying(model, plans)
    assert again.name == model.name
    for (docs, scores), (docs_again, scores_again) in zip(ranked(model), ranked(again), strict=True):
        assert docs == docs_again
        assert scores == pytest.approx(scores_again, abs=1e-9)


@dataclass(frozen=True, kw_only=True)
class Outsider(Wrapper):
    """A wrapper as another package would write it: halves the collection, doubles one document, adds one."""

    label: ClassVar[str] = "outsider"
    ranker: Ranker

    def hooks(self, engine: Engine) -> Hooks:
        return OutsiderHooks()


class OutsiderHooks(Hooks):
    per_query = adjusts = True

    def view(self, query: Query, view: View) -> View:
        allowed = np.zeros(N, dtype=bool)
        allowed[: N // 2] = True
        return View(view.statistics, allowed if view.allowed is None else allowed & view.allowed)

    def emphasis(self, query: Query, docs: np.ndarray) -> np.ndarray:
        return np.where(np.arange(len(docs)) == 0, 2.0, 1.0)

    def adjusted(self, engine, result, found, others):
        return found[0], found[1] + 1.0


def test_a_wrapper_from_outside_composes_with_ours():
    inner = make_ranker("rm3")
    for model in (Outsider(ranker=AsOf(ranker=inner)), AsOf(ranker=Outsider(ranker=inner))):
        for (docs, _), query in zip(ranked(model), QUERIES, strict=True):
            assert max(docs) < N // 2
            assert (np.asarray(SNAPSHOT.times)[docs] < query.time).all()
        assert "outsider" in model.name and "as-of" in model.name
    with_one = ranked(Outsider(ranker=inner), hits=5)
    assert with_one == ranked(Outsider(ranker=inner), threads=3, hits=5)
