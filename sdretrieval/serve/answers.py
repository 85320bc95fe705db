"""What is answered: plain data, from an Index and a request. REST, MCP and the page's JSON are these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite, isinf
from typing import Any

import numpy as np

from sdretrieval.core.parameters import Domain, domains
from sdretrieval.core.tables import as_much
from sdretrieval.core.timeline import DAY
from sdretrieval.core.times import UNDATED, format_time
from sdretrieval.estimate.time.density import silverman, weighted_kde
from sdretrieval.ranking.expansion import ExpandedQuery
from sdretrieval.ranking.feedback import Rows
from sdretrieval.ranking.interactive import DEPTH, TIME_PRIORS, Document, Hit, Hits, Index, Request
from sdretrieval.ranking.notes import AutoTimeNote, NoPositionsNote, TimeNote
from sdretrieval.ranking.registry import rankers
from sdretrieval.ranking.time.prior import Density
from sdretrieval.ranking.wrapper import innermost

WORDS = 60  # of a plan that are listed
POINTS = 128  # of a curve over time
TAUGHT = 8  # words listed of a feedback document
FIRST = 50  # documents that show where hits crowd in time, as many as a time prior goes by
LEARNT_FROM = 20  # feedback documents listed


def index_facts(index: Index) -> dict[str, Any]:
    """What there is to know of an index before searching it."""
    first, last = index.span or (None, None)
    return {
        "name": index.name,
        "documents": len(index),
        "dated": index.span is not None,
        "first_date": None if first is None else format_time(first),
        "last_date": None if last is None else format_time(last),
        "ceiling": None if index.ceiling is None else format_time(index.ceiling),
        "certificate": index.certificate,
        "models": model_facts(),
        "time_priors": list(TIME_PRIORS),
        "has_text": len(index) > 0 and index.document(0).stored,
    }


def model_facts() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": model.description,
            "feedback": bool(model.uses_feedback),
            "parameters": [_parameter(name, domain) for name, (_, domain) in domains(model).items()],
        }
        for name, model in rankers().items()
    ]


def _parameter(name: str, domain: Domain) -> dict[str, Any]:
    bounds = {key: value if isfinite(value) else None for key, value in (("low", domain.low), ("high", domain.high))}
    default = domain.default if not isinstance(domain.default, float) or isfinite(domain.default) else None
    return {"name": name, "default": default, **bounds, "choices": list(domain.choices), "help": domain.help}


def search_answer(index: Index, request: Request, *, snippets: bool = True) -> dict[str, Any]:
    """Hits, the words they were found by, what taught them, and their times."""
    hits = index.ask(request)
    return {
        "query": request.query,
        "model": innermost(hits.ranker).name,
        "settings": innermost(hits.ranker).settings(),
        "hits": [_hit(hit, snippets) for hit in hits],
        "words": _words(hits),
        "feedback": _feedback(hits),
        "note": " ".join(_notes(hits)),
        "time": _time(hits),
        "timeline": _timeline(hits),
        "candidates": _candidates(hits),
        "certificate": hits.source.certificate,
    }


def document_answer(index: Index, docid: str) -> dict[str, Any]:
    document = index.doc(docid)
    return {
        **named_document(document),
        "text": document.text,
        "fields": dict(document.fields),
        "certificate": index.certificate,
    }


def explain_answer(index: Index, request: Request, docid: str) -> dict[str, Any]:
    """A document's score, word by word, and which feedback documents taught which words."""
    hits = index.ask(request)
    explained = hits.explain(docid)
    static = sum(explained.parts.values())
    return {
        "docid": docid,
        "score": explained.score,
        "rank": explained.rank,
        "length": explained.length,
        "words": [
            {
                "term": word.word,
                "count": int(word.count),
                "weight": float(word.weight),
                "contribution": float(word.contribution),
                "part": "query" if word.in_query else "feedback",
            }
            for word in explained.words
        ],
        "absent": list(explained.absent),
        "static": static,
        "time": None if hits.time_adjustments is None else explained.score - explained.total,
        "taught": list(_taught(hits)),
        "certificate": hits.source.certificate,
    }


