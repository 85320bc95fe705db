"""DET points against scikit-learn's ``det_curve``, pooled and topic-weighted (as sample weights)."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import det_curve as sklearn_det

from sdretrieval.learn.tracking.tdt import Trials, det_curve


def random_trials(seed: int, n_stories: int) -> dict[str, Trials]:
    rng = np.random.default_rng(seed)
    trials = {}
    for i in range(n_stories):
        n = int(rng.integers(20, 200))
        targets = rng.random(n) < 0.2
        targets[:2] = [True, False]
        scores = np.round(rng.normal(targets * 1.0), 2)  # rounded: with ties
        trials[f"t{i}"] = Trials(scores, targets)
    return trials


@pytest.mark.parametrize("weighting", ["story", "topic"])
@pytest.mark.parametrize(("seed", "n_stories"), [(0, 1), (1, 5), (2, 12)])
def test_points_are_those_of_scikit_learn(weighting: str, seed: int, n_stories: int) -> None:
    trials = random_trials(seed, n_stories)
    targets = np.concatenate([t.targets for t in trials.values()])
    scores = np.concatenate([t.scores for t in trials.values()])
    weights = np.concatenate(
        [
            np.where(t.targets, 1 / t.n_targets, 1 / t.n_others) if weighting == "topic" else np.ones(len(t.scores))
            for t in trials.values()
        ]
    )
    fpr, fnr, thresholds = sklearn_det(targets, scores, sample_weight=weights)
    ours = det_curve(trials, weighting)
    # scikit-learn drops points at both ends that say nothing new: all of its points must be among ours.
    rates = {float(threshold): i for i, threshold in enumerate(ours.thresholds)}
    assert len(thresholds) > 10
    for threshold, fa, miss in zip(thresholds, fpr, fnr, strict=True):
        i = rates[float(threshold)]
        assert (ours.p_fa[i], ours.p_miss[i]) == (pytest.approx(fa, abs=1e-12), pytest.approx(miss, abs=1e-12))
