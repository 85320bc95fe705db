"""Every estimator against the plain reading of its equations; batches, weights, priors, the ranking form, bad input."""

from __future__ import annotations

import classify_oracle as plain
import numpy as np
import pytest
from scipy.sparse import csc_matrix, csr_matrix
from scipy.special import digamma, logsumexp

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.distributions import DCM, Dirichlet
from sdretrieval.learn.classify import (
    DCMClassifier,
    DirichletClassifier,
    MultinomialClassifier,
    RelevantAgainstRest,
    SmoothedDirichletClassifier,
)

LABELS = np.array(["arts", "sport", "trade"])


def documents(seed: int, n: int = 40, words: int = 15) -> tuple[np.ndarray, np.ndarray]:
    """Bursty counts of three classes; a word that never occurs, an empty document."""
    random = np.random.default_rng(seed)
    which = np.arange(n) % 3
    centres = random.dirichlet(np.full(words, 0.5), size=3)
    F = np.array([random.multinomial(random.integers(4, 40), random.dirichlet(8 * centres[k] + 0.01)) for k in which])
    F[:, 4] = 0
    F[7] = 0
    return F.astype(float), LABELS[which]


@pytest.fixture
def data():
    F, y = documents(0)
    G, _ = documents(100, n=12)
    G[2, 4] = 3.0  # a word unknown in training
    return F, y, G


def differences(scores: np.ndarray) -> np.ndarray:
    """What classes decide by: scores up to each document's own constant."""
    return scores - scores[:, :1]


