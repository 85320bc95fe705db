"""The evaluation of tracking: misses, false alarms and what they cost (thesis section 6.2; NIST's TDT).

    C_track = P_target P_miss C_miss + (1 - P_target) P_fa C_fa                        (6.1)
    normalised: over min(P_target C_miss, (1 - P_target) C_fa), so that saying "no" (or "yes") to everything costs 1

    P_miss   share of the on-topic documents whose score is below the threshold
    P_fa     share of the off-topic documents whose score is not

One threshold holds for all stories. MinCost is the least cost over all thresholds; the curve of (P_fa, P_miss) over
thresholds is the DET curve. Rates are means of the stories' own, or of all trials pooled. NIST calls the first
topic-weighted and the second story-weighted, for there a topic is what is followed and a story is a document; the
names of the weightings are NIST's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan, nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdretrieval.core.errors import ParameterError
from sdretrieval.evaluate.significance import Comparison, compare_values
from sdretrieval.learn.tracking.decisions import Decisions

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
    """One story's documents: their scores, which are on topic, and (where known) what the system decided.

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


def trials_of(
    decisions: Decisions,
    qrels: Mapping[str, Mapping[str, int]],
    *,
    documents: int | None = None,
    seeds: Mapping[str, Collection[str]] | None = None,
    judged_only: bool = False,
    level: int = 1,
) -> tuple[dict[str, Trials], list[str]]:
    """Trials of every story that has judgments, and the stories that have none.

    documents    how many documents the stream has for each story (its seeds apart): those not listed are below every
                 threshold, and judged relevant ones among them are misses. None: only listed documents are trials
    seeds        documents that are no trials, by story
    judged_only  leave out listed documents without a judgment, instead of taking them for off topic
    """
    trials = {}
    for story, grades in qrels.items():
        if story not in decisions.scores and documents is None:
            continue
        listed, said = decisions.scores.get(story, {}), decisions.on_topic.get(story)
        given = set((seeds or {}).get(story, ()))
        docids = [d for d in listed if d not in given and (not judged_only or d in grades)]
        targets = np.array([grades.get(d, 0) >= level for d in docids], bool)
        decided = None
        if said and all(said[d] is not None for d in docids):
            decided = np.array([bool(said[d]) for d in docids], bool)
        missing = others = 0
        if documents is not None:
            relevant = {d for d, grade in grades.items() if grade >= level} - given
            n_others = int((~targets).sum())
            missing = len(relevant.difference(docids))
            others = documents - len(relevant) - n_others
            if others < 0:
                raise ParameterError(
                    f"topic {story!r}: {documents} documents cannot hold {len(relevant)} relevant and "
                    f"{n_others} other listed ones",
                    remedy="--documents is the number of documents in the stream.",
                )
        trials[story] = Trials(np.array([listed[d] for d in docids], float), targets, decided, missing, others)
    return trials, [story for story in decisions.scores if story not in qrels]


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
    """The curve over all distinct scores, the threshold common to all stories."""
    if weighting not in WEIGHTINGS:
        raise ParameterError(f"weighting must be one of {', '.join(WEIGHTINGS)}, got {weighting!r}")
    if not trials:
        raise ParameterError("no story has a trial", remedy="Check that decisions and judgments belong together.")
    by_story = weighting == "topic"
    all_targets = sum(t.n_targets for t in trials.values())
    all_others = sum(t.n_others for t in trials.values())
    with_others = sum(t.n_others > 0 for t in trials.values())
    scores, miss_steps, fa_steps = [], [], []
    for one in trials.values():
        per_target = 1.0 / (one.n_targets * len(trials)) if by_story else 1.0 / all_targets
        per_other = 1.0 / (one.n_others * with_others if by_story else all_others) if one.n_others else 0.0
        scores.append(one.scores)
        miss_steps.append(np.where(one.targets, per_target, 0.0))
        fa_steps.append(np.where(one.targets, 0.0, per_other))
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
class StoryCost:
    """One story at the threshold of MinCost, and at its own best."""

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
    per_story: dict[str, StoryCost]
    curve: DetCurve = field(repr=False)
    skipped: tuple[str, ...] = ()  # stories without an on-topic document

    def story_costs(self) -> dict[str, float]:
        """What significance is tested on: each story's cost at the common threshold (section 6.2)."""
        return {story: one.cost for story, one in self.per_story.items()}


def evaluate_trials(
    trials: Mapping[str, Trials], *, costs: Costs | None = None, weighting: str = "topic", name: str = ""
) -> TdtEvaluation:
    """Everything about one system in one call. Stories without an on-topic document are left out, and named.

    Parameters
    ----------
    trials : mapping of story to Trials
    costs : Costs, optional
        By default TDT's.
    weighting : {"topic", "story"}
        Rates as means over stories, or of all trials pooled.
    name : str
        The system's, for tables.

    Returns
    -------
    TdtEvaluation
    """
    costs = costs or Costs()
    skipped = tuple(story for story, t in trials.items() if t.n_targets == 0)
    kept = {story: t for story, t in trials.items() if t.n_targets}
    if trials and not kept:
        raise ParameterError("no story has an on-topic document: nothing can be missed")
    curve = det_curve(kept, weighting)
    best = curve.best(costs)
    threshold, p_miss, p_fa = (float(each[best]) for each in (curve.thresholds, curve.p_miss, curve.p_fa))
    actual = _pooled([(t, *t.decided_rates()) for t in kept.values()], weighting)
    return TdtEvaluation(
        name=name,
        weighting=weighting,
        costs=costs,
        min_cost=float(costs.normalised(p_miss, p_fa)),
        threshold=threshold,
        p_miss=p_miss,
        p_fa=p_fa,
        actual_cost=float(costs.normalised(*actual)),
        actual_p_miss=actual[0],
        actual_p_fa=actual[1],
        per_story={story: _story_cost(t, threshold, costs) for story, t in kept.items()},
        curve=curve,
        skipped=skipped,
    )


def _story_cost(trials: Trials, threshold: float, costs: Costs) -> StoryCost:
    p_miss, p_fa = trials.rates(threshold)
    own = det_curve({"": trials})
    best = own.best(costs)
    return StoryCost(
        trials.n_targets,
        trials.n_others,
        p_miss,
        p_fa,
        float(costs.normalised(p_miss, p_fa)),
        float(costs.normalised(own.p_miss[best], own.p_fa[best])),
        float(own.thresholds[best]),
        float(costs.normalised(*trials.decided_rates())),
    )


def _pooled(rows: Sequence[tuple[Trials, float, float]], weighting: str) -> tuple[float, float]:
    if any(isnan(miss) for _, miss, _ in rows):
        return nan, nan
    miss_weights = [1.0 if weighting == "topic" else t.n_targets for t, _, _ in rows]
    fa_weights = [float(t.n_others > 0) if weighting == "topic" else t.n_others for t, _, _ in rows]
    miss = float(np.average([miss for _, miss, _ in rows], weights=miss_weights))
    fa = float(np.average([fa for _, _, fa in rows], weights=fa_weights)) if sum(fa_weights) else 0.0
    return miss, fa


def compare_trackers(run: TdtEvaluation, baseline: TdtEvaluation, tests: Iterable[str] = ("t", "sign")) -> Comparison:
    """Paired tests on the stories' costs, each system at its own threshold of MinCost. Lower cost is better: ``wins``
    are stories where ``run`` costs *more*."""
    return compare_values(
        run.story_costs(), baseline.story_costs(), names=(run.name, baseline.name), measure="C_track", tests=tests
    )
