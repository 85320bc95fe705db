"""Every model as a PyTerrier transformer over a Lucene index: a retriever and a re-ranker.

    >>> import pyterrier as pt                                                      # doctest: +SKIP
    >>> from sdretrieval.plugins.pyterrier import SDReranker, SDRetriever      # doctest: +SKIP
    >>> first = SDRetriever("indexes/cran", "bm25") % 100                           # doctest: +SKIP
    >>> pt.Experiment([first, first >> SDReranker("indexes/cran", "sd3")], …)       # doctest: +SKIP

PyTerrier is an extra: ``pip install 'sdretrieval[pyterrier]'``. Its own engine, Terrier, is not needed; a
pipeline that has both must start Java with both on board: see :func:`share_java_with_terrier`.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.collection.records import Topic
from sdretrieval.core.errors import InputError, JavaError
from sdretrieval.core.parameters import domains
from sdretrieval.core.progress import progress
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.plugins.common import check_missing, document_numbers, ranker_of, rescored, time_of
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.models.lucene_models import LuceneRanker
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.retrieval import as_snapshot, check_hits, search

try:
    import pandas as pd
    import pyterrier as pt
except ImportError as error:
    raise ImportError(
        f"{error}: the transformers need PyTerrier. Run `pip install 'sdretrieval[pyterrier]'`."
    ) from error


class _OverIndex(pt.Transformer):
    """What both have in common: an index opened at first use, a model, and its parameters for tuning."""

    index: str | os.PathLike[str] | Snapshot
    model: str | Ranker
    profile: str | None
    prune: int | None
    threads: int
    settings: dict[str, Any]

    @cached_property
    def ranker(self) -> Ranker:
        return ranker_of(self.model, self.profile, self.settings)

    @cached_property
    def snapshot(self) -> Snapshot:
        _require_anserini()
        return as_snapshot(self.index, self.ranker)

    @cached_property
    def _engine(self) -> Engine:
        return Engine(self.snapshot, threads=self.threads)

    def get_parameter(self, name: str) -> Any:
        """A parameter of the model, or an attribute of the transformer."""
        return getattr(self.ranker, name) if name in domains(self.ranker) else super().get_parameter(name)

    def set_parameter(self, name: str, value: Any) -> None:
        """Set a parameter of the model, or an attribute of the transformer (``pt.GridScan`` calls this)."""
        stale = ["ranker"]
        if name not in domains(self.ranker):
            super().set_parameter(name, value)
            stale += ["snapshot", "_engine"]
        elif isinstance(self.model, Ranker):
            self.model = self.model.with_(**{name: value})
        else:
            self.settings = {**self.settings, name: value}
        for cached in stale:
            self.__dict__.pop(cached, None)

    def schematic(self, *, input_columns: list[str] | None = None) -> dict[str, Any]:
        """How ``pt.schematic`` draws it. Without a ``help_url`` PyTerrier would look for one on its web site."""
        return {"label": self.ranker.name, "help_url": None}

    __hash__ = object.__hash__  # PyTerrier's is that of repr(), which changes while a grid sets parameters

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: they open the index themselves."""
        return {name: value for name, value in self.__dict__.items() if name not in ("snapshot", "_engine")}

    def __repr__(self) -> str:
        index = self.index if isinstance(self.index, Snapshot) else os.fspath(self.index)
        own = {p.name: p.default for p in inspect.signature(type(self).__init__).parameters.values()}
        keywords = {name: getattr(self, name) for name in own if name not in ("self", "index", "model", "settings")}
        changed = {name: value for name, value in keywords.items() if value != own[name]} | self.settings
        words = [repr(index), repr(self.model), *(f"{name}={value!r}" for name, value in changed.items())]
        return f"{type(self).__name__}({', '.join(words)})"

    def _queries(self, frame: pd.DataFrame) -> list[Query]:
        """One query a row, numbered by place: ``query_toks`` where there are any, else the text analysed.

        A column ``time`` has the times of asking, for models that know about time.
        """
        if "query_toks" in frame.columns:
            given = enumerate(frame["query_toks"])
            queries = [query_of_tokens(self.snapshot, tokens, str(i)) for i, tokens in given]
        else:
            topics = (Topic(str(i), str(text)) for i, text in enumerate(frame["query"]))
            queries = [Query.from_topic(self.snapshot, topic) for topic in topics]
        if "time" not in frame.columns:
            return queries
        return [
            query if pd.isna(time) else replace(query, time=time_of(time))
            for query, time in zip(queries, frame["time"].tolist(), strict=True)
        ]


