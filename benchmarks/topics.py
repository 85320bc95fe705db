"""Speed of topics: time per word and epoch at K = 100, 1000 and 4000, and against scikit-learn on the same contexts.

scikit-learn's MiniBatchDictionaryLearning (coordinate descent, non-negative) learns one epoch from some contexts, dense
as it needs them; ours starts from the same topics and learns from the same contexts, one thread each. Both dictionaries
are then judged by one yardstick: columns scaled to sum to one, every context coded to the optimum, objective (1). Ours
takes as many steps as it needs to be at least as good. Must hold: ours needs less than a twentieth of the time.

The peer takes too long for many contexts at a large K, so it gets fewer of them there; the ratio is of the same ones.

    python -m benchmarks.topics            # 20 Newsgroups where it is at hand, else made-up documents
    python -m benchmarks.topics 100 1000   # these K only
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix

from benchmarks.collections import SHARED
from sdretrieval.learn.lcsc.coding import code, gram_matrix
from sdretrieval.learn.lcsc.contexts import local_contexts
from sdretrieval.learn.lcsc.dictionary import Sums, column_step
from sdretrieval.learn.lcsc.seeding import seed_dictionary
from sdretrieval.learn.lcsc.sequences import Sequences

LAMBDA, RHO = 1e-2, 1e-4
# Not more: the peer takes long at a large K. Not fewer: D'D costs ours the same however few there are.
CONTEXTS = {100: 2048, 1000: 128, 4000: 512}
TIMES = 20.0


def documents() -> Sequences:
    if (SHARED / "20news-bydate" / "docs.jsonl.gz").is_file():
        from benchmarks.results_topics import news

        return news("comp").train
    rng = np.random.default_rng(0)
    n_words, n_subjects = 6000, 200
    p = 1 / np.arange(1, n_words + 1)
    subjects = [rng.permutation(n_words)[:300] for _ in range(n_subjects)]
    lengths = rng.integers(40, 180, 3000)
    tokens = []
    for length in lengths:  # half of each document is about one subject
        own = rng.choice(subjects[rng.integers(n_subjects)], length)
        tokens.append(np.where(rng.random(length) < 0.5, own, rng.choice(n_words, length, p=p / p.sum())))
    ptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Sequences(np.concatenate(tokens).astype(np.int32), ptr, tuple(f"w{i}" for i in range(n_words)))


def epoch(contexts, ptr, D, start, n_threads, coupling=RHO):
    """Codes by D, and the next D; seconds of both."""
    began = time.perf_counter()
    gram = gram_matrix(D, n_threads)
    settings = {"sparsity": LAMBDA, "coupling": coupling, "rounds": 1, "tol": 1e-5, "n_threads": n_threads}
    coded = code(contexts, ptr, D, gram=gram, start=start, **settings)
    middle = time.perf_counter()
    D = column_step(D, Sums.of(contexts, coded.codes))
    return D, coded, middle - began, time.perf_counter() - middle


def yardstick(contexts: csr_matrix, ptr: np.ndarray, D: csc_matrix) -> float:
    return code(contexts, ptr, D, sparsity=LAMBDA, coupling=0.0, tol=1e-9).objective / contexts.shape[0]


def scikit_learn(contexts: csr_matrix, D: csc_matrix) -> tuple[csc_matrix, float]:
    """One epoch; the dictionary with columns scaled to sum to one, and seconds."""
    from sklearn.decomposition import MiniBatchDictionaryLearning

    dense = contexts.toarray()
    start = D.toarray().T
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    model = MiniBatchDictionaryLearning(
        D.shape[1],
        alpha=LAMBDA / 2,
        fit_algorithm="cd",
        transform_algorithm="lasso_cd",
        positive_code=True,
        positive_dict=True,
        batch_size=min(256, len(dense) // 2),
        max_iter=1,
        dict_init=start,
        random_state=0,
        shuffle=False,
        n_jobs=1,
        max_no_improvement=None,
        tol=0.0,
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        model.fit(dense)
    seconds = time.perf_counter() - began
    found = np.maximum(model.components_, 0.0)
    found[found.sum(axis=1) == 0] = start[found.sum(axis=1) == 0]
    return csc_matrix((found / found.sum(axis=1, keepdims=True)).T), seconds


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or list(CONTEXTS)
    train = documents()
    contexts = local_contexts(train)
    few = train.select(range(3))
    epoch(local_contexts(few), few.ptr, seed_dictionary(local_contexts(few), 4, np.random.default_rng(0)), None, 2)
    print(f"{len(train):,} documents, {train.n_tokens:,} positions, {len(train.vocabulary):,} words, h = 1\n")
    print("second epoch, µs per word: codes + dictionary")
    for K in sizes:
        D = seed_dictionary(contexts, K, np.random.default_rng(0))
        D, coded, *_ = epoch(contexts, train.ptr, D, None, 2)
        parts = []
        for n_threads in (1, 2):
            _, again, coding, step = epoch(contexts, train.ptr, D, coded.codes, n_threads)
            parts.append((coding, step))
        one, two = ([1e6 * x / train.n_tokens for x in part] for part in parts)
        print(
            f"  K = {K:5d}: one thread {one[0]:6.2f} + {one[1]:5.2f}, two threads {two[0]:6.2f} + {two[1]:5.2f}; "
            f"{again.codes.nnz / train.n_tokens:.1f} topics per word, objective {again.objective / train.n_tokens:.4f}"
        )
    print("\nagainst scikit-learn's MiniBatchDictionaryLearning, one epoch, one thread")
    failed = False
    for K in sizes:
        n = CONTEXTS.get(K, 256)
        rows = np.sort(np.random.default_rng(1).permutation(contexts.shape[0])[:n])
        some, ptr = csr_matrix(contexts[rows]), np.arange(n + 1)
        D = first = seed_dictionary(contexts, K, np.random.default_rng(0))
        theirs, seconds = scikit_learn(some, first)
        goal = yardstick(some, ptr, theirs)
        start, spent, steps, reached = None, 0.0, 0, yardstick(some, ptr, first)
        while (reached > goal and steps < 50) or steps == 0:
            D, coded, *times = epoch(some, ptr, D, start, 1, 0.0)
            start, spent, steps = coded.codes, spent + sum(times), steps + 1
            reached = yardstick(some, ptr, D)
        ratio = seconds / spent
        failed |= ratio < TIMES or reached > goal
        print(
            f"  K = {K:5d}, {n} contexts: scikit-learn {1e3 * seconds / n:8.2f} ms per word to objective {goal:.5f}; "
            f"ours {1e3 * spent / n:6.3f} ms, {steps} step(s), to {reached:.5f}: {ratio:.0f} x"
        )
    if failed:
        sys.exit(f"ours is not {TIMES:.0f} times as fast at an objective as good")


if __name__ == "__main__":
    main()
