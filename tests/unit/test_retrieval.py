"""search and rerank from Python: what goes in, what comes out, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from places import placed

from sdretrieval.collection.records import Qrels, Ranking, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.contract import collection
from sdretrieval.ranking.registry import make_ranker, rankers
from sdretrieval.ranking.retrieval import Report, rerank, search

MODELS = list(rankers())
FEEDBACK = [name for name, model in rankers().items() if model.uses_feedback]
TOPICS = [Topic("1", "wing flow"), Topic("2", "shock shock heat"), Topic("3", "noise")]


@pytest.fixture(autouse=True)
def plain_words(monkeypatch: pytest.MonkeyPatch):
    """Words as they stand: no Java needed."""
    monkeypatch.setattr(Snapshot, "analyze", lambda self, text: text.split())


@pytest.fixture
def snapshot() -> Snapshot:
    """Twelve documents: doc00 … doc11, one of them empty, two alike."""
    return collection()


# -- search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_search_gives_a_run_in_the_order_of_the_topics(snapshot: Snapshot, model: str):
    run = search(snapshot, TOPICS, model, hits=4)
    assert list(run) == ["1", "2", "3"]
    assert run.tag == model
    for ranking in run.values():
        assert 1 <= len(ranking) <= 4
        assert set(ranking.docids) <= set(snapshot.docids)
        assert (np.diff(ranking.scores) <= 0).all()


def test_a_ranker_can_be_given_instead_of_a_name(snapshot: Snapshot):
    assert search(snapshot, TOPICS, make_ranker("ql")) == search(snapshot, TOPICS, "ql")


def test_topics_may_come_from_a_generator(snapshot: Snapshot):
    assert search(snapshot, (t for t in TOPICS), "ql") == search(snapshot, TOPICS, "ql")


@pytest.mark.parametrize("hits", [0, -1])
def test_hits_must_be_positive(snapshot: Snapshot, hits: int):
    with pytest.raises(ParameterError, match=f"hits must be at least 1; got {hits}"):
        search(snapshot, TOPICS, "ql", hits=hits)


def test_an_unknown_model_is_named(snapshot: Snapshot):
    with pytest.raises(ParameterError, match="unknown model 'sd4'"):
        search(snapshot, TOPICS, "sd4")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("text", ["", "unheard-of unseen"], ids=["empty", "unknown words"])
def test_nothing_to_look_for_finds_nothing_and_is_reported(snapshot: Snapshot, model: str, text: str):
    report = Report()
    run = search(snapshot, [Topic("0", text), *TOPICS], model, report=report)
    assert len(run["0"]) == 0
    assert report.empty_topics == ["0"]
    assert len(run["1"]) > 0


def test_no_topics_give_an_empty_run(snapshot: Snapshot):
    assert len(search(snapshot, [], "sd3")) == 0


@pytest.mark.parametrize("model", [name for name in FEEDBACK if name != "blend"])  # its depths are shares of fb_docs
def test_fewer_documents_than_feedback_asks_for(snapshot: Snapshot, model: str):
    """All the documents the first pass has are the feedback, whether 50 or 1000 were wanted."""
    some = search(snapshot, TOPICS, make_ranker(model, {"fb_docs": 50}))
    assert some == search(snapshot, TOPICS, make_ranker(model, {"fb_docs": 1000}))


@pytest.mark.parametrize("model", MODELS)
def test_a_collection_of_one_document(model: str):
    single = placed(Snapshot.from_counts([[2, 1]], ["wing", "flow"], ["only"]))
    run = search(single, [Topic("1", "wing"), Topic("2", "wing flow"), Topic("3", "shock")], model)
    assert [run[q].docids for q in run] == [["only"], ["only"], []]
    assert np.isfinite(run["1"].scores).all()


@pytest.mark.parametrize("model", MODELS)
def test_an_empty_collection_and_one_of_empty_documents(model: str):
    nothing = Snapshot.from_counts(np.zeros((0, 0)), [])
    assert [len(r) for r in search(nothing, TOPICS, model).values()] == [0, 0, 0]
    blank = Snapshot.from_counts(np.zeros((2, 1)), ["wing"], ["a", "b"])
    assert [len(r) for r in search(blank, TOPICS, model).values()] == [0, 0, 0]


@pytest.mark.parametrize("model", MODELS)
def test_empty_documents_are_never_found_but_can_be_reranked(snapshot: Snapshot, model: str):
    empty = snapshot.docids[11]
    assert snapshot.doc_lengths[11] == 0
    assert all(empty not in ranking.docids for ranking in search(snapshot, TOPICS, model).values())
    run = rerank(snapshot, Run({"1": Ranking(snapshot.docids[9:12], [3.0, 2.0, 1.0])}), TOPICS, model)
    assert empty in run["1"].docids and np.isfinite(run["1"].scores).all()


def test_results_can_be_watched(snapshot: Snapshot):
    seen = []
    search(snapshot, TOPICS, "sd3", on_result=seen.append)
    assert [result.query.qid for result in seen] == ["1", "2", "3"]
    assert all(result.expansion is not None for result in seen)


# -- rerank ------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(snapshot: Snapshot) -> Run:
    return search(snapshot, TOPICS, "bm25")


@pytest.mark.parametrize("model", ["bm25", "ql"])
def test_rerank_of_a_search_is_the_search(snapshot: Snapshot, model: str):
    searched = search(snapshot, TOPICS, model)
    again = rerank(snapshot, searched, TOPICS, model)
    for qid in searched:
        assert again[qid].docids == searched[qid].docids
        np.testing.assert_allclose(again[qid].scores, searched[qid].scores, rtol=1e-12)


def test_feedback_comes_from_the_top_of_the_run(snapshot: Snapshot):
    """Not from a first pass of our own: the run is in the reverse order of ours."""
    docids = list(snapshot.docids)
    given = Run({"1": Ranking(docids, np.arange(12.0))})
    seen = []
    rerank(snapshot, given, TOPICS, make_ranker("sd", {"fb_docs": 3}), on_result=seen.append)
    assert snapshot.docids.take(seen[0].feedback.docs) == docids[::-1][:3]


def test_rerank_cuts_at_hits(snapshot: Snapshot, run: Run):
    full = rerank(snapshot, run, TOPICS, "ql")
    assert [r.docids for r in rerank(snapshot, run, TOPICS, "ql", hits=2).values()] == [
        r.docids[:2] for r in full.values()
    ]


def test_a_topic_absent_from_the_run_is_left_out(snapshot: Snapshot, run: Run):
    short = Run({"2": run["2"]})
    assert list(rerank(snapshot, short, TOPICS, "sd")) == ["2"]


def test_a_topic_whose_documents_are_all_unknown(snapshot: Snapshot):
    given = Run({"1": Ranking(["x", "y"], [2.0, 1.0])})
    assert len(rerank(snapshot, given, TOPICS, "sd3", missing="drop")["1"]) == 0


@pytest.mark.parametrize("model", MODELS)
def test_rerank_without_a_known_word_keeps_the_documents(snapshot: Snapshot, model: str):
    """Nothing tells them apart: the run's own order and scores stay, and the topic is reported."""
    report = Report()
    given = Run({"0": Ranking(["doc01", "doc02", "doc03"], [3.0, 2.0, 1.0])})
    again = rerank(snapshot, given, [Topic("0", "unheard-of")], model, report=report)
    assert again["0"] == given["0"]
    assert report.empty_topics == ["0"]


