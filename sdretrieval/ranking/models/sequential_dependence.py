"""The sequential dependence model: neighbouring words of the query are evidence of their own where they stand together.

D. Metzler and W. B. Croft, A Markov random field model for term dependencies (SIGIR 2005); over BM25 as in Anserini's
io.anserini.search.query.SdmQueryGenerator.

    score(D) = (1-λ_O-λ_U) Σ_w f^Q_w φ(f_w) + λ_O Σ_i φ(o_i) + λ_U Σ_i φ(u_i)

    i      runs over neighbours in the query as typed, after analysis: q_i and q_i+1
    o_i    how often q_i+1 follows q_i in the document
    u_i    how often both stand within eight words, in any order
    φ      BM25's evidence of a count; a window has an idf of its own, by the documents that have it

A query has few such pairs, so they are looked up in all documents that have both words (index/positions.py), and what
they add is added to the scores that the words alone give.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import choice, share
from sdretrieval.index.positions import positions_of
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Plan, Ranker, register
from sdretrieval.ranking.models.bm25 import b_parameter, k1_parameter
from sdretrieval.ranking.pairs import PAPER
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.weighting import BM25, bm25_idf
from sdretrieval.ranking.wrapper import Hooks, Others, Ranked

if TYPE_CHECKING:
    from sdretrieval.ranking.engine import Engine, Result

ANSERINI = (1, 8, True)  # as PAPER


def ordered_parameter(default: float) -> float:
    return share(default, "of neighbours that follow each other", symbol="λ_O", grid=(0.0, 0.05, 0.1, 0.15, 0.2))


def near_parameter(default: float) -> float:
    return share(default, "of neighbours within eight words", symbol="λ_U", grid=(0.0, 0.05, 0.075, 0.1, 0.2))


def check_windows(model: Any) -> None:
    """Raise :class:`ParameterError` where the windows of a model leave its words nothing."""
    if model.ordered_weight + model.near_weight >= 1.0:
        raise ParameterError(
            f"{model.name}: ordered_weight and near_weight must add up to less than 1; got {model.ordered_weight} and "
            f"{model.near_weight}",
            remedy="What is left is the weight of the words themselves.",
        )


@dataclass(frozen=True, eq=False)
class Window:
    """What a pair of words in order, or near each other, adds to scores."""

    terms: tuple[int, int]
    ordered: bool
    docs: np.ndarray  # ascending
    evidence: np.ndarray


@register
@dataclass(frozen=True, kw_only=True)
class SequentialDependence(Ranker):
    """``mode=anserini``: one-byte lengths, and windows counted as Lucene's spans: a word may lie between, nine places
    are near, what is further apart counts less, and the idf of a window is the sum of its words'."""

    name: ClassVar[str] = "sdm"
    description: ClassVar[str] = "BM25 of words, of neighbouring words in order, and of those near each other"
    reads_positions: ClassVar[bool] = True

    mode: str = choice("exact", "windows as in the paper, or Anserini's variant", ("exact", "anserini"))
    ordered_weight: float = ordered_parameter(0.1)
    near_weight: float = near_parameter(0.05)
    k1: float = k1_parameter()
    b: float = b_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_windows(self)

    @property
    def weighting(self) -> BM25:
        return BM25(self.k1, self.b, lucene_lengths=self.mode == "anserini")

    def first(self, query: Query, statistics: Statistics) -> Plan:
        words = 1.0 - self.ordered_weight - self.near_weight if len(query.order) > 1 else 1.0
        return Plan(query.as_counts().scaled(words), self.weighting)

    def hooks(self, engine: Engine) -> Hooks:
        return WindowHooks(self)

    def windows(self, engine: Engine, query: Query) -> Iterator[Window]:
        """What neighbours add, in the query's order."""
        s = engine.snapshot
        for terms, times in Counter(pairwise(query.order)).items():
            if min(terms) < 0 or not self.ordered_weight + self.near_weight:
                continue
            first, second = (s.docs_of(term) for term in terms)
            docs = np.intersect1d(first, second, assume_unique=True)
            docs = docs if engine.allowed is None else docs[engine.allowed[docs]]
            how = ANSERINI if self.mode == "anserini" else PAPER
            in_order, near = (counts[:, 0] for counts in positions_of(s).counted(docs, np.array([terms]), *how))
            for ordered, counts, weight in ((True, in_order, self.ordered_weight), (False, near, self.near_weight)):
                found = counts > 0
                evidence = self._evidence(engine, terms, docs[found], counts[found])
                yield Window(terms, ordered, docs[found], times * weight * evidence)

    def _evidence(self, engine: Engine, terms: tuple[int, int], docs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """φ of a window in the documents that have it."""
        statistics, weighting = engine.statistics, self.weighting
        idf = bm25_idf(len(docs), statistics.n_docs)
        if self.mode == "anserini":
            idf = weighting.term_factors(statistics, np.unique(terms)).sum()
        return weighting.phi(counts, idf, weighting.doc_factors(statistics, engine.snapshot.lengths_of(docs)))


class WindowHooks(Hooks):
    """Adds what windows bring to the scores of the words."""

    adjusts = True

    def __init__(self, model: SequentialDependence) -> None:
        self.model = model

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        (docs, scores), added = found, np.zeros(engine.snapshot.n_docs)
        for window in self.model.windows(engine, result.query):
            added[window.docs] += window.evidence
        return docs, scores + added[docs]
