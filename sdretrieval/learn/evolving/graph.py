"""Which documents of a frame are neighbours, and the Laplacian that makes neighbours agree.

    d(x_i, x_j) = arccos(cosine of x_i and x_j)              (19)
    W_ij = exp(-d² / 2σ²)  where i is among the k nearest of j, or j among those of i; 0 elsewhere   (3)
    L = D - W,  D diagonal, the row sums of W                (2)

The paper leaves three things open:

- σ: by default the median distance of a document to its neighbours in the frame.
- Copies: documents that are equal are one node of the graph. The function has one value for all of them, so an edge
  between copies would cost nothing and only crowd out neighbours that tell something.
- Ties at the k-th place: told apart by a digest of the documents' content, never by their position, so that the
  order of a frame's documents changes nothing.

Documents without a word in common (cosine 0) are no neighbours, however few others there are.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags, issparse

from sdretrieval.core.compiled import njit
from sdretrieval.core.errors import ParameterError

Floats = NDArray[np.float64]
_BLOCK_BYTES = 32 * 2**20
_TIE = 1e-12  # cosines this near are the same number, computed in another order


def neighbour_graph(
    X: Any, *, neighbours: int = 10, sigma: float | str = "median", precomputed: bool = False
) -> csr_matrix:
    """W, symmetric, n x n. ``X``: documents x features, or with ``precomputed`` the n x n kernel matrix."""
    if neighbours < 1:
        raise ParameterError(f"neighbours must be 1 or more, got {neighbours}")
    if sigma != "median" and (isinstance(sigma, str) or not sigma > 0):
        raise ParameterError(f"sigma must be a positive number or 'median', got {sigma!r}")
    digests = row_digests(X)
    _, first = np.unique(digests, return_index=True)
    first = np.sort(first)  # the node of each distinct document
    order = np.argsort(np.argsort(digests[first], kind="stable"), kind="stable")  # of content: breaks ties
    rows, columns, cosine = _nearest(_unit(X, precomputed), first, order, neighbours, precomputed)
    n = X.shape[0]
    if len(rows) == 0:
        return csr_matrix((n, n))
    distance = np.arccos(np.clip(cosine, -1.0, 1.0))
    width = float(np.median(distance)) if isinstance(sigma, str) else float(sigma)
    weight = np.exp(-(distance**2) / (2.0 * width**2)) if width > 0 else np.ones(len(distance))
    one_way = coo_matrix((weight, (first[rows], first[columns])), shape=(n, n)).tocsr()
    return csr_matrix(one_way.maximum(one_way.T))  # either sees the other


def laplacian(W: csr_matrix) -> csr_matrix:
    """L = D - W of (2)."""
    return csr_matrix(diags(np.asarray(W.sum(axis=1)).ravel()) - W)


def row_digests(X: Any) -> NDArray:
    """A digest of each row's content: equal rows, and in practice only they, have equal digests."""
    if issparse(X):
        X = X.copy()
        X.eliminate_zeros()
        X.sort_indices()
        parts = (
            X.indices[a:b].astype(np.int64).tobytes() + X.data[a:b].tobytes()
            for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
        )
    else:
        parts = (row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64) + 0.0)  # + 0.0: no -0.0
    return np.array([blake2b(part, digest_size=16).hexdigest() for part in parts], dtype="U32")


def _unit(X: Any, precomputed: bool) -> Any:
    if precomputed:
        K = np.asarray(X, dtype=np.float64)
        scale = np.sqrt(np.clip(np.diag(K), 0.0, None))
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
        return K * inverse[:, None] * inverse[None, :]
    X = csr_matrix(X, dtype=np.float64)
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    inverse = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    return csr_matrix(diags(inverse) @ X)


def _nearest(
    unit: Any, first: NDArray[np.intp], order: NDArray[np.intp], k: int, precomputed: bool
) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """(node, neighbour, cosine) of the k nearest of each node, a block of nodes at a time."""
    nodes = unit[first] if not precomputed else unit[np.ix_(first, first)]
    n = len(first)
    if not precomputed:
        nodes.sort_indices()
        by_row, by_column = ((m.indptr, m.indices, m.data) for m in (nodes, nodes.T.tocsr()))
    found: list[tuple[NDArray, NDArray, Floats]] = []
    block = max(1, _BLOCK_BYTES // (8 * max(n, 1)))
    for start in range(0, n, block):
        stop = min(start + block, n)
        cosine = nodes[start:stop].copy() if precomputed else _products(by_row, by_column, start, stop)
        cosine[np.arange(stop - start), np.arange(start, stop)] = -np.inf  # not its own neighbour
        if n - 1 > k:
            least = np.partition(cosine, n - k, axis=1)[:, n - k]
            near = (cosine >= least[:, None] - _TIE) & (cosine > 0)
        else:
            least = np.full(stop - start, -np.inf)
            near = cosine > 0
        for row in np.flatnonzero(near.sum(axis=1) > k):
            candidates = np.flatnonzero(near[row])
            tied = np.abs(cosine[row, candidates] - least[row]) <= _TIE
            sure, doubtful = candidates[~tied], candidates[tied]
            kept = doubtful[np.argsort(order[doubtful])][: k - len(sure)]
            near[row] = False
            near[row, sure] = True
            near[row, kept] = True
        rows, columns = np.nonzero(near)
        found.append((rows + start, columns, cosine[rows, columns]))
    if not found:
        return np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]


@njit(cache=True, nogil=True)
def _products(by_row, by_column, start, stop):
    """Rows of X Xᵀ, dense, in half the time of scipy's sparse product.

    Each sum runs over the features in order, so that equal rows get equal bits whatever their positions.
    """
    indptr, indices, data = by_row
    lists, rows, values = by_column
    out = np.zeros((stop - start, len(indptr) - 1))
    for i in range(start, stop):
        for k in range(indptr[i], indptr[i + 1]):
            for m in range(lists[indices[k]], lists[indices[k] + 1]):
                out[i - start, rows[m]] += data[k] * values[m]
    return out
