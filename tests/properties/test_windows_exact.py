"""The sequential dependence model against tests/oracle.py on random small texts."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from strategies import WINDOWS, settings_of

from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.pairs import PairHooks
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import replaying

WORDS = st.sampled_from("abcdef")
SETTINGS = st.fixed_dictionaries(
    {"mode": st.sampled_from(["exact", "anserini"]), **WINDOWS, "k1": st.floats(0.1, 3.0), "b": st.floats(0.0, 1.0)}
)


@settings(max_examples=90, derandomize=True, deadline=None, database=None)
@given(
    texts=st.lists(st.lists(WORDS, max_size=40), min_size=1, max_size=8).filter(any),
    words=st.lists(st.sampled_from("abcdefx"), min_size=1, max_size=5),
    values=SETTINGS,
)
def test_search_and_rerank_are_the_equation(texts, words, values):
    snapshot = Snapshot.from_words(texts)
    query, model = Query.from_words(snapshot, words, qid="q"), make_ranker("sdm", values)
    expected = oracle.sequential_dependence(texts, words, values).astype(float)
    [found] = Engine(snapshot, threads=2).rank(model, [query], RankOptions(hits=10))
    assert set(found.docs.tolist()) == {d for d, text in enumerate(texts) if set(text) & set(words)}
    assert found.scores == pytest.approx(expected[found.docs], abs=1e-12)
    every = {"q": np.arange(len(texts))[::-1]}
    [again] = Engine(snapshot).rank(model, [query], RankOptions(hits=10, candidates=every))
    assert again.scores == pytest.approx(expected[again.docs], abs=1e-12)


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(
    texts=st.lists(st.lists(WORDS, max_size=30), min_size=1, max_size=8).filter(any),
    words=st.lists(st.sampled_from("abcdefx"), min_size=1, max_size=5),
    values=settings_of("blend"),
)
def test_a_blend_adds_the_windows_of_the_query_as_typed(texts, words, values):
    snapshot = Snapshot.from_words(texts)
    query, model = Query.from_words(snapshot, words, qid="q"), make_ranker("blend", values)
    try:
        expected = oracle.blend_of_texts(texts, words, values).astype(float)
    except oracle.Undecided:
        reject()
    [found] = Engine(snapshot).rank(model, [query], RankOptions(hits=10))
    scale = np.abs(expected).max(initial=1.0)
    assert found.scores == pytest.approx(expected[found.docs], abs=1e-9 * scale)
    # Replayed from the plan, by two threads, as candidates: the same to the last bit.
    plans = {"q": found.plan}
    for engine, options in (
        (Engine(snapshot, threads=2), RankOptions(hits=10)),
        (Engine(snapshot), RankOptions(hits=10, candidates={"q": np.sort(found.docs)})),
    ):
        [again] = engine.rank(replaying(model, plans), [query], options)
        assert again.docs.tolist() == found.docs.tolist() and again.scores == pytest.approx(found.scores, rel=1e-15)


def test_only_the_first_documents_are_looked_at_and_the_others_follow(monkeypatch):
    texts = [["a", "x", "b"], ["a", "b", "x"], ["a", "c", "b"], ["b", "c", "c", "c", "c", "c", "c", "c", "a"]]
    snapshot = Snapshot.from_words(texts)
    query, model = Query.from_words(snapshot, ["a", "b"], qid="q"), make_ranker("blend", {"feedback_weight": 0.0})
    [whole] = Engine(snapshot).rank(model, [query])
    monkeypatch.setattr(PairHooks, "reach", 1)
    [first] = Engine(snapshot).rank(model, [query])
    [words] = Engine(snapshot).rank(model.with_(ordered_weight=0.0, near_weight=0.0), [query])
    assert whole.docs[0] == 1 and whole.docs.tolist() != first.docs.tolist()
    assert first.docs.tolist() == words.docs.tolist()
    assert (np.diff(first.scores) <= 0).all()


def test_a_view_of_the_past_has_windows_of_its_own():
    """Documents that are not there neither gain by a window nor count in its idf."""
    texts = [["a", "b"], ["b", "a"], ["a", "b", "c"]]
    snapshot = Snapshot.from_words(texts)
    engine, fewer = Engine(snapshot), Snapshot.from_words(texts[:2])
    view = engine.view(fewer.statistics, np.array([True, True, False]))
    query = Query.from_words(fewer, ["a", "b"], qid="q")
    for mode in ("exact", "anserini"):
        model = make_ranker("sdm", {"mode": mode})
        seen = [(w.ordered, w.docs.tolist(), w.evidence.tolist()) for w in model.windows(view, query)]
        assert seen == [(w.ordered, w.docs.tolist(), w.evidence.tolist()) for w in model.windows(Engine(fewer), query)]