class SDRetriever(_OverIndex):
    """Searches the whole collection: ``qid, query`` (or ``query_toks``) in, with ``docno, score, rank`` out.

    ``index`` is the path of a Lucene index (Anserini's, Pyserini's or ours). ``model`` is a name listed by
    ``sdretrieval models``, with ``settings`` as its parameters and ``profile`` as their starting values, or a
    Ranker. A query without a known word finds nothing. ``prune`` keeps only so many words of the final query.
    """

    def __init__(
        self,
        index: str | os.PathLike[str] | Snapshot,
        model: str | Ranker = "blend",
        *,
        num_results: int = 1000,
        profile: str | None = None,
        prune: int | None = None,
        threads: int = 1,
        **settings: Any,
    ) -> None:
        check_hits(num_results)
        self.index, self.model, self.num_results = index, model, num_results
        self.profile, self.prune, self.threads, self.settings = profile, prune, threads, settings
        _ = self.ranker  # a wrong name or value is told now, not in the middle of an experiment

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        with pt.validate.any(inp) as frame:
            frame.query_frame(extra_columns=["query"])
            frame.query_frame(extra_columns=["query_toks"])
        found = [] if inp.empty else list(self._found(inp))
        return _found_frame(inp, found)

    def _found(self, inp: pd.DataFrame) -> Iterator[tuple[list[str], np.ndarray]]:
        """Docids and scores for each row."""
        if isinstance(self.ranker, LuceneRanker) and "query_toks" not in inp.columns:
            topics = [Topic(str(i), str(text)) for i, text in enumerate(inp["query"])]
            run = search(self.snapshot, topics, self.ranker, hits=self.num_results)
            yield from ((ranking.docids, ranking.scores) for ranking in run.values())
            return
        results = self._engine.rank(
            self.ranker, self._queries(inp), RankOptions(hits=self.num_results, prune=self.prune)
        )
        for result in progress(results, total=len(inp), label="ranking", unit="topic"):
            yield self.snapshot.docids.take(result.docs), result.scores

    def fuse_rank_cutoff(self, k: int) -> SDRetriever | None:
        """``retriever % k`` as a retriever that looks for no more than k."""
        if k >= self.num_results or k < 1:
            return None
        fused = pt.inspect.transformer_apply_attributes(self, num_results=k)
        return fused if isinstance(fused, SDRetriever) else None