# -- judged feedback ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", FEEDBACK)
def test_judged_documents_are_the_feedback(snapshot: Snapshot, model: str):
    seen = []
    judged = Qrels({"1": {"doc05": 1, "doc10": 2, "doc00": 0, "not-here": 1}})
    search(snapshot, TOPICS, model, judged=judged, on_result=seen.append)
    assert set(snapshot.docids.take(seen[0].feedback.docs)) == {"doc05", "doc10"}
    assert seen[0].feedback.judged
    assert seen[0].expansion.weights.tolist() == [0.5, 0.5]
    assert not seen[1].feedback.judged  # no judgments for topic 2


@pytest.mark.parametrize("model", FEEDBACK)
def test_documents_judged_not_relevant_are_no_feedback(snapshot: Snapshot, model: str):
    seen = []
    search(snapshot, TOPICS[:1], model, on_result=seen.append)
    first = snapshot.docids[int(seen[0].feedback.docs[0])]
    search(snapshot, TOPICS[:1], model, judged=Qrels({"1": {first: 0}}), on_result=seen.append)
    assert first not in snapshot.docids.take(seen[1].feedback.docs)
    assert seen[1].feedback.nonrelevant is not None


def test_only_the_smoothed_dirichlet_learns_from_documents_judged_not_relevant(snapshot: Snapshot):
    relevant, both = {"doc05": 1}, {"doc05": 1, "doc10": 0, "doc03": -1}
    for model in FEEDBACK:
        one = search(snapshot, TOPICS[:1], model, judged=Qrels({"1": relevant}))
        two = search(snapshot, TOPICS[:1], model, judged=Qrels({"1": both}))
        assert (one == two) is (model not in ("sd", "sd3", "blend")), model


def test_judged_feedback_in_rerank(snapshot: Snapshot, run: Run):
    seen = []
    rerank(snapshot, run, TOPICS, "sd3", judged=Qrels({"2": {"doc05": 1}}), on_result=seen.append)
    assert snapshot.docids.take(seen[1].feedback.docs) == ["doc05"]


# -- replay ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [name for name in MODELS if name != "passage"])  # a plan has no passages
def test_replayed_plans_give_the_same_run(snapshot: Snapshot, model: str):
    seen = []
    first = search(snapshot, TOPICS, model, on_result=seen.append)
    plans = {result.query.qid: result.plan for result in seen}
    assert search(snapshot, TOPICS, model, plans=plans) == first


def test_a_topic_without_a_plan_is_named(snapshot: Snapshot):
    with pytest.raises(InputError, match="topic '1' has no expansion"):
        search(snapshot, TOPICS, "sd3", plans={})
