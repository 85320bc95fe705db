"""Expanded queries in a file: to be read, edited by hand, replayed and compared.

One JSON object per line and topic (shown here on several lines):

    {"qid": "12", "query": "boundary layers", "model": "sd3",
     "weighting": {"type": "bm25", "k1": 0.9, "b": 0.4, "lucene_lengths": false},
     "background": 0.0, "with_constant": false,
     "terms": {"boundari": 0.31, "layer": 0.28, "laminar": 0.07},
     "pairs": [{"words": ["boundari", "layer"], "in_order": 0.05, "near": 0.02}],
     "feedback": [{"docid": "184", "weight": 0.4}]}

    terms          words as the index has them (stemmed), strongest first, with their weights s_w
    pairs          words that count besides where they stand together (see pairs.py), if both are among the terms
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
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from typing import Any

import numpy as np

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.files import atomic_writer, numbered_lines
from sdretrieval.core.parameters import Domain
from sdretrieval.core.safe_json import parse_json
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking.base import Pairs, Plan
from sdretrieval.ranking.engine import Result
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, SATURATING, WEIGHTINGS, Weighting

KEYS = ("qid", "query", "model", "weighting", "background", "with_constant", "terms", "pairs", "feedback")
PAIR_KEYS = ("words", "in_order", "near")


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
    pairs: tuple[tuple[str, str, float, float], ...] = ()  # two words, their weights in order and near each other

    @classmethod
    def of(cls, result: Result, snapshot: Snapshot, model: str = "") -> ExpandedQuery:
        """What a model estimated for a query; the plan that ranked, pruned where it was pruned."""
        query, plan, feedback = result.query, result.plan, []
        terms, weights = plan.model.terms, plan.model.weights
        order = np.lexsort((terms, -np.abs(weights)))
        words = zip(snapshot.vocabulary.take(terms[order]), weights[order].tolist(), strict=True)
        if result.feedback is not None and result.expansion is not None:
            docids = snapshot.docids.take(result.feedback.docs)
            feedback = list(zip(docids, result.expansion.weights.tolist(), strict=True))
        background, pairs = float(plan.model.background), list[tuple[str, str, float, float]]()
        if plan.pairs is not None:
            first, second = (snapshot.vocabulary.take(column) for column in plan.pairs.terms.T)
            pairs = list(zip(first, second, plan.pairs.in_order.tolist(), plan.pairs.near.tolist(), strict=True))
        given = dict(words), query.text, model, plan.weighting, background, plan.with_constant, tuple(feedback)
        return cls(query.qid, *given, tuple(pairs))

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
        return Plan(
            model, self.weighting, self.with_constant, self._pairs(dict(zip(words, terms.tolist(), strict=True)))
        )

    def _pairs(self, numbers: Mapping[str, int]) -> Pairs | None:
        kept = [pair for pair in self.pairs if all(numbers.get(word, -1) >= 0 for word in pair[:2])]
        terms = np.array([[numbers[a], numbers[b]] for a, b, _, _ in kept], dtype=np.int64)
        return Pairs(terms, *(np.array([pair[k] for pair in kept]) for k in (2, 3))) if kept else None

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
            **(
                {"pairs": [dict(zip(PAIR_KEYS, (p[:2], *p[2:]), strict=True)) for p in self.pairs]}
                if self.pairs
                else {}
            ),
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
        pairs = data.get("pairs", [])
        _expect(isinstance(pairs, list), f"pairs must be a list, not {_kind(pairs)}")
        query = cls(
            qid,
            {word: _number(weight, f"the weight of {word!r}") for word, weight in terms.items()},
            _text(data.get("query", ""), "query"),
            _text(data.get("model", ""), "model"),
            weighting_from_json(data["weighting"]) if "weighting" in data else BM25(),
            _number(data.get("background", 0.0), "background"),
            _truth(data.get("with_constant", False), "with_constant"),
            tuple(_feedback(item) for item in feedback),
            tuple(_pair(item) for item in pairs),
        )
        _expect(
            not pairs or query.weighting.kind == SATURATING,
            f"weighting {query.weighting.name} has no evidence of pairs",
            "Leave the pairs out, or use weighting bm25.",
        )
        _expect(
            not query.background or query.weighting.is_language_model,
            f"weighting {query.weighting.name} has no background; got {query.background!r}",
            "Set background to 0, or use weighting jm or dirichlet.",
        )
        return query


# -- weightings --------------------------------------------------------------------------------------------


def weighting_to_json(weighting: Weighting) -> dict[str, Any]:
    if WEIGHTINGS.get(weighting.name) is not type(weighting):
        raise ParameterError(
            f"weighting {type(weighting).__name__} cannot be written to a file",
            remedy="Give it a name of its own (sdretrieval/ranking/weighting.py).",
        )
    return {"type": weighting.name, **asdict(weighting)}


def weighting_from_json(data: Any) -> Weighting:
    _expect(isinstance(data, dict), f'weighting must be like {{"type": "bm25"}}, not {_kind(data)}')
    name = data.get("type", "bm25")
    is_known = isinstance(name, str) and name in WEIGHTINGS
    _expect(is_known, f"unknown weighting {name!r}", f"One of: {', '.join(WEIGHTINGS)}.")
    known = {f.name: f.metadata.get("domain", Domain("", default=f.default)) for f in fields(WEIGHTINGS[name])}
    _only(data, ("type", *known), f"weighting {name}")
    values: dict[str, Any] = {}
    for key in [key for key in data if key != "type"]:
        what, value = f"{key} of weighting {name}", data[key]
        if known[key].kind == "flag":
            values[key] = _truth(value, what)
            continue
        values[key] = _number(value, what)
        try:
            known[key].check(value, what)
        except ParameterError as error:  # its remedy is for the command line
            raise ParameterError(error.message) from None
    return WEIGHTINGS[name](**values)


def describe_weighting(weighting: Weighting) -> str:
    """``bm25 k1=0.9 b=0.4``: for people."""
    values = [(key, value) for key, value in asdict(weighting).items() if value is not False]
    shown = [key if value is True else f"{key}={value:g}" for key, value in values]
    return " ".join([weighting.name or type(weighting).__name__, *shown])


# -- files -------------------------------------------------------------------------------------------------


class ExpansionWriter(AbstractContextManager):
    """Writes results one by one as they come; the file appears whole at the end, or not at all.

    >>> with ExpansionWriter("q.jsonl", snapshot, "sd3") as save:      # doctest: +SKIP
    ...     search(snapshot, topics, "sd3", on_result=save)
    """

    def __init__(self, path: str | PathLike[str], snapshot: Snapshot, model: str = "") -> None:
        self.snapshot, self.model, self._file = snapshot, model, atomic_writer(path)

    def __enter__(self) -> ExpansionWriter:
        self._stream = self._file.__enter__()
        return self

    def __call__(self, result: Result) -> None:
        self._stream.write(ExpandedQuery.of(result, self.snapshot, self.model).to_line() + "\n")

    def __exit__(self, *error: Any) -> bool | None:
        return self._file.__exit__(*error)


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
        with _placed(path, line):
            plans[query.qid] = query.plan(snapshot, missing, dropped)
    return plans


def _records(path: str | PathLike[str]) -> Iterator[tuple[int, ExpandedQuery]]:
    seen: dict[str, int] = {}
    for line, text in numbered_lines(path):
        if not text.strip():
            continue
        with _placed(path, line):
            query = ExpandedQuery.from_json(_json(text))
            first = seen.setdefault(query.qid, line)
            _expect(first == line, f"topic {query.qid!r} is on line {first} already", "Keep one of the two.")
        yield line, query
    if not seen:
        raise InputError("no expanded queries in it", file=path)


@contextmanager
def _placed(path: str | PathLike[str], line: int) -> Iterator[None]:
    """What is wrong with a line, said with its place."""
    try:
        yield
    except ParameterError as error:
        raise InputError(error.message, file=path, line=line, remedy=error.remedy) from None


# -- strictness --------------------------------------------------------------------------------------------


def _json(text: str) -> Any:
    try:
        return parse_json(text, unique=True)
    except ValueError as error:
        remedy = "Each line is one JSON object, for one topic; weights are finite numbers."
        raise ParameterError(f"not JSON: {error}", remedy=remedy) from None


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


def _pair(item: Any) -> tuple[str, str, float, float]:
    fine = isinstance(item, dict) and isinstance(item.get("words"), list) and len(item["words"]) == 2
    _expect(fine, 'each pair must be {"words": [two of them], "in_order": …, "near": …}')
    _only(item, PAIR_KEYS, "a pair")
    a, b = (_text(word, "a word of a pair") for word in item["words"])
    in_order, near = (_number(item.get(key, 0.0), f"{key} of the pair {a!r} {b!r}") for key in PAIR_KEYS[1:])
    return a, b, in_order, near


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

    def to_json(self) -> dict[str, Any]:
        names = {"weight_a": "a", "weight_b": "b"}
        return {names.get(name, name): value for name, value in asdict(self).items()} | {"change": self.change}


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
        words = {name: [change.to_json() for change in getattr(self, name)] for name in ("only_a", "only_b", "changed")}
        return {
            "qid": self.qid,
            "query": self.a.query,
            "cosine": self.cosine,
            "jaccard": self.jaccard,
            "common": self.common,
            "unchanged": self.unchanged,
            "a": _summary(self.a),
            "b": _summary(self.b),
            **words,
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
    union = len(only_a) + len(only_b) + len(changed) + unchanged
    jaccard = (len(changed) + unchanged) / union if union else 1.0
    for changes in (only_a, only_b, changed):
        changes.sort(key=lambda c: (-abs(c.change), c.word))
    lists = tuple(only_a), tuple(only_b), tuple(changed)
    return TopicDiff(a, b, *lists, unchanged, _cosine(a.terms, b.terms), jaccard)


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
