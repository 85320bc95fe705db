"""Profiles: shipped ones, and files."""

from __future__ import annotations

import json

import pytest

from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.ranking.profile_files import SHIPPED, WEAK, profile_settings, read_profile, weakness
from sdretrieval.ranking.registry import make_ranker, rankers


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_fit_the_models(name):
    known, profile = rankers(), read_profile(name)
    assert set(profile) <= set(known)
    for model, settings in profile.items():
        ranker = make_ranker(model, profile=name)
        assert {key: getattr(ranker, key) for key in settings} == settings
        left = {key: value for key, value in ranker.settings().items() if key not in settings}
        assert left == {key: getattr(known[model](), key) for key in left}  # the rest are the defaults


def test_the_paper_profile_is_the_paper():
    """The optima that Nallapati's thesis reports with Table 5.3, tuned there on AP news."""
    sd, rm = make_ranker("sd", profile="paper"), make_ranker("rm", profile="paper")
    assert (sd.lambda_query, sd.lambda_first, sd.lambda_feedback, sd.lambda_ranking) == (0.99, 0.6, 1e-4, 0.8)
    assert (sd.precision, sd.fb_docs, sd.iterations) == (0.8, 100, 1)
    assert (sd.smoothing, sd.first_stage, sd.posterior) == ("jm", "sd", "approximate")
    assert (rm.lambda_query, rm.lambda_model, rm.lambda_ranking, rm.fb_docs) == (0.7, 0.6, 0.1, 100)
    assert rm.smoothing == "jm"


def test_weak_profiles_are_shipped_ones_that_differ():
    for profile, model in WEAK:
        assert make_ranker(model, profile=profile) != make_ranker(model)
    assert "cacm .221" in weakness("paper", "sd") and "cacm .258" in weakness("paper", "rm")
    assert weakness("paper", "ql") == weakness(None, "sd") == weakness("default", "sd") == ""


def test_the_anserini_profile_is_anserini():
    """Defaults of Anserini's SearchCollection: -bm25.k1 0.9 -bm25.b 0.4 -rm3.fbDocs 10 -rm3.fbTerms 10
    -rm3.originalQueryWeight 0.5."""
    rm3, bm25 = make_ranker("rm3", profile="anserini"), make_ranker("bm25", profile="anserini")
    assert (rm3.mode, rm3.first_stage) == ("anserini", "bm25")
    assert (rm3.fb_docs, rm3.fb_terms, rm3.original_query_weight, rm3.k1, rm3.b) == (10, 10, 0.5, 0.9, 0.4)
    assert (bm25.k1, bm25.b) == (0.9, 0.4)


@pytest.mark.parametrize("model", rankers())
def test_the_default_profile_is_no_profile(model):
    assert make_ranker(model, profile="default") == make_ranker(model)


def test_settings_win_over_the_profile():
    assert make_ranker("sd", ["fb_docs=5"], profile="paper").fb_docs == 5
    assert make_ranker("sd", {"fb_docs": 5}, profile="paper") == make_ranker("sd", profile="paper").with_(fb_docs=5)


@pytest.fixture
def file(tmp_path):
    def write(content) -> str:
        path = tmp_path / "mine.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    return write


def test_a_file(file):
    path = file({"sd": {"fb_docs": 20.0, "smoothing": "dirichlet"}, "ql": {"mu": "750"}})
    sd = make_ranker("sd", profile=path)
    assert (sd.fb_docs, sd.smoothing) == (20, "dirichlet")
    assert type(sd.fb_docs) is int
    assert make_ranker("ql", profile=path).mu == 750.0


def test_a_file_that_says_nothing_about_the_model(file):
    """Silently falling back to the defaults would pass untuned numbers off as tuned ones."""
    path = file({"sd3": {"fb_docs": 20}, "ql": {}})
    with pytest.raises(InputError, match=r"mine\.json: nothing about 'sd' in this profile") as caught:
        make_ranker("sd", profile=path)
    assert caught.value.remedy == "It is for: sd3, ql."
    assert make_ranker("ql", profile=path) == make_ranker("ql")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "mine.json: not JSON"),
        ("fb_docs=20", "mine.json: not JSON"),
        ([1], "mine.json: a JSON object was expected, got [1]"),
        ({"fb_docs": 20}, "mine.json: 'fb_docs' is given 20"),
        ({"sd": {"depth": 3}}, "mine.json: sd has no parameter 'depth'"),
        ({"sd": {"fb_docs": "many"}}, "mine.json: fb_docs must be a whole number; got 'many'"),
        ({"sd": {"fb_docs": None}}, "mine.json: sd: fb_docs must be a number; got None"),
        ({"sd": {"fb_docs": 0}}, "mine.json: sd: fb_docs (N) must be "),
        ({"sd": {"fb_docs": [20]}}, "mine.json: sd: fb_docs must be a number"),
    ],
)
def test_a_file_that_cannot_be_used(file, content, told):
    with pytest.raises(InputError) as caught:
        make_ranker("sd", profile=file(content))
    assert told in caught.value.message


def test_what_is_neither_a_name_nor_a_file(tmp_path):
    for name in ("papper", str(tmp_path), str(tmp_path / "no.json")):
        with pytest.raises(ParameterError, match="no profile") as caught:
            read_profile(name)
        assert "default, paper, anserini" in caught.value.remedy


def test_settings_of_a_profile_come_typed():
    assert profile_settings("paper", rankers()["sd"])["fb_docs"] == 100
    assert profile_settings("paper", rankers()["bm25"]) == {}
