"""The evaluation of topic tracking: misses, false alarms and what they cost (thesis section 6.2; NIST's TDT).

    C_track = P_target P_miss C_miss + (1 - P_target) P_fa C_fa                        (6.1)
    normalised: over min(P_target C_miss, (1 - P_target) C_fa), so that saying "no" (or "yes") to everything costs 1

    P_miss   share of the on-topic documents whose score is below the threshold
    P_fa     share of the off-topic documents whose score is not

Topic-weighted rates are means of the topics' own; story-weighted ones pool all trials. One threshold holds for all
topics. MinCost is the least cost over all thresholds; the curve of (P_fa, P_miss) over thresholds is the DET curve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.errors import ParameterError
from sdretrieval.evaluate.significance import Comparison, compare_values

Floats = NDArray[np.float64]
WEIGHTINGS = ("topic", "story")


@dataclass(frozen=True)
class Costs:
    """The application: how likely a target is, and what errors cost. The defaults are TDT's and the thesis's."""

    p_target: float = 0.02
    c_miss: float = 1.0
    c_fa: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.p_target < 1.0:
            raise ParameterError(f"p_target must be between 0 and 1, got {self.p_target}")
        for name in ("c_miss", "c_fa"):
            if not 0.0 < getattr(self, name) < inf:
                raise ParameterError(f"{name} must be positive, got {getattr(self, name)}")

    def cost(self, p_miss: ArrayLike, p_fa: ArrayLike) -> Floats:
        """C_track, (6.1)."""
        miss, fa = np.asarray(p_miss, float), np.asarray(p_fa, float)
        return self.p_target * miss * self.c_miss + (1.0 - self.p_target) * fa * self.c_fa

    def normalised(self, p_miss: ArrayLike, p_fa: ArrayLike) -> Floats:
        """
        >>> round(float(Costs().normalised(0.1, 0.01)), 6)      # .1 + 4.9 x .01
        0.149
        """
        return self.cost(p_miss, p_fa) / min(self.p_target * self.c_miss, (1.0 - self.p_target) * self.c_fa)


@dataclass(frozen=True, eq=False)
class Trials:
    """One topic's documents: their scores, which are on topic, and (where known) what the system decided.

    ``unlisted_*`` count documents of the stream that have no score: they are below every threshold.
    """

    scores: Floats
    targets: NDArray[np.bool_]
    decided: NDArray[np.bool_] | None = None
    unlisted_targets: int = 0
    unlisted_others: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", np.asarray(self.scores, np.float64))
        object.__setattr__(self, "targets", np.asarray(self.targets, bool))
        if self.scores.ndim != 1 or self.scores.shape != self.targets.shape:
            raise ParameterError(f"{self.scores.shape} scores, but {self.targets.shape} targets")
        if np.isnan(self.scores).any():
            raise ParameterError("a score is not a number", remedy="A document without a score is an unlisted one.")

    @property
    def n_targets(self) -> int:
        return int(self.targets.sum()) + self.unlisted_targets

    @property
    def n_others(self) -> int:
        return int((~self.targets).sum()) + self.unlisted_others

    def rates(self, threshold: float) -> tuple[float, float]:
        """P_miss and P_fa at a threshold."""
        return self._rates(self.scores >= threshold)

    def decided_rates(self) -> tuple[float, float]:
        """P_miss and P_fa of the system's own decisions."""
        return (nan, nan) if self.decided is None else self._rates(self.decided)

    def _rates(self, yes: NDArray[np.bool_]) -> tuple[float, float]:
        hits, alarms = int((yes & self.targets).sum()), int((yes & ~self.targets).sum())
        return 1.0 - hits / self.n_targets, alarms / self.n_others if self.n_others else 0.0


@dataclass(frozen=True, eq=False)
class DetCurve:
    """Points of the DET curve from the strictest threshold (+inf: all is missed) to the laxest."""

    thresholds: Floats
    p_fa: Floats
    p_miss: Floats

    def best(self, costs: Costs) -> int:
        """The point of least cost; of equal ones the strictest."""
        return int(np.argmin(costs.cost(self.p_miss, self.p_fa)))


