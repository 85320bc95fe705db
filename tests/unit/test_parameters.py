"""Parameters of models: checked, parsed, described; refusals name the parameter, the bound and the value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.core.parameters import (
    Domain,
    check,
    choice,
    count,
    domains,
    duration,
    parameter,
    parse_settings,
    positive,
    share,
    weight,
)
from sdretrieval.ranking.registry import make_ranker, rankers


@dataclass(frozen=True, kw_only=True)
class Model:
    name: ClassVar[str] = "m"
    lam: float = weight(0.5, "smoothing", symbol="λ")
    part: float = share(0.5, "a share")
    n: int = count(10, "documents", symbol="N")
    kind: str = choice("one", "which", ("one", "two"))
    flag: bool = parameter(False, "a switch")
    mu: float = parameter(100.0, "prior", low=0.0, open=True)
    notes: str = "not a parameter"

    def __post_init__(self):
        check(self)


def test_only_declared_fields_are_parameters():
    assert list(domains(Model)) == ["lam", "part", "n", "kind", "flag", "mu"]
    assert list(domains(Model())) == list(domains(Model))


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("lam", [0.0, 1.0, -0.1, 1.1, math.nan, math.inf, -math.inf], r"m: lam \(λ\) must be in \(0, 1\); got {}"),
        ("lam", ["0.5", None, True, [0.5]], "lam must be a number; got"),
        ("lam", [7.0], r"got 7.0\n  The default is 0.5."),
        ("part", [1.5], r"part must be in \[0, 1\]; got 1.5"),
        ("n", [0, -3, math.nan, math.inf], r"n \(N\) must be 1 or more( and finite)?; got"),
        ("n", [20.5], "n must be a whole number; got 20.5"),
        ("kind", ["three"], "kind must be one of one, two; got 'three'"),
    ],
)
def test_values_outside_their_domain_are_refused(name: str, values: list, told: str):
    for value in values:
        with pytest.raises(ParameterError, match=told.format(value)):
            Model(**{name: value})


def test_whole_numbers_in_other_clothes_become_integers():
    """JSON and NumPy write them in their own ways; a slice takes none of those."""
    for value in (20.0, np.int64(20), np.float64(20.0)):
        n = Model(n=value).n
        assert n == 20 and type(n) is int
    assert Model(part=0.0).part == 0.0 and Model(part=1).part == 1  # the ends of a share are allowed


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        (Domain("", low=0, high=1, open=True), "(0, 1)"),
        (Domain("", low=0, high=1), "[0, 1]"),
        (Domain("", low=1), ">= 1"),
        (Domain("", low=0, open=True), "> 0"),
        (Domain("", choices=("a", "b")), "a | b"),
        (Domain(""), ""),
    ],
)
def test_domains_describe_themselves(domain: Domain, text: str):
    assert domain.describe() == text


def test_settings_as_typed():
    typed = ["lam = 0.3", "n=7", "kind=two", "flag=yes", "mu=1e3"]
    wanted = {"lam": 0.3, "n": 7, "kind": "two", "flag": True, "mu": 1000.0}
    assert parse_settings(Model, typed) == wanted
    assert Model(**parse_settings(Model, typed)) == Model(**wanted)
    assert parse_settings(Model, {"lam": 0.3, "n": "7"}) == {"lam": 0.3, "n": 7}  # from a profile
    assert parse_settings(Model, {}) == {}
    assert parse_settings(Model, ["n=7", "n=8"]) == {"n": 8}  # the last counts


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("lam", "--set takes name=value; got 'lam'"),
        ("lamda=0.3", "m has no parameter 'lamda'"),
        ("lamb=1", "m has no parameter 'lamb'; did you mean 'lam'"),
        ("x=1", "It has: lam, part, n, kind, flag, mu"),
        ("notes=x", "m has no parameter 'notes'"),
        ("lam=much", "lam must be a number; got 'much'"),
        ("n=7.5", "n must be a whole number; got '7.5'"),
        ("n=", "n must be a whole number; got ''"),
        ("flag=perhaps", "flag must be true or false; got 'perhaps'"),
    ],
)
def test_settings_that_cannot_be_read(setting: str, message: str):
    with pytest.raises(ParameterError, match=message):
        parse_settings(Model, [setting])


@dataclass(frozen=True, kw_only=True)
class Timed:
    name: ClassVar[str] = "t"
    bandwidth: float | str = duration("auto", "of the kernel", words=("auto",))
    scale: float | None = positive(10.0, "S", words=("none",))

    def __post_init__(self):
        check(self)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("bandwidth=2d", 2 * 86_400_000),
        ("bandwidth=inf", math.inf),
        ("bandwidth=AUTO", "auto"),
        ("scale=none", None),
        ("scale=3", 3.0),
    ],
)
def test_lengths_of_time_and_words(setting: str, value: object):
    found = parse_settings(Timed, [setting])
    assert list(found.values()) == [value]
    Timed(**found)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("bandwidth=long", "bandwidth must be a length of time such as 12h, 30d or inf or auto; got 'long'"),
        ("scale=auto", "scale must be a number or none; got 'auto'"),
        ("bandwidth=0", "t: bandwidth must be positive; got 0.0\n  The default is auto."),
        ("scale=inf", "t: scale must be positive and finite; got inf"),
        ("scale=-1", "t: scale must be positive; got -1.0"),
    ],
)
def test_lengths_of_time_and_words_that_are_none(setting: str, message: str):
    with pytest.raises(ParameterError) as caught:
        Timed(**parse_settings(Timed, [setting]))
    assert message in str(caught.value)


# -- the models' own ---------------------------------------------------------------------------------------------


REFUSED = """ql lam=0 | ql lam=1 | ql lam=nan | ql mu=0 | ql mu=-1 | ql mu=inf | ql smoothing=laplace | bm25 k1=0 |
bm25 b=1.01 | tfidf fb_terms=0 | tfidf beta=-0.5 | rm fb_docs=0 | rm lambda_query=1.2 | rm lambda_model=0 |
rm lambda_ranking=1 | rm3 original_query_weight=1.1 | rm3 mode=indri | sd fb_docs=0 | sd fb_docs=-1 |
sd lambda_feedback=0 | sd lambda_first=-0.2 | sd iterations=-1 | sd precision=0 | sd prior=1 | sd3 fb_terms=0 |
sd3 scoring=cosine | lucene-qljm lam=0"""


@pytest.mark.parametrize(("model", "setting"), [case.split() for case in REFUSED.split("|")])
def test_models_refuse_what_has_no_meaning(model: str, setting: str):
    """N = 0, λ outside (0,1), NaN and the like: an error that names model, parameter and value."""
    name, _, value = setting.partition("=")
    with pytest.raises(ParameterError, match=rf"{model}: {name}\b.* must be .*; got .*{value[:3]}"):
        make_ranker(model, [setting])


def test_unknown_models_and_profiles_are_named():
    with pytest.raises(ParameterError, match="no profile 'best'"):
        make_ranker("sd", profile="best")
    with pytest.raises(ParameterError, match="unknown model 'bm52'") as caught:
        make_ranker("bm52")
    assert all(name in str(caught.value) for name in rankers())


def test_profiles_come_first_and_settings_over_them():
    """Table 5.3 of the thesis: λ_M1 .99, λ_E1 .6, λ_M2 1e-4, λ_E2 .8, K .8, N = 100."""
    paper = make_ranker("sd", profile="paper").settings()
    names = ("lambda_query", "lambda_first", "lambda_feedback", "lambda_ranking", "precision", "fb_docs")
    assert [paper[name] for name in names] == [0.99, 0.6, 1e-4, 0.8, 0.8, 100]
    assert make_ranker("sd", ["fb_docs=5"], profile="paper").settings() == {**paper, "fb_docs": 5}
    rm = make_ranker("rm", profile="paper").settings()
    assert [rm[n] for n in ("lambda_query", "lambda_model", "lambda_ranking")] == [0.7, 0.6, 0.1]
    assert make_ranker("ql", profile="paper").settings()["mu"] == 900
    assert make_ranker("sd", profile="default") == make_ranker("sd")
