"""An index to type queries into: the ten-line way in, and what the page, REST and MCP are made of.

    from sdretrieval import Index

    ix = Index.build("docs.jsonl", "indexes/mine", date="date")     # or Index("indexes/mine")
    hits = ix.search("oil tanker spill", k=10, since="2019-01-01")
    for hit in hits:
        print(hit.rank, hit.date, hit.title, hit.score)
    better = hits.feedback(relevant=[hits[0].docid], nonrelevant=[hits[3].docid])
    print(better.explain(hits[0].docid))

``as_of`` takes the collection as it was before a time (index/past.py): documents, statistics, feedback and words, all
of it. Given to :class:`Index` itself it is a ceiling that no search lifts.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from sdretrieval.collection.records import Qrels, Run, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.timeline import parse_duration
from sdretrieval.core.times import UNDATED, format_time, parse_time
from sdretrieval.index.lucene.contents import title_of
from sdretrieval.index.lucene.texts import StoredTexts
from sdretrieval.index.past import digest, past_snapshot
from sdretrieval.index.snapshot import Snapshot, open_snapshot
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.explain import DocumentExplanation, Explainer
from sdretrieval.ranking.pairs import PairHooks, pair_scores
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import judgments_of, replaying, search
from sdretrieval.ranking.snippets import Marker, Piece
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.time.period import Period
from sdretrieval.ranking.time.prior import make_prior
from sdretrieval.ranking.wrapper import innermost

if TYPE_CHECKING:
    import pandas

PASTS = 4  # collections as of earlier times that are kept
KEPT = 16  # results that are kept, for whoever asks why after searching
DEPTH = 200  # documents that are ranked at least: for what is drawn over time
TIME_PRIORS = ("none", "auto", "recency", "density")
_QID = "query"
_BODIES = ("contents", "text", "body")


@lru_cache(maxsize=64)
def _model(name: str, settings: tuple[tuple[str, Any], ...]) -> Ranker:
    """Models never change, and looking for those of installed packages takes longer than a search."""
    return make_ranker(name, dict(settings))


class NoDocument(InputError):
    """A docid that the collection does not have, as it is or as it was."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of an index. Times are ms since 1970.

    drop, weights   edits of the words that the model learnt, as expansions of queries have them (stemmed)
    bandwidth       of the time prior, ms, or "auto"
    """

    query: str
    model: str | Ranker = "blend"
    settings: tuple[tuple[str, Any], ...] = ()
    k: int = 10
    as_of: int | None = None
    since: int | None = None
    until: int | None = None
    time_prior: str = "none"
    time_weight: float | None = None
    bandwidth: float | str = "auto"
    relevant: tuple[str, ...] = ()
    nonrelevant: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    weights: tuple[tuple[str, float], ...] = ()

    @classmethod
    def of(cls, query: str, **given: Any) -> Request:
        """From values as people give them: times and lengths of time as text, lists, mappings."""
        for name in ("as_of", "since", "until"):
            if given.get(name) is not None:
                given[name] = _time(given[name], name)
        for name in ("relevant", "nonrelevant", "drop"):
            given[name] = tuple(given.get(name) or ())
        for name in ("settings", "weights"):
            given[name] = tuple((given.get(name) or {}).items())
        if isinstance(given.get("bandwidth"), str) and given["bandwidth"] != "auto":
            given["bandwidth"] = parse_duration(given["bandwidth"])
        return cls(query=query, **given)

    def ranker(self) -> Ranker:
        """The model asked for, in its wrappers."""
        ranker = self.model if isinstance(self.model, Ranker) else _model(self.model, self.settings)
        if self.time_prior not in TIME_PRIORS:
            raise ParameterError(f"no time prior {self.time_prior!r}", remedy=f"One of: {', '.join(TIME_PRIORS)}.")
        if self.time_prior != "none":
            from sdretrieval.ranking.time.wrappers import Auto, time_aware  # needs SciPy, which takes its time
        if self.time_prior == "auto":
            ranker = time_aware(ranker, prior=Auto())
        elif self.time_prior != "none":
            prior = make_prior(self.time_prior, bandwidth=self.bandwidth)
            ranker = time_aware(ranker, prior=prior, weight=self.time_weight)
        if self.since is None and self.until is None:
            return ranker
        return Period(ranker=ranker, since=self.since, until=self.until)

    def judged(self) -> Qrels:
        both = sorted(set(self.relevant) & set(self.nonrelevant))
        if both:
            raise ParameterError(f"{both[0]!r} is given as relevant and as not relevant")
        return Qrels({_QID: {**dict.fromkeys(self.relevant, 1), **dict.fromkeys(self.nonrelevant, 0)}})


class Index:
    """A Lucene index opened for searching by typing.

    Parameters
    ----------
    index : path or Snapshot
        Anserini's, Pyserini's or ours. A snapshot without an index has no texts.
    as_of : time, optional
        A ceiling: nothing of that time or later is seen by anything done with this object.
    date_field : str, optional
        As in :func:`~sdretrieval.index.snapshot.open_snapshot`.
    """

    def __init__(
        self, index: str | os.PathLike[str] | Snapshot, *, as_of: Any = None, date_field: str | None = None
    ) -> None:
        whole = index if isinstance(index, Snapshot) else open_snapshot(index, date_field=date_field)
        self._texts = None if whole.index is None else StoredTexts(whole.index)
        self.snapshot, self._numbers = whole, np.arange(whole.n_docs)
        self.ceiling: int | None = None
        self.marker = Marker(whole.analyze, keeps_first=whole.analyzer.language == "en")
        if as_of is not None:
            self._cut(_time(as_of, "as_of"))
        self._start()

    def _cut(self, before: int) -> None:
        """Let go of everything of that time or later."""
        self.snapshot, docs = _past(self.snapshot, before)
        self._numbers, self.ceiling = self._numbers[docs], before

    def _start(self) -> None:
        self._pasts: OrderedDict[int, Index] = OrderedDict()
        self._answers: OrderedDict[Request, Hits] = OrderedDict()
        self._lock = Lock()

    @classmethod
    def build(
        cls,
        source: Any,
        index: str | os.PathLike[str],
        *,
        date: str | None = None,
        overwrite: bool = False,
        **given: Any,
    ) -> Index:
        """Index documents and open the result.

        Parameters
        ----------
        source : path or paths
            JSON lines, TREC SGML, HTML, text, CSV, folders or archives of them.
        index : path
            The folder to make; with ``overwrite``, in the place of an index that is there.
        date : str, optional
            The field that holds a document's date.
        **given
            More about reading: ``docid``, ``contents``, ``format`` and so on, as
            :class:`~sdretrieval.collection.corpus.reading.Reader` has them.
        """
        sources = [source] if isinstance(source, str | os.PathLike) else list(source)
        from sdretrieval.collection.corpus.reading import Reader  # not needed to search, which starts sooner without
        from sdretrieval.index.lucene.indexing import build_index

        build_index(Reader(date=date, **given).read(sources), index, overwrite=overwrite)
        return cls(index)

    # -- what is in it -------------------------------------------------------------------------------------------
    @property
    def name(self) -> str:
        return self.snapshot.name

    def __len__(self) -> int:
        return self.snapshot.n_docs

    def __repr__(self) -> str:
        until = "" if self.ceiling is None else f" before {format_time(self.ceiling)}"
        return f"<Index {self.name}: {len(self)} documents{until}>"

    @cached_property
    def engine(self) -> Engine:
        return Engine(self.snapshot)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """The first and the last time of a document; None where none has a date."""
        times = np.asarray(self.snapshot.times)
        dated = times[times != UNDATED]
        return (int(dated.min()), int(dated.max())) if len(dated) else None

    @cached_property
    def certificate(self) -> dict[str, Any] | None:
        """What a collection as of a time consists of: the ceiling, and a digest of all that ranking sees."""
        if self.ceiling is None:
            return None
        return {
            "ceiling": format_time(self.ceiling),
            "statistics_sha256": digest(self.snapshot),
            "documents": self.snapshot.n_docs,
        }

    def at(self, as_of: Any) -> Index:
        """The collection as it was before a time; a few of them are kept. Never later than the ceiling."""
        return self._before(_time(as_of, "as_of"))

    def _before(self, before: int) -> Index:
        if self.ceiling is not None and before >= self.ceiling:
            return self
        with self._lock:
            past = self._pasts.pop(before, None) or self._as_it_was(before)
            self._pasts[before] = past
            while len(self._pasts) > PASTS:
                self._pasts.popitem(last=False)
        return past

    def _as_it_was(self, before: int) -> Index:
        past = Index.__new__(Index)
        past.snapshot, past._numbers, past._texts, past.marker = self.snapshot, self._numbers, self._texts, self.marker
        past._cut(before)
        past._start()
        return past

    # -- documents -----------------------------------------------------------------------------------------------
    def number(self, docid: str) -> int:
        """A document's number in the snapshot; an error that says what ids look like where it is not there."""
        doc = self.snapshot.docids.find(docid)
        if doc < 0:
            like = f"Docids here look like {self.snapshot.docids[0]!r}." if len(self) else None
            raise NoDocument(f"docid {docid!r} is not in index {self.name!r} ({len(self)} documents)", remedy=like)
        return doc

    def doc(self, docid: str) -> Document:
        """A document by its id."""
        return self.document(self.number(docid))

    def document(self, number: int) -> Document:
        """A document by its number in the snapshot."""
        fields = None if self._texts is None else self._texts.fields(int(self._numbers[number]))
        time = int(self.snapshot.times[number])
        return Document(
            self.snapshot.docids[number],
            None if time == UNDATED else format_time(time),
            fields or {},
            fields is not None,
        )

    # -- searching -----------------------------------------------------------------------------------------------
    def search(self, query: str, model: str | Ranker = "blend", *, k: int = 10, **given: Any) -> Hits:
        """The best documents for a query.

        Parameters
        ----------
        query : str
            As typed.
        model : str or Ranker
            A name that ``sdretrieval models`` lists, or a model.
        k : int
            How many documents.
        settings : mapping, optional
            Parameters of the model by name.
        as_of : time, optional
            The collection as it was before then.
        since, until : time, optional
            Only documents of that period; statistics are of the whole collection.
        time_prior, time_weight, bandwidth
            ``auto``, ``recency`` or ``density``; its weight and bandwidth (``"7d"``) where they are not to be found.
        relevant, nonrelevant : sequences of str
            Documents known to be so, by id.
        drop : sequence of str
            Words to leave out of what the model learnt.
        weights : mapping of str to float
            Words of what it learnt, or others, with weights of their own.

        Returns
        -------
        Hits
        """
        return self.ask(Request.of(query, model=model, k=k, **given))

    def ask(self, request: Request) -> Hits:
        """The answer to a request; the last few are kept."""
        if request.k < 1:
            raise ParameterError(f"k must be at least 1; got {request.k}")
        index = self if request.as_of is None else self._before(request.as_of)
        key = replace(request, as_of=None)
        with index._lock:
            known = index._answers.get(key)
        found = known or index._find(key)
        with index._lock:
            index._answers[key] = found
            index._answers.move_to_end(key)
            while len(index._answers) > KEPT:
                index._answers.popitem(last=False)
        return found

    def _find(self, request: Request) -> Hits:
        for docid in (*request.relevant, *request.nonrelevant):
            self.number(docid)
        query = Query.from_topic(self.snapshot, Topic(_QID, request.query, self._now))
        ranker, judged = request.ranker(), judgments_of(self.snapshot, request.judged())
        options = RankOptions(hits=max(request.k, DEPTH), judged=judged)
        (result,) = self.engine.rank(ranker, [query], options)
        if not (request.drop or request.weights):
            return Hits(self, request, ranker, result, result)
        plan = _edited(result.plan, self.snapshot, request)
        (edited,) = self.engine.rank(replaying(ranker, {_QID: plan}), [query], options)
        return Hits(self, request, ranker, edited, result)

    @property
    def _now(self) -> int | None:
        """The time of a query: where the collection ends."""
        if self.ceiling is not None:
            return self.ceiling
        return None if self.span is None else self.span[1]

    def search_topics(self, topics: Iterable[Topic], model: str | Ranker = "blend", **given: Any) -> Run:
        """A run of many topics, as :func:`sdretrieval.search` makes it."""
        return search(self.snapshot, topics, model, **given)


