"""Why a query found what it found: feedback documents, words, and a document's score taken apart.

Every score is   Σ_{w in D} a_w φ_w + (what needs no words)   with the symbols of weighting.py and
term_model.py, so it comes apart without a remainder:

    words        Σ a_w φ_w over the words of the model that the document has, one line each
    other words  g Σ p_w φ_w over the document's other words: they weigh as general English does
    smoothing    (Σ_w a_w) · log(1 - λ_D): general English's share of the document, larger in short ones
    constant     Σ_w a_w log p_w: the same for every document

    a_w  weight of a word, its share of the background included     φ_w  evidence of its count in the document
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sdretrieval.errors import InputError
from sdretrieval.ranking.base import Plan, Ranker, make_ranker
from sdretrieval.ranking.engine import Engine, Result
from sdretrieval.ranking.expansion import describe_weighting
from sdretrieval.ranking.feedback import Rows
from sdretrieval.ranking.lucene_models import LuceneRanker
from sdretrieval.ranking.parameters import domains
from sdretrieval.ranking.query import Query
from sdretrieval.records import Qrels, Ranking, Topic
from sdretrieval.snapshot import Snapshot

SHOWN, HEAD = 10, 100  # documents of the ranking in the text, and in the data
REFERENCE = 10  # without feedback, words are judged by what they bring to so many of the first documents
# Label and legend of what is not one word's.
PARTS = {
    "other_words": ("other words", "words outside the model, which weigh as general English does"),
    "smoothing": ("smoothing", "general English's share of the document"),
    "constant": ("constant", "the same for every document"),
}


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
    def from_words(self) -> float:
        return float(sum(word.contribution for word in self.words))

    @property
    def total(self) -> float:
        """The parts added up again: equals the score but for rounding."""
        return self.from_words + sum(self.parts.values())


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
    """Everything :func:`explain` found out. ``to_text()`` for people, ``to_json()`` for scripts."""

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
        return _plain(data)

    def to_text(self, width: int = 100, top: int = 20) -> str:
        """For a terminal of that width; ``top`` limits every table, and says what was left out."""
        sections = [_header(self, width), *([_feedback_table(self, width, top)] if self.feedback else [])]
        sections.append(_words_table(self, width, top))
        if self.documents:
            sections += [_document_table(self, document, width, top) for document in self.documents]
        else:
            sections.append(_ranking_table(self, width, top))
        if len(self.documents) == 2:
            sections.append(_differences_table(self, width, top))
        return "\n\n".join(sections)


# -- finding out -------------------------------------------------------------------------------------------


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

    ``docid``: take this document's score apart, and ``compare`` it with another's. ``judged``: relevance
    feedback, as in ``search``. ``run``: rerank these documents, as ``rerank`` does, instead of searching the
    collection. ``hits``: how deep a run would be; documents beyond it are ranked too, and it is said.
    """
    from sdretrieval.retrieval import Replay, _judgments, check_hits

    check_hits(hits)
    ranker = ranker if isinstance(ranker, Ranker) else make_ranker(ranker)
    asked = [_number_of(snapshot, name) for name in (docid, compare) if name is not None]
    query = Query.from_topic(snapshot, topic)
    engine = Engine(snapshot, threads=threads)
    candidates = None if run is None else _candidates(snapshot, run, topic.qid)
    (result,) = engine.rank(
        ranker,
        [query],
        hits=max(snapshot.n_docs, 1),
        candidates=None if candidates is None else {query.qid: candidates},
        judged=_judgments(snapshot, judged),
    )
    if not len(result.plan.model):
        raise _nothing_known(query, snapshot)
    ranks = {doc: rank for rank, doc in enumerate(result.docs.tolist(), 1)}
    first = _first_pass(engine, ranker, result, candidates)
    explainer = _Explainer(engine, result, ranks, first)
    base = ranker.base if isinstance(ranker, Replay) else ranker
    settings = {} if isinstance(ranker, Replay) else base.settings()
    defaults = {name: known.default for name, (known, _) in domains(base).items()}
    notes: dict[str, Any] = {"replayed": isinstance(ranker, Replay), "reranked": run is not None}
    if isinstance(base, LuceneRanker):
        notes["note"] = "Lucene's own scores are these in single precision"
    if result.expansion is not None:
        notes.update(result.expansion.notes)
    return Explanation(
        qid=query.qid,
        query=query.text,
        query_words=tuple(snapshot.vocabulary.take(query.terms)),
        unknown_words=query.unknown,
        model=base.name,
        settings=settings,
        changed_settings=tuple(name for name, value in settings.items() if value != defaults[name]),
        weighting=describe_weighting(result.plan.weighting),
        background=float(result.plan.model.background),
        judged=result.feedback is not None and result.feedback.judged,
        feedback=explainer.feedback(),
        words=explainer.words(),
        ranked=len(result.docs),
        hits=hits,
        first_documents=explainer.first_documents(hits),
        documents=tuple(explainer.document(doc) for doc in asked),
        notes=notes,
    )