def det_curve(trials: Mapping[str, Trials], weighting: str = "topic") -> DetCurve:
    """The curve over all distinct scores, the threshold common to all topics."""
    if weighting not in WEIGHTINGS:
        raise ParameterError(f"weighting must be one of {', '.join(WEIGHTINGS)}, got {weighting!r}")
    if not trials:
        raise ParameterError("no topic has a trial", remedy="Check that decisions and judgments belong together.")
    by_topic = weighting == "topic"
    all_targets = sum(t.n_targets for t in trials.values())
    all_others = sum(t.n_others for t in trials.values())
    with_others = sum(t.n_others > 0 for t in trials.values())
    scores, miss_steps, fa_steps = [], [], []
    for topic in trials.values():
        per_target = 1.0 / (topic.n_targets * len(trials)) if by_topic else 1.0 / all_targets
        per_other = 1.0 / (topic.n_others * with_others if by_topic else all_others) if topic.n_others else 0.0
        scores.append(topic.scores)
        miss_steps.append(np.where(topic.targets, per_target, 0.0))
        fa_steps.append(np.where(topic.targets, 0.0, per_other))
    flat = np.concatenate(scores)
    order = np.argsort(-flat, kind="stable")
    flat = flat[order]
    last = np.append(np.flatnonzero(flat[1:] != flat[:-1]), len(flat) - 1) if len(flat) else np.zeros(0, np.int64)
    found = np.cumsum(np.concatenate(miss_steps)[order])[last]
    alarms = np.cumsum(np.concatenate(fa_steps)[order])[last]
    return DetCurve(
        np.concatenate([[inf], flat[last]]),
        np.concatenate([[0.0], np.clip(alarms, 0.0, 1.0)]),
        np.concatenate([[1.0], np.clip(1.0 - found, 0.0, 1.0)]),
    )


@dataclass(frozen=True, eq=False)
class TopicCost:
    """One topic at the threshold of MinCost, and at its own best."""

    targets: int
    others: int
    p_miss: float
    p_fa: float
    cost: float
    own_min_cost: float
    own_threshold: float
    decided_cost: float  # of the system's decisions; nan where there are none


@dataclass(frozen=True, eq=False)
class TdtEvaluation:
    """Costs are normalised. ``actual_*`` speak of the system's own decisions, nan where it made none."""

    name: str
    weighting: str
    costs: Costs
    min_cost: float
    threshold: float
    p_miss: float
    p_fa: float
    actual_cost: float
    actual_p_miss: float
    actual_p_fa: float
    per_topic: dict[str, TopicCost]
    curve: DetCurve = field(repr=False)
    skipped: tuple[str, ...] = ()  # topics without an on-topic document

    def topic_costs(self) -> dict[str, float]:
        """What significance is tested on: each topic's cost at the common threshold (section 6.2)."""
        return {topic: one.cost for topic, one in self.per_topic.items()}


def evaluate_trials(
    trials: Mapping[str, Trials], *, costs: Costs | None = None, weighting: str = "topic", name: str = ""
) -> TdtEvaluation:
    """Everything about one system in one call. Topics without an on-topic document are left out, and named."""
    costs = costs or Costs()
    skipped = tuple(topic for topic, t in trials.items() if t.n_targets == 0)
    kept = {topic: t for topic, t in trials.items() if t.n_targets}
    if trials and not kept:
        raise ParameterError("no topic has an on-topic document: nothing can be missed")
    curve = det_curve(kept, weighting)
    best = curve.best(costs)
    threshold = float(curve.thresholds[best])
    per_topic = {topic: _topic_cost(t, threshold, costs) for topic, t in kept.items()}
    actual = _pooled([(t, *t.decided_rates()) for t in kept.values()], weighting)
    return TdtEvaluation(
        name=name, weighting=weighting, costs=costs, threshold=threshold, per_topic=per_topic, curve=curve,
        min_cost=float(costs.normalised(curve.p_miss[best], curve.p_fa[best])),
        p_miss=float(curve.p_miss[best]), p_fa=float(curve.p_fa[best]),
        actual_cost=nan if isnan(actual[0]) else float(costs.normalised(*actual)),
        actual_p_miss=actual[0], actual_p_fa=actual[1], skipped=skipped,
    )  # fmt: skip


def _topic_cost(trials: Trials, threshold: float, costs: Costs) -> TopicCost:
    p_miss, p_fa = trials.rates(threshold)
    own = det_curve({"": trials})
    best = own.best(costs)
    return TopicCost(
        trials.n_targets, trials.n_others, p_miss, p_fa, float(costs.normalised(p_miss, p_fa)),
        float(costs.normalised(own.p_miss[best], own.p_fa[best])), float(own.thresholds[best]),
        float(costs.normalised(*trials.decided_rates())),
    )  # fmt: skip


def _pooled(rows: Sequence[tuple[Trials, float, float]], weighting: str) -> tuple[float, float]:
    if any(isnan(miss) for _, miss, _ in rows):
        return nan, nan
    miss_weights = [1.0 if weighting == "topic" else t.n_targets for t, _, _ in rows]
    fa_weights = [float(t.n_others > 0) if weighting == "topic" else t.n_others for t, _, _ in rows]
    miss = float(np.average([miss for _, miss, _ in rows], weights=miss_weights))
    fa = float(np.average([fa for _, _, fa in rows], weights=fa_weights)) if sum(fa_weights) else 0.0
    return miss, fa


def compare_trackers(run: TdtEvaluation, baseline: TdtEvaluation, tests: Iterable[str] = ("t", "sign")) -> Comparison:
    """Paired tests on the topics' costs, each system at its own threshold of MinCost. Lower cost is better: ``wins``
    are topics where ``run`` costs *more*."""
    return compare_values(
        run.topic_costs(), baseline.topic_costs(), names=(run.name, baseline.name), measure="C_track", tests=tests
    )
