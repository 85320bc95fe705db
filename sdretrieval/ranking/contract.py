"""The battery that every ranking model passes, the built-in ones and yours::

    from sdretrieval.ranking.contract import check_ranker

    def test_my_model():
        check_ranker(MyRanker)                   # with its defaults
        check_ranker(MyRanker, smoothing="jm")   # with other settings

Each entry of :data:`CHECKS` is one promise about a model, tried on a small collection made in memory: no index, no
Java. The collection has twins (documents with the same words), an empty document, and fewer documents than most
models want as feedback.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import FrozenInstanceError, is_dataclass
from typing import Any

import numpy as np

from sdretrieval.collection.records import rank_order
from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import Domain, domains, parse_settings
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Ranker
from sdretrieval.ranking.engine import Engine, Judgments, RankOptions, Result
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker, rankers

WORDS = (
    "wing flow lift drag mach shock heat wake jet layer wall slab cone body plate sound speed angle shear "
    "blunt nose tail gas skin flap spin roll yaw thrust noise"
).split()
QUERIES = (["wing", "flow"], ["shock", "shock", "heat", "unheard-of"], ["noise"])
CLOSE = 1e-9  # how far scores may be apart, of the largest, where additions happen in another order


class ContractError(AssertionError):
    """A model broke one of the promises."""


def check_ranker(ranker_class: type[Ranker], *, skip: Collection[str] = (), **settings: Any) -> None:
    """Raise :class:`ContractError` for the first promise the model does not keep.

    ``settings`` are parameters of the model. ``skip`` names checks that do not apply, e.g. ``["spelling"]`` for a
    model that looks at the letters of words.
    """
    unknown = set(skip) - set(CHECKS)
    if unknown:
        raise ParameterError(f"no check named {min(unknown)!r}", remedy=f"One of: {', '.join(CHECKS)}.")
    for name in CHECKS:
        if name not in skip:
            run_check(name, ranker_class, settings)


def run_check(name: str, ranker_class: type[Ranker], settings: Mapping[str, Any]) -> None:
    """One check by its name: for test parametrisation."""
    if not (isinstance(ranker_class, type) and issubclass(ranker_class, Ranker)):
        raise ContractError(f"{ranker_class!r} is not a subclass of Ranker")
    try:
        # Arithmetic that is only right by accident counts as broken.
        with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise", over="raise"):
            warnings.simplefilter("error", RuntimeWarning)
            CHECKS[name](ranker_class(**settings))
    except Exception as error:
        label = ", ".join(f"{key}={value}" for key, value in settings.items()) or "defaults"
        raise ContractError(f"{ranker_class.__name__} ({label}) fails {name!r}: {error or repr(error)}") from error


# -- the collection ----------------------------------------------------------------------------------------------


def collection(rows: Sequence[int] | None = None, words: Sequence[str] = WORDS) -> Snapshot:
    """Twelve documents over thirty words; ``rows`` chooses and orders documents, ``words`` renames."""
    counts = np.zeros((12, len(WORDS)), dtype=np.int64)
    for d in range(10):
        for w in range(len(WORDS)):
            counts[d, w] = max(0, (d * d * 7 + w * 13 + d * w * 5) % 11 - 6)
    counts[10] = counts[4]  # twins
    # 11 stays empty
    docids = [f"doc{(d * 5) % 12:02d}" for d in range(12)]
    rows = range(12) if rows is None else rows
    # A turn of all words after another, each as long as there are some left.
    turns = [[words[w] for t in range(9) for w in np.flatnonzero(counts[d] > t).tolist()] for d in rows]
    return Snapshot.from_words(turns, [docids[d] for d in rows])


def _queries(snapshot: Snapshot, texts: Sequence[Sequence[str]] = QUERIES) -> list[Query]:
    return [Query.from_words(snapshot, words, qid=str(i)) for i, words in enumerate(texts)]


def _rank(ranker: Ranker, snapshot: Snapshot, texts: Sequence[Sequence[str]] = QUERIES, **options: Any) -> list[Result]:
    engine = Engine(snapshot, threads=options.pop("threads", 1))
    return list(engine.rank(ranker, _queries(snapshot, texts), RankOptions(**options)))


def _docids(snapshot: Snapshot, result: Result) -> list[str]:
    return snapshot.docids.take(result.docs)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ContractError(message)


def _require_close(found: np.ndarray, wanted: np.ndarray, message: str) -> None:
    tolerance = 1e-12 + CLOSE * float(np.abs(wanted).max(initial=0.0))
    worst = float(np.abs(found - wanted).max(initial=0.0))
    _require(worst <= tolerance, f"{message}: scores differ by {worst:.3g}")


def _require_same(first: Sequence[Result], second: Sequence[Result], message: str) -> None:
    """To the last bit."""
    for a, b in zip(first, second, strict=True):
        _require(np.array_equal(a.docs, b.docs), f"{message}: other documents or another order")
        _require(np.array_equal(a.scores, b.scores), f"{message}: other scores")


def _run_of_first_pass(ranker: Ranker, snapshot: Snapshot) -> dict[str, np.ndarray]:
    """All documents of the collection for each query, the first pass's in its order, then the others."""
    engine, run = Engine(snapshot), {}
    for query in _queries(snapshot):
        ((docs, scores),) = engine.score_all([ranker.first(query, snapshot.statistics)])
        docs, _ = engine.top(docs, scores, snapshot.n_docs)
        run[query.qid] = np.concatenate([docs, np.setdiff1d(np.arange(snapshot.n_docs), docs)])
    return run


