"""Smoothing and evidence, computed by hand; sparse models; the order of ties."""

from __future__ import annotations

import math

import numpy as np
import oracle
import pytest

from sdretrieval.core.errors import ParameterError
from sdretrieval.index.snapshot import Snapshot
from sdretrieval.ranking import loops as kernels
from sdretrieval.ranking import weighting as w
from sdretrieval.ranking.base import Plan
from sdretrieval.ranking.engine import Engine, RankOptions
from sdretrieval.ranking.query import Query
from sdretrieval.ranking.registry import make_ranker
from sdretrieval.ranking.term_model import TermModel


@pytest.fixture
def snapshot() -> Snapshot:
    """'the cat' among ten tokens: p(cat) = .1, p(the) = .4, p(dog) = .5."""
    return Snapshot.from_counts([[1, 1, 0], [0, 3, 5]], ["cat", "the", "dog"], ["d1", "d2"])


def theta(snapshot: Snapshot, smoothing: w.Weighting, doc: str, word: str) -> float:
    """θ^D_w as the parts say it: exp(φ) (1-λ_D) p."""
    d, t = snapshot.docids.find(doc), snapshot.term_id(word)
    counts = np.array([snapshot.by_doc[d, t]], dtype=float)
    lengths = snapshot.doc_lengths[[d]].astype(float)
    A = smoothing.term_factors(snapshot.statistics, np.array([t]))
    B = smoothing.doc_factors(snapshot.statistics, lengths)
    background = smoothing.log_background_share(lengths) + math.log(snapshot.p_collection[t])
    return float(np.exp(smoothing.phi(counts, A, B) + background)[0])


def test_dirichlet_smoothing_by_hand(snapshot: Snapshot):
    """'the cat': tf=1, |d|=2, p(cat|C)=.1, mu=8 -> (1 + .8) / 10."""
    assert theta(snapshot, w.Dirichlet(8.0), "d1", "cat") == pytest.approx((1 + 0.8) / 10, rel=1e-15)


def test_dirichlet_smoothing_of_an_unseen_word(snapshot: Snapshot):
    """'dog' in 'the cat': 0 of 2, p=.5, mu=8 -> 4 / 10."""
    assert theta(snapshot, w.Dirichlet(8.0), "d1", "dog") == pytest.approx(4 / 10, rel=1e-15)


def test_jelinek_mercer_smoothing_by_hand(snapshot: Snapshot):
    """'the cat': 1 of 2, p=.1, λ=.25 -> .25 * .5 + .75 * .1."""
    assert theta(snapshot, w.JelinekMercer(0.25), "d1", "cat") == pytest.approx(0.2, rel=1e-15)


@pytest.mark.parametrize("smoothing", [w.JelinekMercer(0.3), w.Dirichlet(7.0)])
def test_a_smoothed_model_is_a_distribution(snapshot: Snapshot, smoothing: w.Weighting):
    for doc in ("d1", "d2"):
        assert sum(theta(snapshot, smoothing, doc, word) for word in snapshot.vocabulary) == pytest.approx(
            1.0, rel=1e-14
        )


@pytest.mark.parametrize(("smoothing", "shares"), [(w.JelinekMercer(0.3), [0.3, 0.3]), (w.Dirichlet(8.0), [0.2, 0.5])])
def test_the_documents_own_share(smoothing, shares: list[float]):
    """λ, or |D| / (μ+|D|): 2/10 and 8/16."""
    assert smoothing.document_shares(np.array([2.0, 8.0])).tolist() == shares


def test_query_likelihood_by_hand(snapshot: Snapshot):
    """log P('the cat' | d1), Dirichlet mu=8: θ_cat = .18, θ_the = (1 + 3.2)/10 = .42."""
    query = Query.from_words(snapshot, ["the", "cat"])
    [result] = Engine(snapshot).rank(make_ranker("ql", {"mu": 8.0}), [query])
    scores = dict(zip(snapshot.docids.take(result.docs), result.scores, strict=True))
    assert scores["d1"] == pytest.approx(math.log(0.18) + math.log(0.42), rel=1e-14)
    assert scores["d2"] == pytest.approx(math.log(0.8 / 16) + math.log((3 + 3.2) / 16), rel=1e-14)


