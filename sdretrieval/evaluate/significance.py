"""Is run A better than run B, or were the topics kind to it?

Four paired tests over topics, all two-sided. d_i is the difference on topic i. Each test takes the array of
:func:`differences` and gives a :class:`TestResult`.

t              Student's t on the mean of d (scipy.stats.ttest_rel)
wilcoxon       signed ranks of d; zeros dropped (scipy.stats.wilcoxon)
sign           binomial test on the signs of d; zeros dropped (scipy.stats.binomtest)
randomisation  every sign pattern of d is as likely under the null; exact up to 2^16 patterns, else sampled

The first three are those of the thesis (section 5.3.3). Differences are rounded to twelve decimals first:
measures are ratios of small integers, and without rounding 0.6 - 0.4 and 0.4 - 0.2 would be different ranks
to Wilcoxon and 0.1 + 0.2 - 0.3 would be a win.

Comparing several runs with one baseline tests several times: ``correct`` adjusts the p-values (Holm's
step-down by default). The family is all runs against the baseline, separately for each measure and test, as
in PyTerrier's ``Experiment``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.measures import Evaluation

DECIMALS = 12
PERMUTATIONS = 100_000  # samples of the randomisation test when enumerating is too much
SCIPY_ENUMERATES = 13  # topics up to which scipy's Wilcoxon enumerates where there are ties or zeros
EXACT_UP_TO = 16  # topics with a difference; 2^16 patterns


@dataclass(frozen=True)
class TestResult:
    """One test's answer; ``p_value`` is nan where it cannot be asked (a single topic has no variance)."""

    __test__ = False  # the name begins with Test, but it is none for pytest

    test: str
    statistic: float
    p_value: float
    n: int  # differences that took part


