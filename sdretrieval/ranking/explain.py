"""Why a query found what it found: feedback documents, words, and a document's score taken apart.

Every score is   Σ_{w in D} a_w φ_w + (what needs no words)   with the symbols of weighting.py and
term_model.py, so it comes apart without a remainder:

    words        Σ a_w φ_w over the words of the model that the document has, one line each
    other words  g Σ p_w φ_w over the document's other words: they weigh as general English does
    smoothing    (Σ_w a_w) · log(1 - λ_D): general English's share of the document, larger in short ones
    constant     Σ_w a_w log p_w: the same for every document
    'a b' …      what two neighbouring words of the query bring by standing together (sdm)

    a_w  weight of a word, its share of the background included     φ_w  evidence of its count in the document

How an explanation is laid out for a terminal is in cli/explain_text.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from sdretrieval.collection.records import Qrels, Ranking, Topic
from sdretrieval.core.errors import InputError
from sdretrieval.core.parameters import domains
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, RankOptions, Result
from sdretrieval.ranking.expansion import describe_weighting
from sdretrieval.ranking.feedback import Rows
from sdretrieval.ranking.models.lucene_models import LuceneRanker
from sdretrieval.ranking.models.sequential_dependence import SequentialDependence, Window
from sdretrieval.ranking.notes import AutoTimeNote, NoPositionsNote, TimeNote
from sdretrieval.ranking.pairs import REACH, pair_parts
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.retrieval import Replay, check_hits, judgments_of
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.wrapper import innermost

PART_WORDS = 8  # shown of each part of a blend
HEAD = 100  # documents of the ranking that are listed
REFERENCE = 10  # without feedback, words are judged by what they bring to so many of the first documents
ABSENT = 10  # words listed of those that a document lacks


@dataclass(frozen=True)
class FeedbackDocument:
    """A document the model learnt from; ``first_*``: in the first pass, ``rank``: in the end (None: none)."""

    docid: str
    weight: float
    first_rank: int | None
    first_score: float
    rank: int | None


@dataclass(frozen=True)
class RankedDocument:
    docid: str
    score: float
    first_rank: int | None  # in the first pass, of models that have two


@dataclass(frozen=True)
class ModelWord:
    """A word of the estimated model, against general English.

    ``weight`` a_w; ``share`` of the absolute weights of all the model's words; ``collection`` p_w;
    ``contribution``: what the word brings to the score of the feedback documents, on their weighted average
    (without feedback: of the first documents).
    """

    word: str
    weight: float
    share: float
    collection: float
    contribution: float
    in_query: bool

    @property
    def lift(self) -> float:
        """How many times its share in the model exceeds its share in the collection."""
        return self.share / self.collection


@dataclass(frozen=True)
class WordContribution:
    """``contribution`` = ``weight`` · ``evidence``; a query word that the document lacks has count 0."""

    word: str
    count: int
    weight: float
    evidence: float
    contribution: float
    in_query: bool


@dataclass(frozen=True)
class DocumentExplanation:
    """A document's score: Σ of the contributions of ``words`` (strongest first) and of ``parts``."""

    docid: str
    rank: int | None
    score: float
    length: int
    words: tuple[WordContribution, ...]
    parts: Mapping[str, float]
    first_rank: int | None = None
    first_score: float | None = None
    feedback_weight: float | None = None
    absent: tuple[str, ...] = ()  # the strongest words of the model that the document does not have

    @property
    def total(self) -> float:
        """The parts added up again: equals the score but for rounding."""
        return float(sum(word.contribution for word in self.words)) + sum(self.parts.values())


@dataclass(frozen=True)
class WordDifference:
    """What a word does for document A and for document B."""

    word: str
    count_a: int
    count_b: int
    contribution_a: float
    contribution_b: float

    @property
    def difference(self) -> float:
        return self.contribution_a - self.contribution_b


