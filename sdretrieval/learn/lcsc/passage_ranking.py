"""Passage-aware ranking: a document's model smoothed with its topics, and with the best passage around query words.

    θ^D_w = (|D| [(1-α) f_w/|D| + α Σ_k z̄_k D_wk] + μ p_w) / (|D| + μ)         the document, smoothed with its topics
    π^i_w = (c_w(i) + μ_P θ^D_w) / (Σ_j g(|i-j|) + μ_P)                        the passage around position i of it
    score = (1-γ) Σ_w f^Q_w log θ^D_w  +  γ max_i Σ_w f^Q_w log π^i_w

      z̄     the document's z made to sum to one; topics and words are those of a fitted topic model (LCSC)
      c_w(i) = Σ_j g(|i-j|) [w_j = w]: words around i, by a Gaussian kernel g of ``passage_bandwidth`` words
      i      runs over the positions of query words (the best passage has one at its centre, or close by)

With α = γ = 0 it is Dirichlet query likelihood, exactly. A document without a query word has no passage: its own score
counts for both. Positions come from the index's stored text, analysed again once and kept beside it
(``<index>.positions``); topics from ``<index>.topics``, which ``sdretrieval themes fit --index`` writes. A collection
made in memory has neither, and is ranked by whole documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sdretrieval.core.errors import IndexProblem, InputError
from sdretrieval.core.parameters import positive, share
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.models.query_likelihood import QueryLikelihood, mu_parameter
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.wrapper import Hooks, Others, Ranked, Wrapper

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from sdretrieval.index.snapshot import Snapshot
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding
    from sdretrieval.learn.lcsc.sequences import Sequences
    from sdretrieval.ranking.engine import Engine, Result

POSITIONS = "positions"  # kind of the file kept beside an index


@dataclass(frozen=True, kw_only=True)
class PassageRanker(Wrapper):
    """Query likelihood with topics in the document model (α) and the best passage mixed in (γ)."""

    name: ClassVar[str] = "passage"
    description: ClassVar[str] = "query likelihood smoothed with the document's topics and its best passage"
    uses_feedback: ClassVar[bool] = False

    mu: float = mu_parameter()
    topic_weight: float = share(0.0, "share of topics in the document's own words", "α", (0.0, 0.1, 0.2, 0.4))
    passage_weight: float = share(0.5, "share of the best passage in the score", "γ", (0.0, 0.2, 0.4, 0.6, 0.8))
    passage_bandwidth: float = positive(
        25.0, "words around a query word that make its passage", "h", high=1e5, grid=(10.0, 25.0, 50.0)
    )
    passage_mu: float = positive(
        100.0, "weight of the document's model in the passage's", "μ_P", high=1e9, grid=(50.0, 100.0, 300.0)
    )

    label: ClassVar[str] = "passage"
    rescores: ClassVar[bool] = True

    @property
    def ranker(self) -> QueryLikelihood:  # type: ignore[override]
        """Whole documents."""
        return QueryLikelihood(mu=self.mu)

    def around(self, other: Ranker) -> Ranker:
        return other  # a given plan has no document model that themes or passages could be mixed into

    def with_(self, **changes: Any) -> Ranker:
        return replace(self, **changes)

    def places(self, snapshot: Snapshot) -> Places | None:
        """Positions and themes of a collection; None for one in memory, which has none."""
        return None if snapshot.index is None else places_of_index(snapshot, self.topic_weight > 0)

    def hooks(self, engine: Engine) -> Hooks:
        wanted = self.topic_weight > 0 or self.passage_weight > 0
        return PassageHooks(self, self.places(engine.snapshot) if wanted else None)

    def scores(self, places: Places, engine: Engine, query: Query, docs: np.ndarray) -> np.ndarray:
        """The scores of documents, with themes and passages."""
        lengths = engine.snapshot.lengths_of(docs).astype(np.float64)
        counts = places.counts(query.terms, docs)
        alpha = self.topic_weight if places.topics is not None else 0.0
        own = (1.0 - alpha) * counts
        if alpha > 0:
            known, topics = places.topic_model(query.terms, docs)
            # a word that topics do not know, a document that has none: its own words count fully
            own = np.where(known, own + alpha * lengths[:, None] * topics, counts)
        p = engine.statistics.p[query.terms]
        theta = (own + self.mu * p) / (lengths + self.mu)[:, None]
        whole = np.log(theta) @ query.counts
        if self.passage_weight == 0:
            return whole
        from sdretrieval.learn.lcsc.contexts import best_passages  # only where it is needed

        best = best_passages(
            *places.occurrences(query.terms, docs),
            places.sequences.ptr,
            docs,
            theta,
            query.counts,
            whole,
            self.passage_bandwidth,
            self.passage_mu,
        )
        return (1.0 - self.passage_weight) * whole + self.passage_weight * best


class PassageHooks(Hooks):
    adjusts = True

    def __init__(self, wrapper: PassageRanker, places: Places | None) -> None:
        self.wrapper, self.collection = wrapper, places

    def adjusted(self, engine: Engine, result: Result, found: Ranked, others: Others | None) -> Ranked | None:
        places, (docs, _) = self.collection, found
        if places is None or not len(docs) or result.query.is_empty:
            return None
        return docs, self.wrapper.scores(places, engine, result.query, docs)


class Places:
    """Where each word stands in a collection, and the documents' topics; words and documents as in the snapshot."""

    def __init__(self, sequences: Sequences, topics: tuple[csr_matrix, csr_matrix] | None = None) -> None:
        self.sequences, self.topics = sequences, topics
        # positions of each word, in order: an inverted file
        self._order = np.argsort(sequences.tokens, kind="stable")
        sizes = np.bincount(sequences.tokens, minlength=len(sequences.vocabulary))
        self._ptr = np.concatenate([[0], np.cumsum(sizes)])

    def positions(self, term: int) -> np.ndarray:
        return self._order[self._ptr[term] : self._ptr[term + 1]]

    def counts(self, terms: np.ndarray, docs: np.ndarray) -> np.ndarray:
        """f_w: documents x terms."""
        result = np.zeros((len(docs), len(terms)))
        ptr = self.sequences.ptr
        for column, term in enumerate(terms.tolist()):
            places = self.positions(term)
            result[:, column] = np.searchsorted(places, ptr[docs + 1]) - np.searchsorted(places, ptr[docs])
        return result

    def occurrences(self, terms: np.ndarray, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All positions of query words in order, and which of the words stands there."""
        places = [self.positions(term) for term in terms.tolist()]
        where = np.concatenate(places) if places else np.zeros(0, dtype=np.int64)
        which = np.repeat(np.arange(len(terms)), [len(p) for p in places])
        order = np.argsort(where, kind="stable")
        return where[order], which[order]

    def topic_model(self, terms: np.ndarray, docs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_k z̄_k D_wk for documents x terms, and where there is one."""
        assert self.topics is not None
        z, by_word = self.topics
        rows = z[docs]
        known = (np.diff(rows.indptr) > 0)[:, None] & (np.diff(by_word.indptr)[terms] > 0)[None, :]
        return known, np.asarray((rows @ by_word[terms].T).todense())

    @classmethod
    def of(cls, sequences: Sequences, model: LocalContextSparseCoding | None = None) -> Places:
        """From sequences in the snapshot's vocabulary, and perhaps a fitted topic model."""
        if model is None:
            return cls(sequences)
        from scipy.sparse import csr_matrix, diags  # slow to import

        z = model.transform(sequences)
        totals = np.asarray(z.sum(axis=1)).ravel()
        z = csr_matrix(diags(np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0)) @ z)
        number = sequences.word_number
        rows = np.array([number.get(word, -1) for word in model.vocabulary_])
        D = model.dictionary_.tocoo()
        kept = rows[D.row] >= 0
        shape = (len(sequences.vocabulary), D.shape[1])
        by_word = csr_matrix((D.data[kept], (rows[D.row[kept]], D.col[kept])), shape=shape)
        return cls(sequences, (z, by_word))


