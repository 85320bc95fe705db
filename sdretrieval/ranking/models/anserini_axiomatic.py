"""Anserini's axiomatic feedback, dice and all: io.anserini.rerank.lib.AxiomReranker with -axiom.deterministic.

The pool is the feedback documents and as many others, drawn by java.util.Random from the documents in the order of
their docids, as make N R together. Only words of two letters [a-z] or more count, of the query too. Mutual information
is calculated in single precision, idf is the logarithm of a *whole* number, and weights are divided by the length of
the query. Anserini asks its queues for their length while it empties them, so it takes half of what they have at most.
Ties between terms are broken alphabetically. Lucene scores with one-byte document lengths in both passes.

Anserini draws forever where the collection has fewer than N R documents; here the pool is the collection then. Dice
know no emphasis: feedback documents weigh alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sdretrieval.core.errors import ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.index.statistics import Statistics
from sdretrieval.ranking.base import Expansion, Plan
from sdretrieval.ranking.feedback import Feedback, Rows, uniform
from sdretrieval.ranking.models.anserini import lucene_weighting, spelled
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.term_model import TermModel

if TYPE_CHECKING:
    from sdretrieval.ranking.models.axiomatic import Axiomatic

MOST_SIMILAR = 1000  # words kept for each word of the query
NEGLIGIBLE = 1e-8

# -- the pool ----------------------------------------------------------------------------------------------------


def java_random(seed: int, bound: int) -> Iterator[int]:
    """new java.util.Random(seed).nextInt(bound), again and again."""
    state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)
    while True:
        state = (state * 0x5DEECE66D + 0xB) & ((1 << 48) - 1)
        bits = state >> 17
        if bound & (bound - 1) == 0:
            yield (bound * bits) >> 31
        elif bits - bits % bound + bound - 1 < 1 << 31:  # else some numbers would come more often
            yield bits % bound


def drawn(model: Axiomatic, docs: np.ndarray, snapshot: Snapshot, allowed: np.ndarray | None) -> np.ndarray:
    """The documents of the pool that are not feedback."""
    order = np.asarray(snapshot.docids.order)
    order = order if allowed is None else order[allowed[order]]
    pool = set(docs.tolist())
    wanted = min(int(len(docs) * model.pool), len(pool | set(order.tolist()))) if len(docs) else 0
    dice = java_random(model.seed, max(len(order), 1))
    while len(pool) < wanted:
        pool.add(int(order[next(dice)]))
    return np.array(sorted(pool - set(docs.tolist())), dtype=np.int64)


# -- its words ---------------------------------------------------------------------------------------------------


def expand(model: Axiomatic, query: Query, feedback: Feedback, statistics: Statistics) -> Expansion:
    if feedback.contrast is None:
        raise ParameterError(
            "Anserini's axiomatic feedback draws documents from one index; over shards there are none to draw from",
            remedy="Leave mode=anserini out: --set mode=expected.",
        )
    totals: dict[int, float] = {}
    usable = spelled(statistics, "[a-z]{2,}", "axiomatic feedback")
    terms, document, word = _incidence((feedback.rows, feedback.contrast), usable)
    n_docs = len(np.unique(document))
    n_t = np.bincount(word, minlength=len(terms))
    for q, f in zip(query.terms.tolist(), query.counts.tolist(), strict=True):
        at = int(np.searchsorted(terms, q))
        if at == len(terms) or terms[at] != q:
            continue
        idf = np.float32(np.log((1 + statistics.n_docs) // statistics.df[q]))
        n_qt = np.bincount(word[np.isin(document, document[word == at])], minlength=len(terms))
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = float(idf * np.float32(model.beta) * np.float32(f)) * _information(n_t[at], n_t, n_qt, n_docs)
            scores /= _information(n_t[at], n_t[[at]], n_t[[at]], n_docs)
        scores[at] = idf * np.float32(f)
        for place in _polled(scores, MOST_SIMILAR, model.fb_terms):
            if scores[place] > NEGLIGIBLE:  # never so where it is not a number
                totals[int(terms[place])] = totals.get(int(terms[place]), 0.0) + float(scores[place])
    plan = Plan(_cut(totals, query, model.fb_terms), lucene_weighting(model.scoring, model))
    return Expansion(plan, uniform(len(feedback)))


def _incidence(parts: tuple[Rows, ...], usable: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The usable words of some documents, ascending; then the document and the place among the words of each entry."""
    rows = np.concatenate([part.terms for part in parts])
    lengths = np.concatenate([np.diff(part.ptr) for part in parts])
    kept = usable[rows]
    document = np.repeat(np.arange(len(lengths)), lengths)[kept]
    terms, word = np.unique(rows[kept], return_inverse=True)
    return terms, document, word


def _information(n_q: int, n_t: np.ndarray, n_qt: np.ndarray, n: int) -> np.ndarray:
    """I(q, t) from counts, probabilities in single precision."""

    def share(counts):
        return (np.float32(1.0) * np.asarray(counts).astype(np.float32)) / np.float32(n)

    total = np.zeros(len(n_t))
    q = {1: share(n_q), 0: share(n - n_q)}
    t = {1: share(n_t), 0: share(n - n_t)}
    both = {(0, 0): n - n_q - n_t + n_qt, (1, 0): n_q - n_qt, (0, 1): n_t - n_qt, (1, 1): n_qt}
    for (x, y), counts in both.items():
        p = share(counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = p * np.log((p / (q[x] * t[y])).astype(np.float64))
        total += np.where(p > 0, part, 0.0)
    return np.where((n_t == n) | (n_q == n), 0.0, total)


def _polled(scores: np.ndarray, most: int, fb_terms: int) -> np.ndarray:
    """Places of the best scores, as many as Anserini takes from its queue; ties go to the lower term."""
    order = np.argsort(-np.nan_to_num(scores, nan=np.inf), kind="stable")  # Java sorts what is no number first
    return order[: min((len(scores) + 1) // 2, max(most, fb_terms))]


def _cut(totals: dict[int, float], query: Query, fb_terms: int) -> TermModel:
    """The strongest words by the length of the query, in single precision; where there are none, the query itself."""
    terms = np.array(sorted(totals), dtype=np.int64)
    weights = np.array([totals[t] for t in terms.tolist()]) / max(query.length + len(query.unknown), 1.0)
    kept = np.sort(_polled(weights, 0, fb_terms)) if len(terms) else np.zeros(0, dtype=np.int64)
    model = TermModel(terms[kept], weights[kept].astype(np.float32).astype(np.float64))
    return model if len(model) else query.as_counts()