def by_class(F: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    return [F[y == label] for label in LABELS]


# Equations --------------------------------------------------------------------------------------------------------


def test_laplace(data):
    F, y, G = data
    theta = [plain.laplace(part, 0.3) for part in by_class(F, y)]
    model = MultinomialClassifier(additive=0.3).fit(csr_matrix(F), y)
    assert np.exp(model.feature_log_prob_) == pytest.approx(np.array(theta))
    wanted = np.column_stack([(G * np.log(t)).sum(axis=1) for t in theta])
    assert differences(model.predict_joint_log_proba(G)) == pytest.approx(differences(wanted))


def test_jelinek_mercer(data):
    F, y, G = data
    ge = plain.general_english(F, 0.2)
    theta = [plain.jelinek_mercer(part, 0.7, ge) for part in by_class(F, y)]
    model = MultinomialClassifier(method="jelinek-mercer", smoothing=0.7, background_additive=0.2).fit(F, y)
    wanted = np.column_stack([(G * np.log(t)).sum(axis=1) for t in theta])
    assert differences(model.predict_joint_log_proba(csr_matrix(G))) == pytest.approx(differences(wanted))


@pytest.mark.parametrize("S", [1.0, 40.0])
@pytest.mark.parametrize("lam", [1e-4, 0.3])
def test_sd(data, lam, S):
    F, y, G = data
    ge = plain.general_english(F, 0.2)
    alpha = [plain.geometric_mean(plain.smoothed(part, lam, ge), S) for part in by_class(F, y)]
    theta = plain.smoothed(G, lam, ge)
    model = SmoothedDirichletClassifier(smoothing=lam, background_additive=0.2, scale=S).fit(csr_matrix(F), y)
    assert model.alpha_ == pytest.approx(np.array(alpha), rel=1e-10)
    density = np.column_stack([plain.log_sd(theta, a) for a in alpha])  # (3.25)
    divergence = np.column_stack([[-S * plain.kl(a / S, t) for t in theta] for a in alpha])  # (4.24)
    found = differences(model.predict_joint_log_proba(G))
    assert found == pytest.approx(differences(density), rel=1e-7, abs=1e-11)
    assert found == pytest.approx(differences(divergence), rel=1e-7, abs=1e-11)


@pytest.mark.parametrize("lam", [1e-4, 0.3])
def test_sd_ce_is_the_document_dependent_sum_alone(data, lam):
    F, y, G = data
    ge = plain.general_english(F, 0.2)
    alpha = [plain.geometric_mean(plain.smoothed(part, lam, ge)) for part in by_class(F, y)]
    n = np.maximum(G.sum(axis=1, keepdims=True), 1)
    first_sum = [(a * np.log(lam * G / n / ((1 - lam) * ge) + 1)).sum(axis=1) for a in alpha]  # (4.29)
    model = SmoothedDirichletClassifier(smoothing=lam, background_additive=0.2, cross_entropy=True).fit(F, y)
    found = model.predict_joint_log_proba(G) - model.class_log_prior_
    assert found == pytest.approx(np.column_stack(first_sum), rel=1e-10)


@pytest.mark.parametrize("S", [3.0, 300.0, None])
@pytest.mark.parametrize("method", ["newton", "fixed-point"])
def test_dcm(data, S, method):
    F, y, G = data
    model = DCMClassifier(scale=S, additive=0.05, method=method, tolerance=1e-10, max_iter=20000).fit(F, y)
    alpha = []
    for part in by_class(F, y):
        hat = DCM.fit(part, scale=S, tolerance=1e-11).alpha  # itself tested against the oracle
        alpha.append(hat.sum() * (hat + 0.05) / (hat.sum() + len(hat) * 0.05))  # (4.11)
    assert model.alpha_ == pytest.approx(np.array(alpha), rel=1e-5)
    assert model.converged_.all()
    wanted = np.column_stack([plain.log_dcm(G, a) for a in alpha])  # (4.14)
    assert differences(model.predict_joint_log_proba(G)) == pytest.approx(differences(wanted), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("S", [3.0, 300.0, None])
@pytest.mark.parametrize("method", ["newton", "fixed-point"])
def test_dirichlet(data, S, method):
    F, y, G = data
    ge = plain.general_english(F, 0.2)
    model = DirichletClassifier(
        scale=S, smoothing=0.3, background_additive=0.2, method=method, tolerance=1e-10, max_iter=20000
    ).fit(F, y)
    alpha = [Dirichlet.fit(p, scale=S, smoothing=0.3, background=ge, tolerance=1e-11).alpha for p in by_class(F, y)]
    assert model.alpha_ == pytest.approx(np.array(alpha), rel=1e-5)
    theta = plain.smoothed(G, 0.3, ge)
    wanted = np.column_stack([plain.log_dirichlet(theta, a) for a in model.alpha_])  # (3.10)
    assert differences(model.predict_joint_log_proba(G)) == pytest.approx(differences(wanted), rel=1e-7, abs=1e-8)


# Ranking form -----------------------------------------------------------------------------------------------------


def test_ranking_functions(data):
    """(4.13), (4.22), (4.23), (4.25), (4.31): differences of two classes, up to a constant that ranks nothing."""
    F, y, G = data
    ge = plain.general_english(F, 0.2)
    relevant = y == "sport"
    R, N = F[relevant], F[~relevant]

    def ranked(estimator) -> np.ndarray:
        found = estimator.fit(F, relevant).decision_function(G)
        return found - found[0]

    def constant_free(scores: np.ndarray) -> np.ndarray:
        return scores - scores[0]

    theta = plain.smoothed(G, 0.3, ge)
    n = np.maximum(G.sum(axis=1, keepdims=True), 1)
    alpha_R, alpha_N = (plain.geometric_mean(plain.smoothed(P, 0.3, ge)) for P in (R, N))
    entropies = np.array([plain.cross_entropy(alpha_N, t) - plain.cross_entropy(alpha_R, t) for t in theta])
    sparse = ((alpha_R - alpha_N) * np.log(0.3 * G / n / (0.7 * ge) + 1)).sum(axis=1)
    for ce in (False, True):
        sd = SmoothedDirichletClassifier(smoothing=0.3, background_additive=0.2, cross_entropy=ce)
        assert ranked(sd) == pytest.approx(constant_free(entropies))
        assert ranked(sd) == pytest.approx(constant_free(sparse))

    dcm = DCMClassifier(scale=30.0, additive=0.1).fit(F, relevant)
    from scipy.special import gammaln

    a_N, a_R = dcm.alpha_
    wanted = (gammaln(a_R + G) - gammaln(a_R) - gammaln(a_N + G) + gammaln(a_N)).sum(axis=1)
    assert dcm.decision_function(G) == pytest.approx(wanted, rel=1e-9, abs=1e-9)

    dirichlet = DirichletClassifier(scale=30.0, smoothing=0.3, background_additive=0.2)
    found = ranked(dirichlet)
    a_N, a_R = dirichlet.alpha_
    entropies = np.array([plain.cross_entropy(a_N, t) - plain.cross_entropy(a_R, t) for t in theta])
    assert found == pytest.approx(constant_free(entropies), rel=1e-8, abs=1e-8)


def test_dirichlet_offsets_of_classes_that_hardly_differ():
    """Sums of the size of a million that differ by 1e-9: taken one after the other, their difference is rounding.

    The difference to first order is Σ_j δ_j (log((1 - λ) θ^GE_j) - ψ(α_j)) + ψ(S) Σ_j δ_j.
    """
    dice, n = np.random.default_rng(3), 200_000
    alpha = dice.uniform(0.5, 1.5, n) * 1e-4
    change = alpha * dice.normal(0.0, 1e-12, n)
    model = DirichletClassifier(smoothing=0.1)
    model.background_ = alpha / alpha.sum()
    both = np.column_stack([alpha + change, alpha - change])
    model.scale_ = both.sum(axis=0)
    applied = (both[:, 0] - both[:, 1]) / 2  # what is left of the change in double precision
    slope = np.log(0.9 * model.background_) - digamma(alpha) + digamma(alpha.sum())
    first, second = model._offsets(both)
    assert (first - second) / 2 == pytest.approx(float(applied @ slope), rel=1e-2)


def test_relevant_against_rest(data):
    F, y, G = data
    topics = [[label] if i % 4 else [label, "extra"] for i, label in enumerate(y)]
    model = RelevantAgainstRest(SmoothedDirichletClassifier()).fit(csr_matrix(F), topics)
    assert model.labels_.tolist() == ["arts", "extra", "sport", "trade"]
    scores = model.decision_function(G)
    own = SmoothedDirichletClassifier().fit(F, y == "sport").decision_function(G)
    assert scores[:, 2] == pytest.approx(own)
    assert (model.predict(G) == (scores > 0)).all()
    matrix = np.array([[name in labels for name in model.labels_] for labels in topics])
    again = RelevantAgainstRest(SmoothedDirichletClassifier()).fit(F, matrix).decision_function(G)
    assert again == pytest.approx(scores)


def test_rest_from_the_other_topics_as_printed(data):
    """(4.6): documents of every other topic, once for each, even those that are relevant too."""
    F, _, G = data
    matrix = np.zeros((len(F), 3), dtype=bool)
    matrix[:20, 0] = matrix[10:30, 1] = matrix[25:35, 2] = True
    found = RelevantAgainstRest(MultinomialClassifier(additive=0.5), rest="labels").fit(F, matrix).decision_function(G)
    log_R = np.log(plain.laplace(F[:20], 0.5))
    log_N = np.log(plain.laplace(np.concatenate([F[10:30], F[25:35]]), 0.5))
    assert found[:, 0] == pytest.approx(G @ (log_R - log_N))


@pytest.mark.parametrize(
    "make",
    [
        SmoothedDirichletClassifier,
        DirichletClassifier,
        lambda **given: MultinomialClassifier(method="jelinek-mercer", **given),
    ],
)
def test_rest_from_the_other_topics_has_the_general_english_of_all_documents(data, make):
    """(4.10) counts every training document once, not the rows that make up the two classes."""
    F, _, G = data
    matrix = np.zeros((len(F), 3), dtype=bool)
    matrix[:20, 0] = matrix[10:30, 1] = matrix[25:35, 2] = True
    found = RelevantAgainstRest(make(), rest="labels").fit(F, matrix).decision_function(G)[:, 0]
    rows = np.concatenate([np.arange(20), np.arange(10, 30), np.arange(25, 35)])
    everything = (F.sum(axis=0) + make().background_additive) / (F.sum() + make().background_additive * F.shape[1])
    wanted = make(background=everything).fit(F[rows], np.arange(len(rows)) < 20).decision_function(G)
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    selected = make().fit(F[rows], np.arange(len(rows)) < 20).decision_function(G)
    assert found != pytest.approx(selected, rel=1e-6)


@pytest.mark.parametrize("made", [MultinomialClassifier(), SmoothedDirichletClassifier()])
@pytest.mark.parametrize("rest", ["all", "labels"])
def test_ranking_form_with_weights(data, made, rest):
    F, y, G = data
    weights = np.random.default_rng(2).integers(0, 3, len(F))
    topics = [[label] for label in y]
    weighted = RelevantAgainstRest(made, rest=rest).fit(F, topics, sample_weight=weights)
    kept = np.repeat(np.arange(len(F)), weights)
    repeated = RelevantAgainstRest(made, rest=rest).fit(F[kept], [topics[i] for i in kept])
    assert weighted.decision_function(G) == pytest.approx(repeated.decision_function(G))


# Estimators -------------------------------------------------------------------------------------------------------

ESTIMATORS = {
    "laplace": MultinomialClassifier(additive=0.1),
    "jelinek-mercer": MultinomialClassifier(method="jelinek-mercer"),
    "sd": SmoothedDirichletClassifier(),
    "sd-ce": SmoothedDirichletClassifier(cross_entropy=True),
    "dcm": DCMClassifier(scale=20.0),
    "dcm, S free": DCMClassifier(scale=None),
    "dirichlet": DirichletClassifier(scale=20.0),
    "dirichlet, S free": DirichletClassifier(scale=None),
}


@pytest.fixture(params=ESTIMATORS)
def estimator(request):
    from sklearn.base import clone

    return clone(ESTIMATORS[request.param])


def test_probabilities_sum_to_one_and_agree_with_predictions(estimator, data):
    F, y, G = data
    model = estimator.fit(F, y)
    p = model.predict_proba(G)
    assert p.sum(axis=1) == pytest.approx(np.ones(len(G)))
    assert (model.classes_[p.argmax(axis=1)] == model.predict(G)).all()
    assert np.log(p) == pytest.approx(model.predict_log_proba(G))
    assert model.decision_function(G).shape == (len(G), 3)


def test_formats_of_counts_do_not_matter(estimator, data):
    F, y, G = data
    wanted = estimator.fit(F, y).predict_joint_log_proba(G)
    for kind in (csr_matrix, csc_matrix):
        assert estimator.fit(kind(F), y).predict_joint_log_proba(kind(G)) == pytest.approx(wanted)
    integers = estimator.fit(csr_matrix(F.astype(np.int32)), y).predict_joint_log_proba(G.astype(np.int64))
    assert integers == pytest.approx(wanted)
    half = csr_matrix(F / 2)  # every count in two halves, one behind the other in its row
    spans = list(zip(half.indptr[:-1], half.indptr[1:], strict=True))
    twice = [np.concatenate([np.tile(part[a:b], 2) for a, b in spans]) for part in (half.data, half.indices)]
    halves = csr_matrix((*twice, 2 * half.indptr), shape=F.shape)
    assert halves.nnz == 2 * half.nnz
    assert estimator.fit(halves, y).predict_joint_log_proba(G) == pytest.approx(wanted)


def test_sample_weights_are_repetitions(estimator, data):
    F, y, G = data
    weights = np.random.default_rng(3).integers(0, 3, len(F))
    weighted = estimator.fit(F, y, sample_weight=weights).predict_joint_log_proba(G)
    repeated = estimator.fit(np.repeat(F, weights, axis=0), np.repeat(y, weights)).predict_joint_log_proba(G)
    assert weighted == pytest.approx(repeated, rel=1e-5, abs=1e-7)


def test_priors(estimator, data):
    F, y, G = data
    uneven = np.concatenate([np.flatnonzero(y == "arts"), np.flatnonzero(y != "arts")[:6]])
    F, y = F[uneven], y[uneven]
    flat = estimator.fit(F, y).predict_joint_log_proba(G)
    counted = estimator.set_params(fit_prior=True).fit(F, y).predict_joint_log_proba(G)
    share = np.unique(y, return_counts=True)[1] / len(y)
    assert counted - flat == pytest.approx(np.tile(np.log(3 * share), (len(G), 1)))
    given = estimator.set_params(class_prior=[0.2, 0.3, 0.5]).fit(F, y).predict_joint_log_proba(G)
    assert given - flat == pytest.approx(np.tile(np.log(3 * np.array([0.2, 0.3, 0.5])), (len(G), 1)))


def test_a_second_fit_forgets_the_first(estimator, data):
    F, y, G = data
    wanted = estimator.fit(F, y).predict_joint_log_proba(G)
    again = estimator.fit(F[::-1][:15], y[::-1][:15]).fit(F, y).predict_joint_log_proba(G)
    assert again == pytest.approx(wanted, rel=1e-9, abs=1e-12)


def test_fitted_state_is_plain_arrays(estimator, data):
    F, y, _ = data
    for name, value in vars(estimator.fit(F, y)).items():
        if name.endswith("_") and not name.startswith("_"):
            assert isinstance(value, np.ndarray | int | float), name
            assert not isinstance(value, np.ndarray) or value.dtype != object, name


INCREMENTAL = ["laplace", "jelinek-mercer"]


@pytest.mark.parametrize("name", INCREMENTAL)
def test_batches_of_the_multinomial_make_the_same_classifier(name, data):
    F, y, G = data
    whole = ESTIMATORS[name].fit(F, y).predict_joint_log_proba(G)
    model = ESTIMATORS[name].__class__(**ESTIMATORS[name].get_params())
    for start in range(0, len(F), 7):
        model.partial_fit(F[start : start + 7], y[start : start + 7], classes=LABELS if start == 0 else None)
    assert model.predict_joint_log_proba(G) == pytest.approx(whole)


@pytest.mark.parametrize("ce", [False, True])
def test_batches_of_sd(data, ce):
    F, y, G = data
    ge = plain.general_english(F, 0.2)
    given = {"background": ge, "smoothing": 0.3, "cross_entropy": ce}
    whole = SmoothedDirichletClassifier(**given).fit(F, y).predict_joint_log_proba(G)
    model = SmoothedDirichletClassifier(**given)
    for start in range(0, len(F), 7):
        model.partial_fit(F[start : start + 7], y[start : start + 7], classes=LABELS[::-1])
    assert model.predict_joint_log_proba(G) == pytest.approx(whole, rel=1e-9, abs=1e-12)
    # without a background of its own, one batch is a fit, and each later batch is smoothed with all so far
    alone = SmoothedDirichletClassifier(smoothing=0.3, background_additive=0.2, cross_entropy=ce)
    first = alone.partial_fit(F[:20], y[:20], classes=LABELS).predict_joint_log_proba(G)
    assert first == pytest.approx(
        SmoothedDirichletClassifier(smoothing=0.3, background_additive=0.2, cross_entropy=ce)
        .fit(F[:20], y[:20])
        .predict_joint_log_proba(G)
    )
    alone.partial_fit(F[20:], y[20:])
    assert alone.background_ == pytest.approx(ge)
    log_sums = np.array(
        [
            sum(
                np.log(plain.smoothed(part[y_part == label], 0.3, g) / (0.7 * g)).sum(axis=0)
                + np.log(0.7) * (part[y_part == label].sum(axis=1) == 0).sum()
                for part, y_part, g in ((F[:20], y[:20], plain.general_english(F[:20], 0.2)), (F[20:], y[20:], ge))
            )
            for label in LABELS
        ]
    )
    assert alone.log_sums_ == pytest.approx(log_sums, abs=1e-9)


def test_a_class_without_documents_is_general_english(data):
    F, y, _ = data
    model = SmoothedDirichletClassifier(smoothing=0.3).partial_fit(F, y, classes=[*LABELS, "weather"])
    assert model.alpha_[3] == pytest.approx(model.background_)
    assert "weather" not in model.fit(F, y).classes_


@pytest.mark.parametrize("name", [*INCREMENTAL, "sd"])
def test_bad_batches(name, data):
    F, y, _ = data
    model = ESTIMATORS[name].__class__(**ESTIMATORS[name].get_params())
    with pytest.raises(ParameterError, match="needs the classes"):
        model.partial_fit(F, y)
    model.partial_fit(F, y, classes=LABELS)
    with pytest.raises(ParameterError, match="weather"):
        model.partial_fit(F[:2], ["weather", "arts"])
    with pytest.raises(ParameterError, match="not those of earlier"):
        model.partial_fit(F, y, classes=["arts", "sport"])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MultinomialClassifier(method="dirichlet"), "dirichlet"),
        (lambda: MultinomialClassifier(additive=0.0), "additive"),
        (lambda: MultinomialClassifier(method="jelinek-mercer", smoothing=1.0), "smoothing"),
        (lambda: SmoothedDirichletClassifier(smoothing=0.0), "smoothing"),
        (lambda: SmoothedDirichletClassifier(scale=np.inf), "scale"),
        (lambda: SmoothedDirichletClassifier(background=np.ones(15)), "sum to one"),
        (lambda: SmoothedDirichletClassifier(background=np.full(3, 1 / 3)), "15 terms"),
        (lambda: DCMClassifier(scale=-1.0), "scale"),
        (lambda: DCMClassifier(method="gradient"), "gradient"),
        (lambda: DirichletClassifier(background_additive=0.0), "background_additive"),
        (lambda: DirichletClassifier(method="gradient"), "gradient"),
        (lambda: MultinomialClassifier(class_prior=[0.5, 0.5]), "class_prior"),
        (lambda: MultinomialClassifier(class_prior=[0.5, 0.5, 0.5]), "class_prior"),
        (lambda: RelevantAgainstRest(MultinomialClassifier(), rest="none"), "rest"),
    ],
)
def test_bad_parameters_are_named(make, said, data):
    F, y, _ = data
    with pytest.raises(ParameterError, match=said):
        make().fit(F, y)


