"""Every number equals trec_eval's own code (pytrec_eval called directly), to the last bit."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
import pytrec_eval

from sdretrieval.collection.records import Qrels, Ranking, Run
from sdretrieval.evaluate import Evaluator, evaluate, recall_precision

CASES = 240

# ours -> trec_eval's
NAMES = {
    "AP": "map",
    "P@5": "P_5",
    "nDCG@10": "ndcg_cut_10",
    "nDCG": "ndcg",
    "RR": "recip_rank",
    "R@10": "recall_10",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "AP@20": "map_cut_20",
    "Success@1": "success_1",
    "IPrec@0.1": "iprec_at_recall_0.10",
    "IPrec@0.5": "iprec_at_recall_0.50",
}


def random_case(seed: int) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    """A run and judgments with everything that may go wrong: ties (also such as only float32 sees), topics of one
    side only, unjudged documents, grades from -2 to 3, topics without a relevant document."""
    rng = np.random.default_rng(seed)
    documents = [f"d{i}" for i in range(60)]
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, int]] = {}
    for qid in map(str, range(1, 13)):
        if rng.random() < 0.85:
            found = rng.choice(documents, size=rng.integers(1, 50), replace=False)
            scores = rng.integers(0, rng.integers(2, 30), size=len(found)).astype(float)
            if rng.random() < 0.3:
                scores += rng.integers(0, 2, size=len(found)) * 1e-9  # a tie to trec_eval
            if rng.random() < 0.3:
                scores -= 1000.0
            run[qid] = dict(zip(found.tolist(), scores.tolist(), strict=True))
        if rng.random() < 0.85:
            judged = rng.choice(documents, size=rng.integers(1, 40), replace=False)
            lowest, highest = ((0, 2), (-2, 4), (0, 4), (-1, 1))[rng.integers(4)]
            grades = rng.integers(lowest, highest, size=len(judged))
            grades[0] = max(grades[0], 0)  # trec_eval does not survive topics with negative grades alone
            qrels[qid] = dict(zip(judged.tolist(), grades.tolist(), strict=True))
    return run, qrels


def direct(run: dict[str, dict[str, float]], qrels: dict[str, dict[str, int]], rel: int) -> dict[str, dict[str, float]]:
    return pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values()), relevance_level=rel).evaluate(run)


@pytest.mark.parametrize("rel", [1, 2])
def test_every_topic_equals_trec_eval_to_the_last_bit(rel):
    compared = 0
    for seed in range(CASES):
        run, qrels = random_case(seed)
        expected = direct(run, qrels, rel)
        as_records = Run({qid: Ranking(list(docs), list(docs.values())) for qid, docs in run.items()}, "r")
        for given in (run, as_records):  # plain dictionaries, and our records that have ordered the ties already
            ours = evaluate(given, Qrels(qrels), list(NAMES), rel=rel)
            assert set(ours.topics) == set(expected), seed
            for name, theirs in NAMES.items():
                assert ours.per_topic[name] == {q: v[theirs] for q, v in expected.items()}, (seed, name)
                compared += len(expected)
    assert compared > 10_000


def test_the_cases_contain_what_they_claim_to():
    """Without ties, negative grades and one-sided topics the test above would prove little."""
    cases = [random_case(seed) for seed in range(CASES)]
    assert sum(len(set(run)) != len(set(run) | set(qrels)) for run, qrels in cases) > 50
    assert sum(len(set(qrels)) != len(set(run) | set(qrels)) for run, qrels in cases) > 50
    assert sum(len(set(d.values())) < len(d) for run, _ in cases for d in run.values()) > 500
    assert sum(min(g.values()) < 0 for _, qrels in cases for g in qrels.values()) > 100
    assert sum(max(g.values()) < 1 for _, qrels in cases for g in qrels.values()) > 20
    assert sum(not set(run[q]) <= set(qrels[q]) for run, qrels in cases for q in run if q in qrels) > 500


@pytest.mark.parametrize("grades", [(-1, -1), (-2, -2), (-2, -1)])
def test_topics_with_negative_grades_alone_count_as_zero(grades):
    """Here trec_eval's own code reads memory it never reserved and may crash; by its rules the value is zero."""
    run = {"1": {"a": 3.0, "b": 2.0, "c": 1.0}, "2": {"a": 1.0}}
    qrels = {"1": dict(zip("ab", grades, strict=True)), "2": {"a": 1}}
    for _ in range(50):
        ours = evaluate(run, qrels, [*NAMES, "NumRet"])
        assert {name: ours.per_topic[name]["1"] for name in NAMES} == dict.fromkeys(NAMES, 0.0)
        assert ours.per_topic["AP"]["2"] == 1.0
        assert ours.per_topic["NumRet"]["1"] == 3
        assert ours.irrelevant_topics == ("1",)


def test_the_mean_adds_as_trec_eval_adds():
    """trec_eval sums doubles over topics in byte order of their ids ("10" before "9"), then divides."""
    for seed in range(50):
        run, qrels = random_case(seed)
        expected = direct(run, qrels, 1)
        total = 0.0
        for qid in sorted(expected):
            total += expected[qid]["map"]
        assert evaluate(run, qrels, ["AP"]).mean["AP"] == total / len(expected)


def test_complete_counts_missing_topics_as_ir_measures_does():
    for seed in range(50):
        run, qrels = random_case(seed)
        ours = evaluate(run, qrels, ["AP", "P@5", "nDCG@10"], complete=True)
        theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(m) for m in ours.measures], qrels, run)
        assert ours.mean == pytest.approx({str(m): v for m, v in theirs.items()}, rel=1e-14), seed


def test_measures_trec_eval_lacks_order_ties_as_trec_eval_does():
    """RR@10 comes from another provider, which knows nothing of docids; with nothing cut off it must be RR."""
    measures = ["RR", "RR@1000"]
    for seed in range(60):
        run, qrels = random_case(seed)
        if not set(run) & set(qrels):
            continue
        ours = evaluate(run, qrels, measures)
        assert ours.per_topic["RR@1000"] == pytest.approx(ours.per_topic["RR"]), seed


def test_recall_precision_points_are_trec_evals():
    run, qrels = random_case(3)
    names = {f"iprec_at_recall_{level / 10:.2f}" for level in range(11)}
    expected = pytrec_eval.RelevanceEvaluator(qrels, {"iprec_at_recall"}).evaluate(run)
    points = recall_precision(run, qrels)
    for qid, values in points.per_topic.items():
        assert list(values) == [expected[qid][name] for name in sorted(names)]


def test_one_evaluator_serves_many_runs():
    """State left over from one run would show in the next."""
    _, qrels = random_case(0)
    evaluator = Evaluator(qrels, ["AP", "nDCG@10"])
    runs = [random_case(seed)[0] for seed in range(1, 20)]
    together = [evaluator.evaluate(run) for run in runs]
    alone = [evaluate(run, qrels, ["AP", "nDCG@10"]) for run in runs]
    assert [e.per_topic for e in together] == [e.per_topic for e in alone]