def topics_file(index: Path) -> Path:
    """Where ``sdretrieval themes fit --index`` keeps the topics of an index."""
    return index.with_name(index.name + ".topics")


def places_of_index(snapshot: Snapshot, with_topics: bool) -> Places:
    assert snapshot.index is not None
    model_file = topics_file(snapshot.index)
    if with_topics and not model_file.is_file():
        raise IndexProblem(
            f"the index {snapshot.index} has no topics yet",
            remedy=f"Run `sdretrieval themes fit --index {snapshot.index}`, or pass --set topic_weight=0.",
        )
    stamp = model_file.stat().st_mtime_ns if with_topics else 0
    return _places_of_index(snapshot.index, snapshot.fingerprint, stamp)


@lru_cache(maxsize=4)
def _places_of_index(index: Path, fingerprint: str, stamp: int) -> Places:
    from sdretrieval.index.snapshot import open_snapshot  # only where it is needed
    from sdretrieval.learn.lcsc.model import LocalContextSparseCoding  # only where it is needed

    sequences = kept_sequences(open_snapshot(index))
    return Places.of(sequences, LocalContextSparseCoding.load(topics_file(index)) if stamp else None)


def kept_sequences(snapshot: Snapshot) -> Sequences:
    """The sequences of an index, from the file beside it where that is of the same index, or analysed and kept."""
    from sdretrieval.core.saved_arrays import check_indices, load_arrays, save_arrays  # only where it is needed
    from sdretrieval.learn.lcsc.sequences import Sequences, index_sequences  # only where it is needed

    assert snapshot.index is not None
    file = snapshot.index.with_name(snapshot.index.name + ".positions")
    words = tuple(snapshot.term(t) for t in range(snapshot.n_terms))
    docids = tuple(snapshot.docids[d] for d in range(snapshot.n_docs))
    try:
        header, arrays = load_arrays(file, POSITIONS)
        tokens, ptr = (arrays.get("tokens", np.zeros(0)), np.concatenate([[0], np.cumsum(snapshot.doc_lengths)]))
        if header.get("fingerprint") == snapshot.fingerprint and len(tokens) == ptr[-1]:
            check_indices(tokens, len(words), "tokens")
            return Sequences(tokens, ptr.astype(np.int64), words, docids)
    except (InputError, ValueError):
        pass  # not there, or not usable: it is only a copy
    made = index_sequences(snapshot)
    save_arrays(file, POSITIONS, {"fingerprint": snapshot.fingerprint}, {"tokens": made.tokens})
    return made