class SDReranker(_OverIndex):
    """Rescores the documents it is given: ``qid, query`` (or ``query_toks``), ``docno`` in, the same out.

    The first documents of each query are the feedback, by ``rank``, else by ``score``; where the frame has
    neither, the model's own first pass orders them. ``missing="drop"`` leaves out documents that are not in
    the index instead of raising an error. A query without a known word leaves its documents in their order.
    """

    def __init__(
        self,
        index: str | os.PathLike[str] | Snapshot,
        model: str | Ranker = "blend",
        *,
        missing: str = "error",
        profile: str | None = None,
        prune: int | None = None,
        threads: int = 1,
        **settings: Any,
    ) -> None:
        self.index, self.model, self.missing = index, model, check_missing(missing)
        self.profile, self.prune, self.threads, self.settings = profile, prune, threads, settings
        _ = self.ranker

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        with pt.validate.any(inp) as frame:
            frame.result_frame(extra_columns=["query"])
            frame.result_frame(extra_columns=["query_toks"])
        if inp.empty:
            return _rescored_frame(inp, [], [])
        groups = list(inp.groupby("qid", sort=False).indices.values())
        queries = self._queries(inp.iloc[[rows[0] for rows in groups]])
        candidates = {
            query.qid: self._candidates(query, inp.iloc[rows], rows)
            for query, rows in zip(queries, groups, strict=True)
        }
        results = self._results([q for q in queries if candidates[q.qid] and not q.is_empty], candidates)
        rows, scores = [], []
        for qid, documents in candidates.items():
            if qid in results:
                found = results[qid]
                rows.append(np.array([documents[number] for number in found.docs.tolist()], dtype=np.int64))
                scores.append(found.scores)
            else:
                rows.append(np.fromiter(documents.values(), np.int64, len(documents)))
                scores.append(-np.arange(len(documents), dtype=np.float64))
        return _rescored_frame(inp, rows, scores)

    def _results(self, queries: list[Query], candidates: Mapping[str, dict[int, int]]) -> dict[str, Result]:
        results = rescored(self._engine, self.ranker, queries, candidates, prune=self.prune)
        shown = progress(results, total=len(queries), label="ranking", unit="topic")
        return {result.query.qid: result for result in shown}

    def _candidates(self, query: Query, group: pd.DataFrame, rows: np.ndarray) -> dict[int, int]:
        """The frame's row numbers by document number, in the order of the first ranking."""
        docnos, where = group["docno"].astype(str).tolist(), f"query {group['qid'].iloc[0]!r}"
        numbers = document_numbers(self.snapshot, docnos, self.missing, where)
        known = np.flatnonzero(numbers >= 0)
        if "rank" in group.columns:
            key = group["rank"].to_numpy()[known]
        elif "score" in group.columns:
            key = -group["score"].to_numpy(dtype=np.float64)[known]
        elif query.is_empty:
            key = np.arange(len(known))
        else:
            first_pass = self.ranker.first(query, self.snapshot.statistics)
            key = -self._engine.score_docs(first_pass, numbers[known])
        order = known[np.argsort(key, kind="stable")]
        return dict(zip(numbers[order].tolist(), rows[order].tolist(), strict=True))


class SDIndex(pt.Artifact):
    """A Lucene index as an artifact of PyTerrier: loaded, shared, and asked for transformers and texts.

    >>> index = SDIndex("indexes/cran")                                                   # doctest: +SKIP
    >>> index.retriever("bm25") >> pt.text.get_text(index, ["text"])                      # doctest: +SKIP
    """

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "sdretrieval"
    ARTIFACT_PACKAGE_HINT = "sdretrieval[pyterrier]"

    def retriever(self, model: str | Ranker = "blend", **settings: Any) -> SDRetriever:
        """:class:`SDRetriever` over this index."""
        return SDRetriever(str(self.path), model, **settings)

    def reranker(self, model: str | Ranker = "blend", **settings: Any) -> SDReranker:
        """:class:`SDReranker` over this index."""
        return SDReranker(str(self.path), model, **settings)

    def text_loader(self, metadata: Any = "*", *, verbose: bool = False) -> pt.Transformer:
        """What ``pt.text.get_text`` asks for: stored fields by ``docno``; ``text`` and ``body`` are the contents."""
        return _TextLoader(str(self.path), metadata)


