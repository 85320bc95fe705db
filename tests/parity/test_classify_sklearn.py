"""Against scikit-learn: its estimator checks, its naive Bayes, its pipelines and grid search."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sdretrieval.learn.classify import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    RelevantAgainstRest,
    SmoothedDirichletClassifier,
)

ESTIMATORS = [MultinomialClassifier(), SmoothedDirichletClassifier(), DCMClassifier(), DirichletClassifier()]


def expected_failures(estimator) -> dict[str, str]:
    return {"check_decision_proba_consistency": "its data has negative counts, whatever the estimator's tags say"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # blobs are no bursty counts
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_decisions_and_probabilities_are_consistent():
    """What the check above would have asked, on data that are counts."""
    X, y = documents()
    for estimator in ESTIMATORS:
        model = clone(estimator).fit(X, y > 0)
        order = np.argsort(model.decision_function(X), kind="stable")
        assert (np.diff(model.predict_proba(X)[order, 1]) >= -1e-12).all()


def documents(seed: int = 0, n: int = 90, words: int = 30) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centres = random.dirichlet(np.ones(words), size=3)
    return np.array([random.multinomial(25, random.dirichlet(15 * centres[k] + 0.02)) for k in y]), y


@pytest.mark.parametrize("fit_prior", [False, True])
@pytest.mark.parametrize("delta", [1e-3, 1.0])
def test_laplace_is_multinomial_nb(delta, fit_prior):
    X, y = documents()
    weights = np.random.default_rng(1).random(len(y))
    ours = MultinomialClassifier(additive=delta, fit_prior=fit_prior).fit(csr_matrix(X[:60]), y[:60], weights[:60])
    theirs = MultinomialNB(alpha=delta, fit_prior=fit_prior).fit(X[:60], y[:60], weights[:60])
    assert ours.feature_log_prob_ == pytest.approx(theirs.feature_log_prob_)
    assert ours.class_log_prior_ == pytest.approx(theirs.class_log_prior_)
    assert ours.predict_joint_log_proba(X[60:]) == pytest.approx(theirs.predict_joint_log_proba(X[60:]))
    assert ours.predict_proba(X[60:]) == pytest.approx(theirs.predict_proba(X[60:]))
    batches = MultinomialClassifier(additive=delta, fit_prior=fit_prior)
    their_batches = MultinomialNB(alpha=delta, fit_prior=fit_prior)
    for part in (slice(0, 20), slice(20, 60)):
        batches.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=weights[part])
        their_batches.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_weight=weights[part])
        assert batches.predict_proba(X[60:]) == pytest.approx(their_batches.predict_proba(X[60:]))


@pytest.mark.parametrize("estimator", ESTIMATORS[:5], ids=str)
def test_ranking_form_is_one_against_the_rest(estimator):
    X, y = documents()
    Y = np.eye(3, dtype=int)[y]
    Y[::5] = 1 - Y[::5]  # two topics
    ours = RelevantAgainstRest(estimator).fit(X[:60], Y[:60]).decision_function(X[60:])
    theirs = OneVsRestClassifier(estimator).fit(X[:60], Y[:60]).decision_function(X[60:])
    assert ours == pytest.approx(theirs)


def test_in_a_pipeline_with_a_search():
    texts = ["sun and rain", "rain and wind", "sun wind sun", "goal and ball", "ball ball team", "team goal win"] * 3
    y = ["weather"] * 3 + ["sport"] * 3
    pipeline = make_pipeline(CountVectorizer(), SmoothedDirichletClassifier())
    grid = {"smootheddirichletclassifier__smoothing": [1e-3, 0.1], "smootheddirichletclassifier__cross_entropy": [0, 1]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(texts, y * 3)
    assert search.best_score_ == 1.0
    assert search.predict(["a ball in the rain and wind and sun", "a goal"]).tolist() == ["weather", "sport"]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_learns(estimator):
    X, y = documents(n=150)
    assert cross_val_score(estimator, X, y, cv=3).mean() > 0.85
