"""Expanded queries in a file: to be read, edited by hand, replayed and compared.

One JSON object per line and topic (shown here on several lines):

    {"qid": "12", "query": "boundary layers", "model": "sd3",
     "weighting": {"type": "bm25", "k1": 0.9, "b": 0.4, "lucene_lengths": false},
     "background": 0.0, "with_constant": false,
     "terms": {"boundari": 0.31, "layer": 0.28, "laminar": 0.07},
     "feedback": [{"docid": "184", "weight": 0.4}]}

    terms          words as the index has them (stemmed), strongest first, with their weights s_w
    background     g: every word of the vocabulary weighs g · p_w besides (see term_model.py)
    weighting      how counts become evidence (see weighting.py)
    with_constant  keep the part of the score that is the same for every document
    feedback       what the words were learnt from: for the reader, ignored in replay

Only ``qid`` and ``terms`` are needed: without the rest a line is ranked with BM25 and no background. Weights
are written with all their digits, so that replaying a file that nobody touched gives the same run to the last
bit. Delete a word to be rid of it: one of weight zero still lets its documents be ranked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import IO, Any

import numpy as np

from sdretrieval.errors import InputError, ParameterError
from sdretrieval.files import atomic_writer, numbered_lines
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import Result
from sdretrieval.ranking.parameters import Domain
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import (
    BM25,
    Dirichlet,
    JelinekMercer,
    LuceneDirichlet,
    LuceneJelinekMercer,
    TfIdf,
    Weighting,
)
from sdretrieval.snapshot import Snapshot

# What a file may ask for. A package with a weighting of its own adds it here when it is loaded.
WEIGHTINGS: dict[str, type[Weighting]] = {
    "bm25": BM25,
    "tfidf": TfIdf,
    "jm": JelinekMercer,
    "dirichlet": Dirichlet,
    "lucene-dirichlet": LuceneDirichlet,
    "lucene-jm": LuceneJelinekMercer,
}
RANGES = {
    "lam": Domain("", low=0.0, high=1.0, open=True),
    "mu": Domain("", low=0.0, open=True),
    "k1": Domain("", low=0.0, open=True),
    "b": Domain("", low=0.0, high=1.0),
}
KEYS = ("qid", "query", "model", "weighting", "background", "with_constant", "terms", "feedback")


@dataclass(frozen=True)
class ExpandedQuery:
    """One line of the file: a :class:`~sdretrieval.ranking.base.Plan` in words instead of numbers."""

    qid: str
    terms: Mapping[str, float]
    query: str = ""
    model: str = ""
    weighting: Weighting = field(default_factory=BM25)
    background: float = 0.0
    with_constant: bool = False
    feedback: tuple[tuple[str, float], ...] = ()  # (docid, weight)

    @classmethod
    def of(cls, result: Result, snapshot: Snapshot, model: str = "") -> ExpandedQuery:
        """What a model estimated for a query; the plan that ranked, pruned where it was pruned."""
        plan = result.plan
        terms, weights = plan.model.terms, plan.model.weights
        order = np.lexsort((terms, -np.abs(weights)))
        words = snapshot.vocabulary.take(terms[order])
        feedback: tuple[tuple[str, float], ...] = ()
        if result.feedback is not None and result.expansion is not None:
            docids = snapshot.docids.take(result.feedback.docs)
            feedback = tuple(zip(docids, result.expansion.weights.tolist(), strict=True))
        return cls(
            result.query.qid,
            dict(zip(words, weights[order].tolist(), strict=True)),
            result.query.text,
            model,
            plan.weighting,
            float(plan.model.background),
            plan.with_constant,
            feedback,
        )

    def plan(self, snapshot: Snapshot, missing: str = "error", dropped: list[str] | None = None) -> Plan:
        """The same for ranking in a collection. ``missing="drop"`` leaves out words it does not have.

        Words left out are added to the list ``dropped``. Raises :class:`ParameterError`.
        """
        if missing not in ("error", "drop"):
            raise ParameterError(f"missing must be error or drop; got {missing!r}")
        words = list(self.terms)
        terms = snapshot.vocabulary.find_many(words)
        unknown = [words[i] for i in np.flatnonzero(terms < 0).tolist()]
        if unknown and missing == "error":
            more = f" (nor are {len(unknown) - 1} other words of it)" if len(unknown) > 1 else ""
            raise ParameterError(
                f"topic {self.qid!r}: word {unknown[0]!r} is not in index {snapshot.name!r}{more}",
                remedy="Write words as the index has them, after stemming; or remove them.",
            )
        if dropped is not None:
            dropped.extend(unknown)
        weights = np.fromiter(self.terms.values(), dtype=np.float64, count=len(words))
        order = np.argsort(terms, kind="stable")
        order = order[terms[order] >= 0]
        model = TermModel(terms[order], weights[order], self.background)
        return Plan(model, self.weighting, self.with_constant)

    # -- JSON -----------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, Any]:
        return {
            "qid": self.qid,
            "query": self.query,
            "model": self.model,
            "weighting": weighting_to_json(self.weighting),
            "background": self.background,
            "with_constant": self.with_constant,
            "terms": dict(self.terms),
            "feedback": [{"docid": docid, "weight": weight} for docid, weight in self.feedback],
        }

    def to_line(self) -> str:
        """As the file has it."""
        try:
            return json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise ParameterError(f"topic {self.qid!r}: a weight is not a finite number") from None

    @classmethod
    def from_json(cls, data: Any) -> ExpandedQuery:
        """Strict: raises :class:`ParameterError` naming what is wrong, a misspelt key included."""
        _expect(isinstance(data, dict), f"an object is expected on each line, not {_kind(data)}")
        _only(data, KEYS, "an expanded query")
        for key in ("qid", "terms"):
            _expect(key in data, f"{key!r} is missing")
        qid = _text(data["qid"], "qid")
        _expect(qid != "", "qid is empty")
        terms, feedback = data["terms"], data.get("feedback", [])
        _expect(isinstance(terms, dict), f"terms must be {{word: weight}}, not {_kind(terms)}")
        _expect(isinstance(feedback, list), f"feedback must be a list, not {_kind(feedback)}")
        query = cls(
            qid,
            {word: _number(weight, f"the weight of {word!r}") for word, weight in terms.items()},
            _text(data.get("query", ""), "query"),
            _text(data.get("model", ""), "model"),
            weighting_from_json(data["weighting"]) if "weighting" in data else BM25(),
            _number(data.get("background", 0.0), "background"),
            _truth(data.get("with_constant", False), "with_constant"),
            tuple(_feedback(item) for item in feedback),
        )
        _expect(
            not query.background or query.weighting.is_language_model,
            f"weighting {name_of(query.weighting)} has no background; got {query.background!r}",
            "Set background to 0, or use weighting jm or dirichlet.",
        )
        return query


# -- weightings --------------------------------------------------------------------------------------------


def name_of(weighting: Weighting) -> str:
    for name, kind in WEIGHTINGS.items():
        if type(weighting) is kind:
            return name
    raise ParameterError(
        f"weighting {type(weighting).__name__} cannot be written to a file",
        remedy="Add it to sdretrieval.ranking.expansion.WEIGHTINGS.",
    )


def weighting_to_json(weighting: Weighting) -> dict[str, Any]:
    values = {f.name: getattr(weighting, f.name) for f in fields(weighting)}
    return {"type": name_of(weighting), **values}


def weighting_from_json(data: Any) -> Weighting:
    _expect(isinstance(data, dict), f'weighting must be like {{"type": "bm25"}}, not {_kind(data)}')
    name = data.get("type", "bm25")
    known_name = isinstance(name, str) and name in WEIGHTINGS
    _expect(known_name, f"unknown weighting {name!r}", f"One of: {', '.join(WEIGHTINGS)}.")
    kind = WEIGHTINGS[name]
    known = {f.name: f for f in fields(kind)}
    _only(data, ("type", *known), f"weighting {name}")
    values: dict[str, Any] = {}
    for key, value in data.items():
        if key == "type":
            continue
        if isinstance(known[key].default, bool):
            values[key] = _truth(value, f"{key} of weighting {name}")
            continue
        values[key] = number = _number(value, f"{key} of weighting {name}")
        domain = RANGES.get(key)
        if domain is not None:
            inside = domain.low < number < domain.high if domain.open else domain.low <= number <= domain.high
            _expect(inside, f"{key} of weighting {name} must be in {domain.describe()}; got {value!r}")
    return kind(**values)


def describe_weighting(weighting: Weighting) -> str:
    """``bm25 k1=0.9 b=0.4``: for people."""
    values = [(f.name, getattr(weighting, f.name)) for f in fields(weighting)]
    names = {kind: name for name, kind in WEIGHTINGS.items()}
    name = names.get(type(weighting), type(weighting).__name__)
    shown = [key if value is True else f"{key}={value:g}" for key, value in values if value is not False]
    return " ".join([name, *shown])


# -- files -------------------------------------------------------------------------------------------------


class ExpansionWriter(AbstractContextManager):
    """Writes results one by one as they come; the file appears whole at the end, or not at all.

    >>> with ExpansionWriter("q.jsonl", snapshot, "sd3") as save:      # doctest: +SKIP
    ...     search(snapshot, topics, "sd3", on_result=save)
    """

    def __init__(self, path: str | PathLike[str], snapshot: Snapshot, model: str = "") -> None:
        self.snapshot, self.model, self.count = snapshot, model, 0
        self._file = atomic_writer(path)
        self._stream: IO[str] | None = None

    def __enter__(self) -> ExpansionWriter:
        self._stream = self._file.__enter__()
        return self

    def __call__(self, result: Result) -> None:
        if self._stream is None:
            raise ParameterError("an ExpansionWriter is to be used in a with statement")
        self._stream.write(ExpandedQuery.of(result, self.snapshot, self.model).to_line() + "\n")
        self.count += 1

    def __exit__(self, *error: Any) -> bool | None:
        self._stream = None
        return self._file.__exit__(*error)


def write_expansions(path: str | PathLike[str], results: Iterable[Result], snapshot: Snapshot, model: str = "") -> None:
    """All results to one file."""
    with ExpansionWriter(path, snapshot, model) as save:
        for result in results:
            save(result)


def read_expanded_queries(path: str | PathLike[str]) -> dict[str, ExpandedQuery]:
    """The lines of a file by topic, in its order; no index is needed."""
    return {query.qid: query for _, query in _records(path)}


def read_expansions(
    path: str | PathLike[str], snapshot: Snapshot, missing: str = "error", dropped: list[str] | None = None
) -> dict[str, Plan]:
    """The file as plans for ``search(…, plans=…)`` and ``rerank``.

    A word that the index does not have is an error, or left out with ``missing="drop"`` (and added to the
    list ``dropped``).
    """
    plans = {}
    for line, query in _records(path):
        try:
            plans[query.qid] = query.plan(snapshot, missing, dropped)
        except ParameterError as error:
            raise InputError(error.message, file=path, line=line, remedy=error.remedy) from None
    return plans


def _records(path: str | PathLike[str]) -> Iterator[tuple[int, ExpandedQuery]]:
    seen: dict[str, int] = {}
    for line, text in numbered_lines(path):
        if not text.strip():
            continue
        try:
            query = ExpandedQuery.from_json(_json(text))
            first = seen.setdefault(query.qid, line)
            _expect(first == line, f"topic {query.qid!r} is on line {first} already", "Keep one of the two.")
        except ParameterError as error:
            raise InputError(error.message, file=path, line=line, remedy=error.remedy) from None
        yield line, query
    if not seen:
        raise InputError("no expanded queries in it", file=path)


# -- strictness --------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    def constant(name: str) -> float:
        raise ParameterError(f"{name} is not a weight", remedy="Weights are finite numbers.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in result if keys.count(key) > 1)
            raise ParameterError(f"{twice!r} is given twice", remedy="Keep one of the two.")
        return result

    try:
        return json.loads(text, parse_constant=constant, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ParameterError(
            f"not JSON: {error.msg} at column {error.colno}",
            remedy="Each line is one JSON object, for one topic.",
        ) from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"not JSON that can be read ({error})") from None


def _expect(fine: bool, message: str, remedy: str | None = None) -> None:
    if not fine:
        raise ParameterError(message, remedy=remedy)


def _only(data: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    known = list(known)
    for key in data:
        _expect(key in known, f"{what} has no key {key!r}", f"It has: {', '.join(known)}.")


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return names.get(type(value), "a number")


def _text(value: Any, what: str) -> str:
    remedy = f'Put it in quotes: "{value}".' if isinstance(value, (int, float)) else None
    _expect(isinstance(value, str), f"{what} must be text, not {_kind(value)}", remedy)
    return value


def _truth(value: Any, what: str) -> bool:
    _expect(isinstance(value, bool), f"{what} must be true or false; got {value!r}")
    return value


def _number(value: Any, what: str) -> float:
    fine = isinstance(value, (int, float)) and not isinstance(value, bool)
    _expect(fine, f"{what} must be a number; got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    _expect(math.isfinite(number), f"{what} is too large a number")
    return number


def _feedback(item: Any) -> tuple[str, float]:
    fine = isinstance(item, dict) and "docid" in item
    _expect(fine, 'each feedback document must be {"docid": …, "weight": …}')
    _only(item, ("docid", "weight"), "a feedback document")
    docid = _text(item["docid"], "the docid of a feedback document")
    return docid, _number(item.get("weight", 0.0), f"the weight of feedback document {docid!r}")


# -- comparing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WordChange:
    """A word in two expanded queries: weights as written, and as shares of each query's absolute weights.

    Models weigh on scales of their own, so it is shares that are compared. A query without the word has None
    and a share of 0.
    """

    word: str
    weight_a: float | None
    weight_b: float | None
    share_a: float
    share_b: float

    @property
    def change(self) -> float:
        return self.share_b - self.share_a


@dataclass(frozen=True)
class TopicDiff:
    """How the expanded queries A and B of one topic differ; every list has the largest differences first."""

    a: ExpandedQuery
    b: ExpandedQuery
    only_a: tuple[WordChange, ...]
    only_b: tuple[WordChange, ...]
    changed: tuple[WordChange, ...]  # in both with another weight
    unchanged: int
    cosine: float  # of the weights; 1 for queries that differ in scale alone (backgrounds apart)
    jaccard: float  # words in common / words in either

    @property
    def qid(self) -> str:
        return self.a.qid

    @property
    def common(self) -> int:
        return len(self.changed) + self.unchanged

    def strongest_in_common(self, n: int) -> int:
        """How many of the ``n`` strongest words of A are among those of B."""
        return len(set(_strongest(self.a, n)) & set(_strongest(self.b, n)))

    def to_json(self) -> dict[str, Any]:
        def words(changes: tuple[WordChange, ...]) -> list[dict[str, Any]]:
            return [
                {
                    "word": c.word,
                    "a": c.weight_a,
                    "b": c.weight_b,
                    "share_a": c.share_a,
                    "share_b": c.share_b,
                    "change": c.change,
                }
                for c in changes
            ]

        return {
            "qid": self.qid,
            "query": self.a.query,
            "cosine": self.cosine,
            "jaccard": self.jaccard,
            "common": self.common,
            "unchanged": self.unchanged,
            "a": _summary(self.a),
            "b": _summary(self.b),
            "only_a": words(self.only_a),
            "only_b": words(self.only_b),
            "changed": words(self.changed),
        }


@dataclass(frozen=True)
class ExpansionDiff:
    """Two files compared: the topics of both, and those that only one has."""

    topics: tuple[TopicDiff, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def diff(a: Mapping[str, ExpandedQuery], b: Mapping[str, ExpandedQuery]) -> ExpansionDiff:
    """Compare expanded queries topic by topic, in the order of ``a``."""
    return ExpansionDiff(
        tuple(diff_topic(query, b[qid]) for qid, query in a.items() if qid in b),
        tuple(qid for qid in a if qid not in b),
        tuple(qid for qid in b if qid not in a),
    )


def diff_topic(a: ExpandedQuery, b: ExpandedQuery) -> TopicDiff:
    total_a, total_b = _total(a), _total(b)
    only_a: list[WordChange] = []
    only_b: list[WordChange] = []
    changed: list[WordChange] = []
    unchanged = 0
    for word in {**a.terms, **b.terms}:
        x, y = a.terms.get(word), b.terms.get(word)
        if x == y:
            unchanged += 1
            continue
        change = WordChange(word, x, y, (x or 0.0) / total_a, (y or 0.0) / total_b)
        (only_b if x is None else only_a if y is None else changed).append(change)
    for changes in (only_a, only_b, changed):
        changes.sort(key=lambda c: (-abs(c.change), c.word))
    union = len(only_a) + len(only_b) + len(changed) + unchanged
    return TopicDiff(
        a, b, tuple(only_a), tuple(only_b), tuple(changed), unchanged,
        _cosine(a.terms, b.terms), (len(changed) + unchanged) / union if union else 1.0,
    )  # fmt: skip


def _total(query: ExpandedQuery) -> float:
    return math.fsum(map(abs, query.terms.values())) or 1.0


def _cosine(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    size_a, size_b = math.hypot(*a.values()), math.hypot(*b.values())
    if not size_a or not size_b:
        return 1.0 if size_a == size_b else 0.0  # two empty queries are alike
    # Sizes divided out first: weights may be as small as floats get.
    return math.fsum(x / size_a * (b[word] / size_b) for word, x in a.items() if word in b)


def _strongest(query: ExpandedQuery, n: int) -> list[str]:
    return sorted(query.terms, key=lambda word: (-abs(query.terms[word]), word))[:n]


def _summary(query: ExpandedQuery) -> dict[str, Any]:
    return {
        "model": query.model,
        "weighting": weighting_to_json(query.weighting),
        "background": query.background,
        "words": len(query.terms),
    }