@dataclass(frozen=True)
class Explanation:
    """Everything :func:`explain` found out. ``to_json()`` for scripts."""

    qid: str
    query: str
    query_words: tuple[str, ...]
    unknown_words: tuple[str, ...]
    model: str
    settings: Mapping[str, Any]
    changed_settings: tuple[str, ...]  # those that are not the model's defaults
    weighting: str
    background: float
    judged: bool  # feedback was judged relevant
    feedback: tuple[FeedbackDocument, ...]
    words: tuple[ModelWord, ...]  # strongest contribution first
    ranked: int  # documents that have a rank
    hits: int
    first_documents: tuple[RankedDocument, ...]  # the head of the ranking
    documents: tuple[DocumentExplanation, ...] = ()  # the one asked about, and the one it is compared with
    notes: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # title or first words by docid, where asked for

    @property
    def document(self) -> DocumentExplanation | None:
        return self.documents[0] if self.documents else None

    def differences(self) -> tuple[WordDifference, ...]:
        """Between the two documents, word by word, largest first."""
        a, b = ({word.word: word for word in document.words} for document in self.documents)
        none = WordContribution("", 0, 0.0, 0.0, 0.0, False)
        pairs = [(word, a.get(word, none), b.get(word, none)) for word in {**a, **b}]
        changes = [WordDifference(w, x.count, y.count, x.contribution, y.contribution) for w, x, y in pairs]
        return tuple(sorted(changes, key=lambda c: (-abs(c.difference), c.word)))

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """Plain data; ``top`` limits the model's words, never a document's: those sum up to its score."""
        data = asdict(replace(self, words=()))
        data["words"] = [asdict(word) | {"lift": word.lift} for word in self.words[:top]]
        if len(self.documents) == 2:
            data["differences"] = [asdict(c) | {"difference": c.difference} for c in self.differences()]
        return json.loads(json.dumps(data, default=lambda value: value.tolist()))  # NumPy's numbers as Python's


def explain(
    snapshot: Snapshot,
    topic: Topic,
    ranker: Ranker | str,
    docid: str | None = None,
    threads: int = 1,
    hits: int = 1000,
    judged: Qrels | None = None,
    *,
    compare: str | None = None,
    run: Ranking | None = None,
) -> Explanation:
    """Rank one topic and say why.

    Parameters
    ----------
    snapshot, topic, ranker
        What is ranked, for which query, and by which model (or its name).
    docid, compare
        The document whose score is taken apart, and another to compare it with.
    threads, judged
        As in :func:`~sdretrieval.ranking.retrieval.search`.
    hits
        How deep a run would be. Documents beyond it are ranked too, and it is said.
    run
        Rerank these documents, as ``rerank`` does, instead of searching the collection.

    Returns
    -------
    Explanation
    """
    check_hits(hits)
    ranker = ranker if isinstance(ranker, Ranker) else make_ranker(ranker)
    asked = [_number_of(snapshot, name) for name in (docid, compare) if name is not None]
    query = Query.from_topic(snapshot, topic)
    engine = Engine(snapshot, threads=threads)
    candidates = None if run is None else _candidates(snapshot, run, topic.qid)
    options = RankOptions(
        hits=max(snapshot.n_docs, 1),
        candidates=None if candidates is None else {query.qid: candidates},
        judged=judgments_of(snapshot, judged),
    )
    (result,) = engine.rank(ranker, [query], options)
    if not len(result.plan.model):
        raise _nothing_known(query, snapshot)
    engine = engine.as_seen_by(ranker, query)
    if candidates is not None and engine.allowed is not None:
        candidates = candidates[engine.allowed[candidates]]
    model = innermost(ranker)
    is_replayed = isinstance(model, Replay)
    model = model.base if isinstance(model, Replay) else model
    windows = list(model.windows(engine, result.query)) if isinstance(model, SequentialDependence) else []
    explainer = Explainer(engine, result, _first_pass(engine, ranker, result, candidates), windows)
    settings = {} if is_replayed else model.settings()
    defaults = {name: known.default for name, (known, _) in domains(model).items()}
    notes: dict[str, Any] = {"replayed": is_replayed, "reranked": run is not None}
    if isinstance(model, LuceneRanker):
        notes["note"] = "Lucene's own scores are these in single precision"
    if result.expansion is not None:
        notes.update(result.expansion.notes)
        if "parts" in notes:  # of a blend
            notes["parts"] = {name: _words_of(part, snapshot) for name, part in notes["parts"].items()}
    if result.plan.pairs is not None:
        notes["neighbours"] = [" ".join(snapshot.vocabulary.take(pair)) for pair in result.plan.pairs.terms]
    if told := [str(note) for note in result.notes if isinstance(note, NoPositionsNote)]:
        notes["note"] = "; ".join(told)
    if told := [str(note) for note in result.notes if isinstance(note, TimeNote | AutoTimeNote)]:
        notes["time"] = "; ".join(told)
        notes["time_curve"] = [list(p) for note in result.notes for p in getattr(note, "curve", ())]
    if result.feedback is not None and result.feedback.judged and result.feedback.unjudged:
        notes["unjudged"] = result.feedback.unjudged
    return Explanation(
        qid=query.qid,
        query=query.text,
        query_words=tuple(snapshot.vocabulary.take(query.terms)),
        unknown_words=query.unknown,
        model=ranker.name,
        settings=settings,
        changed_settings=tuple(name for name, value in settings.items() if value != defaults[name]),
        weighting=describe_weighting(result.plan.weighting),
        background=float(result.plan.model.background),
        judged=result.feedback is not None and result.feedback.judged,
        feedback=explainer.feedback(),
        words=explainer.words(),
        ranked=len(result.docs),
        hits=hits,
        first_documents=explainer.first_documents(min(hits, HEAD)),
        documents=tuple(explainer.document(doc) for doc in asked),
        notes=notes,
    )