def _with_few(ranker: Ranker) -> Ranker:
    """With so few feedback documents that a first pass can fill them."""
    return ranker.with_(fb_docs=1) if "fb_docs" in domains(ranker) else ranker


# -- what it is --------------------------------------------------------------------------------------------------


def _declaration(ranker: Ranker) -> None:
    _require(is_dataclass(ranker) and hash(ranker) == hash(ranker.with_()), "it must be a frozen dataclass")
    _require(isinstance(ranker.name, str) and ranker.name.strip(), "it must have a name")
    _require(not set(ranker.name) & set(" =,\t\n"), f"the name {ranker.name!r} cannot be typed on a command line")
    _require(isinstance(ranker.description, str) and ranker.description.strip(), "it must have a description")
    for name, (f, domain) in domains(ranker).items():
        _require(domain.help, f"parameter {name} must have a help text")
        _require(isinstance(f.default, (bool, int, float, str)), f"parameter {name} must have a plain default")


def _immutable(ranker: Ranker) -> None:
    for name, value in vars(ranker).items():
        try:
            setattr(ranker, name, value)
        except FrozenInstanceError:
            continue
        raise ContractError(f"{name} can be assigned: make it a field of a frozen dataclass")
    _require(ranker.with_() == ranker, "with_() without changes must give an equal model")


def _outside(f: Any, domain: Domain) -> list[Any]:
    """Values that a parameter must refuse."""
    if domain.choices:
        return ["no such choice", None]
    if isinstance(f.default, bool):
        return []
    wrong: list[Any] = [math.nan, math.inf, -math.inf, "many", None]
    if isinstance(f.default, int):
        wrong.append(1.5)
    for bound, step in ((domain.low, -1), (domain.high, 1)):
        if math.isfinite(bound):
            wrong.append(type(f.default)(bound + step))
            if domain.open:
                wrong.append(type(f.default)(bound))
    return wrong


def _parameters(ranker: Ranker) -> None:
    model = type(ranker)
    for name, (f, domain) in domains(model).items():
        for value in _outside(f, domain):
            try:
                ranker.with_(**{name: value})
            except ParameterError as error:
                _require(name in str(error), f"the refusal of {name}={value!r} must name the parameter: {error}")
                continue
            raise ContractError(f"{name}={value!r} was accepted; parameters.check() was not called, or has no bounds")
    try:
        parse_settings(model, ["no_such_parameter=1"])
    except ParameterError:
        return
    raise ContractError("an unknown parameter was accepted")


def _round_trip(ranker: Ranker) -> None:
    """Settings survive JSON, as in manifests and profiles, and text, as on the command line."""
    model, settings = type(ranker), ranker.settings()
    stored = json.loads(json.dumps(settings))
    typed = [f"{name}={value}" for name, value in settings.items()]
    for values in (stored, typed):
        _require(model(**parse_settings(model, values)) == ranker, f"settings do not make the same model: {values}")
    if rankers().get(ranker.name) is model:
        _require(make_ranker(ranker.name, stored) == ranker, "make_ranker does not make the same model")


# -- what it does ------------------------------------------------------------------------------------------------


