"""One frame of 5,000 documents: SSL-E's step against the dense solve of (18) and scikit-learn's LabelSpreading.

    python -m benchmarks.evolving

Documents are synthetic tf-idf rows (about 60 words of 40,000, Zipf), so that nothing but this checkout is needed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy.sparse import csr_matrix, diags

N, WORDS, LENGTH, LABELS = 5000, 40_000, 60, 500
DENSE = 2000  # documents on which (18) is solved as printed
GAMMA_A, GAMMA_I = 0.01, 100.0
MOST_SECONDS, MOST_GB = 20.0, 2.0


def documents(n: int, seed: int) -> tuple[csr_matrix, np.ndarray]:
    """Zipf's words; each class prefers its own half of them a little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    rows = np.repeat(np.arange(n), LENGTH)
    word = np.minimum(rng.zipf(1.15, n * LENGTH), WORDS * 50) % (WORDS // 2)
    odd = rng.random(n * LENGTH) < np.where(y[rows] == 1, 0.55, 0.45)
    counts = csr_matrix((np.ones(n * LENGTH), (rows, 2 * word + odd)), shape=(n, WORDS))
    counts.sum_duplicates()
    df = np.bincount(counts.indices, minlength=WORDS)
    counts.data = 1 + np.log(counts.data)
    X = counts @ diags(1 + np.log((1 + n) / (1 + df)))
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return csr_matrix(diags(1 / norm) @ X), y


def frame(n: int, seed: int) -> tuple[csr_matrix, np.ndarray, np.ndarray]:
    X, y = documents(n, seed)
    shown = np.where(np.random.default_rng(seed).random(n) < LABELS / N, y, -1)
    return X, y, shown


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def one_step(representer: str) -> None:
    """In a process of its own, so that its memory is its own."""
    from sdretrieval.learn.evolving import SSLE

    model = SSLE(gamma_A=GAMMA_A, gamma_I=GAMMA_I, representer=representer)
    for seed in (0, 1):
        X, y, shown = frame(N, seed)
        began = time.perf_counter()
        model.partial_fit(X, shown)
        took = time.perf_counter() - began
    accuracy = float(np.mean(model.predict(X)[shown < 0] == y[shown < 0]))
    print(f"{took:.3f} {peak_gb():.3f} {accuracy:.4f} {model.frames_[-1].iterations}")


def measured(representer: str) -> tuple[float, float, float, int]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.evolving", representer], capture_output=True, text=True, check=True
    )
    seconds, memory, accuracy, steps = done.stdout.split()
    return float(seconds), float(memory), float(accuracy), int(steps)


def peer() -> tuple[float, float]:
    """scikit-learn's LabelSpreading with its own 10-neighbour graph, on the second frame."""
    from sklearn.semi_supervised import LabelSpreading

    X, y, shown = frame(N, 1)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LabelSpreading(kernel="knn", n_neighbors=10).fit(X, shown)
    took = time.perf_counter() - began
    return took, float(np.mean(model.transduction_[shown < 0] == y[shown < 0]))


def against_18() -> tuple[float, float, float]:
    """Seconds of the dense (18) and of ours on the same second frame, graph excluded; and how far apart they are."""
    from sdretrieval.learn.evolving.graph import laplacian, neighbour_graph
    from sdretrieval.learn.evolving.solver import LinearGram, project, solve

    (X0, _, shown0), (X, _, shown) = frame(DENSE, 0), frame(DENSE, 1)
    L0, L = (laplacian(neighbour_graph(Z)) * (GAMMA_I / DENSE**2) for Z in (X0, X))
    first = solve(LinearGram(X0), L0, shown0 >= 0, signs(shown0), gamma_A=GAMMA_A)
    began = time.perf_counter()
    K = (X @ X.T).toarray()
    C = (shown >= 0).astype(float)
    right = K @ (C[:, None] * signs(shown)) + GAMMA_A * ((X @ X0.T) @ first.beta)
    alpha = np.linalg.solve(K @ (C[:, None] * K + L @ K) + GAMMA_A * K, right)
    dense_time = time.perf_counter() - began
    began = time.perf_counter()
    gram = LinearGram(X)
    prior = np.asarray(X @ (X0.T @ first.beta))
    answer = solve(gram, L, shown >= 0, signs(shown), prior, gamma_A=GAMMA_A, solver="cg")
    ours = answer.beta + project(gram, prior)
    our_time = time.perf_counter() - began
    new, _ = documents(500, 2)
    apart = float(np.abs(new @ (X.T @ (ours - alpha))).max())
    return dense_time, our_time, max(apart, float(np.abs(answer.values - K @ alpha).max()))


def signs(shown: np.ndarray) -> np.ndarray:
    return np.where(shown < 0, 0.0, np.where(shown == 1, 1.0, -1.0))[:, None]


def main() -> int:
    good = True
    print(f"the second frame of {N:,} documents, {LABELS} labelled (graph included):")
    for representer in ("frame", "history"):
        seconds, memory, accuracy, steps = measured(representer)
        good &= seconds < MOST_SECONDS and memory < MOST_GB
        print(
            f"  SSL-E, representer={representer!r}: {seconds:.2f} s, {steps} steps, peak {memory:.2f} GB, "
            f"accuracy {accuracy:.3f}"
        )
    took, accuracy = peer()
    print(
        f"  scikit-learn LabelSpreading, same frame: {took:.2f} s ({took / seconds:.2f} x SSL-E's 'history'), "
        f"accuracy {accuracy:.3f}"
    )
    dense, ours, apart = against_18()
    good &= apart < 1e-6 and ours < dense
    print(
        f"{DENSE:,} documents, graph given: dense (18) {dense:.2f} s, sparse form {ours:.2f} s ({dense / ours:.1f} x); "
        f"largest difference of f on the frame and on 500 new documents {apart:.1e}"
    )
    print("holds" if good else "DOES NOT HOLD")
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one_step(sys.argv[1])
    else:
        sys.exit(main())