def _words_of(model: TermModel, snapshot: Snapshot) -> dict[str, float]:
    """The strongest words of a part of a blend, the strongest first."""
    strongest = model.strongest(PART_WORDS)
    order = np.argsort(-strongest.weights, kind="stable")
    return dict(zip(snapshot.vocabulary.take(strongest.terms[order]), strongest.weights[order].tolist(), strict=True))


def _number_of(snapshot: Snapshot, docid: str) -> int:
    doc = snapshot.docids.find(docid)
    if doc < 0:
        like = f"Docids here look like {snapshot.docids[0]!r}." if snapshot.n_docs else None
        where = f"index {snapshot.name!r} ({snapshot.n_docs} documents)"
        raise InputError(f"docid {docid!r} is not in {where}", remedy=like)
    return doc


def _candidates(snapshot: Snapshot, run: Ranking, qid: str) -> np.ndarray:
    numbers = snapshot.docids.find_many(run.docids)
    absent = np.flatnonzero(numbers < 0)
    if len(absent):
        raise InputError(
            f"topic {qid!r}: docid {run.docids[absent[0]]!r} of the run is not in index {snapshot.name!r} "
            f"({snapshot.n_docs} documents)",
            remedy="Give the index the run was made from.",
        )
    return numbers


def _nothing_known(query: Query, snapshot: Snapshot) -> InputError:
    if query.unknown:
        words = ", ".join(repr(word) for word in dict.fromkeys(query.unknown))
        return InputError(
            f"topic {query.qid!r}: no word of {query.text!r} is in index {snapshot.name!r}: {words}",
            remedy="Words are looked up after stemming. Try others, or check that it is the right index.",
        )
    return InputError(
        f"topic {query.qid!r}: nothing is left of {query.text!r} after analysis",
        remedy="It is empty, or has only stop words and punctuation.",
    )