def test_bm25_by_hand(snapshot: Snapshot):
    """N=2, avg=5; 'cat' df=1: idf = ln(1 + 1.5/1.5) = ln 2; d1: f=1, k1=1, b=.5: 1/(1 + .5 + .5*2/5)."""
    [result] = Engine(snapshot).rank(make_ranker("bm25", {"k1": 1.0, "b": 0.5}), [Query.from_words(snapshot, ["cat"])])
    assert snapshot.docids.take(result.docs) == ["d1"]
    assert result.scores[0] == pytest.approx(math.log(2) / 1.7, rel=1e-14)


def test_tfidf_by_hand(snapshot: Snapshot):
    """idf = ln(3/1) in query and document, no feedback (β=0): ln(3)^2 / (1 + 1 * (.7 + .3*2/5))."""
    ranker = make_ranker("tfidf", {"beta": 0.0})
    [result] = Engine(snapshot).rank(ranker, [Query.from_words(snapshot, ["cat"])])
    scores = dict(zip(snapshot.docids.take(result.docs), result.scores, strict=True))
    assert scores["d1"] == pytest.approx(math.log(3) ** 2 / 1.82, rel=1e-14)


def test_relevance_model_by_hand(snapshot: Snapshot):
    """'cat', one feedback document 'the cat' (W=1), λ_M=.5: θ^R = (.3, .45, .25); λ_CE=.5: θ^1 = θ^R."""
    ranker = make_ranker("rm", {"fb_docs": 1, "lambda_model": 0.5, "lambda_ranking": 0.5})
    [result] = Engine(snapshot).rank(ranker, [Query.from_words(snapshot, ["cat"])])
    scores = dict(zip(snapshot.docids.take(result.docs), result.scores, strict=True))
    assert scores["d1"] == pytest.approx(sum(a * math.log(a) for a in (0.3, 0.45, 0.25)), rel=1e-14)
    other = 0.3 * math.log(0.05) + 0.45 * math.log(0.3875) + 0.25 * math.log(0.5625)  # .5*(0, 3/8, 5/8) + .5*p
    assert scores["d2"] == pytest.approx(other, rel=1e-14)


def test_smoothed_dirichlet_by_hand(snapshot: Snapshot):
    """'cat', one feedback document 'the cat', so α^R ∝ θ^1 = (.3, .45, .25) at λ_M2=.5; S = K·|Q| = 2·1.

    (4.31), λ_E2=.5, d1: φ = log(1 + (5, 1.25, 0)); α^R - α^N = 2·((.3, .45, .25) - (.1, .4, .5)).
    """
    values = {"fb_docs": 1, "lambda_feedback": 0.5, "lambda_ranking": 0.5, "precision": 2.0}
    [result] = Engine(snapshot).rank(make_ranker("sd", values), [Query.from_words(snapshot, ["cat"])])
    scores = dict(zip(snapshot.docids.take(result.docs), result.scores, strict=True))
    assert scores["d1"] == pytest.approx(2 * (0.2 * math.log(6) + 0.05 * math.log(2.25)), rel=1e-13)
    assert scores["d2"] == pytest.approx(2 * (0.05 * math.log(1.9375) - 0.25 * math.log(2.25)), rel=1e-13)


def test_rounded_lengths_are_lucenes():
    """SmallFloat: exact to 39, then 40, 42, 44, …; each is the largest a byte can say that is not above."""
    lengths = np.array([0, 1, 23, 24, 39, 40, 41, 42, 55, 56, 57, 60, 100, 255, 1000, 12345, 10**6, 2**31 - 1])
    wanted = [oracle.lucene_length(n) for n in lengths.tolist()]
    assert w.lucene_length(lengths).tolist() == wanted
    assert wanted[5:8] == [40, 40, 42]


def test_kernels_and_weighting_number_the_kinds_alike():
    for kind in ("LOG", "SATURATING", "FLOORED", "DIVERGING"):
        assert getattr(w, kind) == getattr(kernels, kind)


def test_dph_by_hand(snapshot: Snapshot):
    """'cat' once in 'the cat' of 2 words, p = .1: (1 - .5)² / 2 · (log₂(1/(2·.1)) + ½ log₂(2π·.5))."""
    [result] = Engine(snapshot).rank(make_ranker("dph"), [Query.from_words(snapshot, ["cat"])])
    assert snapshot.docids.take(result.docs) == ["d1"]
    assert result.scores[0] == pytest.approx(0.125 * (math.log2(5) + 0.5 * math.log2(math.pi)), rel=1e-14)