class Document:
    """A document as it was indexed: ``fields``, of which ``title`` and ``text`` are taken; ``stored`` or not."""

    def __init__(self, docid: str, date: str | None, fields: Mapping[str, Any], stored: bool) -> None:
        self.docid, self.date, self.fields, self.stored = docid, date, fields, stored

    def __repr__(self) -> str:
        return f"<Document {self.docid}: {self.title}>"

    @cached_property
    def title(self) -> str:
        return title_of(self.fields)

    @cached_property
    def text(self) -> str:
        lower = {str(name).lower(): value for name, value in self.fields.items()}
        return next((lower[name] for name in _BODIES if isinstance(lower.get(name), str)), "")

    @property
    def body(self) -> str:
        """The text after the title, where it begins with it."""
        title = self.title.removesuffix("…")
        return self.text.removeprefix(title) if len(title) < len(self.text) else self.text


class Hit:
    """One document of an answer."""

    def __init__(self, hits: Hits, place: int) -> None:
        self._hits, self._place = hits, place
        self.number, self.rank = int(hits.result.docs[place]), place + 1
        self.docid, self.score = hits.source.snapshot.docids[self.number], float(hits.result.scores[place])

    def __repr__(self) -> str:
        return f"<Hit {self.rank} {self.docid} {self.score:.4f} {self.title}>"

    @cached_property
    def document(self) -> Document:
        return self._hits.source.document(self.number)

    @property
    def date(self) -> str | None:
        return self.document.date

    @property
    def title(self) -> str:
        return self.document.title

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def snippet(self) -> list[Piece]:
        """The part of the text that shows best why it was found, in pieces that are marked or not."""
        return self._hits.source.marker.snippet(self.document.body, self._hits.marked)

    @property
    def time_adjustment(self) -> float | None:
        """What time added to the score; None where it plays no part."""
        added = self._hits.time_adjustments
        return None if added is None else float(added[self._place])


