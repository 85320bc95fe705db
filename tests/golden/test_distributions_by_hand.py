"""Fits whose answer is known in closed form, and the thesis's ordering of classifiers on real posts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sdretrieval.estimate.distributions import DCM, Dirichlet, SmoothedDirichlet
from sdretrieval.learn.classify import MultinomialClassifier, SmoothedDirichletClassifier

HALVES = np.array([0.5, 0.5])


def test_geometric_mean_of_two_documents():
    """λ = 1/2, θ^GE = (1/2, 1/2): documents (1, 0) and (1, 1) are (3/4, 1/4) and (1/2, 1/2), whose geometric mean is
    (√3, 1)/√8."""
    alpha = SmoothedDirichlet.fit([[1, 0], [1, 1]], smoothing=0.5, background=HALVES).alpha
    assert alpha == pytest.approx(np.array([np.sqrt(3), 1]) / (np.sqrt(3) + 1), rel=1e-14)


def test_sd_density_of_a_document():
    """(3.25) with α = (1/2, 1/2), S = 1 at θ = (3/4, 1/4): 1/(√½ √½) · (3/16)^(-1/2) = 2 · 4/√3."""
    model = SmoothedDirichlet(HALVES, 0.5, HALVES)
    assert model.log_density([[1, 0]]) == pytest.approx(np.log([8 / np.sqrt(3)]), rel=1e-14)


def test_dirichlet_from_gauss_digamma_at_one_half():
    """ψ(1) - ψ(1/2) = 2 log 2 = log(.8/.2): the maximum for a document (4/5, 1/5) with S = 3/2 is α = (1, 1/2)."""
    for method in ("newton", "fixed-point"):
        model = Dirichlet.fit(
            [[1, 0]], smoothing=0.6, background=HALVES, scale=1.5, method=method, tolerance=1e-13, max_iter=100000
        )
        assert model.alpha == pytest.approx([1.0, 0.5], rel=1e-9)


def test_dcm_of_words_that_never_repeat():
    """Where no word is twice in a document the derivative of each is c_j/α_j: α_j = S c_j / Σ c."""
    for method in ("newton", "fixed-point"):
        model = DCM.fit([[1, 1, 0], [1, 0, 0], [1, 0, 1], [0, 1, 0]], scale=12.0, method=method)
        assert model.alpha == pytest.approx([6.0, 4.0, 2.0], rel=1e-9)


def test_dcm_of_one_word_twice():
    """Documents (2, 0) and (0, 1), S = 1: 1/a + 1/(a+1) = 1/(1-a) has a = 1/√3."""
    model = DCM.fit([[2, 0], [0, 1]], scale=1.0, tolerance=1e-13)
    assert model.alpha == pytest.approx([1 / np.sqrt(3), 1 - 1 / np.sqrt(3)], rel=1e-9)


@pytest.fixture(scope="module")
def posts(shared_data: Path) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    """Every second post of 20 Newsgroups by date: counts of plain words, groups, and which are to learn from."""
    from sklearn.feature_extraction.text import CountVectorizer

    with gzip.open(shared_data / "20news-bydate" / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for i, line in enumerate(lines) if i % 2 == 0]
    counts = CountVectorizer(token_pattern="[a-z]{2,}").fit_transform(record["contents"] for record in records)
    groups = np.array([record["labels"][0] for record in records])
    return csr_matrix(counts), groups, np.array([record["split"] == "train" for record in records])


@pytest.mark.shared
def test_order_of_table_4_2(posts):
    """Thesis, Table 4.2: SD-CE > SD > multinomial with Laplace smoothing; with its parameters, on the split by date."""
    counts, groups, train = posts

    def accuracy(model) -> float:
        return float(np.mean(model.fit(counts[train], groups[train]).predict(counts[~train]) == groups[~train]))

    multinomial = accuracy(MultinomialClassifier(additive=1e-3))
    sd = accuracy(SmoothedDirichletClassifier(smoothing=1e-4, background_additive=0.1))
    ce = accuracy(SmoothedDirichletClassifier(smoothing=1e-4, background_additive=1e-3, cross_entropy=True))
    assert ce > sd > multinomial > 0.5


@pytest.mark.shared
def test_cross_entropy_with_the_background_sum_is_no_classifier(posts):
    """H(α, θ) read literally, background sum of (4.29) included: about chance (a twentieth)."""
    counts, groups, train = posts
    model = SmoothedDirichletClassifier(smoothing=1e-4, background_additive=1e-3, cross_entropy=True)
    model.fit(counts[train], groups[train])
    sums = model.alpha_ @ np.log((1 - 1e-4) * model.background_)
    literal = model.predict_joint_log_proba(counts[~train]) + sums
    assert np.mean(model.classes_[literal.argmax(axis=1)] == groups[~train]) < 0.1
