"""Every model, in every mode, keeps the contract; and the contract notices models that do not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import domains, parameter
from sdretrieval.ranking.base import Plan, Ranker
from sdretrieval.ranking.contract import CHECKS, ContractError, check_ranker, run_check
from sdretrieval.ranking.models.bm25 import BM25Ranker
from sdretrieval.ranking.models.relevance_model import RelevanceModel
from sdretrieval.ranking.profile_files import SHIPPED, profile_settings
from sdretrieval.ranking.registry import rankers
from sdretrieval.ranking.term_model import TermModel
from sdretrieval.ranking.weighting import BM25, JelinekMercer

LM = {"smoothing": "dirichlet"}
VARIANTS: dict[str, list[dict]] = {
    "ql": [{"smoothing": "jm"}],
    "dce": [{"length": "word"}],
    "rm": [LM, {"query_weight": 0.5}],
    "rm-dce": [{"length": "word", **LM}],
    "rm3": [
        {"scoring": "lm"},
        {"first_stage": "ql", "scoring": "lm", **LM},
        {"mode": "anserini"},
        {"mode": "anserini", "first_stage": "ql"},
    ],
    "blend": [{"parts": "rm"}, {"fb_docs": 3, "feedback_weight": 0.5}],
    "axiomatic": [{"scoring": "ql"}, {"mode": "anserini"}, {"mode": "anserini", "scoring": "ql"}],
    "bm25prf": [{"mode": "anserini"}],
    "sdm": [{"mode": "anserini"}],
    "bo1": [{"scoring": "dph"}],
    "kl": [{"scoring": "dph"}],
    "sd": [
        LM,
        {"first_stage": "bm25"},
        {"iterations": 3},
        {"iterations": 0, "posterior": "exact"},
        {"iterations": 3, "later_e_steps": "likelihood"},
        {"query_weight": 1.0, "nonrelevant_weight": 0.5},
    ],
    "sd3": [
        {"scoring": "lm"},
        {"scoring": "lm", **LM},
        {"first_stage": "sd", "posterior": "exact", "prior": 0.3},
        {"iterations": 2, "later_e_steps": "likelihood"},
    ],
}


def cases() -> list:
    """Each model with its defaults, with each shipped profile that differs, and in its other modes."""
    found = []
    for name, model in rankers().items():
        profiles = [profile_settings(profile, model) for profile in SHIPPED]
        for settings in [{}, *(p for p in profiles if p), *VARIANTS.get(name, [])]:
            label = ",".join(f"{k}={v}" for k, v in settings.items()) if len(settings) < 4 else f"{len(settings)} set"
            found.append(pytest.param(model, dict(settings), id=f"{name}({label})"))
    return found


@pytest.mark.parametrize(("model", "settings"), cases())
def test_contract(model: type[Ranker], settings: dict):
    # Anserini's axiomatic feedback knows no words with digits, which the check gives them.
    skip = ["spelling"] if model.name == "axiomatic" and settings.get("mode") == "anserini" else []
    check_ranker(model, skip=skip, **settings)


def test_choices_are_all_tried():
    """A new choice of a parameter must be among the variants."""
    for name, model in rankers().items():
        tried = [{}, *VARIANTS.get(name, [])]
        for parameter_name, (f, domain) in domains(model).items():
            seen = {settings.get(parameter_name, f.default) for settings in tried}
            assert set(domain.choices) <= seen, (name, parameter_name)


def test_names_are_the_documented_ones():
    wanted = "bm25 ql tfidf rm rm3 sd sd3 blend axiomatic bm25prf dph bo1 kl sdm dce rm-dce".split()
    wanted += ["lucene-bm25", "lucene-qld", "lucene-qljm"]
    assert [name for name in rankers() if name in wanted] == wanted


# -- models that break a promise, one each ------------------------------------------------------------------------


def as_model(cls: type[Ranker]) -> type[Ranker]:
    """A frozen dataclass with a name, for short definitions below."""
    made = dataclass(frozen=True, kw_only=True)(cls)
    made.name, made.description = cls.__name__.lower(), "broken on purpose"
    return made


@as_model
class Fickle(BM25Ranker):
    """Another ranking each time."""

    turn: ClassVar = itertools.count()

    def first(self, query, statistics):
        plan = super().first(query, statistics)
        return Plan(plan.model.scaled(1.0 + next(self.turn)), plan.weighting)


@as_model
class NotANumber(BM25Ranker):
    def first(self, query, statistics):
        return Plan(TermModel(query.terms, query.counts * np.nan), BM25())


@as_model
class Careless(BM25Ranker):
    """Does not check its parameters."""

    def __post_init__(self):
        pass


@as_model
class Forgetful(BM25Ranker):
    """Has a parameter that settings() does not know, so that it cannot be made again."""

    secret: float = 1.0

    def settings(self):
        return {"k1": 0.5}


@as_model
class Eager(BM25Ranker):
    """Finds something whatever is asked."""

    def first(self, query, statistics):
        return Plan(TermModel(np.arange(len(statistics.cf)), np.ones(len(statistics.cf))), BM25())


@as_model
class Numerologist(BM25Ranker):
    """Weighs words by their number in the vocabulary."""

    def first(self, query, statistics):
        return Plan(TermModel(query.terms, query.counts * (1.0 + query.terms)), BM25())


@as_model
class Vandal(BM25Ranker):
    """Counts itself into the statistics."""

    def first(self, query, statistics):
        statistics.cf[query.terms] += 1
        return super().first(query, statistics)


@as_model
class Fragile(BM25Ranker):
    """Divides by what may be zero."""

    def first(self, query, statistics):
        return Plan(query.as_counts().scaled(1.0 / np.float64(query.length)), BM25())


@as_model
class Lopsided(RelevanceModel):
    """Weights of the feedback documents that do not sum to one."""

    def document_weights(self, query, feedback, statistics):
        return 2.0 * super().document_weights(query, feedback, statistics)


@as_model
class Unsorted(BM25Ranker):
    def first(self, query, statistics):
        return Plan(TermModel(query.terms[::-1], query.counts[::-1]), BM25())


class Thawed(Ranker):
    """Not frozen: its settings can change under a cache."""

    name, description = "thawed", "broken on purpose"
    k1: float

    def __init__(self, k1: float = 0.9):
        object.__setattr__(self, "k1", k1)

    def first(self, query, statistics):
        return Plan(query.as_counts(), BM25(self.k1))


@as_model
class Undocumented(Ranker):
    k1: float = parameter(0.9, "")

    def first(self, query, statistics):
        return Plan(query.as_counts(), BM25(self.k1))


@dataclass(frozen=True)
class LocalShare(JelinekMercer):
    """A document's score depends on the other documents it is scored with."""

    share_is_constant: ClassVar[bool] = False

    def log_background_share(self, lengths):
        return np.full(len(lengths), -float(len(lengths)))