class _TextLoader(pt.Transformer):
    def __init__(self, index: str, metadata: Any) -> None:
        self.index, self.metadata = index, metadata

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        from sdretrieval.index.lucene.contents import stored_documents  # starts Java

        pt.validate.columns(inp, includes=["docno"])
        docnos = list(dict.fromkeys(inp["docno"].astype(str)))
        found = dict(zip(docnos, stored_documents(Path(self.index), docnos), strict=True))
        absent = [docno for docno, fields in found.items() if fields is None]
        if absent:
            raise InputError(
                f"no text of {absent[0]!r} is stored in {self.index} ({len(absent)} of {len(docnos)} documents)",
                remedy="Use the index the documents come from; it must store raw text (--store-raw).",
            )
        texts = {docno: self._named(fields or {}) for docno, fields in found.items()}
        names = [self.metadata] if isinstance(self.metadata, str) else list(self.metadata)
        if names == ["*"]:
            names = list(dict.fromkeys(name for fields in texts.values() for name in fields)) or ["text"]
        new = {name: [texts[docno].get(name) for docno in inp["docno"].astype(str)] for name in names}
        return inp.assign(**new)

    @staticmethod
    def _named(fields: Mapping[str, Any]) -> dict[str, Any]:
        text = fields.get("contents")
        return {"text": text, "body": text} | {n: v for n, v in fields.items() if n not in ("id", "contents")}


def _found_frame(queries: pd.DataFrame, found: Sequence[tuple[list[str], np.ndarray]]) -> pd.DataFrame:
    """The queries' columns, repeated for each document found."""
    counts = [len(docids) for docids, _ in found]
    frame = queries.iloc[np.repeat(np.arange(len(found)), counts)].reset_index(drop=True)
    frame["docno"] = pd.Series([docid for docids, _ in found for docid in docids], dtype=object)
    frame["score"] = np.concatenate([scores for _, scores in found]) if found else np.zeros(0)
    return _with_ranks(frame, counts)


def _rescored_frame(inp: pd.DataFrame, rows: list[np.ndarray], scores: list[np.ndarray]) -> pd.DataFrame:
    """The given rows, those of one query together and in their new order."""
    frame = inp.iloc[np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)].reset_index(drop=True)
    frame["score"] = np.concatenate(scores) if scores else np.zeros(0)
    return _with_ranks(frame, [len(part) for part in rows])


def _with_ranks(frame: pd.DataFrame, counts: Sequence[int]) -> pd.DataFrame:
    """Ranks from PyTerrier's first one, in the order of the rows: ties are decided as trec_eval does."""
    places = [np.arange(count) for count in counts]
    frame["rank"] = pt.model.FIRST_RANK + (np.concatenate(places) if places else np.zeros(0, dtype=np.int64))
    return frame


def query_of_tokens(snapshot: Snapshot, tokens: Mapping[str, float], qid: str) -> Query:
    """A query of weighted index terms, PyTerrier's ``query_toks``: the weights stand for counts."""
    known: dict[int, float] = {}
    unknown = []
    for token, weight in tokens.items():
        if not (math.isfinite(weight) and weight >= 0):
            raise InputError(f"query_toks: the weight of {token!r} must be 0 or more; got {weight!r}")
        term = snapshot.term_id(token)
        if term < 0:
            unknown.append(token)
        elif weight > 0:
            known[term] = float(weight)
    terms = np.array(sorted(known), dtype=np.int64)
    counts = np.array([known[term] for term in terms.tolist()], dtype=np.float64)
    return Query(qid, " ".join(tokens), terms, counts, tuple(unknown))


def share_java_with_terrier() -> None:
    """Have PyTerrier start Java with Anserini beside Terrier; call it before anything starts Java.

    Only for pipelines that also use Terrier's own transformers. Java must be 21 or later (``JAVA_HOME``).
    """
    from sdretrieval.core.anserini_jar import anserini_jar  # only where it is needed

    pt.java.add_jar(str(anserini_jar()))


def _require_anserini() -> None:
    """A clear word where Java was started without Anserini, as PyTerrier does for Terrier's transformers."""
    import jnius_config  # starts Java

    if not jnius_config.vm_running:
        return
    from jnius import JavaException, autoclass  # starts Java

    try:
        autoclass("io.anserini.index.IndexReaderUtils")
    except JavaException as error:
        raise JavaError(
            f"Java was started without Anserini, or is older than 21 ({error})",
            remedy="Call share_java_with_terrier() of this module before PyTerrier starts Java.",
        ) from error
