"""``sdretrieval models``: what it lists is what ``--set`` takes."""

from __future__ import annotations

import json

import pytest

from sdretrieval.ranking.profile_files import read_profile
from sdretrieval.ranking.registry import make_ranker, rankers


def test_the_list_names_every_model_once(typed):
    outcome = typed("models")
    assert outcome.code == 0
    lines = outcome.out.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in lines] == list(rankers())
    assert all(len(line.split()) > 2 for line in lines)  # each with a description
    assert "--set NAME=VALUE" in outcome.out


@pytest.mark.parametrize("name", ["bm25", "ql", "tfidf", "rm", "rm3", "sd", "sd3", "lucene-qljm"])
def test_what_is_listed_can_be_set(typed, name):
    outcome = typed("models", name)
    assert outcome.code == 0
    head, _, table = outcome.out.partition("\n\n")
    assert head.startswith(f"{name}: ")
    assert ("--profile paper: Table 5.3" in head) == (name in ("rm", "sd"))
    _, *rows = table.splitlines()
    assert [row.split()[0] for row in rows] == list(make_ranker(name).settings())


def test_json_has_values_of_their_own_type(typed):
    outcome = typed("models", "--json")
    listed = json.loads(outcome.out)
    assert list(listed) == list(rankers())
    paper, known = read_profile("paper"), rankers()
    for name, model in listed.items():
        defaults = {p["name"]: p["default"] for p in model["parameters"]}
        settings = known[name]().settings()
        assert defaults == settings
        assert all(type(defaults[k]) is type(v) for k, v in settings.items())
        told = {p["name"]: p["paper"] for p in model["parameters"] if p["paper"] is not None}
        assert told == paper.get(name, {})
        for p in model["parameters"]:
            for value in p["grid"]:  # every value that tuning tries is one the model takes
                known[name](**{p["name"]: value})
    assert listed["sd"]["uses_feedback"] is True
    assert listed["ql"]["uses_feedback"] is False
    precision = next(p for p in listed["sd"]["parameters"] if p["name"] == "precision")
    assert precision["symbol"] == "K"


def test_several_models_as_json(typed):
    assert list(json.loads(typed("models", "sd3", "ql", "--json").out)) == ["sd3", "ql"]


def test_an_unknown_model(refused):
    assert refused("models", "ql", "bm52").startswith(
        "sdretrieval models: unknown model 'bm52'; did you mean 'bm25'?\n  One of: bm25, "
    )