class Hits(Sequence[Hit]):
    """The answer to a request: the first ``k`` documents, and how the model came to them.

    ``result`` is what was ranked, ``learnt`` the same before words were edited; both go deeper than ``k``.
    """

    def __init__(self, source: Index, request: Request, ranker: Ranker, result: Result, learnt: Result) -> None:
        self.source, self.request, self.ranker, self.result, self.learnt = source, request, ranker, result, learnt

    def __len__(self) -> int:
        return min(self.request.k, len(self.result.docs))

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [Hit(self, i) for i in range(*place.indices(len(self)))]
        return Hit(self, range(len(self))[place])

    def __iter__(self) -> Iterator[Hit]:
        return (Hit(self, place) for place in range(len(self)))

    def __repr__(self) -> str:
        return f"<Hits for {self.request.query!r}: {len(self)} of {len(self.result.docs)} ranked>"

    def to_frame(self) -> pandas.DataFrame:
        """A data frame, a row for each hit. Needs pandas."""
        try:
            import pandas  # optional
        except ModuleNotFoundError:
            raise ParameterError("to_frame() needs pandas", remedy="pip install pandas") from None
        names = ("rank", "docid", "score", "date", "title", "text")
        return pandas.DataFrame([[getattr(hit, name) for name in names] for hit in self], columns=list(names))

    def feedback(self, relevant: Iterable[str] = (), nonrelevant: Iterable[str] = ()) -> Hits:
        """The same request, learning from these documents too."""
        judged = dict.fromkeys(self.request.relevant, True) | dict.fromkeys(self.request.nonrelevant, False)
        judged |= dict.fromkeys(relevant, True) | dict.fromkeys(nonrelevant, False)
        told = replace(
            self.request,
            relevant=tuple(docid for docid, good in judged.items() if good),
            nonrelevant=tuple(docid for docid, good in judged.items() if not good),
        )
        return self.source.ask(told)

    def explain(self, docid: str | None = None) -> DocumentExplanation:
        """A document's score taken apart; the first one's where none is named."""
        if docid is None and not len(self):
            raise InputError(f"nothing was found for {self.request.query!r}")
        number = int(self.result.docs[0]) if docid is None else self.source.number(docid)
        return self.explainer.document(number)

    @cached_property
    def explainer(self) -> Explainer:
        return Explainer(self.source.engine, replace(self.learnt, **_ranked(self.result)), {})

    @cached_property
    def marked(self) -> frozenset[str]:
        """The words that snippets mark: the query's own."""
        return frozenset(self.source.snapshot.vocabulary.take(self.result.query.terms))

    @cached_property
    def time_adjustments(self) -> np.ndarray | None:
        """What time added to each score; None where the model itself adds to the scores of its plan."""
        engine, plan, docs = self.source.engine, self.result.plan, self.result.docs
        adds = not isinstance(innermost(self.ranker).hooks(engine), PairHooks | None)
        if self.request.time_prior == "none" or adds or not len(docs):
            return None
        return self.result.scores - (engine.score_docs(plan, docs) + pair_scores(engine, plan, docs))


