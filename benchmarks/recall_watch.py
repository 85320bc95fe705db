"""When the bound of recall would have stopped a simulation: looked at after every click."""

from __future__ import annotations

from math import floor

import numpy as np

from sdretrieval.learn.judging.simulation import Played
from sdretrieval.learn.judging.stopping import Bets, check_share


class RecallWatch:
    """Click by click: is recall ``target`` by now? Sooner told than by :func:`recall_bound`, and the same."""

    def __init__(self, documents: int, target: float, confidence: float = 0.95) -> None:
        check_share("target", target)
        check_share("confidence", confidence)
        self.documents, self.target, self.alpha = documents, target, 1 - confidence
        self._clicks: list[bool] = []
        self._reached = False

    def click(self, relevant: bool) -> bool:
        """Whether the bound is at the target after one more judgment."""
        self._clicks.append(relevant)
        clicks = np.array(self._clicks)
        found = int(clicks.sum())
        if relevant or not self._reached:  # what was refuted once stays so until more is found
            least = floor(found / self.target + 1e-9) + 1
            left = self.documents - len(clicks)
            self._reached = found + left < least or Bets(clicks, self.documents, self.target).refutes(least, self.alpha)
        return self._reached and found > 0


def stops(played: Played, target: float, confidence: float = 0.95) -> tuple[int, bool]:
    """Where the bound first says that recall is ``target``, in clicks, and whether it is true there."""
    watch = RecallWatch(played.documents, target, confidence)
    for n, hit in enumerate(played.hits.tolist(), 1):
        if watch.click(hit):
            return n, played.recall_at(n) >= target
    return played.documents, True