def with_texts(explanation: Explanation, index: Path, top: int = 20) -> Explanation:
    """The same with titles or first words of the documents it shows, as far as the index stores them.

    Starts the JVM.
    """
    from sdretrieval.lucene.search import stored_document

    docids = [document.docid for document in explanation.documents]
    docids += [document.docid for document in _by_weight(explanation.feedback)[:top]]
    if not explanation.documents:
        docids += [document.docid for document in explanation.first_documents[: min(top, SHOWN)]]
    texts = {}
    for docid in dict.fromkeys(docids):
        text = title_of(stored_document(index, docid) or {})
        if text:
            texts[docid] = text
    return replace(explanation, texts=texts)


def title_of(fields: Mapping[str, Any], length: int = 80) -> str:
    """A document's title, or the beginning of its contents, on one line."""
    lower = {str(name).lower(): value for name, value in fields.items()}
    for name in ("title", "headline", "contents", "text", "body"):
        value = lower.get(name)
        if isinstance(value, str) and value.strip():
            text = " ".join("".join(c if c.isprintable() else " " for c in value).split())
            return text if len(text) <= length else text[: length - 1].rstrip() + "…"
    return ""


def _number_of(snapshot: Snapshot, docid: str) -> int:
    doc = snapshot.docids.find(docid)
    if doc < 0:
        like = f"Docids here look like {snapshot.docids[0]!r}." if snapshot.n_docs else None
        where = f"index {snapshot.name!r} ({snapshot.n_docs} documents)"
        raise InputError(f"docid {docid!r} is not in {where}", remedy=like)
    return doc


def _candidates(snapshot: Snapshot, run: Ranking, qid: str) -> np.ndarray:
    numbers = snapshot.docids.find_many(run.docids)
    if (numbers < 0).any():
        absent = run.docids[int(np.flatnonzero(numbers < 0)[0])]
        raise InputError(
            f"topic {qid!r}: docid {absent!r} of the run is not in index {snapshot.name!r} "
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
) -> tuple[np.ndarray, np.ndarray] | None:
    """Documents and scores of the first pass in rank order; of a reranked run, in its own order."""
    if result.expansion is None:
        return None
    plan = ranker.first(result.query, engine.statistics)
    if candidates is not None:
        return candidates, engine.score_docs(plan, candidates)
    ((docs, scores),) = engine.score_all([plan])
    return engine.top(docs, scores, len(docs))