@as_model
class Sociable(BM25Ranker):
    def first(self, query, statistics):
        return Plan(query.as_counts(), LocalShare(0.5))


@pytest.mark.parametrize(
    ("model", "check"),
    [
        (Fickle, "repeatable"),
        (Fickle, "threads"),
        (NotANumber, "search"),
        (NotANumber, "plans"),
        (Careless, "parameters"),
        (Forgetful, "round trip"),
        (Eager, "nothing to find"),
        (Numerologist, "spelling"),
        (Vandal, "leaves the collection alone"),
        (Fragile, "nothing to find"),
        (Lopsided, "plans"),
        (Lopsided, "judged"),
        (Unsorted, "plans"),
        (Thawed, "immutable"),
        (Undocumented, "declaration"),
        (Sociable, "rerank"),
        (Sociable, "candidates"),
    ],
)
def test_broken_models_are_noticed(model: type[Ranker], check: str):
    with pytest.raises(ContractError, match=check):
        run_check(check, model, {})
    with pytest.raises(ContractError):
        check_ranker(model)


def test_a_check_can_be_skipped_by_name():
    names = [name for name in CHECKS if name not in ("document order", "spelling")]
    check_ranker(Numerologist, skip=[name for name in CHECKS if name not in names])
    with pytest.raises(ParameterError, match="no check named 'spelled'"):
        check_ranker(BM25Ranker, skip=["spelled"])


def test_something_else_than_a_ranker_is_named():
    with pytest.raises(ContractError, match="not a subclass of Ranker"):
        check_ranker(dict)  # type: ignore[arg-type]