def run_text(index: Index, request: Request, tag: str = "") -> str:
    """The hits as lines of a TREC run."""
    hits = index.ask(request)
    tag = tag or hits.ranker.name
    return "".join(f"{_QID} Q0 {hit.docid} {hit.rank} {hit.score!r} {tag}\n" for hit in hits)


def expansion_text(index: Index, request: Request) -> str:
    """The query as it was expanded (and edited), to be replayed by ``search --expansion``."""
    hits = index.ask(request)
    return ExpandedQuery.of(hits.result, hits.source.snapshot, hits.ranker.name).to_line() + "\n"


_QID = "query"


# -- parts of an answer ------------------------------------------------------------------------------------------


def named_document(document: Document) -> dict[str, Any]:
    """What a list says of a document."""
    return {"docid": document.docid, "date": document.date, "title": document.title}


def _hit(hit: Hit, snippets: bool) -> dict[str, Any]:
    return {
        **named_document(hit.document),
        "rank": hit.rank,
        "score": hit.score,
        "snippet": [list(piece) for piece in hit.snippet] if snippets else [],
        "time_adjustment": hit.time_adjustment,
    }


def _words(hits: Hits) -> list[dict[str, Any]]:
    """The words of the plan, the strongest first; those dropped with the weight that they had."""
    words, snapshot, query = [], hits.source.snapshot, set(hits.result.query.terms.tolist())
    plan, learnt = hits.result.plan.model, hits.learnt.plan.model
    dropped = np.setdiff1d(learnt.terms, plan.terms)
    terms = np.concatenate([plan.terms, dropped])
    weights = np.concatenate([plan.weights, learnt.weights[np.searchsorted(learnt.terms, dropped)]])
    order = np.lexsort((terms, -np.abs(weights)))[: WORDS + len(dropped)]
    gone = set(dropped.tolist())
    for term, weight in zip(terms[order].tolist(), weights[order].tolist(), strict=True):
        part = "query" if term in query else "feedback"
        words.append({"term": snapshot.term(term), "weight": weight, "part": part, "dropped": term in gone})
    return words


def _teachers(hits: Hits) -> Iterator[tuple[int, float]]:
    """The documents the model learnt from and their weights, the most important first."""
    learnt = hits.learnt
    if learnt.feedback is None or learnt.expansion is None:
        return
    weights = learnt.expansion.weights
    for i in np.argsort(-weights, kind="stable")[:LEARNT_FROM].tolist():
        yield int(learnt.feedback.docs[i]), float(weights[i])


def _feedback(hits: Hits) -> list[dict[str, Any]]:
    documents = ((hits.source.document(doc), weight) for doc, weight in _teachers(hits))
    return [{"docid": doc.docid, "weight": weight, "title": doc.title} for doc, weight in documents]


def _taught(hits: Hits) -> Iterator[dict[str, Any]]:
    """The feedback documents with the learnt words that each has."""
    snapshot, model = hits.source.snapshot, hits.learnt.plan.model
    for doc, weight in _teachers(hits):
        row = Rows.of(snapshot, np.array([doc]))
        shared, _, place = np.intersect1d(row.terms, model.terms, return_indices=True)
        strongest = shared[np.argsort(-model.weights[place], kind="stable")][:TAUGHT]
        yield {"docid": snapshot.docids[doc], "weight": weight, "terms": snapshot.vocabulary.take(strongest)}


