"""The streams of the tracking benchmark, made from corpora small enough to follow by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks import results_tracking
from benchmarks.results_tracking import COARSE, FINE, Setting, evidence_of, newswire, tune, tweets
from sdretrieval.learn.labelled import LabelledCorpus
from sdretrieval.learn.tracking.replay import Evidence
from sdretrieval.learn.tracking.story_models import make_model
from sdretrieval.learn.tracking.stream_background import Background

WORDS = ("rain", "flood", "river", "bank", "rates", "shares", "cup", "goal", "keeper", "the")


def corpus(texts: list[str], labels: list[tuple[str, ...]], **fields: list) -> LabelledCorpus:
    """Documents a minute apart, given in the wrong order: the builders must find the right one."""
    counts = np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=float)
    times = np.arange(len(texts), dtype=np.int64) * 60_000
    made = LabelledCorpus(
        [f"d{i}" for i in range(len(texts))], csr_matrix(counts), WORDS, tuple(labels), times, dict(fields)
    )
    return made.select(np.arange(len(texts))[::-1])


@pytest.fixture(scope="module")
def news() -> Setting:
    """Five earlier documents, then twenty: 'flood' at rows 1, 4, 5, …; row 3 is flood's but not judged; row 7 is nearly
    the seed again."""
    earlier = ["the rain", "the bank", "the cup the goal", "the river", "the shares rates keeper flood"]
    stream = ["the goal", "flood river rain", "the bank rates", "flood flood the", *["flood the the"] * 16]
    stream[7] = "flood river rain rain"
    labels: list[tuple[str, ...]] = [("sport",), ("flood",), ("money",), *[("flood",)] * 17]
    split = ["train"] * 8 + ["unused"] + ["test"] * 16
    return newswire(corpus([*earlier, *stream], [("flood",)] * 5 + labels, split=split))


def test_newswire_seeds_and_targets_are_of_the_stream(news: Setting) -> None:
    assert list(news.seeds) == ["flood"]  # sport and money have no ten stories after their first
    assert news.seeds["flood"] == [1]
    assert np.flatnonzero(news.targets["flood"]).tolist() == [1, *range(4, 20)]
    assert np.flatnonzero(~news.judged).tolist() == [3]
    assert news.stream.docids[:2] == ["d5", "d6"]
    assert news.background.n_docs == 5 and (news.tuning, news.testing) == (["flood"], [])


def test_documents_to_learn_from_are_rows_of_the_stream(news: Setting) -> None:
    """The best of the tf-idf run is the row that nearly repeats the seed, counted from the stream's beginning."""
    assert news.ranked["flood"][0] == 7
    assert 1 not in news.ranked["flood"] and news.ranked["flood"].max() == 19
    learnt = news.scores(make_model("rm"), 1, ["flood"])["flood"]
    fixed = news.scores(make_model("rm"), 0, ["flood"])["flood"]
    after = 7 - 1  # scores begin after the seed, in row 2; row 7 is scored before it is learnt from
    np.testing.assert_array_equal(learnt[:after], fixed[:after])
    assert (learnt[after:] != fixed[after:]).any()


@pytest.mark.parametrize("name", ["rm", "sd", "nb", "tfidf"])
def test_evidence_of_all_documents_at_once(news: Setting, name: str) -> None:
    model = make_model(name)
    fast, slow = (make(model, news.background, news.stream) for make in (evidence_of, Evidence.of))
    for part in ("words", "values", "background"):
        np.testing.assert_allclose(getattr(fast, part), getattr(slow, part), rtol=1e-12)


def test_trials_put_every_score_beside_its_own_judgment(news: Setting) -> None:
    trials = news.trials(make_model("tfidf"), 0, ["flood"])["flood"]
    rows = [2, *range(4, 20)]  # after the seed, judged
    scores = news.scores(make_model("tfidf"), 0, ["flood"])["flood"]
    np.testing.assert_array_equal(trials.scores, scores[[row - 2 for row in rows]])
    assert trials.targets.tolist() == [row != 2 for row in rows]
    assert trials.scores.argmax() == rows.index(7)


def test_trackers_of_an_event_start_from_its_own_on_topic_tweets() -> None:
    long = "flood river rain bank the"
    texts = [long, "the flood", long, long, "goal keeper cup the rates", long, "shares", "goal cup keeper the bank"]
    labels: list[tuple[str, ...]] = [("a",), ("a",), ("a",), ("a",), ("b",), ("a",), ("b",), ("b",)]
    on_topic = [False, True, True, True, True, True, True, True]
    earlier = Background.of_counts(np.ones((1, len(WORDS))), WORDS)
    made = tweets(corpus(texts, labels, on_topic=on_topic), earlier, per_event=1, n_seeds=2)
    assert made.seeds == {"a#1": [2, 3], "b#1": [4, 7]}  # five words or more, on topic; row 0 is off topic
    assert np.flatnonzero(made.targets["a#1"]).tolist() == [1, 2, 3, 5]
    assert (made.tuning, made.testing) == (["a#1"], ["b#1"])
    assert made.ranked["a#1"][0] == 5 and min(made.ranked["a#1"]) == 4
    assert len(made.trials(make_model("nb"), 0, ["a#1"])["a#1"].scores) == 4


def test_the_search_goes_over_the_whole_grid_and_then_finer(news: Setting, monkeypatch) -> None:
    """Least cost where each value needs the others: one parameter at a time from elsewhere would not get there."""
    wanted = {"lambda_score": 0.05, "lambda_learn": 0.3, "score": "full"}
    asked: list[int] = []

    def cost(setting, model, level: int, topics) -> float:
        asked.append(len(topics))
        wrong = [abs(np.log(getattr(model, name) / wanted[name])) for name in ("lambda_score", "lambda_learn")]
        near = sum(wrong) < 2.0 and model.score == "full"
        return sum(wrong) if near else 20.0 - sum(wrong)

    monkeypatch.setattr(results_tracking, "min_cost", cost)
    monkeypatch.setattr(news, "tuning", ["flood"] * 9)
    found = tune(news, "rm", 5)
    assert found["values"] == wanted and found["cost"] == pytest.approx(0.0, abs=1e-12)
    assert asked.count(3) == 32 and asked.count(9) < 20  # a third of the topics for the grid, all for the best


def test_what_rm_and_sd_have_in_common_is_searched_alike() -> None:
    for grid in (COARSE, FINE):
        assert grid["rm"] == {name: grid["sd"][name] for name in grid["rm"]}
