"""When to stop: a lower bound of recall that may be looked at after every click, and certificates by random samples.

The derivation is in docs/JUDGING.md. ``found`` relevant documents of R in all are known, N documents are in the
collection. A hypothesis R ≥ r is bet against: whoever bets on "not relevant" at the odds that the hypothesis gives a
document drawn at random from the unseen gains nothing on average while it is true. A fortune of 1/α makes it false
with confidence 1 - α, at whatever click it comes about (Ville's inequality).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
from scipy.stats import hypergeom

from sdretrieval.core.errors import ParameterError

ASSUMPTION = "each document offered was at least as likely to be relevant as one drawn at random from those unseen"

CAUTION = 0.4  # of bets: a smaller one bets sooner after a relevant document, and loses more when another comes
MOST_AT_STAKE = 0.95


@dataclass(frozen=True)
class RecallBound:
    """``recall`` is at least this much, with ``confidence``, if ``assumption`` holds ("" where there is none)."""

    recall: float
    confidence: float
    found: int
    at_most: int  # relevant documents in all
    judged: int
    documents: int
    assumption: str = ASSUMPTION

    def __str__(self) -> str:
        given = f", if {self.assumption}" if self.assumption else ""
        return (
            f"recall is at least {self.recall:.0%} with {self.confidence:.0%} confidence{given}: "
            f"{self.found} found, at most {self.at_most} there are; {self.judged} of {self.documents} judged"
        )


def recall_bound(
    clicks: Sequence[bool], documents: int, confidence: float = 0.95, *, target: float = 0.95
) -> RecallBound:
    """The bound after these judgments, in the order in which the learner offered the documents.

    It holds whatever it comes to; ``target`` is the recall that it is to reach soonest.

    >>> recall_bound([True] * 8 + [False] * 80, 100).recall > 0.7
    True
    """
    check_share("confidence", confidence)
    check_share("target", target)
    relevant = np.asarray(clicks, dtype=bool)
    found, judged = int(relevant.sum()), len(relevant)
    bets = _Bets(relevant, documents, target)
    # The least total that is refuted, with all larger ones: fortunes grow with it.
    low, high = found, found + documents - judged + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bets.refutes(middle, 1 - confidence) else (middle, high)
    recall = found / low if low else 0.0
    return RecallBound(recall, confidence, found, low, judged, documents)


class _Bets:
    """The fortunes of bets against hypotheses, all laid alike: how much is at stake is decided before each click."""

    def __init__(self, relevant: np.ndarray, documents: int, target: float) -> None:
        self.before = np.concatenate([[0], np.cumsum(relevant)[:-1]]) if len(relevant) else np.zeros(0)
        self.unseen = documents - np.arange(len(relevant))
        self.relevant, self.stake = relevant, _stakes(relevant, documents, target)

    def refutes(self, total: int, alpha: float) -> bool:
        """Whether R ≥ total is refuted: its bettor had 1/α at some click."""
        return bool(len(self.relevant)) and float(self.fortune(total).max()) >= -np.log(alpha)

    def fortune(self, total: int) -> np.ndarray:
        """Logarithms of the fortune after each click."""
        p = np.clip((total - self.before) / self.unseen, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            won = np.log1p(np.where(p < 1, self.stake * p / (1 - p), np.inf))
            lost = np.log1p(-self.stake)
            steps = np.where(self.relevant, lost, np.where(self.stake > 0, won, 0.0))
        return np.cumsum(steps)


def _stakes(relevant: np.ndarray, documents: int, target: float) -> np.ndarray:
    """The share of the fortune that is lost should the next document be relevant, from the clicks before it.

    Kelly's share is 1 - q/p, for a chance q of a relevant document that the hypothesis puts at p. Here p is that of the
    least total that would make recall too small, and q falls with the documents since the last relevant one: nothing is
    at stake while the learner finds more than chance would."""
    clicks = np.arange(len(relevant))
    found = np.concatenate([[0], np.cumsum(relevant)[:-1]]) if len(relevant) else clicks
    last = (
        np.concatenate([[0], np.maximum.accumulate(np.where(relevant, clicks + 1, 0))[:-1]])
        if len(relevant)
        else clicks
    )
    p = (np.floor(found / target + 1e-9) + 1 - found) / (documents - clicks)
    q = CAUTION / (clicks - last + 2.0)
    return np.where(found > 0, np.clip(1.0 - q / p, 0.0, MOST_AT_STAKE), 0.0)


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
            self._reached = found + left < least or _Bets(clicks, self.documents, self.target).refutes(
                least, self.alpha
            )
        return self._reached and found > 0


# -- certificates --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Price:
    """What a certificate costs: a random sample of ``sample`` unseen documents, all of them judged.

    Should none of the sample be relevant, recall before it is at least ``target`` with ``confidence``; if ``hits`` of
    them are, what can be certified is less, and is told when the sample is judged."""

    sample: int
    unseen: int
    found: int
    target: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"{self.sample} documents drawn at random from {self.unseen} unseen, all to judge: if none is relevant, "
            f"recall is at least {self.target:.0%} with {self.confidence:.0%} confidence"
        )


def price(found: int, unseen: int, target: float, confidence: float = 0.95) -> Price:
    """How large a random sample must be for a certificate; no assumption about the learner is made.

    >>> price(found=40, unseen=1000, target=0.95).sample
    633
    """
    check_share("target", target)
    check_share("confidence", confidence)
    missing = floor(found / target + 1e-9) + 1 - found  # so many unseen ones, or more, would make recall too small
    if missing > unseen:
        return Price(0, unseen, found, target, confidence)
    low, high = 0, unseen
    while high - low > 1:
        middle = (low + high) // 2
        enough = hypergeom.cdf(0, unseen, missing, middle) <= 1 - confidence
        low, high = (low, middle) if enough else (middle, high)
    return Price(high, unseen, found, target, confidence)


def certificate(found: int, unseen: int, sample: int, hits: int, confidence: float = 0.95) -> RecallBound:
    """What a judged random sample of the unseen proves: ``hits`` of ``sample`` were relevant, ``found`` were known
    before. Recall counts the hits as found. True with ``confidence`` whatever the learner does."""
    check_share("confidence", confidence)
    if not 0 <= hits <= sample <= unseen:
        raise ParameterError(f"{hits} hits in a sample of {sample} from {unseen} documents is not possible")
    # The largest number of relevant ones among the unseen that so few hits do not refute.
    low, high = hits, unseen - (sample - hits) + 1
    while high - low > 1:
        middle = (low + high) // 2
        refuted = hypergeom.cdf(hits, unseen, middle, sample) <= 1 - confidence
        low, high = (low, middle) if refuted else (middle, high)
    at_most = found + low
    recall = (found + hits) / at_most if at_most else 1.0
    return RecallBound(recall, confidence, found + hits, at_most, sample, unseen, "")


def check_share(name: str, value: float) -> None:
    if not 0 < value < 1:
        raise ParameterError(f"{name} must be between 0 and 1; got {value}", remedy="For example 0.95.")


def least_found(total: int, recall: float) -> int:
    """How many of ``total`` make a recall.

    >>> least_found(20, 0.95)
    19
    """
    return ceil(recall * total - 1e-9)