def _ranked(result: Result) -> dict[str, Any]:
    return {"docs": result.docs, "scores": result.scores, "plan": result.plan, "notes": result.notes}


def _edited(plan: Plan, snapshot: Snapshot, request: Request) -> Plan:
    """The plan without the words dropped, and with the weights given."""
    words = dict(zip(plan.model.terms.tolist(), plan.model.weights.tolist(), strict=True))
    for word, weight in request.weights:
        if not np.isfinite(weight):
            raise ParameterError(f"the weight of {word!r} must be a finite number; got {weight}")
        words[_term(snapshot, word)] = float(weight)
    for word in request.drop:
        words.pop(_term(snapshot, word), None)
    terms = np.array(sorted(words), dtype=np.int64)
    model = TermModel(terms, np.array([words[term] for term in terms.tolist()]), plan.model.background)
    return replace(plan, model=model, pairs=None if plan.pairs is None else plan.pairs.among(terms))


def _term(snapshot: Snapshot, word: str) -> int:
    term = snapshot.term_id(word)
    if term < 0:
        raise ParameterError(
            f"the word {word!r} is not in index {snapshot.name!r}",
            remedy="Words are written as the index has them, after stemming.",
        )
    return term


def _past(snapshot: Snapshot, before: int) -> tuple[Snapshot, np.ndarray]:
    if not snapshot.is_dated:
        raise InputError(
            f"as-of retrieval needs dated documents; index {snapshot.name!r} has none",
            remedy="Index again with the field that holds the date (--date-field).",
        )
    return past_snapshot(snapshot, before)


def _time(value: Any, name: str) -> int:
    try:
        return parse_time(value)
    except ValueError as error:
        raise ParameterError(f"{name}: {error}") from None