def _first_pass(
    engine: Engine, ranker: Ranker, result: Result, candidates: np.ndarray | None
) -> dict[int, tuple[int, float]]:
    """Rank and score of documents in the first pass; of a reranked run, in its own order."""
    if result.expansion is None:
        return {}
    plan = ranker.first(result.query, engine.statistics)
    if candidates is not None:
        docs, scores = candidates, engine.score_docs(plan, candidates)
    else:
        ((docs, scores),) = engine.score_all([plan])
        docs, scores = engine.top(docs, scores, len(docs))
    return {doc: (rank, score) for rank, (doc, score) in enumerate(_rows(docs, scores), 1)}


def _rows(*columns: np.ndarray) -> Iterator[tuple]:
    return zip(*(column.tolist() for column in columns), strict=True)


class Explainer:
    """Takes one result apart."""

    def __init__(
        self, engine: Engine, result: Result, first: dict[int, tuple[int, float]], windows: Sequence[Window] = ()
    ) -> None:
        self.engine, self.snapshot, self.result, self.first = engine, engine.snapshot, result, first
        self.windows = windows
        self.is_adjusted = any(isinstance(note, TimeNote | AutoTimeNote) for note in result.notes)
        self.ranks = {doc: rank for rank, doc in enumerate(result.docs.tolist(), 1)}
        self.p = engine.statistics.p
        self.terms = result.plan.model.terms
        self.weights = result.plan.model.folded(self.p).weights  # a_w
        self.in_query = np.isin(self.terms, result.query.terms)
        # Feedback documents with their weights W and scores; none where the model has no feedback.
        self.learnt_from = self.W = self.first_scores = np.zeros(0)
        if result.feedback is not None and result.expansion is not None:
            self.learnt_from, self.first_scores = result.feedback.docs, result.feedback.scores
            self.W = result.expansion.weights

    def feedback(self) -> tuple[FeedbackDocument, ...]:
        return tuple(
            FeedbackDocument(self.snapshot.docids[doc], weight, self._first(doc)[0], score, self.ranks.get(doc))
            for doc, weight, score in _rows(self.learnt_from, self.W, self.first_scores)
        )

    def first_documents(self, n: int) -> tuple[RankedDocument, ...]:
        return tuple(
            RankedDocument(self.snapshot.docids[doc], score, self._first(doc)[0])
            for doc, score in _rows(self.result.docs[:n], self.result.scores[:n])
        )

    def _first(self, doc: int) -> tuple[int | None, float | None]:
        return self.first.get(doc, (None, None))

    def words(self) -> tuple[ModelWord, ...]:
        contributions = self._mean_contributions
        order = np.lexsort((self.terms, -np.abs(self.weights), -np.abs(contributions)))
        total = float(np.abs(self.weights).sum()) or 1.0
        columns = (self.weights, self.weights / total, self.p[self.terms], contributions, self.in_query)
        names = self.snapshot.vocabulary.take(self.terms[order])
        rows = _rows(*(column[order] for column in columns))
        return tuple(ModelWord(word, *row) for word, row in zip(names, rows, strict=True))

    @cached_property
    def _mean_contributions(self) -> np.ndarray:
        """Σ_i W_i a_w φ_iw over feedback documents i, or over the first documents alike."""
        docs, W = self.learnt_from, self.W
        if not len(docs):
            docs = self.result.docs[:REFERENCE]
            W = np.full(len(docs), 1.0 / max(len(docs), 1))
        rows = Rows.of(self.snapshot, docs)
        place, known = self._places(rows.terms)
        place, W = place[known], np.repeat(W, np.diff(rows.ptr))[known]
        contributions = W * self.weights[place] * self._evidence(rows)[known]
        return np.bincount(place, weights=contributions, minlength=len(self.terms))

    def document(self, doc: int) -> DocumentExplanation:
        snapshot, plan, rank = self.snapshot, self.result.plan, self.ranks.get(doc)
        row = Rows.of(snapshot, np.array([doc]))
        evidence = self._evidence(row)
        known = np.isin(row.terms, self.terms)
        share = self.engine.share_part(plan, np.array([doc]))
        parts = {
            "other_words": plan.model.background * float(self.p[row.terms[~known]] @ evidence[~known]),
            "smoothing": float(np.asarray(share).sum()),  # of one document
            "constant": plan.constant(self.engine.statistics),
            **self._window_parts(doc),
        }
        first_rank, first_score = self._first(doc)
        absent = np.setdiff1d(self.terms, row.terms)
        document = DocumentExplanation(
            docid=snapshot.docids[doc],
            rank=rank,
            score=0.0,
            length=int(snapshot.lengths_of(doc)),
            words=tuple(self._word_contributions(row, evidence, absent)),
            parts={name: value for name, value in parts.items() if value},
            first_rank=first_rank,
            first_score=first_score,
            feedback_weight=next(iter(self.W[self.learnt_from == doc].tolist()), None),
            absent=self._strongest_of(absent),
        )
        score = document.total if rank is None else float(self.result.scores[rank - 1])
        if self.is_adjusted:
            document = replace(document, parts={**document.parts, "time": score - document.total})
        elif plan.pairs is not None and rank is not None and rank > REACH:
            document = replace(document, parts={**document.parts, f"behind the first {REACH}": score - document.total})
        return replace(document, score=score)

    def _window_parts(self, doc: int) -> dict[str, float]:
        """What words bring by standing together, by pair: of the sequential dependence model, or the plan's pairs."""
        parts, pairs = {}, self.result.plan.pairs
        for window in self.windows:
            evidence = float(window.evidence[window.docs == doc].sum())
            parts[self._together(window.terms, window.ordered)] = evidence
        if pairs is not None and self.ranks.get(doc, 0) <= REACH:
            brought = pair_parts(self.engine, self.result.plan, np.array([doc]))
            for ordered, values in zip((True, False), brought, strict=True):
                for terms, value in zip(pairs.terms, values[0].tolist(), strict=True):
                    parts[self._together(terms, ordered)] = value
        return parts

    def _together(self, terms: Sequence[int], ordered: bool) -> str:
        pair = " ".join(self.snapshot.vocabulary.take(np.array(terms)))
        return f"'{pair}' {'in order' if ordered else 'near each other'}"

    def _word_contributions(self, row: Rows, evidence: np.ndarray, absent: np.ndarray) -> list[WordContribution]:
        """The model's words that the document has, strongest first, and the query's that it lacks."""
        place, known = self._places(row.terms)
        place, evidence = place[known], evidence[known]
        weights = self.weights[place]
        columns = (row.counts[known], weights, evidence, weights * evidence, self.in_query[place])
        names = self.snapshot.vocabulary.take(row.terms[known])
        words = [WordContribution(name, *values) for name, values in zip(names, _rows(*columns), strict=True)]
        words.sort(key=lambda word: (-abs(word.contribution), word.word))
        for term in np.intersect1d(absent, self.result.query.terms):
            weight = float(self.weights[np.searchsorted(self.terms, term)])
            words.append(WordContribution(self.snapshot.term(int(term)), 0, weight, 0.0, 0.0, True))
        return words

    def _strongest_of(self, terms: np.ndarray) -> tuple[str, ...]:
        """Those of the given terms that the model counts on most."""
        by_strength = self.terms[np.lexsort((self.terms, -np.abs(self._mean_contributions)))]
        chosen = by_strength[np.isin(by_strength, terms)][:ABSENT]
        return tuple(self.snapshot.vocabulary.take(chosen))

    def _places(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where terms stand among the model's, and which of them do."""
        place = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return place, self.terms[place] == terms

    def _evidence(self, rows: Rows) -> np.ndarray:
        """φ of each count of these documents."""
        weighting, statistics = self.result.plan.weighting, self.engine.statistics
        A = weighting.term_factors(statistics, rows.terms)
        B = weighting.doc_factors(statistics, np.repeat(rows.lengths, np.diff(rows.ptr)))
        return weighting.phi(rows.counts, A, B)
