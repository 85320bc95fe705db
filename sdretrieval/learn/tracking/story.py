"""One story followed: what was learnt, kept as running sums of bounded size, and the model estimated from it.

:class:`Forgetting` lets what was learnt fade with age, by kernels in time: the thesis's models never forget.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Kernel, check_bandwidth
from sdretrieval.learn.tracking.stream_background import StreamDocument

Words = NDArray[np.int64]
Floats = NDArray[np.float64]


def _empty() -> Floats:
    return np.zeros(0)


@dataclass(frozen=True, eq=False, slots=True)
class Remembered:
    """A learnt document, kept only where old ones are to fade."""

    words: Words
    values: Floats
    mass: float
    log_weight: float
    time: int


@dataclass(eq=False)
class Story:
    """Running sums over the seeds and over the documents learnt, by word, and the estimate they give.

    seed, learnt   Σ weight · contribution of each word (story_models.py says what a document contributes)
    *_mass         Σ weight · mass; what the sums are divided by
    log_scale      learnt sums are relative to exp(log_scale), the largest weight so far (SD's weights span hundreds
                   of orders of magnitude); 0 for models whose weights are at most one
    weights, k, c  the estimate: score(D) = Σ_{w in D} weights_w e_w(D) + k b(D) + c
    """

    name: str
    words: Words = field(default_factory=lambda: np.zeros(0, np.int64))
    seed: Floats = field(default_factory=_empty)
    learnt: Floats = field(default_factory=_empty)
    seed_mass: float = 0.0
    learnt_mass: float = 0.0
    log_scale: float = -inf
    n_seeds: int = 0
    n_learnt: int = 0
    started: int | None = None  # time of the first seed
    memory: deque[Remembered] | None = None
    labelled: list[StreamDocument] = field(default_factory=list)  # kept only where their sums must be made anew
    weights: Floats = field(default_factory=_empty)
    k: float = 0.0
    c: float = 0.0

    def add_seed(self, words: Words, values: Floats, mass: float) -> None:
        places = self._places(words)  # first: it may make new arrays
        self.seed[places] += values
        self.seed_mass += mass
        self.n_seeds += 1

    def clear_seeds(self) -> None:
        """Empty the seed sums, to be filled again from the labelled documents."""
        self.seed = np.zeros(len(self.words))
        self.seed_mass, self.n_seeds = 0.0, 0

    def add_learnt(self, words: Words, values: Floats, mass: float, log_weight: float, *, relative: bool) -> None:
        """Add a document with its weight; ``relative``: keep the sums relative to the largest weight."""
        places = self._places(words)
        if relative:
            if log_weight > self.log_scale:
                shrink = exp(self.log_scale - log_weight)
                self.learnt *= shrink
                self.learnt_mass *= shrink
                self.log_scale = log_weight
            log_weight -= self.log_scale
        weight = exp(log_weight)
        self.learnt[places] += weight * values
        self.learnt_mass += weight * mass
        self.n_learnt += 1

    def clear_learnt(self) -> None:
        """Empty the learnt sums, to be filled again from memory."""
        self.learnt = np.zeros(len(self.words))
        self.learnt_mass, self.log_scale, self.n_learnt = 0.0, -inf, 0

    def keep(self, places: Words) -> None:
        """Drop all words but those at the given places (ascending)."""
        self.words, self.seed, self.learnt = self.words[places], self.seed[places], self.learnt[places]

    def _places(self, words: Words) -> Words:
        """Where the words stand, after making room for those that are new."""
        places = np.searchsorted(self.words, words)
        is_new = np.append(self.words, -1)[places] != words
        if is_new.any():
            room = places[is_new]
            self.words = np.insert(self.words, room, words[is_new])
            self.seed, self.learnt = np.insert(self.seed, room, 0.0), np.insert(self.learnt, room, 0.0)
            places = np.searchsorted(self.words, words)
        return places


@dataclass(frozen=True)
class Forgetting:
    """A document learnt an age r ago counts K(r/h) / K(0) of its weight. Seeds do not fade.

    Ages are taken when the story next learns: between two learnt documents a model does not move. At most ``remember``
    learnt documents are kept for each story, the oldest dropped first; this is what bounds the memory.
    """

    kernel: str = "exponential"
    bandwidth: float = 7 * 86_400_000.0  # ms
    remember: int = 200

    def __post_init__(self) -> None:
        Kernel(self.kernel)
        check_bandwidth(self.bandwidth, positive=True, finite=True)
        if self.remember < 1:
            raise ParameterError(f"remember must be 1 or more, got {self.remember}")

    def refill(self, story: Story, now: int, *, relative: bool) -> None:
        """Make the learnt sums anew from what is remembered, faded to ``now``."""
        assert story.memory is not None
        kernel = Kernel(self.kernel)
        peak = float(kernel(0.0))
        n_learnt = story.n_learnt
        story.clear_learnt()
        # Faded weights are small numbers like any others: relative sums are scaled to the largest of them, and the
        # seed's weight follows it, as in (6.20).
        for one in story.memory:
            fade = float(kernel(max(0, now - one.time) / self.bandwidth)) / peak
            if fade > 0.0:
                story.add_learnt(one.words, one.values, one.mass, one.log_weight + log(fade), relative=relative)
        story.n_learnt = n_learnt
