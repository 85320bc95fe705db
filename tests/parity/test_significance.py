"""Each test, correction and effect size equals scipy or statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.descriptivestats import sign_test
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from sdretrieval.evaluate import TESTS, compare_values, correct
from sdretrieval.evaluate.significance import differences, paired_t, randomisation, sign, wilcoxon


def pairs(seed: int, n: int, *, coarse: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Two runs' values over n topics; coarse ones are multiples of 1/5 as P@5's are, with many ties."""
    rng = np.random.default_rng(seed)
    a = rng.beta(1, 2, n)
    b = 0.6 * a + 0.4 * rng.beta(1, 2.2, n)
    a[0], b[0] = 0.9, 0.3  # never all tied, never without variance
    return (np.round(a * 5) / 5, np.round(b * 5) / 5) if coarse else (a, b)


SIZES = [2, 3, 7, 9, 14, 25, 50, 51, 120]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("coarse", [False, True])
def test_t_equals_scipy_and_statsmodels(n, coarse):
    a, b = pairs(n, n, coarse=coarse)
    d = differences(a, b)
    ours = paired_t(d)
    theirs = stats.ttest_rel(a, b)
    assert (ours.statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-9)
    assert (ours.statistic, ours.p_value) == pytest.approx(DescrStatsW(a - b).ttest_mean(0)[:2], rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
def test_wilcoxon_equals_scipy(n):
    a, b = pairs(n, n)
    theirs = stats.wilcoxon(a, b)
    ours = wilcoxon(differences(a, b))
    assert (ours.statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_wilcoxon_ranks_equal_differences_equally(n):
    """On fifths the oracle is scipy on whole numbers, where no rounding noise can split a tie."""
    a, b = pairs(n, n, coarse=True)
    whole = np.rint(5 * a) - np.rint(5 * b)
    assert whole.any()
    theirs = stats.wilcoxon(whole)
    ours = wilcoxon(differences(a, b))
    assert (ours.statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue), rel=1e-12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("coarse", [False, True])
def test_sign_equals_scipy_and_statsmodels(n, coarse):
    a, b = pairs(n + 1000, n, coarse=coarse)
    d = differences(a, b)
    wins, losses = (d > 0).sum(), (d < 0).sum()
    ours = sign(d)
    assert ours.p_value == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, rel=1e-12)
    # statsmodels' statistic is (wins - losses) / 2
    m, p = sign_test(d)
    assert (ours.statistic - ours.n / 2, ours.p_value) == pytest.approx((m, p), rel=1e-9)


def permutation_test(d: np.ndarray, **kwargs) -> float:
    return stats.permutation_test((d,), np.mean, permutation_type="samples", vectorized=True, axis=0, **kwargs).pvalue


@pytest.mark.parametrize("n", [3, 6, 10, 12])
@pytest.mark.parametrize("coarse", [False, True])
def test_exact_randomisation_equals_scipy(n, coarse):
    """scipy enumerates all 2^n sign patterns too; on fifths both must treat equal sums as equal."""
    d = differences(*pairs(n + 7, n, coarse=coarse))
    assert randomisation(d).p_value == pytest.approx(permutation_test(d, n_resamples=np.inf), rel=1e-12)


@pytest.mark.parametrize("n", [20, 50])
def test_sampled_randomisation_agrees_with_scipy_within_its_error(n):
    """100 000 samples: the standard error of p is below .0016; four of them."""
    for seed in range(3):
        d = differences(*pairs(seed, n))
        theirs = permutation_test(d, n_resamples=20_000, rng=np.random.default_rng(5))
        ours = randomisation(d).p_value
        error = math.sqrt(theirs * (1 - theirs) * (1 / 20_000 + 1 / 100_000)) + 1e-4
        assert abs(ours - theirs) < 4 * error


@pytest.mark.parametrize("method", ["holm", "bonferroni"])
def test_corrections_equal_statsmodels(method):
    rng = np.random.default_rng(2)
    for _ in range(25):
        p = rng.random(rng.integers(1, 12)) ** 3
        if len(p) > 2:
            p[1] = p[0]  # equal p-values
        assert correct(p, method) == pytest.approx(multipletests(p, method=method)[1].tolist(), rel=1e-12)


def test_interval_equals_statsmodels():
    a, b = pairs(4, 40)
    c = compare_values(dict(enumerate(a)), dict(enumerate(b)))
    assert c.confidence == pytest.approx(DescrStatsW(a - b).tconfint_mean(0.05), rel=1e-9)


def test_effect_sizes_follow_from_the_tests():
    """d = t / sqrt(n) for paired samples; superiority is the Mann-Whitney-like share of pairs, ties half."""
    a, b = pairs(9, 30, coarse=True)
    c = compare_values(dict(enumerate(a)), dict(enumerate(b)), tests=TESTS)
    assert c.cohens_d == pytest.approx(stats.ttest_rel(a, b).statistic / math.sqrt(30), rel=1e-9)
    five = np.rint(5 * a) - np.rint(5 * b)
    assert c.superiority == pytest.approx(np.mean((np.sign(five) + 1) / 2))
    assert (c.wins, c.ties, c.losses) == ((five > 0).sum(), (five == 0).sum(), (five < 0).sum())