def differences(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """a - b, freed of rounding noise."""
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ParameterError(f"paired tests need equally long lists, got shapes {x.shape} and {y.shape}")
    return np.round(x - y, DECIMALS) + 0.0  # + 0.0 turns -0.0 into 0.0


def paired_t(d: np.ndarray) -> TestResult:
    """Student's paired t-test."""
    from scipy import stats  # takes its time to load

    n = len(d)
    if n < 2:
        return TestResult("t", math.nan, math.nan, n)
    if np.ptp(d) == 0.0:  # no variance: scipy would divide by zero
        if d[0] == 0.0:
            return TestResult("t", 0.0, 1.0, n)
        return TestResult("t", math.copysign(math.inf, d[0]), 0.0, n)
    answer = stats.ttest_1samp(d, 0.0)
    return TestResult("t", float(answer.statistic), float(answer.pvalue), n)


def wilcoxon(d: np.ndarray) -> TestResult:
    """Wilcoxon's signed-rank test; scipy chooses between the exact and the normal distribution.

    With ties among few topics scipy enumerates sign patterns, which takes it seconds; done here in no time.
    """
    from scipy import stats  # takes its time to load

    moved = d[d != 0.0]
    n = len(moved)
    if n == 0:
        return TestResult("wilcoxon", 0.0, 1.0, 0)
    ranks = stats.rankdata(np.abs(moved))
    if len(d) <= SCIPY_ENUMERATES and (n < len(d) or len(np.unique(ranks)) < n):
        p_value = _share_as_extreme(np.copysign(ranks, moved))
        return TestResult("wilcoxon", float(min(ranks[moved > 0].sum(), ranks[moved < 0].sum())), p_value, n)
    answer = stats.wilcoxon(d)
    return TestResult("wilcoxon", float(answer.statistic), float(answer.pvalue), n)


def sign(d: np.ndarray) -> TestResult:
    """Sign test; the statistic is the number of wins."""
    from scipy import stats  # takes its time to load

    wins, losses = int((d > 0).sum()), int((d < 0).sum())
    if wins + losses == 0:
        return TestResult("sign", 0.0, 1.0, 0)
    return TestResult("sign", float(wins), float(stats.binomtest(wins, wins + losses).pvalue), wins + losses)


def randomisation(d: np.ndarray, *, permutations: int = PERMUTATIONS, seed: int = 0) -> TestResult:
    """Fisher's randomisation (permutation) test on the mean difference.

    Parameters
    ----------
    d
        Differences by topic.
    permutations, seed
        Exact where at most 2^16 sign patterns exist. Beyond that so many are drawn, and p = (1 + as extreme) /
        (1 + drawn), which never claims 0.
    """
    moved = d[d != 0.0]
    n = len(moved)
    if n == 0:
        return TestResult("randomisation", 0.0, 1.0, 0)
    if n <= EXACT_UP_TO:
        p_value = _share_as_extreme(moved)
    else:
        limit = _limit(moved)
        generator = np.random.default_rng(seed)
        extreme, left = 0, permutations
        while left:
            rows = min(left, 10_000)
            # Sum with random signs = 2 * (sum of a random subset) - (sum of all).
            chosen = generator.integers(0, 2, size=(rows, n), dtype=np.uint8).astype(np.float64)
            sums = 2.0 * (chosen @ moved) - moved.sum()
            extreme += int((np.abs(sums) >= limit).sum())
            left -= rows
        p_value = (1 + extreme) / (1 + permutations)
    return TestResult("randomisation", float(d.mean()), p_value, n)


def _limit(values: np.ndarray) -> float:
    """Sums from here on are as extreme as the one observed; equal on paper, they may differ in the last bits."""
    observed = abs(float(values.sum()))
    return observed - 1e-9 * max(1.0, observed)


def _share_as_extreme(values: np.ndarray) -> float:
    """Of all sign patterns, the share whose sum is at least as far from zero as the one observed."""
    sums = np.zeros(1)
    for value in values:  # doubling one topic at a time
        sums = np.concatenate([sums + value, sums - value])
    return float(np.mean(np.abs(sums) >= _limit(values)))


TESTS: dict[str, Callable[[np.ndarray], TestResult]] = {
    "t": paired_t,
    "wilcoxon": wilcoxon,
    "sign": sign,
    "randomisation": randomisation,
}
CORRECTIONS = ("holm", "bonferroni", "none")


def correct(p_values: Sequence[float], method: str = "holm") -> list[float]:
    """Adjusted p-values of one family, by one of :data:`CORRECTIONS`; nan stays nan and is not counted.

    >>> [round(p, 3) for p in correct([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    if method not in CORRECTIONS:
        raise ParameterError(f"unknown correction {method!r}", remedy=f"Known are {', '.join(CORRECTIONS)}.")
    p = np.asarray(p_values, dtype=np.float64)
    asked = np.flatnonzero(~np.isnan(p))
    adjusted = p.copy()
    m = len(asked)
    if method == "bonferroni":
        adjusted[asked] = np.minimum(1.0, m * p[asked])
    elif method == "holm":
        order = asked[np.argsort(p[asked], kind="stable")]
        steps = (m - np.arange(m)) * p[order]
        adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(value) for value in adjusted]


@dataclass(frozen=True)
class Pair:
    """Two of several runs by Tukey's honestly significant difference."""

    run: str
    other: str
    measure: str
    difference: float
    confidence: tuple[float, float]  # 95 % interval, for all pairs at once
    p_value: float


def tukey(evaluations: Sequence[Evaluation], measure: str, alpha: float = 0.05) -> list[Pair]:
    """All pairs of m runs over the n topics they share, the family-wise error held at ``alpha``.

    Topics are blocks (Carterette 2012): σ² is the residual of x_ij = μ + topic_i + run_j + e_ij on (n-1)(m-1)
    degrees of freedom, and q = |difference| / sqrt(σ²/n) has the studentized range distribution. With two runs it is
    the paired t-test.
    """
    from scipy.stats import studentized_range  # takes its time to load

    if len(evaluations) < 2:
        raise ParameterError("Tukey's test takes two runs or more", remedy="Name more runs.")
    tables = [evaluation.per_topic[measure] for evaluation in evaluations]
    topics = [qid for qid in tables[0] if all(qid in table for table in tables)]
    values = np.array([[table[qid] for table in tables] for qid in topics], dtype=np.float64).reshape(-1, len(tables))
    n, m = values.shape
    if n < 2:
        raise ParameterError(f"Tukey's test takes two topics or more that all runs have; there are {n}")
    residual = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    freedom = (n - 1) * (m - 1)
    error = math.sqrt(float((residual**2).sum()) / freedom / n)
    half = float(studentized_range.ppf(1 - alpha, m, freedom)) * error
    pairs = []
    for i, j in combinations(range(m), 2):
        gap = float(differences(values[:, i], values[:, j]).mean())
        if error > 1e-12:
            p_value = float(studentized_range.sf(abs(gap) / error, m, freedom))
        else:  # no variance beside topics and runs
            p_value = 1.0 if gap == 0 else 0.0
        names = evaluations[i].name, evaluations[j].name
        pairs.append(Pair(*names, measure, gap, (gap - half, gap + half), p_value))
    return pairs


@dataclass(frozen=True)
class Comparison:
    """One run against the baseline on one measure, over the topics both have."""

    run: str
    baseline: str
    measure: str
    topics: tuple[str, ...]
    mean: float
    baseline_mean: float
    difference: float  # mean of run - baseline over the common topics
    confidence: tuple[float, float]  # 95 % interval of the difference (Student)
    wins: int
    ties: int
    losses: int
    cohens_d: float  # mean(d) / sd(d), the paired effect size d_z
    superiority: float  # P(run > baseline) + P(tie) / 2 over topics
    tests: Mapping[str, TestResult]
    corrected: Mapping[str, float] = field(default_factory=dict)  # p-values after the correction

    @property
    def relative(self) -> float:
        """Difference as a fraction of the baseline; nan where the baseline is zero."""
        return self.difference / self.baseline_mean if self.baseline_mean else math.nan

    def significant(self, test: str, alpha: float = 0.05) -> bool:
        """By the corrected p-value, which equals the plain one where only one run was compared."""
        return self.corrected.get(test, self.tests[test].p_value) < alpha


def compare_values(
    run: Mapping[str, float],
    baseline: Mapping[str, float],
    *,
    names: tuple[str, str] = ("run", "baseline"),
    measure: str = "",
    tests: Iterable[str] = tuple(TESTS),
    seed: int = 0,
) -> Comparison:
    """Compare two mappings of topic to value, over the topics both have.

    Parameters
    ----------
    run, baseline
        Values by topic.
    names, measure
        What the comparison says it compares.
    tests
        Names from :data:`TESTS`.
    seed
        Of the randomisation test.

    Returns
    -------
    Comparison
        Means, effect sizes and tests; nothing is corrected.

    Examples
    --------
    >>> c = compare_values({"1": .5, "2": .7, "3": .2}, {"1": .4, "2": .5, "3": .2})
    >>> c.wins, c.ties, c.losses, round(c.difference, 4)
    (2, 1, 0, 0.1)
    """
    topics = tuple(qid for qid in run if qid in baseline)
    a = np.array([run[qid] for qid in topics], dtype=np.float64)
    b = np.array([baseline[qid] for qid in topics], dtype=np.float64)
    d = differences(a, b)
    n = len(d)
    results = {}
    for name in tests:
        if name not in TESTS:
            raise ParameterError(f"unknown test {name!r}", remedy=f"Known are {', '.join(TESTS)}.")
        results[name] = randomisation(d, seed=seed) if name == "randomisation" else TESTS[name](d)
    wins, losses = int((d > 0).sum()), int((d < 0).sum())
    ties = n - wins - losses
    own, other, mean = (float(values.mean()) if n else math.nan for values in (a, b, d))
    spread = float(d.std(ddof=1)) if n > 1 else math.nan
    return Comparison(
        *names,
        measure,
        topics,
        mean=own,
        baseline_mean=other,
        difference=mean,
        confidence=_confidence(mean, spread, n),
        wins=wins,
        ties=ties,
        losses=losses,
        cohens_d=_effect(mean, spread),
        superiority=(wins + ties / 2) / n if n else math.nan,
        tests=results,
    )


def _confidence(mean: float, spread: float, n: int) -> tuple[float, float]:
    if n < 2:
        return math.nan, math.nan
    from scipy import stats  # takes its time to load

    half = float(stats.t.ppf(0.975, n - 1)) * spread / math.sqrt(n)
    return mean - half, mean + half


def _effect(mean: float, spread: float) -> float:
    if math.isnan(spread):
        return math.nan
    if spread == 0.0:
        return 0.0 if mean == 0.0 else math.copysign(math.inf, mean)
    return mean / spread


def compare(
    runs: Sequence[Evaluation],
    baseline: Evaluation,
    *,
    measures: Iterable[str] | None = None,
    tests: Iterable[str] = tuple(TESTS),
    correction: str = "holm",
    seed: int = 0,
) -> list[Comparison]:
    """Each run against the baseline on each measure, p-values corrected over the runs.

    Pairs are the topics both evaluations counted; evaluate with ``complete=True`` to keep topics that one of
    the runs has no results for.

    Parameters
    ----------
    runs, baseline
        Evaluations over the same judgments.
    measures
        Names of measures; by default all that the baseline has.
    tests, seed
        As of :func:`compare_values`.
    correction
        One of :data:`CORRECTIONS`.

    Returns
    -------
    list of Comparison
        Measure by measure, runs within.
    """
    tests = tuple(tests)
    names = list(baseline.measures) if measures is None else list(measures)
    table: list[Comparison] = []
    for measure in names:
        rows = [
            compare_values(
                run.per_topic[measure],
                baseline.per_topic[measure],
                names=(run.name, baseline.name),
                measure=measure,
                tests=tests,
                seed=seed,
            )
            for run in runs
        ]
        adjusted = {test: correct([row.tests[test].p_value for row in rows], correction) for test in tests}
        table += [replace(row, corrected={test: adjusted[test][i] for test in tests}) for i, row in enumerate(rows)]
    return table
