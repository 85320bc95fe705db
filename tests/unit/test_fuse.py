"""Fusion against a plain slow version, by hand, and its tuning."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdretrieval
from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.evaluate import evaluate
from sdretrieval.evaluate.fuse import METHODS, NORMALISATIONS, Fusion, fuse, fused, read_fusion
from sdretrieval.evaluate.tune import FusionProblem, fusion_space, tune, write_profile

A = {"q": Ranking(["a", "b", "c"], [10.0, 5.0, 0.0])}
B = {"q": Ranking(["b", "d"], [0.9, 0.1])}


def scores_of(run, qid="q") -> dict[str, float]:
    return dict(run[qid])


# -- by hand -----------------------------------------------------------------------------------------------------


def test_sums_by_hand():
    assert scores_of(fuse([A, B])) == {"b": 1.5, "a": 1.0, "d": 0.0, "c": 0.0}
    assert scores_of(fuse([A, B], method="combmnz")) == {"b": 3.0, "a": 1.0, "d": 0.0, "c": 0.0}
    assert scores_of(fuse([A, B], normalise="none")) == {"a": 10.0, "b": 5.9, "d": 0.1, "c": 0.0}
    assert scores_of(fuse([A, B], normalise="rank")) == pytest.approx({"b": 2 / 3 + 1, "a": 1.0, "d": 0.5, "c": 1 / 3})
    assert scores_of(fuse([A, B], weights=[1, 3])) == {"b": 3.5, "a": 1.0, "d": 0.0, "c": 0.0}
    spread = math.sqrt(50 / 3)
    assert scores_of(fuse([A, B], normalise="z")) == pytest.approx(
        {"a": 10 / spread, "b": 5 / spread + 2, "d": 0, "c": 0}
    )


def test_reciprocal_ranks_by_hand():
    assert scores_of(fuse([A, B], method="rrf")) == {"b": 1 / 62 + 1 / 61, "a": 1 / 61, "d": 1 / 62, "c": 1 / 63}
    assert scores_of(fuse([A, B], method="rrf", k=0, weights=[2, 1]))["b"] == 2.0


def test_ties_go_to_the_larger_docid_as_for_trec_eval():
    assert fuse([A, B])["q"].docids == ["b", "a", "d", "c"]
    tied = {"q": Ranking(["x", "y"], [1.0, 1.0 + 1e-12])}  # equal in single precision: y is first, by its name
    assert scores_of(fuse([tied, tied], method="rrf")) == {"y": 2 / 61, "x": 2 / 62}


def test_topics_that_a_run_lacks_and_their_order():
    more = {"r": Ranking(["z"], [3.0]), "q": B["q"]}
    both = fuse([A, more])
    assert list(both) == ["q", "r"]
    assert scores_of(both, "r") == {"z": 1.0}  # the only document of a list is its first


def test_a_run_of_no_weight_is_not_there():
    assert fuse([A, B], weights=[1, 0]) == fuse([A])
    assert fuse([A, B, A], method="combmnz", weights=[1, 0, 1]) == fuse([A, A], method="combmnz")


def test_depth_and_hits():
    assert set(fuse([A, B], depth=1)["q"].docids) == {"a", "b"}
    assert scores_of(fuse([A, B], depth=2)) == {"b": 1.0, "a": 1.0, "d": 0.0}  # normalised over what is left
    assert fuse([A, B], hits=2)["q"].docids == ["b", "a"]


def test_public_name():
    assert sdretrieval.fuse is fuse


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"method": "sum"}, "method must be one of combsum, combmnz, rrf; got 'sum'"),
        ({"normalise": "max"}, "normalise must be one of minmax, z, rank, none"),
        ({"method": "rrf", "normalise": "z"}, "rrf takes ranks, not scores"),
        ({"weights": [1.0]}, "1 weights for 2 runs"),
        ({"weights": [1.0, -1.0]}, "the weight of 2 must be in"),
        ({"weights": [1.0, math.nan]}, "the weight of 2 must be in"),
        ({"weights": [0.0, 0.0]}, "the weights of all runs are 0"),
        ({"method": "rrf", "k": -1.0}, "k must be in"),
        ({"hits": 0}, "hits must be at least 1"),
        ({"depth": 0}, "depth must be at least 1"),
    ],
)
def test_what_cannot_be_fused(given, told):
    with pytest.raises(ParameterError, match=r"^(fuse: )?" + told):
        fuse([A, B], **given)


def test_no_run_and_infinite_scores():
    with pytest.raises(ParameterError, match="no run"):
        fuse([])
    endless = {"q": Ranking(["a", "b"], [math.inf, 1.0])}
    with pytest.raises(ParameterError, match="run 2, topic q: score of 'a' is infinite") as caught:
        fuse([B, endless])
    assert "--method rrf" in caught.value.remedy
    assert fuse([B, endless], method="rrf")["q"].docids == ["b", "a", "d"]


# -- the plain slow version --------------------------------------------------------------------------------------


def slow(runs, method: str, normalise: str, weights, k: float) -> dict[str, dict[str, float]]:
    """One document at a time, from the definitions."""
    result: dict[str, dict[str, float]] = {}
    runs_weights = [(run, w) for run, w in zip(runs, weights, strict=True) if w > 0]
    for qid in {qid for run, _ in runs_weights for qid in run}:
        lists = [(dict(run[qid]), run[qid].docids, w) for run, w in runs_weights if qid in run]
        result[qid] = {}
        for docid in {docid for scores, _, _ in lists for docid in scores}:
            total, having = 0.0, 0
            for scores, order, w in lists:
                if docid in scores:
                    having += 1
                    total += w * slow_evidence(scores, order, docid, method, normalise, k)
            result[qid][docid] = having * total if method == "combmnz" else total
    return result


def slow_evidence(scores: dict, order: list, docid: str, method: str, normalise: str, k: float) -> float:
    rank, values = order.index(docid) + 1, list(scores.values())
    low, high = min(values), max(values)
    if method == "rrf":
        return 1 / (k + rank)
    if normalise == "rank":
        return (len(order) - rank + 1) / len(order)
    if normalise == "none":
        return scores[docid]
    if low == high:
        return 1.0 if normalise == "minmax" else 0.0
    if normalise == "minmax":
        return (scores[docid] - low) / (high - low)
    mean = math.fsum(values) / len(values)
    return (scores[docid] - low) / math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))


numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3).map(lambda x: round(x, 3)))
rankings = st.dictionaries(st.sampled_from("abcdefgh"), numbers, min_size=1).map(
    lambda d: Ranking(list(d), list(d.values()))
)
runs_ = st.lists(st.dictionaries(st.sampled_from(["1", "2", "10"]), rankings, min_size=1), min_size=1, max_size=4)


@settings(max_examples=150, derandomize=True, deadline=None, database=None)
@given(st.data(), runs_, st.sampled_from(METHODS), st.sampled_from(NORMALISATIONS))
def test_fusion_is_its_definition(data, runs, method, normalise):
    weights = data.draw(
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=len(runs), max_size=len(runs)).filter(any)
    )
    given_ = {"method": method, "weights": weights, "k": 7.0}
    found = fuse(runs, **given_, normalise=None if method == "rrf" else normalise)
    expected = slow(runs, method, normalise, weights, 7.0)
    assert found.keys() == expected.keys()
    for qid in expected:
        assert dict(found[qid]) == pytest.approx(expected[qid], rel=1e-9, abs=1e-9)


# -- tuning ------------------------------------------------------------------------------------------------------


@pytest.fixture
def problem() -> FusionProblem:
    """A good run, a bad one, over eight topics with one relevant document each."""
    rng = np.random.default_rng(5)
    docids = [f"d{i}" for i in range(20)]
    qrels = Qrels({str(q): {"d7": 1, "d3": 0} for q in range(8)})
    noise = lambda: rng.random(20)  # noqa: E731
    good = Run({str(q): Ranking(docids, noise() + 0.7 * (np.arange(20) == 7)) for q in range(8)})
    bad = Run({str(q): Ranking(docids, noise()) for q in range(8)})
    return FusionProblem({"good": good, "bad": bad}, qrels)


def test_values_are_those_of_the_fused_run(problem):
    for method in METHODS:
        for normalise in NORMALISATIONS:
            for weights in ({"good": 1.0, "bad": 0.25}, {"good": 1.0, "bad": 0.0}):
                fusion = Fusion(method=method, normalise=normalise, weights=weights)
                run = fused(problem.runs, fusion)
                assert problem.values(fusion) == evaluate(run, problem.qrels, ["AP"]).per_topic["AP"]


def test_tuning_finds_the_good_run_and_the_profile_comes_back(problem, tmp_path):
    start = Fusion(weights={"good": 1.0, "bad": 1.0})
    assert fusion_space(start).keys() == {"weight.good", "weight.bad"}
    found = tune(problem, start, fusion_space(start), folds=4, trace=tmp_path / "trace.jsonl")
    assert found.settings["weight.bad"] < found.settings["weight.good"]
    assert found.mean > found.default_mean
    write_profile(tmp_path / "w.json", start.with_(**found.settings))
    assert read_fusion(str(tmp_path / "w.json"), start) == start.with_(**found.settings)
    again = tune(problem, start, fusion_space(start), folds=4, trace=tmp_path / "trace.jsonl")
    assert (again.resumed, again.settings) == (found.tried, found.settings)
    other = FusionProblem({**problem.runs, "bad": problem.runs["good"]}, problem.qrels)
    with pytest.raises(InputError, match="another tuning"):
        tune(other, start, fusion_space(start), folds=4, trace=tmp_path / "trace.jsonl")


def test_method_and_normalisation_can_be_tuned(problem):
    start = Fusion(weights={"good": 1.0, "bad": 1.0})
    space = fusion_space(start, ["method", "normalise", "weight.bad=0,1"])
    assert space == {"method": METHODS, "normalise": NORMALISATIONS, "weight.bad": (0.0, 1.0)}
    assert tune(problem, start, space, method="grid", folds=2).tried == 24
    with pytest.raises(ParameterError, match=r"fuse has no parameter 'weight\.ugly'"):
        fusion_space(start, ["weight.ugly"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"sd3": {"fb_docs": 3}}, "not a profile of fused runs"),
        ({"fuse": {"weight.bm25": 1.0}}, "it has weights for bm25; the runs are good, bad"),
        ({"fuse": {"weight.good": 1.0, "weight.bad": -1.0}}, "the weight of bad must be in"),
        ({"fuse": {"weight.good": 1.0, "weight.bad": 1.0, "mode": 3}}, "fuse has no parameter 'mode'"),
    ],
)
def test_profiles_that_do_not_fit(tmp_path, content, told):
    (tmp_path / "w.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=told):
        read_fusion(str(tmp_path / "w.json"), Fusion(weights={"good": 1.0, "bad": 1.0}))