def test_bad_topics_are_named(data):
    F, y, _ = data
    ranker = RelevantAgainstRest(MultinomialClassifier())
    with pytest.raises(ParameterError, match="weather"):
        ranker.fit(F, y, labels=["arts", "weather"])
    with pytest.raises(ParameterError, match="documents but"):
        ranker.fit(F, y[:5])
    with pytest.raises(ParameterError, match="names for"):
        ranker.fit(F, np.ones((len(F), 2)), labels=["a"])


@pytest.mark.parametrize("ce", [False, True])
def test_probabilities_of_sd_are_neither_uniform_nor_beyond_reason(ce):
    """The factor is learnt from documents held out; decisions and scores are those without it."""
    rng = np.random.default_rng(5)
    words = rng.dirichlet(np.full(60, 0.3), 3)
    y = np.repeat(["a", "b", "c"], 80)
    X = np.vstack([rng.multinomial(12, 0.25 * words[k // 80] + 0.75 * words.mean(axis=0)) for k in range(240)])
    train, test = np.arange(240) % 2 == 0, np.arange(240) % 2 == 1
    model = SmoothedDirichletClassifier(smoothing=0.1, cross_entropy=ce).fit(X[train], y[train])
    plain = SmoothedDirichletClassifier(smoothing=0.1, cross_entropy=ce, calibrate=False).fit(X[train], y[train])
    assert (model.predict(X[test]) == plain.predict(X[test])).all() and plain.sharpness_ == 1.0
    np.testing.assert_array_equal(model.decision_function(X[test]), plain.decision_function(X[test]))
    truth = np.arange(120), np.searchsorted(plain.classes_, y[test])

    def likelihood(scores: np.ndarray) -> float:
        return float((scores - logsumexp(scores, axis=1, keepdims=True))[truth].mean())

    chosen, unsure = (float(m.predict_log_proba(X[test])[truth].mean()) for m in (model, plain))
    scores = plain.predict_joint_log_proba(X[test])
    best = max(likelihood(factor * scores) for factor in np.geomspace(1e-2, 1e6, 100))
    assert unsure == pytest.approx(-np.log(3), abs=0.02) and best - 0.02 < chosen and chosen > unsure + 0.1


def test_too_few_documents_to_hold_any_out():
    assert SmoothedDirichletClassifier().fit([[1, 0], [0, 1]], ["a", "b"]).sharpness_ == 1.0
