"""Tracking models against the thesis's own recursions and against estimation from all documents at once.

The oracles are dense and slow: whole-vocabulary vectors, every equation as printed (with the slips mended that are
noted at each).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.learn.tracking.replay import MatrixStream, replay
from sdretrieval.learn.tracking.story import Forgetting
from sdretrieval.learn.tracking.story_models import MODELS, make_model
from sdretrieval.learn.tracking.stream_background import Background, StreamDocument
from sdretrieval.learn.tracking.tracker import Tracker

V = 40
WORDS = [f"w{i:02d}" for i in range(V)]
PARAMETERS = {
    "tfidf": {},
    "rm": {"lambda_score": 0.2, "lambda_learn": 0.6, "score": "full"},
    "nb": {"lambda_learn": 0.3, "prior_odds": 1e-3},
    "sd": {"lambda_score": 0.2, "lambda_learn": 0.4, "precision": 3.0, "seed_weight": 2.0, "score": "full"},
}


def counts(n: int = 30, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(V, 0.5))
    return np.stack([rng.multinomial(rng.integers(5, 40), p) for _ in range(n)]).astype(float)


def corpus() -> tuple[np.ndarray, Background]:
    earlier = counts(50, 1)
    earlier[0] += 1.0  # every word is known
    return earlier, Background.of_counts(earlier, WORDS)


def document(row: np.ndarray, docid: str = "d", time: int | None = None) -> StreamDocument:
    words = np.flatnonzero(row)
    return StreamDocument.make(docid, words, row[words], time)


# -- scores, by the equations over the whole vocabulary --------------------------------------------------------------


def smoothed(row: np.ndarray, p: np.ndarray, lam: float) -> np.ndarray:
    return lam * row / row.sum() + (1 - lam) * p


class Batch:
    """A story estimated from scratch, from all its documents, each time: what the online update must equal."""

    def __init__(self, name: str, background: Background, seed: np.ndarray, **parameters) -> None:
        self.name, self.background, self.parameters = name, background, parameters
        self.p = background.p(np.arange(V))
        self.rows, self.weights = [seed], [1.0]

    def score(self, row: np.ndarray) -> float:
        p, q = self.p, self.parameters
        if self.name == "tfidf":
            idf = self.background.idf(np.arange(V))
            v = np.mean(self.rows, axis=0) * idf  # (6.4), mended: the mean of the vectors
            d = row * idf
            return float(v @ d / np.linalg.norm(v) / np.linalg.norm(d))
        if self.name == "rm":
            theta = np.mean([smoothed(r, p, q["lambda_learn"]) for r in self.rows], axis=0)  # (6.10)
            return float(theta @ np.log(smoothed(row, p, q["lambda_score"])))  # -H(θ^R, θ^D), (6.12)
        if self.name == "nb":
            weights = np.array(self.weights)
            theta = weights @ np.array(self.rows) / (weights @ np.array([r.sum() for r in self.rows]))  # (6.15)
            theta = q["lambda_learn"] * theta + (1 - q["lambda_learn"]) * p  # (6.16)
            return math.log(q["prior_odds"]) + float(row @ np.log(theta / p))  # (6.14)
        # (5.12) over S λ_M
        return float((self._alpha() - p) @ np.log(smoothed(row, p, q["lambda_score"]))) / q["lambda_learn"]

    def _alpha(self) -> np.ndarray:
        """(5.13) with the weights of (6.19): the seed weighs W_0 times the heaviest learnt document."""
        q = self.parameters
        log_w = np.array(self.weights[1:])
        w = np.exp(log_w - log_w.max()) if len(log_w) else np.zeros(0)
        w = np.concatenate([[q["seed_weight"]], w])
        logs = np.array([np.log(smoothed(r, self.p, q["lambda_learn"])) for r in self.rows])
        alpha = np.exp(w @ logs / w.sum())
        return alpha / alpha.sum()

    def learn(self, row: np.ndarray) -> None:
        score = self.score(row)
        if self.name == "nb":
            self.weights.append(1 / (1 + math.exp(-score)))  # (6.13)
        elif self.name == "sd":
            q = self.parameters
            phi = np.log1p(q["lambda_score"] * row / row.sum() / ((1 - q["lambda_score"]) * self.p))
            self.weights.append(q["precision"] * float((self._alpha() - self.p) @ phi))  # log of (5.26)
        else:
            self.weights.append(1.0)
        self.rows.append(row)


@pytest.fixture
def closed_background(monkeypatch) -> Background:
    """General English without an unseen word, so that printed equations over V words hold to the letter."""
    _, background = corpus()
    total = background._frozen_cf[:V].sum()
    monkeypatch.setattr(Background, "_total", property(lambda self: total))
    monkeypatch.setattr(Background, "p", lambda self, words: self._frozen_cf[words] / total)
    monkeypatch.setattr(
        Background, "entropy_sum", property(lambda self: float(self.p(np.arange(V)) @ np.log(self.p(np.arange(V)))))
    )
    return background


@pytest.mark.parametrize("name", MODELS)
def test_online_updates_equal_estimation_from_all_documents(name: str, closed_background: Background) -> None:
    """Scores after every update, each within 1e-9 of the same model estimated from scratch."""
    rows = counts(40)
    parameters = PARAMETERS[name]
    oracle = Batch(name, closed_background, rows[0], **parameters)
    tracker = Tracker(make_model(name, parameters), closed_background)
    tracker.add_story("t", [document(rows[0])])
    for i, row in enumerate(rows[1:]):
        score = tracker.score(document(row))[0]
        assert score == pytest.approx(oracle.score(row), abs=1e-9)
        if i % 3 == 0:
            oracle.learn(row)
            tracker.learn("t", document(row))
    assert tracker.stories[0].n_learnt == 13


@pytest.mark.parametrize("name", MODELS)
def test_estimates_are_distributions(name: str, closed_background: Background) -> None:
    """θ^R and α^R/S sum to one over the vocabulary after learning."""
    rows = counts(20)
    tracker = Tracker(make_model(name, PARAMETERS[name]), closed_background)
    tracker.add_story("t", [document(rows[0])])
    for row in rows[1:10]:
        tracker.learn("t", document(row))
    story, p = tracker.stories[0], closed_background.p(np.arange(V))
    m = np.zeros(V)
    m[story.words] = story.weights
    if name == "rm":
        assert (m + story.k * p).sum() == pytest.approx(1, abs=1e-12)
    elif name == "sd":
        assert (m + story.k * p).sum() == pytest.approx(0, abs=1e-12)  # (α/S - p) / λ_M
        assert ((m + story.k * p) * PARAMETERS["sd"]["lambda_learn"] + p).min() > 0
    elif name == "nb":
        lam = PARAMETERS["nb"]["lambda_learn"]
        assert (np.exp(m) * (1 - lam) * p).sum() == pytest.approx(1, abs=1e-12)
    else:
        assert np.linalg.norm(story.weights) == pytest.approx(1, abs=1e-12)


def test_sd_equals_the_published_recursion(closed_background: Background) -> None:
    """(6.21)-(6.23) step by step, with Z_t and Δ(t); W_0 >= 1 and weights as exp of the score over words."""
    rows, p = counts(25), closed_background.p(np.arange(V))
    q = dict(PARAMETERS["sd"], score="words")
    tracker = Tracker(make_model("sd", q), closed_background)
    tracker.add_story("t", [document(rows[0])])
    theta0 = smoothed(rows[0], p, q["lambda_learn"])
    alpha = theta0.copy()  # Z_0 = 1
    unnormalised, sigma, w0, largest = theta0.copy(), 0.0, 0.0, 0.0
    for row in rows[1:]:
        phi = np.log1p(q["lambda_score"] * row / row.sum() / ((1 - q["lambda_score"]) * p))
        score = float((alpha - p) @ phi)
        assert tracker.score(document(row))[0] * q["lambda_learn"] == pytest.approx(score, abs=1e-12)
        weight = math.exp(q["precision"] * score)
        largest = max(largest, weight)
        delta = q["seed_weight"] * largest - w0  # (6.22); W(D_0)_0 = 0 here, so that N = 0 carries no weight over
        new_sigma = sigma + weight + delta  # (6.23)
        theta = smoothed(row, p, q["lambda_learn"])
        unnormalised = (unnormalised**sigma * theta0**delta * theta**weight) ** (1 / new_sigma)  # (6.21), Z α
        alpha, sigma, w0 = unnormalised / unnormalised.sum(), new_sigma, w0 + delta
        tracker.learn("t", document(row))


def test_naive_bayes_equals_the_published_recursion(closed_background: Background) -> None:
    """(6.17)-(6.18) step by step."""
    rows, p, q = counts(25), closed_background.p(np.arange(V)), PARAMETERS["nb"]
    tracker = Tracker(make_model("nb", q), closed_background)
    tracker.add_story("t", [document(rows[0])])
    theta, sigma = rows[0] / rows[0].sum(), rows[0].sum()
    for row in rows[1:]:
        mixed = q["lambda_learn"] * theta + (1 - q["lambda_learn"]) * p
        log_odds = math.log(q["prior_odds"]) + row @ np.log(mixed / p)
        assert tracker.score(document(row))[0] == pytest.approx(log_odds, abs=1e-9)
        posterior = 1 / (1 + math.exp(-log_odds))
        theta = (theta * sigma + posterior * row) / (sigma + posterior * row.sum())  # (6.17)
        sigma += posterior * row.sum()  # (6.18)
        tracker.learn("t", document(row))


def test_sd_weights_beyond_the_range_of_doubles(closed_background: Background) -> None:
    """S = 1e6: exp(S · score) overflows or vanishes, but only ratios of weights matter."""
    rows = counts(10)
    tracker = Tracker(make_model("sd", {"precision": 1e6, "lambda_score": 0.9, "lambda_learn": 0.9}), closed_background)
    tracker.add_story("t", [document(rows[0])])
    for row in rows[1:]:
        tracker.learn("t", document(row))
        assert np.isfinite(tracker.score(document(row))).all()


def test_vector_space_by_hand() -> None:
    """N = 3 documents, word a in 2 of them, b in 1: idf log(4/2.5), log(4/1.5). Seed (1, 0), document (1, 1)."""
    background = Background.of_counts(np.array([[1, 0], [1, 1], [0, 0]]), ["a", "b"])
    tracker = Tracker(make_model("tfidf"), background)
    tracker.add_story("t", [background.document("s", ["a"])])
    a, b = math.log(4 / 2.5), math.log(4 / 1.5)
    assert tracker.score(background.document("d", ["a", "b"]))[0] == pytest.approx(a / math.hypot(a, b), abs=1e-15)


@pytest.mark.parametrize("name", MODELS)
def test_several_seeds_weigh_alike_and_order_does_not_matter(name: str) -> None:
    _, background = corpus()
    rows = counts(10)
    one, other = (Tracker(make_model(name, PARAMETERS[name]), background) for _ in range(2))
    one.add_story("t", [document(rows[0]), document(rows[1])])
    other.add_story("t", [document(rows[1]), document(rows[0])])
    for row in rows[2:]:
        assert one.score(document(row))[0] == pytest.approx(other.score(document(row))[0], rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("name", MODELS)
def test_words_never_seen_have_finite_scores(name: str) -> None:
    _, background = corpus()
    tracker = Tracker(make_model(name, PARAMETERS[name]), background)
    tracker.add_story("t", [background.document("s", ["brand", "new", "w01"])])
    for terms in (["brand", "w01"], ["other", "unknown"], []):
        assert np.isfinite(tracker.score(background.document("d", terms))).all()
    tracker.learn("t", background.document("d", ["newer", "still"]))
    assert np.isfinite(tracker.score(background.document("d", ["newer", "brand"]))).all()


@pytest.mark.parametrize("name", MODELS)
def test_replaying_a_matrix_is_the_online_loop_to_the_last_bit(name: str) -> None:
    _, background = corpus()
    stream = MatrixStream(csr_matrix(counts(120, 3)), [f"d{i}" for i in range(120)], np.arange(120))
    seeds = {f"t{i}": i for i in range(12)}
    feedback = {f"t{i}": range(i + 3, 100, 11) for i in range(0, 12, 2)}
    marks: dict[str, list[str]] = {}
    for story, rows in feedback.items():
        for row in rows:
            marks.setdefault(f"d{row}", []).append(story)
    model = make_model(name, PARAMETERS[name])
    tracker = Tracker(model, background, feedback=marks)
    for story, row in seeds.items():
        tracker.expect_seed(story, f"d{row}")
    online: dict[str, list[float]] = {story: [] for story in seeds}
    for step in tracker.track(stream):
        for decision in step.decisions():
            online[decision.story].append(decision.score)
    for story, scores in replay(model, background, stream, seeds, feedback).items():
        assert scores.tolist() == online[story]


def test_replay_refuses_a_background_that_grows() -> None:
    stream = MatrixStream(csr_matrix(counts(5)), [f"d{i}" for i in range(5)])
    with pytest.raises(ParameterError, match="does not grow"):
        replay(make_model("rm"), Background(grows=True), stream, {"t": 0})


@pytest.mark.parametrize(
    ("name", "settings", "told"),
    [
        ("sd", {"lambda_score": 0.0}, "lambda_score"),
        ("sd", {"seed_weight": 0}, "seed_weight"),
        ("nb", {"prior_odds": -1.0}, "prior_odds"),
        ("rm", {"score": "both"}, "score must be one of words, full"),
        ("rm", {"mu": 3}, "no parameter 'mu'"),
        ("svm", {}, "no tracking model 'svm'"),
    ],
)
def test_bad_parameters(name: str, settings: dict, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        make_model(name, settings)


# -- forgetting ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rm", "nb", "tfidf", "sd"])
def test_a_uniform_kernel_that_reaches_everything_forgets_nothing(name: str) -> None:
    _, background = corpus()
    rows = counts(20)
    plain = Tracker(make_model(name, PARAMETERS[name]), background)
    fading = Tracker(make_model(name, PARAMETERS[name]), background, forgetting=Forgetting("uniform", 1e9))
    for tracker in (plain, fading):
        tracker.add_story("t", [document(rows[0], time=0)])
        for i, row in enumerate(rows[1:15], 1):
            tracker.learn("t", document(row, time=i))
    for row in rows[15:]:
        assert fading.score(document(row))[0] == pytest.approx(plain.score(document(row))[0], rel=1e-12, abs=1e-12)


def test_forgetting_by_hand() -> None:
    """Triangular kernel, h = 10: learnt at time 0 and 5, at 5 the first counts 1/2. RM's λ_M = .5, words a, b, c:
    weights of the story's words are .5 (seed + ½ first + second) / 2.5."""
    background = Background.of_counts(np.eye(3), ["a", "b", "c"])
    tracker = Tracker(make_model("rm", {"lambda_learn": 0.5}), background, forgetting=Forgetting("triangular", 10.0))
    tracker.add_story("t", [background.document("s", ["a"])])
    tracker.learn("t", background.document("x", ["b"], 0))
    tracker.learn("t", background.document("y", ["c"], 5))
    assert tracker.stories[0].weights.tolist() == pytest.approx([0.5 / 2.5, 0.25 / 2.5, 0.5 / 2.5])
    tracker.learn("t", background.document("z", ["c"], 12))  # the first is out of reach: 12 > 10
    kept = [0.5, 0.0, 0.5 * 0.3 + 0.5]
    assert tracker.stories[0].weights.tolist() == pytest.approx([value / 2.3 for value in kept])


def test_only_so_many_documents_are_remembered() -> None:
    _, background = corpus()
    tracker = Tracker(make_model("rm"), background, forgetting=Forgetting("exponential", 10.0, remember=3))
    rows = counts(20)
    tracker.add_story("t", [document(rows[0], time=0)])
    for i, row in enumerate(rows[1:], 1):
        tracker.learn("t", document(row, time=i))
    assert [one.time for one in tracker.stories[0].memory or ()] == [17, 18, 19]
    assert tracker.stories[0].n_learnt == 19


def test_bad_forgetting() -> None:
    with pytest.raises(ParameterError, match="no kernel"):
        Forgetting("sudden")
    with pytest.raises(ParameterError, match="bandwidth must be positive"):
        Forgetting("tricube", 0.0)
    with pytest.raises(ParameterError, match="remember"):
        Forgetting(remember=0)
