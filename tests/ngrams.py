"""Counts of n-grams: other columns for the local model, same code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from scipy.sparse import csr_matrix

from sdretrieval.core.errors import ParameterError
from sdretrieval.estimate.time.kernels import Floats


def ngram_counts(
    sequences: Iterable[Sequence[Hashable]], n: int, vocabulary: Sequence[tuple[Hashable, ...]] | None = None
) -> tuple[csr_matrix, list[tuple[Hashable, ...]]]:
    """Documents x n-grams counts from token sequences, and the n-grams in column order.

    Without a ``vocabulary`` the n-grams are numbered as they appear; with one, others are left out.

    >>> counts, grams = ngram_counts([["a", "b", "a", "b"]], 2)
    >>> grams, counts.toarray().tolist()
    ([('a', 'b'), ('b', 'a')], [[2, 1]])
    """
    if n < 1:
        raise ParameterError(f"n-grams need n >= 1, got {n}")
    number: dict[tuple[Hashable, ...], int] = {}
    if vocabulary is not None:
        number = {gram: i for i, gram in enumerate(vocabulary)}
    indptr, indices = [0], []
    for tokens in sequences:
        for i in range(len(tokens) - n + 1):
            gram = tuple(tokens[i : i + n])
            column = number.get(gram) if vocabulary is not None else number.setdefault(gram, len(number))
            if column is not None:
                indices.append(column)
        indptr.append(len(indices))
    counts = csr_matrix((np.ones(len(indices), dtype=np.int64), indices, indptr), shape=(len(indptr) - 1, len(number)))
    counts.sum_duplicates()
    return counts, list(number)


def conditional(theta: Floats, ngrams: Sequence[tuple[Hashable, ...]]) -> Floats:
    """p(last word | the words before it) from probabilities of whole n-grams; NaN for a history never seen."""
    theta = np.asarray(theta, dtype=np.float64)
    number: dict[tuple[Hashable, ...], int] = defaultdict(lambda: len(number))
    history = np.array([number[gram[:-1]] for gram in ngrams], dtype=np.int64)
    mass = np.bincount(history, weights=theta, minlength=len(number))[history]
    return np.divide(theta, mass, out=np.full(theta.shape, np.nan), where=mass > 0)
