"""One topic followed: what was learnt, kept as running sums of bounded size, and the model estimated from it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import exp, inf

import numpy as np
from numpy.typing import NDArray

from sdretrieval.tracking.documents import StreamDocument

Floats = NDArray[np.float64]


def _none() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False, slots=True)
class Remembered:
    """A learnt document, kept only where old ones are to fade."""

    words: NDArray[np.int64]
    values: Floats
    mass: float
    log_weight: float
    time: int


@dataclass(eq=False)
class TopicState:
    """Running sums over the seeds and over the documents learnt, by word, and the estimate they give.

    seed, learnt   Σ weight · contribution of each word (models.py says what a document contributes)
    *_mass         Σ weight · mass; what the sums are divided by
    log_scale      learnt sums are relative to exp(log_scale), the largest weight so far (SD's weights span hundreds
                   of orders of magnitude); 0 for models whose weights are at most one
    weights, k, c  the estimate: score(D) = Σ_{w in D} weights_w e_w(D) + k b(D) + c
    """

    name: str
    words: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    seed: Floats = field(default_factory=_none)
    learnt: Floats = field(default_factory=_none)
    seed_mass: float = 0.0
    learnt_mass: float = 0.0
    log_scale: float = -inf
    n_seeds: int = 0
    n_learnt: int = 0
    started: int | None = None  # time of the first seed
    memory: deque[Remembered] | None = None
    labelled: list[StreamDocument] = field(default_factory=list)  # kept only where their sums must be made anew
    weights: Floats = field(default_factory=_none)
    k: float = 0.0
    c: float = 0.0

    def add_seed(self, words: NDArray[np.int64], values: Floats, mass: float) -> None:
        places = self._places(words)  # first: it may make new arrays
        self.seed[places] += values
        self.seed_mass += mass
        self.n_seeds += 1

    def clear_seeds(self) -> None:
        """Empty the seed sums, to be filled again from the labelled documents."""
        self.seed = np.zeros(len(self.words))
        self.seed_mass, self.n_seeds = 0.0, 0

    def add_learnt(
        self, words: NDArray[np.int64], values: Floats, mass: float, log_weight: float, *, relative: bool
    ) -> None:
        """Add a document with its weight; ``relative``: keep the sums relative to the largest weight."""
        places = self._places(words)
        if relative:
            if log_weight > self.log_scale:
                shrink = exp(self.log_scale - log_weight)
                self.learnt *= shrink
                self.learnt_mass *= shrink
                self.log_scale = log_weight
            weight = exp(log_weight - self.log_scale)
        else:
            weight = exp(log_weight)
        self.learnt[places] += weight * values
        self.learnt_mass += weight * mass
        self.n_learnt += 1

    def forget_all(self) -> None:
        """Empty the learnt sums, to be filled again from memory."""
        self.learnt = np.zeros(len(self.words))
        self.learnt_mass, self.log_scale = 0.0, -inf

    def keep(self, places: NDArray[np.int64]) -> None:
        """Drop all words but those at the given places (ascending)."""
        self.words, self.seed, self.learnt = self.words[places], self.seed[places], self.learnt[places]

    def _places(self, words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the words stand, after making room for those that are new."""
        from sdretrieval.tracking.loops import merge

        union, old, places = merge(self.words, words)
        if len(union) > len(self.words):
            seed, learnt = np.zeros(len(union)), np.zeros(len(union))
            seed[old], learnt[old] = self.seed, self.learnt
            self.words, self.seed, self.learnt = union.copy(), seed, learnt
        return places
