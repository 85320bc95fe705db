"""Runs beside runs: RBO against its definition, Tukey's test against the paired t-test and a two-way analysis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdretrieval.collection.records import Ranking, Run
from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.measures import Evaluation, evaluate
from sdretrieval.evaluate.significance import paired_t, tukey
from sdretrieval.evaluate.systems import measure_agreement, rank_biased_overlap, rank_correlation, similarity


def evaluation(name: str, values: list[float]) -> Evaluation:
    per_topic = {"AP": {str(i): value for i, value in enumerate(values)}}
    topics = tuple(per_topic["AP"])
    return Evaluation(name, {"AP": float(np.mean(values))}, per_topic, topics, (), (), (), False)


def rbo_by_definition(first: str, second: str, p: float) -> float:
    """(32) of Webber, Moffat and Zobel, term by term."""
    short, long = sorted((first, second), key=len)
    s, l = len(short), len(long)

    def common(d: int) -> int:
        return len(set(short[:d]) & set(long[:d]))

    total = sum(common(d) / d * p**d for d in range(1, l + 1))
    total += sum(common(s) * (d - s) / (s * d) * p**d for d in range(s + 1, l + 1))
    return (1 - p) / p * total + ((common(l) - common(s)) / l + common(s) / s) * p**l


lists = st.permutations("abcdefg").flatmap(lambda letters: st.integers(1, 7).map(lambda n: "".join(letters[:n])))


@given(lists, lists, st.sampled_from([0.5, 0.9, 0.98]))
def test_rbo_is_its_definition(first, second, p):
    assert rank_biased_overlap(first, second, p) == pytest.approx(rbo_by_definition(first, second, p))
    assert rank_biased_overlap(first, second, p) == pytest.approx(rank_biased_overlap(second, first, p))
    assert rank_biased_overlap(first, first, p) == pytest.approx(1)


def test_rbo_of_nothing_and_of_a_wrong_p():
    assert rank_biased_overlap("", "") == 1
    assert rank_biased_overlap("", "a") == 0
    with pytest.raises(ParameterError, match="between 0 and 1"):
        rank_biased_overlap("a", "a", p=1)


def test_similarity_counts_common_topics_only():
    def run(**lists: str) -> Run:
        return Run({qid: Ranking(list(docids), -np.arange(len(docids), dtype=float)) for qid, docids in lists.items()})

    alike = similarity(run(q1="abcd", q2="ab", q3="x"), run(q1="bacd", q2="cd"), depths=(2,))
    assert alike["topics"] == 2
    assert alike["overlap@2"] == (1 + 0) / 2
    assert alike["τ"] == pytest.approx(4 / 6)  # one of six pairs is turned; the second topic has none


@settings(max_examples=15)  # an integral of the studentised range takes a tenth of a second
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=12))
def test_tukey_of_two_runs_is_the_paired_t_test(pairs):
    a, b = ([round(x, 3) for x in column] for column in zip(*pairs, strict=True))
    (pair,) = tukey([evaluation("a", a), evaluation("b", b)], "AP")
    d = np.round(np.array(a) - np.array(b), 12)
    if np.ptp(d) > 1e-9:
        assert pair.p_value == pytest.approx(paired_t(d).p_value, abs=2e-5)
    assert pair.difference == pytest.approx(np.mean(d))


def test_tukey_takes_its_error_from_the_two_way_layout():
    import pandas as pd
    from scipy.stats import studentized_range
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    rng = np.random.default_rng(7)
    values = rng.uniform(size=(15, 1)) + np.array([0, 0.02, 0.3, 0.31]) + rng.normal(scale=0.1, size=(15, 4))
    data = {"x": values.ravel(), "topic": np.repeat(np.arange(15), 4), "run": np.tile(np.arange(4), 15)}
    table = anova_lm(ols("x ~ C(topic) + C(run)", pd.DataFrame(data)).fit())
    error = np.sqrt(table["mean_sq"]["Residual"] / 15)
    found = tukey([evaluation(f"r{j}", list(values[:, j])) for j in range(4)], "AP")
    assert len(found) == 6
    for pair in found:
        i, j = int(pair.run[1]), int(pair.other[1])
        gap = values[:, i].mean() - values[:, j].mean()
        assert pair.p_value == pytest.approx(studentized_range.sf(abs(gap) / error, 4, 42), rel=1e-6)
        half = studentized_range.ppf(0.95, 4, 42) * error
        assert pair.confidence == pytest.approx((gap - half, gap + half))
    assert {(pair.run, pair.other) for pair in found if pair.p_value > 0.05} == {("r0", "r1"), ("r2", "r3")}


def test_tukey_without_variance_and_without_company():
    same = [evaluation("a", [0.1, 0.5]), evaluation("b", [0.1, 0.5])]
    assert tukey(same, "AP")[0].p_value == 1
    for few in (same[:1], [evaluation("a", [0.1]), evaluation("b", [0.2])]):
        with pytest.raises(ParameterError, match="two"):
            tukey(few, "AP")


def test_agreement_of_measures():
    qrels = {"1": {"a": 1, "b": 1}}
    runs = [{"1": {"a": 3.0, "x": 2.0, "b": 1.0}}, {"1": {"x": 3.0, "a": 2.0, "b": 1.0}}, {"1": {"x": 2.0, "y": 1.0}}]
    found = [evaluate(run, qrels, ["AP", "RR", "P@3"], name=str(i)) for i, run in enumerate(runs)]
    assert measure_agreement(found)["AP", "RR"] == pytest.approx((1, 1))
    tau, _ = measure_agreement(found)["AP", "P@3"]
    assert tau == pytest.approx(2 / np.sqrt(3 * 2))  # τ-b: two share a P@3
    with pytest.raises(ParameterError, match="two runs"):
        measure_agreement(found[:1])


def tau_ap_by_definition(order: list[int], actual: list[int]) -> float:
    """(4) of Yilmaz, Aslam and Robertson, for orders without ties: C(i) systems above place i are so in truth too."""
    n = len(order)
    rights = [sum(actual.index(above) < actual.index(order[i]) for above in order[:i]) / i for i in range(1, n)]
    return 2 / (n - 1) * sum(rights) - 1


@given(st.integers(2, 7).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n)))))
def test_tau_ap_is_its_definition(orders):
    first, second = ([-float(order.index(i)) for i in range(len(order))] for order in orders)
    _, found = rank_correlation(first, second)
    assert found == pytest.approx((tau_ap_by_definition(*orders) + tau_ap_by_definition(*orders[::-1])) / 2)


def test_tau_ap_counts_the_top_more_and_ties_half():
    values = [4.0, 3.0, 2.0, 1.0]
    top, end = rank_correlation(values, [3.0, 4.0, 2.0, 1.0]), rank_correlation(values, [4.0, 3.0, 1.0, 2.0])
    assert top[0] == pytest.approx(end[0])
    assert top[1] < end[1]
    assert rank_correlation(values, values)[1] == 1
    assert rank_correlation(values, values[::-1])[1] == -1
    assert rank_correlation([1.0, 1.0], [1.0, 2.0])[1] == 0
