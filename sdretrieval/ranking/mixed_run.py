"""A given run's own scores mixed with a model's, before any prior is added to them.

    (1-W) z(model's scores) + W z(run's scores)

z standardises over the topic's documents, since the two are on scales of their own. It stands inside what adds to
scores, time priors say, so that these are added to the mixture: at W = 1 to the run's scores alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.wrapper import Hooks, Others, Ranked, Wrapper, wrappers

if TYPE_CHECKING:
    from sdretrieval.ranking.engine import Engine, Result


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedRun(Wrapper):
    """A model whose scores are mixed with a run's: ``own`` are the run's scores by query and document number."""

    label: ClassVar[str] = "run"

    ranker: Ranker
    own: Mapping[str, Mapping[int, float]]
    weight: float

    @property
    def adds(self) -> bool:
        return True

    def settings(self) -> dict[str, Any]:
        return self.ranker.settings()

    def hooks(self, engine: Engine) -> Hooks:
        return MixedRunHooks(self)


class MixedRunHooks(Hooks):
    adjusts = True

    def __init__(self, wrapper: MixedRun) -> None:
        self.own, self.weight = wrapper.own, wrapper.weight

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked:
        (docs, scores), run = found, self.own[result.query.qid]
        given = np.array([run[doc] for doc in docs.tolist()])
        return docs, (1.0 - self.weight) * standardised(scores) + self.weight * standardised(given)


def standardised(scores: np.ndarray) -> np.ndarray:
    """Less their mean, in units of their standard deviation; zeros where all are equal."""
    spread = float(scores.std()) if len(scores) else 0.0
    return (scores - scores.mean()) / spread if spread > 0.0 and np.isfinite(spread) else np.zeros(len(scores))


def mixed_before_priors(ranker: Ranker, mixed: Callable[[Ranker], Ranker]) -> Ranker:
    """``mixed`` of all that is inside the wrappers that add to scores, in the same wrappers."""
    if isinstance(ranker, Wrapper) and any(wrapper.adds for wrapper in wrappers(ranker)):
        return ranker.around(mixed_before_priors(ranker.ranker, mixed))
    return mixed(ranker)