def _notes(hits: Hits) -> Iterator[str]:
    """In plain sentences: what is unknown, how far feedback held back and why, what the time prior chose."""
    if hits.result.query.unknown:
        yield f"Not in the index: {', '.join(dict.fromkeys(hits.result.query.unknown))}."
    expansion = hits.learnt.expansion
    if expansion is not None and "best" in expansion.notes:
        yield _held_back(expansion.notes)
    if hits.learnt.feedback is not None and hits.learnt.feedback.judged:
        n = len(hits.learnt.feedback) - hits.learnt.feedback.unjudged
        yield f"Learnt from {n} {'document' if n == 1 else 'documents'} judged relevant."
    for note in hits.result.notes:
        if isinstance(note, NoPositionsNote):
            yield f"Ranked by {note}."
        elif isinstance(note, AutoTimeNote):
            yield f"The time prior chose {note}."
        elif isinstance(note, TimeNote):
            yield f"The {note.prior} prior has weight {note.weight:.2f} and bandwidth {note.bandwidth}."


def _held_back(notes: Mapping[str, Any]) -> str:
    query, best = notes["query_weight"], notes["best"]
    return (
        f"The query as typed has {100 * query:.0f} % of the weight, words learnt {100 * (1 - query):.0f} %: "
        f"the best feedback document scores {best['query']:.3g} by the one, {best['feedback']:.3g} by the other, "
        f"which may count {as_much(notes['feedback_weight'])}, and does where all estimates agree."
    )


def _time(hits: Hits) -> dict[str, Any] | None:
    """Where the ranked documents lie in time, and what the prior adds where."""
    times = np.asarray(hits.source.snapshot.times)[hits.result.docs[:DEPTH]]
    dated = times != UNDATED
    known = times[dated].astype(np.float64)
    if len(known) < 2 or hits.source.span is None:
        return None
    note = next((note for note in hits.result.notes if isinstance(note, TimeNote | AutoTimeNote)), None)
    h = note.bandwidth_ms if isinstance(note, TimeNote) else inf
    low, high = (float(edge) for edge in hits.source.span)
    prior = hits.time_adjustments
    return {
        "density": _density(known[:FIRST], low, high, h if hits.request.time_prior == "density" else inf),
        "prior": [] if prior is None else _curve(known, prior[: len(times)][dated]),
        "kind": hits.request.time_prior,
        "weight": None if note is None else note.weight,
        "bandwidth_days": None if isinf(h) else h / DAY,
        "query_time": None if hits.result.query.time is None else format_time(hits.result.query.time),
    }


def _density(times: np.ndarray, low: float, high: float, h: float) -> list[list[Any]]:
    """The density of times, as multiples of an even spread over the collection."""
    if not high > low:
        return []
    at = np.linspace(low, high, POINTS)
    if isinf(h):  # then as the density prior begins
        h = Density.narrower * silverman(times, kernel="gaussian")
    h = max(h, (high - low) / POINTS)
    values = weighted_kde(times, None, at, "gaussian", h, (low, high)) * (high - low)
    return [[format_time(int(t)), float(value)] for t, value in zip(at, values, strict=True)]


def _curve(times: np.ndarray, added: np.ndarray) -> list[list[Any]]:
    """What time adds, along time: at some of the documents."""
    order = np.argsort(times, kind="stable")
    some = order[np.unique(np.linspace(0, len(order) - 1, POINTS).astype(int))]
    return [[format_time(int(times[i])), float(added[i])] for i in some]


def _timeline(hits: Hits) -> list[dict[str, Any]]:
    snapshot, docs = hits.source.snapshot, hits.result.docs[:DEPTH]
    times, docids = np.asarray(snapshot.times)[docs].tolist(), snapshot.docids.take(docs)
    rows: Sequence[tuple[int, tuple[int, str]]] = list(enumerate(zip(times, docids, strict=True), 1))
    return [
        {"date": format_time(time), "docid": docid, "rank": rank} for rank, (time, docid) in rows if time != UNDATED
    ]


def _candidates(hits: Hits) -> int:
    """How many documents have a word of the query."""
    snapshot, request = hits.source.snapshot, hits.request
    has = np.zeros(snapshot.n_docs, dtype=bool)
    for term in hits.result.query.terms.tolist():
        has[snapshot.docs_of(term)] = True
    times = np.asarray(snapshot.times)
    if request.since is not None:
        has &= times >= request.since
    if request.until is not None:
        has &= (times < request.until) & (times != UNDATED)
    return int(has.sum())
