"""How many documents each shard is asked for, and how their answers become one list.

Where documents are dealt evenly a shard has about one in n of the best, and all of them from every shard would be n
times what is needed. So a shard is asked for a share that leaves room for chance. Shards order documents as the whole
list does: what a shard did not send comes after the last that it sent. Where that last one is itself among the best of
all, more may be missing, and the topic is asked again in full. The result is the same however documents are spread;
an uneven spread costs time until the shares have grown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sdretrieval.integrations.spark import packed
from sdretrieval.integrations.spark.requests import Hits
from sdretrieval.records import Ranking, rank_order
from sdretrieval.strings import PackedStrings

CHANCE = 5.0  # standard deviations above the mean, and as many documents
OFTEN = 0.05  # of the topics: where more than these are asked again, shares are doubled


class Shares:
    """How deep to ask each of n shards for the best documents of all."""

    def __init__(self, n_shards: int) -> None:
        self.n_shards, self.factor = n_shards, 1.0

    def of(self, depth: int) -> int:
        mean = depth / self.n_shards  # a binomial's, and its variance is a little less
        return min(depth, math.ceil(self.factor * (mean + CHANCE * math.sqrt(mean) + CHANCE)))

    def learn(self, topics: int, again: int) -> None:
        """Of so many topics, so many had to be asked again."""
        if again > OFTEN * topics:
            self.factor *= 2.0


@dataclass(frozen=True, eq=False)
class Merged:
    """The best documents of all shards, in rank order: shard and number there, docid, score."""

    shards: np.ndarray
    docs: np.ndarray
    docids: list[str]
    scores: np.ndarray

    @property
    def ranking(self) -> Ranking:
        if len(set(self.docids)) != len(self.docids):
            return Ranking(self.docids, self.scores)  # which says that a docid is there twice
        return Ranking.in_order(self.docids, self.scores)


def merged(parts: Sequence[tuple[int, Hits]], depth: int, share: int) -> Merged | None:
    """The best ``depth``, where each shard was asked for ``share``; None where a shard may have more of them."""
    scores = np.concatenate([part.scores for _, part in parts])
    docids: PackedStrings = packed.joined([part.docids for _, part in parts])
    order = rank_order(docids, scores, depth)
    sizes = [len(part.scores) for _, part in parts]
    if share < depth:
        last = np.cumsum(sizes)[np.array(sizes) == share] - 1
        if np.isin(last, order).any():
            return None
    shards = np.repeat([number for number, _ in parts], sizes)
    docs = np.concatenate([part.docs for _, part in parts]).astype(np.int64)
    return Merged(shards[order], docs[order], docids.take(order), scores[order])
