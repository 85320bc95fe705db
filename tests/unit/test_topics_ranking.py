"""Passage-aware ranking: by hand, against query likelihood, and the battery every model passes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from sdretrieval.index.snapshot import Snapshot
from sdretrieval.learn.lcsc.model import LocalContextSparseCoding
from sdretrieval.learn.lcsc.passage_ranking import PassageRanker, Places
from sdretrieval.learn.lcsc.sequences import Sequences, sequences
from sdretrieval.ranking.contract import CHECKS, run_check
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.models.query_likelihood import QueryLikelihood
from sdretrieval.ranking.query import Query


def in_some_order(snapshot: Snapshot) -> Sequences:
    """Documents of a collection of counts as sequences: in an order that does not depend on the order of documents."""
    by_name = np.argsort(snapshot.docids.take(range(snapshot.n_docs)))
    dense = snapshot.by_doc.toarray()
    order = np.lexsort(dense[by_name]) if dense.size else np.zeros(0, dtype=int)
    tokens = [np.repeat(order, row[order]) for row in dense]
    ptr = np.concatenate([[0], np.cumsum([len(t) for t in tokens])]).astype(np.int64)
    flat = np.concatenate(tokens).astype(np.int32) if tokens else np.zeros(0, dtype=np.int32)
    words = tuple(snapshot.term(t) for t in range(snapshot.n_terms))
    return Sequences(flat, ptr, words, tuple(snapshot.docids.take(range(snapshot.n_docs))))


@dataclass(frozen=True, kw_only=True)
class InMemory(PassageRanker):
    """With passages where the battery's collections have none of their own."""

    def places(self, snapshot):
        return Places.of(in_some_order(snapshot))


# The battery has words that stand in the same documents as often: in InMemory only their names order them.
BATTERY = [(PassageRanker, {}, check) for check in CHECKS] + [
    (InMemory, {"passage_weight": 0.6, "passage_bandwidth": 2.0}, check) for check in CHECKS if check != "spelling"
]


@pytest.mark.parametrize(("model", "settings", "check"), BATTERY)
def test_the_battery(model, settings, check):
    run_check(check, model, settings)


TEXTS = [
    ["wing", "flow", "far", "away", "from", "here", "and", "there", "is", "heat"],
    ["wing", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "flow"],
    ["a", "b", "c", "d", "e", "f", "g"],
    ["flow", "flow"],
]


def of_texts(texts) -> tuple[Snapshot, Sequences]:
    made = sequences(texts)
    snapshot = Snapshot.from_counts(made.counts.astype(int), made.vocabulary, [f"d{i}" for i in range(len(texts))])
    return snapshot, made.with_vocabulary([snapshot.term(t) for t in range(snapshot.n_terms)])


def scores(ranker, snapshot, words=("wing", "flow")) -> dict[str, float]:
    [result] = Engine(snapshot).rank(ranker, [Query.from_words(snapshot, list(words), qid="1")])
    return dict(zip(snapshot.docids.take(result.docs), result.scores.tolist(), strict=True))


def with_places(places: Places, **settings):
    @dataclass(frozen=True, kw_only=True)
    class Here(PassageRanker):
        def places(self, snapshot):
            return places

    return Here(**settings)


def test_without_topics_and_passages_it_is_query_likelihood():
    snapshot, documents = of_texts(TEXTS)
    ranker = with_places(Places.of(documents), mu=20.0, passage_weight=1e-12)
    wanted = scores(QueryLikelihood(mu=20.0), snapshot)
    assert scores(ranker, snapshot) == pytest.approx(wanted, abs=1e-9)
    assert scores(PassageRanker(mu=20.0, passage_weight=0.0), snapshot) == wanted


@pytest.mark.parametrize("bandwidth", [1.0, 3.0])
def test_passages_as_the_equations_say(bandwidth):
    """Written out for every document: max over positions of query words of Σ log π."""
    snapshot, documents = of_texts(TEXTS)
    mu, mu_p, gamma = 10.0, 5.0, 0.7
    ranker = with_places(
        Places.of(documents), mu=mu, passage_weight=gamma, passage_bandwidth=bandwidth, passage_mu=mu_p
    )
    total = sum(map(len, TEXTS))
    p = {w: sum(t.count(w) for t in TEXTS) / total for w in ("wing", "flow")}
    found = scores(ranker, snapshot)
    for d, text in enumerate(TEXTS):
        if not {"wing", "flow"} & set(text):
            assert f"d{d}" not in found
            continue
        theta = {w: (text.count(w) + mu * p[w]) / (len(text) + mu) for w in p}
        whole = sum(np.log(theta[w]) for w in p)
        passages = []
        for i, word in enumerate(text):
            if word in p:
                far = np.abs(i - np.arange(len(text)))
                g = np.exp(-0.5 * (far / bandwidth) ** 2) * (far <= 3 * bandwidth)
                c = {w: sum(x for x, other in zip(g, text, strict=True) if other == w) for w in p}
                passages.append(sum(np.log((c[w] + mu_p * theta[w]) / (sum(g) + mu_p)) for w in p))
        assert found[f"d{d}"] == pytest.approx((1 - gamma) * whole + gamma * max(passages), rel=1e-12)


def test_words_near_each_other_count_for_more():
    """Two documents of the same words, once with the query's side by side: whole documents cannot tell them apart."""
    near = ["x", "x", "x", "wing", "flow", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x"]
    far = ["wing", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "flow"]
    snapshot, documents = of_texts([near, far])
    plain = scores(QueryLikelihood(), snapshot)
    assert plain["d0"] == pytest.approx(plain["d1"])
    close = scores(with_places(Places.of(documents), passage_bandwidth=2.0), snapshot)
    assert close["d0"] > close["d1"]


def test_topics_find_what_a_document_does_not_say():
    """'ship' stands in no document about the sea but one; topics bring the others up, before those about bread."""
    sea, bread = "sea port wave sail", "bread flour oven yeast"
    texts = [f"{sea} ship".split() * 3, sea.split() * 4, bread.split() * 4, (bread + " ship").split() * 3]
    texts[3] = (bread.split() * 3) + ["harbour"]
    snapshot, documents = of_texts(texts)
    model = LocalContextSparseCoding(2, bandwidth=2.0, random_state=0, max_iter=30).fit(documents)
    places = Places.of(documents, model)
    query = Query.from_words(snapshot, ["ship"], qid="1")
    settings = {"topic_weight": 0.3, "passage_weight": 0.0, "mu": 5.0}
    [result] = Engine(snapshot).rank(
        with_places(places, **settings), [query], RankOptions(candidates={"1": np.arange(4)})
    )
    assert snapshot.docids.take(result.docs)[:2] == ["d0", "d1"]
    assert result.scores[1] > result.scores[2] + 0.1