class _Explainer:
    """Takes one result apart."""

    def __init__(
        self,
        engine: Engine,
        result: Result,
        ranks: dict[int, int],
        first: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        self.engine, self.snapshot, self.result, self.ranks = engine, engine.snapshot, result, ranks
        self.plan: Plan = result.plan
        self.p = engine.statistics.p
        self.terms = self.plan.model.terms
        self.weights = self.plan.model.folded(self.p).weights  # a_w
        self.in_query = np.isin(self.terms, result.query.terms)
        self.first: dict[int, tuple[int, float]] = {}
        if first is not None:
            pairs = zip(first[0].tolist(), first[1].tolist(), strict=True)
            self.first = {doc: (rank, score) for rank, (doc, score) in enumerate(pairs, 1)}
        self._strongest: np.ndarray | None = None

    def feedback(self) -> tuple[FeedbackDocument, ...]:
        feedback, expansion = self.result.feedback, self.result.expansion
        if feedback is None or expansion is None:
            return ()
        columns = feedback.docs, expansion.weights, feedback.scores
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return tuple(
            FeedbackDocument(
                self.snapshot.docids[doc], weight, self.first.get(doc, (None,))[0], score, self.ranks.get(doc)
            )
            for doc, weight, score in rows
        )

    def first_documents(self, hits: int) -> tuple[RankedDocument, ...]:
        head = slice(min(hits, HEAD))
        rows = zip(self.result.docs[head].tolist(), self.result.scores[head].tolist(), strict=True)
        return tuple(
            RankedDocument(self.snapshot.docids[doc], score, self.first.get(doc, (None,))[0]) for doc, score in rows
        )

    def words(self) -> tuple[ModelWord, ...]:
        contributions = self._mean_contributions()
        order = np.lexsort((self.terms, -np.abs(self.weights), -np.abs(contributions)))
        total = float(np.abs(self.weights).sum()) or 1.0
        columns = (self.weights, self.weights / total, self.p[self.terms], contributions, self.in_query)
        rows = zip(*(column[order].tolist() for column in columns), strict=True)
        names = self.snapshot.vocabulary.take(self.terms[order])
        return tuple(ModelWord(word, *row) for word, row in zip(names, rows, strict=True))

    def _mean_contributions(self) -> np.ndarray:
        """Σ_i W_i a_w φ_iw over feedback documents i, or over the first documents alike."""
        if self.result.feedback is not None and self.result.expansion is not None:
            docs, W = self.result.feedback.docs, self.result.expansion.weights
        else:
            docs = self.result.docs[:REFERENCE]
            W = np.full(len(docs), 1.0 / max(len(docs), 1))
        rows = Rows.of(self.snapshot, docs)
        place, known = self._places(rows.terms)
        of_row = np.repeat(np.arange(len(rows)), np.diff(rows.ptr))[known]
        evidence = self._evidence(rows.terms[known], rows.counts[known], rows.lengths[of_row])
        return np.bincount(
            place[known], weights=W[of_row] * self.weights[place[known]] * evidence, minlength=len(self.terms)
        )

    def document(self, doc: int) -> DocumentExplanation:
        snapshot, plan, model = self.snapshot, self.plan, self.plan.model
        span = slice(snapshot.doc_ptr[doc], snapshot.doc_ptr[doc + 1])
        terms, counts = np.asarray(snapshot.doc_terms[span]), np.asarray(snapshot.doc_counts[span])
        length = int(snapshot.doc_lengths[doc])
        evidence = self._evidence(terms, counts, np.full(len(terms), float(length)))
        place, known = self._places(terms)

        names = snapshot.vocabulary.take(terms[known])
        weights = self.weights[place[known]]
        contributions = weights * evidence[known]
        columns = (counts[known], weights, evidence[known], contributions, self.in_query[place[known]])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        words = [WordContribution(name, *row) for name, row in zip(names, rows, strict=True)]
        words.sort(key=lambda word: (-abs(word.contribution), word.word))
        absent = np.setdiff1d(self.terms, terms)
        for term in np.intersect1d(absent, self.result.query.terms):
            weight = float(self.weights[np.searchsorted(self.terms, term)])
            words.append(WordContribution(snapshot.term(int(term)), 0, weight, 0.0, 0.0, True))

        rank = self.ranks.get(doc)
        share = self.engine._share_part(plan, np.array([doc]))
        parts = {
            "other_words": model.background * float(self.p[terms[~known]] @ evidence[~known]),
            "smoothing": float(np.asarray(share).sum()),  # of one document
            "constant": plan.constant(self.engine.statistics),
        }
        first_rank, first_score = self.first.get(doc, (None, None))
        document = DocumentExplanation(
            docid=snapshot.docids[doc],
            rank=rank,
            score=0.0,
            length=length,
            words=tuple(words),
            parts={name: value for name, value in parts.items() if value},
            first_rank=first_rank,
            first_score=first_score,
            feedback_weight=self._feedback_weight(doc),
            absent=self._strongest_of(absent),
        )
        score = document.total if rank is None else float(self.result.scores[rank - 1])
        return replace(document, score=score)

    def _feedback_weight(self, doc: int) -> float | None:
        if self.result.feedback is None or self.result.expansion is None:
            return None
        (where,) = np.nonzero(self.result.feedback.docs == doc)
        return float(self.result.expansion.weights[where[0]]) if len(where) else None

    def _strongest_of(self, terms: np.ndarray, n: int = 10) -> tuple[str, ...]:
        """Those of the given terms that the model counts on most."""
        if self._strongest is None:
            order = np.lexsort((self.terms, -np.abs(self._mean_contributions())))
            self._strongest = self.terms[order]
        chosen = self._strongest[np.isin(self._strongest, terms)][:n]
        return tuple(self.snapshot.vocabulary.take(chosen))

    def _places(self, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where terms stand among the model's, and which of them do."""
        place = np.minimum(np.searchsorted(self.terms, terms), len(self.terms) - 1)
        return place, self.terms[place] == terms

    def _evidence(self, terms: np.ndarray, counts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """φ of each count, in documents of these lengths."""
        weighting, statistics = self.plan.weighting, self.engine.statistics
        A = weighting.term_factors(statistics, terms)
        B = weighting.doc_factors(statistics, lengths)
        return weighting.phi(counts, A, B)


# -- as text -----------------------------------------------------------------------------------------------


def bar(value: float, largest: float, width: int) -> str:
    """A bar of blocks, light ones for what counts against.

    >>> bar(3.0, 4.0, 8), bar(-2.0, 4.0, 8)
    ('██████', '░░░░')
    """
    if not largest > 0:
        return ""
    cells = min(abs(value) / largest, 1.0) * width
    if value < 0:
        return "░" * max(round(cells), 1)
    eighths = round(cells * 8)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def bar_table(header: Sequence[str], rows: Sequence[Sequence[str]], values: Sequence[float], width: int) -> str:
    """A table with a bar for one value per row, in what is left of the width; further rows have none."""
    from sdretrieval.evaluate.tables import text_table

    lines = text_table(header, rows).splitlines()
    # The last column is flush right, so the header is as wide as the table.
    room = min(width - len(lines[0]) - 5, 30)
    largest = max(map(abs, values), default=0.0)
    if room >= 5:
        for i, value in enumerate(values, 1):
            lines[i] = f"{lines[i]}   {bar(value, largest, room)}".rstrip()
    return "\n".join("  " + line for line in lines)


def significant(value: float, sign: bool = False) -> str:
    """Four significant digits without exponents where they can be done without.

    >>> significant(0.012345), significant(123.456), significant(1e-7, sign=True), significant(0)
    ('0.01235', '123.5', '+1.000e-07', '0')
    """
    if value == 0:
        return "0"
    form = "+" if sign else ""
    size = abs(value)
    if size < 1e-4 or size >= 1e7:
        return f"{value:{form}.3e}"
    return f"{value:{form}.{max(0, 3 - math.floor(math.log10(size)))}f}"


def column(name: str, values: Sequence[float], sign: bool = False) -> tuple[str, list[str]]:
    """Header and cells of a column to add up by eye: one number of decimals, five digits for the largest.

    Small numbers are given in thousandths, millionths and so on, and the header says so.

    >>> column("weight", [0.0000123456, 0.00000098])
    ('weight (×1e-6)', ['12.346', '0.980'])
    """
    largest = max(map(abs, values), default=0.0)
    if not largest:
        return name, ["0"] * len(values)
    exponent = 0
    if largest < 1e-3 or largest >= 1e7:
        exponent = 3 * math.floor(math.log10(largest) / 3)
        name = f"{name} (×1e{exponent})"
    places = min(max(4 - math.floor(math.log10(largest) - exponent), 0), 6)
    # Divided in two steps: the smallest floats have no finite inverse.
    half = 10.0 ** (exponent // 2)
    return name, [f"{v / half / 10.0 ** (exponent - exponent // 2):{'+' if sign else ''}.{places}f}" for v in values]


def _header(e: Explanation, width: int) -> str:
    settings = "  ".join(f"{name}={_short(e.settings[name])}" for name in e.changed_settings)
    if not e.notes.get("replayed"):
        settings = f"{settings}  (else its defaults)" if settings else "with its defaults"
    learnt = ""
    if e.feedback:
        given = "of the given run" if e.notes.get("reranked") else "of the first pass"
        where = "judged relevant" if e.judged else given
        learnt = f"{len(e.feedback)} documents {where}"
    elif e.notes.get("replayed"):
        learnt = "nothing: replayed from a saved expansion"
    query = " ".join(e.query.split())
    lines = [
        (f"Query {e.qid}", query),
        ("words", "  ".join(e.query_words)),
        ("not in the index", "  ".join(dict.fromkeys(e.unknown_words))),
        ("model", f"{e.model}  {settings}".rstrip()),
        ("ranked by", e.weighting + (f"  background {significant(e.background)}" if e.background else "")),
        ("learnt from", learnt),
        ("note", str(e.notes.get("note", ""))),
        ("EM", _em(e.notes)),
    ]
    labelled = [(label, text) for label, text in lines if text]
    margin = max(len(label) for label, _ in labelled) + 3
    return "\n".join(
        textwrap.fill(text, width, initial_indent=label.ljust(margin), subsequent_indent=" " * margin)
        for label, text in labelled
    )


def _em(notes: Mapping[str, Any]) -> str:
    bounds = notes.get("bounds") or []
    if not bounds:
        return ""
    state = "converged" if notes.get("converged") else "not converged"
    return f"{len(bounds)} iterations, {state}; bound {significant(bounds[0])} → {significant(bounds[-1])}"


def _by_weight(feedback: Sequence[FeedbackDocument]) -> list[FeedbackDocument]:
    return sorted(feedback, key=lambda d: -d.weight)


def _feedback_table(e: Explanation, width: int, top: int) -> str:
    shown = _by_weight(e.feedback)[:top]
    score_head, scores = column("first score", [d.first_score for d in shown])
    weight_head, weights = column("weight", [d.weight for d in shown])
    header = ["document", "first rank", score_head, "final rank", weight_head]
    rows = [
        [d.docid, _rank(d.first_rank), score, _rank(d.rank), weight]
        for d, score, weight in zip(shown, scores, weights, strict=True)
    ]
    table = bar_table(header, rows, [d.weight for d in shown], width)
    table = _with_texts(e, table, [d.docid for d in shown], width)
    rest = e.feedback[len(shown) :]
    if rest:
        left = 1.0 - sum(d.weight for d in shown)
        table += f"\n  … {len(rest)} more, with {significant(max(left, 0.0))} of the weight"
    return "Feedback documents\n" + table


def _words_table(e: Explanation, width: int, top: int) -> str:
    shown = e.words[:top]
    weight_head, weights = column("weight", [w.weight for w in shown])
    contribution_head, contributions = column("contribution", [w.contribution for w in shown])
    header = ["word", weight_head, "in collection", "lift", contribution_head]
    rows = [
        [_mark(w.word, w.in_query), weight, f"{w.collection:.6f}", _times(w.lift), contribution]
        for w, weight, contribution in zip(shown, weights, contributions, strict=True)
    ]
    what = "the feedback documents" if e.feedback else "the first documents"
    title = f"Words of the model, by what they bring to the score of {what}"
    table = bar_table(header, rows, [w.contribution for w in shown], width)
    if len(e.words) > len(shown):
        left = sum(w.contribution for w in e.words[len(shown) :])
        table += f"\n  … {len(e.words) - len(shown)} more words, bringing {significant(left)}"
    legend = "* in the query; lift: share of the model's weight / share in the collection"
    return "\n".join([title, table, *_wrapped(legend, width)])


def _ranking_table(e: Explanation, width: int, top: int) -> str:
    shown = e.first_documents[: min(top, SHOWN)]
    score_head, scores = column("score", [d.score for d in shown])
    header = ["document", "rank", score_head, *(["first rank"] if e.feedback else [])]
    rows = [
        [d.docid, f"{rank}", score, *([_rank(d.first_rank)] if e.feedback else [])]
        for rank, (d, score) in enumerate(zip(shown, scores, strict=True), 1)
    ]
    table = bar_table(header, rows, [], width)
    return f"First of {e.ranked} documents\n" + _with_texts(e, table, [d.docid for d in shown], width)


def _document_table(e: Explanation, d: DocumentExplanation, width: int, top: int) -> str:
    title = textwrap.fill(f"Document {d.docid}: {_standing(e, d)}", width, subsequent_indent="  ")
    text = [f"  {e.texts[d.docid]}"[:width]] if d.docid in e.texts else []
    words = [word for word in d.words if word.count]
    shown, rest = words[:top], words[top:]
    weight_head, weights = column("weight", [word.weight for word in shown])
    evidence_head, evidence = column("evidence", [word.evidence for word in shown])
    sums = {f"… {len(rest)} more words": sum(word.contribution for word in rest)} if rest else {}
    sums |= {_label(name): value for name, value in d.parts.items()} | {"score": d.score}
    contributions = [word.contribution for word in shown]
    contribution_head, cells = column("contribution", [*contributions, *sums.values()])
    rows = [
        [_mark(w.word, w.in_query), f"{w.count}", *numbers]
        for w, *numbers in zip(shown, weights, evidence, cells, strict=False)
    ]
    rows += [[f"  {label}", "", "", "", cell] for label, cell in zip(sums, cells[len(shown) :], strict=True)]
    header = ["word", "count", weight_head, evidence_head, contribution_head]
    lines = bar_table(header, rows, contributions, width).splitlines()
    lines.insert(-1, "  " + "─" * (len(lines[-1]) - 2))
    lines += _legend(d.parts, width)
    if d.absent:
        lines += _wrapped("the model also looks for, and it does not have: " + ", ".join(d.absent), width)
    return "\n".join([title, *text, *lines])


def _differences_table(e: Explanation, width: int, top: int) -> str:
    a, b = e.documents
    changes = e.differences()
    shown, rest = changes[:top], changes[top:]
    rows = [(c.word, f"{c.count_a}", f"{c.count_b}", c.contribution_a, c.contribution_b) for c in shown]
    if rest:
        more = sum(c.contribution_a for c in rest), sum(c.contribution_b for c in rest)
        rows.append((f"… {len(rest)} more words", "", "", *more))
    for name in dict.fromkeys([*a.parts, *b.parts]):
        rows.append((_label(name), "", "", a.parts.get(name, 0.0), b.parts.get(name, 0.0)))
    rows.append(("score", "", "", a.score, b.score))
    # One column after all, so that A, B and their difference have the same decimals.
    flat = [number for *_, x, y in rows for number in (x, y, x - y)]
    head, cells = column("brings", flat)
    header = ["word", "count A", "count B", f"{head} A", f"{head} B", "A - B"]
    table = [[*row[:3], *cells[3 * i : 3 * i + 3]] for i, row in enumerate(rows)]
    lines = bar_table(header, table, [c.difference for c in shown], width).splitlines()
    lines.insert(-1, "  " + "─" * (len(lines[-1]) - 2))
    return "\n".join([f"A = {a.docid} against B = {b.docid}, largest differences first", *lines])


def _label(part: str) -> str:
    return PARTS[part][0] if part in PARTS else part.replace("_", " ")


def _legend(parts: Mapping[str, float], width: int) -> list[str]:
    known = [": ".join(PARTS[name]) for name in parts if name in PARTS]
    return _wrapped("; ".join(known), width) if known else []


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="    ")


def _standing(e: Explanation, d: DocumentExplanation) -> str:
    if d.rank is not None:
        place = f"rank {d.rank} of {e.ranked}"
        if d.rank > e.hits:
            place += f" (beyond the first {e.hits})"
    elif e.notes.get("reranked"):
        place = "not among the documents of the run, so without a rank"
    else:
        place = "not ranked, for it has none of the model's words"
    parts = [place, f"score {significant(d.score)}"]
    if d.first_rank is not None:
        parts.append(f"rank {d.first_rank} in the {'given run' if e.notes.get('reranked') else 'first pass'}")
    if d.feedback_weight is not None:
        parts.append(f"feedback with weight {significant(d.feedback_weight)}")
    parts.append(f"{d.length} words long")
    return ", ".join(parts)


def _with_texts(e: Explanation, table: str, docids: Sequence[str], width: int) -> str:
    """Below each row, what its document is about."""
    if not e.texts:
        return table
    lines = table.splitlines()
    out = lines[:1]
    for line, docid in zip(lines[1:], docids, strict=True):
        out.append(line)
        if docid in e.texts:
            out.append(f"      {e.texts[docid]}"[:width])
    return "\n".join(out)


def _mark(word: str, in_query: bool) -> str:
    return f"{'*' if in_query else ' '} {word}"


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)


def _times(lift: float) -> str:
    return f"{significant(lift) if abs(lift) < 10 else f'{lift:.0f}'}×"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """For JSON: tuples as lists, NumPy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.item() if isinstance(value, np.generic) else value