def _search(ranker: Ranker) -> None:
    snapshot = collection()
    results = _rank(ranker, snapshot, hits=5)
    longer = _rank(ranker, snapshot, hits=1000)
    for result, whole in zip(results, longer, strict=True):
        _require(len(whole.docs), "no documents found")
        _require(np.isfinite(whole.scores).all(), "scores must be finite")
        _require(len(set(whole.docs.tolist())) == len(whole.docs), "a document is listed twice")
        order = rank_order(_docids(snapshot, whole), whole.scores)
        _require(np.array_equal(order, np.arange(len(order))), "documents are not in rank order")
        _require(len(result.docs) == min(5, len(whole.docs)), "hits=5 does not give five documents")
        _require(np.array_equal(result.docs, whole.docs[:5]), "hits=5 does not give the first five")


def _plans(ranker: Ranker) -> None:
    snapshot = collection()
    for result in _rank(ranker, snapshot):
        model = result.plan.model
        _require(len(model) and (np.diff(model.terms) > 0).all(), "a plan's terms must ascend")
        _require(model.terms[0] >= 0 and model.terms[-1] < snapshot.n_terms, "a plan's terms must be in the vocabulary")
        _require(np.isfinite(model.weights).all() and math.isfinite(model.background), "weights must be finite")
        if result.expansion is not None:
            _require(result.feedback is not None, "an expansion without feedback documents")
            total = float(result.expansion.weights.sum())
            _require(abs(total - 1.0) < 1e-9, f"weights of the feedback documents sum to {total:.6g}, not to 1")


def _rerank(ranker: Ranker) -> None:
    """All documents in, all documents out, with the scores of a search."""
    snapshot, ranker = collection(), _with_few(ranker)
    run = _run_of_first_pass(ranker, snapshot)
    searched = _rank(ranker, snapshot)
    for result, again in zip(searched, _rank(ranker, snapshot, candidates=run), strict=True):
        _require(sorted(again.docs.tolist()) == sorted(run[again.query.qid].tolist()), "other documents came out")
        _require(np.isfinite(again.scores).all(), "scores must be finite")
        scores = dict(zip(again.docs.tolist(), again.scores.tolist(), strict=True))
        _require_close(np.array([scores[d] for d in result.docs.tolist()]), result.scores, "search and rerank differ")


def _candidates(ranker: Ranker) -> None:
    """A document's score does not depend on which other candidates there are, only on the feedback."""
    snapshot, ranker = collection(), _with_few(ranker)
    run = _run_of_first_pass(ranker, snapshot)
    whole = _rank(ranker, snapshot, candidates=run)
    for size in (1, 4):
        shorter = {qid: docs[: max(size, ranker.feedback_depth)] for qid, docs in run.items()}
        for result, part in zip(whole, _rank(ranker, snapshot, candidates=shorter), strict=True):
            _require(set(part.docs.tolist()) == set(shorter[part.query.qid].tolist()), "other documents came out")
            scores = dict(zip(result.docs.tolist(), result.scores.tolist(), strict=True))
            _require_close(part.scores, np.array([scores[d] for d in part.docs.tolist()]), "candidates matter")


def _repeatable(ranker: Ranker) -> None:
    snapshot = collection()
    _require_same(_rank(ranker, snapshot), _rank(ranker, snapshot), "a second time")
    _require_same(_rank(ranker, snapshot), _rank(ranker.with_(), collection()), "an equal model and collection")


def _threads(ranker: Ranker) -> None:
    snapshot, texts = collection(), [QUERIES[i % 3] for i in range(7)]
    alone = _rank(ranker, snapshot, texts)
    for threads in (2, 5):
        _require_same(alone, _rank(ranker, snapshot, texts, threads=threads), f"{threads} threads")


def _company(ranker: Ranker) -> None:
    snapshot = collection()
    together = _rank(ranker, snapshot)
    alone = [_rank(ranker, snapshot, [words])[0] for words in QUERIES]
    _require_same(alone, together, "alone or among other queries")


def _document_order(ranker: Ranker) -> None:
    there, here = collection(), collection(rows=[7, 3, 11, 0, 10, 5, 1, 9, 4, 2, 8, 6])
    for a, b in zip(_rank(ranker, there), _rank(ranker, here), strict=True):
        _require(_docids(there, a) == _docids(here, b), "the order of documents in the collection matters")
        _require_close(b.scores, a.scores, "the order of documents in the collection matters")


