"""Letting what was learnt fade with age, by the kernels of sdretrieval.temporal: the thesis's models never forget."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from sdretrieval.errors import ParameterError
from sdretrieval.temporal.kernels import Kernel, check_bandwidth
from sdretrieval.tracking.topic import TopicState


@dataclass(frozen=True)
class Forgetting:
    """A document learnt an age r ago counts K(r/h) / K(0) of its weight. Seeds do not fade.

    Ages are taken when the topic next learns: between two learnt documents a model does not move. At most ``remember``
    learnt documents are kept for each topic, the oldest dropped first; this is what bounds the memory.
    """

    kernel: str = "exponential"
    bandwidth: float = 7 * 86_400_000.0  # ms
    remember: int = 200

    def __post_init__(self) -> None:
        Kernel(self.kernel)
        check_bandwidth(self.bandwidth, positive=True, finite=True)
        if self.remember < 1:
            raise ParameterError(f"remember must be 1 or more, got {self.remember}")

    def refill(self, topic: TopicState, now: int, *, relative: bool) -> None:
        """Make the learnt sums anew from what is remembered, faded to ``now``."""
        assert topic.memory is not None
        kernel = Kernel(self.kernel)
        peak = float(kernel(0.0))
        topic.forget_all()
        n_learnt = topic.n_learnt
        # Faded weights are small numbers like any others: relative sums are scaled to the largest of them, and the
        # seed's weight follows it, as in (6.20).
        for one in topic.memory:
            fade = float(kernel(max(0, now - one.time) / self.bandwidth)) / peak
            if fade > 0.0:
                topic.add_learnt(one.words, one.values, one.mass, one.log_weight + log(fade), relative=relative)
        topic.n_learnt = n_learnt
