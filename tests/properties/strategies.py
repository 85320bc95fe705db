"""Hypothesis strategies: small random collections, queries, judgments and model settings."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from oracle import Corpus

from sdretrieval.index.snapshot import Snapshot

# Plain words, one-letter words, capitals, digits and other scripts: byte order is not the order of the list.
WORDS = "zebra Ärger apple b Cat 42 10th naïve état 日本 ж wing flow lift drag".split()
WORDS += ["a" * 25, *"mach shock heat wake jet boundary layer é 𝄞".split()]
DOCIDS = ["d1", "d10", "d2", "D3", "über", "doc-4", "005", "6", "dé", "7a", "𝄞8", "zz"]
DOCIDS += [f"x{i:02d}" for i in range(20)]


def counts(n_docs: int, n_words: int, most: int) -> st.SearchStrategy[np.ndarray]:
    """Mostly zeros, small numbers, now and then a large one."""
    elements = st.one_of(st.integers(0, 2), st.integers(0, most))
    return arrays(np.int64, (n_docs, n_words), elements=elements, fill=st.just(0)).filter(lambda m: m.any())


@st.composite
def corpora(draw: st.DrawFn, min_docs: int = 1, max_docs: int = 8, max_words: int = 22, most: int = 6) -> Corpus:
    """At least one word somewhere; documents may be empty."""
    n_docs = draw(st.integers(min_docs, max_docs))
    n_words = draw(st.integers(1, max_words))
    matrix = draw(counts(n_docs, n_words, most))
    shuffle = random.Random(draw(st.integers(0, 99)))  # far cheaper to draw than permutations
    return Corpus(matrix, shuffle.sample(WORDS, n_words), shuffle.sample(DOCIDS, n_docs))


def snapshot_of(corpus: Corpus) -> Snapshot:
    return Snapshot.from_counts(corpus.counts.astype(np.int64), corpus.words, corpus.docids)


@st.composite
def queries(draw: st.DrawFn, corpus: Corpus) -> list[str]:
    """One to four known words, repeats allowed, and perhaps one nobody uses."""
    words = draw(st.lists(st.sampled_from(corpus.words), min_size=1, max_size=4))
    return [*words, "unheard-of"] if draw(st.booleans()) else words


@st.composite
def judgments(draw: st.DrawFn, corpus: Corpus) -> tuple[list[int], list[int]]:
    """Relevant and non-relevant documents, either list perhaps empty, no document in both."""
    grades = draw(st.lists(st.sampled_from([None, None, 0, 1]), min_size=corpus.n_docs, max_size=corpus.n_docs))
    return [d for d, g in enumerate(grades) if g == 1], [d for d, g in enumerate(grades) if g == 0]


def weights() -> st.SearchStrategy[float]:
    """Strictly between 0 and 1, the thesis's own values among them."""
    return st.one_of(st.sampled_from([0.1, 0.5, 0.6, 0.7, 0.8, 0.99, 1e-4]), st.floats(0.01, 0.99))


def mus() -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from([900.0, 1.0, 1e5]), st.floats(0.1, 3000.0))


COMMON = {
    "fb_docs": st.integers(1, 6),
    "smoothing": st.sampled_from(["jm", "dirichlet"]),
    "lambda_query": weights(),
    "lambda_ranking": weights(),
    "mu": mus(),
    "query_weight": st.sampled_from([0.0, 0.0, 0.0, 0.5, 3.0]),
    "unjudged_weight": st.sampled_from([0.0, 0.0, 0.2, 1.0]),
}
BM25 = {"k1": st.floats(0.1, 3.0), "b": st.floats(0.0, 1.0)}
CUT = {"fb_terms": st.sampled_from([1, 2, 3, 5, 40]), "original_query_weight": st.floats(0.0, 1.0)}
SD = {
    **COMMON,
    **BM25,
    "first_stage": st.sampled_from(["sd", "bm25"]),
    "lambda_first": weights(),
    "lambda_feedback": weights(),
    "precision": st.one_of(st.just(1e-6), st.just(0.8), st.floats(0.01, 5.0)),
    "iterations": st.sampled_from([1, 1, 2, 4]),
    "later_e_steps": st.sampled_from(["rescaled", "likelihood"]),
    "nonrelevant_weight": st.sampled_from([1.0, 1.0, 0.3, 0.0]),
    "posterior": st.sampled_from(["approximate", "exact"]),
    "prior": weights(),
    "mu_feedback": mus(),
}

