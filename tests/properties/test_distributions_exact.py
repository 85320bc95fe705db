"""What must hold of the distributions and classifiers whatever the counts."""

from __future__ import annotations

import classify_oracle as plain
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix
from scipy.special import psi

from sdretrieval.estimate.distributions import DCM, Dirichlet, SmoothedDirichlet
from sdretrieval.learn.classify import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    SmoothedDirichletClassifier,
    break_even_precision,
)

SETTINGS = settings(max_examples=25, deadline=None)
shares = st.sampled_from([1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999])
additives = st.sampled_from([1e-5, 0.1, 1.0, 10.0])
scales = st.sampled_from([0.1, 1.0, 30.0, 1e4])


@st.composite
def corpora(draw, min_docs: int = 2):
    n, words = draw(st.integers(min_docs, 10)), draw(st.integers(2, 6))
    counts = draw(arrays(np.int64, (n, words), elements=st.integers(0, 6)))
    return counts.astype(float)


@SETTINGS
@given(corpora(), shares, additives)
def test_geometric_mean_sparse_is_dense(F, lam, beta):
    """(3.33) = (3.28)."""
    found = SmoothedDirichlet.fit(csr_matrix(F), smoothing=lam, background_additive=beta).alpha
    theta = plain.smoothed(F, lam, plain.general_english(F, beta))
    assert found == pytest.approx(plain.geometric_mean(theta), rel=1e-9)


@SETTINGS
@given(corpora(), shares, additives, scales)
def test_sd_decides_by_its_density(F, lam, beta, S):
    y = np.arange(len(F)) % 2
    model = SmoothedDirichletClassifier(smoothing=lam, background_additive=beta, scale=S).fit(csr_matrix(F), y)
    ge = plain.general_english(F, beta)
    theta = plain.smoothed(F, lam, ge)
    alpha = [plain.geometric_mean(theta[y == k], S) for k in (0, 1)]
    wanted = [-S * plain.kl(alpha[1] / S, t) + S * plain.kl(alpha[0] / S, t) for t in theta]
    assert model.decision_function(F) == pytest.approx(np.array(wanted), rel=1e-6, abs=1e-9 * max(S, 1.0))


@SETTINGS
@given(corpora(), scales)
def test_dcm_maximum_is_stationary(F, S):
    """At the maximum with S fixed the derivatives of all words that occur are one number."""
    seen = F.sum(axis=0) > 0
    if not seen.any():
        return
    model = DCM.fit(F, scale=S, tolerance=1e-12)
    assert model.converged
    assert model.scale == pytest.approx(S)
    assert (model.alpha[~seen] == 0).all()
    alpha = model.alpha[seen]
    slopes = (psi(F[:, seen] + alpha) - psi(alpha)).sum(axis=0)
    assert slopes == pytest.approx(np.full(seen.sum(), slopes[0]), rel=1e-5)


@SETTINGS
@given(corpora(), scales, shares, additives)
def test_dirichlet_maximum_is_stationary(F, S, lam, beta):
    model = Dirichlet.fit(F, scale=S, smoothing=lam, background_additive=beta, tolerance=1e-12)
    assert model.converged
    assert model.scale == pytest.approx(S)
    level = psi(model.alpha) - np.log(plain.smoothed(F, lam, model.background)).mean(axis=0)
    assert level == pytest.approx(np.full(len(level), level[0]), rel=1e-6, abs=1e-6)


@SETTINGS
@given(corpora(), st.randoms())
def test_the_order_of_documents_and_words_does_not_matter(F, random):
    y = np.arange(len(F)) % 2
    documents, words = list(range(len(F))), list(range(F.shape[1]))
    random.shuffle(documents)
    random.shuffle(words)
    multinomials = MultinomialClassifier(), MultinomialClassifier(method="jelinek-mercer")
    smoothed = SmoothedDirichletClassifier(), SmoothedDirichletClassifier(cross_entropy=True)
    for estimator in (*multinomials, *smoothed, DCMClassifier(scale=5.0), DirichletClassifier(scale=5.0)):
        wanted = estimator.fit(F, y).predict_joint_log_proba(F[:, :])
        shuffled = estimator.fit(F[documents][:, words], y[documents]).predict_joint_log_proba(F[:, words])
        assert shuffled == pytest.approx(wanted, rel=1e-5, abs=1e-6)


@SETTINGS
@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=15), st.randoms())
def test_break_even_precision(pairs, random):
    relevant, scores = (list(part) for part in zip(*pairs, strict=True))
    if not any(relevant):
        return
    found = break_even_precision(relevant, scores)
    assert 0.0 <= found <= 1.0
    order = list(range(len(pairs)))
    random.shuffle(order)
    again = break_even_precision([relevant[i] for i in order], [3.5 * scores[i] + 1 for i in order])
    assert again == pytest.approx(found)
    assert break_even_precision(relevant, [float(r) for r in relevant]) == 1.0