def test_dph_of_a_document_that_has_no_other_word():
    """The limit of its evidence is 0, and the document is found."""
    snapshot = Snapshot.from_counts([[3, 0], [1, 4]], ["cat", "dog"])
    [result] = Engine(snapshot).rank(make_ranker("dph"), [Query.from_words(snapshot, ["cat"])])
    scores = dict(zip(result.docs.tolist(), result.scores.tolist(), strict=True))
    assert set(scores) == {0, 1} and scores[0] == pytest.approx(0.0, abs=1e-15)
    ours = w.DPH().phi(np.array([3.0]), np.array([2.0]), np.array([1 / 3]))
    assert ours.tolist() == [0.0]


def test_lucene_floors_dirichlet_at_zero():
    """A word that is less frequent than general English says subtracts in (5.33), but nothing in Lucene."""
    snapshot = Snapshot.from_counts([[1, 30], [60, 0]], ["the", "cat"])
    query = Query.from_words(snapshot, ["the"])
    [lucene] = Engine(snapshot).rank(make_ranker("lucene-qld", {"mu": 10.0}), [query])
    assert dict(zip(lucene.docs.tolist(), lucene.scores.tolist(), strict=True))[0] == 0.0
    [exact] = Engine(snapshot).rank(make_ranker("ql", {"mu": 10.0}), [query])
    assert exact.scores.min() < math.log(61 / 91)  # below general English


def test_only_language_models_have_a_background():
    with pytest.raises(ParameterError, match="only a language model has a background"):
        Plan(TermModel(np.zeros(0, dtype=np.int64), np.zeros(0), 0.5), w.BM25())


# -- sparse models -----------------------------------------------------------------------------------------------


def model(*pairs: tuple[int, float], background: float = 0.0) -> TermModel:
    return TermModel.of(np.array([t for t, _ in pairs]), np.array([v for _, v in pairs]), background)


def test_a_model_sorts_adds_up_and_drops_zeros():
    made = model((3, 1.0), (1, 2.0), (3, 0.5), (2, 0.0), (5, 1.0), (5, -1.0))
    assert made.terms.tolist() == [1, 3] and made.weights.tolist() == [2.0, 1.5]


def test_ties_between_terms_go_to_the_alphabet():
    """Term numbers are in alphabetical order; 2 and 4 and 5 tie for the last two places."""
    made = model((1, 3.0), (2, 1.0), (4, 1.0), (5, 1.0), (7, 2.0))
    assert made.strongest(4).terms.tolist() == [1, 2, 4, 7]
    assert made.strongest(1).terms.tolist() == [1]
    assert made.strongest(9).terms.tolist() == [1, 2, 4, 5, 7]
    assert made.strongest(0).terms.tolist() == []


def test_mixing_and_normalising():
    made = model((1, 3.0), (2, 1.0)).normalised()
    assert made.weights.tolist() == [0.75, 0.25]
    mixed = made.mixed(model((2, 1.0)), 0.5)
    assert mixed.terms.tolist() == [1, 2] and mixed.weights.tolist() == [0.375, 0.625]
    assert made.mixed(model((2, 1.0)), 1.0).terms.tolist() == [2]
    empty = model()
    assert len(empty.normalised()) == 0


def test_the_background_is_part_of_mass_and_density():
    p = np.array([0.5, 0.25, 0.25])
    made = model((1, 0.5), background=0.4)
    assert made.mass == pytest.approx(0.9)
    assert made.dense(p).tolist() == pytest.approx([0.2, 0.6, 0.1])
    assert made.folded(p).weights.tolist() == pytest.approx([0.6])
    assert made.scaled(2.0).dense(p).tolist() == pytest.approx([0.4, 1.2, 0.2])
    assert p.tolist() == [0.5, 0.25, 0.25]


def test_pruning_refuses_to_keep_nothing():
    snapshot = Snapshot.from_counts([[1, 1]], ["a", "b"])
    with pytest.raises(ParameterError, match="prune must keep at least 1 word; got 0"):
        list(Engine(snapshot).rank(make_ranker("rm"), [Query.from_words(snapshot, ["a"])], RankOptions(prune=0)))


def test_documents_of_one_length_keep_their_dirichlet_share():
    """A score must not depend on whether the candidates happen to have equal lengths."""
    snapshot = Snapshot.from_counts([[2, 1, 0], [1, 2, 0], [1, 1, 5]], ["a", "b", "c"])
    plan = Plan(TermModel(np.array([0]), np.array([1.0])), w.Dirichlet(3.0))
    engine = Engine(snapshot)
    every = engine.score_docs(plan, np.arange(3))
    assert engine.score_docs(plan, np.array([0, 1])).tolist() == every[:2].tolist()
    assert engine.score_docs(plan, np.array([2])).tolist() == every[2:].tolist()