def _spelling(ranker: Ranker) -> None:
    """Other names for the words, so that the vocabulary is in another order."""
    names = [f"w{(i * 7) % len(WORDS):02d}" for i in range(len(WORDS))]
    rename = dict(zip(WORDS, names, strict=True))
    there, here = collection(), collection(words=names)
    texts = [[rename.get(word, word) for word in words] for words in QUERIES]
    for a, b in zip(_rank(ranker, there), _rank(ranker, here, texts), strict=True):
        _require(_docids(there, a) == _docids(here, b), "the names of words matter")
        _require_close(b.scores, a.scores, "the names of words matter")


def _nothing_to_find(ranker: Ranker) -> None:
    snapshot = collection()
    for words, what in (([], "an empty query"), (["unheard-of", "unseen"], "a query of unknown words")):
        [result] = _rank(ranker, snapshot, [words])
        _require(len(result.docs) == 0, f"{what} must find no documents")
        [again] = _rank(ranker, snapshot, [words], candidates={"0": np.arange(3)})
        _require(sorted(again.docs.tolist()) == [0, 1, 2], f"{what} must leave a run's documents in place")
        _require(np.isfinite(again.scores).all(), f"{what} must give finite scores")


def _small_collections(ranker: Ranker) -> None:
    """One document, documents without words, none at all: far fewer than any fb_docs."""
    one = collection(rows=[0])
    for result in _rank(ranker, one, [["wing"], WORDS[:5]]):
        _require(np.isfinite(result.scores).all(), "scores in a collection of one document must be finite")
    alike = Snapshot.from_counts([[2], [2], [1]], ["wing"])
    for result in _rank(ranker, alike, [["wing"]]):
        _require(np.isfinite(result.scores).all(), "scores in a collection of one word must be finite")
    for empty in (Snapshot.from_counts(np.zeros((3, 2)), ["wing", "flow"]), Snapshot.from_counts(np.zeros((0, 0)), [])):
        for result in _rank(ranker, empty, [["wing"], []]):
            _require(len(result.docs) == 0, "a collection without words has nothing to find")


def _judged(ranker: Ranker) -> None:
    """Documents judged relevant are the feedback; those judged otherwise never are."""
    if not ranker.uses_feedback:
        return
    snapshot, none = collection(), np.zeros(0, dtype=np.int64)
    known = Judgments(np.array([2, 5]), np.array([1, 3]))
    [result] = _rank(ranker, snapshot, [QUERIES[0]], judged={"0": known})
    _require(result.feedback is not None and result.expansion is not None, "judged documents were not used")
    assert result.feedback is not None and result.expansion is not None
    _require(result.feedback.docs.tolist() == [2, 5] and result.feedback.judged, "feedback is not the judged documents")
    _require_close(result.expansion.weights, np.array([0.5, 0.5]), "documents judged relevant must weigh alike")
    _require(np.isfinite(result.scores).all() and len(result.docs), "scores after judged feedback must be finite")
    [plain] = _rank(ranker, snapshot, [QUERIES[0]])
    refused = plain.feedback.docs[:2] if plain.feedback is not None else none
    [result] = _rank(ranker, snapshot, [QUERIES[0]], judged={"0": Judgments(none, refused)})
    if result.feedback is not None:
        _require(not np.isin(refused, result.feedback.docs).any(), "a document judged not relevant became feedback")


def _leaves_the_collection_alone(ranker: Ranker) -> None:
    snapshot = collection()
    arrays = {name: value for name, value in vars(snapshot).items() if isinstance(value, np.ndarray)}
    before = {name: value.copy() for name, value in arrays.items()}
    p = snapshot.statistics.p.copy()
    _rank(ranker, snapshot, judged={"0": Judgments(np.array([2, 5]), np.array([1, 3]))})
    _rank(ranker, snapshot, candidates=_run_of_first_pass(ranker, snapshot))
    changed = [name for name, value in arrays.items() if not np.array_equal(value, before[name])]
    _require(not changed and np.array_equal(p, snapshot.statistics.p), f"the snapshot was changed: {changed}")


CHECKS: dict[str, Callable[[Ranker], None]] = {
    "declaration": _declaration,
    "immutable": _immutable,
    "parameters": _parameters,
    "round trip": _round_trip,
    "search": _search,
    "plans": _plans,
    "rerank": _rerank,
    "candidates": _candidates,
    "repeatable": _repeatable,
    "threads": _threads,
    "company": _company,
    "document order": _document_order,
    "spelling": _spelling,
    "nothing to find": _nothing_to_find,
    "small collections": _small_collections,
    "judged": _judged,
    "leaves the collection alone": _leaves_the_collection_alone,
}