DIVERGENCE = {
    **BM25,
    "fb_docs": COMMON["fb_docs"],
    "fb_terms": CUT["fb_terms"],
    "beta": st.floats(0.0, 2.0),
    "scoring": st.sampled_from(["bm25", "dph"]),
}

WINDOWS: dict[str, st.SearchStrategy] = {
    "ordered_weight": st.sampled_from([0.0, 0.1, 0.4]),
    "near_weight": st.sampled_from([0.0, 0.05, 0.5]),
}
SETTINGS: dict[str, dict[str, st.SearchStrategy]] = {
    "bm25": BM25,
    "ql": {"smoothing": st.sampled_from(["jm", "dirichlet"]), "lam": weights(), "mu": mus()},
    "tfidf": {**BM25, "fb_docs": st.integers(1, 6), "fb_terms": CUT["fb_terms"], "beta": st.floats(0.0, 4.0)},
    "rm": {**COMMON, "lambda_model": weights()},
    "rm3": {
        **COMMON,
        **BM25,
        **CUT,
        "lambda_model": weights(),
        "mode": st.just("lavrenko"),
        "first_stage": st.sampled_from(["bm25", "ql"]),
        "scoring": st.sampled_from(["bm25", "lm"]),
    },
    "sd": SD,
    "sd3": {**SD, **CUT, "scoring": st.sampled_from(["bm25", "lm"])},
    "blend": {
        **BM25,
        "parts": st.sampled_from(["sd,rm,axiomatic", "sd,rm,axiomatic", "axiomatic, sd", "rm"]),
        "fb_docs": st.one_of(st.integers(1, 6), st.integers(7, 50)),
        "fb_terms": CUT["fb_terms"],
        "feedback_weight": st.just(0.0) | st.floats(1e-9, 10.0),  # what is less is lost beside 1
        "caution": st.sampled_from([0.0, 0.3, 1.0, 2.0]),
        "idf_power": st.floats(0.0, 1.0),
        "final_b": st.floats(0.0, 1.0),
        **WINDOWS,
    },
    "axiomatic": {
        **BM25,
        "mode": st.just("expected"),
        "seed": st.just(42),
        "fb_docs": COMMON["fb_docs"],
        "fb_terms": CUT["fb_terms"],
        "pool": st.one_of(st.just(10.0), st.floats(1.01, 100.0)),
        "beta": st.floats(0.0, 2.0),
        "idf_power": st.floats(0.0, 1.0),
        "scoring": st.sampled_from(["bm25", "ql"]),
        "mu": mus(),
    },
    "bm25prf": {
        **BM25,
        "mode": st.just("exact"),
        "fb_docs": COMMON["fb_docs"],
        "fb_terms": CUT["fb_terms"],
        "new_term_weight": st.floats(0.0, 1.0),
    },
    "dph": {},
    "bo1": DIVERGENCE,
    "kl": DIVERGENCE,
    "dce": {"lam": weights(), "length": st.sampled_from(["document", "word"])},
    "rm-dce": {**COMMON, "lambda_model": weights(), "length": st.sampled_from(["document", "word"])},
    "lucene-bm25": BM25,
    "lucene-qld": {"mu": mus()},
    "lucene-qljm": {"lam": weights()},
}


def settings_of(model: str, **fixed: object) -> st.SearchStrategy[dict]:
    """Values for every parameter of a model; ``fixed`` ones as given."""
    given = {name: st.just(value) for name, value in fixed.items()}
    return st.fixed_dictionaries({**SETTINGS[model], **given})
